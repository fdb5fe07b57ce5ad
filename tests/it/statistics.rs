//! Estimators: exact on small cases, and intervals that cover as often as they say.

use agent_sim::dist::{Dist, Exponential, LogNormal};
use agent_sim::stats::{Covariance, Moments, Target, next_size, quantile_name, quantile_ranks};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::support::{answer, assert_close, run, scenario, scenario_with};

#[test]
fn moments_merge_to_the_moments_of_all() {
    let values: Vec<f64> = (0..1_000).map(|i| f64::from(i * i % 97) + 0.25).collect();
    let whole = Moments::of(&values);
    let mut merged = Moments::default();
    for part in values.chunks(37) {
        merged.merge(&Moments::of(part));
    }
    assert_eq!((merged.n, merged.min, merged.max), (whole.n, whole.min, whole.max));
    assert_close(merged.mean, whole.mean, 1e-13);
    assert_close(merged.squares, whole.squares, 1e-12);
}

#[test]
fn equal_values_have_no_spread() {
    let moments = Moments::of(&[0.1 + 0.2; 1_000]);
    assert_eq!(moments.sd(), 0.0);
    assert_eq!(moments.estimate().ci95, [0.1 + 0.2; 2]);
}

#[test]
fn ratio_of_a_small_case_by_hand() {
    // y/x = 6/12; residuals y - 0.5x: 0, 1, -1, variance 1; se = 1/√3/4
    let ratio = Covariance::of(&[1.0, 3.0, 2.0], &[2.0, 4.0, 6.0]).ratio(false).unwrap();
    assert_close(ratio.value, 0.5, 1e-15);
    assert_close(ratio.se, 1.0 / 3.0_f64.sqrt() / 4.0, 1e-12);
    assert_eq!(Covariance::of(&[0.0], &[0.0]).ratio(false), None);
}

#[test]
fn a_share_of_nothing_keeps_an_interval() {
    let share = Covariance::of(&[0.0; 100], &[10.0; 100]).ratio(true).unwrap();
    assert_eq!(share.value, 0.0);
    assert_close(share.ci95[1], 3.688_879_454 / 1_000.0, 1e-9);
}

#[test]
fn ranks_of_small_samples() {
    assert_eq!(quantile_ranks(1, 0.5), (1, 1, 1));
    assert_eq!(quantile_ranks(100, 0.5).0, 50);
    // the classical interval of the median of 100: the 40th to the 61st value
    assert_eq!(quantile_ranks(100, 0.5), (50, 40, 61));
    assert_eq!(quantile_ranks(1_000, 0.999).0, 999);
    assert_eq!(
        ["p50", "p95", "p99", "p999"],
        [0.5, 0.95, 0.99, 0.999].map(quantile_name).each_ref().map(String::as_str)
    );
}

/// Share of 2,000 samples of size `n` whose interval covers the truth.
fn coverage(n: usize, covers: impl Fn(&mut Vec<f64>) -> bool, draw: impl Fn(&mut Xoshiro256PlusPlus) -> f64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let repeats = 2_000;
    let hits = (0..repeats)
        .filter(|_| {
            let mut values: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
            covers(&mut values)
        })
        .count();
    hits as f64 / f64::from(repeats)
}

#[test]
fn intervals_of_a_mean_cover() {
    let law = Dist::from(Exponential::new(2.0).unwrap());
    let covered = coverage(
        200,
        |values| {
            let [low, high] = Moments::of(values).estimate().ci95;
            (low..=high).contains(&2.0)
        },
        |rng| law.draw(rng),
    );
    // four standard errors of the share are 0.02
    assert!((0.925..0.97).contains(&covered), "{covered}");
}

#[test]
fn intervals_of_quantiles_cover() {
    let law = Dist::from(LogNormal::from_mean_cv(1.0, 2.0).unwrap());
    for (n, p) in [(200, 0.5), (200, 0.9), (500, 0.95), (5_000, 0.99)] {
        let truth = law.quantile(p);
        let covered = coverage(
            n,
            |values| {
                values.sort_by(f64::total_cmp);
                let (_, lower, upper) = quantile_ranks(n as u64, p);
                (values[lower as usize - 1]..=values[upper as usize - 1]).contains(&truth)
            },
            |rng| law.draw(rng),
        );
        assert!((0.93..0.99).contains(&covered), "n {n}, p {p}: {covered}");
    }
}

