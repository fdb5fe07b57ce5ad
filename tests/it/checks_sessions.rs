//! Closed forms of conversations, caches that are kept warm or broken, summaries, hedges, approvals and budgets against
//! the simulation, and wrong models that the same checks must catch.

use agent_sim::check::check;
use agent_sim::dist::{Dist, Exponential, Whole};
use agent_sim::model::{Jitter, Model};
use agent_sim::price::PicoUsd;
use agent_sim::theory::cache;

use crate::checks::{caught, has, sample};
use crate::support::{assert_close, model, run};

const PRICES: &str = "
[price]
input = 3
output = 15
cache_read = 0.30
cache_write_5m = 3.75
cache_write_1h = 6
";

fn talk(messages: &str, think: &str, turns: &str, message: &str) -> String {
    format!(
        r#"{PRICES}
[prompt]
system = 4000
task = 1000
[session]
messages = {messages}
message = {message}
think = {think}
turns = {turns}
output = 300
[[tools]]
name = "search"
result = 700
latency = {{ exponential = {{ mean = "2s" }} }}
[cache]
lifetime = "5m"
"#
    )
}

fn price_written_as_input(model: &mut Model) {
    let tariff = model.tariff.as_mut().unwrap();
    tariff.base.write_messages = tariff.base.input;
}

#[test]
fn fixed_conversations() {
    // every message finds its cache expired
    let long = talk("4", "\"10m\"", "6", "150");
    caught(&long, "tokens.read", 100, |model| model.conversation.messages = Whole::constant(5));
    caught(&long, "tokens.read", 100, |model| model.conversation.message = Whole::constant(151));
    caught(&long, "cost.input.cached", 100, |model| model.conversation.think_s = Dist::constant(250.0));
    caught(&long, "cost.input.cached", 100, price_written_as_input);
    // none does: the same tokens, other money
    let short = talk("4", "\"4m\"", "6", "150");
    caught(&short, "cost.input.cached", 100, |model| model.conversation.think_s = Dist::constant(600.0));
    caught(&short, "tokens.reread", 100, |model| model.turns = Whole::constant(7));
    caught(&short, "cost.output", 100, |model| model.conversation.messages = Whole::constant(3));
}

#[test]
fn random_conversations() {
    let text = talk(
        "{ geometric = { mean = 3 } }",
        "{ exponential = { mean = \"4m\" } }",
        "{ geometric = { mean = 5 } }",
        "{ lognormal = { p50 = 100, cv = 1 } }",
    );
    caught(&text, "tokens.geometric", 40_000, |model| model.conversation.message = Whole::constant(2_000));
    caught(&text, "tokens.geometric", 40_000, |model| model.conversation.messages = Whole::constant(3));
    caught(&text, "cost.input.cached", 40_000, |model| {
        model.conversation.think_s = Exponential::new(200.0).unwrap().into();
    });
    caught(&text, "cost.input.cached", 40_000, price_written_as_input);
    caught(&format!("{text}prefix_lifetime = \"1h\"\n"), "cost.input.two_lifetimes", 40_000, |model| {
        model.cache.prefix_lifetime_s = 400.0;
    });
}

#[test]
fn pings_that_keep_the_cache_warm() {
    let text = talk("1", "\"0s\"", "50", "0").replace("message = 0\nthink = \"0s\"\n", "").replace("2s", "90s");
    let text = format!("{text}keep_alive = \"4m\"\n");
    caught(&text, "cache.keep_alive", 20_000, |model| model.cache.keep_alive_s = 250.0);
    caught(&text, "cost.input.cached", 20_000, |model| model.cache.keep_alive_s = 250.0);
    caught(&text, "cost.output", 20_000, |model| model.cache.keep_alive_s = 200.0);
    // one exponential gap: the closed form itself
    let answer = run(&text, 20_000);
    let check = answer.checks.checks.iter().find(|c| c.id == "cache.keep_alive").unwrap();
    assert_close(check.expected, cache::keep_alive_pings(240.0, 90.0), 1e-12);
    // random sizes, and waits of people
    let random = talk(
        "{ geometric = { mean = 3 } }",
        "{ lognormal = { p50 = \"80s\", p90 = \"6m\" } }",
        "{ geometric = { mean = 5 } }",
        "{ poisson = { mean = 90 } }",
    );
    let random = format!("{random}keep_alive = \"4m\"\n");
    caught(&random, "cache.keep_alive", 40_000, |model| model.cache.keep_alive_s = 200.0);
    caught(&random, "cost.input.cached", 40_000, |model| model.cache.keep_alive_s = 100.0);
    // a wait of exactly three intervals has three pings
    let exact = format!("{}keep_alive = \"4m\"\n", talk("3", "\"12m\"", "1", "10"));
    let answer = run(&exact, 100);
    assert_eq!(answer.summary.metric("keep_alive_pings").unwrap().mean.value, 6.0);
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks);
    assert!(has(&answer.checks, "cost.input.cached"));
}

