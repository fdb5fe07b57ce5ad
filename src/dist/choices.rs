//! A few values, each with its chance.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::{
    DistError,
    mixture::{check_weights, choose},
};

/// `P(X = value) = weight`.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    /// (value, weight), by value
    choices: Arc<[(f64, f64)]>,
}

impl Choices {
    /// `choices` are (value, weight).
    ///
    /// # Errors
    /// Where there is none, a value is negative, or the weights don't sum to 1.
    pub fn new(mut choices: Vec<(f64, f64)>) -> Result<Self, DistError> {
        check_weights(choices.iter().map(|c| c.1))?;
        if choices.iter().any(|(value, _)| !(value.is_finite() && *value >= 0.0)) {
            return Err(DistError::new("every value must be 0 or more"));
        }
        choices.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self { choices: choices.into() })
    }

    /// (value, chance), by value.
    pub fn choices(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.choices.iter().copied()
    }

    /// The values, in order.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.choices.iter().map(|c| c.0)
    }

    #[inline]
    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.choices[choose(rng.random::<f64>(), self.choices.iter().map(|c| c.1))].0
    }

    fn weight_where(&self, keep: impl Fn(f64) -> bool) -> f64 {
        self.choices.iter().filter(|c| keep(c.0)).map(|c| c.1).sum::<f64>().min(1.0)
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        self.weight_where(|value| value <= x)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        self.weight_where(|value| value > x)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        self.choices[choose(p.next_down(), self.choices.iter().map(|c| c.1))].0
    }

    pub(crate) fn mean(&self) -> f64 {
        self.choices.iter().map(|(value, weight)| value * weight).sum()
    }

    pub(crate) fn variance(&self) -> f64 {
        let mean = self.mean();
        self.choices.iter().map(|(value, weight)| weight * (value - mean).powi(2)).sum()
    }
}
