//! What is measured of each session, and which of it applies to a scenario.

use crate::dist::{Dist, Whole};
use crate::model::{Loading, Model, Tool};
use crate::session::{Outcome, Record, real};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Usd,
    Tokens,
    Count,
    Seconds,
}

/// What finds a number in a session's record.
pub(super) type Getter = fn(&Record) -> f64;

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
                self.getter()(record)
            }

            /// What finds its value in a record.
            pub(super) fn getter(self) -> Getter {
                match self { $(Quantity::$variant => $get),* }
            }
        }
    };
}

quantities! {
    CostUsd "cost_usd" Usd |r| r.cost.usd();
    CostInputUsd "cost_input_usd" Usd |r| (r.cost_input + r.agents.cost_input).usd();
    CostOutputUsd "cost_output_usd" Usd |r| (r.cost_output + r.agents.cost_output).usd();
    CostToolsUsd "cost_tools_usd" Usd |r| (r.cost_tools + r.agents.cost_tools).usd();
    CostInputWithoutCacheUsd "cost_input_without_cache_usd" Usd |r| {
        (r.cost_input_without_cache + r.agents.cost_input_without_cache).usd()
    };
    InputTokens "input_tokens" Tokens |r| real(r.input_tokens + r.agents.input_tokens());
    UncachedTokens "uncached_tokens" Tokens |r| real(r.uncached_tokens + r.agents.uncached_tokens);
    CacheReadTokens "cache_read_tokens" Tokens |r| real(r.cache_read_tokens + r.agents.cache_read_tokens);
    CacheWriteTokens "cache_write_tokens" Tokens |r| real(r.cache_write_tokens + r.agents.cache_write_tokens);
    OutputTokens "output_tokens" Tokens |r| real(r.output_tokens + r.agents.output_tokens);
    Turns "turns" Count |r| real(r.turns);
    ToolCalls "tool_calls" Count |r| real(r.tool_calls);
    Attempts "attempts" Count |r| real(r.attempts);
    Executions "executions" Count |r| real(r.executions);
    Duplicates "duplicates" Count |r| real(r.duplicates);
    LatencyS "latency_s" Seconds |r| r.latency_s;
    ModelS "model_s" Seconds |r| r.model_s;
    ToolS "tool_s" Seconds |r| r.tool_s;
    RetryWaitS "retry_wait_s" Seconds |r| r.retry_wait_s;
    ExpiredGaps "expired_gaps" Count |r| real(r.expired_gaps);
    ApprovalS "approval_s" Seconds |r| r.approval_s;
    ThinkS "think_s" Seconds |r| r.think_s;
    Messages "messages" Count |r| real(r.messages);
    ModelAttempts "model_attempts" Count |r| real(r.model_attempts);
    Hedges "hedges" Count |r| real(r.hedges);
    Summaries "summaries" Count |r| real(r.summaries);
    KeepAlivePings "keep_alive_pings" Count |r| real(r.keep_alive_pings);
    CacheBreaks "cache_breaks" Count |r| real(r.breaks);
    Runs "runs" Count |r| real(r.runs);
    Searches "tool_searches" Count |r| real(r.searches);
    SearchS "tool_search_s" Seconds |r| r.search_s;
    QueueS "queue_s" Seconds |r| r.queue_s;
    HerdCalls "herd_calls" Count |r| real(r.attempts);
    HerdTimeS "herd_time_s" Seconds |r| r.latency_s;
    HerdGaveUp "herd_gave_up" Count |r| real(r.refused_calls);
    SucceededCalls "succeeded_calls" Count |r| real(r.succeeded_calls);
    TotalTokens "total_tokens" Tokens |r| real(r.input_tokens + r.output_tokens + r.agents.tokens());
    OwnInputUsd "own_input_usd" Usd |r| r.cost_input.usd();
    OwnOutputUsd "own_output_usd" Usd |r| r.cost_output.usd();
    OwnInputTokens "own_input_tokens" Tokens |r| real(r.input_tokens);
    OwnOutputTokens "own_output_tokens" Tokens |r| real(r.output_tokens);
    ToolsSettled "tools_settled" Count |r| real(r.tools_settled);
    ToolsFound "tools_found" Count |r| real(r.tools_found);
    Served "served" Count |r| f64::from(u8::from(r.served));
    CallTokens "call_tokens" Tokens |r| real(r.input_tokens - r.keep_alive_tokens);
    CallReadTokens "call_read_tokens" Tokens |r| real(r.cache_read_tokens - r.keep_alive_tokens);
    ToolRetryWaitS "tool_retry_wait_s" Seconds |r| r.retry_wait_s - r.model_wait_s;
    Gaps "gaps" Count |r| real(r.gaps);
    PingGaps "ping_gaps" Count |r| real(r.gaps + r.refused_gaps);
    AnsweredTurns "answered_turns" Count |r| real(r.answered_turns);
    Phases "phases" Count |r| real(r.phases);
    FirstTokenS "first_token_sum_s" Seconds |r| r.first_token_s;
    PhaseSSquared "phase_s_squared" Seconds |r| r.phase_s_squared;
    DefinitionTokens "definition_tokens" Tokens |r| real(r.definition_tokens);
    SentCalls "sent_calls" Count |r| real(r.sent_calls);
    RefusedCalls "refused_calls" Count |r| real(r.refused_calls);
    ModelCalls "model_calls" Count |r| real(r.model_calls);
    ModelExecutions "model_executions" Count |r| real(r.model_executions);
    BudgetStopped "budget_stopped" Count |r| f64::from(u8::from(r.stopped_by.is_some()));
    Success "successes" Count |r| f64::from(u8::from(r.succeeded));
    Tries "tries" Count |r| real(r.tries);
    SmallRuns "small_runs" Count |r| real(r.small_runs);
    Redone "redone" Count |r| real(r.redone);
    Failed "failed" Count |r| f64::from(u8::from(r.outcome == Outcome::Failed));
    Answered "answered" Count |r| f64::from(u8::from(r.outcome == Outcome::Answered));
    One "sessions" Count |_| 1.0;
}

