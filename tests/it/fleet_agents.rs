//! Agents, smaller models and pings in a fleet: the same sessions as alone where nothing is shared, and what they share.

use agent_sim::session::Record;
use agent_sim::stats::Place;
use agent_sim::theory::limits::mmc_mean_wait;

use crate::fleet::{are_the_same_alone_and_in_a_fleet, records, summary};
use crate::support::{answer, assert_close, mean, scenario, scenario_with, shipped_scenario};

#[test]
fn agents_and_smaller_models_are_the_same_in_a_fleet_as_alone() {
    let files = std::fs::read_dir(crate::support::root().join("scenarios/architectures")).unwrap();
    for file in files {
        let file = format!("architectures/{}", file.unwrap().file_name().to_string_lossy());
        are_the_same_alone_and_in_a_fleet(shipped_scenario(&file, None), &file);
    }
    // agents that are given up, asked twice, asked again, waited for by a person, and that call agents themselves; whose
    // prompt the last ones share, and that of a copy whose first was lost, is only approximate where a session is played alone
    for (more, lost) in [
        ("", 0.05),
        ("idempotent = true", 0.05),
        ("idempotent = true\nhedge_after = \"8s\"", 0.0),
        ("hedge_after = \"8s\"", 0.0),
    ] {
        let text = format!(
            "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n\
             [model]\nfirst_token = {{ exponential = {{ mean = \"1s\" }} }}\noutput_rate = 60\n\
             [prompt]\nsystem = 2000\n[session]\nturns = 4\noutput = {{ lognormal = {{ mean = 90, cv = 0.5 }} }}\n\
             [cache]\nlifetime = \"5m\"\n[retry]\nattempts = 3\n\
             [[tools]]\nname = \"helper\"\nagent = \"helper\"\ncalls = 2\ntimeout = \"14s\"\nlost_request = {lost}\n\
             lost_reply = 0.1\nrejected = 0.05\nresult = 300\nerror = 0.1\nerror_result = 20\n{more}\n\
             approval = {{ share = 0.2, wait = \"30s\", denied = 0.3 }}\n\
             [agents.helper]\nprompt = {{ system = 1500, task = 200 }}\nsession = {{ turns = 3, max_turns = 3 }}\n\
             [[agents.helper.tools]]\nname = \"read\"\nlatency = {{ exponential = {{ mean = \"2s\" }} }}\nresult = 400\n\
             [[agents.helper.tools]]\nname = \"deep\"\nagent = \"deep\"\ncalls = {{ poisson = {{ mean = 0.5 }} }}\n\
             timeout = \"5s\"\nlost_reply = 0.1\nresult = 50\n\
             [agents.deep]\nprompt = {{ task = 1200 }}\nsession = {{ turns = 2 }}\n\
             [[agents.deep.tools]]\nname = \"look\"\nlatency = \"1s\"\nresult = 100\n"
        );
        are_the_same_alone_and_in_a_fleet(scenario(&text), more);
    }
}

