//! The price sheet: dated rows as data, each with its source.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use super::{PicoUsdPerToken, Rates, Tariff};
use jiff::civil::Date;
use sha2::{Digest, Sha256};

/// The day to which the sheet was brought up; prices are those of this day unless a scenario says `as_of`.
pub const SHEET_DATE: Date = jiff::civil::date(2026, 11, 29);

static EMBEDDED: LazyLock<Arc<Sheet>> = LazyLock::new(|| match Sheet::parse(include_str!("sheet.tsv")) {
    Ok(sheet) => Arc::new(Sheet { name: "built in".to_owned(), ..sheet }),
    Err(error) => panic!("the embedded price sheet is broken, which its own test excludes: {error}"),
});

/// Prices of writing to the cache: by lifetime in seconds, or one for every lifetime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// The same price whatever the lifetime: providers that charge nothing extra for a write bill it as input.
    pub any: Option<PicoUsdPerToken>,
    /// Lifetime in seconds → price.
    pub by_seconds: BTreeMap<u64, PicoUsdPerToken>,
}

impl Lifetimes {
    /// The price of a write that lives `seconds`, if one is known.
    pub fn price(&self, seconds: u64) -> Option<PicoUsdPerToken> {
        self.by_seconds.get(&seconds).copied().or(self.any)
    }

    /// Whether any write price is known.
    pub fn is_empty(&self) -> bool {
        self.any.is_none() && self.by_seconds.is_empty()
    }

    /// The lifetimes on offer, for a message: `5m, 1h`.
    pub fn offered(&self) -> String {
        if self.any.is_some() && self.by_seconds.is_empty() {
            return "any duration".to_owned();
        }
        self.by_seconds.keys().map(|s| lifetime_label(*s)).collect::<Vec<_>>().join(", ")
    }
}

/// `300` → `5m`.
pub fn lifetime_label(seconds: u64) -> String {
    match seconds {
        s if s > 0 && s.is_multiple_of(3600) => format!("{}h", s / 3600),
        s if s > 0 && s.is_multiple_of(60) => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

/// The second set of prices of a model, for long prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierRow {
    /// The smallest prompt (hit + written + plain) that is billed at these prices.
    pub from_tokens: u64,
    /// Whether tokens read from the cache count towards it. Providers say that they do.
    pub counts_reads: bool,
    /// Input price.
    pub input: PicoUsdPerToken,
    /// Output price.
    pub output: PicoUsdPerToken,
    /// Price of a cache read, if known.
    pub read: Option<PicoUsdPerToken>,
    /// Prices of cache writes.
    pub writes: Lifetimes,
}

/// A share of the list prices, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discount {
    /// Of input, writes and output.
    pub tokens: u64,
    /// Of cache reads, where it is known: some providers don't lower them twice.
    pub reads: Option<u64>,
}

/// One model's prices from a date on.
#[derive(Debug, Clone)]
pub struct Row {
    /// Who bills.
    pub provider: String,
    /// The model's name as the provider writes it.
    pub model: String,
    /// First day of these prices, where known.
    pub from: Option<Date>,
    /// Input price.
    pub input: PicoUsdPerToken,
    /// Output price.
    pub output: PicoUsdPerToken,
    /// Price of a cache read, if known.
    pub read: Option<PicoUsdPerToken>,
    /// Prices of cache writes.
    pub writes: Lifetimes,
    /// Long-context prices: the highest band that a prompt reaches holds for all of its tokens.
    pub tiers: Vec<TierRow>,
    /// Price of keeping a token in an explicit cache for an hour, where there is one.
    pub storage_hour: Option<PicoUsdPerToken>,
    /// What a batch costs of these prices, where it is known.
    pub batch: Option<Discount>,
    /// What a flex request costs of them.
    pub flex: Option<Discount>,
    /// The largest prompt, tokens.
    pub context_tokens: Option<u64>,
    /// The largest output, tokens.
    pub max_output_tokens: Option<u64>,
    /// A shorter prompt is neither read from nor written to the cache.
    pub min_cacheable_tokens: u64,
    /// Hits round down to a multiple of this.
    pub hit_granularity_tokens: u64,
    /// Whether the provider's output count holds the thinking tokens (they are billed as output either way).
    pub thinking_in_output: bool,
    /// The day on which the model is switched off, where announced.
    pub retires: Option<Date>,
    /// Where the prices were read.
    pub source: String,
    /// When the source was read.
    pub source_date: String,
    /// What else is to be known.
    pub notes: String,
}

