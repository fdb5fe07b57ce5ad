//! Retried calls: attempts, executions, duplicates, availability, waits.

use super::facts::{AttemptChances, Facts, can_fail, near_normal, sent_share};
use super::{Check, Checks, Events, NO_EVENTS, NotChecked, events};
use crate::model::Tool;
use crate::stats::{Estimate, Quantity, Rate, Sample};
use crate::theory::retry;

pub(super) fn check(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    const ALL: [&str; 5] =
        ["retry.duplicates", "retry.executions", "retry.attempts", "retry.availability", "retry.wait"];
    let tools = &facts.model.phase.tools;
    let why = if tools.is_empty() || sample.moments(Quantity::ToolCalls).max <= 0.0 {
        Some("there are no tool calls")
    } else if !tools.iter().any(can_fail) {
        Some("no call can fail")
    } else if tools.iter().any(|t| t.retry.deadline_s.is_finite()) {
        Some("a deadline cuts calls short")
    } else if facts.model.phase.breaker.is_some() {
        Some("a breaker ends calls")
    } else if facts.can_miss_tools() {
        Some("some tools may not be found")
    } else if cut_by_time(facts) {
        Some("the budget of time can cut calls")
    } else if tools.iter().any(|tool| tool.agent.is_some() && can_fail(tool)) {
        Some("an agent's sessions may end without their answer or outlast the timeout")
    } else if tools.iter().any(Tool::is_hedged) {
        Some("calls are hedged")
    } else {
        None
    };
    if let Some(why) = why {
        for id in ALL {
            checks.refuse(id, why);
        }
        return;
    }
    let calls = sample.moments(Quantity::ToolCalls).mean * facts.sessions();
    let per_call = |of: &dyn Fn(&Tool, AttemptChances) -> f64| {
        let weights: f64 = tools.iter().map(|t| t.calls.mean()).sum();
        tools.iter().map(|t| t.calls.mean() * sent_share(t) * of(t, AttemptChances::of(t))).sum::<f64>() / weights
    };
    let sent = per_call(&|_, _| 1.0);
    // a share of calls is binomial: where fewer events are seen than expected its own error would be too small
    let binomial =
        |share: f64, seen: Estimate| Estimate { se: seen.se.max((share * (1.0 - share) / calls).sqrt()), ..seen };
    let share = |id: &'static str, formula: &str, of: &str, expected: f64, rare: f64, rate: Rate| {
        let seen = sample.ratio(rate).ok_or_else(|| NotChecked { id, why: "there are no tool calls".to_owned() })?;
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
    let available = per_call(&|t, c| (1.0 - retry::unavailability(c.a, c.b, limit(t))) * (1.0 - t.error)) / sent;
    let formula = "(1 − (a+b)^R)·(1 − error)";
    checks.add(share(ALL[3], formula, "availability", available, 1.0 - available, Rate::Availability));
    if tools.iter().all(|t| t.retry.attempts <= 1) {
        checks.refuse(ALL[4], "no call is tried again");
        return;
    }
    let weights: f64 = tools.iter().map(|t| t.calls.mean()).sum();
    let waits: Option<f64> = tools
        .iter()
        .map(|t| {
            let chances = AttemptChances::of(t);
            let waits = retry::wait_per_call(&t.retry, chances.fail(), chances.rejected_share())?;
            Some(t.calls.mean() * sent_share(t) * waits / weights)
        })
        .sum();
    match waits {
        Some(expected) => {
            let formula = "Σ_{k<R} (a+b)^k·E[wait_k]";
            checks.add(share(ALL[4], formula, "retry_wait_s per call", expected, failures, Rate::RetryWaitPerCall));
        }
        None => checks.refuse(ALL[4], "decorrelated waits that reach the cap have no closed form"),
    }
}