/// Main agents of two calls that call an agent of one call in between; a call of either takes a second.
const ONE_EACH: &str = "[model]
first_token = { exponential = { mean = \"1s\" } }
[session]
turns = 2
[[tools]]
name = \"ask\"
agent = \"helper\"
[agents.helper]
session = { turns = 1 }
[fleet]
arrivals = { poisson = { per_hour = 4800 } }
horizon = \"12h\"
warm_up = \"2h\"
replications = 20";

#[track_caller]
fn waits_like_erlang(scenario: agent_sim::scenario::Scenario, place: Place, per_s: f64, servers: u32) {
    let answer = answer(scenario);
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    let station = summary(&answer).station(place).unwrap();
    assert_close(station.came_per_hour.value, per_s * 3600.0, 0.02);
    let (wait, expected_s) = (station.wait_s.unwrap(), mmc_mean_wait(servers, per_s, 1.0));
    assert!(((wait.value - expected_s) / wait.se).abs() < 4.0, "{wait:?} {expected_s}");
}

#[test]
fn agents_wait_for_the_same_places_as_their_callers() {
    // three calls a session at one station with exponential service: a network with a product form
    let scenario_of = |servers: u32| scenario_with(ONE_EACH, &[&format!("fleet.limits.concurrent={servers}")]);
    waits_like_erlang(scenario_of(5), Place::Model, 4.0, 5);
    // an agent on another model isn't held up, and doesn't hold up: two calls a session are left
    let other = "agents.helper.model={ name = \"claude-haiku-4-5\" }";
    let set = ["model.name=\"claude-sonnet-4-6\"", other, "fleet.limits.concurrent=3"];
    let scenario = scenario_with(ONE_EACH, &set);
    assert!(scenario.notes.iter().any(|note| note.contains("don't meet them: the agent \"helper\"")));
    waits_like_erlang(scenario, Place::Model, 8.0 / 3.0, 3);
}

#[test]
fn a_tool_that_is_an_agent_runs_so_many_sessions_at_once() {
    waits_like_erlang(scenario_with(ONE_EACH, &["tools.ask.capacity=2"]), Place::Tool(0), 4.0 / 3.0, 2);
    // and so does a tool of the agent
    let text = ONE_EACH.replace("session = { turns = 1 }", "session = { turns = 2 }\n[[agents.helper.tools]]\nname = \"read\"\ncapacity = 2\nlatency = { exponential = { mean = \"1s\" } }");
    let scenario = scenario(&text);
    assert_eq!(scenario.places, ["ask", "helper.read"]);
    waits_like_erlang(scenario, Place::Tool(1), 4.0 / 3.0, 2);
}

#[test]
fn sessions_keep_the_prompt_of_their_agents_warm_for_each_other() {
    let text = "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n\
        [session]\nturns = 2\n[[tools]]\nname = \"ask\"\nagent = \"helper\"\n\
        [agents.helper]\nprompt = { system = 5_000 }\nsession = { turns = 1 }\n[cache]\nlifetime = \"5m\"\n\
        [fleet]\narrivals = { poisson = { per_hour = 10 } }\nhorizon = \"600h\"\nwarm_up = \"20h\"\nreplications = 20";
    let answer = answer(scenario(text));
    let warm = answer.summary.nodes[1].warm.unwrap();
    // MODEL.md §7 cache.shared_prefix: a session within the lifetime before it
    let expected = 1.0 - (-10.0_f64 * 300.0 / 3600.0).exp();
    assert!(((warm.value - expected) / warm.se).abs() < 4.0, "{warm:?} {expected}");
}

#[test]
fn what_is_given_up_is_paid_for_all_the_same() {
    // nobody waits for the second half of an agent's session, and its caller is over before it
    let text = "[price]\ninput = 1\noutput = 1\n[session]\nturns = 2\n\
        [[tools]]\nname = \"ask\"\nagent = \"helper\"\ntimeout = \"5s\"\n\
        [agents.helper]\nprompt = { task = 1_000 }\nsession = { turns = 3 }\nmodel = { first_token = \"4s\" }\n\
        [fleet]\narrivals = { poisson = { per_hour = 600 } }\nhorizon = \"10h\"\nreplications = 2";
    let all = records(&scenario(text));
    assert!(all.len() > 9_000);
    assert!(all.iter().all(|record| record.agents.input_tokens() == 3_000 && record.executions == 1));
    assert!(all.iter().all(|record| (record.latency_s - 5.0).abs() < 1e-6 && record.succeeded_calls == 0));
}

/// A conversation with pings under a limit of so many requests a minute.
fn pinged(requests_per_minute: &str) -> Vec<Record> {
    let text = format!(
        "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[prompt]\nsystem = 5_000\n\
         [session]\nturns = 1\nmessages = 4\nthink = \"21m\"\noutput = 200\n[cache]\nlifetime = \"5m\"\nkeep_alive = \"4m\"\n\
         [model]\nretry = {{ attempts = 20 }}\n\
         [fleet]\narrivals = {{ poisson = {{ per_hour = 60 }} }}\nhorizon = \"24h\"\nwarm_up = \"4h\"\nreplications = 2\n\
         [fleet.limits]\nrequests_per_minute = {requests_per_minute}\nburst = \"1s\""
    );
    records(&scenario(&text))
}

#[test]
fn pings_count_as_requests_and_one_that_is_turned_away_is_missed() {
    let free = pinged("1_000_000");
    // three waits of 21 minutes, five pings each
    assert!(free.len() > 2_000 && free.iter().all(|record| record.keep_alive_pings == 15 && record.expired_gaps == 0));
    // four calls and fifteen pings a session, one session a minute
    let tight = pinged("90");
    let missed: u64 = tight.iter().map(|record| 15_u64.saturating_sub(record.keep_alive_pings)).sum();
    let expired: u64 = tight.iter().map(|record| record.expired_gaps).sum();
    assert!(missed > 100 && expired > 100, "{missed} {expired}");
    assert!(tight.iter().all(|record| record.keep_alive_pings <= 15));
}

#[test]
fn a_routed_session_goes_on_where_its_first_run_ended() {
    let text = "[model]\nfirst_token = \"2s\"\n[session]\nturns = 1\n\
        [routing]\nshare = 0.5\nredo = 0.4\nsmall = { model = { first_token = \"1s\" } }\n\
        [fleet]\narrivals = { poisson = { per_hour = 1800 } }\nhorizon = \"10h\"\nreplications = 10\nlimits.concurrent = 100";
    let answer = answer(scenario(text));
    // half of them 2 s; the others 1 s, and two in five of those 2 s more
    assert_close(mean(&answer, "latency_s"), 1.0 + 0.5 * (1.0 + 0.4 * 2.0), 0.02);
    assert_close(mean(&answer, "runs"), 1.2, 0.02);
    // the small model has no other name, so that its calls meet the same limits
    let model = summary(&answer).station(Place::Model).unwrap();
    assert_close(model.came_per_hour.value, 1_800.0 * 1.2, 0.02);
    assert!(answer.checks.all_pass());
}

#[test]
fn supervisors_and_researchers_share_a_limit_and_a_prompt() {
    let answer = answer(shipped_scenario("fleet-of-agents.toml", None));
    // what the file's comment says
    let rate = |rate| answer.summary.rate(rate).unwrap().value;
    assert_close(rate(agent_sim::stats::Rate::CostPerAnswer), 0.1897, 2e-3);
    assert!((0.015..0.035).contains(&rate(agent_sim::stats::Rate::Failed)));
    assert!(answer.summary.nodes[1].warm.unwrap().value > 0.985);
    let calls = summary(&answer).station(Place::Model).unwrap();
    assert_close(calls.came_per_hour.value * (1.0 - calls.turned_away.value) / 60.0, 110.0, 0.03);
}

#[test]
fn agents_that_nobody_waits_for_are_in_the_money_however_long_they_run() {
    // half of them run for two minutes, half for forty, and their callers are over after a second
    let text = "[price]\ninput = 3\noutput = 15\n[session]\nturns = 2\n\
        [[tools]]\nname = \"ask\"\nagent = \"helper\"\ntimeout = \"1s\"\n\
        [agents.helper]\nprompt = { task = 1_000 }\nmodel = { first_token = \"1m\" }\n\
        session = { turns = { choices = { \"2\" = 0.5, \"40\" = 0.5 } } }\n";
    let fleet =
        "[fleet]\narrivals = { poisson = { per_hour = 600 } }\nhorizon = \"4h\"\nwarm_up = \"1h\"\nreplications = 20";
    let together = answer(scenario(&format!("{text}{fleet}")));
    let cost = together.summary.metric("cost_usd").unwrap().mean;
    let expected = 21.0 * 1_000.0 * 3e-6;
    assert!(((cost.value - expected) / cost.se).abs() < 4.0, "{cost:?} {expected}");
    let lingering = summary(&together).lingering_at_end.value;
    // Little: 600 an hour, half of them for two minutes and half for forty
    assert_close(lingering, 600.0 * 21.0 / 60.0, 0.05);
    let said = agent_sim::report::terminal(&together, agent_sim::report::Style::PLAIN);
    assert!(said.contains("agents that they had given up still run"), "{said}");
}

#[test]
fn a_ping_belongs_to_the_gap_between_two_calls() {
    let text = |more: &str| {
        format!(
            "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[prompt]\nsystem = 5_000\n\
             [cache]\nlifetime = \"5m\"\nkeep_alive = \"4m\"\n{more}"
        )
    };
    // none during the last call, however long it takes
    let last = text("[model]\nfirst_token = \"9m\"\n[session]\nturns = 1\n");
    are_the_same_alone_and_in_a_fleet(scenario(&last), "last");
    let some = text("[model]\nfirst_token = { exponential = { mean = \"5m\" } }\n[session]\nturns = 3\n");
    are_the_same_alone_and_in_a_fleet(scenario(&some), "some");
    // the one that is due when the next call begins comes first; its money is the next turn's
    let tie = text("[session]\nturns = 3\n[[tools]]\nname = \"wait\"\nlatency = \"8m\"\nresult = 100\n");
    let tie = scenario(&tie);
    assert_close(mean(&answer(tie.clone()), "keep_alive_pings"), 4.0, 1e-12);
    are_the_same_alone_and_in_a_fleet(tie, "tie");
    // no call comes after a message that doesn't fit any more
    let full =
        text("[session]\nturns = 1\nmessages = 2\nmessage = 4_000\nthink = \"20m\"\n[context]\nwindow = 8_000\n");
    are_the_same_alone_and_in_a_fleet(scenario(&full), "full");
}

#[test]
fn a_ping_comes_before_the_call_that_gets_its_place_at_that_moment() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("times.csv"), "seconds\n0\n1\n").unwrap();
    let text = "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[prompt]\nsystem = 5_000\n\
        [cache]\nlifetime = \"5m\"\nkeep_alive = \"4m\"\n[model]\nfirst_token = \"6m\"\n[session]\nturns = 2\n\
        [fleet]\narrivals = { file = \"times.csv\" }\nhorizon = \"5h\"\nreplications = 1\nlimits.concurrent = 1";
    let request = agent_sim::scenario::Request::default();
    let scenario = agent_sim::scenario::Scenario::parse(text, "test.toml", folder.path(), &request).unwrap();
    // twelve minutes lie between the two calls of each, the wait for the other one's among them
    let pings: Vec<u64> = records(&scenario).iter().map(|record| record.keep_alive_pings).collect();
    assert_eq!(pings, [3, 3]);
}