/// A name that isn't on the sheet, or is there more than once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", unknown_text(.name, .nearest, *.several, *.before))]
pub struct UnknownModel {
    /// What was asked for.
    pub name: String,
    /// The most similar names on the sheet, best first; or all that it can mean.
    pub nearest: Vec<String>,
    /// Whether several providers sell a model of this name.
    pub several: bool,
    /// The day that was asked for and the first day with a price, where that is later.
    pub before: Option<(Date, Date)>,
}

fn unknown_text(name: &str, nearest: &[String], several: bool, before: Option<(Date, Date)>) -> String {
    if let Some((day, first)) = before {
        return format!("`{name}` has no price on {day}: its first is of {first}");
    }
    let names = nearest.join(", ");
    if several {
        format!("several providers sell `{name}`: say {}", nearest.join(" or "))
    } else if nearest.is_empty() {
        format!("there is no model `{name}` on the price sheet")
    } else {
        format!("there is no model `{name}` on the price sheet; the nearest are {names}")
    }
}

/// A cache lifetime for which the row has no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model} has no price for {what}")]
pub struct MissingPrice {
    /// The model.
    pub model: String,
    /// What there is no price for.
    pub what: String,
}

impl Row {
    /// A row that says nothing but its prices.
    pub(crate) fn bare(provider: &str, model: &str, input: PicoUsdPerToken, output: PicoUsdPerToken) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            from: None,
            input,
            output,
            read: None,
            writes: Lifetimes::default(),
            tiers: Vec::new(),
            storage_hour: None,
            batch: None,
            flex: None,
            context_tokens: None,
            max_output_tokens: None,
            min_cacheable_tokens: 0,
            hit_granularity_tokens: 1,
            thinking_in_output: provider != "google",
            retires: None,
            source: String::new(),
            source_date: String::new(),
            notes: String::new(),
        }
    }

    /// The tariff of calls that don't cache (`None`), or that write both prefix and messages with the given lifetime
    /// in seconds.
    ///
    /// # Errors
    /// Where a price that would be used isn't known.
    pub fn tariff(&self, lifetime_s: Option<u64>) -> Result<Tariff, MissingPrice> {
        let rates = |input, output, read: Option<PicoUsdPerToken>, writes: &Lifetimes| {
            let (read, write) = match lifetime_s {
                None => (input, input),
                Some(seconds) => {
                    let missing = |what: String| MissingPrice { model: self.model.clone(), what };
                    (
                        read.ok_or_else(|| missing("a cache read".to_owned()))?,
                        writes
                            .price(seconds)
                            .ok_or_else(|| missing(format!("a cache write that lives {}", lifetime_label(seconds))))?,
                    )
                }
            };
            Ok(Rates { input, read, write_prefix: write, write_messages: write, output })
        };
        Ok(Tariff {
            base: rates(self.input, self.output, self.read, &self.writes)?,
            tier: match self.only_tier()? {
                Some(t) => Some((t.from_tokens, rates(t.input, t.output, t.read, &t.writes)?)),
                None => None,
            },
        })
    }

    /// The long-context tier, if there is one.
    ///
    /// # Errors
    /// Where there are several, or where cached tokens don't count towards it: a [`Tariff`] has one that the prompt
    /// chooses.
    pub fn only_tier(&self) -> Result<Option<&TierRow>, MissingPrice> {
        let missing = |what: &str| Err(MissingPrice { model: self.model.clone(), what: what.to_owned() });
        match self.tiers.as_slice() {
            [] => Ok(None),
            [tier] if tier.counts_reads => Ok(Some(tier)),
            [_] => missing("prompts of which cached tokens don't count towards the long-context tier"),
            _ => missing("simulated sessions: it has several long-context bands, and a session knows one"),
        }
    }

    /// What is odd about the prices: reading dearer than input, writing cheaper, a long-context tier below base. Tables
    /// that have drifted show so (public bug reports, E8).
    pub fn oddities(&self) -> Vec<String> {
        let mut odd = Vec::new();
        let bands = self.tiers.iter().map(|t| (t.input, t.output, t.read, &t.writes));
        for (input, output, read, writes) in
            std::iter::once((self.input, self.output, self.read, &self.writes)).chain(bands)
        {
            if read.is_some_and(|read| read.0 == 0 && input.0 > 0) {
                odd.push("reading the cache is free".to_owned());
            }
            if read.is_some_and(|read| read > input) {
                odd.push("reading the cache is dearer than input".to_owned());
            }
            for price in writes.by_seconds.values().chain(&writes.any) {
                if *price < input {
                    odd.push("writing to the cache is cheaper than input".to_owned());
                }
                if price.0 > 5 * input.0 {
                    odd.push("writing to the cache is dearer than five times input".to_owned());
                }
            }
            if input < self.input || output < self.output {
                odd.push("long prompts are cheaper".to_owned());
            }
        }
        odd.dedup();
        odd
    }
}

