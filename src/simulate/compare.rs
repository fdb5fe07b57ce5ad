//! Several ways on the same sessions, each difference paired.

use super::{Answer, Options, Progress, simulate};
use crate::Error;
use crate::engine;
use crate::scenario::Scenario;
use crate::stats::{MOST_EXACT_SESSIONS, Metric, Paired};

/// Several ways on the same sessions.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The ways; the first is what the others are held against.
    pub answers: Vec<Answer>,
    /// Each of the others against the first.
    pub pairs: Vec<Pair>,
}

/// One way against the first.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Its place among the answers.
    pub way: usize,
    /// What was compared.
    pub metrics: Vec<(Metric, Paired)>,
}

impl Pair {
    /// The comparison of a metric by name, if it applies to both ways.
    pub fn metric(&self, name: &str) -> Option<&Paired> {
        self.metrics.iter().find(|(metric, _)| metric.quantity().name() == name).map(|(_, paired)| paired)
    }
}

/// Quantiles whose differences are taken.
pub const COMPARED_QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// Plays several scenarios on the same sessions and holds each against the first. `metrics` are compared with their
/// quantiles where they apply to both. With `precision` the first decides how many sessions all of them play.
///
/// # Errors
/// Where the scenarios don't share seed and sessions, are too long for every session's values to be kept, or the threads
/// can't be had.
pub fn compare(
    scenarios: Vec<Scenario>,
    metrics: &[Metric],
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Comparison, Error> {
    if let Some(first) = scenarios.first() {
        let has = |scenario: &Scenario| scenario.model.fleet.is_some();
        if let Some(other) = scenarios.iter().find(|scenario| has(scenario) != has(first)) {
            let (with, without) = if has(first) { (first, other) } else { (other, first) };
            return Err(Error::Plan(format!(
                "{} ({}) is a fleet and {} ({}) isn't: sessions that share something aren't the same sessions",
                with.file, with.strategy, without.file, without.strategy
            )));
        }
    }
    let mut answers: Vec<Answer> = Vec::new();
    for mut scenario in scenarios {
        pair_with(&mut scenario, answers.first())?;
        answers.push(simulate(scenario, options, progress)?);
    }
    let Some(first) = answers.first() else { return Ok(Comparison { answers, pairs: Vec::new() }) };
    let jobs: Vec<(usize, Metric)> =
        (1..answers.len()).flat_map(|way| metrics.iter().map(move |metric| (way, *metric))).collect();
    let paired = |(way, metric): &(usize, Metric)| paired(answers.get(*way)?, first, *metric, &COMPARED_QUANTILES);
    let compared = engine::with_threads(options.threads, || engine::map(&jobs, paired)).map_err(Error::Threads)?;
    let mut pairs: Vec<Pair> = (1..answers.len()).map(|way| Pair { way, metrics: Vec::new() }).collect();
    for ((way, metric), paired) in jobs.iter().zip(compared) {
        if let (Some(pair), Some(paired)) = (pairs.get_mut(way - 1), paired) {
            pair.metrics.push((*metric, paired));
        }
    }
    Ok(Comparison { answers, pairs })
}

/// What an answer's sessions are beyond those of another one, where a metric applies to both.
pub(super) fn paired(answer: &Answer, against: &Answer, metric: Metric, quantiles: &[f64]) -> Option<Paired> {
    if !metric.applies(&answer.scenario.model) || !metric.applies(&against.scenario.model) {
        return None;
    }
    let (values, theirs) = (answer.sample.values(metric)?, against.sample.values(metric)?);
    let seed = against.scenario.run.seed;
    Some(Paired::new(&values, &theirs, quantiles, |number| engine::rng::replicate(seed, number)))
}

/// Lets a scenario play the same sessions as the first, and as many.
pub(super) fn pair_with(scenario: &mut Scenario, first: Option<&Answer>) -> Result<(), Error> {
    if let Some(first) = first {
        let run = &first.scenario.run;
        if scenario.run.seed != run.seed || scenario.run.sessions != run.sessions {
            return Err(Error::Unpaired(scenario.file.clone(), first.scenario.file.clone()));
        }
        scenario.run.sessions = first.summary.sessions;
        scenario.run.precision.clear();
    }
    if scenario.run.sessions > MOST_EXACT_SESSIONS {
        return Err(Error::TooManyToCompare(scenario.run.sessions));
    }
    Ok(())
}
