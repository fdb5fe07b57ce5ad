//! The exponential law: waiting without memory.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::{DistError, positive};

/// `F(x) = 1 - exp(-x / mean)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    mean: f64,
}

impl Exponential {
    /// # Errors
    /// Where `mean` isn't above zero.
    pub fn new(mean: f64) -> Result<Self, DistError> {
        Ok(Self { mean: positive("mean", mean)? })
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let unit: f64 = Exp1.sample(rng);
        self.mean * unit
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        -(-x / self.mean).exp_m1()
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        (-x / self.mean).exp()
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        -self.mean * (-p).ln_1p()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn variance(&self) -> f64 {
        self.mean * self.mean
    }
}
