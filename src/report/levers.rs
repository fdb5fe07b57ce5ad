//! What to change first.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::compare::{change_text, escape};
use super::head::{Head, PriceSheet};
use super::sweep::shown;
use super::wording::{price_sentence, sessions_text, value};
use crate::simulate::{Effect, Pulled, RANKED_QUANTILE, Ranking};
use crate::stats::{Estimate, Unit, is_decided, quantile_name};

/// What is saved in a month, or in a session where the scenario asks for no month.
fn per_month(ranking: &Ranking, saved: &Estimate) -> Estimate {
    let n = ranking.base.scenario.sessions_per_month.unwrap_or(1) as f64;
    Estimate { value: saved.value * n, se: saved.se * n, ci95: saved.ci95.map(|x| x * n) }
}

/// The places of the levers by seconds off the tail, 1 for the best.
fn places_by_time(ranking: &Ranking) -> Vec<Option<usize>> {
    // what chance may have done has no place
    let value = |index: usize| ranking.pulled[index].off_tail().filter(|off| off.ci95[0] > 0.0).map(|off| off.value);
    let mut order: Vec<usize> = (0..ranking.pulled.len()).filter(|index| value(*index).is_some()).collect();
    order.sort_by(|a, b| value(*b).unwrap_or(0.0).total_cmp(&value(*a).unwrap_or(0.0)));
    (0..ranking.pulled.len()).map(|index| order.iter().position(|at| *at == index).map(|place| place + 1)).collect()
}

fn effect(effect: &Effect) -> String {
    let [with, without] = effect.values.map(|x| match effect.statistic.unit() {
        Some(unit) => value(unit, x),
        None => shown(effect.statistic, x),
    });
    let what = match effect.name.as_str() {
        "duplicates.mean" => "calls that ran twice a session",
        "latency_s.mean" => "mean latency",
        "answered" => "answered",
        "availability" => "calls that succeeded",
        "served" => "sessions with all tools",
        "success" => "succeeded",
        other => other,
    };
    format!("{what} {without} → {with}")
}

/// What is saved, with its interval where chance leaves one; minus is dearer or slower.
fn saving(unit: Unit, estimate: &Estimate) -> String {
    if estimate.value.abs() <= 0.0 && estimate.se <= 0.0 {
        return "0".to_owned();
    }
    let text = value(unit, estimate.value);
    if estimate.ci95[0].is_nan() {
        return format!("{text} ?\none session only");
    }
    if estimate.se <= 0.0 {
        return text;
    }
    let mark = if is_decided(estimate) { "" } else { " ?" };
    format!("{text}{mark}\n{} … {}", value(unit, estimate.ci95[0]), value(unit, estimate.ci95[1]))
}

fn saved_title(ranking: &Ranking) -> &'static str {
    if ranking.base.scenario.sessions_per_month.is_some() { "saves a month" } else { "saves a session" }
}

fn tail_title() -> String {
    format!("off {}", quantile_name(RANKED_QUANTILE))
}

/// Its name, with what it costs or brings elsewhere.
fn name(pulled: &Pulled) -> String {
    let on = if pulled.is_on { " (on already)" } else { "" };
    let loses = pulled.loses.as_ref().map(|(_, tools)| match tools.as_slice() {
        [] => "  loses its tools".to_owned(),
        tools => format!("  loses its tools, {} among them", tools.join(", ")),
    });
    let lines = std::iter::once(format!("{}{on}", pulled.name)).chain(loses);
    lines.chain(pulled.effects.iter().map(|one| format!("  {}", effect(one)))).collect::<Vec<_>>().join("\n")
}

/// One row: place, name, money, place by time, seconds.
fn row(ranking: &Ranking, index: usize, by_time: Option<usize>) -> [String; 5] {
    let pulled = &ranking.pulled[index];
    let money = pulled
        .saved
        .as_ref()
        .map_or_else(String::new, |saved| saving(Unit::Usd, &per_month(ranking, &saved.difference)));
    let time = match (pulled.off_tail(), &pulled.faster) {
        (Some(off), _) => saving(Unit::Seconds, off),
        (None, Some(_)) => "–\ntoo few sessions".to_owned(),
        (None, None) => String::new(),
    };
    [(index + 1).to_string(), name(pulled), money, by_time.map_or_else(String::new, |place| format!("#{place}")), time]
}

