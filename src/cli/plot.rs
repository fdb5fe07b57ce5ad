//! `agent-sim plot`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::Folder;
use crate::Error;

/// Draw the charts of a folder of results again, from its tables
///
/// Reads what `run -o` or `compare -o` wrote: sessions.parquet, turns.parquet or fleet.parquet, and report.json or
/// compare.json. Nothing is simulated.
#[derive(Debug, Args)]
pub(super) struct Plot {
    /// The folder that `-o` wrote
    folder: PathBuf,
    /// Write the charts (SVG and PNG) here instead
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Plot {
    pub fn run(self) -> Result<ExitCode, Error> {
        if !self.folder.is_dir() {
            return Err(Error::NoResults(self.folder));
        }
        let folder = Folder::open(self.output.as_deref().unwrap_or(&self.folder))?;
        folder.draw(&self.folder)?;
        Ok(ExitCode::SUCCESS)
    }
}
