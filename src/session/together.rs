//! A tool phase that is played event by event: one that calls agents, so that sessions which share a prefix meet in the
//! order of time; one whose tools have to be found or are called from code; and one whose calls meet those of other
//! sessions.

use super::agenda::{Agenda, Event, Guarded, Plans, Room, Running, When, is_guarded};
use super::draws::{Draws, Purpose, draw_whole};
use super::phase::{Batch, PhaseEnd, PhaseTotals, Workspace, enter_history, play_tool, walk_longest_path};
use super::servers::{Nobody, Servers};
use super::{BreakerState, Session};

/// Room for more calls than this isn't kept.
const MOST_KEPT: usize = 64;

/// A tool phase under way, or room for the next one: what it is written into is kept.
#[derive(Debug)]
pub struct OpenPhase<'m, S> {
    is_under_way: bool,
    turn: u64,
    /// When it began, on its session's clock, and how long it may last, s.
    now_s: f64,
    left_s: f64,
    /// Calls that each tool makes.
    calls: Vec<u64>,
    /// Tools that each tool still waits for.
    waits_for: Vec<usize>,
    running: Vec<Option<Running<'m, S>>>,
    tokens: Vec<u64>,
    /// Tools that aren't over.
    open: usize,
    /// Tools that can start, tools that are over at once, and room for calls.
    ready: Vec<usize>,
    over: Vec<usize>,
    rooms: Vec<Vec<Guarded<S>>>,
}

impl<S> Default for OpenPhase<'_, S> {
    fn default() -> Self {
        Self {
            is_under_way: false,
            turn: 0,
            now_s: 0.0,
            left_s: f64::INFINITY,
            calls: Vec::new(),
            waits_for: Vec::new(),
            running: Vec::new(),
            tokens: Vec::new(),
            open: 0,
            ready: Vec::new(),
            over: Vec::new(),
            rooms: Vec::new(),
        }
    }
}

impl<'m, S: rand::Rng> OpenPhase<'m, S> {
    /// Begins the phase after call `turn`, at `now_s` of the session's clock. A tool that was searched for in vain isn't
    /// executed.
    #[allow(clippy::too_many_arguments)] // what a phase is, and what an event of it can change
    pub fn begin<D: Draws<Stream = S>, P: Plans, V: Servers>(
        &mut self,
        session: &Session<'m, D>,
        turn: u64,
        now_s: f64,
        room: &mut Workspace,
        totals: &mut PhaseTotals,
        plans: &mut P,
        servers: &mut V,
    ) {
        let phase = &session.model().phase;
        (self.is_under_way, self.turn, self.now_s) = (true, turn, now_s);
        (self.left_s, self.open) = (session.time_left_s(now_s), phase.tools.len());
        self.calls.clear();
        self.calls.extend(
            phase
                .tools
                .iter()
                .enumerate()
                .map(|(index, tool)| draw_whole(session.draws(), &tool.calls, Purpose::Calls { tool: index }, turn)),
        );
        self.waits_for.clear();
        self.waits_for.extend(phase.after.iter().map(Vec::len));
        self.running.clear();
        self.running.resize_with(self.open, || None);
        self.tokens.clear();
        self.tokens.resize(self.open, 0);
        room.agents.start_phase();
        let waits_for = &self.waits_for;
        self.ready.clear();
        self.ready.extend(phase.order.iter().copied().filter(|index| waits_for[*index] == 0));
        self.start(session, room, totals, plans, servers);
    }

    /// Whether it is under way, and nothing of it is left to happen. It may end later than its last event.
    pub fn is_over(&self) -> bool {
        self.is_under_way && self.open == 0
    }

    /// Starts tools that nothing has to be waited for any more, and those that then are ready too.
    fn start<D: Draws<Stream = S>, P: Plans, V: Servers>(
        &mut self,
        session: &Session<'m, D>,
        room: &mut Workspace,
        totals: &mut PhaseTotals,
        plans: &mut P,
        servers: &mut V,
    ) {
        let phase = &session.model().phase;
        while !self.ready.is_empty() {
            self.start_ready(session, room, totals, plans, servers);
            while let Some(index) = self.over.pop() {
                self.over(index, &phase.after);
            }
        }
    }

