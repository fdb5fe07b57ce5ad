//! `agent-sim figures`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::{in_width, print};
use crate::Error;
use crate::report::figures_terminal;
use crate::scenario::{Request, Scenario};

const EXAMPLES: &str = "\
Where they are used:
  agent-sim run scenario.toml --fail-if 'cost_usd.p95 > 1.50'      and [thresholds] of the file
  agent-sim compare scenario.toml --metric cost_usd
  agent-sim sweep scenario.toml --over session.turns=10,50 --metric latency_s.p99
  agent-sim solve scenario.toml --find session.turns --where 'cost_usd.mean = 1'
  agent-sim plan scenario.toml --for 'latency_s.p99 <= 60' --vary tools.search.capacity";

/// List the figures that can be asked of a scenario by name, and what they mean
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Figures {
    /// The scenario file
    file: PathBuf,
    /// Override a key of the file, as often as you like
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Take one of the file's [strategies]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
}

impl Figures {
    pub fn run(self) -> Result<ExitCode, Error> {
        let request = Request { sets: &self.set, strategy: self.strategy.as_deref(), ..Request::default() };
        let scenario = Scenario::load(&self.file, &request)?;
        print(&in_width(|style| figures_terminal(&scenario, style)))?;
        Ok(ExitCode::SUCCESS)
    }
}
