//! Texts and tables in the width that there is.

use std::ops::Range;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, Width, presets};

use super::Style;

/// Where the text of a labelled line begins.
const LABELLED: usize = 30;

impl Style {
    /// An empty table of the house's look, with these columns to the right.
    pub(super) fn table<const N: usize>(self, header: [&str; N], right: Range<usize>) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none())).set_header(header);
        match u16::try_from(self.width) {
            Ok(columns) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns),
            Err(_) => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        for index in right {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// A table whose words stay whole: a column is at least as wide as its longest word, where the width allows it.
    pub(super) fn whole_words(self, mut table: Table) -> Table {
        if self.width == usize::MAX {
            return table;
        }
        let mut longest = vec![0; table.column_count()];
        for row in table.header().into_iter().chain(table.row_iter()) {
            for (column, cell) in longest.iter_mut().zip(row.cell_iter()) {
                let content = cell.content();
                let words = content.split_whitespace().map(textwrap::core::display_width);
                *column = words.chain([*column]).max().unwrap_or(0);
            }
        }
        // one more on each side, and a blank at the end
        let needed: usize = longest.iter().map(|word| word + 2).sum();
        if needed <= self.width {
            for (index, word) in longest.into_iter().enumerate() {
                if let (Some(column), Ok(word)) = (table.column_mut(index), u16::try_from(word + 2)) {
                    column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word)));
                }
            }
        }
        table
    }

    /// Whether a table of so many columns has to be told otherwise.
    pub(super) fn is_narrower_than(self, columns: usize) -> bool {
        self.width < columns
    }

    /// How many of `most` columns are left behind `used`.
    pub(super) fn left_of(self, most: usize, used: usize) -> usize {
        most.min(self.width.saturating_sub(used))
    }

    /// A text with its long lines broken, each piece below the beginning of its text. Tables are in width already.
    pub fn fit(self, text: &str) -> String {
        if self.width == usize::MAX {
            return text.to_owned();
        }
        let mut out = String::new();
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            if textwrap::core::display_width(line) <= self.width || is_row(line) {
                out.push_str(line);
            } else {
                let indent = " ".repeat(indentation(line).min(self.width / 2));
                let options = textwrap::Options::new(self.width).subsequent_indent(&indent).break_words(false);
                out.push_str(&textwrap::fill(line, options));
            }
            out.push_str(end);
        }
        out
    }
}

/// Rows of tables begin with one space, and their rules with a line.
fn is_row(line: &str) -> bool {
    let mut letters = line.chars();
    match (letters.next(), letters.next()) {
        (Some('─' | '═'), _) => true,
        (Some(' '), second) => second != Some(' '),
        _ => false,
    }
}

/// Where the text of a line begins: behind its label, or behind its spaces.
fn indentation(line: &str) -> usize {
    let spaces = line.chars().take_while(|letter| *letter == ' ').count();
    let behind_label: String = line.chars().take(LABELLED).collect();
    if spaces == 2 && behind_label.ends_with("  ") { LABELLED } else { spaces }
}
