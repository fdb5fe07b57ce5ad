//! `agent-sim schema`.

use std::process::ExitCode;

use clap::Args;

use super::output::print;
use crate::Error;
use crate::scenario::SCHEMA;

/// Print the JSON Schema of the scenario file
///
/// An editor that knows it completes keys and underlines mistakes while you type:
///
///   agent-sim schema > agent-sim.schema.json
///
/// and as the first line of the scenario, for Taplo and Even Better TOML:
///
///   #:schema ./agent-sim.schema.json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Schema {}

impl Schema {
    #[allow(clippy::unused_self)] // as every command
    pub fn run(self) -> Result<ExitCode, Error> {
        print(SCHEMA)?;
        Ok(ExitCode::SUCCESS)
    }
}
