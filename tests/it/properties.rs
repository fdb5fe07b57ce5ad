//! Properties over random scenarios (proptest).

use agent_sim::engine::{Collect, Play};
use agent_sim::model::Model;
use agent_sim::report;
use agent_sim::scenario::{Request, Scenario};
use agent_sim::session::{Bill, Record, Turn, Workspace};
use agent_sim::simulate::{Options, Silent, simulate};
use agent_sim::stats::{Metric, Sample};
use proptest::prelude::*;

use crate::support::{model, root, scenario_with, shipped};

/// Keeps every record.
#[derive(Default)]
struct Keep {
    nodes: Vec<Vec<agent_sim::session::NodeTotals>>,
    records: Vec<(Record, Bill)>,
    turns: Vec<Turn>,
}

impl Collect for Keep {
    fn empty(&self) -> Self {
        Self::default()
    }
    fn watches(&self, _: u64) -> bool {
        true
    }
    fn turn(&mut self, turn: &Turn) {
        self.turns.push(*turn);
    }
    fn session(&mut self, _: u64, record: &Record, bill: &Bill, room: &Workspace) {
        assert_eq!(room.per_tool().iter().map(|t| t.calls).sum::<u64>(), record.tool_calls);
        assert_eq!(room.per_tool().iter().map(|t| t.duplicates).sum::<u64>(), record.duplicates);
        self.records.push((*record, bill.clone()));
        self.nodes.push(room.per_node().to_vec());
    }
    fn merge(&mut self, next: &mut Self) {
        self.records.append(&mut next.records);
        self.nodes.append(&mut next.nodes);
        self.turns.append(&mut next.turns);
    }
}

fn keep(model: &Model, seed: u64, sessions: u64) -> Keep {
    let mut all = Keep::default();
    Play { model, seed, sessions: 0..sessions }.run(&mut all, &|_| {});
    all
}

