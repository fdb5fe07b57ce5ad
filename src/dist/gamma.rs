//! The gamma law, given by mean and coefficient of variation.

use rand::Rng;
use rand_distr::Distribution;
use statrs::distribution::{ContinuousCDF, Gamma as Exact};

use super::{DistError, numeric::bisect_quantile, positive};

/// Shape `1 / cv²`, scale `mean · cv²`.
#[derive(Debug, Clone)]
pub struct Gamma {
    mean: f64,
    cv: f64,
    sampler: rand_distr::Gamma<f64>,
    exact: Exact,
}

impl Gamma {
    /// # Errors
    /// Where `mean` or `cv` isn't above zero, or `cv` lies outside 0.001 to 1000, where the law degenerates.
    pub fn new(mean: f64, cv: f64) -> Result<Self, DistError> {
        let (mean, cv) = (positive("mean", mean)?, positive("cv", cv)?);
        if !(1e-3..=1e3).contains(&cv) {
            return Err(DistError::new("`cv` of a gamma law must lie between 0.001 and 1000"));
        }
        let (shape, scale) = (1.0 / (cv * cv), mean * cv * cv);
        let sampler = rand_distr::Gamma::new(shape, scale).map_err(|e| DistError::new(e.to_string()))?;
        let exact = Exact::new(shape, 1.0 / scale).map_err(|e| DistError::new(e.to_string()))?;
        Ok(Self { mean, cv, sampler, exact })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.sampler.sample(rng)
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        self.exact.cdf(x)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        self.exact.sf(x)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        bisect_quantile(p, self.mean, |x| self.cdf(x), |x| self.sf(x))
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn variance(&self) -> f64 {
        (self.mean * self.cv).powi(2)
    }
}
