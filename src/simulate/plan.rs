//! How much capacity is enough, and how much load is too much: the value of a key from which on a fleet meets its goals.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fleets::Unsettled;
use super::solve::{Kind, Unknown};
use super::{Answer, Options, Progress, sample, simulate};
use crate::Error;
use crate::engine;
use crate::model::Model;
use crate::scenario::Scenario;
use crate::stats::{Bottleneck, Figure, FleetSummary, Goal, Place, Reading, Verdict};

/// One value of the key that was played.
#[derive(Debug, Clone)]
pub struct Planned {
    /// As the file has it.
    pub text: String,
    /// The number that it is; its place in a list, where it is one of a list.
    pub x: f64,
    /// What each goal's figure is, with what becomes of the goal.
    pub goals: Vec<(Option<Reading>, Verdict)>,
    /// What is busiest, with the share of it that is used.
    pub busiest: Option<(Bottleneck, f64)>,
    /// Why there are no figures, where the fleet doesn't settle.
    pub unsettled: Option<Unsettled>,
    /// The place that turns away the largest share of its calls, with that share, where it is more than one in a hundred.
    pub turned_away: Option<(Place, f64)>,
    /// So many sessions were measured.
    pub sessions: u64,
}

impl Planned {
    /// Whether all goals are met.
    pub fn meets(&self) -> bool {
        self.unsettled.is_none() && self.goals.iter().all(|(_, verdict)| verdict.pass)
    }

    /// The same where the intervals leave no doubt; `None` where they do.
    pub fn surely(&self) -> Option<bool> {
        if let Some(unsettled) = &self.unsettled {
            return unsettled.is_unstable().then_some(false);
        }
        let surely_misses = |verdict: &Verdict| !verdict.pass && !verdict.undecided;
        if self.goals.iter().any(|(_, verdict)| surely_misses(verdict)) {
            return Some(false);
        }
        self.goals.iter().all(|(_, verdict)| verdict.pass && !verdict.undecided).then_some(true)
    }

    /// The places of the goals that are missed.
    fn missed(&self) -> impl Iterator<Item = usize> {
        self.goals.iter().enumerate().filter(|(_, (_, verdict))| !verdict.pass).map(|(place, _)| place)
    }
}

/// Where the goals are met.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// From this value on upwards: the least that is enough.
    Least {
        /// The value.
        x: f64,
        /// The largest value that surely isn't enough, and the smallest that surely is, where they were found.
        between: [Option<f64>; 2],
    },
    /// From this value on downwards: the most that is bearable.
    Most {
        /// The value.
        x: f64,
        /// The largest value that surely is bearable, and the smallest that surely isn't.
        between: [Option<f64>; 2],
    },
    /// At all values that were tried.
    Everywhere,
    /// At none.
    Nowhere,
    /// Of a list, from this one on to its end: its place.
    First(usize),
    /// Of a list, at some before its end, and not at its end.
    Mixed,
}

/// A plan.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The scenario with the first value that was played.
    pub scenario: Scenario,
    /// The key.
    pub key: String,
    /// How its values are written.
    pub kind: Option<Kind>,
    /// What is wanted.
    pub goals: Vec<Goal>,
    /// Where it is had.
    pub found: Found,
    /// All values that were played, rising, or in the order of the list.
    pub points: Vec<Planned>,
    /// Where no value meets the goals: those, by their place, that sessions surely miss even where each is played alone
    /// and nobody waits for anybody, tools and system cached at every call, with what their figures are then. Bounds that
    /// waiting helps to keep, such as `latency_s.mean >= 30`, aren't among them. Empty where the key changes the sessions
    /// themselves.
    pub missed_alone: Vec<(usize, Reading)>,
}

impl Plan {
    /// Whether the goals are met and missed by turns, beyond what chance leaves open.
    pub fn is_mixed(&self) -> bool {
        let sure: Vec<bool> = self.points.iter().filter_map(Planned::surely).collect();
        sure.windows(2).filter(|pair| pair[0] != pair[1]).count() > 1
    }

