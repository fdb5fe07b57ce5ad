//! Time in a fleet: whole nanoseconds, and events of one moment in the order in which they were planned.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Seconds as nanoseconds, rounded by a half and a cut, which is faster than a call of the library. What lies beyond 292
/// years lies at their end, so that a moment is a signed number too, which turns into a real one in one instruction.
#[inline]
pub(super) fn ns(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5).max(0.0) as i64 as u64
}

/// Nanoseconds as seconds.
#[inline]
pub(super) fn seconds(ns: u64) -> f64 {
    ns as i64 as f64 / 1e9
}

/// What is planned: when, its number, and where it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Planned {
    at_ns: u64,
    number: u64,
    place: u32,
}

/// Things that are kept by number; a number is free again when its thing is taken.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    kept: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Shelf<T> {
    /// Keeps something; returns its number.
    #[inline]
    pub fn put(&mut self, what: T) -> u32 {
        let place = self.free.pop().unwrap_or(self.kept.len() as u32);
        match self.kept.get_mut(place as usize) {
            Some(kept) => *kept = what,
            None => self.kept.push(what),
        }
        place
    }

    /// Takes what is kept under a number that was given out and hasn't been taken since.
    #[inline]
    pub fn take(&mut self, place: u32) -> Option<T> {
        self.free.push(place);
        self.kept.get(place as usize).copied()
    }
}

/// What is to happen. Most of what happens has a consequence at the same moment: that waits in a queue and never enters the
/// heap.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    now_ns: u64,
    /// Planned for now: after all that was planned for this moment before it came.
    now: VecDeque<T>,
    later: BinaryHeap<Reverse<Planned>>,
    /// What the heap's events are, which move less without it.
    kept: Shelf<T>,
    /// The next of a chain of events, each of which is planned by the one before it.
    chained: Option<(Planned, T)>,
    planned: u64,
}

impl<T: Copy> Agenda<T> {
    pub fn new() -> Self {
        Self {
            now_ns: 0,
            now: VecDeque::new(),
            later: BinaryHeap::new(),
            kept: Shelf::default(),
            chained: None,
            planned: 0,
        }
    }

    fn numbered(&mut self, at_ns: u64, place: u32) -> Planned {
        self.planned += 1;
        Planned { at_ns, number: self.planned, place }
    }

    /// Plans something; what lies in the past happens now.
    #[inline(always)]
    #[allow(clippy::inline_always)] // what is planned is written where it is kept
    pub fn plan(&mut self, at_ns: u64, what: T) {
        if at_ns <= self.now_ns {
            return self.now.push_back(what);
        }
        let place = self.kept.put(what);
        self.enter(at_ns, place);
    }

    fn enter(&mut self, at_ns: u64, place: u32) {
        let planned = self.numbered(at_ns, place);
        self.later.push(Reverse(planned));
    }

    /// Plans the next of a chain of events, of which one at a time is planned.
    pub fn plan_next(&mut self, at_ns: u64, what: T) {
        if at_ns <= self.now_ns {
            return self.now.push_back(what);
        }
        debug_assert!(self.chained.is_none());
        self.chained = Some((self.numbered(at_ns, 0), what));
    }

    /// When the next thing happens, and what.
    pub fn next(&mut self) -> Option<(u64, T)> {
        let later = self.later.peek().map(|Reverse(planned)| planned);
        let chained = self.chained.as_ref().map(|(planned, _)| planned);
        let is_chained = chained.is_some_and(|chained| later.is_none_or(|later| chained < later));
        let first = if is_chained { chained } else { later };
        if first.is_none_or(|first| first.at_ns > self.now_ns)
            && let Some(what) = self.now.pop_front()
        {
            return Some((self.now_ns, what));
        }
        let (planned, what) = if is_chained {
            self.chained.take()?
        } else {
            let Reverse(planned) = self.later.pop()?;
            (planned, self.kept.take(planned.place)?)
        };
        self.now_ns = planned.at_ns;
        Some((planned.at_ns, what))
    }
}
