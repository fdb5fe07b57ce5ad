//! The answer as a person reads it in a terminal: the bill and the time first, then where they come from.

use std::fmt::Write;

use super::Style;
use super::fleet::unstable;
use super::format::{percent, whole};
use super::system::{agent_rows, loading_note, loading_rows, success_lines, unanswered};
use super::wording::{
    Part, TURN_HEADLINES, about, any_marked, budget_rows, budget_text, cache_text, cells, checks_sentence,
    class_shares, duplicates_by_tool, headlines, longest_path, month, month_text, outcome_text, share_with_interval,
    spending, threshold_texts, time_shares, with_interval,
};
use crate::model::Resource;
use crate::scenario::Scenario;
use crate::simulate::Answer;
use crate::stats::{Quantity, Rate, Sources, Unit};

/// The whole report.
pub fn terminal(answer: &Answer, style: Style) -> String {
    let mut out = String::new();
    let (scenario, summary) = (&answer.scenario, &answer.summary);
    let _ = writeln!(out, "{}", style.heading(&scenario.title));
    let _ = writeln!(out, "{}", style.faint(&about(answer)));
    let fleet = answer.fleet_summary();
    if let Some((text, fleet)) = fleet.and_then(|fleet| Some((unstable(answer, fleet)?, fleet))) {
        let _ = writeln!(out, "\n{}", style.bad(&text));
        super::fleet::terminal(&mut out, answer, fleet, style);
        return out;
    }
    let _ = writeln!(out, "\n{}", headline_table(answer, style));
    let _ = writeln!(out, "{}", style.faint("Under each figure its 95 % interval."));
    if let Some(text) = super::fleet::unanswered_text(answer) {
        let _ = writeln!(out, "{}", style.warning(&text));
    }
    if any_marked(answer) {
        let _ = writeln!(
            out,
            "{}",
            style.warning(if fleet.is_some() {
                "?  too few sessions of a replication lie beyond this percentile, or they come in swarms: more replications or a \
                 longer horizon tell it."
            } else {
                "?  fewer than ten sessions lie beyond this percentile: run more sessions to know it."
            })
        );
    }
    if let Some(fleet) = fleet {
        super::fleet::terminal(&mut out, answer, fleet, style);
    }
    if let Some(herd) = &scenario.model.herd {
        section(&mut out, style, "Herd");
        line(&mut out, "clients", &format!("{}, all from time 0, one request each", whole(herd.clients)));
        line(&mut out, "resource", &resource_text(&herd.resource));
        if let Some(calls) = summary.metric("herd_calls") {
            let each = calls.mean.value / herd.clients as f64;
            line(&mut out, "calls a client", &super::format::count(each));
        }
        closing(&mut out, answer, style);
        return out;
    }
    section(&mut out, style, "Cost");
    match summary.metric("cost_usd") {
        None => line(&mut out, "per session", "not asked: the scenario names no model and no prices"),
        Some(_) => {
            let input =
                cache_text(answer).or_else(|| Some(with_interval(Unit::Usd, &summary.metric("cost_input_usd")?.mean)));
            if let Some(text) = input {
                line(&mut out, "input", &text);
            }
            let more = summary.sources.as_ref().is_some_and(Sources::has_more_than_turns);
            let output = if more { "output of all requests" } else { "output" };
            for (name, label) in [("cost_output_usd", output), ("cost_tools_usd", "tool fees, with repeats")] {
                if let Some(metric) = summary.metric(name) {
                    line(&mut out, label, &with_interval(Unit::Usd, &metric.mean));
                }
            }
            let calls = if scenario.model.has_agents() { "main agent's calls" } else { "call by call" };
            let pictures = [
                (calls, super::spark::calls(answer, style.left_of(30, 60).max(10))),
                ("session by session", super::spark::spread(answer, Quantity::CostUsd, style.left_of(30, 60).max(10))),
            ];
            for (label, picture) in pictures {
                if let Some(picture) = picture {
                    line(&mut out, label, &picture);
                }
            }
            match month(answer) {
                Some(month) => line(&mut out, "per month", &month_text(&month)),
                None => line(&mut out, "per month", "give [volume] sessions_per_month to see the bill"),
            }
        }
    }
    let rows = spending(answer);
    if !rows.is_empty() {
        section(&mut out, style, "What the money goes to");
        bars(&mut out, &rows, style);
    }
    agents(&mut out, answer, style);
    definitions(&mut out, answer, style);
    let rows = time_shares(answer);
    let spread = super::spark::spread(answer, Quantity::LatencyS, style.left_of(30, 60).max(10));
    if rows.len() > 1 || spread.is_some() {
        section(&mut out, style, "Where the time goes");
        if let Some(spread) = spread {
            line(&mut out, "session by session", &spread);
        }
        if rows.len() > 1 {
            bars(&mut out, &rows, style);
        }
        if let Some(queue) = summary.metric("queue_s").filter(|queue| queue.max > 0.0) {
            let text = format!(
                "Waits for a free place{}: {} a session, summed over calls.",
                if scenario.model.has_agents() { " of the main agent's own calls" } else { "" },
                with_interval(Unit::Seconds, &queue.mean)
            );
            let _ = writeln!(out, "  {}", style.faint(&text));
        }
        if let Some(think) = summary.metric("think_s") {
            let text = format!(
                "The user's think time, {} a session, isn't part of the latency.",
                with_interval(Unit::Seconds, &think.mean)
            );
            let _ = writeln!(out, "  {}", style.faint(&text));
        }
    }
    if scenario.model.faults.any() {
        section(&mut out, style, "Model calls");
        for (rate, label) in
            [(Rate::ModelAttemptsPerCall, "attempts a call"), (Rate::ModelExecutionsPerCall, "billed a call")]
        {
            if let Some(rate) = summary.rate(rate) {
                line(&mut out, label, &with_interval(Unit::Count, rate));
            }
        }
    }
    if !scenario.tools.is_empty() {
        let whose = if scenario.model.has_agents() { "Tool calls of the main agent" } else { "Tool calls" };
        section(&mut out, style, whose);
        if let Some(calls) = summary.metric("tool_calls") {
            line(&mut out, "per session", &with_interval(Unit::Count, &calls.mean));
        }
        match summary.rate(Rate::DuplicatesPerCall) {
            Some(rate) => {
                let hedged = summary.rate(Rate::HedgesPerCall).is_some_and(|hedges| hedges.value > 0.0);
                let why = if hedged { ", second copies of hedged calls among them" } else { "" };
                line(&mut out, "ran twice", &format!("{} of the calls{why}", share_with_interval(rate)));
                for (name, rate) in duplicates_by_tool(answer).filter(|_| scenario.tools.len() > 1) {
                    line(&mut out, "", &format!("{name}: {}", share_with_interval(rate)));
                }
            }
            None if summary.metric("tool_calls").is_some_and(|calls| calls.max <= 0.0) => {
                line(&mut out, "ran twice", "none: no tool was called");
            }
            None => line(&mut out, "ran twice", &no_duplicates(scenario)),
        }
        if let Some(rate) = summary.rate(Rate::Availability) {
            line(&mut out, "succeeded", &format!("{} of the calls sent", share_with_interval(rate)));
        }
        if let Some(rate) = summary.rate(Rate::HedgesPerCall) {
            line(&mut out, "hedged", &format!("{} second copies a call", with_interval(Unit::Count, rate)));
        }
        if let Some(rate) = summary.rate(Rate::BreakerRefused) {
            line(&mut out, "refused by the breaker", &format!("{} of the calls", share_with_interval(rate)));
        }
        if let Some(approval) = summary.metric("approval_s") {
            let text = format!("{} a session, summed over calls", with_interval(Unit::Seconds, &approval.mean));
            line(&mut out, "waiting for approval", &text);
        }
        let mut label = "on the longest path";
        for (name, share) in longest_path(answer) {
            line(&mut out, label, &format!("{name}: {} of the phases", share_with_interval(&share)));
            label = "";
        }
    }
    if let Some(rate) = summary.rate(Rate::CacheHit) {
        section(&mut out, style, "Cache");
        let pings = if scenario.model.cache.is_kept_alive() { ", pings counted" } else { "" };
        line(&mut out, "hits", &format!("{} of the input tokens{pings}", share_with_interval(rate)));
        let classes: Vec<String> =
            class_shares(answer).iter().map(|(_, text, share)| format!("{text} {}", percent(*share))).collect();
        line(&mut out, "input tokens", &classes.join(", "));
        if let Some(expired) = summary.rate(Rate::GapExpired) {
            line(&mut out, "expired", &format!("{} of the gaps between calls", share_with_interval(expired)));
        }
        if let Some(broken) = summary.rate(Rate::CacheBroken) {
            line(&mut out, "broken", &format!("before {} of the calls", share_with_interval(broken)));
        }
        if let Some(pings) = summary.metric("keep_alive_pings") {
            line(&mut out, "pings", &format!("{} a session", with_interval(Unit::Count, &pings.mean)));
        }
    }
    if let Some(summaries) = summary.metric("summaries") {
        section(&mut out, style, "Context");
        line(&mut out, "summaries", &format!("{} a session", with_interval(Unit::Count, &summaries.mean)));
    }
    let lines = success_lines(answer);
    if !lines.is_empty() {
        section(&mut out, style, "Success");
        for (label, text) in &lines {
            line(&mut out, label, text);
        }
    }
    let limits = budget_rows(answer);
    if !limits.is_empty() {
        let when = if scenario.model.budget.before { "before" } else { "after" };
        section(&mut out, style, &format!("Budget, checked {when} each call"));
        for row in &limits {
            line(&mut out, row.name, &budget_text(answer, row));
        }
    }
    closing(&mut out, answer, style);
    out
}

