//! The tool phase: which calls there are, when they start, what they leave behind (MODEL.md §4).

use rand::RngExt;

use super::draws::{Draws, Purpose};
use super::{AttemptEnd, Fate, Progress, ToolCall, draw_whole};
use crate::dist::Dist;
use crate::model::{Model, Tool};
use crate::price::PicoUsd;

/// What the tool phases of a session came to, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PhaseTotals {
    /// Calls.
    pub calls: u64,
    /// Attempts of all calls.
    pub attempts: u64,
    /// Executions of all calls.
    pub executions: u64,
    /// Calls that were executed twice or more by a tool that isn't idempotent.
    pub duplicates: u64,
    /// Calls that ended with the tool's result.
    pub succeeded: u64,
    /// Waits between attempts, summed over calls, s.
    pub retry_wait_s: f64,
    /// Money for each call's first execution.
    pub fees: PicoUsd,
    /// Money for executions after the first.
    pub duplicate_fees: PicoUsd,
}

/// One tool phase.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PhaseEnd {
    /// From its start to the end of its last call, s.
    pub duration_s: f64,
    /// Tokens that enter the history.
    pub result_tokens: u64,
}

/// What one tool did in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolTotals {
    /// Its calls.
    pub calls: u64,
    /// Those that the server executed twice or more, where it isn't idempotent.
    pub duplicates: u64,
}

/// Room for bookkeeping, kept from phase to phase and from session to session.
#[derive(Debug, Default)]
pub struct Workspace {
    ends_s: Vec<f64>,
    per_tool: Vec<ToolTotals>,
}

impl Workspace {
    /// Empties the books of the last session.
    pub fn start_session(&mut self, tools: usize) {
        self.per_tool.clear();
        self.per_tool.resize(tools, ToolTotals::default());
    }

    /// What each tool did since the session started.
    pub fn per_tool(&self) -> &[ToolTotals] {
        &self.per_tool
    }
}

/// Plays the phase after call `turn`, where nothing is shared with other sessions, and adds to `totals`. The calls of a
/// tool start when all calls of the tools that it waits for are done; a tool that makes no call this time passes its own
/// start on.
#[inline]
pub fn play_phase<D: Draws>(
    model: &Model,
    draws: &D,
    turn: u64,
    room: &mut Workspace,
    totals: &mut PhaseTotals,
) -> PhaseEnd {
    let phase = &model.phase;
    let mut end = PhaseEnd::default();
    room.ends_s.resize(phase.tools.len(), 0.0);
    for &index in &phase.order {
        let tool = &phase.tools[index];
        let start_s = phase.after[index].iter().map(|&before| room.ends_s[before]).fold(0.0, f64::max);
        let (calls_before, duplicates_before) = (totals.calls, totals.duplicates);
        let played = play_tool(tool, index, phase.one_at_a_time, draws, turn, totals);
        if let Some(own) = room.per_tool.get_mut(index) {
            own.calls += totals.calls - calls_before;
            own.duplicates += totals.duplicates - duplicates_before;
        }
        let end_s = start_s + played.duration_s;
        room.ends_s[index] = end_s;
        end.duration_s = end.duration_s.max(end_s);
        end.result_tokens += played.result_tokens;
    }
    end
}

/// All calls of one tool: the time from their start to the end of the last, and their results.
#[inline]
fn play_tool<D: Draws>(
    tool: &Tool,
    index: usize,
    one_at_a_time: bool,
    draws: &D,
    turn: u64,
    totals: &mut PhaseTotals,
) -> PhaseEnd {
    let calls = draw_whole(draws, &tool.calls, Purpose::Calls { tool: index }, turn);
    if calls == 0 {
        return PhaseEnd::default();
    }
    let batch = Batch { tool, index, one_at_a_time, turn, calls };
    let purpose = Purpose::Latency { tool: index };
    match &tool.latency_s {
        Dist::Constant(law) => batch.play(draws, totals, || law.value()),
        law => {
            let mut stream = draws.stream(purpose, turn);
            batch.play(draws, totals, || law.draw(&mut stream))
        }
    }
}

/// The calls of one tool in one phase.
#[derive(Clone, Copy)]
struct Batch<'a> {
    tool: &'a Tool,
    index: usize,
    one_at_a_time: bool,
    turn: u64,
    calls: u64,
}