/// All rows.
#[derive(Debug, Clone)]
pub struct Sheet {
    pub(super) rows: Vec<Row>,
    pub(super) name: String,
    pub(super) date: Date,
    pub(super) sha256: String,
}

impl Sheet {
    /// The sheet that comes with the program.
    pub fn embedded() -> &'static Arc<Sheet> {
        &EMBEDDED
    }

    /// Where it comes from: "built in", or a file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The day whose prices are taken where none is asked for.
    pub fn date(&self) -> Date {
        self.date
    }

    /// SHA-256 of the file it was read from, in hexadecimal: whoever has the same has the same prices.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Reads tab-separated rows in the columns of `sheet.tsv`, of which `provider`, `model`, `input` and `output` have to
    /// be there.
    ///
    /// # Errors
    /// Where a row lacks one of them, a column isn't known, a number or a date can't be read, or a price is out of range.
    pub fn parse(text: &str) -> Result<Sheet, Box<dyn std::error::Error + Send + Sync>> {
        let mut reader = csv::ReaderBuilder::new().delimiter(b'\t').from_reader(text.as_bytes());
        let header = reader.headers()?.clone();
        let mut rows: Vec<Row> = Vec::new();
        for record in reader.records() {
            let record = record?;
            let number = record.position().map_or(0, csv::Position::line);
            let line = Line { header: &header, record: &record, read: RefCell::default() };
            let read = row(&line)
                .and_then(|row| line.all_read().map(|()| row))
                .map_err(|e| format!("line {number}, {}: {e}", line.text("model")))?;
            let is_same = |row: &Row| row.provider == read.provider && row.model == read.model && row.from == read.from;
            if rows.iter().any(is_same) {
                return Err(format!("line {number}, {}: it is there twice for the same days", read.model).into());
            }
            rows.push(read);
        }
        Ok(Sheet { rows, name: String::new(), date: SHEET_DATE, sha256: sha256(text) })
    }

    /// Every row, in the sheet's order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of `name` (`claude-sonnet-4-6` or `anthropic/claude-sonnet-4-6`) that is in force on a day; without
    /// one, on [`Sheet::date`].
    ///
    /// # Errors
    /// Where no model has that name, or several providers sell one; the names to choose from come with the error.
    pub fn find<'a>(&'a self, name: &str, as_of: Option<Date>) -> Result<&'a Row, UnknownModel> {
        let day = as_of.unwrap_or(self.date);
        let rows: Vec<&Row> = self.history(name).collect();
        let sellers: BTreeSet<&str> = rows.iter().map(|row| row.provider.as_str()).collect();
        if sellers.len() > 1 {
            let nearest = sellers.into_iter().map(|provider| format!("{provider}/{name}")).collect();
            return Err(UnknownModel { name: name.to_owned(), nearest, several: true, before: None });
        }
        // the latest, and of two of one day the last
        let in_force = rows.iter().filter(|row| row.from.is_none_or(|from| from <= day)).max_by_key(|row| row.from);
        in_force.copied().ok_or_else(|| UnknownModel {
            name: name.to_owned(),
            nearest: if rows.is_empty() { self.nearest(name) } else { Vec::new() },
            several: false,
            before: rows.iter().filter_map(|row| row.from).min().map(|first| (day, first)),
        })
    }

    /// Every row of a model, in the sheet's order: of `provider/model`, or else of every provider's model of that name.
    pub fn history<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a Row> + use<'a, 'n> {
        let is_sellers = |row: &Row| {
            name.strip_prefix(row.provider.as_str()).and_then(|rest| rest.strip_prefix('/')) == Some(row.model.as_str())
        };
        let full = self.rows.iter().any(is_sellers);
        self.rows.iter().filter(move |row| if full { is_sellers(row) } else { row.model == name })
    }

    /// Each model's row that is in force on a day, in the sheet's order.
    pub fn in_force(&self, as_of: Option<Date>) -> Vec<&Row> {
        let day = as_of.unwrap_or(self.date);
        let mut latest: BTreeMap<(&str, &str), (usize, &Row)> = BTreeMap::new();
        for (index, row) in self.rows.iter().enumerate().filter(|(_, row)| row.from.is_none_or(|from| from <= day)) {
            let known = latest.entry((&row.provider, &row.model)).or_insert((index, row));
            if row.from >= known.1.from {
                known.1 = row;
            }
        }
        let mut rows: Vec<(usize, &Row)> = latest.into_values().collect();
        rows.sort_by_key(|(index, _)| *index);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// The next change of price after a day, if one is known.
    pub fn next_change(&self, row: &Row, as_of: Option<Date>) -> Option<&Row> {
        let day = as_of.unwrap_or(self.date);
        let is_same = |r: &&Row| r.provider == row.provider && r.model == row.model;
        self.rows.iter().filter(is_same).filter(|r| r.from.is_some_and(|from| from > day)).min_by_key(|r| r.from)
    }

    fn nearest(&self, name: &str) -> Vec<String> {
        let wanted = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        let mut scored: Vec<(f64, &str)> = self
            .rows
            .iter()
            .map(|row| {
                let model = row.model.to_lowercase();
                let score = strsim::jaro_winkler(&model, &wanted) + f64::from(model.contains(&wanted));
                (score, row.model.as_str())
            })
            .filter(|(score, _)| *score > 0.7)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored.dedup_by(|a, b| a.1 == b.1);
        scored.into_iter().take(3).map(|(_, model)| model.to_owned()).collect()
    }
}

