//! What a call may cost, and what it did.

use std::sync::Arc;

use jiff::civil::Date;

use super::limits::{Amount, MOST_TOKENS};
use crate::price::{PicoUsd, PriceError, Row, Sheet, Tariff, Usage};

/// A model's prices on a day. Clones share them.
#[derive(Debug, Clone)]
pub struct Prices {
    known: Arc<Known>,
}

#[derive(Debug)]
struct Known {
    row: Row,
    tariff: Tariff,
    caches: bool,
}

/// A call that is about to be made.
#[derive(Debug, Clone)]
pub struct Call {
    worst: Amount,
    prices: Option<Prices>,
}

/// Why a call can't be made, whatever the budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It doesn't fit the model.
    #[error("a prompt of {prompt_tokens} tokens is longer than the window of {model}, {window_tokens}")]
    TooLong {
        /// The model.
        model: String,
        /// The prompt.
        prompt_tokens: u64,
        /// The most that fits.
        window_tokens: u64,
    },
    /// More than the model can write.
    #[error("{max_output} tokens of output are more than {model} writes, {most}")]
    TooMuchOutput {
        /// The model.
        model: String,
        /// What was asked for.
        max_output: u64,
        /// The most that it writes.
        most: u64,
    },
    /// More than any call costs.
    #[error("a call of {0} tokens is beyond any price")]
    Absurd(u64),
}

/// The largest number up to `most` that fits, where all smaller ones fit too.
fn largest(most: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    if !fits(0) {
        return None;
    }
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    Some(low)
}

impl Prices {
    /// Of a model of a sheet that caches for so many seconds, or doesn't; on a day, or on the sheet's own.
    ///
    /// # Errors
    /// Where the model isn't on the sheet, or a price that a call can need isn't known.
    pub fn of(sheet: &Sheet, model: &str, lifetime_s: Option<u64>, date: Option<Date>) -> Result<Self, PriceError> {
        let row = sheet.find(model, date)?.clone();
        let tariff =
            row.tariff(lifetime_s).map_err(|error| PriceError::Missing { model: error.model, what: error.what })?;
        Ok(Self { known: Arc::new(Known { row, tariff, caches: lifetime_s.is_some() }) })
    }

    /// The largest prompt, where it is known, tokens.
    pub fn window_tokens(&self) -> Option<u64> {
        self.known.row.context_tokens
    }

    /// The largest output, where it is known, tokens.
    pub fn max_output_tokens(&self) -> Option<u64> {
        self.known.row.max_output_tokens
    }

    /// The most that a call can cost (MODEL.md budget.reserve): every token of the prompt written to the cache, at the tier
    /// that the prompt will hit, and all of the output.
    pub fn worst_case(&self, prompt_tokens: u64, max_output: u64) -> PicoUsd {
        self.known.tariff.worst_case(0, prompt_tokens, max_output, self.known.caches)
    }

    /// The largest prompt whose call costs no more than this at the most, with so much output; nothing where not even an
    /// empty one does.
    pub fn largest_prompt(&self, left: PicoUsd, max_output: u64) -> Option<u64> {
        let most = self.window_tokens().unwrap_or(MOST_TOKENS);
        largest(most, |prompt_tokens| self.worst_case(prompt_tokens, max_output) <= left)
    }

    /// The most output that still fits after a prompt; nothing where not even the prompt does.
    pub fn largest_output(&self, left: PicoUsd, prompt_tokens: u64) -> Option<u64> {
        let most = self.max_output_tokens().unwrap_or(MOST_TOKENS);
        largest(most, |max_output| self.worst_case(prompt_tokens, max_output) <= left)
    }

    /// A call with a prompt of so many tokens that writes at most so many.
    ///
    /// # Errors
    /// Where the prompt or the output is more than the model takes, or more than anything can cost.
    pub fn call(&self, prompt_tokens: u64, max_output: u64) -> Result<Call, CallError> {
        let model = || self.known.row.model.clone();
        if let Some(window_tokens) = self.window_tokens().filter(|window| prompt_tokens > *window) {
            return Err(CallError::TooLong { model: model(), prompt_tokens, window_tokens });
        }
        if let Some(most) = self.max_output_tokens().filter(|most| max_output > *most) {
            return Err(CallError::TooMuchOutput { model: model(), max_output, most });
        }
        let tokens = prompt_tokens.saturating_add(max_output);
        if tokens > MOST_TOKENS {
            return Err(CallError::Absurd(tokens));
        }
        let usd = self.worst_case(prompt_tokens, max_output);
        let pico_usd = u64::try_from(usd.0).map_err(|_| CallError::Absurd(tokens))?;
        let worst = Amount { pico_usd, prompt_tokens, read_tokens: 0, output_tokens: max_output };
        Ok(Call { worst, prices: Some(self.clone()) })
    }

    /// What a usage costs, without taking it apart into lines.
    ///
    /// # Errors
    /// Where a price that it needs isn't known.
    pub fn cost(&self, usage: &Usage) -> Result<PicoUsd, PriceError> {
        self.known.row.cost(usage)
    }
}

impl Call {
    /// A call of a model whose prices aren't known: a budget of money refuses it unless it is told to let it through, and
    /// counts it as $0 then.
    ///
    /// # Errors
    /// Where it has more tokens than any call.
    pub fn unpriced(prompt_tokens: u64, max_output: u64) -> Result<Self, CallError> {
        let tokens = prompt_tokens.saturating_add(max_output);
        if tokens > MOST_TOKENS {
            return Err(CallError::Absurd(tokens));
        }
        let worst = Amount { pico_usd: 0, prompt_tokens, read_tokens: 0, output_tokens: max_output };
        Ok(Self { worst, prices: None })
    }

    /// The most that it can cost.
    pub fn worst_case(&self) -> PicoUsd {
        PicoUsd(i128::from(self.worst.pico_usd))
    }

    pub(super) fn worst(&self) -> Amount {
        self.worst
    }

    pub(super) fn is_priced(&self) -> bool {
        self.prices.is_some()
    }

    pub(super) fn prices(&self) -> Option<Prices> {
        self.prices.clone()
    }
}
