//! Counts that leave out the cache: Anthropic's, and Bedrock's in another spelling.

use serde_json::Value;

use super::{Also, Service, Usage, UsageError, UsageRead, count, service};

const FIVE_MINUTES_S: u64 = 300;
const ONE_HOUR_S: u64 = 3_600;

pub(super) fn read(usage: &Value) -> Result<UsageRead, UsageError> {
    let mut read = one(usage)?;
    // what the sums at the top leave out
    let iterations = usage.get("iterations").and_then(Value::as_array);
    for iteration in iterations.into_iter().flatten() {
        if iteration.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "message") {
            let more = one(iteration)?;
            let model = iteration.get("model").and_then(Value::as_str).map(str::to_owned);
            read.also.push(Also { model, usage: more.usage });
            read.remarks.extend(more.remarks);
        }
    }
    if !read.also.is_empty() {
        read.remarks.push(format!("{} requests beside those of the sums, billed by themselves", read.also.len()));
    }
    read.usage.service = match (usage.get("inference_geo"), usage.get("speed")) {
        (Some(Value::String(geo)), _) if !matches!(geo.as_str(), "global" | "not_available") => {
            Service::Other(format!("inference_geo {geo}"))
        }
        (_, Some(Value::String(speed))) if speed != "standard" => Service::Other(format!("speed {speed}")),
        _ => service(usage),
    };
    for also in &mut read.also {
        also.usage.service = read.usage.service.clone();
    }
    Ok(read)
}

fn one(usage: &Value) -> Result<UsageRead, UsageError> {
    let mut read = UsageRead::of(
        Usage {
            input_tokens: count(usage, &["input_tokens"])?.ok_or(UsageError::Missing("input_tokens"))?,
            cache_read_tokens: count(usage, &["cache_read_input_tokens"])?.unwrap_or(0),
            output_tokens: count(usage, &["output_tokens"])?.ok_or(UsageError::Missing("output_tokens"))?,
            web_searches: count(usage, &["server_tool_use", "web_search_requests"])?.unwrap_or(0),
            ..Usage::default()
        },
        Vec::new(),
    );
    let written = count(usage, &["cache_creation_input_tokens"])?;
    let split = [("ephemeral_5m_input_tokens", FIVE_MINUTES_S), ("ephemeral_1h_input_tokens", ONE_HOUR_S)];
    let mut by_lifetime = 0;
    for (name, lifetime_s) in split {
        let tokens = count(usage, &["cache_creation", name])?.unwrap_or(0);
        by_lifetime += tokens;
        read.usage.write(lifetime_s, tokens);
    }
    match written {
        Some(written) if by_lifetime == 0 => read.usage.cache_write_unknown_tokens = written,
        // nothing that was written is lost: the rest is billed at the shortest lifetime
        Some(written) if written > by_lifetime => {
            read.usage.cache_write_unknown_tokens = written - by_lifetime;
            read.remarks.push(format!(
                "cache_creation_input_tokens is {written}, and its lifetimes sum to {by_lifetime}; the rest is taken for the shortest"
            ));
        }
        Some(written) if written < by_lifetime => read.remarks.push(format!(
            "cache_creation_input_tokens is {written}, and its lifetimes sum to {by_lifetime}; the lifetimes are billed"
        )),
        _ => {}
    }
    Ok(read)
}

pub(super) fn read_bedrock(usage: &Value) -> Result<UsageRead, UsageError> {
    let mut found = Usage {
        input_tokens: count(usage, &["inputTokens"])?.ok_or(UsageError::Missing("inputTokens"))?,
        cache_read_tokens: count(usage, &["cacheReadInputTokens"])?.unwrap_or(0),
        output_tokens: count(usage, &["outputTokens"])?.ok_or(UsageError::Missing("outputTokens"))?,
        ..Usage::default()
    };
    let mut by_lifetime = 0;
    for detail in usage.get("cacheDetails").and_then(Value::as_array).into_iter().flatten() {
        let tokens = count(detail, &["inputTokens"])?.unwrap_or(0);
        let lifetime_s = match detail.get("ttl").and_then(Value::as_str) {
            Some("5m") => FIVE_MINUTES_S,
            Some("1h") => ONE_HOUR_S,
            _ => continue,
        };
        by_lifetime += tokens;
        found.write(lifetime_s, tokens);
    }
    let written = count(usage, &["cacheWriteInputTokens"])?.unwrap_or(0);
    found.cache_write_unknown_tokens = written.saturating_sub(by_lifetime);
    Ok(UsageRead::of(found, Vec::new()))
}

/// The usage of a streamed answer. Its events repeat the counts so far, so the last one has the totals, and what it
/// leaves out stands in an earlier one: nothing is added up.
///
/// ```
/// use agent_sim::price::{Streamed, Usage};
/// let mut streamed = Streamed::default();
/// streamed.event(&serde_json::json!({ "input_tokens": 317, "cache_creation_input_tokens": 4_425, "output_tokens": 1 }));
/// streamed.event(&serde_json::json!({ "input_tokens": 317, "cache_creation_input_tokens": 4_425, "output_tokens": 90 }));
/// let usage = Usage::anthropic(&streamed.usage())?.usage;
/// assert_eq!((usage.prompt_tokens(), usage.output_tokens), (4_742, 90));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Streamed(serde_json::Map<String, Value>);

impl Streamed {
    /// Takes the `usage` of the next event (`message_start`, `message_delta`).
    pub fn event(&mut self, usage: &Value) {
        for (name, value) in usage.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.0.insert(name.clone(), value.clone());
            }
        }
    }

    /// The usage so far, as of an answer that wasn't streamed.
    pub fn usage(&self) -> Value {
        Value::Object(self.0.clone())
    }
}
