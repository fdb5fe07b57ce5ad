//! A run in a few numbers, each with its interval.

use super::metric::{Metric, Quantity, Rate};
use super::moments::{Estimate, ZERO_EVENTS};
use super::nodes::NodeSummary;
use super::quantile::{QUANTILES, QuantileEstimate, quantile_ranks};
use super::sample::{Sample, Sources, Stopped, Times};
use super::store::select;
use crate::model::Model;
use crate::session::{Limit, Outcome};

/// A metric over sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSummary {
    /// The mean.
    pub mean: Estimate,
    /// Standard deviation over sessions (over turns, for a per-turn metric).
    pub sd: f64,
    /// The smallest value seen.
    pub min: f64,
    /// The largest value seen.
    pub max: f64,
    /// [`QUANTILES`].
    pub quantiles: Vec<QuantileEstimate>,
    /// How many values the quantiles come from.
    pub values: u64,
}

impl MetricSummary {
    /// The quantile `p`, if it is one of the report's.
    pub fn quantile(&self, p: f64) -> Option<&QuantileEstimate> {
        self.quantiles.iter().find(|q| (q.p - p).abs() < 1e-12)
    }
}

/// A metric over turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TurnMetric {
    Latency,
    ToolPhase,
    FirstToken,
    /// A user's message from request to answer: one number a message, not a turn.
    Message,
}

impl TurnMetric {
    /// All of them.
    pub const ALL: [TurnMetric; 4] =
        [TurnMetric::Message, TurnMetric::Latency, TurnMetric::ToolPhase, TurnMetric::FirstToken];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            TurnMetric::Latency => "turn_latency_s",
            TurnMetric::ToolPhase => "tool_phase_s",
            TurnMetric::FirstToken => "first_token_s",
            TurnMetric::Message => "message_latency_s",
        }
    }

    pub(super) fn rate(self) -> Rate {
        match self {
            TurnMetric::Latency => Rate::TurnLatency,
            TurnMetric::ToolPhase => Rate::ToolPhase,
            TurnMetric::FirstToken => Rate::FirstToken,
            TurnMetric::Message => Rate::MessageLatency,
        }
    }
}

/// A run in numbers.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Sessions played.
    pub sessions: u64,
    /// The metrics that apply, in the order of the report.
    pub metrics: Vec<(Metric, MetricSummary)>,
    /// The per-turn metrics that apply. Their means are over all sessions, their quantiles over the turns of the first
    /// sessions, with intervals that allow for turns of one session being alike.
    pub turn_metrics: Vec<(TurnMetric, MetricSummary)>,
    /// The rates that apply.
    pub rates: Vec<(Rate, Estimate)>,
    /// Of the calls of each tool, the share that ran twice; `None` for a tool whose calls can't, or that made none.
    pub tool_duplicates: Vec<Option<Estimate>>,
    /// Of the tool phases, the share on whose longest path each tool lay; `None` where there was none.
    pub tools_on_path: Vec<Option<Estimate>>,
    /// Money by what it went for, summed over sessions; `None` without prices.
    pub sources: Option<Sources>,
    /// Time by where it went, summed over sessions; `None` where nothing takes time.
    pub times: Option<Times>,
    /// How many sessions ended in each way.
    pub outcomes: Vec<(Outcome, u64)>,
    /// The nodes of the tree of agents, the main agent first; empty where there are no others.
    pub nodes: Vec<NodeSummary>,
    /// pass^1 to pass^8: the chance that so many sessions all succeed; empty without `[outcome]`.
    pub pass_k: Vec<(u32, Estimate)>,
    /// The sessions that each limit of the budget ended, for the limits that there are.
    pub stopped: Vec<(Limit, Stopped)>,
}

impl Summary {
    /// Of a sample of `model`.
    pub fn new(model: &Model, sample: &Sample) -> Self {
        let metrics = Metric::ALL
            .into_iter()
            .filter(|metric| metric.applies(model))
            .map(|metric| (metric, over_sessions(sample, metric)))
            .collect();
        let turn_metrics = TurnMetric::ALL
            .into_iter()
            .filter(|metric| metric.rate().applies(model))
            .filter_map(|metric| Some((metric, over_turns(sample, metric)?)))
            .collect();
        let rates = Rate::ALL
            .iter()
            .copied()
            .filter(|rate| rate.name().is_some() && rate.applies(model))
            .filter_map(|rate| Some((rate, sample.ratio(rate)?)))
            .collect();
        let outcomes = Outcome::ALL.into_iter().map(|outcome| (outcome, sample.ended(outcome))).collect();
        let tools = model.phase.tools.iter().enumerate();
        Self {
            sessions: sample.sessions(),
            metrics,
            turn_metrics,
            rates,
            tool_duplicates: tools
                .clone()
                .map(|(index, tool)| sample.tool_duplicates(index).filter(|_| tool.can_run_twice()))
                .collect(),
            tools_on_path: tools.map(|(index, _)| sample.tool_on_path(index)).collect(),
            sources: model.tariff.as_ref().map(|_| sample.sources().clone()),
            times: Some(*sample.times()).filter(|times| times.total_s() > 0.0),
            outcomes,
            nodes: sample.nodes(),
            pass_k: (1..=8).filter_map(|k| Some((k, sample.pass_k(k)?))).collect(),
            stopped: Limit::ALL
                .into_iter()
                .filter(|limit| limit.is_set(&model.budget))
                .map(|limit| (limit, sample.stopped(limit)))
                .collect(),
        }
    }

