//! What a metric is called, and a value with its interval, in words that both the terminal and the pull request use.

use crate::check::Check;
use crate::scenario::{SEARCH_TOOL, Scenario};
use crate::session::{Limit, Outcome};
use crate::simulate::Answer;
use crate::stats::{Estimate, MetricSummary, Quantity, Threshold, TurnMetric, Unit};

use super::format::{count, money, number, percent, seconds, whole};

pub(super) fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::TurnLimit => "stopped by max_turns",
        Outcome::ContextFull => "outgrew the model's window",
        Outcome::Budget => "budget of dollars or calls",
        Outcome::Deadline => "budget of time",
        Outcome::Failed => "a model call failed",
    }
}

/// Which file and strategy was played, on how many sessions of which world.
pub(super) fn about(answer: &Answer) -> String {
    let scenario = &answer.scenario;
    let strategy =
        if scenario.strategy == "base" { String::new() } else { format!(", strategy {}", scenario.strategy) };
    format!("{}{strategy} · {}, seed {}", scenario.file, played(answer), scenario.run.seed)
}

/// The rows of the first table: (metric, label).
pub(super) const HEADLINES: [(Quantity, &str); 9] = [
    (Quantity::HerdCalls, "calls that reached the resource"),
    (Quantity::HerdTimeS, "until the last client is done"),
    (Quantity::HerdGaveUp, "clients that gave up"),
    (Quantity::CostUsd, "cost per session"),
    (Quantity::LatencyS, "latency of a session"),
    (Quantity::Messages, "user messages"),
    (Quantity::Turns, "model calls"),
    (Quantity::InputTokens, "input tokens"),
    (Quantity::OutputTokens, "output tokens"),
];

/// The rows below them, one number a message or a turn.
pub(super) const TURN_HEADLINES: [(TurnMetric, &str); 3] = [
    (TurnMetric::Message, "one message until its answer"),
    (TurnMetric::Latency, "one turn with its tools"),
    (TurnMetric::FirstToken, "time to first token"),
];

/// The rows of the first table, in the words of this scenario.
pub(super) fn headlines(answer: &Answer) -> impl Iterator<Item = (Quantity, &'static str)> {
    let has_agents = answer.scenario.model.has_agents();
    HEADLINES.into_iter().map(move |(quantity, label)| match quantity {
        Quantity::Turns if has_agents => (quantity, "model calls of the main agent"),
        Quantity::InputTokens if has_agents => (quantity, "input tokens of all agents"),
        Quantity::OutputTokens if has_agents => (quantity, "output tokens of all agents"),
        _ => (quantity, label),
    })
}

pub(super) fn value(unit: Unit, x: f64) -> String {
    match unit {
        Unit::Usd => money(x),
        Unit::Seconds => seconds(x),
        Unit::Tokens | Unit::Count => count(x),
    }
}

pub(super) fn interval(unit: Unit, ci95: [f64; 2]) -> String {
    if ci95[0].is_nan() {
        return "no interval".to_owned();
    }
    format!("{} … {}", value(unit, ci95[0]), value(unit, ci95[1]))
}

/// The quantiles that the tables show.
pub(super) const SHOWN: [f64; 3] = [0.5, 0.95, 0.99];

/// (value, interval) for mean, p50, p95, p99 of a metric.
pub(super) fn cells(unit: Unit, summary: &MetricSummary) -> Vec<(String, String)> {
    if summary.min.total_cmp(&summary.max).is_eq() {
        let about = if summary.values < 2 { "one session only" } else { "in every session" };
        let mut cells = vec![(value(unit, summary.min), about.to_owned())];
        cells.extend(SHOWN.map(|_| (String::new(), String::new())));
        return cells;
    }
    let mut cells = vec![(value(unit, summary.mean.value), interval(unit, summary.mean.ci95))];
    for p in SHOWN {
        cells.push(match summary.quantile(p) {
            Some(q) if q.too_few => (format!("{} ?", value(unit, q.value)), "too few sessions".to_owned()),
            Some(q) => (value(unit, q.value), interval(unit, q.ci95)),
            None => (String::new(), String::new()),
        });
    }
    cells
}

