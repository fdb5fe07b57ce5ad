//! The price sheet as text.

use std::fmt::Write;

use super::Style;
use super::format::{table, whole};
use crate::price::{Lifetimes, PicoUsdPerToken, Row, SHEET_DATE, Sheet, lifetime_label};

fn price(p: PicoUsdPerToken) -> String {
    format!("{}", p.usd_per_million())
}

fn optional(p: Option<PicoUsdPerToken>) -> String {
    p.map_or_else(|| "unknown".to_owned(), price)
}

fn writes(lifetimes: &Lifetimes, input: PicoUsdPerToken) -> String {
    let mut parts: Vec<String> =
        lifetimes.by_seconds.iter().map(|(s, p)| format!("{} {}", lifetime_label(*s), price(*p))).collect();
    if let Some(any) = lifetimes.any {
        parts.push(if any == input { "as input".to_owned() } else { format!("any {}", price(any)) });
    }
    if parts.is_empty() { "unknown".to_owned() } else { parts.join(", ") }
}

/// The first source, without the place in it; `prices MODEL` shows all.
fn short_source(source: &str) -> String {
    let first = source.split(';').next().unwrap_or_default();
    let first = first.split(" model_prices").next().unwrap_or_default().trim_end_matches(" wheel");
    if first.chars().count() <= 36 { first.to_owned() } else { first.chars().take(35).chain(['…']).collect() }
}

/// Every model's prices in force on the sheet's day.
pub fn price_table(sheet: &Sheet, style: Style) -> String {
    let mut table =
        table(["model", "input", "output", "cache read", "cache write", "long prompts", "source", "read"], 1..4);
    let mut shown: Vec<&str> = Vec::new();
    for row in sheet.rows() {
        if shown.contains(&row.model.as_str()) {
            continue;
        }
        shown.push(&row.model);
        let row = sheet.find(&row.model, None).unwrap_or(row);
        let tier = row.tier.as_ref().map_or_else(String::new, |t| {
            format!("from {}: {} / {}", whole(t.from_tokens), price(t.input), price(t.output))
        });
        table.add_row([
            format!("{}/{}", row.provider, row.model),
            price(row.input),
            price(row.output),
            optional(row.read),
            writes(&row.writes, row.input),
            tier,
            short_source(&row.source),
            row.source_date.split(' ').next().unwrap_or_default().to_owned(),
        ]);
    }
    let foot = format!(
        "$ per million tokens, in force on {SHEET_DATE}. `agent-sim prices MODEL` shows one row with its source; [price] in a scenario overrides it."
    );
    format!("{table}\n{}\n", style.faint(&foot))
}

/// One model: every dated row, with source and notes.
pub fn price_details(sheet: &Sheet, row: &Row, style: Style) -> String {
    let mut out = String::new();
    let name = format!("{}/{}", row.provider, row.model);
    let _ = writeln!(out, "{}  {}", style.heading(&name), style.faint("$ per million tokens"));
    let history: Vec<&Row> = sheet.history(&name).collect();
    for dated in history {
        let from = dated.from.map_or_else(|| "until the next date".to_owned(), |d| format!("from {d}"));
        let now = if std::ptr::eq(dated, row) { format!(", in force on {SHEET_DATE}") } else { String::new() };
        if sheet.history(&name).count() > 1 {
            let _ = writeln!(out, "\n{from}{now}");
        }
        let mut field = |label: &str, text: String| {
            let _ = writeln!(out, "  {label:<18}  {text}");
        };
        field("input", price(dated.input));
        field("output", price(dated.output));
        field("cache read", optional(dated.read));
        field("cache write", writes(&dated.writes, dated.input));
        if let Some(t) = &dated.tier {
            field("long prompts", format!("from {} tokens the whole request costs", whole(t.from_tokens)));
            field("", format!("input {}, output {}, cache read {}", price(t.input), price(t.output), optional(t.read)));
            field("", format!("cache write {}", writes(&t.writes, t.input)));
        }
        let tokens = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| format!("{} tokens", whole(n)));
        field("window", tokens(dated.context_tokens));
        field("largest output", tokens(dated.max_output_tokens));
        field("smallest cacheable", tokens(Some(dated.min_cacheable_tokens).filter(|n| *n > 0)));
        if dated.hit_granularity_tokens > 1 {
            field("hits", format!("in steps of {} tokens", dated.hit_granularity_tokens));
        }
        let thinking =
            if dated.thinking_in_output { "part of the output count" } else { "counted apart, billed as output" };
        field("thinking tokens", thinking.to_owned());
        if let Some(day) = dated.retires {
            field("switched off", day.to_string());
        }
        if !dated.notes.is_empty() {
            field("notes", dated.notes.clone());
        }
        field("source", format!("{}, {}", dated.source, dated.source_date));
    }
    out
}
