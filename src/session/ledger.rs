//! Which tokens were sent for what and in which class: quantities first, prices last.
//!
//! A call's prompt is definitions, system, task, history, in this order; a hit covers its beginning. Most calls hit
//! nothing, exactly the prefix (definitions + system), or everything up to the history, so three counters stand for
//! the fixed part and the rest is kept call by call. Summaries, pings and lost replies are kept apart.

use crate::price::{PicoUsd, Rates, Split, Tariff};

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

/// A request whose money isn't split by what its tokens are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lump {
    /// The request of a summary.
    Compaction,
    /// A ping that keeps the cache warm.
    KeepAlive,
    /// A model call whose reply was lost.
    LostReply,
    /// The request that searches for a tool.
    Search,
}

/// Tokens by [`Class`], in its order.
type Classes = [u64; 4];

/// Tokens of requests of one kind in one tier.
#[derive(Debug, Clone, Copy, Default)]
struct Tokens {
    classes: Classes,
    output: u64,
}

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
#[derive(Debug, Default)]
pub struct Ledger {
    /// Tools, system and task; without the task once it was replaced by a summary.
    fixed_tokens: u64,
    task_tokens: u64,
    prefix_tokens: u64,
    /// By tier, before the first summary and after it.
    tiers: [TierLedger; 4],
    /// The tiers that calls were booked to, a bit each.
    booked: u32,
    after_summary: bool,
    /// Requests that aren't turns, where there were any.
    lumps: Option<Box<[[Tokens; 2]; 4]>>,
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
    /// Money for the output of turns.
    pub output: PicoUsd,
    /// Money by [`Lump`], input and output.
    pub lumps: [PicoUsd; 4],
    /// Money for all input.
    pub input: PicoUsd,
    /// Money for all output.
    pub all_output: PicoUsd,
    /// Money for all input at the plain price, pings left out: without a cache there would be none.
    pub input_without_cache: PicoUsd,
}

impl Bill {
    /// Empties it, for so many servers.
    #[inline]
    fn clear(&mut self, servers: usize) {
        let mut definitions = std::mem::take(&mut self.definitions);
        definitions.clear();
        definitions.resize(servers, PicoUsd::default());
        *self = Bill { definitions, ..Bill::default() };
    }

    /// Adds the bill of a further run.
    pub(super) fn add(&mut self, next: &Bill) {
        for (sum, tokens) in self.classes.iter_mut().zip(next.classes) {
            *sum += tokens;
        }
        self.definitions.resize(self.definitions.len().max(next.definitions.len()), PicoUsd::default());
        for (sum, more) in self.definitions.iter_mut().zip(&next.definitions) {
            *sum += *more;
        }
        for (sum, more) in self.lumps.iter_mut().zip(next.lumps) {
            *sum += more;
        }
        self.output_tokens += next.output_tokens;
        self.definition_tokens += next.definition_tokens;
        self.system += next.system;
        self.task += next.task;
        self.history += next.history;
        self.output += next.output;
        self.input += next.input;
        self.all_output += next.all_output;
        self.input_without_cache += next.input_without_cache;
    }

    /// Prompt tokens in a class.
    pub fn tokens(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    /// Money by kind of request.
    pub fn lump(&self, lump: Lump) -> PicoUsd {
        self.lumps[lump as usize]
    }

    /// Adds prompt tokens and their money, which it returns.
    fn add_input(&mut self, classes: Classes, rates: Option<&Rates>, without_cache_too: bool) -> PicoUsd {
        for (sum, tokens) in self.classes.iter_mut().zip(classes) {
            *sum += tokens;
        }
        let Some(rates) = rates else { return PicoUsd::default() };
        if without_cache_too {
            self.input_without_cache += rates.input * classes.iter().sum();
        }
        let cost = rates.read * classes[0]
            + rates.write_prefix * classes[1]
            + rates.write_messages * classes[2]
            + rates.input * classes[3];
        self.input += cost;
        cost
    }
}

impl Ledger {
    /// Before the first call of a session.
    #[inline]
    pub(super) fn begin(&mut self, prefix_tokens: u64, task_tokens: u64) {
        (self.fixed_tokens, self.task_tokens) = (prefix_tokens + task_tokens, task_tokens);
        self.prefix_tokens = prefix_tokens;
    }

