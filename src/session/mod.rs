//! The rules of one session, apart from clocks, threads and files.
//!
//! A [`Session`] is a state machine. Whoever drives it asks for the next step, says at what time it starts, plays the
//! tool phase, and hands it back. Randomness comes only through [`Draws`]: the rules say which purpose and turn a draw
//! is for and never make a generator.

mod agenda;
mod agent;
mod attempt;
mod breaker;
mod cache;
mod call;
mod draws;
mod herd;
mod ledger;
mod phase;
mod record;
mod requests;
mod runs;
mod search;
mod servers;
mod spend;
mod step;
mod together;

pub use agenda::{Event, Plans, What};
pub use agent::{AgentSums, NodeTotals};
pub use breaker::{Admission, BreakerState};
pub use call::{AttemptEnd, Attempts, Fate, Progress, Request};
pub use draws::{Draws, Purpose};
pub use herd::play_herd;
pub use ledger::{Bill, Class, Ledger, Lump, Source};
pub use phase::{PhaseEnd, PhaseTotals, ToolTotals, Workspace, play_phase};
pub use record::{Cached, Limit, Outcome, Record, Turn};
pub use servers::{Arrival, Reception, Servers};
pub use step::{Call, Kind, Ruling, Sending, Step, Then};
pub use together::OpenPhase;

use agent::Touches;
use attempt::{Gate, Retrying};
use cache::{Entry, Parts};
use draws::{draw_real, draw_whole};
pub use runs::{Run, Runs};
use search::Searching;
use spend::{Spend, worst_fees};
pub use spend::{Used, WorstCase, worst_case};

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
    /// Before a call that searches for a tool.
    Searching,
    /// A search was asked for, and its result is waited for.
    Found,
    /// The tools are found, or given up.
    Ready,
    Over(Outcome),
}

/// What is asked of a model again and again.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
struct Facts {
    definition_tokens: u64,
    /// What is the same for every call: time to the first token, s, and tokens a second.
    fixed_first_token_s: Option<f64>,
    fixed_rate: Option<f64>,
    /// Whether nothing but turns can happen: no faults, breaks, pings or budget.
    is_plain: bool,
    has_budget: bool,
    searches: bool,
    /// Whether some of its tools are agents, have to be found first, or are called from code.
    more_than_tools: bool,
}

impl Facts {
    fn of(model: &Model) -> Self {
        let (has_budget, searches) = (model.budget.any(), model.searches());
        Self {
            definition_tokens: model.prompt.definition_tokens(),
            fixed_first_token_s: model.timing.first_token_s.as_constant(),
            fixed_rate: model.timing.output_rate.as_ref().and_then(Dist::as_constant),
            is_plain: !model.faults.any()
                && !model.cache.breaks.any()
                && !model.cache.is_kept_alive()
                && !has_budget
                && !searches,
            has_budget,
            searches,
            more_than_tools: model.has_agents() || searches || !model.phase.code.is_empty(),
        }
    }
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
    /// The call before which a summary was made, and the turn before which breaks were drawn.
    summarised_before: u64,
    breaks_before: u64,
    parts: Parts,
    prompt_tokens: u64,
    /// The last prompt that was sent.
    sent_tokens: u64,
    entry: Entry,
    /// Whether the first call finds tools and system in the cache, where that is known and not drawn.
    starts_warm: Option<bool>,
    /// Whether its tools or system prompt have changed.
    has_own_prefix: bool,
    /// Where others have a say in its model calls.
    gate: Option<Gate>,
    /// When the prefix was used, for an agent whose sessions share it.
    touched: Option<Touches>,
    /// A summary was made, and the entry is cut to the prefix when the next call begins.
    summary_to_apply: bool,
    /// Whether earlier bytes changed before the call that begins.
    broken: bool,
    /// Whether an attempt of this call found something expired.
    expired_seen: bool,
    /// Calls made before the message that is handled.
    turns_before: u64,
    facts: Facts,
    /// Whether nothing but turns can happen.
    plain: bool,
    /// Turns that didn't take the plain way.
    careful_turns: u64,
    retrying: Option<Retrying<D::Stream>>,
    searching: Option<Searching>,
    spend: Spend,
    /// Sums so far.
    record: Record,
    ledger: Ledger,
    /// Empty until its books are closed.
    bill: Bill,
}

