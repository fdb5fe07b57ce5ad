//! Results as polars `DataFrame`s: the tables that `-o` writes, in memory. The only room that knows polars.
//!
//! Behind the feature `frames`. [`play`] plays scenarios side by side and keeps every row; [`sessions`], [`turns`] and
//! [`fleet`] hand the tables out. `examples/frames.rs` groups them by strategy.

use polars::prelude::{Column, DataFrame, PolarsResult};

use crate::Error;
use crate::scenario::Scenario;
use crate::simulate::{Answer, Options, Progress, simulate};
use crate::table::{Cells, Memory, Name, Schema, Table};

/// Scenarios that were played, with every row.
#[derive(Debug)]
pub struct Run {
    /// The answers, in the order of the scenarios.
    pub answers: Vec<Answer>,
    tables: Vec<(Name, Table)>,
}

/// Plays scenarios, usually the strategies of a file, and keeps every session in memory: about 16 bytes a value.
///
/// # Errors
/// As [`simulate()`].
pub fn play(scenarios: Vec<Scenario>, options: Options<'_>, progress: &dyn Progress) -> Result<Run, Error> {
    let models: Vec<_> = scenarios.iter().map(|scenario| &scenario.model).collect();
    let memory = Memory::new(&Schema::all(&models));
    let mut answers = Vec::new();
    for scenario in scenarios {
        answers.push(simulate(scenario, Options { tables: Some(&memory), ..options }, progress)?);
    }
    Ok(Run { answers, tables: memory.into_tables() })
}

/// A row a session and strategy: what `sessions.parquet` holds.
///
/// # Errors
/// What polars says.
pub fn sessions(run: &Run) -> PolarsResult<DataFrame> {
    frame(run, Name::Sessions)
}

/// A row a turn of the first sessions, of a fleet of one session in so many: what `turns.parquet` holds; no rows of herds.
///
/// # Errors
/// What polars says.
pub fn turns(run: &Run) -> PolarsResult<DataFrame> {
    frame(run, Name::Turns)
}

/// A row a number of a fleet and piece of its time: what `fleet.parquet` holds; no rows where there is no fleet.
///
/// # Errors
/// What polars says.
pub fn fleet(run: &Run) -> PolarsResult<DataFrame> {
    frame(run, Name::Fleet)
}

fn frame(run: &Run, name: Name) -> PolarsResult<DataFrame> {
    let Some((_, table)) = run.tables.iter().find(|(own, _)| *own == name) else {
        return Ok(DataFrame::empty());
    };
    let column = |(name, cells): &(String, Cells)| {
        let name = name.as_str().into();
        match cells {
            Cells::Whole(values) => Column::new(name, values.as_slice()),
            Cells::Number(values) => Column::new(name, values.as_slice()),
            Cells::Flag(values) => Column::new(name, values.as_slice()),
            Cells::Text(values) => {
                let texts: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
                Column::new(name, texts)
            }
        }
    };
    DataFrame::new(table.rows(), table.columns.iter().map(column).collect())
}
