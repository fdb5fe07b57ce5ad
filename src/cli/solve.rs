//! `agent-sim solve`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{Folder, in_width, print};
use super::progress::Bar;
use super::{Which, tell_notes};
use crate::Error;
use crate::chart::{self, SweepLine, SweepLines};
use crate::report;
use crate::scenario::{duration_s, split_values};
use crate::simulate::{Kind, Solution, Unknown, solve};
use crate::stats::{Figure, Question};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SolveFormat {
    /// For a person
    Terminal,
    /// JSON, and nothing else on standard output
    Json,
}

/// Find the value of a key at which two strategies cost the same, or a figure meets a target
///
/// Every value that is tried is played on the same sessions, so that only the key makes a difference. The answer comes
/// with its interval, and with the closed form's where both sides have one.
#[derive(Debug, Args)]
pub(super) struct Solve {
    #[command(flatten)]
    which: Which,
    /// The key whose value is wanted, as --set takes it: session.turns, tools.search.latency.exponential.mean
    #[arg(long, value_name = "KEY")]
    find: String,
    /// What is to hold, of two strategies or of one and a number: `cost_usd.mean(hour) = cost_usd.mean(base)`,
    /// `latency_s.p99 = 60`
    #[arg(long = "where", value_name = "QUESTION")]
    question: String,
    /// Where to look: 1,500 or 0.01,0.5 or 1s,10m (a tenth of the file's value to ten times that)
    #[arg(long, value_name = "LOW,HIGH")]
    between: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = SolveFormat::Terminal)]
    format: SolveFormat,
    /// Write solve.json and the chart of both sides (SVG and PNG) into this folder too
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Solve {
    pub fn run(self) -> Result<ExitCode, Error> {
        let question = Question::parse(&self.question).map_err(|error| Error::Solve(error.to_string()))?;
        if self.find.starts_with("run.") {
            return Err(Error::Solve(format!(
                "`{}` can't be looked for: all values are tried on the same sessions",
                self.find
            )));
        }
        // with --between the file need not be right without a value
        let written = match (self.which.load(None), &self.between) {
            (Ok(base), _) => {
                tell_notes([(String::new(), &base)]);
                base.value_at(&self.find)
            }
            (Err(_), Some(_)) => None,
            (Err(error), None) => return Err(error),
        };
        let try_value = |text: &str| {
            let set = [("--find", format!("{}={text}", self.find))];
            self.which.load_with(&self.which.file, None, &set).map(|_| ())
        };
        let unknown = unknown(written, &self.find, self.between.as_deref(), &try_value)?;
        let folder = self.output.as_deref().map(Folder::open).transpose()?;
        let load = |strategy: &str, value: &str| {
            let set = [("--find", format!("{}={value}", self.find))];
            let scenario = self.which.load_with(&self.which.file, Some(strategy), &set)?;
            if scenario.model.fleet.is_some() { Err(Error::NotOfFleets("solve")) } else { Ok(scenario) }
        };
        let bar = Bar::new();
        let solution = solve(unknown, question, &load, self.which.options(), &bar)?;
        drop(bar);
        let json = || report::solve_json(&solution).map_err(|e| Error::Output(e.into()));
        if let Some(mut folder) = folder {
            folder.write("solve.json", &json()?)?;
            let written = chart::write(&lines(&solution), folder.path(), "solve")?;
            folder.add(written);
            folder.close(&[]);
        }
        print(&match self.format {
            SolveFormat::Terminal => in_width(|style| report::solve_terminal(&solution, style)),
            SolveFormat::Json => json()?,
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A value with its kind.
fn value(text: &str) -> Option<(Kind, f64)> {
    let plain = text.trim().trim_matches('"');
    let digits = plain.replace('_', "");
    if let Ok(real) = digits.parse::<f64>() {
        let kind = if digits.bytes().all(|byte| byte.is_ascii_digit()) { Kind::Whole } else { Kind::Real };
        return Some((kind, real)).filter(|_| real.is_finite());
    }
    duration_s(plain).map(|seconds| (Kind::Seconds, seconds))
}

/// Where to look, from what is written at the key and what is asked for. `try_value` says whether the key can have a value,
/// and what is wrong where it can't.
pub(super) fn unknown(
    written: Option<String>,
    key: &str,
    between: Option<&str>,
    try_value: &dyn Fn(&str) -> Result<(), Error>,
) -> Result<Unknown, Error> {
    let is_right = |text: &str| try_value(text).is_ok();
    let known = written.as_deref().and_then(value);
    // whole numbers may only be a way of writing: the key says whether it takes others
    let kind_of = |kind: Kind, low: f64, high: f64| {
        let other = format!("{}", low + 0.618 * (high - low).min(1.0));
        if kind == Kind::Whole && is_right(&other) { Kind::Real } else { kind }
    };
    let Some(between) = between else {
        let Some((kind, x)) = known.filter(|(_, x)| *x > 0.0) else {
            if written.is_none() && !["0.5", "\"1s\""].into_iter().any(is_right) {
                // a key that takes no number at all
                try_value("1")?;
            }
            let what = written.map_or("isn't written in the file".to_owned(), |text| format!("is {text} in the file"));
            return Err(Error::Solve(format!(
                "`{key}` {what}, so it isn't plain where to look: say --between LOW,HIGH, as in 1,500 or 0.01,0.5 or 1s,10m"
            )));
        };
        let kind = kind_of(kind, x, 2.0 * x);
        let unknown = Unknown { key: key.to_owned(), kind, low: x, high: x };
        // as far from the file's value as the key can go
        let reach = |factors: &[f64]| {
            let tried = factors.iter().map(|factor| match kind {
                Kind::Whole => (x * factor).round().max(1.0),
                Kind::Real | Kind::Seconds => x * factor,
            });
            tried.into_iter().find(|value| is_right(&unknown.text(*value))).unwrap_or(x)
        };
        let (low, high) = (reach(&[0.1, 0.2, 0.5, 0.8, 0.9]), reach(&[10.0, 5.0, 3.0, 2.0, 1.5, 1.2, 1.1]));
        if low >= high {
            try_value(&unknown.text(2.0 * x))?;
            return Err(Error::Solve(format!("`{key}` takes no other value nearby: say --between LOW,HIGH")));
        }
        return Ok(Unknown { low, high, ..unknown });
    };
    let wrong = |why: &str| Error::Solve(format!("--between {between}: {why}"));
    let ends = split_values(between);
    let [low, high] = ends.as_slice() else { return Err(wrong("two values are wanted, as in 1,500 or 1s,10m")) };
    let (Some((low_kind, low)), Some((high_kind, high))) = (value(low), value(high)) else {
        return Err(wrong("an end is a whole number, a number or a duration, as in 1,500 or 0.01,0.5 or 1s,10m"));
    };
    let kind = match (low_kind, high_kind, known) {
        (Kind::Seconds, Kind::Seconds, _) => Kind::Seconds,
        (Kind::Seconds, ..) | (_, Kind::Seconds, _) => return Err(wrong("one end is a duration and the other isn't")),
        (Kind::Whole, Kind::Whole, Some((Kind::Real, _))) => Kind::Real,
        (Kind::Whole, Kind::Whole, _) => kind_of(Kind::Whole, low, high),
        _ => Kind::Real,
    };
    if low >= high {
        return Err(wrong("the first is to be the smaller one"));
    }
    Ok(Unknown { key: key.to_owned(), kind, low, high })
}

/// Both sides against the key.
fn lines(solution: &Solution) -> SweepLines {
    let side = |side: usize| {
        let points =
            solution.points.iter().map(|point| (point.x, point.sides[side], point.sides[side], point.sides[side]));
        SweepLine { name: solution.question.sides[side].label().to_owned(), points: points.collect() }
    };
    let statistic = solution.question.statistic();
    SweepLines {
        title: solution.scenario.title.clone(),
        subtitle: format!("{} against {}", solution.question.text, solution.unknown.key),
        x_name: solution.unknown.key.clone(),
        places: None,
        lines: vec![side(0), side(1)],
        shown: statistic.map_or(report::count, |statistic| super::sweep::shown(Figure::Sessions(statistic))),
        theory: Vec::new(),
        shaded: None,
    }
}
