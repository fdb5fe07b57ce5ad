//! What the checks know of a model: expectations of its parts, and which assumptions hold.

use super::{Check, NotChecked};
use crate::dist::{Dist, Whole};
use crate::model::{Model, Tool};
use crate::session::Outcome;
use crate::stats::{Quantity, Sample};
use crate::theory::retry;

pub(super) struct Facts<'a> {
    pub model: &'a Model,
    pub sample: &'a Sample,
    /// `E[T]` and `E[T²]` of the calls that are made.
    pub turns: (f64, f64),
    /// Whether all sizes and the number of turns are fixed.
    pub constant_sizes: bool,
    /// Mean growth of the history a turn, or why it isn't known.
    pub growth: Result<f64, String>,
    /// Why sums over turns can't be checked at all, if so.
    pub cut_short: Option<String>,
}

/// One attempt of a tool, in the closed forms' terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptChances {
    /// Not executed: lost on the way or rejected.
    pub a: f64,
    /// Executed, reply lost: by chance, or because it outlasted the timeout.
    pub b: f64,
}

impl AttemptChances {
    pub fn of(tool: &Tool) -> Self {
        let a = tool.lost_request + tool.rejected;
        let late = if tool.timeout_s.is_finite() { tool.latency_s.sf(tool.timeout_s) } else { 0.0 };
        Self { a, b: tool.lost_reply + (1.0 - a - tool.lost_reply) * late }
    }

    pub fn fail(self) -> f64 {
        self.a + self.b
    }
}

/// Mean duration of one attempt, s.
pub(super) fn mean_attempt_s(tool: &Tool) -> f64 {
    let lost = tool.lost_request + tool.lost_reply;
    let served = (1.0 - tool.fault_chance()).max(0.0);
    let mut mean = served * tool.latency_s.mean_up_to(tool.timeout_s);
    if lost > 0.0 {
        mean += lost * tool.timeout_s;
    }
    if tool.rejected > 0.0 {
        mean += tool.rejected * tool.reject_latency_s.mean_up_to(tool.timeout_s);
    }
    mean
}

/// Chance that a call ends with the tool's result, or why it isn't known.
pub(super) fn success_chance(tool: &Tool) -> Result<f64, String> {
    if tool.retry.deadline_s.is_finite() {
        return Err("a deadline cuts calls short".to_owned());
    }
    let fail = retry::unavailability(AttemptChances::of(tool).a, AttemptChances::of(tool).b, tool.retry.attempts);
    Ok((1.0 - fail) * (1.0 - tool.error))
}

/// Whether a mean over `n` draws with this coefficient of variation is near enough to normal for four standard errors
/// to mean something. The skewness of a lognormal law stands for all: `cv³ + 3 cv`.
pub(super) fn near_normal(law: &Dist, n: f64) -> Result<(), String> {
    if law.mean() <= 0.0 { Ok(()) } else { skewness_fits(law.variance().sqrt() / law.mean(), n) }
}

fn skewness_fits(cv: f64, n: f64) -> Result<(), String> {
    if (cv.powi(3) + 3.0 * cv) / n.sqrt() <= 0.2 {
        Ok(())
    } else if cv.is_finite() {
        Err("its tail is too heavy for a normal interval of the mean at this sample size".to_owned())
    } else {
        Err("its variance is infinite, so the mean has no interval".to_owned())
    }
}

impl<'a> Facts<'a> {
    pub fn new(model: &'a Model, sample: &'a Sample) -> Self {
        let turns = model.turns.moments_up_to(model.max_turns);
        let tools = &model.phase.tools;
        let constant = |whole: &Whole| whole.as_constant().is_some();
        let constant_sizes = constant(&model.turns)
            && constant(&model.prompt.system)
            && constant(&model.prompt.task)
            && constant(&model.output)
            && tools.iter().all(|t| {
                constant(&t.calls)
                    && constant(&t.result)
                    && (!can_fail(t) || t.result.as_constant() == Some(t.error_result_tokens))
            });
        let full = sample.ended(Outcome::ContextFull);
        let cut_short =
            (full > 0).then(|| format!("{full} sessions ended because the prompt outgrew the model's window"));
        Self { model, sample, turns, constant_sizes, growth: growth(model), cut_short }
    }