/// Whether it can be recommended without knowing what the agent is for: it isn't on, takes nothing away, and lets no fewer
/// sessions or calls end well.
fn is_offered(pulled: &Pulled) -> bool {
    !pulled.is_on && pulled.loses.is_none() && !pulled.harms()
}

/// What to write into the file.
fn how(pulled: &Pulled) -> String {
    match &pulled.loses {
        None => pulled.changes.iter().map(change_text).collect::<Vec<_>>().join(", "),
        Some((server, tools)) if tools.is_empty() => format!("leave {server} out of [[servers]]"),
        Some((server, tools)) => format!("leave {server} out of [[servers]] and {} out of [[tools]]", tools.join(", ")),
    }
}

/// The answer to "what first".
fn verdict(ranking: &Ranking) -> String {
    let first = ranking.pulled.iter().find(|pulled| {
        is_offered(pulled)
            && pulled.saved.as_ref().is_some_and(|saved| saved.is_decided() && saved.difference.value > 0.0)
    });
    let fastest = ranking
        .pulled
        .iter()
        .filter(|pulled| is_offered(pulled))
        .filter_map(|pulled| Some((pulled, pulled.off_tail()?)))
        .filter(|(_, off)| off.ci95[0] > 0.0)
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let money = first.and_then(|pulled| Some((pulled, per_month(ranking, &pulled.saved.as_ref()?.difference))));
    let what = if ranking.base.scenario.sessions_per_month.is_some() { "a month" } else { "a session" };
    let mut parts = Vec::new();
    match money {
        Some((pulled, saved)) => {
            parts.push(format!("for money: {}, {} {what}", pulled.name, value(Unit::Usd, saved.value)));
        }
        None if ranking.base.scenario.model.tariff.is_some() => {
            parts.push("for money: nothing that surely saves".to_owned());
        }
        None => {}
    }
    match fastest {
        Some((pulled, off)) => parts.push(format!(
            "for time: {}, {} off {}",
            pulled.name,
            value(Unit::Seconds, off.value),
            quantile_name(RANKED_QUANTILE)
        )),
        None if ranking.pulled.iter().all(|pulled| pulled.faster.is_none()) => {}
        None if ranking.pulled.iter().all(|pulled| pulled.off_tail().is_none()) => {
            parts.push("for time: too few sessions to tell".to_owned());
        }
        None => {
            parts.push("for time: nothing that surely helps".to_owned());
        }
    }
    parts.join("; ")
}

/// How the savings stand to the closed forms.
fn theory(ranking: &Ranking) -> Option<String> {
    let mut known = 0;
    let mut largest = 0.0_f64;
    for pulled in &ranking.pulled {
        let (Some(saved), Some(theory)) = (&pulled.saved, pulled.saved_in_theory_usd) else { continue };
        known += 1;
        let off = (saved.difference.value - theory).abs();
        let exact = off <= 1e-9 * ranking.base.summary.metric("cost_usd").map_or(0.0, |cost| cost.mean.value);
        if !exact {
            largest = largest.max(if saved.difference.se > 0.0 { off / saved.difference.se } else { f64::INFINITY });
        }
    }
    (known > 0).then(|| {
        let all = ranking.pulled.len();
        if largest <= 0.0 {
            format!("{known} of {all} savings have a closed form, and equal it")
        } else {
            format!(
                "{known} of {all} savings have a closed form; the largest difference is {largest:.1} standard errors"
            )
        }
    })
}