#[test]
fn a_quantile_interval_that_is_too_narrow_would_be_seen() {
    let law = Dist::from(Exponential::new(1.0).unwrap());
    let (n, p) = (500, 0.9);
    let covered = coverage(
        n,
        |values| {
            values.sort_by(f64::total_cmp);
            let (rank, lower, upper) = quantile_ranks(n as u64, p);
            let half = |x: u64| (rank as f64 + (x as f64 - rank as f64) / 2.0) as usize - 1;
            (values[half(lower)]..=values[half(upper)]).contains(&law.quantile(p))
        },
        |rng| law.draw(rng),
    );
    assert!(covered < 0.9, "{covered}");
}

#[test]
fn intervals_of_a_ratio_cover_where_sessions_differ() {
    // sessions with their own chance: calls of one session are alike, and counting calls as independent is too narrow
    let (mut rng, repeats, sessions) = (Xoshiro256PlusPlus::seed_from_u64(9), 1_000, 200);
    let (mut covered, mut naive) = (0, 0);
    for _ in 0..repeats {
        let (mut hits, mut calls) = (Vec::new(), Vec::new());
        for _ in 0..sessions {
            let m = 1 + rng.random_range(0..40_u32);
            let chance = if rng.random::<f64>() < 0.5 { 0.05 } else { 0.35 };
            hits.push(f64::from((0..m).filter(|_| rng.random::<f64>() < chance).count() as u32));
            calls.push(f64::from(m));
        }
        let ratio = Covariance::of(&hits, &calls).ratio(true).unwrap();
        covered += u32::from((ratio.ci95[0]..=ratio.ci95[1]).contains(&0.2));
        let binomial = 1.96 * (ratio.value * (1.0 - ratio.value) / calls.iter().sum::<f64>()).sqrt();
        naive += u32::from((ratio.value - 0.2).abs() <= binomial);
    }
    let share = f64::from(covered) / f64::from(repeats);
    assert!((0.92..0.98).contains(&share), "{share}");
    assert!(f64::from(naive) / f64::from(repeats) < 0.8, "{naive}");
}

const RANDOM: &str = r#"
[price]
input = 3
output = 15
[prompt]
system = 2000
[session]
turns = { geometric = { mean = 8 } }
output = { lognormal = { p50 = 200, cv = 1 } }
[[tools]]
name = "t"
result = { lognormal = { p50 = 300, cv = 2 } }
latency = { lognormal = { p50 = "1s", cv = 2 } }
"#;

#[test]
fn precision_goes_on_until_it_is_reached() {
    let wanted = r#"
[run]
sessions = 1000
precision = { "cost_usd.mean" = 0.01, "latency_s.p99" = 0.03 }
"#;
    let answer = answer(scenario(&format!("{wanted}{RANDOM}")));
    assert!(answer.summary.sessions > 1_000, "{}", answer.summary.sessions);
    let cost = answer.summary.metric("cost_usd").unwrap();
    assert!((cost.mean.ci95[1] - cost.mean.ci95[0]) / 2.0 <= 0.01 * cost.mean.value);
    let p99 = answer.summary.metric("latency_s").unwrap().quantile(0.99).unwrap().to_owned();
    assert!((p99.ci95[1] - p99.ci95[0]) / 2.0 <= 0.03 * p99.value);
    // the sessions played are the first ones of one long run
    let again = crate::support::run(RANDOM, answer.summary.sessions);
    assert_eq!(again.summary.metric("cost_usd").unwrap().mean, cost.mean);
}

#[test]
fn precision_stops_at_max_sessions() {
    let wanted = "[run]\nsessions = 100\nmax_sessions = 3000\nprecision.cost_usd.mean = 0.00001\n";
    let answer = answer(scenario(&format!("{wanted}{RANDOM}")));
    assert_eq!(answer.summary.sessions, 3_000);
    assert!(!answer.scenario.run.precision[0].met(&answer.summary));
}

#[test]
fn targets_that_mean_nothing_are_refused() {
    assert!(Target::parse("cost.mean", 0.1).unwrap_err().to_string().contains("cost_usd.mean"));
    assert!(Target::parse("cost_usd.p42", 0.1).is_err());
    assert!(Target::parse("cost_usd", 0.1).is_err());
    assert!(Target::parse("duplicates_per_call", 0.1).is_ok());
    let answer = run(RANDOM, 500);
    assert!(Target::parse("duplicates_per_call", 0.1).unwrap().check(&answer.scenario.model).is_err());
    assert_eq!(next_size(&[], &answer.summary, 1_000_000), None);
}

#[test]
fn a_quantile_that_the_sample_cannot_carry_is_marked() {
    let small = run(RANDOM, 500);
    let latency = small.summary.metric("latency_s").unwrap();
    assert!(!latency.quantile(0.95).unwrap().too_few);
    assert!(latency.quantile(0.99).unwrap().too_few);
    let text = agent_sim::report::terminal(&small, agent_sim::report::Style::PLAIN);
    assert!(text.contains(" ?"), "{text}");
    let large = run(RANDOM, 2_000);
    assert!(!large.summary.metric("latency_s").unwrap().quantile(0.99).unwrap().too_few);
}

