//! From what is written to what it means: rules that hold between values, defaults, prices, and the model in plain
//! numbers.

use std::collections::BTreeMap;

use super::mistake::Mistake;
use super::raw::{Raw, RawCache, RawRetry, RawTool};
use super::reader::{At, Sink, complain, nearest};
use super::tree::Span;
use super::{PriceInfo, RunOptions};
use crate::dist::{Dist, Whole};
use crate::model::{Cache, Jitter, MOST_CALLS, MOST_TOOLS, MOST_TURNS, Model, Phase, Prompt, Retry, Timing, Tool};
use crate::price::{
    Lifetimes, PicoUsd, PicoUsdPerToken, Rates, Row, SHEET_DATE, Sheet, Tariff, TierRow, lifetime_label,
};
use crate::stats::Target;

/// What [`resolve`] makes of a file.
pub(super) struct Resolved {
    pub run: RunOptions,
    pub model: Model,
    pub servers: Vec<String>,
    pub tools: Vec<String>,
    pub price: Option<PriceInfo>,
    pub notes: Vec<String>,
}

/// The chance beyond which sizes are taken to be unreachable.
const RARE: f64 = 1e-12;

/// Checks all that spans several values and builds the model. Where something is wrong it says so and goes on with a
/// stand-in, so that all mistakes come at once; the result counts only if none was found.
pub(super) fn resolve(raw: &Raw, sink: &Sink) -> Resolved {
    let mut notes = Vec::new();
    let servers = servers(raw, sink);
    let (tools, phase) = tools(raw, &servers, sink);
    let (tariff, price, row) = prices(raw, sink, &mut notes);
    let cache = cache(&raw.cache, row.as_ref(), sink);
    let session = &raw.session;
    if !session.has_turns {
        let mistake = match session.span {
            Some(span) => {
                Mistake::at(span, "`[session]` needs `turns`").label("how many model calls until the answer?")
            }
            None => Mistake::nowhere("`[session]` is missing"),
        };
        complain(sink, mistake.help("for example turns = 50, or turns = { geometric = { mean = 12 } }"));
    }
    let tokens = |at: &Option<At<Dist>>, key: &str| whole_law(at.as_ref(), key, 0.0, 0, sink);
    let model = Model {
        prompt: Prompt {
            definitions: servers.iter().map(|s| s.1).collect(),
            system: tokens(&raw.prompt.system, "system"),
            task: tokens(&raw.prompt.task, "task"),
        },
        turns: whole_law(session.turns.as_ref(), "turns", 1.0, 1, sink),
        max_turns: session.max_turns.map_or(u64::MAX, |at| at.value),
        window_tokens: row.as_ref().and_then(|r| r.context_tokens).unwrap_or(u64::MAX),
        output: tokens(&session.output, "output"),
        timing: timing(raw, sink),
        phase,
        cache,
        tariff,
    };
    check_zero_turns(raw, sink);
    check_output(raw, &model, row.as_ref(), sink);
    check_sizes(raw, &model, sink);
    if let Some(at) = &raw.sessions_per_month
        && model.tariff.is_none()
    {
        complain(
            sink,
            Mistake::at(at.span, "a monthly bill needs prices")
                .label("of which model?")
                .help("name a model, [model] name = \"claude-sonnet-4-6\", or give [price] input and output"),
        );
    }
    for (tool, at) in model.phase.tools.iter().zip(&raw.tools) {
        if tool.price.0 > 0
            && model.tariff.is_none()
            && let Some(price) = &at.value.price_usd
        {
            complain(
                sink,
                Mistake::at(price.span, "a tool's `price` needs the model's prices too")
                    .label("money for the tool, none for the model")
                    .help("name a model, [model] name = \"claude-sonnet-4-6\", or give [price] input and output"),
            );
        }
    }
    let run = run_options(raw, &model, sink);
    Resolved { run, model, servers: servers.into_iter().map(|s| s.0).collect(), tools, price, notes }
}