/// A count as a number: counts stay far below 2⁶³, and from a signed number it is one instruction.
pub(crate) fn real(count: u64) -> f64 {
    count as i64 as f64
}

impl<'m, D: Draws> Session<'m, D> {
    /// A session before its first call. Its money is added up as it goes where `watched`, for [`Session::spent`].
    /// `before` has been used of its budget already.
    #[inline]
    pub fn new(model: &'m Model, draws: D, watched: bool, before: Used) -> Self {
        let mut session = Self {
            model,
            draws,
            state: State::Loop,
            kind: Kind::Turn,
            messages: 0,
            message: 0,
            turns: 0,
            made: 0,
            turn: 0,
            summarised_before: 0,
            breaks_before: 0,
            parts: Parts { definitions: 0, prefix: 0 },
            prompt_tokens: 0,
            sent_tokens: 0,
            entry: Entry::default(),
            starts_warm: None,
            has_own_prefix: false,
            gate: None,
            touched: None,
            summary_to_apply: false,
            broken: false,
            expired_seen: false,
            turns_before: 0,
            facts: Facts::of(model),
            plain: false,
            careful_turns: 0,
            retrying: None,
            searching: None,
            spend: Spend::default(),
            record: Record::default(),
            ledger: Ledger::default(),
            bill: Bill::default(),
        };
        session.set_out(watched, before);
        session
    }

    /// Another session in the room of one that is over; see [`Session::new`].
    #[inline]
    pub fn renew(&mut self, model: &'m Model, draws: D, watched: bool, before: Used) {
        if !std::ptr::eq(self.model, model) {
            (self.model, self.facts) = (model, Facts::of(model));
        }
        self.draws = draws;
        self.record = Record::default();
        self.ledger.clear();
        self.set_out(watched, before);
    }

    /// Sets everything but its model, its draws, and the books, which are empty.
    #[inline(always)]
    #[allow(clippy::inline_always)] // in `new` nothing is set twice then
    fn set_out(&mut self, watched: bool, before: Used) {
        let Self {
            model,
            draws,
            state,
            kind,
            messages,
            message,
            turns,
            made,
            turn,
            summarised_before,
            breaks_before,
            parts,
            prompt_tokens,
            sent_tokens,
            entry,
            starts_warm,
            has_own_prefix,
            gate,
            touched,
            summary_to_apply,
            broken,
            expired_seen,
            turns_before,
            facts,
            plain,
            careful_turns,
            retrying,
            searching,
            spend,
            record: _,
            ledger,
            bill: _,
        } = self;
        let model = *model;
        *messages = draw_whole(draws, &model.conversation.messages, Purpose::Messages, 0);
        *turns = draw_whole(draws, &model.turns, Purpose::Turns, 0);
        let system_tokens = draw_whole(draws, &model.prompt.system, Purpose::System, 0);
        let task_tokens = draw_whole(draws, &model.prompt.task, Purpose::Task, 0);
        let definitions = facts.definition_tokens;
        let prefix = definitions + system_tokens;
        (*state, *kind) = (State::Loop, Kind::Turn);
        (*message, *made, *turn, *turns_before, *careful_turns) = (0, 0, 0, 0, 0);
        (*summarised_before, *breaks_before) = (0, 1);
        *parts = Parts { definitions, prefix };
        (*prompt_tokens, *sent_tokens) = (prefix + task_tokens, 0);
        *entry = Entry::default();
        (*starts_warm, *has_own_prefix, *gate, *touched) = (None, false, None, None);
        (*summary_to_apply, *broken, *expired_seen) = (false, false, false);
        *plain = facts.is_plain;
        *retrying = None;
        *searching = facts.searches.then(|| Searching::new(model));
        *spend = Spend { kept: watched || facts.has_budget, before, ..Spend::default() };
        ledger.begin(prefix, task_tokens);
    }

    /// Others have a say in each of its model calls: it asks for them with [`Step::Send`].
    pub fn gate(&mut self) {
        self.gate = Some(Gate::of(std::mem::take(&mut self.plain)));
    }

    /// Says whether its first call finds tools and system in the cache, where that isn't left to chance.
    pub fn begins_warm(&mut self, warm: Option<bool>) {
        self.starts_warm = warm;
    }

