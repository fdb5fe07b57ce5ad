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
    let spots = vec![(1, 2, "5 < 6 </script> <!--<script>".to_owned())];
    let figure =
        Figure { question: "a < b?".to_owned(), svg: "<?xml?><svg width=\"800\" height=\"480\" ></svg>".into(), spots };
    let page = page(text, vec![figure]);
    assert!(!page.contains("<script>alert") && !page.contains("<b>bold") && !page.contains("<i>"), "raw markup");
    assert!(page.contains("&#60;script&#62;alert") && page.contains("a &lt; b?"));
    assert!(!page.contains("<!--"));
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
    for (metric, figures) in &answer.summary.metrics {
        let (name, about) = (metric.quantity().name(), metric.about().replace('\'', "&#39;"));
        let row =
            page.split("<tr>").find(|row| row.contains(&format!(">{name}<"))).unwrap_or_else(|| panic!("no {name}"));
        assert!(row.contains(&about), "{name}: {row}");
        // sorted by the exact values, in the order of the columns
        let sorts: Vec<f64> =
            row.split("data-sort=\"").skip(1).map(|s| s.split('"').next().unwrap().parse().unwrap()).collect();
        let wanted = [figures.mean.value, figures.quantile(0.5).unwrap().value, figures.quantile(0.99).unwrap().value];
        assert_eq!([sorts[0], sorts[1], sorts[4]], wanted, "{name}");
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
    // what a preset or a herd decides isn't a default
    let preset = scenario_with(text, &["retry=\"anthropic-sdk\""]).assumptions();
    assert!(!preset.iter().any(|a| a.is_default && a.key.starts_with("retry.")), "{preset:?}");
    let herd = shipped_scenario("herd.toml", None).assumptions();
    assert!(!herd.iter().any(|a| a.key == "retry.attempts" || a.key.starts_with("session.")), "{herd:?}");
    let fleet = shipped_scenario("fleet.toml", None).assumptions();
    let by_default = |key: &str| fleet.iter().find(|a| a.key == key && a.is_default).map(|a| a.value.clone());
    assert_eq!(
        (by_default("cache.prefix_lifetime"), by_default("fleet.limits.burst")),
        (None, Some("\"1m\"".to_owned()))
    );
    let mut keys: Vec<&str> = all.iter().map(|a| a.key.as_str()).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "a key stands twice");
}
