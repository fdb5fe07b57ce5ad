//! What every JSON report says of itself: its schema, its scenario and its prices.

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
}

impl<'a> Head<'a> {
    pub fn of(schema: &'static str, scenario: &'a Scenario, sessions: u64) -> Self {
        let (title, file, seed) = (&scenario.title, &scenario.file, scenario.run.seed);
        Self { schema, version: env!("CARGO_PKG_VERSION"), title, file, seed, sessions }
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
