//! What a run has used so far, and whether its budget allows more (MODEL.md §5).

use super::record::Limit;
use crate::model::{Budget, Model};
use crate::price::{PicoUsd, Split};

/// Sums over the requests so far. They are kept only where somebody asks for them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spend {
    /// Whether sums are kept.
    pub kept: bool,
    /// What was used of the budget before this run.
    pub before: Used,
    /// Money of all model requests.
    pub requests: PicoUsd,
    /// The same without a cache, pings left out.
    pub without_cache: PicoUsd,
    /// Fees of tools, up to the end of the last phase.
    pub fees: PicoUsd,
    /// The most that the fees of the phase to come can be, where a budget of dollars is checked before.
    pub reserved: PicoUsd,
    /// Money and tokens of agents that were called, up to the end of the last phase.
    pub agents: (PicoUsd, u64),
    /// Tokens sent and written.
    pub tokens: u64,
}

/// What was used of a budget by earlier runs, or by whoever called an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Money of requests and fees.
    pub usd: PicoUsd,
    /// Tokens sent and written.
    pub tokens: u64,
    /// Calls, summaries and searches not counted.
    pub turns: u64,
    /// Time without the user's think time, s.
    pub busy_s: f64,
}

/// The most that a request can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstCase {
    /// Money.
    pub usd: PicoUsd,
    /// Tokens sent and written.
    pub tokens: u64,
}

/// [`Tariff::worst_case`](crate::price::Tariff::worst_case) of a model's request; tools and system are the prefix.
pub fn worst_case(model: &Model, prefix: u64, prompt: u64, max_output: u64) -> WorstCase {
    let worst = |tariff: &crate::price::Tariff| tariff.worst_case(prefix, prompt, max_output, model.cache.enabled);
    let usd = model.tariff.as_ref().map_or_else(PicoUsd::default, worst);
    WorstCase { usd, tokens: prompt + max_output }
}

impl Spend {
    /// Money of all requests and fees that the budget has seen.
    pub fn usd(&self) -> PicoUsd {
        self.before.usd + self.requests + self.fees + self.agents.0
    }

    fn all_tokens(&self) -> u64 {
        self.before.tokens + self.tokens + self.agents.1
    }

    pub fn request(&mut self, cost: PicoUsd, usage: &Split) {
        self.requests += cost;
        self.tokens += usage.prompt_tokens() + usage.output_tokens;
    }

    /// The limit that a request of this worst case, which is call number `turn`, might pass.
    pub fn refuses(&self, budget: &Budget, worst: WorstCase, turn: u64) -> Option<Limit> {
        if budget.turns.is_some_and(|most| self.before.turns + turn > most) {
            Some(Limit::Turns)
        } else if budget.dollars.is_some_and(|most| self.usd() + worst.usd > most) {
            Some(Limit::Dollars)
        } else if budget.tokens.is_some_and(|most| self.all_tokens() + worst.tokens > most) {
            Some(Limit::Tokens)
        } else {
            None
        }
    }

    /// How many requests of this size the budget still allows.
    pub fn most(&self, budget: &Budget, cost: PicoUsd, tokens: u64) -> u64 {
        let by_dollars = budget.dollars.filter(|_| cost.0 > 0).map_or(u64::MAX, |most| {
            let left = (most - self.usd()).0.max(0);
            u64::try_from(left / cost.0).unwrap_or(u64::MAX)
        });
        let by_tokens = budget.tokens.map_or(u64::MAX, |most| most.saturating_sub(self.all_tokens()) / tokens.max(1));
        by_dollars.min(by_tokens)
    }

    /// The limit that has been passed after call number `turn`. The next call would surely pass a limit of turns.
    pub fn passed(&self, budget: &Budget, turn: u64, busy_s: f64) -> Option<Limit> {
        if budget.turns.is_some_and(|most| self.before.turns + turn >= most) {
            Some(Limit::Turns)
        } else if budget.dollars.is_some_and(|most| self.usd() > most) {
            Some(Limit::Dollars)
        } else if budget.tokens.is_some_and(|most| self.all_tokens() > most) {
            Some(Limit::Tokens)
        } else if budget.time_s.is_some_and(|most| self.before.busy_s + busy_s > most) {
            Some(Limit::Time)
        } else {
            None
        }
    }

    /// Whether fees of this size can be paid.
    pub fn allows_fees(&self, budget: &Budget, fees: PicoUsd) -> bool {
        budget.dollars.is_none_or(|most| self.usd() + fees <= most)
    }
}

/// The most that `calls` calls of each tool can cost.
pub(super) fn worst_fees(model: &Model, calls: impl Fn(usize) -> u64) -> PicoUsd {
    let tools = model.phase.tools.iter().enumerate().filter(|(_, tool)| tool.price.0 > 0);
    tools
        .map(|(index, tool)| {
            let copies = if tool.is_hedged() { 2 } else { 1 };
            let executions = if tool.idempotent { 1 } else { u64::from(tool.retry.attempts) * copies };
            tool.price * calls(index).saturating_mul(executions)
        })
        .sum()
}
