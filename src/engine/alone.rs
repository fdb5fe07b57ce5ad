//! Sessions that share nothing, on all cores.
//!
//! Sessions are played in fixed chunks by number; each chunk fills a collector of its own, and the collectors are
//! merged in order. So no sum depends on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::rng::SessionDraws;
use super::watch::OpenTurn;
use crate::model::Model;
use crate::session::{
    Bill, Outcome, PhaseTotals, Record, Run, Runs, Session, Step, Then, Turn, Used, Workspace, play_herd, play_phase,
};

/// Sessions in a chunk.
pub const CHUNK: u64 = 512;
/// The number of sessions rounded up to whole chunks.
pub fn whole_chunks(sessions: u64) -> u64 {
    sessions.div_ceil(CHUNK).saturating_mul(CHUNK)
}

/// Chunks whose collectors may be in memory at once.
const BATCH: u64 = 128;

/// What becomes of the sessions.
pub trait Collect: Send + Sized {
    /// An empty collector of the same kind, for one chunk.
    #[must_use]
    fn empty(&self) -> Self;
    /// Whether the turns of this session are wanted.
    fn watches(&self, session: u64) -> bool;
    /// One turn of a watched session.
    fn turn(&mut self, turn: &Turn);
    /// How long a message of a watched session took from its request to its answer, or to the session's end, s.
    fn message(&mut self, _latency_s: f64) {}
    /// The length of every tool phase, s.
    fn phase(&mut self, _duration_s: f64) {}
    /// A session that is over.
    fn session(&mut self, number: u64, record: &Record, bill: &Bill, room: &Workspace);
    /// Called once a chunk is complete, on the thread that played it.
    fn close(&mut self) {}
    /// Takes in the next chunk and leaves it empty, to be filled again.
    fn merge(&mut self, next: &mut Self);
    /// Called once all chunks are in.
    fn finish(&mut self) {}
}

/// Two things become of them; the first says which turns are wanted.
impl<A: Collect, B: Collect> Collect for (A, Option<B>) {
    fn empty(&self) -> Self {
        (self.0.empty(), self.1.as_ref().map(B::empty))
    }

    #[inline]
    fn watches(&self, session: u64) -> bool {
        self.0.watches(session)
    }

    fn turn(&mut self, turn: &Turn) {
        self.0.turn(turn);
        if let Some(also) = &mut self.1 {
            also.turn(turn);
        }
    }

    fn message(&mut self, latency_s: f64) {
        self.0.message(latency_s);
        if let Some(also) = &mut self.1 {
            also.message(latency_s);
        }
    }

    #[inline]
    fn phase(&mut self, duration_s: f64) {
        self.0.phase(duration_s);
        if let Some(also) = &mut self.1 {
            also.phase(duration_s);
        }
    }

    fn session(&mut self, number: u64, record: &Record, bill: &Bill, room: &Workspace) {
        self.0.session(number, record, bill, room);
        if let Some(also) = &mut self.1 {
            also.session(number, record, bill, room);
        }
    }

    fn close(&mut self) {
        self.0.close();
        if let Some(also) = &mut self.1 {
            also.close();
        }
    }

    fn merge(&mut self, next: &mut Self) {
        self.0.merge(&mut next.0);
        if let (Some(also), Some(next)) = (&mut self.1, &mut next.1) {
            also.merge(next);
        }
    }

    fn finish(&mut self) {
        self.0.finish();
        if let Some(also) = &mut self.1 {
            also.finish();
        }
    }
}

/// What to play.
#[derive(Debug, Clone)]
pub struct Play<'a> {
    /// The sessions' model.
    pub model: &'a Model,
    /// Names the world: the same seed gives the same sessions.
    pub seed: u64,
    /// Numbers of the sessions.
    pub sessions: Range<u64>,
}

impl Play<'_> {
    /// Plays the sessions into `into`, on the current rayon pool. `progress` hears the number of sessions done since it
    /// was last called.
    pub fn run<C: Collect + Sync>(&self, into: &mut C, progress: &(dyn Fn(u64) + Sync)) {
        let chunks = (self.sessions.end.saturating_sub(self.sessions.start)).div_ceil(CHUNK).min(BATCH);
        let mut collectors: Vec<C> = (0..chunks).map(|_| into.empty()).collect();
        let mut from = self.sessions.start;
        while from < self.sessions.end {
            let to = self.sessions.end.min(from + CHUNK * BATCH);
            let starts: Vec<u64> = (from..to).step_by(CHUNK as usize).collect();
            let used = starts.len();
            collectors.par_iter_mut().zip(starts).for_each(|(chunk, start)| {
                let end = to.min(start + CHUNK);
                let mut player = Player::default();
                for number in start..end {
                    player.play(self.model, self.seed, number, chunk);
                }
                chunk.close();
                progress(end - start);
            });
            for chunk in collectors.iter_mut().take(used) {
                into.merge(chunk);
            }
            from = to;
        }
    }
}

