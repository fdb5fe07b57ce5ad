//! Mean cost of each call of a session, for a chart.

use crate::engine::Collect;
use crate::session::{Bill, Record, Turn, Workspace};

/// Sums over sessions by the call's number.
#[derive(Debug, Clone, Default)]
pub struct TurnCosts {
    /// (dollars as billed, dollars without a cache, sessions that reached it) of call 1, 2, …
    calls: Vec<(f64, f64, u64)>,
    sessions: u64,
}

/// A call that fewer sessions reach isn't shown: its mean would be noise.
const FEWEST_SESSIONS: u64 = 50;

impl TurnCosts {
    /// Sessions looked at.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    fn means(&self, sum: impl Fn(&(f64, f64, u64)) -> f64) -> Vec<f64> {
        let enough = FEWEST_SESSIONS.min(self.sessions);
        self.calls.iter().take_while(|call| call.2 >= enough).map(|call| sum(call) / call.2.max(1) as f64).collect()
    }

    /// Mean dollars of each call as billed, among the sessions that reach it.
    pub fn billed_usd(&self) -> Vec<f64> {
        self.means(|call| call.0)
    }

    /// The same without a cache.
    pub fn without_cache_usd(&self) -> Vec<f64> {
        self.means(|call| call.1)
    }
}

impl Collect for TurnCosts {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn watches(&self, _session: u64) -> bool {
        true
    }

    fn turn(&mut self, turn: &Turn) {
        let index = turn.number as usize - 1;
        if self.calls.len() <= index {
            self.calls.resize(index + 1, (0.0, 0.0, 0));
        }
        let sum = &mut self.calls[index];
        sum.0 += turn.cost.usd();
        sum.1 += turn.cost_without_cache.usd();
        sum.2 += 1;
    }

    fn session(&mut self, _number: u64, _record: &Record, _bill: &Bill, _room: &Workspace) {
        self.sessions += 1;
    }

    fn merge(&mut self, next: &mut Self) {
        if self.calls.len() < next.calls.len() {
            self.calls.resize(next.calls.len(), (0.0, 0.0, 0));
        }
        for (sum, more) in self.calls.iter_mut().zip(&next.calls) {
            sum.0 += more.0;
            sum.1 += more.1;
            sum.2 += more.2;
        }
        self.sessions += next.sessions;
        *next = next.empty();
    }
}
