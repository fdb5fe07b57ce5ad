//! Measured values, drawn with equal chance.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::DistError;

/// The empirical law of a list of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Empirical {
    sorted: Arc<[f64]>,
    mean: f64,
    variance: f64,
}

impl Empirical {
    /// # Errors
    /// Where the list is empty or a value is negative or not finite.
    pub fn new(mut values: Vec<f64>) -> Result<Self, DistError> {
        if values.is_empty() {
            return Err(DistError::new("at least one value is needed"));
        }
        if let Some(bad) = values.iter().find(|x| !(x.is_finite() && **x >= 0.0)) {
            return Err(DistError::new(format!("{bad} can't be used: every value must be 0 or more")));
        }
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        Ok(Self { sorted: values.into(), mean, variance })
    }

    /// All values, rising.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.sorted[rng.random_range(0..self.sorted.len())]
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        self.sorted.partition_point(|v| *v <= x) as f64 / self.sorted.len() as f64
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        1.0 - self.cdf(x)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let rank = (p * self.sorted.len() as f64).ceil() as usize;
        self.sorted[rank.clamp(1, self.sorted.len()) - 1]
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn variance(&self) -> f64 {
        self.variance
    }

    /// The distinct values, thinned to a thousand where there are more.
    pub(crate) fn kinks(&self) -> Vec<f64> {
        let mut distinct: Vec<f64> = self.sorted.to_vec();
        distinct.dedup();
        let step = distinct.len().div_ceil(1_000);
        distinct.into_iter().step_by(step).collect()
    }
}
