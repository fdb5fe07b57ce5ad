//! The stopping rule of `[run] precision`.

use super::metric::{Metric, Rate};
use super::quantile::{QUANTILES, quantile_name};
use super::summary::Summary;
use crate::model::Model;

/// "`cost_usd.mean` to within 1 %": a statistic and the wanted relative half-width of its 95 % interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// As written in the file.
    pub name: String,
    /// Wanted half-width over value.
    pub relative_half_width: f64,
    statistic: Statistic,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Mean(Metric),
    Quantile(Metric, f64),
    Rate(Rate),
}

/// Why a name is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is no such metric or rate.
    #[error("there is no metric or rate `{name}`{}", .nearest.as_ref().map_or(String::new(), |n| format!("; did you mean `{n}`?")))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// The metric exists, the statistic doesn't.
    #[error("`{0}` must end in .mean, .p50, .p90, .p95, .p99 or .p999")]
    Statistic(String),
    /// It exists, but not in this scenario.
    #[error("`{0}` doesn't apply to this scenario, so it can't become precise")]
    DoesNotApply(String),
}

impl Target {
    /// Reads `cost_usd.mean`, `latency_s.p99` or the name of a rate.
    ///
    /// # Errors
    /// Where the name isn't one.
    pub fn parse(name: &str, relative_half_width: f64) -> Result<Self, TargetError> {
        let statistic = if let Some(rate) = Rate::ALL.iter().copied().find(|rate| rate.name() == Some(name)) {
            Statistic::Rate(rate)
        } else {
            let (metric_name, statistic) = name.split_once('.').unwrap_or((name, ""));
            let metric = Metric::named(metric_name).ok_or_else(|| TargetError::Unknown {
                name: name.to_owned(),
                nearest: nearest(metric_name, statistic),
            })?;
            if statistic == "mean" {
                Statistic::Mean(metric)
            } else {
                let p = QUANTILES
                    .into_iter()
                    .find(|p| quantile_name(*p) == statistic)
                    .ok_or_else(|| TargetError::Statistic(name.to_owned()))?;
                Statistic::Quantile(metric, p)
            }
        };
        Ok(Self { name: name.to_owned(), relative_half_width, statistic })
    }

    /// # Errors
    /// Where the statistic doesn't apply to `model`.
    pub fn check(&self, model: &Model) -> Result<(), TargetError> {
        let applies = match self.statistic {
            Statistic::Mean(metric) | Statistic::Quantile(metric, _) => metric.applies(model),
            Statistic::Rate(rate) => rate.applies(model),
        };
        if applies { Ok(()) } else { Err(TargetError::DoesNotApply(self.name.clone())) }
    }

    /// The relative half-width that has been reached; infinite where it can't be told.
    pub fn reached(&self, summary: &Summary) -> f64 {
        let (value, [low, high], known) = match self.statistic {
            Statistic::Mean(metric) => match summary.metric(metric.quantity().name()) {
                Some(m) => (m.mean.value, m.mean.ci95, true),
                None => return f64::INFINITY,
            },
            Statistic::Quantile(metric, p) => {
                match summary.metric(metric.quantity().name()).and_then(|m| m.quantile(p)) {
                    Some(q) => (q.value, q.ci95, !q.too_few),
                    None => return f64::INFINITY,
                }
            }
            Statistic::Rate(rate) => match summary.rate(rate) {
                Some(estimate) => (estimate.value, estimate.ci95, true),
                None => return f64::INFINITY,
            },
        };
        let half = (high - low) / 2.0;
        // nothing seen yet isn't the same as nothing
        if !known || value.abs() <= 0.0 || half.is_nan() {
            f64::INFINITY
        } else if half <= 0.0 {
            0.0
        } else {
            half / value.abs()
        }
    }

    /// Whether the interval is narrow enough.
    pub fn met(&self, summary: &Summary) -> bool {
        self.reached(summary) <= self.relative_half_width
    }
}

fn nearest(metric: &str, statistic: &str) -> Option<String> {
    let metrics = Metric::ALL.iter().map(|m| m.quantity().name());
    metrics
        .chain(Rate::ALL.iter().filter_map(|rate| rate.name()))
        .map(|name| (strsim::jaro_winkler(name, metric), name))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| {
            if Metric::named(name).is_some() && !statistic.is_empty() {
                format!("{name}.{statistic}")
            } else if Metric::named(name).is_some() {
                format!("{name}.mean")
            } else {
                name.to_owned()
            }
        })
}

/// How many sessions to have after the next leg, or `None` once every target is met or the limit is reached. An
/// interval narrows with the root of the sample; a leg aims 10 % beyond what that needs and lies between 1.25 and 4
/// times the sample so far, so that few looks are taken and an early lucky one matters little.
pub fn next_size(targets: &[Target], summary: &Summary, most_sessions: u64) -> Option<u64> {
    let worst = targets.iter().map(|t| t.reached(summary) / t.relative_half_width).fold(0.0, f64::max);
    if worst <= 1.0 || summary.sessions >= most_sessions {
        return None;
    }
    let factor = (worst * worst * 1.1).clamp(1.25, 4.0);
    Some(((summary.sessions as f64 * factor).ceil() as u64).min(most_sessions))
}
