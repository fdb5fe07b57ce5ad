//! The price sheet as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use jiff::civil::Date;

use super::Style;
use super::format::whole;
use crate::price::{Imported, Lifetimes, PicoUsdPerToken, Row, Sheet, TierRow, lifetime_label};

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

/// Which sheet it is: where from, and the beginning of its hash.
pub(super) fn sheet_line(sheet: &Sheet) -> String {
    let hash: String = sheet.sha256().chars().take(12).collect();
    format!("Sheet {}, sha256 {hash}", sheet.name())
}

/// Every model's prices in force on the sheet's day.
pub fn price_table(sheet: &Sheet, as_of: Option<Date>, style: Style) -> String {
    let mut table =
        style.table(["model", "input", "output", "cache read", "cache write", "long prompts", "source", "read"], 1..4);
    for row in sheet.in_force(as_of) {
        let band = |t: &TierRow| format!("from {}: {} / {}", whole(t.from_tokens), price(t.input), price(t.output));
        let tier = row.tiers.iter().map(band).collect::<Vec<_>>().join("\n");
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
        "$ per million tokens, in force on {}. `agent-sim prices MODEL` shows one row with its source; [price] in a scenario overrides it. {}.",
        as_of.unwrap_or(sheet.date()),
        sheet_line(sheet)
    );
    format!("{}\n{}\n", style.whole_words(table), style.faint(&foot))
}

/// One model: every dated row, with source and notes.
pub fn price_details(sheet: &Sheet, row: &Row, as_of: Option<Date>, style: Style) -> String {
    let mut out = String::new();
    let name = format!("{}/{}", row.provider, row.model);
    let _ = writeln!(out, "{}  {}", style.heading(&name), style.faint("$ per million tokens"));
    let history: Vec<&Row> = sheet.history(&name).collect();
    for dated in history {
        let from = dated.from.map_or_else(|| "until the next date".to_owned(), |d| format!("from {d}"));
        let now = if std::ptr::eq(dated, row) {
            format!(", in force on {}", as_of.unwrap_or(sheet.date()))
        } else {
            String::new()
        };
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
        for t in &dated.tiers {
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
        let read = [dated.source.as_str(), dated.source_date.as_str()];
        field("source", read.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "));
    }
    out
}

/// The prices in which two rows differ: (what, old, new).
fn differences(old: &Row, new: &Row) -> Vec<(String, String, String)> {
    let bands = |row: &Row| {
        let band = |t: &TierRow| {
            format!(
                "from {}: {} / {} / {} / {}",
                whole(t.from_tokens),
                price(t.input),
                price(t.output),
                optional(t.read),
                writes(&t.writes, t.input)
            )
        };
        let bands: Vec<String> = row.tiers.iter().map(band).collect();
        if bands.is_empty() { "none".to_owned() } else { bands.join("\n") }
    };
    let all = [
        ("input", price(old.input), price(new.input)),
        ("output", price(old.output), price(new.output)),
        ("cache read", optional(old.read), optional(new.read)),
        ("cache write", writes(&old.writes, old.input), writes(&new.writes, new.input)),
        ("long prompts", bands(old), bands(new)),
    ];
    all.into_iter().filter(|(_, old, new)| old != new).map(|(what, old, new)| (what.to_owned(), old, new)).collect()
}

/// What another table says differently than a sheet, of the models in both.
pub fn price_changes(imported: &Imported, sheet: &Sheet, as_of: Option<Date>, style: Style) -> String {
    let mut out = String::new();
    let theirs = &imported.sheet;
    let day = as_of.unwrap_or(theirs.date());
    let _ = writeln!(
        out,
        "{}  {}",
        style.heading(theirs.name()),
        style.faint(&format!("{}, as of {day}", imported.format))
    );
    let ours = sheet.in_force(Some(day));
    let (mut same, mut missing) = (0_u64, Vec::new());
    let mut changes = style.table(["model", "price", "built in", "this file"], 0..0);
    let mut different = 0_u64;
    for row in &ours {
        let name = format!("{}/{}", row.provider, row.model);
        let Ok(new) = theirs.find(&name, Some(day)) else {
            missing.push((row.provider.as_str(), row.model.as_str()));
            continue;
        };
        let differences = differences(row, new);
        if differences.is_empty() {
            same += 1;
            continue;
        }
        different += 1;
        for (index, (what, old, new)) in differences.into_iter().enumerate() {
            changes.add_row([if index == 0 { name.clone() } else { String::new() }, what, old, new]);
        }
    }
    let known: BTreeSet<String> = ours.iter().map(|row| format!("{}/{}", row.provider, row.model)).collect();
    let names = theirs.in_force(Some(day)).into_iter().map(|row| format!("{}/{}", row.provider, row.model));
    let new: Vec<String> = names.filter(|name| !known.contains(name)).collect();
    let _ = writeln!(
        out,
        "{} models cost the same, {} differ, {} of the built-in ones aren't in it, {} are new\n",
        whole(same),
        whole(different),
        whole(missing.len() as u64),
        whole(new.len() as u64)
    );
    if different > 0 {
        let _ = writeln!(out, "{}", style.whole_words(changes));
        let _ = writeln!(out, "{}", style.faint("$ per million tokens; long prompts: input / output / read / write"));
    }
    if !new.is_empty() {
        const SHOWN: usize = 20;
        let _ = writeln!(out, "\n{}", style.heading("New"));
        let more = if new.len() > SHOWN { ", …" } else { "" };
        let _ = writeln!(out, "  {}{more}", new.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    if !missing.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("Not in it"));
        for group in missing.chunk_by(|a, b| a.0 == b.0) {
            let models: Vec<&str> = group.iter().map(|(_, model)| *model).collect();
            let _ = writeln!(out, "  {}: {}", group[0].0, models.join(", "));
        }
    }
    if !imported.remarks.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("What wasn't read, or is odd"));
        for remark in &imported.remarks {
            let _ = writeln!(out, "  {remark}");
        }
    }
    let _ = writeln!(
        out,
        "\n{}",
        style.faint(&format!("{}. --prices {} takes these prices", sheet_line(theirs), theirs.name()))
    );
    out
}
