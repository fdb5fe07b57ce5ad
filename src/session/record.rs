//! What is known of a session when it is over: one flat record.

use super::ledger::{Bill, Class};
use super::phase::PhaseTotals;
use crate::price::{PicoUsd, Usage};

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
}

/// One session.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Record {
    pub outcome: Outcome,
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
    /// Tokens of definitions sent over all calls.
    pub definition_tokens: u64,
    pub turns: u64,
    pub tool_calls: u64,
    pub attempts: u64,
    pub executions: u64,
    pub duplicates: u64,
    /// Calls that ended with the tool's result.
    pub succeeded_calls: u64,
    pub expired_gaps: u64,
    /// Tool phases.
    pub phases: u64,
    pub latency_s: f64,
    pub model_s: f64,
    pub tool_s: f64,
    pub retry_wait_s: f64,
    /// Sum over calls of the time to the first token.
    pub first_token_s: f64,
    /// Sum over phases of the squared duration.
    pub phase_s_squared: f64,
}

impl Record {
    pub(super) fn add_phases(&mut self, phases: &PhaseTotals) {
        self.tool_calls = phases.calls;
        self.attempts = phases.attempts;
        self.executions = phases.executions;
        self.duplicates = phases.duplicates;
        self.succeeded_calls = phases.succeeded;
        self.retry_wait_s = phases.retry_wait_s;
        self.cost_tools = phases.fees + phases.duplicate_fees;
        self.duplicate_fees = phases.duplicate_fees;
    }

    pub(super) fn add_bill(&mut self, bill: &Bill) {
        self.cache_read_tokens = bill.tokens(Class::Read);
        self.cache_write_tokens = bill.tokens(Class::WrittenPrefix) + bill.tokens(Class::WrittenMessages);
        self.uncached_tokens = bill.tokens(Class::Plain);
        self.input_tokens = self.cache_read_tokens + self.cache_write_tokens + self.uncached_tokens;
        self.output_tokens = bill.output_tokens;
        self.definition_tokens = bill.definition_tokens;
        self.cost_input = bill.input;
        self.cost_output = bill.output;
        self.cost_input_without_cache = bill.input_without_cache;
        self.cost = self.cost_input + self.cost_output + self.cost_tools;
    }
}

/// One turn, for whoever watches a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u64,
    /// From the start of the call to the end of its tool phase, s.
    pub latency_s: f64,
    /// The tool phase, s; `None` after the answer.
    pub tool_phase_s: Option<f64>,
    /// Time to the first token, s.
    pub first_token_s: f64,
    /// Its tokens by class.
    pub usage: Usage,
}
