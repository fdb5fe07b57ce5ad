//! What `run` and `compare` do with a fleet: its charts, and several fleets side by side.

use std::path::Path;
use std::process::ExitCode;

use super::output::{Folder, print};
use super::progress::Bar;
use super::run::Format;
use super::{Which, threshold_code};
use crate::Error;
use crate::chart::{self, SweepLine, SweepLines};
use crate::model::Outage;
use crate::report::{self, Style};
use crate::scenario::Scenario;
use crate::simulate::{Answer, FleetComparison, compare_fleets};
use crate::stats::{Figure, FleetSummary, Place, Series, SeriesKind};

/// The stems of the charts of a run.
pub(super) const CHARTS: [&str; 6] =
    ["fleet-calls", "fleet-sessions", "fleet-latency", "fleet-unanswered", "fleet-use", "fleet-cost"];

/// The unit of the horizontal axis, and how many seconds it is.
fn unit(horizon_s: f64) -> (&'static str, f64) {
    if horizon_s > 3.0 * 3600.0 { ("hours", 3600.0) } else { ("minutes", 60.0) }
}

/// A series from left to right.
fn line(name: String, series: &Series, fleet: &FleetSummary) -> SweepLine {
    let (piece_s, (_, unit_s)) = (fleet.piece_s, unit(fleet.horizon_s));
    let points = series.values.iter().enumerate().filter_map(|(piece, value)| {
        let value = (*value)?;
        let at = (piece as f64 + 0.5) * piece_s / unit_s;
        let [low, high] = if value.ci95[0].is_finite() { value.ci95 } else { [value.value; 2] };
        Some((at, value.value, low, high))
    });
    SweepLine { name, points: points.collect() }
}

fn chart(scenario: &Scenario, subtitle: String, lines: Vec<SweepLine>, shown: fn(f64) -> String) -> SweepLines {
    let fleet = scenario.model.fleet.as_ref();
    let (name, unit_s) = unit(fleet.map_or(0.0, |fleet| fleet.horizon_s));
    let outages = fleet.map_or(&[][..], |fleet| &fleet.outages);
    let stretch = |outage: &Outage| {
        let end_s = fleet.map_or(outage.until_s, |fleet| outage.until_s.min(fleet.horizon_s));
        (outage.from_s / unit_s, end_s / unit_s)
    };
    let shaded: Vec<(f64, f64)> = outages.iter().map(stretch).collect();
    SweepLines {
        title: scenario.title.clone(),
        subtitle,
        x_name: name.to_owned(),
        places: None,
        lines,
        shown,
        shaded: (!shaded.is_empty()).then(|| ("outage".to_owned(), shaded)),
    }
}

fn places(answer: &Answer) -> Vec<Place> {
    answer.fleet.iter().flat_map(|fleet| fleet.summary.stations.iter().map(|station| station.place)).collect()
}

