//! The rules of one session, apart from clocks, threads and files.
//!
//! A [`Session`] is a state machine. Whoever drives it asks for the next step, says at what time it starts, plays the
//! tool phase, and hands it back. Randomness comes only through [`Draws`]: the rules say which purpose and turn a draw
//! is for and never make a generator.

mod breaker;
mod cache;
mod call;
mod draws;
mod ledger;
mod phase;
mod record;
mod requests;
mod spend;
mod step;

pub use breaker::{Admission, BreakerState};
pub use call::{AttemptEnd, Attempts, Fate, Progress, Request};
pub use draws::{Draws, Purpose};
pub use ledger::{Bill, Class, Ledger, Lump, Source};
pub use phase::{PhaseEnd, PhaseTotals, ToolTotals, Workspace, play_phase};
pub use record::{Limit, Outcome, Record, Turn};
pub use step::{Call, Kind, Step, Then};

use cache::{Entry, Parts};
use draws::{draw_real, draw_whole};
use rand::RngExt;
use spend::{Spend, worst_fees};
pub use spend::{WorstCase, worst_case};

use crate::dist::Dist;
use crate::model::Model;

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Before a call.
    Loop,
    /// The loop of a message has ended with its answer.
    Answered,
    /// After a failed attempt, with the wait that follows and what comes then.
    Waiting {
        wait_s: f64,
        gives_up: bool,
    },
    /// Before another attempt.
    Retrying,
    Over(Outcome),
}

/// A model call under way that can fail.
#[derive(Debug)]
struct Retrying<S> {
    attempts: Attempts,
    stream: S,
}

/// What is drawn for an attempt of a model call.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    fate: Fate,
    output_tokens: u64,
    first_token_s: f64,
    writing_s: f64,
}

/// One session under way.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own about the call to come
pub struct Session<'m, D: Draws> {
    model: &'m Model,
    draws: D,
    state: State,
    kind: Kind,
    messages: u64,
    /// Number of the message that is handled, from 0.
    message: u64,
    /// Calls until the answer to it, and how many were made.
    turns: u64,
    made: u64,
    /// Calls made in all.
    turn: u64,
    /// Turns before which a summary was made and breaks were drawn.
    summarised_before: u64,
    breaks_before: u64,
    parts: Parts,
    prompt_tokens: u64,
    /// The last prompt that was sent.
    sent_tokens: u64,
    entry: Entry,
    /// A summary was made, and the entry is cut to the prefix when the next call begins.
    summary_to_apply: bool,
    /// Whether earlier bytes changed before the call that begins.
    broken: bool,
    /// Whether an attempt of this call found something expired.
    expired_seen: bool,
    /// Calls made before the message that is handled.
    turns_before: u64,
    /// What is the same for every call: time to the first token, s, and tokens a second.
    fixed_first_token_s: Option<f64>,
    fixed_rate: Option<f64>,
    /// Whether nothing but turns can happen: no faults, breaks, pings or budget.
    plain: bool,
    /// Turns that didn't take the plain way.
    careful_turns: u64,
    retrying: Option<Retrying<D::Stream>>,
    spend: Spend,
    /// Sums so far.
    record: Record,
    ledger: Ledger,
}

/// A count of tokens as a number: counts stay far below 2⁶³, and from a signed number it is one instruction.
fn real(tokens: u64) -> f64 {
    tokens as i64 as f64
}

impl<'m, D: Draws> Session<'m, D> {
    /// A session before its first call. Its money is added up as it goes where `watched`, for [`Session::spent`].
    pub fn new(model: &'m Model, draws: D, watched: bool) -> Self {
        let messages = draw_whole(&draws, &model.conversation.messages, Purpose::Messages, 0);
        let turns = draw_whole(&draws, &model.turns, Purpose::Turns, 0);
        let system_tokens = draw_whole(&draws, &model.prompt.system, Purpose::System, 0);
        let task_tokens = draw_whole(&draws, &model.prompt.task, Purpose::Task, 0);
        let definitions = model.prompt.definition_tokens();
        let prefix = definitions + system_tokens;
        Self {
            model,
            draws,
            state: State::Loop,
            kind: Kind::Turn,
            messages,
            message: 0,
            turns,
            made: 0,
            turn: 0,
            summarised_before: 0,
            breaks_before: 1,
            parts: Parts { definitions, prefix },
            prompt_tokens: prefix + task_tokens,
            sent_tokens: 0,
            entry: Entry::default(),
            summary_to_apply: false,
            broken: false,
            expired_seen: false,
            turns_before: 0,
            fixed_first_token_s: model.timing.first_token_s.as_constant(),
            fixed_rate: model.timing.output_rate.as_ref().and_then(Dist::as_constant),
            plain: !model.faults.any()
                && !model.cache.breaks.any()
                && !model.cache.is_kept_alive()
                && !model.budget.any(),
            careful_turns: 0,
            retrying: None,
            spend: Spend { kept: watched || model.budget.any(), ..Spend::default() },
            record: Record::default(),
            ledger: Ledger::new(prefix, task_tokens),
        }
    }

