//! A grid of settings: one row a point.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::figures::legend;
use super::fleet::{unsettled_text, watched_for};
use super::format::{key_heading, number, percent};
use super::head::{Head, PriceSheet};
use super::plan::figure_shown;
use super::wording::{sessions_text, value};
use crate::simulate::{Sweep, SweepCell, SweepPoint};
use crate::stats::{Estimate, Figure, Reading, Statistic, Unit, is_decided};

/// A figure with its unit, where it has one.
pub(super) fn shown(statistic: Statistic, x: f64) -> String {
    match statistic.unit() {
        Some(Unit::Count) => number(x),
        Some(unit) => value(unit, x),
        None if statistic.is_share() => percent(x),
        None => number(x),
    }
}

pub(super) fn signed(statistic: Statistic, x: f64) -> String {
    if x > 0.0 { format!("+{}", shown(statistic, x)) } else { shown(statistic, x) }
}

fn text(figure: Figure, x: f64) -> String {
    match figure {
        Figure::Sessions(statistic) => shown(statistic, x),
        of_fleets => figure_shown(of_fleets, x),
    }
}

fn reading_cell(figure: Figure, reading: Option<Reading>) -> String {
    let Some(Reading { value, ci95: [low, high], too_few }) = reading else { return "–".to_owned() };
    if too_few {
        return format!("{} ?\ntoo few sessions", text(figure, value));
    }
    if high > low {
        format!("{}\n{} … {}", text(figure, value), text(figure, low), text(figure, high))
    } else if low.is_nan() {
        format!("{}\nno interval", text(figure, value))
    } else {
        text(figure, value)
    }
}

fn difference_cell(figure: Figure, difference: &Estimate) -> String {
    let signed = |x: f64| if x > 0.0 { format!("+{}", text(figure, x)) } else { text(figure, x) };
    let mark = if difference.se > 0.0 && !is_decided(difference) { " ?" } else { "" };
    let value = format!("{}{mark}", signed(difference.value));
    if difference.se > 0.0 {
        format!("{value}\n{} … {}", signed(difference.ci95[0]), signed(difference.ci95[1]))
    } else {
        value
    }
}

/// Whether differences to the first point are shown: of means, where there are some. Those of percentiles and shares of fleets
/// are in CSV and JSON alone.
fn has_difference(sweep: &Sweep, index: usize) -> bool {
    let Some((_, figure)) = sweep.figures.get(index) else { return false };
    let is_mean = match figure {
        Figure::Sessions(statistic) => matches!(statistic, Statistic::Mean(_) | Statistic::TurnMean(_)),
        Figure::InProgress | Figure::EndedPerHour | Figure::CostPerHour | Figure::WaitMean(_) => true,
        Figure::WaitQuantile(..) | Figure::Utilisation(_) | Figure::TurnedAway(_) => false,
    };
    is_mean && sweep.points.iter().any(|point| point.cells.get(index).is_some_and(|cell| cell.against_first.is_some()))
}

/// "9 points, the same 1,000 sessions".
fn about(sweep: &Sweep) -> String {
    let points = sweep.points.len();
    let points = format!("{points} point{}", if points == 1 { "" } else { "s" });
    match &sweep.scenario.model.fleet {
        Some(fleet) => format!(
            "{points} of {}, on the same {}draws",
            watched_for(fleet.replications, fleet.horizon_s, fleet.warm_up_s),
            if sweep.keys.iter().any(|key| key.starts_with("fleet.arrivals")) { "" } else { "arrivals and " }
        ),
        None => {
            let sessions = sweep.points.first().map_or(0, |first| first.sessions);
            format!("{points}, the same {}", sessions_text(&sweep.scenario, sessions))
        }
    }
}

/// How the table is read.
fn note(sweep: &Sweep) -> String {
    let is_fleet = sweep.scenario.model.fleet.is_some();
    let over = if is_fleet { " over replications" } else { "" };
    let mut text = format!("Under each figure its 95 % interval{over}");
    if (0..sweep.figures.len()).any(|index| has_difference(sweep, index)) {
        let how = if is_fleet { "taken replication by replication" } else { "those of the same sessions" };
        text += &format!("; differences to the first row are {how}");
    }
    let too_few =
        sweep.points.iter().flat_map(|point| &point.cells).any(|cell| cell.reading.is_some_and(|r| r.too_few));
    text += ". ?  undecided";
    if too_few {
        text += "; beside a percentile: too few sessions lie beyond it";
    }
    text + "."
}

