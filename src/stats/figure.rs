//! One number of a fleet, by name: `latency_s.p99` as of any scenario, and `in_progress`, `search.wait_s.p99`,
//! `model.turned_away`, which only a fleet has.

use super::fleet::{FleetSummary, Place};
use super::metric::{Metric, Rate, Unit};
use super::quantile::{QUANTILES, quantile_name, quantile_ranks};
use super::sample::Sample;
use super::statistic::{Reading, Statistic, StatisticError};
use super::store::select;
use super::summary::{Summary, TurnMetric};
use crate::engine::Replication;
use crate::model::Model;

/// What is asked of a fleet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// A number of its sessions.
    Sessions(Statistic),
    /// Sessions in progress, on average over time.
    InProgress,
    /// Sessions that end, an hour.
    EndedPerHour,
    /// Money of the sessions that end, $ an hour.
    CostPerHour,
    /// The share of a station's servers that is busy.
    Utilisation(Place),
    /// The mean wait at a station, s.
    WaitMean(Place),
    /// A quantile of the wait at a station, s.
    WaitQuantile(Place, f64),
    /// The share of a station's requests that is turned away.
    TurnedAway(Place),
}

impl Figure {
    /// Every figure of a fleet, in the order of a report.
    pub fn all(model: &Model) -> Vec<Self> {
        let mut all = Vec::new();
        for metric in Metric::ALL.into_iter().filter(|metric| metric.applies(model)) {
            all.push(Self::Sessions(Statistic::Mean(metric)));
            all.extend(QUANTILES.map(|p| Self::Sessions(Statistic::Quantile(metric, p))));
        }
        for metric in TurnMetric::ALL.into_iter().filter(|metric| metric.rate().applies(model)) {
            all.push(Self::Sessions(Statistic::TurnMean(metric)));
            all.extend(QUANTILES.map(|p| Self::Sessions(Statistic::TurnQuantile(metric, p))));
        }
        let rates = Rate::ALL.iter().copied().filter(|rate| rate.name().is_some() && rate.applies(model));
        all.extend(rates.map(|rate| Self::Sessions(Statistic::Rate(rate))));
        all.extend([Self::InProgress, Self::EndedPerHour]);
        if model.tariff.is_some() {
            all.push(Self::CostPerHour);
        }
        for place in Place::all(model) {
            if waits_at(model, place) {
                all.push(Self::Utilisation(place));
                all.push(Self::WaitMean(place));
                all.extend(QUANTILES.map(|p| Self::WaitQuantile(place, p)));
            }
            all.push(Self::TurnedAway(place));
        }
        all
    }

    /// Its name; `tools` are those of the tools.
    pub fn name(self, tools: &[String]) -> String {
        let at = |place: Place| place.name(tools);
        match self {
            Self::Sessions(statistic) => statistic.name(),
            Self::InProgress => "in_progress".to_owned(),
            Self::EndedPerHour => "ended_per_hour".to_owned(),
            Self::CostPerHour => "cost_per_hour_usd".to_owned(),
            Self::Utilisation(place) => format!("{}.utilisation", at(place)),
            Self::WaitMean(place) => format!("{}.wait_s.mean", at(place)),
            Self::WaitQuantile(place, p) => format!("{}.wait_s.{}", at(place), quantile_name(p)),
            Self::TurnedAway(place) => format!("{}.turned_away", at(place)),
        }
    }