/// What a herd uses, in words.
fn resource_text(resource: &Resource) -> String {
    match resource {
        Resource::Optimistic => "a row, read and then written if nobody else wrote since (optimistic)".to_owned(),
        Resource::Queue { servers, places, .. } => {
            let servers = if *servers == 1 { "one server".to_owned() } else { format!("{} servers", whole(*servers)) };
            match *places {
                u64::MAX => format!("{servers}, and any number may wait"),
                0 => format!("{servers}, and nobody may wait"),
                places => format!("{servers}, and {} may wait", whole(places)),
            }
        }
    }
}

/// Thresholds, how sessions ended, and how sure all of it is.
fn closing(out: &mut String, answer: &Answer, style: Style) {
    let (scenario, summary) = (&answer.scenario, &answer.summary);
    let thresholds = threshold_texts(answer);
    if !thresholds.is_empty() {
        section(out, style, "Thresholds");
        for (pass, sure, text) in &thresholds {
            let text = match (pass, sure) {
                (false, _) => style.bad(text),
                (true, true) => style.good(text),
                (true, false) => style.warning(text),
            };
            let _ = writeln!(out, "  {text}");
        }
    }
    if scenario.model.herd.is_none() {
        section(out, style, "How sessions ended");
    }
    for (outcome, count) in &summary.outcomes {
        if *count > 0 && scenario.model.herd.is_none() {
            let share = *count as f64 / summary.sessions as f64;
            line(out, outcome_text(*outcome), &format!("{} ({})", whole(*count), percent(share)));
        }
    }
    section(out, style, "How sure");
    let sentence = checks_sentence(answer, "`agent-sim check` says why");
    let sentence = if answer.checks.all_pass() { style.good(&sentence) } else { style.bad(&sentence) };
    line(out, "theory", &sentence);
    for target in &scenario.run.precision {
        let reached = target.reached(summary);
        let text =
            format!("{} reached ±{}, asked ±{}", target.name, percent(reached), percent(target.relative_half_width));
        let text = if target.met(summary) { text } else { style.warning(&format!("{text}: max_sessions came first")) };
        line(out, "precision", &text);
    }
    if let Some(price) = &scenario.price {
        let changed = if price.overridden { ", changed by [price]" } else { "" };
        line(out, "prices", &format!("{} as of {}{changed}; {}", price.model, price.as_of, price.source));
        line(out, "", &super::prices::sheet_line(scenario.price_sheet()).replacen("Sheet", "sheet", 1));
    }
    if let Some(price) = scenario.agents.first().and_then(|main| main.small_price.as_ref()) {
        line(out, "", &format!("{} for the small model", price.model));
    }
    let mut told: Vec<&str> = scenario.price.iter().map(|price| price.model.as_str()).collect();
    for (node, price) in scenario.agents.iter().filter_map(|node| Some((node, node.price.as_ref()?))) {
        if !told.contains(&price.model.as_str()) {
            told.push(&price.model);
            line(out, "", &format!("{} for {}", price.model, node.agent));
        }
    }
    for note in &scenario.notes {
        line(out, "note", &style.warning(note));
    }
    if !scenario.strategies.is_empty() && scenario.strategy == "base" {
        line(
            out,
            "strategies",
            &format!("the file has {}; --strategy NAME runs one of them", scenario.strategies.join(", ")),
        );
    }
}

