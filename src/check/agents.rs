//! Agents: what a tree of them comes to is the sum of their own closed forms; how long one takes is a law like any other
//! latency.

use std::borrow::Cow;

use super::costs::{expected_input, expected_output};
use super::facts::{
    AttemptChances, Facts, attempts_can_fail, can_miss_tools, fixed_call_s, largest_prompt, sent_share,
};
use super::facts::{can_be_cut_short, surely_answers};
use super::phases::{makes_calls, rare_sf};
use super::sessions::session_law;
use super::sizes::expected_read;
use super::{Check, Checks, Events, NO_EVENTS, events};
use crate::dist::Dist;
use crate::model::{Agent, Loading, Model, Tool};
use crate::stats::{Quantity, Sample};
use crate::theory::retry;

const TOKENS: &str = "agents.tokens";
const COST: &str = "agents.cost";

/// The model in which every agent whose sessions' duration has a known law is an ordinary tool of that latency.
pub(super) fn effective(model: &Model) -> Cow<'_, Model> {
    if !model.has_agents() {
        return Cow::Borrowed(model);
    }
    let mut model = model.clone();
    for tool in &mut model.phase.tools {
        // a repeated call of an idempotent agent waits for the session that is under way
        let replays = tool.idempotent && (tool.is_hedged() || tool.retry.attempts > 1);
        if let Some(law) = tool.agent.as_ref().filter(|_| !replays).and_then(law) {
            tool.latency_s = law;
            tool.agent = None;
        }
    }
    Cow::Owned(model)
}

/// The law of the duration of an agent's sessions, s, where it is known.
fn law(agent: &Agent) -> Option<Dist> {
    surely_answers(agent).then(|| effective(&agent.model)).and_then(|model| session_law(&model))
}