#[test]
fn whoever_keeps_a_prompt_for_longer_keeps_it_for_all() {
    // the agent is called by the main agent, which has no cache, and by another one, whose hour it takes over
    let text = |first: &str, second: &str| {
        format!(
            "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\ncache_write_1h = 6\n\
             [session]\nturns = 2\n{first}{second}\
             [agents.b]\nprompt = {{ system = 5_000 }}\nsession = {{ turns = 1 }}\n\
             [agents.a]\ncache = {{ lifetime = \"1h\" }}\nsession = {{ turns = 2 }}\n\
             tools = [{{ name = \"b\", agent = \"b\" }}]\n\
             [fleet]\narrivals = {{ poisson = {{ per_hour = 10 }} }}\nhorizon = \"300h\"\nreplications = 4"
        )
    };
    let (a, b) = (
        "[[tools]]\nname = \"a\"\nagent = \"a\"\n",
        "[[tools]]\nname = \"b\"\nagent = \"b\"\ncalls = { choices = { \"0\" = 0.99, \"1\" = 0.01 } }\n",
    );
    for text in [text(a, b), text(b, a)] {
        let answer = answer(scenario(&text));
        let below = answer.scenario.agents.iter().position(|node| node.depth == 2).unwrap();
        let warm = answer.summary.nodes[below].warm.unwrap();
        // all but those that come after an hour without a session
        assert!(warm.value > 0.999, "{warm:?}");
    }
}

