//! Prices: the sheet's row, the scenario's own prices laid over it, and the rates that follow.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::mistake::Mistake;
use super::raw::{Raw, RawPrice};
use super::reader::{At, Sink, complain};
use super::tree::Span;
use super::{PriceInfo, Surroundings};
use crate::price::{Lifetimes, PicoUsdPerToken, Rates, Row, Tariff, TierRow, lifetime_label};

/// The prices that apply to a model.
#[derive(Debug, Default)]
pub(super) struct Priced {
    pub tariff: Option<Tariff>,
    /// What is to be said of them.
    pub info: Option<PriceInfo>,
    /// The sheet's row.
    pub row: Option<Row>,
    /// The prices of writing to the cache, whether it is on or not.
    pub writes: Lifetimes,
}

/// The prices that apply.
pub(super) fn prices(raw: &Raw, around: &Surroundings, sink: &Sink, notes: &mut Vec<String>) -> Priced {
    let sheet = &around.sheet;
    let as_of = around.as_of.or(raw.price.as_of.map(|at| at.value));
    let row = raw.model.name.as_ref().and_then(|name| match sheet.find(&name.value, as_of) {
        Ok(row) => Some(row),
        Err(error) => {
            let label = error.nearest.first().map_or_else(|| "unknown".to_owned(), |n| format!("did you mean \"{n}\"?"));
            complain(
                sink,
                Mistake::at(name.span, error.to_string()).label(label).help(
                    "`agent-sim prices` lists the models; for another one leave `name` out and give its prices in [price], \
                     or read a newer table with --prices FILE",
                ),
            );
            None
        }
    });
    if raw.model.name.is_some() && row.is_none() {
        return Priced::default();
    }
    let any_override = any_price(&raw.price);
    if around.as_of.is_some() && raw.model.name.is_none() && any_override {
        notes.push("--as-of chooses a row of the price sheet, and no model is named: [price] is taken".to_owned());
    }
    let lifetime = raw.cache.lifetime.and_then(|at| at.value);
    if row.is_none() && !any_override {
        if let Some(at) = raw.price.as_of {
            let mistake = Mistake::at(at.span, "`as_of` chooses a row of the price sheet, and no model is named");
            complain(sink, mistake.label("of which model?").help("[model] name = \"claude-sonnet-4-6\""));
        }
        if let (Some(_), Some(at)) = (lifetime, raw.cache.lifetime) {
            complain(
                sink,
                Mistake::at(at.span, "a cache needs prices for reading and writing")
                    .label("no prices are known")
                    .help("name a model, [model] name = \"claude-sonnet-4-6\", or give [price]"),
            );
        }
        return Priced::default();
    }
    let overridden = overridden(raw, row, sink);
    let tariff = overridden.and_then(|row| {
        let prefix = lifetime.and(raw.cache.prefix_lifetime.map_or(lifetime, |at| at.value));
        let tariff = tariff(raw, &row, lifetime, prefix.or(lifetime), sink);
        tariff.map(|tariff| (tariff, row))
    });
    let info = row.map(|row| {
        let day = as_of.unwrap_or(sheet.date());
        if let Some(next) = sheet.next_change(row, as_of)
            && let Some(from) = next.from
        {
            let same = next.input == row.input && next.output == row.output;
            let what = if same { " for long prompts or the cache" } else { "" };
            notes.push(format!(
                "{} changes its price{what} on {from}: ${} input, ${} output per million tokens; [price] as_of = {from} shows it",
                row.model,
                next.input.usd_per_million(),
                next.output.usd_per_million()
            ));
        }
        if let Some(retires) = row.retires {
            let verb = if retires <= day { "was" } else { "will be" };
            notes.push(format!("{} {verb} switched off on {retires}", row.model));
        }
        PriceInfo {
            model: format!("{}/{}", row.provider, row.model),
            as_of: day.to_string(),
            source: row.source.clone(),
            source_date: row.source_date.clone(),
            overridden: any_override,
        }
    });
    let (tariff, writes) = match tariff {
        Some((tariff, row)) => (Some(tariff), row.writes),
        None => (None, Lifetimes::default()),
    };
    Priced { tariff, info, row: row.cloned(), writes }
}

