//! `agent-sim plan`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::{Folder, in_width, print};
use super::progress::Bar;
use super::solve::unknown;
use super::sweep::shown;
use super::{Which, tell_notes};
use crate::Error;
use crate::chart::{self, HockeyStick};
use crate::report;
use crate::scenario::{Scenario, split_values};
use crate::simulate::{Found, Plan, plan, plan_list};
use crate::stats::{Goal, ThresholdError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    /// For a person
    Terminal,
    /// JSON, and nothing else on standard output
    Json,
}

/// Find the least capacity, or the most load, with which a fleet meets its goals
///
/// Every value that is tried meets the same arrivals, turns and latencies. The answer comes with the values between which
/// chance leaves it open, with the curve that leads there, and with what fills up first.
#[derive(Debug, Args)]
pub(super) struct PlanCommand {
    #[command(flatten)]
    which: Which,
    /// What has to hold, as often as you like: `latency_s.p99 <= 60`, `message_latency_s.p99 <= 30`,
    /// `answered >= 0.99`, `search.wait_s.p99 < 2`.
    /// Besides the JSON report's metrics and rates there are `in_progress`, `ended_per_hour`, `cost_per_hour_usd`, and of
    /// each tool and of `model` its `.utilisation`, `.wait_s.mean`, `.wait_s.p99` and `.turned_away`
    #[arg(long = "for", value_name = "GOAL", required = true)]
    goals: Vec<String>,
    /// The key to vary, such as `fleet.limits.input_tokens_per_minute`, `tools.search.capacity` or
    /// `fleet.arrivals.poisson.per_hour`; or a key with its values in order:
    /// `fleet.limits.tier=anthropic-start,anthropic-build`
    #[arg(long, value_name = "KEY")]
    vary: String,
    /// Where to look: 1,50 (a tenth of the file's value to ten times that)
    #[arg(long, value_name = "LOW,HIGH")]
    between: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value_t = PlanFormat::Terminal)]
    format: PlanFormat,
    /// Write plan.json and the curve (SVG and PNG) into this folder too
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

const NOT_MET: u8 = 3;

impl PlanCommand {
    pub fn run(self) -> Result<ExitCode, Error> {
        let (key, list) = match self.vary.split_once('=') {
            Some((key, values)) => (key.trim(), Some(split_values(values))),
            None => (self.vary.as_str(), None),
        };
        if key.starts_with("run.") || key == "fleet.replications" {
            return Err(Error::Plan(format!("`{key}` is no part of the fleet that is planned")));
        }
        let load = |value: &str| {
            let set = [("--vary", format!("{key}={value}"))];
            self.which.load_with(&self.which.file, None, &set)
        };
        // with values given, the file need not be right without one
        let base = match (self.which.load(None), &list, &self.between) {
            (Ok(base), ..) => base,
            (Err(_), Some(values), _) if !values.is_empty() => load(&values[0])?,
            (Err(_), None, Some(between)) => load(split_values(between).first().map_or("", String::as_str))?,
            (Err(error), ..) => return Err(error),
        };
        if base.model.fleet.is_none() {
            return Err(Error::Plan(format!(
                "{} has no [fleet]: a plan is for sessions that meet, so say when they arrive",
                base.file
            )));
        }
        let mut goals = Vec::new();
        for text in &self.goals {
            goals.push(Goal::parse(text, &base.model, &base.places).map_err(|error| wrong_goal(&base, &error))?);
        }
        if let Some(name) = key.split('.').next().filter(|name| base.tools.iter().any(|tool| tool == name)) {
            return Err(Error::Plan(format!(
                "{name} is a tool, and its keys stand below tools: did you mean `tools.{key}`?"
            )));
        }
        let below = |place: &&String| key.strip_prefix(place.as_str()).is_some_and(|rest| rest.starts_with('.'));
        if let Some((place, (agent, tool))) =
            base.places.iter().find(below).and_then(|place| Some((place, place.split_once('.')?)))
            && base.value_at(key).is_none()
            && base.value_at(agent).is_none()
        {
            let rest = key.strip_prefix(place.as_str()).unwrap_or_default();
            return Err(Error::Plan(format!(
                "{place} is a tool of an agent, and its keys stand below agents: did you mean `agents.{agent}.tools.{tool}{rest}`?"
            )));
        }
        if list.is_none() && base.value_at(key).is_some_and(|text| text.starts_with('{') || text.starts_with('[')) {
            let keys = "fleet.arrivals.poisson.per_hour or fleet.arrivals.profile.scale";
            return Err(Error::Plan(format!("`{key}` isn't one number; name one below it, such as {keys}")));
        }
        let folder = self.output.as_deref().map(Folder::open).transpose()?;
        tell_notes([(String::new(), &base)]);
        let bar = Bar::new();
        let planned = match list {
            Some(values) if values.is_empty() || values.iter().any(String::is_empty) => {
                return Err(Error::Plan(format!("`{}` must be a key, or a key and its values", self.vary)));
            }
            Some(values) => plan_list(key, &values, goals, &load, self.which.options(), &bar)?,
            None => {
                let try_value = |text: &str| load(text).map(|_| ());
                let unknown = unknown(base.value_at(key), key, self.between.as_deref(), &try_value)?;
                plan(&unknown, goals, &load, self.which.options(), &bar)?
            }
        };
        drop(bar);
        let json = || report::plan_json(&planned).map_err(|e| Error::Output(e.into()));
        if let Some(mut folder) = folder {
            folder.write("plan.json", &json()?)?;
            if let Some(curve) = curve(&planned) {
                let written = chart::write(&curve, folder.path(), "plan")?;
                folder.add(written);
            }
            folder.close(&["plan"]);
        }
        print(&match self.format {
            PlanFormat::Terminal => in_width(|style| report::plan_terminal(&planned, style)),
            PlanFormat::Json => json()?,
        })?;
        let met = !matches!(planned.found, Found::Nowhere | Found::Mixed);
        Ok(if met { ExitCode::SUCCESS } else { ExitCode::from(NOT_MET) })
    }
}

