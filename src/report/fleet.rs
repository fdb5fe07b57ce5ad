//! What only a fleet has: how much is going on, where sessions wait, and which limits bite.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::format::{seconds, whole};
use super::json::{Object, RateReport};
use super::wording::{share_with_interval, with_interval};
use crate::scenario::TierInfo;
use crate::simulate::{Answer, Unsettled};
use crate::stats::{
    Estimate, FleetSummary, Growth, LimitSummary, Place, Rate, Series, SeriesKind, StationSummary, Unit, quantile_name,
};

/// The name of a place in a scenario.
pub fn place_name(answer: &Answer, place: Place) -> &str {
    place.name(&answer.scenario.places)
}

/// A time as a person says it.
fn time(s: f64) -> String {
    match s {
        s if s >= 7200.0 => format!("{} h", super::format::count(s / 3600.0)),
        s if s >= 120.0 => format!("{} min", super::format::count(s / 60.0)),
        s => seconds(s),
    }
}

/// "20 replications of 2 h each, the first 12 min not counted".
pub(super) fn watched(fleet: &FleetSummary) -> String {
    watched_for(fleet.replications, fleet.horizon_s, fleet.warm_up_s)
}

/// The same of a fleet that may not have been played.
pub(super) fn watched_for(replications: u64, horizon_s: f64, warm_up_s: f64) -> String {
    let warm_up = if warm_up_s > 0.0 { format!(", the first {} not counted", time(warm_up_s)) } else { String::new() };
    let plural = if replications == 1 { "" } else { "s" };
    format!("{} replication{plural} of {} each{warm_up}", whole(replications), time(horizon_s))
}

/// The sentence on a fleet that doesn't settle.
pub fn growth_text(answer: &Answer, growth: &Growth) -> String {
    growth_of(growth, growth.saturated.map(|what| what.name(&answer.scenario.places)))
}

/// Why a fleet has no figures.
pub(super) fn unsettled_text(unsettled: &Unsettled) -> String {
    match unsettled {
        Unsettled::Overloaded(why) => why.clone(),
        Unsettled::Grows(growth, full) => growth_of(growth, full.as_deref()),
    }
}

/// The same with the name of what is used up.
fn growth_of(growth: &Growth, saturated: Option<&str>) -> String {
    let per_hour = &growth.per_hour;
    let what = match (growth.waiting_at, saturated) {
        (Some(_), Some(name)) => format!("calls that wait for {name}"),
        _ => "sessions in progress".to_owned(),
    };
    let grows = if per_hour.value.is_finite() {
        format!("{what} grow by {} an hour", with_interval(Unit::Count, per_hour))
    } else {
        format!("{what} grow")
    };
    let given_up = if growth.given_up { "; a replication was given up for them" } else { "" };
    match saturated {
        Some(name) => {
            format!("unstable: {grows}{given_up}, and {name} is used up all the time. There is no mean to report")
        }
        None if growth.given_up => format!("unstable: {grows}{given_up}. There is no mean to report"),
        None => format!(
            "not settled: {grows} at the end, though nothing is used up. Sessions last long against the warm-up: give a \
             longer warm_up and horizon. There is no mean to report yet"
        ),
    }
}

pub(super) fn lines(answer: &Answer, fleet: &FleetSummary) -> Vec<(&'static str, String)> {
    let count = |estimate: &Estimate| with_interval(Unit::Count, estimate);
    let mut lines = vec![
        ("watched", watched(fleet)),
        ("sessions that arrive", format!("{} an hour", count(&fleet.arrived_per_hour))),
        ("sessions that end", format!("{} an hour", count(&fleet.ended_per_hour))),
    ];
    if fleet.growth.is_some() {
        return lines;
    }
    lines.push(("in progress", format!("{} on average", count(&fleet.in_progress))));
    if let Some(cost) = &fleet.cost_per_hour_usd {
        lines.push(("cost", format!("{} an hour", with_interval(Unit::Usd, cost))));
    }
    if let Some(warm) = &fleet.prefix_warm {
        let whose = if answer.scenario.model.has_agents() { "the main agent's" } else { "the" };
        let text = format!("{} of {whose} model calls find tools and system cached", share_with_interval(warm));
        lines.push(("shared prefix", text));
    }
    lines
}

