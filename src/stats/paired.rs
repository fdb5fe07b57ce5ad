//! Two models on the same draws: the differences between the same sessions.

use super::moments::{Estimate, Moments};
use crate::engine::Collect;
use crate::session::{Bill, Record, Turn, Workspace};

/// The cost of each session, $.
#[derive(Debug, Clone, Default)]
pub struct Costs(Vec<f64>);

impl Costs {
    /// Mean difference from the same sessions of another model, $, with the interval of paired differences.
    pub fn beyond(&self, other: &Costs) -> Estimate {
        let differences: Vec<f64> = self.0.iter().zip(&other.0).map(|(mine, theirs)| mine - theirs).collect();
        let moments = Moments::of(&differences);
        let mut estimate = moments.estimate();
        // money that is the same in every session differs in the last digit of its sums
        if moments.sd() <= 1e-9 * moments.mean.abs() {
            (estimate.se, estimate.ci95) = (0.0, [estimate.value; 2]);
        }
        estimate
    }
}

impl Collect for Costs {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn watches(&self, _session: u64) -> bool {
        false
    }

    fn turn(&mut self, _turn: &Turn) {}

    fn session(&mut self, _number: u64, record: &Record, _bill: &Bill, _room: &Workspace) {
        self.0.push(record.cost.usd());
    }

    fn merge(&mut self, next: &mut Self) {
        self.0.append(&mut next.0);
    }
}
