//! `LiteLLM`: a flat map from model to prices per token, of today only.

use serde_json::{Map, Value};

use super::{Found, provider, writes};
use crate::price::sheet::TierRow;
use crate::price::{Discount, PicoUsdPerToken, Row};

const INPUT: &str = "input_cost_per_token";
const OUTPUT: &str = "output_cost_per_token";
const READ: &str = "cache_read_input_token_cost";
const WRITE: &str = "cache_creation_input_token_cost";

pub(super) fn read(models: &Map<String, Value>) -> Result<Found, String> {
    let is_priced = |value: &Value| value.get(INPUT).is_some() || value.get("litellm_provider").is_some();
    if !models.values().any(is_priced) {
        return Err(format!("none of its entries has `{INPUT}`, as those of LiteLLM do"));
    }
    let mut found = Found::default();
    let (mut unpriced, mut off_peak, mut free_writes) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in models.iter().filter(|(name, _)| *name != "sample_spec") {
        let Some(entry) = value.as_object() else {
            found.remarks.push(format!("{name}: isn't a table of prices"));
            continue;
        };
        let has_prices = entry.contains_key(INPUT) && entry.contains_key(OUTPUT);
        if !has_prices && !entry.contains_key("tiered_pricing") {
            unpriced.push(name.clone());
            continue;
        }
        match row(name, entry) {
            Ok(row) => found.rows.push(row),
            Err(why) => found.remarks.push(format!("{name} is left out: {why}")),
        }
        if entry.get(WRITE).and_then(Value::as_f64) == Some(0.0) {
            free_writes.push(name.clone());
        }
        if entry.contains_key("off_peak_pricing") {
            off_peak.push(name.clone());
        }
    }
    found.remark(&unpriced, "no price for both input and output tokens (images, speech, embeddings); left out");
    found.remark(&free_writes, "no charge for writing to the cache: what is written is billed as input");
    found.remark(&off_peak, "cheaper at some hours; the price of the others is taken");
    Ok(found)
}

/// A price at a key, $ per token.
fn price(entry: &Map<String, Value>, key: &str) -> Result<Option<PicoUsdPerToken>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let usd = value.as_f64().ok_or_else(|| format!("`{key}` isn't a number"))?;
            PicoUsdPerToken::from_usd_per_million(usd * 1e6).map(Some).map_err(|e| format!("`{key}`: {e}"))
        }
    }
}

fn needed(entry: &Map<String, Value>, key: &str) -> Result<PicoUsdPerToken, String> {
    price(entry, key)?.ok_or_else(|| format!("`{key}` is missing"))
}

fn whole(entry: &Map<String, Value>, key: &str) -> Option<u64> {
    entry.get(key).and_then(Value::as_u64)
}

