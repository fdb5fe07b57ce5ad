//! A law behind a fixed amount.

use rand::Rng;

use super::Dist;

/// `offset + X`.
#[derive(Debug, Clone)]
pub struct Shifted {
    offset: f64,
    law: Box<Dist>,
}

impl Shifted {
    /// `offset`, which isn't negative, and a law beyond it.
    pub fn new(offset: f64, law: Dist) -> Self {
        Self { offset: offset.max(0.0), law: Box::new(law) }
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.offset + self.law.draw(rng)
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        self.law.cdf(x - self.offset)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        self.law.sf(x - self.offset)
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        self.offset + self.law.quantile(p)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.offset + self.law.mean()
    }

    pub(crate) fn variance(&self) -> f64 {
        self.law.variance()
    }

    pub(crate) fn kinks(&self) -> Vec<f64> {
        let mut kinks: Vec<f64> = self.law.kinks().into_iter().map(|x| x + self.offset).collect();
        kinks.push(self.offset);
        kinks
    }
}
