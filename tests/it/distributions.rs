//! Every family: draws against the distribution function, moments against quadrature, quantiles against both.

use agent_sim::dist::{
    Choices, Dist, Empirical, Exponential, FoldedNormal, Gamma, Geometric, LogNormal, Mixture, Pareto, Poisson,
    Quantiles, Scaled, Uniform, Weibull, Whole, round_to_whole, survival_integral,
};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use crate::support::assert_close;

/// Every family at ordinary and at awkward parameters.
fn families() -> Vec<(&'static str, Dist)> {
    let quantiles = Quantiles::new(vec![(0.0, 0.01), (0.5, 0.3), (0.9, 13.6), (0.99, 216.0), (1.0, 1200.0)]).unwrap();
    let mixture = Mixture::new(vec![
        (0.95, Exponential::new(0.3).unwrap().into()),
        (0.05, LogNormal::from_mean_cv(60.0, 2.0).unwrap().into()),
    ])
    .unwrap();
    vec![
        ("constant", Dist::constant(3.0)),
        ("exponential", Exponential::new(2.0).unwrap().into()),
        ("lognormal", LogNormal::from_quantiles(0.5, 0.8, 0.99, 12.0).unwrap().into()),
        ("lognormal wide", LogNormal::from_mean_cv(10.0, 20.0).unwrap().into()),
        ("gamma", Gamma::new(5.0, 0.6).unwrap().into()),
        ("gamma wide", Gamma::new(5.0, 3.0).unwrap().into()),
        ("gamma narrow", Gamma::new(5.0, 0.02).unwrap().into()),
        ("weibull", Weibull::new(2.0, 0.7).unwrap().into()),
        ("weibull narrow", Weibull::new(2.0, 9.0).unwrap().into()),
        ("pareto", Pareto::new(0.1, 3.5).unwrap().into()),
        ("pareto heavy", Pareto::new(0.1, 1.3).unwrap().into()),
        ("uniform", Uniform::new(1.0, 4.0).unwrap().into()),
        ("normal", FoldedNormal::new(10.0, 2.0).unwrap().into()),
        ("normal folded", FoldedNormal::new(0.5, 2.0).unwrap().into()),
        ("quantiles", quantiles.into()),
        ("empirical", Empirical::new(vec![1.0, 2.0, 2.0, 7.5, 40.0]).unwrap().into()),
        ("mixture", mixture.into()),
        ("scaled", Scaled::new(0.5, LogNormal::from_mean_cv(10.0, 2.0).unwrap().into()).unwrap().into()),
        ("scaled steps", Scaled::new(2.5, Poisson::new(2.5).unwrap().into()).unwrap().into()),
        ("geometric", Geometric::new(12.0).unwrap().into()),
        ("geometric one", Geometric::new(1.0).unwrap().into()),
        ("poisson", Poisson::new(2.5).unwrap().into()),
        ("poisson large", Poisson::new(4_000.0).unwrap().into()),
        ("choices", Choices::new(vec![(0.0, 0.7), (2.0, 0.2), (9.0, 0.1)]).unwrap().into()),
    ]
}

fn sample(law: &Dist, n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..n).map(|_| law.draw(&mut rng)).collect()
}

/// Kolmogorov's statistic, for laws with jumps too: the largest distance on either side of each value.
fn ks(law: &Dist, mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let mut largest = 0.0_f64;
    let mut index = 0;
    while index < values.len() {
        let x = values[index];
        let after = values.partition_point(|v| *v <= x);
        let (below, at) = (index as f64 / n, after as f64 / n);
        largest = largest.max((law.cdf(x) - at).abs()).max((law.cdf(x.next_down()) - below).abs());
        index = after;
    }
    largest
}

#[test]
fn draws_follow_the_distribution_function() {
    // 1.95/√n is exceeded with chance 0.001 by a right sampler
    let n = 100_000;
    for (name, law) in families() {
        for seed in [1, 2] {
            let distance = ks(&law, sample(&law, n, seed));
            assert!(distance < 1.95 / (n as f64).sqrt(), "{name}, seed {seed}: distance {distance}");
        }
    }
}

