//! What can happen in a session, each by hand: small scenarios without chance whose figures can be added up on paper.

use agent_sim::model::{Breaker, Jitter, Retry};
use agent_sim::report::{Style, terminal};
use agent_sim::session::{Admission, AttemptEnd, Attempts, BreakerState, Fate, Outcome, Progress, Request};
use agent_sim::simulate::Answer;
use agent_sim::simulate::{Options, Silent, simulate};
use agent_sim::stats::Rate;
use agent_sim::table::{Memory, Name, Schema};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use crate::support::{assert_close, mean, run};

fn ended(answer: &Answer, outcome: Outcome) -> u64 {
    answer.summary.outcomes.iter().find(|(o, _)| *o == outcome).unwrap().1
}

/// $1 per token of input, a tenth for a read, a quarter more for a write, $2 for output: money is then countable.
const PRICES: &str = "
[price]
input = 1_000_000
output = 1_000_000
cache_read = 100_000
cache_write = 1_000_000
";

#[test]
fn a_conversation() {
    let text = format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 100\ntask = 10\n[session]\nmessages = 2\nmessage = 7\nthink = \"10m\"\n\
         turns = 2\noutput = 5\n[[tools]]\nname = \"t\"\nresult = 20\nlatency = \"2s\"\n[cache]\nlifetime = \"5m\"\n"
    );
    let answer = run(&text, 3);
    // prompts 110, 135, then 135 + 5 + 7 = 147, 172
    assert_eq!(mean(&answer, "input_tokens"), 110.0 + 135.0 + 147.0 + 172.0);
    assert_eq!((mean(&answer, "turns"), mean(&answer, "messages")), (4.0, 2.0));
    // the wait isn't latency, but it outlasts the cache
    assert_eq!((mean(&answer, "latency_s"), mean(&answer, "think_s")), (8.0, 600.0));
    let message = answer.summary.turn_metric(agent_sim::stats::TurnMetric::Message).unwrap();
    assert_eq!((message.mean.value, message.min, message.max, message.values), (4.0, 4.0, 4.0, 6));
    assert_eq!(mean(&answer, "expired_gaps"), 1.0);
    assert_eq!(mean(&answer, "cache_read_tokens"), 110.0 + 147.0);
    assert_eq!(mean(&answer, "cache_write_tokens"), 110.0 + 25.0 + 147.0 + 25.0);
    let sources = answer.summary.sources.clone().unwrap();
    // the task stands in all four prompts: written, read, written, read
    assert_close(sources.task.usd() / 3.0, 10.0 * (1.0 + 0.1 + 1.0 + 0.1), 1e-12);
    assert!(answer.checks.all_pass());
    assert!(terminal(&answer, Style::PLAIN).contains("isn't part of the latency"));
}

#[test]
fn max_turns_ends_a_conversation() {
    let text = "[session]\nmessages = 3\nturns = 5\nmax_turns = 2\noutput = 5\n";
    let answer = run(text, 3);
    assert_eq!((mean(&answer, "turns"), mean(&answer, "messages")), (2.0, 1.0));
    assert_eq!(ended(&answer, Outcome::TurnLimit), 3);
}

fn slow_tool(cache: &str, rest: &str) -> String {
    format!(
        "{PRICES}[prompt]\nsystem = 100\n[session]\nturns = 3\noutput = 5\n[[tools]]\nname = \"t\"\nlatency = \"10m\"\n[cache]\n\
         lifetime = \"5m\"\n{cache}\n{rest}"
    )
}

#[test]
fn pings_keep_the_cache() {
    let answer = run(&slow_tool("keep_alive = \"4m\"", ""), 3);
    // two gaps of ten minutes: pings after 4 and 8 minutes of each, on 100 and then 105 tokens
    assert_eq!(mean(&answer, "keep_alive_pings"), 4.0);
    assert_eq!(mean(&answer, "expired_gaps"), 0.0);
    assert_close(mean(&answer, "cost_input_usd"), 110.0 + 0.1 * (100.0 + 105.0) + 0.1 * 2.0 * (100.0 + 105.0), 1e-12);
    let sources = answer.summary.sources.clone().unwrap();
    assert_close(sources.keep_alive.usd() / 3.0, 0.1 * 410.0 + 4.0, 1e-12);
    assert_eq!(mean(&answer, "output_tokens"), 15.0 + 4.0);
    // a ping doesn't take the session's time
    assert_eq!(mean(&answer, "latency_s"), 1200.0);
    assert_close(mean(&answer, "cost_input_without_cache_usd"), 315.0, 1e-12);
}

