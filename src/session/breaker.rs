//! Calls that wait for a person, stand behind a breaker or are sessions of an agent (MODEL.md §4.7 to §4.9): what one of
//! them meets depends on the others, so they are played event by event.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::agent::AgentRoom;
use super::draws::{Draws, Purpose};
use super::phase::{Batch, BatchEnd, Beginnings, CallRun, Drawn, Span};
use super::{Fate, PhaseTotals, Progress, Session};
use crate::dist::Dist;
use crate::model::Breaker;

/// A tool's breaker, kept from phase to phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BreakerState {
    /// Calls go through; so many attempts in a row have failed.
    Closed(u64),
    /// Calls fail at once until then, s.
    Open(f64),
    /// One attempt decides; other calls fail at once.
    Probing,
}

impl Default for BreakerState {
    fn default() -> Self {
        Self::Closed(0)
    }
}

impl BreakerState {
    /// Whether an attempt that would start now may, and whether it is the probe.
    pub fn admit(&mut self, now_s: f64) -> Admission {
        match *self {
            Self::Closed(_) => Admission::Ordinary,
            Self::Open(until_s) if now_s >= until_s => {
                *self = Self::Probing;
                Admission::Probe
            }
            Self::Open(_) | Self::Probing => Admission::Refused,
        }
    }

    /// Takes in the end of an attempt. Attempts from before it opened don't count any more.
    pub fn ended(&mut self, rule: &Breaker, admitted: Admission, success: bool, now_s: f64) {
        let opened = Self::Open(now_s + rule.cooldown_s);
        match (*self, admitted) {
            (Self::Probing, Admission::Probe) => *self = if success { Self::Closed(0) } else { opened },
            (Self::Closed(_), _) if success => *self = Self::Closed(0),
            (Self::Closed(failed), _) => {
                *self = if failed + 1 >= rule.failures { opened } else { Self::Closed(failed + 1) };
            }
            _ => {}
        }
    }
}

/// What a breaker says to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may start.
    Ordinary,
    /// It may start, and decides.
    Probe,
    /// It fails at once.
    Refused,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// The call begins, with its wait for a person where there is one.
    Begin,
    /// An attempt starts.
    Attempt,
    /// An attempt is over.
    AttemptOver(Admission, Progress),
    /// The call is over without a further attempt.
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    /// From the start of the batch.
    at_s: f64,
    /// Orders events of one moment by when they were planned.
    number: u64,
    call: usize,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The heap gives the greatest first: the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at_s.total_cmp(&self.at_s).then(other.number.cmp(&self.number))
    }
}

struct Guarded<S> {
    beginning: Drawn,
    run: CallRun<S>,
    begun_s: f64,
    first_attempt_s: f64,
    approval_s: f64,
    answered: bool,
    /// Whether the session that answered it ended with an answer, where the tool is an agent.
    agent_answered: bool,
}

#[derive(Default)]
struct Agenda {
    events: BinaryHeap<Event>,
    planned: u64,
}

impl Agenda {
    fn plan(&mut self, at_s: f64, call: usize, what: What) {
        self.events.push(Event { at_s, number: self.planned, call, what });
        self.planned += 1;
    }
}

/// When a batch begins, and how long it may last.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    pub start_s: f64,
    pub left_s: f64,
}

/// Plays the next attempt of a call, which starts at `now_s` and for which `left_s` are left. Where the tool is an agent,
/// each copy of it is a session.
#[allow(clippy::too_many_arguments)] // the batch's own and the room's; a struct would only be taken apart again
fn attempt<D: Draws>(
    call: &mut Guarded<D::Stream>,
    number: usize,
    batch: Batch<'_>,
    session: &Session<'_, D>,
    now_s: f64,
    left_s: f64,
    agents: &mut AgentRoom,
    totals: &mut PhaseTotals,
) -> Progress {
    let tool = batch.tool;
    let Some(agent) = &tool.agent else {
        let second = |_, stream: &mut D::Stream| tool.latency_s.draw(stream);
        let (progress, both) = call.run.attempt(batch, session.draws(), left_s, second);
        totals.hedges += u64::from(both);
        return progress;
    };
    let sent = 2 * u64::from(call.run.attempts.sent);
    let mut play = |fate: Fate, copy: u64, start_s: f64| match fate {
        Fate::Served | Fate::LostReply => {
            agents.play(session, batch, agent, (number as u64, sent + copy), start_s, totals)
        }
        Fate::LostRequest | Fate::Rejected => (0.0, false),
    };
    let first_fate = call.run.fate();
    let (first_s, first_answered) = play(first_fate, 0, now_s);
    call.run.answer_after(first_s);
    let (mut second_s, mut second_answered) = (f64::INFINITY, false);
    let (progress, both) = call.run.attempt(batch, session.draws(), left_s, |fate, _| {
        let (took_s, answered) = play(fate, 1, now_s + tool.hedge_after_s);
        if fate == Fate::Served {
            (second_s, second_answered) = (tool.hedge_after_s + took_s, answered);
        }
        took_s
    });
    totals.hedges += u64::from(both);
    // the first answer counts, if only of a session that gave up
    let first_s = if first_fate == Fate::Served { first_s } else { f64::INFINITY };
    call.agent_answered = if second_s < first_s { second_answered } else { first_answered };
    progress
}

