//! The sections as they are written: every value with its place, every key known or refused. What the values mean
//! together is [`super::resolve`]'s business.

use std::path::Path;

use super::changes::text as value_text;
use super::distribution::{Measure, distribution};
use super::fleet::{RawFleet, read_fleet};
use super::herd::{RawHerd, check_alone, read_herd};
use super::mistake::Mistake;
use super::raw_agents::{RawOutcome, RawRouting, RawSearch, read_outcome, read_routing, read_search};
use super::raw_tools::{RawBreaker, RawRetry, RawTool, read_breaker, read_retry_node, read_tool};
use super::reader::{
    At, Reader, Sink, as_table, boolean, chance, complain, inline_table, number, positive, positive_duration, tables,
    text, whole, word,
};
use super::tree::{Data, Key, Node, Span, Table};
use crate::dist::Dist;

pub(super) const MOST: u64 = 1_000_000_000_000;

/// A scenario file, section by section.
#[derive(Debug)]
pub(super) struct Raw {
    pub title: Option<At<String>>,
    pub run: RawRun,
    pub model: RawModel,
    pub price: RawPrice,
    pub prompt: RawPrompt,
    pub servers: Vec<At<RawServer>>,
    pub session: RawSession,
    pub tools: Vec<At<RawTool>>,
    pub retry: RawRetry,
    pub breaker: Option<RawBreaker>,
    pub cache: RawCache,
    pub context: RawContext,
    pub budget: RawBudget,
    pub search: Option<RawSearch>,
    pub routing: Option<RawRouting>,
    pub outcome: Option<RawOutcome>,
    pub herd: Option<RawHerd>,
    pub fleet: Option<RawFleet>,
    /// (key, values as TOML)
    pub sweep: Vec<(String, Vec<String>)>,
    /// (metric, bound)
    pub thresholds: Vec<At<(String, String)>>,
    /// Names of the agents.
    pub agents: Vec<At<String>>,
    pub sessions_per_month: Option<At<u64>>,
    pub strategies: Vec<At<String>>,
}

#[derive(Debug, Default)]
pub(super) struct RawRun {
    pub sessions: Option<At<u64>>,
    pub seed: Option<At<u64>>,
    pub max_sessions: Option<At<u64>>,
    pub precision: Vec<At<(String, f64)>>,
}

#[derive(Debug, Default)]
pub(super) struct RawModel {
    pub name: Option<At<String>>,
    pub first_token: Option<At<Dist>>,
    pub prefill_rate: Option<At<f64>>,
    pub cached_prefill_rate: Option<At<f64>>,
    pub output_rate: Option<At<Dist>>,
    pub max_output: Option<At<u64>>,
    pub timeout: Option<At<f64>>,
    /// Whether `timeout` was written at all.
    pub has_timeout: bool,
    pub lost_request: Option<At<f64>>,
    pub lost_reply: Option<At<f64>>,
    pub rejected: Option<At<f64>>,
    pub retry: RawRetry,
}

/// Overrides of the sheet, $ per million tokens or multiples of input.
#[derive(Debug, Default)]
pub(super) struct RawPrice {
    pub span: Option<Span>,
    /// Whether `input` and `output` were written at all.
    pub has_input: bool,
    pub has_output: bool,
    pub as_of: Option<At<jiff::civil::Date>>,
    pub input: Option<At<f64>>,
    pub output: Option<At<f64>>,
    pub read: Option<At<f64>>,
    pub read_multiplier: Option<At<f64>>,
    pub write: Option<At<f64>>,
    /// (lifetime in seconds, price or multiplier)
    pub writes: Vec<At<(u64, f64)>>,
    pub write_multipliers: Vec<At<(u64, f64)>>,
}

#[derive(Debug, Default)]
pub(super) struct RawPrompt {
    pub system: Option<At<Dist>>,
    pub task: Option<At<Dist>>,
}

