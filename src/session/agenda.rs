//! Calls that wait for a person, stand behind a breaker, are sessions of an agent (MODEL.md §4.7 to §4.9) or meet the
//! calls of other sessions at their server: what one of them meets depends on the others, so they are played event by
//! event.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::agent::AgentRoom;
use super::breaker::{Admission, BreakerState};
use super::draws::{Draws, Purpose};
use super::phase::{Batch, BatchEnd, Beginnings, CallRun, Drawn, Span};
use super::servers::{Arrival, Nobody, Reception, Servers};
use super::{AttemptEnd, Fate, PhaseTotals, Progress, Request, Session};
use crate::dist::Dist;
use crate::model::{Breaker, Phase, Tool};

/// What happens to a call in a tool phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// The call begins, with its wait for a person where there is one.
    Begin,
    /// An attempt starts.
    Attempt,
    /// An attempt is over.
    AttemptOver(Admission, Progress),
    /// The call is over without a further attempt.
    Over,
    /// The second copy of an attempt is sent, if nothing is known of the first.
    Hedge(u32),
    /// The client doesn't wait for an attempt any longer.
    GiveUp(u32),
    /// The server has answered an attempt of a call, or turned a copy of it away.
    Reply {
        /// The attempt's number, from 0.
        attempt: u32,
        /// Whether the copy was turned away.
        rejected: bool,
    },
    /// A session of an agent that a copy of an attempt has begun is over.
    SessionOver {
        /// The attempt's number, from 0.
        attempt: u32,
        /// Whether it ended with its answer.
        answered: bool,
        /// Whether the client hears of it.
        is_heard: bool,
    },
}

/// Something that happens in a tool phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// From the start of the phase; of a batch that is alone, from its own start, s.
    pub at_s: f64,
    /// The tool's number.
    pub batch: usize,
    /// From the start of its batch, s.
    pub in_batch_s: f64,
    /// The call's number among the tool's.
    pub call: usize,
    /// What it is.
    pub what: What,
}

/// Where what is to happen is written down.
pub trait Plans {
    /// Plans something.
    fn plan(&mut self, event: Event);
}

/// An event with its place among those of one moment.
#[derive(Debug, Clone, Copy)]
struct Numbered(Event, u64);

impl PartialEq for Numbered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numbered {}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numbered {
    /// The heap gives the greatest first: the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.at_s.total_cmp(&self.0.at_s).then(other.1.cmp(&self.1))
    }
}

/// Clocks may be rounded to nanoseconds.
const A_MOMENT_S: f64 = 1e-6;

/// An attempt whose copies are at a server that sessions share.
#[derive(Debug, Clone, Copy)]
struct AtServer {
    /// Its number, from 0, and when it began, s from the start of its batch.
    attempt: u32,
    begun_s: f64,
    admission: Admission,
    /// Copies sent, copies that were turned away, and copies that are or will be executed.
    copies: u32,
    rejected: u32,
    executions: u32,
}

/// A call of a tool whose calls are played event by event.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    beginning: Drawn,
    run: CallRun<S>,
    at_server: Option<AtServer>,
    begun_s: f64,
    first_attempt_s: f64,
    approval_s: f64,
    answered: bool,
    /// Whether the session that answered it ended with an answer, where the tool is an agent.
    agent_answered: bool,
    /// When the first session that was run for it was over, and whether it was answered: what an idempotent agent replays.
    first_session: Option<(f64, bool)>,
    /// The same where it is played in a fleet.
    replay: Replay,
}

/// The session that an idempotent agent runs for a call in a fleet; whoever asks again is answered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Replay {
    #[default]
    None,
    /// It is under way, and this attempt has asked for it again.
    UnderWay(Option<u32>),
    /// It is over: whether it ended with its answer.
    Over(bool),
}

/// What a phase that is played at once has planned.
#[derive(Default)]
pub(super) struct Agenda {
    events: BinaryHeap<Numbered>,
    planned: u64,
}

impl Agenda {
    /// What happens next.
    pub fn next(&mut self) -> Option<Event> {
        self.events.pop().map(|numbered| numbered.0)
    }
}

impl Plans for Agenda {
    fn plan(&mut self, event: Event) {
        self.events.push(Numbered(event, self.planned));
        self.planned += 1;
    }
}

/// When a batch begins, on the session's clock, and how long it may last.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    pub start_s: f64,
    pub left_s: f64,
}