#[test]
fn a_budget_that_cannot_pay_pings_lets_the_cache_go() {
    // the first call costs 105, the second, rewritten, 110; a ping of 11 is paid once
    let budget = "[model]\nmax_output = 5\n[budget]\ndollars = 122.5\n";
    let answer = run(&slow_tool("keep_alive = \"4m\"", budget), 3);
    assert_eq!(mean(&answer, "keep_alive_pings"), 1.0);
    assert_eq!((mean(&answer, "turns"), ended(&answer, Outcome::Budget)), (1.0, 3));
    assert_close(mean(&answer, "cost_usd"), 116.0, 1e-12);
}

fn broken(breaks: &str) -> Answer {
    let text = format!(
        "{PRICES}[[servers]]\nname = \"s\"\ndefinition_tokens = 40\n[prompt]\nsystem = 60\ntask = 10\n[session]\nturns = 3\noutput = 5\n\
         [cache]\nlifetime = \"5m\"\nbreaks = {{ {breaks} }}\n"
    );
    run(&text, 20)
}

#[test]
fn breaks_drop_what_follows() {
    // prompts 110, 115, 120
    assert_eq!(mean(&broken("tools = 1"), "cache_read_tokens"), 0.0);
    assert_eq!(mean(&broken("system = 1"), "cache_read_tokens"), 80.0);
    assert_eq!(mean(&broken("tools = 0"), "cache_read_tokens"), 225.0);
    // from a token among the 10, then 15 of the messages on
    let history = broken("history = 1");
    let read = history.summary.metric("cache_read_tokens").unwrap();
    assert!(read.min >= 200.0 && read.max <= 200.0 + 9.0 + 14.0 && read.min < read.max);
    assert_eq!(mean(&history, "cache_breaks"), 2.0);
    assert_eq!(mean(&history, "expired_gaps"), 0.0);
}

#[test]
fn a_model_that_rejects() {
    let text = format!(
        "{PRICES}[model]\nrejected = 1\nretry = {{ attempts = 3, base = \"1s\", jitter = \"none\" }}\n[prompt]\nsystem = 100\n\
         [session]\nturns = 3\noutput = 5\n"
    );
    let answer = run(&text, 5);
    assert_eq!(ended(&answer, Outcome::Failed), 5);
    // three rejections, nothing billed, waits of 1 and 2 s
    assert_eq!((mean(&answer, "cost_usd"), mean(&answer, "input_tokens")), (0.0, 0.0));
    assert_eq!((mean(&answer, "latency_s"), mean(&answer, "retry_wait_s")), (3.0, 3.0));
    assert_eq!(mean(&answer, "model_attempts"), 3.0);
    let cut = run(&text.replace("jitter", "deadline = \"2500ms\", jitter"), 5);
    assert_eq!((mean(&cut, "latency_s"), mean(&cut, "model_attempts")), (2.5, 2.0));
}

#[test]
fn a_reply_that_is_lost_is_billed() {
    let text = format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\nlost_reply = 1\ntimeout = \"9s\"\nretry = {{ attempts = 2, base = \"1s\", jitter = \"none\" }}\n\
         [prompt]\nsystem = 100\n[session]\nturns = 3\noutput = 5\n[cache]\nlifetime = \"5m\"\n"
    );
    let answer = run(&text, 5);
    assert_eq!(ended(&answer, Outcome::Failed), 5);
    // written by the first attempt, read by the second; 9 s, a wait of 1 s, 9 s
    assert_close(mean(&answer, "cost_usd"), 100.0 + 5.0 + 10.0 + 5.0, 1e-12);
    assert_eq!(mean(&answer, "latency_s"), 19.0);
    let sources = answer.summary.sources.clone().unwrap();
    assert_close(sources.lost_replies.usd() / 5.0, 120.0, 1e-12);
    assert_eq!(sources.total(), sources.lost_replies);
    // a call that takes longer than the timeout is billed in full too
    let slow = text.replace("lost_reply = 1\n", "");
    let slow = slow.replace("first_token = \"1s\"", "first_token = { uniform = { min = \"8900ms\", max = \"100s\" } }");
    let answer = run(&slow, 200);
    assert!(ended(&answer, Outcome::Failed) > 190);
    assert!(mean(&answer, "cost_usd") >= 105.0);
}