/// A quantity that is reported with its distribution over sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Metric(Quantity);

impl Metric {
    /// Every metric, in the order of the report.
    pub const ALL: [Metric; 35] = {
        let mut all = [Metric(Quantity::CostUsd); 35];
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

    /// The most similar name of a metric.
    pub fn nearest(name: &str) -> Option<&'static str> {
        let similar = |metric: Metric| (strsim::jaro_winkler(metric.0.name(), name), metric.0.name());
        let nearest = Self::ALL.into_iter().map(similar).max_by(|a, b| a.0.total_cmp(&b.0));
        nearest.filter(|(score, _)| *score > 0.75).map(|(_, name)| name)
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
        self.0.applies(model)
    }
}

impl Quantity {
    /// Whether it says anything about this model, or about the small one of its routing.
    pub fn applies(self, model: &Model) -> bool {
        self.applies_alone(model) || model.routing.as_ref().is_some_and(|routing| self.applies_alone(&routing.small))
    }

    fn applies_alone(self, model: &Model) -> bool {
        if let Some(herd) = &model.herd {
            return match self {
                Quantity::HerdCalls | Quantity::HerdTimeS | Quantity::One => true,
                Quantity::HerdGaveUp => herd.retry.attempts < u32::MAX || herd.retry.deadline_s.is_finite(),
                _ => false,
            };
        }
        let tools = &model.phase.tools;
        let priced = model.tariff.is_some();
        match self {
            Quantity::CostUsd | Quantity::CostInputUsd | Quantity::CostOutputUsd => priced,
            Quantity::CostToolsUsd => {
                priced && model.any_in_tree(&|model| model.phase.tools.iter().any(|t| t.price.0 > 0))
            }
            Quantity::CostInputWithoutCacheUsd => priced && model.any_in_tree(&|model| model.cache.enabled),
            Quantity::ExpiredGaps => model.cache.enabled,
            Quantity::CacheReadTokens | Quantity::CacheWriteTokens => model.any_in_tree(&|model| model.cache.enabled),
            Quantity::InputTokens
            | Quantity::UncachedTokens
            | Quantity::CallTokens
            | Quantity::CallReadTokens
            | Quantity::DefinitionTokens => model.any_in_tree(&sends_tokens),
            Quantity::OutputTokens => model.any_in_tree(&|model| model.output.as_constant() != Some(0)),
            Quantity::ToolS => tools.iter().any(takes_time),
            Quantity::Duplicates => can_duplicate(model),
            Quantity::RetryWaitS => {
                tools.iter().any(|t| t.retry.attempts > 1 && can_fail(t))
                    || (model.retry.attempts > 1 && model.calls_can_fail())
            }
            Quantity::ApprovalS => tools.iter().any(|t| t.approval.is_some()),
            Quantity::ThinkS => !model.conversation.is_single() && above_zero(&model.conversation.think_s),
            Quantity::Messages => !model.conversation.is_single(),
            Quantity::ModelAttempts | Quantity::ModelExecutions | Quantity::ModelCalls => model.calls_can_fail(),
            Quantity::QueueS => model.has_queues(),
            Quantity::Hedges => tools.iter().any(Tool::is_hedged),
            Quantity::Summaries => model.context.compact_at_tokens < u64::MAX,
            Quantity::KeepAlivePings | Quantity::PingGaps => model.cache.is_kept_alive(),
            Quantity::CacheBreaks => model.cache.breaks.any(),
            Quantity::RefusedCalls => model.phase.breaker.is_some(),
            Quantity::BudgetStopped | Quantity::TotalTokens => model.budget.any(),
            Quantity::Runs => can_run_again(model),
            Quantity::Searches | Quantity::ToolsSettled | Quantity::ToolsFound => model.searches(),
            Quantity::Served => model.any_in_tree(&Model::searches),
            Quantity::HerdCalls | Quantity::HerdTimeS | Quantity::HerdGaveUp => false,
            Quantity::SearchS => model.searches() && (model_takes_time(model) || search_takes_time(model)),
            Quantity::OwnInputUsd | Quantity::OwnOutputUsd | Quantity::OwnInputTokens | Quantity::OwnOutputTokens => {
                model.has_agents()
            }
            Quantity::Success => model.success.is_some(),
            Quantity::Tries => !model.is_one_run(),
            Quantity::SmallRuns | Quantity::Redone => model.routing.is_some(),
            Quantity::ToolCalls
            | Quantity::Attempts
            | Quantity::Executions
            | Quantity::SucceededCalls
            | Quantity::SentCalls
            | Quantity::ToolRetryWaitS
            | Quantity::Phases
            | Quantity::PhaseSSquared => !tools.is_empty(),
            Quantity::Failed => Rate::Failed.applies_alone(model),
            Quantity::ModelS => model_takes_time(model),
            Quantity::LatencyS => model_takes_time(model) || tools.iter().any(takes_time) || search_takes_time(model),
            _ => true,
        }
    }
}

