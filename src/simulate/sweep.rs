//! A grid of settings on the same sessions, or of fleets on the same arrivals and draws.

use super::compare::{pair_with, paired};
use super::fleets::{FleetWay, Seen, is_alike};
use super::{Answer, Options, Progress, play};
use crate::Error;
use crate::check;
use crate::engine;
use crate::scenario::Scenario;
use crate::stats::{Estimate, Figure, Growth, Rate, Reading, Statistic};

/// A grid of settings, played on the same sessions; of fleets on the same arrivals and draws.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The scenario of the first point.
    pub scenario: Scenario,
    /// The keys that are set.
    pub keys: Vec<String>,
    /// What is shown of every point: name and figure.
    pub figures: Vec<(String, Figure)>,
    /// The points, the last key changing first.
    pub points: Vec<SweepPoint>,
}

/// One point of a grid.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// Key and value, as written.
    pub settings: Vec<(String, String)>,
    /// What each of the figures is here.
    pub cells: Vec<SweepCell>,
    /// Sessions that were played or, of a fleet, that ended.
    pub sessions: u64,
    /// The share of them that ended with their answer.
    pub answered: Option<f64>,
    /// Whether every closed form that applies agrees.
    pub checks_pass: bool,
    /// Why there are no figures: a fleet that doesn't settle.
    pub unsettled: Option<Unsettled>,
}

/// A figure at one point.
#[derive(Debug, Clone, Copy, Default)]
pub struct SweepCell {
    /// What it is.
    pub reading: Option<Reading>,
    /// What it is beyond the first point's: means, paired by session; every figure of a fleet, paired by replication.
    pub against_first: Option<Estimate>,
    /// What it should be by a closed form, where one applies.
    pub expected: Option<f64>,
}

/// Why a fleet has no figures.
#[derive(Debug, Clone)]
pub enum Unsettled {
    /// More work is sure to come than can be done: what is told before such a fleet is played.
    Overloaded(String),
    /// Its sessions in progress grow; and the name of what is used up.
    Grows(Growth, Option<String>),
}

impl Unsettled {
    fn of(way: &FleetWay) -> Option<Self> {
        let answer = match &way.answer {
            Ok(answer) => answer,
            Err(why) => return Some(Self::Overloaded(why.clone())),
        };
        let growth = answer.fleet.as_ref()?.summary.growth.clone()?;
        let full = growth.saturated.map(|what| what.name(&answer.scenario.places).to_owned());
        Some(Self::Grows(growth, full))
    }
}

impl SweepPoint {
    /// `session.turns=10, cache.lifetime=5m`.
    pub fn name(&self) -> String {
        self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
    }
}

type Settings = Vec<(String, String)>;

/// Plays the points of a grid, each on the same sessions, or fleets on the same arrivals and draws. With `precision` the first
/// point decides how many sessions are played.
///
/// # Errors
/// Where the points don't share seed and sessions, or fleets what is watched of them; where some are fleets and some aren't;
/// where they are too long for every session's values to be kept, or the threads can't be had.
pub fn sweep(
    points: Vec<(Settings, Scenario)>,
    figures: Vec<(String, Figure)>,
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Sweep, Error> {
    let is_fleet = points.first().is_some_and(|(_, first)| first.model.fleet.is_some());
    let (scenario, played) = if is_fleet {
        fleets(points, &figures, options, progress)
    } else {
        singles(points, &figures, options, progress)
    }?;
    let keys =
        played.first().map_or_else(Vec::new, |point| point.settings.iter().map(|(key, _)| key.clone()).collect());
    Ok(Sweep { scenario, keys, figures, points: played })
}

fn no_points() -> Error {
    Error::Sweep("the grid has no points".to_owned())
}

fn singles(
    points: Vec<(Settings, Scenario)>,
    figures: &[(String, Figure)],
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<(Scenario, Vec<SweepPoint>), Error> {
    let (mut first, mut played): (Option<Answer>, Vec<SweepPoint>) = (None, Vec::new());
    for (settings, mut scenario) in points {
        if scenario.model.fleet.is_some() {
            return Err(Error::Sweep(format!(
                "some points are fleets, and the first isn't ({}): sessions that share something aren't the same sessions",
                scenario.strategy
            )));
        }
        pair_with(&mut scenario, first.as_ref())?;
        let answer =
            engine::with_threads(options.threads, || play(scenario, progress, None)).map_err(Error::Threads)??;
        let against = first.as_ref().unwrap_or(&answer);
        let cell = |(_, figure): &(String, Figure)| {
            let Figure::Sessions(statistic) = *figure else { return SweepCell::default() };
            let against_first = match statistic {
                Statistic::Mean(metric) => paired(&answer, against, metric, &[]).map(|paired| paired.difference),
                _ => None,
            };
            let expected = check::expected(&answer.scenario.model, statistic);
            SweepCell { reading: statistic.read(&answer.summary), against_first, expected }
        };
        played.push(SweepPoint {
            settings,
            cells: figures.iter().map(cell).collect(),
            sessions: answer.summary.sessions,
            answered: answer.summary.rate(Rate::Answered).map(|rate| rate.value),
            checks_pass: answer.checks.all_pass(),
            unsettled: None,
        });
        if first.is_none() {
            first = Some(answer);
        }
    }
    Ok((first.ok_or_else(no_points)?.scenario, played))
}

fn fleets(
    points: Vec<(Settings, Scenario)>,
    figures: &[(String, Figure)],
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<(Scenario, Vec<SweepPoint>), Error> {
    let (mut first, mut base): (Option<Scenario>, Option<Vec<Seen>>) = (None, None);
    let mut played = Vec::new();
    for (settings, scenario) in points {
        is_alike(first.get_or_insert_with(|| scenario.clone()), &scenario)?;
        let way = FleetWay::play(String::new(), scenario, options, progress)?;
        let seen: Vec<Seen> = figures.iter().map(|(name, _)| Seen::of(name, &way)).collect();
        let against = base.as_ref().unwrap_or(&seen);
        let cell = |(seen, against): (&Seen, &Seen)| SweepCell {
            reading: seen.reading,
            against_first: seen.beyond(against),
            expected: None,
        };
        let answer = way.answer.as_ref().ok();
        played.push(SweepPoint {
            settings,
            cells: seen.iter().zip(against).map(cell).collect(),
            sessions: answer.map_or(0, |answer| answer.summary.sessions),
            answered: way.settled().and_then(|(answer, _)| answer.summary.rate(Rate::Answered)).map(|rate| rate.value),
            checks_pass: answer.is_none_or(|answer| answer.checks.all_pass()),
            unsettled: Unsettled::of(&way),
        });
        base.get_or_insert(seen);
    }
    Ok((first.ok_or_else(no_points)?, played))
}
