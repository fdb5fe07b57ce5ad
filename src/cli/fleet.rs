//! What `run` and `compare` do with a fleet: its charts, and several fleets side by side.

use std::path::Path;
use std::process::ExitCode;

use super::output::{Folder, in_width, options, print};
use super::progress::Bar;
use super::run::Format;
use super::{Which, tell_notes, threshold_code};
use crate::Error;
use crate::report;
use crate::scenario::Scenario;
use crate::simulate::compare_fleets;
use crate::stats::Figure;

/// The figures that are compared where none is asked for.
fn usual(scenarios: &[Scenario]) -> Vec<Figure> {
    const NAMES: [&str; 17] = [
        "cost_usd.mean",
        "cost_per_hour_usd",
        "cost_per_answer_usd",
        "latency_s.p50",
        "latency_s.p99",
        "message_latency_s.p99",
        "turn_latency_s.p99",
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
        |name: &str| scenarios.iter().find_map(|scenario| Figure::parse(name, &scenario.model, &scenario.places).ok());
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
    pub csv: bool,
}

/// Plays several fleets and shows them side by side.
pub(super) fn compare(which: &Which, scenarios: Vec<Scenario>, held: &Held<'_>) -> Result<ExitCode, Error> {
    let Some(base) = scenarios.first() else { return Ok(ExitCode::SUCCESS) };
    let mut figures = Vec::new();
    for name in held.metrics {
        let full = if name.contains('.') || Figure::parse(name, &base.model, &base.places).is_ok() {
            name.clone()
        } else {
            format!("{name}.mean")
        };
        let figure = Figure::parse(&full, &base.model, &base.places).map_err(|error| Error::Plan(error.to_string()))?;
        figures.push(figure);
    }
    if figures.is_empty() {
        figures = usual(&scenarios);
    }
    let several = scenarios.iter().any(|scenario| scenario.file != base.file);
    let named =
        |scenario: Scenario| (if several { scenario.file.clone() } else { scenario.strategy.clone() }, scenario);
    let folder = held.output.map(Folder::open).transpose()?;
    let tables = folder.as_ref().map(|folder| folder.tables("compare", &scenarios, held.csv)).transpose()?;
    tell_notes(scenarios.iter().map(|scenario| (scenario.strategy.clone(), scenario)));
    let bar = Bar::new();
    let comparison =
        compare_fleets(scenarios.into_iter().map(named).collect(), &figures, options(which, tables.as_ref()), &bar)?;
    drop(bar);
    if let Some(mut folder) = folder {
        folder.write("compare.json", &report::fleets_json(&comparison).map_err(|e| Error::Output(e.into()))?)?;
        folder.write("compare.md", &report::fleets_markdown(&comparison))?;
        folder.finish(tables, false, &|figures| report::fleets_html(&comparison, figures))?;
    }
    print(&match held.format {
        Format::Markdown => report::fleets_markdown(&comparison),
        Format::Json => report::fleets_json(&comparison).map_err(|e| Error::Output(e.into()))?,
        Format::Terminal => in_width(|style| report::fleets_terminal(&comparison, style)),
    })?;
    if comparison.ways.iter().all(|way| way.settled().is_none()) {
        return Ok(ExitCode::FAILURE);
    }
    let answers = comparison.ways.iter().filter_map(|way| Some((&way.name, way.answer.as_ref().ok()?)));
    let not_kept = answers.flat_map(|(name, answer)| {
        report::not_kept(answer, held.strict).into_iter().map(move |text| format!("{name}: {text}"))
    });
    Ok(threshold_code(not_kept))
}
