//! Money for input and output.

use super::facts::{Facts, largest_prompt};
use super::gaps::{Gap, Gaps};
use super::walk::{self, Planned, ping_usd, plans, usd};
use super::{Check, Checks, Events, NO_EVENTS, NotChecked, events};
use crate::model::Model;
use crate::price::{PicoUsdPerToken, Tariff};
use crate::stats::{Quantity, Rate, Sample};
use crate::theory::cache::{self, Multipliers};

pub(super) fn check(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    let ids = ["cost.input.uncached", "cost.input.cached", "cost.input.two_lifetimes"];
    let Some(tariff) = &facts.model.tariff else {
        for id in ids {
            checks.refuse(id, "the scenario has no prices");
        }
        return;
    };
    let cache = &facts.model.cache;
    let two = cache.prefix_lifetime_s > cache.lifetime_s;
    let id = match (cache.enabled, two) {
        (false, _) => ids[0],
        (true, false) => ids[1],
        (true, true) => ids[2],
    };
    for other in ids.into_iter().filter(|other| *other != id) {
        let why = match (other, cache.enabled) {
            ("cost.input.uncached", _) => "the cache is on",
            (_, false) => "the cache is off",
            ("cost.input.two_lifetimes", _) => "prefix and messages live equally long",
            _ => "prefix and messages live differently long",
        };
        checks.refuse(other, why);
    }
    let compacts = facts.model.context.compact_at_tokens < u64::MAX;
    let id = if compacts { "context.compaction" } else { id };
    if let Some(why) = facts.cut_short.clone().or_else(|| rebilled(facts)) {
        for id in [id, "cost.output"] {
            checks.refuse(id, &why);
        }
        return;
    }
    checks.add(input(facts, sample, tariff, id));
    if facts.model.output.mean() > 0.0 && tariff.base.output.0 > 0 {
        checks.add(output(facts, sample, tariff));
    } else {
        checks.refuse("cost.output", "output costs nothing");
    }
}

fn rebilled(facts: &Facts<'_>) -> Option<String> {
    facts.rebills().then(|| "model calls whose reply is lost are billed too".to_owned())
}

/// `cache.keep_alive`: pings a gap.
pub(super) fn check_pings(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    const ID: &str = "cache.keep_alive";
    if !facts.model.cache.is_kept_alive() {
        return checks.refuse(ID, "the scenario has no keep_alive");
    }
    if let Some(why) = &facts.cut_short {
        return checks.refuse(ID, why);
    }
    checks.add(pings(facts).map_err(|why| NotChecked { id: ID, why }).and_then(|(pings, gaps)| {
        let seen = sample
            .ratio(Rate::PingsPerGap)
            .ok_or_else(|| NotChecked { id: ID, why: "there are no gaps".to_owned() })?;
        let expected = pings / gaps;
        let events_expected = pings * facts.sessions();
        match events(events_expected, (seen.value - expected) * gaps * facts.sessions()) {
            Events::TooFew(why) => Err(NotChecked { id: ID, why }),
            _ => Ok(Check::new(ID, "Σ_k P(gap ≥ kδ); 1/(e^(δ/g)−1) if exponential", "pings per gap", expected, seen)),
        }
    }));
}

/// (pings, gaps) a session.
fn pings(facts: &Facts<'_>) -> Result<(f64, f64), String> {
    let gaps = Gaps::new(facts)?;
    let timing = &facts.model.timing;
    let has_prefill = timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0;
    if has_prefill {
        return Err("gaps depend on the prompt through the prefill rate".to_owned());
    }
    facts.not_just_turns()?;
    facts.always_cacheable()?;
    let thinks = facts.messages.0 - 1.0;
    let tools = facts.calls() - facts.messages.0;
    facts.waits_near_normal()?;
    let pings = gaps.weighted_pings(facts, [(tools, Gap::Tools), (thinks, Gap::Think)])?;
    Ok((pings, tools + thinks))
}

/// Whether every prompt surely stays below the long-context tier.
fn below_tier(facts: &Facts<'_>, tariff: &Tariff) -> Result<(), String> {
    let Some((from, _)) = tariff.tier else { return Ok(()) };
    if largest_prompt(facts.model) < from as f64 {
        Ok(())
    } else {
        Err(format!("sizes are random and a prompt may reach the long-context prices at {from} tokens"))
    }
}

