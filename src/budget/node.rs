//! A budget and those above it.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;

use super::clock::{Clock, SystemClock, Window};
use super::journal::{Fsync, Journal, JournalError, Opened, Recovered};
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
    /// When it was made, or its window began to be used, ms since 1970.
    begun_ms: AtomicI64,
    /// The window, and its number whose spending is counted. Whoever changes the meters holds it for reading, so that a new
    /// window begins between two changes and not within one.
    window: Option<(Window, RwLock<u64>)>,
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

    /// Does something in the present window, which begins first where it has to, and hands it the time that decided.
    fn in_window<R>(&self, work: impl FnOnce(Option<Timestamp>) -> R) -> R {
        let Some((window, counted)) = &self.window else { return work(None) };
        let now = self.clock.now();
        let number = window.number(now);
        {
            let counted = counted.read().unwrap_or_else(PoisonError::into_inner);
            // a clock that goes back doesn't fill a budget
            if number <= *counted {
                return work(Some(now));
            }
        }
        let mut counted = counted.write().unwrap_or_else(PoisonError::into_inner);
        if number > *counted {
            *counted = number;
            self.begun_ms.store(now.as_millisecond(), Ordering::Release);
            self.meters.iter().for_each(Meter::start_again);
        }
        work(Some(now))
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
        self.in_window(|now| self.hold_at(now, amount, priced))
    }

    fn hold_at(&self, now: Option<Timestamp>, amount: &Amount, priced: bool) -> Result<(), Refused> {
        if let Some(most) = self.limits.time {
            let begun_ms = self.begun_ms.load(Ordering::Acquire);
            let now = now.unwrap_or_else(|| self.clock.now());
            let passed_s = (now.as_millisecond() - begun_ms) as f64 / 1e3;
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

    /// Writes a reservation down wherever there is a journal; where one can't be written, those before it are told that
    /// nothing came of it.
    fn write_reserved(self: &Arc<Self>, id: u64, amount: &Amount) -> Result<(), Refused> {
        for (above, node) in self.line().enumerate() {
            let Some(journal) = &node.journal else { continue };
            if journal.reserved(id, amount).is_err() {
                for told in self.line().take(above).filter_map(|node| node.journal.as_ref()) {
                    let _ = told.released(id);
                }
                return Err(Refused { budget: node.name.clone(), limit: Limit::Journal, asked: 0.0, left: 0.0 });
            }
        }
        Ok(())
    }

    /// Gives back what was held here.
    fn give_back(&self, amount: &Amount) {
        self.in_window(|_| {
            for (held, meter) in amount.by_meter(self.limits.counted).into_iter().zip(&self.meters) {
                meter.release(held);
            }
        });
    }

    /// Gives back what was held, here and above. Where that can't be written down, the journal still has it as under way: a
    /// restart then treats it as abandoned.
    pub fn release(self: &Arc<Self>, id: u64, amount: &Amount) {
        for node in self.line() {
            node.release_here(id, amount);
        }
    }

    fn release_here(&self, id: u64, amount: &Amount) {
        if let Some(journal) = &self.journal {
            let _ = journal.released(id);
        }
        self.give_back(amount);
    }

    /// A call that was neither settled nor released: it counts where an abandoned call is to count.
    pub fn abandon(self: &Arc<Self>, id: u64, amount: &Amount) {
        for node in self.line() {
            if node.limits.abandoned_is_spent {
                node.settle_here(id, amount, amount);
            } else {
                node.release_here(id, amount);
            }
        }
    }

    /// Returns whether it is overrun now, and whether its journal has it.
    fn settle_here(&self, id: u64, held: &Amount, used: &Amount) -> (bool, bool) {
        self.in_window(|now| {
            let now = || now.unwrap_or_else(|| self.clock.now());
            let written = self.journal.as_ref().is_none_or(|journal| journal.settled(id, used, now()).is_ok());
            let mut over = false;
            let amounts = held.by_meter(self.limits.counted).into_iter().zip(used.by_meter(self.limits.counted));
            for (index, ((held, used), meter)) in amounts.zip(&self.meters).enumerate() {
                meter.settle(held, used);
                over |= used > held && self.limit(index).is_some_and(|limit| meter.committed() > limit);
            }
            (over, written)
        })
    }

    /// Returns whether one of the budgets is overrun now, and whether all journals have it.
    pub fn settle(self: &Arc<Self>, id: u64, held: &Amount, used: &Amount) -> (bool, bool) {
        self.line().fold((false, true), |(over, written), node| {
            let here = node.settle_here(id, held, used);
            (over || here.0, written && here.1)
        })
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
    /// Where the file can't be read or written, is in use, is another version's, or has a broken line that isn't its last.
    pub fn with_journal(
        name: &str,
        limits: Limits,
        path: &Path,
        fsync: Fsync,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Recovered), JournalError> {
        let Opened { journal, recovered, sums, window_number } = Journal::open(path, fsync, &limits, clock.now())?;
        let mut node = Self::node(name, limits, clock, None);
        node.journal = Some(journal);
        if let Some((_, counted)) = &mut node.window {
            *counted = RwLock::new(window_number);
        }
        for (meter, spent) in node.meters.iter().zip(sums) {
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
        let now = clock.now();
        let window = limits.window.map(|window| (window, RwLock::new(window.number(now))));
        let (name, meters) = (name.to_owned(), Default::default());
        let begun_ms = AtomicI64::new(now.as_millisecond());
        Node { name, parent, limits, clock, begun_ms, window, meters, journal: None }
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
                self.node.line().take(above).for_each(|held| held.give_back(&amount));
                return Err(refused);
            }
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        if let Err(refused) = self.node.write_reserved(id, &amount) {
            self.node.line().for_each(|held| held.give_back(&amount));
            return Err(refused);
        }
        Ok(Reservation::new(self.node.clone(), id, amount, call.prices()))
    }

    /// What calls that are over have cost; in the present window, where there are windows.
    pub fn spent(&self) -> PicoUsd {
        PicoUsd(i128::from(self.read(0).0))
    }

    /// What is set aside for calls under way.
    pub fn held(&self) -> PicoUsd {
        let (spent, committed) = self.read(0);
        PicoUsd(i128::from(committed.saturating_sub(spent)))
    }

    /// What is left of the money here, not counting what is set aside; `None` where money isn't limited.
    pub fn left(&self) -> Option<PicoUsd> {
        let limit = self.node.limit(0)?;
        Some(PicoUsd(i128::from(limit.saturating_sub(self.read(0).1))))
    }

    /// Spent and set aside together: what never rises above the limit.
    pub fn committed(&self) -> PicoUsd {
        PicoUsd(i128::from(self.read(0).1))
    }

    /// Tokens of calls that are over, of the kinds that are counted.
    pub fn spent_tokens(&self) -> u64 {
        self.read(1).0
    }

    /// Calls that are over.
    pub fn spent_calls(&self) -> u64 {
        self.read(2).0
    }

    /// Calls under way.
    pub fn held_calls(&self) -> u64 {
        let (spent, committed) = self.read(2);
        committed.saturating_sub(spent)
    }

    /// (spent, committed) of a meter in the present window.
    fn read(&self, meter: usize) -> (u64, u64) {
        self.node.in_window(|_| (self.node.meters[meter].spent(), self.node.meters[meter].committed()))
    }
}
