//! What is known of a session when it is over: one flat record.

use super::agent::AgentSums;
use super::ledger::{Bill, Class};
use super::phase::PhaseTotals;
use crate::model::Budget;
use crate::price::{PicoUsd, Split};

/// How a session ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The last call was the answer.
    #[default]
    Answered,
    /// `max_turns` calls were made, and none was the answer.
    TurnLimit,
    /// The next prompt wouldn't have fitted the model's window.
    ContextFull,
    /// A budget of dollars, turns or tokens ended it.
    Budget,
    /// A budget of time ended it.
    Deadline,
    /// A model call failed, and so did its repetitions.
    Failed,
}

impl Outcome {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::TurnLimit => "turn_limit",
            Outcome::ContextFull => "context_full",
            Outcome::Budget => "budget",
            Outcome::Deadline => "deadline",
            Outcome::Failed => "failed",
        }
    }

    /// All of them, in the order of their numbers.
    pub const ALL: [Outcome; 6] = [
        Outcome::Answered,
        Outcome::TurnLimit,
        Outcome::ContextFull,
        Outcome::Budget,
        Outcome::Deadline,
        Outcome::Failed,
    ];
}

/// A limit of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Limit {
    Dollars,
    Turns,
    Tokens,
    Time,
}

impl Limit {
    /// All of them, in the order of their numbers.
    pub const ALL: [Limit; 4] = [Limit::Dollars, Limit::Turns, Limit::Tokens, Limit::Time];

    /// Its key in the scenario.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Dollars => "dollars",
            Limit::Turns => "turns",
            Limit::Tokens => "tokens",
            Limit::Time => "time",
        }
    }

    /// Whether a budget has it.
    pub fn is_set(self, budget: &Budget) -> bool {
        match self {
            Limit::Dollars => budget.dollars.is_some(),
            Limit::Turns => budget.turns.is_some(),
            Limit::Tokens => budget.tokens.is_some(),
            Limit::Time => budget.time_s.is_some(),
        }
    }

    /// How a session that it ended counts.
    pub fn outcome(self) -> Outcome {
        if self == Limit::Time { Outcome::Deadline } else { Outcome::Budget }
    }
}

