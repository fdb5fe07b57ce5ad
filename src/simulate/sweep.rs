//! A grid of settings on the same sessions, or of fleets on the same arrivals and draws.

use super::compare::{pair_with, paired};
use super::fleets::{FleetWay, Seen, Unsettled, is_alike};
use super::{Answer, Options, Progress, play};
use crate::Error;
use crate::check;
use crate::engine;
use crate::scenario::Scenario;
use crate::stats::{Estimate, Figure, FleetSummary, Place, Rate, Reading, Statistic};

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
    /// Whether every closed form that applies agrees; nothing where nothing was played.
    pub checks_pass: Option<bool>,
    /// Why there are no figures: a fleet that doesn't settle.
    pub unsettled: Option<Unsettled>,
    /// Of a fleet, the place that turns away the largest share of its calls, where that is more than one in a hundred.
    pub turned_away: Option<(String, f64)>,
    /// Of a fleet, a place that is busy nearly all of the time, with that share: figures there may be those of one that still
    /// grows.
    pub used_up: Option<(String, f64)>,
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

impl SweepPoint {
    /// `session.turns=10, cache.lifetime=5m`.
    pub fn name(&self) -> String {
        name(&self.settings)
    }
}

fn name(settings: &[(String, String)]) -> String {
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
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
    let Some((_, first)) = points.first() else { return Err(Error::Sweep("the grid has no points".to_owned())) };
    let is_fleet = first.model.fleet.is_some();
    if let Some((settings, _)) = points.iter().find(|(_, scenario)| scenario.model.fleet.is_some() != is_fleet) {
        let (what, other) = if is_fleet { ("is a fleet", "isn't") } else { ("isn't a fleet", "is one") };
        return Err(Error::Sweep(format!(
            "the first point {what}, and the one with {} {other}: sessions that share something aren't the same sessions",
            name(settings)
        )));
    }
    if is_fleet {
        points.iter().try_for_each(|(_, scenario)| is_alike(first, scenario))?;
    }
    let scenario = first.clone();
    let played = if is_fleet {
        fleets(points, &figures, options, progress)
    } else {
        singles(points, &figures, options, progress)
    }?;
    let keys =
        played.first().map_or_else(Vec::new, |point| point.settings.iter().map(|(key, _)| key.clone()).collect());
    Ok(Sweep { scenario, keys, figures, points: played })
}

fn singles(
    points: Vec<(Settings, Scenario)>,
    figures: &[(String, Figure)],
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Vec<SweepPoint>, Error> {
    let (mut first, mut played): (Option<Answer>, Vec<SweepPoint>) = (None, Vec::new());
    for (settings, mut scenario) in points {
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
            checks_pass: Some(answer.checks.all_pass()),
            unsettled: None,
            turned_away: None,
            used_up: None,
        });
        if first.is_none() {
            first = Some(answer);
        }
    }
    Ok(played)
}

fn fleets(
    points: Vec<(Settings, Scenario)>,
    figures: &[(String, Figure)],
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<Vec<SweepPoint>, Error> {
    let (mut base, mut played): (Option<Vec<Seen>>, Vec<SweepPoint>) = (None, Vec::new());
    for (settings, scenario) in points {
        let way = FleetWay::play(String::new(), scenario, options, progress)?;
        let seen: Vec<Seen> = figures.iter().map(|(name, _)| Seen::of(name, &way)).collect();
        let against = base.as_ref().unwrap_or(&seen);
        let cell = |(seen, against): (&Seen, &Seen)| SweepCell {
            reading: seen.reading,
            against_first: seen.beyond(against),
            expected: None,
        };
        let answer = way.answer.as_ref().ok();
        let named = |strain: fn(&FleetSummary) -> Option<(Place, f64)>| {
            let (answer, fleet) = way.settled()?;
            strain(&fleet.summary).map(|(place, share)| (place.name(&answer.scenario.places).to_owned(), share))
        };
        played.push(SweepPoint {
            settings,
            cells: seen.iter().zip(against).map(cell).collect(),
            sessions: answer.map_or(0, |answer| answer.summary.sessions),
            answered: way.settled().and_then(|(answer, _)| answer.summary.rate(Rate::Answered)).map(|rate| rate.value),
            checks_pass: answer.map(|answer| answer.checks.all_pass()),
            unsettled: way.unsettled(),
            turned_away: named(FleetSummary::turns_away),
            used_up: named(FleetSummary::used_up),
        });
        base.get_or_insert(seen);
    }
    Ok(played)
}
