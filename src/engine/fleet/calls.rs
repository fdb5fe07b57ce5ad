//! Model calls of a fleet's sessions: their places, the limits that they meet, and the pings between them.

use super::clock::{ns, seconds};
use super::shared::Happening;
use super::station::Place;
use super::{Failure, Playing};
use crate::engine::Collect;
use crate::session::{Call, Ruling, Step, Then};

impl<C: Collect> Playing<'_, C> {
    /// A model call wants a place.
    pub(super) fn shared_call(&mut self, slot: u32) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        if !self.kinds.get(self.slots[slot as usize].kind).is_limited {
            return self.send(slot, 0.0);
        }
        self.model_station.record.came.count(piece);
        let place = self.model_station.receive(slot, now_ns, piece);
        if place == Place::Served {
            return self.send(slot, 0.0);
        }
        let kept = &mut self.slots[slot as usize];
        kept.waits = kept.waits.wrapping_add(1);
        let Some(session) = &kept.session else { return };
        let most_s = session.waits_at_most_s(seconds(now_ns - kept.run_ns));
        if most_s.is_finite() {
            let wait = kept.waits;
            self.shared.plan_in(most_s.max(0.0), Happening::LeavesQueue { slot, wait });
        }
    }

    /// A call has waited for a place as long as its session can.
    pub(super) fn leave_queue(&mut self, slot: u32, wait: u32) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let kept = &mut self.slots[slot as usize];
        if kept.waits != wait {
            return;
        }
        let Some(waited_ns) = self.model_station.leave(|other| *other == slot, now_ns, piece) else { return };
        kept.waits = kept.waits.wrapping_add(1);
        if let Some(session) = &mut kept.session {
            session.gives_up_waiting(seconds(now_ns - kept.run_ns), seconds(waited_ns));
        }
        self.go_on(slot);
    }

    /// A model call is sent, after it has waited for a place.
    fn send(&mut self, slot: u32, waited_s: f64) {
        let now_ns = self.shared.now_ns;
        self.ping_if_due(slot);
        let kept = &mut self.slots[slot as usize];
        let kind = self.kinds.get(kept.kind);
        let Some(session) = &mut kept.session else { return };
        let clock_s = seconds(now_ns - kept.run_ns);
        let shares_prefix = session.shares_prefix();
        let prefix = &mut self.prefixes[kind.prefix];
        let is_warm = shares_prefix && prefix.is_warm(now_ns);
        let hit =
            if kind.is_limited { self.shared.is_hit(None, session.draws(), &mut kept.outage_draws) } else { None };
        let arrives = session.arrives();
        let ruling = match hit {
            Some(true) => Ruling::Lose,
            Some(false) => Ruling::Reject { retry_after_s: 0.0 },
            None if arrives && kind.is_limited && self.limiter.is_on() => {
                self.limiter.admit(&session.sending(clock_s, is_warm), now_ns, self.shared.piece)
            }
            None => Ruling::Pass,
        };
        let counts = hit.is_none() && arrives && ruling == Ruling::Pass;
        kept.holds_place = true;
        kept.waits = kept.waits.wrapping_add(1);
        kept.failure = match (hit, ruling) {
            (Some(_), _) => Some(Failure::Down),
            (None, Ruling::Pass) => None,
            (None, Ruling::Reject { .. } | Ruling::Lose) => Some(Failure::TurnedAway),
        };
        let step = session.send(clock_s, waited_s, is_warm, ruling);
        let Step::Call(call) = step else {
            // nothing was about to be sent
            self.free_place(slot);
            return self.go_on(slot);
        };
        if shares_prefix && counts {
            let found = session.found_prefix(call.hit_tokens);
            if found {
                prefix.read(now_ns);
            } else {
                let readable_ns = now_ns.saturating_add(ns(call.first_token_s));
                prefix.write(now_ns, readable_ns, ns(kind.model.cache.prefix_lifetime_s));
            }
            // agents' are counted at their nodes
            if kind.agent.is_none() {
                self.out.prefix_calls += 1;
                self.out.prefix_warm += u64::from(found);
            }
        }
        let (is_kept_alive, is_limited) = (kind.model.cache.is_kept_alive(), kind.is_limited);
        if counts && is_kept_alive {
            self.plan_ping(slot);
        }
        let writes = counts && is_limited && self.limiter.is_on();
        self.called(slot, &call, writes.then_some(call.output_tokens));
    }

    /// The next ping is due when nothing has been read or written for as long again, if a call is still to come.
    fn plan_ping(&mut self, slot: u32) {
        let kept = &mut self.slots[slot as usize];
        (kept.pings, kept.ping_ns) = (kept.pings.wrapping_add(1), None);
        let Some(session) = kept.session.as_ref().filter(|session| session.has_next_call()) else { return };
        let at_ns = self.shared.now_ns.saturating_add(ns(session.model().cache.keep_alive_s));
        kept.ping_ns = Some(at_ns);
        self.shared.agenda.plan(at_ns, Happening::Pings { slot, ping: kept.pings });
    }

    /// A ping that is due at the moment of the call that ends the gap comes before it.
    pub(super) fn ping_if_due(&mut self, slot: u32) {
        let kept = &self.slots[slot as usize];
        if kept.ping_ns == Some(self.shared.now_ns) {
            self.ping(slot, kept.pings);
        }
    }

    /// It is time for a ping, if no call has come before it (MODEL.md §3.5). It counts against limits as a call does, and
    /// takes no place; one that is turned away is missed, and the next is due after the same time.
    pub(super) fn ping(&mut self, slot: u32, ping: u32) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let kept = &mut self.slots[slot as usize];
        let kind = self.kinds.get(kept.kind);
        let Some(session) = kept.session.as_mut().filter(|_| kept.pings == ping) else { return };
        kept.ping_ns = None;
        let clock_s = seconds(now_ns - kept.run_ns);
        let Some(sending) = session.ping_to_send(clock_s) else { return };
        let passes = !kind.is_limited
            || (self.shared.is_hit(None, session.draws(), &mut kept.outage_draws).is_none()
                && self.limiter.admit(&sending, now_ns, piece) == Ruling::Pass);
        if passes {
            session.pinged(sending.hit_tokens, clock_s);
            if session.shares_prefix() {
                self.prefixes[kind.prefix].read(now_ns);
            }
            if kind.is_limited {
                self.limiter.ended(sending.output_tokens, now_ns, piece);
            }
        }
        self.plan_ping(slot);
    }

    /// A model call is under way; `writes` is what it will have written where that counts against limits.
    pub(super) fn called(&mut self, slot: u32, call: &Call, writes: Option<u64>) {
        let kept = &mut self.slots[slot as usize];
        (kept.then, kept.writes) = (Some((call.then, call.turn)), writes);
        if let (Some(watch), Some(session)) = (&mut kept.watch, &kept.session) {
            watch.called(call, session);
        }
        if !kept.holds_place && self.kinds.get(kept.kind).is_limited {
            let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
            let record = &mut self.model_station.record;
            record.came.count(piece);
            record.busy.up(now_ns);
        }
        self.shared.plan_in(call.took_s, Happening::CallOver(slot));
    }

    /// Gives the place of a model call to the next one that waits.
    fn free_place(&mut self, slot: u32) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let kept = &mut self.slots[slot as usize];
        kept.holds_place = false;
        let failure = kept.failure.take();
        if !self.kinds.get(kept.kind).is_limited {
            return;
        }
        let record = &mut self.model_station.record;
        match failure {
            None => record.served.count(piece),
            Some(Failure::TurnedAway) => record.turned_away.count(piece),
            Some(Failure::Down) => record.down.count(piece),
        }
        if let Some((next, waited_ns)) = self.model_station.freed(now_ns) {
            self.send(next, seconds(waited_ns));
        }
    }

    pub(super) fn call_over(&mut self, slot: u32) {
        let now_ns = self.shared.now_ns;
        let kept = &mut self.slots[slot as usize];
        if let Some(writes) = kept.writes.take() {
            self.limiter.ended(writes, now_ns, self.shared.piece);
        }
        let then = kept.then.take();
        if let (Some(watch), Some(session), Some((Then::TurnOver, _))) = (&mut kept.watch, &kept.session, then) {
            watch.close(session, seconds(now_ns - kept.run_ns), None);
        }
        self.free_place(slot);
        match then {
            Some((Then::Tools, turn)) => self.begin_phase(slot, turn),
            _ => self.go_on(slot),
        }
    }
}
