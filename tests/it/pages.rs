//! Report pages: self-contained, nothing of a scenario is taken for markup, and every figure that they hold is there.

use agent_sim::report::{Figure, html};
use agent_sim::scenario::Assumption;

use crate::support::{answer, scenario_with, shipped_scenario};

fn page(text: &str, figures: Vec<Figure>) -> String {
    html(&answer(scenario_with(text, &["run.sessions=500"])), figures).unwrap()
}

#[test]
fn a_page_stands_alone_and_holds_nothing_raw() {
    let text = "title = \"<script>alert('x')</script> & co\"\n[session]\nturns = 3\noutput = 10\n\n# </pre><b>bold</b>\n[[tools]]\nname = \"a\\\"<i>\"\nlatency = { exponential = { mean = \"1s\" } }\n";
    let spots = vec![(1, 2, "5 < 6 </script>".to_owned())];
    let figure =
        Figure { question: "a < b?".to_owned(), svg: "<?xml?><svg width=\"800\" height=\"480\" ></svg>".into(), spots };
    let page = page(text, vec![figure]);
    assert!(!page.contains("<script>alert") && !page.contains("<b>bold") && !page.contains("<i>"), "raw markup");
    assert!(page.contains("&#60;script&#62;alert") && page.contains("a &lt; b?"));
    assert_eq!(page.matches("</script>").count(), 2, "a spot's text must not end the script that holds it");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.replace("http://www.w3.org", "").contains(outside), "{outside}");
    }
    // the file itself, with its comments
    assert!(page.contains("turns = 3\noutput = 10\n"));
    for section in ["figures", "ended", "sure", "assumptions", "scenario", "charts"] {
        assert!(page.contains(&format!("id=\"{section}\"")), "{section}");
    }
}

#[test]
fn a_page_says_each_figure_as_the_report_does() {
    let mut scenario = shipped_scenario("coding-agent.toml", None);
    scenario.run.sessions = 2_000;
    let answer = answer(scenario);
    let page = html(&answer, Vec::new()).unwrap();
    for (metric, _) in &answer.summary.metrics {
        assert!(
            page.contains(metric.quantity().name()) && page.contains(&metric.about().replace('\'', "&#39;")),
            "{}",
            metric.quantity().name()
        );
    }
    for check in &answer.checks.checks {
        assert!(page.contains(check.id), "{}", check.id);
    }
    for not in &answer.checks.not_checked {
        assert!(page.contains(not.id), "{}", not.id);
    }
}

#[test]
fn assumptions_are_what_is_written_and_what_holds_by_default() {
    let text = "[session]\nturns = 3\n[prompt]\nsystem = 500\n[[tools]]\nname = \"search\"\nlatency = { exponential = { mean = \"2s\" } }\n";
    let scenario = scenario_with(text, &["cache.lifetime=off", "tools.search.timeout=5s"]);
    let all = scenario.assumptions();
    let find = |key: &str| -> &Assumption { all.iter().find(|a| a.key == key).unwrap_or_else(|| panic!("no {key}")) };
    let turns = find("session.turns");
    assert_eq!((turns.value.as_str(), turns.is_default), ("3", false));
    assert!(turns.about.contains("until the answer"));
    assert_eq!(find("tools.search.timeout").value, "\"5s\"");
    assert!(find("tools.search.latency").value.contains("exponential"));
    let by_default = [
        ("run.seed", "1"),
        ("session.max_turns", "\"off\""),
        ("tools.search.idempotent", "false"),
        ("retry.base", "\"500ms\""),
    ];
    for (key, value) in by_default {
        let found = find(key);
        assert_eq!((found.value.as_str(), found.is_default), (value, true), "{key}");
        assert!(!found.about.is_empty(), "{key}");
    }
    let mut keys: Vec<&str> = all.iter().map(|a| a.key.as_str()).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "a key stands twice");
}