/// A product of price and multiplier to the smallest step of a price.
fn rounded(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}

/// Whether the scenario asks for prices.
pub(super) fn is_priced(raw: &Raw) -> bool {
    raw.model.name.is_some() || any_price(&raw.price)
}

/// Whether the scenario gives any price of its own.
fn any_price(price: &RawPrice) -> bool {
    price.has_input
        || price.has_output
        || price.read.is_some()
        || price.read_multiplier.is_some()
        || price.write.is_some()
        || !price.writes.is_empty()
        || !price.write_multipliers.is_empty()
}

/// The sheet's row with the scenario's own prices laid over it. A long-context tier keeps its ratio to the base price.
fn overridden(raw: &Raw, row: Option<&Row>, sink: &Sink) -> Option<Row> {
    let price = &raw.price;
    let mut fine = true;
    let mut read_price = |at: &At<f64>, usd: f64| match PicoUsdPerToken::from_usd_per_million(usd) {
        Ok(price) => Some(price),
        Err(error) => {
            complain(sink, Mistake::at(at.span, error.to_string()).label("not a price"));
            fine = false;
            None
        }
    };
    let input = price.input.as_ref().and_then(|at| read_price(at, at.value)).or(row.map(|r| r.input));
    let output = price.output.as_ref().and_then(|at| read_price(at, at.value)).or(row.map(|r| r.output));
    let input_usd = input.map(PicoUsdPerToken::usd_per_million);
    let mut read = price.read.as_ref().and_then(|at| read_price(at, at.value));
    if let (Some(at), Some(input)) = (&price.read_multiplier, input_usd) {
        if price.read.is_some() {
            complain(
                sink,
                Mistake::at(at.span, "`read_multiplier` and `cache_read` say the same thing")
                    .label("one of them is enough"),
            );
        }
        read = read_price(at, rounded(at.value * input));
    }
    let mut by_seconds = BTreeMap::new();
    for at in &price.writes {
        let (seconds, usd) = at.value;
        if let Some(price) = read_price(&At { value: usd, span: at.span }, usd) {
            by_seconds.insert(seconds, price);
        }
    }
    for at in &price.write_multipliers {
        let ((seconds, multiplier), Some(input)) = (at.value, input_usd) else { continue };
        let price = read_price(&At { value: multiplier, span: at.span }, rounded(multiplier * input));
        match (by_seconds.entry(seconds), price) {
            (Entry::Occupied(_), _) => complain(
                sink,
                Mistake::at(at.span, "this lifetime has a price and a multiplier").label("one of them is enough"),
            ),
            (Entry::Vacant(free), Some(price)) => {
                free.insert(price);
            }
            _ => {}
        }
    }
    let any = price.write.as_ref().and_then(|at| read_price(at, at.value));
    let missing = |key: &str| {
        let text = format!("the price of {key} tokens isn't known");
        let mistake = Mistake::maybe_at(price.span, text);
        complain(
            sink,
            mistake.label(format!("`{key}` is missing")).help(format!(
                "give {key} = … ($ per million tokens) under [price], or name a model of the price sheet"
            )),
        );
    };
    if input.is_none() && !price.has_input {
        missing("input");
    }
    if output.is_none() && !price.has_output {
        missing("output");
    }
    let (input, output) = (input?, output?);
    if !fine {
        return None;
    }
    let scaled = |old: PicoUsdPerToken, new: PicoUsdPerToken, tier: PicoUsdPerToken| {
        if old.0 == 0 || old == new {
            tier
        } else {
            let (old, new, tier) = (u128::from(old.0), u128::from(new.0), u128::from(tier.0));
            PicoUsdPerToken(u64::try_from((tier * new + old / 2) / old).unwrap_or(u64::MAX))
        }
    };
    let own_writes = any.is_some() || !by_seconds.is_empty();
    let Some(row) = row else {
        return Some(Row {
            read,
            writes: Lifetimes { any, by_seconds },
            source: "the scenario".to_owned(),
            ..Row::bare("", "the scenario's [price]", input, output)
        });
    };
    let mut new = row.clone();
    (new.input, new.output) = (input, output);
    new.read = read.or(row.read);
    if own_writes {
        if any.is_some() {
            new.writes = Lifetimes::default();
        }
        new.writes.any = any.or(new.writes.any);
        new.writes.by_seconds.extend(by_seconds);
    }
    if let [tier] = row.tiers.as_slice() {
        let mut writes = tier.writes.clone();
        for (seconds, price) in &new.writes.by_seconds {
            let ratio_to = row.writes.price(*seconds).zip(tier.writes.price(*seconds));
            // a lifetime that only the scenario prices keeps the ratio of input
            let (old, at_tier) = ratio_to.unwrap_or((row.input, tier.input));
            writes.by_seconds.insert(*seconds, scaled(old, *price, at_tier));
        }
        if let Some(price) = new.writes.any {
            let (old, at_tier) = row.writes.any.zip(tier.writes.any).unwrap_or((row.input, tier.input));
            writes.any = Some(scaled(old, price, at_tier));
        }
        let tier_read = match (new.read, row.read, tier.read) {
            (Some(new), Some(old), Some(at_tier)) => Some(scaled(old, new, at_tier)),
            (Some(new), _, _) => Some(scaled(row.input, new, tier.input)),
            (None, _, at_tier) => at_tier,
        };
        new.tiers = vec![TierRow {
            from_tokens: tier.from_tokens,
            counts_reads: tier.counts_reads,
            input: scaled(row.input, input, tier.input),
            output: scaled(row.output, output, tier.output),
            read: tier_read,
            writes,
        }];
    }
    Some(new)
}

