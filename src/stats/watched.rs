//! The turns of some of the sessions, for quantiles of what is measured turn by turn.

use super::summary::TurnMetric;
use crate::engine::SESSION_NUMBERS;
use crate::model::Model;
use crate::price::PicoUsd;

/// About how many turns are kept; of a fleet between half as many and as many.
const WATCHED_TURNS: f64 = 250_000.0;

/// The sessions whose turns are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Watched {
    /// The first ones.
    First(u64),
    /// One of a power of two, all over the horizon of a fleet: those whose last bits are zero.
    Each { mask: u64 },
}

impl Watched {
    /// Of a model whose sessions have so many turns on average.
    pub fn of(model: &Model, mean_turns: f64) -> Self {
        match &model.fleet {
            None => Self::First((WATCHED_TURNS / mean_turns).clamp(50.0, 20_000.0) as u64),
            Some(fleet) => {
                let sessions = fleet.arrivals.mean_per_s(fleet.horizon_s) * fleet.horizon_s * fleet.replications as f64;
                let step = (sessions * mean_turns / WATCHED_TURNS).ceil().max(1.0) as u64;
                Self::Each { mask: step.checked_next_power_of_two().map_or(u64::MAX, |step| step - 1) }
            }
        }
    }

    /// Whether the session with this number is one of them.
    #[inline]
    pub fn is_in(self, session: u64) -> bool {
        match self {
            Self::First(sessions) => session < sessions,
            Self::Each { mask } => session & SESSION_NUMBERS & mask == 0,
        }
    }
}

/// Turns of the watched sessions, session by session.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchedTurns {
    /// Turns of each watched session.
    pub turns_per_session: Vec<u32>,
    /// Tool phases of each watched session.
    pub phases_per_session: Vec<u32>,
    /// Messages of each watched session.
    pub messages_per_session: Vec<u32>,
    /// Answered turns of each watched session.
    pub answers_per_session: Vec<u32>,
    pub latency_s: Vec<f64>,
    pub phase_s: Vec<f64>,
    pub first_token_s: Vec<f64>,
    pub message_s: Vec<f64>,
    /// Money of call 1, 2, … summed over the sessions that reach it, and how many do.
    pub costs: Vec<(PicoUsd, u64)>,
}

impl WatchedTurns {
    /// Takes in the money of so many turns with this index.
    pub fn add_cost(&mut self, index: usize, cost: PicoUsd, turns: u64) {
        if self.costs.len() <= index {
            self.costs.resize(index + 1, (PicoUsd::default(), 0));
        }
        self.costs[index].0 += cost;
        self.costs[index].1 += turns;
    }

    /// Takes in the turns of further sessions.
    pub fn append(&mut self, next: &mut Self) {
        self.turns_per_session.append(&mut next.turns_per_session);
        self.phases_per_session.append(&mut next.phases_per_session);
        self.messages_per_session.append(&mut next.messages_per_session);
        self.answers_per_session.append(&mut next.answers_per_session);
        self.message_s.append(&mut next.message_s);
        self.latency_s.append(&mut next.latency_s);
        self.phase_s.append(&mut next.phase_s);
        self.first_token_s.append(&mut next.first_token_s);
        for (index, (cost, count)) in std::mem::take(&mut next.costs).into_iter().enumerate() {
            self.add_cost(index, cost, count);
        }
    }

    /// The values of a metric, turn by turn, and how many belong to each session.
    pub fn values(&self, metric: TurnMetric) -> (&[f64], &[u32]) {
        match metric {
            TurnMetric::Latency => (&self.latency_s, &self.turns_per_session),
            TurnMetric::ToolPhase => (&self.phase_s, &self.phases_per_session),
            TurnMetric::FirstToken => (&self.first_token_s, &self.answers_per_session),
            TurnMetric::Message => (&self.message_s, &self.messages_per_session),
        }
    }
}