/// Whether any shown quantile carries the mark `?`.
pub(super) fn any_marked(answer: &Answer) -> bool {
    let summary = &answer.summary;
    summary
        .metrics
        .iter()
        .filter(|(metric, _)| HEADLINES.iter().any(|(q, _)| *q == metric.quantity()))
        .map(|(_, s)| s)
        .chain(summary.turn_metrics.iter().map(|(_, s)| s))
        .any(|s| s.min < s.max && SHOWN.iter().any(|p| s.quantile(*p).is_some_and(|q| q.too_few)))
}

/// One line of "what the money goes to" or "where the time goes": label, mean a session, share of the total.
pub(super) struct Part {
    pub label: String,
    pub amount: String,
    pub share: f64,
}

/// What the money goes to, dearest first; nothing that costs nothing.
pub(super) fn spending(answer: &Answer) -> Vec<Part> {
    let Some(sources) = &answer.summary.sources else { return Vec::new() };
    let (total, n) = (sources.total().0 as f64, answer.summary.sessions as f64);
    let mut rows: Vec<(String, i128)> = answer
        .scenario
        .servers
        .iter()
        .zip(&sources.definitions)
        .map(|(server, usd)| {
            let server = if server == SEARCH_TOOL { "the search tool" } else { server };
            (format!("tool definitions: {server}"), usd.0)
        })
        .collect();
    let history = if answer.scenario.model.conversation.is_single() {
        "history: earlier outputs and tool results, sent again"
    } else {
        "history: earlier outputs, tool results and messages, sent again"
    };
    rows.extend([
        ("system prompt, sent with every call".to_owned(), sources.system.0),
        ("task, sent with every call".to_owned(), sources.task.0),
        (history.to_owned(), sources.history.0),
        ("output of the turns".to_owned(), sources.output.0),
        ("tool fees, first executions".to_owned(), sources.tools.0),
        ("tool fees, repeated executions".to_owned(), sources.duplicates.0),
        ("summaries that replace the history".to_owned(), sources.compaction.0),
        ("pings that keep the cache warm".to_owned(), sources.keep_alive.0),
        ("model calls whose reply was lost or came too late".to_owned(), sources.lost_replies.0),
        ("searches for tools".to_owned(), sources.searches.0),
        ("other agents, all of their sessions".to_owned(), sources.agents.0),
    ]);
    rows.retain(|(_, pico)| *pico != 0);
    rows.sort_by_key(|row| std::cmp::Reverse(row.1));
    rows.into_iter()
        .map(|(label, pico)| Part {
            label,
            amount: money(pico as f64 / 1e12 / n),
            share: if total > 0.0 { pico as f64 / total } else { 0.0 },
        })
        .collect()
}

/// The classes of input tokens with their shares: (JSON name, words, share); they sum to 1.
pub(super) fn class_shares(answer: &Answer) -> Vec<(&'static str, &'static str, f64)> {
    let mean = |name: &str| answer.summary.metric(name).map_or(0.0, |metric| metric.mean.value);
    let total = mean("input_tokens");
    if total <= 0.0 {
        return Vec::new();
    }
    [
        ("cache_read", "read from the cache", "cache_read_tokens"),
        ("cache_write", "written to it", "cache_write_tokens"),
        ("uncached", "neither", "uncached_tokens"),
    ]
    .into_iter()
    .map(|(name, text, metric)| (name, text, mean(metric) / total))
    .collect()
}