#[test]
fn per_turn_quantiles_allow_for_sessions_that_differ() {
    // one latency per session for all its turns would make turns alike; here a random prompt does it
    let text = r"
[model]
prefill_rate = 1000
[prompt]
system = { lognormal = { p50 = 5000, cv = 1 } }
[session]
turns = 40
";
    let answer = run(text, 2_000);
    let first_token = answer.summary.turn_metric(agent_sim::stats::TurnMetric::FirstToken).unwrap();
    let p50 = first_token.quantile(0.5).unwrap();
    // 2,000 sessions, not 80,000 turns, decide: half-width about 1.96 · √(0.25/2000) / density
    let law = Dist::from(LogNormal::from_quantile_cv(0.5, 5.0, 1.0).unwrap());
    let honest = law.quantile(0.5 + 0.0219) - law.quantile(0.5 - 0.0219);
    let width = p50.ci95[1] - p50.ci95[0];
    assert!(width > 0.7 * honest && width < 1.5 * honest, "{width} against {honest}");
    assert!((p50.ci95[0]..=p50.ci95[1]).contains(&5.0), "{p50:?}");
}

#[test]
fn histograms_stand_in_beyond_ten_million_sessions() {
    // max_sessions beyond ten million chooses histograms from the start, whatever is played
    let exact = run(RANDOM, 20_480);
    let sets = ["run.sessions=20480", "run.max_sessions=20000000", "run.precision={ \"cost_usd.mean\" = 0.9 }"];
    let coarse = answer(scenario_with(RANDOM, &sets));
    assert_eq!(coarse.summary.sessions, 20_480);
    for name in ["cost_usd", "latency_s", "input_tokens", "turns"] {
        let (a, b) = (exact.summary.metric(name).unwrap(), coarse.summary.metric(name).unwrap());
        assert_eq!(a.mean, b.mean, "{name}");
        for (p, q) in a.quantiles.iter().zip(&b.quantiles) {
            assert_close(q.value, p.value, 2e-3);
        }
    }
}

#[test]
fn one_session_has_no_interval() {
    let one = run(RANDOM, 1);
    let cost = one.summary.metric("cost_usd").unwrap();
    assert!(cost.mean.se.is_nan() && cost.mean.ci95[0].is_nan());
    let text = agent_sim::report::terminal(&one, agent_sim::report::Style::PLAIN);
    assert!(text.contains("one session only"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&agent_sim::report::json(&[one]).unwrap()).unwrap();
    assert!(json["strategies"][0]["metrics"]["cost_usd"]["se"].is_null());
}

#[test]
fn nothing_seen_is_not_precise() {
    let wanted = "[run]\nsessions = 500\nmax_sessions = 5000\nprecision.duplicates.mean = 0.1\n";
    let tool =
        "[session]\nturns = 2\n[[tools]]\nname = \"t\"\ntimeout = \"5s\"\nlost_reply = 1e-7\nretry.attempts = 2\n";
    let rare = answer(scenario(&format!("{wanted}{tool}")));
    assert_eq!(rare.summary.sessions, 5_000);
    assert!(!rare.scenario.run.precision[0].met(&rare.summary));
    assert!(rare.summary.metric("duplicates").unwrap().mean.ci95[1] > 0.0);
}

#[test]
fn a_metric_that_does_not_apply_is_left_out() {
    let names = |text: &str| -> Vec<&str> {
        let answer = run(text, 200);
        answer.summary.metrics.iter().map(|(m, _)| m.quantity().name()).collect()
    };
    let rejections =
        "[session]\nturns = 5\n[[tools]]\nname = \"t\"\nrejected = 0.3\nreject_latency = \"2s\"\nretry.attempts = 3\n";
    let got = names(rejections);
    assert!(got.contains(&"latency_s") && got.contains(&"tool_s") && got.contains(&"retry_wait_s"), "{got:?}");
    for absent in ["duplicates", "input_tokens", "uncached_tokens", "output_tokens", "cost_usd", "cache_read_tokens"] {
        assert!(!got.contains(&absent), "{absent}: {got:?}");
    }
    let writing = run("[model]\noutput_rate = 50\n[session]\nturns = 5\noutput = 100\n", 200);
    assert!(writing.summary.turn_metric(agent_sim::stats::TurnMetric::FirstToken).is_none());
    assert!(writing.summary.metric("model_s").is_some());
}