/// The levers as a person reads them.
pub fn levers_terminal(ranking: &Ranking, style: Style) -> String {
    let mut out = String::new();
    let scenario = &ranking.base.scenario;
    let _ = writeln!(out, "{}", style.heading(&scenario.title));
    let about = format!(
        "{} · {} levers, each by itself, on the same {}, seed {}",
        scenario.file,
        ranking.pulled.len(),
        sessions_text(scenario, ranking.base.summary.sessions),
        scenario.run.seed
    );
    let _ = writeln!(out, "{}\n", style.faint(&about));
    if ranking.pulled.is_empty() {
        let _ = writeln!(out, "  {}", style.warning("no lever fits this scenario"));
    } else {
        let first = verdict(ranking);
        if first.is_empty() {
            let text = "The scenario has no prices and nothing takes time: there is nothing to rank by.";
            let _ = writeln!(out, "  {}\n", style.warning(text));
        } else {
            let _ = writeln!(out, "  {}\n", style.good(&format!("First {first}")));
        }
        let tail = tail_title();
        let mut grid = style.table(["", "lever", saved_title(ranking), "by time", &tail], 2..5);
        let places = places_by_time(ranking);
        for (index, place) in places.iter().enumerate() {
            grid.add_row(row(ranking, index, *place));
        }
        let _ = writeln!(out, "{}", style.whole_words(grid));
        let note = "Under each figure its 95 % interval, of the same sessions; minus is dearer or slower. ?  undecided.\nWhat is on already shows what it brings. Savings of several levers don't add up. What takes something away, or lets fewer\nsessions or calls end well, isn't called first.";
        let _ = writeln!(out, "{}", style.faint(note));
        let _ = writeln!(out, "\n{}", style.heading("How to pull them"));
        for (index, pulled) in ranking.pulled.iter().enumerate().filter(|(_, pulled)| !pulled.is_on) {
            let _ = writeln!(out, "  {:>2}  {}", index + 1, how(pulled));
            for note in &pulled.notes {
                let _ = writeln!(out, "      {}", style.warning(&format!("note: {note}")));
            }
        }
    }
    if !ranking.others.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("What doesn't fit"));
        for (what, why) in &ranking.others {
            let _ = writeln!(out, "  {what}: {why}");
        }
    }
    let _ = writeln!(out, "\n{}", style.heading("How sure"));
    let sentence = super::wording::checks_sentence(&ranking.base, "`agent-sim check` says why");
    let sentence = if ranking.base.checks.all_pass() { sentence } else { style.bad(&sentence) };
    let _ = writeln!(out, "  as it is: {sentence}");
    for text in theory(ranking).into_iter().chain(price_sentence(scenario)) {
        let _ = writeln!(out, "  {text}");
    }
    out
}

/// The levers for a pull request or a page.
pub fn levers_markdown(ranking: &Ranking) -> String {
    let mut out = String::new();
    let scenario = &ranking.base.scenario;
    let first = verdict(ranking);
    let first = if first.is_empty() { "no prices and no time to rank by".to_owned() } else { format!("first {first}") };
    let _ = writeln!(out, "**{}: {}.**\n", escape(&scenario.title), escape(&first));
    let _ =
        writeln!(out, "| | lever | {} | by time | {} |\n|---:|---|---:|---:|---:|", saved_title(ranking), tail_title());
    for (index, place) in places_by_time(ranking).iter().enumerate() {
        let _ = writeln!(out, "| {} |", row(ranking, index, *place).map(|cell| escape(&cell)).join(" | "));
    }
    let _ = writeln!(out);
    for (index, pulled) in ranking.pulled.iter().enumerate().filter(|(_, pulled)| !pulled.is_on) {
        let _ = writeln!(out, "- {}: `{}`", index + 1, escape(&how(pulled)));
    }
    for (what, why) in &ranking.others {
        let _ = writeln!(out, "- Doesn't fit: {}, {}", escape(what), escape(why));
    }
    let _ = writeln!(
        out,
        "\n<sub>Each lever by itself on the same {}, seed {}; savings with their 95 % intervals; ? undecided; {}.</sub>",
        sessions_text(scenario, ranking.base.summary.sessions),
        scenario.run.seed,
        price_sentence(scenario).map_or_else(|| "prices of the scenario".to_owned(), |text| escape(&text))
    );
    out
}