/// Header and rows of the stations.
pub(super) const STATION_HEADER: [&str; 8] =
    ["calls of", "at once", "calls an hour", "utilisation", "wait", "wait p99", "had to wait", "turned away"];

fn two_lines(estimate: &Estimate, shown: impl Fn(f64) -> String) -> String {
    let [low, high] = estimate.ci95;
    if high > low {
        format!("{}\n{} … {}", shown(estimate.value), shown(low), shown(high))
    } else {
        shown(estimate.value)
    }
}

/// The cells of a station; each an estimate over its interval.
pub(super) fn station_cells(answer: &Answer, station: &StationSummary) -> Vec<String> {
    let percent = |estimate: &Estimate| two_lines(estimate, super::format::percent);
    let wait = |estimate: &Estimate| two_lines(estimate, seconds);
    let p99 = station.wait_quantiles.iter().find(|q| (q.p - 0.99).abs() < 1e-9).filter(|q| q.value.is_finite());
    vec![
        place_name(answer, station.place).to_owned(),
        station.servers.map_or_else(|| "no limit".to_owned(), whole),
        two_lines(&station.came_per_hour, super::format::count),
        match &station.utilisation {
            Some(utilisation) => percent(utilisation),
            None => two_lines(&station.busy, super::format::count).replacen('\n', " calls\n", 1),
        },
        station.wait_s.as_ref().filter(|wait| wait.value.is_finite()).map_or_else(String::new, wait),
        p99.map_or_else(String::new, |q| {
            let mark = if q.too_few { " ?" } else { "" };
            let [low, high] = q.ci95;
            let interval = if high > low { format!("\n{} … {}", seconds(low), seconds(high)) } else { String::new() };
            format!("{}{mark}{interval}", seconds(q.value))
        }),
        station.waited.as_ref().filter(|waited| waited.value.is_finite()).map_or_else(String::new, percent),
        if station.turned_away.value > 0.0 { percent(&station.turned_away) } else { String::new() },
    ]
}

/// Header and rows of the limits.
pub(super) const LIMIT_HEADER: [&str; 5] =
    ["limit", "a minute", "used", "at its peak", "calls turned away for it, an hour"];

pub(super) fn limit_cells(limit: &LimitSummary) -> Vec<String> {
    vec![
        limit.kind.key().to_owned(),
        super::format::count(limit.per_minute),
        two_lines(&limit.used, |share| format!("{:.1} %", share * 100.0)),
        two_lines(&limit.used_at_peak, |share| format!("{:.1} %", share * 100.0)),
        two_lines(&limit.short_per_hour, super::format::count),
    ]
}

/// What can never pass a limit.
pub(super) fn impossible(fleet: &FleetSummary) -> impl Iterator<Item = String> {
    fleet.limits.iter().filter(|limit| limit.impossible > 0).map(|limit| {
        format!(
            "{} calls need more of {} than ever is there: they can't pass, however long they wait",
            whole(limit.impossible),
            limit.kind.key()
        )
    })
}

/// The sections of the terminal.
pub(super) fn terminal(out: &mut String, answer: &Answer, fleet: &FleetSummary, style: Style) {
    let _ = writeln!(out, "\n{}", style.heading("Fleet"));
    for (label, text) in lines(answer, fleet) {
        let _ = writeln!(out, "  {label:<26}  {text}");
    }
    let _ = writeln!(out, "\n{}", style.heading("Where sessions meet"));
    let mut stations = style.table(STATION_HEADER, 1..8);
    for station in &fleet.stations {
        stations.add_row(station_cells(answer, station));
    }
    let _ = writeln!(out, "{}", style.whole_words(stations));
    let note = "Utilisation: the share of the places that is taken, or the calls under way where there is no limit. Waits: of calls whose turn came.";
    let _ = writeln!(out, "{}", style.faint(note));
    for text in failures(answer, fleet) {
        let _ = writeln!(out, "  {}", style.warning(&text));
    }
    if !fleet.limits.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("Provider limits"));
        let mut limits = style.table(LIMIT_HEADER, 1..5);
        for limit in &fleet.limits {
            limits.add_row(limit_cells(limit));
        }
        let _ = writeln!(out, "{}", style.whole_words(limits));
        let model = &answer.scenario.model;
        if model.any_in_tree(&|model| model.cache.is_kept_alive()) {
            let _ = writeln!(
                out,
                "{}",
                style.faint("Pings that keep caches warm count against limits, and aren't among the calls above.")
            );
        }
        if let Some(tier) = &answer.scenario.tier {
            let _ = writeln!(out, "{}", style.faint(&tier_text(tier)));
        }
        for text in impossible(fleet) {
            let _ = writeln!(out, "  {}", style.warning(&text));
        }
    }
}

