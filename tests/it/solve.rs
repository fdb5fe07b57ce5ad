//! `solve`: where two figures are equal, held against closed forms.

use agent_sim::Error;
use agent_sim::scenario::{Request, Scenario};
use agent_sim::simulate::{Kind, Options, Silent, Solution, Unknown, solve};
use agent_sim::stats::{Question, Statistic};

use crate::support::{assert_close, root};

fn question(text: &str) -> Question {
    Question::parse(text).unwrap_or_else(|e| panic!("{e}"))
}

fn solved(file: &str, key: &str, kind: Kind, between: [f64; 2], asked: &str, sets: &[&str]) -> Result<Solution, Error> {
    let path = root().join("scenarios").join(file);
    let load = |strategy: &str, value: &str| {
        let mut sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        sets.push(format!("{key}={value}"));
        let request = Request { sets: &sets, strategy: Some(strategy), ..Request::default() };
        Ok(Scenario::load(&path, &request)?)
    };
    let unknown = Unknown { key: key.to_owned(), kind, low: between[0], high: between[1] };
    solve(unknown, question(asked), &load, Options::default(), &Silent)
}

/// The session of MODEL.md §8 with a tool that a person answers, at 5 minutes and at an hour.
const LATENCY: &str = "tools.search.latency.exponential.mean";
const LIFETIMES: &str = "cost_usd.mean(hour) = cost_usd.mean(base)";

#[test]
fn two_lifetimes_break_even_where_the_closed_form_says() {
    let sets = ["run.sessions=4000"];
    let solution = solved("lifetimes.toml", LATENCY, Kind::Seconds, [6.0, 600.0], LIFETIMES, &sets).unwrap();
    let [crossing] = solution.crossings.as_slice() else { panic!("{:?}", solution.crossings) };
    // q = exp(-300/g) = 2.48 % of the gaps: g = 300 / ln(1/q)
    let (share, seen, lifetimes) = crossing.gaps.unwrap();
    assert_eq!(lifetimes, [300.0, 3_600.0]);
    assert_eq!((share * 1e4).round(), 248.0);
    let theory = crossing.theory.unwrap();
    assert_close(theory, 300.0 / (1.0 / share).ln(), 1e-5);
    assert!(crossing.ci95[0] < theory && theory < crossing.ci95[1], "{theory} {:?}", crossing.ci95);
    assert!(crossing.ci95[1] / crossing.ci95[0] < 1.03, "{:?}", crossing.ci95);
    assert!((seen.value - share).abs() < 6.0 * seen.se, "{share} {seen:?}");
    assert_eq!(crossing.signs, [1, -1]);
    assert!(solution.wrong_at.is_empty());
}

#[test]
fn a_cache_pays_from_the_second_call_on() {
    let asked = "cost_usd.mean(uncached) = cost_usd.mean";
    let sets = ["run.sessions=200"];
    let solution = solved("fifty-turns.toml", "session.turns", Kind::Whole, [1.0, 60.0], asked, &sets).unwrap();
    let [crossing] = solution.crossings.as_slice() else { panic!("{:?}", solution.crossings) };
    // 2 P0 + s against 1.25 (P0 + s) + 0.1 P0, and P0 against 1.25 P0
    assert_eq!((crossing.x, crossing.between, crossing.theory), (2.0, [1.0, 2.0], Some(2.0)));
    assert_eq!((crossing.ci95, crossing.signs), ([2.0, 2.0], [-1, 1]));
}

#[test]
fn a_target_is_met_exactly_where_nothing_is_left_to_chance() {
    let sets = ["run.sessions=50"];
    let price = |asked: &str, between| {
        solved("fifty-turns.toml", "price.cache_read", Kind::Real, between, asked, &sets).unwrap()
    };
    let solution = price("cost_input_usd.mean = 0.5", [0.03, 3.0]);
    let [crossing] = solution.crossings.as_slice() else { panic!("{:?}", solution.crossings) };
    // 3.75 × 54,000 + read × 1,421,000, per million, is half a dollar
    assert!((crossing.x - (500_000.0 - 3.75 * 54_000.0) / 1_421_000.0).abs() <= 1e-6, "{}", crossing.x);
    let none = price("cost_input_usd.mean = 5", [0.03, 3.0]);
    assert!(none.crossings.is_empty() && none.points.len() >= 9);
    // the same everywhere is no crossing
    let never = price("cost_usd.mean = cost_usd.mean(base)", [0.03, 3.0]);
    assert!(never.crossings.is_empty() && never.points.iter().all(|point| point.difference.value == 0.0));
    // through zero at one of the first values is one crossing
    let middle =
        solved("fifty-turns.toml", "price.output", Kind::Real, [10.0, 20.0], "cost_output_usd.mean = 0.225", &sets)
            .unwrap();
    assert_eq!(middle.crossings.iter().map(|c| (c.x, c.signs)).collect::<Vec<_>>(), vec![(15.0, [-1, 1])]);
}

