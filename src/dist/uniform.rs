//! The uniform law between two values.

use rand::{Rng, RngExt};

use super::DistError;

/// Equally likely anywhere from `min` to `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uniform {
    min: f64,
    max: f64,
}

impl Uniform {
    /// # Errors
    /// Where `min` is negative or `max` isn't above it.
    pub fn new(min: f64, max: f64) -> Result<Self, DistError> {
        if !(min.is_finite() && max.is_finite() && min >= 0.0) {
            return Err(DistError::new("`min` must be 0 or more"));
        }
        if max <= min {
            return Err(DistError::new("`max` must be above `min`"));
        }
        Ok(Self { min, max })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.min + (self.max - self.min) * rng.random::<f64>()
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        ((x - self.min) / (self.max - self.min)).clamp(0.0, 1.0)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        ((self.max - x) / (self.max - self.min)).clamp(0.0, 1.0)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        self.min + (self.max - self.min) * p
    }

    pub(crate) fn mean(&self) -> f64 {
        f64::midpoint(self.min, self.max)
    }

    pub(crate) fn variance(&self) -> f64 {
        (self.max - self.min).powi(2) / 12.0
    }
}
