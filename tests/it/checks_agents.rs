//! Closed forms of agents, searches, code, routing and outcomes against the simulation, and wrong models that the same
//! checks must catch.

use agent_sim::check::check;
use agent_sim::dist::Whole;
use agent_sim::model::{Model, SuccessChance};

use crate::checks::{caught, has, sample};
use crate::support::{model, run};

const PRICES: &str = "
[price]
input = 3
output = 15
cache_read = 0.30
cache_write_5m = 3.75
";

/// A main agent whose phases call four researchers each, whose searches are exponential.
fn fan_out(turns: &str, inner: &str, cache: &str) -> String {
    format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 3000\ntask = 400\n[session]\nturns = {turns}\noutput = 300\n[[tools]]\n\
         name = \"research\"\nagent = \"researcher\"\ncalls = 4\nresult = 600\n[agents.researcher]\nprompt = {{ system = 2000, task = 300 }}\n\
         session = {{ turns = {inner}, output = 250 }}\ntools = [{{ name = \"look\", result = 1200, latency = {{ exponential = {{ mean = \"2s\" }} }} }}]\n\
         [cache]\n{cache}\n"
    )
}

fn agent(model: &mut Model) -> &mut Model {
    &mut model.phase.tools[0].agent.as_mut().unwrap().model
}

#[test]
fn a_tree_is_the_sum_of_its_own_forms() {
    for (turns, sessions) in [("3", 200), ("{ geometric = { mean = 3 } }", 80_000)] {
        let text = fan_out(turns, "6", "lifetime = \"5m\"");
        caught(&text, "agents.tokens", sessions, |model| agent(model).phase.tools[0].result = Whole::constant(1_800));
        caught(&text, "agents.tokens", sessions, |model| model.phase.tools[0].calls = Whole::constant(6));
        caught(&text, "agents.cost", sessions, |model| {
            let tariff = agent(model).tariff.as_mut().unwrap();
            tariff.base.write_messages = tariff.base.input;
        });
        // all of them cold, or all warm
        caught(&text, "agents.cost", sessions, |model| agent(model).cache.warm_prefix = 1.0);
        caught(&text, "agents.cost", sessions, |model| model.turns = Whole::constant(2));
    }
    let random = fan_out("4", "{ geometric = { mean = 4 } }", "lifetime = \"off\"");
    caught(&random, "agents.cost", 20_000, |model| agent(model).turns = Whole::constant(4));
    // half of the first phases find the prefix warm from elsewhere
    let half = fan_out("3", "6", "lifetime = \"5m\"\nwarm_prefix = 0.5");
    caught(&half, "agents.cost", 20_000, |model| agent(model).cache.warm_prefix = 0.0);
    let off = fan_out("3", "6", "lifetime = \"off\"");
    caught(&off, "agents.cost", 200, |model| agent(model).output = Whole::constant(251));
    // the caller's own figures are checked without those of its agents
    caught(&off, "tokens.read", 200, |model| model.output = Whole::constant(301));
    caught(&off, "cost.input.uncached", 200, |model| model.prompt.task = Whole::constant(401));
}

#[test]
fn the_slowest_of_the_agents_decides_a_phase() {
    let text = fan_out("3", "6", "lifetime = \"off\"");
    caught(&text, "latency.any", 20_000, |model| model.phase.tools[0].calls = Whole::constant(3));
    caught(&text, "latency.any", 20_000, |model| agent(model).turns = Whole::constant(7));
    caught(&text, "latency.any", 20_000, |model| {
        agent(model).timing.first_token_s = agent_sim::dist::Dist::constant(1.2);
    });
    // a session that is one exponential call is one
    let one = fan_out("3", "2", "lifetime = \"off\"").replace("first_token = \"1s\"", "first_token = \"0s\"");
    caught(&one, "latency.parallel", 20_000, |model| model.phase.tools[0].calls = Whole::constant(3));
    // a slow agent runs down its caller's clock
    let slow = fan_out("6", "6", "lifetime = \"5m\"").replace("mean = \"2s\"", "mean = \"40s\"");
    caught(&slow, "cost.input.cached", 20_000, |model| agent(model).turns = Whole::constant(4));
}

