//! What is set aside for one call, until it is settled or released.

use std::sync::Arc;

use super::limits::Amount;
use super::node::Node;
use super::prices::Prices;
use crate::price::{PicoUsd, PriceError, Usage};

/// An amount that is set aside. It is given back exactly once: by settling, by releasing, or when it is dropped.
#[derive(Debug)]
#[must_use = "a reservation that is dropped at once holds nothing"]
pub struct Reservation {
    /// Nothing once it is over.
    node: Option<Arc<Node>>,
    id: u64,
    worst: Amount,
    prices: Option<Prices>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// What it cost.
    pub usd: PicoUsd,
    /// What is free again.
    pub freed: PicoUsd,
    /// Whether it used more than was set aside, and a limit is passed by that. A provider that bills more than its model's
    /// worst case does so.
    pub over: bool,
    /// Whether every journal has it. Where one couldn't be written, a restart takes the call for abandoned.
    pub written: bool,
}

/// A call whose usage has no price. It counts as spent with all that was set aside for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the usage can't be billed, so the worst case counts: {0}")]
pub struct SettleError(#[from] pub PriceError);

impl Reservation {
    pub(super) fn new(node: Arc<Node>, id: u64, worst: Amount, prices: Option<Prices>) -> Self {
        Self { node: Some(node), id, worst, prices }
    }

    /// What is set aside.
    pub fn worst_case(&self) -> PicoUsd {
        PicoUsd(i128::from(self.worst.pico_usd))
    }

    /// The call is over and used this. What it didn't use is free again.
    ///
    /// # Errors
    /// Where the usage needs a price that isn't known; the worst case counts as spent then.
    pub fn settle(mut self, usage: &Usage) -> Result<Settled, SettleError> {
        let cost = match &self.prices {
            Some(prices) => prices.cost(usage),
            None => Ok(PicoUsd(0)),
        };
        match cost {
            Ok(usd) => Ok(self.settle_as(&Amount::of(usage, usd))),
            Err(error) => {
                let worst = self.worst;
                self.settle_as(&worst);
                Err(error.into())
            }
        }
    }

    /// The call wasn't made: all of it is free again.
    pub fn release(mut self) {
        if let Some(node) = self.node.take() {
            node.release(self.id, &self.worst);
        }
    }

    fn settle_as(&mut self, used: &Amount) -> Settled {
        let node = self.node.take();
        let (over, written) = node.map_or((false, true), |node| node.settle(self.id, &self.worst, used));
        let pico = |amount: u64| PicoUsd(i128::from(amount));
        let freed = pico(self.worst.pico_usd.saturating_sub(used.pico_usd));
        Settled { usd: pico(used.pico_usd), freed, over, written }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(node) = self.node.take() else { return };
        if node.limits.abandoned_is_spent {
            node.settle(self.id, &self.worst, &self.worst);
        } else {
            node.release(self.id, &self.worst);
        }
    }
}
