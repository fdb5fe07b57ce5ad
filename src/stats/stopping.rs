//! The stopping rule of `[run] precision`.

use super::statistic::{Reading, Statistic, StatisticError};
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

impl Target {
    /// Reads `cost_usd.mean`, `latency_s.p99` or the name of a rate.
    ///
    /// # Errors
    /// Where the name isn't one.
    pub fn parse(name: &str, relative_half_width: f64) -> Result<Self, StatisticError> {
        let statistic = Statistic::parse(name)?;
        Ok(Self { name: name.to_owned(), relative_half_width, statistic })
    }

    /// # Errors
    /// Where the statistic doesn't apply to `model`.
    pub fn check(&self, model: &Model) -> Result<(), StatisticError> {
        if self.statistic.applies(model) {
            Ok(())
        } else {
            Err(StatisticError::DoesNotApply(self.name.clone(), "can't become precise"))
        }
    }

    /// The relative half-width that has been reached; infinite where it can't be told.
    pub fn reached(&self, summary: &Summary) -> f64 {
        let Some(Reading { value, ci95: [low, high], too_few }) = self.statistic.read(summary) else {
            return f64::INFINITY;
        };
        let half = (high - low) / 2.0;
        // nothing seen yet isn't the same as nothing
        if too_few || value.abs() <= 0.0 || half.is_nan() {
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
