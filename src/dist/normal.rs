//! The absolute value of a normal variable (the folded normal law; Leone, Nelson and Nottingham 1961).

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{
    DistError,
    numeric::{bisect_quantile, normal_cdf, normal_sf},
    positive,
};

/// `|N(mean, sd²)|`; `mean` and `sd` are those of the normal variable before folding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoldedNormal {
    mu: f64,
    sd: f64,
}

impl FoldedNormal {
    /// # Errors
    /// Where `mean` is negative or `sd` isn't above zero.
    pub fn new(mean: f64, sd: f64) -> Result<Self, DistError> {
        if !(mean.is_finite() && mean >= 0.0) {
            return Err(DistError::new("`mean` must be 0 or more"));
        }
        Ok(Self { mu: mean, sd: positive("sd", sd)? })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        (self.mu + self.sd * z).abs()
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        normal_cdf((x - self.mu) / self.sd) - normal_cdf((-x - self.mu) / self.sd)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        normal_sf((x - self.mu) / self.sd) + normal_cdf((-x - self.mu) / self.sd)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        bisect_quantile(p, self.mu + self.sd, |x| self.cdf(x), |x| self.sf(x))
    }

    pub(crate) fn mean(&self) -> f64 {
        let ratio = self.mu / self.sd;
        self.sd * (2.0 / std::f64::consts::PI).sqrt() * (-ratio * ratio / 2.0).exp()
            + self.mu * (1.0 - 2.0 * normal_cdf(-ratio))
    }

    pub(crate) fn variance(&self) -> f64 {
        self.mu.powi(2) + self.sd.powi(2) - self.mean().powi(2)
    }
}
