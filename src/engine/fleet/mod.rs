//! Many sessions at once, on one clock: a discrete-event simulation that drives the rules of a session with what sessions
//! share. One replication runs on one thread; replications are independent and run on all cores.

mod arrivals;
mod clock;
mod limiter;
mod prefix;
mod recorder;
mod replication;
mod shared;
mod station;

use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use rand::rngs::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::alone::{CHUNK, Collect};
use super::rng::SessionDraws;
use crate::model::{Fleet, Model};
use crate::price::PicoUsd;
use crate::session::{
    Bill, Call, Draws, Event, OpenPhase, Outcome, PhaseEnd, PhaseTotals, Plans, Purpose, Record, Ruling, Run, Runs,
    Session, Step, Then, Used, What, Workspace, play_phase,
};

use arrivals::Coming;
use clock::{ns, seconds};
use limiter::Limiter;
pub use limiter::{LimitKind, LimitRecord};
use prefix::SharedPrefix;
pub use recorder::{Gauge, PIECES, Tally, Waits};
pub use replication::Replication;
use shared::{AtTool, Happening, Meeting, Shared, Whose};
pub use station::StationRecord;
use station::{Place, Station};

/// With more sessions in progress than this a replication is given up: a session takes a few kilobytes.
pub const MOST_IN_PROGRESS: u64 = 200_000;

/// Plays all replications of a fleet, on the current rayon pool. `progress` hears the number of sessions that have ended
/// since it was last called.
pub fn play_fleet<C: Collect + Sync>(
    model: &Model,
    fleet: &Fleet,
    seed: u64,
    empty: &C,
    fresh: impl Fn(u64) -> C + Sync,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<Replication<C>> {
    // each thread takes the next number, so that rows of many replications don't wait for those before them
    let next = AtomicU64::new(0);
    let of_thread = |_| {
        let number = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < fleet.replications);
        let play =
            |number| (number, Playing::new(model, fleet, seed, number, empty.empty(), fresh(number)).play(progress));
        std::iter::from_fn(move || number().map(play))
    };
    let mut played: Vec<(u64, Replication<C>)> =
        (0..rayon::current_num_threads()).into_par_iter().flat_map_iter(of_thread).collect();
    played.sort_by_key(|(number, _)| *number);
    played.into_iter().map(|(_, replication)| replication).collect()
}

/// Why a model call isn't served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    TurnedAway,
    Down,
}

/// A session under way.
#[derive(Default)]
struct Slot<'m> {
    session: Option<Session<'m, SessionDraws>>,
    runs: Option<Runs<'m, SessionDraws>>,
    is_here: bool,
    number: u64,
    arrived_ns: u64,
    /// When the run that is under way began.
    run_ns: u64,
    room: Workspace,
    totals: PhaseTotals,
    phase: Option<OpenPhase<'m, Xoshiro256PlusPlus>>,
    phase_ns: u64,
    /// Numbers the phases of all sessions that were kept here.
    phases: u32,
    /// What comes after the model call that is under way, its turn, and what it will have written if it counts.
    then: Option<(Then, u64)>,
    writes: Option<u64>,
    holds_place: bool,
    /// Numbers its waits for a place.
    waits: u32,
    failure: Option<Failure>,
    outage_draws: u64,
}

/// Sessions are numbered by replication and arrival, away from those that are played alone.
const REPLICATION_BITS: u32 = 40;
/// The part of a session's number that counts within its replication.
pub const SESSION_NUMBERS: u64 = (1 << REPLICATION_BITS) - 1;

struct Outbox(Vec<Event>);

impl Plans for Outbox {
    fn plan(&mut self, event: Event) {
        self.0.push(event);
    }
}

struct Playing<'m, C> {
    model: &'m Model,
    seed: u64,
    first_number: u64,
    coming: Coming<'m, Xoshiro256PlusPlus>,
    slots: Vec<Slot<'m>>,
    free: Vec<u32>,
    shared: Shared<'m>,
    limiter: Limiter,
    prefix: SharedPrefix,
    model_station: Station<u32>,
    is_gated: bool,
    meet_in_phases: bool,
    outbox: Outbox,
    /// Of sessions that ended, by piece of the horizon, ms.
    latencies: Vec<Histogram<u64>>,
    is_counting: bool,
    /// From when on is counted.
    from_ns: u64,
    /// Sessions of the open chunk.
    chunk: C,
    in_chunk: u64,
    out: Replication<C>,
}

