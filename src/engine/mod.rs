//! Playing sessions: alone, many in parallel.

pub mod alone;
pub mod rng;

pub use alone::{Collect, Play, whole_chunks, with_threads};
