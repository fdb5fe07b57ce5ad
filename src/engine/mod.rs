//! Playing sessions: alone, many in parallel.

pub mod alone;
pub mod rng;

pub use alone::{CHUNK, Collect, Play, map, whole_chunks, with_threads};
