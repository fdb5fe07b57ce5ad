//! The runs of one session: on a small model first, again without it, again until it succeeds (MODEL.md §4.12).

use super::draws::{Draws, Purpose};
use super::ledger::Bill;
use super::record::{Outcome, Record};
use super::spend::Used;
use crate::model::{Model, SuccessChance};

/// One run: a session of `model`.
#[derive(Debug)]
pub struct Run<'m, D> {
    /// What is played.
    pub model: &'m Model,
    /// Its draws. The first run's are the session's own, so that its world is the same with and without further runs.
    pub draws: D,
    /// What the runs before it have used.
    pub before: Used,
    /// Its number, from 0.
    pub number: u64,
    /// When it begins, the user's waits counted, s.
    pub origin_s: f64,
    /// Whether it finds tools and system in the cache, where an earlier run decides that.
    pub warm: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A new try.
    Try,
    /// The small model's run is under way, and will have to be done again or not.
    Small {
        redo: bool,
    },
    /// The same try without the small model.
    Redo,
    /// A run that decides its try is under way.
    Deciding,
    Nothing,
}

/// Says which run comes next, and adds up what they come to.
#[derive(Debug)]
pub struct Runs<'m, D> {
    model: &'m Model,
    draws: D,
    next: Next,
    before: Used,
    /// Time so far, the user's waits counted, s; and when each model's prefix was last used: the main one's, the small
    /// one's.
    clock_s: f64,
    used_at_s: [Option<f64>; 2],
    is_small: bool,
    /// Runs, tries, runs on the small model and repetitions before the one that is under way.
    counts: [u64; 4],
    total: Record,
    bill: Bill,
}

impl<'m, D: Draws + Copy> Runs<'m, D> {
    /// Of a session before its first run.
    pub fn new(model: &'m Model, draws: D) -> Self {
        let bill = Bill::default();
        Self {
            model,
            draws,
            next: Next::Try,
            before: Used::default(),
            clock_s: 0.0,
            used_at_s: [None; 2],
            is_small: false,
            counts: [0; 4],
            total: Record::default(),
            bill,
        }
    }

    /// The next run, until there is none.
    pub fn begin(&mut self) -> Option<Run<'m, D>> {
        let number = self.total.runs;
        let total = &self.total;
        self.counts = [total.runs, total.tries, total.small_runs, total.redone];
        let mut model = self.model;
        self.is_small = false;
        match (self.next, &self.model.routing) {
            (Next::Nothing, _) => return None,
            (Next::Try, Some(routing)) => {
                let tries = self.total.tries;
                let is_small = self.draws.uniform(Purpose::Route, tries, 0) < routing.share;
                let redo = is_small && self.draws.uniform(Purpose::Route, tries, 1) < routing.redo;
                self.next = if is_small { Next::Small { redo } } else { Next::Deciding };
                self.total.tries += 1;
                self.total.small_runs += u64::from(is_small);
                self.is_small = is_small;
                if is_small {
                    model = &routing.small;
                }
            }
            (next, _) => {
                self.total.tries += u64::from(next == Next::Try);
                self.total.redone += u64::from(next == Next::Redo);
                self.next = Next::Deciding;
            }
        }
        self.total.runs += 1;
        let draws = if number == 0 { self.draws } else { self.draws.child(Purpose::Run, number, 0) };
        // the same model's prompt is cached as long as it lives, whatever ran in between
        let used_at_s = self.used_at_s[usize::from(self.is_small)];
        let is_warm = |used_at_s: f64| self.clock_s - used_at_s <= model.cache.prefix_lifetime_s;
        let warm = used_at_s.filter(|used_at_s| is_warm(*used_at_s)).map(|_| true);
        Some(Run { model, draws, before: self.before, number, origin_s: self.clock_s, warm })
    }

    /// Takes in a run that is over.
    pub fn ended(&mut self, record: &Record, bill: &Bill) {
        let used_at_s = &mut self.used_at_s[usize::from(self.is_small)];
        *used_at_s = record.prefix_used_at_s.map(|at_s| self.clock_s + at_s).or(*used_at_s);
        self.clock_s += record.elapsed_s;
        self.total.add(record);
        self.bill.add(bill);
        self.before = Used {
            usd: self.total.cost,
            tokens: self.total.input_tokens + self.total.output_tokens + self.total.agents.tokens(),
            turns: self.total.turns,
            busy_s: self.total.latency_s,
        };
        // a budget that stops one run stops them all; one that lets none begin makes no run
        if record.stopped_by.is_some() {
            if record.model_calls == 0 && self.counts[0] > 0 {
                let total = &mut self.total;
                [total.runs, total.tries, total.small_runs, total.redone] = self.counts;
            }
            self.next = Next::Nothing;
            return;
        }
        if self.next == (Next::Small { redo: true }) {
            self.next = Next::Redo;
            return;
        }
        let Some(wanted) = &self.model.success else {
            self.next = Next::Nothing;
            return;
        };
        let chance = match wanted.chance {
            SuccessChance::Session(chance) => chance,
            SuccessChance::Turn(chance) => chance.powi(i32::try_from(record.turns).unwrap_or(i32::MAX)),
        };
        let served = record.outcome == Outcome::Answered && record.served;
        self.total.succeeded = served && self.draws.uniform(Purpose::Success, self.total.tries, 0) < chance;
        let goes_on = !self.total.succeeded && self.total.tries < u64::from(wanted.attempts);
        self.next = if goes_on { Next::Try } else { Next::Nothing };
    }

    /// The sums over all runs.
    pub fn finish(self) -> (Record, Bill) {
        (self.total, self.bill)
    }
}