#[test]
fn a_failed_attempt_is_followed_by_a_good_one() {
    let text = format!(
        "{PRICES}[model]\nfirst_token = \"1s\"\nrejected = 0.3\nretry = {{ attempts = 40, base = \"1s\", cap = \"1s\", jitter = \"none\" }}\n\
         [prompt]\nsystem = 100\n[session]\nturns = 10\noutput = 5\n"
    );
    let answer = run(&text, 2_000);
    assert_eq!(ended(&answer, Outcome::Answered), 2_000);
    // the model's own time stays 10 s, the rest are waits
    let times = answer.summary.times.unwrap();
    assert_close(times.first_token_s / 2_000.0, 10.0, 1e-9);
    assert_close(times.retries_s / 2_000.0, mean(&answer, "retry_wait_s"), 1e-9);
    assert_close(times.total_s() / 2_000.0, mean(&answer, "latency_s"), 1e-9);
    assert_eq!(mean(&answer, "input_tokens"), 1_225.0);
    let attempts = answer.summary.rate(Rate::ModelAttemptsPerCall).unwrap();
    assert!((attempts.value - 1.0 / 0.7).abs() < 4.0 * attempts.se);
}

#[test]
fn hedged_attempts() {
    let request = |fate, latency_s| Request { fate, latency_s, reject_latency_s: 0.5 };
    let served = |s| request(Fate::Served, s);
    let (lost, rejected) = (request(Fate::LostRequest, 0.0), request(Fate::Rejected, 0.0));
    let hedge = |first, second| AttemptEnd::hedged(10.0, 2.0, first, || second);
    let end = |took_s, executions, answered, rejected| AttemptEnd { took_s, executions, answered, rejected };
    // answered before the copy, by the first, by the copy
    assert_eq!(hedge(served(1.5), served(9.0)), (end(1.5, 1, true, false), false));
    assert_eq!(hedge(served(5.0), served(4.0)), (end(5.0, 2, true, false), true));
    assert_eq!(hedge(served(5.0), served(1.0)), (end(3.0, 2, true, false), true));
    // the copy saves what was lost, or doesn't
    assert_eq!(hedge(lost, served(1.0)), (end(3.0, 1, true, false), true));
    assert_eq!(hedge(lost, lost), (end(10.0, 0, false, false), true));
    assert_eq!(hedge(request(Fate::LostReply, 0.0), served(9.0)), (end(10.0, 2, false, false), true));
    // a rejection is known at once
    assert_eq!(hedge(rejected, served(1.0)), (end(0.5, 0, false, true), false));
    assert_eq!(hedge(served(20.0), rejected), (end(10.0, 1, false, false), true));

    let text = |idempotent: bool| {
        format!(
            "{PRICES}[session]\nturns = 3\n[[tools]]\nname = \"t\"\nlatency = \"5s\"\nhedge_after = \"2s\"\nprice = 1\nidempotent = {idempotent}\n"
        )
    };
    let answer = run(&text(false), 5);
    assert_eq!((mean(&answer, "tool_s"), mean(&answer, "executions")), (10.0, 4.0));
    assert_eq!((mean(&answer, "duplicates"), mean(&answer, "hedges")), (2.0, 2.0));
    assert_eq!(mean(&answer, "cost_tools_usd"), 4.0);
    assert_eq!(mean(&run(&text(true), 5), "cost_tools_usd"), 2.0);
}

#[test]
fn people_who_are_asked() {
    let text = |denied: f64, order: &str| {
        let error_result = if denied > 0.0 { "error_result = 7" } else { "" };
        format!(
            "[prompt]\nsystem = 100\n[session]\nturns = 2\noutput = 5\ntool_calls = \"{order}\"\n[[tools]]\nname = \"t\"\ncalls = 3\n\
             result = 50\n{error_result}\nlatency = \"2s\"\napproval = {{ share = 1, wait = \"60s\", denied = {denied} }}\n"
        )
    };
    let granted = run(&text(0.0, "parallel"), 5);
    assert_eq!((mean(&granted, "tool_s"), mean(&granted, "approval_s")), (62.0, 180.0));
    assert_eq!(mean(&granted, "input_tokens"), 100.0 + 105.0 + 150.0);
    let times = granted.summary.times.unwrap();
    assert_eq!((times.people_s / 5.0, times.tools_s / 5.0), (60.0, 2.0));
    let one_by_one = run(&text(0.0, "sequential"), 5);
    assert_eq!(mean(&one_by_one, "tool_s"), 186.0);
    let denied = run(&text(1.0, "parallel"), 5);
    assert_eq!((mean(&denied, "tool_s"), mean(&denied, "attempts")), (60.0, 0.0));
    assert_eq!(mean(&denied, "input_tokens"), 100.0 + 105.0 + 21.0);
    assert_eq!(denied.summary.rate(Rate::Availability), None);
    assert!(denied.checks.all_pass());
}

