//! What is measured of each session, and which of it applies to a scenario.

use crate::dist::{Dist, Whole};
use crate::model::{Model, Tool};
use crate::session::{Outcome, Record};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Usd,
    Tokens,
    Count,
    Seconds,
}

macro_rules! quantities {
    ($($variant:ident $name:literal $unit:ident $get:expr;)*) => {
        /// A number per session. The first [`Metric::ALL`] of them are reported with their distribution; the others only
        /// enter ratios.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Quantity { $($variant),* }

        impl Quantity {
            /// Every quantity, in the order of its column.
            pub const ALL: &'static [Quantity] = &[$(Quantity::$variant),*];

            /// Its name in the report, with its unit.
            pub fn name(self) -> &'static str {
                match self { $(Quantity::$variant => $name),* }
            }

            /// What it counts.
            pub fn unit(self) -> Unit {
                match self { $(Quantity::$variant => Unit::$unit),* }
            }

            /// Its value in a record.
            pub fn of(self, record: &Record) -> f64 {
                #[allow(clippy::redundant_closure_call)]
                match self { $(Quantity::$variant => { let get: fn(&Record) -> f64 = $get; get(record) }),* }
            }
        }
    };
}

quantities! {
    CostUsd "cost_usd" Usd |r| r.cost.usd();
    CostInputUsd "cost_input_usd" Usd |r| r.cost_input.usd();
    CostOutputUsd "cost_output_usd" Usd |r| r.cost_output.usd();
    CostToolsUsd "cost_tools_usd" Usd |r| r.cost_tools.usd();
    CostInputWithoutCacheUsd "cost_input_without_cache_usd" Usd |r| r.cost_input_without_cache.usd();
    InputTokens "input_tokens" Tokens |r| r.input_tokens as f64;
    UncachedTokens "uncached_tokens" Tokens |r| r.uncached_tokens as f64;
    CacheReadTokens "cache_read_tokens" Tokens |r| r.cache_read_tokens as f64;
    CacheWriteTokens "cache_write_tokens" Tokens |r| r.cache_write_tokens as f64;
    OutputTokens "output_tokens" Tokens |r| r.output_tokens as f64;
    Turns "turns" Count |r| r.turns as f64;
    ToolCalls "tool_calls" Count |r| r.tool_calls as f64;
    Attempts "attempts" Count |r| r.attempts as f64;
    Executions "executions" Count |r| r.executions as f64;
    Duplicates "duplicates" Count |r| r.duplicates as f64;
    LatencyS "latency_s" Seconds |r| r.latency_s;
    ModelS "model_s" Seconds |r| r.model_s;
    ToolS "tool_s" Seconds |r| r.tool_s;
    RetryWaitS "retry_wait_s" Seconds |r| r.retry_wait_s;
    ExpiredGaps "expired_gaps" Count |r| r.expired_gaps as f64;
    SucceededCalls "succeeded_calls" Count |r| r.succeeded_calls as f64;
    Gaps "gaps" Count |r| r.turns.saturating_sub(1) as f64;
    Phases "phases" Count |r| r.phases as f64;
    FirstTokenS "first_token_sum_s" Seconds |r| r.first_token_s;
    PhaseSSquared "phase_s_squared" Seconds |r| r.phase_s_squared;
    DefinitionTokens "definition_tokens" Tokens |r| r.definition_tokens as f64;
    Answered "answered" Count |r| f64::from(u8::from(r.outcome == Outcome::Answered));
    One "sessions" Count |_| 1.0;
}

/// A quantity that is reported with its distribution over sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Metric(Quantity);

impl Metric {
    /// Every metric, in the order of the report.
    pub const ALL: [Metric; 20] = {
        let mut all = [Metric(Quantity::CostUsd); 20];
        let mut index = 0;
        while index < all.len() {
            all[index] = Metric(Quantity::ALL[index]);
            index += 1;
        }
        all
    };

    /// The metric with this name.
    pub fn named(name: &str) -> Option<Metric> {
        Self::ALL.into_iter().find(|metric| metric.0.name() == name)
    }

    /// The metric of a quantity, if its distribution is kept.
    pub fn of(quantity: Quantity) -> Option<Metric> {
        Self::ALL.into_iter().find(|metric| metric.0 == quantity)
    }

    /// The number it is.
    pub fn quantity(self) -> Quantity {
        self.0
    }

    /// Whether it says anything about this model: a metric that doesn't apply is left out, never 0.
    pub fn applies(self, model: &Model) -> bool {
        let tools = &model.phase.tools;
        let priced = model.tariff.is_some();
        match self.0 {
            Quantity::CostUsd | Quantity::CostInputUsd | Quantity::CostOutputUsd => priced,
            Quantity::CostToolsUsd => priced && tools.iter().any(|t| t.price.0 > 0),
            Quantity::CostInputWithoutCacheUsd => priced && model.cache.enabled,
            Quantity::CacheReadTokens | Quantity::CacheWriteTokens | Quantity::ExpiredGaps => model.cache.enabled,
            Quantity::ToolCalls | Quantity::Attempts | Quantity::Executions => !tools.is_empty(),
            Quantity::InputTokens | Quantity::UncachedTokens => sends_tokens(model),
            Quantity::OutputTokens => model.output.as_constant() != Some(0),
            Quantity::ToolS => tools.iter().any(takes_time),
            Quantity::Duplicates => can_duplicate(model),
            Quantity::RetryWaitS => tools.iter().any(|t| t.retry.attempts > 1 && can_fail(t)),
            Quantity::ModelS => model_takes_time(model),
            Quantity::LatencyS => model_takes_time(model) || tools.iter().any(takes_time),
            _ => true,
        }
    }
}

