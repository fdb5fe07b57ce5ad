//! Closed forms of the model, by subject: plain functions of numbers, each with its source and its assumptions. The
//! ids are MODEL.md §7's. [`crate::check`] knows which of them hold in a scenario.

pub mod cache;
pub mod latency;
pub mod limits;
pub mod outcome;
pub mod retry;
pub mod tokens;
