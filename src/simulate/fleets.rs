//! Several fleets on the same arrivals and draws, each difference paired over replications.

use super::{Answer, FleetAnswer, Options, Progress, simulate};
use crate::Error;
use crate::scenario::Scenario;
use crate::stats::{Estimate, Figure, Moments, Reading};

/// One way of running a fleet.
#[derive(Debug, Clone)]
pub struct FleetWay {
    /// The strategy's name, or the file's.
    pub name: String,
    /// What it came to, or why it doesn't settle.
    pub answer: Result<Answer, String>,
}

impl FleetWay {
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
        let answer = match simulate(scenario, options, progress) {
            Ok(answer) => Ok(answer),
            Err(error @ Error::Unstable(_)) => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        ways.push(FleetWay { name, answer });
    }
    let tools = first.map_or_else(Vec::new, |first| first.places);
    let rows = figures.iter().map(|figure| row(*figure, figure.name(&tools), &ways)).collect();
    Ok(FleetComparison { ways, rows })
}

fn is_alike(first: &Scenario, other: &Scenario) -> Result<(), Error> {
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

/// The figure in a way, whose tools may stand in another order.
fn row(figure: Figure, name: String, ways: &[FleetWay]) -> FleetRow {
    let values = |way: &FleetWay| -> Option<Vec<Option<f64>>> {
        let (answer, fleet) = way.settled()?;
        let named = |(figure, _): &&(Figure, Vec<Option<f64>>)| figure.name(&answer.scenario.places) == name;
        fleet.values.iter().find(named).map(|(_, values)| values.clone())
    };
    let reading = |way: &FleetWay| {
        let (answer, fleet) = way.settled()?;
        let own = Figure::parse(&name, &answer.scenario.model, &answer.scenario.places).ok()?;
        own.read(&answer.summary, &fleet.summary)
    };
    let base = ways.first().and_then(values);
    let first = ways.first().and_then(reading);
    let difference = |way: &FleetWay| {
        let (mine, base) = (values(way)?, base.as_ref()?);
        let pairs = mine.iter().zip(base).filter_map(|(mine, base)| Some((*mine)? - (*base)?));
        let differences: Vec<f64> = pairs.collect();
        let estimate = Moments::of(&differences).estimate();
        // what is never negative here may be so elsewhere
        let half = (estimate.ci95[1] - estimate.value).max(0.0);
        // of quantiles the readings are those of all sessions together: the difference is theirs, its spread the replications'
        let value = reading(way)?.value - first?.value;
        (differences.len() > 1).then_some(Estimate { value, ci95: [value - half, value + half], ..estimate })
    };
    FleetRow {
        figure,
        readings: ways.iter().map(reading).collect(),
        differences: ways
            .iter()
            .enumerate()
            .map(|(index, way)| if index == 0 { None } else { difference(way) })
            .collect(),
        name,
    }
}