    fn start_ready<D: Draws<Stream = S>, P: Plans, V: Servers>(
        &mut self,
        session: &Session<'m, D>,
        room: &mut Workspace,
        totals: &mut PhaseTotals,
        plans: &mut P,
        servers: &mut V,
    ) {
        let phase = &session.model().phase;
        while let Some(index) = self.ready.pop() {
            let tool = &phase.tools[index];
            let start_s = phase.after[index].iter().map(|&before| room.spans[before].end_s).fold(0.0, f64::max);
            let left_s = self.left_s;
            let (given_up, made) = (session.is_given_up(index), if start_s >= left_s { 0 } else { self.calls[index] });
            let batch = Batch { tool, index, one_at_a_time: phase.one_at_a_time, turn: self.turn, calls: made };
            let span = &mut room.spans[index];
            (span.calls, span.end_s) = (if given_up { 0 } else { made }, start_s);
            let before = (totals.calls, totals.duplicates);
            let alone = tool.agent.is_none() && !is_guarded(phase, tool, left_s) && !servers.are_shared(index);
            if given_up {
                totals.calls += made;
                self.tokens[index] = made * tool.error_result_tokens;
            } else if made > 0 && alone {
                let end = play_tool(batch, session.draws(), span, totals);
                (span.end_s, self.tokens[index]) = (start_s + end.duration_s, end.result_tokens);
            } else if made > 0 {
                let when = When { start_s: self.now_s + start_s, left_s: left_s - start_s };
                let calls = self.rooms.pop().unwrap_or_default();
                self.running[index] = Some(Running::new(batch, session, when, (index, start_s), calls, span, plans));
            }
            room.count(index, before, totals);
            if self.running[index].is_none() {
                self.over.push(index);
            }
        }
    }

    /// A tool is over: others may have waited for it.
    fn over(&mut self, index: usize, after: &[Vec<usize>]) {
        self.open -= 1;
        for (next, before) in after.iter().enumerate() {
            for _ in before.iter().filter(|before| **before == index) {
                self.waits_for[next] -= 1;
                if self.waits_for[next] == 0 {
                    self.ready.push(next);
                }
            }
        }
    }

    /// When a tool's batch began, s from the start of the phase; `None` of a tool that isn't under way.
    pub fn began_s(&self, tool: usize) -> Option<f64> {
        self.running.get(tool)?.as_ref().map(|running| running.from_s)
    }

    /// Whether the client still waits for an attempt of a call.
    pub fn awaits(&self, tool: usize, call: usize, attempt: u32) -> bool {
        self.running.get(tool).and_then(Option::as_ref).is_some_and(|running| running.awaits(call, attempt))
    }

    /// Plays an event. One of a tool that is over is of no use any more.
    pub fn handle<D: Draws<Stream = S>, P: Plans, V: Servers>(
        &mut self,
        event: Event,
        session: &Session<'m, D>,
        room: &mut Workspace,
        totals: &mut PhaseTotals,
        plans: &mut P,
        servers: &mut V,
    ) {
        let phase = &session.model().phase;
        let index = event.batch;
        let Some(batch) = self.running.get_mut(index).and_then(Option::as_mut) else { return };
        let before = (totals.calls, totals.duplicates);
        let shared = servers.breaker(index);
        let own = room.breakers.get(index).copied().unwrap_or_default();
        let (mut state, origin_s): (BreakerState, f64) = shared.unwrap_or((own, 0.0));
        let mut breaker = phase.breaker.as_ref().map(|rule| (rule, &mut state, origin_s));
        let span = &mut room.spans[index];
        let mut around = Room { agents: &mut room.agents, span, totals, plans, servers };
        batch.step(event, session, &mut breaker, &mut around);
        if shared.is_some() {
            servers.set_breaker(index, state);
        } else if let Some(own) = room.breakers.get_mut(index) {
            *own = state;
        }
        if batch.is_over() {
            span.end_s = batch.from_s + batch.end.duration_s;
            self.tokens[index] = batch.end.result_tokens;
            let room = self.running[index].take().map(Running::into_room);
            self.rooms.extend(room.filter(|room| room.capacity() <= MOST_KEPT));
            self.over(index, &phase.after);
        }
        room.count(index, before, totals);
        self.start(session, room, totals, plans, servers);
    }

    /// What it came to, when it is over.
    pub fn close<D: Draws<Stream = S>>(&mut self, session: &Session<'m, D>, room: &mut Workspace) -> PhaseEnd {
        self.is_under_way = false;
        let phase = &session.model().phase;
        let (mut end, mut last) = (PhaseEnd::default(), None);
        for &index in &phase.order {
            let span = &room.spans[index];
            if span.end_s > end.duration_s {
                end.duration_s = span.end_s;
                last = Some(index);
            }
        }
        end.result_tokens = enter_history(phase, &self.tokens, room);
        walk_longest_path(phase, last, room, &mut end);
        end
    }
}

/// Plays the whole phase after call `turn`, which begins at `now_s`, where nobody else is there.
#[cold]
#[inline(never)]
pub(super) fn play_together<D: Draws>(
    session: &Session<'_, D>,
    turn: u64,
    now_s: f64,
    room: &mut Workspace,
    totals: &mut PhaseTotals,
) -> PhaseEnd {
    let (mut agenda, mut nobody) = (Agenda::default(), Nobody);
    let mut open = OpenPhase::default();
    open.begin(session, turn, now_s, room, totals, &mut agenda, &mut nobody);
    while let Some(event) = agenda.next() {
        open.handle(event, session, room, totals, &mut agenda, &mut nobody);
    }
    open.close(session, room)
}
