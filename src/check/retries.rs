//! Retried calls: attempts, executions, duplicates, availability, waits.

use super::facts::{AttemptChances, Facts, can_fail};
use super::{Check, Checks, Events, NotChecked, events};
use crate::model::Tool;
use crate::stats::{Estimate, Quantity, Rate};
use crate::theory::retry;

pub(super) fn check(facts: &Facts<'_>, checks: &mut Checks) {
    const ALL: [&str; 5] =
        ["retry.duplicates", "retry.executions", "retry.attempts", "retry.availability", "retry.wait"];
    let tools = &facts.model.phase.tools;
    let why = if tools.is_empty() || facts.sample.moments(Quantity::ToolCalls).max <= 0.0 {
        Some("there are no tool calls")
    } else if !tools.iter().any(can_fail) {
        Some("no call can fail")
    } else if tools.iter().any(|t| t.retry.deadline_s.is_finite()) {
        Some("a deadline cuts calls short")
    } else {
        None
    };
    if let Some(why) = why {
        for id in ALL {
            checks.refuse(id, why);
        }
        return;
    }
    let calls = facts.sample.moments(Quantity::ToolCalls).mean * facts.sample.sessions() as f64;
    let per_call = |of: &dyn Fn(&Tool, AttemptChances) -> f64| {
        let weights: f64 = tools.iter().map(|t| t.calls.mean()).sum();
        tools.iter().map(|t| t.calls.mean() * of(t, AttemptChances::of(t))).sum::<f64>() / weights
    };
    // a share of calls is binomial: where fewer events are seen than expected its own error would be too small
    let binomial =
        |share: f64, seen: Estimate| Estimate { se: seen.se.max((share * (1.0 - share) / calls).sqrt()), ..seen };
    let share = |id: &'static str, formula: &str, of: &str, expected: f64, rare: f64, rate: Rate| {
        let seen =
            facts.sample.ratio(rate).ok_or_else(|| NotChecked { id, why: "there are no tool calls".to_owned() })?;
        // waits are seconds, no share of the calls
        let is_share = rate != Rate::RetryWaitPerCall;
        let off_by = if is_share { (seen.value - expected) * calls } else { 0.0 };
        match events(rare * calls, off_by) {
            Events::TooFew(why) => Err(NotChecked { id, why }),
            Events::Enough if is_share => Ok(Check::new(id, formula, of, expected, binomial(rare, seen))),
            _ => Ok(Check::new(id, formula, of, expected, seen)),
        }
    };
    let limit = |t: &Tool| t.retry.attempts;

    if tools.iter().any(|t| t.retry.attempts > 1 && !t.idempotent) {
        let expected = per_call(&|t, c| if t.idempotent { 0.0 } else { retry::duplicates(c.a, c.b, limit(t)) });
        let formula = "1 − a^R − (1−a−b)(1−a^R)/(1−a) − R·b·a^(R−1)";
        checks.add(share(ALL[0], formula, "duplicates_per_call", expected, expected, Rate::DuplicatesPerCall));
    } else {
        checks.refuse(ALL[0], "no call is sent twice without an idempotency key");
    }
    let failures = per_call(&|_, c| c.fail());
    let executions = per_call(&|t, c| retry::executions(c.a, c.b, limit(t)));
    let formula = "(1−a)·Σ_{k<R}(a+b)^k";
    checks.add(share(ALL[1], formula, "executions_per_call", executions, failures, Rate::ExecutionsPerCall));
    let attempts = per_call(&|t, c| retry::attempts(c.a, c.b, limit(t)));
    checks.add(share(ALL[2], "Σ_{k<R}(a+b)^k", "attempts_per_call", attempts, failures, Rate::AttemptsPerCall));
    let available = per_call(&|t, c| (1.0 - retry::unavailability(c.a, c.b, limit(t))) * (1.0 - t.error));
    let formula = "(1 − (a+b)^R)·(1 − error)";
    checks.add(share(ALL[3], formula, "availability", available, 1.0 - available, Rate::Availability));
    if tools.iter().all(|t| t.retry.attempts <= 1) {
        checks.refuse(ALL[4], "no call is tried again");
        return;
    }
    let weights: f64 = tools.iter().map(|t| t.calls.mean()).sum();
    let waits: Option<f64> = tools
        .iter()
        .map(|t| Some(t.calls.mean() * retry::wait_per_call(&t.retry, AttemptChances::of(t).fail())? / weights))
        .sum();
    match waits {
        Some(expected) => {
            let formula = "Σ_{k<R} (a+b)^k·E[wait_k]";
            checks.add(share(ALL[4], formula, "retry_wait_s per call", expected, failures, Rate::RetryWaitPerCall));
        }
        None => checks.refuse(ALL[4], "decorrelated waits that reach the cap have no closed form"),
    }
}
