//! Parses the arguments, calls the library, maps an error to its exit code.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = agent_sim::cli::Cli::parse();
    agent_sim::cli::run(cli).unwrap_or_else(|error| agent_sim::cli::explain(&error))
}
