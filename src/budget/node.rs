//! A budget and those above it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use super::clock::{Clock, SystemClock};
use super::journal::{Fsync, Journal, JournalError, Recovered};
use super::limits::{Amount, Limit, Limits};
use super::meter::Meter;
use super::prices::Call;
use super::reservation::Reservation;
use crate::price::PicoUsd;

/// A budget. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct Budget {
    pub(super) node: Arc<Node>,
}

#[derive(Debug)]
pub(super) struct Node {
    name: String,
    parent: Option<Arc<Node>>,
    pub limits: Limits,
    clock: Arc<dyn Clock>,
    begun: Timestamp,
    /// The number of the window whose spending is counted.
    window: AtomicU64,
    /// Money, tokens, calls.
    meters: [Meter; 3],
    journal: Option<Journal>,
}

/// Why a call can't be made: which budget stands in its way, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The budget's name.
    pub budget: String,
    /// Its limit.
    pub limit: Limit,
    /// What was asked for: dollars, tokens, calls, or seconds that have passed.
    pub asked: f64,
    /// What is left: the same unit; of time, how long it may be.
    pub left: f64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { budget, asked, left, .. } = self;
        match self.limit {
            Limit::Usd => write!(f, "budget {budget}: the call may cost ${asked:.6}, and ${left:.6} is left"),
            Limit::Tokens => write!(f, "budget {budget}: the call may take {asked} tokens, and {left} are left"),
            Limit::Calls => write!(f, "budget {budget}: no call is left"),
            Limit::Time => write!(f, "budget {budget}: {asked:.1} s have passed of {left:.1} s"),
            Limit::Journal => write!(f, "budget {budget}: its journal can't be written"),
            Limit::Unpriced => write!(f, "budget {budget}: the call has no known price, and money is limited"),
        }
    }
}

impl std::error::Error for Refused {}

const METERS: [Limit; 3] = [Limit::Usd, Limit::Tokens, Limit::Calls];

impl Node {
    fn limit(&self, meter: usize) -> Option<u64> {
        match meter {
            0 => self.limits.usd.map(|usd| u64::try_from(usd.0).unwrap_or(0)),
            1 => self.limits.tokens,
            _ => self.limits.calls,
        }
    }

    /// Forgets what was spent in a window that is over. Of several threads that notice it, one does it.
    fn roll(&self) {
        let Some(window) = self.limits.window else { return };
        let number = window.number(self.clock.now());
        let counted = self.window.load(Ordering::Acquire);
        // a clock that goes back doesn't fill a budget
        if number > counted
            && self.window.compare_exchange(counted, number, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            self.meters.iter().for_each(Meter::start_again);
        }
    }

    fn refuse(&self, meter: usize, asked: u64, left: u64) -> Refused {
        let scale = if meter == 0 { 1e-12 } else { 1.0 };
        Refused {
            budget: self.name.clone(),
            limit: METERS[meter],
            asked: asked as f64 * scale,
            left: left as f64 * scale,
        }
    }

    /// Sets the worst case aside here, on all meters or on none.
    fn hold(&self, amount: &Amount, priced: bool) -> Result<(), Refused> {
        self.roll();
        if let Some(most) = self.limits.time {
            let passed_s = self.clock.now().duration_since(self.begun).as_secs_f64();
            if passed_s >= most.as_secs_f64() {
                let (budget, left) = (self.name.clone(), most.as_secs_f64());
                return Err(Refused { budget, limit: Limit::Time, asked: passed_s, left });
            }
        }
        if !priced && self.limits.usd.is_some() && !self.limits.lets_unpriced_through {
            return Err(Refused { budget: self.name.clone(), limit: Limit::Unpriced, asked: 0.0, left: 0.0 });
        }
        let wanted = amount.by_meter(self.limits.counted);
        for (index, meter) in self.meters.iter().enumerate() {
            if let Err(left) = meter.hold(wanted[index], self.limit(index)) {
                for (held, meter) in wanted.iter().zip(&self.meters).take(index) {
                    meter.release(*held);
                }
                return Err(self.refuse(index, wanted[index], left));
            }
        }
        Ok(())
    }