    /// Whether at some value nothing is missed but what sessions miss alone, so that no more capacity is wanted.
    pub fn is_missed_alone(&self) -> bool {
        let alone = |place: usize| self.missed_alone.iter().any(|(missed, _)| *missed == place);
        self.points.iter().any(|point| !point.meets() && point.unsettled.is_none() && point.missed().all(alone))
    }
}

/// Adds up the goals of several runs.
struct Added<'a> {
    inner: &'a dyn Progress,
    done: AtomicU64,
}

impl Progress for Added<'_> {
    fn goal(&self, sessions: u64) {
        self.inner.goal(self.done.load(Ordering::Relaxed) + sessions);
    }

    fn done(&self, sessions: u64) {
        self.done.fetch_add(sessions, Ordering::Relaxed);
        self.inner.done(sessions);
    }
}

/// Two values nearer to each other than this, relatively, aren't told apart.
const NEAR: f64 = 0.01;

/// At most so many values are played to find an end of the interval.
const MOST_STEPS: usize = 24;

struct Search<'a> {
    load: &'a dyn Fn(&str) -> Result<Scenario, Error>,
    goals: Vec<Goal>,
    options: Options<'a>,
    progress: Added<'a>,
    points: Vec<Planned>,
    scenario: Option<Scenario>,
}

impl<'a> Search<'a> {
    fn new(
        load: &'a dyn Fn(&str) -> Result<Scenario, Error>,
        goals: Vec<Goal>,
        options: Options<'a>,
        progress: &'a dyn Progress,
    ) -> Self {
        let progress = Added { inner: progress, done: AtomicU64::new(0) };
        Self { load, goals, options, progress, points: Vec::new(), scenario: None }
    }

    /// Plays a value, once.
    fn play(&mut self, text: &str, x: f64) -> Result<Planned, Error> {
        if let Some(known) = self.points.iter().find(|point| point.text == text) {
            return Ok(known.clone());
        }
        let scenario = (self.load)(text)?;
        self.scenario.get_or_insert_with(|| scenario.clone());
        let point = match simulate(scenario, self.options, &self.progress) {
            Ok(answer) => planned(&answer, text, x, &self.goals),
            Err(Error::Unstable(load)) => {
                let none = Verdict { got: None, ci95: [f64::NAN; 2], pass: false, undecided: false };
                let goals = self.goals.iter().map(|_| (None, none)).collect();
                let busiest = Some((Bottleneck::Station(load.place), load.needed / load.servers as f64));
                let unsettled = Some(Unsettled::Overloaded(Error::Unstable(load).to_string()));
                Planned { text: text.to_owned(), x, goals, busiest, unsettled, turned_away: None, sessions: 0 }
            }
            Err(error) => return Err(error),
        };
        self.points.push(point.clone());
        Ok(point)
    }
}

impl Search<'_> {
    /// The plan, its points from left to right: by value, or by their place in a list.
    fn finish(self, key: &str, kind: Option<Kind>, found: Found) -> Result<Plan, Error> {
        let Self { mut points, scenario, goals, options, progress, .. } = self;
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let scenario = scenario.ok_or_else(|| Error::Plan("nothing was played".to_owned()))?;
        let is_missed = found == Found::Nowhere && only_where_sessions_meet(key);
        let sessions = points.iter().map(|point| point.sessions).max().unwrap_or(0);
        let missed_alone =
            if is_missed { missed_alone(&scenario, &goals, sessions, options, &progress)? } else { Vec::new() };
        Ok(Plan { scenario, key: key.to_owned(), kind, goals, found, points, missed_alone })
    }

    fn at(&mut self, unknown: &Unknown, x: f64) -> Result<Planned, Error> {
        self.play(&unknown.text(x), x)
    }

    /// The neighbours, among the values that were played, between which the goals are met for the last time or missed for
    /// the last time.
    fn last_crossing(&self) -> Option<(f64, f64)> {
        let mut points: Vec<&Planned> = self.points.iter().collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points.windows(2).rev().find(|pair| pair[0].meets() != pair[1].meets()).map(|pair| (pair[0].x, pair[1].x))
    }

    /// The value nearest to `near`, downwards or upwards, at which it is sure that the goals are met or missed; nothing where
    /// none of those that were played is.
    fn edge(
        &mut self,
        unknown: &Unknown,
        middle: &impl Fn(f64, f64) -> Option<f64>,
        near: f64,
        downwards: bool,
        meets: bool,
    ) -> Result<Option<f64>, Error> {
        if self.at(unknown, near)?.surely() == Some(meets) {
            return Ok(Some(near));
        }
        let beyond = |x: f64| if downwards { x < near } else { x > near };
        let sure = self.points.iter().filter(|point| beyond(point.x) && point.surely() == Some(meets));
        let nearest = sure.map(|point| point.x).min_by(|a, b| (a - near).abs().total_cmp(&(b - near).abs()));
        let Some(mut sure) = nearest else { return Ok(None) };
        let mut doubtful = near;
        for _ in 0..MOST_STEPS {
            let Some(x) = middle(doubtful.min(sure), doubtful.max(sure)) else { break };
            if self.at(unknown, x)?.surely() == Some(meets) { sure = x } else { doubtful = x }
        }
        Ok(Some(sure))
    }
}

