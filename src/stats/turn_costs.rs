//! Mean cost of each call of a session, for a chart.

use crate::engine::Collect;
use crate::price::{Tariff, Usage};
use crate::session::{Bill, Record, Turn};

/// Sums over sessions by the call's number.
#[derive(Debug, Clone)]
pub struct TurnCosts {
    tariff: Tariff,
    /// (dollars as billed, dollars without a cache) of call 1, 2, …
    sums_usd: Vec<(f64, f64)>,
    sessions: u64,
}

impl TurnCosts {
    /// None yet.
    pub fn new(tariff: &Tariff) -> Self {
        Self { tariff: tariff.clone(), sums_usd: Vec::new(), sessions: 0 }
    }

    /// Mean dollars of each call as billed; a session that has ended counts as 0, so that the sum over calls is the mean
    /// cost of a session.
    pub fn billed_usd(&self) -> Vec<f64> {
        self.sums_usd.iter().map(|s| s.0 / self.sessions.max(1) as f64).collect()
    }

    /// The same without a cache.
    pub fn without_cache_usd(&self) -> Vec<f64> {
        self.sums_usd.iter().map(|s| s.1 / self.sessions.max(1) as f64).collect()
    }
}

impl Collect for TurnCosts {
    fn empty(&self) -> Self {
        Self::new(&self.tariff)
    }

    fn watches(&self, _session: u64) -> bool {
        true
    }

    fn turn(&mut self, turn: &Turn) {
        let index = turn.number as usize - 1;
        if self.sums_usd.len() <= index {
            self.sums_usd.resize(index + 1, (0.0, 0.0));
        }
        let plain = Usage {
            plain_tokens: turn.usage.prompt_tokens(),
            output_tokens: turn.usage.output_tokens,
            ..Usage::default()
        };
        let sum = &mut self.sums_usd[index];
        sum.0 += self.tariff.cost(&turn.usage).usd();
        sum.1 += self.tariff.cost(&plain).usd();
    }

    fn session(&mut self, _number: u64, _record: &Record, _bill: &Bill) {
        self.sessions += 1;
    }

    fn merge(&mut self, next: &mut Self) {
        if self.sums_usd.len() < next.sums_usd.len() {
            self.sums_usd.resize(next.sums_usd.len(), (0.0, 0.0));
        }
        for (sum, more) in self.sums_usd.iter_mut().zip(&next.sums_usd) {
            sum.0 += more.0;
            sum.1 += more.1;
        }
        self.sessions += next.sessions;
        *next = next.empty();
    }
}
