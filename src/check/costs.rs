//! Money for input and output.

use super::facts::{Facts, fixed_call_s};
use super::phases::{PhaseLaw, rare_sf};
use super::{Check, Checks, Events, NO_EVENTS, NotChecked, events};
use crate::dist::Whole;
use crate::price::{PicoUsdPerToken, Tariff};
use crate::stats::Quantity;
use crate::theory::cache::{self, Multipliers, Part};
use crate::theory::tokens;

pub(super) fn check(facts: &Facts<'_>, checks: &mut Checks) {
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
    if let Some(why) = &facts.cut_short {
        checks.refuse(id, why);
        return;
    }
    checks.add(input(facts, tariff, id));
    if facts.model.output.mean() > 0.0 && tariff.base.output.0 > 0 {
        checks.add(output(facts, tariff));
    } else {
        checks.refuse("cost.output", "output costs nothing");
    }
}

fn usd(price: PicoUsdPerToken) -> f64 {
    price.0 as f64 / 1e12
}

/// Whether every prompt surely stays below the long-context tier.
fn below_tier(facts: &Facts<'_>, tariff: &Tariff) -> Result<(), String> {
    let Some((from, _)) = tariff.tier else { return Ok(()) };
    let model = facts.model;
    let most = |law: &Whole| law.quantile(1.0 - 1e-9);
    let growth: f64 = most(&model.output)
        + model
            .phase
            .tools
            .iter()
            .map(|t| most(&t.calls) * most(&t.result).max(t.error_result_tokens as f64))
            .sum::<f64>();
    let first = model.prompt.definition_tokens() as f64 + most(&model.prompt.system) + most(&model.prompt.task);
    let turns = most(&model.turns).min(model.max_turns as f64);
    if first + (turns - 1.0) * growth < from as f64 {
        Ok(())
    } else {
        Err(format!("sizes are random and a prompt may reach the long-context prices at {from} tokens"))
    }
}

fn output(facts: &Facts<'_>, tariff: &Tariff) -> Result<Check, NotChecked> {
    let refused = |why: String| NotChecked { id: "cost.output", why };
    let seen = facts.sample.moments(Quantity::CostOutputUsd).estimate();
    if facts.constant_sizes {
        let expected = fixed_prompts(facts)
            .into_iter()
            .map(|n| usd(tariff.rates(tariff.tier_of(n)).output) * facts.model.output.mean())
            .sum();
        return facts.of_sizes(Check::new("cost.output", "c_out·T·output", "cost_output_usd", expected, seen));
    }
    below_tier(facts, tariff).map_err(refused)?;
    facts.sizes_near_normal().map_err(refused)?;
    let expected = usd(tariff.base.output) * facts.turns.0 * facts.model.output.mean();
    facts.of_sizes(Check::new("cost.output", "c_out·E[T]·E[output]", "cost_output_usd", expected, seen))
}

/// The prompt of each call, where all sizes are fixed.
fn fixed_prompts(facts: &Facts<'_>) -> Vec<u64> {
    let growth = facts.growth.clone().unwrap_or(0.0);
    let first = facts.first_prompt();
    (0..facts.turns.0.round() as u64).map(|t| (first + t as f64 * growth).round() as u64).collect()
}

