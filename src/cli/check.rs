//! `agent-sim check`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Which;
use super::output::{in_width, json, print};
use super::progress::Bar;
use crate::Error;
use crate::report;
use crate::simulate::simulate;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for a person
    Terminal,
    /// The report as JSON, one strategy after the other
    Json,
}

/// Hold every closed form that applies against the simulation
///
/// Shows theory beside simulation with z, the difference in standard errors, for the file itself and each of its
/// strategies; and for every form that doesn't apply the assumption that fails. Exit code 4 where one disagrees.
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    which: Which,
    /// Check this strategy only ("base" for the file itself)
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
}

const DISAGREES: u8 = 4;

impl Check {
    pub fn run(self) -> Result<ExitCode, Error> {
        let first = self.which.load(self.strategy.as_deref())?;
        let others: Vec<String> = if self.strategy.is_none() { first.strategies.clone() } else { Vec::new() };
        let mut scenarios = vec![first];
        for name in &others {
            scenarios.push(self.which.load(Some(name))?);
        }
        let bar = Bar::new();
        let mut answers = Vec::new();
        for scenario in scenarios {
            answers.push(simulate(scenario, self.which.options(), &bar)?);
        }
        drop(bar);
        match self.format {
            Format::Json => print(&json(&answers)?)?,
            Format::Terminal => {
                for (index, answer) in answers.iter().enumerate() {
                    if index > 0 {
                        print("\n")?;
                    }
                    print(&in_width(|style| report::checks_text(answer, style)))?;
                }
            }
        }
        let agree = answers.iter().all(|answer| answer.checks.all_pass());
        Ok(if agree { ExitCode::SUCCESS } else { ExitCode::from(DISAGREES) })
    }
}