/// Draws a fleet over time: calls, sessions, latency.
pub(super) fn write_charts(answer: &Answer, folder: &mut Folder) -> Result<(), Error> {
    let Some(fleet) = answer.fleet_summary() else { return Ok(()) };
    let scenario = &answer.scenario;
    let line_of = |kind: SeriesKind, name: String| {
        fleet.series(kind).map(|series| line(name, series, fleet)).filter(|line| !line.points.is_empty())
    };
    let about = |what: &str| format!("{what}; means over {} replications with 95 % intervals", fleet.replications);
    let name = |place: Place| report::place_name(answer, place);
    let mut calls = Vec::new();
    for place in places(answer) {
        calls.extend(line_of(SeriesKind::CallsPerS(place), format!("calls of {}", name(place))));
        calls.extend(line_of(SeriesKind::FailuresPerS(place), format!("{} turned away or lost", name(place))));
    }
    calls.extend(line_of(SeriesKind::BreakerPerS, "ended by a breaker".to_owned()));
    let mut sessions: Vec<SweepLine> =
        line_of(SeriesKind::InProgress, "sessions in progress".to_owned()).into_iter().collect();
    for place in places(answer) {
        sessions.extend(line_of(SeriesKind::Waiting(place), format!("calls that wait for {}", name(place))));
    }
    let latency = [(SeriesKind::LatencyP50, "p50"), (SeriesKind::LatencyP99, "p99")];
    let latency: Vec<SweepLine> =
        latency.into_iter().filter_map(|(kind, name)| line_of(kind, name.to_owned())).collect();
    let unanswered: Vec<SweepLine> =
        line_of(SeriesKind::UnansweredPerHour, "unanswered".to_owned()).into_iter().collect();
    let stations = places(answer)
        .into_iter()
        .filter_map(|place| line_of(SeriesKind::Utilisation(place), format!("{}: servers busy", name(place))));
    let limits =
        fleet.limits.iter().filter_map(|limit| line_of(SeriesKind::LimitUse(limit.kind), limit.kind.key().to_owned()));
    let used: Vec<SweepLine> = stations.chain(limits).collect();
    let cost: Vec<SweepLine> = line_of(SeriesKind::CostPerHour, "dollars an hour".to_owned()).into_iter().collect();
    let all = [
        (chart(scenario, about("calls a second"), calls, report::count), CHARTS[0]),
        (chart(scenario, about("sessions in progress, and calls that wait"), sessions, report::count), CHARTS[1]),
        (
            chart(scenario, about("latency of the sessions that end, however they end"), latency, report::seconds),
            CHARTS[2],
        ),
        (
            chart(scenario, about("sessions that end without their answer, an hour"), unanswered, report::count),
            CHARTS[3],
        ),
        (chart(scenario, about("share that is used of servers and provider limits"), used, report::percent), CHARTS[4]),
        (chart(scenario, about("money of the sessions that end, an hour"), cost, report::money), CHARTS[5]),
    ];
    for (chart, stem) in all {
        if chart.lines.is_empty() {
            continue;
        }
        let written = chart::write(&chart, folder.path(), stem)?;
        folder.add(written);
    }
    Ok(())
}

/// The figures that are compared where none is asked for.
fn usual(scenarios: &[Scenario]) -> Vec<Figure> {
    const NAMES: [&str; 15] = [
        "cost_usd.mean",
        "cost_per_hour_usd",
        "cost_per_answer_usd",
        "latency_s.p50",
        "latency_s.p99",
        "answered",
        "failed",
        "call_success",
        "availability",
        "model_attempts_per_call",
        "attempts_per_call",
        "breaker_refused",
        "duplicates_per_call",
        "in_progress",
        "ended_per_hour",
    ];
    let figure =
        |name: &str| scenarios.iter().find_map(|scenario| Figure::parse(name, &scenario.model, &scenario.tools).ok());
    let mut figures: Vec<Figure> = NAMES.iter().filter_map(|name| figure(name)).collect();
    let all = scenarios.first().map_or_else(Vec::new, |first| Figure::all(&first.model));
    let of_stations = all.into_iter().filter(|figure| match figure {
        Figure::WaitQuantile(_, p) => (p - 0.99).abs() < 1e-9,
        Figure::WaitMean(_) | Figure::Utilisation(_) | Figure::TurnedAway(_) => true,
        _ => false,
    });
    figures.extend(of_stations);
    figures
}

/// How several fleets are held side by side.
pub(super) struct Held<'a> {
    pub metrics: &'a [String],
    pub format: Format,
    pub strict: bool,
    pub output: Option<&'a Path>,
}