#[test]
fn a_read_restarts_the_clock_under_which_a_prompt_was_written() {
    // one caller in twenty has an hour, the others five minutes; six sessions an hour, so that an hour's entry never dies
    let text = "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\ncache_write_1h = 6\n\
        [session]\nturns = 2\n[cache]\nlifetime = \"5m\"\n\
        [[tools]]\nname = \"a\"\nagent = \"a\"\ncalls = { choices = { \"0\" = 0.95, \"1\" = 0.05 } }\n\
        [[tools]]\nname = \"b\"\nagent = \"b\"\n\
        [agents.b]\nprompt = { system = 5_000 }\nsession = { turns = 1 }\n\
        [agents.a]\ncache = { lifetime = \"1h\" }\nsession = { turns = 2 }\ntools = [{ name = \"b\", agent = \"b\" }]\n\
        [fleet]\narrivals = { poisson = { per_hour = 6 } }\nhorizon = \"1000h\"\nwarm_up = \"200h\"\nreplications = 4";
    let answer = answer(scenario(text));
    let own = answer.scenario.agents.iter().position(|node| node.tool == "b" && node.depth == 1).unwrap();
    let warm = answer.summary.nodes[own].warm.unwrap();
    assert!(warm.value > 0.9, "{warm:?}");
}

