//! Servers and tools: names, order, faults, retries.

use super::mistake::Mistake;
use super::raw::{Raw, RawRetry, RawTool};
use super::reader::{At, Sink, complain, nearest};
use super::resolve::{finite_mean, whole_law};
use super::tree::Span;
use crate::dist::Dist;
use crate::model::{Jitter, MOST_TOOLS, Phase, Retry, Tool};
use crate::price::PicoUsd;

/// Names and definition tokens of the servers.
pub(super) fn servers(raw: &Raw, sink: &Sink) -> Vec<(String, u64)> {
    let mut seen: Vec<(String, u64)> = Vec::new();
    for At { value: server, span } in &raw.servers {
        let Some(name) = &server.name else {
            complain(sink, Mistake::at(*span, "a server needs a `name`").label("nameless"));
            continue;
        };
        if seen.iter().any(|(known, _)| *known == name.value) {
            complain(
                sink,
                Mistake::at(name.span, format!("there are two servers named \"{}\"", name.value))
                    .label("the second one"),
            );
        }
        let tokens = match (&server.tools, &server.tokens_per_tool, &server.definition_tokens) {
            (Some(tools), Some(each), None) => tools.value.saturating_mul(each.value),
            (None, None, Some(all)) => all.value,
            _ => {
                complain(
                    sink,
                    Mistake::at(name.span, "a server needs `tools` and `tokens_per_tool`, or `definition_tokens`")
                        .label("how large are its definitions?")
                        .help("for example tools = 14 and tokens_per_tool = 89, or definition_tokens = 1_246"),
                );
                0
            }
        };
        if tokens > 1_000_000_000 {
            complain(
                sink,
                Mistake::at(name.span, format!("its definitions come to {tokens} tokens; 1000000000 is the most"))
                    .label("too large"),
            );
        }
        seen.push((name.value.clone(), tokens.min(1_000_000_000)));
    }
    seen
}

/// Names of the tools, and the phase that they make up.
pub(super) fn tools(raw: &Raw, servers: &[(String, u64)], sink: &Sink) -> (Vec<String>, Phase) {
    let mut names: Vec<String> = Vec::new();
    if raw.tools.len() > MOST_TOOLS {
        let span = raw.tools[MOST_TOOLS].span;
        complain(sink, Mistake::at(span, format!("{} tools; {MOST_TOOLS} is the most", raw.tools.len())));
    }
    for At { value: tool, span } in &raw.tools {
        match &tool.name {
            None => {
                complain(sink, Mistake::at(*span, "a tool needs a `name`").label("nameless"));
                names.push(String::new());
            }
            Some(name) => {
                if names.contains(&name.value) {
                    let mistake = Mistake::at(name.span, format!("there are two tools named \"{}\"", name.value));
                    complain(sink, mistake.label("the second one"));
                }
                names.push(name.value.clone());
            }
        }
        if let Some(server) = &tool.server
            && !servers.iter().any(|(name, _)| *name == server.value)
        {
            let known: Vec<&str> = servers.iter().map(|s| s.0.as_str()).collect();
            unknown_name(&server.value, server.span, "server", &known, sink);
        }
    }
    let one_at_a_time = raw.session.one_at_a_time.is_some_and(|at| at.value);
    let mut after: Vec<Vec<usize>> = Vec::new();
    let mut last_in_chain = None;
    for (index, At { value: tool, .. }) in raw.tools.iter().enumerate() {
        let mut before = Vec::new();
        for name in &tool.after {
            match names.iter().position(|known| *known == name.value) {
                Some(other) if other == index => complain(
                    sink,
                    Mistake::at(name.span, format!("`{}` can't come after itself", name.value)).label("itself"),
                ),
                Some(other) => before.push(other),
                None => {
                    let known: Vec<&str> = names.iter().map(String::as_str).collect();
                    unknown_name(&name.value, name.span, "tool", &known, sink);
                }
            }
        }
        if one_at_a_time && tool.after.is_empty() {
            before.extend(last_in_chain);
            last_in_chain = Some(index);
        }
        after.push(before);
    }
    let order = order(raw, &names, &after, sink);
    let tools = raw.tools.iter().map(|at| tool(&at.value, at.span, &raw.retry, sink)).collect();
    (names, Phase { tools, order, after, one_at_a_time })
}

fn unknown_name(name: &str, span: Span, what: &str, known: &[&str], sink: &Sink) {
    let label = nearest(name, known).map_or_else(|| "unknown".to_owned(), |near| format!("did you mean \"{near}\"?"));
    let help = if known.is_empty() {
        format!("the file has no {what}s")
    } else {
        format!("the {what}s are {}", known.join(", "))
    };
    complain(sink, Mistake::at(span, format!("there is no {what} \"{name}\"")).label(label).help(help));
}

