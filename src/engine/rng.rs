//! The only maker of generators.
//!
//! Every published figure is defined by this file and by the versions of `rand_distr` and `rand_xoshiro`: [`SessionDraws`] turns (seed,
//! session, purpose, turn) into a 64-bit number by a frozen mixing function; there a `SplitMix64` sequence starts (Steele,
//! Lea and Flood 2014), which is as good begun anywhere, takes no time to begin, and whose numbers can be had one by one.
//! Golden values in the tests hold it fixed.

use rand::SeedableRng;
use rand_xoshiro::SplitMix64;

use crate::session::{Draws, Purpose};

/// The finaliser of `SplitMix64`.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The random streams of one session.
#[derive(Debug, Clone, Copy)]
pub struct SessionDraws {
    key: u64,
}

impl SessionDraws {
    /// The streams of session number `session` under `seed`.
    #[inline]
    pub fn new(seed: u64, session: u64) -> Self {
        Self { key: mix(mix(seed.wrapping_add(GOLDEN)) ^ session.wrapping_mul(GOLDEN)) }
    }
}

/// One number per purpose: 5 bits of kind, 11 of tool, 16 of call. `model`'s limits keep the parts apart.
#[inline]
const fn code(purpose: Purpose) -> u64 {
    let (kind, tool, call) = match purpose {
        Purpose::Turns => (1, 0, 0),
        Purpose::System => (2, 0, 0),
        Purpose::Task => (3, 0, 0),
        Purpose::Warm => (4, 0, 0),
        Purpose::Output => (5, 0, 0),
        Purpose::FirstToken => (6, 0, 0),
        Purpose::OutputRate => (7, 0, 0),
        Purpose::Calls { tool } => (8, tool, 0),
        Purpose::Fate { tool } => (9, tool, 0),
        Purpose::Latency { tool } => (10, tool, 0),
        Purpose::Result { tool } => (11, tool, 0),
        Purpose::Error { tool } => (12, tool, 0),
        Purpose::Retry { tool, call } => (13, tool, call),
        Purpose::Messages => (14, 0, 0),
        Purpose::Message => (15, 0, 0),
        Purpose::Think => (16, 0, 0),
        Purpose::ModelFate => (17, 0, 0),
        Purpose::ModelRetry => (18, 0, 0),
        Purpose::Summary => (19, 0, 0),
        Purpose::Breaks => (20, 0, 0),
        Purpose::Approval { tool } => (21, tool, 0),
        Purpose::ApprovalWait { tool, call } => (22, tool, call),
        Purpose::Route => (23, 0, 0),
        Purpose::Success => (24, 0, 0),
        Purpose::Run => (25, 0, 0),
        Purpose::Search { tool, search } => (26, tool, search),
        Purpose::SearchHit { tool } => (27, tool, 0),
        Purpose::SearchLatency { tool, search } => (28, tool, search),
        Purpose::Agent { tool, call } => (29, tool, call),
        Purpose::AgentWarm { tool } => (30, tool, 0),
        Purpose::HerdNetwork { client } => (31, 0, client),
        Purpose::HerdWait { client } => (31, 1, client),
        Purpose::HerdService => (31, 2, 0),
        Purpose::Arrivals => (31, 3, 0),
        Purpose::Outage { tool } => (0, tool, 0),
    };
    (kind << 27) | ((tool as u64) << 16) | call
}

impl SessionDraws {
    /// (purpose, turn) fill 64 bits, and an odd factor keeps different pairs different.
    #[inline]
    fn start(&self, purpose: Purpose, turn: u64) -> u64 {
        // not GOLDEN, by whose multiples SplitMix64 steps
        const SPREAD: u64 = 0xD1B5_4A32_D192_ED03;
        self.key ^ ((code(purpose) << 32) | turn).wrapping_mul(SPREAD)
    }
}

impl Draws for SessionDraws {
    type Stream = SplitMix64;

    #[inline(always)]
    #[allow(clippy::inline_always)] // as the draws that need it
    fn stream(&self, purpose: Purpose, turn: u64) -> SplitMix64 {
        SplitMix64::seed_from_u64(self.start(purpose, turn))
    }

    /// The stream's number `index`.
    #[inline]
    fn bits(&self, purpose: Purpose, turn: u64, index: u64) -> u64 {
        mix(self.start(purpose, turn).wrapping_add((index + 1).wrapping_mul(GOLDEN)))
    }

    fn child(&self, purpose: Purpose, turn: u64, index: u64) -> Self {
        Self { key: self.bits(purpose, turn, index) }
    }
}

/// The generator of bootstrap sample number `replicate` of a seed's run.
pub fn replicate(seed: u64, replicate: u64) -> SplitMix64 {
    SplitMix64::seed_from_u64(mix(mix(seed ^ GOLDEN).wrapping_add(replicate.wrapping_mul(GOLDEN))))
}
