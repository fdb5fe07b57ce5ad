//! The Weibull law: `F(x) = 1 - exp(-(x/scale)^shape)`.

use rand::Rng;
use rand_distr::Distribution;
use statrs::function::gamma::ln_gamma;

use super::{DistError, positive};

/// `shape` below 1 has a heavier tail than the exponential, above 1 a lighter one.
#[derive(Debug, Clone, Copy)]
pub struct Weibull {
    scale: f64,
    shape: f64,
    sampler: rand_distr::Weibull<f64>,
}

impl Weibull {
    /// # Errors
    /// Where `scale` or `shape` isn't above zero, or `shape` is below 0.05, where the moments overflow.
    pub fn new(scale: f64, shape: f64) -> Result<Self, DistError> {
        let (scale, shape) = (positive("scale", scale)?, positive("shape", shape)?);
        if !(0.05..=1e4).contains(&shape) {
            return Err(DistError::new("`shape` of a Weibull law must lie between 0.05 and 10000"));
        }
        let sampler = rand_distr::Weibull::new(scale, shape).map_err(|e| DistError::new(e.to_string()))?;
        Ok(Self { scale, shape, sampler })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.sampler.sample(rng)
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        -(-(x / self.scale).powf(self.shape)).exp_m1()
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        (-(x / self.scale).powf(self.shape)).exp()
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        self.scale * (-(-p).ln_1p()).powf(1.0 / self.shape)
    }

    fn moment(&self, k: f64) -> f64 {
        self.scale.powf(k) * ln_gamma(1.0 + k / self.shape).exp()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.moment(1.0)
    }

    pub(crate) fn variance(&self) -> f64 {
        self.moment(2.0) - self.mean().powi(2)
    }
}