/// Kahn's order; what is left over lies on a cycle.
fn order(raw: &Raw, names: &[String], after: &[Vec<usize>], sink: &Sink) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    loop {
        let next = (0..after.len())
            .find(|index| !order.contains(index) && after[*index].iter().all(|before| order.contains(before)));
        match next {
            Some(index) => order.push(index),
            None => break,
        }
    }
    if order.len() < after.len() {
        // walk backwards from any tool left over until one comes again
        let mut path: Vec<usize> = (0..after.len()).filter(|index| !order.contains(index)).take(1).collect();
        while let Some(last) = path.last().copied() {
            let Some(before) = after[last].iter().copied().find(|b| !order.contains(b)) else { break };
            if let Some(from) = path.iter().position(|seen| *seen == before) {
                path.drain(..from);
                break;
            }
            path.push(before);
        }
        let mut shown: Vec<&str> = path.iter().map(|index| names[*index].as_str()).collect();
        shown.extend(shown.first().copied());
        let span = path.iter().find_map(|index| raw.tools[*index].value.after.first()).map(|name| name.span);
        let text = format!("these tools wait for each other: {}", shown.join(" after "));
        complain(sink, Mistake::maybe_at(span, text).label("a cycle").help("take one `after` away"));
    }
    order
}

fn tool(raw: &RawTool, span: Span, defaults: &RawRetry, sink: &Sink) -> Tool {
    let value = |at: &Option<At<f64>>| at.map_or(0.0, |at| at.value);
    let (lost_request, rejected, lost_reply) = (value(&raw.lost_request), value(&raw.rejected), value(&raw.lost_reply));
    if lost_request + rejected + lost_reply > 1.0 {
        let last = [&raw.lost_reply, &raw.rejected, &raw.lost_request].into_iter().flatten().next();
        complain(
            sink,
            Mistake::at(
                last.map_or(span, |at| at.span),
                format!(
                    "lost_request + rejected + lost_reply come to {}: more than all attempts",
                    ((lost_request + rejected + lost_reply) * 1e9).round() / 1e9
                ),
            )
            .label("chances of one attempt"),
        );
    }
    for (key, at) in [("lost_request", &raw.lost_request), ("lost_reply", &raw.lost_reply)] {
        if let Some(at) = at
            && at.value > 0.0
            && !raw.has_timeout
        {
            complain(
                sink,
                Mistake::at(at.span, format!("`{key}` needs a `timeout`: how else would the client notice?"))
                    .label("never noticed")
                    .help("for example timeout = \"10s\""),
            );
        }
    }
    if let Some(at) = &raw.reject_latency
        && raw.rejected.is_none()
    {
        complain(
            sink,
            Mistake::at(at.span, "`reject_latency` without `rejected`")
                .label("nothing is rejected")
                .help("rejected = 0.01"),
        );
    }
    if let Some(at) = &raw.error_result
        && at.value > 0
        && lost_request + rejected + lost_reply + value(&raw.error) <= 0.0
        && !raw.has_timeout
        && raw.retry.deadline.is_none()
        && defaults.deadline.is_none()
    {
        complain(
            sink,
            Mistake::at(at.span, "`error_result` of a tool that can't fail")
                .label("never used")
                .help("say how it fails: error, rejected, lost_request, lost_reply or a timeout"),
        );
    }
    let price = match raw.price_usd {
        None => PicoUsd::default(),
        Some(at) => PicoUsd::from_usd(at.value).unwrap_or_else(|error| {
            complain(sink, Mistake::at(at.span, error.to_string()));
            PicoUsd::default()
        }),
    };
    let latency_s = match &raw.latency {
        None => Dist::constant(0.0),
        // what a timeout cuts off needs no mean
        Some(at) if raw.timeout.is_some() => at.value.clone(),
        Some(at) => finite_mean(at.value.clone(), "latency", at.span, sink),
    };
    Tool {
        calls: whole_law(raw.calls.as_ref(), "calls", 1.0, 0, sink),
        result: whole_law(raw.result.as_ref(), "result", 0.0, 0, sink),
        error_result_tokens: raw.error_result.map_or(0, |at| at.value),
        latency_s,
        timeout_s: raw.timeout.map_or(f64::INFINITY, |at| at.value),
        lost_request,
        rejected,
        lost_reply,
        reject_latency_s: match &raw.reject_latency {
            None => Dist::constant(0.0),
            Some(at) => finite_mean(at.value.clone(), "reject_latency", at.span, sink),
        },
        error: value(&raw.error),
        idempotent: raw.idempotent.is_some_and(|at| at.value),
        price,
        retry: retry(&raw.retry, defaults),
    }
}

fn retry(own: &RawRetry, defaults: &RawRetry) -> Retry {
    let pick = |own: &Option<At<f64>>, default: &Option<At<f64>>, otherwise: f64| {
        own.or(*default).map_or(otherwise, |at| at.value)
    };
    Retry {
        attempts: own.attempts.or(defaults.attempts).map_or(1, |at| at.value as u32),
        base_s: pick(&own.base, &defaults.base, 0.5),
        cap_s: pick(&own.cap, &defaults.cap, 8.0),
        jitter: own.jitter.or(defaults.jitter).map_or(Jitter::Full, |at| at.value),
        deadline_s: pick(&own.deadline, &defaults.deadline, f64::INFINITY),
    }
}
