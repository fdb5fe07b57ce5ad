//! At which value of a key are two figures the same?
//!
//! The two figures' difference is taken on the same sessions at every value that is tried (common random numbers), so
//! that it changes with the key and not by chance, and a sign change can be closed in on from both sides. What is left of
//! chance is the interval of the paired difference: the values at which it covers zero are the interval of the answer
//! (the test of "no difference", inverted).

use super::compare::pair_with;
use super::{Answer, Options, Progress, sample};
use crate::scenario::Scenario;
use crate::stats::{Estimate, Question, Rate, Seen, Side, Statistic, gap};
use crate::{Error, check, engine};

/// What the values of a key are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Whole,
    /// Any numbers.
    Real,
    /// Durations, s.
    Seconds,
}

/// The key whose value is looked for, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Unknown {
    /// Its path, as `--set` takes it.
    pub key: String,
    /// What its values are.
    pub kind: Kind,
    /// The smallest value that is tried.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Unknown {
    /// A value as the scenario file has it.
    pub fn text(&self, x: f64) -> String {
        match self.kind {
            Kind::Whole => format!("{x:.0}"),
            Kind::Real => format!("{x}"),
            // a duration has nanoseconds at the finest
            Kind::Seconds => format!("{}s", format!("{x:.9}").trim_end_matches('0').trim_end_matches('.')),
        }
    }

    /// The smallest step between two values; 0 where there is none.
    fn step(&self) -> f64 {
        match self.kind {
            Kind::Whole => 1.0,
            Kind::Seconds => 1e-9,
            // a price is whole pico-dollars a token
            Kind::Real if self.key.split('.').any(|name| name == "price") => 1e-6,
            Kind::Real => 0.0,
        }
    }

    /// The nearest value that can be written.
    pub(super) fn rounded(&self, x: f64) -> f64 {
        let step = self.step();
        // by its inverse, which is a whole number, so that 0.3 stays 0.3
        if step > 0.0 { (x * (1.0 / step).round()).round() / (1.0 / step).round() } else { x }
    }

    /// Halfway between two values; the lower one where there is nothing between.
    fn halfway(&self, low: f64, high: f64) -> f64 {
        let x = f64::midpoint(low, high);
        if self.kind == Kind::Whole { x.floor() } else { self.rounded(x) }
    }

    /// Between two of the values that are tried first: in the middle, or in equal ratios.
    fn between(&self, low: f64, high: f64) -> f64 {
        if self.low > 0.0 && self.high / self.low >= 4.0 {
            self.rounded((low * high).sqrt())
        } else {
            self.halfway(low, high)
        }
    }

    /// As fine as values are told apart.
    fn is_narrow(&self, low: f64, high: f64) -> bool {
        let relative = if self.kind == Kind::Whole { 0.0 } else { 1e-6 * low.abs().max(high.abs()) };
        high - low <= relative.max(self.step() * (1.0 + 1e-9))
    }

    /// The values that are tried first: a few over the whole range, in equal ratios where it is wide.
    pub fn first_values(&self) -> Vec<f64> {
        const STEPS: u32 = 8;
        let ratio = self.high / self.low;
        let at = |i: u32| {
            let part = f64::from(i) / f64::from(STEPS);
            let x = if self.low > 0.0 && ratio >= 4.0 {
                self.low * ratio.powf(part)
            } else {
                self.low + (self.high - self.low) * part
            };
            self.rounded(x)
        };
        let mut values: Vec<f64> = (0..=STEPS).map(at).collect();
        // the ends are as they were given
        values[0] = self.low;
        values[STEPS as usize] = self.high;
        values.dedup_by(|a, b| (*a - *b).abs() <= 0.0);
        values
    }
}

/// What was found at one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The key's value.
    pub x: f64,
    /// Left and right.
    pub sides: [f64; 2],
    /// Left less right.
    pub difference: Estimate,
    /// The share of sessions that ended with their answer, the smaller one of the two sides.
    pub answered: f64,
}

impl Point {
    /// A tie of a sample is no equality: where chance is left, it counts as larger.
    fn sign(&self) -> i8 {
        let tie = self.difference.value.abs() <= 0.0 && self.is_open();
        if tie { 1 } else { sign(self.difference.value) }
    }

    /// Whether chance leaves something open.
    fn is_open(&self) -> bool {
        self.difference.se > 0.0 || self.difference.ci95[0].is_nan()
    }

