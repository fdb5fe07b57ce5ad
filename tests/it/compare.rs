//! Ways held against each other on the same sessions: paired differences, their intervals, and what is said of them.

use agent_sim::engine::{Play, rng};
use agent_sim::model::Model;
use agent_sim::report::{Style, compare_markdown, compare_terminal};
use agent_sim::scenario::{Request, Scenario};
use agent_sim::simulate::{Comparison, Options, Silent, compare};
use agent_sim::stats::{Metric, Paired, Sample};

use crate::support::{assert_close, root, scenario_with};

fn metric(name: &str) -> Metric {
    Metric::named(name).unwrap()
}

fn values(model: &Model, seed: u64, sessions: u64, name: &str) -> Vec<f64> {
    let mut sample = Sample::new(model, sessions, &[]);
    Play { model, seed, sessions: 0..sessions }.run(&mut sample, &|_| {});
    sample.values(metric(name)).unwrap()
}

/// The strategies of a shipped file against the file itself.
fn compared(file: &str, sessions: u64) -> Comparison {
    let path = root().join("scenarios").join(file);
    let sets = [format!("run.sessions={sessions}")];
    let load = |strategy: Option<&str>| {
        Scenario::load(&path, &Request { sets: &sets, strategy, ..Request::default() }).unwrap()
    };
    let base = load(None);
    let mut all: Vec<Scenario> = base.strategies.iter().map(|name| load(Some(name))).collect();
    all.insert(0, base);
    compare(all, &[metric("cost_usd"), metric("latency_s")], Options::default(), &Silent).unwrap()
}

#[test]
fn pairs_are_narrower_than_two_runs() {
    // five minutes against an hour, where sessions are of all lengths and tools make them wait
    let text = "[model]\nname = \"claude-sonnet-4-6\"\n[prompt]\nsystem = 5000\n[session]\nturns = { geometric = { mean = 20 } }\noutput = 300\n\
                [[tools]]\nname = \"t\"\nresult = { lognormal = { p50 = 500, cv = 1 } }\nlatency = { exponential = { mean = \"90s\" } }\n[cache]\nlifetime = \"5m\"\n";
    let load = |lifetime: &str| scenario_with(text, &["run.sessions=20000", &format!("cache.lifetime={lifetime}")]);
    let all = vec![load("5m"), load("1h")];
    let comparison = compare(all, &[metric("cost_usd")], Options::default(), &Silent).unwrap();
    let paired = comparison.pairs[0].metric("cost_usd").unwrap();
    let of = |way: usize| comparison.answers[way].summary.metric("cost_usd").unwrap().mean;
    assert_close(paired.difference.value, of(1).value - of(0).value, 1e-9);
    let apart = of(0).se.hypot(of(1).se);
    let ratio = apart / paired.difference.se;
    assert!(ratio > 3.0, "the paired interval is {ratio:.1} times narrower");
    assert!(paired.is_decided() && paired.sessions_to_decide().is_none());
}

#[test]
fn a_paired_interval_covers() {
    let text = "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\ncache_write_10m = 4.5\n[prompt]\nsystem = 5000\n[session]\n\
                turns = 6\noutput = 300\n[[tools]]\nname = \"t\"\nresult = 700\nlatency = { exponential = { mean = \"4m\" } }\n[cache]\nlifetime = \"5m\"\n";
    let (short, long) = (scenario_with(text, &[]).model, scenario_with(text, &["cache.lifetime=10m"]).model);
    let expected = |set: &[&str]| {
        let answer = crate::support::answer(scenario_with(text, &[&["run.sessions=2000"], set].concat()));
        answer.checks.checks.iter().find(|check| check.id == "cost.input.cached").unwrap().expected
    };
    let truth = expected(&["cache.lifetime=10m"]) - expected(&[]);
    let (mut covered, mut apart) = (0, 0.0);
    for seed in 0..1_000 {
        let (of, against) = (values(&long, seed, 400, "cost_usd"), values(&short, seed, 400, "cost_usd"));
        let difference = Paired::new(&of, &against, &[], |n| rng::replicate(seed, n)).difference;
        covered += u32::from(difference.ci95[0] <= truth && truth <= difference.ci95[1]);
        apart += (difference.value - truth) / 1_000.0;
    }
    assert!((930..=970).contains(&covered), "{covered} of 1,000 intervals cover {truth}");
    assert!(apart.abs() < 0.001, "{apart}");
}