#[test]
fn breaks_of_earlier_bytes() {
    let single = talk("1", "\"0s\"", "20", "0").replace("message = 0\nthink = \"0s\"\n", "");
    let text = format!(
        "{single}breaks = {{ tools = 0.02, system = 0.05, history = 0.1 }}\n[[servers]]\nname = \"s\"\ndefinition_tokens = 900\n"
    );
    caught(&text, "cost.input.cached", 20_000, |model| model.cache.breaks.tools = 0.0);
    caught(&text, "cost.input.cached", 20_000, |model| model.cache.breaks.system = 0.0);
    caught(&text, "cost.input.cached", 20_000, |model| model.cache.breaks.history = 0.12);
    // with gaps that expire, and random sizes
    let text = text.replace("2s", "90s").replace("output = 300", "output = { lognormal = { p50 = 250, cv = 0.8 } }");
    caught(&text, "cost.input.cached", 40_000, |model| model.cache.breaks.history = 0.13);
    caught(&text, "cost.input.cached", 40_000, |model| model.cache.breaks.tools = 0.03);
    // hits that round down, and prompts that become too small to be read
    let steps = r#"
[model]
name = "gpt-5.4"
[prompt]
system = 1500
[session]
turns = 9
output = 777
[cache]
lifetime = "10m"
breaks = { history = 0.5 }
"#;
    caught(steps, "cost.input.cached", 20_000, |model| model.cache.granularity_tokens = 1);
    let small = steps.replace("gpt-5.4", "claude-haiku-4-5").replace("10m", "5m");
    caught(&small, "cost.input.cached", 20_000, |model| model.cache.min_tokens = 1_000);
}

#[test]
fn outputs_that_are_cached_at_once() {
    let single = talk("1", "\"0s\"", "20", "0").replace("message = 0\nthink = \"0s\"\n", "");
    let text = format!("{single}caches_output = true\n");
    caught(&text, "cost.input.cached", 100, |model| model.cache.caches_output = false);
    // 19 outputs of 300 tokens are read instead of written
    let saved = |text: &str| run(text, 10).summary.metric("cost_input_usd").unwrap().mean.value;
    assert_close(saved(&single) - saved(&text), 19.0 * 300.0 * (3.75 - 0.30) / 1e6, 1e-9);
}

const COMPACT: &str = r#"
[prompt]
system = 3000
task = 2000
[session]
turns = 60
output = 200
[[tools]]
name = "search"
result = 800
latency = { exponential = { mean = "2s" } }
[context]
compact_at = 20_000
summary = 1_500
"#;

#[test]
fn summaries() {
    let cached = format!("{PRICES}{COMPACT}[cache]\nlifetime = \"5m\"\n");
    caught(&cached, "context.compaction", 100, |model| model.context.summary_tokens = 1_400);
    caught(&cached, "context.compaction", 100, |model| model.context.compact_at_tokens = 21_000);
    caught(&cached, "context.compaction", 100, price_written_as_input);
    let plain = format!("{PRICES}{COMPACT}");
    caught(&plain, "context.compaction", 100, |model| model.context.compact_at_tokens = 19_000);
    // summaries, gaps that expire, two lifetimes and pings at once
    let expiring = cached.replace("2s", "100s");
    caught(&expiring, "context.compaction", 40_000, |model| {
        (model.cache.lifetime_s, model.cache.prefix_lifetime_s) = (310.0, 310.0);
    });
    caught(&format!("{expiring}prefix_lifetime = \"1h\"\n"), "context.compaction", 40_000, |model| {
        model.cache.prefix_lifetime_s = 301.0;
    });
    caught(&format!("{expiring}keep_alive = \"4m\"\n"), "context.compaction", 40_000, |model| {
        model.cache.keep_alive_s = 200.0;
    });
    // the walk that those use comes to the recurrence where nothing else happens
    let walked = format!("{cached}breaks = {{ tools = 0.000000000001 }}\n");
    let (by_walk, by_recurrence) = (run(&walked, 200), run(&cached, 200));
    let of = |answer: &agent_sim::simulate::Answer| {
        let found = answer.checks.checks.iter().find(|c| c.id == "context.compaction" && c.of == "cost_input_usd");
        found.unwrap().expected
    };
    assert_close(of(&by_walk), of(&by_recurrence), 1e-9);
}