    /// A check of sums over sizes. Where sizes are random and none was seen to differ, what makes them differ was too rare.
    pub fn of_sizes(&self, check: Check) -> Result<Check, NotChecked> {
        if check.pass || check.se > 0.0 || self.constant_sizes {
            return Ok(check);
        }
        let why = "what makes sizes differ is too rare to have been seen in this sample".to_owned();
        Err(NotChecked { id: check.id, why })
    }

    /// Mean of the first prompt, tokens.
    pub fn first_prompt(&self) -> f64 {
        let prompt = &self.model.prompt;
        prompt.definition_tokens() as f64 + prompt.system.mean() + prompt.task.mean()
    }

    /// Whether every prompt, and every prefix where it is read without the rest, is large enough to be cached
    /// (MODEL.md §3.6).
    pub fn always_cacheable(&self) -> Result<(), String> {
        let (prompt, cache) = (&self.model.prompt, &self.model.cache);
        let least = |law: &Whole| law.quantile(1e-9).floor() as u64;
        let prefix = prompt.definition_tokens() + least(&prompt.system);
        if prefix + least(&prompt.task) < cache.min_tokens {
            return Err("first prompts may be below the smallest cacheable size".to_owned());
        }
        let alone = cache.warm_prefix > 0.0 || cache.prefix_lifetime_s > cache.lifetime_s;
        if alone && prefix < cache.min_tokens {
            return Err("tools and system may be below the smallest cacheable size".to_owned());
        }
        Ok(())
    }

    /// Gaps that were seen to expire, over all sessions.
    pub fn expired_gaps(&self) -> f64 {
        self.sample.moments(Quantity::ExpiredGaps).mean * self.sample.sessions() as f64
    }

    /// Mean of tools and system, tokens.
    pub fn prefix(&self) -> f64 {
        self.model.prompt.definition_tokens() as f64 + self.model.prompt.system.mean()
    }

    /// Mean number of tool phases: every call but the answer has one, and a loop stopped by `max_turns` one after each.
    pub fn phases(&self) -> f64 {
        self.turns.0 - (1.0 - self.model.turns.at_least(self.model.max_turns.saturating_add(1)))
    }

    /// Whether the mean number of calls is near enough to normal; `max_turns` cuts a heavy tail.
    pub fn turns_near_normal(&self) -> Result<(), String> {
        let (mean, second) = self.turns;
        let cv = (second / (mean * mean) - 1.0).max(0.0).sqrt();
        skewness_fits(cv, self.sample.sessions() as f64).map_err(|why| format!("turns: {why}"))
    }

    /// Whether the sums over sizes are near enough to normal.
    pub fn sizes_near_normal(&self) -> Result<(), String> {
        let model = self.model;
        let n = self.sample.sessions() as f64;
        self.turns_near_normal()?;
        for (name, law) in [("system", &model.prompt.system), ("task", &model.prompt.task)] {
            near_normal(law.law(), n).map_err(|why| format!("{name}: {why}"))?;
        }
        near_normal(model.output.law(), n * self.turns.0).map_err(|why| format!("output: {why}"))?;
        for tool in &model.phase.tools {
            near_normal(tool.result.law(), n * self.phases().max(1.0) * tool.calls.mean().max(1e-9))
                .map_err(|why| format!("result: {why}"))?;
        }
        Ok(())
    }
}

/// Time of a model call that takes the same each time, prefill apart, s; `None` where it is random.
pub(super) fn fixed_call_s(model: &Model) -> Option<f64> {
    let timing = &model.timing;
    let writing_s = match &timing.output_rate {
        None => 0.0,
        Some(rate) => model.output.as_constant()? as f64 / rate.as_constant()?,
    };
    Some(timing.first_token_s.as_constant()? + writing_s)
}

pub(super) fn can_fail(tool: &Tool) -> bool {
    tool.fault_chance() > 0.0
        || tool.error > 0.0
        || (tool.timeout_s.is_finite() && tool.latency_s.sf(tool.timeout_s) > 0.0)
        || tool.retry.deadline_s.is_finite()
}

fn growth(model: &Model) -> Result<f64, String> {
    let mut growth = model.output.mean();
    for tool in &model.phase.tools {
        let (calls, result, text) = (tool.calls.mean(), tool.result.mean(), tool.error_result_tokens as f64);
        growth += if can_fail(tool) && (result - text).abs() > 0.0 {
            let success = success_chance(tool)?;
            calls * (success * result + (1.0 - success) * text)
        } else {
            calls * result
        };
    }
    Ok(growth)
}
