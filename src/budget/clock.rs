//! What day it is, told from outside so that tests can say it.

use std::fmt::Debug;

use jiff::Timestamp;
use jiff::tz::Offset;

/// Tells the time.
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// After which time a budget is full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// At midnight, UTC.
    Day,
    /// On the first of a month, UTC.
    Month,
}

impl Window {
    /// The number of the window that a time lies in.
    pub(super) fn number(self, now: Timestamp) -> u64 {
        match self {
            Window::Day => now.as_second().div_euclid(86_400).max(0).unsigned_abs(),
            Window::Month => {
                let date = Offset::UTC.to_datetime(now).date();
                u64::from(date.year().max(0).unsigned_abs()) * 12 + u64::from(date.month().unsigned_abs())
            }
        }
    }
}
