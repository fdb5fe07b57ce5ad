//! Pico-dollars.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// An amount of money in whole pico-dollars (10⁻¹² $).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PicoUsd(pub i128);

/// A price in whole pico-dollars per token; $1 per million tokens is 1,000,000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PicoUsdPerToken(pub u64);

/// Why a number can't be a price.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MoneyError {
    /// Negative, infinite or not a number.
    #[error("a price must be 0 or more")]
    Negative,
    /// Above a million dollars per million tokens, or per call.
    #[error("{0} dollars is beyond any price: a million is the most")]
    TooLarge(f64),
    /// Finer than a millionth of a dollar per million tokens.
    #[error("{0} has more digits than a price can hold: the smallest step is $0.000001 per million tokens")]
    TooFine(f64),
}

const LARGEST_USD: f64 = 1e6;

impl PicoUsdPerToken {
    /// From dollars per million tokens.
    ///
    /// # Errors
    /// Where the price is negative, beyond a million dollars, or not a whole number of pico-dollars a token.
    pub fn from_usd_per_million(usd: f64) -> Result<Self, MoneyError> {
        if !(usd.is_finite() && usd >= 0.0) {
            return Err(MoneyError::Negative);
        }
        if usd > LARGEST_USD {
            return Err(MoneyError::TooLarge(usd));
        }
        let pico = usd * 1e6;
        if (pico - pico.round()).abs() > 1e-3 {
            return Err(MoneyError::TooFine(usd));
        }
        Ok(Self(pico.round() as u64))
    }

    /// In dollars per million tokens.
    pub fn usd_per_million(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl PicoUsd {
    /// From dollars, rounded to the nearest pico-dollar.
    ///
    /// # Errors
    /// Where the amount is negative or beyond a million dollars.
    pub fn from_usd(usd: f64) -> Result<Self, MoneyError> {
        if !(usd.is_finite() && usd >= 0.0) {
            return Err(MoneyError::Negative);
        }
        if usd > LARGEST_USD {
            return Err(MoneyError::TooLarge(usd));
        }
        Ok(Self((usd * 1e12).round() as i128))
    }

    /// In dollars, for a report.
    pub fn usd(self) -> f64 {
        // from 64 bits it is one instruction
        i64::try_from(self.0).map_or_else(|_| self.0 as f64, |pico| pico as f64) / 1e12
    }
}

impl Mul<u64> for PicoUsdPerToken {
    type Output = PicoUsd;
    fn mul(self, tokens: u64) -> PicoUsd {
        PicoUsd(i128::from(self.0) * i128::from(tokens))
    }
}

impl Mul<u64> for PicoUsd {
    type Output = PicoUsd;
    fn mul(self, times: u64) -> PicoUsd {
        PicoUsd(self.0 * i128::from(times))
    }
}

impl Add for PicoUsd {
    type Output = PicoUsd;
    fn add(self, other: PicoUsd) -> PicoUsd {
        PicoUsd(self.0 + other.0)
    }
}

impl Sub for PicoUsd {
    type Output = PicoUsd;
    fn sub(self, other: PicoUsd) -> PicoUsd {
        PicoUsd(self.0 - other.0)
    }
}

impl AddAssign for PicoUsd {
    fn add_assign(&mut self, other: PicoUsd) {
        self.0 += other.0;
    }
}

impl Sum for PicoUsd {
    fn sum<I: Iterator<Item = PicoUsd>>(amounts: I) -> PicoUsd {
        amounts.fold(PicoUsd::default(), Add::add)
    }
}
