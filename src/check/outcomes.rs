//! Sessions that are served, routed, tried again: shares of equal trials, and what they cost.

use super::agents::{always_answers, expected_usd};
use super::facts::{can_miss_tools, fixed_call_s, largest_prompt};
use super::{Check, Checks, Events, NotChecked, events};
use crate::model::{Loading, Model, SuccessChance};
use crate::session::Outcome;
use crate::stats::{Estimate, Quantity, Rate, Sample};
use crate::theory::outcome;

/// A share of `trials` that are independent: its error is the binomial one, also where few events were seen.
fn share(
    id: &'static str,
    formula: &str,
    of: &str,
    expected: f64,
    seen: Option<Estimate>,
    trials: f64,
) -> Result<Check, NotChecked> {
    let refused = |why: String| NotChecked { id, why };
    let seen = seen.ok_or_else(|| refused("there were none".to_owned()))?;
    match events(expected.min(1.0 - expected) * trials, (seen.value - expected) * trials) {
        Events::TooFew(why) => Err(refused(why)),
        _ => {
            let se = seen.se.max((expected * (1.0 - expected) / trials).sqrt());
            Ok(Check::new(id, formula, of, expected, Estimate { se, ..seen }))
        }
    }
}

/// `search.ceiling`: of the tools that are needed `1 - (1-h)^k` are found.
pub(super) fn check_search(model: &Model, sample: &Sample, checks: &mut Checks) {
    const ID: &str = "search.ceiling";
    let Some(search) = model.search.as_ref().filter(|_| model.searches()) else {
        return checks.refuse(ID, "no tool is searched for");
    };
    let ends = [Outcome::ContextFull, Outcome::Budget, Outcome::Deadline, Outcome::Failed];
    if ends.into_iter().any(|outcome| sample.ended(outcome) > 0) {
        return checks.refuse(ID, "sessions that ended early had no time for all of their searches");
    }
    let ceiling = outcome::search_ceiling(search.hit_rate, search.most);
    let sessions = sample.sessions() as f64;
    let needed = sample.moments(Quantity::ToolsSettled).mean * sessions;
    let found = sample.ratio(Rate::ToolsFound);
    checks.add(share(ID, "1−(1−h)^k", "tools found of those needed", ceiling, found, needed));
    if let Some(all) = all_served(model).filter(|_| model.is_played_once() && always_answers(model).is_ok()) {
        let served = sample.ratio(Rate::Served);
        checks.add(share(ID, "(1−(1−h)^k)^tools", "sessions served", all, served, sessions));
    }
}

/// Chance that a session finds all of its tools, where every session needs every one that is searched for.
fn all_served(model: &Model) -> Option<f64> {
    if agents_search(model) {
        return None;
    }
    let search = model.search.as_ref().filter(|_| model.searches())?;
    let mut tools = model.phase.tools.iter().filter(|tool| matches!(tool.loading, Loading::Search { .. }));
    let always = model.turns.at_least(2) >= 1.0 && tools.clone().all(|tool| tool.calls.at_least(1) >= 1.0);
    let ceiling = outcome::search_ceiling(search.hit_rate, search.most);
    always.then(|| tools.by_ref().fold(1.0, |all, _| all * ceiling))
}

/// Whether agents below a model search for tools.
fn agents_search(model: &Model) -> bool {
    model.agents().any(|agent| agent.any_in_tree(&Model::searches))
}

/// Chance that a try succeeds, or why it isn't known.
fn try_succeeds(model: &Model) -> Result<f64, String> {
    let Some(wanted) = model.success else { return Err("the scenario has no [outcome]".to_owned()) };
    for model in std::iter::once(model).chain(model.routing.as_ref().map(|routing| &*routing.small)) {
        always_answers(model)?;
    }
    let served = match all_served(model) {
        Some(served) => served,
        None if can_miss_tools(model) || agents_search(model) => {
            return Err("a session that lacks a tool doesn't succeed".to_owned());
        }
        None => 1.0,
    };
    Ok(served
        * match wanted.chance {
            SuccessChance::Session(chance) => chance,
            SuccessChance::Turn(chance) => {
                let (turns, messages) = (model.turns.generating(), model.conversation.messages.generating());
                if !turns.is_complete() || !messages.is_complete() {
                    return Err("the number of calls spreads too widely to be summed".to_owned());
                }
                messages.at(turns.at(chance))
            }
        })
}

/// Mean number of tries, or why it isn't known.
fn mean_tries(model: &Model) -> Result<f64, String> {
    let Some(wanted) = model.success else { return Ok(1.0) };
    if wanted.attempts == 1 {
        return Ok(1.0);
    }
    let chance = try_succeeds(model)?;
    Ok((0..wanted.attempts).map(|k| (1.0 - chance).powi(k as i32)).sum())
}