/// Rates for the chosen lifetimes; a price that is needed and unknown is a mistake.
fn tariff(raw: &Raw, row: &Row, messages: Option<u64>, prefix: Option<u64>, sink: &Sink) -> Option<Tariff> {
    let mut fine = true;
    let mut rates = |input, output, read: Option<PicoUsdPerToken>, writes: &Lifetimes, of: &str| {
        let Some(messages) = messages else {
            return Rates { input, read: input, write_prefix: input, write_messages: input, output };
        };
        let mut write = |seconds: u64, at: Option<Span>| {
            writes.price(seconds).unwrap_or_else(|| {
                fine = false;
                let text =
                    format!("{} has no price for a cache write that lives {}{of}", row.model, lifetime_label(seconds));
                let offered = if writes.is_empty() { "no lifetime".to_owned() } else { writes.offered() };
                complain(
                    sink,
                    Mistake::maybe_at(at, text).label(format!("on offer: {offered}")).help(format!(
                        "choose one of them, or give [price] cache_write_{} = …",
                        lifetime_label(seconds)
                    )),
                );
                input
            })
        };
        let write_messages = write(messages, raw.cache.lifetime.map(|at| at.span));
        let write_prefix = match prefix {
            Some(seconds) => write(seconds, raw.cache.prefix_lifetime.or(raw.cache.lifetime).map(|at| at.span)),
            None => write_messages,
        };
        let read = read.unwrap_or_else(|| {
            fine = false;
            let text = format!("{} has no price for reading the cache{of}", row.model);
            complain(
                sink,
                Mistake::maybe_at(raw.cache.lifetime.map(|at| at.span), text)
                    .label("the cache is on")
                    .help("give [price] cache_read = … or read_multiplier = 0.1, or lifetime = \"off\""),
            );
            input
        });
        Rates { input, read, write_prefix, write_messages, output }
    };
    let base = rates(row.input, row.output, row.read, &row.writes, "");
    let tier = match row.only_tier() {
        Ok(tier) => tier,
        Err(missing) => {
            let mistake = Mistake::maybe_at(raw.model.name.as_ref().map(|at| at.span), missing.to_string());
            complain(
                sink,
                mistake.label("not simulated").help("leave `name` out and give [price] for the prompts' size"),
            );
            return None;
        }
    };
    let tier = tier.map(|t| (t.from_tokens, rates(t.input, t.output, t.read, &t.writes, " for long prompts")));
    fine.then_some(Tariff { base, tier })
}