    /// The next step, where it is a turn and nothing else can happen: most of a run's steps, and the fast way to them.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    pub fn plain_turn(&mut self, now_s: f64) -> Option<Call> {
        if !self.plain || !self.is_before_turn() {
            return None;
        }
        let drawn = self.draw_turn(self.turn + 1);
        match self.attempt::<true>(now_s, drawn, None) {
            Step::Call(call) => Some(call),
            Step::Send | Step::Wait(_) | Step::Tools(_) | Step::End(_) => None,
        }
    }

    /// Whether it is before a turn that its limits allow, without a summary before it.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    fn is_before_turn(&self) -> bool {
        let context = &self.model.context;
        let largest = context.window_tokens.min(context.compact_at_tokens);
        self.state == State::Loop && self.made < self.model.max_turns && self.prompt_tokens <= largest
    }

    /// What comes next, if it starts at `now_s()`; of a gated session the two most frequent steps are found at once, and
    /// without the time.
    #[inline]
    pub fn next_gated_step(&mut self, now_s: impl FnOnce() -> f64) -> Step {
        if self.asks_for_plain_turn() {
            Step::Send
        } else if self.has_answered() {
            self.end(Outcome::Answered)
        } else {
            self.next_step(now_s())
        }
    }

    /// Whether the last message was answered.
    fn has_answered(&self) -> bool {
        self.state == State::Answered && self.message + 1 >= self.messages
    }

    /// What comes next, if it starts at `now_s`.
    #[inline(never)]
    pub fn next_step(&mut self, now_s: f64) -> Step {
        if let Some(call) = self.plain_turn(now_s) {
            return Step::Call(call);
        }
        if self.has_answered() {
            return self.end(Outcome::Answered);
        }
        if self.state != State::Loop
            && let Some(step) = self.resume(now_s)
        {
            return step;
        }
        if let Some(limit) = self.passed_before() {
            self.stop(limit);
            return self.next_step(now_s);
        }
        let kind = if self.state == State::Searching { Kind::Search } else { Kind::Turn };
        if kind == Kind::Turn && self.made >= self.model.max_turns {
            return self.end(Outcome::TurnLimit);
        }
        let context = &self.model.context;
        if self.prompt_tokens > context.window_tokens {
            return self.end(Outcome::ContextFull);
        }
        let summarise = self.prompt_tokens > context.compact_at_tokens && self.summarised_before != self.next_call();
        self.first_attempt(now_s, if summarise { Kind::Summary } else { kind })
    }

    /// The number of the next call, summaries not counted.
    fn next_call(&self) -> u64 {
        self.turn + self.record.searches + 1
    }

    /// The limit of a budget that is checked after each call which earlier runs, or whoever called, have passed.
    fn passed_before(&self) -> Option<Limit> {
        let budget = &self.model.budget;
        let is_first = self.turn == 0 && self.record.model_calls == 0;
        if !is_first || !budget.any() || budget.before || self.spend.before == Used::default() {
            return None;
        }
        self.spend.passed(budget, 0, 0.0)
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
            Some(most_s) if self.model.budget.before => most_s - self.spend.before.busy_s - self.busy_s(now_s),
            _ => f64::INFINITY,
        }
    }

    /// Goes on where it is not simply before a call; `None` where it is, after all.
    #[inline(never)]
    fn resume(&mut self, now_s: f64) -> Option<Step> {
        match self.state {
            State::Loop | State::Searching => None,
            State::Found => self.after_search(now_s),
            State::Ready => Some(self.start_tools(now_s)),
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
                if self.model.cache.is_kept_alive() && self.gate.is_none() {
                    self.keep_alive(now_s);
                }
                Some(self.next_attempt(now_s))
            }
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

    /// How many calls a tool makes in the phase of the last turn.
    fn calls_of(&self, index: usize) -> u64 {
        let law = &self.model.phase.tools[index].calls;
        draw_whole(&self.draws, law, Purpose::Calls { tool: index }, self.turn)
    }

    /// Whether the most that the fees of the phase to come can be fits the budget; if not, it ends the session.
    fn can_pay_tools(&mut self) -> bool {
        let budget = &self.model.budget;
        if !budget.before || budget.dollars.is_none() {
            return true;
        }
        let calls = |index: usize| if self.is_given_up(index) { 0 } else { self.calls_of(index) };
        self.spend.reserved = worst_fees(self.model, calls);
        let fits = self.spend.allows_fees(budget, self.spend.reserved);
        if fits {
            self.record.needed = self.record.needed.max(self.spend.usd() + self.spend.reserved);
        } else {
            self.stop(Limit::Dollars);
        }
        fits
    }

    /// Takes in the tool phase of the last call, which began at `now_s`; `totals` are the sums over all phases so far.
    /// Returns how long it lasted: a budget of time may have cut it.
    #[inline]
    pub fn after_tools(&mut self, phase: &PhaseEnd, now_s: f64, totals: &PhaseTotals) -> f64 {
        self.prompt_tokens += phase.result_tokens;
        let (mut duration_s, mut retry_s, mut approval_s) = (phase.duration_s, phase.retry_s, phase.approval_s);
        if self.spend.kept {
            self.spend.fees = totals.fees + totals.duplicate_fees;
            self.spend.agents = (totals.agents.cost(), totals.agents.tokens());
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

    /// What has been used of the budget when an agent is called at `now_s` of a phase; `totals` are the sums over all
    /// phases so far. Agents that run side by side are charged one after another, in the order of their starts; those of
    /// agents that run side by side in the order in which these are played.
    fn used(&self, now_s: f64, totals: &PhaseTotals) -> Used {
        let spend = &self.spend;
        // fees that the phase may still cost are set aside
        let fees =
            if self.model.budget.before { spend.fees + spend.reserved } else { totals.fees + totals.duplicate_fees };
        Used {
            usd: spend.before.usd + spend.requests + fees + totals.agents.cost(),
            tokens: spend.before.tokens + spend.tokens + totals.agents.tokens(),
            turns: 0,
            busy_s: spend.before.busy_s + self.busy_s(now_s),
        }
    }

    /// The number of the message that is handled, from 0.
    pub fn message(&self) -> u64 {
        self.message
    }

    /// Whether a call was made for it.
    pub fn message_has_begun(&self) -> bool {
        self.turn > self.turns_before
    }

    /// What it is a session of.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Whether some of its tools are agents, have to be found first, or are called from code.
    #[inline]
    fn has_more_than_tools(&self) -> bool {
        self.facts.more_than_tools
    }

    /// The draws of this session, for its tool phases.
    pub fn draws(&self) -> &D {
        &self.draws
    }

    /// Closes the books, after which its record and its bill are complete. `phases` are the sums over the tool phases,
    /// `now_s` is the time of the end.
    pub fn close(&mut self, outcome: Outcome, phases: &PhaseTotals, now_s: f64) {
        let mut latency_s = self.busy_s(now_s);
        let messages = self.message + u64::from(self.message_has_begun());
        let record = &mut self.record;
        if record.stopped_by == Some(Limit::Time)
            && let Some(most_s) = self.model.budget.time_s.filter(|_| self.model.budget.before)
        {
            latency_s = latency_s.min((most_s - self.spend.before.busy_s).max(0.0));
        }
        record.add_phases(phases);
        record.outcome = outcome;
        record.messages = messages;
        record.turns = self.turn;
        record.served = record.tools_found == record.tools_needed && phases.agents_unserved == 0;
        record.elapsed_s = now_s;
        record.prefix_used_at_s = self.entry.prefix_used_at_s(&self.model.cache, self.parts);
        record.gaps = (record.turns + record.summaries + record.searches).saturating_sub(1);
        // one attempt each; all other calls have been counted
        let plain_turns = self.turn - self.careful_turns;
        record.model_calls += plain_turns;
        record.model_attempts += plain_turns;
        record.model_executions += plain_turns;
        record.answered_turns += plain_turns;
        record.latency_s = latency_s;
        let prompt = &self.model.prompt;
        let system_tokens = self.parts.prefix - self.parts.definitions;
        self.ledger.bill(&prompt.definitions, system_tokens, self.model.tariff.as_ref(), &mut self.bill);
        record.add_bill(&self.bill);
    }

    /// What it used and what that costs, once its books are closed.
    pub fn bill(&self) -> &Bill {
        &self.bill
    }

    /// What it came to, once its books are closed.
    pub fn record(&self) -> &Record {
        &self.record
    }
}
