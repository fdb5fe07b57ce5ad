//! The answer as a table for a pull request.

use std::fmt::Write;

use super::format::percent;
use super::system::{agent_rows, loading_note, loading_rows, success_lines, unanswered};
use super::wording::{
    Part, TURN_HEADLINES, budget_rows, budget_text, cache_text, cells, checks_sentence, headlines, month, month_text,
    outcome_text, played, price_sentence, share_with_interval, spending, threshold_texts, time_shares, with_interval,
};
use crate::simulate::Answer;
use crate::stats::{Rate, TurnMetric, Unit};

pub(super) fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn parts(out: &mut String, title: &str, rows: &[Part]) {
    let _ = writeln!(out, "\n| {title} | per session | share |\n|---|---:|---:|");
    for row in rows {
        let _ = writeln!(out, "| {} | {} | {} |", escape(&row.label), row.amount, percent(row.share));
    }
}

fn agents(out: &mut String, answer: &Answer) {
    let rows = agent_rows(answer);
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n| agent | model | sessions | model calls | tokens sent | written | cost | share | one takes |"
    );
    let _ = writeln!(out, "|---|---|---:|---:|---:|---:|---:|---:|---:|");
    for row in rows {
        let (cost, share) = row.cost.unwrap_or_default();
        let label = escape(&row.label.replace("  ", "&nbsp;&nbsp;"));
        let (model, counts) = (escape(&row.model), row.counts.join(" | "));
        let _ = writeln!(out, "| {label} | {model} | {counts} | {cost} | {share} | {} |", row.duration);
    }
    for text in unanswered(answer) {
        let _ = writeln!(out, "\n{}.", escape(&text));
    }
}

fn definitions(out: &mut String, answer: &Answer) {
    let rows = loading_rows(answer);
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n| tool definitions | tokens | upfront | searched | as code | left out as code |");
    let _ = writeln!(out, "|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let cells = row.cells.map(|lines| lines.join("<br>"));
        let _ = writeln!(out, "| {} | {} | {} |", escape(&row.server), row.tokens, cells.join(" | "));
    }
    let _ = writeln!(out, "\n<sub>{}</sub>", loading_note(answer).replace('\n', " "));
}

/// GitHub-flavoured markdown.
pub fn markdown(answer: &Answer) -> String {
    let (scenario, summary) = (&answer.scenario, &answer.summary);
    let mut out = String::new();
    let strategy = if scenario.strategy == "base" { String::new() } else { format!(" · {}", scenario.strategy) };
    let _ = writeln!(out, "### {}{}\n", escape(&scenario.title), escape(&strategy));
    if let Some(fleet) = answer.fleet_summary()
        && let Some(text) = super::fleet::unstable(answer, fleet)
    {
        let _ = writeln!(out, "**{}**", escape(&text));
        super::fleet::markdown(&mut out, answer, fleet);
        return out;
    }
    if let Some(month) = month(answer) {
        let _ = writeln!(out, "**Per month: {}.**\n", month_text(&month));
    }
    let _ = writeln!(out, "| | mean | p50 | p95 | p99 |\n|---|---:|---:|---:|---:|");
    let of_sessions =
        headlines(answer).map(|(quantity, label)| (label, quantity.unit(), summary.metric(quantity.name())));
    let of_messages = TURN_HEADLINES
        .into_iter()
        .filter(|(metric, _)| *metric == TurnMetric::Message)
        .map(|(metric, label)| (label, Unit::Seconds, summary.turn_metric(metric)));
    for (label, unit, metric) in of_sessions.chain(of_messages) {
        if let Some(metric) = metric {
            let cells: Vec<String> = cells(unit, metric)
                .into_iter()
                .map(
                    |(value, interval)| {
                        if interval.is_empty() { value } else { format!("{value}<br><sub>{interval}</sub>") }
                    },
                )
                .collect();
            let _ = writeln!(out, "| {label} | {} |", cells.join(" | "));
        }
    }
    if let Some(fleet) = &answer.fleet {
        super::fleet::markdown(&mut out, answer, &fleet.summary);
    }
    let rows = spending(answer);
    if !rows.is_empty() {
        parts(&mut out, "what the money goes to", &rows);
    }
    agents(&mut out, answer);
    definitions(&mut out, answer);
    let rows = time_shares(answer);
    if rows.len() > 1 {
        parts(&mut out, "where the time goes", &rows);
    }
    let _ = writeln!(out);
    if let Some(text) = cache_text(answer) {
        let _ = writeln!(out, "- Input: {text}.");
    }
    if let Some(rate) = summary.rate(Rate::CacheHit) {
        let _ = writeln!(out, "- Cache hits: {} of the input tokens.", share_with_interval(rate));
    }
    for (name, label) in
        [("keep_alive_pings", "Pings"), ("summaries", "Summaries"), ("model_attempts", "Model attempts")]
    {
        if let Some(metric) = summary.metric(name) {
            let _ = writeln!(out, "- {label}: {} a session.", with_interval(Unit::Count, &metric.mean));
        }
    }
    if let Some(metric) = summary.metric("approval_s") {
        let text = with_interval(Unit::Seconds, &metric.mean);
        let _ = writeln!(out, "- Waiting for approval: {text} a session, summed over calls.");
    }
    if let Some(rate) = summary.rate(Rate::DuplicatesPerCall) {
        let _ = writeln!(out, "- Calls that ran twice: {}.", share_with_interval(rate));
    }
    for (label, text) in success_lines(answer) {
        let _ = writeln!(out, "- {}: {text}.", if label.is_empty() { "Succeeded" } else { label });
    }
    for (_, _, text) in threshold_texts(answer) {
        let _ = writeln!(out, "- Threshold {}.", escape(&text));
    }
    for row in budget_rows(answer) {
        let _ = writeln!(out, "- Budget of {}.", budget_text(answer, &row));
    }
    let ended: Vec<String> = summary
        .outcomes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(outcome, count)| {
            format!("{} {}", percent(*count as f64 / summary.sessions as f64), outcome_text(*outcome))
        })
        .collect();
    if scenario.model.herd.is_none() {
        let _ = writeln!(out, "- Sessions ended: {}.", ended.join(", "));
    }
    for note in &scenario.notes {
        let _ = writeln!(out, "- Note: {}.", escape(note));
    }
    if let Some(text) = price_sentence(scenario) {
        let _ = writeln!(out, "- {}.", escape(&text));
    }
    let _ = writeln!(
        out,
        "- {}, seed {}; small print under a figure is its 95 % interval; {}.",
        played(answer),
        scenario.run.seed,
        checks_sentence(answer, "`agent-sim check` says why")
    );
    out
}
