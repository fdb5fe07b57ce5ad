//! Time in a fleet: whole nanoseconds, and events of one moment in the order in which they were planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Seconds as nanoseconds, rounded by a half and a cut, which is faster than a call of the library. What lies beyond 584
/// years lies at their end.
pub(super) fn ns(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5) as u64
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// What is planned, with its time and number.
#[derive(Debug, Clone, Copy)]
struct Planned<T> {
    at_ns: u64,
    number: u64,
    what: T,
}

impl<T> PartialEq for Planned<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.number) == (other.at_ns, other.number)
    }
}

impl<T> Eq for Planned<T> {}

impl<T> PartialOrd for Planned<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Planned<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

/// What is to happen.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Planned<T>>>,
    planned: u64,
}

impl<T> Agenda<T> {
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }

    pub fn plan(&mut self, at_ns: u64, what: T) {
        self.heap.push(Reverse(Planned { at_ns, number: self.planned, what }));
        self.planned += 1;
    }

    /// When the next thing happens, and what.
    pub fn next(&mut self) -> Option<(u64, T)> {
        self.heap.pop().map(|Reverse(planned)| (planned.at_ns, planned.what))
    }
}