    /// The sign where the interval leaves no doubt of it, else 0.
    fn sure_sign(&self) -> i8 {
        if self.is_open() {
            i8::from(self.difference.ci95[0] > 0.0) - i8::from(self.difference.ci95[1] < 0.0)
        } else {
            self.sign()
        }
    }
}

fn sign(x: f64) -> i8 {
    i8::from(x > 0.0) - i8::from(x < 0.0)
}

/// Where the left side goes from one side of the right one to the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Crossing {
    /// The last value that was tried before it, and the first after it. For whole numbers they are neighbours.
    pub between: [f64; 2],
    /// The value itself; for whole numbers the first after the change.
    pub x: f64,
    /// The values that the answer can have, by the interval of the difference; an end is infinite where they go on beyond what
    /// was tried.
    pub ci95: [f64; 2],
    /// The sign of left less right before it and after it; 0 where they are the same.
    pub signs: [i8; 2],
    /// The same by the closed forms of both sides, where there are any.
    pub theory: Option<f64>,
    /// `cache.lifetime_break_even`: (share of gaps that break even, share that outlasted the shorter lifetime here, with
    /// the lifetimes, s).
    pub gaps: Option<(f64, Estimate, [f64; 2])>,
}

impl Crossing {
    /// Whether both sides are exactly equal at the value.
    pub fn is_exact(&self) -> bool {
        self.between[0].to_bits() == self.between[1].to_bits()
    }
}

/// What became of a question.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The scenario of the left side (of the figure, where the left is a number) at the smallest value.
    pub scenario: Scenario,
    /// Sessions that were played at each value.
    pub sessions: u64,
    /// What was looked for.
    pub unknown: Unknown,
    /// What was asked.
    pub question: Question,
    /// Every value that was tried, rising.
    pub points: Vec<Point>,
    /// Where the sides are equal, rising; none where they nowhere are in the range.
    pub crossings: Vec<Crossing>,
    /// The closed forms that disagree with the simulation at one of the values, if any do.
    pub wrong_at: Vec<f64>,
}

/// Loads the scenario of a strategy with the key set to a value.
pub trait Load {
    /// # Errors
    /// Where the value, or something else, is wrong.
    fn load(&self, strategy: &str, value: &str) -> Result<Scenario, Error>;
}

impl<F: Fn(&str, &str) -> Result<Scenario, Error>> Load for F {
    fn load(&self, strategy: &str, value: &str) -> Result<Scenario, Error> {
        self(strategy, value)
    }
}

/// How often more values are tried where none of the first changes the sign.
const FINER_ROUNDS: u32 = 4;

/// Plays values and remembers what came out.
struct Solver<'a> {
    unknown: &'a Unknown,
    question: &'a Question,
    load: &'a dyn Load,
    options: Options<'a>,
    progress: &'a dyn Progress,
    first: Option<Answer>,
    points: Vec<Point>,
    wrong_at: Vec<f64>,
}