    /// The figure with this name in a model with these tools.
    ///
    /// # Errors
    /// Where there is none.
    pub fn parse(name: &str, model: &Model, tools: &[String]) -> Result<Self, StatisticError> {
        let all = Self::all(model);
        if let Some(found) = all.iter().find(|figure| figure.name(tools) == name) {
            return Ok(*found);
        }
        match Statistic::parse(name) {
            Ok(_) => Err(StatisticError::DoesNotApply(name.to_owned(), "can't be asked for")),
            Err(StatisticError::Unknown { name, .. }) if is_of_queue(&name, model, tools) => {
                let what = if name.starts_with("model.") {
                    "can't be asked for: only `concurrent` of [fleet.limits] makes calls of the model wait"
                } else {
                    "can't be asked for: the tool has no `capacity`"
                };
                Err(StatisticError::DoesNotApply(name, what))
            }
            Err(StatisticError::Unknown { name, nearest }) => {
                let names = all.iter().map(|figure| figure.name(tools));
                let scored = names.map(|known| (strsim::jaro_winkler(&known, &name), known));
                let near = scored.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
                Err(StatisticError::Unknown { name, nearest: near.map(|(_, known)| known).or(nearest) })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether this is, but for the name of a station, a figure that only fleets have.
    pub(super) fn is_of_fleets(name: &str) -> bool {
        let whole = [Self::InProgress, Self::EndedPerHour, Self::CostPerHour].map(|figure| figure.name(&[]));
        let begins = |whole: &String| {
            name.strip_prefix(whole.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let of_station = |name: &str| name.ends_with(".utilisation") || name.ends_with(".turned_away");
        whole.iter().any(begins) || of_station(name) || name.contains(".wait_s.")
    }

    /// What it counts; nothing of a share.
    pub fn unit(self) -> Option<Unit> {
        match self {
            Self::Sessions(statistic) => statistic.unit(),
            Self::InProgress | Self::EndedPerHour => Some(Unit::Count),
            Self::CostPerHour => Some(Unit::Usd),
            Self::WaitMean(_) | Self::WaitQuantile(..) => Some(Unit::Seconds),
            Self::Utilisation(_) | Self::TurnedAway(_) => None,
        }
    }

    /// Whether it is a share, between 0 and 1.
    pub fn is_share(self) -> bool {
        match self {
            Self::Sessions(statistic) => statistic.is_share(),
            Self::Utilisation(_) | Self::TurnedAway(_) => true,
            _ => false,
        }
    }

    /// What an answer says of it; nothing where there were no values.
    pub fn read(self, summary: &Summary, fleet: &FleetSummary) -> Option<Reading> {
        let estimate = |e: super::Estimate| Reading { value: e.value, ci95: e.ci95, too_few: false };
        let reading = match self {
            Self::Sessions(statistic) => statistic.read(summary)?,
            Self::InProgress => estimate(fleet.in_progress),
            Self::EndedPerHour => estimate(fleet.ended_per_hour),
            Self::CostPerHour => estimate(fleet.cost_per_hour_usd?),
            Self::Utilisation(place) => estimate(fleet.station(place)?.utilisation?),
            Self::WaitMean(place) => estimate(fleet.station(place)?.wait_s?),
            Self::WaitQuantile(place, p) => {
                let q = fleet.station(place)?.wait_quantiles.iter().find(|q| (q.p - p).abs() < 1e-12)?;
                Reading { value: q.value, ci95: q.ci95, too_few: q.too_few }
            }
            Self::TurnedAway(place) => estimate(fleet.station(place)?.turned_away),
        };
        Some(reading).filter(|reading| reading.value.is_finite())
    }

    /// What one replication says of it.
    pub fn of(self, replication: &Replication<Sample>) -> Option<f64> {
        let window_s = replication.counted_s;
        let sample = &replication.sample;
        let station = |place: Place| replication.stations.get(place.index());
        let value = match self {
            Self::Sessions(Statistic::Mean(metric)) => sample.moments(metric.quantity()).mean,
            Self::Sessions(Statistic::Quantile(metric, p)) => {
                let n = sample.moments(metric.quantity()).n;
                let rank = quantile_ranks(n, p).0;
                *sample.at_ranks(metric, &[rank]).first().filter(|_| n > 0)?
            }
            Self::Sessions(Statistic::Rate(rate)) => sample.ratio(rate)?.value,
            Self::Sessions(Statistic::TurnMean(metric)) => sample.ratio(metric.rate())?.value,
            Self::Sessions(Statistic::TurnQuantile(metric, p)) => {
                let mut values = sample.turns.values(metric).0.to_vec();
                let rank = quantile_ranks(values.len() as u64, p).0;
                *select(&mut values, &[rank]).first()?
            }
            Self::InProgress => replication.in_progress.area_s / window_s,
            Self::EndedPerHour => replication.ended.counted as f64 * 3600.0 / window_s,
            Self::CostPerHour => sample.sources().total().usd() * 3600.0 / window_s,
            Self::Utilisation(place) => {
                let station = station(place)?;
                station.busy.area_s / (window_s * station.servers as f64)
            }
            Self::WaitMean(place) => {
                let waits = &station(place)?.waits;
                waits.sum.s() / waits.count as f64
            }
            Self::WaitQuantile(place, p) => station(place)?.waits.quantile_s(p)?,
            Self::TurnedAway(place) => {
                let station = station(place)?;
                station.turned_away.counted as f64 / station.came.counted as f64
            }
        };
        Some(value).filter(|value| value.is_finite())
    }
}

/// Whether it is a figure of the queue of one of the places.
fn is_of_queue(name: &str, model: &Model, tools: &[String]) -> bool {
    let of_place = |place: Place| name.strip_prefix(place.name(tools)).and_then(|rest| rest.strip_prefix('.'));
    let mut endings = Place::all(model).into_iter().filter_map(of_place);
    endings.any(|ending| ending == "utilisation" || ending.starts_with("wait_s."))
}

fn waits_at(model: &Model, place: Place) -> bool {
    match place {
        Place::Model => model.fleet.as_ref().is_some_and(|fleet| fleet.limits.concurrent.is_some()),
        Place::Tool(index) => model.station_tools().get(index).is_some_and(|tool| tool.station.is_some()),
    }
}
