//! The exponential law: waiting without memory.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::{DistError, numeric::ln, positive};

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

    /// The value that a uniform draw stands for, `-mean · ln(1 - u)`; the uniform lies in 0..1 and comes as 64 bits after
    /// the point, of which 53 count.
    #[inline]
    pub fn at(&self, u: u64) -> f64 {
        // the middle of the last of 53 bits keeps off 0
        let beyond = ((!u >> 11) as i64 as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64);
        -self.mean * ln(beyond)
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
