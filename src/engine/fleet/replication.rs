//! What one replication of a fleet came to.

use super::limiter::LimitRecord;
use super::recorder::{Gauge, Tally, TimeSum};
use super::station::StationRecord;
use crate::price::PicoUsd;

/// What one replication came to. Sums are between the warm-up and the horizon.
#[derive(Debug, Clone)]
pub struct Replication<C> {
    /// Sessions that ended.
    pub sample: C,
    /// Sessions that arrived.
    pub arrived: Tally,
    /// Sessions that ended, however.
    pub ended: Tally,
    /// Those of them that ended without their answer.
    pub unanswered: Tally,
    /// Sessions in progress.
    pub in_progress: Gauge,
    /// Time that sessions spent here, with the user's waits, summed session by session.
    pub stay_in_window: TimeSum,
    /// The model, then each tool.
    pub stations: Vec<StationRecord>,
    /// Provider limits.
    pub limits: Vec<LimitRecord>,
    /// Model calls that could share tools and system, and those that found them cached.
    pub prefix_calls: u64,
    /// See `prefix_calls`.
    pub prefix_warm: u64,
    /// Money of sessions that ended, by piece of the horizon.
    pub cost_pieces: Vec<PicoUsd>,
    /// Latency of sessions that ended, by piece of the horizon: median and 99th percentile, s; nothing where none ended.
    pub latency_pieces_s: Vec<Option<[f64; 2]>>,
    /// How long a piece of the horizon is, s.
    pub piece_s: f64,
    /// Calls that a breaker ended.
    pub refused: Tally,
    /// Events that were played.
    pub events: u64,
    /// When it was given up because too many sessions were in progress, s.
    pub given_up_s: Option<f64>,
    /// Sessions that were over at the horizon and not counted yet, because agents that they had called were still under way.
    pub lingering: u64,
    /// For how long it was counted, s.
    pub counted_s: f64,
}

impl<C> Replication<C> {
    /// The same with something else in the place of its sample.
    pub fn map_sample<T>(self, change: impl FnOnce(C) -> T) -> Replication<T> {
        Replication {
            sample: change(self.sample),
            arrived: self.arrived,
            ended: self.ended,
            unanswered: self.unanswered,
            in_progress: self.in_progress,
            stay_in_window: self.stay_in_window,
            stations: self.stations,
            limits: self.limits,
            prefix_calls: self.prefix_calls,
            prefix_warm: self.prefix_warm,
            cost_pieces: self.cost_pieces,
            latency_pieces_s: self.latency_pieces_s,
            piece_s: self.piece_s,
            refused: self.refused,
            events: self.events,
            given_up_s: self.given_up_s,
            lingering: self.lingering,
            counted_s: self.counted_s,
        }
    }
}