/// SHA-256 of a text, in hexadecimal.
pub(super) fn sha256(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

type RowError = Box<dyn std::error::Error + Send + Sync>;

/// One record of the sheet, which knows what of it was read: a column that nobody reads is an error, not decoration.
struct Line<'a> {
    header: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
    read: RefCell<BTreeSet<usize>>,
}

impl Line<'_> {
    /// What stands in a column; nothing where there is no such column.
    fn text(&self, column: &str) -> &str {
        let Some(index) = self.header.iter().position(|h| h == column) else { return "" };
        self.read.borrow_mut().insert(index);
        self.record.get(index).unwrap_or_default()
    }

    fn needed(&self, column: &str) -> Result<&str, RowError> {
        Some(self.text(column)).filter(|text| !text.is_empty()).ok_or_else(|| format!("`{column}` is missing").into())
    }

    fn parsed<T: FromStr<Err: Display>>(&self, column: &str) -> Result<Option<T>, RowError> {
        match self.text(column) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|e| format!("`{column}` is `{text}`: {e}").into()),
        }
    }

    fn price(&self, column: &str) -> Result<Option<PicoUsdPerToken>, RowError> {
        Ok(self.parsed(column)?.map(PicoUsdPerToken::from_usd_per_million).transpose()?)
    }

    fn needed_price(&self, column: &str) -> Result<PicoUsdPerToken, RowError> {
        self.price(column)?.ok_or_else(|| format!("`{column}` is missing").into())
    }

    fn yes(&self, column: &str, otherwise: bool) -> Result<bool, RowError> {
        match self.text(column) {
            "" => Ok(otherwise),
            "yes" => Ok(true),
            "no" => Ok(false),
            other => Err(format!("`{column}` must be yes or no, not `{other}`").into()),
        }
    }

    /// A share of the list prices, in thousandths.
    fn share(&self, column: &str) -> Result<Option<u64>, RowError> {
        match self.parsed::<f64>(column)? {
            None => Ok(None),
            Some(share) if (0.0..=1.0).contains(&share) => Ok(Some((share * 1_000.0).round() as u64)),
            Some(share) => Err(format!("`{column}` must lie between 0 and 1, not {share}").into()),
        }
    }

    fn discount(&self, column: &str) -> Result<Option<Discount>, RowError> {
        let reads = self.share(&format!("{column}_read"))?;
        Ok(self.share(column)?.map(|tokens| Discount { tokens, reads }))
    }

    fn writes(&self, prefix: &str) -> Result<Lifetimes, RowError> {
        let mut by_seconds = BTreeMap::new();
        for (seconds, lifetime) in [(300, "5m"), (1_800, "30m"), (3_600, "1h"), (43_200, "12h")] {
            if let Some(price) = self.price(&format!("{prefix}{lifetime}"))? {
                by_seconds.insert(seconds, price);
            }
        }
        Ok(Lifetimes { any: self.price(&format!("{prefix}any"))?, by_seconds })
    }

    fn all_read(&self) -> Result<(), RowError> {
        let read = self.read.borrow();
        for (index, column) in self.header.iter().enumerate() {
            let unused_tier = column.starts_with("tier_") && self.record.get(index).is_none_or(str::is_empty);
            if !read.contains(&index) && !unused_tier {
                return Err(format!("the column `{column}` has a value that nothing reads").into());
            }
        }
        Ok(())
    }
}

