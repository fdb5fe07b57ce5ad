//! Playing sessions: alone, many in parallel; or as a fleet, on one clock.

pub mod alone;
pub mod fleet;
pub mod rng;
mod watch;

pub use alone::{CHUNK, Collect, Play, map, whole_chunks, with_threads};
pub use fleet::{
    Gauge, LimitKind, LimitRecord, MOST_IN_PROGRESS, PIECES, Replication, SESSION_NUMBERS, StationRecord, Tally, Waits,
    play_fleet,
};
