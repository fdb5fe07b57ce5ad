//! `agent-sim budget`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Which;
use super::output::print;
use super::progress::Bar;
use crate::Error;
use crate::report::{self, Style};
use crate::simulate::size_budget;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BudgetFormat {
    /// For a person
    Terminal,
    /// JSON, and nothing else on standard output
    Json,
}

/// Say how large a budget per session has to be, and what smaller ones would stop
///
/// One run without a limit tells of every session the smallest budget that lets it through, if each call's worst case has
/// to fit before it is made. Other limits of the file's [budget] are left out.
#[derive(Debug, Args)]
pub(super) struct BudgetCommand {
    #[command(flatten)]
    which: Which,
    /// Start from one of the file's [strategies]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = BudgetFormat::Terminal)]
    format: BudgetFormat,
}

impl BudgetCommand {
    pub fn run(self) -> Result<ExitCode, Error> {
        let scenario = self.which.load(self.strategy.as_deref())?;
        let bar = Bar::new();
        let sizing = size_budget(&scenario, self.which.options(), &bar)?;
        drop(bar);
        print(&match self.format {
            BudgetFormat::Terminal => report::budget_terminal(&sizing, Style::Colour),
            BudgetFormat::Json => report::budget_json(&sizing).map_err(|e| Error::Output(e.into()))?,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
