//! What can be asked of a scenario, by name.

use std::fmt::Write;

use super::Style;
use crate::scenario::Scenario;
use crate::stats::{Figure, Metric, QUANTILES, Rate, Statistic, TurnMetric, quantile_name};

/// A name, and what it means.
type Row = (String, &'static str);

/// ".mean, .p50, .p90, .p95, .p99 or .p999"
fn endings() -> String {
    let mut all: Vec<String> = QUANTILES.iter().map(|p| format!(".{}", quantile_name(*p))).collect();
    let last = all.pop().unwrap_or_default();
    format!(".mean, {} or {last}", all.join(", "))
}

/// What the figures of a table mean: the name of a number, and its sentence.
pub(super) fn legend<'a>(figures: impl Iterator<Item = (String, &'a Figure)>) -> Vec<String> {
    let mut rows: Vec<(String, &'static str)> = Vec::new();
    for (name, figure) in figures {
        let number = match figure {
            Figure::Sessions(Statistic::Rate(_))
            | Figure::InProgress
            | Figure::EndedPerHour
            | Figure::CostPerHour
            | Figure::Utilisation(_)
            | Figure::TurnedAway(_) => name.as_str(),
            Figure::Sessions(_) | Figure::WaitMean(_) | Figure::WaitQuantile(..) => {
                name.rsplit_once('.').map_or(name.as_str(), |(number, _)| number)
            }
        };
        let about = figure.about();
        if !about.is_empty() && rows.iter().all(|(known, _)| known != number) {
            rows.push((number.to_owned(), about));
        }
    }
    let width = rows.iter().map(|(number, _)| number.len()).max().unwrap_or(0);
    rows.into_iter().map(|(number, about)| format!("{number:width$}  {about}")).collect()
}

/// Figures that only a fleet has: of the whole, and of its places.
fn of_fleet(scenario: &Scenario) -> [Vec<Row>; 2] {
    let model = &scenario.model;
    let (mut whole, mut places) = (Vec::new(), Vec::new());
    if model.fleet.is_none() {
        return [whole, places];
    }
    for figure in Figure::all(model) {
        let name = figure.name(&scenario.places);
        match figure {
            Figure::Sessions(_) | Figure::WaitQuantile(..) => {}
            Figure::InProgress | Figure::EndedPerHour | Figure::CostPerHour => whole.push((name, figure.about())),
            Figure::WaitMean(_) => places.push((name.trim_end_matches(".mean").to_owned(), figure.about())),
            Figure::Utilisation(_) | Figure::TurnedAway(_) => places.push((name, figure.about())),
        }
    }
    [whole, places]
}

/// The names that `--metric`, `--fail-if`, `--where`, `--for` and `[thresholds]` take in this scenario, and what they mean.
pub fn figures_terminal(scenario: &Scenario, style: Style) -> String {
    let model = &scenario.model;
    let metrics = Metric::ALL.into_iter().filter(|metric| Statistic::Mean(*metric).applies(model));
    let turns = TurnMetric::ALL.into_iter().filter(|metric| Statistic::TurnMean(*metric).applies(model));
    let rates = Rate::ALL.iter().filter(|rate| Statistic::Rate(**rate).applies(model));
    let [fleet, places] = of_fleet(scenario);
    let groups: [(&str, bool, Vec<Row>); 5] = [
        (
            if model.herd.is_some() { "A repeat of the herd" } else { "A session" },
            true,
            metrics.map(|metric| (metric.quantity().name().to_owned(), metric.about())).collect(),
        ),
        ("A turn, a message", true, turns.map(|metric| (metric.name().to_owned(), metric.about())).collect()),
        ("Rates", false, rates.filter_map(|rate| Some((rate.name()?.to_owned(), rate.about()))).collect()),
        ("The fleet", false, fleet),
        ("Its places", false, places),
    ];
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.heading(&scenario.title));
    let about = format!("{} · what can be asked for by name", scenario.file);
    let _ = writeln!(out, "{}", style.faint(&about));
    for (title, has_endings, rows) in groups.into_iter().filter(|(.., rows)| !rows.is_empty()) {
        let endings = if has_endings { format!("with {}", endings()) } else { String::new() };
        let mut table = style.table([title, endings.as_str()], 0..0);
        for (name, about) in rows {
            let waits = name.ends_with(".wait_s");
            let about = if waits { format!("{about}; with .mean, .p50 …") } else { about.to_owned() };
            table.add_row([name, about]);
        }
        let _ = writeln!(out, "\n{}", style.whole_words(table));
    }
    out
}