#[derive(Debug)]
pub(super) struct RawServer {
    pub name: Option<At<String>>,
    pub tools: Option<At<u64>>,
    pub tokens_per_tool: Option<At<u64>>,
    pub definition_tokens: Option<At<u64>>,
    pub loading: Option<At<RawLoading>>,
    pub read_tokens: Option<At<u64>>,
    pub has_read_tokens: bool,
    pub kept: Option<At<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RawLoading {
    Upfront,
    Search,
    Code,
}

#[derive(Debug, Default)]
pub(super) struct RawSession {
    pub span: Option<Span>,
    pub turns: Option<At<Dist>>,
    /// Whether `turns` was written at all.
    pub has_turns: bool,
    pub max_turns: Option<At<u64>>,
    pub output: Option<At<Dist>>,
    pub one_at_a_time: Option<At<bool>>,
    /// Whether `messages` was written at all.
    pub has_messages: bool,
    pub messages: Option<At<Dist>>,
    pub message: Option<At<Dist>>,
    pub think: Option<At<Dist>>,
}

#[derive(Debug, Default)]
pub(super) struct RawCache {
    /// Seconds; `None` inside for "off".
    pub lifetime: Option<At<Option<u64>>>,
    pub prefix_lifetime: Option<At<Option<u64>>>,
    pub warm_prefix: Option<At<f64>>,
    pub keep_alive: Option<At<f64>>,
    pub breaks: Option<At<RawBreaks>>,
    pub caches_output: Option<At<bool>>,
}

#[derive(Debug, Default)]
pub(super) struct RawBreaks {
    pub tools: Option<At<f64>>,
    pub system: Option<At<f64>>,
    pub history: Option<At<f64>>,
}

#[derive(Debug, Default)]
pub(super) struct RawContext {
    pub window: Option<At<u64>>,
    /// Whether `compact_at` was written at all, if only as "off".
    pub has_compact_at: bool,
    pub compact_at: Option<At<u64>>,
    pub summary: Option<At<u64>>,
    pub max_result: Option<At<u64>>,
}

#[derive(Debug, Default)]
pub(super) struct RawBudget {
    pub dollars: Option<At<f64>>,
    pub turns: Option<At<u64>>,
    pub tokens: Option<At<u64>>,
    pub time: Option<At<f64>>,
    /// Whether any limit was written, if only as "off".
    pub has_limit: bool,
    /// Whether it is checked before each call.
    pub before: Option<At<bool>>,
}

impl RawServer {
    /// All of its definitions, tokens, where they are given in one way.
    pub fn tokens(&self) -> Option<u64> {
        match (&self.tools, &self.tokens_per_tool, &self.definition_tokens) {
            (Some(tools), Some(each), None) => Some(tools.value.saturating_mul(each.value)),
            (None, None, Some(all)) => Some(all.value),
            _ => None,
        }
    }
}

impl RawBudget {
    /// Whether nothing but `turns` is limited.
    pub fn is_only_turns(&self) -> bool {
        self.dollars.is_none() && self.tokens.is_none() && self.time.is_none()
    }
}

/// Reads all sections. `folder` is where the scenario's own files are looked for.
pub(super) fn read(root: &Table, folder: &Path, sink: &Sink) -> Raw {
    let mut top = Reader::new(root, "the scenario", sink);
    check_alone(root, sink);
    let strategies = names_in(&mut top, "strategies", sink);
    let agents = names_in(&mut top, "agents", sink);
    let raw = Raw {
        title: top.get("title", text),
        run: top.table("run", "[run]", |r| read_run(r, sink)).unwrap_or_default(),
        model: top.table("model", "[model]", |r| read_model(r, folder, sink)).unwrap_or_default(),
        price: {
            let span = root.get("price").map(|node| node.span);
            RawPrice { span, ..top.table("price", "[price]", |r| read_price(r, sink)).unwrap_or_default() }
        },
        prompt: top.table("prompt", "[prompt]", |r| read_prompt(r, folder)).unwrap_or_default(),
        servers: list(&mut top, "servers", sink, read_server),
        session: {
            let span = root.get("session").map(|node| node.span);
            RawSession { span, ..top.table("session", "[session]", |r| read_session(r, folder)).unwrap_or_default() }
        },
        tools: list(&mut top, "tools", sink, |reader| read_tool(reader, folder, sink)),
        retry: read_retry_node(&mut top, "[retry]", sink),
        breaker: read_breaker(&mut top),
        cache: top.table("cache", "[cache]", |r| read_cache(r, sink)).unwrap_or_default(),
        context: top.table_unless_off("context", "[context]", read_context).unwrap_or_default(),
        budget: top.table_unless_off("budget", "[budget]", read_budget).unwrap_or_default(),
        sessions_per_month: top
            .table("volume", "[volume]", |mut reader| {
                let value = reader.get("sessions_per_month", |n, k, s| whole(n, k, 1, MOST, s));
                reader.finish();
                value
            })
            .flatten(),
        search: read_search(&mut top, folder),
        routing: read_routing(&mut top),
        outcome: read_outcome(&mut top),
        herd: read_herd(&mut top, folder),
        fleet: read_fleet(&mut top, folder),
        sweep: {
            let mut axes = Vec::new();
            if let Some(table) = top.node("sweep").and_then(|node| as_table(node, "sweep", sink)) {
                read_sweep("", table, &mut axes, sink);
            }
            axes
        },
        thresholds: top.table("thresholds", "[thresholds]", |r| read_thresholds(r, sink)).unwrap_or_default(),
        agents,
        strategies,
    };
    top.finish();
    raw
}

/// The names of the tables in a table, such as `[strategies.NAME]`.
fn names_in(top: &mut Reader<'_>, key: &str, sink: &Sink) -> Vec<At<String>> {
    let Some(table) = top.node(key).and_then(|node| as_table(node, key, sink)) else { return Vec::new() };
    let is_table = |(name, node): &&(Key, Node)| as_table(node, &format!("{key}.{}", name.name), sink).is_some();
    table.entries.iter().filter(is_table).map(|(key, _)| At { value: key.name.clone(), span: key.span }).collect()
}

fn list<'t, T>(top: &mut Reader<'t>, key: &str, sink: &'t Sink, mut read: impl FnMut(Reader<'t>) -> T) -> Vec<At<T>> {
    let Some(node) = top.node(key) else { return Vec::new() };
    let items = tables(node, key, sink).unwrap_or_default();
    items
        .into_iter()
        .map(|item| At { value: read(Reader::new(item.value, format!("[[{key}]]"), sink)), span: item.span })
        .collect()
}