/// Looks for the values of a key at which both sides of a question are equal.
///
/// # Errors
/// Where a value can't be loaded, a figure doesn't apply, or the sample is too small for one of them.
pub fn solve(
    unknown: Unknown,
    question: Question,
    load: &dyn Load,
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Solution, Error> {
    let mut solver = Solver {
        unknown: &unknown,
        question: &question,
        load,
        options,
        progress,
        first: None,
        points: Vec::new(),
        wrong_at: Vec::new(),
    };
    // a mistake at either end is told before anything is played
    for x in [unknown.high, unknown.low] {
        solver.scenarios(x)?;
    }
    let mut known = Vec::new();
    for x in unknown.first_values() {
        known.push(solver.at(x)?);
    }
    // where no sign changes, between them too, and then beside the smallest difference: a curve may turn round there
    for round in 0..FINER_ROUNDS {
        if known.windows(2).any(|pair| pair[0].sign() != pair[1].sign()) {
            break;
        }
        let size = |point: &Point| point.difference.value.abs();
        let nearest = (0..known.len()).min_by(|a, b| size(&known[*a]).total_cmp(&size(&known[*b]))).unwrap_or(0);
        let mut more = Vec::new();
        for (index, pair) in known.windows(2).enumerate() {
            let beside = index == nearest || index + 1 == nearest;
            let x = unknown.between(pair[0].x, pair[1].x);
            if (round == 0 || beside) && x > pair[0].x && x < pair[1].x {
                more.push(x);
            }
        }
        for x in more {
            known.push(solver.at(x)?);
        }
        known.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let mut crossings: Vec<Crossing> = Vec::new();
    for pair in known.windows(2) {
        let [before, after] = pair else { continue };
        if before.sign() == after.sign() {
            continue;
        }
        let crossing = solver.close_in(before.clone(), after.clone())?;
        match crossings.last_mut() {
            // through zero at a value that was tried: one crossing, not two
            Some(last) if last.signs[1] == 0 && solver.unknown.is_narrow(last.x, crossing.between[0]) => {
                last.signs[1] = crossing.signs[1];
                last.between = [last.x, last.x];
            }
            _ => crossings.push(crossing),
        }
    }
    for crossing in &mut crossings {
        solver.widen(crossing)?;
        crossing.theory = solver.theory(crossing)?;
        crossing.gaps = solver.gaps(crossing.x)?;
    }
    let Solver { first, mut points, wrong_at, .. } = solver;
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let first = first.ok_or_else(|| Error::Solve("nothing was played".to_owned()))?;
    let sessions = first.summary.sessions;
    Ok(Solution { scenario: first.scenario, sessions, unknown, question, points, crossings, wrong_at })
}

impl Solver<'_> {
    /// The scenario of each figure at a value; nothing for a number.
    fn scenarios(&self, x: f64) -> Result<[Option<Scenario>; 2], Error> {
        let value = self.unknown.text(x);
        let load = |side: &Side| match side {
            Side::Number { .. } => Ok(None),
            Side::Figure { name, statistic, strategy, .. } => {
                let scenario = self.load.load(strategy, &value)?;
                if statistic.applies(&scenario.model) {
                    Ok(Some(scenario))
                } else {
                    Err(Error::Solve(format!("`{name}` doesn't apply to {strategy} at {} = {value}", self.unknown.key)))
                }
            }
        };
        let [left, right] = &self.question.sides;
        Ok([load(left)?, load(right)?])
    }

    fn play(&mut self, mut scenario: Scenario) -> Result<Answer, Error> {
        pair_with(&mut scenario, self.first.as_ref())?;
        let played = engine::with_threads(self.options.threads, || sample(scenario, self.progress));
        let answer = played.map_err(Error::Threads)?;
        if self.first.is_none() {
            self.first = Some(answer.clone());
        }
        Ok(answer)
    }

    /// What is known of a value, played where it has to be.
    fn at(&mut self, x: f64) -> Result<Point, Error> {
        if let Some(known) = self.points.iter().find(|point| (point.x - x).abs() <= 0.0) {
            return Ok(known.clone());
        }
        let [left, right] = self.scenarios(x)?;
        let same = match (&self.question.sides[0], &self.question.sides[1]) {
            (Side::Figure { strategy, .. }, Side::Figure { strategy: other, .. }) => strategy == other,
            _ => false,
        };
        let left = left.map(|scenario| self.play(scenario)).transpose()?;
        let right = if same { left.clone() } else { right.map(|scenario| self.play(scenario)).transpose()? };
        let answers = [left, right];
        let mut seen = Vec::new();
        for (side, answer) in self.question.sides.iter().zip(&answers) {
            seen.push(match (side, answer) {
                (Side::Figure { statistic, .. }, Some(answer)) => {
                    Seen::Figure(*statistic, &answer.sample, &answer.summary)
                }
                (Side::Number { value, .. }, _) => Seen::Number(*value),
                (Side::Figure { name, .. }, None) => return Err(Error::Solve(format!("`{name}` wasn't played"))),
            });
        }
        let [left, right] = seen[..] else { return Err(Error::Solve("a question has two sides".to_owned())) };
        let text = self.unknown.text(x);
        if left.is_too_few() || right.is_too_few() {
            let why = "fewer than ten sessions lie beyond that quantile; give more --sessions";
            return Err(Error::Solve(format!("at {} = {text}: {why}", self.unknown.key)));
        }
        let world = self.first.as_ref().map_or(1, |first| first.scenario.run.seed);
        let difference = gap(left, right, |number| engine::rng::replicate(world, number));
        let (Some(a), Some(b), Some(difference)) = (left.value(), right.value(), difference) else {
            let key = &self.unknown.key;
            return Err(Error::Solve(format!("at {key} = {text} one of the figures has no values")));
        };
        if !(a.is_finite() && b.is_finite() && difference.value.is_finite()) {
            return Err(Error::Solve(format!("at {} = {text} one of the figures isn't finite", self.unknown.key)));
        }
        let agrees = |answer: &Answer| check::check(&answer.scenario.model, &answer.sample).all_pass();
        if !answers.iter().flatten().all(agrees) {
            self.wrong_at.push(x);
        }
        let share = |answer: &Answer| answer.summary.rate(Rate::Answered).map_or(1.0, |rate| rate.value);
        let answered = answers.iter().flatten().map(share).fold(1.0, f64::min);
        let point = Point { x, sides: [a, b], difference, answered };
        self.points.push(point.clone());
        Ok(point)
    }

    /// Closes in on a sign change: by halves for whole numbers, and else where a line through both ends would cross,
    /// with the weight of an end that stays halved (Dowell and Jarratt 1971, the Illinois rule).
    fn close_in(&mut self, mut before: Point, mut after: Point) -> Result<Crossing, Error> {
        const MOST_STEPS: u32 = 60;
        let signs = [before.sign(), after.sign()];
        let mut weights = [before.difference.value, after.difference.value];
        let mut last_moved = None;
        for step in 0..MOST_STEPS {
            if self.unknown.is_narrow(before.x, after.x) || self.is_inside_the_noise(&before, &after) {
                break;
            }
            let through_zero = signs[0] * signs[1] < 0;
            let by_halves = self.unknown.kind == Kind::Whole || !through_zero || step % 4 == 3;
            let halfway = self.unknown.halfway(before.x, after.x);
            let mut x = if by_halves {
                halfway
            } else {
                self.unknown.rounded(before.x + (after.x - before.x) * weights[0] / (weights[0] - weights[1]))
            };
            if !(x > before.x && x < after.x) {
                x = halfway;
            }
            let point = self.at(x)?;
            let is_before = point.sign() == signs[0];
            if point.sign() == 0 && through_zero {
                return Ok(Crossing { between: [x, x], x, ci95: [x, x], signs, theory: None, gaps: None });
            }
            let moved = usize::from(!is_before);
            if last_moved == Some(moved) {
                weights[1 - moved] /= 2.0;
            }
            last_moved = Some(moved);
            weights[moved] = point.difference.value;
            *(if is_before { &mut before } else { &mut after }) = point;
        }
        let (a, b) = (before.difference.value, after.difference.value);
        let x = match self.unknown.kind {
            Kind::Whole => after.x,
            // where they become the same, or were the same for the last time
            _ if signs[1] == 0 => after.x,
            _ if signs[0] == 0 => before.x,
            _ if a * b < 0.0 => self.unknown.rounded(before.x + (after.x - before.x) * a / (a - b)),
            _ => self.unknown.halfway(before.x, after.x),
        };
        Ok(Crossing { between: [before.x, after.x], x, ci95: [before.x, after.x], signs, theory: None, gaps: None })
    }

    /// Whether both ends differ by far less than chance leaves open.
    fn is_inside_the_noise(&self, before: &Point, after: &Point) -> bool {
        let half = (before.difference.ci95[1] - before.difference.ci95[0]) / 2.0;
        let apart = (before.difference.value - after.difference.value).abs();
        self.unknown.kind != Kind::Whole && half > 0.0 && apart < 0.02 * half
    }

    /// The interval of a crossing: on each side the last value at which the difference isn't sure.
    fn widen(&mut self, crossing: &mut Crossing) -> Result<(), Error> {
        if crossing.is_exact() {
            crossing.ci95 = crossing.between;
            return Ok(());
        }
        for (end, wanted) in crossing.signs.into_iter().enumerate() {
            let x = crossing.between[end];
            // of the values tried on this side, nearest first, the first that is sure
            let mut tried: Vec<Point> =
                self.points.iter().filter(|p| if end == 0 { p.x <= x } else { p.x >= x }).cloned().collect();
            tried.sort_by(|a, b| (a.x - x).abs().total_cmp(&(b.x - x).abs()));
            let sure = tried.iter().position(|point| point.sure_sign() == wanted && wanted != 0);
            crossing.ci95[end] = match sure {
                // the sign is sure right beside the crossing
                Some(0) => self.first_possible(x, end),
                Some(place) => self.edge(tried[place - 1].x, tried[place].x, wanted, end)?,
                None if wanted == 0 => x,
                None if end == 0 => f64::NEG_INFINITY,
                None => f64::INFINITY,
            };
        }
        Ok(())
    }

    /// The last value at which the change can be, next to one at which the sign is sure. Of whole numbers the answer is
    /// the first after the change.
    fn first_possible(&self, sure: f64, end: usize) -> f64 {
        if self.unknown.kind == Kind::Whole && end == 0 { sure + 1.0 } else { sure }
    }

    /// Between a value whose sign isn't sure and one whose is: where it becomes so, to a hundredth of their distance.
    fn edge(&mut self, mut unsure: f64, mut sure: f64, wanted: i8, end: usize) -> Result<f64, Error> {
        let apart = (sure - unsure).abs();
        while (sure - unsure).abs() > 0.01 * apart && !self.unknown.is_narrow(unsure.min(sure), unsure.max(sure)) {
            let x = self.unknown.halfway(unsure, sure);
            if self.at(x)?.sure_sign() == wanted { sure = x } else { unsure = x }
        }
        Ok(self.first_possible(sure, end))
    }

    /// Left less right by closed forms at a value.
    fn expected(&self, x: f64) -> Result<Option<f64>, Error> {
        let scenarios = self.scenarios(x)?;
        let side = |(side, scenario): (&Side, &Option<Scenario>)| match (side, scenario) {
            (Side::Number { value, .. }, _) => Some(*value),
            (Side::Figure { statistic, .. }, Some(scenario)) => check::expected(&scenario.model, *statistic),
            _ => None,
        };
        let mut sides = self.question.sides.iter().zip(&scenarios).map(side);
        let (left, right) = (sides.next().flatten(), sides.next().flatten());
        Ok(left.zip(right).map(|(left, right)| left - right))
    }

    /// The crossing of the closed forms, by halves: the one that the simulation's lies in, or else the nearest that changes
    /// in the same way.
    fn theory(&self, crossing: &Crossing) -> Result<Option<f64>, Error> {
        const MOST_STEPS: u32 = 24;
        let unknown = self.unknown;
        let [mut low, mut high] = crossing.between;
        let finite = |x: f64, otherwise: f64| if x.is_finite() { x } else { otherwise };
        let chance = finite(crossing.ci95[1], high) - finite(crossing.ci95[0], low);
        let mut step = chance.max(unknown.step()).max(1e-6 * crossing.x.abs());
        let (mut at_low, mut at_high) = (self.expected(low)?, self.expected(high)?);
        for _ in 0..MOST_STEPS {
            let (Some(a), Some(b)) = (at_low, at_high) else { return Ok(None) };
            if crossing.is_exact() && sign(a) == 0 {
                return Ok(Some(low));
            }
            if sign(a) == crossing.signs[0] && sign(b) == crossing.signs[1] && low < high {
                break;
            }
            if low <= unknown.low && high >= unknown.high {
                return Ok(None);
            }
            (low, high) =
                (unknown.rounded((low - step).max(unknown.low)), unknown.rounded((high + step).min(unknown.high)));
            (at_low, at_high) = (self.expected(low)?, self.expected(high)?);
            step *= 1.5;
        }
        let fits = |x: Option<f64>, end: usize| x.is_some_and(|x| sign(x) == crossing.signs[end]);
        if !fits(at_low, 0) || !fits(at_high, 1) {
            return Ok(None);
        }
        while !unknown.is_narrow(low, high) {
            let x = unknown.halfway(low, high);
            let Some(between) = self.expected(x)? else { return Ok(None) };
            if sign(between) == crossing.signs[0] { low = x } else { high = x }
        }
        Ok(Some(high))
    }

    /// The break-even of two cache lifetimes at a value, where both sides are costs that differ in nothing else.
    fn gaps(&mut self, x: f64) -> Result<Option<(f64, Estimate, [f64; 2])>, Error> {
        let is_cost = |side: &Side| {
            matches!(side, Side::Figure { statistic: Statistic::Mean(metric), .. }
                if ["cost_usd", "cost_input_usd"].contains(&metric.quantity().name()))
        };
        if !self.question.sides.iter().all(is_cost) {
            return Ok(None);
        }
        let [Some(left), Some(right)] = self.scenarios(x)? else { return Ok(None) };
        // they may differ in nothing but the lifetime
        let differ = left.changes(&right);
        if differ.is_empty() || differ.iter().any(|change| change.key != "cache.lifetime") {
            return Ok(None);
        }
        let Some(share) = check::lifetime_break_even(&left.model, &right.model) else { return Ok(None) };
        let [short, long] =
            if left.model.cache.lifetime_s < right.model.cache.lifetime_s { [left, right] } else { [right, left] };
        let lifetimes = [short.model.cache.lifetime_s, long.model.cache.lifetime_s];
        // the form knows no gap that outlasts the longer one
        let outlasted = self.play(long)?.summary.rate(Rate::GapExpired).is_none_or(|rate| rate.value > 0.0);
        if outlasted {
            return Ok(None);
        }
        let answer = self.play(short)?;
        Ok(answer.summary.rate(Rate::GapExpired).map(|seen| (share, *seen, lifetimes)))
    }
}