#[test]
fn more_than_a_tool_of_an_agent_can_do_is_told_before_anything_is_played() {
    // a session a second calls the helper twice itself and twice through the leader, and each helper reads twice, a second
    // each, and lists six times
    let text = "model.first_token = \"100ms\"\n[session]\nturns = 3\n\
        [[tools]]\nname = \"ask\"\nagent = \"helper\"\n[[tools]]\nname = \"lead\"\nagent = \"leader\"\n\
        [agents.leader]\nsession = { turns = 2 }\n\
        tools = [{ name = \"note\", latency = \"1s\", capacity = 4 }, { name = \"ask\", agent = \"helper\" }]\n\
        [agents.helper]\nsession = { turns = 3 }\ntools = [{ name = \"list\", calls = 3, latency = \"5s\" },\n\
        { name = \"read\", capacity = 9, latency = { exponential = { mean = \"1s\" } } }]\n\
        [fleet]\narrivals = { poisson = { per_hour = 3600 } }\nhorizon = \"1h\"\nreplications = 2";
    answer(scenario(text));
    let simulated = |set: &str| {
        let options = agent_sim::simulate::Options::default();
        agent_sim::simulate::simulate(scenario_with(text, &[set]), options, &agent_sim::simulate::Silent)
    };
    for (set, needed, place) in [
        ("agents.helper.tools.read.capacity=7", 8.0, "helper.read"),
        ("agents.leader.tools.note.latency=\"3s\"", 6.0, "leader.note"),
        // three calls of the main agent, two of each of two leaders, three of each of four helpers
        ("fleet.limits.concurrent=1", 1.9, "the model"),
    ] {
        let Err(agent_sim::Error::Unstable(load)) = simulated(set) else { panic!("{set} is played") };
        assert_close(load.needed, needed, 1e-9);
        assert_eq!(load.name, place);
    }
}

#[test]
fn a_tool_of_an_agent_can_be_out_of_order_wherever_the_agent_is_called() {
    // the agent is called by the main agent, by its small model, and by another agent; its tool is down for half of the
    // horizon, for six attempts in ten
    let text = "model.first_token = \"100ms\"\n[session]\nturns = 2\n\
        [[tools]]\nname = \"ask\"\nagent = \"helper\"\n[[tools]]\nname = \"lead\"\nagent = \"leader\"\n\
        [agents.leader]\nsession = { turns = 2 }\n\
        tools = [{ name = \"read\" }, { name = \"ask\", agent = \"helper\" }]\n\
        [agents.helper]\nsession = { turns = 2 }\ntools = [{ name = \"list\" }, { name = \"read\", timeout = \"1s\" }]\n\
        [routing]\nshare = 0.5\nsmall = { model = { first_token = \"50ms\" } }\n\
        [fleet]\narrivals = { poisson = { per_hour = 3600 } }\nhorizon = \"2h\"\nwarm_up = \"0s\"\nreplications = 10\n\
        [[fleet.outages]]\nof = \"helper.read\"\nfrom = \"1h\"\nfor = \"1h\"\nshare = 0.6\nas = \"lost\"";
    let answer = answer(scenario(text));
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    let stations = &summary(&answer).stations;
    assert!(stations.iter().any(|station| station.place.name(&answer.scenario.places) == "helper.read"));
    for station in stations {
        let name = station.place.name(&answer.scenario.places);
        if name == "helper.read" {
            // each session calls the helper once itself and once through the leader
            assert_close(station.came_per_hour.value, 2.0 * 3600.0, 0.01);
            assert!(((station.down.value - 0.3) / station.down.se).abs() < 4.0, "{:?}", station.down);
        } else {
            assert!(station.down.value <= 0.0, "{name}: {:?}", station.down);
        }
    }
    let (with, without) = (mean(&answer, "latency_s"), text.replace("share = 0.6", "share = 0"));
    // a lost attempt takes 1 s; of the two helpers that a session has side by side the one under the leader takes 0.2 s longer,
    // 0.1 s where all run on the small model
    let waits_s = 0.5 * (0.6 * 1.0 + 0.4 * 0.6 * (0.8 + 0.9) / 2.0);
    assert_close(with - mean(&crate::support::answer(scenario(&without)), "latency_s"), waits_s, 0.02);
}