    /// A metric by name, if it applies.
    pub fn metric(&self, name: &str) -> Option<&MetricSummary> {
        self.metrics.iter().find(|(metric, _)| metric.quantity().name() == name).map(|(_, summary)| summary)
    }

    /// A per-turn metric, if it applies.
    pub fn turn_metric(&self, wanted: TurnMetric) -> Option<&MetricSummary> {
        self.turn_metrics.iter().find(|(metric, _)| *metric == wanted).map(|(_, summary)| summary)
    }

    /// A rate, if it applies.
    pub fn rate(&self, wanted: Rate) -> Option<&Estimate> {
        self.rates.iter().find(|(rate, _)| *rate == wanted).map(|(_, estimate)| estimate)
    }
}

/// Fewer values than this beyond a quantile: marked.
const FEWEST_BEYOND: u64 = 10;

/// The values at many ranks in one walk over rising ranks.
fn at_all(ranks: &[[u64; 3]], mut at_ranks: impl FnMut(&[u64]) -> Vec<f64>) -> Vec<[f64; 3]> {
    let mut rising: Vec<u64> = ranks.iter().flatten().copied().collect();
    rising.sort_unstable();
    rising.dedup();
    let values = at_ranks(&rising);
    let look_up =
        |rank: u64| rising.binary_search(&rank).ok().and_then(|index| values.get(index)).copied().unwrap_or(f64::NAN);
    ranks.iter().map(|triple| triple.map(look_up)).collect()
}

fn over_sessions(sample: &Sample, metric: Metric) -> MetricSummary {
    let moments = sample.moments(metric.quantity());
    let ranks: Vec<[u64; 3]> = QUANTILES.iter().map(|p| <[u64; 3]>::from(quantile_ranks(moments.n, *p))).collect();
    let found = at_all(&ranks, |rising| sample.at_ranks(metric, rising));
    let mut mean = moments.estimate();
    if matches!(metric.quantity(), Quantity::Duplicates | Quantity::ExpiredGaps | Quantity::CacheBreaks)
        && moments.max <= 0.0
    {
        mean.ci95 = [0.0, ZERO_EVENTS / moments.n.max(1) as f64];
    }
    MetricSummary {
        mean,
        sd: moments.sd(),
        min: moments.min,
        max: moments.max,
        quantiles: quantile_estimates(&ranks, &found, moments.n),
        values: moments.n,
    }
}

fn quantile_estimates(ranks: &[[u64; 3]], found: &[[f64; 3]], n: u64) -> Vec<QuantileEstimate> {
    QUANTILES
        .iter()
        .zip(ranks)
        .zip(found)
        .map(|((p, [rank, ..]), [value, low, high])| QuantileEstimate {
            p: *p,
            value: *value,
            ci95: [*low, *high],
            too_few: n - (*rank).min(n) < FEWEST_BEYOND,
        })
        .collect()
}

/// Turns of one session are not independent, so the interval of a quantile comes from the spread over sessions of the
/// share of turns below it (Woodruff 1952).
fn over_turns(sample: &Sample, metric: TurnMetric) -> Option<MetricSummary> {
    let (values, sizes) = sample.turns.values(metric);
    let mean = sample.ratio(metric.rate())?;
    let n = values.len() as u64;
    let moments = super::Moments::of(values);
    if n == 0 {
        return None;
    }
    let mut scratch = values.to_vec();
    let centres: Vec<u64> = QUANTILES.iter().map(|p| quantile_ranks(n, *p).0).collect();
    let at_centres = select(&mut scratch, &centres);
    let ranks: Vec<[u64; 3]> = QUANTILES
        .iter()
        .zip(&centres)
        .zip(&at_centres)
        .map(|((p, rank), value)| {
            let (_, lower, upper) = quantile_ranks(n, *p);
            let half = (super::moments::half_width(sizes.len() as u64) * se_of_share(values, sizes, *value) * n as f64)
                .min(n as f64);
            let widened = |rank: f64| (rank.round().max(1.0) as u64).min(n);
            // never narrower than if all turns were independent
            [*rank, lower.min(widened(*rank as f64 - half)), upper.max(widened(*rank as f64 + half + 1.0))]
        })
        .collect();
    let mut scratch = values.to_vec();
    let found = at_all(&ranks, |rising| select(&mut scratch, rising));
    Some(MetricSummary {
        mean,
        sd: moments.sd(),
        min: moments.min,
        max: moments.max,
        quantiles: quantile_estimates(&ranks, &found, n),
        values: n,
    })
}

fn se_of_share(values: &[f64], sizes: &[u32], threshold: f64) -> f64 {
    let (mut counts, mut totals, mut from) = (Vec::new(), Vec::new(), 0);
    for size in sizes {
        let to = from + *size as usize;
        let below = values.get(from..to).unwrap_or_default().iter().filter(|x| **x <= threshold).count();
        counts.push(below as f64);
        totals.push(f64::from(*size));
        from = to;
    }
    super::Covariance::of(&counts, &totals).ratio(false).map_or(0.0, |share| share.se)
}
