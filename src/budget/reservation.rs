//! What is set aside for one call, until it is settled or released.

use std::sync::Arc;

use super::limits::Amount;
use super::node::Node;
use super::prices::Prices;
use crate::price::{PicoUsd, PriceError, Service, Sheet, Usage, UsageRead};

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

/// A call whose usage has no price. It counts as spent with all that was set aside for it, and with more where it surely
/// used more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the usage can't be billed, so at least the worst case counts: {why}")]
pub struct SettleError {
    /// Which price isn't known.
    pub why: PriceError,
    /// What was counted.
    pub settled: Settled,
}

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
        let cost = self.prices.as_ref().map_or(Ok(PicoUsd(0)), |prices| prices.cost(usage));
        self.settle_cost(&[(usage, cost)])
    }

    /// The same of a usage as it was read, with the further requests that were made on the way: each at the prices of its own
    /// model, which is looked up in the sheet.
    ///
    /// # Errors
    /// As [`Reservation::settle`].
    pub fn settle_read(mut self, read: &UsageRead, sheet: &Sheet) -> Result<Settled, SettleError> {
        let own = |usage: &Usage| self.prices.as_ref().map_or(Ok(PicoUsd(0)), |prices| prices.cost(usage));
        let mut parts = vec![(&read.usage, own(&read.usage))];
        for also in &read.also {
            let cost = match &also.model {
                Some(model) => sheet.cost(model, &also.usage, None).map(|bill| bill.total()),
                None => own(&also.usage),
            };
            parts.push((&also.usage, cost));
        }
        self.settle_cost(&parts)
    }

    /// Settles what several requests used; where one of them has no price, at least the worst case.
    fn settle_cost(&mut self, parts: &[(&Usage, Result<PicoUsd, PriceError>)]) -> Result<Settled, SettleError> {
        let (mut total, mut unknown) = (Amount::default(), None);
        for (usage, cost) in parts {
            let usd = match cost {
                Ok(usd) => *usd,
                Err(why) => {
                    unknown = Some(why.clone());
                    // a service without a price costs no less than the ordinary one
                    let ordinary = Usage { service: Service::Standard, ..(*usage).clone() };
                    self.prices.as_ref().and_then(|prices| prices.cost(&ordinary).ok()).unwrap_or_default()
                }
            };
            total = total.plus(&Amount::of(usage, usd));
        }
        match unknown {
            None => Ok(self.settle_as(&total)),
            Some(why) => {
                let settled = self.settle_as(&total.at_least(&self.worst));
                Err(SettleError { why, settled })
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
        if let Some(node) = self.node.take() {
            node.abandon(self.id, &self.worst);
        }
    }
}
