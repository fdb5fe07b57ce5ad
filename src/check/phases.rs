//! How long a tool phase lasts.

use super::facts::{
    AttemptChances, Facts, attempts_can_fail, can_fail, can_miss_tools, mean_attempt_s, near_normal, sent_share,
};
use super::{Check, Checks, Events, NotChecked, events};
use crate::dist::{Dist, Generating, survival_integral};
use crate::model::{Model, Tool};
use crate::session::Outcome;
use crate::stats::{Estimate, Quantity, Rate, Sample};
use crate::theory::{latency, retry};

/// A mean of squares of exponential times is near enough to normal from here on.
const FEWEST_FOR_SQUARES: f64 = 20_000.0;

/// With fewer phases than this their mean isn't near enough to normal.
const FEWEST_PHASES: f64 = 100.0;

pub(super) const PROBED: [f64; 3] = [0.5, 0.95, 0.99];

/// The distribution function of a phase: the slowest of independent calls that start together,
/// `Π_i E[F_i(x)^{M_i}]`, or the sum of one tool's exponential calls.
pub(super) struct PhaseLaw<'a> {
    tools: Vec<Used<'a>>,
    /// (mean, calls) of an Erlang sum.
    erlang: Option<(f64, u64)>,
}

/// A tool that makes calls, with what is asked of their number at every point of an integral.
#[derive(Clone)]
struct Used<'a> {
    tool: &'a Tool,
    calls: Generating,
    mean_calls: f64,
}

impl<'a> PhaseLaw<'a> {
    fn together(tools: impl Iterator<Item = &'a Tool>) -> Self {
        let used = |tool: &'a Tool| Used { tool, calls: tool.calls.generating(), mean_calls: tool.calls.mean() };
        let tools = tools.filter(|t| makes_calls(t)).map(used).collect();
        Self { tools, erlang: None }
    }

    /// Of a model, or the assumption that fails.
    pub fn of(model: &'a Model) -> Result<Self, String> {
        let phase = &model.phase;
        let used: Vec<usize> = (0..phase.tools.len()).filter(|index| makes_calls(&phase.tools[*index])).collect();
        let any = |what: &dyn Fn(&Tool) -> bool| used.iter().any(|index| what(&phase.tools[*index]));
        if any(&|tool| tool.agent.is_some()) {
            return Err("the duration of an agent's session has no closed form here".to_owned());
        }
        if can_miss_tools(model) {
            return Err("some tools may not be found".to_owned());
        }
        if any(&|tool| tool.retry.attempts > 1 && attempts_can_fail(tool)) {
            return Err("calls are retried".to_owned());
        }
        if any(&|tool| tool.approval.is_some()) {
            return Err("calls wait for a person".to_owned());
        }
        if phase.breaker.is_some() && any(&attempts_can_fail) {
            return Err("a breaker ends calls".to_owned());
        }
        if any(&|tool| tool.is_hedged() && tool.faults.rejected > 0.0) {
            return Err("hedged calls can be rejected".to_owned());
        }
        if model.budget.before && model.budget.time_s.is_some() {
            return Err("the budget of time can cut a phase".to_owned());
        }
        let law = Self::together(phase.tools.iter());
        if law.tools.iter().any(|used| !used.calls.is_complete()) {
            return Err("the number of calls spreads too widely to be summed".to_owned());
        }
        if let [Used { tool, .. }] = law.tools.as_slice() {
            if !phase.one_at_a_time || tool.calls.as_constant() == Some(1) {
                return Ok(law);
            }
            return match (&tool.latency_s, tool.calls.as_constant()) {
                (Dist::Exponential(_), Some(m)) if !attempts_can_fail(tool) && !tool.is_hedged() => {
                    Ok(Self { tools: law.tools.clone(), erlang: Some((tool.latency_s.mean(), m)) })
                }
                _ => Err("calls run one after another, and their sum has no closed form here".to_owned()),
            };
        }
        if phase.one_at_a_time && used.len() > 1 {
            return Err("tools run one after another, and their sum has no closed form here".to_owned());
        }
        if used.iter().any(|index| !phase.after[*index].is_empty()) {
            return Err("some calls wait for others (`after`)".to_owned());
        }
        Ok(law)
    }

    /// `P(phase > x)`.
    pub fn sf(&self, x: f64) -> f64 {
        if let Some((mu, m)) = self.erlang {
            return 1.0 - latency::sequential_cdf(mu, m, x);
        }
        let log_cdf: f64 = self.tools.iter().map(|used| log_generating(used, call_sf(used.tool, x))).sum();
        -log_cdf.exp_m1()
    }

