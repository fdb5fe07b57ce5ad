//! `agent-sim levers`.

use std::process::ExitCode;

use clap::Args;

use super::output::{in_width, print};
use super::progress::Bar;
use super::run::Format;
use super::{Which, tell_notes};
use crate::Error;
use crate::report;
use crate::simulate::levers;

/// Rank what could be changed: by money saved and by seconds off the slowest sessions
///
/// Every lever that fits the scenario is pulled by itself, on the same sessions: a cache, longer lifetimes, keep-alive,
/// shorter results, fewer or searched tool definitions, calls side by side, timeouts, hedging, idempotency keys, a smaller
/// model, compaction. What is on already is ranked by what it brings, and what each lever costs elsewhere is told.
#[derive(Debug, Args)]
pub(super) struct LeversCommand {
    #[command(flatten)]
    which: Which,
    /// Start from one of the file's [strategies]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
}

impl LeversCommand {
    pub fn run(self) -> Result<ExitCode, Error> {
        let mut scenario = self.which.load(self.strategy.as_deref())?;
        scenario.run.precision.clear();
        tell_notes([(String::new(), &scenario)]);
        let bar = Bar::new();
        let ranking = levers(scenario, self.which.options(), &bar)?;
        drop(bar);
        print(&match self.format {
            Format::Terminal => in_width(|style| report::levers_terminal(&ranking, style)),
            Format::Markdown => report::levers_markdown(&ranking),
            Format::Json => report::levers_json(&ranking).map_err(|e| Error::Output(e.into()))?,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
