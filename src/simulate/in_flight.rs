//! What sessions that share a budget spend where nothing is reserved: each looks before a call whether anything is left, and
//! doesn't see what the calls of the others that are under way will cost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Progress;
use crate::engine::{Collect, Play};
use crate::scenario::Scenario;
use crate::session::{Bill, Record, Turn, Workspace};
use crate::stats::{Estimate, Moments};

/// Sessions side by side, with one budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InFlightRow {
    /// How many.
    pub side_by_side: u64,
    /// Their budget, $.
    pub budget_usd: f64,
    /// Groups of so many sessions that were played.
    pub groups: u64,
    /// The share of groups that pass it.
    pub passes: Estimate,
    /// By how much on average, and at the most, $.
    pub beyond_usd: Option<(f64, f64)>,
}

/// A turn: how long its call takes, how long its tools take after that, ns; and its dollars.
#[derive(Debug, Clone, Copy)]
struct Call {
    model_ns: u64,
    tools_ns: u64,
    usd: f64,
}

/// The calls of each session, one after another.
#[derive(Debug, Default)]
pub(super) struct Timelines {
    sessions: Vec<Vec<Call>>,
    open: Vec<Call>,
}

/// More sessions than this don't make the rows much sharper.
const MOST_SESSIONS: u64 = 20_000;

impl Timelines {
    /// Of a scenario's first sessions.
    pub fn play(scenario: &Scenario, progress: &dyn Progress) -> Self {
        let sessions = scenario.run.sessions.min(MOST_SESSIONS);
        let mut all = Self::default();
        let play = Play { model: &scenario.model, seed: scenario.run.seed, sessions: 0..sessions };
        play.run(&mut all, &|done| progress.done(done));
        all
    }

    /// What groups of sessions that begin together come to, with this budget for each group.
    pub fn row(&self, side_by_side: u64, budget_usd: f64) -> InFlightRow {
        let groups = self.sessions.chunks_exact(side_by_side.max(1) as usize);
        let spent: Vec<f64> = groups.map(|group| spend(group, budget_usd)).collect();
        let beyond: Vec<f64> = spent.iter().map(|spent| spent - budget_usd).filter(|beyond| *beyond > 1e-12).collect();
        let n = spent.len() as u64;
        InFlightRow {
            side_by_side,
            budget_usd,
            groups: n,
            passes: super::budgets::share_estimate(beyond.len() as f64 / spent.len().max(1) as f64, n),
            beyond_usd: (!beyond.is_empty()).then(|| {
                let moments = Moments::of(&beyond);
                (moments.mean, moments.max)
            }),
        }
    }
}

/// What sessions that begin together spend of one budget, $.
fn spend(group: &[Vec<Call>], budget_usd: f64) -> f64 {
    // ends of calls come before what begins at the same moment
    const ENDS: u8 = 0;
    const BEGINS: u8 = 1;
    let mut agenda: BinaryHeap<Reverse<(u64, u8, usize, usize)>> =
        (0..group.len()).map(|session| Reverse((0, BEGINS, session, 0))).collect();
    let mut spent = 0.0;
    while let Some(Reverse((at_ns, what, session, number))) = agenda.pop() {
        let Some(call) = group.get(session).and_then(|calls| calls.get(number)) else { continue };
        if what == ENDS {
            spent += call.usd;
            agenda.push(Reverse((at_ns.saturating_add(call.tools_ns), BEGINS, session, number + 1)));
        } else if spent < budget_usd {
            agenda.push(Reverse((at_ns.saturating_add(call.model_ns), ENDS, session, number)));
        }
    }
    spent
}

impl Collect for Timelines {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn watches(&self, _session: u64) -> bool {
        true
    }

    fn turn(&mut self, turn: &Turn) {
        let ns = |seconds: f64| (seconds.max(0.0) * 1e9).round() as u64;
        let tools_s = turn.tool_phase_s.unwrap_or(0.0);
        let call = Call { model_ns: ns(turn.latency_s - tools_s), tools_ns: ns(tools_s), usd: turn.cost.usd() };
        self.open.push(call);
    }

    fn session(&mut self, _number: u64, _record: &Record, _bill: &Bill, _room: &Workspace) {
        self.sessions.push(std::mem::take(&mut self.open));
    }

    fn merge(&mut self, next: &mut Self) {
        self.sessions.append(&mut next.sessions);
    }
}
