//! Several fleets on the same arrivals and draws, each difference paired over replications.

use super::{Answer, FleetAnswer, Options, Progress, simulate};
use crate::Error;
use crate::scenario::Scenario;
use crate::stats::{Estimate, Figure, Growth, Moments, Reading};

/// One way of running a fleet.
#[derive(Debug, Clone)]
pub struct FleetWay {
    /// The strategy's name, or the file's.
    pub name: String,
    /// What it came to, or why it doesn't settle.
    pub answer: Result<Answer, String>,
}

/// Why a fleet has no figures.
#[derive(Debug, Clone)]
pub enum Unsettled {
    /// More work is sure to come than can be done: what is told before such a fleet is played.
    Overloaded(String),
    /// It grows; and the name of what is used up.
    Grows(Growth, Option<String>),
}

impl Unsettled {
    /// Of a fleet that was played.
    pub(super) fn of(answer: &Answer) -> Option<Self> {
        let growth = answer.fleet_summary()?.growth.clone()?;
        let full = growth.saturated.map(|what| what.name(&answer.scenario.places).to_owned());
        Some(Self::Grows(growth, full))
    }

    /// Whether it never settles, as far as can be seen: something is used up. Otherwise its sessions are only long against
    /// the warm-up.
    pub fn is_unstable(&self) -> bool {
        match self {
            Self::Overloaded(_) => true,
            Self::Grows(growth, _) => growth.is_unstable(),
        }
    }
}

impl FleetWay {
    /// Plays it.
    pub(super) fn play(
        name: String,
        scenario: Scenario,
        options: Options<'_>,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let answer = match simulate(scenario, options, progress) {
            Ok(answer) => Ok(answer),
            Err(error @ Error::Unstable(_)) => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        Ok(Self { name, answer })
    }

    /// Why it doesn't settle, where it doesn't.
    pub fn unsettled(&self) -> Option<Unsettled> {
        match &self.answer {
            Ok(answer) => Unsettled::of(answer),
            Err(why) => Some(Unsettled::Overloaded(why.clone())),
        }
    }

    /// What it came to, where it settles.
    pub fn settled(&self) -> Option<(&Answer, &FleetAnswer)> {
        let answer = self.answer.as_ref().ok()?;
        Some((answer, answer.fleet.as_ref().filter(|fleet| fleet.summary.growth.is_none())?))
    }
}

/// A figure of all ways.
#[derive(Debug, Clone)]
pub struct FleetRow {
    /// Which.
    pub figure: Figure,
    /// Its name.
    pub name: String,
    /// What each way says of it.
    pub readings: Vec<Option<Reading>>,
    /// What each way is beyond the first, replication by replication.
    pub differences: Vec<Option<Estimate>>,
}

/// Several fleets side by side.
#[derive(Debug, Clone)]
pub struct FleetComparison {
    /// The first is what the others are held against.
    pub ways: Vec<FleetWay>,
    /// Figures.
    pub rows: Vec<FleetRow>,
}

/// Plays several fleets and holds each against the first. `figures` are chosen from the first way's model.
///
/// # Errors
/// Where they don't share seed, horizon, warm-up and replications, or the threads can't be had.
pub fn compare_fleets(
    scenarios: Vec<(String, Scenario)>,
    figures: &[Figure],
    options: Options<'_>,
    progress: &dyn Progress,
) -> Result<FleetComparison, Error> {
    let mut ways: Vec<FleetWay> = Vec::new();
    let mut first: Option<Scenario> = None;
    for (name, scenario) in scenarios {
        if let Some(first) = &first {
            is_alike(first, &scenario)?;
        } else {
            first = Some(scenario.clone());
        }
        ways.push(FleetWay::play(name, scenario, options, progress)?);
    }
    let tools = first.map_or_else(Vec::new, |first| first.places);
    let rows = figures.iter().map(|figure| row(*figure, figure.name(&tools), &ways)).collect();
    Ok(FleetComparison { ways, rows })
}

/// Whether two fleets are watched in the same way.
pub(super) fn is_alike(first: &Scenario, other: &Scenario) -> Result<(), Error> {
    let (Some(mine), Some(theirs)) = (&first.model.fleet, &other.model.fleet) else {
        return Err(Error::Plan(format!("{} has no [fleet], and {} has", other.file, first.file)));
    };
    let same = |a: f64, b: f64| a.total_cmp(&b).is_eq();
    let alike = first.run.seed == other.run.seed
        && mine.replications == theirs.replications
        && same(mine.horizon_s, theirs.horizon_s)
        && same(mine.warm_up_s, theirs.warm_up_s);
    if alike {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "{} ({}) and {} ({}) are watched differently: give both the same seed, replications, horizon and warm_up",
        first.file, first.strategy, other.file, other.strategy
    )))
}

/// What a way says of a figure.
pub(super) struct Seen {
    /// Of all replications together.
    pub reading: Option<Reading>,
    /// Of each replication.
    values: Option<Vec<Option<f64>>>,
}

impl Seen {
    /// The figure of this name in a way: its tools may stand in another order there.
    pub fn of(name: &str, way: &FleetWay) -> Self {
        let Some((answer, fleet)) = way.settled() else { return Self { reading: None, values: None } };
        let places = &answer.scenario.places;
        let own = Figure::parse(name, &answer.scenario.model, places).ok();
        let named = |(figure, _): &&(Figure, Vec<Option<f64>>)| figure.name(places) == name;
        Self {
            reading: own.and_then(|own| own.read(&answer.summary, &fleet.summary)),
            values: fleet.values.iter().find(named).map(|(_, values)| values.clone()),
        }
    }

    /// What it is beyond that of another way, replication by replication.
    pub fn beyond(&self, base: &Self) -> Option<Estimate> {
        let (mine, theirs) = (self.values.as_ref()?, base.values.as_ref()?);
        let pairs = mine.iter().zip(theirs).filter_map(|(mine, theirs)| Some((*mine)? - (*theirs)?));
        let differences: Vec<f64> = pairs.collect();
        let estimate = Moments::of(&differences).estimate();
        // what is never negative here may be so elsewhere
        let half = (estimate.ci95[1] - estimate.value).max(0.0);
        // of quantiles the readings are those of all sessions together: the difference is theirs, its spread the replications'
        let value = self.reading?.value - base.reading?.value;
        (differences.len() > 1).then_some(Estimate { value, ci95: [value - half, value + half], ..estimate })
    }
}

fn row(figure: Figure, name: String, ways: &[FleetWay]) -> FleetRow {
    let seen: Vec<Seen> = ways.iter().map(|way| Seen::of(&name, way)).collect();
    let beyond_first = |index: usize| seen.get(index)?.beyond(seen.first().filter(|_| index > 0)?);
    FleetRow {
        figure,
        readings: seen.iter().map(|seen| seen.reading).collect(),
        differences: (0..seen.len()).map(beyond_first).collect(),
        name,
    }
}
