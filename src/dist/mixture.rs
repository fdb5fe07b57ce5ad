//! One of several laws, chosen by weight.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::{Dist, DistError, numeric::bisect_quantile};

/// With chance `weight` a draw of that part.
#[derive(Debug, Clone)]
pub struct Mixture {
    parts: Arc<[(f64, Dist)]>,
}

impl Mixture {
    /// # Errors
    /// Where there is no part, a weight is negative, or the weights don't sum to 1.
    pub fn new(parts: Vec<(f64, Dist)>) -> Result<Self, DistError> {
        check_weights(parts.iter().map(|p| p.0))?;
        Ok(Self { parts: parts.into() })
    }

    /// The weights and their laws.
    pub fn parts(&self) -> impl Iterator<Item = (f64, &Dist)> + '_ {
        self.parts.iter().map(|(weight, part)| (*weight, part))
    }

    fn sum(&self, f: impl Fn(&Dist) -> f64) -> f64 {
        // a part of weight zero may have infinite moments, and 0 · ∞ isn't 0
        self.parts().filter(|(weight, _)| *weight > 0.0).map(|(weight, part)| weight * f(part)).sum()
    }

    pub(crate) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let chosen = choose(rng.random::<f64>(), self.parts.iter().map(|p| p.0));
        self.parts[chosen].1.draw(rng)
    }

    pub(crate) fn cdf(&self, x: f64) -> f64 {
        self.sum(|part| part.cdf(x))
    }

    pub(crate) fn sf(&self, x: f64) -> f64 {
        self.sum(|part| part.sf(x))
    }

    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let used = || self.parts().filter(|(weight, _)| *weight > 0.0);
        let low = used().map(|(_, part)| part.quantile(p)).fold(f64::INFINITY, f64::min);
        let high = used().map(|(_, part)| part.quantile(p)).fold(0.0, f64::max);
        if low.total_cmp(&high).is_eq() || !high.is_finite() {
            return high;
        }
        let start = f64::midpoint(low, high);
        bisect_quantile(p, start, |x| self.cdf(x), |x| self.sf(x)).clamp(low, high)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum(Dist::mean)
    }

    pub(crate) fn variance(&self) -> f64 {
        let mean = self.mean();
        self.sum(|part| part.variance() + (part.mean() - mean).powi(2))
    }
}

/// The index whose share of 0..1 holds `u`; the last with weight where rounding leaves a gap.
pub(super) fn choose(u: f64, weights: impl Iterator<Item = f64>) -> usize {
    let (mut reached, mut last) = (0.0, 0);
    for (index, weight) in weights.enumerate() {
        if weight > 0.0 {
            last = index;
            reached += weight;
            if u < reached {
                return index;
            }
        }
    }
    last
}

pub(super) fn check_weights(weights: impl Iterator<Item = f64>) -> Result<(), DistError> {
    let mut sum = 0.0;
    let mut any = false;
    for weight in weights {
        if !(0.0..=1.0).contains(&weight) {
            return Err(DistError::new(format!("a weight must lie between 0 and 1, not {weight}")));
        }
        any = true;
        sum += weight;
    }
    if !any {
        return Err(DistError::new("at least one part is needed"));
    }
    if (sum - 1.0).abs() > 1e-9 {
        return Err(DistError::new(format!("the weights sum to {}, not to 1", (sum * 1e9).round() / 1e9)));
    }
    Ok(())
}