#[derive(Serialize)]
struct LeversReport<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions_per_month: Option<u64>,
    price_sheet: PriceSheet,
    levers: Vec<LeverReport<'a>>,
    not_tried: Vec<NotTried<'a>>,
    checks_pass: bool,
}

#[derive(Serialize)]
struct LeverReport<'a> {
    name: &'a str,
    on_already: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    loses_server: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    loses_tools: &'a [String],
    /// $ a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_usd: Option<Saving>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_usd_per_month: Option<Saving>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_usd_closed_form: Option<f64>,
    /// Seconds off p99 of a session's latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    off_p99_s: Option<Saving>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_by_time: Option<usize>,
    effects: Vec<EffectReport<'a>>,
    /// For a lever that is on, what takes it off.
    changes: Vec<ChangeReport<'a>>,
}

#[derive(Serialize)]
struct Saving {
    value: f64,
    se: f64,
    ci95: [Option<f64>; 2],
    decided: bool,
}

impl From<&Estimate> for Saving {
    fn from(estimate: &Estimate) -> Self {
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        Self { value: estimate.value, se: estimate.se, ci95: estimate.ci95.map(finite), decided: is_decided(estimate) }
    }
}

#[derive(Serialize)]
struct EffectReport<'a> {
    figure: &'a str,
    with: f64,
    without: f64,
}

#[derive(Serialize)]
struct ChangeReport<'a> {
    key: &'a str,
    from: Option<&'a str>,
    to: Option<&'a str>,
}

#[derive(Serialize)]
struct NotTried<'a> {
    lever: &'a str,
    why: &'a str,
}

/// The levers as JSON, pretty-printed, with a final line break.
///
/// # Errors
/// Never for a finished answer; the serialiser's signature has an error.
pub fn levers_json(ranking: &Ranking) -> Result<String, serde_json::Error> {
    let scenario = &ranking.base.scenario;
    let places = places_by_time(ranking);
    let lever = |(pulled, place): (&'_ Pulled, &Option<usize>)| -> (Option<Saving>, Option<Saving>, Option<Saving>, Option<usize>) {
        let saved = pulled.saved.as_ref().map(|saved| Saving::from(&saved.difference));
        let month = scenario.sessions_per_month.and(pulled.saved.as_ref());
        let month = month.map(|saved| Saving::from(&per_month(ranking, &saved.difference)));
        (saved, month, pulled.off_tail().map(Saving::from), *place)
    };
    let levers = ranking
        .pulled
        .iter()
        .zip(&places)
        .map(|(pulled, place)| {
            let (saved_usd, saved_usd_per_month, off_p99_s, rank_by_time) = lever((pulled, place));
            LeverReport {
                name: &pulled.name,
                on_already: pulled.is_on,
                loses_server: pulled.loses.as_ref().map(|(server, _)| server.as_str()),
                loses_tools: pulled.loses.as_ref().map_or(&[], |(_, tools)| tools.as_slice()),
                saved_usd,
                saved_usd_per_month,
                saved_usd_closed_form: pulled.saved_in_theory_usd,
                off_p99_s,
                rank_by_time,
                effects: pulled
                    .effects
                    .iter()
                    .map(|effect| EffectReport {
                        figure: &effect.name,
                        with: effect.values[0],
                        without: effect.values[1],
                    })
                    .collect(),
                changes: pulled
                    .changes
                    .iter()
                    .map(|change| ChangeReport {
                        key: &change.key,
                        from: change.from.as_deref(),
                        to: change.to.as_deref(),
                    })
                    .collect(),
            }
        })
        .collect();
    let report = LeversReport {
        head: Head::of("agent-sim.levers/1", scenario, ranking.base.summary.sessions),
        sessions_per_month: scenario.sessions_per_month,
        price_sheet: PriceSheet::of(scenario.price_sheet()),
        levers,
        not_tried: ranking.others.iter().map(|(lever, why)| NotTried { lever, why }).collect(),
        checks_pass: ranking.base.checks.all_pass(),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
