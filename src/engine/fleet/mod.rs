//! Many sessions at once, on one clock: a discrete-event simulation that drives the rules of a session with what sessions
//! share. One replication runs on one thread; replications are independent and run on all cores.

mod arrivals;
mod calls;
mod clock;
mod kinds;
mod limiter;
mod phases;
mod prefix;
mod recorder;
mod replication;
mod shared;
mod station;

use std::sync::atomic::{AtomicU64, Ordering};

use rand_xoshiro::SplitMix64;
use rayon::prelude::*;

use super::alone::{CHUNK, Collect};
use super::rng::SessionDraws;
use super::watch::Watch;
use crate::model::{Fleet, Model};
use crate::price::PicoUsd;
use crate::session::{
    Bill, Draws, Event, OpenPhase, Outcome, PhaseTotals, Plans, Purpose, Record, Run, Runs, Session, Step, Then, Used,
    Workspace,
};

use arrivals::Coming;
use clock::{ns, seconds};
use kinds::{Kinds, MAIN};
use limiter::Limiter;
pub use limiter::{LimitKind, LimitRecord};
use prefix::SharedPrefix;
pub use recorder::{Gauge, PIECES, Tally, TimeSum, Waits};
pub use replication::Replication;
use shared::{AtTool, Happening, Shared};
use station::Station;
pub use station::StationRecord;

/// With more sessions in progress than this a replication is given up: a session takes a few kilobytes.
pub const MOST_IN_PROGRESS: usize = 200_000;

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

/// A session that is over but for agents that it has called and nobody waits for any more.
struct Leaving {
    record: Record,
    bill: Bill,
    /// Of an agent's session, whether its first call found tools and system in the cache.
    starts_warm: bool,
}

/// A session under way.
#[derive(Default)]
struct Slot<'m> {
    /// What it is.
    kind: u32,
    /// The call that it is, of an agent's.
    caller: Option<AtTool>,
    /// Sessions of agents that it has called and that haven't left; what they came to after the run that called them; and
    /// itself, where it is over and waits for them.
    open_agents: u32,
    late: Option<Box<PhaseTotals>>,
    leaving: Option<Box<Leaving>>,
    /// Its turns, where they are wanted.
    watch: Option<Box<Watch>>,
    session: Option<Box<Session<'m, SessionDraws>>>,
    /// The room of a session that is over.
    spare: Option<Box<Session<'m, SessionDraws>>>,
    /// Where a session can have several runs.
    runs: Option<Box<Runs<'m, SessionDraws>>>,
    is_here: bool,
    number: u64,
    arrived_ns: u64,
    /// When the run that is under way began.
    run_ns: u64,
    room: Workspace,
    totals: PhaseTotals,
    phase: OpenPhase<'m, SplitMix64>,
    phase_ns: u64,
    /// Numbers the phases of all sessions that were kept here; those up to the second number are of earlier runs.
    phases: u32,
    phases_before_run: u32,
    /// Numbers its pings, and when the next is due, where one is.
    pings: u32,
    ping_ns: Option<u64>,
    /// What comes after the model call that is under way, its turn, and what it will have written if it counts.
    then: Option<(Then, u64)>,
    writes: Option<u64>,
    holds_place: bool,
    /// Numbers its waits for a place.
    waits: u32,
    failure: Option<Failure>,
    outage_draws: u64,
}

impl<'m> Slot<'m> {
    /// Sums over tool phases begin anew; most runs without tools leave them as they were.
    fn start_totals(&mut self) {
        if self.totals.calls > 0 {
            self.totals = PhaseTotals::default();
        }
    }