#[test]
fn a_breaker_opens_probes_and_closes() {
    let rule = Breaker { failures: 3, cooldown_s: 30.0 };
    let mut state = BreakerState::default();
    for _ in 0..2 {
        assert_eq!(state.admit(0.0), Admission::Ordinary);
        state.ended(&rule, Admission::Ordinary, false, 1.0);
    }
    // a success in between starts the count anew
    state.ended(&rule, Admission::Ordinary, true, 2.0);
    for _ in 0..3 {
        state.ended(&rule, Admission::Ordinary, false, 3.0);
    }
    assert_eq!(state, BreakerState::Open(33.0));
    assert_eq!(state.admit(32.9), Admission::Refused);
    // answers from before don't close it
    state.ended(&rule, Admission::Ordinary, true, 20.0);
    assert_eq!(state.admit(33.0), Admission::Probe);
    assert_eq!(state.admit(33.0), Admission::Refused);
    state.ended(&rule, Admission::Probe, false, 34.0);
    assert_eq!(state, BreakerState::Open(64.0));
    assert_eq!(state.admit(64.0), Admission::Probe);
    state.ended(&rule, Admission::Probe, true, 65.0);
    assert_eq!(state, BreakerState::Closed(0));
}

#[test]
fn a_breaker_in_a_session() {
    let text = |order: &str, cooldown: &str, attempts: u32| {
        format!(
            "[session]\nturns = 3\noutput = 5\ntool_calls = \"{order}\"\n[[tools]]\nname = \"flaky\"\ncalls = 5\nrejected = 1\n\
             error_result = 9\nretry = {{ attempts = {attempts}, base = \"1s\", jitter = \"none\" }}\n[[tools]]\nname = \"slow\"\n\
             latency = \"60s\"\n[breaker]\nfailures = 3\ncooldown = \"{cooldown}\"\n"
        )
    };
    // one by one: three attempts open it, two calls are refused; a minute later a probe fails, four are refused
    let answer = run(&text("sequential", "30s", 1), 4);
    assert_eq!(mean(&answer, "attempts"), 3.0 + 1.0 + 2.0);
    assert_eq!(answer.summary.rate(Rate::BreakerRefused).unwrap().value, 6.0 / 12.0);
    // with a longer cooldown nothing is probed
    assert_eq!(mean(&run(&text("sequential", "5m", 1), 4), "attempts"), 3.0 + 2.0);
    // together: all five start before any has failed
    assert_eq!(mean(&run(&text("parallel", "30s", 1), 4), "attempts"), 5.0 + 1.0 + 2.0);
    // a call that would be tried again finds it open
    assert_eq!(mean(&run(&text("sequential", "5m", 9), 4), "attempts"), 3.0 + 2.0);
    // every failed call leaves its text
    assert_eq!(mean(&answer, "input_tokens"), 0.0 + (5.0 + 45.0) + 2.0 * (5.0 + 45.0));
}

