//! `agent-sim run`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

use clap::{Args, ValueEnum};

use super::output::{Folder, in_width, json, options, print};
use super::progress::Bar;
use super::{Which, threshold_code};
use crate::Error;
use crate::report;
use crate::simulate::simulate;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Tables for a person
    Terminal,
    /// The report as JSON, and nothing else on standard output
    Json,
    /// A table for a pull request
    Markdown,
}

/// Play a scenario and say what it costs and how long it takes
///
/// Prints the cost per session and month, the latency up to its 99th percentile, what the money goes to, how many calls
/// ran twice, and how each session ended; every figure with its 95 % interval.
#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    which: Which,
    /// Lay one of the file's [strategies] over it
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Exit with code 3 where this holds, as often as you like: `--fail-if 'cost_usd.p95 > 1.50'`
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Fail too where the 95 % interval reaches over a threshold
    #[arg(long)]
    strict: bool,
    /// Print the answer in one line, and nothing of what is written
    #[arg(short, long, conflicts_with = "format")]
    quiet: bool,
    /// Write report.html, report.md, report.json, the charts (SVG and PNG) and the tables (sessions.parquet, turns.parquet; of a fleet
    /// fleet.parquet) into this folder too
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the tables as CSV beside Parquet
    #[arg(long, requires = "output")]
    csv: bool,
}

impl Run {
    pub fn run(self) -> Result<ExitCode, Error> {
        let mut scenario = self.which.load(self.strategy.as_deref())?;
        Which::add_conditions(slice::from_mut(&mut scenario), &self.fail_if)?;
        let folder = self.output.as_deref().map(Folder::open).transpose()?;
        let tables =
            folder.as_ref().map(|folder| folder.tables("run", slice::from_ref(&scenario), self.csv)).transpose()?;
        let bar = Bar::new();
        let answer = simulate(scenario, options(&self.which, tables.as_ref()), &bar)?;
        drop(bar);
        if let Some(mut folder) = folder {
            folder.write("report.md", &report::markdown(&answer))?;
            folder.write("report.json", &json(slice::from_ref(&answer))?)?;
            folder.finish(tables, self.quiet, &|figures| report::html(&answer, figures))?;
        }
        if self.quiet {
            print(&report::one_line(&answer))?;
        } else {
            print(&match self.format {
                Format::Terminal => in_width(|style| report::terminal(&answer, style)),
                Format::Json => json(slice::from_ref(&answer))?,
                Format::Markdown => report::markdown(&answer),
            })?;
        }
        if let Some(growth) = answer.fleet.as_ref().and_then(|fleet| fleet.summary.growth.as_ref()) {
            anstream::eprintln!("{}", report::growth_text(&answer, growth));
            return Ok(ExitCode::from(1));
        }
        if answer.fleet.is_some() && answer.summary.sessions == 0 {
            anstream::eprintln!(
                "no session was over, its agents among it, between the warm-up and the horizon: give a longer horizon"
            );
            return Ok(ExitCode::from(1));
        }
        Ok(threshold_code(report::not_kept(&answer, self.strict)))
    }
}