fn run_options(raw: &Raw, model: &Model, sink: &Sink) -> RunOptions {
    let sessions = raw.run.sessions.map_or(100_000, |at| at.value);
    let mut precision = Vec::new();
    for At { value: (name, width), span } in &raw.run.precision {
        match Target::parse(name, *width).and_then(|target| target.check(model).map(|()| target)) {
            Ok(target) if *width < 1.0 => precision.push(target),
            Ok(_) => complain(
                sink,
                Mistake::at(*span, format!("the precision of `{name}` must be below 1"))
                    .label("a relative half-width")
                    .help(format!("for ±1 % write \"{name}\" = 0.01")),
            ),
            Err(error) => complain(sink, Mistake::at(*span, error.to_string()).label("can't be made precise")),
        }
    }
    if let Some(most) = raw.run.max_sessions {
        if raw.run.precision.is_empty() {
            complain(
                sink,
                Mistake::at(most.span, "`max_sessions` only bounds a run with `precision`")
                    .label("no precision is asked for")
                    .help(
                        "give `sessions`, or say what has to become precise: precision = { \"cost_usd.mean\" = 0.01 }",
                    ),
            );
        } else if most.value < sessions {
            complain(
                sink,
                Mistake::at(most.span, format!("`max_sessions` is below `sessions` ({sessions})")).label("too few"),
            );
        }
    }
    RunOptions {
        sessions,
        seed: raw.run.seed.map_or(1, |at| at.value),
        max_sessions: raw.run.max_sessions.map_or(10_000_000.max(sessions), |at| at.value),
        precision,
    }
}

/// A rounded law; a missing one is `default`. A mean must exist.
fn whole_law(at: Option<&At<Dist>>, key: &str, default: f64, least: u64, sink: &Sink) -> Whole {
    match at {
        None => Whole::new(Dist::constant(default), least),
        Some(At { value, span }) => {
            let law = finite_mean(value.clone(), key, *span, sink);
            Whole::new(law, least)
        }
    }
}

fn finite_mean(law: Dist, key: &str, span: Span, sink: &Sink) -> Dist {
    if law.mean().is_finite() {
        return law;
    }
    complain(
        sink,
        Mistake::at(span, format!("the mean of `{key}` is infinite, so no average would mean anything"))
            .label("its tail is too heavy")
            .help("a pareto law has a mean only where alpha is above 1"),
    );
    Dist::constant(1.0)
}

fn check_zero_turns(raw: &Raw, sink: &Sink) {
    if let Some(At { value, span }) = &raw.session.turns
        && value.as_constant().is_some_and(|turns| turns < 1.0)
    {
        complain(
            sink,
            Mistake::at(*span, "a session has at least one model call").label("none").help("turns = 1 is one answer"),
        );
    }
}

fn timing(raw: &Raw, sink: &Sink) -> Timing {
    let model = &raw.model;
    let per_token = |rate: &Option<At<f64>>| rate.as_ref().map_or(0.0, |at| 1.0 / at.value);
    let first_token_s = match &model.first_token {
        Some(at) => finite_mean(at.value.clone(), "first_token", at.span, sink),
        None => Dist::constant(0.0),
    };
    if let Some(At { value, span }) = &model.output_rate
        && value.quantile(1e-9) < 1e-3
    {
        complain(
            sink,
            Mistake::at(*span, "`output_rate` could come near zero, and the answer would never end")
                .label("as slow as nothing")
                .help("use a law that stays away from 0: a number, lognormal, or uniform with a `min`"),
        );
    }
    Timing {
        first_token_s,
        prefill_s_per_token: per_token(&model.prefill_rate),
        cached_prefill_s_per_token: per_token(&model.cached_prefill_rate),
        output_rate: model.output_rate.as_ref().map(|at| at.value.clone()),
    }
}