/// Attempts and executions of model calls, the same forms. Every call counts for itself, so it doesn't matter what ends
/// sessions.
pub(super) fn check_model(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    let model = facts.model;
    let (faults, limit) = (&model.faults, model.retry.attempts);
    if !faults.any() {
        return;
    }
    let ids = [("retry.attempts", "model attempts per call"), ("retry.executions", "billed model attempts per call")];
    let refuse = |checks: &mut Checks, why: &str| {
        for (id, of) in ids {
            checks.refuse(id, format!("{of}: {why}"));
        }
    };
    let budget = &model.budget;
    if model.retry.deadline_s.is_finite() {
        return refuse(checks, "a deadline cuts calls short");
    }
    if budget.any() {
        return refuse(checks, "the budget can end a call between two attempts");
    }
    let calls = sample.moments(Quantity::ModelCalls).mean * facts.sessions();
    if faults.timeout_s.is_finite() && model_outlasts(facts, faults.timeout_s) * calls > NO_EVENTS {
        return refuse(checks, "how often a model call outlasts its timeout depends on its prompt and output");
    }
    let (a, b) = (faults.lost_request + faults.rejected, faults.lost_reply);
    let expected = [retry::attempts(a, b, limit), retry::executions(a, b, limit)];
    let rates = [Rate::ModelAttemptsPerCall, Rate::ModelExecutionsPerCall];
    let formulas = ["Σ_{k<R}(a+b)^k", "(1−a)·Σ_{k<R}(a+b)^k"];
    for (((id, of), expected), (rate, formula)) in ids.into_iter().zip(expected).zip(rates.into_iter().zip(formulas)) {
        let Some(seen) = sample.ratio(rate) else { continue };
        match events((a + b) * calls, (seen.value - expected) * calls) {
            Events::TooFew(why) => checks.refuse(id, format!("{of}: {why}")),
            Events::None | Events::Enough => {
                // each failed attempt adds one: binomial at least
                let se = seen.se.max(((a + b) * (1.0 - a - b) / calls).sqrt());
                checks.add(Ok(Check::new(id, formula, of, expected, Estimate { se, ..seen })));
            }
        }
    }
}

/// A bound on the chance that a model call lasts longer than this.
fn model_outlasts(facts: &Facts<'_>, limit_s: f64) -> f64 {
    let timing = &facts.model.timing;
    let largest = facts.largest_prompt().max(0.0);
    let prefill_s = largest * timing.prefill_s_per_token.max(timing.cached_prefill_s_per_token);
    let half_s = (limit_s - prefill_s) / 2.0;
    if half_s <= 0.0 {
        return 1.0;
    }
    let writing = timing.output_rate.as_ref().map_or(0.0, |rate| {
        let slow = rate.quantile(1e-13).max(f64::MIN_POSITIVE);
        facts.model.output.at_least((half_s * slow).floor().min(1e18) as u64 + 1)
    });
    timing.first_token_s.sf(half_s) + writing
}

/// `latency.approval`, a form beyond the list: waits for people, summed over calls.
pub(super) fn check_approval(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    const ID: &str = "latency.approval";
    if facts.can_miss_tools() {
        return checks.refuse(ID, "some tools may not be found");
    }
    if cut_by_time(facts) {
        return checks.refuse(ID, "the budget of time can cut calls");
    }
    let tools = &facts.model.phase.tools;
    if tools.iter().all(|tool| tool.approval.is_none()) {
        return;
    }
    if let Some(why) = &facts.cut_short {
        return checks.refuse(ID, why);
    }
    let phases = facts.phases();
    let all = facts.sessions() * phases;
    let mut expected = 0.0;
    for tool in tools {
        let Some(approval) = &tool.approval else { continue };
        let waits = all * tool.calls.mean() * approval.share;
        let enough = match events(waits, 0.0) {
            Events::TooFew(why) => Err(why),
            _ => near_normal(&approval.wait_s, waits.max(1.0)).and_then(|()| facts.turns_near_normal()),
        };
        if let Err(why) = enough {
            return checks.refuse(ID, why);
        }
        expected += phases * tool.calls.mean() * approval.share * approval.wait_s.mean();
    }
    let seen = sample.moments(Quantity::ApprovalS).estimate();
    checks.add(Ok(Check::new(ID, "E[phases]·E[calls]·share·E[wait]", "approval_s", expected, seen)));
}

/// Whether a budget of time ends calls that are under way.
fn cut_by_time(facts: &Facts<'_>) -> bool {
    let budget = &facts.model.budget;
    budget.before && budget.time_s.is_some()
}
