//! What a scenario means, in plain numbers: no value that was a default is optional, no string was a name.
//!
//! A [`Model`] is made by [`crate::scenario::Scenario::model`] from a validated scenario; on such a model the engines
//! can't fail. All times are seconds, all sizes whole tokens, all prices pico-dollars per token.

use crate::dist::{Dist, Whole};
use crate::price::{PicoUsd, Tariff};

/// The most calls that one tool may make in one phase, the most tools, and the most turns of a session: beyond them
/// the numbers that name a random stream would collide (`engine::rng`).
pub const MOST_CALLS: u64 = 65_535;
/// See [`MOST_CALLS`].
pub const MOST_TOOLS: usize = 1_000;
/// See [`MOST_CALLS`].
pub const MOST_TURNS: u64 = 1_000_000;

/// One kind of session.
#[derive(Debug, Clone)]
pub struct Model {
    /// The first prompt.
    pub prompt: Prompt,
    /// Model calls until the answer, at least one.
    pub turns: Whole,
    /// The loop ends unanswered after this many calls; `u64::MAX` where there is no limit.
    pub max_turns: u64,
    /// The largest prompt that can be sent, tokens; `u64::MAX` where unknown.
    pub window_tokens: u64,
    /// Tokens that the model writes a turn.
    pub output: Whole,
    /// How long a model call takes.
    pub timing: Timing,
    /// What happens between two model calls.
    pub phase: Phase,
    /// The prompt cache.
    pub cache: Cache,
    /// Prices; `None` where the scenario names neither a model nor prices, and money isn't reported.
    pub tariff: Option<Tariff>,
}

/// The parts of the first prompt, in the order in which they are sent: tools, system, messages.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Tokens of each server's tool definitions, in file order.
    pub definitions: Vec<u64>,
    /// Tokens of the system prompt.
    pub system: Whole,
    /// Tokens of the first user message.
    pub task: Whole,
}

impl Prompt {
    /// Tokens of all definitions.
    pub fn definition_tokens(&self) -> u64 {
        self.definitions.iter().sum()
    }
}

/// Duration of a model call: `first_token_s + uncached · s + cached · s`, then `output / rate`.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Fixed part of the time to the first token, s.
    pub first_token_s: Dist,
    /// Seconds per prompt token that isn't read from the cache; 0 where off.
    pub prefill_s_per_token: f64,
    /// Seconds per prompt token read from the cache; 0 where free.
    pub cached_prefill_s_per_token: f64,
    /// Output tokens per second; `None` where writing takes no time.
    pub output_rate: Option<Dist>,
}

/// The tool phase after a model call.
#[derive(Debug, Clone)]
pub struct Phase {
    /// The tools in file order.
    pub tools: Vec<Tool>,
    /// Indices of `tools` such that each comes after all that it waits for.
    pub order: Vec<usize>,
    /// For each tool, the tools whose calls must be done before its own start.
    pub after: Vec<Vec<usize>>,
    /// Whether a tool's calls run one after another (`sequential`) instead of together.
    pub one_at_a_time: bool,
}

/// One tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Calls per phase.
    pub calls: Whole,
    /// Tokens of one result.
    pub result: Whole,
    /// Tokens of a failed call's text.
    pub error_result_tokens: u64,
    /// Time from request to answer, s.
    pub latency_s: Dist,
    /// After this long the client gives an attempt up, s; infinite where off.
    pub timeout_s: f64,
    /// Chance that an attempt is lost before it reaches the server.
    pub lost_request: f64,
    /// Chance that an attempt is turned away quickly and isn't executed.
    pub rejected: f64,
    /// Chance that an attempt is executed and its reply lost.
    pub lost_reply: f64,
    /// How long a rejection takes, s.
    pub reject_latency_s: Dist,
    /// Chance that an answered call reports an error of the tool itself.
    pub error: f64,
    /// Whether the server answers a repeated call with its first result instead of doing it again.
    pub idempotent: bool,
    /// Money per execution.
    pub price: PicoUsd,
    /// What the client does after a failed attempt.
    pub retry: Retry,
}

impl Tool {
    /// Whether an executed call can be sent again: its reply must be lost, by chance or by the timeout.
    pub fn can_run_twice(&self) -> bool {
        self.retry.attempts > 1
            && !self.idempotent
            && (self.lost_reply > 0.0 || self.latency_s.sf(self.timeout_s) > 0.0)
    }

    /// Chance that an attempt doesn't even get a latency: lost, rejected or reply lost.
    pub fn fault_chance(&self) -> f64 {
        self.lost_request + self.rejected + self.lost_reply
    }
}

/// When and how often a failed attempt is repeated (MODEL.md §4.3, §4.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// The bound of the first wait, s.
    pub base_s: f64,
    /// No wait is longer, s.
    pub cap_s: f64,
    /// How the wait is drawn below its bound.
    pub jitter: Jitter,
    /// The call ends this long after its first attempt began, s; infinite where off.
    pub deadline_s: f64,
}

/// How a wait is drawn (Brooker, "Exponential backoff and jitter", AWS 2015).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// The bound itself.
    None,
    /// Uniform from 0 to the bound.
    Full,
    /// Half the bound plus uniform from 0 to half the bound.
    Equal,
    /// `min(cap, U(base, 3 · last wait))`.
    Decorrelated,
}

/// The prompt cache of a session (MODEL.md §3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cache {
    /// Whether prompts are cached at all.
    pub enabled: bool,
    /// How long the messages stay cached after their last use, s.
    pub lifetime_s: f64,
    /// How long tools and system stay cached after their last use, s; at least `lifetime_s`.
    pub prefix_lifetime_s: f64,
    /// Chance that tools and system are cached when the session begins.
    pub warm_prefix: f64,
    /// A shorter prompt is neither read nor written, tokens.
    pub min_tokens: u64,
    /// Hits round down to a multiple of this, tokens.
    pub granularity_tokens: u64,
}
