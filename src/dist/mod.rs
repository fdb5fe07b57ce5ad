//! Laws of random amounts: one file per family, each with draw, mean, variance, distribution function and quantile.
//!
//! Every law here lives on the non-negative numbers: seconds, tokens, counts, tokens per second. The simulation only
//! draws; the closed forms need the exact moments and distribution functions, so each family carries both and a test
//! holds the one against the other.
//!
//! ```
//! use agent_sim::dist::{Dist, LogNormal};
//! let latency_s = Dist::from(LogNormal::from_quantiles(0.5, 0.8, 0.99, 12.0)?);
//! assert!((latency_s.quantile(0.99) - 12.0).abs() < 1e-9);
//! assert!((latency_s.mean() - 1.5752).abs() < 1e-3);
//! # Ok::<(), agent_sim::dist::DistError>(())
//! ```

mod choices;
mod constant;
mod empirical;
mod exponential;
mod gamma;
mod geometric;
mod lognormal;
mod mixture;
mod normal;
mod numeric;
mod pareto;
mod poisson;
mod quantiles;
mod scaled;
mod shifted;
mod table;
mod uniform;
mod weibull;
mod whole;

use rand::Rng;

pub use choices::Choices;
pub use constant::Constant;
pub use empirical::Empirical;
pub use exponential::Exponential;
pub use gamma::Gamma;
pub use geometric::Geometric;
pub use lognormal::LogNormal;
pub use mixture::Mixture;
pub use normal::FoldedNormal;
pub use numeric::{integrate, survival_integral};
pub use pareto::Pareto;
pub use poisson::Poisson;
pub use quantiles::Quantiles;
pub use scaled::Scaled;
pub use shifted::Shifted;
pub use uniform::Uniform;
pub use weibull::Weibull;
pub use whole::{Generating, Whole, round_to_whole};

/// Why a law with the given parameters can't exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DistError(pub(crate) String);

impl DistError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Refuses anything but a finite number above zero.
pub(crate) fn positive(name: &str, value: f64) -> Result<f64, DistError> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(DistError::new(format!("`{name}` must be above 0"))) }
}

/// A law on the non-negative numbers.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Dist {
    Constant(Constant),
    Exponential(Exponential),
    LogNormal(LogNormal),
    Gamma(Gamma),
    Weibull(Weibull),
    Pareto(Pareto),
    Uniform(Uniform),
    FoldedNormal(FoldedNormal),
    Quantiles(Quantiles),
    Empirical(Empirical),
    Mixture(Mixture),
    Geometric(Geometric),
    Poisson(Poisson),
    Choices(Choices),
    Shifted(Shifted),
    Scaled(Scaled),
}

macro_rules! each {
    ($self:ident, $law:ident => $body:expr) => {
        match $self {
            Dist::Constant($law) => $body,
            Dist::Exponential($law) => $body,
            Dist::LogNormal($law) => $body,
            Dist::Gamma($law) => $body,
            Dist::Weibull($law) => $body,
            Dist::Pareto($law) => $body,
            Dist::Uniform($law) => $body,
            Dist::FoldedNormal($law) => $body,
            Dist::Quantiles($law) => $body,
            Dist::Empirical($law) => $body,
            Dist::Mixture($law) => $body,
            Dist::Geometric($law) => $body,
            Dist::Poisson($law) => $body,
            Dist::Choices($law) => $body,
            Dist::Shifted($law) => $body,
            Dist::Scaled($law) => $body,
        }
    };
}

macro_rules! from_law {
    ($($law:ident),*) => { $(impl From<$law> for Dist { fn from(law: $law) -> Self { Dist::$law(law) } })* };
}
from_law!(
    Constant,
    Exponential,
    LogNormal,
    Gamma,
    Weibull,
    Pareto,
    Uniform,
    FoldedNormal,
    Quantiles,
    Empirical,
    Mixture,
    Geometric,
    Poisson,
    Choices,
    Shifted,
    Scaled
);

impl Dist {
    /// The law that always gives `value`.
    pub fn constant(value: f64) -> Self {
        Constant::new(value).into()
    }

    /// One draw.
    #[inline(always)]
    #[allow(clippy::inline_always)] // measured: a third of a run's time without it
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        // the families of most hot loops first and inlined, the rest behind a call
        match self {
            Dist::Constant(law) => law.value(),
            Dist::Exponential(law) => law.draw(rng),
            Dist::LogNormal(law) => law.draw(rng),
            other => other.draw_any(rng),
        }
    }

    #[inline(never)]
    fn draw_any<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        each!(self, law => law.draw(rng))
    }

    /// The mean; infinite for a Pareto law with `alpha` ≤ 1.
    pub fn mean(&self) -> f64 {
        each!(self, law => law.mean())
    }

    /// The variance; infinite where the second moment is.
    pub fn variance(&self) -> f64 {
        each!(self, law => law.variance())
    }

    /// `P(X <= x)`.
    pub fn cdf(&self, x: f64) -> f64 {
        if x < 0.0 { 0.0 } else { each!(self, law => law.cdf(x)) }
    }

    /// `P(X > x)`, exact far out in the tail where `1 - cdf` would have rounded to zero.
    pub fn sf(&self, x: f64) -> f64 {
        if x < 0.0 { 1.0 } else { each!(self, law => law.sf(x)) }
    }

    /// The smallest `x` with `P(X <= x) >= p`. `p` is clamped to 0..=1; at 1 a law without an upper end gives infinity.
    pub fn quantile(&self, p: f64) -> f64 {
        let p = p.clamp(0.0, 1.0);
        each!(self, law => law.quantile(p))
    }

    /// The value, if the law has only one.
    pub fn as_constant(&self) -> Option<f64> {
        match self {
            Dist::Constant(law) => Some(law.value()),
            _ => None,
        }
    }

    /// `E[min(X, limit)]`, by quadrature of the survival function (MODEL.md latency.timeout).
    pub fn mean_up_to(&self, limit: f64) -> f64 {
        survival_integral(|x| self.sf(x), |p| self.quantile(p), &self.kinks(), limit)
    }

    /// Points at which the distribution function jumps or bends, for quadrature to split at; at most a few thousand.
    pub fn kinks(&self) -> Vec<f64> {
        match self {
            Dist::Constant(law) => vec![law.value()],
            Dist::Pareto(law) => vec![law.quantile(0.0)],
            Dist::Uniform(law) => vec![law.quantile(0.0), law.quantile(1.0)],
            Dist::Quantiles(law) => law.points().collect(),
            Dist::Empirical(law) => law.kinks(),
            Dist::Choices(law) => law.values().collect(),
            Dist::Shifted(law) => law.kinks(),
            Dist::Scaled(law) => law.kinks(),
            Dist::Mixture(law) => law.parts().flat_map(|(_, part)| part.kinks()).collect(),
            Dist::Geometric(_) | Dist::Poisson(_) => {
                (0..=self.quantile(1.0 - 1e-12).min(5_000.0) as u64).map(|k| k as f64).collect()
            }
            _ => Vec::new(),
        }
    }
}
