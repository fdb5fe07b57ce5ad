//! Drawing whole numbers by inversion: one uniform, one look into a table.
//!
//! A rounded law is a law on the whole numbers, so its draws need neither logarithm nor exponential. The table holds
//! `P(N <= k)` and is entered through a guide (Chen and Asau 1974): for each of 16,384 equal parts of 0..1 the first `k`
//! that can be the answer, and whether it is the only one. Inversion is monotone in the uniform, so the same uniform
//! gives the larger number under the larger law.

use std::sync::Arc;

const PART_BITS: u32 = 14;
/// Values a table may hold; laws that reach further than this with more than one draw in a hundred have none.
const MOST_VALUES: u64 = 8_192;
/// Set in the guide where a part holds more than one value.
const SEVERAL: u16 = 1 << 15;

/// `P(N <= least + i)` for the first values of a law.
#[derive(Debug, Clone)]
pub(super) struct Table {
    least: u64,
    /// In units of 2⁻⁶⁴, rounded down; the last one that reaches 1 is `u64::MAX`.
    cdf: Arc<[u64]>,
    guide: Arc<[u16; 1 << PART_BITS]>,
}

/// A uniform in 0..1 in units of 2⁻⁶⁴.
fn scaled(p: f64) -> u64 {
    (p * 2_f64.powi(64)) as u64
}

impl Table {
    /// From `at_least(k) = P(N >= k)`; `None` where the table would miss too much of the law.
    pub fn new(least: u64, at_least: impl Fn(u64) -> f64) -> Option<Self> {
        if at_least(least + MOST_VALUES) > 0.01 {
            return None;
        }
        let mut cdf = Vec::new();
        for k in least..least + MOST_VALUES {
            let beyond = at_least(k + 1);
            // the complement keeps the digits of the tail
            cdf.push(u64::MAX - scaled(beyond));
            if beyond <= 0.0 {
                break;
            }
        }
        let mut guide = vec![0; 1 << PART_BITS];
        let mut first = 0;
        for (part, entry) in guide.iter_mut().enumerate() {
            let lowest = (part as u64) << (64 - PART_BITS);
            let highest = lowest | (u64::MAX >> PART_BITS);
            while cdf.get(first).is_some_and(|reached| *reached <= lowest) {
                first += 1;
            }
            let only = cdf.get(first).is_some_and(|reached| highest < *reached || *reached == u64::MAX);
            *entry = first as u16 | if only { 0 } else { SEVERAL };
        }
        Some(Self { least, cdf: cdf.into(), guide: Arc::from(<Box<[u16; 1 << PART_BITS]>>::try_from(guide).ok()?) })
    }

    /// The smallest value with `u < P(N <= value)`, for a uniform `u` of 64 bits; `None` beyond the table.
    #[inline]
    pub fn at(&self, u: u64) -> Option<u64> {
        let entry = self.guide[(u >> (64 - PART_BITS)) as usize];
        if entry & SEVERAL == 0 {
            return Some(self.least + u64::from(entry));
        }
        self.search(usize::from(entry & !SEVERAL), u)
    }

    #[inline]
    fn search(&self, mut index: usize, u: u64) -> Option<u64> {
        while self.cdf.get(index).is_some_and(|reached| u >= *reached && *reached < u64::MAX) {
            index += 1;
        }
        (index < self.cdf.len()).then_some(self.least + index as u64)
    }
}
