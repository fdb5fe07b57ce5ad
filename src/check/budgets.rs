//! Budgets: a run that is checked before each call never passes them, and where nothing is left to chance it stops where
//! the worst case says.

use super::facts::{Facts, max_turns_cuts};
use super::gaps::Gaps;
use super::walk::{plans, usd};
use super::{Check, Checks};
use crate::price::Tariff;
use crate::stats::{Quantity, Sample};
use crate::theory::limits;

const ID: &str = "budget.reserve";

pub(super) fn check(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    let model = facts.model;
    let budget = &model.budget;
    if !budget.any() {
        return checks.refuse(ID, "the scenario has no [budget]");
    }
    if !budget.before {
        return checks.refuse(ID, "the budget is checked after each call, and the last one may pass it");
    }
    let largest = |quantity: Quantity| sample.moments(quantity).max;
    let mut bound = |of: &str, formula: &str, most: f64, seen: f64| {
        checks.checks.push(Check::at_most(ID, formula, format!("largest {of}, at most"), most, seen));
    };
    if let Some(dollars) = budget.dollars {
        let formula = "spent + κw·c_in·n + c_out·max_output ≤ budget";
        bound("cost_usd", formula, dollars.usd(), largest(Quantity::CostUsd));
    }
    if let Some(turns) = budget.turns {
        bound("turns", "turns ≤ budget", turns as f64, largest(Quantity::Turns));
    }
    if let Some(tokens) = budget.tokens {
        let formula = "used + n + max_output ≤ budget";
        bound("tokens", formula, tokens as f64, largest(Quantity::TotalTokens));
    }
    if let Some(time_s) = budget.time_s {
        bound("latency_s", "the run is cut when its time is up", time_s, largest(Quantity::LatencyS));
    }
    if let (Some(dollars), Some(tariff)) = (budget.dollars, &model.tariff) {
        match stops_at(facts, tariff, dollars.usd()) {
            Ok((turns, cost_usd)) => {
                for (of, expected, quantity) in
                    [("turns", turns, Quantity::Turns), ("cost_usd", cost_usd, Quantity::CostUsd)]
                {
                    let seen = sample.moments(quantity).estimate();
                    let formula = "by recurrence: stop before spent + κw·c_in·n + c_out·max_output passes the budget";
                    checks.add(Ok(Check::new(ID, formula, of, expected, seen)));
                }
            }
            Err(why) => checks.refuse(ID, format!("where it stops: {why}")),
        }
    }
}

/// (calls, dollars) of a session of fixed sizes that no gap outlasts, stopped by its budget of dollars.
fn stops_at(facts: &Facts<'_>, tariff: &Tariff, dollars: f64) -> Result<(f64, f64), String> {
    let model = facts.model;
    let (cache, budget) = (&model.cache, &model.budget);
    let no = |why: &str| Err(why.to_owned());
    if !facts.constant_sizes {
        return no("sizes are random");
    }
    if max_turns_cuts(model) {
        return no("max_turns can end a conversation before its last message");
    }
    if budget.turns.is_some() || budget.tokens.is_some() || budget.time_s.is_some() {
        return no("there are several limits");
    }
    if facts.grows_unevenly() || facts.calls_agents() || !model.is_played_once() {
        return no("more happens than turns");
    }
    if model.faults.any() || cache.breaks.any() || cache.is_kept_alive() || cache.caches_output {
        return no("more happens than turns");
    }
    if model.phase.tools.iter().any(|tool| tool.price.0 > 0) {
        return no("tools have fees");
    }
    if model.context.compact_at_tokens < u64::MAX || cache.granularity_tokens > 1 || cache.warm_prefix > 0.0 {
        return no("more happens than turns");
    }
    if cache.prefix_lifetime_s > cache.lifetime_s {
        return no("prefix and messages live differently long");
    }
    if cache.enabled && !Gaps::new(facts)?.never_expire() {
        return no("gaps can outlast the cache's lifetime");
    }
    let (mut spent, mut calls, mut cached) = (0.0, 0.0, 0.0_f64);
    let [(_, planned)]: [_; 1] = plans(facts)?.try_into().map_err(|_| "tools are found by chance".to_owned())?;
    for call in planned {
        if call.prompt > model.context.window_tokens {
            break;
        }
        let rates = tariff.rates(tariff.tier_of(call.prompt));
        let n = call.prompt as f64;
        let cacheable = cache.enabled && call.prompt >= cache.min_tokens;
        let write = if cache.enabled { usd(rates.write_messages).max(usd(rates.input)) } else { usd(rates.input) };
        let worst = limits::worst_case(n, write, budget.max_output_tokens as f64, usd(rates.output));
        if spent + worst > dollars * (1.0 + 1e-12) {
            break;
        }
        let hit = if cacheable { cached } else { 0.0 };
        let fresh = if cacheable { usd(rates.write_messages) } else { usd(rates.input) };
        spent += usd(rates.read) * hit + fresh * (n - hit) + usd(rates.output) * call.output as f64;
        cached = if cacheable { n } else { 0.0 };
        calls += 1.0;
    }
    Ok((calls, spent))
}
