//! A grid of settings on the same sessions.

use super::compare::{pair_with, paired};
use super::{Answer, Options, Progress, play};
use crate::Error;
use crate::check;
use crate::engine;
use crate::scenario::Scenario;
use crate::stats::{Metric, Paired, Statistic, Summary};

/// A grid of settings, played on the same sessions.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The scenario of the first point.
    pub scenario: Scenario,
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
    /// What each of the statistics should be by a closed form, where one applies.
    pub expected: Vec<Option<f64>>,
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
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Sweep, Error> {
    let means: Vec<Metric> = statistics
        .iter()
        .filter_map(|(_, statistic)| if let Statistic::Mean(metric) = statistic { Some(*metric) } else { None })
        .collect();
    let (mut first, mut played): (Option<Answer>, Vec<SweepPoint>) = (None, Vec::new());
    for (settings, mut scenario) in points {
        if scenario.model.fleet.is_some() {
            return Err(Error::NotOfFleets("sweep"));
        }
        pair_with(&mut scenario, first.as_ref())?;
        let answer =
            engine::with_threads(options.threads, || play(scenario, progress, None)).map_err(Error::Threads)??;
        let against = first.as_ref().unwrap_or(&answer);
        let against_first =
            means.iter().filter_map(|metric| Some((*metric, paired(&answer, against, *metric, &[])?))).collect();
        let checks_pass = answer.checks.all_pass();
        let model = &answer.scenario.model;
        let expected = statistics.iter().map(|(_, statistic)| check::expected(model, *statistic)).collect();
        played.push(SweepPoint { settings, summary: answer.summary.clone(), against_first, expected, checks_pass });
        if first.is_none() {
            first = Some(answer);
        }
    }
    let first = first.ok_or_else(|| Error::Sweep("the grid has no points".to_owned()))?;
    let keys =
        played.first().map_or_else(Vec::new, |point| point.settings.iter().map(|(key, _)| key.clone()).collect());
    Ok(Sweep { scenario: first.scenario, keys, statistics, points: played })
}
