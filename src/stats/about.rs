//! What each metric means, for the reader of a table or a report.

use super::metric::{Metric, Quantity};

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
