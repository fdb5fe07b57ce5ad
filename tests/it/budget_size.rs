//! `budget`: what one run without a limit says of all limits, held against runs with them.

use agent_sim::scenario::Scenario;
use agent_sim::simulate::{InFlight, Options, Silent, Sizing, size_budget};
use agent_sim::stats::Rate;

use crate::support::{answer, assert_close, mean, scenario_with, shipped_scenario};

fn sized(mut scenario: Scenario, sessions: u64) -> Sizing {
    scenario.run.sessions = sessions;
    size_budget(&scenario, &InFlight::default(), Options::default(), &Silent).unwrap_or_else(|e| panic!("{e}"))
}

const FIXED: &str = "[model]\nmax_output = 1000\n[price]\ninput = 1\noutput = 10\n[prompt]\nsystem = 2000\n\
                     [session]\nturns = 3\noutput = 100\n[[tools]]\nname = \"a\"\nresult = 400\nprice = 0.01\n";

#[test]
fn a_fixed_session_needs_what_can_be_counted_by_hand() {
    let sizing = sized(scenario_with(FIXED, &[]), 50);
    // calls of 2,000, 2,500 and 3,000 tokens and 100 written, two fees; the last call's worst case writes 1,000
    let spent = (2_000.0 + 2_500.0) / 1e6 + 200.0 * 10.0 / 1e6 + 0.02;
    let needed = spent + 3_000.0 / 1e6 + 1_000.0 * 10.0 / 1e6;
    for through in &sizing.needed {
        assert_close(through.usd, needed, 1e-12);
    }
    let head_room = sizing.outputs.iter().find(|output| output.max_output == 1_000).unwrap().head_room;
    assert_close(head_room.value, 900.0 * 10.0 / 1e6, 1e-9);
    // a bound as tight as the output wastes nothing
    assert_close(sizing.outputs[0].head_room.value, 0.0, 1e-12);
    // one cent less than it needs stops every session, and as much lets all through
    let stopped = |usd: f64| {
        let sets = [format!("budget.dollars={usd}"), "run.sessions=20".to_owned()];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        answer(scenario_with(FIXED, &sets)).summary.rate(Rate::BudgetStopped).unwrap().value
    };
    assert_eq!((stopped(needed - 1e-9), stopped(needed)), (1.0, 0.0));
}

#[test]
fn the_curve_is_that_of_runs_with_the_budgets() {
    let sizing = sized(shipped_scenario("budget.toml", None), 3_000);
    let limits = ["budget.turns=off", "budget.time=off"];
    for through in sizing.needed.iter().take(2) {
        // the smallest budget that lets so many through does, and a little less doesn't
        let stopped = |usd: f64| {
            let dollars = format!("budget.dollars={usd:.9}");
            let sets = [&limits[..], &[dollars.as_str(), "run.sessions=3000"]].concat();
            let path = crate::support::root().join("scenarios/budget.toml");
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let request = agent_sim::scenario::Request { sets: &sets, ..Default::default() };
            answer(Scenario::load(&path, &request).unwrap()).summary.rate(Rate::BudgetStopped).unwrap().value
        };
        assert!(stopped(through.usd + 1e-9) <= 1.0 - through.share + 1e-12);
        assert!(stopped(through.usd - 1e-6) > 1.0 - through.share);
        assert!(through.ci95[0] < through.usd && through.usd < through.ci95[1]);
    }
    for pair in sizing.rows.windows(2) {
        assert!(pair[0].usd < pair[1].usd && pair[0].stopped.value > pair[1].stopped.value);
    }
    for row in &sizing.rows {
        // before: never passed; after: by no more than a call
        assert!(row.done_usd.unwrap() <= row.usd && row.whole_usd.unwrap() > row.done_usd.unwrap());
        let (average, most) = row.overshoot_usd.unwrap();
        assert!(average > 0.0 && average <= most && most < 0.5, "{row:?}");
        // who passes it after needed more before
        assert!(row.overshoots.value <= row.stopped.value);
    }
    // a tighter bound on the output needs less
    for pair in sizing.outputs.windows(2) {
        assert!(pair[0].head_room.value < pair[1].head_room.value && pair[0].p99_usd < pair[1].p99_usd);
    }
    assert!(mean(&answer(shipped_scenario("budget.toml", None)), "cost_usd") <= 1.0);
}