#[test]
fn hedged_calls() {
    let text = r#"
[session]
turns = 11
[[tools]]
name = "search"
latency = { exponential = { mean = "2s" } }
hedge_after = "3s"
"#;
    caught(text, "latency.hedged", 10_000, |model| model.phase.tools[0].hedge_after_s = 3.5);
    let any = r#"
[session]
turns = 11
[[tools]]
name = "search"
calls = 3
latency = { lognormal = { p50 = "1s", p99 = "9s" } }
hedge_after = "4s"
timeout = "30s"
lost_request = 0.02
lost_reply = 0.02
"#;
    caught(any, "latency.any", 10_000, |model| model.phase.tools[0].hedge_after_s = 5.0);
    caught(any, "latency.any", 10_000, |model| model.phase.tools[0].faults.lost_reply = 0.2);
}

#[test]
fn approvals() {
    let text = r#"
[session]
turns = 11
output = 10
[prompt]
system = 100
[[tools]]
name = "deploy"
result = 500
error_result = 20
latency = { exponential = { mean = "2s" } }
approval = { share = 0.3, wait = { exponential = { mean = "90s" } }, denied = 0.2 }
"#;
    caught(text, "latency.approval", 10_000, |model| model.phase.tools[0].approval.as_mut().unwrap().share = 0.31);
    caught(text, "latency.any", 10_000, |model| {
        model.phase.tools[0].approval.as_mut().unwrap().wait_s = Exponential::new(80.0).unwrap().into();
    });
    caught(text, "tokens.read", 10_000, |model| model.phase.tools[0].approval.as_mut().unwrap().denied = 0.15);
}

#[test]
fn model_calls_that_fail() {
    let text = format!(
        r#"{PRICES}
[model]
timeout = "30s"
rejected = 0.06
lost_reply = 0.03
lost_request = 0.01
retry = {{ attempts = 9, base = "100ms" }}
[prompt]
system = 4000
[session]
turns = 20
output = 300
"#
    );
    caught(&text, "retry.attempts", 20_000, |model| model.faults.rejected = 0.08);
    caught(&text, "retry.executions", 20_000, |model| model.faults.lost_reply = 0.02);
    let checks = run(&text, 1_000).checks;
    assert!(checks.not_checked.iter().any(|n| n.id == "cost.input.uncached" && n.why.contains("billed")));
}

#[test]
fn waits_of_every_preset() {
    for preset in ["anthropic-sdk", "openai-sdk", "google-genai", "botocore-standard", "litellm"] {
        let text = format!(
            "[session]\nturns = 20\n[[tools]]\nname = \"a\"\ncalls = 3\nlatency = \"1s\"\ntimeout = \"5s\"\nrejected = 0.2\n\
             lost_request = 0.1\nretry = \"{preset}\"\n"
        );
        caught(&text, "retry.wait", 5_000, |model| model.phase.tools[0].retry.jitter = Jitter::Equal);
        caught(&text, "retry.wait", 5_000, |model| model.phase.tools[0].retry.base_s *= 3.0);
    }
}

#[test]
fn budgets() {
    let text = format!(
        r#"{PRICES}
[model]
max_output = 1_000
[prompt]
system = 4000
[session]
turns = 200
output = 300
[[tools]]
name = "search"
result = 700
latency = {{ exponential = {{ mean = "2s" }} }}
[cache]
lifetime = "5m"
[budget]
dollars = 0.5
"#
    );
    caught(&text, "budget.reserve", 100, |model| model.budget.dollars = Some(PicoUsd::from_usd(0.4).unwrap()));
    caught(&text, "budget.reserve", 100, |model| model.budget.max_output_tokens = 4_000);
    caught(&text, "budget.reserve", 100, price_written_as_input);
    let random = text.replace("output = 300", "output = { lognormal = { p50 = 300, cv = 1 } }");
    let with = |limit: &str| random.replace("dollars = 0.5", limit);
    caught(&with("dollars = 0.5"), "budget.reserve", 5_000, |model| {
        model.budget.dollars = Some(PicoUsd::from_usd(0.39).unwrap());
    });
    caught(&with("turns = 40"), "budget.reserve", 100, |model| model.budget.turns = Some(39));
    caught(&with("tokens = 900_000"), "budget.reserve", 5_000, |model| model.budget.tokens = Some(890_000));
    caught(&with("time = \"2m\""), "budget.reserve", 5_000, |model| model.budget.time_s = Some(119.9));
}