    fn quantile(&self, p: f64) -> f64 {
        if p <= 0.0 {
            return 0.0;
        }
        let target = 1.0 - p;
        let (mut low, mut high) = (0.0, 1e-6);
        while self.sf(high) > target {
            low = high;
            high *= 2.0;
            if high > 1e15 {
                return f64::INFINITY;
            }
        }
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if self.sf(middle) > target { low = middle } else { high = middle }
        }
        high
    }

    fn hedge_after_s(&self) -> f64 {
        self.tools.first().map_or(f64::INFINITY, |used| used.tool.hedge_after_s)
    }

    fn kinks(&self) -> Vec<f64> {
        self.tools
            .iter()
            .flat_map(|Used { tool: t, .. }| {
                let mut kinks = t.latency_s.kinks();
                kinks.extend([t.faults.timeout_s, t.retry.deadline_s, t.hedge_after_s]);
                if t.is_hedged() {
                    kinks.extend(t.latency_s.kinks().into_iter().map(|x| x + t.hedge_after_s));
                }
                kinks.extend(t.reject_latency_s.kinks());
                kinks
            })
            .filter(|x| x.is_finite())
            .collect()
    }

    fn mean(&self) -> f64 {
        if let Some((mu, m)) = self.erlang {
            return mu * m as f64;
        }
        survival_integral(|x| self.sf(x), |p| self.quantile(p), &self.kinks(), f64::INFINITY)
    }

    /// `2 ∫ x P(phase > x) - mean²`.
    fn variance(&self) -> f64 {
        if let Some((mu, m)) = self.erlang {
            return mu * mu * m as f64;
        }
        let kinks: Vec<f64> = self.kinks().iter().map(|x| x * x).collect();
        let second = survival_integral(|y| self.sf(y.sqrt()), |p| self.quantile(p).powi(2), &kinks, f64::INFINITY);
        (second - self.mean().powi(2)).max(0.0)
    }
}

pub(super) fn makes_calls(tool: &Tool) -> bool {
    tool.calls.as_constant() != Some(0)
}

/// `P(one call lasts longer than x)` for a call that isn't retried.
fn call_sf(tool: &Tool, x: f64) -> f64 {
    if x >= tool.faults.timeout_s.min(tool.retry.deadline_s) {
        return 0.0;
    }
    let lost = tool.faults.lost_request + tool.faults.lost_reply;
    let served = (1.0 - tool.faults.chance()).max(0.0);
    let unanswered = |x: f64| lost + served * tool.latency_s.sf(x);
    let mut sf = unanswered(x);
    if x >= tool.hedge_after_s {
        sf *= unanswered(x - tool.hedge_after_s);
    }
    if tool.faults.rejected > 0.0 {
        sf += tool.faults.rejected * tool.reject_latency_s.sf(x);
    }
    sf
}

/// `ln E[F^M]`, exact for a small `1 - F`.
fn log_generating(used: &Used<'_>, sf: f64) -> f64 {
    match used.tool.calls.as_constant() {
        Some(m) => m as f64 * (-sf).ln_1p(),
        None if sf * used.mean_calls < 1e-9 => -used.mean_calls * sf,
        None => used.calls.at(1.0 - sf).ln(),
    }
}

/// A bound on the chance that a phase lasts longer than `x`: the sum over calls, each with its share of the time.
pub(super) fn rare_sf(model: &Model, x: f64) -> f64 {
    if let Ok(law) = PhaseLaw::of(model) {
        return law.sf(x);
    }
    let tools = &model.phase.tools;
    if tools.iter().any(|tool| tool.agent.is_some() && makes_calls(tool)) {
        return 1.0;
    }
    let share_s = x / tools.len().max(1) as f64;
    tools
        .iter()
        .map(|tool| {
            let people =
                tool.approval.as_ref().map_or(0.0, |a| tool.calls.mean() * a.share * a.wait_s.sf(share_s / 2.0));
            (tool, people, if tool.approval.is_some() { share_s / 2.0 } else { share_s })
        })
        .map(|(tool, people, share_s)| {
            let most_calls = tool.calls.quantile(1.0 - 1e-13);
            let calls_s = if model.phase.one_at_a_time { share_s / most_calls.max(1.0) } else { share_s };
            let attempts = f64::from(tool.retry.attempts);
            let waits_s = (attempts - 1.0) * tool.retry.cap_s;
            let each_s = (calls_s - waits_s) / attempts;
            let longest_s = tool.faults.timeout_s.min(tool.retry.deadline_s);
            people
                + if longest_s.min(tool.retry.deadline_s / attempts) <= each_s || most_calls <= 0.0 {
                    0.0
                } else if each_s <= 0.0 {
                    1.0
                } else {
                    tool.calls.mean() * attempts * call_sf(tool, each_s).min(1.0)
                }
        })
        .sum()
}