/// What is wrong with a goal, and which figures there are.
fn wrong_goal(base: &Scenario, error: &ThresholdError) -> Error {
    if !matches!(error, ThresholdError::Statistic(_)) {
        return Error::Plan(error.to_string());
    }
    let places = base.places.iter().map(String::as_str).chain(["model"]).collect::<Vec<_>>().join(", ");
    Error::Plan(format!(
        "{error}\n  there are the metrics and rates of the JSON report (latency_s.p99, turn_latency_s.p99, \
         cost_usd.mean, answered, failed), \
         in_progress, ended_per_hour, cost_per_hour_usd, and below {places}: .utilisation, .wait_s.mean, .wait_s.p99, .turned_away"
    ))
}

/// The first goal's figure against the key; nothing for a list of names.
fn curve(plan: &Plan) -> Option<HockeyStick> {
    plan.kind?;
    let goal = plan.goals.first()?;
    let points = plan.points.iter().filter_map(|point| {
        let reading = point.goals.first()?.0?;
        let [low, high] = if reading.ci95[0].is_finite() { reading.ci95 } else { [reading.value; 2] };
        Some((point.x, reading.value, low, high))
    });
    let answer = match plan.found {
        Found::Least { x, .. } | Found::Most { x, .. } => Some(x),
        _ => None,
    };
    // what lies far from the answer only takes room
    let is_near = |x: f64| answer.is_none_or(|answer| x >= answer / 4.0 && x <= 2.5 * answer);
    let near: Vec<_> = points.clone().filter(|point| is_near(point.0)).collect();
    let points: Vec<_> = if near.len() < 3 { points.collect() } else { near };
    if points.len() < 2 {
        return None;
    }
    Some(HockeyStick {
        title: plan.scenario.title.clone(),
        subtitle: format!(
            "{} against {}, with its 95 % interval over replications",
            goal.figure.name(&plan.scenario.places),
            plan.key
        ),
        x_name: plan.key.clone(),
        name: goal.figure.name(&plan.scenario.places),
        points,
        bound: goal.limit,
        unstable: plan
            .points
            .iter()
            .filter(|point| point.unsettled.is_some() && is_near(point.x))
            .map(|point| point.x)
            .collect(),
        answer,
        shown: shown(goal.figure),
    })
}
