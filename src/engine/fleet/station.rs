//! Servers that sessions share, with places to wait: of a tool, or of the model.

use std::collections::VecDeque;

use super::recorder::{Gauge, Ruler, Tally, TimeSum, Waits};

/// What a station did. Sums are between the warm-up and the horizon.
#[derive(Debug, Clone)]
pub struct StationRecord {
    /// The number of its tool; `None` for the model.
    pub tool: Option<usize>,
    /// Servers; `u64::MAX` without an end.
    pub servers: u64,
    /// Places to wait; `u64::MAX` without an end.
    pub places: u64,
    /// Requests that came.
    pub came: Tally,
    /// Requests that were turned away: no place was free, or a provider limit was reached.
    pub turned_away: Tally,
    /// Requests that failed because it was out of order.
    pub down: Tally,
    /// Requests that waited and left, because their client couldn't wait any longer.
    pub left: Tally,
    /// Requests that were served to the end.
    pub served: Tally,
    /// Requests being served.
    pub busy: Gauge,
    /// Requests that wait.
    pub waiting: Gauge,
    /// How long those waited whose service began, s.
    pub waits: Waits,
    /// Time that requests waited, summed request by request.
    pub waited_in_window: TimeSum,
}

/// A station with what is waiting there.
#[derive(Debug)]
pub(super) struct Station<T> {
    pub record: StationRecord,
    queue: VecDeque<(T, u64)>,
    /// From when on is counted.
    from_ns: u64,
}

/// What becomes of a request that comes to a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Served,
    Waits,
    None,
}

impl<T> Station<T> {
    pub fn new(tool: Option<usize>, servers: u64, places: u64, ruler: Ruler) -> Self {
        let record = StationRecord {
            tool,
            servers,
            places,
            came: Tally::new(),
            turned_away: Tally::new(),
            down: Tally::new(),
            left: Tally::new(),
            served: Tally::new(),
            busy: Gauge::new(ruler),
            waiting: Gauge::new(ruler),
            waits: Waits::default(),
            waited_in_window: TimeSum::default(),
        };
        Self { record, queue: VecDeque::new(), from_ns: 0 }
    }

    /// A request comes; it has been counted as one that came.
    pub fn receive(&mut self, request: T, now_ns: u64, piece: usize) -> Place {
        let record = &mut self.record;
        if record.busy.level < record.servers {
            record.busy.up(now_ns);
            record.waits.add(0);
            Place::Served
        } else if record.waiting.level < record.places {
            record.waiting.up(now_ns);
            self.queue.push_back((request, now_ns));
            Place::Waits
        } else {
            record.turned_away.count(piece);
            Place::None
        }
    }

    /// A server is free again: the next request that waits, and for how long it has, ns.
    pub fn freed(&mut self, now_ns: u64) -> Option<(T, u64)> {
        let record = &mut self.record;
        match self.queue.pop_front() {
            Some((request, since_ns)) => {
                record.waiting.down(now_ns);
                record.waits.add(now_ns - since_ns);
                record.waited_in_window.add_ns(now_ns - since_ns.max(self.from_ns));
                Some((request, now_ns - since_ns))
            }
            None => {
                record.busy.down(now_ns);
                None
            }
        }
    }

    /// A request that waits leaves: how long it has waited, ns; nothing where none is meant.
    pub fn leave(&mut self, is_meant: impl Fn(&T) -> bool, now_ns: u64, piece: usize) -> Option<u64> {
        let at = self.queue.iter().position(|(request, _)| is_meant(request))?;
        let (_, since_ns) = self.queue.remove(at)?;
        self.record.waiting.down(now_ns);
        self.record.left.count(piece);
        self.record.waited_in_window.add_ns(now_ns - since_ns.max(self.from_ns));
        Some(now_ns - since_ns)
    }

    /// The warm-up is over.
    pub fn start_counting(&mut self, now_ns: u64) {
        let record = &mut self.record;
        for tally in [&mut record.came, &mut record.turned_away, &mut record.down, &mut record.left, &mut record.served]
        {
            tally.counted = 0;
        }
        record.busy.start_counting(now_ns);
        record.waiting.start_counting(now_ns);
        record.waits.clear();
        (record.waited_in_window, self.from_ns) = (TimeSum::default(), now_ns);
    }

    /// Closes the books at the horizon.
    pub fn close(mut self, now_ns: u64) -> StationRecord {
        self.record.busy.close(now_ns);
        self.record.waiting.close(now_ns);
        self.record.waits.close();
        let from_ns = self.from_ns;
        for (_, since_ns) in &self.queue {
            self.record.waited_in_window.add_ns(now_ns - (*since_ns).max(from_ns));
        }
        self.record
    }
}
