//! `agent-sim init`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::print;
use crate::Error;
use crate::scenario::TEMPLATE;

/// Write a commented scenario to start from
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Where to write it
    #[arg(default_value = "scenario.toml")]
    file: PathBuf,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
}

impl Init {
    pub fn run(self) -> Result<ExitCode, Error> {
        let path = self.file;
        let failed = |source| Error::Write { path: path.clone(), source };
        let mut options = OpenOptions::new();
        options.write(true);
        if self.force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let mut file = match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(Error::Exists(path)),
            other => other.map_err(failed)?,
        };
        file.write_all(TEMPLATE.as_bytes()).map_err(failed)?;
        let shown = path.display();
        print(&format!("wrote {shown}; change it to describe your agent, then\n  agent-sim run {shown}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