fn read_run(mut reader: Reader<'_>, sink: &Sink) -> RawRun {
    let run = RawRun {
        sessions: reader.get("sessions", |n, k, s| whole(n, k, 1, 10_000_000_000, s)),
        seed: reader.get("seed", |n, k, s| whole(n, k, 0, i64::MAX as u64, s)),
        max_sessions: reader.get("max_sessions", |n, k, s| whole(n, k, 1, 10_000_000_000, s)),
        precision: reader
            .table("precision", "`precision`", |mut inner| {
                let mut targets = Vec::new();
                inner.matching(|key, span, node| {
                    // `precision."cost_usd.mean" = 0.01` and `precision.cost_usd.mean = 0.01` are the same wish
                    let inner_table = match &node.data {
                        Data::Table(table) => table.entries.iter().collect(),
                        _ => Vec::new(),
                    };
                    let mut add = |name: String, span: Span, node: &Node| {
                        if let Some(width) = positive(node, &name, sink) {
                            targets.push(At { value: (name, width), span });
                        }
                    };
                    if inner_table.is_empty() {
                        add(key.to_owned(), span, node);
                    } else {
                        for (statistic, node) in inner_table {
                            add(format!("{key}.{}", statistic.name), statistic.span, node);
                        }
                    }
                    Some(())
                });
                targets
            })
            .unwrap_or_default(),
    };
    reader.finish();
    run
}

/// `"session.turns" = [10, 50, 200]`, or with the sections as tables.
fn read_sweep(path: &str, table: &Table, axes: &mut Vec<(String, Vec<String>)>, sink: &Sink) {
    for (key, node) in &table.entries {
        let path = if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) };
        match &node.data {
            Data::Table(inner) => read_sweep(&path, inner, axes, sink),
            Data::Array(values) if !values.is_empty() => axes.push((path, values.iter().map(value_text).collect())),
            _ => complain(
                sink,
                Mistake::at(node.span, format!("`{path}` must be a list of values"))
                    .label(format!("this is {}", node.kind()))
                    .help(format!("for example \"{path}\" = [10, 50, 200]")),
            ),
        }
    }
}

/// `"cost_usd.p95" = "< 1.50"`, or with the metric as a table: `cost_usd.p95 = "< 1.50"`.
fn read_thresholds(mut reader: Reader<'_>, sink: &Sink) -> Vec<At<(String, String)>> {
    let mut thresholds = Vec::new();
    reader.matching(|key, span, node| {
        let mut add = |name: String, span: Span, node: &Node| {
            if let Some(want) = text(node, &name, sink) {
                thresholds.push(At { value: (name, want), span });
            }
        };
        match &node.data {
            Data::Table(table) => {
                for (statistic, node) in &table.entries {
                    add(format!("{key}.{}", statistic.name), statistic.span, node);
                }
            }
            _ => add(key.to_owned(), span, node),
        }
        Some(())
    });
    thresholds
}

