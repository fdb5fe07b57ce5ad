//! CSV: the same rows as text. A number is written so that reading gives the same number.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use super::{Part, Schema, Values};

/// A CSV file that is being written.
pub(super) struct Writer {
    schema: Schema,
    out: csv::Writer<BufWriter<File>>,
}

impl Writer {
    pub fn new(file: File, schema: Schema) -> Result<Self, csv::Error> {
        let mut out = csv::Writer::from_writer(BufWriter::new(file));
        out.write_record(schema.columns.iter().map(|column| column.name))?;
        Ok(Self { schema, out })
    }

    pub fn write(&mut self, part: &Part) -> Result<(), csv::Error> {
        let mut cursors: Vec<Cursor<'_>> =
            self.schema.columns.iter().map(|c| Cursor { pieces: part.column(c.name), row: 0 }).collect();
        let mut field = Vec::new();
        for _ in 0..part.rows {
            for cursor in &mut cursors {
                field.clear();
                if let Some((values, row)) = cursor.next() {
                    values.write(row, &mut field)?;
                }
                self.out.write_field(&field)?;
            }
            self.out.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    pub fn close(mut self) -> Result<(), csv::Error> {
        self.out.flush()?;
        Ok(())
    }
}

/// Walks through the rows of a column.
struct Cursor<'a> {
    pieces: &'a [Values],
    row: usize,
}

impl<'a> Cursor<'a> {
    fn next(&mut self) -> Option<(&'a Values, usize)> {
        while let Some((first, rest)) = self.pieces.split_first() {
            if self.row < first.len() {
                self.row += 1;
                return Some((first, self.row - 1));
            }
            (self.pieces, self.row) = (rest, 0);
        }
        None
    }
}

impl Values {
    /// What stands in a row; nothing where there is none.
    fn write(&self, row: usize, field: &mut Vec<u8>) -> std::io::Result<()> {
        let shown: Option<&dyn Display> = match self {
            Values::Whole(values) => values.get(row).map(|value| value as &dyn Display),
            Values::SameWhole(value, _) => Some(value),
            Values::Number(values) => {
                values.get(row).filter(|value| !value.is_nan()).map(|value| value as &dyn Display)
            }
            Values::Flag(values) => values.get(row).map(|value| value as &dyn Display),
            text => return field.write_all(text.text(row).as_bytes()),
        };
        shown.map_or(Ok(()), |value| write!(field, "{value}"))
    }
}
