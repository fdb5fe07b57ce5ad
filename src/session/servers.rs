//! What the calls of a session meet outside of it.

use super::BreakerState;

/// A copy of a request that reaches its server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// The tool's number.
    pub tool: usize,
    /// The call's number among the tool's.
    pub call: usize,
    /// The attempt's number, from 0.
    pub attempt: u32,
    /// Whether it is the attempt's second copy.
    pub is_second: bool,
    /// The turn whose phase it belongs to.
    pub turn: u64,
    /// How long the server works on it, s; of a session of an agent this isn't known before it has been played.
    pub service_s: f64,
    /// Whether the client will hear of it.
    pub is_answered: bool,
}

/// What a server does with a copy of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reception {
    /// It will execute it, and if the client is to hear of it there will be a [`super::What::Reply`]; of a session of an
    /// agent there will be a [`super::What::SessionOver`] in any case.
    Admitted,
    /// It turns it away.
    TurnedAway,
    /// Nobody hears of it again.
    Lost,
}

/// What the calls of a session meet outside of it.
pub trait Servers {
    /// Whether the calls of a tool meet those of other sessions.
    fn are_shared(&self, tool: usize) -> bool;

    /// The breaker of a tool, where sessions share it; with it the time that it goes by at the session's start, s.
    fn breaker(&self, tool: usize) -> Option<(BreakerState, f64)>;

    /// What has become of it.
    fn set_breaker(&mut self, tool: usize, state: BreakerState);

    /// A copy of a request reaches a tool whose calls meet those of other sessions.
    fn receive(&mut self, arrival: Arrival) -> Reception;
}

/// Nobody else is there.
pub(super) struct Nobody;

impl Servers for Nobody {
    fn are_shared(&self, _tool: usize) -> bool {
        false
    }

    fn breaker(&self, _tool: usize) -> Option<(BreakerState, f64)> {
        None
    }

    fn set_breaker(&mut self, _tool: usize, _state: BreakerState) {}

    fn receive(&mut self, _arrival: Arrival) -> Reception {
        Reception::Lost
    }
}
