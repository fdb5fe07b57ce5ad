//! A budget that can't be overspent: ask before every model call, say afterwards what it came to.
//!
//! What a call may cost at most is set aside before it is made (MODEL.md §5), in one atomic step in the budget and in all
//! budgets above it, so that any number of threads can't spend what isn't there. Afterwards the call is settled with its
//! real usage, and the rest is free again.
//!
//! ```
//! use agent_sim::budget::{Budget, Limits, Prices};
//! use agent_sim::price::{Sheet, Usage};
//!
//! let prices = Prices::of(Sheet::embedded(), "claude-sonnet-4-6", Some(300), None)?;
//! let run = Budget::new("run", Limits::usd(0.50)?);
//! let reservation = run.reserve(&prices.call(100_000, 4_096)?)?; // $0.43644 at the most
//! let usage = serde_json::json!({ "input_tokens": 3, "cache_read_input_tokens": 99_997, "output_tokens": 200 });
//! reservation.settle_read(&Usage::anthropic(&usage)?, Sheet::embedded())?; // $0.0330081
//! assert_eq!((run.spent().usd(), run.held().usd()), (0.0330081, 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A budget with a journal ([`Budget::with_journal`]) survives a crash. One with neither a journal nor windows takes no lock;
//! one with windows takes a lock that many hold at once, and waits only where a window begins. A reservation that is neither
//! settled nor released gives back what it held when it is dropped, or counts as spent where [`Limits::abandoned_is_spent`]
//! says so: a provider may bill a call that was abandoned. One that is kept for ever holds for ever: give calls a timeout.

mod clock;
mod journal;
mod limits;
mod meter;
mod node;
mod prices;
mod reservation;

pub use clock::{Clock, SystemClock, Window};
pub use journal::{Fsync, JournalError, Recovered};
pub use limits::{Counted, Limit, Limits, LimitsError};
pub use node::{Budget, Refused};
pub use prices::{Call, CallError, Prices};
pub use reservation::{Reservation, SettleError, Settled};
