//! What is written down of a replication: sums between the warm-up and the horizon, and a series over time.

use hdrhistogram::Histogram;

use super::clock::seconds;

/// Pieces that the horizon is cut into for the series.
pub const PIECES: usize = 60;

/// Where the clock stands in the series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ruler {
    /// How long a piece is, ns.
    piece_ns: u64,
}

impl Ruler {
    pub fn new(horizon_ns: u64) -> Self {
        Self { piece_ns: horizon_ns.div_ceil(PIECES as u64).max(1) }
    }

    /// The piece that a moment lies in, and when the next begins.
    pub fn piece(self, now_ns: u64) -> (usize, u64) {
        let piece = now_ns / self.piece_ns;
        let end_ns = (piece + 1).saturating_mul(self.piece_ns);
        if piece + 1 < PIECES as u64 { (piece as usize, end_ns) } else { (PIECES - 1, u64::MAX) }
    }

    pub fn piece_s(self) -> f64 {
        seconds(self.piece_ns)
    }
}

/// Time summed over sessions or calls, exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeSum {
    ns: u128,
}

impl TimeSum {
    /// In seconds.
    pub fn s(self) -> f64 {
        self.ns as f64 / 1e9
    }

    pub(super) fn add_ns(&mut self, ns: u64) {
        self.ns += u128::from(ns);
    }

    fn add(&mut self, other: Self) {
        self.ns += other.ns;
    }
}

/// How often something happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Between the warm-up and the horizon.
    pub counted: u64,
    /// Over the whole replication.
    pub all: u64,
    /// In each piece of the horizon.
    pub pieces: Vec<u32>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self { counted: 0, all: 0, pieces: vec![0; PIECES] }
    }

    pub(super) fn count(&mut self, piece: usize) {
        self.counted += 1;
        self.all += 1;
        if let Some(count) = self.pieces.get_mut(piece) {
            *count += 1;
        }
    }
}

/// How many there are of something.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Now.
    pub level: u64,
    /// The most at a time.
    pub most: u64,
    /// Its integral over time between the warm-up and the horizon, s; of one that is closed.
    pub area_s: f64,
    /// The integral in each piece of the horizon, s; of one that is closed.
    pub pieces_s: Vec<f64>,
    /// The integrals so far, exactly: in each piece, and up to the warm-up's end, ns.
    pieces: Vec<u128>,
    warm_up: u128,
    since_ns: u64,
    piece: usize,
    piece_end_ns: u64,
    piece_ns: u64,
}

impl Gauge {
    pub(super) fn new(ruler: Ruler) -> Self {
        Self {
            level: 0,
            most: 0,
            area_s: 0.0,
            pieces_s: Vec::new(),
            pieces: vec![0; PIECES],
            warm_up: 0,
            since_ns: 0,
            piece: 0,
            piece_end_ns: ruler.piece_ns,
            piece_ns: ruler.piece_ns,
        }
    }

    /// Time passes.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        if now_ns > self.piece_end_ns {
            self.go_through_pieces(now_ns);
        }
        if let Some(piece) = self.pieces.get_mut(self.piece) {
            *piece += u128::from(self.level) * u128::from(now_ns - self.since_ns);
        }
        self.since_ns = now_ns;
    }

    #[cold]
    fn go_through_pieces(&mut self, now_ns: u64) {
        while now_ns > self.piece_end_ns && self.piece + 1 < PIECES {
            self.pieces[self.piece] += u128::from(self.level) * u128::from(self.piece_end_ns - self.since_ns);
            self.since_ns = self.piece_end_ns;
            self.piece += 1;
            self.piece_end_ns += self.piece_ns;
        }
    }

    /// The horizon has come.
    pub(super) fn close(&mut self, now_ns: u64) {
        self.advance(now_ns);
        let in_s = |area: u128| area as f64 / 1e9;
        self.pieces_s = self.pieces.iter().copied().map(in_s).collect();
        self.area_s = in_s(self.pieces.iter().sum::<u128>() - self.warm_up);
    }

    pub(super) fn up(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.level += 1;
        self.most = self.most.max(self.level);
    }

    pub(super) fn down(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.level -= 1;
    }

    /// The warm-up is over.
    pub(super) fn start_counting(&mut self, now_ns: u64) {
        self.advance(now_ns);
        (self.warm_up, self.most) = (self.pieces.iter().sum(), self.level);
    }
}

/// Waits, with their distribution to within 0.1 %.
#[derive(Debug, Clone)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Those of them that weren't zero.
    pub waited: u64,
    /// Their sum.
    pub sum: TimeSum,
    /// In microseconds; nothing where none was kept. Of a station that is closed; until then without those that were zero.
    pub histogram: Option<Histogram<u64>>,
}

impl Default for Waits {
    fn default() -> Self {
        Self { count: 0, waited: 0, sum: TimeSum::default(), histogram: Histogram::new(3).ok() }
    }
}

impl Waits {
    /// Together with others.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.count += other.count;
        self.waited += other.waited;
        self.sum.add(other.sum);
        if let (Some(mine), Some(theirs)) = (&mut self.histogram, &other.histogram) {
            // it grows as needed, and both count in microseconds
            if mine.add(theirs).is_err() {
                self.histogram = None;
            }
        }
        self
    }

    /// How many of them were at most so long, to within 0.1 %.
    pub fn at_most(&self, wait_s: f64) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| histogram.count_between(0, (wait_s * 1e6).round() as u64))
    }

    pub(super) fn add(&mut self, wait_ns: u64) {
        self.count += 1;
        if wait_ns == 0 {
            return;
        }
        self.waited += 1;
        self.sum.add_ns(wait_ns);
        if let Some(histogram) = &mut self.histogram {
            // it grows as needed
            if histogram.record(wait_ns / 1_000).is_err() {
                histogram.saturating_record(wait_ns / 1_000);
            }
        }
    }

    /// Enters those that were zero.
    pub(super) fn close(&mut self) {
        let zeros = self.count - self.waited;
        // zero lies within any bounds
        if self.histogram.as_mut().is_some_and(|histogram| histogram.record_n(0, zeros).is_err()) {
            self.histogram = None;
        }
    }

    pub(super) fn clear(&mut self) {
        (self.count, self.waited, self.sum) = (0, 0, TimeSum::default());
        if let Some(histogram) = &mut self.histogram {
            histogram.reset();
        }
    }

    /// The quantile `p`, s; `None` where there were no waits.
    pub fn quantile_s(&self, p: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref().filter(|_| self.count > 0)?;
        Some(histogram.value_at_quantile(p) as f64 / 1e6)
    }
}
