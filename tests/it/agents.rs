//! Agents of agents, tools that are found, models that are chosen: each by hand, in scenarios whose figures can be added
//! up on paper, and the statistics of what is random.

use agent_sim::session::Outcome;
use agent_sim::simulate::Answer;
use agent_sim::stats::Rate;

use crate::support::{assert_close, mean, run};

/// A dime per token of input and output, a tenth of it for a read, a quarter more for a write.
const PRICES: &str = "
[price]
input = 100_000
output = 100_000
cache_read = 10_000
cache_write = 125_000
";

fn dimes(usd: f64) -> f64 {
    usd * 10.0
}

fn rate(answer: &Answer, rate: Rate) -> f64 {
    answer.summary.rate(rate).unwrap().value
}

/// A main agent of three calls (100, then + 5 + results) whose two phases call `calls` sessions of an agent: prefix 50,
/// two calls, output 2, a tool of 4 tokens.
fn fan_out(calls: u64, cache: &str, rest: &str) -> String {
    format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 100\n[session]\nturns = 3\noutput = 5\n[[tools]]\nname = \"research\"\n\
         agent = \"researcher\"\ncalls = {calls}\nresult = 10\n{rest}\n[agents.researcher]\nprompt = {{ system = 50 }}\n\
         session = {{ turns = 2, output = 2 }}\ntools = [{{ name = \"look\", result = 4, latency = \"10s\" }}]\n[cache]\n{cache}\n"
    )
}

#[test]
fn parallel_agents_cost_what_the_form_says_cold_and_warm() {
    // uncached: each session sends 50 and 56 and writes 4
    let answer = run(&fan_out(4, "lifetime = \"off\"", ""), 200);
    let own = 100.0 + 145.0 + 190.0;
    assert_eq!(mean(&answer, "input_tokens"), own + 8.0 * 106.0);
    assert_eq!(mean(&answer, "output_tokens"), 15.0 + 8.0 * 4.0);
    assert_close(dimes(mean(&answer, "cost_usd")), own + 15.0 + 8.0 * 110.0, 1e-12);
    // a call, ten seconds, a call: the phase takes as long as one of them
    assert_eq!(mean(&answer, "latency_s"), 3.0 + 2.0 * 12.0);
    assert_eq!((mean(&answer, "turns"), mean(&answer, "tool_calls")), (3.0, 8.0));
    // cached: the first phase's four sessions write the prefix each, the second phase's read it
    let answer = run(&fan_out(4, "lifetime = \"5m\"", ""), 200);
    let cold = 1.25 * 50.0 + (0.1 * 50.0 + 1.25 * 6.0);
    let warm = 0.1 * 50.0 + (0.1 * 50.0 + 1.25 * 6.0);
    let own = 1.25 * 190.0 + 0.1 * (100.0 + 145.0);
    assert_close(dimes(mean(&answer, "cost_input_usd")), own + 4.0 * cold + 4.0 * warm, 1e-12);
    let node = &answer.summary.nodes[1];
    assert_eq!((node.sessions.value, node.turns.value, node.warm.unwrap().value), (8.0, 16.0, 0.5));
    assert_close(dimes(node.cost_usd.value), 4.0 * (cold + warm) + 8.0 * 4.0, 1e-12);
    assert_eq!(node.duration_s.unwrap().value, 12.0);
    assert_close(dimes(answer.summary.nodes[0].cost_usd.value), own + 15.0, 1e-12);
    // warm from elsewhere
    let answer = run(&fan_out(4, "lifetime = \"5m\"\nwarm_prefix = 1", ""), 200);
    assert_close(dimes(mean(&answer, "cost_input_usd")), own - 1.15 * 100.0 + 8.0 * warm, 1e-12);
    assert!(answer.checks.all_pass());
}

#[test]
fn agents_one_after_another_read_what_the_first_wrote() {
    let answer =
        run(&fan_out(4, "lifetime = \"5m\"", "").replace("turns = 3", "turns = 3\ntool_calls = \"sequential\""), 200);
    assert_eq!(answer.summary.nodes[1].warm.unwrap().value, 7.0 / 8.0);
    assert_eq!(mean(&answer, "latency_s"), 3.0 + 8.0 * 12.0);
    // those of another model or another agent don't share it
    let other = "[[tools]]\nname = \"other\"\nagent = \"reader\"\nafter = [\"research\"]\n[agents.reader]\nprompt = { system = 50 }\nsession = { turns = 1, output = 2 }\n";
    let answer = run(&fan_out(1, "lifetime = \"5m\"", other), 200);
    assert_eq!(answer.summary.nodes.len(), 3);
    assert_eq!(answer.summary.nodes[2].warm.unwrap().value, 0.5);
}

#[test]
fn a_prefix_is_cold_again_after_its_lifetime() {
    // sessions of ten minutes: each phase begins ten minutes after the last one's first call, eight after its second
    let text = fan_out(2, "lifetime = \"5m\"", "").replace("10s", "10m");
    let answer = run(&text, 200);
    // the prefix was used when the second call began, one second before the phase ended
    assert_eq!(answer.summary.nodes[1].warm.unwrap().value, 0.5);
    // the caller's cache, though, has expired each time
    assert_eq!(mean(&answer, "expired_gaps"), 2.0);
    let slow_caller = "[[tools]]\nname = \"wait\"\nafter = [\"research\"]\nlatency = \"6m\"\n";
    let answer = run(&fan_out(2, "lifetime = \"5m\"", slow_caller), 200);
    assert_eq!(answer.summary.nodes[1].warm.unwrap().value, 0.0);
}

#[test]
fn a_slow_agent_expires_its_caller() {
    // 362 seconds in all, as on record: the five-minute cache of the caller is gone, the agent's own isn't
    let text =
        fan_out(1, "lifetime = \"5m\"", "").replace("10s", "180s").replace("turns = 2, output", "turns = 3, output");
    let answer = run(&text, 200);
    assert_eq!(answer.summary.nodes[1].duration_s.unwrap().value, 363.0);
    assert_eq!(mean(&answer, "expired_gaps"), 2.0);
    assert_close(dimes(answer.summary.nodes[0].cost_usd.value), 1.25 * (100.0 + 115.0 + 130.0) + 15.0, 1e-12);
    let quick = run(&text.replace("180s", "140s"), 200);
    assert_eq!(mean(&quick, "expired_gaps"), 0.0);
}