/// A tool's breaker, with its rule and the time that it goes by at the session's start, s.
pub(super) type Guard<'a> = Option<(&'a Breaker, &'a mut BreakerState, f64)>;

/// What an event of a batch can change.
pub(super) struct Room<'r, P, V> {
    pub agents: &'r mut AgentRoom,
    pub span: &'r mut Span,
    pub totals: &'r mut PhaseTotals,
    pub plans: &'r mut P,
    pub servers: &'r mut V,
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
#[derive(Debug)]
pub(super) struct Running<'a, S> {
    batch: Batch<'a>,
    /// Its place on the agenda, and where that lays its start, s.
    place: usize,
    pub from_s: f64,
    when: When,
    calls: Vec<Guarded<S>>,
    /// Calls that are planned or under way.
    open: u64,
    pub end: BatchEnd,
}

impl<'a, S: rand::Rng> Running<'a, S> {
    /// Plans the beginning of its calls; `calls` is room for them.
    pub fn new<D: Draws<Stream = S>>(
        batch: Batch<'a>,
        session: &Session<'_, D>,
        when: When,
        (place, from_s): (usize, f64),
        mut calls: Vec<Guarded<S>>,
        span: &mut Span,
        plans: &mut impl Plans,
    ) -> Self {
        let Batch { tool, index, turn, .. } = batch;
        let draws = session.draws();
        calls.reserve(batch.calls as usize);
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
                at_server: None,
                begun_s: 0.0,
                first_attempt_s: 0.0,
                approval_s: 0.0,
                answered: false,
                agent_answered: true,
                first_session: None,
                replay: Replay::None,
            });
        }
        (span.retry_s, span.approval_s) = (0.0, 0.0);
        let at_once = if batch.one_at_a_time { 1 } else { calls.len() }.min(calls.len());
        let mut running = Self { batch, place, from_s, when, calls, open: 0, end: BatchEnd::default() };
        for call in 0..at_once {
            running.begin(plans, 0.0, call);
        }
        running
    }

    /// Room for other calls.
    pub fn into_room(self) -> Vec<Guarded<S>> {
        let mut calls = self.calls;
        calls.clear();
        calls
    }

    /// Whether the client still waits for an attempt of a call.
    pub fn awaits(&self, call: usize, attempt: u32) -> bool {
        let at_server = self.calls.get(call).and_then(|call| call.at_server);
        at_server.is_some_and(|at| at.attempt == attempt)
    }

    /// Whether nothing of it is left to happen.
    pub fn is_over(&self) -> bool {
        self.open == 0
    }

    fn begin(&mut self, plans: &mut impl Plans, in_batch_s: f64, call: usize) {
        self.open += 1;
        self.plan(plans, in_batch_s, call, What::Begin);
    }

    fn plan(&mut self, plans: &mut impl Plans, in_batch_s: f64, call: usize, what: What) {
        plans.plan(Event { at_s: self.from_s + in_batch_s, batch: self.place, in_batch_s, call, what });
    }

    /// Plays one event. What would begin after the batch's time doesn't happen.
    pub fn step<D: Draws<Stream = S>, P: Plans, V: Servers>(
        &mut self,
        Event { in_batch_s: at_s, call: number, what, .. }: Event,
        session: &Session<'_, D>,
        breaker: &mut Guard<'_>,
        room: &mut Room<'_, P, V>,
    ) {
        let (batch, When { start_s, left_s }) = (self.batch, self.when);
        let Batch { tool, index, turn, .. } = batch;
        let Some(call) = self.calls.get_mut(number) else { return };
        match what {
            What::Begin if at_s >= left_s => self.open -= 1,
            What::Begin => {
                room.totals.calls += 1;
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
                        self.plan(room.plans, until_s, number, if denied { What::Over } else { What::Attempt });
                    }
                    _ => self.plan(room.plans, at_s, number, What::Attempt),
                }
            }
            What::Attempt if at_s >= left_s => self.plan(room.plans, at_s, number, What::Over),
            What::Attempt => {
                let mut admission = Admission::Ordinary;
                if let Some((_, state, origin_s)) = breaker {
                    admission = state.admit(*origin_s + start_s + at_s);
                }
                if admission == Admission::Refused {
                    room.totals.refused += 1;
                    return self.plan(room.plans, at_s, number, What::Over);
                }
                if call.run.attempts.sent == 0 {
                    call.first_attempt_s = at_s;
                }
                if room.servers.are_shared(index) {
                    return self.attempt_at_server(at_s, number, admission, session, room);
                }
                let (now_s, left_s) = (start_s + at_s, left_s - at_s);
                let progress = attempt(call, number, batch, session, now_s, left_s, room.agents, room.totals);
                let over_s = call.first_attempt_s + call.run.attempts.elapsed_s;
                self.plan(room.plans, over_s, number, What::AttemptOver(admission, progress));
            }
            What::AttemptOver(admission, progress) => {
                room.agents.ended += 1;
                self.attempt_over(at_s, number, admission, progress, breaker, room.plans);
            }
            What::Hedge(attempt) => {
                if let Some(at) = &mut call.at_server
                    && (at.attempt, at.copies) == (attempt, 1)
                {
                    at.copies = 2;
                    room.totals.hedges += 1;
                    let second = call.run.second(batch, session.draws());
                    self.send(at_s, number, second, room);
                }
            }
            What::Reply { attempt, rejected } => {
                let Some(at) = call.at_server.as_mut().filter(|at| at.attempt == attempt) else { return };
                at.rejected += u32::from(rejected);
                let (is_known, took_s) = (!rejected || at.rejected == at.copies, at_s - at.begun_s);
                if is_known {
                    self.close(took_s, !rejected, at_s, number, breaker, room.plans);
                }
            }
            What::SessionOver { attempt, answered, is_heard } => {
                let asked_again = call.replay;
                if tool.idempotent {
                    call.replay = Replay::Over(answered);
                }
                let Some(at) = call.at_server else { return };
                if (is_heard && at.attempt == attempt) || asked_again == Replay::UnderWay(Some(at.attempt)) {
                    call.agent_answered = answered;
                    self.close(at_s - at.begun_s, true, at_s, number, breaker, room.plans);
                }
            }
            What::GiveUp(attempt) => {
                let Some(at) = call.at_server.filter(|at| at.attempt == attempt) else { return };
                let (waited_s, timeout_s) = (at_s - at.begun_s, tool.faults.timeout_s);
                let patience_s = timeout_s.min(tool.retry.deadline_s - call.run.attempts.elapsed_s);
                // without the rounding of the clock; a deadline that comes first cuts it
                let took_s = if waited_s > patience_s - A_MOMENT_S { timeout_s } else { waited_s };
                self.close(took_s, false, at_s, number, breaker, room.plans);
            }
            What::Over => {
                self.open -= 1;
                call.run.book(tool, room.totals);
                room.totals.sent += u64::from(call.run.attempts.sent > 0);
                let approval_s = call.approval_s.min(left_s - call.begun_s);
                room.totals.approval_s += approval_s;
                let success = call.answered && call.agent_answered && !call.beginning.tool_fails;
                room.totals.succeeded += u64::from(success);
                let tokens = if success { call.beginning.result_tokens } else { tool.error_result_tokens };
                let (retry_s, took_s) = (call.run.attempts.retry_s(), at_s - call.begun_s);
                let (end, span) = (&mut self.end, &mut *room.span);
                end.result_tokens += tokens;
                if batch.one_at_a_time {
                    span.retry_s += retry_s;
                    span.approval_s += approval_s;
                    end.duration_s += took_s;
                    if number + 1 < self.calls.len() {
                        self.begin(room.plans, at_s, number + 1);
                    }
                } else if took_s > end.duration_s || (took_s >= end.duration_s && retry_s > span.retry_s) {
                    end.duration_s = took_s;
                    span.retry_s = retry_s;
                    span.approval_s = approval_s;
                }
            }
        }
    }

    /// What comes after an attempt.
    fn attempt_over(
        &mut self,
        at_s: f64,
        number: usize,
        admission: Admission,
        progress: Progress,
        breaker: &mut Guard<'_>,
        plans: &mut impl Plans,
    ) {
        let (tool, start_s) = (self.batch.tool, self.when.start_s);
        let Some(call) = self.calls.get_mut(number) else { return };
        let answered = progress == Progress::Answered;
        if let Some((rule, state, origin_s)) = breaker {
            state.ended(rule, admission, answered, *origin_s + start_s + at_s);
        }
        call.answered = answered;
        if progress == Progress::Wait {
            let next = if call.run.wait(tool) == Progress::Attempt { What::Attempt } else { What::Over };
            let until_s = call.first_attempt_s + call.run.attempts.elapsed_s;
            self.plan(plans, until_s, number, next);
        } else {
            self.plan(plans, at_s, number, What::Over);
        }
    }

    /// An attempt goes to a server that sessions share: when it ends depends on them.
    fn attempt_at_server<D: Draws<Stream = S>, P: Plans, V: Servers>(
        &mut self,
        at_s: f64,
        number: usize,
        admission: Admission,
        session: &Session<'_, D>,
        room: &mut Room<'_, P, V>,
    ) {
        let (batch, left_s) = (self.batch, self.when.left_s);
        let Some(call) = self.calls.get_mut(number) else { return };
        let attempt = call.run.attempts.sent;
        let first = call.run.first(batch, session.draws());
        let until_deadline_s = batch.tool.retry.deadline_s - call.run.attempts.elapsed_s;
        call.at_server = Some(AtServer { attempt, begun_s: at_s, admission, copies: 1, rejected: 0, executions: 0 });
        let gives_up_s = at_s + batch.tool.faults.timeout_s.min(until_deadline_s);
        // just behind the end of a budget of time, which cuts what outlasts it
        let gives_up_s = gives_up_s.min(left_s + A_MOMENT_S);
        if gives_up_s.is_finite() {
            self.plan(room.plans, gives_up_s, number, What::GiveUp(attempt));
        }
        let hedge_s = at_s + batch.tool.hedge_after_s;
        if hedge_s < gives_up_s {
            self.plan(room.plans, hedge_s, number, What::Hedge(attempt));
        }
        self.send(at_s, number, first, room);
    }

    /// Sends one copy of the attempt that is under way.
    fn send<P: Plans, V: Servers>(&mut self, at_s: f64, number: usize, request: Request, room: &mut Room<'_, P, V>) {
        let Batch { tool, index, turn, .. } = self.batch;
        let Some(call) = self.calls.get_mut(number) else { return };
        let Some(at) = &mut call.at_server else { return };
        let attempt = at.attempt;
        let turned_away_after_s = match request.fate {
            Fate::LostRequest => return,
            Fate::Rejected => request.reject_latency_s,
            Fate::Served | Fate::LostReply => {
                let (service_s, is_answered) = (request.latency_s, request.fate == Fate::Served);
                if call.replay != Replay::None {
                    at.executions += 1;
                    match &mut call.replay {
                        Replay::UnderWay(asked) if is_answered => *asked = Some(attempt),
                        Replay::Over(answered) if is_answered => {
                            let answered = *answered;
                            let what = What::SessionOver { attempt, answered, is_heard: true };
                            self.plan(room.plans, at_s, number, what);
                        }
                        _ => {}
                    }
                    return;
                }
                let is_second = at.copies > 1;
                let arrival = Arrival { tool: index, call: number, attempt, is_second, turn, service_s, is_answered };
                match room.servers.receive(arrival) {
                    Reception::Admitted => {
                        at.executions += 1;
                        if tool.idempotent && tool.agent.is_some() {
                            call.replay = Replay::UnderWay(None);
                        }
                        return;
                    }
                    Reception::TurnedAway => call.run.turned_away(tool),
                    Reception::Lost => return,
                }
            }
        };
        self.plan(room.plans, at_s + turned_away_after_s, number, What::Reply { attempt, rejected: true });
    }

    /// The attempt at a server is over for its client.
    fn close(
        &mut self,
        took_s: f64,
        answered: bool,
        at_s: f64,
        number: usize,
        breaker: &mut Guard<'_>,
        plans: &mut impl Plans,
    ) {
        let tool = self.batch.tool;
        let Some(call) = self.calls.get_mut(number) else { return };
        let Some(AtServer { admission, copies, rejected, executions, .. }) = call.at_server.take() else { return };
        let end = AttemptEnd { took_s, executions, answered, rejected: !answered && rejected == copies };
        let progress = call.run.attempts.attempted(&tool.retry, end);
        self.attempt_over(at_s, number, admission, progress, breaker, plans);
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
    let mut running = Running::new(batch, session, when, (0, 0.0), Vec::new(), span, &mut agenda);
    while let Some(event) = agenda.next() {
        let mut room = Room { agents, span, totals, plans: &mut agenda, servers: &mut Nobody };
        running.step(event, session, &mut breaker, &mut room);
    }
    running.end
}

/// Whether the calls of a tool that is no agent are played event by event.
#[inline]
pub(super) fn is_guarded(phase: &Phase, tool: &Tool, left_s: f64) -> bool {
    tool.approval.is_some() || phase.breaker.is_some() || left_s < f64::INFINITY
}