/// "tier anthropic-start: docs.claude.com, rate limits (2026-08-22)".
fn tier_text(tier: &TierInfo) -> String {
    format!("Tier {}: {}, {}.", tier.name, tier.source, tier.source_date)
}

/// Calls that don't get what they came for.
fn failures(answer: &Answer, fleet: &FleetSummary) -> Vec<String> {
    let mut texts: Vec<String> = too_long(answer, fleet).into_iter().collect();
    texts.extend(too_busy(answer, fleet));
    texts.extend(left_out(answer, fleet));
    for station in &fleet.stations {
        let name = place_name(answer, station.place);
        if station.turned_away.value > FEW {
            let share = share_with_interval(&station.turned_away);
            texts.push(format!("{name} turns away {share} of the calls"));
        }
        if station.down.value > 0.0 {
            let share = share_with_interval(&station.down);
            texts.push(format!("{share} of the calls of {name} come while it is out of order"));
        }
    }
    texts
}

/// Sessions that are long against what is watched can't be seen to their end.
fn too_long(answer: &Answer, fleet: &FleetSummary) -> Option<String> {
    let latency = answer.summary.metric("latency_s")?;
    let p99_s = latency.quantile(0.99)?.value + answer.summary.metric("think_s").map_or(0.0, |think| think.mean.value);
    let room_s = if fleet.warm_up_s > 0.0 { fleet.warm_up_s } else { fleet.horizon_s / 10.0 };
    (p99_s > room_s).then(|| {
        format!(
            "one session in a hundred takes {} or longer, and {}: longer ones are hardly seen. Give a longer warm_up and \
             horizon; {} sessions are in progress at the end",
            time(p99_s),
            if fleet.warm_up_s > 0.0 {
                format!("the warm-up is {}", time(fleet.warm_up_s))
            } else {
                format!("the horizon is {}", time(fleet.horizon_s))
            },
            with_interval(Unit::Count, &fleet.in_progress_at_end)
        )
    })
}

/// A fleet whose busiest place has hardly any time left settles slowly, if at all.
fn too_busy(answer: &Answer, fleet: &FleetSummary) -> Option<String> {
    let (place, used) = fleet.used_up().filter(|_| fleet.growth.is_none())?;
    Some(format!(
        "{} is busy {:.1} % of the time: so close to its end a fleet settles slowly, and these means may be those of one that \
         still grows. A longer horizon tells",
        place_name(answer, place),
        used * 100.0
    ))
}

/// Sessions whose agents outlast what is watched.
fn left_out(answer: &Answer, fleet: &FleetSummary) -> Option<String> {
    let sessions = answer.summary.sessions as f64 / fleet.replications.max(1) as f64;
    let lingering = &fleet.lingering_at_end;
    (lingering.value > FEW * sessions).then(|| {
        format!(
            "{} sessions are over at the end while agents that they had given up still run: they aren't in these figures. Give a \
             longer warm_up and horizon",
            with_interval(Unit::Count, lingering)
        )
    })
}

/// A share that is worth a word.
const FEW: f64 = 0.01;