/// The tree of agents.
fn agents(out: &mut String, answer: &Answer, style: Style) {
    let rows = agent_rows(answer);
    if rows.is_empty() {
        return;
    }
    section(out, style, "Agents, each row without those below it");
    let header =
        ["agent", "model", "sessions", "calls", "tokens sent", "written", "cost", "share", "one takes", "starts warm"];
    let mut table = style.table(header, 2..10);
    for row in rows {
        let (cost, share) = row.cost.unwrap_or_default();
        let mut cells = vec![row.label, row.model];
        cells.extend(row.counts);
        cells.extend([cost, share, row.duration, row.warm]);
        table.add_row(cells);
    }
    let _ = writeln!(out, "{}", style.whole_words(table));
    let _ = writeln!(
        out,
        "{}",
        style.faint("Means a session of the main agent; calls of the model. One takes: from an agent's first request to its end; they may run side by\nside. Starts warm: the share of its sessions that find their tools and system prompt cached.")
    );
    for text in unanswered(answer) {
        let _ = writeln!(out, "  {}", style.warning(&text));
    }
}

/// What definitions cost under each way of loading.
fn definitions(out: &mut String, answer: &Answer, style: Style) {
    let rows = loading_rows(answer);
    if rows.is_empty() {
        return;
    }
    section(out, style, "Tool definitions, by server and way of loading");
    let mut table = style.table(["server", "tokens", "upfront", "searched", "as code", "left out as code"], 1..6);
    for row in rows {
        let mut cells = vec![row.server, row.tokens];
        cells.extend(row.cells.map(|lines| lines.join("\n")));
        table.add_row(cells);
    }
    let _ = writeln!(out, "{}", style.whole_words(table));
    let _ = writeln!(out, "{}", style.faint(&loading_note(answer)));
}

