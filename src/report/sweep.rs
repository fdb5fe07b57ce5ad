//! A grid of settings: one row a point.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::fleet::{growth_of, watched_for};
use super::format::{number, percent};
use super::head::{Head, PriceSheet};
use super::plan::figure_shown;
use super::wording::{sessions_text, value};
use crate::simulate::{Sweep, SweepCell, SweepPoint, Unsettled};
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

/// Differences of percentiles and shares are in CSV and JSON.
fn has_difference(figure: Figure) -> bool {
    matches!(figure, Figure::Sessions(Statistic::Mean(_)) | Figure::CostPerHour)
}

/// "9 points, the same 1,000 sessions".
fn about(sweep: &Sweep) -> String {
    let points = sweep.points.len();
    match &sweep.scenario.model.fleet {
        Some(fleet) => format!(
            "{points} points of {}, on the same arrivals and draws",
            watched_for(fleet.replications, fleet.horizon_s, fleet.warm_up_s)
        ),
        None => {
            let sessions = sweep.points.first().map_or(0, |first| first.sessions);
            format!("{points} points, the same {}", sessions_text(&sweep.scenario, sessions))
        }
    }
}

fn why(unsettled: &Unsettled) -> String {
    match unsettled {
        Unsettled::Overloaded(why) => why.clone(),
        Unsettled::Grows(growth, full) => growth_of(growth, full.as_deref()),
    }
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
    let mut header: Vec<String> = sweep.keys.clone();
    for (name, figure) in &sweep.figures {
        header.push(name.clone());
        if has_difference(*figure) {
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
        for ((_, figure), cell) in sweep.figures.iter().zip(&point.cells) {
            row.push(reading_cell(*figure, cell.reading));
            if has_difference(*figure) {
                let difference = cell.against_first.as_ref();
                row.push(difference.map_or_else(String::new, |difference| difference_cell(*figure, difference)));
            }
        }
        grid.add_row(row);
    }
    let _ = writeln!(out, "{}", style.whole_words(grid));
    let note = if sweep.scenario.model.fleet.is_some() {
        "Under each figure its 95 % interval over replications; differences are taken replication by replication. ?  undecided."
    } else {
        "Under each figure its 95 % interval; differences are those of the same sessions. ?  undecided."
    };
    let _ = writeln!(out, "{}", style.faint(note));
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
    for point in &sweep.points {
        if let Some(unsettled) = &point.unsettled {
            let _ = writeln!(out, "{}", style.bad(&format!("At {}: {}", point.name(), why(unsettled))));
        }
    }
    if let Some(wrong) = sweep.points.iter().find(|point| !point.checks_pass) {
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
    /// Mean difference to the first point, of the same sessions.
    difference: Option<f64>,
    difference_low: Option<f64>,
    difference_high: Option<f64>,
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
    }
}

/// The grid as CSV: a line for each point and metric.
///
/// # Errors
/// Never for a finished sweep; the writer's signature has an error.
pub fn sweep_csv(sweep: &Sweep) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = sweep.keys.clone();
    let columns = ["metric", "value", "low", "high", "difference", "difference_low", "difference_high"];
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
    checks_pass: bool,
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
            checks_pass: point.checks_pass,
            unstable: point.unsettled.as_ref().map(why),
        })
        .collect();
    let report = SweepReport {
        head: Head::of("agent-sim.sweep/1", &sweep.scenario, sweep.points.first().map_or(0, |point| point.sessions)),
        price_sheet: PriceSheet::of(sweep.scenario.price_sheet()),
        points,
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