/// What a reader of a fleet's figures has to know of its points.
fn strains(sweep: &Sweep) -> Vec<String> {
    let mut texts = Vec::new();
    let all = sweep.points.len();
    let worst = |of: fn(&SweepPoint) -> Option<&(String, f64)>| {
        let strained: Vec<(&SweepPoint, &(String, f64))> =
            sweep.points.iter().filter_map(|point| Some((point, of(point)?))).collect();
        let worst = strained.iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1)).copied();
        worst.map(|(point, (name, share))| (strained.len(), point.name(), name.clone(), percent(*share)))
    };
    if let Some((points, at, name, share)) = worst(|point| point.turned_away.as_ref()) {
        texts.push(format!(
            "At {points} of the {all} points calls are turned away, at {at} {share} of those of {name}: sessions that go on \
             without them are fast and cheap. `call_success` and `{name}.turned_away` say how many."
        ));
    }
    if let Some((points, at, name, share)) = worst(|point| point.used_up.as_ref()) {
        texts.push(format!(
            "At {points} of the {all} points a place is busy nearly all of the time, at {at} {name} {share}: so close to its \
             end a fleet settles slowly, and the figures may be those of one that still grows. A longer horizon tells."
        ));
    }
    if all > 1 && sweep.points.first().is_some_and(|first| first.unsettled.is_some()) {
        texts.push("The first point doesn't settle, so there are no differences to it.".to_owned());
    }
    texts
}

/// The grid as a table.
pub fn sweep_terminal(sweep: &Sweep, style: Style) -> String {
    let mut out = String::new();
    if sweep.points.is_empty() {
        return out;
    }
    let _ = writeln!(out, "{}", style.heading(&sweep.scenario.title));
    let about = format!("{} · {}, seed {}", sweep.scenario.file, about(sweep), sweep.scenario.run.seed);
    let _ = writeln!(out, "{}\n", style.faint(&about));
    let mut header: Vec<String> = sweep.keys.iter().map(|key| key_heading(key)).collect();
    for (index, (name, _)) in sweep.figures.iter().enumerate() {
        header.push(name.clone());
        if has_difference(sweep, index) {
            header.push("beyond the first".to_owned());
        }
    }
    let keys = sweep.keys.len();
    let mut grid = style.table([""; 0], 0..0);
    grid.set_header(&header);
    for column in keys..header.len() {
        if let Some(column) = grid.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    for point in &sweep.points {
        let mut row: Vec<String> = point.settings.iter().map(|(_, value)| value.trim_matches('"').to_owned()).collect();
        for (index, ((_, figure), cell)) in sweep.figures.iter().zip(&point.cells).enumerate() {
            row.push(reading_cell(*figure, cell.reading));
            if has_difference(sweep, index) {
                let difference = cell.against_first.as_ref();
                row.push(difference.map_or_else(String::new, |difference| difference_cell(*figure, difference)));
            }
        }
        grid.add_row(row);
    }
    let _ = writeln!(out, "{}", style.whole_words(grid));
    let _ = writeln!(out, "{}", style.faint(&note(sweep)));
    for text in legend(sweep.figures.iter().map(|(name, figure)| (name.clone(), figure))) {
        let _ = writeln!(out, "{}", style.faint(&text));
    }
    let answered = |point: &SweepPoint| point.answered.unwrap_or(1.0);
    let broken: Vec<&SweepPoint> = sweep.points.iter().filter(|point| answered(point) < 1.0).collect();
    if let Some(worst) = broken.iter().min_by(|a, b| answered(a).total_cmp(&answered(b))) {
        let text = format!(
            "At {} of the {} points not all sessions end with their answer, at {} {} of them. The figures are of all sessions.",
            broken.len(),
            sweep.points.len(),
            worst.name(),
            percent(answered(worst))
        );
        let _ = writeln!(out, "{}", style.warning(&text));
    }
    for text in strains(sweep) {
        let _ = writeln!(out, "{}", style.warning(&text));
    }
    for point in &sweep.points {
        if let Some(unsettled) = &point.unsettled {
            let _ = writeln!(out, "{}", style.bad(&format!("At {}: {}", point.name(), unsettled_text(unsettled))));
        }
    }
    if let Some(wrong) = sweep.points.iter().find(|point| point.checks_pass == Some(false)) {
        let text =
            format!("at {} a closed form DISAGREES with the simulation; `agent-sim check` shows which", wrong.name());
        let _ = writeln!(out, "{}", style.bad(&text));
    }
    out
}

#[derive(Serialize)]
struct Row<'a> {
    metric: &'a str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    /// To the first point: of means, paired by session; of every figure of a fleet, paired by replication.
    difference: Option<f64>,
    difference_low: Option<f64>,
    difference_high: Option<f64>,
    /// Whether too few sessions lie beyond the percentile.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    too_few_beyond: bool,
}

