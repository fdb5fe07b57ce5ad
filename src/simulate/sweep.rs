//! A grid of settings on the same sessions.

use std::sync::Arc;

use super::compare::{pair_with, paired};
use super::{Answer, Options, Progress, play};
use crate::Error;
use crate::engine;
use crate::price::Sheet;
use crate::scenario::Scenario;
use crate::stats::{Metric, Paired, Statistic, Summary};

/// A grid of settings, played on the same sessions.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The scenario's title.
    pub title: String,
    /// Its file.
    pub file: String,
    /// The seed of every point.
    pub seed: u64,
    /// The price sheet of every point.
    pub price_sheet: Arc<Sheet>,
    /// The keys that are set.
    pub keys: Vec<String>,
    /// What is shown of every point: name and statistic.
    pub statistics: Vec<(String, Statistic)>,
    /// The points, the last key changing first.
    pub points: Vec<SweepPoint>,
}

/// One point of a grid.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// Key and value, as written.
    pub settings: Vec<(String, String)>,
    /// Its figures.
    pub summary: Summary,
    /// What its sessions are beyond those of the first point, for the metrics whose mean is shown.
    pub against_first: Vec<(Metric, Paired)>,
    /// Whether every closed form that applies agrees.
    pub checks_pass: bool,
}

impl SweepPoint {
    /// `session.turns=10, cache.lifetime=5m`.
    pub fn name(&self) -> String {
        self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    }
}

/// Plays the points of a grid, each on the same sessions. With `precision` the first decides how many.
///
/// # Errors
/// Where the points don't share seed and sessions, are too long for every session's values to be kept, or the threads
/// can't be had.
pub fn sweep(
    points: Vec<(Vec<(String, String)>, Scenario)>,
    statistics: Vec<(String, Statistic)>,
    options: Options,
    progress: &dyn Progress,
) -> Result<Sweep, Error> {
    let mut sweep = Sweep {
        title: String::new(),
        file: String::new(),
        seed: 0,
        price_sheet: Sheet::embedded().clone(),
        keys: Vec::new(),
        statistics,
        points: Vec::new(),
    };
    let means: Vec<Metric> = sweep
        .statistics
        .iter()
        .filter_map(|(_, statistic)| if let Statistic::Mean(metric) = statistic { Some(*metric) } else { None })
        .collect();
    let mut first: Option<Answer> = None;
    for (settings, mut scenario) in points {
        pair_with(&mut scenario, first.as_ref())?;
        let answer = engine::with_threads(options.threads, || play(scenario, progress)).map_err(Error::Threads)?;
        let against = first.as_ref().unwrap_or(&answer);
        let against_first =
            means.iter().filter_map(|metric| Some((*metric, paired(&answer, against, *metric, &[])?))).collect();
        if first.is_none() {
            sweep.title.clone_from(&answer.scenario.title);
            sweep.file.clone_from(&answer.scenario.file);
            sweep.seed = answer.scenario.run.seed;
            sweep.price_sheet = answer.scenario.price_sheet().clone();
            sweep.keys = settings.iter().map(|(key, _)| key.clone()).collect();
        }
        let checks_pass = answer.checks.all_pass();
        sweep.points.push(SweepPoint { settings, summary: answer.summary.clone(), against_first, checks_pass });
        if first.is_none() {
            first = Some(answer);
        }
    }
    Ok(sweep)
}
