//! Tools, retries and breakers as they are written.

use std::path::Path;

use super::distribution::{Measure, distribution};
use super::mistake::Mistake;
use super::presets::{PRESETS, Preset};
use super::raw::amount;
use super::reader::{
    At, Reader, Sink, as_table, boolean, chance, complain, duration, inline_table, nearest, positive_duration, text,
    texts, whole, word,
};
use super::tree::{Data, Node, Span};
use crate::dist::Dist;
use crate::model::Jitter;

#[derive(Debug)]
pub(super) struct RawTool {
    pub name: Option<At<String>>,
    pub capacity: Option<At<u64>>,
    /// Whether it was written at all.
    pub has_capacity: bool,
    pub queue: Option<At<u64>>,
    pub calls: Option<At<Dist>>,
    pub result: Option<At<Dist>>,
    pub latency: Option<At<Dist>>,
    pub timeout: Option<At<f64>>,
    /// Whether `timeout` was written at all.
    pub has_timeout: bool,
    pub after: Vec<At<String>>,
    pub lost_request: Option<At<f64>>,
    pub lost_reply: Option<At<f64>>,
    pub rejected: Option<At<f64>>,
    pub reject_latency: Option<At<Dist>>,
    pub idempotent: Option<At<bool>>,
    pub error: Option<At<f64>>,
    pub error_result: Option<At<u64>>,
    /// Whether any way to fail was written, if only as "off" or 0.
    pub says_how_it_fails: bool,
    pub price_usd: Option<At<f64>>,
    pub server: Option<At<String>>,
    pub agent: Option<At<String>>,
    pub hedge_after: Option<At<f64>>,
    pub approval: Option<At<RawApproval>>,
    pub retry: RawRetry,
}

#[derive(Debug)]
pub(super) struct RawApproval {
    /// Whether `share` was written at all.
    pub has_share: bool,
    pub share: Option<At<f64>>,
    pub wait: Option<At<Dist>>,
    pub denied: Option<At<f64>>,
}

#[derive(Debug, Default)]
pub(super) struct RawRetry {
    pub preset: Option<&'static Preset>,
    pub attempts: Option<At<u64>>,
    pub base: Option<At<f64>>,
    pub cap: Option<At<f64>>,
    pub jitter: Option<At<Jitter>>,
    pub deadline: Option<At<f64>>,
}

#[derive(Debug)]
pub(super) struct RawBreaker {
    pub span: Span,
    /// Whether both keys were written.
    pub is_complete: bool,
    pub failures: Option<At<u64>>,
    pub cooldown: Option<At<f64>>,
}

pub(super) fn read_tool(mut reader: Reader<'_>, folder: &Path, sink: &Sink) -> RawTool {
    let tool = RawTool {
        name: reader.get("name", text),
        has_capacity: reader.is_on("capacity"),
        capacity: reader.unless_off("capacity", |n, k, s| whole(n, k, 1, 1_000_000, s)),
        queue: reader.unless_off("queue", |n, k, s| whole(n, k, 0, 1_000_000_000, s)),
        calls: reader.get("calls", |n, k, s| distribution(n, k, Measure::Count, folder, s)),
        result: reader.get("result", |n, k, s| distribution(n, k, Measure::Tokens, folder, s)),
        latency: reader.get("latency", |n, k, s| distribution(n, k, Measure::Duration, folder, s)),
        has_timeout: reader.is_on("timeout"),
        timeout: reader.unless_off("timeout", positive_duration),
        after: reader.get("after", texts).map(|at| at.value).unwrap_or_default(),
        lost_request: reader.get("lost_request", chance),
        lost_reply: reader.get("lost_reply", chance),
        rejected: reader.get("rejected", chance),
        reject_latency: reader.get("reject_latency", |n, k, s| distribution(n, k, Measure::Duration, folder, s)),
        idempotent: reader.get("idempotent", boolean),
        error: reader.get("error", chance),
        says_how_it_fails: [
            "error",
            "rejected",
            "lost_request",
            "lost_reply",
            "timeout",
            "approval",
            "agent",
            "server",
        ]
        .iter()
        .any(|key| reader.node(key).is_some()),
        error_result: reader.get("error_result", |n, k, s| whole(n, k, 0, 1_000_000_000, s)),
        price_usd: reader.get("price", amount),
        server: reader.get("server", text),
        agent: reader.get("agent", text),
        hedge_after: reader.unless_off("hedge_after", positive_duration),
        approval: reader.unless_off("approval", |node, key, _| {
            let mut reader =
                Reader::new(inline_table(node, key, "{ share = 0.05, wait = \"2m\" }", sink)?, "`approval`", sink);
            let approval = RawApproval {
                has_share: reader.node("share").is_some(),
                share: reader.get("share", chance),
                wait: reader.get("wait", |n, k, s| distribution(n, k, Measure::Duration, folder, s)),
                denied: reader.get("denied", chance),
            };
            reader.finish();
            Some(approval)
        }),
        retry: read_retry_node(&mut reader, "`retry`", sink),
    };
    reader.finish();
    tool
}

