//! Every file in `wrong/` is answered: all its mistakes, each with its line and what would work.

use agent_sim::scenario::{Request, Scenario, ScenarioError};

use crate::support::root;

fn load(name: &str) -> Result<Scenario, ScenarioError> {
    Scenario::load(&root().join("tests/it/wrong").join(name), &Request::default())
}

/// The messages, with paths as seen from the folder.
fn messages(error: &ScenarioError) -> String {
    let folder = format!("{}/", root().join("tests/it/wrong").display());
    error.render(false).replace(&folder, "")
}

#[test]
fn every_wrong_file_is_answered() {
    let mut names: Vec<String> = std::fs::read_dir(root().join("tests/it/wrong"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert!(names.len() >= 60, "only {} wrong files", names.len());
    for name in names {
        let error = load(&name).err().unwrap_or_else(|| panic!("{name} is accepted"));
        insta::with_settings!({ snapshot_suffix => name.trim_end_matches(".toml"), omit_expression => true }, {
            insta::assert_snapshot!(messages(&error));
        });
    }
}

#[test]
fn all_mistakes_come_at_once() {
    let error = load("many-mistakes-at-once.toml").unwrap_err();
    assert!(error.mistakes.len() >= 10, "{}", error.render(false));
}

#[test]
fn files_that_are_no_files_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let answer = |path: &std::path::Path| Scenario::load(path, &Request::default()).unwrap_err().render(false);
    assert!(answer(&folder.path().join("none.toml")).contains("can't be read"));
    assert!(answer(folder.path()).contains("is a folder"));
    let huge = folder.path().join("huge.toml");
    std::fs::write(&huge, "#".repeat(10_000_001)).unwrap();
    assert!(answer(&huge).contains("at most 10000000"));
}

#[test]
fn set_has_the_same_messages() {
    let text = std::fs::read_to_string(root().join("scenarios/fifty-turns.toml")).unwrap();
    let sets = [
        "cache.lifetime=2h",
        "tools.serch.timeout=5s",
        "session.turns=many",
        "tools.search.latency.exponential.mean=3",
        "sesion.turns=5",
        "nothing",
        "tools.search.calls={ poisson = { mean = -1 } }",
        "=5",
        "title",
    ]
    .map(str::to_owned);
    let request = Request { sets: &sets, ..Request::default() };
    let error = Scenario::parse(&text, "fifty-turns.toml", std::path::Path::new(""), &request).unwrap_err();
    insta::assert_snapshot!(messages(&error));
}

#[test]
fn an_unknown_strategy_is_answered() {
    let text = std::fs::read_to_string(root().join("scenarios/fifty-turns.toml")).unwrap();
    let request = Request { sets: &[], strategy: Some("uncachd"), ..Request::default() };
    let error = Scenario::parse(&text, "fifty-turns.toml", std::path::Path::new(""), &request).unwrap_err();
    insta::assert_snapshot!(messages(&error));
}

#[test]
fn more_than_fifty_mistakes_are_counted() {
    let lines: String = (0..80).map(|i| format!("key_{i} = 1\n")).collect();
    let error =
        Scenario::parse(&lines, "x.toml", std::path::Path::new(""), &Request::default()).unwrap_err().render(false);
    assert!(error.contains("… and 31 more") && error.contains("81 mistakes"), "{error}");
}

#[test]
fn set_makes_no_agents() {
    let text = "[session]\nturns = 3\n[[tools]]\nname = \"ask\"\nagent = \"web\"\n[agents.web]\nprompt.system = 5\n";
    let sets = ["agents.wbe.session.turns=5".to_owned()];
    let error =
        Scenario::parse(text, "a.toml", "".as_ref(), &Request { sets: &sets, ..Request::default() }).unwrap_err();
    assert!(error.to_string().contains("there is no agent \"wbe\""), "{error}");
    let sets = ["agents.web.session.turns=5".to_owned()];
    assert!(Scenario::parse(text, "a.toml", "".as_ref(), &Request { sets: &sets, ..Request::default() }).is_ok());
}