#[test]
fn an_interval_of_a_quantile_difference_covers() {
    let text = "[session]\nturns = 2\n[[tools]]\nname = \"t\"\nlatency = { exponential = { mean = \"2s\" } }\n";
    let (two, three) =
        (scenario_with(text, &[]).model, scenario_with(text, &["tools.t.latency.exponential.mean=3s"]).model);
    for p in [0.5, 0.95] {
        let truth = -(1.0_f64 - p).ln();
        let mut covered = 0;
        for seed in 0..400 {
            let (of, against) = (values(&three, seed, 1_000, "latency_s"), values(&two, seed, 1_000, "latency_s"));
            let paired = Paired::new(&of, &against, &[p], |n| rng::replicate(seed, n));
            let [low, high] = paired.quantiles[0].difference.ci95;
            covered += u32::from(low <= truth && truth <= high);
        }
        assert!((364..=394).contains(&covered), "{covered} of 400 intervals of p{} cover {truth}", p * 100.0);
    }
    // the fast bootstrap is the plain one: independent samples of the same law
    let of = values(&three, 1, 4_000, "latency_s");
    let against = values(&two, 99, 4_000, "latency_s");
    let paired = Paired::new(&of, &against, &[0.5], |n| rng::replicate(1, n));
    // density of the median of an exponential law of mean μ is 1/(2μ): se = μ/√n
    let expected = (3.0_f64.powi(2) + 2.0_f64.powi(2)).sqrt() / 4_000.0_f64.sqrt();
    assert_close(paired.quantiles[0].difference.se, expected, 0.15);
}

#[test]
fn what_is_said_of_a_difference() {
    let one = [1.0, 2.0, 3.0, 4.0];
    let same = Paired::new(&one, &one, &[0.5], |n| rng::replicate(1, n));
    assert_eq!((same.difference.value, same.difference.se, same.share_equal), (0.0, 0.0, 1.0));
    assert!(!same.is_decided() && same.sessions_to_decide().is_none());
    // fixed differences need no luck
    let more: Vec<f64> = one.iter().map(|x| x + 0.5).collect();
    let paired = Paired::new(&more, &one, &[0.5], |n| rng::replicate(1, n));
    assert!(paired.is_decided());
    assert_close(paired.difference.value, 0.5, 1e-12);
    assert_eq!(paired.share_less.value, 0.0);
    // what only chance tells apart is undecided
    let noise = |from: u64| -> Vec<f64> {
        use rand::RngExt;
        let mut rng = rng::replicate(7, from);
        (0..500).map(|_| rng.random::<f64>()).collect()
    };
    let paired = Paired::new(&noise(1), &noise(2), &[], |n| rng::replicate(1, n));
    assert!(!paired.is_decided(), "{paired:?}");
    assert!(paired.sessions_to_decide().unwrap() > 500);
}

#[test]
fn comparisons_are_readable() {
    let comparison = compared("conversation.toml", 2_000);
    insta::assert_snapshot!("comparison_terminal", without_path(&compare_terminal(&comparison, Style::PLAIN)));
    insta::assert_snapshot!("comparison_markdown", without_path(&compare_markdown(&comparison)));
}

fn without_path(text: &str) -> String {
    text.replace(&format!("{}/", root().display()), "")
}

#[test]
fn a_strategy_that_changes_nothing_is_said() {
    let scenario = scenario_with("[session]\nturns = 3\noutput = 5\n[strategies.same]\nsession.turns = 3\n", &[]);
    assert!(scenario.notes.iter().any(|note| note.contains("\"same\" changes nothing")), "{:?}", scenario.notes);
}

#[test]
fn what_can_not_be_paired_is_refused() {
    let text = "[session]\nturns = 3\noutput = 5\n[[tools]]\nname = \"t\"\nlatency = \"1s\"\n";
    let pair = |sets: &[&str]| {
        let all = vec![scenario_with(text, &["run.sessions=50"]), scenario_with(text, sets)];
        compare(all, &[metric("latency_s")], Options::default(), &Silent).map(|_| ()).map_err(|e| e.to_string())
    };
    assert!(pair(&["run.sessions=50"]).is_ok());
    assert!(pair(&["run.sessions=60"]).unwrap_err().contains("--sessions"));
    assert!(pair(&["run.sessions=50", "run.seed=2"]).unwrap_err().contains("--seed"));
}
