//! Parquet: written by row group as rows come, read whole.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{Cells, Kind, Part, Schema, Values};

/// A Parquet file that is being written.
pub(super) struct Writer {
    schema: Schema,
    file: SerializedFileWriter<File>,
}

impl Writer {
    pub fn new(file: File, schema: Schema, metadata: &[(String, String)]) -> Result<Self, ParquetError> {
        let columns = schema.columns.iter().map(|column| {
            let repetition = if column.optional { "optional" } else { "required" };
            let (kind, note) = match column.kind {
                Kind::Whole => ("int64", ""),
                Kind::Number => ("double", ""),
                Kind::Flag => ("boolean", ""),
                Kind::Text => ("binary", " (string)"),
            };
            format!("{repetition} {kind} {}{note};", column.name)
        });
        let message = format!("message {} {{ {} }}", schema.table.stem(), columns.collect::<String>());
        let about = schema.columns.iter().map(|c| (c.name.to_owned(), c.about.into()));
        let about = serde_json::Value::Object(about.collect()).to_string();
        let metadata = metadata.iter().cloned().chain([("agent-sim.columns".to_owned(), about)]);
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("agent-sim {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(metadata.map(|(key, value)| KeyValue::new(key, value)).collect()));
        for column in &schema.columns {
            let path = ColumnPath::from(column.name);
            properties = match column.kind {
                // measured values hardly ever repeat
                Kind::Number => properties.set_column_dictionary_enabled(path, false),
                Kind::Whole => properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
                Kind::Flag | Kind::Text => properties,
            };
        }
        let file =
            SerializedFileWriter::new(file, Arc::new(parse_message_type(&message)?), Arc::new(properties.build()))?;
        Ok(Self { schema, file })
    }

    /// Adds some rows as a row group.
    pub fn write(&mut self, part: &Part) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for column in &self.schema.columns {
            let Some(mut writer) = group.next_column()? else { break };
            write_column(&mut writer, part.column(column.name), part.rows, column.optional)?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    pub fn close(self) -> Result<(), ParquetError> {
        self.file.close().map(|_| ())
    }
}

/// Definition levels: 1 where there is a value; nothing where all must be there.
fn levels(rows: usize, optional: bool, is_there: impl Fn(usize) -> bool) -> Option<Vec<i16>> {
    optional.then(|| (0..rows).map(|row| i16::from(is_there(row))).collect())
}

fn write_column(
    writer: &mut SerializedColumnWriter<'_>,
    pieces: &[Values],
    rows: usize,
    optional: bool,
) -> Result<(), ParquetError> {
    if pieces.is_empty() {
        return write_nothing(writer, rows);
    }
    match writer.untyped() {
        ColumnWriter::Int64ColumnWriter(out) => {
            for piece in pieces {
                let all = levels(piece.len(), optional, |_| true);
                match piece {
                    Values::Whole(values) => out.write_batch(values, all.as_deref(), None)?,
                    Values::SameWhole(value, rows) => out.write_batch(&vec![*value; *rows], all.as_deref(), None)?,
                    _ => 0,
                };
            }
        }
        ColumnWriter::DoubleColumnWriter(out) => {
            for piece in pieces {
                let Values::Number(values) = piece else { continue };
                if optional {
                    let levels = levels(values.len(), true, |row| !values[row].is_nan());
                    let there: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
                    out.write_batch(&there, levels.as_deref(), None)?;
                } else {
                    out.write_batch(values, None, None)?;
                }
            }
        }
        ColumnWriter::BoolColumnWriter(out) => {
            for piece in pieces {
                let Values::Flag(values) = piece else { continue };
                out.write_batch(values, levels(values.len(), optional, |_| true).as_deref(), None)?;
            }
        }
        ColumnWriter::ByteArrayColumnWriter(out) => {
            for piece in pieces {
                let texts: Vec<&str> = (0..piece.len()).map(|row| piece.text(row)).collect();
                let levels = levels(texts.len(), optional, |row| !texts[row].is_empty());
                let mut there: Vec<ByteArray> = Vec::with_capacity(texts.len());
                let mut last = ("", ByteArray::from(""));
                for text in texts.iter().filter(|text| !(optional && text.is_empty())) {
                    // most rows repeat the one before, and share its bytes
                    if last.0 != *text {
                        last = (text, ByteArray::from(*text));
                    }
                    there.push(last.1.clone());
                }
                out.write_batch(&there, levels.as_deref(), None)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// A column that has no values in these rows.
fn write_nothing(writer: &mut SerializedColumnWriter<'_>, rows: usize) -> Result<(), ParquetError> {
    let none = vec![0; rows];
    match writer.untyped() {
        ColumnWriter::Int64ColumnWriter(out) => out.write_batch(&[], Some(&none), None)?,
        ColumnWriter::DoubleColumnWriter(out) => out.write_batch(&[], Some(&none), None)?,
        ColumnWriter::BoolColumnWriter(out) => out.write_batch(&[], Some(&none), None)?,
        ColumnWriter::ByteArrayColumnWriter(out) => out.write_batch(&[], Some(&none), None)?,
        _ => 0,
    };
    Ok(())
}

/// What a file holds: its columns by name, and its metadata.
pub(super) type Read = (Vec<(String, Cells)>, Vec<(String, String)>);

/// Reads a file: the columns with these names, or all; of more than `most` rows every second, third …
pub(super) fn read(path: &Path, wanted: Option<&[&str]>, most: usize) -> Result<Read, ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let file = reader.metadata().file_metadata();
    let metadata = file.key_value_metadata().into_iter().flatten();
    let metadata = metadata.map(|kv| (kv.key.clone(), kv.value.clone().unwrap_or_default())).collect();
    let all = file.schema_descr().columns().iter().enumerate();
    let mut columns: Vec<(usize, String, Cells)> = all
        .filter(|(_, column)| wanted.is_none_or(|wanted| wanted.contains(&column.name())))
        .map(|(index, column)| (index, column.name().to_owned(), Cells::of(column.physical_type())))
        .collect();
    let all_rows = usize::try_from(file.num_rows()).unwrap_or_default();
    let (step, mut before) = (all_rows.div_ceil(most.max(1)).max(1), 0);
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        for (index, _, cells) in &mut columns {
            let is_optional = group.metadata().column(*index).column_descr().max_def_level() > 0;
            let kept = cells.len();
            read_column(group.get_column_reader(*index)?, rows, is_optional, cells)?;
            if step > 1 {
                cells.thin(kept, before, step);
            }
        }
        before += rows;
    }
    Ok((columns.into_iter().map(|(_, name, cells)| (name, cells)).collect(), metadata))
}

/// The values of a column's rows, nothing where a row has none.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    is_optional: bool,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut levels, mut there) = (Vec::new(), Vec::new());
    reader.read_records(rows, Some(&mut levels), None, &mut there)?;
    if !is_optional {
        return Ok(there.into_iter().map(Some).collect());
    }
    let mut there = there.into_iter();
    Ok(levels.iter().map(|level| if *level > 0 { there.next() } else { None }).collect())
}

fn read_column(reader: ColumnReader, rows: usize, is_optional: bool, into: &mut Cells) -> Result<(), ParquetError> {
    match (reader, into) {
        (ColumnReader::Int64ColumnReader(reader), Cells::Whole(cells)) => {
            cells.extend(values(reader, rows, is_optional)?);
        }
        (ColumnReader::DoubleColumnReader(reader), Cells::Number(cells)) => {
            cells.extend(values(reader, rows, is_optional)?);
        }
        (ColumnReader::BoolColumnReader(reader), Cells::Flag(cells)) => {
            cells.extend(values(reader, rows, is_optional)?);
        }
        (ColumnReader::ByteArrayColumnReader(reader), Cells::Text(cells)) => {
            for bytes in values(reader, rows, is_optional)? {
                let Some(bytes) = bytes else {
                    cells.push(None);
                    continue;
                };
                let text = bytes.as_utf8()?;
                // most rows repeat the one before
                let same = cells.last().and_then(Option::as_ref).filter(|last| ***last == *text).cloned();
                cells.push(Some(same.unwrap_or_else(|| Arc::from(text))));
            }
        }
        _ => return Err(ParquetError::General("a column of a kind that isn't written here".to_owned())),
    }
    Ok(())
}

impl Cells {
    fn of(kind: parquet::basic::Type) -> Self {
        match kind {
            parquet::basic::Type::BOOLEAN => Cells::Flag(Vec::new()),
            parquet::basic::Type::INT64 => Cells::Whole(Vec::new()),
            parquet::basic::Type::DOUBLE => Cells::Number(Vec::new()),
            _ => Cells::Text(Vec::new()),
        }
    }
}
