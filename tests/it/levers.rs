//! `levers`: what each saves, held against closed forms and against the file with the same keys set by hand.

use agent_sim::scenario::{Request, Scenario};
use agent_sim::simulate::{Options, Pulled, Ranking, Silent, levers};

use crate::support::{answer, assert_close, mean, root, scenario_with, shipped, shipped_scenario};

fn ranked(mut scenario: Scenario, sessions: u64) -> Ranking {
    scenario.run.sessions = sessions;
    scenario.run.precision.clear();
    levers(scenario, Options::default(), &Silent).unwrap()
}

#[track_caller]
fn lever<'a>(ranking: &'a Ranking, name: &str) -> &'a Pulled {
    let names: Vec<&str> = ranking.pulled.iter().map(|pulled| pulled.name.as_str()).collect();
    ranking
        .pulled
        .iter()
        .find(|pulled| pulled.name.starts_with(name))
        .unwrap_or_else(|| panic!("{name} isn't in {names:?}"))
}

fn saved(pulled: &Pulled) -> f64 {
    pulled.saved.as_ref().unwrap().difference.value
}

#[test]
fn caching_comes_first_on_the_fifty_turn_session() {
    // MODEL.md §8: $4.4250 without, $0.6288 with
    let closed_form = 4.425 - 0.6288;
    let on = ranked(shipped_scenario("fifty-turns.toml", None), 500);
    let off = ranked(shipped_scenario("fifty-turns.toml", Some("uncached")), 500);
    for (ranking, is_on) in [(&on, true), (&off, false)] {
        let first = &ranking.pulled[0];
        assert!(first.name.contains("cache that lives 5m"), "{}", first.name);
        assert_eq!(first.is_on, is_on);
        assert_close(saved(first), closed_form, 1e-9);
        assert_close(first.saved_in_theory_usd.unwrap(), closed_form, 1e-9);
        assert_eq!(first.saved.as_ref().unwrap().difference.se, 0.0);
    }
    // half of 700 tokens: every turn's growth is 650 instead of 1,000
    let reread = |s: f64| 3e-6 * (1.25 * (5_000.0 + 49.0 * s) + 0.1 * (49.0 * 5_000.0 + s * 49.0 * 48.0 / 2.0));
    assert_close(saved(lever(&on, "half of every")), reread(1_000.0) - reread(650.0), 1e-9);
    // hedging at p95 of an exponential law takes off the mean what latency.hedged says
    let hedged = lever(&on, "hedging at p95");
    let (mu, p) = (2.0_f64, 0.05);
    let faster = &hedged.faster.as_ref().unwrap().difference;
    assert!((faster.value - 49.0 * (mu - (mu * (1.0 - p) + mu / 2.0 * p))).abs() < 4.0 * faster.se, "{faster:?}");
    assert!(hedged.effects.iter().any(|effect| effect.name == "duplicates.mean" && effect.values[0] > 2.0));
    let later = lever(&on, "a timeout at p95 and a second attempt");
    assert!(later.effects.iter().any(|effect| effect.name == "availability" && effect.values[0] < 0.999));
}

#[test]
fn savings_agree_with_their_closed_forms() {
    let mut known = 0;
    for file in [
        "fifty-turns.toml",
        "lifetimes.toml",
        "architectures/sixty-tools.toml",
        "tool-definitions.toml",
        "conversation.toml",
    ] {
        let ranking = ranked(shipped_scenario(file, None), 2_000);
        for pulled in &ranking.pulled {
            let (Some(saved), Some(theory)) = (&pulled.saved, pulled.saved_in_theory_usd) else { continue };
            let off = (saved.difference.value - theory).abs();
            let near = 1e-9 * mean(&ranking.base, "cost_usd") + 4.5 * saved.difference.se;
            assert!(off <= near, "{file}, {}: {} against {theory}", pulled.name, saved.difference.value);
            known += 1;
        }
    }
    assert!(known > 30, "{known}");
}

