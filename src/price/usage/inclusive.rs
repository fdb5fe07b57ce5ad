//! Counts that hold the cache: `OpenAI`'s, Gemini's, OpenTelemetry's; and `DeepSeek`'s, which split the prompt.

use serde_json::Value;

use super::{Usage, UsageError, UsageRead, count, first_count, service};

/// `OpenAI` keeps what is written for half an hour unless it is asked for half a day.
const HALF_AN_HOUR_S: u64 = 1_800;
const HALF_A_DAY_S: u64 = 43_200;

pub(super) fn read_openai(usage: &Value) -> Result<UsageRead, UsageError> {
    let details = |name: &'static str| [["input_tokens_details", name], ["prompt_tokens_details", name]];
    let detail = |name: &'static str| {
        let [responses, chat] = details(name);
        first_count(usage, &[&responses, &chat])
    };
    let total =
        first_count(usage, &[&["input_tokens"], &["prompt_tokens"]])?.ok_or(UsageError::Missing("input_tokens"))?;
    let output = first_count(usage, &[&["output_tokens"], &["completion_tokens"]])?
        .ok_or(UsageError::Missing("output_tokens"))?;
    let flat = count(usage, &["cached_input_tokens"])?;
    let (read, written) = (detail("cached_tokens")?.or(flat).unwrap_or(0), detail("cache_write_tokens")?.unwrap_or(0));
    let partition =
        Usage { cache_read_tokens: read, output_tokens: output, service: service(usage), ..Usage::default() };
    let mut found = UsageRead::of(partition, Vec::new());
    let mut long = 0;
    for outer in ["input_tokens_details", "prompt_tokens_details"] {
        long += count(usage, &[outer, "cache_write_tokens_details", "ttl_12h_tokens"])?.unwrap_or(0);
    }
    let long = long.min(written);
    found.usage.write(HALF_A_DAY_S, long);
    found.usage.write(HALF_AN_HOUR_S, written - long);
    found.usage.input_tokens = rest(total, read + written, &mut found.remarks);
    Ok(found)
}

/// What of a total isn't cached.
fn rest(total: u64, cached: u64, remarks: &mut Vec<String>) -> u64 {
    if cached > total {
        remarks.push(format!("{cached} cached tokens in a prompt of {total}: none is left at the input price"));
    }
    total.saturating_sub(cached)
}

pub(super) fn read_gemini(usage: &Value) -> Result<UsageRead, UsageError> {
    let total = count(usage, &["promptTokenCount"])?.ok_or(UsageError::Missing("promptTokenCount"))?;
    let cached = count(usage, &["cachedContentTokenCount"])?.unwrap_or(0);
    let (written, thought) = (count(usage, &["candidatesTokenCount"])?, count(usage, &["thoughtsTokenCount"])?);
    let mut remarks = Vec::new();
    let usage = Usage {
        input_tokens: rest(total, cached, &mut remarks) + count(usage, &["toolUsePromptTokenCount"])?.unwrap_or(0),
        cache_read_tokens: cached,
        output_tokens: written.unwrap_or(0) + thought.unwrap_or(0),
        ..Usage::default()
    };
    Ok(UsageRead::of(usage, remarks))
}

pub(super) fn read_deepseek(usage: &Value) -> Result<UsageRead, UsageError> {
    let hit = count(usage, &["prompt_cache_hit_tokens"])?.ok_or(UsageError::Missing("prompt_cache_hit_tokens"))?;
    let total = count(usage, &["prompt_tokens"])?;
    let mut remarks = Vec::new();
    let missed = match (count(usage, &["prompt_cache_miss_tokens"])?, total) {
        (Some(missed), Some(total)) if hit + missed != total => {
            remarks.push(format!("prompt_tokens is {total}, and hits and misses sum to {}", hit + missed));
            missed
        }
        (Some(missed), _) => missed,
        (None, Some(total)) => rest(total, hit, &mut remarks),
        (None, None) => return Err(UsageError::Missing("prompt_cache_miss_tokens")),
    };
    let usage = Usage {
        input_tokens: missed,
        cache_read_tokens: hit,
        output_tokens: count(usage, &["completion_tokens"])?.ok_or(UsageError::Missing("completion_tokens"))?,
        ..Usage::default()
    };
    Ok(UsageRead::of(usage, remarks))
}

pub(super) fn read_otel(attributes: &Value) -> Result<UsageRead, UsageError> {
    let get = |name: &'static str| count(attributes, &[name]);
    let total = get("gen_ai.usage.input_tokens")?.ok_or(UsageError::Missing("gen_ai.usage.input_tokens"))?;
    // the second spelling is the older one
    let either = |new: &'static str, old: &'static str| Ok(get(new)?.or(get(old)?).unwrap_or(0));
    let read = either("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")?;
    let written = either("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens")?;
    let output = get("gen_ai.usage.output_tokens")?.ok_or(UsageError::Missing("gen_ai.usage.output_tokens"))?;
    // a sum of all tells which was meant
    let sum = get("gen_ai.usage.total_tokens")?;
    let left_out = read + written > 0 && sum == Some(total + read + written + output);
    let mut remarks = Vec::new();
    let input_tokens = if read + written > total || left_out {
        remarks.push(format!(
            "{} cached tokens beside an input of {total}: the input is taken to leave them out",
            read + written
        ));
        total
    } else {
        total - read - written
    };
    let usage = Usage {
        input_tokens,
        cache_read_tokens: read,
        cache_write_unknown_tokens: written,
        output_tokens: output,
        ..Usage::default()
    };
    Ok(UsageRead::of(usage, remarks))
}