impl<'m, C: Collect> Playing<'m, C> {
    fn new(model: &'m Model, fleet: &'m Fleet, seed: u64, number: u64, chunk: C, sample: C) -> Self {
        let shared = Shared::new(model, fleet);
        let (ruler, limits) = (shared.ruler, &fleet.limits);
        let first_number = (number + 1) << REPLICATION_BITS;
        let stream = SessionDraws::new(seed, first_number).stream(Purpose::Arrivals, 0);
        let has_model_outage = fleet.outages.iter().any(|outage| outage.tool.is_none());
        let has_prefix = model.cache.enabled;
        let out = Replication {
            sample,
            arrived: Tally::new(),
            ended: Tally::new(),
            unanswered: Tally::new(),
            in_progress: Gauge::new(ruler),
            stay_in_window_s: 0.0,
            stations: Vec::new(),
            limits: Vec::new(),
            prefix_calls: 0,
            prefix_warm: 0,
            cost_pieces: vec![PicoUsd::default(); PIECES],
            latency_pieces_s: Vec::new(),
            piece_s: ruler.piece_s(),
            refused: Tally::new(),
            events: 0,
            given_up_s: None,
            counted_s: 0.0,
        };
        let mut playing = Self {
            model,
            seed,
            first_number,
            coming: Coming::new(&fleet.arrivals, fleet.horizon_s, stream),
            slots: Vec::new(),
            free: Vec::new(),
            limiter: Limiter::new(limits),
            prefix: SharedPrefix::new(ns(model.cache.prefix_lifetime_s)),
            model_station: Station::new(None, limits.concurrent.unwrap_or(u64::MAX), u64::MAX, ruler),
            is_gated: limits.any_rate() || limits.concurrent.is_some() || has_model_outage || has_prefix,
            meet_in_phases: shared.meet_in_phases(),
            shared,
            outbox: Outbox(Vec::new()),
            latencies: (0..PIECES).filter_map(|_| Histogram::new(2).ok()).collect(),
            is_counting: fleet.warm_up_s <= 0.0,
            from_ns: 0,
            chunk,
            in_chunk: 0,
            out,
        };
        if fleet.warm_up_s > 0.0 {
            playing.shared.agenda.plan(ns(fleet.warm_up_s), Happening::WarmedUp);
        }
        playing.next_arrival();
        playing
    }

    fn play(mut self, progress: &(dyn Fn(u64) + Sync)) -> Replication<C> {
        const EACH: u64 = 1_000;
        let horizon_ns = ns(self.shared.fleet.horizon_s);
        let (mut reported, mut events) = (0, 0);
        while let Some((at_ns, what)) = self.shared.agenda.next() {
            if at_ns >= horizon_ns {
                break;
            }
            events += 1;
            self.shared.now_ns = at_ns;
            self.shared.piece = self.shared.ruler.piece(at_ns);
            self.happens(what);
            if self.out.ended.all >= reported + EACH {
                progress(self.out.ended.all - reported);
                reported = self.out.ended.all;
            }
            if self.out.in_progress.level > MOST_IN_PROGRESS {
                self.out.given_up_s = Some(seconds(at_ns));
                break;
            }
        }
        progress(self.out.ended.all - reported);
        self.close_chunk();
        self.out.sample.finish();
        let end_ns = self.out.given_up_s.map_or(horizon_ns, ns);
        let mut out = self.out;
        let here = self.slots.iter().filter(|slot| slot.is_here);
        let from_ns = self.from_ns;
        out.stay_in_window_s += here.map(|slot| seconds(end_ns - slot.arrived_ns.max(from_ns))).sum::<f64>();
        out.in_progress.advance(end_ns);
        out.counted_s = seconds(end_ns - from_ns);
        let quantiles =
            |ms: &Histogram<u64>| (!ms.is_empty()).then(|| [0.5, 0.99].map(|p| ms.value_at_quantile(p) as f64 / 1e3));
        out.latency_pieces_s = self.latencies.iter().map(quantiles).collect();
        out.limits = self.limiter.records();
        out.stations = vec![self.model_station.close(end_ns)];
        out.stations.extend(self.shared.tools.into_iter().map(|station| station.close(end_ns)));
        out.refused = self.shared.refused;
        out.events = events;
        out
    }

