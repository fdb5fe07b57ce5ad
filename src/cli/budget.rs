//! `agent-sim budget`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{Folder, in_width, print};
use super::progress::Bar;
use super::{Which, tell_notes};
use crate::Error;
use crate::chart::{self, BudgetCurve};
use crate::report;
use crate::simulate::{InFlight, size_budget};

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
    /// So many sessions that begin together and share a budget without reservations, as often as you like (1, 5 and 20)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    in_flight: Vec<u64>,
    /// The dollars that they share (as many medians of a session's cost)
    #[arg(long, value_name = "USD", value_parser = dollars)]
    shared: Option<f64>,
    /// Write budget.json and the curve of what budgets stop (SVG and PNG) into this folder too
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = BudgetFormat::Terminal)]
    format: BudgetFormat,
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok().filter(|usd| *usd > 0.0 && *usd <= 1e9);
    amount.ok_or_else(|| "an amount of dollars is written as 9.90".to_owned())
}

impl BudgetCommand {
    pub fn run(self) -> Result<ExitCode, Error> {
        let scenario = self.which.load(self.strategy.as_deref())?;
        let in_flight = InFlight { side_by_side: self.in_flight, budget_usd: self.shared };
        let folder = self.output.as_deref().map(Folder::open).transpose()?;
        tell_notes([(String::new(), &scenario)]);
        let bar = Bar::new();
        let sizing = size_budget(&scenario, &in_flight, self.which.options(), &bar)?;
        drop(bar);
        let json = || report::budget_json(&sizing).map_err(|e| Error::Output(e.into()));
        if let Some(mut folder) = folder {
            folder.write("budget.json", &json()?)?;
            let curve = BudgetCurve {
                title: sizing.scenario.title.clone(),
                sessions: report::whole(sizing.sessions),
                curve: sizing.curve.clone(),
                needed: sizing.needed.iter().filter(|need| !need.too_few).map(|need| (need.share, need.usd)).collect(),
            };
            let written = chart::write(&curve, folder.path(), "budget-stopped")?;
            folder.add(written);
            folder.close(&["budget-stopped"]);
        }
        print(&match self.format {
            BudgetFormat::Terminal => in_width(|style| report::budget_terminal(&sizing, style)),
            BudgetFormat::Json => json()?,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
