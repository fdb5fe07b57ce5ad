//! How large a budget has to be.
//!
//! A budget that is checked before each call stops a session at the first call whose worst case doesn't fit, and changes
//! nothing before. So the smallest budget that lets a session through is the largest sum, over its calls, of what was spent
//! and the worst case of the call: one run without a limit knows it for all sessions, and the share that any budget stops.

use super::in_flight::{InFlightRow, Timelines};
use super::{Answer, Options, Progress, sample};
use crate::Error;
use crate::engine::{self, Play};
use crate::scenario::Scenario;
use crate::stats::{Estimate, Metric, Moments, Needs, Rate, half_width};

/// The shares of sessions that are to get through.
pub const THROUGH: [f64; 3] = [0.95, 0.99, 0.999];

/// The smallest budget that lets a share of the sessions through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needed {
    /// The share.
    pub share: f64,
    /// The budget, $.
    pub usd: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
    /// Whether fewer than ten sessions need more.
    pub too_few: bool,
}

/// What one budget does.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetRow {
    /// The budget, $.
    pub usd: f64,
    /// The share of sessions that it stops where it is checked before each call.
    pub stopped: Estimate,
    /// What those had cost on average by then, $; nothing where there were none.
    pub done_usd: Option<f64>,
    /// What they would have cost, $.
    pub whole_usd: Option<f64>,
    /// The share of sessions that pass it where it is checked after each call.
    pub overshoots: Estimate,
    /// By how much on average, and at the most, $.
    pub overshoot_usd: Option<(f64, f64)>,
}

/// What a bound on the output does to the head-room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputRow {
    /// The bound, tokens.
    pub max_output: u64,
    /// The budget that lets 99 % through, $.
    pub p99_usd: f64,
    /// How much more a session needs than it costs, $.
    pub head_room: Estimate,
}

/// A budget for a scenario.
#[derive(Debug, Clone)]
pub struct Sizing {
    /// The scenario without limits but the money's.
    pub scenario: Scenario,
    /// Sessions played.
    pub sessions: u64,
    /// The bound on a call's output that was taken.
    pub max_output: u64,
    /// What lets 95, 99 and 99.9 % of sessions through.
    pub needed: Vec<Needed>,
    /// The curve.
    pub rows: Vec<BudgetRow>,
    /// (budget in $, share of the sessions that it stops where it is checked before each call), rising.
    pub curve: Vec<(f64, f64)>,
    /// By bounds on the output, rising.
    pub outputs: Vec<OutputRow>,
    /// Sessions side by side that share a budget and reserve nothing.
    pub in_flight: Vec<InFlightRow>,
}

/// Sessions side by side that are looked at where none are asked for.
pub const IN_FLIGHT: [u64; 3] = [1, 5, 20];

/// Sessions side by side that share a budget and reserve nothing.
#[derive(Debug, Clone, Default)]
pub struct InFlight {
    /// How many; [`IN_FLIGHT`] where none are given.
    pub side_by_side: Vec<u64>,
    /// Their budget, $; as many medians of what a session costs where none is given.
    pub budget_usd: Option<f64>,
}

/// More than any session costs, and as much as a budget can be.
const NO_LIMIT: &str = "budget.dollars=1000000";