prop_compose! {
    fn text()(
        turns in prop_oneof!["[1-9]", Just("{ geometric = { mean = 6 } }".to_owned()), Just("{ poisson = { mean = 4 } }".to_owned())],
        system in 0_u64..6_000,
        task in 0_u64..900,
        definitions in 0_u64..3_000,
        output in prop_oneof!["[1-9][0-9]{0,2}", Just("{ lognormal = { p50 = 150, cv = 1.5 } }".to_owned())],
        calls in prop_oneof!["[0-4]", Just("{ choices = { \"0\" = 0.5, \"3\" = 0.5 } }".to_owned())],
        mean in 1_u64..400,
        lost in 0.0_f64..0.3,
        reply in 0.0_f64..0.3,
        rejected in 0.0_f64..0.3,
        attempts in 1_u32..5,
        deadline in prop_oneof![Just(String::new()), Just("deadline = \"40s\"".to_owned())],
        jitter in prop_oneof![Just("full"), Just("none"), Just("equal"), Just("decorrelated")],
        lifetime in prop_oneof![Just("off"), Just("5m"), Just("1h")],
        warm in 0.0_f64..1.0,
        sequential in any::<bool>(),
        name in prop_oneof![Just("claude-sonnet-4-6"), Just("claude-haiku-4-5"), Just("claude-haiku-5-5"), Just("kimi-k3")],
    ) -> String {
        let warm = if lifetime == "off" { 0.0 } else { warm };
        let order = if sequential { "sequential" } else { "parallel" };
        format!(r#"
[model]
name = "{name}"
prefill_rate = 9000
output_rate = 60
[prompt]
system = {system}
task = {task}
[[servers]]
name = "s"
definition_tokens = {definitions}
[session]
turns = {turns}
max_turns = 12
output = {output}
tool_calls = "{order}"
[[tools]]
name = "a"
calls = {calls}
result = {{ gamma = {{ mean = 500, cv = 1 }} }}
latency = {{ exponential = {{ mean = "{mean}s" }} }}
timeout = "30s"
lost_request = {lost}
lost_reply = {reply}
rejected = {rejected}
error_result = 30
price = 0.001
[[tools]]
name = "b"
after = ["a"]
calls = 1
latency = "2s"
[retry]
attempts = {attempts}
base = "300ms"
cap = "5s"
jitter = "{jitter}"
{deadline}
[cache]
lifetime = "{lifetime}"
warm_prefix = {warm}
"#)
    }
}

prop_compose! {
    /// Everything that can happen in a session, at once.
    fn everything()(
        messages in prop_oneof!["[1-4]", Just("{ geometric = { mean = 3 } }".to_owned())],
        think in prop_oneof![Just("\"10s\""), Just("{ exponential = { mean = \"5m\" } }")],
        turns in prop_oneof!["[1-6]", Just("{ geometric = { mean = 4 } }".to_owned())],
        system in 0_u64..5_000,
        faults in (0.0_f64..0.3, 0.0_f64..0.2, 0.0_f64..0.2),
        model_retry in prop_oneof![Just("\"anthropic-sdk\""), Just("\"litellm\""), Just("\"botocore-standard\""), Just("{ attempts = 2, deadline = \"25s\" }")],
        cache in prop_oneof![
            Just("lifetime = \"off\""),
            Just("lifetime = \"5m\""),
            Just("lifetime = \"5m\"\nprefix_lifetime = \"1h\"\ncaches_output = true"),
            Just("lifetime = \"5m\"\nkeep_alive = \"4m\""),
        ],
        breaks in (0.0_f64..0.4, 0.0_f64..0.4, 0.0_f64..0.4),
        approval in (0.0_f64..1.0, 0.0_f64..0.5),
        tool_faults in (0.0_f64..0.3, 0.0_f64..0.3, 0.0_f64..0.3),
        hedge in prop_oneof![Just("\"off\""), Just("\"2s\"")],
        idempotent in any::<bool>(),
        breaker in prop_oneof![Just("\"off\""), Just("{ failures = 2, cooldown = \"20s\" }")],
        sequential in any::<bool>(),
        compact_at in prop_oneof![Just("\"off\""), Just("9_000")],
        max_result in prop_oneof![Just("\"off\""), Just("400")],
        budget in prop_oneof![
            Just(""),
            Just("dollars = 0.06"),
            Just("dollars = 0.06\ncheck = \"after\""),
            Just("turns = 5\ntokens = 60_000\ntime = \"2m\""),
            Just("tokens = 40_000\ntime = \"90s\"\ncheck = \"after\""),
            Just("time = \"45s\"\ndollars = 0.08"),
        ],
        name in prop_oneof![Just("claude-sonnet-4-6"), Just("claude-haiku-4-5"), Just("claude-haiku-5-5")],
    ) -> String {
        let order = if sequential { "sequential" } else { "parallel" };
        let breaks = if cache.contains("off") { "\"off\"".to_owned() } else {
            format!("{{ tools = {}, system = {}, history = {} }}", breaks.0, breaks.1, breaks.2)
        };
        format!(r#"
breaker = {breaker}
[model]
name = "{name}"
first_token = {{ exponential = {{ mean = "1s" }} }}
prefill_rate = 9000
output_rate = 60
max_output = 900
timeout = "20s"
rejected = {}
lost_request = {}
lost_reply = {}
retry = {model_retry}
[prompt]
system = {system}
task = 300
[[servers]]
name = "s"
definition_tokens = 700
[session]
messages = {messages}
message = 90
think = {think}
turns = {turns}
output = {{ lognormal = {{ p50 = 150, cv = 1.5 }} }}
tool_calls = "{order}"
[[tools]]
name = "a"
calls = {{ poisson = {{ mean = 1.5 }} }}
result = {{ gamma = {{ mean = 500, cv = 1 }} }}
latency = {{ exponential = {{ mean = "4s" }} }}
timeout = "15s"
hedge_after = {hedge}
lost_request = {}
lost_reply = {}
rejected = {}
error_result = 30
price = 0.001
idempotent = {idempotent}
[[tools]]
name = "b"
after = ["a"]
latency = "2s"
error_result = 20
rejected = 0.1
price = 0.0004
approval = {{ share = {}, wait = {{ exponential = {{ mean = "1m" }} }}, denied = {} }}
[retry]
attempts = 3
base = "300ms"
cap = "5s"
[cache]
{cache}
breaks = {breaks}
[context]
compact_at = {compact_at}
summary = 500
max_result = {max_result}
[budget]
{budget}
"#, faults.0, faults.1, faults.2, tool_faults.0, tool_faults.1, tool_faults.2, approval.0, approval.1)
    }
}

prop_compose! {
    /// The same with agents that call agents, tools that are found or called from code, a small model and retrials.
    fn systems()(
        text in everything(),
        loading in prop_oneof![Just("upfront"), Just("search"), Just("code")],
        hit_rate in prop_oneof![Just(1.0), 0.0_f64..1.0],
        calls in prop_oneof![Just("1"), Just("{ poisson = { mean = 0.8 } }"), Just("3")],
        patience in prop_oneof![Just(""), Just("timeout = \"20s\"\nlost_reply = 0.1\nlost_request = 0.1"), Just("hedge_after = \"5s\""), Just("retry = { deadline = \"15s\" }")],
        inner in prop_oneof![Just("1"), Just("{ choices = { \"0\" = 0.5, \"2\" = 0.5 } }")],
        routing in prop_oneof![Just(""), Just("[routing]\nshare = 0.5\nredo = 0.4\nsmall = { model = { name = \"claude-haiku-4-5\" } }\n")],
        outcome in prop_oneof![Just(""), Just("[outcome]\nsuccess = 0.5\nattempts = 3\n"), Just("[outcome]\nturn_success = 0.9\n")],
    ) -> String {
        format!(r#"{text}
[[servers]]
name = "w"
tools = 10
tokens_per_tool = 40
loading = "{loading}"
read_tokens = 90
kept = 300
[[tools]]
name = "c"
server = "w"
calls = {{ poisson = {{ mean = 0.7 }} }}
result = 200
latency = "1s"
error_result = 10
[[tools]]
name = "d"
agent = "helper"
calls = {calls}
result = 100
error_result = 15
price = 0.0002
{patience}
[agents.helper]
prompt = {{ system = 1_500, task = 100 }}
session = {{ turns = {{ geometric = {{ mean = 2 }} }}, max_turns = 4, output = 120 }}
tools = [
    {{ name = "e", latency = {{ exponential = {{ mean = "3s" }} }}, result = 300 }},
    {{ name = "f", agent = "inner", calls = {inner}, result = 60 }},
]
[agents.inner]
model.name = "claude-haiku-4-5"
prompt.task = 300
session = {{ turns = 1, output = 50 }}
[tool_search]
tokens = 30
found = 3
output = 20
hit_rate = {hit_rate}
latency = "700ms"
max_searches = 2
{routing}{outcome}"#)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn books_balance_whatever_happens(text in everything(), seed in 0_u64..1_000) {
        use agent_sim::session::{Limit, Lump, Outcome};
        use agent_sim::stats::Times;
        let model = model(&text);
        let kept = keep(&model, seed, 12);
        let budget = &model.budget;
        for (r, bill) in &kept.records {
            prop_assert_eq!(r.input_tokens, r.uncached_tokens + r.cache_read_tokens + r.cache_write_tokens);
            prop_assert_eq!(r.cost, r.cost_input + r.cost_output + r.cost_tools);
            // what the money went to sums to the total, exactly
            let lumps = bill.lump(Lump::Compaction) + bill.lump(Lump::KeepAlive) + bill.lump(Lump::LostReply);
            let parts = bill.definitions.iter().copied().sum::<agent_sim::price::PicoUsd>()
                + bill.system + bill.task + bill.history + bill.output + lumps;
            prop_assert_eq!(parts + r.cost_tools, r.cost);
            prop_assert!(r.cost.0 >= 0);
            // where the time went, to the last digits
            let times = Times::of(r);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * r.latency_s.max(r.think_s).max(1.0);
            prop_assert!(near(times.total_s(), r.latency_s), "{times:?} {r:?}");
            prop_assert!(near(r.model_s + r.tool_s, r.latency_s));
            for part in [times.first_token_s, times.writing_s, times.tools_s, times.retries_s, times.people_s, times.compaction_s] {
                prop_assert!(part >= -1e-9);
            }
            prop_assert!(r.executions <= r.attempts + r.hedges && r.duplicates <= r.sent_calls);
            prop_assert!(r.succeeded_calls <= r.sent_calls && r.sent_calls <= r.tool_calls);
            prop_assert!(r.sent_calls <= r.attempts && r.attempts <= 3 * r.sent_calls);
            prop_assert!(r.model_calls <= r.model_attempts && r.model_executions <= r.model_attempts);
            prop_assert!(r.turns <= r.model_calls && r.turns + r.summaries + 1 >= r.model_calls);
            prop_assert!(r.phases <= r.turns && r.messages >= 1);
            prop_assert!((r.expired_gaps == 0 && r.breaks == 0) || model.cache.enabled);
            prop_assert!(!model.cache.is_kept_alive() || budget.any() || r.expired_gaps == 0);
            prop_assert_eq!(r.stopped_by.map(Limit::outcome), match r.outcome {
                Outcome::Budget | Outcome::Deadline => Some(r.outcome),
                _ => None,
            });
            // a budget that is checked before is never passed
            if budget.before {
                prop_assert!(budget.dollars.is_none_or(|most| r.cost <= most));
                prop_assert!(budget.turns.is_none_or(|most| r.turns <= most));
                prop_assert!(budget.tokens.is_none_or(|most| r.input_tokens + r.output_tokens <= most));
                prop_assert!(budget.time_s.is_none_or(|most| r.latency_s <= most * (1.0 + 1e-12)));
            }
        }
        // a summary that fails belongs to no turn
        let failed = kept.records.iter().any(|(r, _)| r.outcome == Outcome::Failed);
        let summary_may_have_failed = failed && model.context.compact_at_tokens < u64::MAX;
        if !budget.any() && !summary_may_have_failed {
            // turn by turn the same money
            let turns: i128 = kept.turns.iter().map(|turn| turn.cost.0).sum();
            let sessions: i128 = kept.records.iter().map(|(r, _)| r.cost_input.0 + r.cost_output.0).sum();
            prop_assert_eq!(turns, sessions);
        }
    }

    #[test]
    fn books_of_a_tree_of_agents_balance(text in systems(), seed in 0_u64..1_000) {
        use agent_sim::session::{Limit, Lump, Outcome};
        use agent_sim::stats::Times;
        let model = model(&text);
        let kept = keep(&model, seed, 12);
        let budget = &model.budget;
        for ((r, bill), nodes) in kept.records.iter().zip(&kept.nodes) {
            let agents = &r.agents;
            prop_assert_eq!(r.input_tokens, r.uncached_tokens + r.cache_read_tokens + r.cache_write_tokens);
            prop_assert_eq!(r.cost, r.cost_input + r.cost_output + r.cost_tools + agents.cost());
            let lumps = bill.lump(Lump::Compaction) + bill.lump(Lump::KeepAlive) + bill.lump(Lump::LostReply) + bill.lump(Lump::Search);
            let parts = bill.definitions.iter().copied().sum::<agent_sim::price::PicoUsd>()
                + bill.system + bill.task + bill.history + bill.output + lumps;
            prop_assert_eq!(parts + r.cost_tools + agents.cost(), r.cost);
            // the nodes below the main agent are what its agents came to
            let below = &nodes[1..];
            prop_assert_eq!(below.iter().map(|node| node.cost).sum::<agent_sim::price::PicoUsd>(), agents.cost());
            prop_assert_eq!(below.iter().map(|node| node.input_tokens).sum::<u64>(), agents.input_tokens());
            prop_assert_eq!(below.iter().map(|node| node.output_tokens).sum::<u64>(), agents.output_tokens);
            for node in below {
                prop_assert!(node.unanswered <= node.sessions && node.warm <= node.sessions);
                prop_assert!(node.turns >= node.sessions - node.unanswered);
            }
            let times = Times::of(r);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * r.latency_s.max(r.think_s).max(1.0);
            prop_assert!(near(times.total_s(), r.latency_s), "{times:?} {r:?}");
            prop_assert!(times.searches_s >= 0.0 && times.tools_s >= -1e-9);
            prop_assert!(r.tools_found <= r.tools_needed && r.searches >= r.tools_found);
            let attempts = model.success.map_or(1, |wanted| u64::from(wanted.attempts));
            prop_assert!(r.runs <= 2 * attempts && r.tries <= attempts && r.redone <= r.small_runs && r.small_runs <= r.tries);
            if !model.is_one_run() {
                prop_assert_eq!(r.runs, r.tries + r.redone);
            }
            prop_assert!(!r.succeeded || r.outcome == Outcome::Answered);
            prop_assert_eq!(r.stopped_by.map(Limit::outcome), match r.outcome {
                Outcome::Budget | Outcome::Deadline => Some(r.outcome),
                _ => None,
            });
            // one budget for the whole tree and all of its runs
            if budget.before {
                prop_assert!(budget.dollars.is_none_or(|most| r.cost <= most), "{} {r:?}", r.cost.usd());
                prop_assert!(budget.turns.is_none_or(|most| r.turns <= most));
                let tokens = r.input_tokens + r.output_tokens + agents.tokens();
                prop_assert!(budget.tokens.is_none_or(|most| tokens <= most), "{tokens} {r:?}");
                prop_assert!(budget.time_s.is_none_or(|most| r.latency_s <= most * (1.0 + 1e-12)));
            }
        }
    }

    #[test]
    fn a_tree_of_agents_costs_more_with_every_price(text in systems(), factor in 1.0_f64..3.0) {
        fn raise(model: &mut Model, factor: f64) {
            let tariff = model.tariff.as_mut().unwrap();
            for price in [&mut tariff.base.read, &mut tariff.base.write_messages, &mut tariff.base.output] {
                price.0 = (price.0 as f64 * factor) as u64;
            }
            for agent in model.phase.tools.iter_mut().filter_map(|tool| tool.agent.as_mut()) {
                raise(&mut agent.model, factor);
            }
            if let Some(routing) = &mut model.routing {
                raise(&mut routing.small, factor);
            }
        }
        fn free(model: &mut Model) {
            model.budget.dollars = None;
            for agent in model.phase.tools.iter_mut().filter_map(|tool| tool.agent.as_mut()) {
                free(&mut agent.model);
            }
            if let Some(routing) = &mut model.routing {
                free(&mut routing.small);
            }
        }
        let mut base = model(&text);
        free(&mut base);
        let cost = |model: &Model| keep(model, 3, 4).records.iter().map(|(r, _)| r.cost.0).sum::<i128>();
        let before = cost(&base);
        raise(&mut base, factor);
        prop_assert!(cost(&base) >= before);
    }

    #[test]
    fn cost_rises_with_every_price_whatever_happens(text in everything(), factor in 1.0_f64..3.0) {
        // a budget of dollars would stop a dearer run earlier
        let mut base = model(&text);
        base.budget.dollars = None;
        let cost = |model: &Model| keep(model, 3, 4).records.iter().map(|(r, _)| r.cost.0).sum::<i128>();
        let before = cost(&base);
        let mut dearer = base;
        let tariff = dearer.tariff.as_mut().unwrap();
        for price in [&mut tariff.base.read, &mut tariff.base.write_messages, &mut tariff.base.output] {
            price.0 = (price.0 as f64 * factor) as u64;
        }
        prop_assert!(cost(&dearer) >= before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn books_balance(text in text(), seed in 0_u64..1_000) {
        let model = model(&text);
        let kept = keep(&model, seed, 12);
        let tariff = model.tariff.clone().unwrap();
        let mut cost_of_turns = 0;
        for turn in &kept.turns {
            // each prompt token lies in exactly one class, and a hit is never larger than the prompt
            let u = &turn.usage;
            prop_assert_eq!(
                u.prompt_tokens(),
                u.read_tokens + u.written_prefix_tokens + u.written_messages_tokens + u.plain_tokens
            );
            prop_assert!(model.cache.enabled || u.prompt_tokens() == u.plain_tokens);
            prop_assert!(u.prompt_tokens() >= model.cache.min_tokens || u.prompt_tokens() == u.plain_tokens);
            prop_assert!(turn.latency_s >= turn.first_token_s && turn.first_token_s >= 0.0);
            prop_assert_eq!(tariff.cost(u), turn.cost);
            cost_of_turns += turn.cost.0;
        }
        let mut cost_of_sessions = 0;
        for (r, bill) in &kept.records {
            prop_assert_eq!(r.input_tokens, r.uncached_tokens + r.cache_read_tokens + r.cache_write_tokens);
            prop_assert_eq!(r.cost, r.cost_input + r.cost_output + r.cost_tools);
            // what the money went to sums to the total, exactly
            let parts = bill.definitions.iter().copied().sum::<agent_sim::price::PicoUsd>()
                + bill.system + bill.task + bill.history;
            prop_assert_eq!(parts, r.cost_input);
            prop_assert!(r.cost.0 >= 0);
            prop_assert!(r.executions <= r.attempts && r.duplicates <= r.tool_calls);
            prop_assert!(r.succeeded_calls <= r.tool_calls && r.tool_calls <= r.attempts);
            prop_assert!(r.turns <= 12 && r.phases <= r.turns);
            prop_assert!((r.latency_s - r.model_s - r.tool_s).abs() <= 1e-9 * r.latency_s.max(1.0));
            cost_of_sessions += r.cost_input.0 + r.cost_output.0;
        }
        // the ledger of a session and the bill of each of its calls are two ways to the same sum
        prop_assert_eq!(cost_of_turns, cost_of_sessions);
    }

    #[test]
    fn cost_rises_with_every_price(text in text(), factor in 1.0_f64..3.0) {
        let base = model(&text);
        let cost = |model: &Model| keep(model, 3, 6).records.iter().map(|(r, _)| r.cost.0).sum::<i128>();
        let before = cost(&base);
        for price in 0..5 {
            let mut dearer = base.clone();
            let tariff = dearer.tariff.as_mut().unwrap();
            let raise = |rates: &mut agent_sim::price::Rates| {
                let fields = [&mut rates.input, &mut rates.read, &mut rates.write_prefix, &mut rates.write_messages, &mut rates.output];
                for (index, field) in fields.into_iter().enumerate() {
                    if index == price {
                        field.0 = (field.0 as f64 * factor) as u64;
                    }
                }
            };
            raise(&mut tariff.base);
            if let Some((_, tier)) = &mut tariff.tier {
                raise(tier);
            }
            prop_assert!(cost(&dearer) >= before);
        }
    }

    #[test]
    fn the_same_world_under_each_strategy(text in text()) {
        // what a strategy doesn't touch stays as it was, session by session
        let run = |sets: &[&str]| {
            let model = scenario_with(&text, sets).model;
            keep(&model, 9, 8).records.into_iter().map(|(r, _)| r).collect::<Vec<_>>()
        };
        let (base, patient) = (run(&[]), run(&["tools.b.latency=7s", "cache.lifetime=off", "cache.warm_prefix=0.0"]));
        for (a, b) in base.iter().zip(&patient) {
            prop_assert_eq!((a.turns, a.input_tokens, a.output_tokens), (b.turns, b.input_tokens, b.output_tokens));
            prop_assert_eq!((a.attempts, a.duplicates), (b.attempts, b.duplicates));
        }
    }

    #[test]
    fn retries_never_execute_less(text in text()) {
        let run = |attempts: u32| {
            let model = scenario_with(&text, &[&format!("retry.attempts={attempts}")]).model;
            keep(&model, 4, 8).records.into_iter().map(|(r, _)| r).collect::<Vec<_>>()
        };
        let (one, three) = (run(1), run(3));
        for (a, b) in one.iter().zip(&three) {
            prop_assert!(b.executions >= a.executions && b.succeeded_calls >= a.succeeded_calls);
            prop_assert_eq!(a.duplicates, 0);
            prop_assert_eq!(a.tool_calls, b.tool_calls);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for file in shipped() {
        let load = || {
            let sets = ["run.sessions=3000".to_owned()];
            let mut scenario = Scenario::load(&file, &Request { sets: &sets, ..Request::default() }).unwrap();
            if let Some(fleet) = &mut scenario.model.fleet {
                fleet.replications = 3;
            }
            scenario
        };
        let on = |threads| {
            let answer = simulate(load(), Options { threads: Some(threads), tables: None }, &Silent).unwrap();
            report::json(&[answer]).unwrap()
        };
        assert!(on(1) == on(2) && on(1) == on(5), "{}", file.display());
    }
}

#[test]
fn a_part_of_the_sessions_is_the_same_part() {
    let model = crate::support::shipped_scenario("w1.toml", None).model;
    let mut whole = Sample::new(&model, 4_000, &[]);
    Play { model: &model, seed: 7, sessions: 0..4_000 }.run(&mut whole, &|_| {});
    let mut part = Sample::new(&model, 500, &[]);
    Play { model: &model, seed: 7, sessions: 2_500..3_000 }.run(&mut part, &|_| {});
    let cost = Metric::named("cost_usd").unwrap();
    assert_eq!(part.values(cost).unwrap(), whole.values(cost).unwrap()[2_500..3_000]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Shipped files, broken at random: every one is answered, none panics.
    #[test]
    fn mutated_files_are_answered(
        which in 0_usize..8,
        cuts in prop::collection::vec((0.0_f64..1.0, 0_usize..12, "[-a-z0-9_.=\"{}\\[\\], \n]{0,6}"), 1..4),
    ) {
        let files = shipped();
        let mut text = std::fs::read_to_string(&files[which % files.len()]).unwrap();
        for (at, length, new) in cuts {
            let floor = |mut i: usize| {
                i = i.min(text.len());
                while !text.is_char_boundary(i) {
                    i -= 1;
                }
                i
            };
            let start = floor((at * text.len() as f64) as usize);
            let end = floor(start + length).max(start);
            text.replace_range(start..end, &new);
        }
        let folder = root().join("scenarios");
        match Scenario::parse(&text, "mutated.toml", &folder, &Request::default()) {
            Ok(scenario) => {
                // whatever is accepted can be played
                if scenario.model.turns.mean() < 1_000.0 {
                    let kept = keep(&scenario.model, 1, 1);
                    prop_assert_eq!(kept.records.len(), 1);
                }
            }
            Err(error) => {
                prop_assert!(!error.mistakes.is_empty());
                prop_assert!(error.render(false).contains("mutated.toml"));
                prop_assert!(!error.render(true).is_empty());
            }
        }
    }

    #[test]
    fn any_set_argument_is_answered(set in "[-a-z0-9_.=\"{}\\[\\], ]{0,24}") {
        let text = std::fs::read_to_string(root().join("scenarios/w1.toml")).unwrap();
        let sets = [set];
        let request = Request { sets: &sets, ..Request::default() };
        if let Err(error) = Scenario::parse(&text, "w1.toml", std::path::Path::new(""), &request) {
            prop_assert!(!error.render(false).is_empty());
        }
    }
}

#[test]
fn every_model_call_is_counted_once() {
    // plain turns, turns after a summary that didn't help, and summaries
    let model = model(
        "[prompt]\nsystem = { uniform = { min = 0, max = 600 } }\ntask = 50\n[session]\nturns = 9\noutput = 40\n[context]\ncompact_at = 400\n\
         summary = 100\n",
    );
    let kept = keep(&model, 1, 200);
    assert!(kept.records.iter().any(|(r, _)| r.summaries == 0) && kept.records.iter().any(|(r, _)| r.summaries > 3));
    for (r, _) in &kept.records {
        assert_eq!((r.model_calls, r.model_attempts), (r.turns + r.summaries, r.turns + r.summaries));
        assert_eq!((r.model_executions, r.answered_turns), (r.turns + r.summaries, r.turns));
    }
}