#[test]
fn several_crossings_are_all_found() {
    // summaries are dear where they are many, and long histories where they are few
    let (key, sets) = ("context.compact_at", ["run.sessions=50", "context.summary=2000"]);
    let asked = "cost_usd.mean = 0.8";
    let solution = solved("fifty-turns.toml", key, Kind::Whole, [8_000.0, 60_000.0], asked, &sets).unwrap();
    let signs: Vec<[i8; 2]> = solution.crossings.iter().map(|c| c.signs).collect();
    assert_eq!(signs, vec![[1, -1], [-1, 1]], "{:?}", solution.points);
    for crossing in &solution.crossings {
        // nothing is left to chance, and neighbours lie on either side
        let [before, after] = crossing.between;
        assert_eq!((after - before, crossing.x, crossing.ci95), (1.0, after, [after, after]));
        assert_eq!(crossing.theory, Some(after));
    }
}

#[test]
fn a_mean_latency_is_reached_at_its_closed_form() {
    let solve_at = |seed: u64, sessions: u64| {
        let sets = [format!("run.seed={seed}"), format!("run.sessions={sessions}"), "session.turns=5".to_owned()];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        solved("fifty-turns.toml", LATENCY, Kind::Seconds, [0.5, 8.0], "latency_s.mean = 8", &sets).unwrap()
    };
    // four phases of mean g
    let first = solve_at(1, 2_000);
    assert_close(first.crossings[0].theory.unwrap(), 2.0, 1e-5);
    // the interval covers it as often as it says
    let seeds = 300;
    let covers = |seed: u64| {
        let crossing = &solve_at(seed, 100).crossings[0];
        crossing.ci95[0] <= 2.0 && 2.0 <= crossing.ci95[1]
    };
    let covered = (1..=seeds).filter(|seed| covers(*seed)).count() as f64 / seeds as f64;
    assert!((0.915..=0.98).contains(&covered), "{covered}");
}

#[test]
fn a_quantile_is_reached_at_its_closed_form() {
    let solve_at = |mean: &str| {
        let sets = ["run.sessions=40000", mean];
        solved("fifty-turns.toml", "session.turns", Kind::Whole, [2.0, 200.0], "latency_s.p95 = 200", &sets).unwrap()
    };
    let two = solve_at("tools.search.latency.exponential.mean=2s");
    let crossing = &two.crossings[0];
    assert_eq!(Some(crossing.x), crossing.theory, "{crossing:?}");
    // with a mean that is 2 % off, as of a gap too many, it is another turn
    let other = solve_at("tools.search.latency.exponential.mean=2.04s");
    assert_ne!(other.crossings[0].theory, crossing.theory);
}

