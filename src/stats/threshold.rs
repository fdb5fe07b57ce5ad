//! What a number of an answer may be at most, or has to be at least.

use super::figure::Figure;
use super::fleet::FleetSummary;
use super::metric::Unit;
use super::statistic::{Reading, Statistic, StatisticError};
use super::summary::Summary;
use crate::model::Model;

/// `cost_usd.p95 < 1.50`.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The statistic, as written.
    pub metric: String,
    /// The bound, as written: `< 1.50`.
    pub want: String,
    figure: Figure,
    bound: Bound,
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Bound {
    const ALL: [(&'static str, Bound); 4] =
        [("<=", Bound::AtMost), (">=", Bound::AtLeast), ("<", Bound::Below), (">", Bound::Above)];

    fn sign(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, bound)| *bound == self).map_or("", |(sign, _)| sign)
    }

    fn opposite(self) -> Self {
        match self {
            Bound::Below => Bound::AtLeast,
            Bound::AtMost => Bound::Above,
            Bound::Above => Bound::AtMost,
            Bound::AtLeast => Bound::Below,
        }
    }

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Bound::Below => value < limit,
            Bound::AtMost => value <= limit,
            Bound::Above => value > limit,
            Bound::AtLeast => value >= limit,
        }
    }
}

/// Why a text is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// Its metric.
    #[error(transparent)]
    Statistic(#[from] StatisticError),
    /// Its bound.
    #[error("`{0}` must be a bound: <, <=, > or >= and a number, as in \"< 1.50\"")]
    Bound(String),
    /// A bound that a share can't reach.
    #[error("`{0}` is a share, between 0 and 1, and the bound is {1}; for 99 of 100 write 0.99 or 99 %")]
    Share(String, String),
    /// A goal without a figure and a bound.
    #[error("`{0}` must be a figure and a bound, as in 'latency_s.p99 <= 60'")]
    Goal(String),
    /// A condition without a metric and a bound.
    #[error("`{0}` must be a metric and a bound, as in 'cost_usd.p95 > 1.50'")]
    Condition(String),
}

/// What became of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The estimate; nothing where there were no values.
    pub got: Option<f64>,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
    /// Whether the estimate keeps the bound.
    pub pass: bool,
    /// Whether the interval reaches over the bound, or the sample is too small to say.
    pub undecided: bool,
}

impl Threshold {
    /// Of a metric and its bound. Of a fleet it can be a figure that only fleets have; `tools` are the names of its tools.
    ///
    /// # Errors
    /// Where one of them can't be read.
    pub fn parse(metric: &str, want: &str, model: &Model, tools: &[String]) -> Result<Self, ThresholdError> {
        let figure = match (Statistic::parse_alone(metric), &model.fleet) {
            (Ok(statistic), _) => Figure::Sessions(statistic),
            (Err(StatisticError::Unknown { .. } | StatisticError::OfFleets(_)), Some(_)) => {
                Figure::parse(metric, model, tools)?
            }
            (Err(error), _) => return Err(error.into()),
        };
        let (bound, limit) = bound(want).ok_or_else(|| ThresholdError::Bound(want.to_owned()))?;
        Ok(Self { metric: metric.to_owned(), want: want.trim().to_owned(), figure, bound, limit })
    }

    /// What has to hold so that a condition, such as `cost_usd.p95 > 1.50`, doesn't.
    ///
    /// # Errors
    /// Where the condition can't be read.
    pub fn unless(condition: &str, model: &Model, tools: &[String]) -> Result<Self, ThresholdError> {
        let at = condition.find(['<', '>']).ok_or_else(|| ThresholdError::Condition(condition.to_owned()))?;
        let (metric, want) = condition.split_at(at);
        if metric.trim().is_empty() {
            return Err(ThresholdError::Condition(condition.to_owned()));
        }
        let failing = Self::parse(metric.trim(), want, model, tools)?;
        let bound = failing.bound.opposite();
        let number = want.trim_start_matches(['<', '>', '=']).trim();
        Ok(Self { want: format!("{} {number}", bound.sign()), bound, ..failing })
    }

    /// The unit of what it bounds; a rate has none.
    pub fn unit(&self) -> Option<Unit> {
        self.figure.unit()
    }

    /// Whether it says anything about a model.
    pub fn applies(&self, model: &Model) -> bool {
        match self.figure {
            Figure::Sessions(statistic) => statistic.applies(model),
            figure => model.fleet.is_some() && Figure::all(model).contains(&figure),
        }
    }