#[test]
fn a_summary_replaces_the_messages() {
    let text = |cache: &str| {
        format!(
            "{PRICES}[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 100\ntask = 50\n[session]\nturns = 4\noutput = 10\n[[tools]]\n\
             name = \"t\"\nresult = 90\nlatency = \"1s\"\n[context]\ncompact_at = 300\nsummary = 30\n[cache]\nlifetime = \"{cache}\"\n"
        )
    };
    let answer = run(&text("off"), 3);
    // 150, 250, 350 is too large: a summary of it, then 130, 230
    assert_eq!(mean(&answer, "input_tokens"), 150.0 + 250.0 + 350.0 + 130.0 + 230.0);
    assert_eq!((mean(&answer, "summaries"), mean(&answer, "turns")), (1.0, 4.0));
    assert_eq!(mean(&answer, "output_tokens"), 40.0 + 30.0);
    assert_eq!(mean(&answer, "latency_s"), 5.0 + 3.0);
    let sources = answer.summary.sources.clone().unwrap();
    assert_close(sources.compaction.usd() / 3.0, 350.0 + 30.0, 1e-12);
    assert_close(sources.task.usd() / 3.0, 100.0, 1e-12);
    assert_close(answer.summary.times.unwrap().compaction_s / 3.0, 1.0, 1e-12);
    // the turns have the summary in both of their costs
    let scenario = crate::support::scenario_with(&text("5m"), &["run.sessions=3"]);
    let memory = Memory::new(&Schema::all(&[&scenario.model]));
    let options = Options { tables: Some(&memory), ..Options::default() };
    simulate(scenario, options, &Silent).unwrap();
    let tables = memory.into_tables();
    let turns = &tables.iter().find(|(name, _)| *name == Name::Turns).unwrap().1;
    assert_eq!(turns.rows(), 3 * 4);
    let third = |column: &str| turns.numbers(column).unwrap()[2].unwrap();
    assert_close(third("cost_without_cache_usd"), 350.0 + 30.0 + 130.0 + 10.0, 1e-12);
    // 250 read and 100 written for the summary, then 100 read and 30 written
    assert_close(third("cost_usd"), 25.0 + 100.0 + 30.0 + 10.0 + 30.0 + 10.0, 1e-12);
    // the prefix stays cached, the messages start again
    let cached = run(&text("5m"), 3);
    assert_eq!(mean(&cached, "cache_read_tokens"), 150.0 + 250.0 + 100.0 + 130.0);
    assert!(answer.checks.all_pass() && cached.checks.all_pass());
}

#[test]
fn a_summary_that_does_not_help_is_made_once_a_turn() {
    // a prefix beyond the threshold: every prompt is summarised once, and every call counts once
    let text = format!(
        "{PRICES}[prompt]\nsystem = {{ uniform = {{ min = 0, max = 4000 }} }}\ntask = 50\n[session]\nturns = 4\noutput = 10\n         [context]\ncompact_at = 300\nsummary = 100\n"
    );
    let answer = run(&text, 200);
    assert_eq!((mean(&answer, "turns"), ended(&answer, Outcome::Answered)), (4.0, 200));
    let summaries = answer.summary.metric("summaries").unwrap();
    assert!(summaries.max <= 4.0 && summaries.mean.value > 3.0);
    let calls = answer.sample.moments(agent_sim::stats::Quantity::AnsweredTurns);
    assert_eq!((calls.min, calls.max), (4.0, 4.0));
}

#[test]
fn a_limit_of_turns_lets_the_last_call_be_repeated() {
    let text = "[model]\nrejected = 0.5\nretry = { attempts = 60, base = \"1s\" }\n[session]\nturns = 9\noutput = 5\n[budget]\nturns = 3\n";
    for check in ["before", "after"] {
        let answer = run(&format!("{text}check = \"{check}\"\n"), 300);
        let answered = answer.sample.moments(agent_sim::stats::Quantity::AnsweredTurns);
        assert_eq!((mean(&answer, "turns"), answered.min, answered.max), (3.0, 3.0, 3.0), "{check}");
    }
}

#[test]
fn results_are_cut() {
    let text = "[session]\nturns = 3\n[[tools]]\nname = \"t\"\nresult = { lognormal = { p50 = 500, cv = 2 } }\n[context]\nmax_result = 100\n";
    let answer = run(text, 3_000);
    let seen = answer.summary.metric("input_tokens").unwrap();
    assert!(seen.max <= 300.0);
    assert!(answer.checks.all_pass());
    assert!(answer.checks.checks.iter().any(|c| c.id == "tokens.read"));
}

fn budget(limit: &str) -> Answer {
    run(
        &format!(
            "{PRICES}[model]\nfirst_token = \"1s\"\nmax_output = 20\n[prompt]\nsystem = 100\n[session]\nturns = 10\noutput = 10\n\
             [[tools]]\nname = \"t\"\nresult = 90\nlatency = \"3s\"\nprice = 1\n[budget]\n{limit}\n"
        ),
        4,
    )
}

