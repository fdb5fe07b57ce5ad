//! One fixed value.

use rand::Rng;

/// The law that always gives the same value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constant {
    value: f64,
}

impl Constant {
    /// Always `value`.
    pub fn new(value: f64) -> Self {
        Self { value }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, _rng: &mut R) -> f64 {
        self.value
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        f64::from(x >= self.value)
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        f64::from(x < self.value)
    }

    pub(crate) fn quantile(&self, _p: f64) -> f64 {
        self.value
    }

    pub(crate) fn mean(&self) -> f64 {
        self.value
    }

    #[allow(clippy::unused_self)]
    pub(crate) fn variance(&self) -> f64 {
        0.0
    }
}