fn row<'a>(name: &'a str, cell: &SweepCell) -> Row<'a> {
    let SweepCell { reading, against_first, .. } = cell;
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    Row {
        metric: name,
        value: reading.map(|reading| reading.value),
        low: reading.and_then(|reading| finite(reading.ci95[0])),
        high: reading.and_then(|reading| finite(reading.ci95[1])),
        difference: against_first.map(|difference| difference.value),
        difference_low: against_first.and_then(|difference| finite(difference.ci95[0])),
        difference_high: against_first.and_then(|difference| finite(difference.ci95[1])),
        too_few_beyond: reading.is_some_and(|reading| reading.too_few),
    }
}

/// The grid as CSV: a line for each point and metric.
///
/// # Errors
/// Never for a finished sweep; the writer's signature has an error.
pub fn sweep_csv(sweep: &Sweep) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = sweep.keys.clone();
    let columns = [
        "metric",
        "value",
        "low",
        "high",
        "difference",
        "difference_low",
        "difference_high",
        "too_few_beyond",
        "unstable",
    ];
    header.extend(columns.map(str::to_owned));
    writer.write_record(&header)?;
    for point in &sweep.points {
        for ((name, _), cell) in sweep.figures.iter().zip(&point.cells) {
            let row = row(name, cell);
            let mut record: Vec<String> =
                point.settings.iter().map(|(_, value)| value.trim_matches('"').to_owned()).collect();
            record.push(row.metric.to_owned());
            let numbers = [row.value, row.low, row.high, row.difference, row.difference_low, row.difference_high];
            record.extend(numbers.map(|x| x.map_or_else(String::new, |x| x.to_string())));
            record.push(row.too_few_beyond.to_string());
            record.push(point.unsettled.as_ref().map_or_else(String::new, unsettled_text));
            writer.write_record(&record)?;
        }
    }
    let bytes = writer.into_inner().map_err(|e| csv::Error::from(std::io::Error::other(e.to_string())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Serialize)]
struct SweepReport<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    price_sheet: PriceSheet,
    points: Vec<PointReport<'a>>,
}

#[derive(Serialize)]
struct PointReport<'a> {
    settings: std::collections::BTreeMap<&'a str, &'a str>,
    metrics: Vec<Row<'a>>,
    /// Of a fleet, sessions that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks_pass: Option<bool>,
    /// Of a fleet that doesn't settle, why.
    #[serde(skip_serializing_if = "Option::is_none")]
    unstable: Option<String>,
}

/// The grid as JSON, pretty-printed, with a final line break.
///
/// # Errors
/// Never for a finished sweep; the serialiser's signature has an error.
pub fn sweep_json(sweep: &Sweep) -> Result<String, serde_json::Error> {
    let point = |point: &'_ SweepPoint| -> Vec<(String, String)> { point.settings.clone() };
    let settings: Vec<Vec<(String, String)>> = sweep.points.iter().map(point).collect();
    let points = sweep
        .points
        .iter()
        .zip(&settings)
        .map(|(point, settings)| PointReport {
            settings: settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
            metrics: sweep.figures.iter().zip(&point.cells).map(|((name, _), cell)| row(name, cell)).collect(),
            sessions: sweep.scenario.model.fleet.is_some().then_some(point.sessions),
            checks_pass: point.checks_pass,
            unstable: point.unsettled.as_ref().map(unsettled_text),
        })
        .collect();
    let report = SweepReport {
        head: Head::of(
            "agent-sim.sweep/1",
            &sweep.scenario,
            sweep.points.iter().map(|point| point.sessions).find(|sessions| *sessions > 0).unwrap_or(0),
        ),
        price_sheet: PriceSheet::of(sweep.scenario.price_sheet()),
        points,
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