fn input(facts: &Facts<'_>, tariff: &Tariff, id: &'static str) -> Result<Check, NotChecked> {
    let refused = |why: String| NotChecked { id, why };
    let model = facts.model;
    let growth = facts.growth.clone().map_err(refused)?;
    let seen = facts.sample.moments(Quantity::CostInputUsd).estimate();
    let (mean_t, mean_t2) = facts.turns;
    if !model.cache.enabled {
        let expected = if facts.constant_sizes {
            fixed_prompts(facts).into_iter().map(|n| usd(tariff.rates(tariff.tier_of(n)).input) * n as f64).sum()
        } else {
            below_tier(facts, tariff).map_err(refused)?;
            facts.sizes_near_normal().map_err(refused)?;
            let read = tokens::expected_read(facts.first_prompt(), growth, mean_t, mean_t2);
            cache::uncached(usd(tariff.base.input), read)
        };
        return facts.of_sizes(Check::new(id, "c_in·(T·P0 + s·T(T−1)/2)", "cost_input_usd", expected, seen));
    }

    let gaps = Gaps::new(facts).map_err(refused)?;
    if facts.constant_sizes {
        let mut walk = walk(facts, tariff, &gaps);
        let expected_events = walk.expired * facts.sample.sessions() as f64;
        match events(expected_events, facts.expired_gaps() - expected_events) {
            Events::TooFew(_) if expected_events <= NO_EVENTS => {
                walk = self::walk(facts, tariff, &Gaps { law: None, fixed_s: None });
            }
            Events::TooFew(why) => return Err(refused(why)),
            _ => {}
        }
        let formula = if id == "cost.input.cached" {
            "c_in·[κw(n_T + q·R_T) + κr(1−q)·R_T]"
        } else {
            "prefix and messages, each c_in·[κw(n + q·R) + κr(1−q)·R]"
        };
        return facts.of_sizes(Check::new(id, formula, "cost_input_usd", walk.cost_usd, seen));
    }

    // random sizes: the expectation is linear in them only where nothing rounds, no tier bites and gaps don't care
    below_tier(facts, tariff).map_err(refused)?;
    facts.sizes_near_normal().map_err(refused)?;
    let cache = &model.cache;
    if cache.granularity_tokens > 1 {
        return Err(refused("sizes are random and hits round down to the model's granularity".to_owned()));
    }
    facts.always_cacheable().map_err(refused)?;
    let (q_prefix, q_messages) = gaps.same_for_all(facts).map_err(refused)?;
    let (prefix, task) = (facts.prefix(), model.prompt.task.mean());
    let c_in = usd(tariff.base.input);
    let multipliers =
        |write: PicoUsdPerToken| Multipliers { read: usd(tariff.base.read) / c_in, write: usd(write) / c_in };
    let messages_last = task + growth * (mean_t - 1.0);
    let parts = (
        Part {
            last: prefix,
            reread: prefix * (mean_t - 1.0),
            q: q_prefix,
            multipliers: multipliers(tariff.base.write_prefix),
        },
        Part {
            last: messages_last,
            reread: tokens::expected_reread(task, growth, mean_t, mean_t2),
            q: q_messages,
            multipliers: multipliers(tariff.base.write_messages),
        },
    );
    let warm = cache.warm_prefix * prefix * (usd(tariff.base.write_prefix) - usd(tariff.base.read));
    let expected = cache::two_lifetimes(c_in, parts.0, parts.1) - warm;
    let formula = "E over sizes of c_in·[κw(n_T + q·R_T) + κr(1−q)·R_T]";
    facts.of_sizes(Check::new(id, formula, "cost_input_usd", expected, seen))
}

/// The chance that the gap after a call outlasts a lifetime.
struct Gaps<'a> {
    law: Option<PhaseLaw<'a>>,
    /// Fixed time to the first token and for writing, s; `None` where random.
    fixed_s: Option<f64>,
}

impl<'a> Gaps<'a> {
    fn new(facts: &Facts<'a>) -> Result<Self, String> {
        let model = facts.model;
        let law = PhaseLaw::of(model).ok();
        let gaps = Self { law, fixed_s: fixed_call_s(model) };
        if (gaps.law.is_none() || gaps.fixed_s.is_none()) && !Self::never_expires(facts) {
            return Err("the law of the gap between two calls has no closed form here".to_owned());
        }
        Ok(gaps)
    }

    /// Whether no gap in a sample of this size can be expected to outlast the messages' lifetime: the largest prefill
    /// plus three parts of which each stays within a third of what is left.
    fn never_expires(facts: &Facts<'_>) -> bool {
        let model = facts.model;
        let timing = &model.timing;
        let largest = (facts.sample.moments(Quantity::InputTokens).max).max(facts.first_prompt());
        let prefill_s = largest * timing.prefill_s_per_token.max(timing.cached_prefill_s_per_token);
        let third = (model.cache.lifetime_s - prefill_s) / 3.0;
        if third <= 0.0 {
            return false;
        }
        let writing = match &timing.output_rate {
            None => 0.0,
            // o / r > x only if o > √x·c or r < …: split at the rate's low quantile
            Some(rate) => {
                let slow = rate.quantile(1e-13).max(f64::MIN_POSITIVE);
                model.output.law().sf(third * slow)
            }
        };
        let chance = timing.first_token_s.sf(third) + writing + rare_sf(model, third);
        chance * facts.turns.0 * facts.sample.sessions() as f64 <= NO_EVENTS
    }

