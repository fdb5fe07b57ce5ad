//! The rules of one session, apart from clocks, threads and files.
//!
//! A [`Session`] is a state machine. Whoever drives it asks for the next step, says at what time the call starts, plays
//! the tool phase, and hands it back. Randomness comes only through [`Draws`]: the rules say which purpose and turn a
//! draw is for and never make a generator.

mod call;
mod draws;
mod ledger;
mod phase;
mod record;

pub use call::{AttemptEnd, Fate, Progress, ToolCall};
pub use draws::{Draws, Purpose};
pub use ledger::{Bill, Class, Ledger, Source};
pub use phase::{PhaseEnd, PhaseTotals, ToolTotals, Workspace, play_phase};
pub use record::{Outcome, Record, Turn};

use crate::dist::Whole;
use crate::model::Model;
use crate::price::Usage;

/// What a session wants next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A model call.
    Call(Call),
    /// Nothing: it is over.
    End(Outcome),
}

/// One model call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// Its number, from 1.
    pub turn: u64,
    /// All tokens that are sent.
    pub prompt_tokens: u64,
    /// Those of them that are read from the cache.
    pub hit_tokens: u64,
    /// Tokens that the model writes.
    pub output_tokens: u64,
    /// From the request to the first token, s.
    pub first_token_s: f64,
    /// From the first token to the last, s.
    pub writing_s: f64,
    /// Whether this call is the answer; otherwise a tool phase follows.
    pub answers: bool,
}

impl Call {
    /// From the request to the last token, s.
    pub fn duration_s(&self) -> f64 {
        self.first_token_s + self.writing_s
    }
}

/// One session under way.
#[derive(Debug)]
pub struct Session<'m, D> {
    model: &'m Model,
    draws: D,
    turns: u64,
    prefix_tokens: u64,
    system_tokens: u64,
    prompt_tokens: u64,
    turn: u64,
    answered: bool,
    /// What the last call left in the cache, tokens.
    cached_tokens: u64,
    last_start_s: f64,
    /// Sums so far.
    record: Record,
    ledger: Ledger,
}

/// A count of tokens as a number: counts stay far below 2⁶³, and from a signed number it is one instruction.
fn real(tokens: u64) -> f64 {
    tokens as i64 as f64
}

/// A whole number: by inversion of one uniform where that is a look into a table, else from a stream.
#[inline]
fn draw_whole<D: Draws>(draws: &D, law: &Whole, purpose: Purpose, turn: u64) -> u64 {
    match law.as_constant() {
        Some(value) => value,
        None if law.has_table() => law.at(draws.bits(purpose, turn, 0)),
        None => law.draw(&mut draws.stream(purpose, turn)),
    }
}

impl<'m, D: Draws> Session<'m, D> {
    /// A session before its first call.
    pub fn new(model: &'m Model, draws: D) -> Self {
        let turns = draw_whole(&draws, &model.turns, Purpose::Turns, 0);
        let system_tokens = draw_whole(&draws, &model.prompt.system, Purpose::System, 0);
        let task_tokens = draw_whole(&draws, &model.prompt.task, Purpose::Task, 0);
        let prefix_tokens = model.prompt.definition_tokens() + system_tokens;
        let fixed_tokens = prefix_tokens + task_tokens;
        Self {
            model,
            draws,
            turns,
            prefix_tokens,
            system_tokens,
            prompt_tokens: fixed_tokens,
            turn: 0,
            answered: false,
            cached_tokens: 0,
            last_start_s: 0.0,
            record: Record::default(),
            ledger: Ledger::new(fixed_tokens, prefix_tokens, model.cache.enabled),
        }
    }

    /// What comes next, if it starts at `now_s`.
    #[inline]
    pub fn next_step(&mut self, now_s: f64) -> Step {
        if self.answered {
            return Step::End(Outcome::Answered);
        }
        if self.turn >= self.model.max_turns {
            return Step::End(Outcome::TurnLimit);
        }
        if self.prompt_tokens > self.model.window_tokens {
            return Step::End(Outcome::ContextFull);
        }
        self.turn += 1;
        Step::Call(self.call(now_s))
    }