/// One session.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Record {
    pub outcome: Outcome,
    /// The limit that ended it, if one did.
    pub stopped_by: Option<Limit>,
    /// What the call could have cost that a budget of dollars refused.
    pub refused_worst: PicoUsd,
    /// The smallest budget of dollars, checked before each call, that would have let it come this far.
    pub needed: PicoUsd,
    /// Calls that would have followed another one and were refused by a budget.
    pub refused_gaps: u64,
    /// Runs of the session: on a small model, again without it, again until it succeeds.
    pub runs: u64,
    /// Those of them on the small model.
    pub small_runs: u64,
    /// Tries that began on the small model and were done again without it.
    pub redone: u64,
    /// Tries: a run, or one on the small model with the one that replaced it.
    pub tries: u64,
    /// Whether the last of them succeeded.
    pub succeeded: bool,
    /// Money, all zero where there are no prices.
    pub cost: PicoUsd,
    pub cost_input: PicoUsd,
    pub cost_output: PicoUsd,
    /// Fees of tool calls, repeated executions included.
    pub cost_tools: PicoUsd,
    /// What the same prompts would have cost at the plain input price, nothing read or written.
    pub cost_input_without_cache: PicoUsd,
    pub duplicate_fees: PicoUsd,
    pub input_tokens: u64,
    pub uncached_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub output_tokens: u64,
    /// Of the agents that were called; not counted in the fields above, but for `cost`.
    pub agents: AgentSums,
    /// Tokens of definitions sent over all calls.
    pub definition_tokens: u64,
    /// Messages whose loop was begun.
    pub messages: u64,
    pub turns: u64,
    /// Times between two calls.
    pub gaps: u64,
    /// Turns whose call was answered.
    pub answered_turns: u64,
    /// Summary calls.
    pub summaries: u64,
    /// Calls that searched for a tool.
    pub searches: u64,
    /// Tools that had to be searched for, those of them that were found or given up, and those that were found.
    pub tools_needed: u64,
    pub tools_settled: u64,
    pub tools_found: u64,
    /// Whether the last run found every tool that it needed, and so did the agents that it called.
    pub served: bool,
    /// How long the last run took, the user's waits counted, s; and when it last used tools and system in the cache.
    pub elapsed_s: f64,
    pub prefix_used_at_s: Option<f64>,
    /// Pings that kept the cache warm.
    pub keep_alive_pings: u64,
    /// Tokens that they read.
    pub keep_alive_tokens: u64,
    /// Model calls begun, summaries included.
    pub model_calls: u64,
    /// Attempts of all of them.
    pub model_attempts: u64,
    /// Attempts that were billed.
    pub model_executions: u64,
    pub tool_calls: u64,
    /// Tool calls of which an attempt was sent.
    pub sent_calls: u64,
    pub attempts: u64,
    pub executions: u64,
    /// Second copies that were sent.
    pub hedges: u64,
    /// Tool calls that a breaker ended.
    pub refused_calls: u64,
    pub duplicates: u64,
    /// Calls that ended with the tool's result.
    pub succeeded_calls: u64,
    pub expired_gaps: u64,
    /// Calls before which earlier bytes had changed.
    pub breaks: u64,
    /// Tool phases.
    pub phases: u64,
    pub latency_s: f64,
    /// Wall time of model calls, their waits and summaries included.
    pub model_s: f64,
    pub tool_s: f64,
    pub retry_wait_s: f64,
    /// The part of it between attempts of model calls.
    pub model_wait_s: f64,
    /// Waits for a free place, of the model and of tools, summed over calls, s; and the part before model calls.
    pub queue_s: f64,
    pub model_queue_s: f64,
    /// Attempts of model calls that weren't answered.
    pub model_lost_s: f64,
    pub approval_s: f64,
    /// The user's waits before later messages, no part of the latency.
    pub think_s: f64,
    /// Sum over turns of the time to the first token.
    pub first_token_s: f64,
    /// Sum over turns of the time from the first token to the last.
    pub writing_s: f64,
    /// Time of summary calls.
    pub summary_s: f64,
    /// Time of searches for tools: their calls and what they wait for.
    pub search_s: f64,
    /// Part of `tool_s` in which the longest path repeated something.
    pub tool_retry_s: f64,
    /// Part of `tool_s` in which the longest path waited for a person.
    pub tool_approval_s: f64,
    /// Sum over phases of the squared duration.
    pub phase_s_squared: f64,
}

impl Record {
    /// Adds a further run of the same session: sums add up, and it ended as the last run did.
    pub(super) fn add(&mut self, next: &Record) {
        let before = std::mem::replace(self, *next);
        self.refused_gaps += before.refused_gaps;
        self.runs += before.runs;
        self.small_runs += before.small_runs;
        self.redone += before.redone;
        self.tries += before.tries;
        self.cost += before.cost;
        self.agents += before.agents;
        self.cost_input += before.cost_input;
        self.cost_output += before.cost_output;
        self.cost_tools += before.cost_tools;
        self.cost_input_without_cache += before.cost_input_without_cache;
        self.duplicate_fees += before.duplicate_fees;
        self.input_tokens += before.input_tokens;
        self.uncached_tokens += before.uncached_tokens;
        self.cache_read_tokens += before.cache_read_tokens;
        self.cache_write_tokens += before.cache_write_tokens;
        self.output_tokens += before.output_tokens;
        self.definition_tokens += before.definition_tokens;
        self.messages += before.messages;
        self.turns += before.turns;
        self.gaps += before.gaps;
        self.answered_turns += before.answered_turns;
        self.summaries += before.summaries;
        self.searches += before.searches;
        self.tools_needed += before.tools_needed;
        self.tools_settled += before.tools_settled;
        self.tools_found += before.tools_found;
        self.search_s += before.search_s;
        self.keep_alive_pings += before.keep_alive_pings;
        self.keep_alive_tokens += before.keep_alive_tokens;
        self.model_calls += before.model_calls;
        self.model_attempts += before.model_attempts;
        self.model_executions += before.model_executions;
        self.tool_calls += before.tool_calls;
        self.sent_calls += before.sent_calls;
        self.attempts += before.attempts;
        self.executions += before.executions;
        self.hedges += before.hedges;
        self.refused_calls += before.refused_calls;
        self.duplicates += before.duplicates;
        self.succeeded_calls += before.succeeded_calls;
        self.expired_gaps += before.expired_gaps;
        self.breaks += before.breaks;
        self.phases += before.phases;
        self.latency_s += before.latency_s;
        self.model_s += before.model_s;
        self.tool_s += before.tool_s;
        self.retry_wait_s += before.retry_wait_s;
        self.model_wait_s += before.model_wait_s;
        self.queue_s += before.queue_s;
        self.model_queue_s += before.model_queue_s;
        self.model_lost_s += before.model_lost_s;
        self.approval_s += before.approval_s;
        self.think_s += before.think_s;
        self.first_token_s += before.first_token_s;
        self.writing_s += before.writing_s;
        self.summary_s += before.summary_s;
        self.tool_retry_s += before.tool_retry_s;
        self.tool_approval_s += before.tool_approval_s;
        self.phase_s_squared += before.phase_s_squared;
    }

