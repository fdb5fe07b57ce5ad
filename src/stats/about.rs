//! What each figure means, for the reader of a table or a report.

use super::figure::Figure;
use super::metric::{Metric, Quantity, Rate};
use super::statistic::Statistic;
use super::summary::TurnMetric;

impl Metric {
    /// What it means, in a sentence.
    pub fn about(self) -> &'static str {
        match self.quantity() {
            Quantity::CostUsd => "All that the session cost, $",
            Quantity::CostInputUsd => "What was sent: prompts, cache reads and cache writes, $",
            Quantity::CostOutputUsd => "What the model wrote, $",
            Quantity::CostToolsUsd => "Fees of tool calls, repeated executions included, $",
            Quantity::CostInputWithoutCacheUsd => "What the same prompts would have cost at the plain input price, $",
            Quantity::InputTokens => "All that was sent: each call's prompt is the whole history",
            Quantity::UncachedTokens => "Tokens sent that were neither read from the cache nor written to it",
            Quantity::CacheReadTokens => "Tokens sent that were read from the cache",
            Quantity::CacheWriteTokens => "Tokens sent that were written to the cache",
            Quantity::OutputTokens => "Tokens that the model wrote",
            Quantity::Turns => "Model calls of the loop",
            Quantity::ToolCalls => "Tool calls, however often each was attempted",
            Quantity::Attempts => "Attempts of tool calls",
            Quantity::Executions => "Attempts of tool calls that a tool carried out",
            Quantity::Duplicates => "Tool calls that were carried out twice or more and weren't idempotent",
            Quantity::LatencyS => "From the first request to the answer, without the user's think time, s",
            Quantity::ModelS => "Wall time of model calls with their retries, s",
            Quantity::ToolS => "Wall time of tool phases, s",
            Quantity::RetryWaitS => "Waits between attempts, summed over calls also where they overlap, s",
            Quantity::ExpiredGaps => "Calls after the first that found some of their cached prefix expired",
            Quantity::ApprovalS => "Waits for a person's approval, summed over calls also where they overlap, s",
            Quantity::ThinkS => "The user's waits before later messages, no part of the latency, s",
            Quantity::Messages => "User messages whose loop was begun",
            Quantity::ModelAttempts => "Attempts of model calls",
            Quantity::Hedges => "Second copies of attempts that were sent",
            Quantity::Summaries => "Calls that replaced the history by a summary",
            Quantity::KeepAlivePings => "Pings that kept the cache warm",
            Quantity::CacheBreaks => "Calls before which earlier bytes of the prompt had changed",
            Quantity::Runs => "Runs of the session: on a small model, again without it, again until it succeeds",
            Quantity::Searches => "Calls that searched for a tool",
            Quantity::SearchS => "Time of searches for tools, s",
            Quantity::QueueS => "Waits for a free place, summed over calls, s",
            Quantity::HerdCalls => "Calls of all clients together until the last is done",
            Quantity::HerdTimeS => "Until the last client is done, s",
            Quantity::HerdGaveUp => "Clients that gave up",
            // what only enters ratios is no metric
            _ => "",
        }
    }
}

impl TurnMetric {
    /// What it means, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            TurnMetric::Latency => "One turn, from the start of its model call to the end of its tool calls, s",
            TurnMetric::ToolPhase => "The tool calls of one turn, from their start to the end of the last, s",
            TurnMetric::FirstToken => "From the start of a model call to its first token, s",
            TurnMetric::Message => "One message of the user, from its request to its answer, s",
        }
    }
}

impl Rate {
    /// What it means, in a sentence; empty of one that has no name.
    pub fn about(self) -> &'static str {
        match self {
            Rate::DuplicatesPerCall => "Of the tool calls, those carried out twice or more that weren't idempotent",
            Rate::AttemptsPerCall => "Attempts a tool call",
            Rate::ExecutionsPerCall => "Attempts a tool call that the tool carried out",
            Rate::Availability => "Of the tool calls that were sent, those that got their result",
            Rate::CallSuccess => "Of the tool calls that were wanted, those that got their result",
            Rate::HedgesPerCall => "Second copies a tool call",
            Rate::BreakerRefused => "Of the tool calls, those that a breaker ended",
            Rate::ModelAttemptsPerCall => "Attempts a model call",
            Rate::ModelExecutionsPerCall => "Attempts a model call that were carried out and billed",
            Rate::CacheHit => "Of the tokens sent, those read from the cache",
            Rate::GapExpired => "Of the calls after the first, those that found some of their cached prefix expired",
            Rate::CacheBroken => "Of the calls after the first, those before which earlier bytes had changed",
            Rate::PingsPerGap => "Pings that kept the cache warm, a gap between two calls",
            Rate::BudgetStopped => "Of the sessions, those that a budget ended",
            Rate::Served => "Of the sessions, those that found every tool that they needed",
            Rate::ToolsFound => "Of the tools that were searched for, those that were found",
            Rate::RunsOnSmallModel => "Of the tries, those that began on the small model",
            Rate::Redone => "Of the tries, those that were done again without the small model",
            Rate::Success => "Of the sessions, those that succeeded",
            Rate::SuccessPerTry => "Of the tries, those that succeeded",
            Rate::CostPerSuccess => "All money over the sessions that succeeded, $",
            Rate::Failed => "Of the sessions, those that a failed model call ended",
            Rate::CostPerAnswer => "All money over the sessions that ended with their answer, $",
            Rate::Answered => "Of the sessions, those that ended with their answer",
            Rate::RetryWaitPerCall
            | Rate::TurnLatency
            | Rate::MessageLatency
            | Rate::ToolPhase
            | Rate::ToolPhaseSquared
            | Rate::FirstToken => "",
        }
    }
}

impl Figure {
    /// What it means, in a sentence.
    pub fn about(self) -> &'static str {
        match self {
            Figure::Sessions(Statistic::Mean(metric) | Statistic::Quantile(metric, _)) => metric.about(),
            Figure::Sessions(Statistic::TurnMean(metric) | Statistic::TurnQuantile(metric, _)) => metric.about(),
            Figure::Sessions(Statistic::Rate(rate)) => rate.about(),
            Figure::InProgress => "Sessions in progress, on average over time",
            Figure::EndedPerHour => "Sessions that end, an hour",
            Figure::CostPerHour => "Money of the sessions that end, $ an hour",
            Figure::Utilisation(_) => "Of its servers, the share that is busy",
            Figure::WaitMean(_) | Figure::WaitQuantile(..) => "The wait for a server, of calls whose turn came, s",
            Figure::TurnedAway(_) => "Of the requests that came, those that were turned away",
        }
    }
}