#[test]
fn what_cant_be_sized_says_so() {
    let refused = |scenario: Scenario| {
        size_budget(&scenario, &InFlight::default(), Options::default(), &Silent).unwrap_err().to_string()
    };
    assert!(refused(shipped_scenario("architectures/supervisor.toml", None)).contains("agents share the budget"));
    assert!(refused(shipped_scenario("architectures/router.toml", None)).contains("solve --find budget.dollars"));
    assert!(refused(shipped_scenario("fifty-turns.toml", None)).contains("max_output = "));
    assert!(refused(shipped_scenario("herd.toml", None)).contains("sessions with prices"));
    let kept = scenario_with(
        "[model]\nname = \"claude-sonnet-4-6\"\nmax_output = 500\n[session]\nturns = 3\noutput = 10\n\
         [cache]\nlifetime = \"5m\"\nkeep_alive = \"4m\"\n",
        &[],
    );
    assert!(refused(kept).contains("keep the cache alive"));
}

#[test]
fn calls_in_flight_that_nobody_sees_pass_a_shared_budget() {
    // ten calls of a dollar and a second each
    let text = "[model]\nfirst_token = \"1s\"\nmax_output = 100_000\n[price]\ninput = 0\noutput = 10\n[session]\nturns = 10\n\
                output = 100_000\n[run]\nsessions = 200";
    let row = |side_by_side: u64, budget_usd: f64| {
        let in_flight = InFlight { side_by_side: vec![side_by_side], budget_usd: Some(budget_usd) };
        let sized = size_budget(&scenario_with(text, &[]), &in_flight, Options::default(), &Silent).unwrap();
        sized.in_flight[0]
    };
    // five sub-agents with one budget: each round of calls begins while a dollar is left
    let five = row(5, 11.0);
    assert_eq!((five.groups, five.passes.value, five.beyond_usd), (40, 1.0, Some((4.0, 4.0))));
    // what is used up to the cent isn't passed
    assert_eq!((row(5, 10.0).passes.value, row(5, 10.0).beyond_usd), (0.0, None));
    // one alone passes it by less than a call
    assert_eq!(row(1, 2.5).beyond_usd, Some((0.5, 0.5)));
    // none is passed that is never reached
    assert_eq!(row(5, 50.0).passes.value, 0.0);
    let text = agent_sim::report::budget_terminal(
        &size_budget(&scenario_with(text, &[]), &InFlight::default(), Options::default(), &Silent).unwrap(),
        agent_sim::report::Style::PLAIN,
    );
    assert!(text.contains("Side by side without reservations"), "{text}");
}

#[test]
fn more_sessions_in_flight_pass_it_by_more() {
    let sets = ["run.sessions=20000", "model.name=claude-sonnet-4-6", "model.output_rate=60"];
    let scenario =
        scenario_with(&std::fs::read_to_string(crate::support::root().join("scenarios/w1.toml")).unwrap(), &sets);
    let in_flight = InFlight { side_by_side: vec![1, 4, 16, 64], budget_usd: None };
    let sized = size_budget(&scenario, &in_flight, Options::default(), &Silent).unwrap_or_else(|e| panic!("{e}"));
    let beyond: Vec<f64> = sized.in_flight.iter().map(|row| row.beyond_usd.unwrap().0).collect();
    assert!(beyond.windows(2).all(|pair| pair[0] < pair[1]), "{beyond:?}");
    assert!(sized.in_flight.iter().all(|row| row.passes.ci95[0] <= row.passes.value && row.passes.value > 0.2));
}
