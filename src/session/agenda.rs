//! Calls that wait for a person, stand behind a breaker or are sessions of an agent (MODEL.md §4.7 to §4.9): what one of
//! them meets depends on the others, so they are played event by event. A phase that calls agents is played as a whole,
//! so that sessions which share a prefix meet in the order of time, and so is one whose tools have to be found or are
//! called from code.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::agent::AgentRoom;
use super::breaker::{Admission, BreakerState};
use super::draws::{Draws, Purpose};
use super::phase::{Batch, BatchEnd, Beginnings, CallRun, Drawn, Span, Workspace, play_tool};
use super::{Fate, PhaseTotals, Progress, Session};
use crate::dist::Dist;
use crate::model::{Breaker, Phase, Tool};

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
    /// From the start of the phase; of a batch that is alone, from its own start.
    at_s: f64,
    /// Orders events of one moment by when they were planned.
    number: u64,
    batch: usize,
    /// From the start of its batch.
    in_batch_s: f64,
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
    /// When the first session that was run for it was over, and whether it was answered: what an idempotent agent replays.
    first_session: Option<(f64, bool)>,
}

#[derive(Default)]
struct Agenda {
    events: BinaryHeap<Event>,
    planned: u64,
}

impl Agenda {
    /// Plans something of a batch that starts at `from_s`.
    fn plan(&mut self, batch: usize, from_s: f64, in_batch_s: f64, call: usize, what: What) {
        let (at_s, number) = (from_s + in_batch_s, self.planned);
        self.events.push(Event { at_s, number, batch, in_batch_s, call, what });
        self.planned += 1;
    }
}

/// When a batch begins, on the session's clock, and how long it may last.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    pub start_s: f64,
    pub left_s: f64,
}

/// A tool's breaker, with its rule.
type Guard<'a> = Option<(&'a Breaker, &'a mut BreakerState)>;

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
    let first_session = &mut call.first_session;
    let mut play = |fate: Fate, copy: u64, start_s: f64| match fate {
        Fate::LostRequest | Fate::Rejected => (0.0, false),
        Fate::Served | Fate::LostReply => match *first_session {
            Some((over_s, answered)) if tool.idempotent => ((over_s - start_s).max(0.0), answered),
            _ => {
                let (took_s, answered) =
                    agents.play(session, batch, agent, (number as u64, sent + copy), start_s, totals);
                first_session.get_or_insert((start_s + took_s, answered));
                (took_s, answered)
            }
        },
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

/// The calls of one tool, under way.
struct Running<'a, S> {
    batch: Batch<'a>,
    /// Its place on the agenda, and where that lays its start, s.
    place: usize,
    from_s: f64,
    when: When,
    calls: Vec<Guarded<S>>,
    /// Events that are planned.
    pending: u64,
    end: BatchEnd,
}

