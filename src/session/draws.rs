//! How the rules ask for randomness.

use rand::Rng;

/// What a random stream is for. A stream depends on (seed, session, purpose, turn) alone, so that the same session
/// number meets the same outputs, latencies and faults under every strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Purpose {
    Turns,
    System,
    Task,
    Warm,
    Output,
    FirstToken,
    OutputRate,
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
    /// All that happens in one call after its first attempt failed.
    Retry {
        tool: usize,
        call: u64,
    },
}

/// A source of random streams for one session.
pub trait Draws {
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
}