fn check_output(raw: &Raw, model: &Model, row: Option<&Row>, sink: &Sink) {
    let limit = raw.model.max_output.map(|at| at.value).or(row.and_then(|r| r.max_output_tokens));
    if let (Some(limit), Some(At { span, .. }), Some(output)) = (limit, &raw.session.output, model.output.as_constant())
        && output > limit
    {
        complain(
            sink,
            Mistake::at(*span, format!("`output` is above the {limit} tokens that one call can write"))
                .label("more than `max_output`"),
        );
    }
    let first = model.prompt.definition_tokens()
        + model.prompt.system.as_constant().unwrap_or(0)
        + model.prompt.task.as_constant().unwrap_or(0);
    if first > model.window_tokens {
        let span = raw.prompt.system.as_ref().or(raw.prompt.task.as_ref()).map(|at| at.span);
        let text = format!(
            "the first prompt, {first} tokens, doesn't fit the model's window of {} tokens",
            model.window_tokens
        );
        let mistake = span.map_or_else(|| Mistake::nowhere(text.clone()), |span| Mistake::at(span, text.clone()));
        complain(sink, mistake.label("no session could begin").help("shorten the prompt or choose a larger model"));
    }
}

/// Sums of tokens must stay countable, and numbers of calls and turns nameable.
fn check_sizes(raw: &Raw, model: &Model, sink: &Sink) {
    let rare = |law: &Whole| law.as_constant().map_or_else(|| law.law().quantile(1.0 - RARE), |n| n as f64);
    let turns = rare(&model.turns).min(model.max_turns as f64);
    if turns > MOST_TURNS as f64 {
        if let Some(At { span, .. }) = &raw.session.turns {
            complain(
                sink,
                Mistake::at(*span, format!("`turns` could reach {turns:.3e}; {MOST_TURNS} is the most"))
                    .label("too many")
                    .help("bound it with max_turns"),
            );
        }
        return;
    }
    let mut growth = rare(&model.output);
    for (tool, at) in model.phase.tools.iter().zip(&raw.tools) {
        let calls = rare(&tool.calls);
        if calls > MOST_CALLS as f64 {
            let span = at.value.calls.as_ref().map_or(at.span, |calls| calls.span);
            complain(
                sink,
                Mistake::at(span, format!("`calls` could reach {calls:.3e} a turn; {MOST_CALLS} is the most"))
                    .label("too many"),
            );
        }
        growth += calls * rare(&tool.result).max(tool.error_result_tokens as f64);
    }
    let first = model.prompt.definition_tokens() as f64 + rare(&model.prompt.system) + rare(&model.prompt.task);
    let sent = turns * first + turns * turns / 2.0 * growth;
    if sent > 1e18 {
        let span = raw.session.output.as_ref().or(raw.session.turns.as_ref()).map(|at| at.span);
        let text = format!("the sizes overflow: one session could send {sent:.1e} tokens; 1e18 is the most");
        complain(
            sink,
            span.map_or_else(|| Mistake::nowhere(text.clone()), |span| Mistake::at(span, text.clone()))
                .help("fewer turns, smaller results, or a law with a lighter tail"),
        );
    }
}