/// Two searched servers, of which tools are needed in every phase.
fn searched(hit_rate: f64, most: u64, rest: &str) -> String {
    format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 2000\n[session]\nturns = 6\noutput = 200\n[[servers]]\nname = \"a\"\ntools = 40\n\
         tokens_per_tool = 300\nloading = \"search\"\n[[servers]]\nname = \"b\"\ntools = 10\ntokens_per_tool = 100\nloading = \"search\"\n[[tools]]\n\
         name = \"x\"\nserver = \"a\"\nresult = 500\nerror_result = 20\nlatency = \"2s\"\n[[tools]]\nname = \"y\"\nserver = \"b\"\nresult = 90\ncalls = 2\n\
         [tool_search]\ntokens = 350\nfound = 4\noutput = 60\nlatency = \"500ms\"\nhit_rate = {hit_rate}\nmax_searches = {most}\n[cache]\n\
         lifetime = \"5m\"\n{rest}"
    )
}

#[test]
fn searches_have_a_ceiling() {
    let by_chance = searched(0.47, 3, "");
    caught(&by_chance, "search.ceiling", 10_000, |model| model.search.as_mut().unwrap().hit_rate = 0.5);
    caught(&by_chance, "search.ceiling", 10_000, |model| model.search.as_mut().unwrap().most = 2);
    caught(&by_chance, "tokens.read", 10_000, |model| model.search.as_mut().unwrap().output_tokens = 120);
    caught(&by_chance, "cost.input.cached", 10_000, |model| model.search.as_mut().unwrap().hit_rate = 0.5);
    caught(&by_chance, "cost.output", 10_000, |model| model.search.as_mut().unwrap().output_tokens = 80);
    let surely = searched(1.0, 1, "");
    caught(&surely, "tokens.read", 200, |model| model.search.as_mut().unwrap().output_tokens = 61);
    caught(&surely, "cost.input.cached", 200, |model| model.prompt.definitions[2] = 351);
    // a search that outlasts the lifetime
    let slow = searched(1.0, 1, "").replace("500ms", "6m");
    caught(&slow, "cost.input.cached", 200, |model| {
        model.search.as_mut().unwrap().latency_s = agent_sim::dist::Dist::constant(60.0);
    });
}

#[test]
fn code_keeps_results_outside() {
    let text = format!(
        "{PRICES}[prompt]\nsystem = 2000\n[session]\nturns = 6\noutput = 200\n[[servers]]\nname = \"a\"\ntools = 40\ntokens_per_tool = 300\n\
         loading = \"code\"\nread_tokens = 900\nkept = 200\n[[tools]]\nname = \"x\"\nserver = \"a\"\nresult = 150\ncalls = 200\n[[tools]]\nname = \"y\"\n\
         result = 40\n[cache]\nlifetime = \"5m\"\n"
    );
    caught(&text, "tokens.read", 200, |model| model.phase.code[0].kept_tokens = 210);
    caught(&text, "tokens.read", 200, |model| model.phase.code[0].read_tokens = 901);
    caught(&text, "cost.input.cached", 200, |model| model.phase.tools[1].result = Whole::constant(41));
}

