//! How long calls take, alone, together and one after another. All times in seconds.

use statrs::distribution::{ContinuousCDF, Erlang};

use crate::dist::{Dist, survival_integral};

/// `H_m = 1 + 1/2 + … + 1/m`.
pub fn harmonic(m: u64) -> f64 {
    (1..=m).rev().map(|i| 1.0 / i as f64).sum()
}

/// `latency.parallel`, mean of the slowest of `m` exponential calls: `μ H_m` (Rényi 1953).
pub fn parallel_mean(mu: f64, m: u64) -> f64 {
    mu * harmonic(m)
}

/// `latency.parallel`, its variance: `μ² Σ 1/i²`.
pub fn parallel_variance(mu: f64, m: u64) -> f64 {
    mu * mu * (1..=m).rev().map(|i| 1.0 / (i as f64).powi(2)).sum::<f64>()
}

/// `latency.parallel`, its quantile: `-μ ln(1 - p^(1/m))`.
pub fn parallel_quantile(mu: f64, m: u64, p: f64) -> f64 {
    // 1 - p^(1/m) = -expm1(ln(p)/m), exact for large m
    -mu * (-(p.ln() / m as f64).exp_m1()).ln()
}

/// `latency.sequential`: the sum of `m` exponential calls has mean `m μ` and Erlang quantiles.
pub fn sequential_quantile(mu: f64, m: u64, p: f64) -> f64 {
    Erlang::new(m, 1.0 / mu).map_or(f64::NAN, |erlang| {
        // the library's own inversion stops early; its distribution function is exact
        let (mut low, mut high) = (0.0, mu * (m as f64 + 1.0));
        while erlang.cdf(high) < p {
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if erlang.cdf(middle) < p { low = middle } else { high = middle }
        }
        high
    })
}

/// Distribution function of the sum of `m` exponential calls.
pub fn sequential_cdf(mu: f64, m: u64, x: f64) -> f64 {
    Erlang::new(m, 1.0 / mu).map_or(f64::NAN, |erlang| erlang.cdf(x))
}

/// `latency.timeout` for one call: `E[min(X, τ)] = μ (1 - e^(-τ/μ))`.
pub fn timeout_mean(mu: f64, timeout_s: f64) -> f64 {
    -mu * (-timeout_s / mu).exp_m1()
}

/// `latency.timeout` for the slowest of `m`: `∫ 1 - F^m` up to `τ`, by quadrature.
pub fn parallel_timeout_mean(law: &Dist, m: u64, timeout_s: f64) -> f64 {
    slowest_mean(law, m, timeout_s)
}

/// `latency.any`, mean: `∫ 1 - F^m` from 0 to `limit` (infinity for no limit).
pub fn slowest_mean(law: &Dist, m: u64, limit: f64) -> f64 {
    let kinks = law.kinks();
    survival_integral(|x| slowest_sf(law.sf(x), m as f64), |p| law.quantile(p.powf(1.0 / m as f64)), &kinks, limit)
}

/// `latency.any`, quantile: `F⁻¹(p^(1/m))`.
pub fn slowest_quantile(law: &Dist, m: u64, p: f64) -> f64 {
    law.quantile(p.powf(1.0 / m as f64))
}

/// `1 - (1 - sf)^m` without losing the digits of a small `sf`.
fn slowest_sf(sf: f64, m: f64) -> f64 {
    -(m * (-sf).ln_1p()).exp_m1()
}

/// `latency.hedged`: a second copy after `d`, the first answer wins:
/// `μ (1 - e^(-d/μ)) + μ/2 e^(-d/μ)`.
pub fn hedged_mean(mu: f64, hedge_after_s: f64) -> f64 {
    let beyond = (-hedge_after_s / mu).exp();
    mu * (1.0 - beyond) + mu / 2.0 * beyond
}
