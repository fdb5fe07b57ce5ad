//! One question answered: sessions played, summed up, and held against theory.

use std::sync::Arc;

use crate::Error;
use crate::check::{self, Checks};
use crate::engine::{self, Play};
use crate::model::{Loading, Model};
use crate::price::Sheet;
use crate::scenario::Scenario;
use crate::stats::{
    Costs, Estimate, MOST_EXACT_SESSIONS, Metric, Paired, Sample, Statistic, Summary, TurnCosts, next_size,
};

/// Hears how far a run is.
pub trait Progress: Sync {
    /// The run will play this many sessions in all, as far as it knows now.
    fn goal(&self, _sessions: u64) {}
    /// This many more are done.
    fn done(&self, _sessions: u64) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// How to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Threads; `None` for one per core. The answer doesn't depend on it.
    pub threads: Option<usize>,
}

/// A scenario with its answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What was asked.
    pub scenario: Scenario,
    /// Every session.
    pub sample: Sample,
    /// The figures with their intervals.
    pub summary: Summary,
    /// The closed forms.
    pub checks: Checks,
    /// What the definitions of each server cost under each way of loading; empty where only one way is known.
    pub loadings: Vec<ServerCosts>,
}

/// What the definitions of a server cost a session, $: how much dearer it is than with definitions that weigh nothing,
/// on the same sessions.
#[derive(Debug, Clone)]
pub struct ServerCosts {
    /// Its name.
    pub server: String,
    /// All of its definitions, tokens.
    pub tokens: u64,
    /// How the scenario loads it.
    pub loading: Loading,
    /// Sessions that were compared.
    pub sessions: u64,
    /// In every prompt.
    pub upfront: Estimate,
    /// Found by search, the searches among it.
    pub search: Option<Estimate>,
    /// Read when first used from code.
    pub code: Option<Estimate>,
    /// What leaving results of code outside changes, on top.
    pub kept_out: Option<Estimate>,
}

/// Plays the scenario's sessions and sums them up. With `precision` it goes on until every target is met.
///
/// # Errors
/// Where the threads can't be had; a validated scenario can't fail.
pub fn simulate(scenario: Scenario, options: Options, progress: &dyn Progress) -> Result<Answer, Error> {
    let whole = || {
        let answer = play(scenario, progress);
        Answer { loadings: loadings(&answer.scenario), ..answer }
    };
    engine::with_threads(options.threads, whole).map_err(Error::Threads)
}

/// The same without what definitions cost under each way of loading.
fn play(scenario: Scenario, progress: &dyn Progress) -> Answer {
    let (model, run) = (&scenario.model, &scenario.run);
    let most = if run.precision.is_empty() { run.sessions } else { run.max_sessions };
    let mut sample = Sample::new(model, most, &check::probes_s(model));
    // legs end at the borders of chunks, so that a run in legs sums in the same order as a run in one
    let leg =
        |sessions: u64| if run.precision.is_empty() { sessions } else { engine::whole_chunks(sessions).min(most) };
    let mut size = leg(run.sessions);
    let summary = loop {
        progress.goal(size);
        let from = sample.sessions();
        Play { model, seed: run.seed, sessions: from..size }.run(&mut sample, &|n| progress.done(n));
        let summary = Summary::new(model, &sample);
        match next_size(&run.precision, &summary, most) {
            Some(next) => size = leg(next),
            None => break summary,
        }
    };
    let checks = check::check(model, &sample);
    Answer { scenario, sample, summary, checks, loadings: Vec::new() }
}

/// What each server's definitions cost under each way of loading that is known.
fn loadings(scenario: &Scenario) -> Vec<ServerCosts> {
    const SESSIONS: u64 = 2_000;
    if scenario.model.tariff.is_none() {
        return Vec::new();
    }
    let sessions = scenario.run.sessions.min(SESSIONS);
    let costs = |model: &Model| {
        let mut costs = Costs::default();
        Play { model, seed: scenario.run.seed, sessions: 0..sessions }.run(&mut costs, &|_| {});
        costs
    };
    scenario
        .loadings()
        .iter()
        .map(|server| {
            let weightless = costs(&server.weightless);
            let beyond = |model: &Model| costs(model).beyond(&weightless);
            let code = server.code.as_ref().map(costs);
            ServerCosts {
                server: server.server.clone(),
                tokens: server.tokens,
                loading: server.loading,
                sessions,
                upfront: beyond(&server.upfront),
                search: server.search.as_ref().map(beyond),
                code: code.as_ref().map(|code| code.beyond(&weightless)),
                kept_out: server.code_kept.as_ref().zip(code.as_ref()).map(|(kept, code)| costs(kept).beyond(code)),
            }
        })
        .collect()
}

/// Mean cost of each call over the first sessions, for a chart; `None` without prices.
pub fn turn_costs(scenario: &Scenario) -> Option<TurnCosts> {
    const SESSIONS: u64 = 2_000;
    scenario.model.tariff.as_ref()?;
    let mut costs = TurnCosts::default();
    let sessions = 0..scenario.run.sessions.min(SESSIONS);
    Play { model: &scenario.model, seed: scenario.run.seed, sessions }.run(&mut costs, &|_| {});
    Some(costs)
}

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
    options: Options,
    progress: &dyn Progress,
) -> Result<Comparison, Error> {
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
fn paired(answer: &Answer, against: &Answer, metric: Metric, quantiles: &[f64]) -> Option<Paired> {
    if !metric.applies(&answer.scenario.model) || !metric.applies(&against.scenario.model) {
        return None;
    }
    let (values, theirs) = (answer.sample.values(metric)?, against.sample.values(metric)?);
    let seed = against.scenario.run.seed;
    Some(Paired::new(&values, &theirs, quantiles, |number| engine::rng::replicate(seed, number)))
}

/// Lets a scenario play the same sessions as the first, and as many.
fn pair_with(scenario: &mut Scenario, first: Option<&Answer>) -> Result<(), Error> {
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
