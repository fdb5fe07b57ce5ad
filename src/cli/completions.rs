//! `agent-sim completions`.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, output::print};
use crate::Error;

/// Print a completion script for your shell
///
/// For bash: agent-sim completions bash > ~/.local/share/bash-completion/completions/agent-sim
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<ExitCode, Error> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "agent-sim", &mut script);
        print(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