#[test]
fn a_wrong_sampler_would_be_seen() {
    let n = 100_000;
    let truth = Dist::from(Exponential::new(2.0).unwrap());
    let wrong = Dist::from(Exponential::new(2.05).unwrap());
    assert!(ks(&truth, sample(&wrong, n, 1)) > 1.95 / (n as f64).sqrt());
}

#[test]
fn quantiles_invert_the_distribution_function() {
    for (name, law) in families() {
        for p in [1e-6, 0.01, 0.25, 0.5, 0.9, 0.99, 0.9999, 1.0 - 1e-9] {
            let x = law.quantile(p);
            assert!(law.cdf(x) >= p - 1e-11, "{name}: F(Q({p})) = {}", law.cdf(x));
            let before = x * (1.0 - 1e-9) - 1e-12;
            assert!(law.cdf(before) <= p + 1e-7, "{name}: Q({p}) = {x} isn't the smallest");
        }
        for x in [0.2, 1.0, 3.0, 12.0] {
            assert!((law.cdf(x) + law.sf(x) - 1.0).abs() < 1e-12, "{name} at {x}");
        }
    }
}

#[test]
fn moments_are_those_of_the_distribution_function() {
    for (name, law) in families() {
        let mean = survival_integral(|x| law.sf(x), |p| law.quantile(p), &law.kinks(), f64::INFINITY);
        assert_close(mean, law.mean(), if name == "pareto heavy" { 1e-6 } else { 1e-8 });
        if law.variance().is_finite() && law.variance() > 0.0 {
            let root = |x: f64| law.sf(x.sqrt());
            let kinks: Vec<f64> = law.kinks().iter().map(|x| x * x).collect();
            let second = survival_integral(root, |p| law.quantile(p).powi(2), &kinks, f64::INFINITY);
            let variance = second - law.mean().powi(2);
            assert!((variance - law.variance()).abs() < 1e-6 * second, "{name}: {variance} against {}", law.variance());
        }
    }
}

#[test]
fn moments_are_those_of_the_draws() {
    let n = 200_000;
    for (name, law) in families().into_iter().filter(|(name, _)| !name.contains("wide") && !name.contains("heavy")) {
        let values = sample(&law, n, 7);
        let mean = values.iter().sum::<f64>() / n as f64;
        let se = (law.variance() / n as f64).sqrt();
        assert!((mean - law.mean()).abs() <= 4.0 * se, "{name}: mean {mean} against {}", law.mean());
    }
}

#[test]
fn lognormal_from_any_two() {
    let truth = LogNormal::new(0.3, 1.2).unwrap();
    let law = Dist::from(truth);
    let (mean, cv) = (law.mean(), law.variance().sqrt() / law.mean());
    let q = |p| law.quantile(p);
    let solved = [
        LogNormal::from_mean_cv(mean, cv),
        LogNormal::from_quantile_cv(0.9, q(0.9), cv),
        LogNormal::from_quantiles(0.5, q(0.5), 0.95, q(0.95)),
        LogNormal::from_quantiles(0.9, q(0.9), 0.99, q(0.99)),
        LogNormal::from_mean_quantile(mean, 0.5, q(0.5)),
        LogNormal::from_mean_quantile(mean, 0.99, q(0.99)),
    ];
    for law in solved {
        assert_close(law.unwrap().sigma(), 1.2, 1e-9);
    }
    // of the two laws with this mean and p90 the narrower is taken
    let narrow = LogNormal::from_mean_quantile(1.0, 0.9, 1.8).unwrap();
    assert_close(Dist::from(narrow).mean(), 1.0, 1e-9);
    assert_close(Dist::from(narrow).quantile(0.9), 1.8, 1e-9);
    assert!(narrow.sigma() < 1.3);
}

