//! The numbers of a chunk's sessions, by column.

use crate::engine::CHUNK;

/// From one column to the next: some more than a chunk, so that a session's numbers don't all meet in one set of the
/// processor's cache.
const STRIDE: usize = CHUNK as usize + 8;

/// Columns of at most [`CHUNK`] rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    values: Vec<f64>,
    rows: usize,
}

impl Columns {
    pub fn new(columns: usize) -> Self {
        Self { values: vec![0.0; columns * STRIDE], rows: 0 }
    }

    /// The row that comes next. What isn't set in it is 0, or what a chunk before left there.
    #[inline]
    pub fn add_row(&mut self) -> Row<'_> {
        let row = self.rows;
        assert!(row < CHUNK as usize, "a chunk has at most {CHUNK} sessions");
        self.rows += 1;
        Row { from_here: &mut self.values[row..] }
    }

    pub fn get(&self, column: usize) -> &[f64] {
        &self.values[column * STRIDE..][..self.rows]
    }

    pub fn clear(&mut self) {
        self.rows = 0;
    }
}

/// One row.
pub(super) struct Row<'a> {
    from_here: &'a mut [f64],
}

/// Where a column begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column(usize);

impl Column {
    pub fn number(column: usize) -> Self {
        Self(column * STRIDE)
    }
}

impl Row<'_> {
    #[inline]
    pub fn set(&mut self, column: Column, value: f64) {
        self.from_here[column.0] = value;
    }
}
