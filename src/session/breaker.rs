//! A breaker: after some failed attempts in a row calls fail at once (MODEL.md §4.8).

use crate::model::Breaker;

/// A tool's breaker, kept from phase to phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BreakerState {
    /// Calls go through; so many attempts in a row have failed.
    Closed(u64),
    /// Calls fail at once until then, s.
    Open(f64),
    /// One attempt decides; other calls fail at once.
    Probing,
}

impl Default for BreakerState {
    fn default() -> Self {
        Self::Closed(0)
    }
}

impl BreakerState {
    /// Whether an attempt that would start now may, and whether it is the probe.
    pub fn admit(&mut self, now_s: f64) -> Admission {
        match *self {
            Self::Closed(_) => Admission::Ordinary,
            Self::Open(until_s) if now_s >= until_s => {
                *self = Self::Probing;
                Admission::Probe
            }
            Self::Open(_) | Self::Probing => Admission::Refused,
        }
    }

    /// Takes in the end of an attempt. Attempts from before it opened don't count any more.
    pub fn ended(&mut self, rule: &Breaker, admitted: Admission, success: bool, now_s: f64) {
        let opened = Self::Open(now_s + rule.cooldown_s);
        match (*self, admitted) {
            (Self::Probing, Admission::Probe) => *self = if success { Self::Closed(0) } else { opened },
            (Self::Closed(_), _) if success => *self = Self::Closed(0),
            (Self::Closed(failed), _) => {
                *self = if failed + 1 >= rule.failures { opened } else { Self::Closed(failed + 1) };
            }
            _ => {}
        }
    }
}

/// What a breaker says to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may start.
    Ordinary,
    /// It may start, and decides.
    Probe,
    /// It fails at once.
    Refused,
}
