//! Closed forms against the simulation (MODEL.md §7): each form that holds in a scenario with its z, each that doesn't
//! with the assumption that fails.
//!
//! A check passes when theory and simulation agree to 1e-9 relative, or differ by less than four standard errors.
//! Where the simulation saw too few of the events that a figure hangs on for a normal error, it isn't checked.

mod agents;
mod budgets;
mod costs;
mod facts;
mod fleet;
mod gaps;
mod outcomes;
mod phases;
mod retries;
mod sessions;
mod sizes;
mod walk;

use facts::Facts;
pub use fleet::check_fleet;

use crate::model::{Herd, Model, Resource};
use crate::stats::{Estimate, Quantity, Sample, Statistic, TurnMetric};

/// A z beyond this fails.
pub const LARGEST_Z: f64 = 4.0;
/// Relative agreement that counts as equal.
pub const EQUAL: f64 = 1e-9;
/// With fewer expected events than this an observed share isn't near enough to normal.
const FEWEST_EVENTS: f64 = 25.0;
/// With fewer expected events than this an event is taken to be impossible.
const NO_EVENTS: f64 = 1e-4;
/// With fewer sessions than this a standard error is too rough for [`LARGEST_Z`].
const FEWEST_SESSIONS: u64 = 100;

/// One closed form held against the simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// MODEL.md's id.
    pub id: &'static str,
    /// The form.
    pub formula: String,
    /// What was compared.
    pub of: String,
    /// The form's value.
    pub expected: f64,
    /// The simulation's.
    pub observed: f64,
    /// Standard error of the simulation's.
    pub se: f64,
    /// Difference in standard errors; `None` where the scenario leaves nothing to chance.
    pub z: Option<f64>,
    /// Whether they agree.
    pub pass: bool,
    /// Whether the form is a bound from above.
    pub at_most: bool,
}

impl Check {
    /// A bound that the largest value of a sample must keep.
    fn at_most(id: &'static str, formula: impl Into<String>, of: impl Into<String>, bound: f64, largest: f64) -> Self {
        Self {
            id,
            formula: formula.into(),
            of: of.into(),
            expected: bound,
            observed: largest,
            se: 0.0,
            z: None,
            pass: largest <= bound * (1.0 + 1e-12),
            at_most: true,
        }
    }

    fn new(id: &'static str, formula: impl Into<String>, of: impl Into<String>, expected: f64, seen: Estimate) -> Self {
        let difference = seen.value - expected;
        let z = (seen.se > 0.0).then(|| difference / seen.se);
        let mut check = Self {
            id,
            formula: formula.into(),
            of: of.into(),
            expected,
            observed: seen.value,
            se: if seen.se > 0.0 { seen.se } else { 0.0 },
            z,
            pass: z.is_some_and(|z| z.abs() < LARGEST_Z),
            at_most: false,
        };
        check.pass |= check.equal();
        check
    }

    /// Whether it holds the simulation's books against each other, whatever the scenario.
    pub fn is_of_books(&self) -> bool {
        matches!(self.id, "queue.conservation" | "queue.little")
    }

    fn equal(&self) -> bool {
        let difference = (self.observed - self.expected).abs();
        // what rounding leaves of a sum that comes to nothing
        difference <= EQUAL * self.expected.abs() || difference <= 1e-15
    }
}

/// A closed form that wasn't held against the simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotChecked {
    /// MODEL.md's id.
    pub id: &'static str,
    /// The assumption that fails.
    pub why: String,
}

/// Everything that was and wasn't checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checks {
    sessions: u64,
    /// Forms that hold here.
    pub checks: Vec<Check>,
    /// Forms that don't.
    pub not_checked: Vec<NotChecked>,
}

impl Checks {
    /// Whether no check failed.
    pub fn all_pass(&self) -> bool {
        self.checks.iter().all(|check| check.pass)
    }

    /// The largest |z|.
    pub fn largest_z(&self) -> Option<f64> {
        self.checks.iter().filter_map(|check| check.z).map(f64::abs).max_by(f64::total_cmp)
    }

    fn add(&mut self, check: Result<Check, NotChecked>) {
        match check {
            Ok(check) if self.sessions < FEWEST_SESSIONS && !check.at_most && !check.equal() => self.refuse(
                check.id,
                format!("{} sessions are too few for a standard error; {FEWEST_SESSIONS} are enough", self.sessions),
            ),
            Ok(check) => self.checks.push(check),
            Err(not) => self.refuse(not.id, not.why),
        }
    }