/// What a scenario of random sizes mustn't have for its expectations to be linear in them.
fn linear(facts: &Facts<'_>, tariff: &Tariff) -> Result<(), String> {
    below_tier(facts, tariff)?;
    facts.not_just_turns()?;
    facts.sizes_near_normal()
}

fn output(facts: &Facts<'_>, sample: &Sample, tariff: &Tariff) -> Result<Check, NotChecked> {
    let expected = expected_output(facts, tariff).map_err(|why| NotChecked { id: "cost.output", why })?;
    let seen = sample.moments(facts.own(Quantity::CostOutputUsd)).estimate();
    let formula = if facts.constant_sizes { "c_out·T·output" } else { "c_out·E[T]·E[output]" };
    facts.of_sizes(Check::new("cost.output", formula, "cost_output_usd", expected, seen))
}

/// Money for the output of a session, or why it isn't known.
pub(super) fn expected_output(facts: &Facts<'_>, tariff: &Tariff) -> Result<f64, String> {
    let pinged = facts.model.cache.is_kept_alive();
    if facts.constant_sizes {
        let money = |c: &Planned| usd(tariff.rates(tariff.tier_of(c.prompt)).output) * c.output as f64;
        let mut expected = walk::expected(&plans(facts)?, money);
        if pinged {
            expected += ping_usd(facts, tariff, &Gaps::new(facts)?)?.1;
        }
        return Ok(expected);
    }
    linear(facts, tariff)?;
    let mut tokens = facts.calls() * facts.model.output.mean();
    if pinged {
        tokens += pings(facts)?.0;
    }
    Ok(usd(tariff.base.output) * tokens)
}

/// Money for the input of a session, or why it isn't known.
pub(super) fn expected_input(facts: &Facts<'_>, tariff: &Tariff) -> Result<f64, String> {
    facts.growth.clone()?;
    facts.enough_of_both_beginnings()?;
    if facts.constant_sizes {
        return fixed_input(facts, tariff);
    }
    linear(facts, tariff)?;
    if !facts.model.cache.enabled {
        return Ok(cache::uncached(usd(tariff.base.input), facts.talk()?.read()));
    }
    random_input(facts, tariff)
}

fn input(facts: &Facts<'_>, sample: &Sample, tariff: &Tariff, id: &'static str) -> Result<Check, NotChecked> {
    let expected = expected_input(facts, tariff).map_err(|why| NotChecked { id, why })?;
    let seen = sample.moments(facts.own(Quantity::CostInputUsd)).estimate();
    let formula = if facts.constant_sizes {
        match id {
            "cost.input.uncached" => "c_in·(T·P0 + s·T(T−1)/2)",
            "cost.input.cached" => "c_in·[κw(n_T + q·R_T) + κr(1−q)·R_T]",
            "context.compaction" => "by recurrence: a summary call, then tools + system + summary",
            _ => "prefix and messages, each c_in·[κw(n + q·R) + κr(1−q)·R]",
        }
    } else if facts.model.cache.enabled {
        "E over sizes of c_in·[κw(n_T + q·R_T) + κr(1−q)·R_T]"
    } else {
        "c_in·(T·P0 + s·T(T−1)/2)"
    };
    facts.of_sizes(Check::new(id, formula, "cost_input_usd", expected, seen))
}

/// Money for the input of a session of fixed sizes.
fn fixed_input(facts: &Facts<'_>, tariff: &Tariff) -> Result<f64, String> {
    if let Some(expected) = compacted(facts, tariff) {
        return Ok(expected);
    }
    if !facts.model.cache.enabled {
        let money = |c: &Planned| usd(tariff.rates(tariff.tier_of(c.prompt)).input) * c.prompt as f64;
        return Ok(walk::expected(&plans(facts)?, money));
    }
    let mut gaps = Gaps::new(facts)?;
    let mut walk = walk::walk(facts, tariff, &gaps)?;
    let expected_events = walk.expired * facts.sessions();
    match events(expected_events, facts.expired_beyond(expected_events)) {
        Events::TooFew(_) if expected_events <= NO_EVENTS => {
            gaps = gaps.never();
            walk = walk::walk(facts, tariff, &gaps)?;
        }
        Events::TooFew(why) => return Err(why),
        _ => {}
    }
    Ok(walk.input_usd + ping_usd(facts, tariff, &gaps)?.0)
}

