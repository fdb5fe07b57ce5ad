//! What budgets sessions need.

use super::quantile::quantile_ranks;
use crate::engine::Collect;
use crate::session::{Bill, Record, Turn, Workspace};

/// Of each session, what it cost and the smallest budget that lets it through, $.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// (needed, cost), by session number.
    sessions: Vec<(f64, f64)>,
}

impl Needs {
    /// Sessions played.
    pub fn len(&self) -> u64 {
        self.sessions.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// (needed, cost), by session number.
    pub fn sessions(&self) -> &[(f64, f64)] {
        &self.sessions
    }

    /// The smallest budget that lets each of these shares of the sessions through, with its order-statistic interval, and
    /// whether fewer than ten sessions lie beyond it.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [(f64, [f64; 2], bool); N] {
        let mut needed: Vec<f64> = self.sessions.iter().map(|(needed, _)| *needed).collect();
        needed.sort_unstable_by(f64::total_cmp);
        let at = |rank: u64| needed.get(rank.max(1) as usize - 1).copied().unwrap_or(f64::NAN);
        shares.map(|share| {
            let (rank, low, high) = quantile_ranks(self.len(), share);
            (at(rank), [at(low), at(high)], self.len() - rank.min(self.len()) < 10)
        })
    }

    /// Budgets in equal ratios with the share of sessions that each stops; nothing where no session needs money.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        const POINTS: usize = 160;
        let mut needed: Vec<f64> = self.sessions.iter().map(|(needed, _)| *needed).collect();
        needed.sort_unstable_by(f64::total_cmp);
        let (Some(low), Some(high)) = (needed.iter().copied().find(|usd| *usd > 0.0), needed.last().copied()) else {
            return Vec::new();
        };
        let (low, high) = (low * 0.9, high * 1.1);
        let stopped =
            |usd: f64| (needed.len() - needed.partition_point(|need| *need <= usd)) as f64 / needed.len() as f64;
        let budget = |point: usize| low * (high / low).powf(point as f64 / (POINTS - 1) as f64);
        (0..POINTS).map(budget).map(|usd| (usd, stopped(usd))).collect()
    }

    /// The share of sessions that a budget stops, where it is checked before each call.
    pub fn stopped(&self, budget_usd: f64) -> f64 {
        let stopped = self.sessions.iter().filter(|(needed, _)| *needed > budget_usd).count();
        stopped as f64 / self.sessions.len().max(1) as f64
    }
}

impl Collect for Needs {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn watches(&self, _session: u64) -> bool {
        false
    }

    fn turn(&mut self, _turn: &Turn) {}

    fn session(&mut self, _number: u64, record: &Record, _bill: &Bill, _room: &Workspace) {
        self.sessions.push((record.needed.usd(), record.cost.usd()));
    }

    fn merge(&mut self, next: &mut Self) {
        self.sessions.append(&mut next.sessions);
    }
}