    fn happens(&mut self, what: Happening) {
        match what {
            Happening::Arrives => {
                self.arrives();
                self.next_arrival();
            }
            Happening::GoesOn(slot) => self.go_on(slot),
            Happening::CallOver(slot) => self.call_over(slot),
            Happening::LeavesQueue { slot, wait } => self.leave_queue(slot, wait),
            Happening::InPhase { whose, tool, call, what } => self.in_phase(whose, tool, call, what),
            Happening::Served(request) => self.served(request),
            Happening::Weather => self.shared.look_at_weather(),
            Happening::WarmedUp => self.start_counting(),
        }
    }

    fn start_counting(&mut self) {
        let now_ns = self.shared.now_ns;
        self.is_counting = true;
        self.out.in_progress.start_counting(now_ns);
        (self.out.arrived.counted, self.out.ended.counted, self.out.stay_in_window_s) = (0, 0, 0.0);
        self.from_ns = now_ns;
        (self.out.prefix_calls, self.out.prefix_warm, self.out.unanswered.counted) = (0, 0, 0);
        self.shared.refused.counted = 0;
        self.model_station.start_counting(now_ns);
        self.limiter.start_counting();
        for station in &mut self.shared.tools {
            station.start_counting(now_ns);
        }
    }

    fn next_arrival(&mut self) {
        if let Some(at_ns) = self.coming.next() {
            self.shared.agenda.plan(at_ns, Happening::Arrives);
        }
    }

    fn arrives(&mut self) {
        let now_ns = self.shared.now_ns;
        let number = self.first_number + self.out.arrived.all;
        self.out.arrived.count(self.shared.piece);
        self.out.in_progress.up(now_ns);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let kept = &mut self.slots[slot as usize];
        (kept.number, kept.arrived_ns, kept.outage_draws) = (number, now_ns, 0);
        kept.is_here = true;
        kept.room.start_session(self.model);
        let draws = SessionDraws::new(self.seed, number);
        if self.model.is_one_run() {
            let run = Run { model: self.model, draws, before: Used::default(), number: 0, origin_s: 0.0, warm: None };
            self.begin_run(slot, &run);
        } else {
            let mut runs = Runs::new(self.model, draws);
            let run = runs.begin();
            self.slots[slot as usize].runs = Some(runs);
            if let Some(run) = run {
                self.begin_run(slot, &run);
            }
        }
    }

    fn begin_run(&mut self, slot: u32, run: &Run<'m, SessionDraws>) {
        let kept = &mut self.slots[slot as usize];
        let mut session = Session::new(run.model, run.draws, false, run.before);
        if self.is_gated {
            session.gate();
        }
        kept.room.start_run(run.number, run.origin_s);
        kept.totals = PhaseTotals::default();
        kept.session = Some(session);
        kept.run_ns = self.shared.now_ns;
        self.go_on(slot);
    }

    /// A session takes its next step, and those that take no time.
    fn go_on(&mut self, slot: u32) {
        loop {
            let kept = &mut self.slots[slot as usize];
            let Some(session) = &mut kept.session else { return };
            let now_s = seconds(self.shared.now_ns - kept.run_ns);
            match session.next_step(now_s) {
                Step::Send => {
                    self.shared_call(slot);
                    return;
                }
                Step::Call(call) => {
                    self.called(slot, &call, None);
                    return;
                }
                Step::Tools(turn) => {
                    self.begin_phase(slot, turn);
                    return;
                }
                Step::Wait(wait_s) if wait_s <= 0.0 => {}
                Step::Wait(wait_s) => {
                    self.shared.plan_in(wait_s, Happening::GoesOn(slot));
                    return;
                }
                Step::End(outcome) => {
                    self.end_run(slot, outcome);
                    return;
                }
            }
        }
    }