    /// (prefix expired, messages expired) after a call that took `prefill_s` besides its fixed time.
    fn chances(&self, facts: &Facts<'_>, prefill_s: f64) -> (f64, f64) {
        let (Some(law), Some(fixed_s)) = (&self.law, self.fixed_s) else { return (0.0, 0.0) };
        let cache = &facts.model.cache;
        let beyond = |lifetime_s: f64| {
            let left_s = lifetime_s - fixed_s - prefill_s;
            if left_s < 0.0 { 1.0 } else { law.sf(left_s) }
        };
        (beyond(cache.prefix_lifetime_s), beyond(cache.lifetime_s))
    }

    /// The same chances for every gap, where the call's own time doesn't depend on its prompt.
    fn same_for_all(&self, facts: &Facts<'_>) -> Result<(f64, f64), String> {
        let timing = &facts.model.timing;
        let (prefix, messages) = self.chances(facts, 0.0);
        let gaps = facts.sample.sessions() as f64 * (facts.turns.0 - 1.0);
        if timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0 {
            return if Self::never_expires(facts) {
                Ok((0.0, 0.0))
            } else {
                Err("gaps depend on the prompt through the prefill rate, and sizes are random".to_owned())
            };
        }
        match events(messages * gaps, facts.expired_gaps() - messages * gaps) {
            Events::TooFew(_) if messages * gaps <= NO_EVENTS => Ok((0.0, 0.0)),
            Events::TooFew(why) => Err(why),
            _ => Ok((prefix, messages)),
        }
    }
}

struct Walk {
    cost_usd: f64,
    /// Expected number of expired gaps.
    expired: f64,
}

/// The expected cost of a session of fixed sizes, call by call: what the last call found cached decides how long it
/// took, and so with which chance the next one finds what. With equal chances for all gaps this is the closed form.
fn walk(facts: &Facts<'_>, tariff: &Tariff, gaps: &Gaps<'_>) -> Walk {
    let model = facts.model;
    let (cache, timing) = (&model.cache, &model.timing);
    let prompts = fixed_prompts(facts);
    let prefix = facts.prefix().round() as u64;
    let rounded = |hit: u64| hit - hit % cache.granularity_tokens.max(1);
    let (mut cost_usd, mut expired) = (0.0, 0.0);
    // chance to find nothing, the prefix, everything
    let mut found = [1.0 - cache.warm_prefix, cache.warm_prefix, 0.0];
    let mut before = 0;
    for (index, n) in prompts.iter().copied().enumerate() {
        let rates = tariff.rates(tariff.tier_of(n));
        let cacheable = n >= cache.min_tokens;
        let prefix_hit = if prefix >= cache.min_tokens { prefix } else { 0 };
        let hits = [0, rounded(prefix_hit), rounded(before)].map(|hit| if cacheable { hit } else { 0 });
        let mut next = [0.0; 3];
        for (chance, hit) in found.into_iter().zip(hits) {
            if chance <= 0.0 {
                continue;
            }
            let fresh = n - hit;
            let fresh_prefix = prefix.saturating_sub(hit);
            let money = if cacheable {
                usd(rates.read) * hit as f64
                    + usd(rates.write_prefix) * fresh_prefix as f64
                    + usd(rates.write_messages) * (fresh - fresh_prefix) as f64
            } else {
                usd(rates.input) * n as f64
            };
            cost_usd += chance * money;
            let prefill_s = fresh as f64 * timing.prefill_s_per_token + hit as f64 * timing.cached_prefill_s_per_token;
            let (no_prefix, no_messages) = gaps.chances(facts, prefill_s);
            for (sum, share) in next.iter_mut().zip([no_prefix, no_messages - no_prefix, 1.0 - no_messages]) {
                *sum += chance * share;
            }
        }
        if index + 1 < prompts.len() && cacheable {
            expired += next[0] + next[1];
        }
        before = if cacheable { n } else { 0 };
        found = if cacheable { next } else { [1.0, 0.0, 0.0] };
    }
    Walk { cost_usd, expired }
}