#[test]
fn routing_and_outcomes() {
    let text = |rest: &str| {
        format!(
            "[model]\nname = \"claude-sonnet-4-6\"\n[prompt]\nsystem = 5000\n[session]\nturns = {{ geometric = {{ mean = 5 }} }}\noutput = 300\n[[tools]]\n\
             name = \"t\"\nresult = 700\n[cache]\nlifetime = \"5m\"\n{rest}"
        )
    };
    let routed = text("[routing]\nshare = 0.6\nredo = 0.2\nsmall = { model = { name = \"claude-haiku-4-5\" } }\n");
    caught(&routed, "routing", 40_000, |model| model.routing.as_mut().unwrap().share = 0.62);
    caught(&routed, "routing", 40_000, |model| model.routing.as_mut().unwrap().redo = 0.22);
    caught(&routed, "routing", 40_000, |model| {
        // the small model's bill at the large one's prices
        let tariff = model.tariff.clone();
        model.routing.as_mut().unwrap().small.tariff = tariff;
    });
    for (outcome, wrong) in [
        ("success = 0.8", SuccessChance::Session(0.81)),
        ("turn_success = 0.95", SuccessChance::Turn(0.96)),
        ("success = 0.5\nattempts = 3", SuccessChance::Session(0.52)),
        ("turn_success = 0.9\nattempts = 4", SuccessChance::Turn(0.91)),
    ] {
        let text = text(&format!("[outcome]\n{outcome}\n"));
        caught(&text, "outcome.pass_k", 40_000, |model| model.success.as_mut().unwrap().chance = wrong);
        caught(&text, "outcome.pass_k", 40_000, |model| model.success.as_mut().unwrap().attempts = 2);
    }
    // both, over agents
    let all = fan_out(
        "3",
        "6",
        "lifetime = \"off\"\n[routing]\nshare = 0.3\nredo = 0.5\nsmall.price.input = 1\n[outcome]\nsuccess = 0.7\nattempts = 2",
    );
    caught(&all, "routing", 40_000, |model| agent(model).turns = Whole::constant(5));
    caught(&all, "outcome.pass_k", 40_000, |model| model.success.as_mut().unwrap().attempts = 3);
}