#[test]
fn what_ends_sessions_early_is_said() {
    let text = format!("{PRICES}[prompt]\nsystem = 1000\n[session]\nturns = 30\noutput = 500\n[budget]\nturns = 5\n");
    let right = model(&text);
    let checks = check(&right, &sample(&right, 100));
    assert!(checks.all_pass());
    assert!(checks.not_checked.iter().any(|n| n.id == "tokens.read" && n.why.contains("budget")), "{checks:#?}");
}

/// Scenarios in which a check once disagreed with a right simulation.
#[test]
fn right_simulations_agree() {
    let tool =
        |result: u64, latency: &str| format!("[[tools]]\nname = \"s\"\nresult = {result}\nlatency = {latency}\n");
    let minute = "{ exponential = { mean = \"60s\" } }";
    let base = "[prompt]\nsystem = 5000\n[session]\nturns = 10\noutput = 300\n";
    let pinged = "[cache]\nlifetime = \"5m\"\nkeep_alive = \"1m\"\n";
    let compacted = "[prompt]\nsystem = 5000\ntask = 1000\n[session]\nturns = 10\noutput = 300\n[context]\ncompact_at = 20000\nsummary = 3000\n";
    let small = "[model]\nname = \"claude-sonnet-4-6\"\n";
    let outputs = "turns = 10\noutput = { uniform = { min = 100, max = 300 } }\n";
    let texts = [
        // breaks come after the pings of the gap before them
        format!("{PRICES}{base}{}{pinged}breaks = {{ tools = 0.3 }}\n", tool(700, minute)),
        format!("{PRICES}{base}{}{pinged}breaks = {{ history = 0.3 }}\n", tool(700, minute)),
        format!(
            "{PRICES}[prompt]\nsystem = 5000\n[session]\nmessages = {{ geometric = {{ mean = 3 }} }}\nmessage = 90\n\
             think = {{ exponential = {{ mean = \"4m\" }} }}\nturns = {{ geometric = {{ mean = 4 }} }}\noutput = 300\n{}{pinged}breaks = {{ tools = 0.2 }}\n",
            tool(700, minute)
        ),
        // pings during a long summary read what was cached while it ran
        format!(
            "{PRICES}[model]\noutput_rate = 5\n{compacted}{}[cache]\nlifetime = \"5m\"\nkeep_alive = \"4m\"\n",
            tool(4000, "\"1s\"")
        ),
        // lost replies are billed, summaries are counted
        format!(
            "{PRICES}[model]\ntimeout = \"60s\"\nlost_reply = 0.1\nretry = {{ attempts = 12 }}\n{compacted}{}",
            tool(4000, "\"1s\"")
        ),
        // what ends a session before its budget
        format!("{PRICES}[model]\nmax_output = 400\n{base}max_turns = 5\nmessages = 3\n[budget]\ndollars = 100.0\n"),
        format!(
            "{PRICES}[model]\nmax_output = 400\n[prompt]\nsystem = 5000\n[session]\nturns = 20\noutput = 300\n{}[context]\nwindow = 12000\n\
             [budget]\ndollars = 100.0\n",
            tool(1000, "\"1s\"")
        ),
        // entries too small to be read alone, and prompts without messages
        format!(
            "{small}[prompt]\nsystem = 5000\n[[servers]]\nname = \"s\"\ndefinition_tokens = 500\n[session]\n{outputs}[cache]\nlifetime = \"5m\"\n\
             breaks = {{ system = 0.5 }}\n"
        ),
        format!(
            "{small}[prompt]\nsystem = 500\ntask = 1500\n[session]\n{outputs}[cache]\nlifetime = \"5m\"\nbreaks = {{ history = 0.5 }}\n"
        ),
        format!(
            "{PRICES}[prompt]\nsystem = 5000\n[session]\nturns = 3\noutput = {{ uniform = {{ min = 1, max = 3 }} }}\n[cache]\nlifetime = \"5m\"\n\
             breaks = {{ history = 1.0 }}\n"
        ),
        // more pings in a fixed wait than are summed one by one
        format!(
            "{PRICES}[prompt]\nsystem = 5000\n[session]\nturns = 2\nmessages = 2\nthink = \"24h\"\noutput = 300\n[cache]\nlifetime = \"5m\"\n\
             keep_alive = \"1s\"\n"
        ),
    ];
    for text in texts {
        let answer = run(&text, 20_000);
        assert!(!answer.checks.checks.is_empty(), "{text}\n{:#?}", answer.checks.not_checked);
        assert!(answer.checks.all_pass(), "{text}\n{:#?}", answer.checks.checks);
    }
}