    fn refuse(&mut self, id: &'static str, why: impl Into<String>) {
        let why = why.into();
        if !self.not_checked.iter().any(|known| known.id == id && known.why == why) {
            self.not_checked.push(NotChecked { id, why });
        }
    }
}

/// Durations (s) whose share among the tool phases has to be counted for [`check`].
pub fn probes_s(model: &Model) -> Vec<f64> {
    if model.is_played_once() { phases::probes_s(&agents::effective(model)) } else { Vec::new() }
}

/// Holds every closed form of `model` against a sample. The sample must have been taken with [`probes_s`] of the model
/// that was played.
pub fn check(model: &Model, sample: &Sample) -> Checks {
    let mut checks = Checks { sessions: sample.sessions(), ..Checks::default() };
    if sample.sessions() == 0 {
        return checks;
    }
    if let Some(herd) = &model.herd {
        check_herd(herd, sample, &mut checks);
        return checks;
    }
    let has_agents = model.has_agents();
    let plain = agents::effective(model);
    let facts = Facts::of_sample(&plain, sample, has_agents);
    if model.is_played_once() {
        sizes::check(&facts, sample, &mut checks);
        costs::check(&facts, sample, &mut checks);
        phases::check(&facts, sample, &mut checks);
        sessions::check(&facts, sample, &mut checks);
        retries::check(&facts, sample, &mut checks);
        retries::check_model(&facts, sample, &mut checks);
        retries::check_approval(&facts, sample, &mut checks);
        costs::check_pings(&facts, sample, &mut checks);
        agents::check(model, sample, &mut checks);
    } else {
        for id in OF_ONE_RUN {
            checks.refuse(id, "sessions are run on two models or more than once; see routing and outcome.pass_k");
        }
    }
    budgets::check(&facts, sample, &mut checks);
    outcomes::check_search(model, sample, &mut checks);
    outcomes::check(model, sample, &mut checks);
    for (ids, why) in LATER {
        for id in *ids {
            checks.refuse(id, *why);
        }
    }
    checks
}

/// How often a herd can ask. An optimistic write fails only where another one has succeeded since its read, and each
/// client's failures lie one after another: who is the k-th to succeed has failed k-1 times at most. A queue without end
/// turns nobody away.
fn check_herd(herd: &Herd, sample: &Sample, checks: &mut Checks) {
    const ID: &str = "herd.calls";
    let n = herd.clients as f64;
    let calls = sample.moments(Quantity::HerdCalls);
    match herd.resource {
        Resource::Optimistic => {
            let bound = n * (n + 1.0) / 2.0;
            checks.add(Ok(Check::at_most(ID, "N(N+1)/2", "largest herd_calls", bound, calls.max)));
        }
        Resource::Queue { places: u64::MAX, .. } => {
            checks.add(Ok(Check::new(ID, "N: nobody is turned away", "herd_calls", n, calls.estimate())));
        }
        Resource::Queue { .. } => checks.refuse(ID, "clients are turned away and come back as chance has it"),
    }
    checks.refuse("herd.time", "clients that get in each other's way have no closed form for their time");
}

/// Forms of a session that is one run.
const OF_ONE_RUN: &[&str] = &[
    "tokens.read",
    "tokens.reread",
    "tokens.definitions",
    "cost.input.uncached",
    "cost.input.cached",
    "cost.input.two_lifetimes",
    "cost.output",
    "context.compaction",
    "latency.parallel",
    "latency.sequential",
    "latency.timeout",
    "latency.any",
    "latency.hedged",
    "latency.session",
    "retry.duplicates",
    "retry.executions",
    "retry.attempts",
    "retry.availability",
    "retry.wait",
    "cache.keep_alive",
    "agents.tokens",
    "agents.cost",
];

/// Forms of what a scenario of this version can't hold.
const LATER: &[(&[&str], &str)] = &[
    (&["cache.lifetime_break_even"], "it compares two lifetimes, and a run has one"),
    (&["limit.bucket", "queue.mmc", "queue.mg1", "queue.little", "cache.shared_prefix"], "the scenario has no [fleet]"),
];

/// Whether the expected events are enough, impossible, or too few to tell.
enum Events {
    Enough,
    None,
    TooFew(String),
}

