//! Closed forms against the simulation, and wrong models that the same checks must catch.

use agent_sim::check::{Checks, check, probes_s};
use agent_sim::dist::{Dist, Exponential, Whole};
use agent_sim::engine::Play;
use agent_sim::model::{Jitter, Model};
use agent_sim::price::PicoUsdPerToken;
use agent_sim::stats::Sample;

use crate::support::{model, run};

pub fn sample(model: &Model, sessions: u64) -> Sample {
    let mut sample = Sample::new(model, sessions, &probes_s(model));
    Play { model, seed: 1, sessions: 0..sessions }.run(&mut sample, &|_| {});
    sample
}

pub fn has(checks: &Checks, id: &str) -> bool {
    checks.checks.iter().any(|c| c.id == id)
}

/// The simulation of `text` agrees with its own theory on `id`, and disagrees with the theory of a changed model.
#[track_caller]
pub fn caught(text: &str, id: &str, sessions: u64, change: impl Fn(&mut Model)) {
    let right = model(text);
    let sample = sample(&right, sessions);
    let checks = check(&right, &sample);
    assert!(has(&checks, id), "{id} isn't checked: {checks:#?}");
    for c in &checks.checks {
        assert!(c.pass, "{c:?}");
    }
    let mut wrong = right;
    change(&mut wrong);
    let wrong_checks = check(&wrong, &sample);
    assert!(
        wrong_checks.checks.iter().any(|c| c.id == id && !c.pass),
        "the wrong model passes {id}: {:#?}",
        wrong_checks.checks
    );
}

const FIFTY: &str = r#"
[price]
input = 3
output = 15
cache_read = 0.30
cache_write_5m = 3.75
cache_write_1h = 6
[prompt]
system = 4000
task = 1000
[session]
turns = 50
output = 300
[[tools]]
name = "search"
result = 700
latency = { exponential = { mean = "60s" } }
[cache]
lifetime = "5m"
"#;

#[test]
fn a_dropped_write_premium_is_caught() {
    caught(FIFTY, "cost.input.cached", 20_000, |model| {
        let tariff = model.tariff.as_mut().unwrap();
        tariff.base.write_messages = tariff.base.input;
        tariff.base.write_prefix = tariff.base.input;
    });
}

#[test]
fn a_gap_off_by_one_turn_is_caught() {
    caught(FIFTY, "tokens.read", 1_000, |model| model.turns = Whole::constant(49));
    caught(FIFTY, "cost.input.cached", 20_000, |model| model.turns = Whole::constant(51));
}

#[test]
fn a_wrong_lifetime_is_caught() {
    // exp(-5) of the gaps expire; with 5 min 10 s it would be exp(-5.17)
    caught(FIFTY, "cost.input.cached", 50_000, |model| {
        model.cache.lifetime_s = 310.0;
        model.cache.prefix_lifetime_s = 310.0;
    });
}

#[test]
fn one_lifetime_for_both_parts_is_caught() {
    let text = format!("{FIFTY}prefix_lifetime = \"1h\"\n");
    caught(&text, "cost.input.two_lifetimes", 20_000, |model| {
        let tariff = model.tariff.as_mut().unwrap();
        tariff.base.write_prefix = tariff.base.write_messages;
    });
    caught(&text, "cost.input.two_lifetimes", 20_000, |model| model.cache.prefix_lifetime_s = 300.5);
}

#[test]
fn a_forgotten_warm_start_is_caught() {
    let text = format!("{FIFTY}warm_prefix = 0.5\n");
    caught(&text, "cost.input.cached", 20_000, |model| model.cache.warm_prefix = 0.0);
    caught(&text.replace("60s", "2s"), "tokens.reread", 20_000, |model| model.cache.warm_prefix = 0.0);
}

#[test]
fn an_uncached_session_is_caught() {
    let text = FIFTY.replace("lifetime = \"5m\"", "lifetime = \"off\"");
    caught(&text, "cost.input.uncached", 200, |model| {
        model.tariff.as_mut().unwrap().base.input = PicoUsdPerToken(3_000_001);
    });
}