fn above_zero(law: &Dist) -> bool {
    law.as_constant().is_none_or(|x| x > 0.0)
}

fn takes_time(tool: &Tool) -> bool {
    let rejections = tool.faults.rejected > 0.0
        && (above_zero(&tool.reject_latency_s) || (tool.retry.attempts > 1 && tool.retry.base_s > 0.0));
    if tool.agent.as_ref().is_some_and(|agent| Quantity::LatencyS.applies(&agent.model)) {
        return true;
    }
    let people = tool.approval.as_ref().is_some_and(|approval| above_zero(&approval.wait_s));
    above_zero(&tool.latency_s) || tool.faults.timeout_s.is_finite() || rejections || people
}

fn can_fail(tool: &Tool) -> bool {
    tool.attempts_can_fail() || tool.retry.deadline_s.is_finite()
}

fn can_duplicate(model: &Model) -> bool {
    model.phase.tools.iter().any(Tool::can_run_twice)
}

fn can_run_again(model: &Model) -> bool {
    model.routing.as_ref().is_some_and(|routing| routing.redo > 0.0) || !model.is_tried_once()
}

fn sends_tokens(model: &Model) -> bool {
    let some = |law: &Whole| law.as_constant() != Some(0);
    let prompt = &model.prompt;
    prompt.definition_tokens() > 0
        || some(&prompt.system)
        || some(&prompt.task)
        || some(&model.output)
        || (!model.conversation.is_single() && some(&model.conversation.message))
        || model.phase.tools.iter().any(|t| some(&t.result) || t.error_result_tokens > 0 || finds_tokens(t))
        || model.phase.code.iter().any(|server| server.read_tokens > 0)
        || (model.searches() && model.search.as_ref().is_some_and(|search| search.output_tokens > 0))
}