/// `retry`: a table, or a preset's name.
pub(super) fn read_retry_node(reader: &mut Reader<'_>, name: &str, sink: &Sink) -> RawRetry {
    match reader.node("retry") {
        Some(node @ Node { data: Data::String(_), .. }) => {
            RawRetry { preset: read_preset(node, "retry", sink), ..RawRetry::default() }
        }
        Some(node @ Node { data: Data::Table(_), .. }) => {
            as_table(node, "retry", sink).map(|table| read_retry(Reader::new(table, name, sink))).unwrap_or_default()
        }
        Some(node) => {
            inline_table(node, "retry", "{ attempts = 3 } or retry = \"anthropic-sdk\"", sink);
            RawRetry::default()
        }
        None => RawRetry::default(),
    }
}

fn read_preset(node: &Node, key: &str, sink: &Sink) -> Option<&'static Preset> {
    let given = text(node, key, sink)?;
    let found = PRESETS.iter().find(|preset| preset.name == given);
    if found.is_none() {
        let all: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        let label = nearest(&given, &all).map_or_else(|| "unknown".to_owned(), |n| format!("did you mean \"{n}\"?"));
        complain(
            sink,
            Mistake::at(node.span, format!("there is no retry preset \"{given}\""))
                .label(label)
                .help(format!("the presets are {}; or write a policy out: retry = {{ attempts = 3 }}", all.join(", "))),
        );
    }
    found
}

fn read_retry(mut reader: Reader<'_>) -> RawRetry {
    const JITTERS: [(&str, Jitter); 4] = [
        ("full", Jitter::Full),
        ("none", Jitter::None),
        ("equal", Jitter::Equal),
        ("decorrelated", Jitter::Decorrelated),
    ];
    let retry = RawRetry {
        preset: reader.get("preset", read_preset).map(|at| at.value),
        attempts: reader.get("attempts", |n, k, s| whole(n, k, 1, 1_000, s)),
        base: reader.get("base", duration),
        cap: reader.get("cap", duration),
        jitter: reader.get("jitter", |n, k, s| word(n, k, &JITTERS, s)),
        deadline: reader.unless_off("deadline", positive_duration),
    };
    reader.finish();
    retry
}

pub(super) fn read_breaker(top: &mut Reader<'_>) -> Option<RawBreaker> {
    if !top.is_on("breaker") {
        return None;
    }
    let span = top.node("breaker").map(|node| node.span)?;
    top.table("breaker", "[breaker]", |mut reader| {
        let breaker = RawBreaker {
            span,
            is_complete: reader.node("failures").is_some() && reader.node("cooldown").is_some(),
            failures: reader.get("failures", |n, k, s| whole(n, k, 1, 1_000_000, s)),
            cooldown: reader.get("cooldown", positive_duration),
        };
        reader.finish();
        breaker
    })
}
