//! Other people's price tables, told apart by content: `LiteLLM`'s `model_prices_and_context_window.json`, pydantic's
//! genai-prices data, and our own tab-separated sheet.

mod genai;
mod litellm;

use std::sync::Arc;

use jiff::civil::Date;
use serde_json::Value;

use super::sheet::sha256;
use super::{Lifetimes, PicoUsdPerToken, Row, Sheet};

/// A sheet that was read, and what was left out.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The sheet.
    pub sheet: Arc<Sheet>,
    /// Whose format it is.
    pub format: &'static str,
    /// What of it wasn't read, and what is odd about it.
    pub remarks: Vec<String>,
}

/// Why a text is no price table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} is no price table that is known here: {why}")]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// What is wrong.
    pub why: String,
}

const FORMATS: &str = "LiteLLM's model_prices_and_context_window.json, the data of genai-prices, or tab-separated rows with the columns provider, model, input and output";

/// Rows, and what was left out on the way.
#[derive(Debug, Default)]
struct Found {
    rows: Vec<Row>,
    remarks: Vec<String>,
}

impl Found {
    /// Says of many what is the same for all of them, with the first as examples.
    fn remark(&mut self, models: &[String], what: &str) {
        match models {
            [] => {}
            [one] => self.remarks.push(format!("{one}: {what}")),
            [first, second, ..] => {
                self.remarks.push(format!("{} rows, such as {first} and {second}: {what}", models.len()));
            }
        }
    }
}

impl Sheet {
    /// Reads a table of any of the formats. `today` is the day whose prices are taken where none is asked for.
    ///
    /// What isn't a price and the file doesn't say (smallest cacheable prompt, granularity of hits, largest output) is
    /// taken from the built-in row of the same model.
    ///
    /// # Errors
    /// Where it is none of them, or no row of it has prices.
    pub fn import(text: &str, file: &str, today: Date) -> Result<Imported, ImportError> {
        let wrong = |why: String| ImportError { file: file.to_owned(), why };
        let start = text.trim_start_matches('\u{feff}').trim_start();
        let (format, mut found) = if start.starts_with(['{', '[']) {
            let json: Value = serde_json::from_str(start).map_err(|e| wrong(format!("it isn't valid JSON: {e}")))?;
            match &json {
                Value::Array(providers) => ("genai-prices", genai::read(providers).map_err(wrong)?),
                Value::Object(models) => ("LiteLLM", litellm::read(models).map_err(wrong)?),
                _ => return Err(wrong(FORMATS.to_owned())),
            }
        } else if start.lines().next().is_some_and(|line| line.split('\t').any(|column| column == "provider")) {
            let sheet = Sheet::parse(start).map_err(|e| wrong(e.to_string()))?;
            ("agent-sim", Found { rows: sheet.rows, remarks: Vec::new() })
        } else {
            return Err(wrong(format!("it must be {FORMATS}")));
        };
        if found.rows.is_empty() {
            let why = found.remarks.first().map_or_else(String::new, |remark| format!(": {remark}"));
            return Err(wrong(format!("no row of it has a price for input and output tokens{why}")));
        }
        let same = |a: &Row, b: &Row| a.provider == b.provider && a.model == b.model && a.from == b.from;
        let twice = |(index, row): &(usize, &Row)| found.rows.iter().take(*index).any(|before| same(before, row));
        let name = |(_, row): (usize, &Row)| format!("{}/{}", row.provider, row.model);
        let twice: Vec<String> = found.rows.iter().enumerate().filter(twice).map(name).collect();
        found.remark(&twice, "there twice for the same days; the last row holds");
        if format != "agent-sim" {
            found.rows.iter_mut().for_each(complement);
            for row in found.rows.iter_mut().filter(|row| row.source.is_empty()) {
                row.source = format!("{format}, {file}");
            }
        }
        let odd =
            |row: &Row| row.oddities().first().map(|odd| (format!("{}/{}", row.provider, row.model), odd.clone()));
        let mut oddities: Vec<(String, String)> = found.rows.iter().filter_map(odd).collect();
        oddities.sort_by(|a, b| a.1.cmp(&b.1));
        for group in oddities.chunk_by(|a, b| a.1 == b.1) {
            let models: Vec<String> = group.iter().map(|(model, _)| model.clone()).collect();
            found.remark(&models, &group[0].1);
        }
        let Found { rows, remarks } = found;
        let sheet = Sheet { rows, name: file.to_owned(), date: today, sha256: sha256(text) };
        Ok(Imported { sheet: Arc::new(sheet), format, remarks })
    }
}

/// Fills in how a model's cache works, where only the built-in sheet says so.
fn complement(row: &mut Row) {
    let Ok(known) = Sheet::embedded().find(&format!("{}/{}", row.provider, row.model), None) else { return };
    if row.min_cacheable_tokens == 0 {
        row.min_cacheable_tokens = known.min_cacheable_tokens;
    }
    row.hit_granularity_tokens = known.hit_granularity_tokens;
    row.thinking_in_output = known.thinking_in_output;
    row.context_tokens = row.context_tokens.or(known.context_tokens);
    row.max_output_tokens = row.max_output_tokens.or(known.max_output_tokens);
}

/// The name by which the built-in sheet knows a provider.
fn provider(name: &str) -> &str {
    match name {
        "gemini" => "google",
        "x-ai" => "xai",
        "dashscope" => "alibaba",
        "moonshotai" => "moonshot",
        "z-ai" => "zai",
        other => other,
    }
}

/// Write prices by the lifetimes that a provider offers: the shortest, and a longer one.
fn writes(
    provider: &str,
    model: &str,
    input: PicoUsdPerToken,
    read: Option<PicoUsdPerToken>,
    [short, hour, half_a_day]: [Option<PicoUsdPerToken>; 3],
) -> Lifetimes {
    let mut lifetimes = Lifetimes::default();
    let shortest_s = if model.contains("claude") || hour.is_some() {
        Some(300)
    } else if ["openai", "azure"].contains(&provider) || half_a_day.is_some() {
        Some(1_800)
    } else {
        None
    };
    // 0 is no surcharge: what is written is billed as input
    let [short, hour, half_a_day] =
        [short, hour, half_a_day].map(|price| price.map(|price| if price.0 == 0 { input } else { price }));
    // from GPT-5.6 on, and for Claude, writing costs more than input: without its price it isn't known
    let charges = model.contains("claude") || ["gpt-5.6", "gpt-6"].iter().any(|name| model.contains(name));
    match (short, shortest_s) {
        (Some(price), Some(seconds)) => {
            lifetimes.by_seconds.insert(seconds, price);
        }
        (Some(price), None) => lifetimes.any = Some(price),
        // who caches and has no price for writing bills it as input
        (None, _) if read.is_some() && hour.is_none() && half_a_day.is_none() && !charges => {
            lifetimes.any = Some(input);
        }
        (None, _) => {}
    }
    lifetimes.by_seconds.extend(hour.map(|price| (3_600, price)));
    lifetimes.by_seconds.extend(half_a_day.map(|price| (43_200, price)));
    lifetimes
}
