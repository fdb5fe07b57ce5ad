//! genai-prices: providers, their models, and prices per million tokens with dates and long-context tiers.

use jiff::civil::Date;
use serde_json::{Map, Value};

use super::{Found, provider, writes};
use crate::price::sheet::TierRow;
use crate::price::{PicoUsdPerToken, Row};

pub(super) fn read(providers: &[Value]) -> Result<Found, String> {
    let mut found = Found::default();
    let (mut unpriced, mut conditional) = (Vec::new(), Vec::new());
    if !providers.iter().any(|entry| entry.get("models").is_some_and(Value::is_array)) {
        return Err(
            "it is a list, and none of its entries has `models`, as the providers of genai-prices do".to_owned()
        );
    }
    for entry in providers {
        let seller = provider(text(entry, "id"));
        let url = entry.get("pricing_urls").and_then(|urls| urls.get(0)).and_then(Value::as_str).unwrap_or_default();
        for model in entry.get("models").and_then(Value::as_array).into_iter().flatten() {
            let id = text(model, "id");
            let name = format!("{seller}/{id}");
            let Some(prices) = model.get("prices") else {
                unpriced.push(name);
                continue;
            };
            // a dated price that can't be read would leave an older one in force, so then the whole model is left out
            let (mut rows, mut unread) = (Vec::new(), None);
            for (condition, prices) in conditions(prices) {
                let (from, is_dated) = match condition {
                    None => (None, false),
                    Some(condition) => (start_date(condition), condition.get("start_date").is_some()),
                };
                let read = if condition.is_some() && from.is_none() {
                    conditional.push(name.clone());
                    Err("it has prices for a time that can't be read".to_owned())
                } else if prices.contains_key("output_reasoning_mtok") {
                    Err("thinking has a price of its own, which isn't known here".to_owned())
                } else {
                    row(seller, id, prices)
                };
                match read {
                    Ok(Some(row)) => rows.push(Row {
                        from,
                        context_tokens: model.get("context_window").and_then(Value::as_u64),
                        source: if url.is_empty() { "genai-prices".to_owned() } else { url.to_owned() },
                        source_date: text(model, "prices_checked").to_owned(),
                        notes: text(model, "price_comments").to_owned(),
                        ..row
                    }),
                    Ok(None) => unpriced.push(name.clone()),
                    // other prices at some hours leave the ordinary ones as they are
                    Err(_) if condition.is_some() && !is_dated => {}
                    Err(why) => unread = Some(why),
                }
            }
            match unread {
                Some(why) => found.remarks.push(format!("{name} is left out: {why}")),
                None => found.rows.extend(rows),
            }
        }
    }
    found.remark(&unpriced, "no price for both input and output tokens; left out");
    found.remark(&conditional, "other prices at some hours or in some service; the others are taken");
    Ok(found)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// One set of prices, or several of which the last whose condition holds is taken.
fn conditions(prices: &Value) -> Vec<(Option<&Value>, &Map<String, Value>)> {
    match prices {
        Value::Object(one) => vec![(None, one)],
        Value::Array(several) => several
            .iter()
            .filter_map(|entry| {
                Some((entry.get("constraint").filter(|c| !c.is_null()), entry.get("prices")?.as_object()?))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The first day of prices that hold from a day on, whatever else.
fn start_date(condition: &Value) -> Option<Date> {
    let condition = condition.as_object()?;
    let others = condition.keys().any(|key| !matches!(key.as_str(), "start_date" | "type"));
    condition.get("start_date").filter(|_| !others)?.as_str()?.parse().ok()
}

/// A price with its tiers: (base, [(start, price)]).
type Tiered = (PicoUsdPerToken, Vec<(u64, PicoUsdPerToken)>);

fn tiered(prices: &Map<String, Value>, key: &str) -> Result<Option<Tiered>, String> {
    let price = |value: &Value| {
        // a price can be written as a text, to keep its digits
        let usd = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        let usd = usd.ok_or_else(|| format!("`{key}` isn't a number"))?;
        PicoUsdPerToken::from_usd_per_million(usd).map_err(|e| format!("`{key}`: {e}"))
    };
    match prices.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(table)) => {
            let base = price(table.get("base").ok_or_else(|| format!("`{key}` has no base price"))?)?;
            let mut tiers = Vec::new();
            for tier in table.get("tiers").and_then(Value::as_array).into_iter().flatten() {
                let start = tier
                    .get("start")
                    .and_then(Value::as_u64)
                    .ok_or_else(|| format!("`{key}` has a tier without start"))?;
                tiers.push((
                    start,
                    price(tier.get("price").ok_or_else(|| format!("`{key}` has a tier without price"))?)?,
                ));
            }
            Ok(Some((base, tiers)))
        }
        Some(value) => Ok(Some((price(value)?, Vec::new()))),
    }
}

/// The price from a start on: of the highest tier that isn't above it, or the base.
fn at((base, tiers): &Tiered, start: Option<u64>) -> PicoUsdPerToken {
    let reached = tiers.iter().filter(|(from, _)| start.is_some_and(|start| *from <= start));
    reached.max_by_key(|(from, _)| *from).map_or(*base, |(_, price)| *price)
}

fn row(provider: &str, model: &str, prices: &Map<String, Value>) -> Result<Option<Row>, String> {
    let (Some(input), Some(output)) = (tiered(prices, "input_mtok")?, tiered(prices, "output_mtok")?) else {
        return Ok(None);
    };
    let read = tiered(prices, "cache_read_mtok")?;
    let short = match tiered(prices, "cache_write_5m_mtok")? {
        Some(price) => Some(price),
        None => tiered(prices, "cache_write_mtok")?,
    };
    let hour = tiered(prices, "cache_write_1h_mtok")?;
    let all = [Some(&input), Some(&output), read.as_ref(), short.as_ref(), hour.as_ref()];
    let mut starts: Vec<u64> =
        all.into_iter().flatten().flat_map(|(_, tiers)| tiers.iter().map(|(start, _)| *start)).collect();
    starts.sort_unstable();
    starts.dedup();
    let of = |price: &Option<Tiered>, start| price.as_ref().map(|price| at(price, start));
    let lifetimes = |start| {
        let own = [of(&short, start), of(&hour, start), None];
        writes(provider, model, at(&input, start), of(&read, start), own)
    };
    let tiers = starts.iter().map(|start| TierRow {
        from_tokens: start + 1,
        counts_reads: true,
        input: at(&input, Some(*start)),
        output: at(&output, Some(*start)),
        read: of(&read, Some(*start)),
        writes: lifetimes(Some(*start)),
    });
    Ok(Some(Row {
        read: of(&read, None),
        writes: lifetimes(None),
        tiers: tiers.collect(),
        ..Row::bare(provider, model, at(&input, None), at(&output, None))
    }))
}