#[test]
fn output_price_and_growth_are_caught() {
    caught(FIFTY, "cost.output", 200, |model| {
        model.tariff.as_mut().unwrap().base.output = PicoUsdPerToken(15_100_000);
    });
    caught(FIFTY, "tokens.output", 200, |model| model.output = Whole::constant(301));
}

#[test]
fn a_tier_that_is_ignored_is_caught() {
    // 100 turns of 3,000 tokens on a model whose price jumps at 200,000
    let text = r#"
[model]
name = "gemini-2.5-pro"
[prompt]
system = 10000
[session]
turns = 100
output = 3000
[cache]
lifetime = "5m"
"#;
    caught(text, "cost.input.cached", 100, |model| model.tariff.as_mut().unwrap().tier = None);
    caught(text, "cost.output", 100, |model| model.tariff.as_mut().unwrap().tier = None);
}

#[test]
fn a_smallest_cacheable_prompt_that_is_ignored_is_caught() {
    let text = r#"
[model]
name = "claude-haiku-4-5"
[prompt]
system = 1000
[session]
turns = 12
output = 500
[cache]
lifetime = "5m"
"#;
    caught(text, "cost.input.cached", 100, |model| model.cache.min_tokens = 0);
}

#[test]
fn hits_that_do_not_round_down_are_caught() {
    let text = r#"
[model]
name = "gpt-5.4"
[prompt]
system = 1111
[session]
turns = 9
output = 77
[cache]
lifetime = "10m"
"#;
    caught(text, "cost.input.cached", 100, |model| model.cache.granularity_tokens = 1);
}

#[test]
fn gaps_that_depend_on_the_prompt_are_walked() {
    // the prefill of a long uncached prompt alone outlasts the lifetime
    let text = r#"
[price]
input = 3
output = 15
cache_read = 0.3
cache_write_1m = 3.75
[model]
prefill_rate = 500
[prompt]
system = 20000
[session]
turns = 20
output = 500
[[tools]]
name = "t"
result = 1000
latency = { exponential = { mean = "20s" } }
[cache]
lifetime = "1m"
"#;
    caught(text, "cost.input.cached", 40_000, |model| model.timing.prefill_s_per_token = 1.0 / 600.0);
}

const RANDOM: &str = r#"
[price]
input = 3
output = 15
cache_read = 0.30
cache_write_5m = 3.75
[prompt]
system = { lognormal = { p50 = 3000, cv = 0.5 } }
task = { poisson = { mean = 80 } }
[[servers]]
name = "s"
tools = 14
tokens_per_tool = 89
[session]
turns = { geometric = { mean = 12 } }
max_turns = 40
output = { lognormal = { p50 = 200, cv = 1 } }
[[tools]]
name = "search"
calls = { choices = { "0" = 0.3, "1" = 0.5, "3" = 0.2 } }
result = { gamma = { mean = 600, cv = 1.1 } }
latency = { exponential = { mean = "90s" } }
error = 0.05
error_result = 40
[cache]
lifetime = "5m"
"#;

#[test]
fn random_sizes_agree_in_expectation() {
    caught(RANDOM, "tokens.geometric", 40_000, |model| model.max_turns = 35);
    caught(RANDOM, "tokens.geometric", 40_000, |model| model.phase.tools[0].error = 0.3);
    caught(RANDOM, "tokens.definitions", 40_000, |model| model.prompt.definitions[0] = 1_300);
    caught(RANDOM, "cost.input.cached", 40_000, |model| {
        model.cache.lifetime_s = 280.0;
        model.cache.prefix_lifetime_s = 280.0;
    });
    caught(RANDOM, "cost.input.cached", 40_000, |model| {
        let tariff = model.tariff.as_mut().unwrap();
        tariff.base.write_messages = tariff.base.input;
    });
}

const TEN: &str = r#"
session.turns = 11
[[tools]]
name = "search"
calls = 10
latency = { exponential = { mean = "2s" } }
"#;

