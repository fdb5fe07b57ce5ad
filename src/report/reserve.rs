//! Whether a call fits a budget.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::format::whole;
use super::head::PriceSheet;
use super::prices::sheet_line;
use crate::price::{PicoUsd, Sheet, lifetime_label};

/// What is said of a call.
#[derive(Debug, Clone)]
pub struct ReserveAnswer {
    /// Provider and model.
    pub model: String,
    /// How long the cache lives that it writes, s; nothing where it doesn't.
    pub lifetime_s: Option<u64>,
    /// Whether it fits.
    pub fits: bool,
    /// The most that it can cost.
    pub worst_case: PicoUsd,
    /// What is left.
    pub left: PicoUsd,
    /// The largest prompt that would fit with as much output; nothing where not even an empty one does.
    pub largest_prompt_tokens: Option<u64>,
    /// The most output that would fit after the prompt.
    pub largest_max_output: Option<u64>,
}

fn dollars(amount: PicoUsd) -> String {
    let text = format!("{:.6}", amount.usd());
    // cents at least
    let trimmed = text.trim_end_matches('0');
    let decimals = trimmed.rsplit('.').next().map_or(0, str::len).max(2);
    format!("${:.decimals$}", amount.usd())
}

/// The answer as a person reads it.
pub fn reserve_terminal(answer: &ReserveAnswer, sheet: &Sheet, style: Style) -> String {
    let mut out = String::new();
    let (worst, left) = (dollars(answer.worst_case), dollars(answer.left));
    let verdict = if answer.fits {
        style.good(&format!("It fits: at most {worst} of the {left} that is left."))
    } else {
        style.bad(&format!("It doesn't fit: it may cost {worst}, and {left} is left."))
    };
    let _ = writeln!(out, "{verdict}");
    let tokens = |n: Option<u64>, none: &str| n.map_or_else(|| none.to_owned(), |n| format!("{} tokens", whole(n)));
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(out, "  {label:<24}{text}");
    };
    line("largest prompt", &tokens(answer.largest_prompt_tokens, "none: the output alone is too dear"));
    line("largest max_output", &tokens(answer.largest_max_output, "none: the prompt alone is too dear"));
    let cached = answer
        .lifetime_s
        .map_or_else(|| "not cached".to_owned(), |s| format!("written to the cache for {}", lifetime_label(s)));
    let worst_case = format!("the whole prompt {cached}, all of the output used, at the tier that the prompt hits");
    line("worst case", &worst_case);
    line("prices", &format!("{}. {}", answer.model, sheet_line(sheet)));
    out
}

#[derive(Serialize)]
struct ReserveReport<'a> {
    schema: &'static str,
    fits: bool,
    worst_case_usd: f64,
    left_usd: f64,
    largest_prompt_tokens: Option<u64>,
    largest_max_output: Option<u64>,
    model: &'a str,
    lifetime_s: Option<u64>,
    price_sheet: PriceSheet,
}

/// The answer as JSON, pretty-printed, with a final line break.
///
/// # Errors
/// Never; the serialiser's signature has an error.
pub fn reserve_json(answer: &ReserveAnswer, sheet: &Sheet) -> Result<String, serde_json::Error> {
    let report = ReserveReport {
        schema: "agent-sim.reserve/1",
        fits: answer.fits,
        worst_case_usd: answer.worst_case.usd(),
        left_usd: answer.left.usd(),
        largest_prompt_tokens: answer.largest_prompt_tokens,
        largest_max_output: answer.largest_max_output,
        model: &answer.model,
        lifetime_s: answer.lifetime_s,
        price_sheet: PriceSheet::of(sheet),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