#[test]
fn limits_end_a_run() {
    // prompts 100, 200, 300, …; money 110, 1, 210, 1, 310, …
    let turns = |limit: &str| mean(&budget(limit), "turns");
    assert_eq!((turns("turns = 3"), turns("turns = 3\ncheck = \"after\"")), (3.0, 3.0));
    // before: 111 + 220 fit into 331, a third call could cost 320 more
    assert_eq!(turns("dollars = 331"), 2.0);
    assert_eq!(turns("dollars = 330"), 1.0);
    // after: the second call passes 300 and is the last
    assert_eq!(turns("dollars = 300\ncheck = \"after\""), 2.0);
    assert_close(mean(&budget("dollars = 300\ncheck = \"after\""), "cost_usd"), 321.0, 1e-12);
    // tokens: 100 + 10, then 200 + 20 at most
    assert_eq!((turns("tokens = 330"), turns("tokens = 329")), (2.0, 1.0));
    assert_eq!(turns("tokens = 319\ncheck = \"after\""), 2.0);
    let stopped = budget("dollars = 331");
    assert_eq!(ended(&stopped, Outcome::Budget), 4);
    let (_, by) = stopped.summary.stopped[0];
    assert_eq!((by.sessions, by.cost.usd()), (4, 4.0 * (111.0 + 211.0)));
    assert!(
        terminal(&stopped, Style::PLAIN).contains("stopped 100 % of the sessions, which had cost $322.00 on average")
    );
    assert_eq!(stopped.summary.rate(Rate::BudgetStopped).unwrap().value, 1.0);
}

#[test]
fn a_budget_of_time_cuts_the_run() {
    // a call takes 1 s, a phase 3 s
    let cut = |limit: &str| {
        let answer = budget(limit);
        assert_eq!(ended(&answer, Outcome::Deadline), 4);
        (mean(&answer, "turns"), mean(&answer, "latency_s"), mean(&answer, "executions"))
    };
    assert_eq!(cut("time = \"6s\""), (2.0, 6.0, 2.0));
    assert_eq!(cut("time = \"4500ms\""), (2.0, 4.5, 1.0));
    // what was under way is billed
    assert_close(mean(&budget("time = \"4500ms\""), "cost_usd"), 111.0 + 210.0, 1e-12);
    // after: the phase that passes it is the last one
    assert_eq!(cut("time = \"6s\"\ncheck = \"after\""), (2.0, 8.0, 2.0));
}

#[test]
fn what_would_begin_after_the_time_does_not_happen() {
    let text = |order: &str, tool: &str| {
        format!(
            "{PRICES}[session]\nturns = 2\ntool_calls = \"{order}\"\n[[tools]]\nname = \"a\"\ncalls = 4\nlatency = \"10s\"\nprice = 1\n{tool}\n\
             [[tools]]\nname = \"b\"\nafter = [\"a\"]\nlatency = \"1s\"\nprice = 1\n[budget]\ntime = \"25s\"\n"
        )
    };
    let figures = |text: &str| {
        let answer = run(text, 3);
        (
            mean(&answer, "tool_calls"),
            mean(&answer, "executions"),
            mean(&answer, "cost_usd"),
            mean(&answer, "latency_s"),
        )
    };
    // the third of four calls is under way when the time is up
    assert_eq!(figures(&text("sequential", "")), (3.0, 3.0, 3.0, 25.0));
    // together they are done after 10 s, and b after 11
    assert_eq!(figures(&text("parallel", "")), (5.0, 5.0, 5.0, 11.0));
    // a second attempt would begin after 30 s
    let late = "timeout = \"5s\"\nretry = { attempts = 3, base = \"25s\", cap = \"25s\", jitter = \"none\" }";
    assert_eq!(figures(&text("parallel", late)), (4.0, 4.0, 4.0, 25.0));
    // people are waited for until the end
    let asked = run(&text("parallel", "approval = { share = 1, wait = \"1h\" }"), 3);
    assert_eq!((mean(&asked, "approval_s"), mean(&asked, "executions")), (4.0 * 25.0, 0.0));
    assert_eq!(asked.summary.times.unwrap().people_s, 75.0);
}

#[test]
fn fees_count_before_they_are_paid() {
    // the call costs 110, and the phase's fee of 1 doesn't fit
    let answer = budget("dollars = 120.5");
    assert_eq!((mean(&answer, "turns"), mean(&answer, "executions")), (1.0, 1.0));
    let text = format!(
        "{PRICES}[model]\nmax_output = 10\n[prompt]\nsystem = 100\n[session]\nturns = 10\noutput = 10\n[[tools]]\nname = \"t\"\ncalls = 2\n\
         price = 3\nrejected = 0.1\nretry = {{ attempts = 2 }}\n[budget]\ndollars = 115\n"
    );
    let answer = run(&text, 50);
    // two calls of up to two executions could cost 12
    assert_eq!((mean(&answer, "turns"), mean(&answer, "executions")), (1.0, 0.0));
    assert_eq!(ended(&answer, Outcome::Budget), 50);
}

