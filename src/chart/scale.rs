//! The tail scale: percentiles spaced by how rare what lies beyond them is, so that p99 and p99.9 have as much room as
//! p50 and p90.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// Maps `p` to `-log10(1 - p)`.
#[derive(Debug, Clone)]
pub(super) struct TailScale {
    largest: f64,
}

impl TailScale {
    /// From 0 up to the percentile `largest`.
    pub fn up_to(largest: f64) -> Self {
        Self { largest }
    }
}

fn position(p: f64) -> f64 {
    -(1.0 - p).log10()
}

const TICKS: [f64; 7] = [0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

impl Ranged for TailScale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = position(*value) / position(self.largest);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        TICKS.into_iter().filter(|p| *p <= self.largest + 1e-12).collect()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.largest
    }
}

impl ValueFormatter<f64> for TailScale {
    fn format_ext(&self, value: &f64) -> String {
        format!("p{}", (value * 1e6).round() / 1e4)
    }
}
