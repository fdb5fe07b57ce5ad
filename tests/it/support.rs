//! What several themes need.

use std::path::{Path, PathBuf};

use agent_sim::model::Model;
use agent_sim::scenario::{Request, Scenario};
use agent_sim::simulate::{Answer, Options, Silent, simulate};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every shipped scenario.
pub fn shipped() -> Vec<PathBuf> {
    let in_folder = |folder: &str| std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = in_folder("scenarios")
        .chain(in_folder("scenarios/architectures"))
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 28, "scenarios are missing: {files:?}");
    files
}

pub fn scenario(text: &str) -> Scenario {
    scenario_with(text, &[])
}

pub fn scenario_with(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let request = Request { sets: &sets, ..Request::default() };
    Scenario::parse(text, "test.toml", Path::new(""), &request).unwrap_or_else(|e| panic!("{e}"))
}

pub fn model(text: &str) -> Model {
    scenario(text).model
}

pub fn shipped_scenario(name: &str, strategy: Option<&str>) -> Scenario {
    let path = root().join("scenarios").join(name);
    Scenario::load(&path, &Request { sets: &[], strategy, ..Request::default() }).unwrap_or_else(|e| panic!("{e}"))
}

pub fn answer(scenario: Scenario) -> Answer {
    simulate(scenario, Options::default(), &Silent).unwrap()
}

/// `sessions` sessions of a text.
pub fn run(text: &str, sessions: u64) -> Answer {
    answer(scenario_with(text, &[&format!("run.sessions={sessions}")]))
}

/// The mean of a metric that must be there.
#[track_caller]
pub fn mean(answer: &Answer, metric: &str) -> f64 {
    answer.summary.metric(metric).unwrap_or_else(|| panic!("no {metric}")).mean.value
}

#[track_caller]
pub fn assert_close(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want.abs().max(1e-300), "got {got}, want {want}");
}
