//! The lognormal law, solved from what a dashboard shows.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{
    DistError,
    numeric::{exp, normal_cdf, normal_quantile, normal_sf},
    positive,
};

/// `ln X` is normal with mean `mu` and standard deviation `sigma`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogNormal {
    mu: f64,
    sigma: f64,
}

impl LogNormal {
    /// From the parameters of `ln X`.
    ///
    /// # Errors
    /// Where `mu` isn't finite or `sigma` isn't above zero.
    pub fn new(mu: f64, sigma: f64) -> Result<Self, DistError> {
        if !mu.is_finite() {
            return Err(DistError::new("`mu` must be a finite number"));
        }
        Ok(Self { mu, sigma: positive("sigma", sigma)? })
    }

    /// From two quantiles: `P(X <= low) = p_low`, `P(X <= high) = p_high`.
    ///
    /// # Errors
    /// Where the quantiles aren't positive and increasing.
    pub fn from_quantiles(p_low: f64, low: f64, p_high: f64, high: f64) -> Result<Self, DistError> {
        let (low, high) = (positive(&percentile_name(p_low), low)?, positive(&percentile_name(p_high), high)?);
        if high <= low {
            return Err(DistError::new(format!(
                "`{}` must be above `{}`: a higher percentile can't be smaller or the same",
                percentile_name(p_high),
                percentile_name(p_low)
            )));
        }
        let (z_low, z_high) = (normal_quantile(p_low), normal_quantile(p_high));
        let sigma = (high / low).ln() / (z_high - z_low);
        Self::new(low.ln() - z_low * sigma, sigma)
    }

    /// From the mean and the coefficient of variation (standard deviation over mean): `sigma² = ln(1 + cv²)`.
    ///
    /// # Errors
    /// Where one of them isn't above zero.
    pub fn from_mean_cv(mean: f64, cv: f64) -> Result<Self, DistError> {
        let (mean, cv) = (positive("mean", mean)?, positive("cv", cv)?);
        let variance = (cv * cv).ln_1p();
        Self::new(mean.ln() - variance / 2.0, variance.sqrt())
    }

    /// From one quantile and the coefficient of variation.
    ///
    /// # Errors
    /// Where one of them isn't above zero.
    pub fn from_quantile_cv(p: f64, value: f64, cv: f64) -> Result<Self, DistError> {
        let (value, cv) = (positive(&percentile_name(p), value)?, positive("cv", cv)?);
        let sigma = (cv * cv).ln_1p().sqrt();
        Self::new(value.ln() - normal_quantile(p) * sigma, sigma)
    }

    /// From the mean and one quantile. `ln(value/mean) = z sigma - sigma²/2` has two solutions where the quantile lies
    /// above the mean; the narrower law is taken.
    ///
    /// # Errors
    /// Where no lognormal law has this mean and this quantile: the quantile may be at most `mean · exp(z²/2)`, and the
    /// median must be below the mean.
    pub fn from_mean_quantile(mean: f64, p: f64, value: f64) -> Result<Self, DistError> {
        let name = percentile_name(p);
        let (mean, value) = (positive("mean", mean)?, positive(&name, value)?);
        let (z, log_ratio) = (normal_quantile(p), (value / mean).ln());
        let root = z * z - 2.0 * log_ratio;
        if root < 0.0 {
            return Err(DistError::new(format!(
                "no lognormal law has mean {mean} and `{name}` {value}: with this mean its `{name}` is at most {:.6}",
                mean * (z * z / 2.0).exp()
            )));
        }
        let sigma = if log_ratio > 0.0 { z - root.sqrt() } else { z + root.sqrt() };
        if sigma <= 0.0 || log_ratio == 0.0 {
            return Err(DistError::new(format!(
                "a lognormal law's mean lies above its median: `{name}` = {value} and mean = {mean} leave no spread; \
                 give `cv` or another percentile"
            )));
        }
        Self::new(mean.ln() - sigma * sigma / 2.0, sigma)
    }

    /// Standard deviation of `ln X`.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let z: f64 = StandardNormal.sample(rng);
        exp(self.mu + self.sigma * z)
    }

    fn standardise(&self, x: f64) -> f64 {
        (x.ln() - self.mu) / self.sigma
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        normal_cdf(self.standardise(x))
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        normal_sf(self.standardise(x))
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        (self.mu + self.sigma * normal_quantile(p)).exp()
    }

    pub(crate) fn mean(&self) -> f64 {
        (self.mu + self.sigma * self.sigma / 2.0).exp()
    }

    pub(crate) fn variance(&self) -> f64 {
        (self.sigma * self.sigma).exp_m1() * (2.0 * self.mu + self.sigma * self.sigma).exp()
    }
}

fn percentile_name(p: f64) -> String {
    format!("p{}", p * 100.0)
}