#[test]
fn agents_nest() {
    let text = format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\n[session]\nturns = 2\noutput = 1\n[[tools]]\nname = \"lead\"\nagent = \"lead\"\ncalls = 2\nresult = 7\n\
         [agents.lead]\nprompt.system = 10\nsession.turns = 3\ntools = [{{ name = \"work\", agent = \"worker\", calls = 3, result = 2 }}]\n\
         [agents.worker]\nprompt.task = 20\nsession = {{ turns = 2, output = 4 }}\ntools = [{{ name = \"look\", latency = \"2s\" }}]\n"
    );
    let answer = run(&text, 200);
    let nodes = &answer.summary.nodes;
    assert_eq!(nodes.iter().map(|node| node.sessions.value).collect::<Vec<_>>(), [1.0, 2.0, 12.0]);
    // 0 + 1 + 14; 10, 17, 24; 20, 24
    assert_eq!(nodes.iter().map(|node| node.input_tokens.value).collect::<Vec<_>>(), [15.0, 2.0 * 51.0, 12.0 * 44.0]);
    assert_eq!(mean(&answer, "input_tokens"), 15.0 + 102.0 + 528.0);
    assert_eq!(mean(&answer, "output_tokens"), 2.0 + 2.0 * 3.0 + 12.0 * 8.0);
    // a worker takes 4 s, a lead three calls and two phases of it
    assert_eq!(nodes[1].duration_s.unwrap().value, 3.0 + 2.0 * 4.0);
    assert_eq!(mean(&answer, "latency_s"), 2.0 + 11.0);
    let total: f64 = nodes.iter().map(|node| node.cost_usd.value).sum();
    assert_close(mean(&answer, "cost_usd"), total, 1e-12);
}

#[test]
fn an_agent_is_a_call_like_any_other() {
    // given up after 5 s, tried again after 1 s: both sessions are paid for, and both run the full time
    let text = fan_out(
        1,
        "lifetime = \"off\"",
        "timeout = \"5s\"\nerror_result = 3\nprice = 0.2\nretry = { attempts = 2, base = \"1s\", jitter = \"none\" }",
    );
    let answer = run(&text, 200);
    assert_eq!((mean(&answer, "attempts"), mean(&answer, "executions"), mean(&answer, "duplicates")), (4.0, 4.0, 2.0));
    assert_eq!(answer.summary.nodes[1].sessions.value, 4.0);
    assert_eq!(mean(&answer, "latency_s"), 3.0 + 2.0 * 11.0);
    assert_eq!(answer.summary.nodes[0].input_tokens.value, 100.0 + 108.0 + 116.0);
    assert_close(dimes(mean(&answer, "cost_tools_usd")), 8.0, 1e-12);
    // a second copy is a second session; the first answers first
    let answer = run(&fan_out(1, "lifetime = \"off\"", "hedge_after = \"5s\""), 200);
    assert_eq!((answer.summary.nodes[1].sessions.value, mean(&answer, "hedges")), (4.0, 2.0));
    assert_eq!(mean(&answer, "latency_s"), 3.0 + 24.0);
    // one that never arrives costs nothing
    let answer = run(&fan_out(1, "lifetime = \"off\"", "timeout = \"5s\"\nlost_request = 1"), 200);
    assert_eq!(answer.summary.nodes[1].sessions.value, 0.0);
    assert_close(dimes(mean(&answer, "cost_input_usd")), 100.0 + 105.0 + 110.0, 1e-12);
    // one that ends without its answer has failed
    let text = fan_out(1, "lifetime = \"off\"", "error_result = 3")
        .replace("turns = 2, output", "turns = 2, max_turns = 1, output");
    let answer = run(&text, 200);
    assert_eq!(answer.summary.nodes[1].unanswered.unwrap().value, 1.0);
    assert_eq!(answer.summary.nodes[0].input_tokens.value, 100.0 + 108.0 + 116.0);
    assert_eq!(rate(&answer, Rate::Availability), 0.0);
}

#[test]
fn an_agent_takes_over_what_it_does_not_say() {
    let prices = "[model]\nname = \"claude-sonnet-4-6\"\nfirst_token = \"1s\"\n[price]\ninput = 2\n";
    let text = |model: &str| {
        format!(
            "{prices}[session]\nturns = 2\noutput = 1_000\nmessages = 3\nthink = \"1h\"\n[[tools]]\nname = \"t\"\nagent = \"a\"\n[agents.a]\n\
             prompt.system = 100_000\nsession = {{ turns = 1, output = 0 }}\n{model}"
        )
    };
    // the caller's price, but not for another model; one message, whatever the caller's conversation
    let answer = run(&text(""), 200);
    assert_eq!(answer.summary.nodes[1].sessions.value, 3.0);
    assert_close(answer.summary.nodes[1].cost_usd.value, 0.6, 1e-12);
    let answer = run(&text("model.name = \"claude-haiku-4-5\"\n"), 200);
    assert_close(answer.summary.nodes[1].cost_usd.value, 0.3, 1e-12);
    assert_eq!(answer.summary.nodes[1].duration_s.unwrap().value, 1.0);
    let answer = run(&text("model = { name = \"claude-haiku-4-5\", first_token = \"3s\" }\nprice.input = 7\n"), 200);
    assert_close(answer.summary.nodes[1].cost_usd.value, 2.1, 1e-12);
    assert_eq!(answer.summary.nodes[1].duration_s.unwrap().value, 3.0);
}

#[test]
fn a_budget_is_one_for_the_whole_tree() {
    // the third of four sessions would pass the budget
    let budget = "[budget]\ndollars = 40\n";
    let text = fan_out(4, "lifetime = \"off\"", budget).replace("[model]", "[model]\nmax_output = 5");
    let answer = run(&text, 200);
    let spent = dimes(mean(&answer, "cost_usd"));
    assert!(spent <= 400.0, "{spent}");
    // 105 for the first call, 110 for a session; the third has its first call, and its second might pass the budget
    assert_close(spent, 105.0 + 2.0 * 110.0 + 52.0, 1e-12);
    let ended = answer.summary.outcomes.iter().find(|(outcome, _)| *outcome == Outcome::Budget).unwrap().1;
    assert_eq!(ended, 200);
    let text = fan_out(4, "lifetime = \"off\"", "[budget]\ntime = \"8s\"\n");
    let answer = run(&text, 200);
    assert_eq!(mean(&answer, "latency_s"), 8.0);
    // a limit of turns is the main agent's own
    let answer = run(&fan_out(4, "lifetime = \"off\"", "[budget]\nturns = 3\n"), 200);
    assert_eq!((mean(&answer, "turns"), answer.summary.nodes[1].turns.value), (3.0, 16.0));
}

