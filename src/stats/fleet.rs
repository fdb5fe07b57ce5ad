//! A fleet in a few numbers. Its sessions aren't independent, so every interval comes from independent replications
//! (MODEL.md §6): Student's of a replication's mean or share; of quantiles that of the share below them.

use std::ops::Range;

use super::growth::{Growth, SATURATED, growth};
use super::metric::{Metric, Rate};
use super::moments::{Estimate, Moments};
use super::nodes::NodeSummary;
use super::quantile::{QUANTILES, QuantileEstimate, quantile_ranks};
use super::sample::Sample;
use super::summary::{MetricSummary, Summary, TurnMetric};
use crate::engine::{LimitKind, LimitRecord, PIECES, Replication, StationRecord, Waits};
use crate::model::{Fleet, Model};

/// What a station or limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Calls of the model.
    Model,
    /// Calls of the tool with this number among all of the tree of agents ([`Model::station_tools`]).
    Tool(usize),
}

impl Place {
    /// The places at which sessions of a model's fleet meet.
    pub fn all(model: &Model) -> Vec<Self> {
        let has_breakers = model.has_breakers();
        let tools = model.station_tools().into_iter().enumerate();
        let shared = tools.filter(|(_, tool)| tool.is_shared() || has_breakers).map(|(index, _)| Self::Tool(index));
        std::iter::once(Self::Model).chain(shared).collect()
    }

    /// Its name, of those of all tools of the tree of agents.
    pub fn name(self, places: &[String]) -> &str {
        match self {
            Self::Model => "model",
            Self::Tool(index) => places.get(index).map_or("", String::as_str),
        }
    }

    /// Where its station stands among those of a replication: the model's first, then the tools'.
    pub fn index(self) -> usize {
        match self {
            Self::Model => 0,
            Self::Tool(tool) => tool + 1,
        }
    }
}

/// A station, or a tool without an end of servers.
#[derive(Debug, Clone)]
pub struct StationSummary {
    /// Whose it is.
    pub place: Place,
    /// Whether it is a tool that is an agent, whose sessions can wait elsewhere.
    pub is_agent: bool,
    /// Servers, where there is an end of them.
    pub servers: Option<u64>,
    /// Places to wait, where there is an end of them.
    pub places: Option<u64>,
    /// Requests that came, an hour.
    pub came_per_hour: Estimate,
    /// Requests being served, on average over time.
    pub busy: Estimate,
    /// The share of its servers that is busy, where there is an end of them.
    pub utilisation: Option<Estimate>,
    /// Requests that wait, on average over time.
    pub waiting: Estimate,
    /// The most that waited at a time.
    pub most_waiting: u64,
    /// The wait of those whose service began, s; `None` where nobody can wait.
    pub wait_s: Option<Estimate>,
    /// Quantiles of it.
    pub wait_quantiles: Vec<QuantileEstimate>,
    /// The share of them that had to wait.
    pub waited: Option<Estimate>,
    /// The share of requests that was turned away.
    pub turned_away: Estimate,
    /// The share that failed because it was out of order.
    pub down: Estimate,
}

/// A provider limit.
#[derive(Debug, Clone)]
pub struct LimitSummary {
    /// What it counts.
    pub kind: LimitKind,
    /// What it allows, a minute.
    pub per_minute: f64,
    /// The share of it that was used.
    pub used: Estimate,
    /// The same in that piece of the horizon in which it was largest.
    pub used_at_peak: Estimate,
    /// Requests an hour that found too little of it.
    pub short_per_hour: Estimate,
    /// Requests that would find too little of it if it were full, over all replications.
    pub impossible: u64,
}

/// A number over time: for each piece of the horizon its mean over replications with its interval.
#[derive(Debug, Clone)]
pub struct Series {
    /// Which.
    pub kind: SeriesKind,
    /// One a piece; `None` where there is nothing to say.
    pub values: Vec<Option<Estimate>>,
}