impl<'a, S: rand::Rng> Running<'a, S> {
    /// Plans the beginning of its calls.
    fn new<D: Draws<Stream = S>>(
        batch: Batch<'a>,
        session: &Session<'_, D>,
        when: When,
        (place, from_s): (usize, f64),
        span: &mut Span,
        agenda: &mut Agenda,
    ) -> Self {
        let Batch { tool, index, turn, .. } = batch;
        let draws = session.draws();
        let mut calls: Vec<Guarded<S>> = Vec::with_capacity(batch.calls as usize);
        let mut stream = (!matches!(tool.latency_s, Dist::Constant(_)))
            .then(|| draws.stream(Purpose::Latency { tool: index }, turn));
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
                first_session: None,
            });
        }
        (span.retry_s, span.approval_s) = (0.0, 0.0);
        let at_once = if batch.one_at_a_time { 1 } else { calls.len() }.min(calls.len());
        let mut running = Self { batch, place, from_s, when, calls, pending: 0, end: BatchEnd::default() };
        for call in 0..at_once {
            running.plan(agenda, 0.0, call, What::Begin);
        }
        running
    }

    fn plan(&mut self, agenda: &mut Agenda, in_batch_s: f64, call: usize, what: What) {
        self.pending += 1;
        agenda.plan(self.place, self.from_s, in_batch_s, call, what);
    }

    /// Plays one event. What would begin after the batch's time doesn't happen.
    #[allow(clippy::too_many_arguments)] // what an event can change, each a part of another whole
    fn step<D: Draws<Stream = S>>(
        &mut self,
        Event { in_batch_s: at_s, call: number, what, .. }: Event,
        session: &Session<'_, D>,
        breaker: &mut Guard<'_>,
        agents: &mut AgentRoom,
        span: &mut Span,
        totals: &mut PhaseTotals,
        agenda: &mut Agenda,
    ) {
        let (batch, When { start_s, left_s }) = (self.batch, self.when);
        let Batch { tool, index, turn, .. } = batch;
        self.pending -= 1;
        let Some(call) = self.calls.get_mut(number) else { return };
        match what {
            What::Begin if at_s >= left_s => {}
            What::Begin => {
                totals.calls += 1;
                call.begun_s = at_s;
                let draws = session.draws();
                let uniform =
                    |which: u64| draws.uniform(Purpose::Approval { tool: index }, turn, 2 * number as u64 + which);
                match &tool.approval {
                    Some(approval) if uniform(0) < approval.share => {
                        let purpose = Purpose::ApprovalWait { tool: index, call: number as u64 };
                        call.approval_s = approval.wait_s.draw(&mut draws.stream(purpose, turn));
                        let denied = approval.denied > 0.0 && uniform(1) < approval.denied;
                        let until_s = at_s + call.approval_s;
                        self.plan(agenda, until_s, number, if denied { What::Over } else { What::Attempt });
                    }
                    _ => self.plan(agenda, at_s, number, What::Attempt),
                }
            }
            What::Attempt if at_s >= left_s => self.plan(agenda, at_s, number, What::Over),
            What::Attempt => {
                let admission = breaker.as_mut().map_or(Admission::Ordinary, |(_, state)| state.admit(start_s + at_s));
                if admission == Admission::Refused {
                    totals.refused += 1;
                    return self.plan(agenda, at_s, number, What::Over);
                }
                if call.run.attempts.sent == 0 {
                    call.first_attempt_s = at_s;
                }
                let progress = attempt(call, number, batch, session, start_s + at_s, left_s - at_s, agents, totals);
                let over_s = call.first_attempt_s + call.run.attempts.elapsed_s;
                self.plan(agenda, over_s, number, What::AttemptOver(admission, progress));
            }
            What::AttemptOver(admission, progress) => {
                agents.ended += 1;
                let answered = progress == Progress::Answered;
                if let Some((rule, state)) = breaker {
                    state.ended(rule, admission, answered, start_s + at_s);
                }
                call.answered = answered;
                if progress == Progress::Wait {
                    let next = if call.run.wait(tool) == Progress::Attempt { What::Attempt } else { What::Over };
                    let until_s = call.first_attempt_s + call.run.attempts.elapsed_s;
                    self.plan(agenda, until_s, number, next);
                } else {
                    self.plan(agenda, at_s, number, What::Over);
                }
            }
            What::Over => {
                call.run.book(tool, totals);
                totals.sent += u64::from(call.run.attempts.sent > 0);
                let approval_s = call.approval_s.min(left_s - call.begun_s);
                totals.approval_s += approval_s;
                let success = call.answered && call.agent_answered && !call.beginning.tool_fails;
                totals.succeeded += u64::from(success);
                let tokens = if success { call.beginning.result_tokens } else { tool.error_result_tokens };
                let (retry_s, took_s) = (call.run.attempts.retry_s(), at_s - call.begun_s);
                let end = &mut self.end;
                end.result_tokens += tokens;
                if batch.one_at_a_time {
                    span.retry_s += retry_s;
                    span.approval_s += approval_s;
                    end.duration_s += took_s;
                    if number + 1 < self.calls.len() {
                        self.plan(agenda, at_s, number + 1, What::Begin);
                    }
                } else if took_s > end.duration_s || (took_s >= end.duration_s && retry_s > span.retry_s) {
                    end.duration_s = took_s;
                    span.retry_s = retry_s;
                    span.approval_s = approval_s;
                }
            }
        }
    }
}