/// Two servers of ten tools of 30 tokens each; a tool of each is called in every phase.
fn found(server: &str, rest: &str) -> String {
    format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 100\n[session]\nturns = 3\noutput = 5\n[[servers]]\nname = \"a\"\ntools = 10\n\
         tokens_per_tool = 30\n{server}\n[[servers]]\nname = \"b\"\ntools = 10\ntokens_per_tool = 30\n{server}\n[[tools]]\nname = \"x\"\nserver = \"a\"\n\
         result = 20\nlatency = \"2s\"\nerror_result = 1\nerror = 0\n[[tools]]\nname = \"y\"\nserver = \"b\"\nresult = 20\ncalls = 2\n{rest}"
    )
}

#[test]
fn tools_are_found_when_they_are_first_needed() {
    let search = "[tool_search]\ntokens = 40\nfound = 5\noutput = 8\nlatency = \"500ms\"\n";
    let answer = run(&found("loading = \"search\"", search), 200);
    // upfront: system and the search tool. After the first call two searches, each with its own call
    let prompts = [140.0, 145.0, 145.0 + 158.0, 145.0 + 2.0 * 158.0 + 60.0, 145.0 + 2.0 * 158.0 + 60.0 + 65.0];
    assert_eq!(mean(&answer, "input_tokens"), prompts.iter().sum::<f64>());
    assert_eq!(mean(&answer, "output_tokens"), 15.0 + 16.0);
    assert_eq!((mean(&answer, "turns"), mean(&answer, "tool_searches")), (3.0, 2.0));
    assert_eq!((mean(&answer, "latency_s"), mean(&answer, "tool_search_s")), (3.0 + 2.0 * 1.5 + 2.0 * 2.0, 3.0));
    assert_eq!((rate(&answer, Rate::Served), rate(&answer, Rate::ToolsFound)), (1.0, 1.0));
    let sources = answer.summary.sources.clone().unwrap();
    assert_close(dimes(sources.searches.usd()) / 200.0, 145.0 + 303.0 + 16.0, 1e-12);
    assert_eq!(answer.scenario.servers, ["a", "b", "tool_search"]);
    let upfront = run(&found("", search), 200);
    assert_eq!(mean(&upfront, "input_tokens"), 3.0 * 700.0 + 65.0 + 130.0);
    assert!(answer.checks.all_pass() && upfront.checks.all_pass());
}

#[test]
fn a_tool_that_is_not_found_fails() {
    let search = "[tool_search]\nfound = 5\noutput = 8\nlatency = \"500ms\"\nhit_rate = 0\nmax_searches = 3\n";
    let answer = run(&found("loading = \"search\"", search), 200);
    assert_eq!((mean(&answer, "tool_searches"), rate(&answer, Rate::Served)), (6.0, 0.0));
    // calls, but no attempts; what enters the history is the text of the failure
    assert_eq!((mean(&answer, "tool_calls"), mean(&answer, "attempts")), (6.0, 0.0));
    let searching: f64 = (0..6).map(|k| 105.0 + 158.0 * f64::from(k)).sum();
    let after = 105.0 + 6.0 * 158.0 + 1.0;
    assert_eq!(mean(&answer, "input_tokens"), 100.0 + searching + after + after + 6.0);
    assert_eq!(mean(&answer, "latency_s"), 3.0 + 6.0 * 1.5);
    assert!(answer.checks.all_pass());
}

#[test]
fn a_share_of_searches_hits() {
    // the literature's rates for two search tools: of the sessions that need one tool at most 47 % and 77 % are served
    for (hit_rate, searches, ceiling) in [(0.47, 1, 0.47), (0.77, 1, 0.77), (0.47, 2, 1.0 - 0.53 * 0.53)] {
        let text = format!(
            "[session]\nturns = 4\noutput = 5\n[[servers]]\nname = \"a\"\ntools = 60\ntokens_per_tool = 200\nloading = \"search\"\n[[tools]]\n\
             name = \"x\"\nserver = \"a\"\n[tool_search]\nfound = 5\nhit_rate = {hit_rate}\nmax_searches = {searches}\n"
        );
        let answer = run(&text, 20_000);
        let served = answer.summary.rate(Rate::Served).unwrap();
        assert!((served.value - ceiling).abs() < 4.0 * served.se, "{served:?} {ceiling}");
        assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    }
}

#[test]
fn a_summary_comes_before_a_search_too() {
    let search = "[tool_search]\nfound = 5\noutput = 8\n[context]\ncompact_at = 250\nsummary = 50\n";
    let answer = run(&found("loading = \"search\"", search), 200);
    // 100; search of 105; 263 is too long: summary, search of 150; 308: summary; 150, then 215
    let searches = 105.0 + 263.0 + 150.0;
    assert_eq!(mean(&answer, "input_tokens"), 100.0 + searches + (150.0 + 158.0 + 60.0) + 150.0 + 215.0);
    assert_eq!((mean(&answer, "summaries"), mean(&answer, "tool_searches")), (2.0, 2.0));
}

#[test]
fn tools_that_are_called_from_code() {
    let answer = run(&found("loading = \"code\"\nread_tokens = 70\nkept = 15", ""), 200);
    // of 20 and 40 tokens of results 15 stay each
    assert_eq!(mean(&answer, "input_tokens"), 100.0 + (105.0 + 140.0 + 30.0) + (110.0 + 140.0 + 60.0));
    assert!(answer.checks.all_pass());
    // the literature's: 200 results of 150 tokens leave 200 tokens instead of 30,000
    let text = |loading: &str| {
        format!(
            "[session]\nturns = 2\n[[servers]]\nname = \"a\"\ndefinition_tokens = 0\n{loading}\n[[tools]]\nname = \"x\"\nserver = \"a\"\n\
             calls = 200\nresult = 150\n"
        )
    };
    assert_eq!(mean(&run(&text(""), 3), "input_tokens"), 30_000.0);
    assert_eq!(mean(&run(&text("loading = \"code\"\nread_tokens = 0\nkept = 200"), 3), "input_tokens"), 200.0);
    // forty tools of 300 tokens weigh 12,000 in every call
    let many = "[session]\nturns = 5\n[[servers]]\nname = \"a\"\ntools = 40\ntokens_per_tool = 300\n";
    assert_eq!(mean(&run(many, 3), "input_tokens"), 5.0 * 12_000.0);
}

