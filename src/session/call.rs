//! One tool call: its attempts, its waits, its end (MODEL.md §4.2 to §4.5).
//!
//! A state machine without a clock: [`ToolCall::attempted`] takes in what an attempt came to, [`ToolCall::waited`] the
//! wait before the next one.

use rand::{Rng, RngExt};

use crate::model::{Jitter, Retry, Tool};

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
    pub fn of(tool: &Tool, uniform: f64) -> Fate {
        if uniform >= tool.lost_request + tool.rejected + tool.lost_reply {
            Fate::Served
        } else if uniform < tool.lost_request {
            Fate::LostRequest
        } else if uniform < tool.lost_request + tool.rejected {
            Fate::Rejected
        } else {
            Fate::LostReply
        }
    }
}

/// What an attempt came to, as the client sees it, and whether the server did the work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttemptEnd {
    /// Time until the client knew, s.
    pub took_s: f64,
    /// Whether the server executed the call.
    pub executed: bool,
    /// Whether the client got the answer.
    pub answered: bool,
}

impl AttemptEnd {
    /// From the fate and the drawn latencies. An execution that outlasts the timeout has run and is lost.
    #[inline]
    pub fn new(tool: &Tool, fate: Fate, latency_s: f64, reject_latency_s: f64) -> Self {
        match fate {
            Fate::LostRequest => Self { took_s: tool.timeout_s, executed: false, answered: false },
            Fate::Rejected => Self { took_s: reject_latency_s.min(tool.timeout_s), executed: false, answered: false },
            Fate::LostReply => Self { took_s: tool.timeout_s, executed: true, answered: false },
            Fate::Served if latency_s > tool.timeout_s => {
                Self { took_s: tool.timeout_s, executed: true, answered: false }
            }
            Fate::Served => Self { took_s: latency_s, executed: true, answered: true },
        }
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
pub struct ToolCall {
    /// Attempts sent.
    pub attempts: u32,
    /// Times that the server executed it.
    pub executions: u32,
    /// Time since the first attempt began, s.
    pub elapsed_s: f64,
    /// The part of it spent waiting between attempts, s.
    pub waited_s: f64,
    last_wait_s: f64,
}

impl ToolCall {
    /// Takes in the end of an attempt.
    #[inline]
    pub fn attempted(&mut self, retry: &Retry, end: AttemptEnd) -> Progress {
        self.attempts += 1;
        self.executions += u32::from(end.executed);
        let until_deadline_s = retry.deadline_s - self.elapsed_s;
        if end.took_s > until_deadline_s {
            self.elapsed_s = retry.deadline_s;
            return Progress::Failed;
        }
        self.elapsed_s += end.took_s;
        if end.answered {
            Progress::Answered
        } else if self.attempts >= retry.attempts {
            Progress::Failed
        } else {
            Progress::Wait
        }
    }

    /// Draws the wait after the failed attempts so far, s (MODEL.md §4.3). Full jitter is uniform from 0 to the bound;
    /// the bound after failure k is `min(cap, base · 2^(k-1))`.
    pub fn draw_wait<R: Rng + ?Sized>(&mut self, retry: &Retry, rng: &mut R) -> f64 {
        let bound_s = retry.cap_s.min(retry.base_s * 2_f64.powi(self.attempts.min(1_000) as i32 - 1));
        // one uniform whatever the jitter, so that policies meet the same later attempts
        let uniform = rng.random::<f64>();
        let wait_s = match retry.jitter {
            Jitter::None => bound_s,
            Jitter::Full => bound_s * uniform,
            Jitter::Equal => bound_s / 2.0 * (1.0 + uniform),
            Jitter::Decorrelated => {
                let last_s = if self.attempts == 1 { retry.base_s } else { self.last_wait_s };
                (retry.base_s + (3.0 * last_s - retry.base_s) * uniform).min(retry.cap_s)
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
