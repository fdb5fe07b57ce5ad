//! `agent-sim run`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

use clap::{Args, ValueEnum};

use super::output::{Folder, json, print};
use super::progress::Bar;
use super::{Which, threshold_code};
use crate::chart::{self, CostByTurn, CostDistribution, TailCurve};
use crate::report::{self, Style};
use crate::session::Outcome;
use crate::simulate::{Answer, simulate, turn_costs};
use crate::stats::{Metric, Quantity, TurnMetric};
use crate::{Error, check};

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
    /// Write report.md, report.json and the charts (SVG and PNG) into this folder too
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Run {
    pub fn run(self) -> Result<ExitCode, Error> {
        let mut scenario = self.which.load(self.strategy.as_deref())?;
        Which::add_conditions(slice::from_mut(&mut scenario), &self.fail_if)?;
        let folder = self.output.as_deref().map(Folder::open).transpose()?;
        let bar = Bar::new();
        let answer = simulate(scenario, self.which.options(), &bar)?;
        drop(bar);
        if let Some(folder) = folder {
            write_all(&answer, folder)?;
        }
        print(&match self.format {
            Format::Terminal => report::terminal(&answer, Style::Colour),
            Format::Json => json(slice::from_ref(&answer))?,
            Format::Markdown => report::markdown(&answer),
        })?;
        if let Some(growth) = answer.fleet.as_ref().and_then(|fleet| fleet.summary.growth.as_ref()) {
            anstream::eprintln!("{}", report::growth_text(&answer, growth));
            return Ok(ExitCode::from(1));
        }
        Ok(threshold_code(report::not_kept(&answer, self.strict)))
    }
}

/// Mean dollars of a session's input, with the scenario's cache where there is one, and without.
fn input_means(answer: &Answer) -> (Option<f64>, f64) {
    let mean = |name: &str| answer.summary.metric(name).map(|metric| metric.mean.value);
    let billed = mean("cost_input_usd").unwrap_or_default();
    mean("cost_input_without_cache_usd").map_or((None, billed), |without| (Some(billed), without))
}

fn write_all(answer: &Answer, mut folder: Folder) -> Result<(), Error> {
    folder.write("report.md", &report::markdown(answer))?;
    folder.write("report.json", &json(slice::from_ref(answer))?)?;
    let (scenario, sample, title) = (&answer.scenario, &answer.sample, answer.scenario.title.as_str());
    if answer.fleet.is_some() {
        super::fleet::write_charts(answer, &mut folder)?;
        folder.close(&super::fleet::CHARTS);
        return Ok(());
    }
    if let Some(costs) = turn_costs(scenario) {
        let chart = CostByTurn {
            title: title.to_owned(),
            sessions: costs.sessions(),
            input_usd: input_means(answer),
            with_cache_usd: scenario.model.cache.enabled.then(|| costs.billed_usd()),
            without_cache_usd: costs.without_cache_usd(),
        };
        let written = chart::write(&chart, folder.path(), "cost-by-turn")?;
        folder.add(written);
    }
    match CostDistribution::new(title, sample, &answer.summary) {
        Some(chart) => {
            let written = chart::write(&chart, folder.path(), "cost-distribution")?;
            folder.add(written);
        }
        None if scenario.model.tariff.is_none() => {}
        None => {
            anstream::eprintln!("no cost-distribution chart: every session costs the same, or too many to keep each");
        }
    }
    if let Some(latencies) = Metric::of(Quantity::LatencyS)
        .filter(|metric| metric.applies(&scenario.model))
        .and_then(|metric| sample.values(metric))
    {
        let ended = sample.ended(Outcome::Answered);
        let about = format!(
            "latency of a whole session; {} sessions, {} answered",
            report::whole(sample.sessions()),
            report::whole(ended)
        );
        let theory = |ps: &[f64]| check::session_quantiles(&scenario.model, ps).unwrap_or_default();
        let chart = TailCurve::new(title, &about, &latencies, theory);
        let written = chart::write(&chart, folder.path(), "latency")?;
        folder.add(written);
    }
    let phases = sample.turn_values_s(TurnMetric::ToolPhase);
    if !phases.is_empty() && check::phase_quantiles(&scenario.model, &[0.5]).is_some() {
        let about = format!("one tool phase; {} phases of the first sessions", report::whole(phases.len() as u64));
        let theory = |ps: &[f64]| check::phase_quantiles(&scenario.model, ps).unwrap_or_default();
        let chart = TailCurve::new(title, &about, phases, theory);
        let written = chart::write(&chart, folder.path(), "tool-phase")?;
        folder.add(written);
    }
    folder.close(&["cost-by-turn", "cost-distribution", "latency", "tool-phase"]);
    Ok(())
}