#[test]
fn some_sessions_run_on_a_small_model_first() {
    let text = |routing: &str| {
        format!(
            "{PRICES}[model]\nfirst_token = \"3s\"\n[prompt]\nsystem = 100\n[session]\nturns = 2\noutput = 10\n[routing]\n{routing}\n\
             small = {{ model = {{ first_token = \"1s\" }}, price = {{ input = 10_000, output = 10_000 }} }}\n"
        )
    };
    let all = run(&text("share = 1\nredo = 1"), 200);
    // 100 + 110 sent, 20 written: $2.3 on the small model, then $23
    assert_close(mean(&all, "cost_usd"), 2.3 + 23.0, 1e-12);
    assert_eq!((mean(&all, "latency_s"), mean(&all, "turns"), mean(&all, "runs")), (8.0, 4.0, 2.0));
    assert_close(mean(&run(&text("share = 1"), 3), "cost_usd"), 2.3, 1e-12);
    assert_close(mean(&run(&text("share = 0\nredo = 1"), 3), "cost_usd"), 23.0, 1e-12);
    let answer = run(&text("share = 0.6\nredo = 0.25"), 20_000);
    let cost = answer.summary.metric("cost_usd").unwrap().mean;
    assert!((cost.value - (0.6 * 2.3 + 0.55 * 23.0)).abs() < 4.0 * cost.se, "{cost:?}");
    let (small, redone) =
        (answer.summary.rate(Rate::RunsOnSmallModel).unwrap(), answer.summary.rate(Rate::Redone).unwrap());
    assert!((small.value - 0.6).abs() < 4.0 * small.se && (redone.value - 0.15).abs() < 4.0 * redone.se);
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
}

#[test]
fn a_session_is_tried_until_it_succeeds() {
    let text = |outcome: &str| format!("{PRICES}[session]\nturns = 3\noutput = 10\n[outcome]\n{outcome}\n");
    let one = run(&text("success = 0.8"), 20_000);
    let success = rate(&one, Rate::Success);
    assert!((success - 0.8).abs() < 4.0 * (0.16_f64 / 20_000.0).sqrt());
    assert_close(dimes(rate(&one, Rate::CostPerSuccess)), 60.0 / success, 1e-12);
    let turns = run(&text("turn_success = 0.9"), 20_000);
    assert!((rate(&turns, Rate::Success) - 0.729).abs() < 4.0 * (0.2_f64 / 20_000.0).sqrt());
    let three = run(&text("success = 0.5\nattempts = 3"), 20_000);
    assert!((rate(&three, Rate::Success) - 0.875).abs() < 4.0 * (0.11_f64 / 20_000.0).sqrt());
    // 1 + 1/2 + 1/4 tries
    let runs = three.summary.metric("runs").unwrap().mean;
    assert!((runs.value - 1.75).abs() < 4.0 * runs.se, "{runs:?}");
    // what isn't answered hasn't succeeded
    let cut = run(&text("success = 1\nattempts = 2").replace("turns = 3", "turns = 3\nmax_turns = 2"), 200);
    assert_eq!((rate(&cut, Rate::Success), mean(&cut, "turns")), (0.0, 4.0));
    for answer in [&one, &turns, &three, &cut] {
        assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    }
}

/// Prices for figures in dollars, and a main agent of 1,000 tokens that writes 100 a turn.
const SIMPLE: &str = "
[price]
input = 3.0
output = 15.0
cache_read = 0.3
cache_write_5m = 3.75
[cache]
lifetime = \"5m\"
[prompt]
system = 1000
";

/// The rows of the tree: sessions, tokens sent.
fn rows(answer: &Answer) -> Vec<(f64, f64)> {
    answer.summary.nodes.iter().map(|node| (node.sessions.value, node.input_tokens.value)).collect()
}

#[test]
fn rooms_that_served_another_agent_are_empty() {
    let text = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[[tools]]\nname = \"a\"\nagent = \"A\"\n[[tools]]\nname = \"b\"\nagent = \"B\"\n[[tools]]\n\
         name = \"c\"\nagent = \"C\"\n[agents.A]\nprompt = {{ system = 2000 }}\nsession = {{ turns = 2, output = 50 }}\n\
         tools = [{{ name = \"x\", agent = \"X\" }}]\n[agents.X]\nprompt = {{ system = 3000 }}\nsession = {{ turns = 1, output = 7 }}\n[agents.B]\n\
         prompt = {{ system = 4000 }}\nsession = {{ turns = 1, output = 50 }}\n[agents.C]\nprompt = {{ system = 5000 }}\nsession = {{ turns = 1, output = 50 }}\n"
    );
    let answer = run(&text, 200);
    assert_eq!(rows(&answer), [(1.0, 2100.0), (1.0, 4050.0), (1.0, 3000.0), (1.0, 4000.0), (1.0, 5000.0)]);
    assert_close(answer.summary.nodes.iter().map(|n| n.cost_usd.value).sum(), mean(&answer, "cost_usd"), 1e-12);
}

#[test]
fn agents_of_one_phase_meet_in_the_order_of_time() {
    // the first in the file starts a minute later, and reads what the second wrote
    let text = |late: &str, early: &str| {
        format!(
            "{SIMPLE}[model]\nfirst_token = \"1s\"\n[session]\nturns = 2\noutput = 100\n{late}{early}[agents.A]\nprompt = {{ system = 50_000 }}\n\
             session = {{ turns = 1, output = 50 }}\n"
        )
    };
    let late = "[[tools]]\nname = \"late\"\nagent = \"A\"\napproval = { share = 1, wait = \"60s\" }\n";
    let early = "[[tools]]\nname = \"early\"\nagent = \"A\"\n";
    let (one, other) = (run(&text(late, early), 200), run(&text(early, late), 200));
    for answer in [&one, &other] {
        let warm: f64 = answer.summary.nodes[1..].iter().map(|node| node.warm.unwrap().value).sum();
        assert_eq!(warm, 1.0);
    }
    assert_close(mean(&one, "cost_usd"), mean(&other, "cost_usd"), 1e-12);
    // behind another tool
    let wait = "[[tools]]\nname = \"wait\"\nlatency = \"10s\"\n[[tools]]\nname = \"late\"\nagent = \"A\"\nafter = [\"wait\"]\n";
    let answer = run(&text(wait, early), 200);
    assert_eq!(answer.summary.nodes[1].warm.unwrap().value, 1.0);
    assert_eq!(mean(&answer, "latency_s"), 1.0 + 11.0 + 1.0);
}

