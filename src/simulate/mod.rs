//! One question answered: sessions played, summed up, and held against theory.

mod budgets;
mod compare;
mod fleet;
mod fleets;
mod in_flight;
mod levers;
mod plan;
mod solve;
mod sweep;

use crate::Error;
use crate::check::{self, Checks};
use crate::engine::{self, Collect, Play};
use crate::model::{Loading, Model};
use crate::scenario::Scenario;
use crate::stats::{Costs, Estimate, FleetSummary, Sample, Summary, next_size};
use crate::table::{Rows, Sink, fleet_part};

pub use budgets::{BudgetRow, IN_FLIGHT, InFlight, Needed, OutputRow, Sizing, size_budget};
pub use compare::{COMPARED_QUANTILES, Comparison, Pair, compare};
use fleet::answer_fleet;
pub use fleet::{FleetAnswer, Overload};
pub use fleets::{FleetComparison, FleetRow, FleetWay, Unsettled, compare_fleets};
pub use in_flight::InFlightRow;
pub use levers::{Effect, Pulled, RANKED_QUANTILE, Ranking, levers};
pub use plan::{Found, Plan, Planned, plan, plan_list};
pub use solve::{Crossing, Kind, Load, Point, Solution, Unknown, solve};
pub use sweep::{Sweep, SweepCell, SweepPoint, sweep};

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
pub struct Options<'a> {
    /// Threads; `None` for one per core. The answer doesn't depend on it.
    pub threads: Option<usize>,
    /// Where every session, the first sessions' turns and a fleet's series go as they are played, of the commands that play
    /// each way once: [`simulate()`], [`compare()`] and [`compare_fleets()`].
    pub tables: Option<&'a dyn Sink>,
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
    /// What only a fleet has.
    pub fleet: Option<FleetAnswer>,
}

impl Answer {
    /// The numbers that only a fleet has.
    pub fn fleet_summary(&self) -> Option<&FleetSummary> {
        self.fleet.as_ref().map(|fleet| &fleet.summary)
    }
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
/// Where the threads can't be had, or a fleet is sure to get more work than it can do.
pub fn simulate(scenario: Scenario, options: Options<'_>, progress: &dyn Progress) -> Result<Answer, Error> {
    let whole = || {
        let answer = play(scenario, progress, options.tables)?;
        Ok(Answer { loadings: loadings(&answer.scenario), ..answer })
    };
    engine::with_threads(options.threads, whole).map_err(Error::Threads)?
}

/// The same without what definitions cost under each way of loading.
fn play(scenario: Scenario, progress: &dyn Progress, tables: Option<&dyn Sink>) -> Result<Answer, Error> {
    if let Some(shared) = scenario.model.fleet.clone() {
        let answer = answer_fleet(scenario, &shared, progress, tables)?;
        if let (Some(sink), Some(fleet)) = (tables, answer.fleet_summary()) {
            let stream = sink.streams(1);
            sink.rows(stream, fleet_part(&answer.scenario.strategy, fleet, &answer.scenario.places));
            sink.end(stream);
        }
        return Ok(answer);
    }
    let answer = sample_into(scenario, progress, tables);
    let checks = check::check(&answer.scenario.model, &answer.sample);
    Ok(Answer { checks, ..answer })
}

/// The same without the checks.
fn sample(scenario: Scenario, progress: &dyn Progress) -> Answer {
    sample_into(scenario, progress, None)
}

fn sample_into(scenario: Scenario, progress: &dyn Progress, tables: Option<&dyn Sink>) -> Answer {
    let (model, run) = (&scenario.model, &scenario.run);
    let most = if run.precision.is_empty() { run.sessions } else { run.max_sessions };
    let rows = tables.map(|sink| Rows::new(model, &scenario.strategy, None, sink, sink.streams(1)));
    let mut played = (Sample::new(model, most, &check::probes_s(model)), rows);
    // legs end at the borders of chunks, so that a run in legs sums in the same order as a run in one
    let leg =
        |sessions: u64| if run.precision.is_empty() { sessions } else { engine::whole_chunks(sessions).min(most) };
    let mut size = leg(run.sessions);
    let summary = loop {
        progress.goal(size);
        let from = played.0.sessions();
        Play { model, seed: run.seed, sessions: from..size }.run(&mut played, &|n| progress.done(n));
        let summary = Summary::new(model, &played.0);
        match next_size(&run.precision, &summary, most) {
            Some(next) => size = leg(next),
            None => break summary,
        }
    };
    played.finish();
    let (sample, _) = played;
    Answer { scenario, sample, summary, checks: Checks::default(), loadings: Vec::new(), fleet: None }
}

/// What each server's definitions cost under each way of loading that is known.
fn loadings(scenario: &Scenario) -> Vec<ServerCosts> {
    const SESSIONS: u64 = 2_000;
    if scenario.model.tariff.is_none() || scenario.model.fleet.is_some() {
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
