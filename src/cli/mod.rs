//! The command line: knows every command, decides nothing.

mod budget;
mod check;
mod compare;
mod completions;
mod figures;
mod fleet;
mod init;
mod levers;
mod man;
mod output;
mod plan;
mod plot;
mod prices;
mod progress;
mod reserve;
mod run;
mod schema;
mod solve;
mod sweep;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use jiff::civil::Date;

use crate::Error;
use crate::price::{ImportError, Imported, Sheet};
use crate::scenario::{Request, Scenario};
use crate::simulate::Options;
use crate::stats::{Metric, Statistic, StatisticError, Threshold};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// What will your LLM agents cost, and how long will they take? Before you run them.
///
/// Describe one kind of agent session in a TOML file: its prompt, turns, tools, retries and cache. agent-sim plays many
/// such sessions and answers in dollars and seconds, each figure with its 95 % interval, and holds its own figures
/// against closed forms.
#[derive(Debug, Parser)]
#[command(name = "agent-sim", version, styles = STYLES, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Start here:
  agent-sim init                              write a commented scenario.toml
  agent-sim run scenario.toml                 what it costs and how long it takes
  agent-sim run scenario.toml --set cache.lifetime=1h
  agent-sim compare scenario.toml             its strategies, on the same sessions
  agent-sim sweep scenario.toml --over session.turns=10,50,100
  agent-sim levers scenario.toml              what to change first, and what it saves
  agent-sim solve scenario.toml --find session.turns --where 'cost_usd.mean = 1'
  agent-sim budget scenario.toml              how large a budget has to be
  agent-sim run scenario.toml -o results      tables (Parquet), charts and report.html in a folder
  agent-sim check scenario.toml               hold the simulation against closed forms
  agent-sim prices claude-sonnet-4-6          one model's prices, with their source

Exit codes: 0 done, 1 the run failed, 2 the file or the arguments are wrong, 3 a threshold isn't kept, 4 a closed form disagrees (check only)";

#[derive(Debug, Subcommand)]
enum Command {
    /// Play a scenario and say what it costs and how long it takes
    Run(run::Run),
    /// Hold a scenario's strategies, or two files, side by side on the same sessions
    Compare(compare::Compare),
    /// Play a scenario over a grid of settings, on the same sessions
    Sweep(sweep::SweepCommand),
    /// Rank what could be changed: by money saved and by seconds off the slowest sessions
    Levers(levers::LeversCommand),
    /// Find the value of a key at which two strategies cost the same, or a figure meets a target
    Solve(solve::Solve),
    /// Find the least capacity, or the most load, with which a fleet meets its goals
    Plan(plan::PlanCommand),
    /// Draw the charts of a folder of results again, from its tables
    Plot(plot::Plot),
    /// Hold every closed form that applies against the simulation
    Check(check::Check),
    /// List the figures that can be asked of a scenario by name
    Figures(figures::Figures),
    /// Write a commented scenario to start from
    Init(init::Init),
    /// Say how large a budget per session has to be, and what smaller ones would stop
    Budget(budget::BudgetCommand),
    /// Say whether a model call fits what is left of a budget, at the most that it can cost
    Reserve(reserve::Reserve),
    /// Show the price sheet, or one model's prices with their source
    Prices(prices::Prices),
    /// Print the JSON Schema of the scenario file, for your editor
    Schema(schema::Schema),
    /// Print the manual page
    Man(man::Man),
    /// Print a completion script for your shell
    Completions(completions::Completions),
}

/// What the commands that play a scenario have in common.
#[derive(Debug, Args)]
struct Which {
    /// The scenario file
    file: PathBuf,
    /// Override a key of the file, as often as you like: --set session.turns=20 --set tools.search.timeout=5s
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Sessions to play (the file's `[run] sessions`, or 100000; a fleet plays until its horizon)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    sessions: Option<String>,
    /// Number that names the simulated world; the same seed gives the same figures (the file's, or 1)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<String>,
    /// Threads (one per core); the answer doesn't depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    prices: PriceSource,
}

/// Which prices are taken.
#[derive(Debug, Args)]
struct PriceSource {
    /// Take prices from this file instead of the built-in sheet: `LiteLLM`'s `model_prices_and_context_window.json`,
    /// genai-prices' data, or tab-separated rows (told apart by content)
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Take the prices of this day (the built-in sheet's, or today's with --prices; wins over `[price] as_of`)
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    as_of: Option<Date>,
    #[arg(skip)]
    sheet: OnceCell<Arc<Sheet>>,
}

fn day(text: &str) -> Result<Date, String> {
    text.parse().map_err(|_| "a day is written as 2026-12-01".to_owned())
}

/// Reads a price table.
fn import(path: &Path) -> Result<Imported, Error> {
    const MOST_BYTES: u64 = 100_000_000;
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MOST_BYTES {
        let why = format!("it has {size} bytes, and a table has at most {MOST_BYTES}");
        return Err(ImportError { file: path.display().to_string(), why }.into());
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let today = jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::now()).date();
    Ok(Sheet::import(&text, &path.display().to_string(), today)?)
}

impl PriceSource {
    /// The sheet, read once; what of it was left out is told on standard error.
    fn sheet(&self) -> Result<Arc<Sheet>, Error> {
        let Some(path) = &self.prices else { return Ok(Sheet::embedded().clone()) };
        if let Some(sheet) = self.sheet.get() {
            return Ok(sheet.clone());
        }
        let Imported { sheet, format, remarks } = import(path)?;
        anstream::eprintln!("prices: {} rows of {} ({format})", sheet.rows().len(), path.display());
        if !remarks.is_empty() {
            anstream::eprintln!(
                "not all of it could be read; `agent-sim prices --import {}` says what",
                path.display()
            );
        }
        Ok(self.sheet.get_or_init(|| sheet).clone())
    }
}

impl Which {
    fn load(&self, strategy: Option<&str>) -> Result<Scenario, Error> {
        self.load_file(&self.file, strategy)
    }