/// Whether a key matters only where sessions meet: it is the fleet's, or says how many calls a tool takes in.
fn only_where_sessions_meet(key: &str) -> bool {
    let last = key.rsplit('.').next();
    key.starts_with("fleet.") || matches!(last, Some("capacity" | "queue"))
}

/// Tools and system are cached at every call of a model and of its agents: the best that other sessions can leave behind.
fn keep_prompts_cached(model: &mut Model) {
    let cache = &mut model.cache;
    cache.warm_prefix = 1.0;
    cache.prefix_lifetime_s = f64::INFINITY;
    (cache.breaks.tools, cache.breaks.system) = (0.0, 0.0);
    for tool in &mut model.phase.tools {
        if let Some(agent) = &mut tool.agent {
            keep_prompts_cached(&mut agent.model);
        }
    }
    if let Some(routing) = &mut model.routing {
        keep_prompts_cached(&mut routing.small);
    }
}

/// The goals that sessions surely miss where each is played alone and finds tools and system cached, by their place, with
/// their figures. `measured` sessions is what one value of the key took: a fleet of few isn't kept waiting.
fn missed_alone(
    scenario: &Scenario,
    goals: &[Goal],
    measured: u64,
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Vec<(usize, Reading)>, Error> {
    // enough for the percentiles that there are; `[run]` says nothing of fleets
    const SESSIONS: RangeInclusive<u64> = 1_000..=20_000;
    let judged = |goal: &&Goal| matches!(goal.figure, Figure::Sessions(_)) && !goal.is_helped_by_waiting();
    if !goals.iter().any(|goal| judged(&goal)) {
        return Ok(Vec::new());
    }
    let mut alone = scenario.clone();
    alone.model.fleet = None;
    keep_prompts_cached(&mut alone.model);
    alone.run.sessions = measured.clamp(*SESSIONS.start(), *SESSIONS.end());
    alone.run.precision.clear();
    let played = engine::with_threads(options.threads, || sample(alone, progress)).map_err(Error::Threads)?;
    let missed = |(place, goal): (usize, &Goal)| {
        let Figure::Sessions(statistic) = goal.figure else { return None };
        let reading = statistic.read(&played.summary).filter(|reading| reading.value.is_finite())?;
        let verdict = goal.judge(Some(reading));
        (!verdict.pass && !verdict.undecided).then_some((place, reading))
    };
    Ok(goals.iter().enumerate().filter(|(_, goal)| judged(goal)).filter_map(missed).collect())
}

/// To four digits.
fn significant(x: f64) -> f64 {
    if x <= 0.0 {
        return x;
    }
    let scale = 10_f64.powf(3.0 - x.log10().floor());
    (x * scale).round() / scale
}

fn planned(answer: &Answer, text: &str, x: f64, goals: &[Goal]) -> Planned {
    let fleet = answer.fleet_summary();
    let unsettled = Unsettled::of(answer);
    let judged = |goal: &Goal| {
        let settled = fleet.filter(|_| unsettled.is_none());
        let reading = settled.and_then(|fleet| goal.figure.read(&answer.summary, fleet));
        (reading, goal.judge(reading))
    };
    Planned {
        text: text.to_owned(),
        x,
        goals: goals.iter().map(judged).collect(),
        busiest: fleet.and_then(FleetSummary::bottleneck),
        unsettled,
        turned_away: fleet.and_then(FleetSummary::turns_away),
        sessions: answer.summary.sessions,
    }
}

/// Looks for the least or most value of a key at which a fleet meets all goals, on the same arrivals and draws. `load`
/// reads the scenario with a value of the key.
///
/// # Errors
/// What reading or playing the scenario says.
pub fn plan(
    unknown: &Unknown,
    goals: Vec<Goal>,
    load: &dyn Fn(&str) -> Result<Scenario, Error>,
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Plan, Error> {
    let mut search = Search::new(load, goals, options, progress);
    let is_whole = unknown.kind == Kind::Whole;
    let rounded = |x: f64| unknown.rounded(if is_whole { x } else { significant(x) });
    let (low, high) = (unknown.rounded(unknown.low), unknown.rounded(unknown.high));
    let ends = [search.at(unknown, low)?.meets(), search.at(unknown, high)?.meets()];
    let middle = |low: f64, high: f64| {
        let x = if low > 0.0 { (low * high).sqrt() } else { f64::midpoint(low, high) };
        let x = rounded(x);
        (x > low && x < high && (is_whole || high > low * (1.0 + NEAR))).then_some(x)
    };
    let bracket = if ends[0] == ends[1] {
        for step in 1..6 {
            let share = f64::from(step) / 6.0;
            let x = if low > 0.0 { low * (high / low).powf(share) } else { low + (high - low) * share };
            search.at(unknown, rounded(x))?;
        }
        search.last_crossing()
    } else {
        Some((low, high))
    };
    let found = match bracket {
        None if ends[0] => Found::Everywhere,
        None => Found::Nowhere,
        Some((below, above)) => {
            let rises = search.at(unknown, above)?.meets();
            // from the end that misses to the end that meets, whichever is above
            let (mut misses, mut meets) = if rises { (below, above) } else { (above, below) };
            while let Some(x) = middle(misses.min(meets), misses.max(meets)) {
                if search.at(unknown, x)?.meets() { meets = x } else { misses = x }
            }
            let surely_misses = search.edge(unknown, &middle, misses, rises, false)?;
            let surely_meets = search.edge(unknown, &middle, meets, !rises, true)?;
            // the curve around it
            let around: [f64; 5] = if rises { [0.8, 0.9, 1.1, 1.3, 1.7] } else { [0.3, 0.55, 0.75, 0.9, 1.1] };
            for factor in around {
                let x = rounded(meets * factor);
                if x >= low && x <= high {
                    search.at(unknown, x)?;
                }
            }
            if rises {
                Found::Least { x: meets, between: [surely_misses, surely_meets] }
            } else {
                Found::Most { x: meets, between: [surely_meets, surely_misses] }
            }
        }
    };
    search.finish(&unknown.key, Some(unknown.kind), found)
}

/// Plays the values of a list, and says from which on the goals are met.
///
/// # Errors
/// See [`plan`].
pub fn plan_list(
    key: &str,
    values: &[String],
    goals: Vec<Goal>,
    load: &dyn Fn(&str) -> Result<Scenario, Error>,
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Plan, Error> {
    let mut search = Search::new(load, goals, options, progress);
    for (place, value) in values.iter().enumerate() {
        search.play(value, place as f64)?;
    }
    let met: Vec<bool> = search.points.iter().map(Planned::meets).collect();
    let found = match met.iter().rposition(|meets| !*meets) {
        None => Found::Everywhere,
        Some(last) if last + 1 < met.len() => Found::First(last + 1),
        Some(_) if met.contains(&true) => Found::Mixed,
        Some(_) => Found::Nowhere,
    };
    search.finish(key, None, found)
}