/// Where the time goes, longest first; nothing that takes no time.
pub(super) fn time_shares(answer: &Answer) -> Vec<Part> {
    let Some(times) = &answer.summary.times else { return Vec::new() };
    let (total_s, n) = (times.total_s(), answer.summary.sessions as f64);
    let mut rows = vec![
        ("model, until the first token", times.first_token_s),
        ("model, writing", times.writing_s),
        ("model, summaries", times.compaction_s),
        ("searches for tools", times.searches_s),
        (
            if answer.scenario.model.has_agents() {
                "tools and other agents"
            } else if answer.scenario.model.phase.tools.iter().any(|tool| tool.station.is_some()) {
                "tools, and waits for their turn"
            } else {
                "tools"
            },
            times.tools_s,
        ),
        ("retries: failed attempts and waits", times.retries_s),
        ("waiting for the model's turn", times.queue_s),
        ("people who are asked for approval", times.people_s),
    ];
    rows.retain(|(_, s)| *s > 0.0);
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows.into_iter()
        .map(|(label, s)| Part { label: label.to_owned(), amount: seconds(s / n), share: s / total_s })
        .collect()
}

/// The tools that lay on the longest path of a phase, with how often, where there are several.
pub(super) fn longest_path(answer: &Answer) -> Vec<(&str, Estimate)> {
    let tools = &answer.scenario.tools;
    if tools.len() < 2 {
        return Vec::new();
    }
    let mut rows: Vec<(&str, Estimate)> = tools
        .iter()
        .zip(&answer.summary.tools_on_path)
        .filter_map(|(name, share)| Some((name.as_str(), (*share)?)))
        .filter(|(_, share)| share.value > 0.0)
        .collect();
    rows.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    rows
}

/// The limits of the budget, each with the sessions that it ended: (JSON name, words for limit, sessions, mean dollars).
pub(super) struct LimitRow {
    pub name: &'static str,
    pub limit: String,
    pub limit_value: f64,
    pub sessions: u64,
    pub mean_usd: Option<f64>,
    /// Worst case of the call that was refused, on average, dollars; where dollars were the limit.
    pub refused_usd: Option<f64>,
    pub without_call: u64,
}

pub(super) fn budget_rows(answer: &Answer) -> Vec<LimitRow> {
    let budget = &answer.scenario.model.budget;
    let priced = answer.scenario.model.tariff.is_some();
    answer
        .summary
        .stopped
        .iter()
        .map(|(limit, stopped)| {
            let (name, text, limit_value) = match limit {
                Limit::Dollars => {
                    let usd = budget.dollars.unwrap_or_default().usd();
                    ("dollars", money(usd), usd)
                }
                Limit::Turns => {
                    let turns = budget.turns.unwrap_or(0);
                    ("turns", format!("{} model calls", whole(turns)), turns as f64)
                }
                Limit::Tokens => {
                    let tokens = budget.tokens.unwrap_or(0);
                    ("tokens", format!("{} tokens, sent and written", whole(tokens)), tokens as f64)
                }
                Limit::Time => {
                    let time_s = budget.time_s.unwrap_or(0.0);
                    ("time", format!("{}, approvals included, think time not", seconds(time_s)), time_s)
                }
            };
            let mean_usd = (stopped.sessions > 0 && priced).then(|| stopped.cost.usd() / stopped.sessions as f64);
            let before = budget.before && *limit == Limit::Dollars && stopped.sessions > 0;
            let refused_usd =
                before.then(|| stopped.refused_worst.usd() / stopped.sessions as f64).filter(|usd| *usd > 0.0);
            let without_call = stopped.without_call;
            LimitRow { name, limit: text, limit_value, sessions: stopped.sessions, mean_usd, refused_usd, without_call }
        })
        .collect()
}

/// "12.5 % of the sessions stopped, which had cost $4.87 on average".
pub(super) fn budget_text(answer: &Answer, row: &LimitRow) -> String {
    if row.sessions == 0 {
        return format!("{}: stopped no session", row.limit);
    }
    let share = percent(row.sessions as f64 / answer.summary.sessions as f64);
    let cost = row.mean_usd.map_or(String::new(), |usd| format!(", which had cost {} on average", money(usd)));
    let reserve = row.refused_usd.map_or(String::new(), |usd| {
        format!("; the next call could have cost {} more (all of its prompt written, max_output)", money(usd))
    });
    let never = if row.without_call > 0 {
        let share = percent(row.without_call as f64 / answer.summary.sessions as f64);
        format!("; {share} made no call at all")
    } else {
        String::new()
    };
    format!("{}: stopped {share} of the sessions{cost}{reserve}{never}", row.limit)
}