#[test]
fn warmth_where_nothing_takes_time() {
    let text = |turns: u64, calls: u64| {
        format!(
            "{SIMPLE}[session]\nturns = {turns}\noutput = 100\n[[tools]]\nname = \"a\"\nagent = \"A\"\ncalls = {calls}\n[agents.A]\n\
             prompt = {{ system = 2000 }}\nsession = {{ turns = 2, output = 50 }}\ntools = [{{ name = \"x\", agent = \"X\" }}]\n[agents.X]\n\
             prompt = {{ system = 3000 }}\nsession = {{ turns = 1, output = 7 }}\n"
        )
    };
    for (turns, calls, warm) in [(4, 1, 2.0 / 3.0), (2, 2, 0.0), (3, 2, 0.5)] {
        for first_token in ["0s", "1s"] {
            let timed = format!("model.first_token = \"{first_token}\"\n{}", text(turns, calls));
            let answer = run(&timed, 200);
            for node in &answer.summary.nodes[1..] {
                assert_close(node.warm.unwrap().value + 1.0, warm + 1.0, 1e-12);
            }
        }
    }
}

#[test]
fn an_idempotent_agent_is_run_once() {
    let text = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[retry]\nattempts = 2\nbase = \"1s\"\njitter = \"none\"\n[[tools]]\nname = \"t\"\nagent = \"A\"\n\
         price = 0.01\nidempotent = true\ntimeout = \"5s\"\n[agents.A]\nprompt = {{ system = 2000 }}\nmodel = {{ first_token = \"8s\" }}\n\
         session = {{ turns = 1, output = 50 }}\n"
    );
    let answer = run(&text, 200);
    // given up after 5 s, asked again after 6: the same session is over after 8
    assert_eq!((mean(&answer, "executions"), answer.summary.nodes[1].sessions.value), (2.0, 1.0));
    assert_eq!(mean(&answer, "latency_s"), 8.0);
    assert_close(mean(&answer, "cost_tools_usd"), 0.01, 1e-12);
    let twice = run(&text.replace("idempotent = true", "idempotent = false"), 200);
    assert_eq!((mean(&twice, "duplicates"), twice.summary.nodes[1].sessions.value), (1.0, 2.0));
}

#[test]
fn a_passed_budget_ends_what_comes_next() {
    let routed = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[budget]\ndollars = 0.005\ncheck = \"after\"\n[routing]\nshare = 1\nredo = 1\n\
         small = {{ price = {{ input = 3 }} }}\n"
    );
    let answer = run(&routed, 200);
    assert_eq!((mean(&answer, "turns"), mean(&answer, "runs")), (1.0, 1.0));
    // an answer that passed it stands, and no further try begins
    let tried = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[budget]\ndollars = 0.006\ncheck = \"after\"\n[outcome]\nsuccess = 0\nattempts = 3\n"
    );
    assert_eq!(mean(&run(&tried, 200), "turns"), 2.0);
    let agents = format!(
        "{SIMPLE}[model]\nfirst_token = \"1s\"\n[session]\nturns = 2\noutput = 100\ntool_calls = \"sequential\"\n[[tools]]\nname = \"t\"\nagent = \"A\"\n\
         calls = 3\n[agents.A]\nprompt = {{ system = 2000 }}\nsession = {{ turns = 2, output = 50 }}\ntools = [{{ name = \"x\", latency = \"10s\" }}]\n\
         [budget]\ncheck = \"after\"\n"
    );
    let answer = run(&format!("{agents}tokens = 9000\n"), 200);
    // 1,100 and two sessions of 4,150 come to 9,400
    assert_eq!(rows(&answer)[1], (3.0, 2.0 * 4050.0));
    let answer = run(&format!("{agents}time = \"20s\"\n"), 200);
    assert_eq!(answer.summary.nodes[1].turns.value, 3.0);
    // fees that can't fall due aren't set aside
    let fees = format!(
        "{SIMPLE}[model]\nmax_output = 100\n[session]\nturns = 3\noutput = 100\n[budget]\ndollars = 0.05\n[[servers]]\nname = \"s\"\ntools = 10\n\
         tokens_per_tool = 50\nloading = \"search\"\n[tool_search]\nfound = 2\nhit_rate = 0\n[[tools]]\nname = \"u\"\nserver = \"s\"\nprice = 0.04\ncalls = 2\n"
    );
    let answer = run(&fees, 200);
    assert_eq!(mean(&answer, "turns"), 3.0);
}