    /// # Errors
    /// Where it can't be told of a model.
    pub fn check(&self, model: &Model) -> Result<(), ThresholdError> {
        if self.applies(model) {
            Ok(())
        } else {
            Err(StatisticError::DoesNotApply(self.metric.clone(), "can't be bounded").into())
        }
    }

    /// Holds it against an answer. A number that isn't there doesn't pass.
    pub fn judge(&self, summary: &Summary, fleet: Option<&FleetSummary>) -> Verdict {
        let reading = match (self.figure, fleet) {
            (Figure::Sessions(statistic), _) => statistic.read(summary),
            (figure, Some(fleet)) => figure.read(summary, fleet),
            (_, None) => None,
        };
        verdict(self.bound, self.limit, reading)
    }
}

/// What a figure of a fleet has to be: `latency_s.p99 <= 60`.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// As written.
    pub text: String,
    /// The figure.
    pub figure: Figure,
    /// Its bound.
    pub limit: f64,
    bound: Bound,
}

impl Goal {
    /// Reads a goal of a model with these tools.
    ///
    /// # Errors
    /// Where it can't be read, or the model has no such figure.
    pub fn parse(text: &str, model: &Model, tools: &[String]) -> Result<Self, ThresholdError> {
        let at = text.find(['<', '>']).ok_or_else(|| ThresholdError::Goal(text.to_owned()))?;
        let (name, want) = text.split_at(at);
        if name.trim().is_empty() {
            return Err(ThresholdError::Goal(text.to_owned()));
        }
        let figure = Figure::parse(name.trim(), model, tools)?;
        let (bound, limit) = goal_bound(want).ok_or_else(|| ThresholdError::Bound(want.trim().to_owned()))?;
        if figure.is_share() && !(0.0..=1.0).contains(&limit) {
            return Err(ThresholdError::Share(name.trim().to_owned(), want.trim().to_owned()));
        }
        Ok(Self { text: text.trim().to_owned(), figure, limit, bound })
    }

    /// Whether waiting for others can help to keep it: a least time or cost, say, or the most of what succeeds.
    pub fn is_helped_by_waiting(&self) -> bool {
        let wants_most = matches!(self.bound, Bound::AtLeast | Bound::Above);
        wants_most != matches!(self.figure, Figure::Sessions(Statistic::Rate(rate)) if rate.is_lowered_by_waiting())
    }

    /// Holds it against what a fleet says of the figure.
    pub fn judge(&self, reading: Option<Reading>) -> Verdict {
        verdict(self.bound, self.limit, reading)
    }
}

/// A bound; a duration is one of seconds, and per cent are a share.
fn goal_bound(text: &str) -> Option<(Bound, f64)> {
    bound(text).or_else(|| {
        let (bound, limit) = split(text)?;
        let percent = limit.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let duration = || Some(limit.parse::<jiff::SignedDuration>().ok()?.as_secs_f64());
        Some((bound, percent.map(|number| number / 100.0).or_else(duration)?))
    })
}

fn verdict(bound: Bound, limit: f64, reading: Option<Reading>) -> Verdict {
    let Some(reading) = reading else {
        return Verdict { got: None, ci95: [f64::NAN; 2], pass: false, undecided: false };
    };
    if !reading.value.is_finite() {
        return Verdict { got: Some(reading.value), ci95: reading.ci95, pass: false, undecided: false };
    }
    let holds = |x: f64| bound.holds(x, limit);
    let [low, high] = reading.ci95;
    // of a quantile with too few sessions beyond it the lower end is known, and the upper isn't
    let high = if reading.too_few { f64::INFINITY } else { high };
    let undecided = low.is_nan() || holds(low) != holds(high);
    Verdict { got: Some(reading.value), ci95: reading.ci95, pass: holds(reading.value), undecided }
}

fn bound(text: &str) -> Option<(Bound, f64)> {
    let (bound, limit) = split(text)?;
    let limit: f64 = limit.replace('_', "").parse().ok()?;
    limit.is_finite().then_some((bound, limit))
}

/// The sign of a bound, and what stands behind it.
fn split(text: &str) -> Option<(Bound, &str)> {
    let text = text.trim();
    Bound::ALL.into_iter().find_map(|(sign, bound)| Some((bound, text.strip_prefix(sign)?.trim())))
}
