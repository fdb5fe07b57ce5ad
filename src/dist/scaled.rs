//! A law times a fixed number.

use rand::Rng;

use super::{Dist, DistError, positive};

/// `by · X`.
#[derive(Debug, Clone)]
pub struct Scaled {
    by: f64,
    law: Box<Dist>,
}

impl Scaled {
    /// # Errors
    /// Where `by` isn't a finite number above 0.
    pub fn new(by: f64, law: Dist) -> Result<Self, DistError> {
        Ok(Self { by: positive("by", by)?, law: Box::new(law) })
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.by * self.law.draw(rng)
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        self.law.cdf(x / self.by)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        self.law.sf(x / self.by)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        self.by * self.law.quantile(p)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.by * self.law.mean()
    }

    pub(crate) fn variance(&self) -> f64 {
        self.by * self.by * self.law.variance()
    }

    pub(crate) fn kinks(&self) -> Vec<f64> {
        self.law.kinks().into_iter().map(|x| x * self.by).collect()
    }
}