#[test]
fn what_a_lever_sets_is_what_was_played() {
    let mut tried = 0;
    for (file, sessions) in
        [("fifty-turns.toml", 300), ("architectures/sixty-tools.toml", 200), ("coding-agent.toml", 40)]
    {
        let ranking = ranked(shipped_scenario(file, None), sessions);
        let base = mean(&ranking.base, "cost_usd");
        for pulled in ranking.pulled.iter().filter(|pulled| pulled.changes.iter().all(|change| change.to.is_some())) {
            let mut sets: Vec<String> =
                pulled.changes.iter().map(|c| format!("{}={}", c.key, c.to.as_ref().unwrap())).collect();
            sets.push(format!("run.sessions={sessions}"));
            let request = Request { sets: &sets, ..Request::default() };
            let scenario = Scenario::load(&root().join("scenarios").join(file), &request)
                .unwrap_or_else(|e| panic!("{}: {e}", pulled.name));
            let by_hand = mean(&answer(scenario), "cost_usd") - base;
            let by_hand = if pulled.is_on { by_hand } else { -by_hand };
            assert!((by_hand - saved(pulled)).abs() <= 1e-9 * base, "{file}, {}: {by_hand}", pulled.name);
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn a_lever_that_is_on_is_the_other_way_round() {
    let text = "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\ncache_write_1h = 6\n\
                [prompt]\nsystem = 5000\n[session]\nturns = 20\noutput = 200\ntool_calls = \"sequential\"\n\
                [[tools]]\nname = \"a\"\nresult = 500\ncalls = 3\ntimeout = \"4s\"\nlatency = { exponential = { mean = \"1s\" } }\n\
                retry = { attempts = 3 }\n";
    let plain = ranked(scenario_with(text, &["cache.lifetime=5m"]), 1_000);
    let there_and_back = |name: &str, sets: &[&str], on: &str| {
        let pulled = lever(&plain, name);
        let other = ranked(scenario_with(text, sets), 1_000);
        let back = lever(&other, on);
        assert!(!pulled.is_on && back.is_on);
        assert_close(saved(pulled), saved(back), 1e-9);
        let mean_s = |pulled: &Pulled| pulled.faster.as_ref().unwrap().difference.value;
        assert_close(mean_s(pulled), mean_s(back), 1e-9);
    };
    there_and_back(
        "1h for tools and system only",
        &["cache.lifetime=5m", "cache.prefix_lifetime=1h"],
        "1h for tools and system",
    );
    there_and_back("keep-alive every 270 s", &["cache.lifetime=5m", "cache.keep_alive=270s"], "keep-alive");
    there_and_back("calls side by side", &["cache.lifetime=5m", "session.tool_calls=parallel"], "calls side by side");
    there_and_back(
        "idempotency keys for a",
        &["cache.lifetime=5m", "tools.a.idempotent=true"],
        "idempotency keys of a",
    );
    let keys = lever(&plain, "idempotency keys for a");
    assert_eq!(keys.effects.iter().map(|e| e.values[0]).collect::<Vec<_>>(), vec![0.0], "{:?}", keys.effects);
    let faster = lever(&plain, "calls side by side").off_tail().unwrap();
    assert!(faster.ci95[0] > 10.0, "{faster:?}");
}

#[test]
fn dropping_a_server_takes_its_tools_along() {
    let text = "[price]\ninput = 3\noutput = 15\n[[servers]]\nname = \"one\"\ntools = 5\ntokens_per_tool = 100\n\
                [[servers]]\nname = \"two\"\ndefinition_tokens = 1000\n[session]\nturns = 11\noutput = 0\n\
                [[tools]]\nname = \"a\"\nserver = \"one\"\nlatency = \"1s\"\n\
                [[tools]]\nname = \"b\"\nafter = [\"a\"]\nlatency = \"2s\"\n";
    let ranking = ranked(scenario_with(text, &[]), 100);
    let (one, two) = (lever(&ranking, "without the server one"), lever(&ranking, "without the server two"));
    assert_eq!(one.loses, Some(("one".to_owned(), vec!["a".to_owned()])));
    assert_eq!(two.loses, Some(("two".to_owned(), Vec::new())));
    // eleven prompts without 500, and without 1,000 tokens
    assert_close(saved(one), 11.0 * 500.0 * 3e-6, 1e-9);
    assert_close(saved(two), 11.0 * 1_000.0 * 3e-6, 1e-9);
    assert_close(one.faster.as_ref().unwrap().difference.value, 10.0, 1e-9);
    let others: Vec<&str> = ranking.others.iter().map(|(what, _)| what.as_str()).collect();
    assert!(others.contains(&"one found by search") && others.contains(&"hedging at p95"), "{others:?}");
}

#[test]
fn every_shipped_scenario_has_levers_or_says_why_not() {
    for path in shipped() {
        let scenario = Scenario::load(&path, &Request::default()).unwrap();
        let found = scenario.levers();
        let fewest = if scenario.model.herd.is_some() { 1 } else { 5 };
        assert!(found.levers.len() + found.others.len() >= fewest, "{}", path.display());
        for lever in &found.levers {
            let changes = scenario.changes(&lever.scenario);
            assert!(
                changes.iter().any(|change| !change.key.starts_with("strategies")),
                "{}: {}",
                path.display(),
                lever.name
            );
        }
    }
    // without prices and time there is nothing to rank by, and that is no mistake
    let ranking = ranked(scenario_with("[session]\nturns = 3\noutput = 10\n", &[]), 100);
    assert!(ranking.pulled.is_empty() && ranking.others.len() >= 5, "{:?}", ranking.others);
}

#[test]
fn what_harms_or_takes_away_isnt_called_first() {
    // an hour costs more, so more sessions are stopped by their budget, and are over sooner
    let budget = ranked(shipped_scenario("budget.toml", None), 3_000);
    let hour = lever(&budget, "a cache that lives 1h");
    assert!(hour.harms() && hour.off_tail().unwrap().value > 0.0, "{:?}", hour.effects);
    let text = agent_sim::report::levers_terminal(&budget, agent_sim::report::Style::PLAIN);
    let first = text.lines().find(|line| line.trim_start().starts_with("First")).unwrap();
    assert!(!first.contains("a cache that lives 1h"), "{first}");
    let sixty = ranked(shipped_scenario("architectures/sixty-tools.toml", None), 500);
    let text = agent_sim::report::levers_terminal(&sixty, agent_sim::report::Style::PLAIN);
    assert!(lever(&sixty, "without the server office").off_tail().is_none());
    assert!(text.contains("First for money: office called from code"), "{text}");
    assert!(text.contains("leave office out of [[servers]] and lookup out of [[tools]]"), "{text}");
}

#[test]
fn names_with_dots_are_quoted() {
    let text = "[price]\ninput = 3\noutput = 15\n[session]\nturns = 4\noutput = 10\n[[tools]]\nname = \"web.search\"\n\
                result = 100\nlatency = { exponential = { mean = \"1s\" } }\n";
    let ranking = ranked(scenario_with(text, &[]), 200);
    let halved = lever(&ranking, "half of every");
    assert_eq!(halved.changes[0].key, "tools.\"web.search\".result");
    assert!(!lever(&ranking, "hedging at p95").is_on);
    let by_hand = scenario_with(text, &["tools.\"web.search\".result=50"]);
    assert_eq!(by_hand.model.phase.tools[0].result.as_constant(), Some(50));
}