/// A month: the bill's estimate, and how far one month lies from another by chance.
pub(super) struct Month {
    pub sessions: u64,
    pub bill: Estimate,
    pub spread_usd: f64,
}

pub(super) fn month(answer: &Answer) -> Option<Month> {
    let sessions = answer.scenario.sessions_per_month?;
    let cost = answer.summary.metric("cost_usd")?;
    let n = sessions as f64;
    let mean = cost.mean;
    Some(Month {
        sessions,
        bill: Estimate { value: mean.value * n, se: mean.se * n, ci95: mean.ci95.map(|x| x * n) },
        // sessions of a fleet aren't independent
        spread_usd: if answer.fleet.is_some() { 0.0 } else { 1.959_963_984_540_054 * cost.sd * n.sqrt() },
    })
}

pub(super) fn month_text(month: &Month) -> String {
    let bill = &month.bill;
    let sure = if bill.se.is_nan() {
        " (one session only, no interval)".to_owned()
    } else if bill.se > 0.0 {
        format!(" (95 % interval {})", interval(Unit::Usd, bill.ci95))
    } else {
        " exactly".to_owned()
    };
    let spread = if month.spread_usd > 0.0 {
        let (low, high) = ((bill.value - month.spread_usd).max(0.0), bill.value + month.spread_usd);
        format!("; chance alone moves 19 months of 20 between {} and {}", money(low), money(high))
    } else {
        String::new()
    };
    format!("{}{sure} for {} sessions{spread}", money(bill.value), whole(month.sessions))
}

/// "what the same input would have cost without a cache", where there is one.
pub(super) fn cache_text(answer: &Answer) -> Option<String> {
    let summary = &answer.summary;
    let (with, without) = (summary.metric("cost_input_usd")?, summary.metric("cost_input_without_cache_usd")?);
    let saved = 1.0 - with.mean.value / without.mean.value;
    let verdict = if saved >= 0.0 {
        format!("the cache saves {}", percent(saved))
    } else {
        format!("the cache makes it {} dearer", percent(-saved))
    };
    Some(format!(
        "{} with the cache, {} without: {verdict}",
        with_interval(Unit::Usd, &with.mean),
        with_interval(Unit::Usd, &without.mean)
    ))
}

/// The tools whose calls can run twice, with the share that did.
pub(super) fn duplicates_by_tool(answer: &Answer) -> impl Iterator<Item = (&str, &Estimate)> {
    let rates = &answer.summary.tool_duplicates;
    answer.scenario.tools.iter().zip(rates).filter_map(|(name, rate)| Some((name.as_str(), rate.as_ref()?)))
}

/// What was played.
pub(super) fn played(answer: &Answer) -> String {
    match &answer.fleet {
        Some(fleet) => super::fleet::about(&fleet.summary, answer.summary.sessions),
        None => sessions_text(&answer.scenario, answer.summary.sessions),
    }
}

/// `1 session`, `2,000 sessions`.
pub(super) fn sessions_text(scenario: &Scenario, n: u64) -> String {
    let what = if scenario.model.herd.is_some() { "repeat" } else { "session" };
    format!("{} {what}{}", whole(n), if n == 1 { "" } else { "s" })
}

pub(super) fn with_interval(unit: Unit, estimate: &Estimate) -> String {
    if estimate.se > 0.0 {
        format!("{} ({})", value(unit, estimate.value), interval(unit, estimate.ci95))
    } else {
        value(unit, estimate.value)
    }
}