/// Judges by the expected number of events and by how far the observed number lies from it: so many where few are
/// expected are a disagreement, not a sample too small.
fn events(expected: f64, off_by: f64) -> Events {
    const NO_ACCIDENT: f64 = 4.0 * FEWEST_EVENTS;
    if expected <= 0.0 {
        Events::None
    } else if expected < FEWEST_EVENTS && off_by.abs() < NO_ACCIDENT {
        Events::TooFew(format!(
            "only {} such events are expected in a sample of this size; more sessions would show them",
            if expected < 0.1 { "a fraction of one".to_owned() } else { format!("{expected:.1}") }
        ))
    } else {
        Events::Enough
    }
}

/// Points (p, seconds) of the quantile curve of a tool phase, where it has a closed form; for a chart.
pub fn phase_quantiles(model: &Model, ps: &[f64]) -> Option<Vec<(f64, f64)>> {
    model.is_played_once().then(|| agents::effective(model)).and_then(|model| phases::phase_quantiles(&model, ps))
}

/// Points (p, seconds) of the quantile curve of a session's latency, where it has a closed form; for a chart.
pub fn session_quantiles(model: &Model, ps: &[f64]) -> Option<Vec<(f64, f64)>> {
    model.is_played_once().then(|| agents::effective(model)).and_then(|model| sessions::session_quantiles(&model, ps))
}

/// What a figure should be by a closed form, where one applies: the mean cost, the mean and quantiles of a session's
/// latency, quantiles of a tool phase.
pub fn expected(model: &Model, statistic: Statistic) -> Option<f64> {
    // an expectation needs no sample; what needs one large enough are tests against it
    const ANY_NUMBER: f64 = 1e100;
    if !model.is_played_once() {
        return None;
    }
    let law = || {
        let surely_ends = facts::can_be_cut_short(model).is_none();
        surely_ends.then(|| sessions::session_law(&agents::effective(model))).flatten()
    };
    match statistic {
        Statistic::Mean(metric) if metric.quantity() == Quantity::CostUsd => {
            agents::expected_usd(model, ANY_NUMBER).ok()
        }
        Statistic::Mean(metric)
            if !model.has_agents() && matches!(metric.quantity(), Quantity::CostInputUsd | Quantity::CostOutputUsd) =>
        {
            let facts = Facts::of_theory(model, ANY_NUMBER);
            let tariff = model.tariff.as_ref().filter(|_| facts.cut_short.is_none() && !facts.rebills())?;
            let is_input = metric.quantity() == Quantity::CostInputUsd;
            let expected = if is_input { costs::expected_input } else { costs::expected_output };
            expected(&facts, tariff).ok()
        }
        Statistic::Mean(metric) if metric.quantity() == Quantity::LatencyS => law().map(|law| law.mean()),
        Statistic::Quantile(metric, p) if metric.quantity() == Quantity::LatencyS => law().map(|law| law.quantile(p)),
        Statistic::TurnQuantile(TurnMetric::ToolPhase, p) => Some(phase_quantiles(model, &[p])?.first()?.1),
        _ => None,
    }
}

/// `cache.lifetime_break_even`: the share of gaps beyond the shorter lifetime from which the longer one of two models is
/// cheaper. The two models have to differ in nothing else, which the caller knows, and no gap may outlast the longer one.
/// Nothing where the form's other assumptions fail.
pub fn lifetime_break_even(model: &Model, other: &Model) -> Option<f64> {
    let (short, long) = if model.cache.lifetime_s < other.cache.lifetime_s { (model, other) } else { (other, model) };
    let (mine, theirs) = (short.tariff.as_ref()?, long.tariff.as_ref()?);
    let one_lifetime = |model: &Model| {
        let cache = &model.cache;
        cache.enabled && cache.prefix_lifetime_s <= cache.lifetime_s && !cache.breaks.any() && !cache.is_kept_alive()
    };
    let same_prices = mine.base.input == theirs.base.input && mine.base.read == theirs.base.read;
    let applies = short.cache.lifetime_s < long.cache.lifetime_s
        && one_lifetime(short)
        && one_lifetime(long)
        && same_prices
        && mine.tier.is_none()
        && !short.has_agents()
        && short.is_played_once()
        && short.context.compact_at_tokens == u64::MAX
        && short.cache.warm_prefix <= 0.0;
    if !applies {
        return None;
    }
    let facts = Facts::of_theory(short, 1.0);
    let talk = facts.talk().ok().filter(|_| facts.cut_short.is_none())?;
    let usd = walk::usd;
    let share = crate::theory::cache::lifetime_break_even(
        talk.last_prompt(),
        talk.reread(),
        usd(mine.base.read),
        usd(mine.base.write_messages),
        usd(theirs.base.write_messages),
    );
    share.is_finite().then_some(share)
}
