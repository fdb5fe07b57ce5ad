//! Tool phases of a fleet's sessions, whose calls meet those of other sessions, and the sessions of agents that they call.

use super::Playing;
use super::clock::{ns, seconds};
use super::shared::{AtTool, Happening, Meeting, Whose, Work};
use crate::engine::Collect;
use crate::session::{Event, PhaseEnd, Record, Used, What, play_phase};

impl<C: Collect> Playing<'_, C> {
    pub(super) fn begin_phase(&mut self, slot: u32, turn: u64) {
        let kept = &mut self.slots[slot as usize];
        let kind = self.kinds.get(kept.kind);
        let Some(session) = &mut kept.session else { return };
        let now_s = seconds(self.shared.now_ns - kept.run_ns);
        if !kind.meets_in_phases {
            let end = play_phase(session, turn, now_s, &mut kept.room, &mut kept.totals);
            return self.phase_over(slot, &end, now_s);
        }
        kept.phases = kept.phases.wrapping_add(1);
        kept.phase_ns = self.shared.now_ns;
        let whose = Whose { slot, phase: kept.phases };
        let mut meeting = Meeting {
            shared: &mut self.shared,
            kind,
            draws: session.draws(),
            whose,
            run_ns: kept.run_ns,
            outage_draws: &mut kept.outage_draws,
            open_agents: &mut kept.open_agents,
        };
        kept.phase.begin(session, turn, now_s, &mut kept.room, &mut kept.totals, &mut self.outbox, &mut meeting);
        self.plan_all(whose);
        self.close_phase(slot);
    }

    /// Plans what a phase has planned.
    fn plan_all(&mut self, whose: Whose) {
        let phase_ns = self.slots[whose.slot as usize].phase_ns;
        for Event { at_s, batch, call, what, .. } in self.outbox.0.drain(..) {
            // a moment that is past by a rounding error is now
            let at_ns = phase_ns.saturating_add(ns(at_s)).max(self.shared.now_ns);
            let what = Happening::InPhase { whose, tool: batch as u16, call: call as u16, what };
            self.shared.agenda.plan(at_ns, what);
        }
    }

    pub(super) fn in_phase(&mut self, whose: Whose, tool: u16, call: u16, what: What) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let Some(kept) = self.slots.get_mut(whose.slot as usize) else { return };
        if kept.phases != whose.phase {
            return;
        }
        let (Some(session), open) = (&mut kept.session, &mut kept.phase) else { return };
        let Some(began_s) = open.began_s(usize::from(tool)) else { return };
        let at_s = seconds(now_ns - kept.phase_ns);
        let in_batch_s = (at_s - began_s).max(0.0);
        let event = Event { at_s, batch: usize::from(tool), in_batch_s, call: usize::from(call), what };
        let mut meeting = Meeting {
            shared: &mut self.shared,
            kind: self.kinds.get(kept.kind),
            draws: session.draws(),
            whose,
            run_ns: kept.run_ns,
            outage_draws: &mut kept.outage_draws,
            open_agents: &mut kept.open_agents,
        };
        let refused = kept.totals.refused;
        open.handle(event, session, &mut kept.room, &mut kept.totals, &mut self.outbox, &mut meeting);
        if kept.totals.refused > refused {
            self.shared.refused.count(piece);
        }
        if !self.outbox.0.is_empty() {
            self.plan_all(whose);
        }
        self.close_phase(whose.slot);
    }

    /// Goes on with the session if nothing of its phase is left to happen.
    fn close_phase(&mut self, slot: u32) {
        let kept = &mut self.slots[slot as usize];
        let Some(session) = kept.session.as_ref().filter(|_| kept.phase.is_over()) else { return };
        kept.phases = kept.phases.wrapping_add(1);
        let end = kept.phase.close(session, &mut kept.room);
        let began_s = seconds(kept.phase_ns - kept.run_ns);
        self.phase_over(slot, &end, began_s);
    }

    fn phase_over(&mut self, slot: u32, end: &PhaseEnd, began_s: f64) {
        let kept = &mut self.slots[slot as usize];
        let Some(session) = &mut kept.session else { return };
        let duration_s = session.after_tools(end, began_s, &kept.totals);
        if let Some(watch) = &mut kept.watch {
            watch.close(session, began_s + duration_s, Some(duration_s));
        }
        let at_ns = kept.run_ns.saturating_add(ns(began_s + duration_s)).max(self.shared.now_ns);
        self.shared.agenda.plan(at_ns, Happening::GoesOn(slot));
    }

    /// A tool has served a request.
    pub(super) fn served(&mut self, place: u32) {
        let Some(request) = self.shared.take(place) else { return };
        self.next_at_tool(request.station);
        if request.is_answered {
            let what = What::Reply { attempt: request.attempt, rejected: false };
            self.in_phase(request.whose, request.tool, request.call, what);
        }
    }

    /// Gives the server of a tool to the next request that waits there.
    fn next_at_tool(&mut self, station: u32) {
        let Some((next, waited_s)) = self.shared.served(station as usize) else { return };
        let kept = &mut self.slots[next.whose.slot as usize];
        let awaits = || kept.phase.awaits(next.tool.into(), next.call.into(), next.attempt);
        if kept.phases == next.whose.phase && awaits() {
            kept.totals.queue_s += waited_s;
        }
    }

    /// A call of a tool that is an agent begins: a session of its own, which lasts as long as it lasts, whether anybody
    /// still waits for it or not (MODEL.md §4.9).
    pub(super) fn agent_begins(&mut self, place: u32) {
        let Some(request) = self.shared.take(place) else { return };
        let Work::Session { draws, kind } = request.work else { return };
        let slot = self.take_slot();
        let number = self.slots[request.whose.slot as usize].number;
        let rules = self.kinds.get(kind);
        let kept = &mut self.slots[slot as usize];
        (kept.number, kept.kind, kept.caller) = (number, kind, Some(request));
        kept.room.start_session(rules.model);
        let session = kept.begin(rules.model, draws, Used::default());
        session.is_of_agent(false);
        if rules.is_gated {
            session.gate();
        }
        kept.start_totals();
        kept.run_ns = self.shared.now_ns;
        self.go_on(slot);
    }

    /// A session of an agent is over: whoever called it hears of it, and the agents that it has called itself may still be
    /// under way.
    pub(super) fn agent_ends(&mut self, slot: u32, request: AtTool, answered: bool) {
        self.leave_if_alone(slot);
        self.next_at_tool(request.station);
        let what = What::SessionOver { attempt: request.attempt, answered, is_heard: request.is_answered };
        self.in_phase(request.whose, request.tool, request.call, what);
    }

    /// A session of an agent leaves: its sums go to the session that called it.
    pub(super) fn agent_leaves(&mut self, slot: u32, record: &Record, starts_warm: bool) {
        let kept = &mut self.slots[slot as usize];
        let agent = self.kinds.get(kept.kind).agent;
        let (room, request) = (std::mem::take(&mut kept.room), kept.caller.take());
        if let (Some(request), Some(agent)) = (request, agent) {
            let caller = &mut self.slots[request.whose.slot as usize];
            caller.open_agents -= 1;
            caller.room.agent_over(agent, record, starts_warm, &room);
            // of a run that is over, or of a session that waits for no more than this
            let is_of_earlier_run = request.whose.phase <= caller.phases_before_run;
            let is_late = caller.session.is_none() || is_of_earlier_run;
            let totals = if is_late { caller.late.get_or_insert_default() } else { &mut caller.totals };
            let unserved = totals.agents_unserved;
            totals.add_agent(record);
            if is_of_earlier_run {
                // a session was served if its last run was
                totals.agents_unserved = unserved;
            }
        }
        self.slots[slot as usize].room = room;
        self.free.push(slot);
        if let Some(request) = request {
            self.leave_if_alone(request.whose.slot);
        }
    }
}