pub(super) fn share_with_interval(estimate: &Estimate) -> String {
    if estimate.se <= 0.0 && estimate.value <= 0.0 && estimate.ci95[1] > 0.0 {
        return format!("0 % (at most {})", percent(estimate.ci95[1]));
    }
    if estimate.se <= 0.0 && estimate.value >= 1.0 && estimate.ci95[0] < 1.0 {
        return format!("100 % (at least {})", percent(estimate.ci95[0]));
    }
    if estimate.ci95[1] > estimate.ci95[0] {
        format!("{} ({} … {})", percent(estimate.value), percent(estimate.ci95[0]), percent(estimate.ci95[1]))
    } else {
        percent(estimate.value)
    }
}

/// The thresholds that an answer doesn't keep, in words; with `strict` also those of which its intervals leave a doubt.
pub fn not_kept(answer: &Answer, strict: bool) -> Vec<String> {
    let fails = |threshold: &Threshold| {
        let verdict = threshold.judge(&answer.summary, answer.fleet_summary());
        if verdict.undecided { strict } else { !verdict.pass }
    };
    let thresholds = answer.scenario.run.thresholds.iter().zip(threshold_texts(answer));
    thresholds.filter(|(threshold, _)| fails(threshold)).map(|(_, (.., text))| text).collect()
}

/// One threshold: (whether it is kept, whether that is sure, the sentence).
pub(super) fn threshold_texts(answer: &Answer) -> Vec<(bool, bool, String)> {
    let judged = |threshold: &Threshold| {
        let verdict = threshold.judge(&answer.summary, answer.fleet_summary());
        let shown = |x: f64| threshold.unit().map_or_else(|| number(x), |unit| value(unit, x));
        let word = if verdict.pass { "kept" } else { "NOT kept" };
        let what = match verdict.got {
            None => "there were no values".to_owned(),
            Some(got) => {
                let [low, high] = verdict.ci95;
                let interval =
                    if high > low { format!(" ({} … {})", shown(low), shown(high)) } else { String::new() };
                let doubt = if verdict.undecided { ", but its interval reaches over the bound: undecided" } else { "" };
                format!("{word}, at {}{interval}{doubt}", shown(got))
            }
        };
        let text = format!("{} {}: {what}", threshold.metric, threshold.want);
        (verdict.pass, !verdict.undecided && verdict.got.is_some(), text)
    };
    answer.scenario.run.thresholds.iter().map(judged).collect()
}

/// One sentence on the closed forms; `why` says where the reasons are if there are none.
pub(super) fn checks_sentence(answer: &Answer, why: &str) -> String {
    let checks = &answer.checks;
    let (bounds, forms): (Vec<&Check>, Vec<&Check>) = checks.checks.iter().partition(|check| check.at_most);
    let (books, forms): (Vec<&Check>, Vec<&Check>) = forms.into_iter().partition(|check| check.is_of_books());
    let failed = checks.checks.iter().filter(|c| !c.pass).count();
    if failed > 0 {
        let n = checks.checks.len();
        return format!("{failed} of {n} closed forms DISAGREE with the simulation; `agent-sim check` shows which");
    }
    let plural = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let held = match bounds.len() {
        0 => String::new(),
        n => format!("; {} held", plural(n, "bound", "bounds")),
    };
    let books = if books.is_empty() { "" } else { "the books balance (nothing is lost, Little's law); " };
    if forms.is_empty() {
        return format!("{books}no closed form applies here, {why}{held}");
    }
    let z = match checks.largest_z() {
        Some(z) => format!("the largest difference is {z:.1} standard errors"),
        None => "to the last digit".to_owned(),
    };
    format!("{books}{}: {z}{held}", plural(forms.len(), "closed form agrees", "closed forms agree"))
}

/// Which row of which sheet the prices are; nothing where no model is named.
pub(super) fn price_sentence(scenario: &Scenario) -> Option<String> {
    let price = scenario.price.as_ref()?;
    let changed = if price.overridden { ", changed by [price]" } else { "" };
    let sheet = super::prices::sheet_line(scenario.price_sheet());
    Some(format!("Prices of {} as of {}{changed}. {sheet}", price.model, price.as_of))
}