fn finds_tokens(tool: &Tool) -> bool {
    matches!(tool.loading, Loading::Search { appended_tokens } if appended_tokens > 0)
}

fn search_takes_time(model: &Model) -> bool {
    model.searches() && model.search.as_ref().is_some_and(|search| above_zero(&search.latency_s))
}

fn first_token_takes_time(model: &Model) -> bool {
    let timing = &model.timing;
    above_zero(&timing.first_token_s) || timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0
}

fn model_takes_time(model: &Model) -> bool {
    let waits = model.calls_can_fail() && model.retry.attempts > 1 && model.retry.base_s > 0.0;
    first_token_takes_time(model) || model.timing.output_rate.is_some() || model.faults.timeout_s.is_finite() || waits
}

macro_rules! rates {
    ($($variant:ident $name:expr, $of:ident / $per:ident;)*) => {
        /// A ratio of two sums over sessions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Rate { $($variant),* }

        impl Rate {
            /// Every ratio that is kept.
            pub const ALL: &'static [Rate] = &[$(Rate::$variant),*];

            /// Its name among the rates of the report, if it is one of them.
            pub fn name(self) -> Option<&'static str> {
                match self { $(Rate::$variant => $name),* }
            }

            /// (what is counted, per what).
            pub fn parts(self) -> (Quantity, Quantity) {
                match self { $(Rate::$variant => (Quantity::$of, Quantity::$per)),* }
            }
        }
    };
}

rates! {
    DuplicatesPerCall Some("duplicates_per_call"), Duplicates / ToolCalls;
    AttemptsPerCall Some("attempts_per_call"), Attempts / ToolCalls;
    ExecutionsPerCall Some("executions_per_call"), Executions / ToolCalls;
    Availability Some("availability"), SucceededCalls / SentCalls;
    CallSuccess Some("call_success"), SucceededCalls / ToolCalls;
    HedgesPerCall Some("hedges_per_call"), Hedges / ToolCalls;
    BreakerRefused Some("breaker_refused"), RefusedCalls / ToolCalls;
    ModelAttemptsPerCall Some("model_attempts_per_call"), ModelAttempts / ModelCalls;
    ModelExecutionsPerCall Some("model_executions_per_call"), ModelExecutions / ModelCalls;
    CacheHit Some("cache_hit"), CacheReadTokens / InputTokens;
    GapExpired Some("gap_expired"), ExpiredGaps / Gaps;
    CacheBroken Some("cache_broken"), CacheBreaks / Gaps;
    PingsPerGap Some("keep_alive_pings_per_gap"), KeepAlivePings / PingGaps;
    BudgetStopped Some("budget_stopped"), BudgetStopped / One;
    Served Some("served"), Served / One;
    ToolsFound Some("tools_found"), ToolsFound / ToolsSettled;
    RunsOnSmallModel Some("runs_on_small_model"), SmallRuns / Tries;
    Redone Some("redone"), Redone / Tries;
    Success Some("success"), Success / One;
    SuccessPerTry Some("success_per_try"), Success / Tries;
    CostPerSuccess Some("cost_per_success_usd"), CostUsd / Success;
    Failed Some("failed"), Failed / One;
    CostPerAnswer Some("cost_per_answer_usd"), CostUsd / Answered;
    Answered Some("answered"), Answered / One;
    RetryWaitPerCall None, ToolRetryWaitS / ToolCalls;
    TurnLatency None, LatencyS / Turns;
    MessageLatency None, LatencyS / Messages;
    ToolPhase None, ToolS / Phases;
    ToolPhaseSquared None, PhaseSSquared / Phases;
    FirstToken None, FirstTokenS / AnsweredTurns;
}

