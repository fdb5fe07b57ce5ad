//! One amount that many threads spend from.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that threads change in single steps. Beside the ordinary one there is that of the model checker.
pub(super) trait Word: Default {
    fn load(&self) -> u64;
    /// Puts `new` where `old` is; what is there instead, if it isn't.
    fn replace(&self, old: u64, new: u64) -> Result<(), u64>;

    /// Changes the number in one step; returns what it was.
    fn change(&self, to: impl Fn(u64) -> u64) -> u64 {
        let mut old = self.load();
        loop {
            match self.replace(old, to(old)) {
                Ok(()) => return old,
                Err(now) => old = now,
            }
        }
    }

    /// Adds, up to [`FULL`].
    fn add(&self, amount: u64) {
        self.change(|sum| sum.saturating_add(amount).min(FULL));
    }

    /// Takes away. A sum that is full stays so: nobody knows how much is in it.
    fn sub(&self, amount: u64) {
        self.change(|sum| if sum >= FULL { FULL } else { sum.saturating_sub(amount) });
    }

    fn swap(&self, value: u64) -> u64 {
        self.change(|_| value)
    }
}

/// More than any limit: a meter that comes here stays shut.
const FULL: u64 = u64::MAX / 2;

impl Word for AtomicU64 {
    fn load(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn replace(&self, old: u64, new: u64) -> Result<(), u64> {
        self.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}

/// What was spent, and what is spent or set aside. All changes are single atomic steps, so that no sum of them is ever
/// lost; `committed` never rises above a limit by [`Meter::hold`].
#[derive(Debug, Default)]
pub(super) struct Meter<W = AtomicU64> {
    committed: W,
    spent: W,
}

impl<W: Word> Meter<W> {
    /// Sets an amount aside.
    ///
    /// # Errors
    /// What is left, where that is less.
    pub fn hold(&self, amount: u64, limit: Option<u64>) -> Result<(), u64> {
        let Some(limit) = limit else {
            self.committed.add(amount);
            return Ok(());
        };
        let mut committed = self.committed.load();
        loop {
            let left = limit.min(FULL - 1).saturating_sub(committed);
            if amount > left {
                return Err(left);
            }
            match self.committed.replace(committed, committed + amount) {
                Ok(()) => return Ok(()),
                Err(now) => committed = now,
            }
        }
    }

    /// Gives back what was held.
    pub fn release(&self, held: u64) {
        self.committed.sub(held);
    }

    /// Spends of what was held; the rest is free again. What was used beyond it counts too.
    pub fn settle(&self, held: u64, used: u64) {
        // what is committed is never less than what is spent
        if used >= held {
            self.committed.add(used - held);
            self.spent.add(used);
        } else {
            self.spent.add(used);
            self.committed.sub(held - used);
        }
    }

    /// What was spent before this budget was made.
    pub fn recover(&self, spent: u64) {
        self.spent.add(spent);
        self.committed.add(spent);
    }

    /// Starts again from nothing spent; what is held stays held.
    pub fn start_again(&self) {
        let spent = self.spent.swap(0);
        self.committed.sub(spent);
    }

    pub fn spent(&self) -> u64 {
        self.spent.load()
    }

    /// Spent and held.
    pub fn committed(&self) -> u64 {
        self.committed.load()
    }
}

/// The interleavings of a few threads, by the model checker.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};
    use loom::thread;

    use super::{Meter, Word};

    impl Word for AtomicU64 {
        fn load(&self) -> u64 {
            self.load(Ordering::Acquire)
        }

        fn replace(&self, old: u64, new: u64) -> Result<(), u64> {
            self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
        }
    }

    type Checked = Meter<AtomicU64>;

    #[test]
    fn of_two_that_want_more_than_half_one_gets_it() {
        loom::model(|| {
            let meter = Arc::new(Checked::default());
            let ask = |meter: Arc<Checked>| move || meter.hold(6, Some(10)).is_ok();
            let other = thread::spawn(ask(meter.clone()));
            let mine = ask(meter.clone())();
            assert!(mine ^ other.join().unwrap());
            assert_eq!((meter.committed(), meter.spent()), (6, 0));
        });
    }

    #[test]
    fn nothing_is_lost_between_holding_and_settling() {
        // all interleavings with up to three switches between threads: more would take minutes
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let meter = Arc::new(Checked::default());
            let spend = |meter: Arc<Checked>, used: u64| {
                move || {
                    let held = meter.hold(4, Some(9)).is_ok();
                    assert!(meter.committed() <= 9);
                    if held && used > 0 {
                        meter.settle(4, used);
                    } else if held {
                        meter.release(4);
                    }
                    if held { used } else { 0 }
                }
            };
            let other = thread::spawn(spend(meter.clone(), 3));
            let mine = spend(meter.clone(), 0)() + spend(meter.clone(), 1)();
            let settled = mine + other.join().unwrap();
            assert_eq!((meter.committed(), meter.spent()), (settled, settled));
        });
    }

    #[test]
    fn more_than_was_held_is_never_spent_before_it_is_committed() {
        loom::model(|| {
            let meter = Arc::new(Checked::default());
            meter.hold(2, Some(10)).unwrap();
            let settle = {
                let meter = meter.clone();
                thread::spawn(move || meter.settle(2, 7))
            };
            let spent = meter.spent();
            assert!(spent <= meter.committed());
            settle.join().unwrap();
            assert_eq!((meter.committed(), meter.spent()), (7, 7));
        });
    }

    /// The checker finds what it is for: a guard that looks first and spends later.
    #[test]
    #[should_panic(expected = "overspent")]
    fn a_guard_that_looks_first_is_caught() {
        loom::model(|| {
            let meter = Arc::new(Checked::default());
            let ask = |meter: Arc<Checked>| {
                move || {
                    if meter.committed() + 6 <= 10 {
                        meter.hold(6, None).unwrap();
                    }
                }
            };
            let other = thread::spawn(ask(meter.clone()));
            ask(meter.clone())();
            other.join().unwrap();
            assert!(meter.committed() <= 10, "overspent");
        });
    }
}
