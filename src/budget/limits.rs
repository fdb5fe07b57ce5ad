//! What a budget limits.

use std::time::Duration;

use super::clock::Window;
use crate::price::{MoneyError, PicoUsd, Usage};

/// The limits of a budget; what isn't given isn't limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Money.
    pub usd: Option<PicoUsd>,
    /// Tokens, of the kinds that are counted.
    pub tokens: Option<u64>,
    /// Which kinds are counted.
    pub counted: Counted,
    /// Model calls.
    pub calls: Option<u64>,
    /// Time since the budget was made, or since its window began to be used.
    pub time: Option<Duration>,
    /// When it is full again; never, where it isn't given.
    pub window: Option<Window>,
    /// Whether a reservation that is dropped counts here as spent in full: a provider may bill an abandoned call.
    pub abandoned_is_spent: bool,
    /// Whether a call without a known price is let through a limit of money.
    pub lets_unpriced_through: bool,
}

/// Which tokens count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Counted {
    /// All that are sent and written.
    #[default]
    All,
    /// The same without those read from the cache, as most input limits of providers have it.
    WithoutCacheReads,
    /// Those that the model writes.
    Output,
}

/// What a refusal or an overrun is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Money.
    Usd,
    /// Tokens.
    Tokens,
    /// Model calls.
    Calls,
    /// Time.
    Time,
    /// The call has no known price, and money is limited.
    Unpriced,
    /// The journal can't be written, so nothing can be promised.
    Journal,
}

/// An amount that no limit can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LimitsError {
    /// Of money.
    #[error("a budget of {0} dollars: it must be from 0 to a million")]
    Usd(f64),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            usd: None,
            tokens: None,
            counted: Counted::All,
            calls: None,
            time: None,
            window: None,
            abandoned_is_spent: false,
            lets_unpriced_through: false,
        }
    }
}

impl Limits {
    /// Money alone, $.
    ///
    /// # Errors
    /// Where the amount is negative, not finite or above a million.
    pub fn usd(usd: f64) -> Result<Self, LimitsError> {
        match PicoUsd::from_usd(usd) {
            Ok(amount) => Ok(Self { usd: Some(amount), ..Self::default() }),
            Err(MoneyError::Negative | MoneyError::TooLarge(_) | MoneyError::TooFine(_)) => Err(LimitsError::Usd(usd)),
        }
    }
}

/// Beyond any call.
pub(super) const MOST_TOKENS: u64 = 1_000_000_000_000;

/// What is asked for, or what was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// Pico-dollars; a million dollars are 10¹⁸.
    pub pico_usd: u64,
    pub prompt_tokens: u64,
    /// Of the prompt, those read from the cache.
    pub read_tokens: u64,
    pub output_tokens: u64,
}

impl Amount {
    pub fn of(usage: &Usage, usd: PicoUsd) -> Self {
        // no call costs more than the largest budget, and no sum of a few calls comes near the end of the numbers
        const MOST_PICO_USD: u64 = 1_000_000_000_000_000_000;
        let tokens = |tokens: u64| tokens.min(MOST_TOKENS);
        Self {
            pico_usd: u64::try_from(usd.0).unwrap_or(MOST_PICO_USD).min(MOST_PICO_USD),
            prompt_tokens: tokens(usage.prompt_tokens()),
            read_tokens: tokens(usage.cache_read_tokens),
            output_tokens: tokens(usage.output_tokens),
        }
    }

    /// Of each part the larger one.
    pub fn at_least(&self, other: &Amount) -> Self {
        Self {
            pico_usd: self.pico_usd.max(other.pico_usd),
            prompt_tokens: self.prompt_tokens.max(other.prompt_tokens),
            read_tokens: self.read_tokens.min(other.read_tokens),
            output_tokens: self.output_tokens.max(other.output_tokens),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Amount) -> Self {
        Self {
            pico_usd: self.pico_usd + other.pico_usd,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            read_tokens: self.read_tokens + other.read_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
        }
    }

    /// Of money, tokens and calls, in the order of a budget's meters.
    pub fn by_meter(&self, counted: Counted) -> [u64; 3] {
        let tokens = match counted {
            Counted::All => self.prompt_tokens.saturating_add(self.output_tokens),
            Counted::WithoutCacheReads => {
                (self.prompt_tokens - self.read_tokens.min(self.prompt_tokens)).saturating_add(self.output_tokens)
            }
            Counted::Output => self.output_tokens,
        };
        [self.pico_usd, tokens, 1]
    }
}