pub(super) fn probes_s(model: &Model) -> Vec<f64> {
    if !model.phase.tools.iter().any(makes_calls) {
        return Vec::new();
    }
    PhaseLaw::of(model).map_or_else(
        |_| Vec::new(),
        |law| PROBED.iter().map(|p| law.quantile(*p)).filter(|x| x.is_finite() && *x > 0.0).collect(),
    )
}

pub(super) fn check(facts: &Facts<'_>, sample: &Sample, checks: &mut Checks) {
    const ALL: [&str; 5] =
        ["latency.parallel", "latency.sequential", "latency.timeout", "latency.any", "latency.hedged"];
    let model = facts.model;
    let phase = &model.phase;
    let Some(mean_seen) = sample.ratio(Rate::ToolPhase).filter(|_| phase.tools.iter().any(makes_calls)) else {
        for id in ALL {
            checks.refuse(id, "there is no tool phase");
        }
        return;
    };
    let used: Vec<&Tool> = phase.tools.iter().filter(|t| makes_calls(t)).collect();
    let exponential = match used.as_slice() {
        [tool] => match (&tool.latency_s, tool.calls.as_constant()) {
            (Dist::Exponential(_), Some(m)) => Some((tool.latency_s.mean(), m, *tool)),
            _ => None,
        },
        _ => None,
    };
    let id = match exponential {
        Some((_, 1, tool)) if tool.is_hedged() && !attempts_can_fail(tool) => ALL[4],
        Some((_, _, tool)) if tool.is_hedged() || tool.approval.is_some() => ALL[3],
        Some((_, m, tool)) if !can_fail(tool) && phase.one_at_a_time && m > 1 => ALL[1],
        Some((_, _, tool)) if !can_fail(tool) => ALL[0],
        Some((_, _, tool)) if tool.faults.timeout_s.is_finite() && tool.faults.chance() <= 0.0 => ALL[2],
        _ if phase.one_at_a_time => ALL[1],
        _ => ALL[3],
    };
    for other in ALL.into_iter().filter(|other| *other != id) {
        let why = if other == "latency.hedged" && used.iter().any(|tool| tool.is_hedged()) {
            "it needs one exponential tool with one hedged call that can't fail".to_owned()
        } else {
            why_not(other, exponential.map(|e| e.2), phase.one_at_a_time)
        };
        checks.refuse(other, why);
    }
    let seen = sample.moments(Quantity::Phases).mean * facts.sessions();
    // a phase's own searches, or fees that have to fit, decide whether it is played
    let fees = model.budget.before && model.budget.dollars.is_some() && used.iter().any(|tool| tool.price.0 > 0);
    let chosen = model.searches() || fees;
    let why = if seen < FEWEST_PHASES {
        Some("too few tool phases were played")
    } else if chosen && sample.ended(Outcome::Budget) > 0 {
        Some("the budget decides which phases are played")
    } else {
        None
    };
    if let Some(why) = why {
        return checks.refuse(id, why);
    }
    match PhaseLaw::of(model) {
        Ok(law) => {
            let form = exponential
                .filter(|(_, _, tool)| id == ALL[2] || id == ALL[4] || (id != ALL[3] && !can_fail(tool)))
                .map(|(mu, m, _)| (mu, m));
            check_law(facts, sample, &law, id, form, mean_seen, checks);
        }
        Err(why) => match chain_mean(model) {
            Some(expected) => {
                let phases = facts.sessions() * facts.phases().max(1.0);
                let fine = |t: &&Tool| {
                    near_normal(&t.latency_s, phases)
                        .or_else(|why| capped(t, why))
                        .and_then(|()| enough_faults(t, phases))
                        .and_then(|()| enough_approvals(t, phases))
                };
                match used.iter().try_for_each(fine) {
                    Ok(()) => {
                        checks.add(Ok(Check::new(id, "Σ E[calls]·E[call]", "tool_phase_s mean", expected, mean_seen)));
                    }
                    Err(why) => checks.refuse(id, why),
                }
            }
            None => checks.refuse(id, why),
        },
    }
}

