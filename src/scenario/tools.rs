//! Tools: names, order, faults, retries.

use super::mistake::Mistake;
use super::raw::Raw;
use super::raw_tools::{RawRetry, RawTool};
use super::reader::{At, Sink, complain, nearest};
use super::resolve::{finite_mean, whole_law};
use super::servers::Servers;
use super::tree::Span;
use crate::dist::Dist;
use crate::model::{Agent, Approval, Breaker, Faults, Loading, MOST_TOOLS, Phase, Retry, Station, Tool};
use crate::price::PicoUsd;

/// Names of the tools, and the phase that they make up.
pub(super) fn tools(
    raw: &Raw,
    servers: &Servers,
    agents: Vec<Option<Agent>>,
    is_agent: bool,
    sink: &Sink,
) -> (Vec<String>, Phase) {
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
            && servers.loading(&server.value).is_none()
        {
            let known: Vec<&str> = servers.all.iter().map(|server| server.name.as_str()).collect();
            let what = if is_agent { "server of this agent" } else { "server" };
            unknown_name(&server.value, server.span, what, &known, sink);
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
    let tools: Vec<Tool> = raw
        .tools
        .iter()
        .zip(agents)
        .map(|(at, agent)| {
            let server = at.value.server.as_ref();
            let loading = server.and_then(|server| servers.loading(&server.value)).unwrap_or(Loading::Upfront);
            Tool { loading, agent, ..tool(&at.value, at.span, raw, sink) }
        })
        .collect();
    let breaker = breaker(raw, &tools, is_agent, sink);
    (names, Phase { tools, order, after, one_at_a_time, breaker, code: servers.code.clone() })
}

/// An agent can take over a breaker that none of its own tools needs.
fn breaker(raw: &Raw, tools: &[Tool], is_agent: bool, sink: &Sink) -> Option<Breaker> {
    let breaker = raw.breaker.as_ref()?;
    let (Some(failures), Some(cooldown)) = (&breaker.failures, &breaker.cooldown) else {
        if breaker.is_complete {
            return None;
        }
        complain(
            sink,
            Mistake::at(breaker.span, "[breaker] needs `failures` and `cooldown`")
                .label("when does it open, and for how long?")
                .help("for example failures = 5 and cooldown = \"30s\""),
        );
        return None;
    };
    if raw.fleet.is_none() && !tools.iter().any(|tool| tool.faults.any()) {
        if is_agent {
            return None;
        }
        complain(
            sink,
            Mistake::at(breaker.span, "[breaker] over tools of which no attempt can fail")
                .label("never opens")
                .help("say how a tool fails: rejected, lost_request, lost_reply or a timeout"),
        );
    }
    Some(Breaker { failures: failures.value, cooldown_s: cooldown.value })
}

pub(super) fn unknown_name(name: &str, span: Span, what: &str, known: &[&str], sink: &Sink) {
    let label = nearest(name, known).map_or_else(|| "unknown".to_owned(), |near| format!("did you mean \"{near}\"?"));
    let help = if known.is_empty() {
        match what {
            "server of this agent" => "an agent has servers of its own, under [[agents.NAME.servers]]".to_owned(),
            what => format!("the file has no {what}s"),
        }
    } else {
        format!("the {}s are {}", what.split(' ').next().unwrap_or(what), known.join(", "))
    };
    let text = match what {
        "server of this agent" => format!("this agent has no server \"{name}\""),
        what => format!("there is no {what} \"{name}\""),
    };
    complain(sink, Mistake::at(span, text).label(label).help(help));
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

/// The chances of an attempt: lost on the way, rejected, reply lost. `has_timeout` is whether one was written at all.
pub(super) fn faults(
    [lost_request, rejected, lost_reply]: [&Option<At<f64>>; 3],
    timeout: Option<At<f64>>,
    has_timeout: bool,
    span: Option<Span>,
    sink: &Sink,
) -> Faults {
    let value = |at: &Option<At<f64>>| at.map_or(0.0, |at| at.value);
    for (key, at) in [("lost_request", lost_request), ("lost_reply", lost_reply)] {
        if let Some(at) = at
            && at.value > 0.0
            && !has_timeout
        {
            complain(
                sink,
                Mistake::at(at.span, format!("`{key}` needs a `timeout`: how else would the client notice?"))
                    .label("never noticed")
                    .help("for example timeout = \"10s\""),
            );
        }
    }
    let last = [lost_reply, rejected, lost_request].into_iter().flatten().next().map(|at| at.span).or(span);
    let (lost_request, rejected, lost_reply) = (value(lost_request), value(rejected), value(lost_reply));
    if lost_request + rejected + lost_reply > 1.0 {
        complain(
            sink,
            Mistake::maybe_at(
                last,
                format!(
                    "lost_request + rejected + lost_reply come to {}: more than all attempts",
                    ((lost_request + rejected + lost_reply) * 1e9).round() / 1e9
                ),
            )
            .label("chances of one attempt"),
        );
    }
    Faults { timeout_s: timeout.map_or(f64::INFINITY, |at| at.value), lost_request, rejected, lost_reply }
}

fn tool(raw: &RawTool, span: Span, scenario: &Raw, sink: &Sink) -> Tool {
    let value = |at: &Option<At<f64>>| at.map_or(0.0, |at| at.value);
    let chances = [&raw.lost_request, &raw.rejected, &raw.lost_reply];
    let faults = faults(chances, raw.timeout, raw.has_timeout, Some(span), sink);
    let retry = retry(&[&raw.retry, &scenario.retry]);
    let approval = approval(raw, sink);
    if let (Some(_), Some(at)) = (&raw.agent, &raw.latency) {
        complain(
            sink,
            Mistake::at(at.span, "`latency` of a tool that is an agent")
                .label("a call takes as long as its session")
                .help("take `latency` out, or take `agent` out and make it an ordinary tool"),
        );
    }
    if let Some(at) = raw.hedge_after {
        let patience_s = faults.timeout_s.min(retry.deadline_s);
        if at.value >= patience_s {
            complain(
                sink,
                Mistake::at(at.span, "`hedge_after` isn't below the time after which an attempt is given up")
                    .label(format!("no second copy would be sent before {patience_s} s"))
                    .help("hedge at about the 95th percentile of the latency"),
            );
        }
    }
    if let Some(at) = &raw.reject_latency
        && raw.rejected.is_none()
        && scenario.fleet.is_none()
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
        && !raw.says_how_it_fails
        && scenario.fleet.is_none()
        && retry.deadline_s.is_infinite()
    {
        complain(
            sink,
            Mistake::at(at.span, "`error_result` of a tool that can't fail")
                .label("never used")
                .help("say how it fails: error, rejected, lost_request, lost_reply, a timeout, or a denied approval"),
        );
    }
    if let Some(at) = raw.queue.filter(|_| !raw.has_capacity) {
        complain(
            sink,
            Mistake::at(at.span, "`queue` of a tool without `capacity`")
                .label("nobody waits where there is no end of servers")
                .help("capacity = 10, the calls that it serves at once"),
        );
    }
    let station = raw
        .capacity
        .filter(|_| scenario.fleet.is_some())
        .map(|capacity| Station { servers: capacity.value, places: raw.queue.map_or(u64::MAX, |at| at.value) });
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
    let max_result = scenario.context.max_result.map_or(u64::MAX, |at| at.value);
    Tool {
        calls: whole_law(raw.calls.as_ref(), "calls", 1.0, 0, sink),
        loading: Loading::Upfront,
        agent: None,
        result: whole_law(raw.result.as_ref(), "result", 0.0, 0, sink).capped(max_result),
        error_result_tokens: raw.error_result.map_or(0, |at| at.value).min(max_result),
        latency_s,
        faults,
        reject_latency_s: match &raw.reject_latency {
            None => Dist::constant(0.0),
            Some(at) => finite_mean(at.value.clone(), "reject_latency", at.span, sink),
        },
        hedge_after_s: raw.hedge_after.map_or(f64::INFINITY, |at| at.value),
        station,
        has_outage: false,
        approval,
        error: value(&raw.error),
        idempotent: raw.idempotent.is_some_and(|at| at.value),
        price,
        retry,
    }
}

fn approval(raw: &RawTool, sink: &Sink) -> Option<Approval> {
    let At { value: approval, span } = raw.approval.as_ref()?;
    let Some(share) = approval.share else {
        if approval.has_share {
            return None;
        }
        complain(
            sink,
            Mistake::at(*span, "`approval` needs a `share`: how many of the calls wait for a person?")
                .label("which calls?")
                .help("for example approval = { share = 0.05, wait = { exponential = { mean = \"2m\" } } }"),
        );
        return None;
    };
    Some(Approval {
        share: share.value,
        wait_s: match &approval.wait {
            None => Dist::constant(0.0),
            Some(at) => finite_mean(at.value.clone(), "wait", at.span, sink),
        },
        denied: approval.denied.map_or(0.0, |at| at.value),
    })
}

/// A policy from its own keys, then those of the presets and tables behind it, nearest first.
pub(super) fn retry(layers: &[&RawRetry]) -> Retry {
    let mut retry = Retry::NEVER;
    for layer in layers.iter().rev() {
        if let Some(preset) = layer.preset {
            retry = preset.retry;
        }
        if let Some(at) = layer.attempts {
            retry.attempts = at.value as u32;
        }
        if let Some(at) = layer.base {
            (retry.base_s, retry.rejected_base_s) = (at.value, at.value);
        }
        if let Some(at) = layer.cap {
            retry.cap_s = at.value;
        }
        if let Some(at) = layer.jitter {
            retry.jitter = at.value;
        }
        if let Some(at) = layer.deadline {
            retry.deadline_s = at.value;
        }
    }
    retry
}
