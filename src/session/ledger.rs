//! Which tokens were sent for what and in which class: quantities first, prices last.
//!
//! A call's prompt is definitions, system, task, history, in this order; a hit covers its beginning. Most calls hit
//! nothing, exactly the prefix (definitions + system), or everything up to the history, so three counters stand for
//! the fixed part and the rest is kept call by call.

use crate::price::{PicoUsd, Tariff};

/// The class that a prompt token is billed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Read from the cache.
    Read,
    /// Written under the prefix's lifetime.
    WrittenPrefix,
    /// Written under the messages' lifetime.
    WrittenMessages,
    /// Neither.
    Plain,
}

/// What tokens are sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Tool definitions of the server with this number.
    Definitions(usize),
    /// The system prompt.
    System,
    /// The first user message.
    Task,
    /// Outputs and tool results of earlier turns.
    History,
}

/// Tokens by [`Class`], in its order.
type Classes = [u64; 4];

#[derive(Debug, Default)]
struct TierLedger {
    /// Calls that hit the whole fixed part.
    fixed_read: u64,
    /// Calls that hit exactly the prefix.
    prefix_read: u64,
    /// Calls that hit nothing and wrote all.
    written: u64,
    /// Calls that hit nothing and wrote nothing.
    plain: u64,
    /// Hits that end inside the fixed part.
    odd_hits: Vec<u64>,
    history: Classes,
    output_tokens: u64,
}

/// The quantities of one session.
#[derive(Debug)]
pub struct Ledger {
    fixed_tokens: u64,
    prefix_tokens: u64,
    caches: bool,
    tiers: [TierLedger; 2],
}

/// A session's quantities and, where there are prices, its line items.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    classes: Classes,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Tokens of definitions sent.
    pub definition_tokens: u64,
    /// Money for definitions, by server.
    pub definitions: Vec<PicoUsd>,
    /// Money for the system prompt.
    pub system: PicoUsd,
    /// Money for the task.
    pub task: PicoUsd,
    /// Money for the history.
    pub history: PicoUsd,
    /// Money for output.
    pub output: PicoUsd,
    /// Money for all input.
    pub input: PicoUsd,
    /// Money for all input at the plain price.
    pub input_without_cache: PicoUsd,
}

impl Bill {
    /// Prompt tokens in a class.
    pub fn tokens(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }
}

impl Ledger {
    pub(super) fn new(fixed_tokens: u64, prefix_tokens: u64, caches: bool) -> Self {
        Self { fixed_tokens, prefix_tokens, caches, tiers: Default::default() }
    }

    /// Books one call; `cacheable` says whether what misses the cache is written to it.
    #[inline]
    pub(super) fn call(&mut self, tier: usize, prompt: u64, hit: u64, cacheable: bool, output: u64) {
        let (fixed, prefix) = (self.fixed_tokens, self.prefix_tokens);
        let ledger = &mut self.tiers[tier];
        let history = prompt - fixed;
        let history_read = hit.saturating_sub(fixed);
        ledger.output_tokens += output;
        ledger.history[Class::Read as usize] += history_read;
        let fresh = if cacheable { Class::WrittenMessages } else { Class::Plain };
        ledger.history[fresh as usize] += history - history_read;
        if hit >= fixed && hit > 0 {
            ledger.fixed_read += 1;
        } else if hit == 0 {
            if cacheable {
                ledger.written += 1;
            } else {
                ledger.plain += 1;
            }
        } else if hit == prefix {
            ledger.prefix_read += 1;
        } else {
            ledger.odd_hits.push(hit);
        }
    }

    /// Tokens by class of the fixed part that lies at `from..to` of every prompt.
    fn fixed_part(ledger: &TierLedger, from: u64, to: u64, in_prefix: bool) -> Classes {
        let size = to - from;
        let written = if in_prefix { Class::WrittenPrefix } else { Class::WrittenMessages };
        let mut classes = Classes::default();
        classes[Class::Read as usize] = size * ledger.fixed_read;
        classes[Class::Plain as usize] = size * ledger.plain;
        classes[written as usize] = size * ledger.written;
        classes[if in_prefix { Class::Read } else { written } as usize] += size * ledger.prefix_read;
        for hit in &ledger.odd_hits {
            let read = hit.clamp(&from, &to) - from;
            classes[Class::Read as usize] += read;
            classes[written as usize] += size - read;
        }
        classes
    }

    pub(super) fn bill(&self, definitions: &[u64], system_tokens: u64, tariff: Option<&Tariff>) -> Bill {
        let mut bill = Bill { definitions: vec![PicoUsd::default(); definitions.len()], ..Bill::default() };
        for (tier, ledger) in self.tiers.iter().enumerate() {
            let rates = tariff.map(|t| *t.rates(tier));
            let mut add = |classes: Classes| -> PicoUsd {
                for (sum, tokens) in bill.classes.iter_mut().zip(classes) {
                    *sum += tokens;
                }
                let Some(rates) = rates else { return PicoUsd::default() };
                bill.input_without_cache += rates.input * classes.iter().sum();
                let cost = rates.read * classes[0]
                    + rates.write_prefix * classes[1]
                    + rates.write_messages * classes[2]
                    + rates.input * classes[3];
                bill.input += cost;
                cost
            };
            let mut from = 0;
            for (server, size) in definitions.iter().enumerate() {
                let classes = Self::fixed_part(ledger, from, from + size, true);
                bill.definition_tokens += classes.iter().sum::<u64>();
                bill.definitions[server] += add(classes);
                from += size;
            }
            debug_assert_eq!(from + system_tokens, self.prefix_tokens);
            bill.system += add(Self::fixed_part(ledger, from, self.prefix_tokens, true));
            bill.task += add(Self::fixed_part(ledger, self.prefix_tokens, self.fixed_tokens, false));
            bill.history += add(ledger.history);
            bill.output_tokens += ledger.output_tokens;
            if let Some(rates) = rates {
                bill.output += rates.output * ledger.output_tokens;
            }
        }
        debug_assert!(self.caches || bill.classes[..3].iter().all(|tokens| *tokens == 0));
        bill
    }
}