#[test]
fn a_tie_of_a_sample_is_no_equality() {
    // availability 1 - b³ is 0.999 at b = 0.1; few sessions give shares that often hit it exactly
    let key = "tools.book_room.lost_reply";
    let seeds = 40;
    let covers = |seed: u64| {
        let sets = [
            "run.sessions=200".to_owned(),
            format!("run.seed={seed}"),
            "retry.attempts=3".to_owned(),
            "tools.book_room.lost_request=0".to_owned(),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let solution = solved("retries.toml", key, Kind::Real, [0.001, 0.5], "availability = 0.999", &sets).unwrap();
        let [crossing] = solution.crossings.as_slice() else { panic!("{seed}: {:?}", solution.crossings) };
        assert_eq!(crossing.signs, [1, -1]);
        crossing.ci95[0] <= 0.1 && 0.1 <= crossing.ci95[1]
    };
    let covered = (1..=seeds).filter(|seed| covers(*seed)).count();
    assert!(covered >= 34, "{covered} of {seeds}");
}

#[test]
fn an_exact_answer_has_no_interval() {
    let sets = ["run.sessions=50"];
    let price =
        solved("fifty-turns.toml", "price.output", Kind::Real, [10.0, 21.0], "cost_output_usd.mean = 0.225", &sets);
    let price = &price.unwrap().crossings[0];
    assert!((price.x - 15.0).abs() < 2e-6 && price.ci95[1] - price.ci95[0] < 5e-5, "{price:?}");
    assert!((price.theory.unwrap() - 15.0).abs() < 2e-5, "{price:?}");
    let whole = solved(
        "fifty-turns.toml",
        "prompt.system",
        Kind::Whole,
        [1000.0, 8000.0],
        "input_tokens.mean = 1475000",
        &sets,
    );
    let whole = &whole.unwrap().crossings[0];
    assert!(whole.is_exact() && (whole.x, whole.ci95) == (5000.0, [5000.0, 5000.0]), "{whole:?}");
}

#[test]
fn the_closed_form_is_that_of_the_same_crossing() {
    // a sawtooth: a summary more or less moves the cost by steps
    let sets = ["run.sessions=20", "context.summary=2000"];
    for asked in ["cost_usd.mean = 0.75", "cost_usd.mean = 0.74"] {
        let solution = solved("fifty-turns.toml", "context.compact_at", Kind::Whole, [8e3, 6e4], asked, &sets).unwrap();
        assert!(!solution.crossings.is_empty());
        for crossing in &solution.crossings {
            assert_eq!(crossing.theory, Some(crossing.x), "{asked}");
        }
    }
}

#[test]
fn break_even_is_only_told_of_two_lifetimes() {
    let gaps = |sets: &[&str]| {
        let mut sets = sets.to_vec();
        sets.push("run.sessions=1000");
        let solution = solved("lifetimes.toml", LATENCY, Kind::Seconds, [6.0, 600.0], LIFETIMES, &sets).unwrap();
        solution.crossings[0].gaps.is_some()
    };
    assert!(gaps(&[]));
    assert!(!gaps(&["strategies.hour.price.output=16"]));
    assert!(!gaps(&["strategies.hour.session.turns=52"]));
}

#[test]
fn one_session_leaves_everything_open() {
    let solution =
        solved("lifetimes.toml", LATENCY, Kind::Seconds, [6.0, 600.0], "latency_s.mean = 3000", &["run.sessions=1"]);
    let crossing = &solution.unwrap().crossings[0];
    assert_eq!(crossing.ci95, [f64::NEG_INFINITY, f64::INFINITY]);
}

#[test]
fn a_curve_that_turns_round_between_the_first_values_is_seen() {
    // max_turns cuts sessions short: the cost rises with the turns, and falls back where no answer is reached
    let sets = ["run.sessions=50", "session.max_turns=12"];
    let asked = "cost_output_usd.mean = 0.052";
    let solution = solved("fifty-turns.toml", "session.turns", Kind::Whole, [1.0, 100_000.0], asked, &sets).unwrap();
    assert_eq!(solution.crossings.first().map(|c| c.x), Some(12.0), "{:?}", solution.points);
    assert!(solution.points.iter().any(|point| point.answered < 1.0));
}

#[test]
fn questions_that_cant_be_asked() {
    for (text, says) in [
        ("cost_usd.mean", "must be two figures"),
        ("1 = 2", "must be two figures"),
        ("cost_usd.mean <= 2", "must be two figures"),
        ("cost_usd.mean(hour = 2", "must be two figures"),
        ("cost_usd.mean() = 2", "must be two figures"),
        ("cost_us.mean = 2", "did you mean `cost_usd.mean`"),
        ("cost_usd = 2", "must end in .mean"),
        ("cost_usd.mean = latency_s.mean", "count different things"),
        ("cost_usd.p95 = cost_usd.mean", "has no interval here"),
        ("cost_usd.mean = inf", "must be two figures"),
    ] {
        let error = Question::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    assert!(matches!(question("latency_s.p99 = 60").statistic(), Some(Statistic::Quantile(..))));
    let asked = |text: &str, sets: &[&str]| {
        solved("fifty-turns.toml", "session.turns", Kind::Whole, [2.0, 60.0], text, sets).unwrap_err().to_string()
    };
    assert!(asked("cost_usd.mean(uncachd) = 1", &[]).contains("did you mean \"uncached\"?"));
    assert!(asked("latency_s.p99 = 1", &["run.sessions=500"]).contains("fewer than ten sessions"));
    assert!(asked("think_s.mean = 1", &[]).contains("`think_s.mean` doesn't apply to base at session.turns = 60"));
}