fn text(entry: &Map<String, Value>, key: &str) -> String {
    entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a service costs of the list prices, in thousandths, where it is the same for input, writes and output.
fn discount(entry: &Map<String, Value>, suffix: &str) -> Option<Discount> {
    let number = |key: &str| entry.get(key).and_then(Value::as_f64).filter(|usd| *usd > 0.0);
    let share = |key: &str| Some((1_000.0 * number(&format!("{key}{suffix}"))? / number(key)?).round() as u64);
    let tokens = share(INPUT).filter(|tokens| share(OUTPUT) == Some(*tokens))?;
    let writes = !entry.contains_key(WRITE) || share(WRITE).is_none_or(|writes| writes == tokens);
    writes.then(|| Discount { tokens, reads: share(READ) })
}

/// A price of its own for thinking can't be told from the usage's output, so nothing is guessed.
fn thinking_is_output(entry: &Map<String, Value>) -> Result<(), String> {
    match price(entry, "output_cost_per_reasoning_token")? {
        Some(thinking) if Some(thinking) != price(entry, OUTPUT)? => {
            Err("thinking has a price of its own, which isn't known here".to_owned())
        }
        _ => Ok(()),
    }
}

fn row(name: &str, entry: &Map<String, Value>) -> Result<Row, String> {
    thinking_is_output(entry)?;
    let seller = text(entry, "litellm_provider");
    let model = name.strip_prefix(&format!("{seller}/")).unwrap_or(name);
    let provider = provider(&seller);
    if let Some(ranges) = entry.get("tiered_pricing").and_then(Value::as_array) {
        return banded(provider, model, entry, ranges);
    }
    let (input, output, read) = (needed(entry, INPUT)?, needed(entry, OUTPUT)?, price(entry, READ)?);
    let with = |suffix: &str| {
        let lifetimes = ["", "_above_1hr", "_above_12hr"];
        let [short, hour, half_a_day] = lifetimes.map(|lifetime| price(entry, &format!("{WRITE}{lifetime}{suffix}")));
        Ok::<_, String>([short?, hour?, half_a_day?])
    };
    let mut row = Row {
        read,
        writes: writes(provider, model, input, read, with("")?),
        ..Row::bare(provider, model, input, output)
    };
    for thousands in thresholds(entry) {
        let suffix = format!("_above_{thousands}k_tokens");
        let Some(tier_input) = price(entry, &format!("{INPUT}{suffix}"))? else { continue };
        let tier_read = price(entry, &format!("{READ}{suffix}"))?;
        let own = with(&suffix)?;
        let billed_as_input = row.writes.by_seconds.is_empty() && row.writes.any == Some(input);
        row.tiers.push(TierRow {
            from_tokens: thousands * 1_000 + u64::from(provider != "xai"),
            counts_reads: true,
            input: tier_input,
            output: needed(entry, &format!("{OUTPUT}{suffix}"))?,
            read: tier_read,
            writes: writes(provider, model, tier_input, tier_read.filter(|_| billed_as_input), own),
        });
    }
    finish(&mut row, entry);
    Ok(row)
}

/// N of every `…_above_Nk_tokens`, rising.
fn thresholds(entry: &Map<String, Value>) -> Vec<u64> {
    let of = |key: &String| {
        let number = key.strip_prefix(INPUT)?.strip_prefix("_above_")?.strip_suffix("k_tokens")?;
        number.parse::<u64>().ok()
    };
    let mut thresholds: Vec<u64> = entry.keys().filter_map(of).collect();
    thresholds.sort_unstable();
    thresholds
}

/// Prices by the length of the prompt, as a list of ranges.
fn banded(provider: &str, model: &str, entry: &Map<String, Value>, ranges: &[Value]) -> Result<Row, String> {
    let mut bands = Vec::new();
    for range in ranges {
        let band = range.as_object().ok_or("a range of `tiered_pricing` isn't a table")?;
        let from = band.get("range").and_then(|range| range.get(0)).and_then(Value::as_f64);
        bands.push((from.ok_or("a range of `tiered_pricing` has no start")? as u64, band));
    }
    bands.sort_by_key(|(from, _)| *from);
    let Some(((_, first), others)) = bands.split_first() else { return Err("`tiered_pricing` is empty".to_owned()) };
    let (input, read) = (needed(first, INPUT)?, price(first, READ)?);
    let lifetimes = |band: &Map<String, Value>, input, read| {
        Ok::<_, String>(writes(provider, model, input, read, [price(band, WRITE)?, None, None]))
    };
    let mut row = Row {
        read,
        writes: lifetimes(first, input, read)?,
        ..Row::bare(provider, model, input, needed(first, OUTPUT)?)
    };
    thinking_is_output(first)?;
    for (from, band) in others {
        thinking_is_output(band)?;
        let (input, read) = (needed(band, INPUT)?, price(band, READ)?);
        row.tiers.push(TierRow {
            from_tokens: from + 1,
            counts_reads: true,
            input,
            output: needed(band, OUTPUT)?,
            read,
            writes: lifetimes(band, input, read)?,
        });
    }
    finish(&mut row, entry);
    Ok(row)
}

/// What isn't a price.
fn finish(row: &mut Row, entry: &Map<String, Value>) {
    row.context_tokens = whole(entry, "max_input_tokens");
    row.max_output_tokens = whole(entry, "max_output_tokens");
    row.min_cacheable_tokens = whole(entry, "prompt_cache_min_tokens").unwrap_or(0);
    row.retires = text(entry, "deprecation_date").parse().ok();
    row.source = text(entry, "source");
    row.batch = discount(entry, "_batches");
    row.flex = discount(entry, "_flex");
}