/// `routing`, `outcome.pass_k`.
pub(super) fn check(model: &Model, sample: &Sample, checks: &mut Checks) {
    const ROUTING: &str = "routing";
    const PASS: &str = "outcome.pass_k";
    let sessions = sample.sessions() as f64;
    let tries = sample.moments(Quantity::Tries).mean * sessions;
    match &model.routing {
        None => checks.refuse(ROUTING, "the scenario has no [routing]"),
        Some(routing) => {
            let small = sample.ratio(Rate::RunsOnSmallModel);
            checks.add(share(ROUTING, "share", "tries that begin on the small model", routing.share, small, tries));
            if [Outcome::Budget, Outcome::Deadline].into_iter().any(|outcome| sample.ended(outcome) > 0) {
                checks.refuse(ROUTING, "a budget can stop a session before it is done again");
            } else {
                let (redo, redone) = (routing.share * routing.redo, sample.ratio(Rate::Redone));
                checks.add(share(ROUTING, "share·redo", "tries that are done again", redo, redone, tries));
            }
        }
    }
    if model.is_one_run() {
        return checks.refuse(PASS, "the scenario has no [outcome]");
    }
    let cost = expected_cost(model, sessions);
    if model.routing.is_some() {
        let formula = "E[tries]·[share·C_small + (1−share·(1−redo))·C]";
        let seen = sample.moments(Quantity::CostUsd).estimate();
        match &cost {
            Ok(expected) => checks.add(Ok(Check::new(ROUTING, formula, "cost_usd", *expected, seen))),
            Err(why) => checks.refuse(ROUTING, why),
        }
    }
    let Some(wanted) = model.success else { return checks.refuse(PASS, "the scenario has no [outcome]") };
    let one = match try_succeeds(model) {
        Ok(one) => one,
        Err(why) => return checks.refuse(PASS, why),
    };
    let success = 1.0 - (1.0 - one).powi(wanted.attempts as i32);
    let seen = sample.ratio(Rate::Success);
    checks.add(share(PASS, "1−(1−p)^attempts", "success", success, seen, sessions));
    if wanted.attempts > 1 {
        checks.add(share(PASS, "p", "success per try", one, sample.ratio(Rate::SuccessPerTry), tries));
    }
    if let Some(eight) = sample.pass_k(8) {
        // the error of p^k follows from that of p
        let se = 8.0 * success.powi(7) * (success * (1.0 - success) / sessions).sqrt();
        let expected = outcome::pass_k(success, 8);
        checks.add(match events(expected.min(1.0 - success) * sessions, 0.0) {
            Events::TooFew(why) => Err(NotChecked { id: PASS, why: format!("pass^8: {why}") }),
            _ => Ok(Check::new(PASS, "p^k", "pass^8", expected, Estimate { se, ..eight })),
        });
    }
    match (&cost, sample.ratio(Rate::CostPerSuccess)) {
        (Ok(cost), Some(seen)) if success > 0.0 => {
            let expected = outcome::cost_per_success(*cost, success);
            checks.add(Ok(Check::new(PASS, "E[cost]/p", "cost_per_success_usd", expected, seen)));
        }
        (Err(why), Some(_)) => checks.refuse(PASS, format!("cost per success: {why}")),
        _ => {}
    }
}

/// Whether a model, or an agent below it, has a cache.
fn caches(model: &Model) -> bool {
    model.any_in_tree(&|model| model.cache.enabled)
}

/// The model of a further try, which finds tools and system cached by the one before it.
fn warm_again(model: &Model) -> Result<Model, String> {
    let mut again = model.clone();
    if !caches(model) {
        return Ok(again);
    }
    if model.has_agents() {
        return Err("which agents of a further try find their prompts cached has no closed form here".to_owned());
    }
    let timing = &model.timing;
    let per_token_s = timing.prefill_s_per_token.max(timing.cached_prefill_s_per_token);
    let last_call_s = fixed_call_s(model).map(|call_s| call_s + largest_prompt(model) * per_token_s);
    if last_call_s.is_none_or(|last_call_s| last_call_s > model.cache.prefix_lifetime_s) {
        return Err("a further try may come after the cache's lifetime".to_owned());
    }
    if model.cache.breaks.any() {
        return Err("earlier bytes can change before the next try".to_owned());
    }
    again.cache.warm_prefix = 1.0;
    Ok(again)
}

/// Chances that decide how a session is billed.
fn rare_chances(model: &Model) -> Result<Vec<(&'static str, f64)>, String> {
    let mut chances = Vec::new();
    if let Some(routing) = &model.routing {
        chances.push(("runs on the small model", routing.share));
        chances.push(("runs that are done again", routing.share * routing.redo));
    }
    if model.success.is_some() {
        chances.push(("successes", try_succeeds(model)?));
    }
    Ok(chances)
}

/// Money of a session over all its runs, $, or why it isn't known.
fn expected_cost(model: &Model, sessions: f64) -> Result<f64, String> {
    if model.tariff.is_none() {
        return Err("the scenario has no prices".to_owned());
    }
    for (what, chance) in rare_chances(model)? {
        if let Events::TooFew(why) = events(chance.min(1.0 - chance) * sessions, 0.0) {
            return Err(format!("{what}: {why}"));
        }
    }
    let tries = mean_tries(model)?;
    let first = expected_usd(model, sessions)?;
    match &model.routing {
        None if tries <= 1.0 => Ok(first),
        None => Ok(first + (tries - 1.0) * expected_usd(&warm_again(model)?, sessions)?),
        Some(_) if tries > 1.0 && caches(model) => {
            Err("whether a try finds its model's prompt cached depends on the tries before it".to_owned())
        }
        Some(routing) => {
            let small = expected_usd(&routing.small, sessions)?;
            Ok(tries * (routing.share * small + (1.0 - routing.share * (1.0 - routing.redo)) * first))
        }
    }
}
