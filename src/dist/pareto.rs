//! The Pareto law: `P(X > x) = (min/x)^alpha` from `min` on.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::{DistError, positive};

/// Mean infinite for `alpha` ≤ 1, variance for `alpha` ≤ 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    min: f64,
    alpha: f64,
}

impl Pareto {
    /// # Errors
    /// Where `min` or `alpha` isn't above zero.
    pub fn new(min: f64, alpha: f64) -> Result<Self, DistError> {
        Ok(Self { min: positive("min", min)?, alpha: positive("alpha", alpha)? })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        // ln(X/min) is exponential with mean 1/alpha
        let unit: f64 = Exp1.sample(rng);
        self.min * (unit / self.alpha).exp()
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        if x < self.min { 0.0 } else { -(-self.alpha * (x / self.min).ln()).exp_m1() }
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        if x < self.min { 1.0 } else { (x / self.min).powf(-self.alpha) }
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        self.min * (-(-p).ln_1p() / self.alpha).exp()
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.alpha <= 1.0 { f64::INFINITY } else { self.alpha * self.min / (self.alpha - 1.0) }
    }

    pub(crate) fn variance(&self) -> f64 {
        if self.alpha <= 2.0 {
            return f64::INFINITY;
        }
        self.min.powi(2) * self.alpha / ((self.alpha - 1.0).powi(2) * (self.alpha - 2.0))
    }
}
