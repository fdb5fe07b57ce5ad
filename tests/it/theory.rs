//! The closed forms against exact values of an independent program (`data/vectors.json`, rational arithmetic).

use std::collections::BTreeMap;

use agent_sim::dist::{Dist, Exponential, Pareto};
use agent_sim::model::{Jitter, Retry};
use agent_sim::theory::cache::{self, Compaction, Multipliers, Part};
use agent_sim::theory::{latency, limits, outcome, retry, tokens};
use serde_json::Value;

use crate::support::assert_close;

fn full_jitter(base_s: f64, cap_s: f64) -> Retry {
    Retry { attempts: 20, base_s, rejected_base_s: base_s, cap_s, jitter: Jitter::Full, deadline_s: f64::INFINITY }
}

/// The value of one form at one point; `None` for an id that nobody knows.
fn value(id: &str, input: &Value) -> Option<f64> {
    let x = |key: &str| input[key].as_f64().unwrap_or_else(|| panic!("{id} needs {key}: {input}"));
    let n = |key: &str| x(key) as u64;
    let last = || x("P0") + x("s") * (x("T") - 1.0);
    let reread = || tokens::reread(x("P0"), x("s"), x("T"));
    let multipliers = || Multipliers { read: x("read"), write: x("write") };
    Some(match id {
        "tokens.read" => tokens::read(x("P0"), x("s"), x("T")),
        "tokens.reread" => reread(),
        "tokens.definitions" => tokens::definitions(x("servers") * x("tools") * x("tokens_per_tool"), x("T")),
        "tokens.geometric.read" => {
            let t = x("mean_turns");
            tokens::expected_read(x("P0"), x("s"), t, tokens::geometric_second_moment(t))
        }
        "tokens.geometric.cached_units" => {
            let t = x("mean_turns");
            let again = tokens::expected_reread(x("P0"), x("s"), t, tokens::geometric_second_moment(t));
            cache::cached_units(multipliers(), x("P0") + x("s") * (t - 1.0), again, x("q"))
        }
        "cost.input.uncached" => cache::uncached(x("c_in") / 1e6, tokens::read(x("P0"), x("s"), x("T"))),
        "cost.input.cached" => cache::cached(x("c_in") / 1e6, multipliers(), last(), reread(), x("q")),
        "cost.input.two_lifetimes" => {
            let (prefix, task, s, t) = (x("prefix"), x("task"), x("s"), x("T"));
            let k = |write: &str| Multipliers { read: x("read"), write: x(write) };
            let of_prefix =
                Part { last: prefix, reread: prefix * (t - 1.0), q: x("q_prefix"), multipliers: k("write_prefix") };
            let of_messages = Part {
                last: task + s * (t - 1.0),
                reread: tokens::reread(task, s, t),
                q: x("q_messages"),
                multipliers: k("write_messages"),
            };
            cache::two_lifetimes(x("c_in") / 1e6, of_prefix, of_messages)
        }
        "cache.lifetime_break_even" => {
            cache::lifetime_break_even(last(), reread(), x("read"), x("write_5m"), x("write_1h"))
        }
        "cache.keep_alive" => cache::keep_alive_pings(x("interval_s"), x("gap_mean_s")),
        "cache.shared_prefix" => cache::shared_prefix_warm(x("accesses_per_s"), x("lifetime_s")),
        "context.compaction.units" | "context.compaction.count" => {
            let cached = input["cached"].as_bool().unwrap();
            let (units, count) = cache::compaction(&Compaction {
                fixed: x("fixed"),
                task: x("task"),
                growth: x("s"),
                turns: n("T"),
                compact_at: x("compact_at"),
                summary: x("summary"),
                multipliers: cached.then(|| Multipliers {
                    read: input["read"].as_f64().unwrap_or(0.1),
                    write: input["write"].as_f64().unwrap_or(1.25),
                }),
            });
            if id.ends_with("count") { count as f64 } else { units }
        }
        "latency.parallel.mean" => latency::parallel_mean(x("mu"), n("m")),
        "latency.parallel.sd" => latency::parallel_variance(x("mu"), n("m")).sqrt(),
        "latency.parallel.quantile" => latency::parallel_quantile(x("mu"), n("m"), x("p")),
        "latency.sequential.quantile" => latency::sequential_quantile(x("mu"), n("m"), x("p")),
        "latency.parallel.timeout.mean" => {
            let law = Dist::from(Exponential::new(x("mu")).unwrap());
            if n("m") == 1 {
                assert_close(latency::timeout_mean(x("mu"), x("timeout")), law.mean_up_to(x("timeout")), 1e-12);
            }
            latency::parallel_timeout_mean(&law, n("m"), x("timeout"))
        }
        "latency.hedged.mean" => latency::hedged_mean(x("mu"), x("hedge_after")),
        "latency.pareto.parallel.quantile" => {
            latency::slowest_quantile(&Pareto::new(x("min"), x("alpha")).unwrap().into(), n("m"), x("p"))
        }
        "retry.duplicates" => retry::duplicates(x("a"), x("b"), n("R") as u32),
        "retry.executions" => retry::executions(x("a"), x("b"), n("R") as u32),
        "retry.attempts" => retry::attempts(x("a"), x("b"), n("R") as u32),
        "retry.unavailability" => retry::unavailability(x("a"), x("b"), n("R") as u32),
        "retry.wait" => retry::total_wait(&full_jitter(x("base_s"), x("cap_s")), n("failures") as u32).unwrap(),
        "queue.mmc.p_wait" => limits::mmc_wait_chance(n("servers") as u32, x("arrivals_per_s"), x("service_mean_s")),
        "queue.mmc.mean_wait" => limits::mmc_mean_wait(n("servers") as u32, x("arrivals_per_s"), x("service_mean_s")),
        "queue.mmc.wait_quantile" => {
            limits::mmc_wait_quantile(n("servers") as u32, x("arrivals_per_s"), x("service_mean_s"), x("p"))
        }
        "queue.mg1.mean_wait" => limits::mg1_mean_wait(x("arrivals_per_s"), x("service_mean_s"), x("scv")),
        "budget.reserve" => limits::worst_case(x("n"), x("write") * x("c_in") / 1e6, x("max_output"), x("c_out") / 1e6),
        "outcome.pass_k" => outcome::pass_k(x("p"), n("k") as u32),
        _ => return None,
    })
}

