//! Results as tables: a row a session, a row a turn, a row a piece of a fleet's time.
//!
//! Rows are handed on while sessions are played ([`Rows`]), so that memory stays flat: in the order of their numbers, of a
//! fleet replication by replication in the order in which sessions end. So the same seed gives the same bytes. [`Files`] writes them as Parquet and CSV, [`Memory`] keeps them. The only room that
//! knows Parquet and CSV.

mod csv;
mod files;
mod fleet;
mod memory;
mod parquet;
mod rows;
mod schema;

use std::sync::Arc;

pub use files::{Files, hidden};
pub use fleet::fleet_part;
pub use memory::{Cells, Memory, Table};
pub use rows::Rows;
pub use schema::{Column, Kind, Name, Schema};

/// The values of one column in some rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Numbers; NaN where there is none.
    Number(Vec<f64>),
    /// Yes or no.
    Flag(Vec<bool>),
    /// Words of a fixed list; empty where there is none.
    Word(Vec<&'static str>),
    /// Texts.
    Text(Vec<String>),
    /// One text in so many rows.
    Same(Arc<str>, usize),
    /// One whole number in so many rows.
    SameWhole(i64, usize),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Whole(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Flag(values) => values.len(),
            Values::Word(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Same(_, rows) | Values::SameWhole(_, rows) => *rows,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn text(&self, row: usize) -> &str {
        match self {
            Values::Word(words) => words.get(row).copied().unwrap_or_default(),
            Values::Text(texts) => texts.get(row).map(String::as_str).unwrap_or_default(),
            Values::Same(text, _) => text,
            _ => "",
        }
    }
}

/// Some rows of one table, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Whose rows.
    pub table: Name,
    /// How many.
    pub rows: usize,
    /// By the column's name, in pieces one behind the other; a column of the table that isn't here has no values in these
    /// rows.
    pub columns: Vec<(&'static str, Vec<Values>)>,
}

impl Part {
    fn column(&self, name: &str) -> &[Values] {
        self.columns.iter().find(|(own, _)| *own == name).map_or(&[], |(_, pieces)| pieces)
    }
}

/// Where rows go. Rows come in streams (a run, or one replication of a fleet), which may run side by side; a sink puts them
/// in the order of the streams.
pub trait Sink: Sync + std::fmt::Debug {
    /// Numbers for so many streams, beginning with the one that is returned.
    fn streams(&self, count: u64) -> u64;
    /// Rows of a stream.
    fn rows(&self, stream: u64, part: Part);
    /// There are no more of it.
    fn end(&self, stream: u64);
}

/// Puts streams that run side by side in order.
#[derive(Debug, Default)]
struct InOrder {
    /// The stream whose rows are passed on.
    current: u64,
    waiting: std::collections::BTreeMap<u64, (Vec<Part>, bool)>,
}

impl InOrder {
    /// Takes rows in, and hands on what is next.
    fn rows<E>(&mut self, stream: u64, part: Part, mut next: impl FnMut(Part) -> Result<(), E>) -> Result<(), E> {
        if stream == self.current {
            return next(part);
        }
        self.waiting.entry(stream).or_default().0.push(part);
        Ok(())
    }

    fn end<E>(&mut self, stream: u64, mut next: impl FnMut(Part) -> Result<(), E>) -> Result<(), E> {
        self.waiting.entry(stream).or_default().1 = true;
        while let Some((parts, is_over)) = self.waiting.remove(&self.current) {
            parts.into_iter().try_for_each(&mut next)?;
            if !is_over {
                break;
            }
            self.current += 1;
        }
        Ok(())
    }
}