/// What a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// Sessions in progress.
    InProgress,
    /// Sessions that arrive, a second.
    ArrivalsPerS,
    /// Requests that come to a station, a second, those that are repeated among them.
    CallsPerS(Place),
    /// Those of them that are turned away or lost, a second.
    FailuresPerS(Place),
    /// Requests that wait at a station.
    Waiting(Place),
    /// The share of a station's servers that is busy.
    Utilisation(Place),
    /// The share of a provider limit that is used.
    LimitUse(LimitKind),
    /// Calls that a breaker ends, a second.
    BreakerPerS,
    /// Sessions that end without their answer, an hour.
    UnansweredPerHour,
    /// Money of sessions that end, $ an hour.
    CostPerHour,
    /// Latency of sessions that end, s: the median.
    LatencyP50,
    /// Latency of sessions that end, s: the 99th percentile.
    LatencyP99,
}

/// Something that fills up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// A station.
    Station(Place),
    /// A provider limit.
    Limit(LimitKind),
}

impl Bottleneck {
    /// Its name, of those of all tools of the tree of agents.
    pub fn name(self, places: &[String]) -> &str {
        match self {
            Self::Station(place) => place.name(places),
            Self::Limit(kind) => kind.key(),
        }
    }
}

/// A fleet in numbers.
#[derive(Debug, Clone)]
pub struct FleetSummary {
    /// Replications that were played.
    pub replications: u64,
    /// How long each was watched, and how much of its beginning isn't counted, s.
    pub horizon_s: f64,
    /// See `horizon_s`.
    pub warm_up_s: f64,
    /// Sessions that arrived, an hour.
    pub arrived_per_hour: Estimate,
    /// Sessions that ended, an hour.
    pub ended_per_hour: Estimate,
    /// Sessions in progress, on average over time.
    pub in_progress: Estimate,
    /// Sessions in progress at the horizon.
    pub in_progress_at_end: Estimate,
    /// Sessions that were over at the horizon while agents that they had called were still under way, so that they aren't
    /// among those whose money and time are told.
    pub lingering_at_end: Estimate,
    /// Money of the sessions that ended, $ an hour; `None` without prices.
    pub cost_per_hour_usd: Option<Estimate>,
    /// The model, then the tools that sessions meet at.
    pub stations: Vec<StationSummary>,
    /// Provider limits.
    pub limits: Vec<LimitSummary>,
    /// The share of model calls that found tools and system in the cache; `None` where they can't be.
    pub prefix_warm: Option<Estimate>,
    /// Whether as many sessions arrive at all times.
    pub is_steady: bool,
    /// Whether it doesn't settle.
    pub growth: Option<Growth>,
    /// Numbers over time.
    pub series: Vec<Series>,
    /// How long a piece of them is, s.
    pub piece_s: f64,
    /// Events that were played.
    pub events: u64,
}

/// What a number over replications comes to.
pub(super) fn over(values: impl Iterator<Item = f64>) -> Estimate {
    Moments::of(&values.filter(|x| x.is_finite()).collect::<Vec<f64>>()).estimate()
}

