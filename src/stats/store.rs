//! Where the values of a metric are kept: all of them, or in a histogram.

use hdrhistogram::Histogram;

use super::metric::Unit;
use super::moments::Moments;

/// A list of so many values isn't made longer.
const LONG: usize = 1 << 20;

/// Values of a metric in a chunk of sessions, by session number.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Values(Vec<f64>),
    /// The same one so many times.
    Same(f64, usize),
}

impl Piece {
    /// Of values with these moments.
    pub(super) fn of(values: &[f64], moments: &Moments) -> Self {
        if moments.is_constant() { Self::Same(moments.min, values.len()) } else { Self::Values(values.to_vec()) }
    }

    fn count_at_most(&self, value: f64) -> usize {
        match self {
            Self::Values(values) => values.iter().filter(|x| **x <= value).count(),
            Self::Same(x, times) => {
                if *x <= value {
                    *times
                } else {
                    0
                }
            }
        }
    }
}

/// The values of one metric.
#[derive(Debug, Clone)]
pub(super) enum Store {
    /// Every value, by session number.
    Exact(Vec<Piece>),
    /// Counts per bucket of relative width below 0.1 %; `scale` turns a value into a whole number.
    Buckets { counts: Histogram<u64>, scale: f64 },
}

impl Store {
    pub(super) fn exact() -> Self {
        Store::Exact(Vec::new())
    }

    /// Memory doesn't grow with the number of values.
    pub(super) fn buckets(unit: Unit) -> Self {
        let scale = match unit {
            Unit::Usd => 1e9,
            Unit::Seconds => 1e6,
            Unit::Tokens | Unit::Count => 1.0,
        };
        // a precision of 0 to 5 digits is all that `new` checks
        Histogram::new(3).map_or_else(|_| Self::exact(), |counts| Store::Buckets { counts, scale })
    }

    /// Takes in more values.
    pub(super) fn take(&mut self, new: Piece) {
        match (self, new) {
            (Store::Exact(pieces), new) => match (pieces.last_mut(), &new) {
                (Some(Piece::Same(last, times)), Piece::Same(x, more)) if last.total_cmp(x).is_eq() => *times += more,
                // large lists grow without a call of the system for each chunk
                (Some(Piece::Values(last)), Piece::Values(more)) if last.len() < LONG => last.extend_from_slice(more),
                _ => pieces.push(new),
            },
            (Store::Buckets { counts, scale }, Piece::Values(values)) => {
                for x in values {
                    record(counts, x * *scale, 1);
                }
            }
            (Store::Buckets { counts, scale }, Piece::Same(x, times)) => record(counts, x * *scale, times as u64),
        }
    }

    /// Takes in the values of another store of the same kind.
    pub(super) fn join(&mut self, other: Self) {
        match (self, other) {
            (Store::Exact(pieces), Store::Exact(mut more)) => pieces.append(&mut more),
            (Store::Buckets { counts, .. }, Store::Buckets { counts: more, .. }) => {
                // it grows as needed
                if counts.add(&more).is_err() {
                    for value in more.iter_recorded() {
                        counts.saturating_record_n(value.value_iterated_to(), value.count_at_value());
                    }
                }
            }
            // samples of one run are of one kind
            (Store::Exact(_), Store::Buckets { .. }) | (Store::Buckets { .. }, Store::Exact(_)) => {}
        }
    }

    /// The values at the given ranks (from 1, rising).
    pub(super) fn at_ranks(&self, ranks: &[u64]) -> Vec<f64> {
        match self {
            Store::Exact(pieces) => select(&mut all(pieces), ranks),
            Store::Buckets { counts, scale } => {
                let n = counts.len().max(1) as f64;
                ranks.iter().map(|rank| counts.value_at_quantile(*rank as f64 / n) as f64 / scale).collect()
            }
        }
    }

    pub(super) fn count_at_most(&self, value: f64) -> Option<usize> {
        match self {
            Store::Exact(pieces) => Some(pieces.iter().map(|piece| piece.count_at_most(value)).sum()),
            Store::Buckets { .. } => None,
        }
    }

    /// The same; of a histogram to within a bucket.
    pub(super) fn about_at_most(&self, value: f64) -> u64 {
        match self {
            Store::Exact(pieces) => pieces.iter().map(|piece| piece.count_at_most(value) as u64).sum(),
            Store::Buckets { counts, scale } => counts.count_between(0, (value * scale).round() as u64),
        }
    }

    pub(super) fn values(&self) -> Option<Vec<f64>> {
        match self {
            Store::Exact(pieces) => Some(all(pieces)),
            Store::Buckets { .. } => None,
        }
    }
}

/// Counts a value so many times.
fn record(counts: &mut Histogram<u64>, scaled: f64, times: u64) {
    // grows as needed; a count beyond its type's range would be the only failure
    let value = scaled.round() as u64;
    if counts.record_n(value, times).is_err() {
        counts.saturating_record_n(value, times);
    }
}

fn all(pieces: &[Piece]) -> Vec<f64> {
    let mut values = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Values(more) => values.extend_from_slice(more),
            Piece::Same(x, times) => values.extend(std::iter::repeat_n(*x, *times)),
        }
    }
    values
}

/// The values at rising ranks (from 1) by repeated selection: each search looks only above the last.
pub(super) fn select(values: &mut [f64], ranks: &[u64]) -> Vec<f64> {
    let (mut out, mut done) = (Vec::with_capacity(ranks.len()), 0_usize);
    let mut last = None;
    for rank in ranks {
        let index = (*rank as usize).clamp(1, values.len().max(1)) - 1;
        if let Some((at, value)) = last
            && at == index
        {
            out.push(value);
            continue;
        }
        let Some(rest) = values.get_mut(done..).filter(|rest| index - done < rest.len()) else { break };
        let (_, value, _) = rest.select_nth_unstable_by(index - done, f64::total_cmp);
        out.push(*value);
        last = Some((index, *value));
        done = index + 1;
        // the next rank may be the same one; it is answered from `last`
    }
    out
}
