//! `agent-sim compare`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::fleet::Held;
use super::output::{Folder, in_width, options, print};
use super::progress::Bar;
use super::run::Format;
use super::{Which, metric, tell_notes, threshold_code};
use crate::Error;
use crate::report;
use crate::scenario::Scenario;
use crate::simulate::compare;
use crate::stats::Metric;

/// Hold a scenario's strategies, or two files, side by side on the same sessions
///
/// Every way meets the same turns, outputs, latencies and failures, so a difference is taken session by session and its
/// 95 % interval is far narrower than that of two runs. A difference whose interval covers zero is called undecided.
#[derive(Debug, Args)]
pub(super) struct Compare {
    #[command(flatten)]
    which: Which,
    /// Another scenario to hold against the first, instead of the first one's strategies
    other: Option<PathBuf>,
    /// A metric to compare, as often as you like; names as in the JSON report (`cost_usd` and `latency_s`)
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Exit with code 3 where this holds of any way: `--fail-if 'cost_usd.p95 > 1.50'`
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Fail too where the 95 % interval reaches over a threshold
    #[arg(long)]
    strict: bool,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// The same as --format markdown: a verdict and tables for a pull request
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// Write report.html, compare.json, compare.md, charts (SVG and PNG) and the tables of all ways into this folder too
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the tables as CSV beside Parquet
    #[arg(long, requires = "output")]
    csv: bool,
}

impl Compare {
    /// The scenarios that are held side by side.
    fn all(&self, base: Scenario) -> Result<Vec<Scenario>, Error> {
        let mut scenarios = Vec::new();
        match &self.other {
            Some(other) => scenarios.push(self.which.load_file(other, None)?),
            None if base.strategies.is_empty() => return Err(Error::NothingToCompare(base.file)),
            None => {
                for strategy in &base.strategies {
                    scenarios.push(self.which.load(Some(strategy))?);
                }
            }
        }
        scenarios.insert(0, base);
        let names = report::way_names(&scenarios.iter().collect::<Vec<_>>());
        for (scenario, name) in scenarios.iter_mut().zip(names) {
            scenario.strategy = name;
        }
        Which::add_conditions(&mut scenarios, &self.fail_if)?;
        Ok(scenarios)
    }

    fn fleets(&self, base: Scenario) -> Result<ExitCode, Error> {
        let format = if self.markdown { Format::Markdown } else { self.format };
        let (metrics, strict, output) = (self.metric.as_slice(), self.strict, self.output.as_deref());
        let scenarios = self.all(base)?;
        super::fleet::compare(&self.which, scenarios, &Held { metrics, format, strict, output, csv: self.csv })
    }

    pub fn run(self) -> Result<ExitCode, Error> {
        let base = self.which.load(None)?;
        if base.model.fleet.is_some() {
            return self.fleets(base);
        }
        let names: Vec<&str> = match self.metric.as_slice() {
            [] if base.model.herd.is_some() => vec!["herd_calls", "herd_time_s"],
            [] => vec!["cost_usd", "latency_s"],
            names => names.iter().map(String::as_str).collect(),
        };
        let mut metrics: Vec<Metric> = Vec::new();
        for name in names {
            let metric = metric(name)?;
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        let scenarios = self.all(base)?;
        let folder = self.output.as_deref().map(Folder::open).transpose()?;
        let tables = folder.as_ref().map(|folder| folder.tables("compare", &scenarios, self.csv)).transpose()?;
        tell_notes(scenarios.iter().map(|scenario| (scenario.strategy.clone(), scenario)));
        let bar = Bar::new();
        let comparison = compare(scenarios, &metrics, options(&self.which, tables.as_ref()), &bar)?;
        drop(bar);
        let json = || report::compare_json(&comparison).map_err(|e| Error::Output(e.into()));
        if let Some(mut folder) = folder {
            folder.write("compare.json", &json()?)?;
            folder.write("compare.md", &report::compare_markdown(&comparison))?;
            folder.finish(tables, false, &|figures| report::compare_html(&comparison, figures))?;
        }
        print(&match (self.markdown, self.format) {
            (true, _) | (_, Format::Markdown) => report::compare_markdown(&comparison),
            (_, Format::Json) => json()?,
            (_, Format::Terminal) => in_width(|style| report::compare_terminal(&comparison, style)),
        })?;
        let not_kept = comparison.answers.iter().enumerate().flat_map(|(way, answer)| {
            let name = report::way_name(&comparison, way);
            report::not_kept(answer, self.strict).into_iter().map(move |text| format!("{name}: {text}"))
        });
        Ok(threshold_code(not_kept))
    }
}
