//! One number of an answer, by name: `cost_usd.p95`, `turn_latency_s.mean`, `cache_hit`.

use super::figure::Figure;
use super::metric::{Metric, Rate, Unit};
use super::quantile::{QUANTILES, quantile_name};
use super::summary::{MetricSummary, Summary, TurnMetric};
use crate::model::Model;

/// What is asked of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The mean of a metric.
    Mean(Metric),
    /// A quantile of a metric.
    Quantile(Metric, f64),
    /// The mean of a per-turn metric.
    TurnMean(TurnMetric),
    /// A quantile of a per-turn metric.
    TurnQuantile(TurnMetric, f64),
    /// A rate.
    Rate(Rate),
}

/// What a reader of an unknown name wants: the most similar one, or where all are told.
pub(crate) fn or_list(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || "; `agent-sim figures FILE` lists those of a scenario".to_owned(),
        |nearest| format!("; did you mean `{nearest}`?"),
    )
}

/// Why a name is no statistic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatisticError {
    /// There is no such metric or rate.
    #[error("there is no metric or rate `{name}`{}", or_list(.nearest.as_deref()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// The metric exists, the statistic doesn't.
    #[error("`{0}` must end in .mean, .p50, .p90, .p95, .p99 or .p999")]
    Statistic(String),
    /// Only fleets have it.
    #[error("`{0}` is a figure of many sessions at once, and there is no [fleet] here")]
    OfFleets(String),
    /// It exists, but not in this scenario.
    #[error("`{0}` doesn't apply to this scenario, so it {1}")]
    DoesNotApply(String, &'static str),
}

/// What an answer says of a statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The estimate.
    pub value: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
    /// Whether the sample is too small for it.
    pub too_few: bool,
}

impl Statistic {
    /// Reads `cost_usd.mean`, `latency_s.p99`, `turn_latency_s.p99` or the name of a rate.
    ///
    /// # Errors
    /// Where the name isn't one.
    pub fn parse(name: &str) -> Result<Self, StatisticError> {
        if let Some(rate) = Rate::ALL.iter().copied().find(|rate| rate.name() == Some(name)) {
            return Ok(Self::Rate(rate));
        }
        let (metric_name, statistic) = name.split_once('.').unwrap_or((name, ""));
        let metric = Metric::named(metric_name);
        let turn_metric = TurnMetric::ALL.into_iter().find(|metric| metric.name() == metric_name);
        if metric.is_none() && turn_metric.is_none() {
            let nearest = nearest(metric_name, statistic);
            return Err(StatisticError::Unknown { name: name.to_owned(), nearest });
        }
        let p = QUANTILES.into_iter().find(|p| quantile_name(*p) == statistic);
        match (metric, turn_metric, statistic, p) {
            (Some(metric), _, "mean", _) => Ok(Self::Mean(metric)),
            (Some(metric), _, _, Some(p)) => Ok(Self::Quantile(metric, p)),
            (None, Some(metric), "mean", _) => Ok(Self::TurnMean(metric)),
            (None, Some(metric), _, Some(p)) => Ok(Self::TurnQuantile(metric, p)),
            _ => Err(StatisticError::Statistic(name.to_owned())),
        }
    }

    /// The same where there is no fleet; a figure that only fleets have is told as one.
    ///
    /// # Errors
    /// Where the name isn't one.
    pub fn parse_alone(name: &str) -> Result<Self, StatisticError> {
        Self::parse(name).map_err(|error| match error {
            StatisticError::Unknown { name, .. } if Figure::is_of_fleets(&name) => StatisticError::OfFleets(name),
            error => error,
        })
    }

    /// Its name, as it is read by [`Statistic::parse`].
    pub fn name(self) -> String {
        match self {
            Self::Mean(metric) => format!("{}.mean", metric.quantity().name()),
            Self::Quantile(metric, p) => format!("{}.{}", metric.quantity().name(), quantile_name(p)),
            Self::TurnMean(metric) => format!("{}.mean", metric.name()),
            Self::TurnQuantile(metric, p) => format!("{}.{}", metric.name(), quantile_name(p)),
            Self::Rate(rate) => rate.name().unwrap_or_default().to_owned(),
        }
    }

    /// Whether it says anything about a model.
    pub fn applies(self, model: &Model) -> bool {
        match self {
            Self::Mean(metric) | Self::Quantile(metric, _) => metric.applies(model),
            Self::TurnMean(metric) | Self::TurnQuantile(metric, _) => metric.rate().applies(model),
            Self::Rate(rate) => rate.applies(model),
        }
    }

    /// What it counts; nothing of a rate.
    pub fn unit(self) -> Option<Unit> {
        match self {
            Self::Mean(metric) | Self::Quantile(metric, _) => Some(metric.quantity().unit()),
            Self::TurnMean(_) | Self::TurnQuantile(..) => Some(Unit::Seconds),
            Self::Rate(Rate::CostPerSuccess | Rate::CostPerAnswer) => Some(Unit::Usd),
            Self::Rate(_) => None,
        }
    }

    /// Whether it is a share, between 0 and 1.
    pub fn is_share(self) -> bool {
        matches!(self, Self::Rate(rate) if rate.is_at_most_one())
    }

    /// What an answer says of it; nothing where there were no values.
    pub fn read(self, summary: &Summary) -> Option<Reading> {
        let quantile = |metric: &MetricSummary, p: f64| {
            metric.quantile(p).map(|q| Reading { value: q.value, ci95: q.ci95, too_few: q.too_few })
        };
        let estimate = |e: &super::Estimate| Reading { value: e.value, ci95: e.ci95, too_few: false };
        match self {
            Self::Mean(metric) => summary.metric(metric.quantity().name()).map(|metric| estimate(&metric.mean)),
            Self::Quantile(metric, p) => quantile(summary.metric(metric.quantity().name())?, p),
            Self::TurnMean(metric) => summary.turn_metric(metric).map(|metric| estimate(&metric.mean)),
            Self::TurnQuantile(metric, p) => quantile(summary.turn_metric(metric)?, p),
            Self::Rate(rate) => summary.rate(rate).map(estimate),
        }
    }
}

fn nearest(metric: &str, statistic: &str) -> Option<String> {
    let metrics = Metric::ALL.iter().map(|metric| metric.quantity().name());
    let metrics = metrics.chain(TurnMetric::ALL.iter().map(|metric| metric.name())).map(|name| (name, true));
    let rates = Rate::ALL.iter().filter_map(|rate| rate.name()).map(|name| (name, false));
    metrics
        .chain(rates)
        .map(|(name, is_metric)| (strsim::jaro_winkler(name, metric), name, is_metric))
        .filter(|(score, ..)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name, is_metric)| match (is_metric, statistic) {
            (true, statistic) if QUANTILES.into_iter().any(|p| quantile_name(p) == statistic) => {
                format!("{name}.{statistic}")
            }
            (true, _) => format!("{name}.mean"),
            (false, _) => name.to_owned(),
        })
}