fn read_model(mut reader: Reader<'_>, folder: &Path, sink: &Sink) -> RawModel {
    let model = RawModel {
        name: reader.get("name", text),
        first_token: reader.get("first_token", |n, k, s| distribution(n, k, Measure::Duration, folder, s)),
        prefill_rate: reader.unless_off("prefill_rate", positive),
        cached_prefill_rate: reader.unless_off("cached_prefill_rate", positive),
        output_rate: reader.unless_off("output_rate", |n, k, s| distribution(n, k, Measure::Rate, folder, s)),
        max_output: reader.get("max_output", |n, k, s| whole(n, k, 1, MOST, s)),
        has_timeout: reader.is_on("timeout"),
        timeout: reader.unless_off("timeout", positive_duration),
        lost_request: reader.get("lost_request", chance),
        lost_reply: reader.get("lost_reply", chance),
        rejected: reader.get("rejected", chance),
        retry: read_retry_node(&mut reader, "`retry`", sink),
    };
    reader.finish();
    model
}

fn read_price(mut reader: Reader<'_>, sink: &Sink) -> RawPrice {
    let mut price = RawPrice {
        span: None,
        has_input: reader.node("input").is_some(),
        has_output: reader.node("output").is_some(),
        as_of: reader.get("as_of", date),
        input: reader.get("input", amount),
        output: reader.get("output", amount),
        read: reader.get("cache_read", amount),
        read_multiplier: reader.get("read_multiplier", amount),
        write: reader.get("cache_write", amount),
        ..RawPrice::default()
    };
    let mut per_lifetime = |prefix: &str| {
        let mut found = Vec::new();
        reader.matching(|key, span, node| {
            let lifetime = key.strip_prefix(prefix)?;
            let Some(seconds) = lifetime_seconds(lifetime) else {
                complain(
                    sink,
                    Mistake::at(span, format!("`{key}` doesn't end in a lifetime"))
                        .label("which lifetime?")
                        .help(format!("for example {prefix}5m or {prefix}1h")),
                );
                return Some(());
            };
            if found.iter().any(|at: &At<(u64, f64)>| at.value.0 == seconds) {
                complain(
                    sink,
                    Mistake::at(span, format!("`{key}` prices a lifetime that has a price already"))
                        .label("the second one")
                        .help("60m and 1h are the same lifetime"),
                );
            }
            if let Some(value) = amount(node, key, sink) {
                found.push(At { value: (seconds, value), span: node.span });
            }
            Some(())
        });
        found
    };
    price.writes = per_lifetime("cache_write_");
    price.write_multipliers = per_lifetime("write_multiplier_");
    // named, so that a misspelt key is answered with them
    for example in ["cache_write_5m", "cache_write_1h", "write_multiplier_5m", "write_multiplier_1h"] {
        reader.node(example);
    }
    reader.finish();
    price
}

fn lifetime_seconds(text: &str) -> Option<u64> {
    let seconds = text.parse::<jiff::SignedDuration>().ok()?.as_secs();
    u64::try_from(seconds).ok().filter(|s| *s > 0)
}

pub(super) fn amount(node: &Node, key: &str, sink: &Sink) -> Option<f64> {
    let value = number(node, key, sink)?;
    if value < 0.0 {
        complain(sink, Mistake::at(node.span, format!("`{key}` can't be negative")).label("below zero"));
        return None;
    }
    Some(value)
}

fn date(node: &Node, key: &str, sink: &Sink) -> Option<jiff::civil::Date> {
    let given = match &node.data {
        Data::Date(given) | Data::String(given) => given.parse().ok(),
        _ => None,
    };
    if given.is_none() {
        complain(
            sink,
            Mistake::at(node.span, format!("`{key}` must be a date"))
                .label("not a date")
                .help(format!("for example {key} = 2026-12-01")),
        );
    }
    given
}

fn read_prompt(mut reader: Reader<'_>, folder: &Path) -> RawPrompt {
    let prompt = RawPrompt {
        system: reader.get("system", |n, k, s| distribution(n, k, Measure::Tokens, folder, s)),
        task: reader.get("task", |n, k, s| distribution(n, k, Measure::Tokens, folder, s)),
    };
    reader.finish();
    prompt
}

fn read_server(mut reader: Reader<'_>) -> RawServer {
    const LOADINGS: [(&str, RawLoading); 3] =
        [("upfront", RawLoading::Upfront), ("search", RawLoading::Search), ("code", RawLoading::Code)];
    reader.later(&["tools_list"]);
    let server = RawServer {
        name: reader.get("name", text),
        tools: reader.get("tools", |n, k, s| whole(n, k, 0, 1_000_000, s)),
        tokens_per_tool: reader.get("tokens_per_tool", |n, k, s| whole(n, k, 0, 1_000_000_000, s)),
        definition_tokens: reader.get("definition_tokens", |n, k, s| whole(n, k, 0, 1_000_000_000, s)),
        loading: reader.get("loading", |n, k, s| word(n, k, &LOADINGS, s)),
        has_read_tokens: reader.node("read_tokens").is_some(),
        read_tokens: reader.get("read_tokens", |n, k, s| whole(n, k, 0, 1_000_000_000, s)),
        kept: reader.unless_off("kept", |n, k, s| whole(n, k, 0, 1_000_000_000, s)),
    };
    reader.finish();
    server
}