impl Batch<'_> {
    /// Plays them; `latency_s` draws the latency of the first attempt of a call, in order.
    #[inline(always)]
    #[allow(clippy::inline_always)] // one copy per way of drawing, each without its branches
    fn play<D: Draws>(self, draws: &D, totals: &mut PhaseTotals, mut latency_s: impl FnMut() -> f64) -> PhaseEnd {
        let Batch { tool, index, one_at_a_time, turn, calls } = self;
        let fault_chance = tool.fault_chance();
        let patience_s = tool.timeout_s.min(tool.retry.deadline_s);
        let purpose = Purpose::Result { tool: index };
        let fixed_result = tool.result.as_constant();
        let mut results = (fixed_result.is_none() && !tool.result.has_table()).then(|| draws.stream(purpose, turn));

        let (mut longest_s, mut sum_s, mut result_tokens) = (0.0_f64, 0.0_f64, 0);
        let (mut at_once, mut succeeded) = (0, 0);
        totals.calls += calls;
        for number in 0..calls {
            let fate = if fault_chance > 0.0 {
                Fate::of(tool, draws.uniform(Purpose::Fate { tool: index }, turn, number))
            } else {
                Fate::Served
            };
            let latency_s = latency_s();
            let result = match (fixed_result, &mut results) {
                (Some(tokens), _) => tokens,
                (None, None) => tool.result.at(draws.bits(purpose, turn, number)),
                (None, Some(stream)) => tool.result.draw(stream),
            };
            let tool_fails =
                tool.error > 0.0 && draws.uniform(Purpose::Error { tool: index }, turn, number) < tool.error;
            let (answered, took_s) = if fate == Fate::Served && latency_s <= patience_s {
                at_once += 1;
                (true, latency_s)
            } else {
                play_troubled_call(self, number, fate, latency_s, draws, totals)
            };
            let success = answered && !tool_fails;
            succeeded += u64::from(success);
            result_tokens += if success { result } else { tool.error_result_tokens };
            if took_s > longest_s {
                longest_s = took_s;
            }
            sum_s += took_s;
        }
        totals.attempts += at_once;
        totals.executions += at_once;
        totals.succeeded += succeeded;
        totals.fees += tool.price * at_once;
        PhaseEnd { duration_s: if one_at_a_time { sum_s } else { longest_s }, result_tokens }
    }
}

/// A call whose first attempt doesn't simply succeed; returns whether it was answered and how long it took.
#[cold]
#[inline(never)]
fn play_troubled_call<D: Draws>(
    batch: Batch<'_>,
    number: u64,
    first_fate: Fate,
    first_latency_s: f64,
    draws: &D,
    totals: &mut PhaseTotals,
) -> (bool, f64) {
    let Batch { tool, index, turn, .. } = batch;
    let mut stream = draws.stream(Purpose::Retry { tool: index, call: number }, turn);
    let mut call = ToolCall::default();
    let (mut fate, mut latency_s) = (first_fate, first_latency_s);
    let answered = loop {
        let reject_latency_s = if fate == Fate::Rejected { tool.reject_latency_s.draw(&mut stream) } else { 0.0 };
        let mut progress = call.attempted(&tool.retry, AttemptEnd::new(tool, fate, latency_s, reject_latency_s));
        if progress == Progress::Wait {
            let wait_s = call.draw_wait(&tool.retry, &mut stream);
            progress = call.waited(&tool.retry, wait_s);
        }
        match progress {
            Progress::Answered => break true,
            Progress::Failed => break false,
            Progress::Wait | Progress::Attempt => {
                fate = Fate::of(tool, stream.random::<f64>());
                latency_s = tool.latency_s.draw(&mut stream);
            }
        }
    };
    totals.attempts += u64::from(call.attempts);
    totals.executions += u64::from(call.executions);
    totals.retry_wait_s += call.waited_s;
    totals.fees += tool.price * u64::from(call.executions > 0);
    if call.executions > 1 && !tool.idempotent {
        totals.duplicates += 1;
        totals.duplicate_fees += tool.price * u64::from(call.executions - 1);
    }
    (answered, call.elapsed_s)
}