/// Why no call can run twice.
fn no_duplicates(scenario: &Scenario) -> String {
    let tools = &scenario.model.phase.tools;
    let why = if tools.iter().all(|t| t.retry.attempts <= 1) {
        "no call is tried again"
    } else if tools.iter().all(|t| t.idempotent || t.retry.attempts <= 1) {
        "repeated calls carry an idempotency key"
    } else {
        "no call can fail"
    };
    format!("none can: {why}")
}

/// Parts of a whole, each with its amount, its share and a bar as long as that.
fn bars(out: &mut String, rows: &[Part], style: Style) {
    let wide = |text: &dyn Fn(&Part) -> &str| rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
    let amount_width = wide(&|row| &row.amount);
    let label_width = wide(&|row| &row.label).min(style.left_of(usize::MAX, amount_width + 25).max(20));
    let most = style.left_of(30, label_width + amount_width + 15);
    for Part { label, amount, share } in rows {
        let bar = "█".repeat((share * most as f64).round() as usize);
        let label = shortened(label, label_width);
        let row = format!("  {label:<label_width$}  {amount:>amount_width$}  {:>7}  {bar}", percent(*share));
        let _ = writeln!(out, "{}", row.trim_end());
    }
}

/// A text that is too long, without what stands behind its first colon or comma, or cut.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head = text.split([':', ',']).next().unwrap_or(text);
    if head.chars().count() <= most {
        return head.to_owned();
    }
    head.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn section(out: &mut String, style: Style, title: &str) {
    let _ = writeln!(out, "\n{}", style.heading(title));
}

