//! A provider's usage × a row of the sheet → money, line by line.

use jiff::civil::Date;

use super::sheet::TierRow;
use super::{Discount, Lifetimes, PicoUsd, PicoUsdPerToken, Row, Service, Sheet, UnknownModel, Usage, lifetime_label};

/// What a line of a bill is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Prompt tokens at the input price.
    Input,
    /// Prompt tokens read from the cache.
    CacheRead,
    /// Prompt tokens written to the cache; for how many seconds, where that is told.
    CacheWrite(Option<u64>),
    /// Output, thinking among it.
    Output,
    /// Searches of the web; the quantity is their number.
    WebSearch,
    /// An explicit cache that was kept; the quantity is tokens × seconds, the price that of a token for an hour.
    Storage,
}

/// Quantity × unit price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillItem {
    /// What for.
    pub line: Line,
    /// How many.
    pub quantity: u64,
    /// The list price of one; of a search or a token.
    pub unit_price: PicoUsdPerToken,
    /// What it comes to, discounts of the service taken off.
    pub amount: PicoUsd,
}

/// What a request costs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// The lines that aren't empty.
    pub items: Vec<BillItem>,
    /// The long-context tier that the whole request fell into: the smallest prompt that does. `None` at base prices.
    pub tier_from_tokens: Option<u64>,
}

impl Bill {
    /// All lines.
    pub fn total(&self) -> PicoUsd {
        self.items.iter().map(|item| item.amount).sum()
    }
}

/// Why a usage has no price. Nothing unknown costs $0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// No such model, or several.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// The model's row lacks a price that the usage needs.
    #[error("the price sheet has no price of {model} for {what}")]
    Missing {
        /// The model.
        model: String,
        /// What was used.
        what: String,
    },
}

/// Searches of the web: $10 for a thousand.
const WEB_SEARCH: (&[&str], PicoUsdPerToken) = (&["anthropic", "openai"], PicoUsdPerToken(10_000_000_000));

const HOUR_S: u64 = 3_600;

impl Sheet {
    /// What one request costs, line by line. Its prompt chooses the long-context tier for all of its tokens.
    ///
    /// # Errors
    /// Where the model isn't on the sheet, or a price that the usage needs isn't known.
    pub fn cost(&self, model: &str, usage: &Usage, date: Option<Date>) -> Result<Bill, PriceError> {
        let row = self.find(model, date)?;
        row.bill(usage, row.tier_of(usage))
    }

    /// What many requests cost of which only the sums are known. No sum says which of its requests were long, so base
    /// prices are taken: a lower bound where a model has a long-context tier.
    ///
    /// # Errors
    /// As [`Sheet::cost`].
    pub fn cost_of_aggregate(&self, model: &str, usage: &Usage, date: Option<Date>) -> Result<Bill, PriceError> {
        self.find(model, date)?.bill(usage, None)
    }
}

impl Row {
    /// The highest long-context tier that a prompt falls into.
    fn tier_of(&self, usage: &Usage) -> Option<&TierRow> {
        let counted = |tier: &&TierRow| {
            let reads = if tier.counts_reads { 0 } else { usage.cache_read_tokens };
            usage.prompt_tokens() - reads >= tier.from_tokens
        };
        self.tiers.iter().filter(counted).max_by_key(|tier| tier.from_tokens)
    }

    /// What one request costs, in one sum.
    ///
    /// # Errors
    /// Where a price that the usage needs isn't known.
    pub fn cost(&self, usage: &Usage) -> Result<PicoUsd, PriceError> {
        let mut total = PicoUsd::default();
        self.lines(usage, self.tier_of(usage), &mut |item| total += item.amount)?;
        Ok(total)
    }

    fn bill(&self, usage: &Usage, tier: Option<&TierRow>) -> Result<Bill, PriceError> {
        let mut items = Vec::new();
        self.lines(usage, tier, &mut |item| items.push(item))?;
        Ok(Bill { items, tier_from_tokens: tier.map(|tier| tier.from_tokens) })
    }

    /// The lines that aren't empty, one by one.
    fn lines(&self, usage: &Usage, tier: Option<&TierRow>, take: &mut dyn FnMut(BillItem)) -> Result<(), PriceError> {
        let missing = |what: String| PriceError::Missing { model: self.model.clone(), what };
        let Discount { tokens, reads: read_share } = self.discount(&usage.service).map_err(missing)?;
        let share = (tokens, 1_000);
        let (input, output, read, writes) = match tier {
            Some(t) => (t.input, t.output, t.read, &t.writes),
            None => (self.input, self.output, self.read, &self.writes),
        };
        // (of, in all): the part of the list price that is billed
        let mut add = |line: Line, quantity: u64, unit_price: PicoUsdPerToken, (of, in_all): (u64, u64)| {
            if quantity > 0 {
                let list = unit_price * quantity;
                let amount = PicoUsd((list.0 * i128::from(of) + i128::from(in_all) / 2) / i128::from(in_all));
                take(BillItem { line, quantity, unit_price, amount });
            }
        };
        add(Line::Input, usage.input_tokens, input, share);
        if usage.cache_read_tokens > 0 {
            let price = read.ok_or_else(|| missing("a cache read".to_owned()))?;
            let share = read_share.ok_or_else(|| missing("a cache read in such a request".to_owned()))?;
            add(Line::CacheRead, usage.cache_read_tokens, price, (share, 1_000));
        }
        for (lifetime_s, tokens) in &usage.cache_write_tokens {
            let what = || format!("a cache write that lives {}", lifetime_label(*lifetime_s));
            let price = writes.price(*lifetime_s).ok_or_else(|| missing(what()))?;
            add(Line::CacheWrite(Some(*lifetime_s)), *tokens, price, share);
        }
        if usage.cache_write_unknown_tokens > 0 {
            let price = shortest(writes).ok_or_else(|| missing("a cache write".to_owned()))?;
            add(Line::CacheWrite(None), usage.cache_write_unknown_tokens, price, share);
        }
        add(Line::Output, usage.output_tokens, output, share);
        if usage.web_searches > 0 {
            let (providers, price) = WEB_SEARCH;
            if !providers.contains(&self.provider.as_str()) {
                return Err(missing("a search of the web".to_owned()));
            }
            add(Line::WebSearch, usage.web_searches, price, (1, 1));
        }
        if usage.stored_token_s > 0 {
            let price = self.storage_hour.ok_or_else(|| missing("an hour of a stored cache".to_owned()))?;
            add(Line::Storage, usage.stored_token_s, price, (1, HOUR_S));
        }
        Ok(())
    }

    /// What is billed of the list prices. Batch and cache discounts multiply where the sheet says so; nothing is guessed.
    fn discount(&self, service: &Service) -> Result<Discount, String> {
        let unknown = |service: &str| format!("{service} at {}", self.provider);
        match service {
            Service::Standard => Ok(Discount { tokens: 1_000, reads: Some(1_000) }),
            Service::Batch => self.batch.ok_or_else(|| unknown("batch")),
            Service::Flex => self.flex.ok_or_else(|| unknown("flex")),
            Service::Other(name) => Err(unknown(name)),
        }
    }
}

/// The price of a write whose lifetime isn't told: the one for all lifetimes, or of the shortest on offer, which is every
/// provider's default and no longer than half an hour.
fn shortest(writes: &Lifetimes) -> Option<PicoUsdPerToken> {
    const LONGEST_DEFAULT_S: u64 = 1_800;
    let first = writes.by_seconds.first_key_value().filter(|(seconds, _)| **seconds <= LONGEST_DEFAULT_S);
    writes.any.or(first.map(|(_, price)| *price))
}