/// Sizes a budget of dollars, other limits left out.
///
/// # Errors
/// Where the scenario has no prices or no bound on the output, or a session's need doesn't follow from one run of it:
/// agents, several runs, and pings that a budget would cut.
pub fn size_budget(
    scenario: &Scenario,
    in_flight: &InFlight,
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Sizing, Error> {
    let model = &scenario.model;
    if model.fleet.is_some() {
        return Err(Error::NotOfFleets("budget"));
    }
    let refuse = |why: &str| {
        Err(Error::Budget(format!(
            "{why}, so what a session needs isn't known from one run; `agent-sim solve --find budget.dollars --where \
             'budget_stopped = 0.05' --between 0.1,10.0` finds it"
        )))
    };
    if model.herd.is_some() || model.tariff.is_none() {
        return Err(Error::Budget("a budget of dollars needs a scenario of sessions with prices".to_owned()));
    }
    if model.has_agents() {
        return refuse("agents share the budget of their caller");
    }
    if !model.is_one_run() {
        return refuse("sessions are run more than once");
    }
    if model.cache.is_kept_alive() {
        return refuse("a budget cuts the pings that keep the cache alive");
    }
    let limits = ["turns", "tokens", "time"].map(|key| format!("budget.{key}=off"));
    let with = |check: &str, more: &[String]| {
        let mut sets: Vec<String> = vec![format!("budget.check={check}")];
        sets.extend(limits.iter().filter(|set| has_limit(scenario, set)).cloned());
        sets.extend_from_slice(more);
        scenario.with_sets(&sets).map_err(Error::Budget)
    };
    let base = with("before", &[NO_LIMIT.to_owned()])?;
    let play = |scenario: &Scenario| {
        let mut needs = Needs::default();
        let played = Play { model: &scenario.model, seed: scenario.run.seed, sessions: 0..scenario.run.sessions };
        let run = || played.run(&mut needs, &|done| progress.done(done));
        engine::with_threads(options.threads, run).map(|()| needs).map_err(Error::Threads)
    };
    progress.goal(base.run.sessions);
    let needs = play(&base)?;
    let through = THROUGH.into_iter().zip(needs.quantiles(THROUGH));
    let needed = through.map(|(share, (usd, ci95, too_few))| Needed { share, usd, ci95, too_few }).collect();
    let curve = needs.quantiles([0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]);
    let mut budgets: Vec<f64> = curve.map(|(usd, ..)| round_up(usd)).to_vec();
    budgets.dedup_by(|a, b| (*a - *b).abs() <= 0.0);
    let mut rows = Vec::new();
    for usd in budgets {
        let played = |check: &str| {
            let mut limited = with(check, &[format!("budget.dollars={usd}")])?;
            limited.run.precision.clear();
            engine::with_threads(options.threads, || sample(limited, progress)).map_err(Error::Threads)
        };
        rows.push(row(usd, &needs, &played("before")?, &played("after")?));
    }
    let max_output = base.model.budget.max_output_tokens;
    let mut bounds: Vec<u64> =
        [0.99, 0.999, 1.0 - 1e-6].iter().map(|p| model.output.quantile(*p).ceil() as u64).collect();
    bounds.extend([max_output, 2 * max_output]);
    bounds.sort_unstable();
    bounds.dedup();
    let mut outputs = Vec::new();
    for bound in bounds {
        let Ok(bounded) = with("before", &[NO_LIMIT.to_owned(), format!("model.max_output={bound}")]) else { continue };
        let needs = if bound == max_output { needs.clone() } else { play(&bounded)? };
        let (needed, costs): (Vec<f64>, Vec<f64>) = needs.sessions().iter().copied().unzip();
        let beyond: Vec<f64> = needed.iter().zip(&costs).map(|(needed, cost)| needed - cost).collect();
        let [(p99_usd, ..)] = needs.quantiles([0.99]);
        outputs.push(OutputRow { max_output: bound, p99_usd, head_room: Moments::of(&beyond).estimate() });
    }
    let mut costs: Vec<f64> = needs.sessions().iter().map(|(_, cost)| *cost).collect();
    costs.sort_unstable_by(f64::total_cmp);
    let median = costs.get(costs.len() / 2).copied().unwrap_or(0.0);
    let lines = engine::with_threads(options.threads, || Timelines::play(&base, progress)).map_err(Error::Threads)?;
    let asked: &[u64] = if in_flight.side_by_side.is_empty() { &IN_FLIGHT } else { &in_flight.side_by_side };
    let budget = |n: u64| in_flight.budget_usd.unwrap_or_else(|| round_up(median * n as f64));
    let in_flight = asked.iter().map(|n| lines.row(*n, budget(*n))).filter(|row| row.groups > 0).collect();
    let curve = needs.curve();
    Ok(Sizing { sessions: needs.len(), max_output, needed, rows, curve, outputs, in_flight, scenario: base })
}

fn has_limit(scenario: &Scenario, set: &str) -> bool {
    set.split_once('=').is_some_and(|(key, _)| scenario.value_at(key).is_some())
}

/// To three digits.
fn round_up(usd: f64) -> f64 {
    if usd <= 0.0 {
        return usd;
    }
    let step = 10_f64.powf(usd.log10().floor() - 2.0);
    // through its text, so that 0.3 is 0.3
    format!("{:.9}", (usd / step - 1e-9).ceil() * step).parse().unwrap_or(usd)
}

pub(super) fn share_estimate(share: f64, n: u64) -> Estimate {
    let se = (share * (1.0 - share) / n.max(1) as f64).sqrt();
    let half = half_width(n) * se;
    Estimate { value: share, se, ci95: [(share - half).max(0.0), (share + half).min(1.0)] }
}

fn row(usd: f64, needs: &Needs, before: &Answer, after: &Answer) -> BudgetRow {
    let seen = before.summary.rate(Rate::BudgetStopped).copied();
    let stopped_sessions: Vec<&(f64, f64)> = needs.sessions().iter().filter(|(needed, _)| *needed > usd).collect();
    let mean = |sum: f64, n: usize| (n > 0).then(|| sum / n as f64);
    let money = before.summary.stopped.iter().map(|(_, stopped)| (stopped.cost.usd(), stopped.sessions));
    let (done, count) = money.fold((0.0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    let costs = Metric::named("cost_usd").and_then(|cost| after.sample.values(cost)).unwrap_or_default();
    let beyond: Vec<f64> = costs.iter().map(|cost| cost - usd).filter(|beyond| *beyond > 1e-12).collect();
    let passed = beyond.len() as f64 / costs.len().max(1) as f64;
    BudgetRow {
        usd,
        stopped: seen.unwrap_or_else(|| share_estimate(needs.stopped(usd), needs.len())),
        done_usd: mean(done, count as usize),
        whole_usd: mean(stopped_sessions.iter().map(|(_, cost)| cost).sum(), stopped_sessions.len()),
        overshoots: share_estimate(passed, costs.len() as u64),
        overshoot_usd: mean(beyond.iter().sum(), beyond.len())
            .map(|mean| (mean, beyond.iter().copied().fold(0.0, f64::max))),
    }
}
