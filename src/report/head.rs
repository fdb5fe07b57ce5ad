//! What every JSON report says of itself: its schema, its scenario and its prices.

use std::fmt::Write as _;

use serde::Serialize;

use crate::price::Sheet;
use crate::scenario::Scenario;

/// How a report begins.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    schema: &'static str,
    version: &'static str,
    title: &'a str,
    file: &'a str,
    seed: u64,
    sessions: u64,
    /// What a reader should know of the scenario, as the report of `run` has it.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

impl<'a> Head<'a> {
    pub fn of(schema: &'static str, scenario: &'a Scenario, sessions: u64) -> Self {
        let (title, file, seed) = (&scenario.title, &scenario.file, scenario.run.seed);
        Self { schema, version: env!("CARGO_PKG_VERSION"), title, file, seed, sessions, notes: &scenario.notes }
    }
}

/// Whoever has the same sheet and day has the same prices.
#[derive(Serialize)]
pub(super) struct PriceSheet {
    name: String,
    date: String,
    sha256: String,
}

impl PriceSheet {
    pub fn of(sheet: &Sheet) -> Self {
        Self { name: sheet.name().to_owned(), date: sheet.date().to_string(), sha256: sheet.sha256().to_owned() }
    }
}

/// The texts of scenarios, each once; of several files each below its name.
pub fn texts(scenarios: &[Scenario]) -> String {
    let mut seen: Vec<&Scenario> = Vec::new();
    for scenario in scenarios {
        if !seen.iter().any(|other| other.file == scenario.file) {
            seen.push(scenario);
        }
    }
    match seen.as_slice() {
        [only] => only.text.clone(),
        several => {
            let each: Vec<String> =
                several.iter().map(|scenario| format!("# {}\n{}\n", scenario.file, scenario.text)).collect();
            each.concat()
        }
    }
}

/// A short name for a text, the same wherever it is the same.
pub fn digest(text: &str) -> String {
    use sha2::Digest as _;
    let bytes = sha2::Sha256::digest(text.as_bytes());
    bytes.iter().take(12).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}
