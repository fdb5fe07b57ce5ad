//! Quantiles by nearest rank, with distribution-free intervals.

use statrs::distribution::{Binomial, DiscreteCDF};

/// The quantiles of the report.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// `0.99` → `p99`, `0.999` → `p999`.
pub fn quantile_name(p: f64) -> String {
    format!("p{}", (p * 1000.0).round() / 10.0).replace('.', "")
}

/// A quantile with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileEstimate {
    /// Which one, 0 to 1.
    pub p: f64,
    /// The estimate.
    pub value: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
    /// Whether fewer than ten sessions lie beyond it: the sample is too small for this quantile.
    pub too_few: bool,
}

/// (rank of the quantile, lower and upper rank of its 95 % interval), from 1: the interval from the `l`-th to the
/// `u`-th smallest value covers the true quantile with chance `P(l <= Bin(n, p) < u)` or more, whatever the
/// distribution (David and Nagaraja 2003, §7.1). Where the sample is too small for an upper rank, the largest value
/// stands in.
pub fn quantile_ranks(n: u64, p: f64) -> (u64, u64, u64) {
    // n·p may lie a rounding error above a whole number
    let rank = ((n as f64 * p - 1e-9).ceil() as u64).clamp(1, n.max(1));
    let (mean, sd) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    if sd > 30.0 {
        let half = 1.959_963_984_540_054 * sd;
        let lower = ((mean - half).floor().max(1.0) as u64).min(n);
        let upper = ((mean + half).ceil() as u64 + 1).min(n);
        return (rank, lower, upper);
    }
    let Ok(binomial) = Binomial::new(p, n) else { return (rank, 1, n.max(1)) };
    let mut lower = rank;
    while lower > 1 && binomial.cdf(lower - 1) > 0.025 {
        lower -= 1;
    }
    let mut upper = rank;
    while upper < n && binomial.cdf(upper - 1) < 0.975 {
        upper += 1;
    }
    (rank, lower, upper)
}