/// What to think of figures that failed sessions enter.
pub(super) fn unanswered_text(answer: &Answer) -> Option<String> {
    let answered = answer.fleet.as_ref().and(answer.summary.rate(Rate::Answered))?;
    (answered.value < 1.0 - FEW).then(|| {
        let cost = answer
            .summary
            .rate(Rate::CostPerAnswer)
            .map_or(String::new(), |cost| format!("; each answer costs {}", with_interval(Unit::Usd, cost)));
        format!(
            "{} of the sessions end without their answer, and their cost and time are in these figures{cost}",
            super::format::percent(1.0 - answered.value)
        )
    })
}

/// A table of markdown.
fn markdown_table(out: &mut String, header: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = writeln!(out, "\n| {} |\n|---{}|", header.join(" | "), "|---:".repeat(header.len() - 1));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replacen('\n', "<br>", 1)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// The tables of the pull request.
pub(super) fn markdown(out: &mut String, answer: &Answer, fleet: &FleetSummary) {
    let _ = writeln!(out, "\n| fleet | |\n|---|---|");
    for (label, text) in lines(answer, fleet) {
        let _ = writeln!(out, "| {label} | {text} |");
    }
    markdown_table(out, &STATION_HEADER, fleet.stations.iter().map(|station| station_cells(answer, station)));
    if !fleet.limits.is_empty() {
        markdown_table(out, &LIMIT_HEADER, fleet.limits.iter().map(limit_cells));
    }
    if let Some(tier) = &answer.scenario.tier {
        let _ = writeln!(out, "\n{}", tier_text(tier));
    }
    for text in impossible(fleet).chain(failures(answer, fleet)).chain(unanswered_text(answer)) {
        let _ = writeln!(out, "\n{text}.");
    }
}

#[derive(Serialize)]
pub(super) struct FleetReport {
    replications: u64,
    horizon_s: f64,
    warm_up_s: f64,
    arrived_per_hour: RateReport,
    ended_per_hour: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_progress: Option<RateReport>,
    /// At the horizon.
    in_progress_at_end: RateReport,
    /// Sessions that were over and not counted yet, because agents that they had called were still under way.
    lingering_at_end: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_per_hour_usd: Option<RateReport>,
    /// Of the model calls, those that found tools and system in the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix_warm: Option<RateReport>,
    /// "model", and tools by name.
    stations: Object<StationReport>,
    limits: Object<LimitReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outages: Vec<super::curves::OutageReport>,
    /// Where it doesn't settle; there are no metrics then.
    #[serde(skip_serializing_if = "Option::is_none")]
    unstable: Option<GrowthReport>,
    series: SeriesReport,
}

#[derive(Serialize)]
struct StationReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<u64>,
    calls_per_hour: RateReport,
    busy: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    utilisation: Option<RateReport>,
    waiting: RateReport,
    most_waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_s: Option<RateReport>,
    #[serde(skip_serializing_if = "Object::is_empty")]
    wait_quantiles_s: Object<RateReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited: Option<RateReport>,
    turned_away: RateReport,
    /// Failed because it was out of order.
    down: RateReport,
}

#[derive(Serialize)]
struct LimitReport {
    per_minute: f64,
    used: RateReport,
    used_at_peak: RateReport,
    short_per_hour: RateReport,
    impossible: u64,
}

#[derive(Serialize)]
struct GrowthReport {
    /// What grows: sessions in progress, or calls that wait at what is saturated.
    of: &'static str,
    per_hour: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    saturated: Option<String>,
}

#[derive(Serialize)]
struct SeriesReport {
    /// Each value is of one piece of the horizon of this length, s.
    piece_s: f64,
    /// Means over replications.
    means: Object<Vec<Option<f64>>>,
}

