//! `agent-sim sweep`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{Folder, in_width, print};
use super::progress::Bar;
use super::{Which, tell_notes};
use crate::Error;
use crate::chart::{self, HeatMap, SweepLine, SweepLines, TradeLine, TradeOff};
use crate::report;
use crate::scenario::{Scenario, split_values};
use crate::simulate::{Sweep, sweep};
use crate::stats::{Figure, Statistic, StatisticError, Unit};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GridFormat {
    /// A table for a person
    Terminal,
    /// JSON, and nothing else on standard output
    Json,
    /// A line for each point and metric
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GridChart {
    /// A cell for each pair of values
    Heat,
    /// The first key from left to right, a line for each value of the second; closed forms dashed
    Lines,
    /// The first two figures against each other, a point for each value of the first key
    Tradeoff,
}

/// What stands for the file's strategies among the keys.
const STRATEGY: &str = "strategy";

/// How a fleet is watched, which has to be the same at all points.
const WATCH: [&str; 3] = ["fleet.horizon", "fleet.warm_up", "fleet.replications"];

/// What a trade-off needs.
const TWO_FIGURES: &str = "a trade-off is drawn of two figures: --metric latency_s.p99 --metric duplicates_per_call";

/// The most points of a grid.
const MOST_POINTS: usize = 1_000;

/// Play a scenario over a grid of settings, on the same sessions
///
/// Each point meets the same turns, outputs, latencies and failures, and fleets the same arrivals, so that what differs between
/// two of them is what was set. Without --over the file's [sweep] is taken.
#[derive(Debug, Args)]
pub(super) struct SweepCommand {
    #[command(flatten)]
    which: Which,
    /// A key and its values, as often as you like: --over session.turns=10,50,100 --over cache.lifetime=off,5m,1h;
    /// `strategy` stands for the file's strategies: --over strategy=base,uncached
    #[arg(long, value_name = "KEY=VALUES")]
    over: Vec<String>,
    /// A figure to show, as often as you like (`cost_usd.mean`, `latency_s.p50`, `latency_s.p99`); of a fleet also `answered`,
    /// `in_progress`, `cost_per_hour_usd`, `search.utilisation`, `search.wait_s.p99` …
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = GridFormat::Terminal)]
    format: GridFormat,
    /// How two keys are drawn
    #[arg(long, value_enum, default_value_t = GridChart::Heat)]
    chart: GridChart,
    /// Write sweep.csv, sweep.json and a chart for each figure (SVG and PNG) into this folder too
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl SweepCommand {
    pub fn run(self) -> Result<ExitCode, Error> {
        // with --over the file need not be right without what is set
        let axes: Vec<(String, Vec<String>)> = if self.over.is_empty() {
            self.which.load(None)?.sweep
        } else {
            self.over.iter().map(|over| read_axis(over)).collect::<Result<_, Error>>()?
        };
        if axes.is_empty() {
            return Err(Error::NothingToSweep(self.which.file.display().to_string()));
        }
        for (index, (key, values)) in axes.iter().enumerate() {
            if axes.iter().take(index).any(|(other, _)| other == key) {
                return Err(Error::Sweep(format!("`{key}` is set twice; give all of its values at once")));
            }
            if let Some(twice) =
                values.iter().enumerate().find(|(at, value)| values.iter().take(*at).any(|v| v == *value))
            {
                return Err(Error::Sweep(format!("`{key}` has the value {} twice", twice.1)));
            }
        }
        let points = axes.iter().map(|(_, values)| values.len()).product::<usize>();
        if points > MOST_POINTS {
            return Err(Error::Sweep(format!("the grid has {points} points; {MOST_POINTS} is the most")));
        }
        let is_fixed = |key: &str| key.starts_with("run.") || WATCH.contains(&key);
        if let Some((key, _)) = axes.iter().find(|(key, _)| is_fixed(key)) {
            return Err(Error::Sweep(format!(
                "a sweep can't change `{key}`: its points are compared on the same sessions; --set {key}=… sets it for all of them"
            )));
        }
        let mut scenarios = Vec::new();
        for settings in grid(&axes) {
            // `strategy` is no key of the file: its values are laid over it
            let (strategies, keys): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| key == STRATEGY);
            let strategy = strategies.first().map(|(_, name)| name.trim_matches('"').to_owned());
            let sets: Vec<(&str, String)> =
                keys.iter().map(|(key, value)| ("--over", format!("{key}={value}"))).collect();
            let scenario = self.which.load_with(&self.which.file, strategy.as_deref(), &sets)?;
            scenarios.push((settings, scenario));
        }
        let usual = ["cost_usd.mean", "latency_s.p50", "latency_s.p99"];
        let names = match (self.metric.as_slice(), scenarios.first()) {
            ([], Some((_, first))) if first.model.fleet.is_some() => {
                usual.into_iter().filter(|name| figure(name, &scenarios).is_ok()).collect()
            }
            ([], Some((_, first))) if first.model.herd.is_some() => vec!["herd_calls.mean", "herd_time_s.mean"],
            ([], _) => usual.to_vec(),
            (names, _) => names.iter().map(String::as_str).collect(),
        };
        let mut figures = Vec::new();
        for name in names {
            if figures.iter().any(|(known, _)| known == name) {
                continue;
            }
            let figure = figure(name, &scenarios).map_err(|error| Error::Sweep(error.to_string()))?;
            figures.push((name.to_owned(), figure));
        }
        if self.chart == GridChart::Tradeoff && self.output.is_some() && figures.len() < 2 {
            return Err(Error::Sweep(TWO_FIGURES.to_owned()));
        }
        let folder = self.output.as_deref().map(Folder::open).transpose()?;
        tell_notes(scenarios.iter().map(|(settings, scenario)| {
            let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
            (settings.join(", "), scenario)
        }));
        let bar = Bar::new();
        let swept = sweep(scenarios, figures, self.which.options(), &bar)?;
        drop(bar);
        if let Some(folder) = folder {
            write_all(&swept, self.chart, folder)?;
        }
        print(&match self.format {
            GridFormat::Terminal => in_width(|style| report::sweep_terminal(&swept, style)),
            GridFormat::Json => report::sweep_json(&swept).map_err(|e| Error::Output(e.into()))?,
            GridFormat::Csv => csv_text(&swept)?,
        })?;
        let settles = swept.points.iter().any(|point| point.unsettled.is_none());
        Ok(if settles { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The figure of this name; of fleets one that applies at some point.
fn figure(name: &str, scenarios: &[(Vec<(String, String)>, Scenario)]) -> Result<Figure, StatisticError> {
    let mut fleets = scenarios.iter().map(|(_, scenario)| scenario).filter(|scenario| scenario.model.fleet.is_some());
    let parse = |scenario: &Scenario| Figure::parse(name, &scenario.model, &scenario.places);
    match fleets.next() {
        None => Statistic::parse_alone(name).map(Figure::Sessions),
        Some(first) => parse(first).or_else(|error| fleets.find_map(|other| parse(other).ok()).ok_or(error)),
    }
}

fn csv_text(swept: &Sweep) -> Result<String, Error> {
    report::sweep_csv(swept).map_err(|e| Error::Output(std::io::Error::other(e)))
}

fn read_axis(over: &str) -> Result<(String, Vec<String>), Error> {
    let wrong = || Error::Sweep(format!("`{over}` must be a key and its values, as in --over session.turns=10,50,100"));
    let (key, values) = over.split_once('=').ok_or_else(wrong)?;
    let values = split_values(values);
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok((key.trim().to_owned(), values))
}

/// All combinations, the last key changing first.
fn grid(axes: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    axes.iter().fold(vec![Vec::new()], |points, (key, values)| {
        let longer = |point: &Vec<(String, String)>| {
            let point = point.clone();
            values.iter().map(move |value| {
                let mut point = point.clone();
                point.push((key.clone(), value.clone()));
                point
            })
        };
        points.iter().flat_map(longer).collect()
    })
}

fn write_all(swept: &Sweep, chart: GridChart, mut folder: Folder) -> Result<(), Error> {
    folder.write("sweep.csv", &csv_text(swept)?)?;
    folder.write("sweep.json", &report::sweep_json(swept).map_err(|e| Error::Output(e.into()))?)?;
    if chart == GridChart::Tradeoff {
        // where no point has both figures there is nothing to draw
        if let Some(drawn) = trade_off(swept) {
            let written = chart::write(&drawn, folder.path(), "sweep-tradeoff")?;
            folder.add(written);
        }
        folder.close(&[]);
        return Ok(());
    }
    for (index, (name, figure)) in swept.figures.iter().enumerate() {
        let stem = format!("sweep-{}", name.replace(|c: char| !c.is_alphanumeric() && !"._-".contains(c), "_"));
        if let Some(map) = heat_map(swept, index, name, *figure).filter(|_| chart == GridChart::Heat) {
            let written = chart::write(&map, folder.path(), &stem)?;
            folder.add(written);
        } else if let Some(lines) = lines(swept, index, name, *figure) {
            let written = chart::write(&lines, folder.path(), &stem)?;
            folder.add(written);
        }
    }
    folder.close(&[]);
    Ok(())
}

/// What a chart that leaves out points says of them.
fn left_out(swept: &Sweep) -> String {
    match swept.points.iter().filter(|point| point.unsettled.is_some()).count() {
        0 => String::new(),
        1 => "; one point doesn't settle".to_owned(),
        n => format!("; {n} points don't settle"),
    }
}

/// How a figure is written.
pub(super) fn shown(figure: Figure) -> fn(f64) -> String {
    match figure.unit() {
        Some(Unit::Usd) => report::money,
        Some(Unit::Seconds) => report::seconds,
        _ if figure.is_share() => report::percent,
        _ => report::count,
    }
}

/// A cell for each pair of values, where two keys are set; else nothing.
fn heat_map(swept: &Sweep, index: usize, name: &str, figure: Figure) -> Option<HeatMap> {
    let [x, y] = swept.keys.as_slice() else { return None };
    let values = |which: usize| {
        let mut values: Vec<String> = Vec::new();
        for (_, value) in swept.points.iter().filter_map(|point| point.settings.get(which)) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        values
    };
    let (across, up) = (values(0), values(1));
    let mut cells = vec![vec![Err("–"); across.len()]; up.len()];
    for point in &swept.points {
        let place = |which: usize, among: &[String]| among.iter().position(|value| *value == point.settings[which].1);
        let (column, row) = (place(0, &across)?, place(1, &up)?);
        cells[row][column] = match point.cells.get(index).and_then(|cell| cell.reading) {
            Some(reading) => Ok((reading.value, reading.too_few)),
            None if point.unsettled.is_some() => Err("doesn't settle"),
            None => Err("–"),
        };
    }
    Some(HeatMap {
        title: swept.scenario.title.clone(),
        subtitle: format!("{name} by {x} and {y}; sweep.csv has the intervals{}", left_out(swept)),
        x: (x.clone(), across),
        y: (y.clone(), up),
        cells,
        shown: shown(figure),
    })
}

/// The first key from left to right, a line for each combination of the others.
fn lines(swept: &Sweep, index: usize, name: &str, figure: Figure) -> Option<SweepLines> {
    let key = swept.keys.first()?;
    let number = |text: &str| text.replace('_', "").parse::<f64>().ok();
    let mut places: Vec<String> = Vec::new();
    for point in &swept.points {
        let value = &point.settings.first()?.1;
        if !places.contains(value) {
            places.push(value.clone());
        }
    }
    let numbers: Option<Vec<f64>> = places.iter().map(|place| number(place)).collect();
    let mut lines: Vec<SweepLine> = Vec::new();
    let mut theory: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for point in &swept.points {
        // a figure that a point hasn't is a gap
        let cell = point.cells.get(index).copied().unwrap_or_default();
        let Some(reading) = cell.reading else { continue };
        let ((_, value), others) = point.settings.split_first()?;
        let place = places.iter().position(|place| place == value)?;
        let x = numbers.as_ref().and_then(|numbers| numbers.get(place).copied()).unwrap_or(place as f64);
        let label = match others {
            [] => name.to_owned(),
            others => others
                .iter()
                .map(|(key, value)| format!("{key} = {}", value.trim_matches('"')))
                .collect::<Vec<_>>()
                .join(", "),
        };
        if let Some(expected) = cell.expected {
            match theory.iter_mut().find(|(own, _)| *own == label) {
                Some((_, points)) => points.push((x, expected)),
                None => theory.push((label.clone(), vec![(x, expected)])),
            }
        }
        let [low, high] = if reading.ci95[0].is_nan() { [reading.value; 2] } else { reading.ci95 };
        let entry = (x, reading.value, low, high);
        match lines.iter_mut().find(|line| line.name == label) {
            Some(line) => line.points.push(entry),
            None => lines.push(SweepLine { name: label, points: vec![entry] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    for (_, points) in &mut theory {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    (!lines.is_empty()).then(|| SweepLines {
        title: swept.scenario.title.clone(),
        subtitle: format!("{name} against {key}, with its 95 % interval{}", left_out(swept)),
        x_name: key.clone(),
        places: numbers.is_none().then_some(places),
        lines,
        shown: shown(figure),
        theory: theory.into_iter().map(|(_, points)| points).collect(),
        shaded: None,
    })
}

/// The first two figures against each other, a line for each combination of the keys behind the first.
fn trade_off(swept: &Sweep) -> Option<TradeOff> {
    let [(x_name, x), (y_name, y), ..] = swept.figures.as_slice() else { return None };
    let key = swept.keys.first()?;
    let mut lines: Vec<TradeLine> = Vec::new();
    for point in &swept.points {
        let ((_, value), others) = point.settings.split_first()?;
        let [Some(across), Some(up)] = [0, 1].map(|index| point.cells.get(index).and_then(|cell| cell.reading)) else {
            continue;
        };
        let name: Vec<String> =
            others.iter().map(|(key, value)| format!("{key} = {}", value.trim_matches('"'))).collect();
        let (name, entry) = (name.join(", "), (value.trim_matches('"').to_owned(), across.value, up.value));
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(entry),
            None => lines.push(TradeLine { name, points: vec![entry] }),
        }
    }
    (!lines.is_empty()).then(|| TradeOff {
        title: swept.scenario.title.clone(),
        subtitle: format!("{y_name} against {x_name}, by {key}{}", left_out(swept)),
        names: [x_name.clone(), y_name.clone()],
        shown: [shown(*x), shown(*y)],
        lines,
    })
}