/// Plays the calls of one tool that depend on each other, and on no other tool's.
#[inline(never)]
pub(super) fn play_guarded<D: Draws>(
    batch: Batch<'_>,
    session: &Session<'_, D>,
    when: When,
    mut breaker: Guard<'_>,
    agents: &mut AgentRoom,
    span: &mut Span,
    totals: &mut PhaseTotals,
) -> BatchEnd {
    let mut agenda = Agenda::default();
    let mut running = Running::new(batch, session, when, (0, 0.0), span, &mut agenda);
    while let Some(event) = agenda.events.pop() {
        running.step(event, session, &mut breaker, agents, span, totals, &mut agenda);
    }
    running.end
}

/// Plays all calls of a phase on one agenda, in the order of time; what each tool came to stands in its span, and
/// its results' tokens are returned. `calls` are those that each tool makes; a tool that was searched for in vain isn't
/// executed.
#[inline(never)]
pub(super) fn play_together<D: Draws>(
    session: &Session<'_, D>,
    calls: &[u64],
    turn: u64,
    now_s: f64,
    left_s: f64,
    room: &mut Workspace,
    totals: &mut PhaseTotals,
) -> Vec<u64> {
    let phase = &session.model().phase;
    let tools = phase.tools.len();
    let mut tokens = vec![0; tools];
    let mut waits_for: Vec<usize> = phase.after.iter().map(Vec::len).collect();
    let mut running: Vec<Option<Running<'_, D::Stream>>> = (0..tools).map(|_| None).collect();
    let mut agenda = Agenda::default();
    room.agents.start_phase();
    // tools whose start is known, and those whose end is
    let mut ready: Vec<usize> = phase.order.iter().copied().filter(|index| waits_for[*index] == 0).collect();
    let mut over: Vec<usize> = Vec::new();
    loop {
        while let Some(index) = ready.pop() {
            let tool = &phase.tools[index];
            let start_s = phase.after[index].iter().map(|&before| room.spans[before].end_s).fold(0.0, f64::max);
            let (given_up, made) = (session.is_given_up(index), if start_s >= left_s { 0 } else { calls[index] });
            let batch = Batch { tool, index, one_at_a_time: phase.one_at_a_time, turn, calls: made };
            let span = &mut room.spans[index];
            (span.calls, span.end_s) = (if given_up { 0 } else { made }, start_s);
            let before = (totals.calls, totals.duplicates);
            if given_up {
                totals.calls += made;
                tokens[index] = made * tool.error_result_tokens;
            } else if made > 0 && tool.agent.is_none() && !is_guarded(phase, tool, left_s) {
                let end = play_tool(batch, session.draws(), span, totals);
                (span.end_s, tokens[index]) = (start_s + end.duration_s, end.result_tokens);
            } else if made > 0 {
                let when = When { start_s: now_s + start_s, left_s: left_s - start_s };
                running[index] = Some(Running::new(batch, session, when, (index, start_s), span, &mut agenda));
            }
            room.count(index, before, totals);
            if running[index].is_none() {
                over.push(index);
            }
        }
        while let Some(index) = over.pop() {
            for (next, before) in phase.after.iter().enumerate() {
                for _ in before.iter().filter(|before| **before == index) {
                    waits_for[next] -= 1;
                    if waits_for[next] == 0 {
                        ready.push(next);
                    }
                }
            }
        }
        if !ready.is_empty() {
            continue;
        }
        let Some(event) = agenda.events.pop() else { break };
        let index = event.batch;
        let Some(batch) = running.get_mut(index).and_then(Option::as_mut) else { continue };
        let before = (totals.calls, totals.duplicates);
        let (span, breaker) = (&mut room.spans[index], room.breakers.get_mut(index));
        let mut breaker = phase.breaker.as_ref().zip(breaker);
        batch.step(event, session, &mut breaker, &mut room.agents, span, totals, &mut agenda);
        if batch.pending == 0 {
            span.end_s = batch.from_s + batch.end.duration_s;
            tokens[index] = batch.end.result_tokens;
            running[index] = None;
            over.push(index);
        }
        room.count(index, before, totals);
    }
    tokens
}

/// Whether the calls of a tool that is no agent are played event by event.
#[inline]
pub(super) fn is_guarded(phase: &Phase, tool: &Tool, left_s: f64) -> bool {
    tool.approval.is_some() || phase.breaker.is_some() || left_s < f64::INFINITY
}
