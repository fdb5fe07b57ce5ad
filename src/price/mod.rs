//! Money: the dated price sheet, the partition of a call's tokens, and what it costs.
//!
//! All money is whole pico-dollars (10⁻¹² $). A published price per million tokens is then a whole number per token,
//! sums are exact, and floats appear only where a report shows dollars.

mod bill;
mod import;
mod money;
mod sheet;
mod tariff;
mod usage;

pub use bill::{Bill, BillItem, Line, PriceError};
pub use import::{ImportError, Imported};
pub use money::{MoneyError, PicoUsd, PicoUsdPerToken};
pub use sheet::{Discount, Lifetimes, MissingPrice, Row, SHEET_DATE, Sheet, TierRow, UnknownModel, lifetime_label};
pub use tariff::{Rates, Split, Tariff};
pub use usage::{Also, Service, Streamed, Usage, UsageError, UsageRead};