#[test]
fn an_answer_that_passes_the_budget_is_an_answer() {
    let text = format!(
        "{PRICES}[prompt]\nsystem = 100\n[session]\nturns = 1\nmessages = 2\noutput = 10\n[budget]\ndollars = 150\ncheck = \"after\"\n"
    );
    let answer = run(&text, 3);
    assert_eq!((ended(&answer, Outcome::Answered), mean(&answer, "turns")), (3, 2.0));
    // with a message to come it stops
    assert_eq!(ended(&run(&text.replace("messages = 2", "messages = 3"), 3), Outcome::Budget), 3);
}

#[test]
fn the_longest_path() {
    let text = "[session]\nturns = 3\n[[tools]]\nname = \"a\"\nlatency = \"3s\"\n[[tools]]\nname = \"b\"\nafter = [\"a\"]\nlatency = \"1s\"\n\
                [[tools]]\nname = \"c\"\nlatency = { choices = { \"2s\" = 0.5, \"9s\" = 0.5 } }\n";
    let text =
        text.replace("{ choices = { \"2s\" = 0.5, \"9s\" = 0.5 } }", "{ uniform = { min = \"2s\", max = \"6s\" } }");
    let answer = run(&text, 20_000);
    let share = |index: usize| answer.summary.tools_on_path[index].unwrap();
    // c takes longer than a and b in half of the phases
    assert!((share(2).value - 0.5).abs() < 4.0 * share(2).se);
    assert_eq!(share(0).value, share(1).value);
    assert_close(share(0).value + share(2).value, 1.0, 1e-12);
    assert!(terminal(&answer, Style::PLAIN).contains("on the longest path"));
}

#[test]
fn time_is_told_apart_on_the_longest_path() {
    // b's retries lie on the path, a's don't
    let text = "[session]\nturns = 2\n[[tools]]\nname = \"a\"\nlatency = \"1s\"\n[[tools]]\nname = \"b\"\nlatency = \"9s\"\ntimeout = \"4s\"\n\
                retry = { attempts = 2, base = \"1s\", jitter = \"none\" }\n";
    let times = run(text, 3).summary.times.unwrap();
    // 4 s lost, a wait of 1 s, then the last attempt's 4 s
    assert_eq!((times.retries_s / 3.0, times.tools_s / 3.0, times.total_s() / 3.0), (5.0, 4.0, 9.0));
}

#[test]
fn waits_stay_within_their_bounds() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut wait = |jitter, rejected, failures: u32| {
        let retry = Retry { attempts: 9, base_s: 0.5, rejected_base_s: 2.0, cap_s: 8.0, jitter, ..Retry::NEVER };
        let end = AttemptEnd { took_s: 0.0, executions: 0, answered: false, rejected };
        let mut call = Attempts::default();
        for _ in 0..failures {
            assert_eq!(call.attempted(&retry, end), Progress::Wait);
        }
        let waits: Vec<f64> = (0..4_000).map(|_| call.draw_wait(&retry, &mut rng)).collect();
        (waits.iter().copied().fold(f64::INFINITY, f64::min), waits.iter().copied().fold(0.0, f64::max))
    };
    let near = |(low, high): (f64, f64), want: (f64, f64)| {
        let slack = 0.01 * (want.1 - want.0);
        assert!(
            low >= want.0 && low < want.0 + slack && high <= want.1 && high > want.1 - slack,
            "{low} {high} {want:?}"
        );
    };
    near(wait(Jitter::Quarter, false, 1), (0.375, 0.5));
    near(wait(Jitter::Quarter, true, 1), (1.5, 2.0));
    near(wait(Jitter::Quarter, false, 8), (6.0, 8.0));
    near(wait(Jitter::Plus { spread_s: 0.75, capped: false }, false, 8), (8.0, 8.75));
    near(wait(Jitter::Plus { spread_s: 1.0, capped: true }, false, 4), (4.0, 5.0));
    assert_eq!(wait(Jitter::Plus { spread_s: 1.0, capped: true }, false, 8), (8.0, 8.0));
}