/// `p^m` instead of `p^(1/m)`, and 9 calls for 10, at every quantile.
#[test]
fn wrong_parallel_laws_are_caught() {
    caught(TEN, "latency.parallel", 2_000, |model| model.phase.tools[0].calls = Whole::constant(9));
    let right = model(TEN);
    // probes at the quantiles of the wrong form, counted against the right p
    let wrong: Vec<f64> = [0.5, 0.95, 0.99].iter().map(|p: &f64| -2.0 * (1.0 - p.powi(10)).ln()).collect();
    let mut sample = Sample::new(&right, 2_000, &wrong);
    Play { model: &right, seed: 1, sessions: 0..2_000 }.run(&mut sample, &|_| {});
    let checks = check(&right, &sample);
    let failed = checks.checks.iter().filter(|c| c.id == "latency.parallel" && !c.pass).count();
    assert_eq!(failed, 3, "{checks:#?}");
}

#[test]
fn wrong_sequential_and_any_laws_are_caught() {
    let sequential = format!("session.tool_calls = \"sequential\"\n{TEN}");
    caught(&sequential, "latency.sequential", 2_000, |model| {
        model.phase.tools[0].latency_s = Exponential::new(2.05).unwrap().into();
    });
    caught(&sequential, "latency.session", 2_000, |model| {
        model.phase.tools[0].latency_s = Exponential::new(2.1).unwrap().into();
    });
    let any = TEN.replace("{ exponential = { mean = \"2s\" } }", "{ weibull = { scale = \"2s\", shape = 0.8 } }");
    caught(&any, "latency.any", 5_000, |model| model.phase.tools[0].calls = Whole::constant(9));
    let two = format!(
        "{any}\n[[tools]]\nname = \"b\"\ncalls = {{ poisson = {{ mean = 2 }} }}\nlatency = {{ uniform = {{ min = \"0s\", max = \"30s\" }} }}\n"
    );
    caught(&two, "latency.any", 5_000, |model| model.phase.tools[1].calls = Whole::constant(2));
}

#[test]
fn a_chain_of_tools_adds_up() {
    let text = r#"
session.turns = 21
[[tools]]
name = "a"
calls = 3
latency = { exponential = { mean = "2s" } }
[[tools]]
name = "b"
after = ["a"]
latency = { gamma = { mean = "3s", cv = 0.5 } }
timeout = "4s"
retry = { attempts = 3, jitter = "equal" }
"#;
    caught(text, "latency.any", 5_000, |model| model.phase.tools[1].retry.attempts = 1);
    caught(text, "latency.any", 5_000, |model| model.phase.tools[0].calls = Whole::constant(2));
}

#[test]
fn a_timeout_that_is_ignored_is_caught() {
    let text = format!("{TEN}timeout = \"5s\"\n");
    caught(&text, "latency.timeout", 5_000, |model| model.phase.tools[0].faults.timeout_s = 5.2);
}

const RETRIES: &str = r#"
session.turns = 51
[[tools]]
name = "book"
calls = 2
latency = { exponential = { mean = "2s" } }
timeout = "10s"
lost_request = 0.01
lost_reply = 0.02
rejected = 0.03
reject_latency = "50ms"
error = 0.02
retry = { attempts = 4, base = "500ms", cap = "1s" }
"#;

#[test]
fn wrong_retry_models_are_caught() {
    caught(RETRIES, "retry.duplicates", 10_000, |model| model.phase.tools[0].retry.attempts = 2);
    caught(RETRIES, "retry.duplicates", 10_000, |model| model.phase.tools[0].faults.timeout_s = 1e9);
    caught(RETRIES, "retry.executions", 10_000, |model| model.phase.tools[0].faults.lost_reply = 0.03);
    caught(RETRIES, "retry.attempts", 10_000, |model| model.phase.tools[0].faults.lost_request = 0.02);
    caught(RETRIES, "retry.availability", 10_000, |model| model.phase.tools[0].error = 0.0);
    caught(RETRIES, "retry.wait", 10_000, |model| model.phase.tools[0].retry.jitter = Jitter::Equal);
    caught(RETRIES, "retry.wait", 10_000, |model| model.phase.tools[0].retry.cap_s = 0.4);
}

#[test]
fn an_idempotent_tool_has_executions_and_no_duplicates() {
    let text = RETRIES.replace("timeout = \"10s\"", "timeout = \"10s\"\nidempotent = true");
    let answer = run(&text, 1_000);
    assert!(answer.summary.metric("duplicates").is_none());
    assert!(answer.summary.metric("executions").unwrap().mean.value > 100.0);
    assert!(has(&answer.checks, "retry.executions") && !has(&answer.checks, "retry.duplicates"));
}