    /// A run begins, in the room of the one before it.
    fn begin(&mut self, model: &'m Model, draws: SessionDraws, before: Used) -> &mut Session<'m, SessionDraws> {
        let is_watched = self.watch.is_some();
        match self.spare.take() {
            Some(mut room) => {
                room.renew(model, draws, is_watched, before);
                self.session.insert(room)
            }
            None => self.session.insert(Box::new(Session::new(model, draws, is_watched, before))),
        }
    }
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
    coming: Coming<'m, SplitMix64>,
    slots: Vec<Slot<'m>>,
    free: Vec<u32>,
    /// Empty, to be used again.
    #[allow(clippy::vec_box)] // they go back into slots as they are
    watches: Vec<Box<Watch>>,
    shared: Shared<'m>,
    kinds: Kinds<'m>,
    limiter: Limiter,
    prefixes: Vec<SharedPrefix>,
    model_station: Station<u32>,
    outbox: Outbox,
    /// Of sessions that ended in this piece of the horizon.
    latencies_s: Vec<f64>,
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
        let kinds = Kinds::new(model, fleet);
        let shared = Shared::new(model, fleet);
        let (ruler, limits) = (shared.ruler, &fleet.limits);
        let first_number = (number + 1) << REPLICATION_BITS;
        let stream = SessionDraws::new(seed, first_number).stream(Purpose::Arrivals, 0);
        let out = Replication {
            sample,
            arrived: Tally::new(),
            ended: Tally::new(),
            unanswered: Tally::new(),
            in_progress: Gauge::new(ruler),
            stay_in_window: TimeSum::default(),
            stations: Vec::new(),
            limits: Vec::new(),
            prefix_calls: 0,
            prefix_warm: 0,
            cost_pieces: vec![PicoUsd::default(); PIECES],
            latency_pieces_s: vec![None; PIECES],
            piece_s: ruler.piece_s(),
            refused: Tally::new(),
            events: 0,
            given_up_s: None,
            lingering: 0,
            counted_s: 0.0,
        };
        let mut playing = Self {
            model,
            seed,
            first_number,
            coming: Coming::new(&fleet.arrivals, fleet.horizon_s, stream),
            slots: Vec::new(),
            free: Vec::new(),
            watches: Vec::new(),
            limiter: Limiter::new(limits),
            prefixes: (0..kinds.prefixes()).map(|_| SharedPrefix::default()).collect(),
            kinds,
            model_station: Station::new(None, limits.concurrent.unwrap_or(u64::MAX), u64::MAX, ruler),
            shared,
            outbox: Outbox(Vec::new()),
            latencies_s: Vec::new(),
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
        let (mut reported, mut report_at, mut events, mut piece_end_ns) = (0, EACH, 0, 0);
        while let Some((at_ns, what)) = self.shared.agenda.next() {
            if at_ns >= horizon_ns {
                break;
            }
            events += 1;
            self.shared.now_ns = at_ns;
            if at_ns >= piece_end_ns {
                self.close_piece();
                (self.shared.piece, piece_end_ns) = self.shared.ruler.piece(at_ns);
            }
            self.happens(what);
            if self.out.ended.all >= report_at {
                progress(self.out.ended.all - reported);
                (reported, report_at) = (self.out.ended.all, self.out.ended.all + EACH);
            }
            if self.slots.len() > MOST_IN_PROGRESS {
                self.out.given_up_s = Some(seconds(at_ns));
                break;
            }
        }
        progress(self.out.ended.all - reported);
        self.close_piece();
        self.close_chunk();
        self.out.sample.finish();
        let end_ns = self.out.given_up_s.map_or(horizon_ns, ns);
        let mut out = self.out;
        let here = self.slots.iter().filter(|slot| slot.is_here);
        let from_ns = self.from_ns;
        here.for_each(|slot| out.stay_in_window.add_ns(end_ns - slot.arrived_ns.max(from_ns)));
        out.in_progress.close(end_ns);
        let lingers = |slot: &&Slot<'_>| slot.leaving.is_some() && slot.caller.is_none();
        out.lingering = self.slots.iter().filter(lingers).count() as u64;
        out.counted_s = seconds(end_ns - from_ns);
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
            Happening::Pings { slot, ping } => self.ping(slot, ping),
            Happening::InPhase { whose, tool, call, what } => self.in_phase(whose, tool, call, what),
            Happening::Served(place) => self.served(place),
            Happening::AgentBegins(place) => self.agent_begins(place),
            Happening::Weather => self.shared.look_at_weather(),
            Happening::WarmedUp => self.start_counting(),
        }
    }