/// `context.compaction` where nothing but summaries happens.
fn compacted(facts: &Facts<'_>, tariff: &Tariff) -> Option<f64> {
    let model: &Model = facts.model;
    let (context, cache) = (&model.context, &model.cache);
    let simple = context.compact_at_tokens < u64::MAX
        && model.conversation.is_single()
        && !facts.grows_unevenly()
        && tariff.tier.is_none()
        && cache.granularity_tokens <= 1
        && cache.warm_prefix <= 0.0
        && !cache.breaks.any()
        && !cache.is_kept_alive()
        && !cache.caches_output
        && cache.prefix_lifetime_s <= cache.lifetime_s
        && facts.prefix() >= cache.min_tokens as f64
        && (!cache.enabled || Gaps::new(facts).is_ok_and(|gaps| gaps.never_expire()));
    if !simple {
        return None;
    }
    let c_in = usd(tariff.base.input);
    let of = |price: PicoUsdPerToken| if c_in > 0.0 { usd(price) / c_in } else { 0.0 };
    let multipliers = Multipliers { read: of(tariff.base.read), write: of(tariff.base.write_messages) };
    let (units, _) = cache::compaction(&cache::Compaction {
        fixed: facts.prefix(),
        task: model.prompt.task.mean(),
        growth: facts.growth.clone().ok()?,
        turns: facts.turns.0.round() as u64,
        compact_at: context.compact_at_tokens as f64,
        summary: context.summary_tokens as f64,
        multipliers: cache.enabled.then_some(multipliers),
    });
    Some(c_in * units)
}

/// Expected money for the input of a session of random sizes with a cache.
fn random_input(facts: &Facts<'_>, tariff: &Tariff) -> Result<f64, String> {
    let cache = &facts.model.cache;
    if cache.granularity_tokens > 1 {
        return Err("sizes are random and hits round down to the model's granularity".to_owned());
    }
    if cache.caches_output {
        return Err("sizes are random and outputs are cached at once".to_owned());
    }
    facts.always_cacheable()?;
    let talk = facts.talk()?;
    let gaps = Gaps::new(facts)?;
    let [tools, think] = gaps.same_for_all(facts)?;
    let thinks = talk.thinks();
    let steps = talk.calls() - 1.0 - thinks;
    // tokens of each part that are sent again after a tool phase and after the user's wait
    let definitions = facts.model.prompt.definition_tokens() as f64;
    let system = facts.prefix() - definitions;
    let after_think = talk.reread_after_think();
    let after_tools = talk.reread() - after_think;
    let messages = (after_tools - steps * facts.prefix(), after_think - thinks * facts.prefix());
    let breaks = &cache.breaks;
    let (no_tools, no_system) = (1.0 - breaks.tools, 1.0 - breaks.system);
    let all_kept = no_tools * no_system;
    // of the messages a break of the history keeps half, less half a token
    let parts = [
        ((definitions * steps, definitions * thinks), definitions, true, no_tools, 0.0),
        ((system * steps, system * thinks), system, true, all_kept, 0.0),
        (
            messages,
            talk.last_prompt() - facts.prefix(),
            false,
            all_kept * (1.0 - breaks.history / 2.0),
            all_kept * breaks.history / 2.0,
        ),
    ];
    let c_in = usd(tariff.base.input);
    let multiplier = |price: PicoUsdPerToken| if c_in > 0.0 { usd(price) / c_in } else { 0.0 };
    let mut money = 0.0;
    for ((reread_tools, reread_think), last, in_prefix, kept, lost_tokens) in parts {
        let alive = |chances: (f64, f64)| 1.0 - if in_prefix { chances.0 } else { chances.1 };
        let reread = reread_tools + reread_think;
        let read = (reread_tools * alive(tools) + reread_think * alive(think)) * kept
            - lost_tokens * (steps * alive(tools) + thinks * alive(think));
        let write = if in_prefix { tariff.base.write_prefix } else { tariff.base.write_messages };
        let multipliers = Multipliers { read: multiplier(tariff.base.read), write: multiplier(write) };
        let q = if reread > 0.0 { 1.0 - read / reread } else { 0.0 };
        money += cache::cached(c_in, multipliers, last, reread, q);
    }
    let warm = cache.warm_prefix * facts.prefix() * (usd(tariff.base.write_prefix) - usd(tariff.base.read));
    if cache.is_kept_alive() {
        facts.waits_near_normal()?;
        let read = gaps.weighted_pings(facts, [(after_tools, Gap::Tools), (after_think, Gap::Think)])?;
        money += usd(tariff.base.read) * read;
    }
    Ok(money - warm)
}