    /// This budget and those above it.
    fn line(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Node>> {
        std::iter::successors(Some(self), |node| node.parent.as_ref())
    }

    /// Writes a reservation down wherever there is a journal; says whose couldn't be written.
    fn write_reserved(self: &Arc<Self>, id: u64, amount: &Amount) -> Result<(), Refused> {
        for node in self.line() {
            let Some(journal) = &node.journal else { continue };
            if journal.reserved(id, amount).is_err() {
                return Err(Refused { budget: node.name.clone(), limit: Limit::Journal, asked: 0.0, left: 0.0 });
            }
        }
        Ok(())
    }

    /// Gives back what was held. Where that can't be written down, the journal still has it as under way: a restart then
    /// treats it as abandoned.
    pub fn release(self: &Arc<Self>, id: u64, amount: &Amount) {
        for node in self.line() {
            if let Some(journal) = &node.journal {
                let _ = journal.released(id);
            }
            for (held, meter) in amount.by_meter(node.limits.counted).into_iter().zip(&node.meters) {
                meter.release(held);
            }
        }
    }

    /// Returns whether one of the budgets is overrun now, and whether all journals have it.
    pub fn settle(self: &Arc<Self>, id: u64, held: &Amount, used: &Amount) -> (bool, bool) {
        let (mut over, mut written) = (false, true);
        for node in self.line() {
            if let Some(journal) = &node.journal {
                written &= journal.settled(id, used, node.clock.now()).is_ok();
            }
            let amounts = held.by_meter(node.limits.counted).into_iter().zip(used.by_meter(node.limits.counted));
            for (index, ((held, used), meter)) in amounts.zip(&node.meters).enumerate() {
                meter.settle(held, used);
                over |= used > held && node.limit(index).is_some_and(|limit| meter.committed() > limit);
            }
        }
        (over, written)
    }
}

/// Numbers of reservations, by which journals tell them apart.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Budget {
    /// A budget of its own, by the machine's clock.
    pub fn new(name: &str, limits: Limits) -> Self {
        Self::with_clock(name, limits, Arc::new(SystemClock))
    }

    /// A budget of its own, by another clock.
    pub fn with_clock(name: &str, limits: Limits, clock: Arc<dyn Clock>) -> Self {
        Self::make(name, limits, clock, None)
    }

    /// A budget that writes down what it does and goes on from what a journal says was spent.
    ///
    /// # Errors
    /// Where the file can't be read or written, is another version's, or has a broken line that isn't its last.
    pub fn with_journal(
        name: &str,
        limits: Limits,
        path: &Path,
        fsync: Fsync,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Recovered), JournalError> {
        let Limits { counted, window, abandoned_is_spent, .. } = limits;
        let (journal, recovered, spent) = Journal::open(path, fsync, counted, window, clock.now(), abandoned_is_spent)?;
        let mut node = Self::node(name, limits, clock, None);
        node.journal = Some(journal);
        for (meter, spent) in node.meters.iter().zip(spent) {
            meter.recover(spent);
        }
        Ok((Self { node: Arc::new(node) }, recovered))
    }

    /// A budget within this one: what is reserved there is reserved here too, or not at all.
    #[must_use]
    pub fn child(&self, name: &str, limits: Limits) -> Self {
        Self::make(name, limits, self.node.clock.clone(), Some(self.node.clone()))
    }

    fn make(name: &str, limits: Limits, clock: Arc<dyn Clock>, parent: Option<Arc<Node>>) -> Self {
        Self { node: Arc::new(Self::node(name, limits, clock, parent)) }
    }

    fn node(name: &str, limits: Limits, clock: Arc<dyn Clock>, parent: Option<Arc<Node>>) -> Node {
        let begun = clock.now();
        let window = AtomicU64::new(limits.window.map_or(0, |window| window.number(begun)));
        let (name, meters) = (name.to_owned(), Default::default());
        Node { name, parent, limits, clock, begun, window, meters, journal: None }
    }

    /// Sets aside what a call may use at most, here and in every budget above, or nowhere. While it tries, others may see
    /// less than is left, and never more.
    ///
    /// # Errors
    /// Which limit stands in the way, what was asked and what is left.
    pub fn reserve(&self, call: &Call) -> Result<Reservation, Refused> {
        let (amount, priced) = (call.worst(), call.is_priced());
        for (above, node) in self.node.line().enumerate() {
            if let Err(refused) = node.hold(&amount, priced) {
                for held in self.node.line().take(above) {
                    for (part, meter) in amount.by_meter(held.limits.counted).into_iter().zip(&held.meters) {
                        meter.release(part);
                    }
                }
                return Err(refused);
            }
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let reservation = Reservation::new(self.node.clone(), id, amount, call.prices());
        if let Err(refused) = self.node.write_reserved(id, &amount) {
            reservation.release();
            return Err(refused);
        }
        Ok(reservation)
    }

    /// What calls that are over have cost; in the present window, where there are windows.
    pub fn spent(&self) -> PicoUsd {
        self.node.roll();
        PicoUsd(i128::from(self.node.meters[0].spent()))
    }

    /// What is set aside for calls under way.
    pub fn held(&self) -> PicoUsd {
        let meter = &self.node.meters[0];
        PicoUsd(i128::from(meter.committed().saturating_sub(meter.spent())))
    }

    /// What is left of the money here, not counting what is set aside; `None` where money isn't limited.
    pub fn left(&self) -> Option<PicoUsd> {
        self.node.roll();
        let limit = self.node.limit(0)?;
        Some(PicoUsd(i128::from(limit.saturating_sub(self.node.meters[0].committed()))))
    }

    /// Tokens of calls that are over, of the kinds that are counted.
    pub fn spent_tokens(&self) -> u64 {
        self.node.meters[1].spent()
    }

    /// Calls that are over.
    pub fn spent_calls(&self) -> u64 {
        self.node.meters[2].spent()
    }

    /// Calls under way.
    pub fn held_calls(&self) -> u64 {
        let meter = &self.node.meters[2];
        meter.committed().saturating_sub(meter.spent())
    }
}
