//! `[herd]`: the published figures of backoff with many clients, and herds that can be counted by hand.

use std::path::Path;

use agent_sim::scenario::{Request, Scenario};
use agent_sim::simulate::{Answer, Options, Silent, simulate};
use agent_sim::stats::Estimate;

use crate::support::{answer, assert_close, mean, root, run, scenario_with};

/// Clients, strategy, calls and time (ms) with their standard errors: the published simulator, 200 runs a row.
const PUBLISHED: [(u64, &str, [f64; 2], [f64; 2]); 15] = [
    (10, "exponential", [50.3, 0.31], [3365.0, 94.0]),
    (10, "decorrelated", [37.6, 0.17], [429.0, 5.5]),
    (10, "equal", [42.3, 0.20], [708.0, 14.0]),
    (10, "base", [39.2, 0.16], [473.0, 7.8]),
    (10, "none", [50.7, 0.29], [379.0, 2.5]),
    (50, "exponential", [624.6, 2.1], [36666.0, 242.0]),
    (50, "decorrelated", [375.8, 0.90], [2194.0, 29.0]),
    (50, "equal", [347.4, 0.45], [4220.0, 41.0]),
    (50, "base", [332.6, 0.38], [2923.0, 38.0]),
    (50, "none", [689.7, 1.3], [1138.0, 2.8]),
    (100, "exponential", [1858.4, 4.0], [63453.0, 262.0]),
    (100, "decorrelated", [1003.5, 2.0], [4578.0, 44.0]),
    (100, "equal", [811.6, 0.56], [6484.0, 46.0]),
    (100, "base", [794.8, 0.46], [4831.0, 36.0]),
    (100, "none", [2418.7, 2.4], [2024.0, 3.1]),
];

fn herd(clients: u64, strategy: &str, more: &[&str]) -> Answer {
    let mut sets = vec![format!("herd.clients={clients}"), "run.sessions=500".to_owned()];
    sets.extend(more.iter().map(|set| (*set).to_owned()));
    let request = Request { sets: &sets, strategy: Some(strategy), ..Request::default() };
    answer(Scenario::load(&root().join("scenarios/herd.toml"), &request).unwrap_or_else(|e| panic!("{e}")))
}

fn estimate(answer: &Answer, metric: &str) -> Estimate {
    answer.summary.metric(metric).unwrap().mean
}

/// How many standard errors two estimates lie apart.
fn apart(seen: Estimate, [value, se]: [f64; 2]) -> f64 {
    (seen.value - value) / seen.se.hypot(se)
}

#[test]
fn every_published_row_comes_out() {
    for (clients, strategy, calls, time_ms) in PUBLISHED {
        let answer = herd(clients, strategy, &[]);
        let z = apart(estimate(&answer, "herd_calls"), calls);
        assert!(z.abs() < 4.0, "{clients} {strategy}: calls {z}");
        let z = apart(estimate(&answer, "herd_time_s"), time_ms.map(|ms| ms / 1e3));
        assert!(z.abs() < 4.0, "{clients} {strategy}: time {z}");
    }
}

#[test]
fn a_wrong_wait_would_be_seen() {
    let [_, .., (clients, _, calls, _), none] = PUBLISHED;
    // half the bound
    let halved = herd(clients, "base", &["retry.base=5ms"]);
    assert!(apart(estimate(&halved, "herd_calls"), calls).abs() > 20.0);
    // messages that are a tenth faster
    let quick = herd(none.0, none.1, &["herd.network={ normal = { mean = \"9ms\", sd = \"2ms\" } }"]);
    assert!(apart(estimate(&quick, "herd_time_s"), none.3.map(|ms| ms / 1e3)).abs() > 20.0);
}

#[test]
fn one_client_needs_four_messages() {
    let alone = herd(1, "base", &[]);
    assert_eq!(mean(&alone, "herd_calls"), 1.0);
    let time = estimate(&alone, "herd_time_s");
    assert!(((time.value - 0.04) / time.se).abs() < 4.0, "{time:?}");
}

const QUEUE: &str = "[herd]\nclients = 20\nresource = \"queue\"\ncapacity = 1\nservice = \"10ms\"\n\
                     [retry]\njitter = \"none\"\nbase = \"10ms\"\ncap = \"10ms\"\n";