/// The name of a series, with its unit.
pub fn series_name(answer: &Answer, series: &Series) -> String {
    match series.kind {
        SeriesKind::InProgress => "in_progress".to_owned(),
        SeriesKind::ArrivalsPerS => "arrivals_per_s".to_owned(),
        SeriesKind::CallsPerS(place) => format!("{}_calls_per_s", place_name(answer, place)),
        SeriesKind::FailuresPerS(place) => format!("{}_turned_away_per_s", place_name(answer, place)),
        SeriesKind::Waiting(place) => format!("{}_waiting", place_name(answer, place)),
        SeriesKind::Utilisation(place) => format!("{}_utilisation", place_name(answer, place)),
        SeriesKind::LimitUse(kind) => format!("{}_used", kind.key()),
        SeriesKind::BreakerPerS => "breaker_refused_per_s".to_owned(),
        SeriesKind::UnansweredPerHour => "unanswered_per_hour".to_owned(),
        SeriesKind::CostPerHour => "cost_usd_per_hour".to_owned(),
        SeriesKind::LatencyP50 => "latency_s_p50".to_owned(),
        SeriesKind::LatencyP99 => "latency_s_p99".to_owned(),
    }
}

pub(super) fn report(answer: &Answer, fleet: &FleetSummary) -> FleetReport {
    let rate = |estimate: &Option<Estimate>| estimate.as_ref().map(RateReport::from);
    let station = |station: &StationSummary| StationReport {
        capacity: station.servers,
        queue: station.places,
        calls_per_hour: (&station.came_per_hour).into(),
        busy: (&station.busy).into(),
        utilisation: rate(&station.utilisation),
        waiting: (&station.waiting).into(),
        most_waiting: station.most_waiting,
        wait_s: rate(&station.wait_s),
        wait_quantiles_s: Object(
            station
                .wait_quantiles
                .iter()
                .map(|q| (quantile_name(q.p), RateReport { value: q.value, se: f64::NAN, ci95: q.ci95 }))
                .collect(),
        ),
        waited: rate(&station.waited),
        turned_away: (&station.turned_away).into(),
        down: (&station.down).into(),
    };
    let limit = |limit: &LimitSummary| LimitReport {
        per_minute: limit.per_minute,
        used: (&limit.used).into(),
        used_at_peak: (&limit.used_at_peak).into(),
        short_per_hour: (&limit.short_per_hour).into(),
        impossible: limit.impossible,
    };
    let means = |series: &Series| series.values.iter().map(|value| value.map(|value| value.value)).collect();
    FleetReport {
        replications: fleet.replications,
        horizon_s: fleet.horizon_s,
        warm_up_s: fleet.warm_up_s,
        arrived_per_hour: (&fleet.arrived_per_hour).into(),
        ended_per_hour: (&fleet.ended_per_hour).into(),
        in_progress: fleet.growth.is_none().then(|| (&fleet.in_progress).into()),
        in_progress_at_end: (&fleet.in_progress_at_end).into(),
        lingering_at_end: (&fleet.lingering_at_end).into(),
        cost_per_hour_usd: rate(&fleet.cost_per_hour_usd.filter(|_| fleet.growth.is_none())),
        prefix_warm: rate(&fleet.prefix_warm),
        stations: Object(fleet.stations.iter().map(|s| (place_name(answer, s.place).to_owned(), station(s))).collect()),
        limits: Object(fleet.limits.iter().map(|l| (l.kind.key().to_owned(), limit(l))).collect()),
        outages: answer.scenario.model.fleet.as_ref().map_or_else(Vec::new, super::curves::outages),
        unstable: fleet.growth.as_ref().map(|growth| GrowthReport {
            of: if growth.waiting_at.is_some() { "waiting" } else { "in_progress" },
            per_hour: (&growth.per_hour).into(),
            saturated: growth.saturated.map(|what| what.name(&answer.scenario.places).to_owned()),
        }),
        series: SeriesReport {
            piece_s: fleet.piece_s,
            means: Object(fleet.series.iter().map(|series| (series_name(answer, series), means(series))).collect()),
        },
    }
}

/// Over which its figures are summed, for the line below the title.
pub(super) fn about(fleet: &FleetSummary, sessions: u64) -> String {
    format!("{}, {} sessions ended", watched(fleet), whole(sessions))
}

/// Shown where a fleet is unstable, instead of the headline table.
pub(super) fn unstable(answer: &Answer, fleet: &FleetSummary) -> Option<String> {
    fleet.growth.as_ref().map(|growth| growth_text(answer, growth))
}
