//! Several fleets side by side.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::fleet::{unanswered_text, unsettled_text, watched};
use super::head::{Head, PriceSheet};
use super::markdown::escape;
use super::plan::figure_shown;
use crate::simulate::{FleetComparison, FleetRow, FleetWay};
use crate::stats::{Estimate, Reading, is_decided};

/// Why a way has no figures.
pub(super) fn unstable(way: &FleetWay) -> Option<String> {
    way.unsettled().map(|unsettled| unsettled_text(&unsettled))
}

fn signed(row: &FleetRow, x: f64) -> String {
    let text = figure_shown(row.figure, x);
    if x > 0.0 { format!("+{text}") } else { text }
}

fn reading_text(row: &FleetRow, reading: &Reading) -> String {
    let mark = if reading.too_few { " ?" } else { "" };
    format!("{}{mark}", figure_shown(row.figure, reading.value))
}

fn difference_text(row: &FleetRow, difference: &Estimate) -> String {
    let mark = if is_decided(difference) || difference.se <= 0.0 { "" } else { " ?" };
    let [low, high] = difference.ci95;
    let interval =
        if high > low { format!(" ({} … {})", signed(row, low), signed(row, high)) } else { String::new() };
    format!("{}{mark}{interval}", signed(row, difference.value))
}

fn first_answer(comparison: &FleetComparison) -> Option<&crate::simulate::Answer> {
    comparison.ways.iter().find_map(|way| way.answer.as_ref().ok())
}

/// One line for each figure and way.
pub(super) fn lines(comparison: &FleetComparison) -> Vec<[String; 4]> {
    let mut lines = Vec::new();
    let says_something = |row: &&FleetRow| row.readings.iter().flatten().any(|reading| reading.value.abs() > 0.0);
    for row in comparison.rows.iter().filter(says_something) {
        for (index, way) in comparison.ways.iter().enumerate() {
            let reading = row.readings.get(index).and_then(Option::as_ref);
            let difference = row.differences.get(index).and_then(Option::as_ref);
            lines.push([
                if index == 0 { row.name.clone() } else { String::new() },
                way.name.clone(),
                reading.map_or_else(|| "–".to_owned(), |reading| reading_text(row, reading)),
                difference.map_or_else(String::new, |difference| difference_text(row, difference)),
            ]);
        }
    }
    lines
}

/// For a person.
pub fn fleets_terminal(comparison: &FleetComparison, style: Style) -> String {
    let mut out = String::new();
    if let Some(answer) = first_answer(comparison) {
        let _ = writeln!(out, "{}", style.heading(&answer.scenario.title));
        if let Some(fleet) = &answer.fleet {
            let text = format!(
                "{} · {}, on the same arrivals and draws, seed {}",
                answer.scenario.file,
                watched(&fleet.summary),
                answer.scenario.run.seed
            );
            let _ = writeln!(out, "{}\n", style.faint(&text));
        }
    }
    let base = comparison.ways.first().map_or("", |way| way.name.as_str());
    let lines = lines(comparison);
    if !lines.is_empty() {
        let mut rows = style.table(["", "", "", ""], 2..3);
        rows.set_header(["", "way", "", &format!("beyond {base}")]);
        for line in lines {
            rows.add_row(line);
        }
        let _ = writeln!(out, "{}", style.whole_words(rows));
        let note = "Differences with their 95 % intervals, replication by replication; those of shares are in percentage points. ?  zero lies within: undecided; beside a percentile: too few sessions beyond it.";
        let _ = writeln!(out, "{}", style.faint(note));
    }
    for way in &comparison.ways {
        let text = way.answer.as_ref().ok().and_then(unanswered_text);
        if let Some(text) = text {
            let _ = writeln!(out, "{}", style.warning(&format!("{}: {text}", way.name)));
        }
    }
    for way in &comparison.ways {
        if let Some(why) = unstable(way) {
            let _ = writeln!(out, "{}", style.bad(&format!("{}: {why}", way.name)));
        }
    }
    out
}

/// For a pull request.
pub fn fleets_markdown(comparison: &FleetComparison) -> String {
    let mut out = String::new();
    if let Some(answer) = first_answer(comparison) {
        let _ = writeln!(out, "### {}\n", escape(&answer.scenario.title));
    }
    for way in &comparison.ways {
        if let Some(why) = unstable(way) {
            let _ = writeln!(out, "**{}: {why}**\n", way.name);
        }
    }
    let base = comparison.ways.first().map_or("", |way| way.name.as_str());
    let _ = writeln!(out, "| | way | | beyond {base} |\n|---|---|---:|---:|");
    for line in lines(comparison) {
        let _ = writeln!(out, "| {} |", line.map(|cell| escape(&cell)).join(" | "));
    }
    let _ = writeln!(out, "\n<sub>Differences replication by replication, with 95 % intervals; ? is undecided.</sub>");
    out
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    head: Option<Head<'a>>,
    ways: Vec<WayReport<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outages: Vec<super::curves::OutageReport>,
    price_sheet: Option<PriceSheet>,
}

#[derive(Serialize)]
struct WayReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    unstable: Option<String>,
    figures: Vec<FigureReport<'a>>,
}

#[derive(Serialize)]
struct FigureReport<'a> {
    name: &'a str,
    value: f64,
    ci95: [f64; 2],
    too_few_beyond: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference_ci95: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided: Option<bool>,
}

/// JSON, with a final line break.
///
/// # Errors
/// Never for a finished comparison; the serialiser's signature has an error.
pub fn fleets_json(comparison: &FleetComparison) -> Result<String, serde_json::Error> {
    let first = first_answer(comparison);
    let way = |(index, way): (usize, &'_ FleetWay)| {
        let figure = |row: &'_ FleetRow| {
            let reading = row.readings.get(index).copied().flatten()?;
            let difference = row.differences.get(index).copied().flatten();
            Some((row.name.clone(), reading, difference))
        };
        (way.name.clone(), unstable(way), comparison.rows.iter().filter_map(figure).collect::<Vec<_>>())
    };
    let ways: Vec<_> = comparison.ways.iter().enumerate().map(way).collect();
    let report = Report {
        head: first.map(|answer| Head::of("agent-sim.fleets/1", &answer.scenario, answer.summary.sessions)),
        ways: ways
            .iter()
            .map(|(name, unstable, figures)| WayReport {
                name,
                unstable: unstable.clone(),
                figures: figures
                    .iter()
                    .map(|(name, reading, difference)| FigureReport {
                        name,
                        value: reading.value,
                        ci95: reading.ci95,
                        too_few_beyond: reading.too_few,
                        difference: difference.map(|d| d.value),
                        difference_ci95: difference.map(|d| d.ci95),
                        decided: difference.map(|d| is_decided(&d) || d.se <= 0.0),
                    })
                    .collect(),
            })
            .collect(),
        outages: first
            .and_then(|answer| answer.scenario.model.fleet.as_ref())
            .map_or_else(Vec::new, super::curves::outages),
        price_sheet: first.map(|answer| PriceSheet::of(answer.scenario.price_sheet())),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