#[test]
fn a_queue_can_be_counted_by_hand() {
    let counted = |sets: &[&str]| {
        let mut sets = sets.to_vec();
        sets.push("run.sessions=3");
        let answer = answer(scenario_with(QUEUE, &sets));
        let gave_up = answer.summary.metric("herd_gave_up").map(|metric| metric.mean.value);
        (mean(&answer, "herd_calls"), mean(&answer, "herd_time_s"), gave_up)
    };
    // all wait
    assert_eq!(counted(&[]), (20.0, 0.2, None));
    assert_eq!(counted(&["herd.capacity=5"]), (20.0, 0.04, None));
    assert_eq!(counted(&["herd.network=1ms"]), (20.0, 0.202, None));
    // nobody waits: in each round of 10 ms one is served, and all others ask again
    assert_eq!(counted(&["herd.queue=0"]), (210.0, 0.2, None));
    // 5 wait: the others are turned away, and come back every 10 ms
    let (calls, time_s, _) = counted(&["herd.queue=5"]);
    assert_eq!((calls, time_s), (20.0 + (14.0 * 15.0 / 2.0), 0.2));
    // who may ask once only gives up
    assert_eq!(counted(&["herd.queue=0", "retry.attempts=1"]), (20.0, 0.01, Some(19.0)));
    // and so does who has waited long enough: all ask at 0, 10 and 20 ms, and who is served until 30 ms hears nothing of it
    // after 25 ms
    assert_eq!(counted(&["herd.queue=0", "retry.deadline=25ms"]), (20.0 + 19.0 + 18.0, 0.025, Some(18.0)));
    // who waits for a server is served all the same
    assert_eq!(counted(&["retry.deadline=25ms"]), (20.0, 0.025, Some(18.0)));
    assert_eq!(counted(&["retry.deadline=200ms"]), (20.0, 0.2, Some(0.0)));
}

#[test]
fn a_herd_that_would_never_end_is_refused() {
    let refused = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let request = Request { sets: &sets, ..Request::default() };
        Scenario::parse(QUEUE, "herd.toml", Path::new(""), &request).err().map(|error| error.to_string())
    };
    let text = refused(&["herd.queue=3", "retry.base=0s"]).unwrap();
    assert!(text.contains("would ask again at once, and never come to an end"), "{text}");
    assert!(refused(&["herd.queue=3", "retry.cap=0s"]).is_some());
    for ends in ["herd.network=1ms", "retry.attempts=5", "herd.queue=off", "retry.base=1us"] {
        let base = if ends.contains("base") { "retry.cap=1s" } else { "retry.base=0s" };
        assert_eq!(refused(&["herd.queue=3", base, ends]), None, "{ends}");
    }
}

#[test]
fn a_herd_doesnt_depend_on_threads() {
    let play = |threads: usize| {
        let scenario = scenario_with(
            QUEUE,
            &["herd.queue=3", "herd.network={ exponential = { mean = \"3ms\" } }", "run.sessions=900"],
        );
        let answer = simulate(scenario, Options { threads: Some(threads), tables: None }, &Silent).unwrap();
        answer.summary.metrics.iter().map(|(_, metric)| metric.mean.value.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(play(1), play(3));
}

#[test]
fn nothing_else_applies_to_a_herd() {
    let answer = run(QUEUE, 10);
    let names: Vec<&str> = answer.summary.metrics.iter().map(|(metric, _)| metric.quantity().name()).collect();
    assert_eq!(names, ["herd_calls", "herd_time_s"]);
    assert!(answer.summary.rates.is_empty() && answer.summary.turn_metrics.is_empty());
    assert_eq!(answer.scenario.run.sessions, 10);
    assert_eq!(scenario_with(QUEUE, &["herd.repeats=77"]).run.sessions, 77);
    let few = scenario_with(QUEUE, &["herd.service={ exponential = { mean = \"10ms\" } }", "run.sessions=4000"]);
    // twenty services in a row
    let time = estimate(&self::answer(few), "herd_time_s");
    assert!(((time.value - 0.2) / time.se).abs() < 4.0, "{time:?}");
    assert_close(time.se, 0.01 * 20_f64.sqrt() / 4000_f64.sqrt(), 0.1);
}
