//! What the checks know of a model: expectations of its parts, and which assumptions hold.

use super::{Check, Events, NotChecked, events};
use crate::dist::{Dist, Whole};
use crate::model::{Agent, Loading, Model, Search, Tool};
use crate::session::Outcome;
use crate::stats::{Quantity, Sample};
use crate::theory::retry;
use crate::theory::tokens::Talk;

/// What was seen of a model's sessions.
#[derive(Clone, Copy)]
pub(super) enum Seen<'a> {
    /// A sample; agents that the model called are counted apart where there were any.
    Sample(&'a Sample, bool),
    /// Nothing: the sessions are part of other sessions. About so many were played.
    Nothing(f64),
}

pub(super) struct Facts<'a> {
    pub model: &'a Model,
    pub seen: Seen<'a>,
    /// `E[T]` and `E[T²]` of the calls that a message takes.
    pub turns: (f64, f64),
    /// `E[M]` and `E[M²]` of the messages.
    pub messages: (f64, f64),
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
    /// Rejected: a part of `a`.
    rejected: f64,
}

impl AttemptChances {
    pub fn of(tool: &Tool) -> Self {
        let a = tool.faults.lost_request + tool.faults.rejected;
        let late = if tool.faults.timeout_s.is_finite() { tool.latency_s.sf(tool.faults.timeout_s) } else { 0.0 };
        let b = tool.faults.lost_reply + (1.0 - a - tool.faults.lost_reply) * late;
        Self { a, b, rejected: tool.faults.rejected }
    }

    pub fn fail(self) -> f64 {
        self.a + self.b
    }

    /// Of the failures, those that are rejections.
    pub fn rejected_share(self) -> f64 {
        if self.fail() > 0.0 { self.rejected / self.fail() } else { 0.0 }
    }
}

/// Mean duration of one attempt, s.
pub(super) fn mean_attempt_s(tool: &Tool) -> f64 {
    let lost = tool.faults.lost_request + tool.faults.lost_reply;
    let served = (1.0 - tool.faults.chance()).max(0.0);
    let mut mean = served * tool.latency_s.mean_up_to(tool.faults.timeout_s);
    if lost > 0.0 {
        mean += lost * tool.faults.timeout_s;
    }
    if tool.faults.rejected > 0.0 {
        mean += tool.faults.rejected * tool.reject_latency_s.mean_up_to(tool.faults.timeout_s);
    }
    mean
}

/// Chance that a call ends with the tool's result, or why it isn't known.
pub(super) fn success_chance(tool: &Tool) -> Result<f64, String> {
    if tool.retry.deadline_s.is_finite() {
        return Err("a deadline cuts calls short".to_owned());
    }
    if tool.is_hedged() && attempts_can_fail(tool) {
        return Err("calls are hedged and can fail".to_owned());
    }
    if let Some(agent) = &tool.agent {
        if !surely_answers(agent) {
            return Err("an agent's sessions may end without their answer".to_owned());
        }
        if tool.faults.timeout_s.is_finite() {
            return Err("an agent's sessions may outlast the timeout".to_owned());
        }
    }
    let sent = sent_share(tool);
    let fail = retry::unavailability(AttemptChances::of(tool).a, AttemptChances::of(tool).b, tool.retry.attempts);
    Ok(sent * (1.0 - fail) * (1.0 - tool.error))
}

/// Of a tool's calls, those that a person doesn't forbid.
pub(super) fn sent_share(tool: &Tool) -> f64 {
    tool.approval.as_ref().map_or(1.0, |approval| 1.0 - approval.share * approval.denied)
}

/// Whether a mean over `n` draws with this coefficient of variation is near enough to normal for four standard errors
/// to mean something. The skewness of a lognormal law stands for all: `cv³ + 3 cv`.
pub(super) fn near_normal(law: &Dist, n: f64) -> Result<(), String> {
    if law.mean() <= 0.0 { Ok(()) } else { skewness_fits(law.variance().sqrt() / law.mean(), n) }
}

