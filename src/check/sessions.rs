//! How long a whole session takes, where that has a closed form.

use super::facts::{Facts, attempts_can_fail, can_fail, fixed_call_s};
use super::phases::{PROBED, makes_calls};
use super::{Check, Checks, Events, events};
use crate::dist::{Dist, Exponential, Gamma, Shifted};
use crate::model::{Model, Tool};
use crate::stats::{Estimate, Metric, Quantity, Sample};
use crate::theory::latency;

/// The law of a whole session's latency: a fixed time plus an Erlang sum, where every phase is the same number of
/// exponential calls one after another.
struct SessionLaw {
    fixed_s: f64,
    mu: f64,
    calls: u64,
}

impl SessionLaw {
    fn of(model: &Model) -> Result<Self, String> {
        let no = |why: &str| Err(why.to_owned());
        if !model.conversation.is_single() {
            return no("the session is a conversation");
        }
        if model.context.compact_at_tokens < u64::MAX {
            return no("summaries take time");
        }
        if model.searches() {
            return no("searches for tools take time");
        }
        let Some(turns) = model.turns.as_constant() else { return no("the number of turns is random") };
        let timing = &model.timing;
        if timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0 {
            return no("prefill takes time that depends on the prompt");
        }
        let Some(call_s) = fixed_call_s(model) else { return no("the time of a model call is random") };
        let used: Vec<&Tool> = model.phase.tools.iter().filter(|t| makes_calls(t)).collect();
        let [tool] = used.as_slice() else { return no("a turn has more than one tool") };
        let (Dist::Exponential(_), Some(m)) = (&tool.latency_s, tool.calls.as_constant()) else {
            return no("it needs one exponential tool with a fixed number of calls");
        };
        if can_fail(tool) || tool.is_hedged() || tool.approval.is_some() {
            return no("calls can fail, time out, be hedged or wait for a person");
        }
        if m > 1 && !model.phase.one_at_a_time {
            return no("a session is a sum of slowest calls");
        }
        let made = turns.min(model.max_turns);
        let phases = if made < turns { made } else { made.saturating_sub(1) };
        if phases == 0 {
            return no("there is no tool phase");
        }
        Ok(Self { fixed_s: made as f64 * call_s, mu: tool.latency_s.mean(), calls: phases * m })
    }

    fn quantile(&self, p: f64) -> f64 {
        self.fixed_s + latency::sequential_quantile(self.mu, self.calls, p)
    }
}

/// A whole session as one sequence of calls, held against every session's latency.
pub(super) fn check(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    const ID: &str = "latency.session";
    let law = match SessionLaw::of(facts.model) {
        Ok(law) if facts.cut_short.is_none() => law,
        Ok(_) => return checks.refuse(ID, facts.cut_short.clone().unwrap_or_default()),
        Err(why) => return checks.refuse(ID, why),
    };
    let seen = sample.moments(Quantity::LatencyS).estimate();
    let expected = law.fixed_s + law.mu * law.calls as f64;
    checks.add(Ok(Check::new(ID, "T·model + (T−1)·m·μ", "latency_s mean", expected, seen)));
    let Some(latency) = Metric::of(Quantity::LatencyS) else { return };
    let n = sample.sessions() as f64;
    for p in PROBED {
        let at_s = law.quantile(p);
        let Some(within) = sample.count_at_most(latency, at_s) else { return };
        let share = within as f64 / n;
        if let Events::TooFew(why) = events((1.0 - p) * n, (share - p) * n) {
            checks.refuse(ID, format!("p{}: {why}", p * 100.0));
            continue;
        }
        let seen = Estimate { value: share, se: (p * (1.0 - p) / n).sqrt(), ci95: [share, share] };
        let of = format!("share of sessions within {at_s:.4} s (p{})", p * 100.0);
        checks.add(Ok(Check::new(ID, "T·model + Erlang quantile", of, p, seen)));
    }
}

/// The law of a session's latency, s, where it is known: a fixed time, or an Erlang sum behind one.
pub(super) fn session_law(model: &Model) -> Option<Dist> {
    if let Some(fixed_s) = fixed_session_s(model) {
        return Some(Dist::constant(fixed_s));
    }
    let law = SessionLaw::of(model).ok()?;
    let sum: Dist = match law.calls {
        1 => Exponential::new(law.mu).ok()?.into(),
        calls => Gamma::new(law.mu * calls as f64, 1.0 / (calls as f64).sqrt()).ok()?.into(),
    };
    Some(if law.fixed_s > 0.0 { Shifted::new(law.fixed_s, sum).into() } else { sum })
}

/// How long every session lasts, s, where nothing in it is left to chance.
fn fixed_session_s(model: &Model) -> Option<f64> {
    let timing = &model.timing;
    let prefill = timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0;
    let more = model.context.compact_at_tokens < u64::MAX || model.searches() || model.phase.breaker.is_some();
    if !model.conversation.is_single() || prefill || more {
        return None;
    }
    let turns = model.turns.as_constant()?;
    let (call_s, phase_s) = (fixed_call_s(model)?, if turns > 1 { fixed_phase_s(model)? } else { 0.0 });
    Some(turns as f64 * call_s + (turns - 1) as f64 * phase_s)
}

/// How long every tool phase lasts, s, where nothing in it is left to chance.
fn fixed_phase_s(model: &Model) -> Option<f64> {
    let phase = &model.phase;
    let mut ends_s = vec![0.0_f64; phase.tools.len()];
    for &index in &phase.order {
        let tool = &phase.tools[index];
        let start_s = phase.after[index].iter().map(|&before| ends_s[before]).fold(0.0, f64::max);
        let calls = tool.calls.as_constant()?;
        let each_s = if calls == 0 {
            0.0
        } else if attempts_can_fail(tool) || tool.is_hedged() || tool.approval.is_some() || tool.agent.is_some() {
            return None;
        } else {
            tool.latency_s.as_constant()?
        };
        ends_s[index] = start_s + if phase.one_at_a_time { each_s * calls as f64 } else { each_s };
    }
    Some(ends_s.into_iter().fold(0.0, f64::max))
}

/// Points (p, seconds) of the quantile curve of a session's latency, where it has a closed form; for a chart.
pub(super) fn session_quantiles(model: &Model, ps: &[f64]) -> Option<Vec<(f64, f64)>> {
    let law = SessionLaw::of(model).ok()?;
    Some(ps.iter().filter(|p| **p > 0.0).map(|p| (*p, law.quantile(*p))).collect())
}