/// Faults that a sample of this size shows seldom or never would leave their mark on the mean and not on its error.
fn enough_faults(tool: &Tool, phases: f64) -> Result<(), String> {
    match events(phases * tool.calls.mean() * AttemptChances::of(tool).fail(), 0.0) {
        Events::TooFew(why) => Err(format!("failed attempts: {why}")),
        _ => Ok(()),
    }
}

/// The same for waits for a person.
fn enough_approvals(tool: &Tool, phases: f64) -> Result<(), String> {
    let Some(approval) = &tool.approval else { return Ok(()) };
    let waits = phases * tool.calls.mean() * approval.share;
    match events(waits, 0.0) {
        Events::TooFew(why) => Err(format!("approvals: {why}")),
        _ => near_normal(&approval.wait_s, waits.max(1.0)).map_err(|why| format!("approvals: {why}")),
    }
}

/// A timeout bounds a heavy tail.
fn capped(tool: &Tool, why: String) -> Result<(), String> {
    if tool.faults.timeout_s.is_finite() { Ok(()) } else { Err(why) }
}

fn why_not(id: &str, exponential: Option<&Tool>, one_at_a_time: bool) -> String {
    match (id, exponential) {
        ("latency.hedged", _) => "the scenario has no hedge_after".to_owned(),
        ("latency.parallel" | "latency.sequential" | "latency.timeout", Some(tool)) if tool.is_hedged() => {
            "calls are hedged".to_owned()
        }
        ("latency.parallel" | "latency.sequential" | "latency.timeout", Some(tool)) if tool.approval.is_some() => {
            "calls wait for a person".to_owned()
        }
        ("latency.any", Some(_)) => "the exponential law has its own form".to_owned(),
        ("latency.any", None) => "calls run one after another".to_owned(),
        ("latency.sequential", _) if !one_at_a_time => "calls run in parallel".to_owned(),
        ("latency.parallel", Some(tool)) if can_fail(tool) => "calls can fail or time out".to_owned(),
        ("latency.parallel", _) if one_at_a_time => "calls run one after another".to_owned(),
        ("latency.timeout", Some(tool)) if tool.faults.chance() > 0.0 => "attempts can be lost or rejected".to_owned(),
        ("latency.timeout", Some(_)) => "no timeout that could bite".to_owned(),
        _ => "it needs one exponential tool with a fixed number of calls".to_owned(),
    }
}