fn line(out: &mut String, label: &str, text: &str) {
    let _ = writeln!(out, "  {label:<26}  {text}");
}

/// The columns that the headline table takes with its labels beside its figures.
const HEADLINE_COLUMNS: usize = 106;

/// Each metric with its interval below; in a narrow terminal its label stands above.
fn headline_table(answer: &Answer, style: Style) -> String {
    let summary = &answer.summary;
    let narrow = style.is_narrower_than(HEADLINE_COLUMNS);
    let metrics = headlines(answer)
        .filter_map(|(quantity, label)| Some((label, quantity.unit(), summary.metric(quantity.name())?)));
    let turns = TURN_HEADLINES
        .into_iter()
        .filter_map(|(metric, label)| Some((label, Unit::Seconds, summary.turn_metric(metric)?)));
    let rows = metrics.chain(turns).map(|(label, unit, metric)| (label, cells(unit, metric)));
    if !narrow {
        let mut table = style.table(["", "mean", "p50", "p95", "p99"], 1..5);
        for (label, cells) in rows {
            let mut row = vec![format!("{label}\n")];
            row.extend(cells.into_iter().map(|(value, interval)| format!("{value}\n{interval}")));
            table.add_row(row);
        }
        return table.to_string();
    }
    let column = style.left_of(20, 0).min(style.left_of(HEADLINE_COLUMNS, 2) / 4);
    let line = |cells: [&str; 4]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>column$}")).collect();
        format!("  {}\n", cells.concat().trim_end())
    };
    let mut out = line(["mean", "p50", "p95", "p99"]);
    out += &"─".repeat(2 + 4 * column);
    for (label, cells) in rows {
        let _ = write!(out, "\n{}\n", style.heading(label));
        let cells: Vec<(String, String)> =
            cells.into_iter().map(|(value, interval)| (value, without_first_unit(&interval))).collect();
        let widest = cells.iter().map(|(_, interval)| interval.chars().count()).max().unwrap_or(0);
        if widest >= column {
            let lines = ["mean", "p50", "p95", "p99"].iter().zip(&cells).filter(|(_, cell)| !cell.0.is_empty());
            let lines: Vec<String> =
                lines.map(|(name, (value, interval))| format!("  {name:<6}{value:>16}   {interval}")).collect();
            out += &lines.join("\n");
            continue;
        }
        let of = |which: fn(&(String, String)) -> &str| std::array::from_fn(|index| cells.get(index).map_or("", which));
        out += &line(of(|cell| &cell.0));
        out += line(of(|cell| &cell.1)).trim_end_matches('\n');
    }
    out + "\n" + &"─".repeat(2 + 4 * column)
}

/// `97.91 s … 98.09 s` → `97.91 … 98.09 s`.
fn without_first_unit(interval: &str) -> String {
    let Some((low, high)) = interval.split_once(" … ") else { return interval.to_owned() };
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((low, unit)), Some((_, same))) if unit == same => format!("{low} … {high}"),
        _ => interval.to_owned(),
    }
}