fn above_zero(law: &Dist) -> bool {
    law.as_constant().is_none_or(|x| x > 0.0)
}

fn takes_time(tool: &Tool) -> bool {
    let rejections = tool.rejected > 0.0
        && (above_zero(&tool.reject_latency_s) || (tool.retry.attempts > 1 && tool.retry.base_s > 0.0));
    above_zero(&tool.latency_s) || tool.timeout_s.is_finite() || rejections
}

fn can_fail(tool: &Tool) -> bool {
    tool.fault_chance() > 0.0 || tool.timeout_s.is_finite() || tool.retry.deadline_s.is_finite()
}

fn can_duplicate(model: &Model) -> bool {
    model.phase.tools.iter().any(Tool::can_run_twice)
}

fn sends_tokens(model: &Model) -> bool {
    let some = |law: &Whole| law.as_constant() != Some(0);
    let prompt = &model.prompt;
    prompt.definition_tokens() > 0
        || some(&prompt.system)
        || some(&prompt.task)
        || some(&model.output)
        || model.phase.tools.iter().any(|t| some(&t.result) || t.error_result_tokens > 0)
}

fn first_token_takes_time(model: &Model) -> bool {
    let timing = &model.timing;
    above_zero(&timing.first_token_s) || timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0
}

fn model_takes_time(model: &Model) -> bool {
    first_token_takes_time(model) || model.timing.output_rate.is_some()
}

/// A ratio of two sums over sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Rate {
    DuplicatesPerCall,
    AttemptsPerCall,
    ExecutionsPerCall,
    Availability,
    CacheHit,
    GapExpired,
    Answered,
    RetryWaitPerCall,
    TurnLatency,
    ToolPhase,
    ToolPhaseSquared,
    FirstToken,
}

impl Rate {
    /// Every ratio that is kept.
    pub const ALL: [Rate; 12] = [
        Rate::DuplicatesPerCall,
        Rate::AttemptsPerCall,
        Rate::ExecutionsPerCall,
        Rate::Availability,
        Rate::CacheHit,
        Rate::GapExpired,
        Rate::Answered,
        Rate::RetryWaitPerCall,
        Rate::TurnLatency,
        Rate::ToolPhase,
        Rate::ToolPhaseSquared,
        Rate::FirstToken,
    ];

    /// Those of them that the report lists as rates, by name.
    pub const REPORTED: [(Rate, &'static str); 7] = [
        (Rate::DuplicatesPerCall, "duplicates_per_call"),
        (Rate::AttemptsPerCall, "attempts_per_call"),
        (Rate::ExecutionsPerCall, "executions_per_call"),
        (Rate::Availability, "availability"),
        (Rate::CacheHit, "cache_hit"),
        (Rate::GapExpired, "gap_expired"),
        (Rate::Answered, "answered"),
    ];

    /// (what is counted, per what).
    pub fn parts(self) -> (Quantity, Quantity) {
        match self {
            Rate::DuplicatesPerCall => (Quantity::Duplicates, Quantity::ToolCalls),
            Rate::AttemptsPerCall => (Quantity::Attempts, Quantity::ToolCalls),
            Rate::ExecutionsPerCall => (Quantity::Executions, Quantity::ToolCalls),
            Rate::Availability => (Quantity::SucceededCalls, Quantity::ToolCalls),
            Rate::CacheHit => (Quantity::CacheReadTokens, Quantity::InputTokens),
            Rate::GapExpired => (Quantity::ExpiredGaps, Quantity::Gaps),
            Rate::Answered => (Quantity::Answered, Quantity::One),
            Rate::RetryWaitPerCall => (Quantity::RetryWaitS, Quantity::ToolCalls),
            Rate::TurnLatency => (Quantity::LatencyS, Quantity::Turns),
            Rate::ToolPhase => (Quantity::ToolS, Quantity::Phases),
            Rate::ToolPhaseSquared => (Quantity::PhaseSSquared, Quantity::Phases),
            Rate::FirstToken => (Quantity::FirstTokenS, Quantity::Turns),
        }
    }

    /// Whether it is a share of equal trials, between 0 and 1.
    pub fn is_share(self) -> bool {
        matches!(self, Rate::DuplicatesPerCall | Rate::Availability | Rate::GapExpired | Rate::Answered)
    }

    /// Whether it can't be more than 1.
    pub fn is_at_most_one(self) -> bool {
        self.is_share() || self == Rate::CacheHit
    }

    /// Whether it says anything about this model.
    pub fn applies(self, model: &Model) -> bool {
        match self {
            Rate::DuplicatesPerCall => can_duplicate(model),
            Rate::AttemptsPerCall | Rate::ExecutionsPerCall => model.phase.tools.iter().any(can_fail),
            Rate::Availability => model.phase.tools.iter().any(|t| can_fail(t) || t.error > 0.0),
            Rate::CacheHit | Rate::GapExpired => model.cache.enabled,
            Rate::RetryWaitPerCall => Metric(Quantity::RetryWaitS).applies(model),
            Rate::TurnLatency => Metric(Quantity::LatencyS).applies(model),
            Rate::ToolPhase | Rate::ToolPhaseSquared => Metric(Quantity::ToolS).applies(model),
            Rate::FirstToken => first_token_takes_time(model),
            Rate::Answered => true,
        }
    }
}