#[allow(clippy::too_many_arguments)] // what is compared, and with what
fn check_law(
    facts: &Facts<'_>,
    sample: &Sample,
    law: &PhaseLaw<'_>,
    id: &'static str,
    exponential: Option<(f64, u64)>,
    mean_seen: Estimate,
    checks: &mut Checks,
) {
    let phases = facts.sessions() * facts.phases();
    let (mean_formula, quantile_formula) = match (id, exponential) {
        ("latency.parallel", Some(_)) => ("μ·H_m", "−μ·ln(1−p^(1/m))"),
        ("latency.sequential", Some(_)) => ("m·μ", "Erlang quantile"),
        ("latency.timeout", Some((_, 1))) => ("μ(1−e^(−τ/μ))", "F⁻¹(p)"),
        ("latency.timeout", Some(_)) => ("∫ 1−F^m up to τ", "F⁻¹(p^(1/m))"),
        ("latency.hedged", _) => ("μ(1−e^(−d/μ)) + μ/2·e^(−d/μ)", "1−S(x)·S(x−d) = p"),
        _ => ("∫ 1−ΠF^m", "(ΠF^m)⁻¹(p)"),
    };
    let heavy = law
        .tools
        .iter()
        .map(|used| used.tool)
        .try_for_each(|t| near_normal(&t.latency_s, phases).or_else(|why| capped(t, why)));
    match heavy {
        Ok(()) => {
            let expected = match (id, exponential) {
                ("latency.parallel", Some((mu, m))) => latency::parallel_mean(mu, m),
                ("latency.hedged", Some((mu, _))) => latency::hedged_mean(mu, law.hedge_after_s()),
                _ => law.mean(),
            };
            // what is too rare to have been seen must not make the estimate look exact
            let se = mean_seen.se.max((law.variance() / phases).sqrt());
            let seen = Estimate { se, ..mean_seen };
            checks.add(Ok(Check::new(id, mean_formula, "tool_phase_s mean", expected, seen)));
        }
        Err(why) => checks.refuse(id, format!("mean: {why}")),
    }
    if let (Some((mu, m)), Some(seen)) = (exponential, sample.ratio(Rate::ToolPhaseSquared)) {
        let second = match id {
            "latency.parallel" => Some(latency::parallel_variance(mu, m) + latency::parallel_mean(mu, m).powi(2)),
            "latency.sequential" => Some(mu * mu * (m + m * m) as f64),
            _ => None,
        };
        if let Some(expected) = second.filter(|_| phases >= FEWEST_FOR_SQUARES) {
            let formula = if id == "latency.parallel" { "μ²·Σ1/i² + (μ·H_m)²" } else { "m·μ² + (m·μ)²" };
            checks.add(Ok(Check::new(id, formula, "tool_phase_s² mean", expected, seen)));
        }
    }
    for (index, p) in PROBED.into_iter().enumerate() {
        let at_s = match (id, exponential) {
            ("latency.parallel", Some((mu, m))) => latency::parallel_quantile(mu, m, p),
            _ => law.quantile(p),
        };
        let Some(seen) = sample.phases_within_probe(index) else { continue };
        let share = 1.0 - law.sf(at_s);
        checks.add(match events((1.0 - share).min(share) * phases, (seen.value - share) * phases) {
            Events::TooFew(why) => Err(NotChecked { id, why: format!("p{}: {why}", p * 100.0) }),
            _ => {
                let of = format!("share of phases within {at_s:.4} s (p{})", p * 100.0);
                // phases are independent where their law is known
                let se = seen.se.max((share * (1.0 - share) / phases).sqrt());
                Ok(Check::new(id, quantile_formula, of, share, Estimate { se, ..seen }))
            }
        });
    }
}

/// The mean of phases whose tools never overlap: each waits for all before it, or there is one. Within a tool the calls
/// run one after another, or are one, or are the slowest of calls that aren't retried.
fn chain_mean(model: &Model) -> Option<f64> {
    let phase = &model.phase;
    if phase.tools.iter().any(|tool| tool.agent.is_some()) || can_miss_tools(model) {
        return None;
    }
    if phase.breaker.is_some() || (model.budget.before && model.budget.time_s.is_some()) {
        return None;
    }
    let mut chain: Option<usize> = None;
    let mut mean = 0.0;
    for &index in &phase.order {
        let tool = &phase.tools[index];
        if !makes_calls(tool) {
            if phase.after.iter().any(|before| before.contains(&index)) {
                return None;
            }
            continue;
        }
        let follows = match (chain, phase.after[index].as_slice()) {
            (None, []) => true,
            (Some(last), before) => before.contains(&last),
            _ => false,
        };
        if !follows {
            return None;
        }
        chain = Some(index);
        mean += tool_mean(tool, phase.one_at_a_time)?;
    }
    Some(mean)
}

fn tool_mean(tool: &Tool, one_at_a_time: bool) -> Option<f64> {
    let retried = tool.retry.attempts > 1 && attempts_can_fail(tool);
    let at_most_one = tool.calls.at_least(2) <= 0.0;
    if one_at_a_time || at_most_one {
        if tool.retry.deadline_s.is_finite() || tool.is_hedged() {
            return None;
        }
        let people = tool.approval.as_ref().map_or(0.0, |approval| approval.share * approval.wait_s.mean());
        let chances = AttemptChances::of(tool);
        let attempts = retry::attempts(chances.a, chances.b, tool.retry.attempts);
        let waits = retry::wait_per_call(&tool.retry, chances.fail(), chances.rejected_share())?;
        return Some(tool.calls.mean() * (people + sent_share(tool) * (attempts * mean_attempt_s(tool) + waits)));
    }
    if retried || tool.approval.is_some() {
        return None;
    }
    Some(PhaseLaw::together(std::iter::once(tool)).mean())
}

/// Points (p, seconds) of the phase's quantile curve, where it has a closed form; for a chart.
pub(super) fn phase_quantiles(model: &Model, ps: &[f64]) -> Option<Vec<(f64, f64)>> {
    if !model.phase.tools.iter().any(makes_calls) {
        return None;
    }
    let law = PhaseLaw::of(model).ok()?;
    Some(ps.iter().map(|p| (*p, law.quantile(*p))).collect())
}
