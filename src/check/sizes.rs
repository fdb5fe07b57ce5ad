//! Tokens.

use super::facts::Facts;
use super::walk::{expected, plans};
use super::{Check, Checks};
use crate::stats::{Quantity, Sample};
use crate::theory::tokens::{self, Talk};

pub(super) fn check(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    let model = facts.model;
    let fixed_turns = model.turns.as_constant().is_some() && model.conversation.messages.as_constant().is_some();
    let (id, formula) = if fixed_turns {
        ("tokens.read", "T·P0 + s·T(T−1)/2")
    } else {
        ("tokens.geometric", "P0·E[T] + s·(E[T²]−E[T])/2")
    };
    if sample.moments(facts.own(Quantity::InputTokens)).max <= 0.0 {
        for id in [id, "tokens.definitions", "tokens.reread"] {
            checks.refuse(id, "no tokens are sent");
        }
        return;
    }
    let compacts = model.context.compact_at_tokens < u64::MAX;
    if let Some(why) = &facts.cut_short {
        if compacts {
            checks.refuse("context.compaction", why);
        }
        for id in [id, "tokens.definitions", "tokens.reread"] {
            checks.refuse(id, why);
        }
        return;
    }
    let seen = |quantity: Quantity| sample.moments(quantity).estimate();
    if compacts && facts.constant_sizes {
        let plans = match plans(facts) {
            Ok(plans) => plans,
            Err(why) => return checks.refuse("context.compaction", why),
        };
        let summaries = expected(&plans, |call| f64::from(u8::from(call.summary)));
        let sent = expected(&plans, |call| call.prompt as f64);
        let (id, formula) = ("context.compaction", "by recurrence: a summary call, then tools + system + summary");
        for (of, expected, found) in [
            ("summaries", summaries, seen(Quantity::Summaries)),
            ("input_tokens without pings", sent, seen(Quantity::CallTokens)),
        ] {
            if facts.rebills() && of != "summaries" {
                checks.refuse(id, "model calls whose reply is lost are billed too");
                continue;
            }
            checks.add(facts.of_sizes(Check::new(id, formula, of, expected, found)));
        }
    } else {
        checks
            .refuse("context.compaction", if compacts { "sizes are random" } else { "the scenario has no compact_at" });
    }
    let of = if model.cache.is_kept_alive() { "input_tokens without pings" } else { "input_tokens" };
    match expected_read(facts) {
        Ok(read) => {
            let formula = if facts.grows_unevenly() { "Σ of all prompts, call by call" } else { formula };
            checks.add(facts.of_sizes(Check::new(id, formula, of, read, seen(Quantity::CallTokens))));
        }
        Err(why) => checks.refuse(id, why),
    }
    match facts.not_just_turns().and_then(|()| facts.sizes_near_normal()).and_then(|()| facts.talk()) {
        Ok(talk) => check_reread(facts, sample, &talk, checks),
        Err(why) => checks.refuse("tokens.reread", why),
    }
    checks.refuse(
        if fixed_turns { "tokens.geometric" } else { "tokens.read" },
        if fixed_turns { "the number of turns is fixed" } else { "the number of turns is random" },
    );
    let definitions = model.prompt.definition_tokens() as f64;
    if definitions > 0.0
        && let Err(why) = definition_calls(facts)
    {
        checks.refuse("tokens.definitions", why);
    } else if definitions > 0.0 {
        let expected = tokens::definitions(definitions, definition_calls(facts).unwrap_or(f64::NAN));
        let formula = "servers × tools × tokens per tool × calls";
        let found = seen(Quantity::DefinitionTokens);
        checks.add(facts.of_sizes(Check::new("tokens.definitions", formula, "definition tokens", expected, found)));
    } else {
        checks.refuse("tokens.definitions", "the scenario has no servers");
    }
    let just_turns = facts.not_just_turns().is_ok() && !model.cache.is_kept_alive();
    if model.output.mean() > 0.0 && facts.sizes_near_normal().is_ok() && just_turns {
        let expected = facts.calls() * model.output.mean();
        let found = seen(facts.own(Quantity::OutputTokens));
        checks.add(facts.of_sizes(Check::new("tokens.output", "E[T]·E[output]", "output_tokens", expected, found)));
    }
}

/// Mean of all tokens that a session sends, pings not counted, or why it isn't known.
pub(super) fn expected_read(facts: &Facts<'_>) -> Result<f64, String> {
    if facts.grows_unevenly() && facts.constant_sizes {
        return Ok(expected(&plans(facts)?, |call| call.prompt as f64));
    }
    facts.not_just_turns()?;
    facts.sizes_near_normal()?;
    Ok(facts.talk()?.read())
}

/// How many turns send the definitions, or why that isn't known.
fn definition_calls(facts: &Facts<'_>) -> Result<f64, String> {
    if !facts.grows_unevenly() || !facts.constant_sizes {
        facts.turns_near_normal()?;
        facts.not_just_turns()?;
    }
    Ok(facts.calls())
}

/// What was read from the cache is what had been sent before, where no gap expires and nothing rounds hits down.
fn check_reread(facts: &Facts<'_>, sample: &Sample, talk: &Talk, checks: &mut Checks) {
    let cache = &facts.model.cache;
    let expired = sample.moments(Quantity::ExpiredGaps).max > 0.0;
    let why = if !cache.enabled {
        "nothing is read from a cache that is off"
    } else if expired {
        "some gaps outlasted the cache's lifetime"
    } else if cache.breaks.any() {
        "earlier bytes can change"
    } else if cache.caches_output {
        "outputs are cached at once"
    } else if cache.granularity_tokens > 1 {
        "hits round down to the model's granularity"
    } else if let Err(why) = facts.always_cacheable().and_then(|()| facts.enough_of_both_beginnings()) {
        return checks.refuse("tokens.reread", why);
    } else {
        let expected = talk.reread() + cache.warm_prefix * facts.prefix();
        let formula = "(T−1)·P0 + s·(T−1)(T−2)/2";
        let found = sample.moments(Quantity::CallReadTokens).estimate();
        checks.add(facts.of_sizes(Check::new("tokens.reread", formula, "cache_read_tokens", expected, found)));
        return;
    };
    checks.refuse("tokens.reread", why);
}