#[test]
fn impossible_laws_are_refused() {
    assert!(LogNormal::from_mean_quantile(1.0, 0.99, 1_000.0).is_err());
    assert!(LogNormal::from_mean_quantile(1.0, 0.5, 2.0).is_err());
    assert!(LogNormal::from_quantiles(0.5, 5.0, 0.99, 5.0).is_err());
    assert!(Exponential::new(0.0).is_err());
    assert!(Exponential::new(f64::NAN).is_err());
    assert!(Gamma::new(1.0, -1.0).is_err());
    assert!(Uniform::new(2.0, 2.0).is_err());
    assert!(Pareto::new(1.0, 0.0).is_err());
    assert!(Geometric::new(0.5).is_err());
    assert!(Quantiles::new(vec![(0.5, 1.0), (1.0, 2.0)]).is_err());
    assert!(Quantiles::new(vec![(0.0, 3.0), (1.0, 2.0)]).is_err());
    assert!(Empirical::new(vec![]).is_err());
    assert!(Empirical::new(vec![-1.0]).is_err());
    assert!(Choices::new(vec![(1.0, 0.5), (2.0, 0.6)]).is_err());
    assert!(Mixture::new(vec![(0.9, Dist::constant(1.0))]).is_err());
}

#[test]
fn rounding_to_whole_numbers() {
    assert_eq!([0.0, 0.4, 0.5, 0.6, 1.5, 2.5, 299.7].map(round_to_whole), [0, 0, 0, 1, 2, 2, 300]);
    assert_eq!(round_to_whole(1e300), 1 << 51);
    assert_eq!(round_to_whole(4e9), 4_000_000_000);
}

#[test]
fn rounded_moments_are_exact() {
    // against plain summation of k · P(N = k)
    for (name, law) in families().into_iter().filter(|(_, law)| law.quantile(0.999_999) < 5_000.0) {
        for least in [0, 1] {
            let whole = Whole::new(law.clone(), least);
            let (mut mean, mut second) = (0.0, 0.0);
            for k in 1..400_000_u64 {
                let chance = whole.at_least(k) - whole.at_least(k + 1);
                mean += k as f64 * chance;
                second += (k as f64).powi(2) * chance;
            }
            let tail_matters = name.contains("heavy") || name.contains("wide");
            assert_close(whole.mean(), mean, if tail_matters { 2e-2 } else { 1e-9 });
            // a mixture with a wide lognormal has a third of a thousandth of it beyond the summed terms
            if !tail_matters && name != "mixture" {
                assert_close(whole.second_moment(), second, 1e-7);
            }
        }
    }
}

#[test]
fn rounded_moments_are_those_of_the_draws() {
    let law = Whole::new(LogNormal::from_mean_cv(2.3, 0.8).unwrap().into(), 1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let n = 400_000;
    let draws: Vec<f64> = (0..n).map(|_| law.draw(&mut rng) as f64).collect();
    let mean = draws.iter().sum::<f64>() / f64::from(n);
    let se = (law.variance() / f64::from(n)).sqrt();
    assert!((mean - law.mean()).abs() < 4.0 * se, "{mean} against {}", law.mean());
    // the law before rounding has another mean, and this test would see it
    assert!((mean - 2.3).abs() > 4.0 * se);
    let generated: f64 = draws.iter().map(|k| 0.8_f64.powf(*k)).sum::<f64>() / f64::from(n);
    assert_close(law.generating().at(0.8), generated, 5e-3);
}

#[test]
fn large_sizes_keep_their_mean() {
    let law = LogNormal::from_mean_cv(250_000.0, 1.0).unwrap();
    assert_close(Whole::new(law.into(), 0).mean(), 250_000.0, 1e-6);
}

#[test]
fn inversion_gives_the_same_law() {
    // equal steps of the uniform: the share of each value is its chance, to a step
    let steps = 1_u64 << 18;
    let uniform = |i: u64| (i << 46) | (1 << 45);
    for (name, law) in families() {
        for least in [0, 1] {
            let whole = Whole::new(law.clone(), least);
            let drawn: Vec<u64> = (0..steps).map(|i| whole.at(uniform(i))).collect();
            assert!(drawn.is_sorted(), "{name}: not monotone in the uniform");
            let mut values = drawn.clone();
            values.dedup();
            for k in values.into_iter().step_by(37).take(200) {
                let below = drawn.partition_point(|n| *n < k);
                let share = below as f64 / steps as f64;
                let exact = 1.0 - whole.at_least(k);
                assert!((share - exact).abs() < 1e-5, "{name} at {k}: {share} against {exact}");
            }
            assert!(whole.at(u64::MAX) >= whole.at(0));
        }
    }
}
