//! One call of a tool or of the model: its attempts, its waits, its end (MODEL.md §4.2 to §4.6).
//!
//! A state machine without a clock: [`Attempts::attempted`] takes in what an attempt came to, [`Attempts::waited`] the
//! wait before the next one.

use rand::{Rng, RngExt};

use crate::model::{Faults, Jitter, Retry};

/// What chance does to an attempt, before its latency is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It never reaches the server.
    LostRequest,
    /// The server turns it away.
    Rejected,
    /// The server executes it, and the answer is lost.
    LostReply,
    /// The server executes it and answers.
    Served,
}

impl Fate {
    /// The fate that a uniform draw picks.
    #[inline]
    pub fn of(faults: &Faults, uniform: f64) -> Fate {
        if uniform >= faults.chance() {
            Fate::Served
        } else if uniform < faults.lost_request {
            Fate::LostRequest
        } else if uniform < faults.lost_request + faults.rejected {
            Fate::Rejected
        } else {
            Fate::LostReply
        }
    }
}

/// One copy of a request: its fate and the latencies that it would have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// What chance does to it.
    pub fate: Fate,
    /// From its sending to the answer, where it is served, s.
    pub latency_s: f64,
    /// From its sending to the rejection, where it is rejected, s.
    pub reject_latency_s: f64,
}

impl Request {
    fn executed(&self) -> u32 {
        u32::from(matches!(self.fate, Fate::LostReply | Fate::Served))
    }

    /// When the client has its answer, s after its sending.
    fn answer_s(&self) -> f64 {
        if self.fate == Fate::Served { self.latency_s } else { f64::INFINITY }
    }

    /// When the client knows anything of it, s after its sending.
    fn known_s(&self) -> f64 {
        if self.fate == Fate::Rejected { self.reject_latency_s } else { self.answer_s() }
    }
}

/// What an attempt came to, as the client sees it, and what the server did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttemptEnd {
    /// Time until the client knew, s.
    pub took_s: f64,
    /// Times that the server executed it: twice where it was hedged.
    pub executions: u32,
    /// Whether the client got the answer.
    pub answered: bool,
    /// Whether the client was turned away.
    pub rejected: bool,
}

impl AttemptEnd {
    /// Of an attempt of one copy. An execution that outlasts the timeout has run and is lost.
    #[inline]
    pub fn of(timeout_s: f64, request: Request) -> Self {
        let known_s = request.known_s();
        let in_time = known_s <= timeout_s;
        Self {
            took_s: known_s.min(timeout_s),
            executions: request.executed(),
            answered: in_time && request.fate == Fate::Served,
            rejected: in_time && request.fate == Fate::Rejected,
        }
    }

    /// Of an attempt whose second copy, where nothing is known of the first by `hedge_after_s`, is what `second` draws:
    /// the first answer wins, and both may execute (MODEL.md §4.6). Returns whether the second was sent.
    pub fn hedged(
        timeout_s: f64,
        hedge_after_s: f64,
        first: Request,
        second: impl FnOnce() -> Request,
    ) -> (Self, bool) {
        if first.known_s() <= hedge_after_s || timeout_s <= hedge_after_s {
            return (Self::of(timeout_s, first), false);
        }
        let second = second();
        let answer_s = first.answer_s().min(hedge_after_s + second.answer_s());
        let executions = first.executed() + second.executed();
        // two copies that never answer come to no answer, however long one waits
        if answer_s.is_finite() && answer_s <= timeout_s {
            return (Self { took_s: answer_s, executions, answered: true, rejected: false }, true);
        }
        let known_s = first.known_s().max(hedge_after_s + second.known_s());
        let rejected = known_s <= timeout_s;
        (Self { took_s: known_s.min(timeout_s), executions, answered: false, rejected }, true)
    }
}

/// What comes after an attempt or a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The answer is there.
    Answered,
    /// No answer, and no further attempt.
    Failed,
    /// A wait, then another attempt.
    Wait,
    /// Another attempt.
    Attempt,
}

/// A call under way.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Attempts {
    /// Attempts sent.
    pub sent: u32,
    /// Times that the server executed it.
    pub executions: u32,
    /// Time since the first attempt began, s.
    pub elapsed_s: f64,
    /// The part of it spent waiting between attempts, s.
    pub waited_s: f64,
    last_took_s: f64,
    last_wait_s: f64,
    last_rejected: bool,
}

impl Attempts {
    /// Takes in the end of an attempt.
    #[inline]
    pub fn attempted(&mut self, retry: &Retry, end: AttemptEnd) -> Progress {
        self.sent += 1;
        self.executions += end.executions;
        self.last_rejected = end.rejected;
        let until_deadline_s = retry.deadline_s - self.elapsed_s;
        self.last_took_s = end.took_s.min(until_deadline_s);
        if end.took_s > until_deadline_s {
            self.elapsed_s = retry.deadline_s;
            return Progress::Failed;
        }
        self.elapsed_s += end.took_s;
        if end.answered {
            Progress::Answered
        } else if self.sent >= retry.attempts {
            Progress::Failed
        } else {
            Progress::Wait
        }
    }

    /// The part of the time that wasn't the last attempt: attempts that failed, and waits, s.
    pub fn retry_s(&self) -> f64 {
        self.elapsed_s - self.last_took_s
    }

    /// Draws the wait after the failed attempts so far, s (MODEL.md §4.3). Full jitter is uniform from 0 to the bound;
    /// the bound after failure k is `min(cap, base · 2^(k-1))`.
    pub fn draw_wait<R: Rng + ?Sized>(&mut self, retry: &Retry, rng: &mut R) -> f64 {
        let base_s = if self.last_rejected { retry.rejected_base_s } else { retry.base_s };
        let bound_s = retry.cap_s.min(base_s * 2_f64.powi(self.sent.min(1_000) as i32 - 1));
        // one uniform whatever the jitter, so that policies meet the same later attempts
        let uniform = rng.random::<f64>();
        let wait_s = match retry.jitter {
            Jitter::None => bound_s,
            Jitter::Full => bound_s * uniform,
            Jitter::Equal => bound_s / 2.0 * (1.0 + uniform),
            Jitter::Decorrelated => {
                let last_s = if self.sent == 1 { base_s } else { self.last_wait_s };
                (base_s + (3.0 * last_s - base_s) * uniform).min(retry.cap_s)
            }
            Jitter::Quarter => bound_s * (1.0 - 0.25 * uniform),
            Jitter::Plus { spread_s, capped } => {
                let wait_s = bound_s + spread_s * uniform;
                if capped { wait_s.min(retry.cap_s) } else { wait_s }
            }
        };
        self.last_wait_s = wait_s;
        wait_s
    }

    /// Takes in a wait; it ends early where the deadline comes first.
    pub fn waited(&mut self, retry: &Retry, wait_s: f64) -> Progress {
        let until_deadline_s = retry.deadline_s - self.elapsed_s;
        if wait_s >= until_deadline_s {
            self.waited_s += until_deadline_s;
            self.elapsed_s = retry.deadline_s;
            return Progress::Failed;
        }
        self.waited_s += wait_s;
        self.elapsed_s += wait_s;
        Progress::Attempt
    }
}
