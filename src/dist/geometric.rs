//! The geometric law on 1, 2, …: how many calls until the answer, if each is the last with the same chance.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::DistError;

/// `P(X > k) = (1 - 1/mean)^k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometric {
    mean: f64,
    /// `-ln(1 - 1/mean)`; infinite for mean 1
    rate: f64,
}

impl Geometric {
    /// # Errors
    /// Where `mean` is below 1.
    pub fn new(mean: f64) -> Result<Self, DistError> {
        if !(mean.is_finite() && mean >= 1.0) {
            return Err(DistError::new("`mean` must be 1 or more: this law counts 1, 2, 3, …"));
        }
        Ok(Self { mean, rate: -(-1.0 / mean).ln_1p() })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        // the whole part of an exponential is geometric on 0, 1, …
        let unit: f64 = Exp1.sample(rng);
        1.0 + (unit / self.rate).floor()
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        if x < 1.0 { 0.0 } else { -(-self.rate * x.floor()).exp_m1() }
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        if x < 1.0 { 1.0 } else { (-self.rate * x.floor()).exp() }
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let k = (-(-p).ln_1p() / self.rate).ceil().max(1.0);
        // the division may round to either side of a whole number
        if k > 1.0 && self.cdf(k - 1.0) >= p { k - 1.0 } else { k }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn variance(&self) -> f64 {
        self.mean * (self.mean - 1.0)
    }
}
