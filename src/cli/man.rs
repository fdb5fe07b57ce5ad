//! `agent-sim man`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use super::Cli;
use super::output::{Folder, print};
use crate::Error;

/// Print the manual page, or write one for every command
///
/// To read it: agent-sim man | man -l -
#[derive(Debug, Args)]
pub(super) struct Man {
    /// Write agent-sim.1, agent-sim-run.1 and so on into this folder instead
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<ExitCode, Error> {
        match self.output {
            None => print(&page(Cli::command())?)?,
            Some(path) => {
                let mut folder = Folder::open(&path)?;
                folder.write("agent-sim.1", &page(Cli::command())?)?;
                for command in Cli::command().get_subcommands().filter(|command| command.get_name() != "help") {
                    let name = format!("agent-sim-{}", command.get_name());
                    let typed = format!("agent-sim {}", command.get_name());
                    let page = page(command.clone().display_name(name.clone()).bin_name(typed))?;
                    folder.write(&format!("{name}.1"), &page)?;
                }
                folder.close(&[]);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn page(command: clap::Command) -> Result<String, Error> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command).render(&mut roff)?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}
