//! Tokens.

use super::facts::Facts;
use super::{Check, Checks};
use crate::stats::Quantity;
use crate::theory::tokens;

pub(super) fn check(facts: &Facts<'_>, checks: &mut Checks) {
    let (sample, model) = (facts.sample, facts.model);
    let fixed_turns = model.turns.as_constant().is_some();
    let (id, formula) = if fixed_turns {
        ("tokens.read", "T·P0 + s·T(T−1)/2")
    } else {
        ("tokens.geometric", "P0·E[T] + s·(E[T²]−E[T])/2")
    };
    let (mean_t, mean_t2) = facts.turns;
    if facts.sample.moments(Quantity::InputTokens).max <= 0.0 {
        for id in [id, "tokens.definitions", "tokens.reread"] {
            checks.refuse(id, "no tokens are sent");
        }
        return;
    }
    if let Some(why) = &facts.cut_short {
        for id in [id, "tokens.definitions", "tokens.reread"] {
            checks.refuse(id, why);
        }
        return;
    }
    let seen = |quantity: Quantity| sample.moments(quantity).estimate();
    match facts.growth.clone().and_then(|s| facts.sizes_near_normal().map(|()| s)) {
        Ok(s) => {
            let expected = tokens::expected_read(facts.first_prompt(), s, mean_t, mean_t2);
            checks.add(facts.of_sizes(Check::new(id, formula, "input_tokens", expected, seen(Quantity::InputTokens))));
            check_reread(facts, s, checks);
        }
        Err(why) => {
            checks.refuse(id, &why);
            checks.refuse("tokens.reread", why);
        }
    }
    checks.refuse(
        if fixed_turns { "tokens.geometric" } else { "tokens.read" },
        if fixed_turns { "the number of turns is fixed" } else { "the number of turns is random" },
    );
    let definitions = model.prompt.definition_tokens() as f64;
    if definitions > 0.0
        && let Err(why) = facts.turns_near_normal()
    {
        checks.refuse("tokens.definitions", why);
    } else if definitions > 0.0 {
        let expected = tokens::definitions(definitions, mean_t);
        let formula = "servers × tools × tokens per tool × calls";
        let found = seen(Quantity::DefinitionTokens);
        checks.add(facts.of_sizes(Check::new("tokens.definitions", formula, "definition tokens", expected, found)));
    } else {
        checks.refuse("tokens.definitions", "the scenario has no servers");
    }
    if model.output.mean() > 0.0 && facts.sizes_near_normal().is_ok() {
        let expected = mean_t * model.output.mean();
        let found = seen(Quantity::OutputTokens);
        checks.add(facts.of_sizes(Check::new("tokens.output", "E[T]·E[output]", "output_tokens", expected, found)));
    }
}

/// What was read from the cache is what had been sent before, where no gap expires and nothing rounds hits down.
fn check_reread(facts: &Facts<'_>, s: f64, checks: &mut Checks) {
    let cache = &facts.model.cache;
    let expired = facts.sample.moments(Quantity::ExpiredGaps).max > 0.0;
    let why = if !cache.enabled {
        "nothing is read from a cache that is off"
    } else if expired {
        "some gaps outlasted the cache's lifetime"
    } else if cache.granularity_tokens > 1 {
        "hits round down to the model's granularity"
    } else if let Err(why) = facts.always_cacheable() {
        return checks.refuse("tokens.reread", why);
    } else {
        let (mean_t, mean_t2) = facts.turns;
        let expected =
            tokens::expected_reread(facts.first_prompt(), s, mean_t, mean_t2) + cache.warm_prefix * facts.prefix();
        let formula = "(T−1)·P0 + s·(T−1)(T−2)/2";
        let found = facts.sample.moments(Quantity::CacheReadTokens).estimate();
        checks.add(facts.of_sizes(Check::new("tokens.reread", formula, "cache_read_tokens", expected, found)));
        return;
    };
    checks.refuse("tokens.reread", why);
}
