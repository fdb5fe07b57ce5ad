//! A law read off a dashboard: a few percentiles, log-linear between them.

use rand::{Rng, RngExt};

use super::{DistError, positive};

/// Between two neighbouring points `(p, x)` and `(q, y)` the quantile is `x · (y/x)^((u-p)/(q-p))`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantiles {
    points: Vec<(f64, f64)>,
}

impl Quantiles {
    /// `points` are (probability, value) in increasing order, the first at 0 and the last at 1.
    ///
    /// # Errors
    /// Where an end is missing, a value isn't above zero, or a value is smaller than the one before.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, DistError> {
        let ends = (points.first().map(|p| p.0), points.last().map(|p| p.0));
        if !matches!(ends, (Some(low), Some(high)) if low <= 0.0 && high >= 1.0) {
            return Err(DistError::new("`p0` and `p100` are needed: without them the ends of the law are unknown"));
        }
        for pair in points.windows(2) {
            let ((p, x), (q, y)) = (pair[0], pair[1]);
            positive(&format!("p{}", p * 100.0), x)?;
            if y < x {
                return Err(DistError::new(format!(
                    "`p{}` is smaller than `p{}`: percentiles can't fall",
                    q * 100.0,
                    p * 100.0
                )));
            }
        }
        Ok(Self { points })
    }

    /// The given values, in order.
    pub fn points(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|p| p.1)
    }

    fn pieces(&self) -> impl Iterator<Item = (f64, f64, f64, f64)> + '_ {
        self.points.windows(2).map(|w| (w[0].0, w[0].1, w[1].0, w[1].1))
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.quantile(rng.random::<f64>())
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        let mut reached = 0.0;
        for (p, low, q, high) in self.pieces() {
            if x < low {
                return reached;
            }
            reached = if x >= high { q } else { p + (q - p) * (x / low).ln() / (high / low).ln() };
        }
        reached
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        1.0 - self.cdf(x)
    }

    pub(crate) fn quantile(&self, u: f64) -> f64 {
        for (p, low, q, high) in self.pieces() {
            if u <= q {
                return low * (high / low).powf((u - p) / (q - p));
            }
        }
        self.points.last().map_or(0.0, |p| p.1)
    }

    /// `E[X^k]`: each piece is log-uniform, `w (y^k - x^k) / (k ln(y/x))`.
    fn moment(&self, k: i32) -> f64 {
        self.pieces()
            .map(|(p, low, q, high)| {
                let log_ratio = (high / low).ln();
                let mean = if log_ratio < 1e-9 {
                    low.powi(k)
                } else {
                    (high.powi(k) - low.powi(k)) / (f64::from(k) * log_ratio)
                };
                (q - p) * mean
            })
            .sum()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.moment(1)
    }

    pub(crate) fn variance(&self) -> f64 {
        (self.moment(2) - self.mean().powi(2)).max(0.0)
    }
}