#[test]
fn every_jitter_agrees_with_its_mean_wait() {
    for jitter in ["none", "full", "equal", "decorrelated"] {
        let text = RETRIES.replace("cap = \"1s\"", &format!("cap = \"100s\", jitter = \"{jitter}\""));
        let answer = run(&text, 4_000);
        assert!(has(&answer.checks, "retry.wait"), "{jitter}");
        assert!(answer.checks.all_pass(), "{jitter}: {:#?}", answer.checks.checks);
    }
}

#[test]
fn what_is_too_rare_is_not_checked() {
    // unavailability 2.43e-8: 40,000 calls show a thousandth of a failure
    let text = r#"
session.turns = 21
[[tools]]
name = "book"
timeout = "5s"
lost_request = 0.01
lost_reply = 0.02
retry.attempts = 5
"#;
    let answer = run(text, 2_000);
    let why = answer.checks.not_checked.iter().find(|n| n.id == "retry.availability").unwrap();
    assert!(why.why.contains("expected in a sample of this size"), "{why:?}");
    // a gap that expires once in a hundred samples is no reason for an alarm
    let rare = FIFTY.replace("60s", "16s");
    let answer = run(&rare, 1_000);
    assert!(answer.checks.not_checked.iter().any(|n| n.id == "cost.input.cached" && n.why.contains("expected")));
}

#[test]
fn every_form_that_is_not_checked_says_why() {
    let text = format!("{RANDOM}\n[model]\noutput_rate = {{ lognormal = {{ p50 = 60, cv = 0.5 }} }}\n");
    let answer = run(&text, 500);
    let ids = [
        "cost.input.uncached",
        "cost.input.cached",
        "cost.input.two_lifetimes",
        "tokens.read",
        "tokens.reread",
        "latency.sequential",
        "latency.parallel",
        "latency.timeout",
        "retry.duplicates",
        "queue.mmc",
        "budget.reserve",
        "cache.keep_alive",
        "latency.hedged",
        "context.compaction",
        "outcome.pass_k",
        "limit.bucket",
    ];
    for id in ids {
        let checked = has(&answer.checks, id);
        let refused = answer.checks.not_checked.iter().any(|n| n.id == id && !n.why.is_empty());
        assert!(checked || refused, "{id} is passed over in silence");
    }
}

#[test]
fn heavy_tails_are_not_held_against_a_normal_interval() {
    let text = TEN.replace("{ exponential = { mean = \"2s\" } }", "{ pareto = { min = \"1s\", alpha = 1.5 } }");
    let answer = run(&text, 2_000);
    assert!(answer.checks.not_checked.iter().any(|n| n.why.contains("variance is infinite")));
    // its quantiles are
    assert_eq!(answer.checks.checks.iter().filter(|c| c.of.contains("share of phases")).count(), 3);
    assert!(answer.checks.all_pass());
}

#[test]
fn constant_law_probe_is_deterministic() {
    let mut fixed = model(TEN);
    fixed.phase.tools[0].latency_s = Dist::constant(2.0);
    let checks = check(&fixed, &sample(&fixed, 50));
    assert!(checks.all_pass(), "{checks:#?}");
}