    /// The next step, where it is a turn and nothing else can happen: most of a run's steps, and the fast way to them.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    pub fn plain_turn(&mut self, now_s: f64) -> Option<Call> {
        let context = &self.model.context;
        let largest = context.window_tokens.min(context.compact_at_tokens);
        let ready = self.plain && self.state == State::Loop && self.made < self.model.max_turns;
        if !ready || self.prompt_tokens > largest {
            return None;
        }
        let drawn = self.draw_turn(self.turn + 1);
        match self.attempt::<true>(now_s, drawn) {
            Step::Call(call) => Some(call),
            Step::Wait(_) | Step::End(_) => None,
        }
    }

    /// What comes next, if it starts at `now_s`.
    #[inline(never)]
    pub fn next_step(&mut self, now_s: f64) -> Step {
        if let Some(call) = self.plain_turn(now_s) {
            return Step::Call(call);
        }
        if self.state != State::Loop
            && let Some(step) = self.resume(now_s)
        {
            return step;
        }
        if self.made >= self.model.max_turns {
            return self.end(Outcome::TurnLimit);
        }
        let context = &self.model.context;
        if self.prompt_tokens > context.window_tokens {
            return self.end(Outcome::ContextFull);
        }
        let summarise = self.prompt_tokens > context.compact_at_tokens && self.summarised_before != self.turn + 1;
        self.first_attempt(now_s, if summarise { Kind::Summary } else { Kind::Turn })
    }

    fn end(&mut self, outcome: Outcome) -> Step {
        self.state = State::Over(outcome);
        Step::End(outcome)
    }

    fn stop(&mut self, limit: Limit) {
        self.record.stopped_by = Some(limit);
        self.state = State::Over(limit.outcome());
    }

    /// Time since the first request without the user's think time, s.
    pub fn busy_s(&self, now_s: f64) -> f64 {
        now_s - self.record.think_s
    }

    /// What is left of a budget of time that is kept to the second, s.
    pub fn time_left_s(&self, now_s: f64) -> f64 {
        match self.model.budget.time_s {
            Some(most_s) if self.model.budget.before => most_s - self.busy_s(now_s),
            _ => f64::INFINITY,
        }
    }

    /// Goes on where it is not simply before a call; `None` where it is, after all.
    #[inline(never)]
    fn resume(&mut self, now_s: f64) -> Option<Step> {
        match self.state {
            State::Loop => None,
            State::Over(outcome) => Some(Step::End(outcome)),
            State::Waiting { mut wait_s, gives_up } => {
                let left_s = self.time_left_s(now_s);
                if wait_s >= left_s {
                    self.stop(Limit::Time);
                    wait_s = left_s.max(0.0);
                } else {
                    self.state = if gives_up { State::Over(Outcome::Failed) } else { State::Retrying };
                }
                self.record.retry_wait_s += wait_s;
                self.record.model_wait_s += wait_s;
                self.record.model_s += wait_s;
                Some(Step::Wait(wait_s))
            }
            State::Retrying => {
                if self.model.cache.is_kept_alive() {
                    self.keep_alive(now_s);
                }
                Some(self.next_attempt(now_s))
            }
            State::Answered if self.message + 1 >= self.messages => Some(self.end(Outcome::Answered)),
            State::Answered => {
                self.message += 1;
                self.turns_before = self.turn;
                self.made = 0;
                self.state = State::Loop;
                let talk = &self.model.conversation;
                self.turns = draw_whole(&self.draws, &self.model.turns, Purpose::Turns, self.message);
                self.prompt_tokens += draw_whole(&self.draws, &talk.message, Purpose::Message, self.message);
                let think_s = draw_real(&self.draws, &talk.think_s, Purpose::Think, self.message);
                self.record.think_s += think_s;
                (think_s > 0.0).then_some(Step::Wait(think_s))
            }
        }
    }

    /// Draws the first attempt of a turn, its fate apart.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    fn draw_turn(&self, number: u64) -> Drawn {
        let model = self.model;
        let output_tokens = draw_whole(&self.draws, &model.output, Purpose::Output, number);
        let first_token_s = match self.fixed_first_token_s {
            Some(fixed_s) => fixed_s,
            None => draw_real(&self.draws, &model.timing.first_token_s, Purpose::FirstToken, number),
        };
        let writing_s = match (self.fixed_rate, &model.timing.output_rate) {
            (Some(rate), _) => real(output_tokens) / rate,
            (None, None) => 0.0,
            (None, Some(rate)) => real(output_tokens) / draw_real(&self.draws, rate, Purpose::OutputRate, number),
        };
        Drawn { fate: Fate::Served, output_tokens, first_token_s, writing_s }
    }

    #[inline(never)]
    fn first_attempt(&mut self, now_s: f64, kind: Kind) -> Step {
        let (model, number) = (self.model, self.turn + 1);
        let cache = &model.cache;
        // the pings of the gap before this call read what was cached then
        if cache.is_kept_alive() {
            self.keep_alive(now_s);
        }
        if self.summary_to_apply {
            self.summary_to_apply = false;
            self.entry.truncate(cache, self.parts.prefix);
        }
        self.expired_seen = false;
        if cache.breaks.any() && self.breaks_before < number {
            self.breaks_before = number;
            self.broken = self.entry.break_by_chance(cache, self.parts, self.sent_tokens, number, &self.draws);
        }
        self.kind = kind;
        if kind == Kind::Summary {
            let stream = self.draws.stream(Purpose::Summary, number);
            self.retrying = Some(Retrying { attempts: Attempts::default(), stream });
            return self.next_attempt(now_s);
        }
        let mut drawn = self.draw_turn(number);
        if model.faults.chance() > 0.0 {
            drawn.fate = Fate::of(&model.faults, self.draws.uniform(Purpose::ModelFate, number, 0));
        }
        if model.faults.any() {
            let stream = self.draws.stream(Purpose::ModelRetry, number);
            self.retrying = Some(Retrying { attempts: Attempts::default(), stream });
        }
        self.attempt::<false>(now_s, drawn)
    }

    /// An attempt that is drawn from the call's own stream.
    fn next_attempt(&mut self, now_s: f64) -> Step {
        let model = self.model;
        let Some(Retrying { stream, .. }) = &mut self.retrying else { return self.end(Outcome::Failed) };
        let fate = Fate::of(&model.faults, stream.random::<f64>());
        let output_tokens = match self.kind {
            Kind::Turn => model.output.draw(stream),
            Kind::Summary => model.context.summary_tokens,
        };
        let first_token_s = model.timing.first_token_s.draw(stream);
        let writing_s = model.timing.output_rate.as_ref().map_or(0.0, |rate| real(output_tokens) / rate.draw(stream));
        self.attempt::<false>(now_s, Drawn { fate, output_tokens, first_token_s, writing_s })
    }

    /// Makes an attempt, if the budget allows it. `PLAIN` is for turns of a session in which nothing else can happen.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the plain one is most of a run's time, the other is called from cold functions
    fn attempt<const PLAIN: bool>(&mut self, now_s: f64, drawn: Drawn) -> Step {
        let (model, prompt_tokens) = (self.model, self.prompt_tokens);
        let kind = if PLAIN { Kind::Turn } else { self.kind };
        let under_way = !PLAIN && self.is_under_way();
        let number = if kind == Kind::Turn && under_way { self.turn } else { self.turn + 1 };
        if !PLAIN && model.budget.any() && model.budget.before && self.is_refused(now_s, number) {
            return self.next_step(now_s);
        }
        if kind == Kind::Turn {
            self.turn = number;
        }
        let executed = PLAIN || matches!(drawn.fate, Fate::Served | Fate::LostReply);
        let cacheable = model.cache.enabled && prompt_tokens >= model.cache.min_tokens;
        let mut hit_tokens = 0;
        if executed && model.cache.enabled {
            let (hit, expired) = self.entry.look_up(&model.cache, self.parts, prompt_tokens, now_s, &self.draws);
            hit_tokens = hit;
            // once a call, however often it is attempted
            if PLAIN || !self.expired_seen {
                self.record.expired_gaps += u64::from(expired);
            }
            if !PLAIN {
                self.expired_seen |= expired;
            }
        }
        let timing = &model.timing;
        let first_token_s = drawn.first_token_s
            + real(prompt_tokens - hit_tokens) * timing.prefill_s_per_token
            + real(hit_tokens) * timing.cached_prefill_s_per_token;
        let mut took_s = first_token_s + drawn.writing_s;
        let mut progress = Progress::Answered;
        if !PLAIN && let Some(Retrying { attempts, .. }) = &mut self.retrying {
            let before_s = attempts.elapsed_s;
            let request = Request { fate: drawn.fate, latency_s: took_s, reject_latency_s: 0.0 };
            progress = attempts.attempted(&model.retry, AttemptEnd::of(model.faults.timeout_s, request));
            took_s = attempts.elapsed_s - before_s;
            if progress == Progress::Answered {
                // without the rounding of the difference
                took_s = first_token_s + drawn.writing_s;
            }
        }
        let left_s = if PLAIN { f64::INFINITY } else { self.time_left_s(now_s) };
        let out_of_time = took_s > left_s;
        if out_of_time {
            took_s = left_s.max(0.0);
            progress = Progress::Failed;
        }
        if !PLAIN {
            self.record.model_calls += u64::from(!under_way);
            self.careful_turns += u64::from(!under_way && kind == Kind::Turn);
            self.record.breaks += u64::from(std::mem::take(&mut self.broken));
            self.record.model_attempts += 1;
            self.record.model_executions += u64::from(executed);
        }
        self.record.model_s += took_s;
        let answered = progress == Progress::Answered;
        if !PLAIN && !answered {
            self.record.model_lost_s += took_s;
        }
        if executed {
            self.book::<PLAIN>(answered, prompt_tokens, hit_tokens, cacheable, drawn.output_tokens);
            let more = if model.cache.caches_output && answered { drawn.output_tokens } else { 0 };
            self.entry.leave(if cacheable { prompt_tokens + more } else { 0 }, now_s);
            self.sent_tokens = prompt_tokens;
        }
        let then = if out_of_time {
            self.stop(Limit::Time);
            Then::TurnOver
        } else {
            self.after_attempt::<PLAIN>(progress, &drawn, first_token_s, took_s, now_s)
        };
        Step::Call(Call {
            turn: number,
            kind,
            prompt_tokens,
            hit_tokens,
            output_tokens: drawn.output_tokens,
            first_token_s,
            took_s,
            is_answered: answered,
            then,
        })
    }

    /// Whether the call that is being attempted was attempted before.
    fn is_under_way(&self) -> bool {
        self.retrying.as_ref().is_some_and(|retrying| retrying.attempts.sent > 0)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    fn after_attempt<const PLAIN: bool>(
        &mut self,
        progress: Progress,
        drawn: &Drawn,
        first_token_s: f64,
        took_s: f64,
        now_s: f64,
    ) -> Then {
        if PLAIN {
            return self.complete::<true>(drawn, first_token_s, took_s);
        }
        let then = match progress {
            Progress::Answered => self.complete::<false>(drawn, first_token_s, took_s),
            Progress::Failed | Progress::Attempt => {
                self.state = State::Over(Outcome::Failed);
                Then::TurnOver
            }
            Progress::Wait => {
                self.plan_wait();
                Then::GoesOn
            }
        };
        let budget = &self.model.budget;
        let goes_on = match self.state {
            State::Over(_) => false,
            State::Answered => self.message + 1 < self.messages,
            _ => true,
        };
        // a turn whose call is still to be repeated isn't made yet
        let made = self.turn - u64::from(progress == Progress::Wait && self.kind == Kind::Turn);
        if goes_on
            && budget.any()
            && !budget.before
            && let Some(limit) = self.spend.passed(budget, made, self.busy_s(now_s) + took_s)
        {
            self.stop(limit);
            return Then::TurnOver;
        }
        then
    }

    #[cold]
    fn plan_wait(&mut self) {
        let retry = &self.model.retry;
        let Some(Retrying { attempts, stream }) = &mut self.retrying else { return };
        let drawn_s = attempts.draw_wait(retry, stream);
        let before_s = attempts.elapsed_s;
        // where the deadline comes first, the time until then passes, and the session has failed
        let gives_up = attempts.waited(retry, drawn_s) != Progress::Attempt;
        let wait_s = if gives_up { attempts.elapsed_s - before_s } else { drawn_s };
        self.state = State::Waiting { wait_s, gives_up };
    }

    /// An attempt was answered.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    fn complete<const PLAIN: bool>(&mut self, drawn: &Drawn, first_token_s: f64, took_s: f64) -> Then {
        let number = self.turn;
        if !PLAIN {
            self.retrying = None;
        }
        if !PLAIN && self.kind == Kind::Summary {
            self.record.summaries += 1;
            self.record.summary_s += took_s;
            self.summarised_before = number + 1;
            self.prompt_tokens = self.parts.prefix + self.model.context.summary_tokens;
            if self.model.cache.is_kept_alive() {
                self.summary_to_apply = true;
            } else {
                self.entry.truncate(&self.model.cache, self.parts.prefix);
            }
            self.sent_tokens = self.parts.prefix;
            self.ledger.summarised();
            self.state = State::Loop;
            return Then::GoesOn;
        }
        self.record.first_token_s += first_token_s;
        self.record.writing_s += drawn.writing_s;
        if !PLAIN {
            self.record.answered_turns += 1;
        }
        self.prompt_tokens += drawn.output_tokens;
        self.made += 1;
        if self.made == self.turns {
            self.state = State::Answered;
            return Then::TurnOver;
        }
        self.state = State::Loop;
        let budget = &self.model.budget;
        if !PLAIN && budget.before && budget.dollars.is_some() {
            let calls = |index: usize| {
                let law = &self.model.phase.tools[index].calls;
                draw_whole(&self.draws, law, Purpose::Calls { tool: index }, number)
            };
            if !self.spend.allows_fees(budget, worst_fees(self.model, calls)) {
                self.stop(Limit::Dollars);
                return Then::TurnOver;
            }
        }
        Then::Tools
    }

    /// Takes in the tool phase of the last call, which began at `now_s`; `totals` are the sums over all phases so far.
    /// Returns how long it lasted: a budget of time may have cut it.
    #[inline]
    pub fn after_tools(&mut self, phase: &PhaseEnd, now_s: f64, totals: &PhaseTotals) -> f64 {
        self.prompt_tokens += phase.result_tokens;
        let (mut duration_s, mut retry_s, mut approval_s) = (phase.duration_s, phase.retry_s, phase.approval_s);
        if self.spend.kept {
            self.spend.fees = totals.fees + totals.duplicate_fees;
            let left_s = self.time_left_s(now_s).max(0.0);
            if duration_s > left_s {
                duration_s = left_s;
                approval_s = approval_s.min(left_s);
                retry_s = retry_s.min(left_s - approval_s);
                self.stop(Limit::Time);
            }
            let budget = &self.model.budget;
            if !budget.before
                && let Some(limit) = self.spend.passed(budget, self.turn, self.busy_s(now_s) + duration_s)
            {
                self.stop(limit);
            }
        }
        self.record.phases += 1;
        self.record.tool_s += duration_s;
        self.record.phase_s_squared += duration_s * duration_s;
        if retry_s > 0.0 || approval_s > 0.0 {
            self.record.tool_retry_s += retry_s;
            self.record.tool_approval_s += approval_s;
        }
        duration_s
    }

    /// The number of the message that is handled, from 0.
    pub fn message(&self) -> u64 {
        self.message
    }

    /// Whether a call was made for it.
    pub fn message_has_begun(&self) -> bool {
        self.turn > self.turns_before
    }

    /// The draws of this session, for its tool phases.
    pub fn draws(&self) -> &D {
        &self.draws
    }

    /// Closes the books. `phases` are the sums over the tool phases, `now_s` is the time of the end.
    pub fn finish(self, outcome: Outcome, phases: &PhaseTotals, now_s: f64) -> (Record, Bill) {
        let latency_s = self.busy_s(now_s);
        let mut record = self.record;
        record.add_phases(phases);
        record.outcome = outcome;
        record.messages = self.message + u64::from(self.message_has_begun());
        record.turns = self.turn;
        // one attempt each; all other calls have been counted
        let plain_turns = self.turn - self.careful_turns;
        record.model_calls += plain_turns;
        record.model_attempts += plain_turns;
        record.model_executions += plain_turns;
        record.answered_turns += plain_turns;
        record.latency_s = latency_s;
        let prompt = &self.model.prompt;
        let system_tokens = self.parts.prefix - self.parts.definitions;
        let bill = self.ledger.bill(&prompt.definitions, system_tokens, self.model.tariff.as_ref());
        record.add_bill(&bill);
        (record, bill)
    }
}