    /// Forgets its session.
    #[inline]
    pub(super) fn clear(&mut self) {
        for index in bits(self.booked) {
            self.tiers[index] = TierLedger::default();
        }
        (self.booked, self.after_summary, self.lumps) = (0, false, None);
    }

    /// From now on a summary stands for all messages.
    pub(super) fn summarised(&mut self) {
        self.after_summary = true;
        self.fixed_tokens = self.prefix_tokens;
    }

    /// Books a request that isn't a turn.
    pub(super) fn lump(&mut self, lump: Lump, tier: usize, usage: &Split) {
        let tokens = &mut self.lumps.get_or_insert_default()[lump as usize][tier];
        let more = [usage.read_tokens, usage.written_prefix_tokens, usage.written_messages_tokens, usage.plain_tokens];
        for (sum, tokens) in tokens.classes.iter_mut().zip(more) {
            *sum += tokens;
        }
        tokens.output += usage.output_tokens;
    }

    /// Books one call; `cacheable` says whether what misses the cache is written to it.
    #[inline]
    pub(super) fn call(&mut self, tier: usize, prompt: u64, hit: u64, cacheable: bool, output: u64) {
        let (fixed, prefix) = (self.fixed_tokens, self.prefix_tokens);
        let index = tier + 2 * usize::from(self.after_summary);
        let ledger = &mut self.tiers[index];
        self.booked |= 1 << index;
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

    /// Puts all that was booked on `bill`, whatever stood there.
    #[inline]
    pub(super) fn bill(&self, definitions: &[u64], system_tokens: u64, tariff: Option<&Tariff>, bill: &mut Bill) {
        bill.clear(definitions.len());
        for index in bits(self.booked) {
            let ledger = &self.tiers[index];
            let rates = tariff.map(|t| *t.rates(index % 2));
            let rates = rates.as_ref();
            let mut from = 0;
            for (server, size) in definitions.iter().enumerate() {
                let classes = Self::fixed_part(ledger, from, from + size, true);
                bill.definition_tokens += classes.iter().sum::<u64>();
                let cost = bill.add_input(classes, rates, true);
                bill.definitions[server] += cost;
                from += size;
            }
            debug_assert_eq!(from + system_tokens, self.prefix_tokens);
            if system_tokens > 0 {
                let cost = bill.add_input(Self::fixed_part(ledger, from, self.prefix_tokens, true), rates, true);
                bill.system += cost;
            }
            if index < 2 && self.task_tokens > 0 {
                let fixed_tokens = self.prefix_tokens + self.task_tokens;
                let cost =
                    bill.add_input(Self::fixed_part(ledger, self.prefix_tokens, fixed_tokens, false), rates, true);
                bill.task += cost;
            }
            let cost = bill.add_input(ledger.history, rates, true);
            bill.history += cost;
            bill.output_tokens += ledger.output_tokens;
            if let Some(rates) = rates {
                bill.output += rates.output * ledger.output_tokens;
            }
        }
        bill.all_output = bill.output;
        if let Some(lumps) = &self.lumps {
            bill_lumps(lumps, bill, tariff);
        }
    }
}

/// The numbers of the bits that are set, from the lowest.
#[inline]
fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then_some(set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        lowest
    })
}

#[cold]
fn bill_lumps(lumps: &[[Tokens; 2]; 4], bill: &mut Bill, tariff: Option<&Tariff>) {
    for (kind, tiers) in lumps.iter().enumerate() {
        for (tier, tokens) in tiers.iter().enumerate() {
            let rates = tariff.map(|t| *t.rates(tier));
            let input = bill.add_input(tokens.classes, rates.as_ref(), kind != Lump::KeepAlive as usize);
            let output = rates.map_or_else(PicoUsd::default, |rates| rates.output * tokens.output);
            bill.output_tokens += tokens.output;
            bill.all_output += output;
            bill.lumps[kind] += input + output;
        }
    }
}