    fn load_file(&self, file: &Path, strategy: Option<&str>) -> Result<Scenario, Error> {
        self.load_with(file, strategy, &[])
    }

    /// With more to set, after what the arguments set: each with the argument that says so.
    fn load_with(
        &self,
        file: &Path,
        strategy: Option<&str>,
        more: &[(&'static str, String)],
    ) -> Result<Scenario, Error> {
        let mut more_sets = more.to_vec();
        more_sets.extend(self.sessions.iter().map(|n| ("--sessions", format!("run.sessions={n}"))));
        more_sets.extend(self.seed.iter().map(|n| ("--seed", format!("run.seed={n}"))));
        let (sheet, as_of) = (Some(self.prices.sheet()?), self.prices.as_of);
        let request = Request { sets: &self.set, more_sets: &more_sets, strategy, sheet, as_of };
        Ok(Scenario::load(file, &request)?)
    }

    /// Bounds from the command line, held against every way to which they apply, as those of the file.
    fn add_conditions(scenarios: &mut [Scenario], conditions: &[String]) -> Result<(), Error> {
        for condition in conditions {
            let Some(first) = scenarios.first() else { break };
            let threshold = Threshold::unless(condition, &first.model, &first.places)?;
            if !scenarios.iter().any(|scenario| threshold.applies(&scenario.model)) {
                for scenario in scenarios.iter() {
                    threshold.check(&scenario.model)?;
                }
            }
            for scenario in scenarios.iter_mut().filter(|scenario| threshold.applies(&scenario.model)) {
                scenario.run.thresholds.push(threshold.clone());
            }
        }
        Ok(())
    }

    fn options(&self) -> Options<'static> {
        Options { threads: self.threads.map(usize::from), tables: None }
    }
}

/// Says on standard error what a reader should know of the scenarios, each with its name: what holds of all of them once, and
/// of what doesn't where it does. `run` and `check` say it in their answer.
fn tell_notes<'a>(scenarios: impl IntoIterator<Item = (String, &'a Scenario)>) {
    let scenarios: Vec<(String, &Scenario)> = scenarios.into_iter().collect();
    let mut told: Vec<&String> = Vec::new();
    for note in scenarios.iter().flat_map(|(_, scenario)| &scenario.notes) {
        if told.contains(&note) {
            continue;
        }
        told.push(note);
        let of: Vec<&str> =
            scenarios.iter().filter(|(_, s)| s.notes.contains(note)).map(|(name, _)| name.as_str()).collect();
        match of.as_slice() {
            all if all.len() == scenarios.len() => anstream::eprintln!("note: {note}"),
            [one] => anstream::eprintln!("note ({one}): {note}"),
            [first, others @ ..] => anstream::eprintln!("note ({first} and {} more): {note}", others.len()),
            [] => {}
        }
    }
}

/// 3 where thresholds aren't kept, which are named.
fn threshold_code(not_kept: impl IntoIterator<Item = String>) -> ExitCode {
    not_kept.into_iter().fold(ExitCode::SUCCESS, |_, text| {
        anstream::eprintln!("threshold: {text}");
        ExitCode::from(3)
    })
}

/// The metric with this name; its quantiles are compared with it, so `cost_usd.p95` means the same.
fn metric(name: &str) -> Result<Metric, Error> {
    let name = match Statistic::parse_alone(name) {
        Ok(Statistic::Mean(metric) | Statistic::Quantile(metric, _)) => return Ok(metric),
        Err(error @ StatisticError::OfFleets(_)) => return Err(Error::Plan(error.to_string())),
        _ => name,
    };
    Metric::named(name).ok_or_else(|| Error::UnknownMetric {
        name: name.to_owned(),
        nearest: Metric::nearest(name).map(str::to_owned),
    })
}

/// Runs the command that the arguments ask for.
///
/// # Errors
/// What the command says; [`Error::exit_code`] tells whose turn it is.
pub fn run(cli: Cli) -> Result<ExitCode, Error> {
    match cli.command {
        Command::Run(command) => command.run(),
        Command::Compare(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Levers(command) => command.run(),
        Command::Solve(command) => command.run(),
        Command::Plan(command) => command.run(),
        Command::Plot(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Figures(command) => command.run(),
        Command::Init(command) => command.run(),
        Command::Budget(command) => command.run(),
        Command::Reserve(command) => command.run(),
        Command::Prices(command) => command.run(),
        Command::Schema(command) => command.run(),
        Command::Man(command) => command.run(),
        Command::Completions(command) => command.run(),
    }
}

/// Shows an error on standard error, with its lines of the file where it has some.
pub fn explain(error: &Error) -> ExitCode {
    let text = match error {
        Error::Output(io) if io.kind() == std::io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Error::Scenario(scenario) => scenario.render(true),
        other => format!("error: {other}"),
    };
    anstream::eprintln!("{text}");
    ExitCode::from(error.exit_code())
}