/// Sessions of many kinds, composed by chance from a fixed seed: every closed form that says it applies agrees.
#[test]
fn whatever_applies_agrees() {
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};
    let mut rng = rand::rngs::Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut seen, mut kinds) = (0, std::collections::BTreeSet::new());
    for _ in 0..120 {
        let mut pick = |all: &[&str]| (*all.choose(&mut rng).unwrap()).to_owned();
        let cache = pick(&["off", "5m", "5m", "5m", "1h"]);
        let mut text = format!(
            "{PRICES}[model]\n{}\n{}\n{}\n[prompt]\nsystem = {}\ntask = {}\n",
            pick(&["", "first_token = \"5s\"", "first_token = \"30s\""]),
            pick(&["", "", "prefill_rate = 2_000"]),
            pick(&["", "output_rate = 20", "", "rejected = 0.05\nretry = { attempts = 20, base = \"1s\" }"]),
            pick(&["300", "2000", "6000", "{ uniform = { min = 2000, max = 4000 } }"]),
            pick(&["0", "50", "800", "{ poisson = { mean = 200 } }"]),
        );
        text += &pick(&["", "[[servers]]\nname = \"s\"\ndefinition_tokens = 1500\n"]);
        text += &format!(
            "[session]\nturns = {}\noutput = {}\n{}\n{}\n",
            pick(&["1", "3", "8", "{ geometric = { mean = 5 } }", "{ poisson = { mean = 4 } }"]),
            pick(&["20", "300", "{ lognormal = { p50 = 150, cv = 0.8 } }"]),
            pick(&["", "", "tool_calls = \"sequential\"", "max_turns = 6"]),
            pick(&[
                "",
                "messages = 3\nthink = \"7m\"",
                "messages = { geometric = { mean = 2.5 } }\nmessage = 60\nthink = { exponential = { mean = \"4m\" } }"
            ]),
        );
        for name in ["a", "b"].iter().take(rng.random_range(0..3)) {
            let mut pick = |all: &[&str]| (*all.choose(&mut rng).unwrap()).to_owned();
            text += &format!(
                "[[tools]]\nname = \"{name}\"\ncalls = {}\nresult = {}\nlatency = {}\n{}\n",
                pick(&["1", "1", "2", "{ choices = { \"0\" = 0.4, \"2\" = 0.6 } }"]),
                pick(&["0", "400", "{ gamma = { mean = 500, cv = 1 } }"]),
                pick(&["\"2s\"", "{ exponential = { mean = \"2s\" } }", "{ exponential = { mean = \"90s\" } }"]),
                pick(&[
                    "",
                    "",
                    "hedge_after = \"3s\"",
                    "approval = { share = 0.3, wait = { exponential = { mean = \"3m\" } }, denied = 0.2 }",
                    "timeout = \"20s\"\nlost_reply = 0.03\nerror_result = 30\nretry = { attempts = 3 }",
                ]),
            );
        }
        let mut pick = |all: &[&str]| (*all.choose(&mut rng).unwrap()).to_owned();
        text += &format!("[cache]\nlifetime = \"{cache}\"\n");
        if cache != "off" {
            text += &pick(&[
                "",
                "warm_prefix = 0.3\n",
                "keep_alive = \"1m\"\n",
                "caches_output = true\n",
                "breaks = { tools = 0.1, system = 0.2, history = 0.3 }\n",
                "keep_alive = \"4m\"\nbreaks = { history = 1 }\n",
            ]);
        }
        text += &pick(&["", "", "[context]\ncompact_at = 9_000\nsummary = 400\n"]);
        let answer = run(&text, 4_000);
        assert!(answer.checks.all_pass(), "{text}\n{:#?}", answer.checks.checks);
        seen += answer.checks.checks.len();
        kinds.extend(answer.checks.checks.iter().map(|check| check.id));
    }
    assert!(seen > 400 && kinds.len() > 15, "{seen} {kinds:?}");
}
