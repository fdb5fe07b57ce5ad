//! From what is written to what it means: rules that hold between values, defaults, prices, and the model in plain
//! numbers.

use super::mistake::Mistake;
use super::raw::{Raw, RawBreaks, RawCache};
use super::reader::{At, Sink, complain};
use super::tree::Span;
use super::{PriceInfo, RunOptions, Surroundings, fleet, herd, limits, servers, tariffs, tools};
use crate::dist::{Dist, Whole};
use crate::model::{
    Agent, Breaks, Cache, Loading, MOST_CALLS, MOST_TURNS, Model, Phase, Prompt, Routing, Timing, Tool,
};
use crate::price::{Lifetimes, Row, lifetime_label};
use crate::stats::{Target, Threshold};

/// Models that a model is composed of.
pub(super) struct Parts<'a> {
    /// Of each tool, the agent that it is.
    pub agents: Vec<Option<Agent>>,
    pub routing: Option<Routing>,
    /// Whether it is an agent that another one calls.
    pub is_agent: bool,
    /// Whether its calls are of the main agent's model.
    pub is_main: bool,
    /// Name and tools of every agent, by number.
    pub agent_tools: &'a [(String, Vec<String>)],
}

/// What [`resolve`] makes of a file.
pub(super) struct Resolved {
    pub run: RunOptions,
    pub model: Model,
    /// Thresholds that don't apply to the model.
    pub idle_thresholds: Vec<At<String>>,
    /// How each server is loaded.
    pub loadings: Vec<Loading>,
    /// Whether prices were asked for, if only wrongly.
    pub priced: bool,
    pub servers: Vec<String>,
    pub tools: Vec<String>,
    pub places: Vec<String>,
    pub price: Option<PriceInfo>,
    /// The prices of writing to the cache, whether it is on or not.
    pub writes: Lifetimes,
    pub notes: Vec<String>,
}