/// A sum over a session and all sessions of agents below it; `of` gives one session's part. `warmth` is whether that
/// depends on what its first call finds cached.
fn total(
    model: &Model,
    sessions: f64,
    depth: usize,
    warmth: bool,
    of: &dyn Fn(&Facts<'_>) -> Result<f64, String>,
) -> Result<f64, String> {
    let plain = effective(model);
    let facts = Facts::of_theory(&plain, sessions);
    if let Some(why) = &facts.cut_short {
        return Err(why.clone());
    }
    let mut sum = of(&facts)?;
    for (tool, plain) in model.phase.tools.iter().zip(&plain.phase.tools) {
        let Some(agent) = tool.agent.as_ref().filter(|_| makes_calls(tool)) else { continue };
        let calls = facts.phases() * plain.calls.mean() * executions(model, plain)?;
        if let Events::TooFew(why) = events(calls * sessions, 0.0) {
            return Err(format!("sessions of agents: {why}"));
        }
        let warm = agent.model.cache.warm_prefix;
        if let Events::TooFew(why) = events(warm.min(1.0 - warm) * calls * sessions, 0.0) {
            return Err(format!("warm or cold prefixes: {why}"));
        }
        let mut inner = (*agent.model).clone();
        if warmth {
            inner.cache.warm_prefix = warm_share(model, &facts, tool, agent, depth)?;
        }
        sum += calls * total(&inner, sessions * calls, depth + 1, warmth, of)?;
    }
    Ok(sum)
}

/// Executions a call, or why they aren't known.
fn executions(model: &Model, tool: &Tool) -> Result<f64, String> {
    let no = |why: &str| Err(why.to_owned());
    if tool.is_hedged() {
        return no("calls are hedged");
    }
    if tool.retry.deadline_s.is_finite() {
        return no("a deadline cuts calls short");
    }
    if model.phase.breaker.is_some() && attempts_can_fail(tool) {
        return no("a breaker ends calls");
    }
    if can_miss_tools(model) && matches!(tool.loading, Loading::Search { .. }) {
        return no("some tools may not be found");
    }
    if tool.agent.is_some() && tool.faults.timeout_s.is_finite() {
        return no("an agent's sessions may outlast the timeout");
    }
    let chances = AttemptChances::of(tool);
    Ok(sent_share(tool) * retry::executions(chances.a, chances.b, tool.retry.attempts))
}

/// Of an agent's sessions, the share that finds tools and system in the cache, or why it isn't known. Sessions that
/// start together write the prefix each; those of later phases read it.
fn warm_share(model: &Model, facts: &Facts<'_>, tool: &Tool, agent: &Agent, depth: usize) -> Result<f64, String> {
    let no = |why: &str| Err(why.to_owned());
    let (inner, cache) = (&agent.model, &agent.model.cache);
    let prefix = inner.prompt.definition_tokens() as f64 + inner.prompt.system.mean();
    if !cache.enabled || prefix <= 0.0 || cache.warm_prefix >= 1.0 {
        return Ok(cache.warm_prefix);
    }
    if inner.prompt.system.as_constant().is_none() {
        return no("agents' prefixes are of random size");
    }
    if depth > 0 {
        return no("agents call agents, and which of them find their prefix cached depends on when they start");
    }
    let same = |other: &&Tool| other.agent.as_ref().is_some_and(|other| other.prefix == agent.prefix);
    if model.phase.tools.iter().filter(same).count() > 1 {
        return no("several tools call agents with the same prefix");
    }
    let one_at_a_time = model.phase.one_at_a_time && tool.calls.at_least(2) > 0.0;
    if one_at_a_time || attempts_can_fail(tool) || tool.approval.is_some() || tool.is_hedged() {
        return no("an agent's sessions of one phase don't all start together");
    }
    if tool.calls.at_least(1) < 1.0 || model.searches() {
        return no("some phases call no agent");
    }
    if model.context.compact_at_tokens < u64::MAX || inner.context.compact_at_tokens < u64::MAX {
        return no("summaries may lie between an agent's sessions");
    }
    if !model.conversation.is_single() {
        return no("the user's waits lie between an agent's sessions");
    }
    let call_s = |model: &Model| {
        let timing = &model.timing;
        let per_token_s = timing.prefill_s_per_token.max(timing.cached_prefill_s_per_token);
        Some(fixed_call_s(model)? + largest_prompt(model) * per_token_s)
    };
    let some_phase = model.turns.at_least(2);
    // the last call of an agent begins at most one call and what its phase takes before the phase ends, and its next
    // session at most one call and what that phase takes after it
    let lives = || {
        let left_s = cache.prefix_lifetime_s - call_s(model)? - call_s(inner)?;
        let alone = model.phase.tools.iter().filter(|other| makes_calls(other)).count() == 1;
        let beyond = if alone { 0.0 } else { 2.0 * rare_sf(facts.model, left_s / 2.0) };
        Some(left_s >= 0.0 && beyond * facts.phases() * facts.sessions() <= NO_EVENTS)
    };
    let several_phases = model.turns.at_least(3) > 0.0;
    if several_phases && lives() != Some(true) {
        return no("an agent's prefix may expire between two phases");
    }
    let cold = some_phase / facts.phases();
    Ok(1.0 - cold * (1.0 - cache.warm_prefix))
}

/// Whether chance decides anything that a session or its agents send or are billed.
fn leaves_to_chance(model: &Model) -> bool {
    let warm = model.cache.warm_prefix;
    let facts = Facts::of_theory(model, 1.0);
    (warm > 0.0 && warm < 1.0)
        || !facts.constant_sizes
        || facts.finds_by_chance()
        || model.cache.breaks.any()
        || model.phase.tools.iter().any(|tool| {
            let fails = tool.error > 0.0 || tool.approval.is_some() || attempts_can_fail(tool);
            fails || tool.agent.as_ref().is_some_and(|agent| leaves_to_chance(&agent.model))
        })
}

/// Fees of a session's own tools, $, or why they aren't known.
fn fees(facts: &Facts<'_>) -> Result<f64, String> {
    let mut sum = 0.0;
    for tool in facts.model.phase.tools.iter().filter(|tool| tool.price.0 > 0 && makes_calls(tool)) {
        let paid = if tool.idempotent && attempts_can_fail(tool) {
            return Err("an idempotent tool is paid once however often it is called".to_owned());
        } else {
            executions(facts.model, tool)?
        };
        sum += tool.price.usd() * facts.phases() * tool.calls.mean() * paid;
    }
    Ok(sum)
}

/// Money of one session with all agents below it, $, or why it isn't known.
pub(super) fn expected_usd(model: &Model, sessions: f64) -> Result<f64, String> {
    total(model, sessions, 0, true, &|facts| {
        let Some(tariff) = &facts.model.tariff else { return Err("the scenario has no prices".to_owned()) };
        Ok(expected_input(facts, tariff)? + expected_output(facts, tariff)? + fees(facts)?)
    })
}

/// Whether all of a model's sessions surely end with their answer, or why not.
pub(super) fn always_answers(model: &Model) -> Result<(), String> {
    can_be_cut_short(model).map_or(Ok(()), Err)
}

pub(super) fn check(model: &Model, sample: &Sample, checks: &mut Checks) {
    if !model.has_agents() {
        for id in [TOKENS, COST] {
            checks.refuse(id, "no tool is an agent");
        }
        return;
    }
    let sessions = sample.sessions() as f64;
    let formula = "the caller's own form + Σ sessions of each agent × its own form";
    let pinged = |facts: &Facts<'_>| {
        if facts.model.cache.is_kept_alive() {
            return Err("pings are tokens too".to_owned());
        }
        expected_read(facts)
    };
    for (id, of, quantity, expected) in [
        (TOKENS, "input_tokens", Quantity::InputTokens, total(model, sessions, 0, false, &pinged)),
        (COST, "cost_usd", Quantity::CostUsd, expected_usd(model, sessions)),
    ] {
        match expected {
            Ok(expected) => {
                let check = Check::new(id, formula, of, expected, sample.moments(quantity).estimate());
                if !check.pass && check.se <= 0.0 && leaves_to_chance(model) {
                    checks.refuse(id, "what makes sessions differ is too rare to have been seen in this sample");
                } else {
                    checks.add(Ok(check));
                }
            }
            Err(why) => checks.refuse(id, why),
        }
    }
}
