//! Provider limits: token buckets that are refilled continuously.

use super::clock::seconds;
use super::recorder::PIECES;
use crate::model::{LimitRules, Limits, OutputRule};
use crate::session::{Ruling, Sending};

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum LimitKind {
    Requests,
    InputTokens,
    OutputTokens,
    Tokens,
}

impl LimitKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Requests, Self::InputTokens, Self::OutputTokens, Self::Tokens];

    /// Its key in the scenario.
    pub fn key(self) -> &'static str {
        match self {
            Self::Requests => "requests_per_minute",
            Self::InputTokens => "input_tokens_per_minute",
            Self::OutputTokens => "output_tokens_per_minute",
            Self::Tokens => "tokens_per_minute",
        }
    }
}

/// What a limit did between the warm-up and the horizon.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRecord {
    /// What it counts.
    pub kind: LimitKind,
    /// What is allowed, a minute.
    pub per_minute: f64,
    /// The most that it passes at once.
    pub capacity: f64,
    /// What it passed.
    pub passed: f64,
    /// What it passed in each piece of the horizon.
    pub pieces: Vec<f64>,
    /// Requests that found too little of it.
    pub short: u64,
    /// Of those, requests that would find too little of it even if it were full.
    pub impossible: u64,
    /// The most that passed in a window, less what flowed in during it; over the whole replication (MODEL.md `limit.bucket`).
    pub worst_window: f64,
    /// Whether all that passes it is known when it is admitted, so that the bound holds.
    pub is_exact: bool,
}

#[derive(Debug)]
struct Bucket {
    record: LimitRecord,
    per_s: f64,
    level: f64,
    at_ns: u64,
    /// What passed so far, and the least that this was ahead of what flowed in.
    all_passed: f64,
    least: f64,
}

/// Tokens are whole, and a time is rounded to a nanosecond: less than this is a rounding error.
const ROUNDING: f64 = 1e-3;

impl Bucket {
    fn new(kind: LimitKind, per_minute: f64, burst_s: f64, rules: &LimitRules) -> Self {
        let per_s = per_minute / 60.0;
        let capacity = per_s * burst_s;
        let is_exact = match (kind, rules.output) {
            (LimitKind::Requests, _) => !rules.rejected_count,
            (LimitKind::InputTokens, _) | (_, OutputRule::Reserved) => true,
            _ => false,
        };
        let (passed, short, impossible, worst_window) = (0.0, 0, 0, 0.0);
        let pieces = vec![0.0; PIECES];
        let record =
            LimitRecord { kind, per_minute, capacity, passed, pieces, short, impossible, worst_window, is_exact };
        Self { record, per_s, level: capacity, at_ns: 0, all_passed: 0.0, least: f64::INFINITY }
    }

    fn flow(&mut self, now_ns: u64) {
        self.level = (self.level + self.per_s * seconds(now_ns - self.at_ns)).min(self.record.capacity);
        self.at_ns = now_ns;
    }

    fn take(&mut self, amount: f64, now_ns: u64, piece: usize) {
        self.level -= amount;
        self.record.passed += amount;
        if let Some(sum) = self.record.pieces.get_mut(piece) {
            *sum += amount;
        }
        let flowed = self.per_s * seconds(now_ns);
        self.least = self.least.min(self.all_passed - flowed);
        self.all_passed += amount;
        self.record.worst_window = self.record.worst_window.max(self.all_passed - flowed - self.least);
    }
}

/// The limits of one provider.
#[derive(Debug)]
pub(super) struct Limiter {
    rules: LimitRules,
    buckets: [Option<Bucket>; 4],
    is_on: bool,
}

impl Limiter {
    pub fn new(limits: &Limits) -> Self {
        let rates = [
            limits.requests_per_minute,
            limits.input_tokens_per_minute,
            limits.output_tokens_per_minute,
            limits.tokens_per_minute,
        ];
        let bucket = |kind: LimitKind| {
            rates[kind as usize].map(|per_minute| Bucket::new(kind, per_minute, limits.burst_s, &limits.rules))
        };
        Self { rules: limits.rules, buckets: LimitKind::ALL.map(bucket), is_on: limits.any_rate() }
    }

    /// Whether anything is limited but the number of calls at a time.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins to count anew: the warm-up is over.
    pub fn start_counting(&mut self) {
        for bucket in self.buckets.iter_mut().flatten() {
            let record = &mut bucket.record;
            (record.passed, record.short, record.impossible) = (0.0, 0, 0);
        }
    }

    /// What a call needs of each limit when it begins: the amount to be taken, and the level that has to be there.
    fn needs(&self, call: &Sending) -> [(f64, f64); 4] {
        let rules = &self.rules;
        let read = if rules.cache_reads_count { 0 } else { call.hit_tokens };
        let input = (call.prompt_tokens - read) as f64;
        let most = rules.max_output_tokens as f64;
        let same = |amount: f64| (amount, amount);
        match rules.output {
            // what will be written isn't known yet; it is enough that something is left
            OutputRule::Written => [same(1.0), same(input), (0.0, 1.0), same(input)],
            OutputRule::Reserved => [same(1.0), same(input), same(most), same(most.max(input))],
            OutputRule::Settled { .. } => [same(1.0), same(input), same(most), same(input + most)],
        }
    }

    /// Whether a call is let through.
    pub fn admit(&mut self, call: &Sending, now_ns: u64, piece: usize) -> Ruling {
        let needs = self.needs(call);
        let (mut wait_s, mut is_short) = (0.0_f64, false);
        for (bucket, (_, level)) in self.buckets.iter_mut().zip(needs) {
            let Some(bucket) = bucket else { continue };
            bucket.flow(now_ns);
            let lacks = level - bucket.level;
            if lacks > ROUNDING {
                is_short = true;
                bucket.record.short += 1;
                bucket.record.impossible += u64::from(level > bucket.record.capacity);
                wait_s = wait_s.max(lacks / bucket.per_s);
            }
        }
        if is_short {
            if let (true, Some(requests)) = (self.rules.rejected_count, &mut self.buckets[0]) {
                requests.take(requests.level.clamp(0.0, 1.0), now_ns, piece);
            }
            // a server names whole seconds (RFC 9110, §10.2.3)
            return Ruling::Reject { retry_after_s: if self.rules.retry_after { wait_s.ceil() } else { 0.0 } };
        }
        for (bucket, (amount, _)) in self.buckets.iter_mut().zip(needs) {
            if let Some(bucket) = bucket {
                bucket.take(amount, now_ns, piece);
            }
        }
        Ruling::Pass
    }

    /// A call that was let through has ended, and has written so much.
    pub fn ended(&mut self, output_tokens: u64, now_ns: u64, piece: usize) {
        let output = output_tokens as f64;
        let more = match self.rules.output {
            OutputRule::Reserved => return,
            OutputRule::Written => output,
            OutputRule::Settled { burndown } => output * burndown - self.rules.max_output_tokens as f64,
        };
        for kind in [LimitKind::OutputTokens, LimitKind::Tokens] {
            if let Some(bucket) = &mut self.buckets[kind as usize] {
                bucket.flow(now_ns);
                bucket.take(more, now_ns, piece);
                bucket.level = bucket.level.min(bucket.record.capacity);
            }
        }
    }

    pub fn records(&self) -> Vec<LimitRecord> {
        self.buckets.iter().flatten().map(|bucket| bucket.record.clone()).collect()
    }
}
