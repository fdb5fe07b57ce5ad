//! When are two figures the same: `cost_usd.mean(hour) = cost_usd.mean(base)`.

use super::moments::{Estimate, half_width};
use super::paired::{difference, quantile_difference};
use super::sample::Sample;
use super::statistic::{Statistic, StatisticError};
use super::summary::Summary;
use rand::Rng;

/// Two sides, and that they are to be equal.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// As written.
    pub text: String,
    /// Left and right.
    pub sides: [Side; 2],
}

/// One side of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// A number.
    Number {
        /// As written.
        text: String,
        /// Its value.
        value: f64,
    },
    /// A figure of one of the ways.
    Figure {
        /// As written.
        text: String,
        /// The figure's name.
        name: String,
        /// Which figure.
        statistic: Statistic,
        /// The strategy; "base" for the file itself.
        strategy: String,
    },
}

/// Why a text is no question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// A figure's name.
    #[error(transparent)]
    Statistic(#[from] StatisticError),
    /// Its form.
    #[error(
        "`{0}` must be two figures, or a figure and a number, with = between them, as in 'cost_usd.mean(hour) = cost_usd.mean(base)' or 'latency_s.p99 = 60'"
    )]
    Form(String),
    /// Two figures that can't be held against each other.
    #[error("{0} and {1} count different things")]
    Units(String, String),
    /// Two quantiles, or a quantile and a mean.
    #[error("the difference of {0} and {1} has no interval here; take the same figure of two ways, or a number")]
    Figures(String, String),
}

impl Question {
    /// Reads a question.
    ///
    /// # Errors
    /// Where a side can't be read, or the sides can't be held against each other.
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        let form = || QuestionError::Form(text.to_owned());
        let (left, right) = text.split_once('=').ok_or_else(form)?;
        if right.contains('=') || left.contains(['<', '>', '!']) {
            return Err(form());
        }
        let sides = [side(left, form)?, side(right, form)?];
        match &sides {
            [Side::Number { .. }, Side::Number { .. }] => return Err(form()),
            [Side::Figure { name, statistic, .. }, Side::Figure { name: other, statistic: theirs, .. }] => {
                if statistic.unit() != theirs.unit() {
                    return Err(QuestionError::Units(name.clone(), other.clone()));
                }
                if statistic != theirs && !matches!((statistic, theirs), (Statistic::Mean(_), Statistic::Mean(_))) {
                    return Err(QuestionError::Figures(name.clone(), other.clone()));
                }
            }
            _ => {}
        }
        Ok(Self { text: text.trim().to_owned(), sides })
    }

    /// The figure that is asked for: the left one, where both sides are figures.
    pub fn statistic(&self) -> Option<Statistic> {
        self.sides.iter().find_map(|side| match side {
            Side::Figure { statistic, .. } => Some(*statistic),
            Side::Number { .. } => None,
        })
    }
}

fn side(text: &str, form: impl Fn() -> QuestionError) -> Result<Side, QuestionError> {
    let text = text.trim();
    if let Ok(value) = text.replace('_', "").parse::<f64>() {
        return if value.is_finite() { Ok(Side::Number { text: text.to_owned(), value }) } else { Err(form()) };
    }
    if let Ok(duration) = text.parse::<jiff::SignedDuration>() {
        return Ok(Side::Number { text: text.to_owned(), value: duration.as_secs_f64() });
    }
    let (name, strategy) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), rest.strip_suffix(')').ok_or_else(&form)?.trim()),
        None => (text, "base"),
    };
    if name.is_empty() || strategy.is_empty() {
        return Err(form());
    }
    Ok(Side::Figure {
        text: text.to_owned(),
        name: name.to_owned(),
        statistic: Statistic::parse(name)?,
        strategy: strategy.to_owned(),
    })
}

impl Side {
    /// As it is written in an answer.
    pub fn label(&self) -> &str {
        match self {
            Side::Number { text, .. } | Side::Figure { text, .. } => text,
        }
    }
}

/// A side that was played.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    /// A number needs no playing.
    Number(f64),
    /// A figure of a sample.
    Figure(Statistic, &'a Sample, &'a Summary),
}

impl Seen<'_> {
    /// Its value; nothing where there were no values.
    pub fn value(&self) -> Option<f64> {
        match self {
            Seen::Number(value) => Some(*value),
            Seen::Figure(statistic, _, summary) => statistic.read(summary).map(|reading| reading.value),
        }
    }

    /// Whether the sample is too small for it.
    pub fn is_too_few(&self) -> bool {
        match self {
            Seen::Number(_) => false,
            Seen::Figure(statistic, _, summary) => statistic.read(summary).is_some_and(|reading| reading.too_few),
        }
    }
}

/// Left less right, with the interval of paired sessions where both are means or the same quantile. Of rates and of
/// figures per turn the halves of the two intervals are added, which holds however the two depend on each other.
/// Nothing where a side has no values.
pub fn gap<R: Rng>(left: Seen<'_>, right: Seen<'_>, replicate: impl Fn(u64) -> R) -> Option<Estimate> {
    match (left, right) {
        (Seen::Figure(Statistic::Mean(mine), sample, _), Seen::Figure(Statistic::Mean(theirs), other, _)) => {
            Some(difference(&sample.values(mine)?, &other.values(theirs)?))
        }
        (
            Seen::Figure(Statistic::Quantile(mine, p), sample, _),
            Seen::Figure(Statistic::Quantile(theirs, _), other, _),
        ) => Some(quantile_difference(&sample.values(mine)?, &other.values(theirs)?, p, &replicate).difference),
        (left, right) => {
            let side = |seen: Seen<'_>| match seen {
                Seen::Number(value) => Some((value, [value; 2])),
                Seen::Figure(statistic, _, summary) => {
                    let reading = statistic.read(summary)?;
                    Some((reading.value, reading.ci95))
                }
            };
            let ((x, [x_low, x_high]), (y, [y_low, y_high])) = (side(left)?, side(right)?);
            let ci95 = [x_low - y_high, x_high - y_low];
            let se = (ci95[1] - ci95[0]) / (2.0 * half_width(1_000_000));
            Some(Estimate { value: x - y, se, ci95 })
        }
    }
}