fn read_session(mut reader: Reader<'_>, folder: &Path) -> RawSession {
    let session = RawSession {
        span: None,
        has_turns: reader.node("turns").is_some(),
        turns: reader.get("turns", |n, k, s| distribution(n, k, Measure::Count, folder, s)),
        max_turns: reader.unless_off("max_turns", |n, k, s| whole(n, k, 1, crate::model::MOST_TURNS, s)),
        output: reader.get("output", |n, k, s| distribution(n, k, Measure::Tokens, folder, s)),
        one_at_a_time: reader.get("tool_calls", |n, k, s| word(n, k, &[("parallel", false), ("sequential", true)], s)),
        has_messages: reader.node("messages").is_some(),
        messages: reader.get("messages", |n, k, s| distribution(n, k, Measure::Count, folder, s)),
        message: reader.get("message", |n, k, s| distribution(n, k, Measure::Tokens, folder, s)),
        think: reader.get("think", |n, k, s| distribution(n, k, Measure::Duration, folder, s)),
    };
    reader.finish();
    session
}

fn read_cache(mut reader: Reader<'_>, sink: &Sink) -> RawCache {
    let cache = RawCache {
        lifetime: reader.get("lifetime", lifetime),
        prefix_lifetime: reader.get("prefix_lifetime", lifetime),
        warm_prefix: reader.get("warm_prefix", chance),
        keep_alive: reader.unless_off("keep_alive", positive_duration),
        breaks: reader.unless_off("breaks", |node, key, _| {
            let mut reader = Reader::new(inline_table(node, key, "{ history = 0.01 }", sink)?, "`breaks`", sink);
            let breaks = RawBreaks {
                tools: reader.get("tools", chance),
                system: reader.get("system", chance),
                history: reader.get("history", chance),
            };
            reader.finish();
            Some(breaks)
        }),
        caches_output: reader.get("caches_output", boolean),
    };
    reader.finish();
    cache
}

fn read_context(mut reader: Reader<'_>) -> RawContext {
    let context = RawContext {
        window: reader.get("window", |n, k, s| whole(n, k, 1, MOST, s)),
        has_compact_at: reader.node("compact_at").is_some(),
        compact_at: reader.unless_off("compact_at", |n, k, s| whole(n, k, 1, MOST, s)),
        summary: reader.get("summary", |n, k, s| whole(n, k, 0, MOST, s)),
        max_result: reader.unless_off("max_result", |n, k, s| whole(n, k, 0, MOST, s)),
    };
    reader.finish();
    context
}

fn read_budget(mut reader: Reader<'_>) -> RawBudget {
    let budget = RawBudget {
        has_limit: ["dollars", "turns", "tokens", "time"].iter().any(|key| reader.node(key).is_some()),
        dollars: reader.unless_off("dollars", positive),
        turns: reader.unless_off("turns", |n, k, s| whole(n, k, 1, crate::model::MOST_TURNS, s)),
        tokens: reader.unless_off("tokens", |n, k, s| whole(n, k, 1, MOST, s)),
        time: reader.unless_off("time", positive_duration),
        before: reader.get("check", |n, k, s| word(n, k, &[("before", true), ("after", false)], s)),
    };
    reader.finish();
    budget
}

/// "off" (the inner `None`) or whole seconds; the outer `None` for a mistake.
#[allow(clippy::option_option)]
fn lifetime(node: &Node, key: &str, sink: &Sink) -> Option<Option<u64>> {
    match &node.data {
        Data::String(given) if given == "off" => Some(None),
        Data::Boolean(false) => {
            complain(
                sink,
                Mistake::at(node.span, format!("`{key}` must be \"off\" or a duration"))
                    .label("true or false")
                    .help(format!("write {key} = \"off\"")),
            );
            None
        }
        _ => {
            let seconds = positive_duration(node, key, sink)?;
            if seconds.fract() != 0.0 {
                complain(
                    sink,
                    Mistake::at(node.span, format!("`{key}` must be whole seconds")).label("a fraction of a second"),
                );
                return None;
            }
            Some(Some(seconds as u64))
        }
    }
}