#[test]
fn what_is_said_of_several_runs() {
    let served = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[outcome]\nsuccess = 1\nattempts = 50\n[[servers]]\nname = \"s\"\ntools = 10\ntokens_per_tool = 100\n\
         loading = \"search\"\n[tool_search]\nfound = 2\nhit_rate = 0.5\n[[tools]]\nname = \"t\"\nserver = \"s\"\n"
    );
    let answer = run(&served, 2_000);
    assert_eq!((rate(&answer, Rate::Success), rate(&answer, Rate::Served)), (1.0, 1.0));
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    // time and failures that only the small model has
    let small = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[routing]\nshare = 0.5\nredo = 0.5\n\
         small = {{ model = {{ first_token = \"2s\", rejected = 0.2 }}, price = {{ input = 1 }} }}\n"
    );
    let answer = run(&small, 2_000);
    assert!(mean(&answer, "latency_s") > 0.5 && mean(&answer, "model_attempts") > 1.0);
}

/// Combinations in which a check was wrong once.
#[test]
fn correct_systems_agree() {
    let searched = "[[servers]]\nname = \"s\"\ntools = 10\ntokens_per_tool = 100\nloading = \"search\"\n[[tools]]\nname = \"t\"\nserver = \"s\"\nresult = 50\n";
    let agent = "[[tools]]\nname = \"a\"\nagent = \"A\"\n[agents.A]\nprompt = { system = 2000 }\nsession = { turns = 1, output = 50 }\n";
    let texts = [
        // sessions that end in the middle of their searches
        format!(
            "[model]\nrejected = 0.1\n[session]\nturns = 4\noutput = 10\n{searched}[tool_search]\nfound = 2\nhit_rate = 0.5\nmax_searches = 3\n"
        ),
        format!(
            "[session]\nturns = 4\noutput = 10\n{searched}[tool_search]\nfound = 4\nhit_rate = 0.5\nmax_searches = 3\n[context]\nwindow = 1100\n"
        ),
        // people who are never asked
        format!(
            "[session]\nturns = 4\noutput = 10\n{searched}approval = {{ share = 1, wait = \"10s\" }}\n[tool_search]\nfound = 2\nhit_rate = 0.7\n"
        ),
        // waits of the user, and summaries, between an agent's sessions
        format!("{SIMPLE}[session]\nturns = 2\noutput = 100\nmessages = 3\nthink = \"10m\"\n{agent}"),
        format!(
            "{SIMPLE}[model]\noutput_rate = 1\n[session]\nturns = 4\noutput = 10\n[context]\ncompact_at = 1015\nsummary = 9\n{}",
            agent.replace("output = 50", "output = 285") + "context.compact_at = \"off\"\n"
        ),
        // a loop that is cut has a phase after its last call
        format!("{SIMPLE}[session]\nturns = 4\nmax_turns = 1\noutput = 100\n{searched}[tool_search]\nfound = 2\n"),
        // what is too rare for a sample of this size
        format!(
            "{SIMPLE}[session]\nturns = 2\noutput = 100\n[routing]\nshare = 0.000001\nsmall = {{ price = {{ input = 1 }} }}\n"
        ),
        format!("{SIMPLE}[session]\nturns = 2\noutput = 100\n[outcome]\nsuccess = 0.999999\nattempts = 3\n"),
        format!(
            "{SIMPLE}[session]\nturns = 2\noutput = 100\n{}",
            agent.replace("agent = \"A\"", "agent = \"A\"\nerror = 0.000001\nresult = 5")
        ),
        format!("{SIMPLE}[session]\nturns = 3\noutput = 100\n{agent}cache.warm_prefix = 0.00001\n"),
        format!(
            "{}warm_prefix = 0.00001\n[prompt]\nsystem = 1000\n[session]\nturns = 3\noutput = 100\n",
            SIMPLE.split("[prompt]").next().unwrap()
        ),
        // an idempotent agent whose session is replayed
        "[session]\nturns = 2\noutput = 100\n[[tools]]\nname = \"t\"\nagent = \"x\"\nresult = 200\ntimeout = \"5s\"\nlost_reply = 0.1\nidempotent = true\n\
         retry = { attempts = 3 }\n[agents.x]\nmodel.first_token = \"2s\"\nsession = { turns = 1, output = 50 }\nprompt.task = 10\n"
            .to_owned(),
        // calls that a budget of time cuts
        "[session]\nturns = 2\noutput = 100\n[budget]\ntime = \"20s\"\n[[tools]]\nname = \"t\"\nlatency = { exponential = { mean = \"60s\" } }\n\
         timeout = \"12s\"\nlost_request = 0.05\nlost_reply = 0.05\nretry = { attempts = 3 }\n"
            .to_owned(),
        // phases that the budget of dollars chooses
        format!(
            "{SIMPLE}[session]\nturns = 6\noutput = 100\n{}[tool_search]\nfound = 4\noutput = 900\n[budget]\ndollars = 0.02\ncheck = \"after\"\n",
            searched.replace("result = 50", "result = 50\ncalls = { poisson = { mean = 1 } }\nlatency = { exponential = { mean = \"5s\" } }")
        ),
        // availability that comes to nothing
        "[session]\nturns = 3\n[[tools]]\nname = \"t\"\nlatency = \"100s\"\ntimeout = \"20s\"\nlost_request = 0.1\n"
            .to_owned(),
    ];
    for text in texts {
        let answer = run(&text, 10_000);
        assert!(answer.checks.all_pass(), "{text}\n{:#?}", answer.checks.checks);
    }
}

#[test]
fn a_tree_that_could_send_too_much_is_refused() {
    let text = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[[tools]]\nname = \"a\"\nagent = \"A\"\ncalls = 60_000\n[agents.A]\nprompt = {{ system = 90_000_000_000_000_000 }}\n\
         session = {{ turns = 1, output = 50 }}\n"
    );
    let error =
        agent_sim::scenario::Scenario::parse(&text, "huge.toml", "".as_ref(), &agent_sim::scenario::Request::default())
            .unwrap_err();
    assert!(error.to_string().contains("the sizes overflow"), "{error}");
}

#[test]
fn a_further_try_finds_the_prompt_cached() {
    let text = |think: &str, outcome: &str| {
        format!(
            "{SIMPLE}[session]\nturns = 2\noutput = 100\n{think}[[tools]]\nname = \"t\"\nlatency = \"1s\"\n[outcome]\n{outcome}\n"
        )
    };
    let cost = |answer: &Answer| mean(answer, "cost_input_usd") * 1e6;
    // 1,000 written, then read with 100 written behind them; the second try reads them from the first
    let (first, again) = (3_750.0 + 300.0 + 375.0, 300.0 + 300.0 + 375.0);
    assert_close(cost(&run(&text("", "success = 0\nattempts = 3"), 200)), first + 2.0 * again, 1e-12);
    let by_chance = run(&text("", "success = 0.5\nattempts = 3"), 20_000);
    assert!(by_chance.checks.all_pass(), "{:#?}", by_chance.checks.checks);
    assert!(by_chance.checks.checks.iter().any(|check| check.of == "cost_per_success_usd"));
    // not on another model: its own prompt is written once more
    let routed = format!(
        "{SIMPLE}[session]\nturns = 1\noutput = 0\n[routing]\nshare = 1\nredo = 1\nsmall = {{ price = {{ input = 3 }} }}\n"
    );
    assert_close(cost(&run(&routed, 200)), 2.0 * 3_750.0, 1e-12);
    let twice = format!("{routed}[outcome]\nsuccess = 0\nattempts = 2\n");
    assert_close(cost(&run(&twice, 200)), 2.0 * 3_750.0 + 2.0 * 300.0, 1e-12);
    // nor after its lifetime
    let slow = text("", "success = 0\nattempts = 2").replace("[cache]", "[model]\nfirst_token = \"6m\"\n[cache]");
    assert_close(cost(&run(&slow, 200)), 2.0 * (3_750.0 + 4_125.0), 1e-12);
    // and the agents of a further try find theirs
    let agents = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[[tools]]\nname = \"a\"\nagent = \"A\"\ncalls = 2\n[agents.A]\nprompt = {{ system = 2000 }}\n\
         session = {{ turns = 1, output = 50 }}\n[outcome]\nsuccess = 0\nattempts = 3\n"
    );
    assert_close(run(&agents, 200).summary.nodes[1].warm.unwrap().value, 2.0 / 3.0, 1e-12);
}