impl Rate {
    /// Whether it is a share of equal trials, between 0 and 1.
    pub fn is_share(self) -> bool {
        matches!(
            self,
            Rate::DuplicatesPerCall
                | Rate::Availability
                | Rate::BreakerRefused
                | Rate::GapExpired
                | Rate::CacheBroken
                | Rate::BudgetStopped
                | Rate::Served
                | Rate::ToolsFound
                | Rate::RunsOnSmallModel
                | Rate::Redone
                | Rate::Success
                | Rate::SuccessPerTry
                | Rate::Answered
                | Rate::Failed
                | Rate::CallSuccess
        )
    }

    /// Whether it falls where sessions wait for others: it counts what comes off well, or is found in the cache.
    pub fn is_lowered_by_waiting(self) -> bool {
        matches!(
            self,
            Rate::Availability
                | Rate::CallSuccess
                | Rate::CacheHit
                | Rate::Served
                | Rate::Success
                | Rate::SuccessPerTry
                | Rate::Answered
        )
    }

    /// Whether it can't be more than 1.
    pub fn is_at_most_one(self) -> bool {
        self.is_share() || self == Rate::CacheHit
    }

    /// Whether it says anything about this model, or about the small one of its routing.
    pub fn applies(self, model: &Model) -> bool {
        self.applies_alone(model) || model.routing.as_ref().is_some_and(|routing| self.applies_alone(&routing.small))
    }

    fn applies_alone(self, model: &Model) -> bool {
        if model.herd.is_some() {
            return false;
        }
        match self {
            Rate::DuplicatesPerCall => can_duplicate(model),
            Rate::AttemptsPerCall | Rate::ExecutionsPerCall => model.phase.tools.iter().any(can_fail),
            Rate::Availability => {
                let refused = model.fleet.is_some() && model.phase.breaker.is_some();
                refused || model.phase.tools.iter().any(|t| can_fail(t) || t.error > 0.0 || t.agent.is_some())
            }
            Rate::CacheHit => Quantity::CacheReadTokens.applies(model),
            Rate::GapExpired => model.cache.enabled,
            Rate::HedgesPerCall
            | Rate::BreakerRefused
            | Rate::ModelAttemptsPerCall
            | Rate::ModelExecutionsPerCall
            | Rate::CacheBroken
            | Rate::PingsPerGap
            | Rate::BudgetStopped
            | Rate::Served
            | Rate::ToolsFound
            | Rate::RunsOnSmallModel
            | Rate::Redone
            | Rate::Success => self.parts().0.applies(model),
            Rate::SuccessPerTry => !model.is_tried_once(),
            Rate::CostPerSuccess => model.success.is_some() && model.tariff.is_some(),
            Rate::RetryWaitPerCall => Quantity::RetryWaitS.applies(model) && !model.phase.tools.is_empty(),
            Rate::TurnLatency => Metric(Quantity::LatencyS).applies(model),
            Rate::MessageLatency => Quantity::Messages.applies(model) && Quantity::LatencyS.applies(model),
            Rate::ToolPhase | Rate::ToolPhaseSquared => Metric(Quantity::ToolS).applies(model),
            Rate::FirstToken => first_token_takes_time(model),
            Rate::Answered => true,
            Rate::Failed => model.fleet.is_some() && model.calls_can_fail(),
            Rate::CostPerAnswer => model.fleet.is_some() && model.tariff.is_some(),
            Rate::CallSuccess => model.fleet.is_some() && Rate::Availability.applies_alone(model),
        }
    }
}