/// The same for a rounded law that may be cut from above.
fn whole_near_normal(law: &Whole, n: f64) -> Result<(), String> {
    let mean = law.mean();
    if mean <= 0.0 { Ok(()) } else { skewness_fits(law.variance().sqrt() / mean, n) }
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
    /// Of sessions that were played by themselves. `has_agents` is whether they called agents, whose money and tokens
    /// are then left out.
    pub fn of_sample(model: &'a Model, sample: &'a Sample, has_agents: bool) -> Self {
        Self::new(model, Seen::Sample(sample, has_agents), cut_short(model, sample))
    }

    /// Of about so many sessions of which nothing was seen by itself.
    pub fn of_theory(model: &'a Model, sessions: f64) -> Self {
        Self::new(model, Seen::Nothing(sessions), can_be_cut_short(model))
    }

    fn new(model: &'a Model, seen: Seen<'a>, cut_short: Option<String>) -> Self {
        let turns = model.turns.moments_up_to(model.max_turns);
        let tools = &model.phase.tools;
        let constant = |whole: &Whole| whole.as_constant().is_some();
        let talk = &model.conversation;
        let messages = (talk.messages.mean(), talk.messages.second_moment());
        let constant_sizes = constant(&model.turns)
            && constant(&talk.messages)
            && (talk.is_single() || constant(&talk.message))
            && constant(&model.prompt.system)
            && constant(&model.prompt.task)
            && constant(&model.output)
            && tools.iter().all(|t| {
                constant(&t.calls)
                    && constant(&t.result)
                    && (!can_fail(t) || t.result.as_constant() == Some(t.error_result_tokens))
            });
        Self { model, seen, turns, messages, constant_sizes, growth: growth(model), cut_short }
    }

    /// The sums over a session's calls, where the growth of its history is known.
    pub fn talk(&self) -> Result<Talk, String> {
        let growth = self.growth.clone()?;
        Ok(Talk {
            p0: self.first_prompt(),
            s: growth,
            between: self.model.output.mean() + self.model.conversation.message.mean(),
            turns: self.turns,
            messages: self.messages,
        })
    }

    /// Mean number of calls.
    pub fn calls(&self) -> f64 {
        self.turns.0 * self.messages.0
    }

    /// Why sums over sizes don't follow from the number of calls, if so.
    pub fn not_just_turns(&self) -> Result<(), String> {
        let summarised = match self.seen {
            Seen::Sample(sample, _) => sample.moments(Quantity::Summaries).max > 0.0,
            Seen::Nothing(_) => largest_prompt(self.model) > self.model.context.compact_at_tokens as f64,
        };
        if summarised {
            return Err("prompts are summarised; see context.compaction".to_owned());
        }
        if self.rebills() {
            return Err("model calls whose reply is lost are billed too".to_owned());
        }
        if self.grows_unevenly() {
            return Err("the history doesn't grow evenly: tools are searched for or called from code".to_owned());
        }
        Ok(())
    }

    /// Whether the history grows more in some phases than in others: tools are found, or their definitions read.
    pub fn grows_unevenly(&self) -> bool {
        self.model.searches() || !self.model.phase.code.is_empty()
    }

    /// Whether chance decides how often tools are searched for.
    pub fn finds_by_chance(&self) -> bool {
        let by_chance = |search: &Search| search.hit_rate > 0.0 && search.hit_rate < 1.0;
        self.model.searches() && self.model.search.as_ref().is_some_and(by_chance)
    }

    /// Whether chance decides if the prefix is warm when a session begins.
    pub fn starts_by_chance(&self) -> bool {
        let cache = &self.model.cache;
        cache.enabled && cache.warm_prefix > 0.0 && cache.warm_prefix < 1.0
    }

    /// Whether warm and cold beginnings are both frequent enough in a sample of this size.
    pub fn enough_of_both_beginnings(&self) -> Result<(), String> {
        let warm = self.model.cache.warm_prefix;
        match events(if self.starts_by_chance() { warm.min(1.0 - warm) * self.sessions() } else { 0.0 }, 0.0) {
            Events::TooFew(why) => Err(format!("warm or cold beginnings: {why}")),
            _ => Ok(()),
        }
    }

    /// Whether some tools may not be found.
    pub fn can_miss_tools(&self) -> bool {
        can_miss_tools(self.model)
    }

    /// How many sessions there were.
    pub fn sessions(&self) -> f64 {
        match self.seen {
            Seen::Sample(sample, _) => sample.sessions() as f64,
            Seen::Nothing(sessions) => sessions,
        }
    }

    /// A bound on the prompts.
    pub fn largest_prompt(&self) -> f64 {
        match self.seen {
            Seen::Sample(sample, _) => sample.moments(Quantity::InputTokens).max,
            Seen::Nothing(_) => largest_prompt(self.model),
        }
    }

    /// The quantity of the model's own sessions, without the agents that they called.
    pub fn own(&self, quantity: Quantity) -> Quantity {
        match (self.seen, quantity) {
            (Seen::Sample(_, true), Quantity::CostInputUsd) => Quantity::OwnInputUsd,
            (Seen::Sample(_, true), Quantity::CostOutputUsd) => Quantity::OwnOutputUsd,
            (Seen::Sample(_, true), Quantity::InputTokens) => Quantity::OwnInputTokens,
            (Seen::Sample(_, true), Quantity::OutputTokens) => Quantity::OwnOutputTokens,
            _ => quantity,
        }
    }

    /// Whether agents were called.
    pub fn calls_agents(&self) -> bool {
        matches!(self.seen, Seen::Sample(_, true)) || self.model.has_agents()
    }

    /// Whether a model call was, or may be, executed without being answered.
    pub fn rebills(&self) -> bool {
        match self.seen {
            Seen::Sample(sample, _) => {
                let mean = |quantity: Quantity| sample.moments(quantity).mean;
                self.model.faults.lost_reply > 0.0 || mean(Quantity::ModelExecutions) > mean(Quantity::ModelCalls)
            }
            Seen::Nothing(_) => self.model.faults.any(),
        }
    }

    /// A check of sums over sizes. Where sizes are random and none was seen to differ, what makes them differ was too rare.
    pub fn of_sizes(&self, check: Check) -> Result<Check, NotChecked> {
        if check.pass || check.se > 0.0 || (self.constant_sizes && !self.finds_by_chance() && !self.starts_by_chance())
        {
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
        let alone = cache.warm_prefix > 0.0 || cache.prefix_lifetime_s > cache.lifetime_s || cache.breaks.history > 0.0;
        let definitions = prompt.definition_tokens();
        if cache.breaks.system > 0.0 && definitions > 0 && definitions < cache.min_tokens {
            return Err("tools alone are below the smallest cacheable size".to_owned());
        }
        if cache.breaks.history > 0.0 && prompt.task.at_least(1) < 1.0 {
            return Err("first prompts may have no messages that could break".to_owned());
        }
        if alone && prefix < cache.min_tokens {
            return Err("tools and system may be below the smallest cacheable size".to_owned());
        }
        Ok(())
    }

    /// How many more gaps were seen to expire, over all sessions, than were expected.
    pub fn expired_beyond(&self, expected: f64) -> f64 {
        match self.seen {
            Seen::Sample(sample, _) => sample.moments(Quantity::ExpiredGaps).mean * self.sessions() - expected,
            Seen::Nothing(_) => 0.0,
        }
    }

    /// Mean of tools and system, tokens.
    pub fn prefix(&self) -> f64 {
        self.model.prompt.definition_tokens() as f64 + self.model.prompt.system.mean()
    }

    /// Mean number of tool phases: every call but the answer has one, and a loop stopped by `max_turns` one after each.
    pub fn phases(&self) -> f64 {
        self.messages.0 * (self.turns.0 - (1.0 - self.model.turns.at_least(self.model.max_turns.saturating_add(1))))
    }

    /// Whether the mean number of calls is near enough to normal; `max_turns` cuts a heavy tail.
    pub fn turns_near_normal(&self) -> Result<(), String> {
        let squared_cv = |(mean, second): (f64, f64)| (second / (mean * mean) - 1.0).max(0.0);
        let (turns, messages) = (squared_cv(self.turns), squared_cv(self.messages));
        // of a sum of M independent T
        let cv = (turns / self.messages.0 + messages).sqrt();
        skewness_fits(cv, self.sessions()).map_err(|why| format!("turns: {why}"))
    }

    /// Whether sums over the user's waits and the tools' latencies are near enough to normal.
    pub fn waits_near_normal(&self) -> Result<(), String> {
        let n = self.sessions();
        let talk = &self.model.conversation;
        if !talk.is_single() {
            near_normal(&talk.think_s, n * (self.messages.0 - 1.0)).map_err(|why| format!("think: {why}"))?;
        }
        for tool in self.model.phase.tools.iter().filter(|tool| tool.faults.timeout_s.is_infinite()) {
            near_normal(&tool.latency_s, n * self.phases().max(1.0) * tool.calls.mean().max(1e-9))
                .map_err(|why| format!("latency: {why}"))?;
        }
        Ok(())
    }

    /// Whether the sums over sizes are near enough to normal.
    pub fn sizes_near_normal(&self) -> Result<(), String> {
        let model = self.model;
        let n = self.sessions();
        self.turns_near_normal()?;
        for (name, law) in [("system", &model.prompt.system), ("task", &model.prompt.task)] {
            near_normal(law.law(), n).map_err(|why| format!("{name}: {why}"))?;
        }
        whole_near_normal(&model.output, n * self.calls()).map_err(|why| format!("output: {why}"))?;
        let talk = &model.conversation;
        if !talk.is_single() {
            whole_near_normal(&talk.message, n * (self.messages.0 - 1.0)).map_err(|why| format!("message: {why}"))?;
        }
        for tool in &model.phase.tools {
            whole_near_normal(&tool.result, n * self.phases().max(1.0) * tool.calls.mean().max(1e-9))
                .map_err(|why| format!("result: {why}"))?;
        }
        Ok(())
    }
}

/// Why sums over turns don't hold, where something else than the last answer ends sessions.
fn cut_short(model: &Model, sample: &Sample) -> Option<String> {
    let reasons = [
        (Outcome::ContextFull, "the prompt outgrew the model's window"),
        (Outcome::Budget, "the budget stopped them"),
        (Outcome::Deadline, "the budget of time stopped them"),
        (Outcome::Failed, "a model call failed"),
    ];
    for (outcome, why) in reasons {
        let ended = sample.ended(outcome);
        if ended > 0 {
            return Some(format!("{ended} sessions ended because {why}"));
        }
    }
    max_turns_cuts(model).then(|| "max_turns can end a conversation before its last message".to_owned())
}

/// Whether some tools of a model may not be found.
pub(super) fn can_miss_tools(model: &Model) -> bool {
    model.searches() && model.search.as_ref().is_some_and(|search| search.hit_rate < 1.0)
}

/// Why sums over turns may not hold, where nothing was seen of the sessions.
pub(super) fn can_be_cut_short(model: &Model) -> Option<String> {
    let reasons = [
        (model.budget.any(), "a budget can stop an agent's sessions"),
        (model.faults.any(), "an agent's model calls can fail"),
        (largest_prompt(model) > model.context.window_tokens as f64, "an agent's prompt can outgrow its window"),
        (model.turns.at_least(model.max_turns.saturating_add(1)) > 0.0, "max_turns can end an agent's sessions"),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why.to_owned())
}

/// Whether every session of an agent surely ends with its answer.
pub(super) fn surely_answers(agent: &Agent) -> bool {
    can_be_cut_short(&agent.model).is_none()
}

/// A size that no prompt of a sample can be expected to outgrow, tokens.
pub(super) fn largest_prompt(model: &Model) -> f64 {
    let most = |law: &Whole| law.quantile(1.0 - 1e-9);
    let growth: f64 = most(&model.output)
        + most(&model.conversation.message)
        + model
            .phase
            .tools
            .iter()
            .map(|t| most(&t.calls) * most(&t.result).max(t.error_result_tokens as f64))
            .sum::<f64>();
    let first = model.prompt.definition_tokens() as f64 + most(&model.prompt.system) + most(&model.prompt.task);
    let turns = most(&model.turns).min(model.max_turns as f64) * most(&model.conversation.messages);
    let found: f64 = model.search.as_ref().map_or(0.0, |search| {
        let each = |tool: &Tool| match tool.loading {
            Loading::Search { appended_tokens } => {
                f64::from(search.most) * (appended_tokens + search.output_tokens) as f64
            }
            _ => 0.0,
        };
        model.phase.tools.iter().map(each).sum()
    });
    let read: u64 = model.phase.code.iter().map(|server| server.read_tokens).sum();
    first + (turns - 1.0) * growth + found + read as f64
}

/// Whether `max_turns` can end a conversation.
pub(super) fn max_turns_cuts(model: &Model) -> bool {
    !model.conversation.is_single() && model.turns.at_least(model.max_turns.saturating_add(1)) > 0.0
}

/// Time of a model call that takes the same each time, prefill apart, s; `None` where it is random.
pub(super) fn fixed_call_s(model: &Model) -> Option<f64> {
    if model.faults.any() {
        return None;
    }
    let timing = &model.timing;
    let writing_s = match &timing.output_rate {
        None => 0.0,
        Some(rate) => model.output.as_constant()? as f64 / rate.as_constant()?,
    };
    Some(timing.first_token_s.as_constant()? + writing_s)
}

/// The same of a summary.
pub(super) fn fixed_summary_s(model: &Model) -> Option<f64> {
    if model.faults.any() {
        return None;
    }
    let writing_s = match &model.timing.output_rate {
        None => 0.0,
        Some(rate) => model.context.summary_tokens as f64 / rate.as_constant()?,
    };
    Some(model.timing.first_token_s.as_constant()? + writing_s)
}

/// The same of a call that searches for a tool.
pub(super) fn fixed_search_s(model: &Model) -> Option<f64> {
    if model.faults.any() {
        return None;
    }
    let tokens = model.search.as_ref().map_or(0, |search| search.output_tokens);
    let writing_s = match &model.timing.output_rate {
        None => 0.0,
        Some(rate) => tokens as f64 / rate.as_constant()?,
    };
    Some(model.timing.first_token_s.as_constant()? + writing_s)
}

/// Whether an attempt of a tool can end without an answer.
pub(super) fn attempts_can_fail(tool: &Tool) -> bool {
    tool.faults.chance() > 0.0
        || (tool.faults.timeout_s.is_finite()
            && (tool.agent.is_some() || tool.latency_s.sf(tool.faults.timeout_s) > 0.0))
        || tool.retry.deadline_s.is_finite()
}

/// Whether a call of a tool can end without its result.
pub(super) fn can_fail(tool: &Tool) -> bool {
    let unanswered = tool.agent.as_ref().is_some_and(|agent| !surely_answers(agent));
    attempts_can_fail(tool) || tool.error > 0.0 || sent_share(tool) < 1.0 || unanswered
}

fn growth(model: &Model) -> Result<f64, String> {
    Ok(model.output.mean() + phase_growth(model, &[])?)
}

/// Mean growth of the history by the results of one phase, in which these tools weren't found.
pub(super) fn phase_growth(model: &Model, given_up: &[usize]) -> Result<f64, String> {
    let mut growth = 0.0;
    let mut code: Vec<f64> = vec![0.0; model.phase.code.len()];
    for (index, tool) in model.phase.tools.iter().enumerate() {
        let (calls, result, text) = (tool.calls.mean(), tool.result.mean(), tool.error_result_tokens as f64);
        let results = if given_up.contains(&index) {
            calls * text
        } else if can_fail(tool) && (result - text).abs() > 0.0 {
            if model.phase.breaker.is_some() {
                return Err("a breaker ends calls".to_owned());
            }
            let success = success_chance(tool)?;
            calls * (success * result + (1.0 - success) * text)
        } else {
            calls * result
        };
        match tool.loading {
            Loading::Code { server } => code[server] += results,
            _ => growth += results,
        }
    }
    let constant = |tool: &Tool| tool.calls.as_constant().is_some() && tool.result.as_constant().is_some();
    for (index, (server, results)) in model.phase.code.iter().zip(code).enumerate() {
        let own = |tool: &&Tool| tool.loading == Loading::Code { server: index };
        if server.kept_tokens < u64::MAX
            && !model.phase.tools.iter().filter(own).all(|tool| constant(tool) && !can_fail(tool))
        {
            return Err("what stays of the results of code is a minimum of random sizes".to_owned());
        }
        growth += results.min(server.kept_tokens as f64);
    }
    Ok(growth)
}