/// Plays the calls of one tool. What would begin after its time doesn't happen.
#[inline(never)]
pub(super) fn play_guarded<D: Draws>(
    batch: Batch<'_>,
    session: &Session<'_, D>,
    When { start_s, left_s }: When,
    mut breaker: Option<(&Breaker, &mut BreakerState)>,
    agents: &mut AgentRoom,
    span: &mut Span,
    totals: &mut PhaseTotals,
) -> BatchEnd {
    let Batch { tool, index, turn, .. } = batch;
    let draws = session.draws();
    let mut calls: Vec<Guarded<D::Stream>> = Vec::with_capacity(batch.calls as usize);
    let mut stream =
        (!matches!(tool.latency_s, Dist::Constant(_))).then(|| draws.stream(Purpose::Latency { tool: index }, turn));
    let mut beginnings = Beginnings::new(tool);
    for number in 0..batch.calls {
        let latency_s = match (&tool.latency_s, &mut stream) {
            (Dist::Constant(law), _) => law.value(),
            (law, Some(stream)) => law.draw(stream),
            (law, None) => law.mean(),
        };
        let beginning = beginnings.draw(batch, draws, number, latency_s);
        let run = CallRun::new(number, beginning);
        calls.push(Guarded {
            beginning,
            run,
            begun_s: 0.0,
            first_attempt_s: 0.0,
            approval_s: 0.0,
            answered: false,
            agent_answered: true,
        });
    }
    let mut agenda = Agenda::default();
    let at_once = if batch.one_at_a_time { 1 } else { calls.len() };
    for call in 0..at_once.min(calls.len()) {
        agenda.plan(0.0, call, What::Begin);
    }
    let mut end = BatchEnd::default();
    (span.retry_s, span.approval_s) = (0.0, 0.0);
    while let Some(Event { at_s, call: number, what, .. }) = agenda.events.pop() {
        let Some(call) = calls.get_mut(number) else { break };
        match what {
            What::Begin if at_s >= left_s => {}
            What::Begin => {
                totals.calls += 1;
                call.begun_s = at_s;
                let uniform =
                    |which: u64| draws.uniform(Purpose::Approval { tool: index }, turn, 2 * number as u64 + which);
                match &tool.approval {
                    Some(approval) if uniform(0) < approval.share => {
                        let purpose = Purpose::ApprovalWait { tool: index, call: number as u64 };
                        call.approval_s = approval.wait_s.draw(&mut draws.stream(purpose, turn));
                        let denied = approval.denied > 0.0 && uniform(1) < approval.denied;
                        agenda.plan(at_s + call.approval_s, number, if denied { What::Over } else { What::Attempt });
                    }
                    _ => agenda.plan(at_s, number, What::Attempt),
                }
            }
            What::Attempt if at_s >= left_s => agenda.plan(at_s, number, What::Over),
            What::Attempt => {
                let admission = breaker.as_mut().map_or(Admission::Ordinary, |(_, state)| state.admit(start_s + at_s));
                if admission == Admission::Refused {
                    totals.refused += 1;
                    agenda.plan(at_s, number, What::Over);
                    continue;
                }
                if call.run.attempts.sent == 0 {
                    call.first_attempt_s = at_s;
                }
                let progress = attempt(call, number, batch, session, start_s + at_s, left_s - at_s, agents, totals);
                let over_s = call.first_attempt_s + call.run.attempts.elapsed_s;
                agenda.plan(over_s, number, What::AttemptOver(admission, progress));
            }
            What::AttemptOver(admission, progress) => {
                let answered = progress == Progress::Answered;
                if let Some((rule, state)) = &mut breaker {
                    state.ended(rule, admission, answered, start_s + at_s);
                }
                call.answered = answered;
                if progress == Progress::Wait {
                    let next = if call.run.wait(tool) == Progress::Attempt { What::Attempt } else { What::Over };
                    agenda.plan(call.first_attempt_s + call.run.attempts.elapsed_s, number, next);
                } else {
                    agenda.plan(at_s, number, What::Over);
                }
            }
            What::Over => {
                call.run.book(tool, totals);
                totals.sent += u64::from(call.run.attempts.sent > 0);
                let approval_s = call.approval_s.min(left_s - call.begun_s);
                totals.approval_s += approval_s;
                let success = call.answered && call.agent_answered && !call.beginning.tool_fails;
                totals.succeeded += u64::from(success);
                end.result_tokens += if success { call.beginning.result_tokens } else { tool.error_result_tokens };
                let retry_s = call.run.attempts.retry_s();
                if batch.one_at_a_time {
                    span.retry_s += retry_s;
                    span.approval_s += approval_s;
                    end.duration_s += at_s - call.begun_s;
                    if number + 1 < calls.len() {
                        agenda.plan(at_s, number + 1, What::Begin);
                    }
                } else if at_s - call.begun_s > end.duration_s {
                    end.duration_s = at_s - call.begun_s;
                    span.retry_s = retry_s;
                    span.approval_s = approval_s;
                }
            }
        }
    }
    end
}
