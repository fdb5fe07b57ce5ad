//! When sessions arrive.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

use super::clock::ns;
use crate::model::Arrivals;

/// The times of arrival of one replication, one after another. A Poisson process of changing rate is one of rate 1 on the
/// clock of its integrated rate (Çınlar 1975).
#[derive(Debug)]
pub(super) struct Coming<'m, R> {
    arrivals: &'m Arrivals,
    horizon_s: f64,
    stream: R,
    /// Time of the last arrival, s, and how many there were.
    at_s: f64,
    count: usize,
}

impl<'m, R: Rng> Coming<'m, R> {
    pub fn new(arrivals: &'m Arrivals, horizon_s: f64, stream: R) -> Self {
        Self { arrivals, horizon_s, stream, at_s: 0.0, count: 0 }
    }

    /// When the next session arrives, ns; nothing where none does before the horizon.
    pub fn next(&mut self) -> Option<u64> {
        match self.arrivals {
            Arrivals::Poisson { per_s } => {
                let gap: f64 = Exp1.sample(&mut self.stream);
                self.at_s += gap / per_s;
            }
            Arrivals::Profile { per_s } => {
                let gap: f64 = Exp1.sample(&mut self.stream);
                self.at_s = after(per_s, self.at_s, gap, self.horizon_s);
            }
            Arrivals::Times(times) => self.at_s = *times.get(self.count)?,
        }
        self.count += 1;
        (self.at_s < self.horizon_s).then(|| ns(self.at_s))
    }
}

/// From `at_s` on, when the rate, which changes every hour and begins again after the last, has summed up to `sum`; infinite
/// where that isn't before `until_s`.
fn after(per_s: &[f64], mut at_s: f64, mut sum: f64, until_s: f64) -> f64 {
    const HOUR_S: f64 = 3600.0;
    loop {
        if at_s >= until_s {
            return f64::INFINITY;
        }
        let hour = (at_s / HOUR_S).floor();
        let rate = per_s.get(hour as usize % per_s.len().max(1)).copied().unwrap_or(0.0);
        let end_s = (hour + 1.0) * HOUR_S;
        let until_end = rate * (end_s - at_s);
        if sum < until_end {
            return at_s + sum / rate;
        }
        sum -= until_end;
        at_s = end_s;
    }
}