/// Systems of many kinds, composed by chance from a fixed seed: every closed form that says it applies agrees.
#[test]
fn whatever_applies_to_a_system_agrees() {
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};
    let mut rng = rand::rngs::Xoshiro256PlusPlus::seed_from_u64(2);
    let (mut seen, mut kinds) = (0, std::collections::BTreeSet::new());
    for _ in 0..150 {
        let mut pick = |all: &[&str]| (*all.choose(&mut rng).unwrap()).to_owned();
        let server = |name: &str, loading: &str| {
            format!("[[servers]]\nname = \"{name}\"\ntools = 8\ntokens_per_tool = 60\nread_tokens = 90\n{loading}\n")
        };
        let mut text = format!(
            "{PRICES}[model]\n{}\n{}\n[prompt]\nsystem = {}\ntask = {}\n",
            pick(&["", "first_token = \"5s\"", "first_token = { exponential = { mean = \"2s\" } }"]),
            pick(&["", "output_rate = 20", "prefill_rate = 2_000"]),
            pick(&["300", "4000", "{ uniform = { min = 2000, max = 4000 } }"]),
            pick(&["0", "800"]),
        );
        text += &format!(
            "[session]\nturns = {}\noutput = {}\n{}\n{}\n",
            pick(&["1", "2", "5", "{ geometric = { mean = 4 } }"]),
            pick(&["20", "300", "{ lognormal = { p50 = 150, cv = 0.8 } }"]),
            pick(&["", "", "tool_calls = \"sequential\""]),
            pick(&["", "", "messages = 2\nmessage = 60\nthink = \"7m\""]),
        );
        let loadings = ["loading = \"search\"", "loading = \"code\"", "loading = \"code\"\nkept = 300", ""];
        text += &server("a", &pick(&loadings));
        text += &server("b", &pick(&loadings));
        for name in ["x", "y"] {
            text += &format!(
                "[[tools]]\nname = \"{name}\"\nserver = \"{}\"\ncalls = {}\nresult = {}\nerror_result = 15\nlatency = {}\n{}\n",
                pick(&["a", "b"]),
                pick(&["1", "1", "2", "{ choices = { \"0\" = 0.4, \"2\" = 0.6 } }"]),
                pick(&["400", "{ gamma = { mean = 500, cv = 1 } }"]),
                pick(&["\"2s\"", "{ exponential = { mean = \"2s\" } }"]),
                pick(&["", "", "timeout = \"8s\"\nlost_reply = 0.03\nretry = { attempts = 3 }\nprice = 0.001"]),
            );
        }
        if rng.random::<f64>() < 0.7 {
            let mut pick = |all: &[&str]| (*all.choose(&mut rng).unwrap()).to_owned();
            text += &format!(
                "[[tools]]\nname = \"ask\"\nagent = \"helper\"\ncalls = {}\nresult = 250\nerror_result = 10\n{}\n{}\n[agents.helper]\nprompt = {{ system = {}, task = 90 }}\n\
                 session = {{ turns = {}, output = {}, {} }}\ntools = [\n{}\n{{ name = \"look\", result = {}, latency = {} }},\n]\n{}\n",
                pick(&["1", "3", "3", "{ choices = { \"0\" = 0.4, \"2\" = 0.6 } }"]),
                pick(&["", "", "after = [\"x\"]"]),
                pick(&[
                    "",
                    "",
                    "",
                    "timeout = \"30s\"\nlost_request = 0.1\nretry = { attempts = 2 }",
                    "price = 0.01",
                    "hedge_after = \"9s\""
                ]),
                pick(&["1500", "200", "{ uniform = { min = 200, max = 900 } }"]),
                pick(&["1", "2", "4", "{ geometric = { mean = 3 } }"]),
                pick(&["80", "{ poisson = { mean = 90 } }"]),
                pick(&["tool_calls = \"parallel\"", "max_turns = 3"]),
                pick(&["", "", "{ name = \"inner\", agent = \"inner\", calls = 2, result = 30 },"]),
                pick(&["200", "{ gamma = { mean = 300, cv = 1 } }"]),
                pick(&["\"4s\"", "{ exponential = { mean = \"3s\" } }", "{ exponential = { mean = \"70s\" } }"]),
                pick(&[
                    "",
                    "",
                    "cache.warm_prefix = 1",
                    "model.first_token = \"2s\"\nprice = { input = 1, output = 5 }"
                ]),
            );
            text += "[agents.inner]\nprompt.task = 700\nsession = { turns = 1, output = 60 }\n";
        }
        let mut pick = |all: &[&str]| (*all.choose(&mut rng).unwrap()).to_owned();
        text += &format!(
            "[tool_search]\ntokens = 50\nfound = 3\noutput = 25\nlatency = {}\nhit_rate = {}\nmax_searches = 2\n[cache]\nlifetime = \"{}\"\n{}{}",
            pick(&["\"0s\"", "\"700ms\"", "{ exponential = { mean = \"1s\" } }"]),
            pick(&["1", "1", "0.6"]),
            pick(&["off", "5m", "5m"]),
            pick(&["", "", "[routing]\nshare = 0.4\nredo = 0.3\nsmall.price = { input = 1, output = 5 }\n"]),
            pick(&["", "", "[outcome]\nsuccess = 0.6\nattempts = 2\n", "[outcome]\nturn_success = 0.9\n"]),
        );
        let answer = run(&text, 4_000);
        assert!(answer.checks.all_pass(), "{text}\n{:#?}", answer.checks.checks);
        seen += answer.checks.checks.len();
        kinds.extend(answer.checks.checks.iter().map(|check| check.id));
    }
    assert!(seen > 400 && kinds.len() > 15, "{seen} {kinds:?}");
    for id in ["agents.cost", "agents.tokens", "search.ceiling", "routing", "outcome.pass_k"] {
        assert!(kinds.contains(id), "{id} is never checked: {kinds:?}");
    }
}

#[test]
fn what_is_not_known_is_not_checked() {
    let has_agents = |text: &str| {
        let model = model(text);
        let checks = check(&model, &sample(&model, 2_000));
        assert!(checks.all_pass(), "{:#?}", checks.checks);
        has(&checks, "agents.cost")
    };
    assert!(has_agents(&fan_out("3", "6", "lifetime = \"5m\"")));
    // whose prefix is warm depends on when they start
    let slow = fan_out("3", "6", "lifetime = \"5m\"")
        .replace("[[tools]]", "[[tools]]\nname = \"wait\"\nlatency = \"290s\"\n[[tools]]");
    assert!(!has_agents(&slow));
    assert!(!has_agents(
        &fan_out("3", "6", "lifetime = \"5m\"").replace("turns = 3", "turns = 3\ntool_calls = \"sequential\"")
    ));
    // sessions that can end without their answer
    let cut = fan_out("3", "6", "lifetime = \"off\"").replace("output = 250", "output = 250, max_turns = 5");
    assert!(!has_agents(&cut));
}
