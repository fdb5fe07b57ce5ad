//! The Poisson law on 0, 1, 2, ….

use rand::Rng;
use rand_distr::Distribution;
use statrs::function::gamma::{gamma_lr, gamma_ur};

use super::{DistError, positive};

/// `P(X <= k) = Q(k + 1, mean)`, the regularised upper incomplete gamma function.
#[derive(Debug, Clone, Copy)]
pub struct Poisson {
    mean: f64,
    sampler: rand_distr::Poisson<f64>,
}

impl Poisson {
    /// # Errors
    /// Where `mean` isn't above zero or is over a billion.
    pub fn new(mean: f64) -> Result<Self, DistError> {
        let mean = positive("mean", mean)?;
        if mean > 1e9 {
            return Err(DistError::new("`mean` of a Poisson law must be at most 1e9"));
        }
        let sampler = rand_distr::Poisson::new(mean).map_err(|e| DistError::new(e.to_string()))?;
        Ok(Self { mean, sampler })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.sampler.sample(rng)
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        gamma_ur(x.floor() + 1.0, self.mean)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        gamma_lr(x.floor() + 1.0, self.mean)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        if p >= 1.0 {
            return f64::INFINITY;
        }
        let reached = |k: f64| if p > 0.5 { self.sf(k) <= 1.0 - p } else { self.cdf(k) >= p };
        let mut high = self.mean + 1.0;
        while !reached(high.floor()) {
            high *= 2.0;
        }
        let (mut low, mut high) = (-1.0, high.floor());
        while high - low > 1.0 {
            let middle = f64::midpoint(low, high).floor();
            if reached(middle) { high = middle } else { low = middle }
        }
        high
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    pub(crate) fn variance(&self) -> f64 {
        self.mean
    }
}
