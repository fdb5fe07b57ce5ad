//! Means, variances and covariances that can be merged (Chan, Golub and `LeVeque` 1979).

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// An estimate with its standard error and 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
}

/// With no event seen, the largest expected number that a 95 % interval (two-sided) still holds: `-ln 0.025`.
pub(super) const ZERO_EVENTS: f64 = 3.688_879_454_113_936;

/// Half-width of a 95 % interval in standard errors, with `n - 1` degrees of freedom.
pub fn half_width(n: u64) -> f64 {
    if n < 2 {
        return f64::INFINITY;
    }
    match StudentsT::new(0.0, 1.0, (n - 1) as f64) {
        Ok(t) if n < 10_000 => t.inverse_cdf(0.975),
        _ => 1.959_963_984_540_054,
    }
}

/// The z of the standard normal law that is as far out as Student's `t` with `n - 1` degrees of freedom.
pub fn normal_score(t: f64, n: u64) -> f64 {
    let (Ok(student), Ok(normal)) = (StudentsT::new(0.0, 1.0, n.max(2) as f64 - 1.0), Normal::new(0.0, 1.0)) else {
        return t;
    };
    // of the nearer tail, which keeps its digits
    let tail = student.cdf(-t.abs());
    if tail > 0.0 { -normal.inverse_cdf(tail).copysign(-t) } else { t }
}

/// Count, mean, spread and ends of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// How many.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub squares: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { n: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

/// A list is gone through in so many lanes, each with a result of its own, so that the processor takes several steps at
/// once; the order in which they are put together is fixed.
const LANES: usize = 8;

/// The least and the largest.
fn ends(values: &[f64]) -> (f64, f64) {
    let least = |least: f64, x: f64| if x < least { x } else { least };
    let most = |most: f64, x: f64| if x > most { x } else { most };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    let mut take = |values: &[f64]| {
        for ((low, high), x) in low.iter_mut().zip(&mut high).zip(values) {
            (*low, *high) = (least(*low, *x), most(*high, *x));
        }
    };
    for chunk in chunks {
        take(chunk);
    }
    take(rest);
    (low.into_iter().fold(f64::INFINITY, least), high.into_iter().fold(f64::NEG_INFINITY, most))
}

fn sum(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x;
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x;
    }
    lanes.into_iter().fold(0.0, |sum, lane| sum + lane)
}

/// `Σ (y - mean_y)(x - mean_x)`
fn products(y: &[f64], mean_y: f64, x: &[f64], mean_x: f64) -> f64 {
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (ys, xs) in ys.iter().zip(xs) {
        for ((lane, y), x) in lanes.iter_mut().zip(ys).zip(xs) {
            *lane += (y - mean_y) * (x - mean_x);
        }
    }
    for ((lane, y), x) in lanes.iter_mut().zip(y_rest).zip(x_rest) {
        *lane += (y - mean_y) * (x - mean_x);
    }
    lanes.into_iter().sum()
}

impl Moments {
    /// Of a list, in two passes.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let (min, max) = ends(values);
        if min.total_cmp(&max).is_eq() {
            return Self { n: values.len() as u64, mean: min, squares: 0.0, min, max };
        }
        let mean = sum(values) / n;
        let squares = products(values, mean, values, mean);
        Self { n: values.len() as u64, mean, squares, min, max }
    }

    /// Whether all values are the same one.
    pub fn is_constant(&self) -> bool {
        self.min.total_cmp(&self.max).is_eq()
    }

    /// Takes in the moments of another list.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = *other;
            return;
        }
        let (n, m) = (self.n as f64, other.n as f64);
        let delta = other.mean - self.mean;
        self.mean += delta * m / (n + m);
        self.squares += other.squares + delta * delta * n * m / (n + m);
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Sample standard deviation.
    pub fn sd(&self) -> f64 {
        if self.n < 2 { 0.0 } else { (self.squares / (self.n - 1) as f64).sqrt() }
    }

    /// The mean with its standard error and Student interval; both not a number for a single value.
    pub fn estimate(&self) -> Estimate {
        if self.n < 2 {
            // one value says nothing of its spread
            return Estimate { value: self.mean, se: f64::NAN, ci95: [f64::NAN; 2] };
        }
        let se = self.sd() / (self.n as f64).sqrt();
        let half = if se > 0.0 { half_width(self.n) * se } else { 0.0 };
        // what is never negative has no negative mean
        let least = if self.min >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
        Estimate { value: self.mean, se, ci95: [(self.mean - half).max(least), self.mean + half] }
    }
}

/// Joint moments of two numbers, for the ratio of their sums.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Covariance {
    n: u64,
    mean_y: f64,
    mean_x: f64,
    yy: f64,
    xx: f64,
    xy: f64,
}

impl Covariance {
    /// Of two lists of the same length: what is counted, and per what.
    pub fn of(y: &[f64], x: &[f64]) -> Self {
        let n = y.len() as f64;
        let (mean_y, mean_x) = (sum(y) / n, sum(x) / n);
        let (yy, xx) = (products(y, mean_y, y, mean_y), products(x, mean_x, x, mean_x));
        Self { n: y.len() as u64, mean_y, mean_x, yy, xx, xy: products(y, mean_y, x, mean_x) }
    }

    /// Takes in another list's.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        let (n, m) = (self.n as f64, other.n as f64);
        let (dy, dx) = (other.mean_y - self.mean_y, other.mean_x - self.mean_x);
        let weight = n * m / (n + m);
        self.mean_y += dy * m / (n + m);
        self.mean_x += dx * m / (n + m);
        self.yy += other.yy + dy * dy * weight;
        self.xx += other.xx + dx * dx * weight;
        self.xy += other.xy + dx * dy * weight;
        self.n += other.n;
    }

    /// `sum y / sum x`, its standard error by the delta method over sessions (Cochran 1977, §6.4), and its interval.
    /// `None` where nothing was counted below the line. A `share` of exactly 0 or 1 gets the exact Poisson limit,
    /// `-ln(0.025)` events, instead of an interval of no width.
    pub fn ratio(&self, share: bool) -> Option<Estimate> {
        let per = self.mean_x * self.n as f64;
        if self.n == 0 || per <= 0.0 {
            return None;
        }
        let value = self.mean_y / self.mean_x;
        if self.n < 2 {
            return Some(Estimate { value, se: f64::NAN, ci95: [f64::NAN; 2] });
        }
        let variance = {
            let residual = self.yy - 2.0 * value * self.xy + value * value * self.xx;
            // what rounding leaves of a ratio that is the same in every session isn't spread
            let size = 1e-26 * self.n as f64 * self.mean_y * self.mean_y;
            let rounding = 1e-12 * (self.yy + value * value * self.xx) + size;
            if residual <= rounding { 0.0 } else { residual / (self.n - 1) as f64 }
        };
        let se = (variance / self.n as f64).sqrt() / self.mean_x;
        let half = if se > 0.0 { half_width(self.n) * se } else { 0.0 };
        let mut ci95 = [(value - half).max(0.0), value + half];
        if share {
            if value <= 0.0 {
                ci95 = [0.0, (ZERO_EVENTS / per).min(1.0)];
            } else if value >= 1.0 {
                ci95 = [(1.0 - ZERO_EVENTS / per).max(0.0), 1.0];
            }
            ci95 = [ci95[0].max(0.0), ci95[1].min(1.0)];
        }
        Some(Estimate { value, se, ci95 })
    }
}
