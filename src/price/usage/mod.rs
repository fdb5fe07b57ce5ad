//! Usage as providers count it, brought to one partition: each prompt token in exactly one class.
//!
//! `input` means two things: with Anthropic and Bedrock it leaves out what was read from and written to the cache, with
//! `OpenAI`, Gemini and most others it holds both, and `DeepSeek` splits the prompt into hits and misses. Each reader says
//! which it takes, and what it had to decide is told as a remark.

mod anthropic;
mod inclusive;

use std::collections::BTreeMap;

use serde_json::Value;

pub use anthropic::Streamed;

/// How a request was served, where that changes its price.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Service {
    /// At list prices.
    #[default]
    Standard,
    /// In a batch.
    Batch,
    /// When there was room for it.
    Flex,
    /// In a way that has a price of its own, by its name: no price is guessed for it.
    Other(String),
}

/// What one request used, each prompt token in exactly one class.
///
/// ```
/// use agent_sim::price::{Sheet, Usage};
/// let usage = serde_json::json!({
///     "input_tokens": 4, "cache_read_input_tokens": 2_455, "cache_creation_input_tokens": 0, "output_tokens": 23
/// });
/// let read = Usage::anthropic(&usage)?;
/// let bill = Sheet::embedded().cost("claude-sonnet-4-6", &read.usage, None)?;
/// assert_eq!(bill.total().usd(), (4.0 * 3.0 + 2_455.0 * 0.3 + 23.0 * 15.0) / 1e6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Prompt tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens written to the cache: lifetime in seconds → tokens. A lifetime of which nothing was written isn't
    /// there, so that it is no evidence of that lifetime.
    pub cache_write_tokens: BTreeMap<u64, u64>,
    /// Prompt tokens written to the cache for a time that isn't told: billed at the provider's shortest.
    pub cache_write_unknown_tokens: u64,
    /// Tokens billed as output, thinking among them.
    pub output_tokens: u64,
    /// Searches of the web that the provider made.
    pub web_searches: u64,
    /// What an explicit cache kept, tokens × seconds.
    pub stored_token_s: u64,
    /// How it was served.
    pub service: Service,
}

/// A usage, and what had to be decided to read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageRead {
    /// The partition.
    pub usage: Usage,
    /// Further requests that were made on the way and aren't in it, each with a prompt of its own: compactions, advice.
    pub also: Vec<Also>,
    /// Contradictions, and how they were taken.
    pub remarks: Vec<String>,
}

/// A request that was made on the way to another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Also {
    /// Its model, where that isn't the other one's.
    pub model: Option<String>,
    /// What it used.
    pub usage: Usage,
}

/// Why an object is no usage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// A count is missing.
    #[error("the usage has no `{0}`")]
    Missing(&'static str),
    /// A count is none.
    #[error("`{0}` must be a whole number of tokens, from 0 to a million billions")]
    NotACount(String),
    /// Nobody's.
    #[error(
        "this isn't a usage object of Anthropic, Bedrock, OpenAI, Gemini, DeepSeek or OpenTelemetry: none of their counts is in it"
    )]
    Unknown,
}

impl UsageRead {
    fn of(usage: Usage, remarks: Vec<String>) -> Self {
        Self { usage, also: Vec::new(), remarks }
    }
}