/// Plays sessions one after another, each in the room of the one before.
#[derive(Default)]
struct Player<'m> {
    room: Workspace,
    session: Option<Session<'m, SessionDraws>>,
}

impl<'m> Player<'m> {
    /// Plays one session from its first request to its end.
    fn play<C: Collect>(&mut self, model: &'m Model, seed: u64, number: u64, into: &mut C) {
        if into.watches(number) {
            self.play_as::<C, true>(model, seed, number, into);
        } else {
            self.play_as::<C, false>(model, seed, number, into);
        }
    }

    /// Compiled twice: most sessions aren't watched, and theirs is most of the time.
    fn play_as<C: Collect, const WATCHED: bool>(&mut self, model: &'m Model, seed: u64, number: u64, into: &mut C) {
        let room = &mut self.room;
        room.start_session(model);
        let draws = SessionDraws::new(seed, number);
        if let Some(herd) = &model.herd {
            into.session(number, &play_herd(herd, &draws), &Bill::default(), room);
        } else if model.is_one_run() {
            let session = match &mut self.session {
                Some(session) => {
                    session.renew(model, draws, WATCHED, Used::default());
                    session
                }
                none => none.insert(Session::new(model, draws, WATCHED, Used::default())),
            };
            play_run::<C, WATCHED>(session, 0, room, into);
            into.session(number, session.record(), session.bill(), room);
        } else {
            let (record, bill) = play_runs::<C, WATCHED>(model, draws, room, into);
            into.session(number, &record, &bill, room);
        }
    }
}

#[inline(never)]
fn play_runs<C: Collect, const WATCHED: bool>(
    model: &Model,
    draws: SessionDraws,
    room: &mut Workspace,
    into: &mut C,
) -> (Record, Bill) {
    let mut runs = Runs::new(model, draws);
    while let Some(Run { model, draws, before, number, origin_s, warm }) = runs.begin() {
        room.start_run(number, origin_s);
        let mut session = Session::new(model, draws, WATCHED, before);
        session.begins_warm(warm);
        play_run::<C, WATCHED>(&mut session, number, room, into);
        runs.ended(session.record(), session.bill());
    }
    runs.finish()
}

/// Run `number` of a session from its first request to its end.
#[inline]
fn play_run<C: Collect, const WATCHED: bool>(
    session: &mut Session<'_, SessionDraws>,
    number: u64,
    room: &mut Workspace,
    into: &mut C,
) {
    let (mut now_s, mut totals, mut open) = (0.0, PhaseTotals::default(), OpenTurn::of_run(number));
    let outcome = loop {
        let busy_s = if WATCHED { session.busy_s(now_s) } else { 0.0 };
        // two matches, so that the call of a plain turn stays in registers
        let call = match session.plain_turn(now_s) {
            Some(call) => call,
            None => match session.next_step(now_s) {
                Step::Call(call) => call,
                Step::Tools(turn) => {
                    let phase = play_phase(session, turn, now_s, room, &mut totals);
                    let duration_s = session.after_tools(&phase, now_s, &totals);
                    into.phase(duration_s);
                    now_s += duration_s;
                    if WATCHED && let Some(turn) = open.close(session, now_s, Some(duration_s)) {
                        into.turn(&turn);
                    }
                    continue;
                }
                // said by gated sessions alone
                Step::Send => break Outcome::Failed,
                Step::Wait(wait_s) => {
                    if WATCHED && let Some(latency_s) = open.message(session, busy_s) {
                        into.message(latency_s);
                    }
                    now_s += wait_s;
                    continue;
                }
                Step::End(outcome) => {
                    if WATCHED {
                        if let Some(turn) = open.close(session, now_s, None) {
                            into.turn(&turn);
                        }
                        if let Some(latency_s) = open.last_message(session, busy_s) {
                            into.message(latency_s);
                        }
                    }
                    break outcome;
                }
            },
        };
        if WATCHED {
            if let Some(latency_s) = open.message(session, busy_s) {
                into.message(latency_s);
            }
            open.begins(now_s);
            open.called(&call, session);
        }
        now_s += call.took_s;
        let mut tool_phase_s = None;
        match call.then {
            Then::GoesOn => continue,
            Then::TurnOver => {}
            Then::Tools => {
                let phase = play_phase(session, call.turn, now_s, room, &mut totals);
                let duration_s = session.after_tools(&phase, now_s, &totals);
                into.phase(duration_s);
                now_s += duration_s;
                tool_phase_s = Some(duration_s);
            }
        }
        if WATCHED && let Some(turn) = open.close(session, now_s, tool_phase_s) {
            into.turn(&turn);
        }
    };
    session.close(outcome, &totals, now_s);
}

/// Does something with each of some items, on the current rayon pool, in their order.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    items.par_iter().map(work).collect()
}

/// Runs `work` on this many threads, or on one per core.
///
/// # Errors
/// Where the threads can't be started.
pub fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    match threads {
        None => Ok(work()),
        Some(n) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().map_err(|e| e.to_string())?;
            Ok(pool.install(work))
        }
    }
}