    pub(super) fn add_phases(&mut self, phases: &PhaseTotals) {
        if phases.calls == 0 {
            return;
        }
        self.tool_calls = phases.calls;
        self.sent_calls = phases.sent;
        self.hedges = phases.hedges;
        self.refused_calls = phases.refused;
        self.approval_s = phases.approval_s;
        self.attempts = phases.attempts;
        self.executions = phases.executions;
        self.duplicates = phases.duplicates;
        self.succeeded_calls = phases.succeeded;
        self.retry_wait_s += phases.retry_wait_s;
        self.queue_s += phases.queue_s;
        self.cost_tools = phases.fees + phases.duplicate_fees;
        self.duplicate_fees = phases.duplicate_fees;
        self.agents = phases.agents;
    }

    pub(super) fn add_bill(&mut self, bill: &Bill) {
        self.cache_read_tokens = bill.tokens(Class::Read);
        self.cache_write_tokens = bill.tokens(Class::WrittenPrefix) + bill.tokens(Class::WrittenMessages);
        self.uncached_tokens = bill.tokens(Class::Plain);
        self.input_tokens = self.cache_read_tokens + self.cache_write_tokens + self.uncached_tokens;
        self.output_tokens = bill.output_tokens;
        self.definition_tokens = bill.definition_tokens;
        self.cost_input = bill.input;
        self.cost_output = bill.all_output;
        self.cost_input_without_cache = bill.input_without_cache;
        self.cost = self.cost_input + self.cost_output + self.cost_tools + self.agents.cost();
    }
}

/// What a turn met in the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cached {
    /// There is no cache, or none was used: it is off, or the prompt too short for it.
    Off,
    /// Nothing was read, since nothing had been written.
    Cold,
    /// All that the call before had left was there.
    Warm,
    /// Some of it had expired.
    Expired,
    /// Earlier bytes of the prompt had changed.
    Broken,
}

impl Cached {
    /// As it stands in tables.
    pub fn name(self) -> &'static str {
        match self {
            Cached::Off => "off",
            Cached::Cold => "cold",
            Cached::Warm => "warm",
            Cached::Expired => "expired",
            Cached::Broken => "broken",
        }
    }
}

/// One turn, for whoever watches a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Its number in its run, from 1.
    pub number: u64,
    /// The run and the message that it belongs to, from 1.
    pub run: u64,
    /// See `run`.
    pub message: u64,
    /// When the call, or the summary before it, began after the run's first, s; the user's waits counted.
    pub started_s: f64,
    /// What it met in the prompt cache.
    pub cache: Cached,
    /// From the start of the call, or of the summary before it, to the end of its tool phase, s.
    pub latency_s: f64,
    /// The tool phase, s; `None` after the answer.
    pub tool_phase_s: Option<f64>,
    /// Time to the first token, s.
    pub first_token_s: f64,
    /// Whether its call was answered.
    pub answered: bool,
    /// The tokens of its own call by class.
    pub usage: Split,
    /// Money for all that was requested since the turn before: its call, attempts whose reply was lost, summaries and
    /// pings; without tool fees.
    pub cost: PicoUsd,
    /// The same without a cache, and so without pings.
    pub cost_without_cache: PicoUsd,
}