#[test]
fn every_vector_comes_out() {
    let file: Value = serde_json::from_str(include_str!("data/vectors.json")).unwrap();
    let mut checked: BTreeMap<String, u32> = BTreeMap::new();
    for vector in file["vectors"].as_array().unwrap() {
        let id = vector["id"].as_str().unwrap();
        let want = vector["value"].as_f64().unwrap();
        let got = value(id, &vector["in"]).unwrap_or_else(|| panic!("no form for {id}"));
        let fine = (got - want).abs() <= 1e-9 * want.abs() || got == want;
        assert!(fine, "{id} at {}: got {got}, want {want}", vector["in"]);
        *checked.entry(id.to_owned()).or_default() += 1;
    }
    assert_eq!(checked.values().sum::<u32>(), 434, "vectors are missing or new: {checked:?}");
}

#[test]
fn a_wrong_form_would_not_come_out() {
    // the vectors tell right from wrong: a dropped write premium, a gap off by one turn, p^m for p^(1/m)
    let k = Multipliers { read: 0.1, write: 1.25 };
    let right = cache::cached(3e-6, k, 54_000.0, 1_421_000.0, 0.0);
    let no_premium = cache::cached(3e-6, Multipliers { write: 1.0, ..k }, 54_000.0, 1_421_000.0, 0.0);
    let one_turn_off = cache::cached(3e-6, k, 54_000.0, tokens::reread(5_000.0, 1_000.0, 49.0), 0.0);
    assert_close(right, 0.6288, 1e-12);
    assert!((no_premium - right).abs() > 1e-2 && (one_turn_off - right).abs() > 1e-3);
    let wrong_quantile = -2.0 * (1.0 - 0.99_f64.powi(10)).ln();
    assert!((latency::parallel_quantile(2.0, 10, 0.99) - wrong_quantile).abs() > 1.0);
}

#[test]
fn figures_from_the_literature() {
    let mean = latency::parallel_mean(2.0, 10);
    assert_eq!(format!("{mean:.3}"), "5.858");
    assert_eq!(format!("{:.2}", latency::parallel_quantile(2.0, 10, 0.99)), "13.81");
    assert_eq!(format!("{:.2}", latency::parallel_quantile(2.0, 1, 0.99)), "9.21");
    assert_eq!((retry::duplicates(0.01, 0.02, 2) * 1e6).round(), 19_800.0);
    assert_eq!((retry::duplicates(0.01, 0.02, 5) * 1e6).round(), 20_202.0);
    assert_close(retry::unavailability(0.01, 0.02, 5), 2.43e-8, 1e-12);
    assert_close(1.0 - retry::unavailability(0.01, 0.02, 1), 0.97, 1e-12);
    let even = cache::lifetime_break_even(54_000.0, 1_421_000.0, 0.1, 1.25, 2.0);
    assert_eq!(format!("{:.2}", even * 100.0), "2.48");
    // one call: the uncached session costs 0.80 of the cached one
    let k = Multipliers { read: 0.1, write: 1.25 };
    let ratio = cache::uncached(3e-6, 5_000.0) / cache::cached(3e-6, k, 5_000.0, 0.0, 0.0);
    assert_close(ratio, 0.8, 1e-12);
    assert_close(limits::bucket_most(2.0, 5.0, 0.5), 6.0, 1e-12);
    assert_close(limits::worst_case(1e5, 3.75e-6, 4096.0, 15e-6), 0.43644, 1e-12);
}

#[test]
fn waits_of_every_jitter() {
    let policy = |jitter| Retry {
        attempts: 6,
        base_s: 0.5,
        rejected_base_s: 0.5,
        cap_s: 1e9,
        jitter,
        deadline_s: f64::INFINITY,
    };
    assert_close(retry::mean_wait(&policy(Jitter::None), 3).unwrap(), 2.0, 1e-12);
    assert_close(retry::mean_wait(&policy(Jitter::Full), 3).unwrap(), 1.0, 1e-12);
    assert_close(retry::mean_wait(&policy(Jitter::Equal), 3).unwrap(), 1.5, 1e-12);
    // (0.5 + 3·0.5)/2 = 1, (0.5 + 3)/2 = 1.75
    assert_close(retry::mean_wait(&policy(Jitter::Decorrelated), 1).unwrap(), 1.0, 1e-12);
    assert_close(retry::mean_wait(&policy(Jitter::Decorrelated), 2).unwrap(), 1.75, 1e-12);
    let capped = Retry { cap_s: 2.0, ..policy(Jitter::Decorrelated) };
    assert_eq!(retry::mean_wait(&capped, 2), None);
    // ten tries, 200 ms doubling, cap 60 s, no jitter: nine waits sum to 102.2 s
    let slow = Retry {
        attempts: 10,
        base_s: 0.2,
        rejected_base_s: 0.2,
        cap_s: 60.0,
        jitter: Jitter::None,
        deadline_s: f64::INFINITY,
    };
    assert_close(retry::total_wait(&slow, 9).unwrap(), 102.2, 1e-12);
}