#[test]
fn the_worst_case_of_the_literature() {
    // 100,000 prompt tokens and 4,096 of output at $3 and $15, all written to the cache
    let model = |cache: &str| {
        crate::support::model(&format!(
            "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[session]\nturns = 1\n[cache]\nlifetime = \"{cache}\"\n"
        ))
    };
    let worst = |cache| agent_sim::session::worst_case(&model(cache), 5_000, 100_000, 4_096);
    assert_eq!(worst("5m").usd.usd(), 0.436_44);
    assert_eq!(worst("off").usd.usd(), 0.361_44);
    assert_eq!(worst("off").tokens, 104_096);
}

#[test]
fn rates_count_each_call_once() {
    // a call of which every attempt finds the cache expired
    let text = format!(
        "{PRICES}[model]\ntimeout = \"10m\"\nlost_reply = 0.9\nretry = {{ attempts = 12 }}\n[prompt]\nsystem = 100\n[session]\nturns = 2\n\
         output = 5\n[cache]\nlifetime = \"5m\"\n"
    );
    let answer = run(&text, 500);
    assert!(answer.summary.metric("expired_gaps").unwrap().max <= 2.0);
    // breaks and messages of calls that a budget refuses
    let refused = |rest: &str| {
        run(
            &format!(
                "{PRICES}[model]\nfirst_token = \"1s\"\n[prompt]\nsystem = 100\n[session]\nturns = 5\nmessages = 3\nthink = \"1m\"\noutput = 5\n\
                 [cache]\nlifetime = \"5m\"\nbreaks = {{ tools = 1.0 }}\n[budget]\n{rest}\n"
            ),
            5,
        )
    };
    assert_eq!(mean(&refused("turns = 1"), "cache_breaks"), 0.0);
    assert_eq!(refused("turns = 2").summary.rate(Rate::CacheBroken).unwrap().value, 1.0);
    let one = refused("turns = 5");
    assert_eq!(mean(&one, "messages"), 1.0);
    let message = one.summary.turn_metric(agent_sim::stats::TurnMetric::Message).unwrap();
    assert_eq!((message.mean.value, message.values), (5.0, 5));
    // pings before a refused call have their gap
    let pinged = slow_tool("keep_alive = \"4m\"", "[budget]\nturns = 2\n");
    assert_eq!(run(&pinged, 5).summary.rate(Rate::PingsPerGap).unwrap().value, 2.0);
}

#[test]
fn the_time_to_the_first_token_is_that_of_answers() {
    let text =
        "[model]\nfirst_token = \"1s\"\ntimeout = \"10s\"\nlost_request = 0.5\n[session]\nturns = 3\noutput = 5\n";
    let answer = run(text, 500);
    let first = answer.summary.turn_metric(agent_sim::stats::TurnMetric::FirstToken).unwrap();
    assert_eq!((first.mean.value, first.min, first.max), (1.0, 1.0, 1.0));
}

#[test]
fn no_second_copy_is_sent_after_the_deadline() {
    let text = "[session]\nturns = 2\n[[tools]]\nname = \"a\"\nlatency = \"5s\"\nhedge_after = \"2s\"\ntimeout = \"9s\"\nlost_request = 0.5\n\
                retry = { attempts = 2, base = \"100ms\", deadline = \"10s\" }\n";
    let answer = run(text, 5_000);
    // the second attempt begins after 9 s, its copy would be sent after 11 s
    assert_eq!(answer.summary.metric("hedges").unwrap().max, 1.0);
}

#[test]
fn a_budget_that_tools_have_passed_stops_the_loop() {
    let text = format!(
        "{PRICES}[prompt]\nsystem = 100\n[session]\nturns = 20\noutput = 5\n[[tools]]\nname = \"a\"\nlatency = \"60s\"\nprice = 300\n[budget]\n\
         dollars = 200\ntime = \"10s\"\ncheck = \"after\"\n"
    );
    let answer = run(&text, 3);
    assert_eq!((mean(&answer, "turns"), mean(&answer, "cost_usd")), (1.0, 405.0));
    assert_eq!(ended(&answer, Outcome::Budget), 3);
}

#[test]
fn any_number_of_pings_is_counted_at_once() {
    let text = format!(
        "{PRICES}[prompt]\nsystem = 100\n[session]\nturns = 1\nmessages = 2\nthink = \"100000h\"\noutput = 5\n[cache]\nlifetime = \"5m\"\n\
         keep_alive = \"1s\"\n"
    );
    assert_eq!(mean(&run(&text, 3), "keep_alive_pings"), 360_000_000.0);
}