    fn call(&mut self, now_s: f64) -> Call {
        let (model, turn, prompt_tokens) = (self.model, self.turn, self.prompt_tokens);
        let hit_tokens = self.look_up(now_s);
        let output_tokens = draw_whole(&self.draws, &model.output, Purpose::Output, turn);
        let tier = model.tariff.as_ref().map_or(0, |tariff| tariff.tier_of(prompt_tokens));
        let cacheable = model.cache.enabled && prompt_tokens >= model.cache.min_tokens;
        self.ledger.call(tier, prompt_tokens, hit_tokens, cacheable, output_tokens);

        let timing = &model.timing;
        let first_token_s = match timing.first_token_s.as_constant() {
            Some(fixed) => fixed,
            None => timing.first_token_s.draw(&mut self.draws.stream(Purpose::FirstToken, turn)),
        } + real(prompt_tokens - hit_tokens) * timing.prefill_s_per_token
            + real(hit_tokens) * timing.cached_prefill_s_per_token;
        let writing_s = match &timing.output_rate {
            None => 0.0,
            Some(rate) => {
                real(output_tokens)
                    / match rate.as_constant() {
                        Some(fixed) => fixed,
                        None => rate.draw(&mut self.draws.stream(Purpose::OutputRate, turn)),
                    }
            }
        };
        self.last_start_s = now_s;
        self.cached_tokens = if cacheable { prompt_tokens } else { 0 };
        self.prompt_tokens += output_tokens;
        self.answered = turn == self.turns;

        let record = &mut self.record;
        record.turns += 1;
        record.model_s += first_token_s + writing_s;
        record.first_token_s += first_token_s;
        Call { turn, prompt_tokens, hit_tokens, output_tokens, first_token_s, writing_s, answers: self.answered }
    }

    /// The longest cached prefix that is still valid at `now_s` (MODEL.md §3).
    #[inline]
    fn look_up(&mut self, now_s: f64) -> u64 {
        let cache = &self.model.cache;
        if !cache.enabled {
            return 0;
        }
        let valid = if self.turn == 1 {
            let warm = cache.warm_prefix > 0.0
                && self.prefix_tokens >= cache.min_tokens
                && self.draws.uniform(Purpose::Warm, 0, 0) < cache.warm_prefix;
            if warm { self.prefix_tokens } else { 0 }
        } else {
            let gap_s = now_s - self.last_start_s;
            if gap_s <= cache.lifetime_s {
                self.cached_tokens
            } else {
                let prefix_lives = gap_s <= cache.prefix_lifetime_s;
                let prefix = if self.prefix_tokens >= cache.min_tokens { self.prefix_tokens } else { 0 };
                let kept = if prefix_lives { prefix.min(self.cached_tokens) } else { 0 };
                self.record.expired_gaps += u64::from(kept < self.cached_tokens);
                kept
            }
        };
        if self.prompt_tokens < cache.min_tokens {
            return 0;
        }
        if cache.granularity_tokens <= 1 { valid } else { valid - valid % cache.granularity_tokens }
    }

    /// Takes in the tool phase of the last call.
    #[inline]
    pub fn after_tools(&mut self, phase: PhaseEnd) {
        self.prompt_tokens += phase.result_tokens;
        self.record.phases += 1;
        self.record.tool_s += phase.duration_s;
        self.record.phase_s_squared += phase.duration_s * phase.duration_s;
    }

    /// The tokens of a call by class.
    pub fn usage(&self, call: &Call) -> Usage {
        let cache = &self.model.cache;
        let fresh = call.prompt_tokens - call.hit_tokens;
        let mut usage = Usage { read_tokens: call.hit_tokens, output_tokens: call.output_tokens, ..Usage::default() };
        if cache.enabled && call.prompt_tokens >= cache.min_tokens {
            usage.written_prefix_tokens = self.prefix_tokens.saturating_sub(call.hit_tokens);
            usage.written_messages_tokens = fresh - usage.written_prefix_tokens;
        } else {
            usage.plain_tokens = fresh;
        }
        usage
    }

    /// The draws of this session, for its tool phases.
    pub fn draws(&self) -> &D {
        &self.draws
    }

    /// Closes the books. `phases` are the sums over the tool phases, `latency_s` the time from the first request to the
    /// end.
    pub fn finish(self, outcome: Outcome, phases: &PhaseTotals, latency_s: f64) -> (Record, Bill) {
        let mut record = self.record;
        record.add_phases(phases);
        record.outcome = outcome;
        record.latency_s = latency_s;
        let bill = self.ledger.bill(&self.model.prompt.definitions, self.system_tokens, self.model.tariff.as_ref());
        record.add_bill(&bill);
        (record, bill)
    }
}