/// Plays several fleets and shows them side by side.
pub(super) fn compare(which: &Which, scenarios: Vec<Scenario>, held: &Held<'_>) -> Result<ExitCode, Error> {
    let Some(base) = scenarios.first() else { return Ok(ExitCode::SUCCESS) };
    let mut figures = Vec::new();
    for name in held.metrics {
        let full = if name.contains('.') || Figure::parse(name, &base.model, &base.tools).is_ok() {
            name.clone()
        } else {
            format!("{name}.mean")
        };
        let figure = Figure::parse(&full, &base.model, &base.tools).map_err(|error| Error::Plan(error.to_string()))?;
        figures.push(figure);
    }
    if figures.is_empty() {
        figures = usual(&scenarios);
    }
    let files: Vec<&String> = scenarios.iter().map(|scenario| &scenario.file).collect();
    let several = files.iter().any(|file| *file != files[0]);
    let named =
        |scenario: Scenario| (if several { scenario.file.clone() } else { scenario.strategy.clone() }, scenario);
    let folder = held.output.map(Folder::open).transpose()?;
    let bar = Bar::new();
    let comparison = compare_fleets(scenarios.into_iter().map(named).collect(), &figures, which.options(), &bar)?;
    drop(bar);
    if let Some(folder) = folder {
        write_overlays(&comparison, folder)?;
    }
    print(&match held.format {
        Format::Markdown => report::fleets_markdown(&comparison),
        Format::Json => report::fleets_json(&comparison).map_err(|e| Error::Output(e.into()))?,
        Format::Terminal => report::fleets_terminal(&comparison, Style::Colour),
    })?;
    let answers = comparison.ways.iter().filter_map(|way| Some((&way.name, way.answer.as_ref().ok()?)));
    let not_kept = answers.flat_map(|(name, answer)| {
        report::not_kept(answer, held.strict).into_iter().map(move |text| format!("{name}: {text}"))
    });
    Ok(threshold_code(not_kept))
}

/// A line for each way: calls of each place, sessions in progress, and what waits.
fn write_overlays(comparison: &FleetComparison, mut folder: Folder) -> Result<(), Error> {
    let json = report::fleets_json(comparison).map_err(|e| Error::Output(e.into()))?;
    folder.write("compare.json", &json)?;
    folder.write("compare.md", &report::fleets_markdown(comparison))?;
    let answers: Vec<(&String, &Answer)> =
        comparison.ways.iter().filter_map(|way| Some((&way.name, way.answer.as_ref().ok()?))).collect();
    let Some((_, first)) = answers.first() else { return Ok(()) };
    let mut kinds = vec![
        (SeriesKind::InProgress, "sessions in progress".to_owned(), "sessions".to_owned()),
        (
            SeriesKind::LatencyP99,
            "99th percentile of the latency of sessions that end".to_owned(),
            "latency".to_owned(),
        ),
        (SeriesKind::UnansweredPerHour, "sessions without an answer, an hour".to_owned(), "unanswered".to_owned()),
    ];
    for place in places(first) {
        let name = report::place_name(first, place);
        kinds.push((SeriesKind::CallsPerS(place), format!("calls of {name} a second"), format!("calls-{name}")));
        kinds.push((SeriesKind::Waiting(place), format!("calls that wait for {name}"), format!("waiting-{name}")));
        kinds.push((SeriesKind::Utilisation(place), format!("servers of {name} that are busy"), format!("use-{name}")));
    }
    for (kind, what, stem) in kinds {
        let lines: Vec<SweepLine> = answers
            .iter()
            .filter_map(|(name, answer)| {
                let fleet = &answer.fleet.as_ref()?.summary;
                Some(line((*name).clone(), fleet.series(kind)?, fleet))
            })
            .collect();
        if lines.is_empty() {
            continue;
        }
        let about = format!("{what}; means over replications with 95 % intervals");
        let shown = match kind {
            SeriesKind::LatencyP99 => report::seconds,
            SeriesKind::Utilisation(_) => report::percent,
            _ => report::count,
        };
        let drawn = chart(&first.scenario, about, lines, shown);
        let written = chart::write(&drawn, folder.path(), &format!("compare-{stem}"))?;
        folder.add(written);
    }
    folder.close(&[]);
    Ok(())
}
