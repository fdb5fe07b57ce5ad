//! x
pub mod chart;
pub mod check;
pub mod cli;
pub mod dist;
pub mod engine;
mod error;
pub mod model;
pub mod price;
pub mod report;
pub mod scenario;
pub mod session;
pub mod simulate;
pub mod stats;
pub mod theory;
pub use error::Error;