fn servers(raw: &Raw, sink: &Sink) -> Vec<(String, u64)> {
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

fn tools(raw: &Raw, servers: &[(String, u64)], sink: &Sink) -> (Vec<String>, Phase) {
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
        complain(
            sink,
            span.map_or_else(|| Mistake::nowhere(text.clone()), |span| Mistake::at(span, text.clone()))
                .label("a cycle")
                .help("take one `after` away"),
        );
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
            && raw.timeout.is_none()
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
        && raw.timeout.is_none()
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

fn cache(raw: &RawCache, row: Option<&Row>, sink: &Sink) -> Cache {
    let lifetime = raw.lifetime.and_then(|at| at.value);
    let prefix = match raw.prefix_lifetime {
        None => lifetime,
        Some(at) => at.value,
    };
    if let Some(at) = raw.prefix_lifetime {
        match (lifetime, at.value) {
            (None, Some(_)) => complain(
                sink,
                Mistake::at(at.span, "`prefix_lifetime` without `lifetime`: the messages would not be cached at all")
                    .label("the messages' lifetime is off")
                    .help("give `lifetime` too, or leave both out"),
            ),
            (Some(messages), Some(prefix)) if prefix < messages => complain(
                sink,
                Mistake::at(at.span, "`prefix_lifetime` is shorter than `lifetime`")
                    .label(format!("shorter than {}", lifetime_label(messages)))
                    .help("the prompt begins with the prefix, and the longer lifetime must come first"),
            ),
            (Some(_), None) => complain(
                sink,
                Mistake::at(at.span, "`prefix_lifetime` can't be off while the messages are cached")
                    .label("the messages come after the prefix"),
            ),
            _ => {}
        }
    }
    if let Some(at) = raw.warm_prefix
        && at.value > 0.0
        && lifetime.is_none()
    {
        complain(
            sink,
            Mistake::at(at.span, "`warm_prefix` without a cache")
                .label("nothing can be warm")
                .help("give [cache] lifetime = \"5m\""),
        );
    }
    Cache {
        enabled: lifetime.is_some(),
        lifetime_s: lifetime.unwrap_or(0) as f64,
        prefix_lifetime_s: prefix.or(lifetime).unwrap_or(0) as f64,
        warm_prefix: raw.warm_prefix.map_or(0.0, |at| at.value),
        min_tokens: row.map_or(0, |r| r.min_cacheable_tokens),
        granularity_tokens: row.map_or(1, |r| r.hit_granularity_tokens.max(1)),
    }
}

/// The prices that apply, what is to be said of them, and the sheet's row.
fn prices(raw: &Raw, sink: &Sink, notes: &mut Vec<String>) -> (Option<Tariff>, Option<PriceInfo>, Option<Row>) {
    let as_of = raw.price.as_of.map(|at| at.value);
    let row = raw.model.name.as_ref().and_then(|name| match Sheet::embedded().find(&name.value, as_of) {
        Ok(row) => Some(row),
        Err(error) => {
            let label = error.nearest.first().map_or_else(|| "unknown".to_owned(), |n| format!("did you mean \"{n}\"?"));
            complain(
                sink,
                Mistake::at(name.span, error.to_string()).label(label).help(
                    "`agent-sim prices` lists the models; for another one leave `name` out and give its prices in [price]",
                ),
            );
            None
        }
    });
    if raw.model.name.is_some() && row.is_none() {
        return (None, None, None);
    }
    let any_override = raw.price.input.is_some()
        || raw.price.output.is_some()
        || raw.price.read.is_some()
        || raw.price.read_multiplier.is_some()
        || raw.price.write.is_some()
        || !raw.price.writes.is_empty()
        || !raw.price.write_multipliers.is_empty();
    let lifetime = raw.cache.lifetime.and_then(|at| at.value);
    if row.is_none() && !any_override {
        if let Some(at) = raw.price.as_of {
            let mistake = Mistake::at(at.span, "`as_of` chooses a row of the price sheet, and no model is named");
            complain(sink, mistake.label("of which model?").help("[model] name = \"claude-sonnet-4-6\""));
        }
        if let (Some(_), Some(at)) = (lifetime, raw.cache.lifetime) {
            complain(
                sink,
                Mistake::at(at.span, "a cache needs prices for reading and writing")
                    .label("no prices are known")
                    .help("name a model, [model] name = \"claude-sonnet-4-6\", or give [price]"),
            );
        }
        return (None, None, None);
    }
    let overridden = overridden(raw, row, sink);
    let tariff = overridden.and_then(|row| {
        let prefix = raw.cache.prefix_lifetime.map_or(lifetime, |at| at.value);
        let tariff = tariff(raw, &row, lifetime, prefix.or(lifetime), sink);
        tariff.map(|tariff| (tariff, row))
    });
    let info = row.map(|row| {
        let sheet = Sheet::embedded();
        let day = as_of.unwrap_or(SHEET_DATE);
        if let Some(next) = sheet.next_change(row, as_of)
            && let Some(from) = next.from
        {
            notes.push(format!(
                "{} changes its price on {from}: ${} input, ${} output per million tokens; [price] as_of = {from} shows it",
                row.model,
                next.input.usd_per_million(),
                next.output.usd_per_million()
            ));
        }
        if let Some(retires) = row.retires {
            let verb = if retires <= day { "was" } else { "will be" };
            notes.push(format!("{} {verb} switched off on {retires}", row.model));
        }
        PriceInfo {
            model: format!("{}/{}", row.provider, row.model),
            as_of: day.to_string(),
            source: row.source.clone(),
            source_date: row.source_date.clone(),
            overridden: any_override,
        }
    });
    (tariff.map(|(tariff, _)| tariff), info, row.cloned())
}

/// The sheet's row with the scenario's own prices laid over it. A long-context tier keeps its ratio to the base price.
fn overridden(raw: &Raw, row: Option<&Row>, sink: &Sink) -> Option<Row> {
    let price = &raw.price;
    let mut fine = true;
    let mut read_price = |at: &At<f64>, usd: f64| match PicoUsdPerToken::from_usd_per_million(usd) {
        Ok(price) => Some(price),
        Err(error) => {
            complain(sink, Mistake::at(at.span, error.to_string()).label("not a price"));
            fine = false;
            None
        }
    };
    let input = price.input.as_ref().and_then(|at| read_price(at, at.value)).or(row.map(|r| r.input));
    let output = price.output.as_ref().and_then(|at| read_price(at, at.value)).or(row.map(|r| r.output));
    let input_usd = input.map(PicoUsdPerToken::usd_per_million);
    let mut read = price.read.as_ref().and_then(|at| read_price(at, at.value));
    if let (Some(at), Some(input)) = (&price.read_multiplier, input_usd) {
        if price.read.is_some() {
            complain(
                sink,
                Mistake::at(at.span, "`read_multiplier` and `cache_read` say the same thing")
                    .label("one of them is enough"),
            );
        }
        read = read_price(at, at.value * input);
    }
    let mut by_seconds = BTreeMap::new();
    for at in &price.writes {
        let (seconds, usd) = at.value;
        if let Some(price) = read_price(&At { value: usd, span: at.span }, usd) {
            by_seconds.insert(seconds, price);
        }
    }
    for at in &price.write_multipliers {
        let ((seconds, multiplier), Some(input)) = (at.value, input_usd) else { continue };
        if by_seconds.contains_key(&seconds) {
            complain(
                sink,
                Mistake::at(at.span, "this lifetime has a price and a multiplier").label("one of them is enough"),
            );
        } else if let Some(price) = read_price(&At { value: multiplier, span: at.span }, multiplier * input) {
            by_seconds.insert(seconds, price);
        }
    }
    let any = price.write.as_ref().and_then(|at| read_price(at, at.value));
    let missing = |key: &str| {
        let text = format!("the price of {key} tokens isn't known");
        let mistake = price.span.map_or_else(|| Mistake::nowhere(text.clone()), |span| Mistake::at(span, text.clone()));
        complain(
            sink,
            mistake.label(format!("`{key}` is missing")).help(format!(
                "give {key} = … ($ per million tokens) under [price], or name a model of the price sheet"
            )),
        );
    };
    if input.is_none() && price.input.is_none() {
        missing("input");
    }
    if output.is_none() && price.output.is_none() {
        missing("output");
    }
    let (input, output) = (input?, output?);
    if !fine {
        return None;
    }
    let scaled = |old: PicoUsdPerToken, new: PicoUsdPerToken, tier: PicoUsdPerToken| {
        if old.0 == 0 || old == new {
            tier
        } else {
            let (old, new, tier) = (u128::from(old.0), u128::from(new.0), u128::from(tier.0));
            PicoUsdPerToken(u64::try_from((tier * new + old / 2) / old).unwrap_or(u64::MAX))
        }
    };
    let own_writes = any.is_some() || !by_seconds.is_empty();
    let Some(row) = row else {
        return Some(Row {
            provider: String::new(),
            model: "the scenario's [price]".to_owned(),
            from: None,
            input,
            output,
            read,
            writes: Lifetimes { any, by_seconds },
            tier: None,
            context_tokens: None,
            max_output_tokens: None,
            min_cacheable_tokens: 0,
            hit_granularity_tokens: 1,
            thinking_in_output: true,
            retires: None,
            source: "the scenario".to_owned(),
            source_date: String::new(),
            notes: String::new(),
        });
    };
    let mut new = row.clone();
    (new.input, new.output) = (input, output);
    new.read = read.or(row.read);
    if own_writes {
        if any.is_some() {
            new.writes = Lifetimes::default();
        }
        new.writes.any = any.or(new.writes.any);
        new.writes.by_seconds.extend(by_seconds);
    }
    if let Some(tier) = &row.tier {
        let mut writes = tier.writes.clone();
        for (seconds, price) in &new.writes.by_seconds {
            let ratio_to = row.writes.price(*seconds).zip(tier.writes.price(*seconds));
            // a lifetime that only the scenario prices keeps the ratio of input
            let (old, at_tier) = ratio_to.unwrap_or((row.input, tier.input));
            writes.by_seconds.insert(*seconds, scaled(old, *price, at_tier));
        }
        if let Some(price) = new.writes.any {
            let (old, at_tier) = row.writes.any.zip(tier.writes.any).unwrap_or((row.input, tier.input));
            writes.any = Some(scaled(old, price, at_tier));
        }
        let tier_read = match (new.read, row.read, tier.read) {
            (Some(new), Some(old), Some(at_tier)) => Some(scaled(old, new, at_tier)),
            (Some(new), _, _) => Some(scaled(row.input, new, tier.input)),
            (None, _, at_tier) => at_tier,
        };
        new.tier = Some(TierRow {
            from_tokens: tier.from_tokens,
            input: scaled(row.input, input, tier.input),
            output: scaled(row.output, output, tier.output),
            read: tier_read,
            writes,
        });
    }
    Some(new)
}

/// Rates for the chosen lifetimes; a price that is needed and unknown is a mistake.
fn tariff(raw: &Raw, row: &Row, messages: Option<u64>, prefix: Option<u64>, sink: &Sink) -> Option<Tariff> {
    let mut fine = true;
    let mut rates = |input, output, read: Option<PicoUsdPerToken>, writes: &Lifetimes, of: &str| {
        let Some(messages) = messages else {
            return Rates { input, read: input, write_prefix: input, write_messages: input, output };
        };
        let mut write = |seconds: u64, at: Option<Span>| {
            writes.price(seconds).unwrap_or_else(|| {
                fine = false;
                let text =
                    format!("{} has no price for a cache write that lives {}{of}", row.model, lifetime_label(seconds));
                let offered = if writes.is_empty() { "no lifetime".to_owned() } else { writes.offered() };
                complain(
                    sink,
                    at.map_or_else(|| Mistake::nowhere(text.clone()), |span| Mistake::at(span, text.clone()))
                        .label(format!("on offer: {offered}"))
                        .help(format!(
                            "choose one of them, or give [price] cache_write_{} = …",
                            lifetime_label(seconds)
                        )),
                );
                input
            })
        };
        let write_messages = write(messages, raw.cache.lifetime.map(|at| at.span));
        let write_prefix = match prefix {
            Some(seconds) => write(seconds, raw.cache.prefix_lifetime.or(raw.cache.lifetime).map(|at| at.span)),
            None => write_messages,
        };
        let read = read.unwrap_or_else(|| {
            fine = false;
            let text = format!("{} has no price for reading the cache{of}", row.model);
            complain(
                sink,
                raw.cache
                    .lifetime
                    .map_or_else(|| Mistake::nowhere(text.clone()), |at| Mistake::at(at.span, text.clone()))
                    .label("the cache is on")
                    .help("give [price] cache_read = … or read_multiplier = 0.1, or lifetime = \"off\""),
            );
            input
        });
        Rates { input, read, write_prefix, write_messages, output }
    };
    let base = rates(row.input, row.output, row.read, &row.writes, "");
    let tier =
        row.tier.as_ref().map(|t| (t.from_tokens, rates(t.input, t.output, t.read, &t.writes, " for long prompts")));
    fine.then_some(Tariff { base, tier })
}
