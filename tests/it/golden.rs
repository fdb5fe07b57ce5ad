//! Values that must never change by accident: they define every published figure.

use agent_sim::engine::rng::SessionDraws;
use agent_sim::session::{Draws, Purpose};
use rand::{Rng, RngExt};

use crate::support::run;

#[test]
fn streams_are_frozen() {
    let first = |seed, session, purpose, turn| SessionDraws::new(seed, session).stream(purpose, turn).next_u64();
    let got = [
        first(1, 0, Purpose::Turns, 0),
        first(1, 1, Purpose::Turns, 0),
        first(2, 0, Purpose::Turns, 0),
        first(1, 0, Purpose::Output, 1),
        first(1, 0, Purpose::Output, 2),
        first(1, 0, Purpose::Fate { tool: 0 }, 1),
        first(1, 0, Purpose::Fate { tool: 1 }, 1),
        first(1, 0, Purpose::Retry { tool: 1, call: 7 }, 49),
    ];
    insta::assert_snapshot!(got.map(|n| format!("{n:016x}")).join("\n"));
}

#[test]
fn draws_of_each_family_are_frozen() {
    let text = r#"
[run]
seed = 42
[price]
input = 3
output = 15
[session]
turns = { geometric = { mean = 9 } }
output = { lognormal = { p50 = 200, cv = 1 } }
[[tools]]
name = "a"
calls = { poisson = { mean = 1.5 } }
result = { gamma = { mean = 600, cv = 1.1 } }
latency = { weibull = { scale = "2s", shape = 0.8 } }
[[tools]]
name = "b"
calls = { choices = { "0" = 0.5, "2" = 0.5 } }
result = { uniform = { min = 10, max = 90 } }
latency = { mixture = [{ weight = 0.9, of = { exponential = { mean = "1s" } } }, { weight = 0.1, of = { pareto = { min = "2s", alpha = 3 } } }] }
[[tools]]
name = "c"
latency = { normal = { mean = "1s", sd = "300ms" } }
result = { quantiles = { p0 = 1, p50 = 30, p100 = 4000 } }
"#;
    let answer = run(text, 3);
    let lines: Vec<String> = ["turns", "tool_calls", "input_tokens", "cost_usd", "latency_s"]
        .iter()
        .map(|name| {
            let metric = agent_sim::stats::Metric::named(name).unwrap();
            format!("{name}: {:?}", answer.sample.values(metric).unwrap())
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn purposes_never_share_a_stream() {
    let draws = SessionDraws::new(1, 5);
    let mut firsts = std::collections::BTreeSet::new();
    let mut count = 0;
    for turn in 0..40 {
        let mut purposes = vec![
            Purpose::Turns,
            Purpose::System,
            Purpose::Task,
            Purpose::Warm,
            Purpose::Output,
            Purpose::FirstToken,
            Purpose::OutputRate,
        ];
        for tool in 0..6 {
            purposes.extend([
                Purpose::Calls { tool },
                Purpose::Fate { tool },
                Purpose::Latency { tool },
                Purpose::Result { tool },
                Purpose::Error { tool },
            ]);
            purposes.extend((0..20).map(|call| Purpose::Retry { tool, call }));
        }
        for purpose in purposes {
            let mut stream = draws.stream(purpose, turn);
            for _ in 0..8 {
                firsts.insert(stream.next_u64());
                count += 1;
            }
        }
    }
    assert_eq!(firsts.len(), count);
}

#[test]
fn neighbouring_streams_are_uncorrelated() {
    // correlation of the first uniforms of neighbouring (purpose, turn, session): ±4/√n
    let n = 40_000_u64;
    let uniform = |session: u64, purpose, turn| -> f64 {
        let u: f64 = SessionDraws::new(1, session).stream(purpose, turn).random();
        u - 0.5
    };
    let (a, b) = (Purpose::Fate { tool: 0 }, Purpose::Latency { tool: 0 });
    let pairs: [(&str, Box<dyn Fn(u64) -> (f64, f64)>); 4] = [
        ("turns", Box::new(|i| (uniform(3, a, i), uniform(3, a, i + 1)))),
        ("sessions", Box::new(|i| (uniform(i, a, 1), uniform(i + 1, a, 1)))),
        ("purposes", Box::new(|i| (uniform(i, a, 1), uniform(i, b, 1)))),
        ("tools", Box::new(|i| (uniform(i, a, 1), uniform(i, Purpose::Fate { tool: 1 }, 1)))),
    ];
    for (name, pair) in pairs {
        let mean: f64 = (0..n).map(pair).map(|(x, y)| x * y * 12.0).sum::<f64>() / n as f64;
        assert!(mean.abs() < 4.0 / (n as f64).sqrt(), "{name}: {mean}");
    }
}