#[test]
fn an_agent_that_lacks_a_tool_has_not_served() {
    let text = format!(
        "{SIMPLE}[session]\nturns = 2\noutput = 100\n[[tools]]\nname = \"a\"\nagent = \"A\"\nresult = 5\n[agents.A]\nprompt = {{ system = 2000 }}\n\
         session = {{ turns = 2, output = 50 }}\nservers = [{{ name = \"s\", tools = 10, tokens_per_tool = 20, loading = \"search\" }}]\n\
         tools = [{{ name = \"x\", server = \"s\", latency = \"1s\", lost_reply = 0.5, timeout = \"5s\", retry = {{ attempts = 3 }} }}]\n\
         [tool_search]\nfound = 3\nhit_rate = 0.5\n[outcome]\nsuccess = 1\n"
    );
    let answer = run(&text, 2_000);
    let served = rate(&answer, Rate::Served);
    assert!((served - 0.5).abs() < 0.05, "{served}");
    assert_eq!(rate(&answer, Rate::Success), served);
    let node = &answer.summary.nodes[1];
    assert_close(node.unserved.unwrap().value, 1.0 - served, 1e-12);
    assert!(node.duplicates_per_call.unwrap().value > 0.1 && node.executions.value > 0.5);
    let report = agent_sim::report::terminal(&answer, agent_sim::report::Style::PLAIN);
    assert!(report.contains("Tool calls of the main agent") && report.contains("A: "), "{report}");
    assert!(report.contains("of its tool calls ran twice") && report.contains("lacked a tool"), "{report}");
}

