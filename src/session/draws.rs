//! How the rules ask for randomness.

use rand::Rng;

use crate::dist::{Dist, Whole};

/// What a random stream is for. A stream depends on (seed, session, purpose, turn) alone, so that the same session
/// number meets the same outputs, latencies and faults under every strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Purpose {
    /// How many messages a session handles.
    Messages,
    /// How many calls a message's loop has; the turn is the message's number from 0.
    Turns,
    /// Tokens of a later message; the turn is its number.
    Message,
    /// The wait before a later message; the turn is its number.
    Think,
    System,
    Task,
    Warm,
    Output,
    FirstToken,
    OutputRate,
    /// Whether the first attempt of a model call is lost, rejected or executed.
    ModelFate,
    /// All that happens in a model call after its first attempt failed.
    ModelRetry,
    /// All that is drawn for the summary before a turn.
    Summary,
    /// Which earlier bytes changed before a turn, and where.
    Breaks,
    /// How many calls a tool makes.
    Calls {
        tool: usize,
    },
    /// Whether first attempts are lost, rejected or executed: one uniform a call.
    Fate {
        tool: usize,
    },
    /// Latencies of first attempts, one a call.
    Latency {
        tool: usize,
    },
    /// Sizes of results, one a call.
    Result {
        tool: usize,
    },
    /// Whether the tool itself fails, one uniform a call.
    Error {
        tool: usize,
    },
    /// Whether a call waits for a person, and whether the person says no: two uniforms a call.
    Approval {
        tool: usize,
    },
    /// How long a call waits for a person.
    ApprovalWait {
        tool: usize,
        call: u64,
    },
    /// All that happens in one call after its first attempt failed or was hedged.
    Retry {
        tool: usize,
        call: u64,
    },
    /// All that is drawn for the call that searches for a tool.
    Search {
        tool: usize,
        search: u64,
    },
    /// Whether a search finds its tool, one uniform a search.
    SearchHit {
        tool: usize,
    },
    /// How long a search takes.
    SearchLatency {
        tool: usize,
        search: u64,
    },
    /// The worlds of a tool's calls that are sessions of an agent, by attempt.
    Agent {
        tool: usize,
        call: u64,
    },
    /// Whether the prefix of an agent's sessions is warm from elsewhere, one uniform a phase.
    AgentWarm {
        tool: usize,
    },
    /// Whether a run goes to the small model, and whether it has to be done again: two uniforms; the turn is the try.
    Route,
    /// Whether a run succeeds; the turn is the try.
    Success,
    /// The world of a session's later runs; the turn is the run.
    Run,
    /// When the sessions of a fleet arrive.
    Arrivals,
    /// Whether an outage hits an attempt, one uniform an attempt in the session's order.
    Outage {
        tool: usize,
    },
    /// How long the messages of a herd's client take.
    HerdNetwork {
        client: u64,
    },
    /// How long it waits between attempts.
    HerdWait {
        client: u64,
    },
    /// How long a herd's requests are served.
    HerdService,
}

/// A source of random streams for one session.
pub trait Draws: Sized {
    /// The generator of a stream.
    type Stream: Rng;

    /// The stream of a purpose in a turn (0 for what is drawn once a session), from its beginning.
    fn stream(&self, purpose: Purpose, turn: u64) -> Self::Stream;

    /// Number `index` of the uniforms of a purpose in a turn, as 64 bits after the point. A purpose asks for uniforms or
    /// for a stream, never for both.
    fn bits(&self, purpose: Purpose, turn: u64, index: u64) -> u64;

    /// The same as a number from 0 to below 1.
    #[inline]
    fn uniform(&self, purpose: Purpose, turn: u64, index: u64) -> f64 {
        (self.bits(purpose, turn, index) >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// The draws of a session within this one, or of a later run of it: a world of its own, named like a uniform.
    #[must_use]
    fn child(&self, purpose: Purpose, turn: u64, index: u64) -> Self;
}

/// A whole number: by inversion of one uniform where that is a look into a table, else from a stream.
#[inline(always)]
#[allow(clippy::inline_always)] // out of line it costs a tenth of a run's time
pub(super) fn draw_whole<D: Draws>(draws: &D, law: &Whole, purpose: Purpose, turn: u64) -> u64 {
    match law.as_constant() {
        Some(value) => value,
        None if law.has_table() => law.at(draws.bits(purpose, turn, 0)),
        None => law.draw(&mut draws.stream(purpose, turn)),
    }
}

/// A real number from its stream.
pub(super) fn draw_real<D: Draws>(draws: &D, law: &Dist, purpose: Purpose, turn: u64) -> f64 {
    match law.as_constant() {
        Some(value) => value,
        None => law.draw(&mut draws.stream(purpose, turn)),
    }
}
