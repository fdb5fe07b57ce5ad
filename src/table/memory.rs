//! Tables in memory: kept while sessions are played, or read from a file.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::{InOrder, Kind, Name, Part, Schema, Sink, Values, parquet};
use crate::Error;

/// A column's values.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Cells {
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
    Text(Vec<Option<Arc<str>>>),
}

impl Cells {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Cells::Whole(values) => values.len(),
            Cells::Number(values) => values.len(),
            Cells::Flag(values) => values.len(),
            Cells::Text(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps of the rows from number `kept` on those whose number in the file is a multiple of `step`; the first of them
    /// is row `before` of the file.
    pub(super) fn thin(&mut self, kept: usize, before: usize, step: usize) {
        fn thin<T>(values: &mut Vec<T>, kept: usize, before: usize, step: usize) {
            let mut row = 0;
            values.retain(|_| {
                row += 1;
                row <= kept || (before + row - kept - 1).is_multiple_of(step)
            });
        }
        match self {
            Cells::Whole(values) => thin(values, kept, before, step),
            Cells::Number(values) => thin(values, kept, before, step),
            Cells::Flag(values) => thin(values, kept, before, step),
            Cells::Text(values) => thin(values, kept, before, step),
        }
    }
}

/// A whole table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its columns by name.
    pub columns: Vec<(String, Cells)>,
    /// What its file says of it, in a file.
    pub metadata: Vec<(String, String)>,
}

impl Table {
    /// Without rows.
    pub fn new(schema: &Schema) -> Self {
        let columns = schema.columns.iter().map(|column| {
            let cells = match column.kind {
                Kind::Whole => Cells::Whole(Vec::new()),
                Kind::Number => Cells::Number(Vec::new()),
                Kind::Flag => Cells::Flag(Vec::new()),
                Kind::Text => Cells::Text(Vec::new()),
            };
            (column.name.to_owned(), cells)
        });
        Self { columns: columns.collect(), metadata: Vec::new() }
    }

    /// Reads a Parquet file that was written here: the columns with these names, or all; of more than `most_rows` rows
    /// every second, third and so on, so that memory stays bounded.
    ///
    /// # Errors
    /// Where it can't be read, or holds other things.
    pub fn read(path: &Path, columns: Option<&[&str]>, most_rows: usize) -> Result<Self, Error> {
        let unreadable = |error: ::parquet::errors::ParquetError| Error::Read {
            path: path.to_owned(),
            source: std::io::Error::other(error.to_string()),
        };
        let (columns, metadata) = parquet::read(path, columns, most_rows).map_err(unreadable)?;
        Ok(Self { columns, metadata })
    }

    /// What a file says under a key, without its rows.
    ///
    /// # Errors
    /// Where it can't be read.
    pub fn about_file(path: &Path, key: &str) -> Result<Option<String>, Error> {
        Ok(Self::read(path, Some(&[]), 1)?.about(key).map(str::to_owned))
    }

    /// What its file says under a key.
    pub fn about(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    /// Its rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, cells)| cells.len())
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Cells> {
        self.columns.iter().find(|(own, _)| own == name).map(|(_, cells)| cells)
    }

    /// A column's numbers, whole ones too, a row at a time; nothing where there is no such column of numbers.
    pub fn numbers(&self, name: &str) -> Option<Vec<Option<f64>>> {
        match self.column(name)? {
            Cells::Whole(values) => Some(values.iter().map(|x| x.map(|x| x as f64)).collect()),
            Cells::Number(values) => Some(values.clone()),
            Cells::Flag(_) | Cells::Text(_) => None,
        }
    }

    /// A column's texts, a row at a time.
    pub fn texts(&self, name: &str) -> Option<&[Option<Arc<str>>]> {
        match self.column(name)? {
            Cells::Text(values) => Some(values),
            _ => None,
        }
    }

    fn push(&mut self, part: &Part) {
        for (name, cells) in &mut self.columns {
            let pieces = part.column(name);
            match cells {
                Cells::Whole(cells) => {
                    for piece in pieces {
                        match piece {
                            Values::Whole(values) => cells.extend(values.iter().copied().map(Some)),
                            Values::SameWhole(value, rows) => cells.extend(std::iter::repeat_n(Some(*value), *rows)),
                            _ => {}
                        }
                    }
                    fill(cells, pieces, part.rows);
                }
                Cells::Number(cells) => {
                    for piece in pieces {
                        let Values::Number(values) = piece else { continue };
                        cells.extend(values.iter().map(|x| Some(*x).filter(|x| !x.is_nan())));
                    }
                    fill(cells, pieces, part.rows);
                }
                Cells::Flag(cells) => {
                    for piece in pieces {
                        let Values::Flag(values) = piece else { continue };
                        cells.extend(values.iter().copied().map(Some));
                    }
                    fill(cells, pieces, part.rows);
                }
                Cells::Text(cells) => {
                    for piece in pieces {
                        let texts = (0..piece.len()).map(|row| piece.text(row));
                        cells.extend(texts.map(|text| Some(text).filter(|text| !text.is_empty()).map(Arc::from)));
                    }
                    fill(cells, pieces, part.rows);
                }
            }
        }
    }
}

/// Rows of a column that has nothing in them.
fn fill<T>(cells: &mut Vec<Option<T>>, pieces: &[Values], rows: usize) {
    if pieces.is_empty() {
        cells.extend(std::iter::repeat_with(|| None).take(rows));
    }
}

/// Keeps all rows in memory.
#[derive(Debug)]
pub struct Memory {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    tables: Vec<(Name, Table)>,
    streams: u64,
    order: InOrder,
}

impl Memory {
    /// For tables with these columns.
    pub fn new(schemas: &[Schema]) -> Self {
        let tables = schemas.iter().map(|schema| (schema.table, Table::new(schema))).collect();
        Self { kept: Mutex::new(Kept { tables, streams: 0, order: InOrder::default() }) }
    }

    /// The tables, once all streams have ended.
    pub fn into_tables(self) -> Vec<(Name, Table)> {
        self.kept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).tables
    }

    fn with(&self, work: impl FnOnce(&mut InOrder, &mut dyn FnMut(Part) -> Result<(), ()>) -> Result<(), ()>) {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Kept { tables, order, .. } = &mut *kept;
        let mut next = |part: Part| {
            if let Some((_, table)) = tables.iter_mut().find(|(name, _)| *name == part.table) {
                table.push(&part);
            }
            Ok(())
        };
        // keeping can't fail
        let _ = work(order, &mut next);
    }
}

impl Sink for Memory {
    fn streams(&self, count: u64) -> u64 {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = kept.streams;
        kept.streams += count;
        first
    }

    fn rows(&self, stream: u64, part: Part) {
        self.with(|order, next| order.rows(stream, part, next));
    }

    fn end(&self, stream: u64) {
        self.with(|order, next| order.end(stream, next));
    }
}