impl Resolved {
    /// Adds what isn't said yet.
    pub fn add_notes(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// The chance beyond which sizes are taken to be unreachable.
const RARE: f64 = 1e-12;

/// Checks all that spans several values and builds the model. Where something is wrong it says so and goes on with a
/// stand-in, so that all mistakes come at once; the result counts only if none was found.
pub(super) fn resolve(raw: &Raw, parts: Parts<'_>, around: &Surroundings, sink: &Sink) -> Resolved {
    let mut notes = Vec::new();
    let servers = servers::servers(raw, sink);
    let (tools, mut phase) = tools::tools(raw, &servers, parts.agents, parts.is_agent, sink);
    let definitions = servers.definitions();
    let tariffs::Priced { tariff, info: price, row, writes } = tariffs::prices(raw, around, sink, &mut notes);
    let cache = cache(&raw.cache, row.as_ref(), sink);
    let session = &raw.session;
    if !session.has_turns && raw.herd.is_none() {
        let mistake = match session.span {
            Some(span) => {
                Mistake::at(span, "`[session]` needs `turns`").label("how many model calls until the answer?")
            }
            None => Mistake::nowhere("`[session]` is missing"),
        };
        complain(sink, mistake.help("for example turns = 50, or turns = { geometric = { mean = 12 } }"));
    }
    let tokens = |at: &Option<At<Dist>>, key: &str| whole_law(at.as_ref(), key, 0.0, 0, sink);
    let priced = tariffs::is_priced(raw);
    let (faults, retry) = limits::model_faults(raw, sink, &mut notes);
    let output = tokens(&session.output, "output");
    let places = places(&phase, &tools, parts.agent_tools);
    let shared = if parts.is_agent {
        None
    } else {
        fleet::fleet(raw, &places, row.as_ref(), max_output(raw, row.as_ref()), sink, &mut notes)
    };
    for station in shared.iter().flat_map(|fleet| &fleet.outages).filter_map(|outage| outage.station) {
        phase.mark_outage(station);
    }
    let model = Model {
        herd: herd::herd(raw, sink),
        fleet: shared,
        prompt: Prompt {
            definitions: definitions.iter().map(|(_, tokens)| *tokens).collect(),
            system: tokens(&raw.prompt.system, "system"),
            task: tokens(&raw.prompt.task, "task"),
        },
        conversation: limits::conversation(raw, sink),
        turns: whole_law(session.turns.as_ref(), "turns", 1.0, 1, sink),
        max_turns: session.max_turns.map_or(u64::MAX, |at| at.value),
        output: match max_output(raw, row.as_ref()) {
            Some(most) => output.capped(most),
            None => output,
        },
        timing: timing(raw, sink),
        faults,
        retry,
        phase,
        cache,
        context: limits::context(raw, row.as_ref(), sink),
        budget: limits::budget(raw, row.as_ref(), priced, sink),
        search: servers.search.clone(),
        routing: parts.routing,
        success: limits::success(raw, sink),
        tariff,
        is_main: parts.is_main,
    };
    check_zero_turns(raw, sink);
    fleet::check_fleet(raw, &model, sink);
    limits::check_routing(raw, sink);
    limits::check_context(raw, &model, sink);
    limits::check_budget(raw, &model, sink);
    check_timeout(raw, &model, sink);
    check_output(raw, &model, row.as_ref(), sink, &mut notes);
    check_sizes(raw, &model, sink);
    if let Some(at) = &raw.sessions_per_month
        && !priced
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
            && !priced
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
    if !parts.is_agent {
        check_tree(raw, &model, sink);
    }
    servers::note_found(raw, &mut notes);
    note_idle(raw, &model, parts.is_agent, &mut notes);
    check_places(raw, &model, &places, sink);
    fleet::note_other_models(&model, parts.agent_tools, &mut notes);
    let (run, idle_thresholds) = run_options(raw, &model, &places, sink);
    let loadings = servers.all.iter().map(|server| server.loading).collect();
    Resolved {
        loadings,
        idle_thresholds,
        run,
        model,
        priced,
        servers: definitions.into_iter().map(|(name, _)| name).collect(),
        tools,
        places,
        price,
        writes,
        notes,
    }
}

/// Where sessions meet, each place has a name of its own.
fn check_places(raw: &Raw, model: &Model, places: &[String], sink: &Sink) {
    let Some(fleet) = raw.fleet.as_ref().filter(|_| model.fleet.is_some()) else { return };
    let of_agents = places.get(raw.tools.len()..).unwrap_or_default();
    for name in raw.tools.iter().filter_map(|tool| tool.value.name.as_ref()) {
        if of_agents.contains(&name.value) {
            let text = format!("the tool \"{}\" is called like a tool of an agent, \"agent.tool\"", name.value);
            let mistake = Mistake::at(name.span, text).label("two places where sessions meet would have this name");
            complain(sink, mistake.help("another name"));
        }
    }
    for (index, name) in of_agents.iter().enumerate() {
        if of_agents.iter().take(index).any(|other| other == name) {
            let text = format!("two tools of agents are both \"agent.tool\" = \"{name}\" where sessions meet");
            complain(
                sink,
                Mistake::at(fleet.span, text).label("in a file with [fleet]").help("another name for one of them"),
            );
        }
    }
}

/// Names of the stations of a fleet, in the order of [`Model::station_tools`].
fn places(phase: &Phase, tools: &[String], agents: &[(String, Vec<String>)]) -> Vec<String> {
    let of_agents = phase.agents_by_number().into_iter().filter_map(|(number, _)| agents.get(number));
    let named = of_agents.flat_map(|(agent, tools)| tools.iter().map(move |tool| format!("{agent}.{tool}")));
    tools.iter().cloned().chain(named).collect()
}

/// What is written and can't matter, or is left out and weighs nothing.
fn note_idle(raw: &Raw, model: &Model, is_agent: bool, notes: &mut Vec<String>) {
    if raw.herd.is_some() {
        return;
    }
    let session = if is_agent { "an agent's session" } else { "a session" };
    if model.turns.as_constant() == Some(1) && !raw.tools.is_empty() && model.max_turns > 1 {
        notes.push(format!("{session} of one model call never calls a tool: the first call is the answer"));
    }
    let timings = &raw.model;
    if !is_agent
        && timings.first_token.is_none()
        && timings.output_rate.is_none()
        && timings.prefill_rate.is_none()
        && timings.cached_prefill_rate.is_none()
    {
        notes
            .push("model calls take no time: [model] has no `first_token`, `prefill_rate` or `output_rate`".to_owned());
    }
    if model.fleet.is_none() && !is_agent {
        let limited = raw.tools.iter().filter(|at| at.value.capacity.is_some());
        let names: Vec<&str> = limited.filter_map(|at| Some(at.value.name.as_ref()?.value.as_str())).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            notes.push(format!("the capacity of {names} matters where sessions meet: give [fleet] arrivals"));
        }
    }
    for (tool, at) in model.phase.tools.iter().zip(&raw.tools) {
        if let (Some(_), None, Some(name)) = (&tool.agent, &at.value.result, &at.value.name) {
            notes.push(format!("the answers of \"{}\" are 0 tokens: its tool has no `result`", name.value));
        }
    }
}

/// `[run]` and `[thresholds]`, and the thresholds that don't apply to the model.
fn run_options(raw: &Raw, model: &Model, places: &[String], sink: &Sink) -> (RunOptions, Vec<At<String>>) {
    let repeats = raw.herd.as_ref().map(|herd| herd.repeats.map_or(herd::REPEATS, |at| at.value));
    let sessions = raw.run.sessions.map(|at| at.value).or(repeats).unwrap_or(100_000);
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
    let (mut thresholds, mut idle_thresholds) = (Vec::new(), Vec::new());
    for At { value: (metric, want), span } in &raw.thresholds {
        match Threshold::parse(metric, want, model, places) {
            // it may apply to another strategy
            Ok(threshold) if !threshold.applies(model) => {
                idle_thresholds.push(At { value: metric.clone(), span: *span });
            }
            Ok(threshold) => thresholds.push(threshold),
            Err(error) => complain(sink, Mistake::at(*span, error.to_string()).label("not a threshold")),
        }
    }
    let run = RunOptions {
        thresholds,
        sessions,
        seed: raw.run.seed.map_or(1, |at| at.value),
        max_sessions: raw.run.max_sessions.map_or(10_000_000.max(sessions), |at| at.value),
        precision,
    };
    (run, idle_thresholds)
}

/// A rounded law; a missing one is `default`. A mean must exist.
pub(super) fn whole_law(at: Option<&At<Dist>>, key: &str, default: f64, least: u64, sink: &Sink) -> Whole {
    match at {
        None => Whole::new(Dist::constant(default), least),
        Some(At { value, span }) => {
            let law = finite_mean(value.clone(), key, *span, sink);
            Whole::new(law, least)
        }
    }
}

pub(super) fn finite_mean(law: Dist, key: &str, span: Span, sink: &Sink) -> Dist {
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

/// The most tokens that one call can write, where it is known.
fn max_output(raw: &Raw, row: Option<&Row>) -> Option<u64> {
    raw.model.max_output.map(|at| at.value).or(row.and_then(|r| r.max_output_tokens))
}

/// A timeout that no model call can keep.
fn check_timeout(raw: &Raw, model: &Model, sink: &Sink) {
    let Some(at) = raw.model.timeout else { return };
    let writing_s = match &model.timing.output_rate {
        None => 0.0,
        Some(rate) => model.output.quantile(0.001) / rate.quantile(0.999),
    };
    let fastest_s = model.timing.first_token_s.quantile(0.001) + writing_s;
    if fastest_s > at.value {
        complain(
            sink,
            Mistake::at(at.span, "hardly any model call would be complete within this `timeout`")
                .label(format!("the fastest take {fastest_s:.3} s"))
                .help("a longer timeout, or a shorter output"),
        );
    }
}

fn check_output(raw: &Raw, model: &Model, row: Option<&Row>, sink: &Sink, notes: &mut Vec<String>) {
    if let (Some(limit), Some(At { span, .. })) = (max_output(raw, row), &raw.session.output) {
        let beyond = model.output.cut_chance();
        if beyond > 0.5 {
            complain(
                sink,
                Mistake::at(*span, format!("`output` is above the {limit} tokens that one call can write"))
                    .label("more than `max_output`"),
            );
        } else if beyond > 1e-4 {
            notes.push(format!(
                "{:.2} % of the outputs are longer than the {limit} tokens that one call can write, and are cut there",
                beyond * 100.0
            ));
        }
    }
    let first = model.prompt.definition_tokens()
        + model.prompt.system.as_constant().unwrap_or(0)
        + model.prompt.task.as_constant().unwrap_or(0);
    let window_tokens = model.context.window_tokens;
    if first > window_tokens {
        let span = raw.prompt.system.as_ref().or(raw.prompt.task.as_ref()).map(|at| at.span);
        let text =
            format!("the first prompt, {first} tokens, doesn't fit the model's window of {window_tokens} tokens");
        let mistake = Mistake::maybe_at(span, text);
        complain(sink, mistake.label("no session could begin").help("shorten the prompt or choose a larger model"));
    }
}

/// Sums of tokens must stay countable, and numbers of calls and turns nameable.
fn check_sizes(raw: &Raw, model: &Model, sink: &Sink) {
    let rare = |law: &Whole| law.quantile(1.0 - RARE);
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
    let messages = rare(&model.conversation.messages);
    let turns = turns * messages;
    if turns > MOST_TURNS as f64 {
        if let Some(At { span, .. }) = &raw.session.messages {
            let text = format!("`messages` times `turns` could reach {turns:.3e} calls; {MOST_TURNS} is the most");
            complain(sink, Mistake::at(*span, text).label("too many"));
        }
        return;
    }
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
    }
    if most_sent(model) > 1e18 {
        let sent = most_sent(model);
        let span = raw.session.output.as_ref().or(raw.session.turns.as_ref()).map(|at| at.span);
        let text = format!("the sizes overflow: one session could send {sent:.1e} tokens; 1e18 is the most");
        complain(
            sink,
            Mistake::maybe_at(span, text).help("fewer turns, smaller results, or a law with a lighter tail"),
        );
    }
}

/// The most model calls of one session, with those of all agents, that are played on average.
const MOST_TREE_CALLS: f64 = 1e6;

/// Agents that call agents multiply: a tree that nobody would wait for is refused.
fn check_tree(raw: &Raw, model: &Model, sink: &Sink) {
    let calls = tree_calls(model);
    let first = raw.tools.iter().find_map(|tool| tool.value.agent.as_ref());
    if let Some(agent) = first.filter(|_| calls > MOST_TREE_CALLS) {
        complain(
            sink,
            Mistake::at(agent.span, format!("one session would come to about {calls:.1e} model calls of all agents"))
                .label(format!("{MOST_TREE_CALLS:.0e} is the most"))
                .help("`calls` is a number a turn: fewer calls, fewer turns, or agents that call fewer agents"),
        );
    }
}

/// Mean number of model calls of a session, with those of all agents below it.
fn tree_calls(model: &Model) -> f64 {
    let turns = model.turns.mean().min(model.max_turns as f64) * model.conversation.messages.mean();
    let below = |tool: &Tool| {
        let agent = tool.agent.as_ref()?;
        Some(tool.calls.mean() * tree_calls(&agent.model))
    };
    turns + (turns - 1.0).max(0.0) * model.phase.tools.iter().filter_map(below).sum::<f64>()
}

/// A bound on the tokens that a session sends, with those of all agents below it.
fn most_sent(model: &Model) -> f64 {
    let rare = |law: &Whole| law.quantile(1.0 - RARE);
    let turns = rare(&model.turns).min(model.max_turns as f64) * rare(&model.conversation.messages);
    let tools = &model.phase.tools;
    let results: f64 =
        tools.iter().map(|tool| rare(&tool.calls) * rare(&tool.result).max(tool.error_result_tokens as f64)).sum();
    let growth = rare(&model.output) + rare(&model.conversation.message) + results;
    let first = model.prompt.definition_tokens() as f64 + rare(&model.prompt.system) + rare(&model.prompt.task);
    // no prompt outgrows the window
    let own = turns * (first + turns / 2.0 * growth).min(model.context.window_tokens as f64);
    let agents = tools.iter().filter_map(|tool| {
        let copies = if tool.is_hedged() { 2.0 } else { 1.0 };
        let sessions = turns * rare(&tool.calls) * f64::from(tool.retry.attempts) * copies;
        Some(sessions * most_sent(&tool.agent.as_ref()?.model))
    });
    own + agents.sum::<f64>()
}

fn cache(raw: &RawCache, row: Option<&Row>, sink: &Sink) -> Cache {
    let lifetime = raw.lifetime.and_then(|at| at.value);
    let prefix = match raw.prefix_lifetime {
        None => lifetime,
        Some(at) => at.value,
    };
    if let Some(at) = raw.prefix_lifetime {
        match (lifetime, at.value) {
            (None, Some(_)) if raw.lifetime.is_none() => complain(
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
    check_cache(raw, lifetime, sink);
    Cache {
        enabled: lifetime.is_some(),
        lifetime_s: lifetime.unwrap_or(0) as f64,
        prefix_lifetime_s: prefix.or(lifetime).unwrap_or(0) as f64,
        warm_prefix: raw.warm_prefix.map_or(0.0, |at| at.value),
        min_tokens: row.map_or(0, |r| r.min_cacheable_tokens),
        granularity_tokens: row.map_or(1, |r| r.hit_granularity_tokens.max(1)),
        keep_alive_s: raw.keep_alive.map_or(f64::INFINITY, |at| at.value),
        breaks: raw.breaks.as_ref().map_or_else(Breaks::default, |at| breaks(&at.value)),
        caches_output: raw.caches_output.is_some_and(|at| at.value),
    }
}

fn breaks(raw: &RawBreaks) -> Breaks {
    let chance = |at: Option<At<f64>>| at.map_or(0.0, |at| at.value);
    Breaks { tools: chance(raw.tools), system: chance(raw.system), history: chance(raw.history) }
}

/// What keeps a cache warm or breaks it needs a cache.
fn check_cache(raw: &RawCache, lifetime: Option<u64>, sink: &Sink) {
    // a cache that is switched off on purpose takes them with it
    if raw.lifetime.is_some() && lifetime.is_none() {
        return;
    }
    let extras = [
        ("warm_prefix", raw.warm_prefix.filter(|at| at.value > 0.0).map(|at| at.span), "nothing can be warm"),
        ("keep_alive", raw.keep_alive.map(|at| at.span), "nothing to keep alive"),
        (
            "breaks",
            raw.breaks.as_ref().filter(|at| breaks(&at.value).any()).map(|at| at.span),
            "nothing that could break",
        ),
        ("caches_output", raw.caches_output.filter(|at| at.value).map(|at| at.span), "nothing is cached"),
    ];
    let Some(lifetime) = lifetime else {
        for (key, span, label) in extras {
            if let Some(span) = span {
                complain(
                    sink,
                    Mistake::at(span, format!("`{key}` without a cache"))
                        .label(label)
                        .help("give [cache] lifetime = \"5m\""),
                );
            }
        }
        return;
    };
    if let Some(at) = raw.keep_alive
        && at.value < 1.0
    {
        complain(
            sink,
            Mistake::at(at.span, "`keep_alive` is less than a second: nothing but pings would be billed")
                .label("too often")
                .help("a little less than the lifetime keeps the cache warm with the fewest pings"),
        );
    }
    if let Some(at) = raw.keep_alive
        && at.value > lifetime as f64
    {
        complain(
            sink,
            Mistake::at(at.span, "`keep_alive` is longer than `lifetime`: each ping would come too late")
                .label(format!("longer than {}", lifetime_label(lifetime)))
                .help("a little less than the lifetime keeps the cache warm with the fewest pings"),
        );
    }
}
