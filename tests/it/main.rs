//! All integration tests in one binary, a module per theme.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::float_cmp, clippy::unreadable_literal)]
#![allow(clippy::many_single_char_names, clippy::similar_names, clippy::type_complexity, missing_docs)]
#![allow(clippy::case_sensitive_file_extension_comparisons, clippy::format_collect)]

mod agents;
mod budget;
mod budget_size;
mod bug_reports;
mod checks;
mod checks_agents;
mod checks_sessions;
mod cli;
mod compare;
mod distributions;
mod fleet;
mod fleet_agents;
#[cfg(feature = "frames")]
mod frames;
mod golden;
mod herd;
mod levers;
mod mechanisms;
mod pages;
mod prices;
mod properties;
mod scenarios;
mod schema;
mod solve;
mod statistics;
mod support;
mod tables;
mod theory;
mod walls;
mod wrong_files;