    fn start_counting(&mut self) {
        let now_ns = self.shared.now_ns;
        self.is_counting = true;
        self.out.in_progress.start_counting(now_ns);
        (self.out.arrived.counted, self.out.ended.counted) = (0, 0);
        (self.out.stay_in_window, self.from_ns) = (TimeSum::default(), now_ns);
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
            self.shared.agenda.plan_next(at_ns, Happening::Arrives);
        }
    }

    fn arrives(&mut self) {
        let now_ns = self.shared.now_ns;
        let number = self.first_number + self.out.arrived.all;
        self.out.arrived.count(self.shared.piece);
        self.out.in_progress.up(now_ns);
        let slot = self.take_slot();
        let kept = &mut self.slots[slot as usize];
        (kept.number, kept.arrived_ns) = (number, now_ns);
        kept.is_here = true;
        kept.watch = self.chunk.watches(number).then(|| self.watches.pop().unwrap_or_default());
        kept.room.start_session(self.model);
        let draws = SessionDraws::new(self.seed, number);
        if self.model.is_one_run() {
            let run = Run { model: self.model, draws, before: Used::default(), number: 0, origin_s: 0.0, warm: None };
            self.begin_run(slot, &run);
        } else {
            let mut runs = Runs::new(self.model, draws);
            let run = runs.begin();
            self.slots[slot as usize].runs = Some(Box::new(runs));
            if let Some(run) = run {
                self.begin_run(slot, &run);
            }
        }
    }

    fn take_slot(&mut self) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| self.add_slot());
        let kept = &mut self.slots[slot as usize];
        (kept.outage_draws, kept.kind, kept.phases_before_run) = (0, MAIN, kept.phases);
        slot
    }

    #[cold]
    fn add_slot(&mut self) -> u32 {
        self.slots.push(Slot::default());
        (self.slots.len() - 1) as u32
    }

    #[inline]
    fn begin_run(&mut self, slot: u32, run: &Run<'m, SessionDraws>) {
        let kept = &mut self.slots[slot as usize];
        (kept.kind, kept.phases_before_run) = (self.kinds.of_run(run.model), kept.phases);
        if let Some(watch) = &mut kept.watch {
            watch.begin_run(run.number);
        }
        let is_gated = self.kinds.get(kept.kind).is_gated;
        let session = kept.begin(run.model, run.draws, run.before);
        if is_gated {
            session.gate();
        }
        kept.room.start_run(run.number, run.origin_s);
        kept.start_totals();
        kept.run_ns = self.shared.now_ns;
        self.go_on(slot);
    }

    /// A session takes its next step, and those that take no time.
    fn go_on(&mut self, slot: u32) {
        loop {
            self.ping_if_due(slot);
            let kept = &mut self.slots[slot as usize];
            let Some(session) = &mut kept.session else { return };
            let since_ns = self.shared.now_ns - kept.run_ns;
            let busy_s = if kept.watch.is_some() { session.busy_s(seconds(since_ns)) } else { 0.0 };
            let step = session.next_gated_step(|| seconds(since_ns));
            if let Some(watch) = &mut kept.watch {
                match step {
                    Step::Send | Step::Call(_) => watch.begins(session, seconds(since_ns), busy_s),
                    Step::Wait(_) => watch.waits(session, busy_s),
                    Step::Tools(_) | Step::End(_) => {}
                }
            }
            match step {
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

    fn end_run(&mut self, slot: u32, outcome: Outcome) {
        let kept = &mut self.slots[slot as usize];
        let Some(mut session) = kept.session.take() else { return };
        (kept.pings, kept.ping_ns) = (kept.pings.wrapping_add(1), None);
        let now_s = seconds(self.shared.now_ns - kept.run_ns);
        if let Some(watch) = &mut kept.watch {
            watch.end(&session, now_s);
        }
        session.close(outcome, &kept.totals, now_s);
        if let Some(request) = kept.caller {
            let (record, bill) = (*session.record(), session.bill().clone());
            kept.leaving = Some(Box::new(Leaving { record, bill, starts_warm: session.starts_warm() }));
            kept.spare = Some(session);
            return self.agent_ends(slot, request, outcome == Outcome::Answered);
        }
        let Some(mut runs) = kept.runs.take() else {
            self.end(slot, session.record(), session.bill());
            self.slots[slot as usize].spare = Some(session);
            return;
        };
        runs.ended(session.record(), session.bill());
        kept.spare = Some(session);
        if let Some(run) = runs.begin() {
            kept.runs = Some(runs);
            return self.begin_run(slot, &run);
        }
        let (record, bill) = runs.finish();
        self.end(slot, &record, &bill);
    }

    /// A session of the main agent is over.
    fn end(&mut self, slot: u32, record: &Record, bill: &Bill) {
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let kept = &mut self.slots[slot as usize];
        self.out.in_progress.down(now_ns);
        self.out.ended.count(piece);
        self.out.stay_in_window.add_ns(now_ns - kept.arrived_ns.max(self.from_ns));
        kept.is_here = false;
        if record.outcome != Outcome::Answered {
            self.out.unanswered.count(piece);
        }
        self.latencies_s.push(record.latency_s);
        if kept.open_agents == 0 && kept.late.is_none() {
            return self.leave(slot, record, bill);
        }
        let (record, bill) = (*record, bill.clone());
        kept.leaving = Some(Box::new(Leaving { record, bill, starts_warm: false }));
        self.leave_if_alone(slot);
    }

    /// A session that is over leaves if no agent that it has called is under way any more.
    fn leave_if_alone(&mut self, slot: u32) {
        let kept = &mut self.slots[slot as usize];
        if kept.open_agents > 0 {
            return;
        }
        let Some(mut leaving) = kept.leaving.take() else { return };
        if let Some(late) = kept.late.take() {
            leaving.record.add_late_agents(&late);
        }
        if kept.caller.is_some() {
            self.agent_leaves(slot, &leaving.record, leaving.starts_warm);
        } else {
            self.leave(slot, &leaving.record, &leaving.bill);
        }
    }

    /// A session of the main agent leaves, with all that it and its agents came to. What leaves between the warm-up and the
    /// horizon is counted: those that leave late are as many as those that left late before them.
    fn leave(&mut self, slot: u32, record: &Record, bill: &Bill) {
        self.out.cost_pieces[self.shared.piece] += record.cost;
        let kept = &mut self.slots[slot as usize];
        let watch = kept.watch.take();
        if self.is_counting {
            if let Some(watch) = &watch {
                watch.turns.iter().for_each(|turn| self.chunk.turn(turn));
                watch.messages_s.iter().for_each(|latency_s| self.chunk.message(*latency_s));
            }
            self.chunk.session(kept.number, record, bill, &kept.room);
            self.in_chunk += 1;
            if self.in_chunk == CHUNK {
                self.close_chunk();
            }
        }
        if let Some(mut watch) = watch {
            watch.clear();
            self.watches.push(watch);
        }
        self.free.push(slot);
    }

    /// A piece of the horizon is over.
    fn close_piece(&mut self) {
        let latencies_s = &mut self.latencies_s;
        let n = latencies_s.len();
        if n > 0 {
            // nearest ranks; the higher one lies above the lower one
            let [low, high] = [0.5, 0.99].map(|p: f64| ((p * n as f64).ceil() as usize).clamp(1, n) - 1);
            let (_, median_s, above) = latencies_s.select_nth_unstable_by(low, f64::total_cmp);
            let median_s = *median_s;
            let p99_s =
                if high > low { *above.select_nth_unstable_by(high - low - 1, f64::total_cmp).1 } else { median_s };
            self.out.latency_pieces_s[self.shared.piece] = Some([median_s, p99_s]);
            latencies_s.clear();
        }
    }

    fn close_chunk(&mut self) {
        if self.in_chunk > 0 {
            self.chunk.close();
            self.out.sample.merge(&mut self.chunk);
            self.in_chunk = 0;
        }
    }
}