fn row(line: &Line<'_>) -> Result<Row, RowError> {
    let tiers = match line.parsed::<u64>("tier_over")? {
        None => Vec::new(),
        Some(over) => {
            let counts_reads = match line.text("tier_counts") {
                "all" | "" => true,
                "uncached" => false,
                other => {
                    return Err(format!(
                        "`tier_counts` must be `all` (cached tokens count towards the tier) or `uncached`, not `{other}`"
                    )
                    .into());
                }
            };
            vec![TierRow {
                from_tokens: if line.yes("tier_inclusive", false)? { over } else { over + 1 },
                counts_reads,
                input: line.needed_price("tier_input")?,
                output: line.needed_price("tier_output")?,
                read: line.price("tier_read")?,
                writes: line.writes("tier_write_")?,
            }]
        }
    };
    Ok(Row {
        provider: line.needed("provider")?.to_owned(),
        model: line.needed("model")?.to_owned(),
        from: line.parsed("from")?,
        input: line.needed_price("input")?,
        output: line.needed_price("output")?,
        read: line.price("read")?,
        writes: line.writes("write_")?,
        tiers,
        storage_hour: line.price("storage_hour")?,
        batch: line.discount("batch")?,
        flex: line.discount("flex")?,
        context_tokens: line.parsed("context_tokens")?,
        max_output_tokens: line.parsed("max_output_tokens")?,
        min_cacheable_tokens: line.parsed("min_cacheable_tokens")?.unwrap_or(0),
        hit_granularity_tokens: line.parsed("hit_granularity_tokens")?.unwrap_or(1),
        thinking_in_output: line.yes("thinking_in_output", true)?,
        retires: line.parsed("retires")?,
        source: line.text("source").to_owned(),
        source_date: line.text("source_date").to_owned(),
        notes: line.text("notes").to_owned(),
    })
}