    /// A model call wants a place.
    fn shared_call(&mut self, slot: u32) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
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
    fn leave_queue(&mut self, slot: u32, wait: u32) {
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
        let kept = &mut self.slots[slot as usize];
        let Some(session) = &mut kept.session else { return };
        let clock_s = seconds(now_ns - kept.run_ns);
        let shares_prefix = session.shares_prefix();
        let is_warm = shares_prefix && self.prefix.is_warm(now_ns);
        let sending = session.sending(clock_s, is_warm);
        let hit = self.shared.is_hit(None, session.draws(), &mut kept.outage_draws);
        let mut counts = false;
        let ruling = match hit {
            Some(true) => Ruling::Lose,
            Some(false) => Ruling::Reject { retry_after_s: 0.0 },
            None if sending.arrives => {
                let ruling = self.limiter.admit(&sending, now_ns, self.shared.piece);
                counts = ruling == Ruling::Pass;
                ruling
            }
            None => Ruling::Pass,
        };
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
            self.prefix.touch(now_ns, found, now_ns.saturating_add(ns(call.first_token_s)));
            self.out.prefix_calls += 1;
            self.out.prefix_warm += u64::from(found);
        }
        self.called(slot, &call, counts.then_some(call.output_tokens));
    }

    /// A model call is under way; `writes` is what it will have written where that counts against limits.
    fn called(&mut self, slot: u32, call: &Call, writes: Option<u64>) {
        let kept = &mut self.slots[slot as usize];
        (kept.then, kept.writes) = (Some((call.then, call.turn)), writes);
        if !kept.holds_place {
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
        let record = &mut self.model_station.record;
        match kept.failure.take() {
            None => record.served.count(piece),
            Some(Failure::TurnedAway) => record.turned_away.count(piece),
            Some(Failure::Down) => record.down.count(piece),
        }
        if let Some((next, waited_ns)) = self.model_station.freed(now_ns) {
            self.send(next, seconds(waited_ns));
        }
    }

    fn call_over(&mut self, slot: u32) {
        let now_ns = self.shared.now_ns;
        let kept = &mut self.slots[slot as usize];
        if let Some(writes) = kept.writes.take() {
            self.limiter.ended(writes, now_ns, self.shared.piece);
        }
        let then = kept.then.take();
        self.free_place(slot);
        match then {
            Some((Then::Tools, turn)) => self.begin_phase(slot, turn),
            _ => self.go_on(slot),
        }
    }

    fn begin_phase(&mut self, slot: u32, turn: u64) {
        let kept = &mut self.slots[slot as usize];
        let Some(session) = &mut kept.session else { return };
        let now_s = seconds(self.shared.now_ns - kept.run_ns);
        if !self.meet_in_phases {
            let end = play_phase(session, turn, now_s, &mut kept.room, &mut kept.totals);
            return self.phase_over(slot, &end, now_s);
        }
        kept.phases = kept.phases.wrapping_add(1);
        kept.phase_ns = self.shared.now_ns;
        let whose = Whose { slot, phase: kept.phases };
        let mut meeting = Meeting::new(&mut self.shared, session, whose, kept.run_ns, &mut kept.outage_draws);
        let open =
            OpenPhase::begin(session, turn, now_s, &mut kept.room, &mut kept.totals, &mut self.outbox, &mut meeting);
        kept.phase = Some(open);
        self.plan_all(whose);
        self.close_phase(slot);
    }

    /// Plans what a phase has planned.
    fn plan_all(&mut self, whose: Whose) {
        let phase_ns = self.slots[whose.slot as usize].phase_ns;
        for Event { at_s, batch, call, what, .. } in self.outbox.0.drain(..) {
            // a moment that is past by a rounding error is now
            let at_ns = phase_ns.saturating_add(ns(at_s)).max(self.shared.now_ns);
            let what = Happening::InPhase { whose, tool: batch as u32, call: call as u32, what };
            self.shared.agenda.plan(at_ns, what);
        }
    }

    fn in_phase(&mut self, whose: Whose, tool: u32, call: u32, what: What) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let Some(kept) = self.slots.get_mut(whose.slot as usize) else { return };
        if kept.phases != whose.phase {
            return;
        }
        let (Some(session), Some(open)) = (&mut kept.session, &mut kept.phase) else { return };
        let Some(began_s) = open.began_s(tool as usize) else { return };
        let at_s = seconds(now_ns - kept.phase_ns);
        let in_batch_s = (at_s - began_s).max(0.0);
        let event = Event { at_s, batch: tool as usize, in_batch_s, call: call as usize, what };
        let mut meeting = Meeting::new(&mut self.shared, session, whose, kept.run_ns, &mut kept.outage_draws);
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
        let (Some(session), Some(open)) = (&kept.session, kept.phase.take_if(|open| open.is_over())) else { return };
        kept.phases = kept.phases.wrapping_add(1);
        let end = open.close(session, &mut kept.room);
        let began_s = seconds(kept.phase_ns - kept.run_ns);
        self.phase_over(slot, &end, began_s);
    }

    fn phase_over(&mut self, slot: u32, end: &PhaseEnd, began_s: f64) {
        let kept = &mut self.slots[slot as usize];
        let Some(session) = &mut kept.session else { return };
        let duration_s = session.after_tools(end, began_s, &kept.totals);
        let at_ns = kept.run_ns.saturating_add(ns(began_s + duration_s)).max(self.shared.now_ns);
        self.shared.agenda.plan(at_ns, Happening::GoesOn(slot));
    }

    fn served(&mut self, request: AtTool) {
        if let Some((next, waited_s)) = self.shared.served(request.tool as usize) {
            let kept = &mut self.slots[next.whose.slot as usize];
            let awaits = |open: &OpenPhase<'_, _>| open.awaits(next.tool as usize, next.call as usize, next.attempt);
            if kept.phases == next.whose.phase && kept.phase.as_ref().is_some_and(awaits) {
                kept.totals.queue_s += waited_s;
            }
        }
        if request.is_answered {
            let what = What::Reply { attempt: request.attempt, rejected: false };
            self.in_phase(request.whose, request.tool, request.call, what);
        }
    }

    fn end_run(&mut self, slot: u32, outcome: Outcome) {
        let kept = &mut self.slots[slot as usize];
        let Some(session) = kept.session.take() else { return };
        let now_s = seconds(self.shared.now_ns - kept.run_ns);
        let (record, bill) = session.finish(outcome, &kept.totals, now_s);
        let Some(mut runs) = kept.runs.take() else { return self.end(slot, &record, &bill) };
        runs.ended(&record, &bill);
        if let Some(run) = runs.begin() {
            kept.runs = Some(runs);
            return self.begin_run(slot, &run);
        }
        let (record, bill) = runs.finish();
        self.end(slot, &record, &bill);
    }

    fn end(&mut self, slot: u32, record: &Record, bill: &Bill) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let kept = &mut self.slots[slot as usize];
        self.out.in_progress.down(now_ns);
        self.out.ended.count(piece);
        self.out.stay_in_window_s += seconds(now_ns - kept.arrived_ns.max(self.from_ns));
        kept.is_here = false;
        self.out.cost_pieces[piece] += record.cost;
        if record.outcome != Outcome::Answered {
            self.out.unanswered.count(piece);
        }
        if let Some(latencies) = self.latencies.get_mut(piece) {
            let ms = (record.latency_s * 1e3).round() as u64;
            if latencies.record(ms).is_err() {
                latencies.saturating_record(ms);
            }
        }
        if self.is_counting {
            self.chunk.session(kept.number, record, bill, &kept.room);
            self.in_chunk += 1;
            if self.in_chunk == CHUNK {
                self.close_chunk();
            }
        }
        self.free.push(slot);
    }

    fn close_chunk(&mut self) {
        if self.in_chunk > 0 {
            self.chunk.close();
            self.out.sample.merge(&mut self.chunk);
            self.in_chunk = 0;
        }
    }
}