/// Scenarios of an independent reviewer that once hung or raised a false alarm.
#[test]
fn no_false_alarms() {
    let fifty = |sets: &[&str], sessions: u64| {
        let text = std::fs::read_to_string(crate::support::root().join("scenarios/fifty-turns.toml")).unwrap();
        let sessions = format!("run.sessions={sessions}");
        let sets: Vec<&str> = sets.iter().copied().chain([sessions.as_str()]).collect();
        crate::support::answer(crate::support::scenario_with(&text, &sets))
    };
    let alarms = |answer: &agent_sim::simulate::Answer| {
        answer.checks.checks.iter().filter(|c| !c.pass || c.expected.is_nan()).cloned().collect::<Vec<_>>()
    };
    let named: Vec<(&str, Vec<&str>)> = vec![
        ("no calls", vec!["tools.search.calls=0"]),
        ("generous timeout", vec!["tools.search.timeout=60s", "tools.search.retry.attempts=3"]),
        ("only rejections", vec!["tools.search.rejected=0.2", "tools.search.retry.attempts=3"]),
        ("rare failures", vec!["tools.search.rejected=0.01", "tools.search.retry.attempts=4"]),
        ("failing sequence", vec!["session.tool_calls=sequential", "tools.search.rejected=0.05"]),
        (
            "failing sequence with a timeout",
            vec!["session.tool_calls=sequential", "tools.search.timeout=10s", "tools.search.lost_reply=0.05"],
        ),
        ("rare rejections", vec!["tools.search.latency=5s", "tools.search.rejected=1e-4"]),
        ("poisson prompt", vec!["prompt.system={ poisson = { mean = 50_000 } }"]),
        ("poisson task", vec!["prompt.task={ poisson = { mean = 1_000_000 } }"]),
        ("geometric task", vec!["prompt.task={ geometric = { mean = 20_000 } }"]),
        ("geometric calls", vec!["tools.search.calls={ geometric = { mean = 300 } }", "session.turns=3"]),
        ("lognormal calls", vec!["tools.search.calls={ lognormal = { p50 = 40, cv = 1 } }", "session.turns=3"]),
    ];
    for (name, sets) in named {
        let answer = fifty(&sets, 500);
        assert_eq!(alarms(&answer), [], "{name}");
    }
    let beside = "session.turns = 9\n[[tools]]\nname = \"a\"\nlatency = { exponential = { mean = \"2s\" } }\n[[tools]]\nname = \"b\"\ncalls = 0\nlatency = \"1s\"\n";
    assert_eq!(alarms(&run(beside, 2_000)), []);
    let certain = "session.turns = 9\n[[tools]]\nname = \"a\"\ncalls = 2\ntimeout = \"2s\"\nlatency = { mixture = [{ weight = 0.9, of = \"120s\" }, { weight = 0.1, of = { exponential = { mean = \"480s\" } } }] }\n";
    assert_eq!(alarms(&run(certain, 500)), []);
    let rejected = "session.turns = 9\n[[tools]]\nname = \"a\"\ncalls = 5\nlatency = \"5s\"\nrejected = 0.1\nreject_latency = \"100ms\"\n";
    assert_eq!(alarms(&run(rejected, 2_000)), []);
    for seed in 1..20 {
        let two = fifty(&[&format!("run.seed={seed}")], 2);
        assert_eq!(alarms(&two), [], "two sessions, seed {seed}");
    }
    assert_eq!(alarms(&fifty(&[], 1)), []);
}

#[test]
fn the_smallest_cacheable_prompt_bounds_the_forms() {
    let base = "[model]\nname = \"claude-haiku-4-5\"\n[session]\nturns = 10\noutput = 300\n[[tools]]\nname = \"t\"\nresult = 700\nlatency = { exponential = { mean = \"3m\" } }\n[cache]\nlifetime = \"5m\"\n";
    for more in [
        "[prompt]\nsystem = { uniform = { min = 500, max = 9_000 } }\n",
        "warm_prefix = 0.5\n[prompt]\nsystem = 1_000\ntask = { uniform = { min = 4_000, max = 6_000 } }\n",
        "prefix_lifetime = \"1h\"\n[prompt]\nsystem = 1_000\ntask = { uniform = { min = 4_000, max = 6_000 } }\n",
    ] {
        let answer = run(&format!("{base}{more}"), 20_000);
        assert!(answer.checks.all_pass(), "{more}: {:#?}", answer.checks.checks);
        assert!(answer.checks.not_checked.iter().any(|n| n.why.contains("smallest cacheable")), "{more}");
    }
}

#[test]
fn waits_are_held_to_their_own_error() {
    // short waits: an error of a share would hide a wrong policy
    let text = RETRIES.replace("base = \"500ms\", cap = \"1s\"", "base = \"1ms\", cap = \"5ms\"");
    caught(&text, "retry.wait", 10_000, |model| model.phase.tools[0].retry.jitter = Jitter::Equal);
}
