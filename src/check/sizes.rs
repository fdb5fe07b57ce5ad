//! Tokens.

use super::facts::Facts;
use super::walk::plan;
use super::{Check, Checks};
use crate::stats::Quantity;
use crate::theory::tokens::{self, Talk};

pub(super) fn check(facts: &Facts<'_>, checks: &mut Checks) {
    let (sample, model) = (facts.sample, facts.model);
    let fixed_turns = model.turns.as_constant().is_some() && model.conversation.messages.as_constant().is_some();
    let (id, formula) = if fixed_turns {
        ("tokens.read", "T·P0 + s·T(T−1)/2")
    } else {
        ("tokens.geometric", "P0·E[T] + s·(E[T²]−E[T])/2")
    };
    if facts.sample.moments(Quantity::InputTokens).max <= 0.0 {
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
        let calls = plan(facts);
        let summaries = calls.iter().filter(|call| call.summary).count() as f64;
        let sent: u64 = calls.iter().map(|call| call.prompt).sum();
        let (id, formula) = ("context.compaction", "by recurrence: a summary call, then tools + system + summary");
        for (of, expected, found) in [
            ("summaries", summaries, seen(Quantity::Summaries)),
            ("input_tokens without pings", sent as f64, seen(Quantity::CallTokens)),
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
    let talk = facts.not_just_turns().and_then(|()| facts.talk());
    match talk.and_then(|talk| facts.sizes_near_normal().map(|()| talk)) {
        Ok(talk) => {
            let found = seen(Quantity::CallTokens);
            let of = if model.cache.is_kept_alive() { "input_tokens without pings" } else { "input_tokens" };
            checks.add(facts.of_sizes(Check::new(id, formula, of, talk.read(), found)));
            check_reread(facts, &talk, checks);
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
        && let Err(why) = facts.turns_near_normal().and_then(|()| facts.not_just_turns())
    {
        checks.refuse("tokens.definitions", why);
    } else if definitions > 0.0 {
        let expected = tokens::definitions(definitions, facts.calls());
        let formula = "servers × tools × tokens per tool × calls";
        let found = seen(Quantity::DefinitionTokens);
        checks.add(facts.of_sizes(Check::new("tokens.definitions", formula, "definition tokens", expected, found)));
    } else {
        checks.refuse("tokens.definitions", "the scenario has no servers");
    }
    let just_turns = facts.not_just_turns().is_ok() && !model.cache.is_kept_alive();
    if model.output.mean() > 0.0 && facts.sizes_near_normal().is_ok() && just_turns {
        let expected = facts.calls() * model.output.mean();
        let found = seen(Quantity::OutputTokens);
        checks.add(facts.of_sizes(Check::new("tokens.output", "E[T]·E[output]", "output_tokens", expected, found)));
    }
}

/// What was read from the cache is what had been sent before, where no gap expires and nothing rounds hits down.
fn check_reread(facts: &Facts<'_>, talk: &Talk, checks: &mut Checks) {
    let cache = &facts.model.cache;
    let expired = facts.sample.moments(Quantity::ExpiredGaps).max > 0.0;
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
    } else if let Err(why) = facts.always_cacheable() {
        return checks.refuse("tokens.reread", why);
    } else {
        let expected = talk.reread() + cache.warm_prefix * facts.prefix();
        let formula = "(T−1)·P0 + s·(T−1)(T−2)/2";
        let found = facts.sample.moments(Quantity::CallReadTokens).estimate();
        checks.add(facts.of_sizes(Check::new("tokens.reread", formula, "cache_read_tokens", expected, found)));
        return;
    };
    checks.refuse("tokens.reread", why);
}