/// A share: its interval stays between 0 and 1.
fn share(values: impl Iterator<Item = f64>) -> Estimate {
    let mut share = over(values);
    if !share.se.is_nan() {
        share.ci95 = [share.ci95[0].max(0.0), share.ci95[1].min(1.0)];
    }
    share
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

/// What the sessions came to: means and shares of each replication, averaged over them, and quantiles of all sessions.
pub fn fleet_sessions(model: &Model, replications: &[Replication<Sample>], pooled: &Sample) -> Summary {
    let samples: Vec<&Sample> = replications.iter().map(|r| &r.sample).filter(|sample| sample.sessions() > 0).collect();
    let mut summary = Summary::new(model, pooled);
    for (metric, own) in &mut summary.metrics {
        *own = over_replications(*metric, own, pooled, &samples);
    }
    for (metric, own) in &mut summary.turn_metrics {
        turns_over_replications(*metric, own, pooled, &samples);
    }
    for (rate, own) in &mut summary.rates {
        let values = samples.iter().filter_map(|sample| Some(sample.ratio(*rate)?.value));
        *own = if rate.is_at_most_one() { share(values) } else { over(values) };
        if *rate == Rate::Answered && own.se.is_nan() {
            own.value = pooled.ratio(*rate).map_or(f64::NAN, |all| all.value);
        }
    }
    let over_tools = |pooled: &mut Vec<Option<Estimate>>, of: &dyn Fn(&Sample, usize) -> Option<Estimate>| {
        for (index, own) in pooled.iter_mut().enumerate() {
            *own = own.map(|_| share(samples.iter().filter_map(|sample| Some(of(sample, index)?.value))));
        }
    };
    over_tools(&mut summary.tool_duplicates, &|sample, index| sample.tool_duplicates(index));
    over_tools(&mut summary.tools_on_path, &|sample, index| sample.tool_on_path(index));
    let nodes: Vec<Vec<NodeSummary>> = samples.iter().map(|sample| sample.nodes()).collect();
    for (index, own) in summary.nodes.iter_mut().enumerate() {
        let all: Vec<&NodeSummary> = nodes.iter().filter_map(|nodes| nodes.get(index)).collect();
        *own = NodeSummary::over(&all, &|values| over(values.into_iter()), &|values| share(values.into_iter()));
    }
    if let Some(success) = summary.rate(Rate::Success).copied() {
        for (k, own) in &mut summary.pass_k {
            *own = pooled.pass_k_with(*k, &success).unwrap_or(*own);
        }
    }
    summary
}

fn over_replications(metric: Metric, pooled: &MetricSummary, all: &Sample, samples: &[&Sample]) -> MetricSummary {
    let mean = over(samples.iter().map(|sample| sample.moments(metric.quantity()).mean));
    let n = all.moments(metric.quantity()).n;
    let quantile = |p: f64| {
        let at = |rank: u64| all.at_ranks(metric, &[rank]).first().copied().unwrap_or(f64::NAN);
        let below =
            |sample: &&Sample, value: f64| (sample.about_at_most(metric, value), sample.moments(metric.quantity()).n);
        pooled_quantile(p, n, at, |value| samples.iter().map(|sample| below(sample, value)).collect())
    };
    MetricSummary { mean, quantiles: QUANTILES.into_iter().map(quantile).collect(), ..pooled.clone() }
}

fn turns_over_replications(metric: TurnMetric, own: &mut MetricSummary, pooled: &Sample, samples: &[&Sample]) {
    own.mean = over(samples.iter().filter_map(|sample| Some(sample.ratio(metric.rate())?.value)));
    let mut sorted = pooled.turns.values(metric).0.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |rank: u64| sorted.get(rank.max(1) as usize - 1).copied().unwrap_or(f64::NAN);
    let below = |value: f64| {
        let of = |sample: &&Sample| {
            let values = sample.turns.values(metric).0;
            (values.iter().filter(|x| **x <= value).count() as u64, values.len() as u64)
        };
        samples.iter().map(of).collect()
    };
    own.quantiles = QUANTILES.into_iter().map(|p| pooled_quantile(p, sorted.len() as u64, at, below)).collect();
}

/// The quantile `p` of all `n` values together, which replications' own quantiles would miss where rare values come in
/// swarms. Its interval is that of the share of values below it over replications, carried over to values (Woodruff 1952).
/// `at` gives the value of a rank from 1, `below` for each replication how many values aren't above one, and of how many.
fn pooled_quantile(
    p: f64,
    n: u64,
    at: impl Fn(u64) -> f64,
    below: impl Fn(f64) -> Vec<(u64, u64)>,
) -> QuantileEstimate {
    let rank = quantile_ranks(n, p).0;
    let value = at(rank);
    let counts = below(value);
    let (some, all): (Vec<f64>, Vec<f64>) = counts.iter().map(|(some, all)| (*some as f64, *all as f64)).unzip();
    let replications = counts.len() as u64;
    let se = super::Covariance::of(&some, &all).ratio(false).map_or(f64::NAN, |share| share.se);
    let half = super::moments::half_width(replications) * se;
    let too_few = n as f64 / replications.max(1) as f64 * (1.0 - p) < FEWEST_BEYOND;
    if !half.is_finite() {
        return QuantileEstimate { p, value, ci95: [f64::NAN; 2], too_few };
    }
    let end = |p: f64| at(((p * n as f64).ceil() as u64).clamp(1, n.max(1)));
    let ci95 = [end(p - half).min(value), end(p + half).max(value)];
    QuantileEstimate { p, value, ci95, too_few: too_few || p + half >= 1.0 }
}

/// Fewer sessions of a replication than this beyond a quantile: marked.
const FEWEST_BEYOND: f64 = 10.0;

impl FleetSummary {
    /// Of the replications of a fleet.
    pub fn new(model: &Model, fleet: &Fleet, replications: &[Replication<Sample>]) -> Self {
        let all = || replications.iter();
        let hours = |r: &Replication<Sample>| r.counted_s / 3600.0;
        let costs = |r: &Replication<Sample>| r.sample.sources().total().usd() / hours(r);
        let limits = replications.first().map_or(0, |first| first.limits.len());
        let stations: Vec<StationSummary> = if replications.is_empty() {
            Vec::new()
        } else {
            let tools = model.station_tools();
            let is_agent = |place: Place| matches!(place, Place::Tool(index) if tools.get(index).is_some_and(|tool| tool.agent.is_some()));
            let of =
                |place: Place| StationSummary { is_agent: is_agent(place), ..station(place.index(), replications) };
            Place::all(model).into_iter().map(of).collect()
        };
        let limits: Vec<LimitSummary> = (0..limits).filter_map(|index| limit(index, fleet, replications)).collect();
        let busiest = bottleneck(&stations, &limits);
        let growth = growth(fleet, replications, busiest, &stations);
        Self {
            replications: replications.len() as u64,
            horizon_s: fleet.horizon_s,
            warm_up_s: fleet.warm_up_s,
            arrived_per_hour: over(all().map(|r| r.arrived.counted as f64 / hours(r))),
            ended_per_hour: over(all().map(|r| r.ended.counted as f64 / hours(r))),
            in_progress: over(all().map(|r| r.in_progress.area_s / r.counted_s)),
            in_progress_at_end: over(all().map(|r| r.in_progress.level as f64)),
            lingering_at_end: over(all().map(|r| r.lingering as f64)),
            cost_per_hour_usd: model.tariff.as_ref().map(|_| over(all().map(costs))),
            limits,
            prefix_warm: all()
                .any(|r| r.prefix_calls > 0)
                .then(|| share(all().map(|r| ratio(r.prefix_warm as f64, r.prefix_calls as f64)))),
            is_steady: fleet.arrivals.is_steady(),
            growth,
            series: series(model, &stations, replications),
            stations,
            piece_s: replications.first().map_or(0.0, |first| first.piece_s),
            events: all().map(|r| r.events).sum(),
        }
    }

    /// The station or limit that is nearest to its end, with the share of it that is used: on average, or at its peak where
    /// arrivals come and go by the hour.
    pub fn bottleneck(&self) -> Option<(Bottleneck, f64)> {
        if self.is_steady {
            return bottleneck(&self.stations, &self.limits);
        }
        let from = (self.warm_up_s / self.piece_s).ceil() as usize;
        let peak = |series: &Series| {
            let values = series.values.iter().skip(from).flatten();
            values.map(|value| value.value).max_by(f64::total_cmp)
        };
        let all = self.series.iter().filter_map(|series| match series.kind {
            SeriesKind::Utilisation(place) => Some((Bottleneck::Station(place), peak(series)?)),
            SeriesKind::LimitUse(kind) => Some((Bottleneck::Limit(kind), peak(series)?)),
            _ => None,
        });
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The station with places to wait without an end, where hardly any of its time is left; with the share that is used. What
    /// turns requests away settles even so.
    pub fn used_up(&self) -> Option<(Place, f64)> {
        let (what, used) = self.bottleneck().filter(|(_, used)| self.is_steady && *used > SATURATED)?;
        let Bottleneck::Station(place) = what else { return None };
        self.station(place).filter(|station| station.places.is_none()).map(|_| (place, used))
    }

    /// The place that turns away the largest share of what comes to it, with that share; nothing below one in a hundred.
    pub fn turns_away(&self) -> Option<(Place, f64)> {
        let all = self.stations.iter().map(|station| (station.place, station.turned_away.value));
        all.filter(|(_, share)| *share > 0.01).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The station of a place.
    pub fn station(&self, place: Place) -> Option<&StationSummary> {
        self.stations.iter().find(|station| station.place == place)
    }

    /// A series.
    pub fn series(&self, kind: SeriesKind) -> Option<&Series> {
        self.series.iter().find(|series| series.kind == kind)
    }
}

/// Where several are used up, one that waits for no other: the sessions of an agent that is a tool keep its places as long as they
/// wait for others.
fn bottleneck(stations: &[StationSummary], limits: &[LimitSummary]) -> Option<(Bottleneck, f64)> {
    let stations =
        stations.iter().filter_map(|s| Some((Bottleneck::Station(s.place), s.utilisation?.value, s.is_agent)));
    let limits = limits.iter().map(|limit| (Bottleneck::Limit(limit.kind), limit.used.value, false));
    let all: Vec<(Bottleneck, f64, bool)> = stations.chain(limits).collect();
    let innermost = all.iter().filter(|(_, used, is_agent)| *used > SATURATED && !is_agent);
    let busiest =
        innermost.max_by(|a, b| a.1.total_cmp(&b.1)).or_else(|| all.iter().max_by(|a, b| a.1.total_cmp(&b.1)));
    busiest.map(|(what, used, _)| (*what, *used))
}

fn place(record: &StationRecord) -> Place {
    record.tool.map_or(Place::Model, Place::Tool)
}

fn station(index: usize, replications: &[Replication<Sample>]) -> StationSummary {
    let timed = || replications.iter().filter_map(|r| Some((r.stations.get(index)?, r.counted_s)));
    let all = || replications.iter().filter_map(|r| r.stations.get(index));
    let first = all().next();
    let end = |count: fn(&StationRecord) -> u64| first.map(count).filter(|count| *count < u64::MAX);
    let (servers, places) = (end(|s| s.servers), end(|s| s.places));
    let waits = servers.is_some();
    let per = |s: &StationRecord| s.came.counted as f64;
    let pooled = all().fold(Waits::default(), |sum, s| sum.and(&s.waits));
    let quantile = |p: f64| {
        let at = |rank: u64| pooled.quantile_s(rank as f64 / pooled.count.max(1) as f64).unwrap_or(f64::NAN);
        let below = |value: f64| all().map(|s| (s.waits.at_most(value), s.waits.count)).collect();
        pooled_quantile(p, pooled.count, at, below)
    };
    StationSummary {
        place: first.map_or(Place::Model, place),
        is_agent: false,
        servers,
        places,
        came_per_hour: over(timed().map(|(s, counted_s)| s.came.counted as f64 * 3600.0 / counted_s)),
        busy: over(timed().map(|(s, counted_s)| s.busy.area_s / counted_s)),
        utilisation: servers
            .map(|servers| share(timed().map(|(s, counted_s)| s.busy.area_s / (counted_s * servers as f64)))),
        waiting: over(timed().map(|(s, counted_s)| s.waiting.area_s / counted_s)),
        most_waiting: all().map(|s| s.waiting.most).max().unwrap_or(0),
        wait_s: waits.then(|| over(all().map(|s| ratio(s.waits.sum.s(), s.waits.count as f64)))),
        wait_quantiles: if waits { QUANTILES.into_iter().map(quantile).collect() } else { Vec::new() },
        waited: waits.then(|| share(all().map(|s| ratio(s.waits.waited as f64, s.waits.count as f64)))),
        turned_away: share(all().map(|s| ratio(s.turned_away.counted as f64, per(s)))),
        down: share(all().map(|s| ratio(s.down.counted as f64, per(s)))),
    }
}

fn limit(index: usize, fleet: &Fleet, replications: &[Replication<Sample>]) -> Option<LimitSummary> {
    let piece_s = replications.first()?.piece_s;
    let all = || replications.iter().filter_map(|r| r.limits.get(index));
    let timed = || replications.iter().filter_map(|r| Some((r.limits.get(index)?, r.counted_s)));
    let first = all().next()?;
    Some(LimitSummary {
        kind: first.kind,
        per_minute: first.per_minute,
        used: over(timed().map(|(limit, counted_s)| limit.passed * 60.0 / (limit.per_minute * counted_s))),
        // what was full at the beginning doesn't count
        used_at_peak: peak((fleet.warm_up_s / piece_s).ceil() as usize..first.pieces.len(), |piece| {
            over(all().map(|limit| used_in(limit, piece, piece_s)))
        }),
        short_per_hour: over(timed().map(|(limit, counted_s)| limit.short as f64 * 3600.0 / counted_s)),
        impossible: all().map(|limit| limit.impossible).sum(),
    })
}

/// The share of a limit that is used in one piece of the horizon.
fn used_in(limit: &LimitRecord, piece: usize, piece_s: f64) -> f64 {
    limit.pieces[piece] * 60.0 / (piece_s * limit.per_minute)
}

/// The largest of the estimates of the pieces.
fn peak(pieces: Range<usize>, of: impl Fn(usize) -> Estimate) -> Estimate {
    let none = Estimate { value: 0.0, se: 0.0, ci95: [0.0; 2] };
    pieces.map(of).max_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or(none)
}

fn series(model: &Model, stations: &[StationSummary], replications: &[Replication<Sample>]) -> Vec<Series> {
    let pieces = |of: &dyn Fn(&Replication<Sample>, usize) -> f64| -> Vec<Option<Estimate>> {
        (0..PIECES).map(|piece| Some(over(replications.iter().map(|r| of(r, piece))))).collect()
    };
    let mut all = vec![
        Series { kind: SeriesKind::InProgress, values: pieces(&|r, piece| r.in_progress.pieces_s[piece] / r.piece_s) },
        Series {
            kind: SeriesKind::ArrivalsPerS,
            values: pieces(&|r, piece| f64::from(r.arrived.pieces[piece]) / r.piece_s),
        },
    ];
    for summary in stations {
        let (place, index) = (summary.place, summary.place.index());
        let a_second = |count: &dyn Fn(&StationRecord, usize) -> u32| {
            pieces(&|r, piece| f64::from(count(&r.stations[index], piece)) / r.piece_s)
        };
        all.push(Series { kind: SeriesKind::CallsPerS(place), values: a_second(&|s, piece| s.came.pieces[piece]) });
        if replications.iter().any(|r| r.stations[index].turned_away.all + r.stations[index].down.all > 0) {
            let failed = |s: &StationRecord, piece: usize| s.turned_away.pieces[piece] + s.down.pieces[piece];
            all.push(Series { kind: SeriesKind::FailuresPerS(place), values: a_second(&failed) });
        }
        if let Some(servers) = summary.servers {
            let waiting = pieces(&|r, piece| r.stations[index].waiting.pieces_s[piece] / r.piece_s);
            all.push(Series { kind: SeriesKind::Waiting(place), values: waiting });
            let busy = pieces(&|r, piece| r.stations[index].busy.pieces_s[piece] / (r.piece_s * servers as f64));
            all.push(Series { kind: SeriesKind::Utilisation(place), values: busy });
        }
    }
    for index in 0..replications.first().map_or(0, |first| first.limits.len()) {
        let limit = &replications[0].limits[index];
        let used = |r: &Replication<Sample>, piece: usize| used_in(&r.limits[index], piece, r.piece_s);
        all.push(Series { kind: SeriesKind::LimitUse(limit.kind), values: pieces(&used) });
    }
    if replications.iter().any(|r| r.unanswered.all > 0) {
        let unanswered = pieces(&|r, piece| f64::from(r.unanswered.pieces[piece]) * 3600.0 / r.piece_s);
        all.push(Series { kind: SeriesKind::UnansweredPerHour, values: unanswered });
    }
    if model.has_breakers() {
        let refused = pieces(&|r, piece| f64::from(r.refused.pieces[piece]) / r.piece_s);
        all.push(Series { kind: SeriesKind::BreakerPerS, values: refused });
    }
    if model.tariff.is_some() {
        let costs = pieces(&|r, piece| r.cost_pieces[piece].usd() * 3600.0 / r.piece_s);
        all.push(Series { kind: SeriesKind::CostPerHour, values: costs });
    }
    for (kind, which) in [(SeriesKind::LatencyP50, 0), (SeriesKind::LatencyP99, 1)] {
        let latency = |piece: usize| {
            let some = replications.iter().filter_map(|r| Some((*r.latency_pieces_s.get(piece)?)?[which]));
            let values: Vec<f64> = some.collect();
            (!values.is_empty()).then(|| over(values.into_iter()))
        };
        all.push(Series { kind, values: (0..PIECES).map(latency).collect() });
    }
    all
}