#[test]
fn what_could_hang_for_ever_or_have_two_names_is_a_mistake() {
    let refused = |text: &str| {
        let request = agent_sim::scenario::Request::default();
        let error = agent_sim::scenario::Scenario::parse(text, "test.toml", std::path::Path::new(""), &request);
        error.unwrap_err().to_string()
    };
    let lost = "[[fleet.outages]]\nof = \"model\"\nfor = \"10m\"\nas = \"lost\"\n";
    let waits = ONE_EACH.replace("first_token =", "timeout = \"30s\"\nfirst_token =");
    scenario(&format!("{waits}\n{lost}"));
    let hangs = waits.replace("session = { turns = 1 }", "session = { turns = 1 }\nmodel = { timeout = \"off\" }");
    assert!(refused(&format!("{hangs}\n{lost}")).contains("needs a client that notices"));
    let of_tool = lost.replace("\"model\"", "\"helper.read\"");
    let reads = |tool: &str| ONE_EACH.replace("turns = 1 }", &format!("turns = 2 }}\ntools = [{{ {tool} }}]"));
    scenario(&format!("{}\n{of_tool}", reads("name = \"read\", timeout = \"1s\"")));
    let hangs = refused(&format!("{}\n{of_tool}", reads("name = \"read\"")));
    assert!(hangs.contains("needs a client that notices"), "{hangs}");
    let of_nobody = lost.replace("\"model\"", "\"read\"");
    let named = refused(&format!("{}\n{of_nobody}", reads("name = \"read\"")));
    assert!(named.contains("\"read\" is a tool of an agent") && named.contains("did you mean \"helper.read\"?"));
    let twice = ONE_EACH.replace("session = { turns = 1 }", "session = { turns = 2 }\ntools = [{ name = \"read\" }]");
    let twice = twice.replace("name = \"ask\"", "name = \"helper.read\"");
    assert!(refused(&twice).contains("is called like a tool of an agent"));
    let both = "[agents.\"helper.deep\"]\nsession = { turns = 1 }\ntools = [{ name = \"c\" }]\n\
        [[tools]]\nname = \"other\"\nagent = \"helper.deep\"\n[[agents.helper.tools]]\nname = \"deep.c\"\n";
    assert!(refused(&ONE_EACH.replace("[fleet]", &format!("{both}[fleet]"))).contains("two tools of agents"));
}

#[test]
fn what_is_used_up_while_more_comes_than_goes_grows() {
    // a load of 1.035 on twenty servers, with users who think for minutes in between
    let text = "[session]\nturns = 2\nmessages = 3\nthink = { exponential = { mean = \"4m\" } }\n\
        [[tools]]\nname = \"fetch\"\ncalls = 4\ncapacity = 20\nlatency = { exponential = { mean = \"7s\" } }\ntimeout = \"1h\"\nrejected = 0.0143\n\
        [fleet]\narrivals = { poisson = { per_hour = 900 } }\nhorizon = \"8h\"\nreplications = 10";
    let mut scenario = scenario(text);
    // so that it is played, and not told before
    scenario.model.budget.time_s = Some(1e9);
    let answer = answer(scenario);
    let grows = summary(&answer).growth.as_ref();
    assert!(grows.is_some_and(|growth| growth.saturated.is_some()), "{grows:?}");
}

#[test]
fn what_agents_wait_for_is_named_and_not_who_waits() {
    let sets = ["tools.ask.capacity=3", "fleet.limits.concurrent=2", "fleet.limits.requests_per_minute=1_000_000"];
    let answer = answer(scenario_with(ONE_EACH, &sets));
    let growth = summary(&answer).growth.as_ref().unwrap();
    assert_eq!(growth.saturated, Some(agent_sim::stats::Bottleneck::Station(Place::Model)));
}