impl Usage {
    /// The whole prompt: what chooses the long-context tier.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens + self.cache_read_tokens + self.written_tokens()
    }

    /// Prompt tokens written to the cache, for whatever time.
    pub fn written_tokens(&self) -> u64 {
        self.cache_write_tokens.values().sum::<u64>() + self.cache_write_unknown_tokens
    }

    /// Anthropic's usage: `input_tokens` leaves out what was read from and written to the cache. Iterations of
    /// compaction and advisor, which its sums leave out, come as requests of their own.
    ///
    /// # Errors
    /// Where a count is missing or none.
    pub fn anthropic(usage: &Value) -> Result<UsageRead, UsageError> {
        anthropic::read(usage)
    }

    /// Bedrock's Converse usage: like Anthropic's, in its own spelling.
    ///
    /// # Errors
    /// Where a count is missing or none.
    pub fn bedrock(usage: &Value) -> Result<UsageRead, UsageError> {
        anthropic::read_bedrock(usage)
    }

    /// `OpenAI`'s usage, of chat completions, of responses or as Codex logs it: the input holds what was read from and written to the cache,
    /// and the output holds the reasoning.
    ///
    /// # Errors
    /// Where a count is missing or none.
    pub fn openai(usage: &Value) -> Result<UsageRead, UsageError> {
        inclusive::read_openai(usage)
    }

    /// Gemini's usage metadata: the prompt holds what was cached, the thoughts are counted beside the output.
    ///
    /// # Errors
    /// Where a count is missing or none.
    pub fn gemini(usage: &Value) -> Result<UsageRead, UsageError> {
        inclusive::read_gemini(usage)
    }

    /// `DeepSeek`'s usage: the prompt is split into hits and misses.
    ///
    /// # Errors
    /// Where a count is missing or none.
    pub fn deepseek(usage: &Value) -> Result<UsageRead, UsageError> {
        inclusive::read_deepseek(usage)
    }

    /// Attributes of OpenTelemetry's `gen_ai.usage`, whose input holds what was cached. Writers disagree: where more is
    /// cached than the input holds, the input can only be meant without.
    ///
    /// # Errors
    /// Where a count is missing or none.
    pub fn otel(attributes: &Value) -> Result<UsageRead, UsageError> {
        inclusive::read_otel(attributes)
    }

    /// Whichever of these it is, told by its counts.
    ///
    /// # Errors
    /// Where it is none of them, or a count is missing or none.
    pub fn read(usage: &Value) -> Result<UsageRead, UsageError> {
        let has = |name: &str| usage.get(name).is_some();
        if has("prompt_cache_hit_tokens") {
            Self::deepseek(usage)
        } else if has("promptTokenCount") {
            Self::gemini(usage)
        } else if has("gen_ai.usage.input_tokens") {
            Self::otel(usage)
        } else if has("inputTokens") {
            Self::bedrock(usage)
        } else if has("prompt_tokens")
            || has("input_tokens_details")
            || has("cached_input_tokens")
            || has("total_tokens")
        {
            Self::openai(usage)
        } else if has("input_tokens") {
            Self::anthropic(usage)
        } else {
            Err(UsageError::Unknown)
        }
    }

    /// What another request used, on top: for a sum over many, which has no tier of its own.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        for (lifetime_s, tokens) in &other.cache_write_tokens {
            *self.cache_write_tokens.entry(*lifetime_s).or_default() += tokens;
        }
        self.cache_write_unknown_tokens += other.cache_write_unknown_tokens;
        self.output_tokens += other.output_tokens;
        self.web_searches += other.web_searches;
        self.stored_token_s += other.stored_token_s;
    }

    fn write(&mut self, lifetime_s: u64, tokens: u64) {
        if tokens > 0 {
            *self.cache_write_tokens.entry(lifetime_s).or_default() += tokens;
        }
    }
}

/// More tokens than any count can mean, and few enough for all sums.
const MOST_TOKENS: u64 = 1_000_000_000_000_000;

/// A count at a path; `None` where it isn't there or null.
fn count(object: &Value, path: &[&str]) -> Result<Option<u64>, UsageError> {
    let mut at = object;
    for name in path {
        match at.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(inner) => at = inner,
        }
    }
    let count = at.as_u64().filter(|tokens| *tokens <= MOST_TOKENS);
    count.map(Some).ok_or_else(|| UsageError::NotACount(path.join(".")))
}

/// The first of several spellings that is there.
fn first_count(object: &Value, paths: &[&[&str]]) -> Result<Option<u64>, UsageError> {
    for path in paths {
        if let Some(tokens) = count(object, path)? {
            return Ok(Some(tokens));
        }
    }
    Ok(None)
}

fn service(usage: &Value) -> Service {
    match usage.get("service_tier").and_then(Value::as_str) {
        None | Some("standard" | "default" | "auto") => Service::Standard,
        Some("batch") => Service::Batch,
        Some("flex") => Service::Flex,
        Some(other) => Service::Other(format!("service_tier {other}")),
    }
}