#[test]
fn what_the_reader_should_know() {
    let notes = |text: &str| crate::support::scenario(text).notes.join("\n");
    let base = "[model]\nname = \"claude-sonnet-4-6\"\nfirst_token = \"1s\"\n[cache]\nlifetime = \"5m\"\n[session]\nturns = 3\noutput = 5\n\
                [[tools]]\nname = \"ask\"\nagent = \"helper\"\n";
    let said = notes(&format!("{base}[agents.helper]\nsession.turns = 1\nmodel.name = \"claude-haiku-4-5\"\n"));
    for part in ["begins with no prompt of its own", "answers of \"ask\" are 0 tokens", "the times of its caller's"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said =
        notes(&format!("{base}result = 9\n[agents.helper]\nprompt.system = 900\nmodel.name = \"claude-haiku-4-5\"\n"));
    assert!(said.contains("900 tokens with its tools, is below the smallest that its model caches, 4096"), "{said}");
    let nested = |calls: u64| {
        format!(
            "{base}result = 9\ncalls = {calls}\n[agents.helper]\nprompt.system = 9000\ntools = [{{ name = \"deep\", agent = \"inner\", result = 4 }}]\n\
             [agents.inner]\nprompt.system = 9000\nsession.turns = 1\n"
        )
    };
    assert!(!notes(&nested(1)).contains("side by side") && notes(&nested(2)).contains("side by side"));
    let small = "[routing]\nshare = 0.5\nsmall.model.name = \"claude-haiku-4-5\"\n";
    assert!(
        notes(&format!("{base}result = 9\n{small}[agents.helper]\nprompt.system = 9000\n"))
            .contains("small model takes as long")
    );
    assert!(notes("[session]\nturns = 1\n[[tools]]\nname = \"t\"\n").contains("never calls a tool"));
    let found = "[session]\nturns = 2\n[[servers]]\nname = \"s\"\ntools = 3\ntokens_per_tool = 10\nloading = \"search\"\n[[tools]]\nname = \"t\"\n\
                 server = \"s\"\n[tool_search]\nfound = 5\n";
    assert!(notes(found).contains("one search appends 3 definitions, not 5"));
    assert_eq!(mean(&run(found, 200), "input_tokens"), 30.0);
}

#[test]
fn two_copies_that_are_turned_away_are_no_answer() {
    let text = "[session]\nturns = 2\n[[tools]]\nname = \"t\"\nlatency = \"1s\"\nhedge_after = \"200ms\"\nrejected = 0.5\nreject_latency = \"300ms\"\n";
    let answer = run(text, 4_000);
    let availability = answer.summary.rate(Rate::Availability).unwrap();
    assert!((availability.value - 0.75).abs() < 4.0 * availability.se, "{availability:?}");
    assert!(answer.summary.metric("latency_s").unwrap().max <= 1.2);
}

#[test]
fn a_budget_of_time_cuts_agents_to_the_second() {
    for (time, first_token, inner, calls) in
        [("6.928s", "1.632s", "5.714s", 1), ("3.15s", "0.7s", "2.3s", 3), ("3.14s", "0.7s", "2.3s", 3)]
    {
        let text = |time: &str| {
            format!(
                "[model]\nfirst_token = \"{first_token}\"\n[prompt]\ntask = 1000\n[session]\nturns = 6\noutput = 100\ntool_calls = \"sequential\"\n[budget]\n\
                 time = \"{time}\"\n[[tools]]\nname = \"t\"\nagent = \"a\"\nresult = 10\ncalls = {calls}\n[[tools]]\nname = \"u\"\nlatency = \"0.3s\"\n\
                 [agents.a]\nmodel = {{ first_token = \"{inner}\" }}\nsession = {{ turns = 1, output = 0 }}\nprompt = {{ task = 100 }}\n"
            )
        };
        // a moment earlier or later makes no difference
        let seconds: f64 = time.trim_end_matches('s').parse().unwrap();
        let at = |seconds: f64| {
            let answer = run(&text(&format!("{seconds:.7}s")), 200);
            assert!(answer.summary.metric("latency_s").unwrap().max <= seconds * (1.0 + 1e-15), "{seconds}");
            (mean(&answer, "turns"), mean(&answer, "tool_calls"), mean(&answer, "input_tokens"))
        };
        let (before, now, after) = (at(seconds - 1e-7), at(seconds), at(seconds + 1e-7));
        assert!(now == before && now == after, "{before:?} {now:?} {after:?}");
    }
}

#[test]
fn agents_one_after_another_are_warm_at_once() {
    let text = |first_token: &str, calls: u64, more: &str| {
        format!(
            "{SIMPLE}[model]\nfirst_token = \"{first_token}\"\n[session]\nturns = 2\noutput = 1\ntool_calls = \"sequential\"\n[[tools]]\nname = \"t\"\n\
             agent = \"a\"\ncalls = {calls}\n{more}[agents.a]\nprompt = {{ system = 2000, task = 10 }}\nsession = {{ turns = 1, output = 1 }}\n"
        )
    };
    for first_token in ["1s", "0s"] {
        for calls in [2, 3, 6] {
            let answer = run(&text(first_token, calls, ""), 200);
            let warm = (calls - 1) as f64 / calls as f64;
            assert_close(answer.summary.nodes[1].warm.unwrap().value, warm, 1e-12);
        }
        let behind = "[[tools]]\nname = \"u\"\nagent = \"a\"\nafter = [\"t\"]\n";
        let answer = run(&text(first_token, 1, behind).replace("sequential", "parallel"), 200);
        assert_eq!(answer.summary.nodes[1].warm.unwrap().value + answer.summary.nodes[2].warm.unwrap().value, 1.0);
        // and none of those that start together
        let answer = run(&text(first_token, 3, "").replace("sequential", "parallel"), 200);
        assert_eq!(answer.summary.nodes[1].warm.unwrap().value, 0.0);
    }
}

#[test]
fn runs_that_never_begin_are_not_counted() {
    for budget in ["dollars = 0.001\ncheck = \"after\"", "turns = 1", "turns = 1\ncheck = \"after\""] {
        let text = format!(
            "{SIMPLE}[session]\nturns = 1\noutput = 1\n[outcome]\nsuccess = 0.5\nattempts = 5\n[budget]\n{budget}\n"
        );
        let answer = run(&text, 4_000);
        assert_eq!((mean(&answer, "runs"), mean(&answer, "turns")), (1.0, 1.0), "{budget}");
        let success = answer.summary.rate(Rate::SuccessPerTry).unwrap();
        assert!((success.value - 0.5).abs() < 4.0 * success.se, "{budget} {success:?}");
    }
}

/// An agent of a fixed duration is a tool of that latency, whatever lies around it.
#[test]
fn an_agent_is_a_tool_of_its_duration() {
    use rand::seq::IndexedRandom;
    let mut rng = agent_sim::engine::rng::replicate(5, 5);
    for _ in 0..60 {
        let mut pick = |all: &[&str]| (*all.choose(&mut rng).unwrap()).to_owned();
        let head = format!(
            "[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 500\n[session]\nturns = {}\noutput = 20\ntool_calls = \"{}\"\n{}[retry]\nbase = \"2s\"\njitter = \"{}\"\n",
            pick(&["2", "4", "{ geometric = { mean = 3 } }"]),
            pick(&["parallel", "sequential"]),
            pick(&["", "messages = 2\nthink = \"1m\"\n"]),
            pick(&["none", "full"]),
        );
        let same = format!(
            "calls = {}\nresult = {}\nerror_result = 7\n{}\n{}\n",
            pick(&["1", "3", "{ poisson = { mean = 1.2 } }"]),
            pick(&["50", "{ uniform = { min = 10, max = 90 } }"]),
            pick(&[
                "",
                "timeout = \"9s\"\nlost_reply = 0.2\nrejected = 0.1\nreject_latency = \"1s\"\nretry.attempts = 3",
                "hedge_after = \"4s\"",
                "retry.deadline = \"6s\""
            ]),
            pick(&[
                "error = 0",
                "error = 0\napproval = { share = 0.5, wait = { exponential = { mean = \"30s\" } }, denied = 0.2 }",
                "error = 0.1\nprice = 0.0"
            ]),
        );
        let beside = format!(
            "[[tools]]\nname = \"z\"\nlatency = {}\nresult = 11\n{}\n{}",
            pick(&["\"3s\"", "{ exponential = { mean = \"6s\" } }"]),
            pick(&["", "after = [\"ask\"]", "calls = 2"]),
            pick(&["", "[breaker]\nfailures = 2\ncooldown = \"20s\"\n"]),
        );
        let beside = if same.contains("timeout") {
            beside
        } else {
            beside.replace("[breaker]\nfailures = 2\ncooldown = \"20s\"\n", "")
        };
        let agent =
            "[agents.a]\nprompt.task = 9\nmodel.first_token = \"2500ms\"\nsession = { turns = 2, output = 3 }\n";
        let with_agent = format!("{head}[[tools]]\nname = \"ask\"\nagent = \"a\"\n{same}{beside}{agent}");
        let with_tool = format!("{head}[[tools]]\nname = \"ask\"\nlatency = \"5s\"\n{same}{beside}");
        let (one, other) = (run(&with_agent, 300), run(&with_tool, 300));
        for name in [
            "latency_s",
            "tool_s",
            "turns",
            "tool_calls",
            "attempts",
            "executions",
            "duplicates",
            "retry_wait_s",
            "approval_s",
            "hedges",
        ] {
            let of = |answer: &Answer| answer.summary.metric(name).map(|metric| (metric.mean.value, metric.max));
            let (Some((mean, max)), Some((want, want_max))) = (of(&one), of(&other)) else { continue };
            assert!((mean - want).abs() <= 1e-9 * want.abs().max(1.0), "{name}: {mean} {want}\n{with_agent}");
            assert!((max - want_max).abs() <= 1e-9 * want_max.abs().max(1.0), "{name}: {max} {want_max}\n{with_agent}");
        }
        let own = one.summary.nodes[0].input_tokens.value;
        assert_close(own, mean(&other, "input_tokens"), 1e-9);
        let parts = |answer: &Answer| answer.summary.times.unwrap();
        assert_close(parts(&one).retries_s + 1.0, parts(&other).retries_s + 1.0, 1e-9);
        assert_close(parts(&one).people_s + 1.0, parts(&other).people_s + 1.0, 1e-9);
    }
}
