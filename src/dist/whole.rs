//! A law whose draws are rounded to whole numbers: tokens, calls, turns (MODEL.md §1.3).

use rand::Rng;

use super::Dist;
use super::table::Table;

/// Nearest whole number, halves to the even one, of an `x` from 0 on; beyond 2⁵¹ it is 2⁵¹.
#[inline]
pub fn round_to_whole(x: f64) -> u64 {
    // the last bits of 2⁵² + x are the rounded x: two operations where a cast takes ten
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    (x.min(SHIFT / 2.0) + SHIFT).to_bits() & ((1 << 52) - 1)
}

/// How many terms of a sum over the whole numbers are taken one by one; the rest is an integral, whose error is
/// below `|f'(K)| / 24`.
const EXACT_TERMS: u64 = 20_000;

/// `min(most, max(least, round(X)))`, with the exact moments of the rounded variable.
#[derive(Debug, Clone)]
pub struct Whole {
    law: Dist,
    least: u64,
    most: u64,
    constant: Option<u64>,
    table: Option<Table>,
}

impl Whole {
    /// Rounds `law`; no draw is below `least`.
    pub fn new(law: Dist, least: u64) -> Self {
        Self::between(law, least, u64::MAX)
    }

    /// Rounds `law`; no draw is below `least` or above `most`, and `least` is at most `most`.
    pub fn between(law: Dist, least: u64, most: u64) -> Self {
        let constant = law.as_constant().map(|x| round_to_whole(x).max(least).min(most));
        let mut whole = Self { law, least, most, constant, table: None };
        if constant.is_none() {
            whole.table = Table::new(least, |k| whole.at_least(k));
        }
        whole
    }

    /// The same law with no draw above `most`.
    #[must_use]
    pub fn capped(self, most: u64) -> Self {
        if most >= self.most { self } else { Self::between(self.law, self.least.min(most), most) }
    }

    /// Always `value`.
    pub fn constant(value: u64) -> Self {
        Self::new(Dist::constant(value as f64), 0)
    }

    /// The value, if there is only one.
    #[inline]
    pub fn as_constant(&self) -> Option<u64> {
        self.constant
    }

    /// The law before rounding.
    pub fn law(&self) -> &Dist {
        &self.law
    }

    /// The number that a uniform draw stands for, the inverse of the distribution function; the uniform lies in 0..1 and
    /// comes as 64 bits after the point.
    #[inline]
    pub fn at(&self, u: u64) -> u64 {
        match (self.constant, &self.table) {
            (Some(value), _) => value,
            (None, Some(table)) => table.at(u).unwrap_or_else(|| self.invert(u)),
            (None, None) => self.invert(u),
        }
    }

    #[cold]
    fn invert(&self, u: u64) -> u64 {
        // a half after the last of 53 bits keeps off both ends
        let u = ((u >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        round_to_whole(self.law.quantile(u)).max(self.least).min(self.most)
    }

    /// Whether [`Whole::at`] only looks into a table.
    #[inline]
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// One draw from a generator, without inversion.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        round_to_whole(self.law.draw(rng)).max(self.least).min(self.most)
    }

    /// The quantile `p` before rounding, within the law's bounds; the value of a constant.
    pub fn quantile(&self, p: f64) -> f64 {
        self.constant.map_or_else(|| self.law.quantile(p).min(self.most as f64), |n| n as f64)
    }

    /// `P(N >= k)`.
    pub fn at_least(&self, k: u64) -> f64 {
        if k > self.most { 0.0 } else { at_least(&self.law, self.least, k) }
    }

    /// Chance that the bound from above cuts a draw.
    pub fn cut_chance(&self) -> f64 {
        if self.most == u64::MAX { 0.0 } else { at_least(&self.law, self.least, self.most + 1) }
    }

    /// `E[N]`.
    pub fn mean(&self) -> f64 {
        self.moments_up_to(u64::MAX).0
    }

    /// `E[N²]`.
    pub fn second_moment(&self) -> f64 {
        self.moments_up_to(u64::MAX).1
    }

    /// `(E[min(N, limit)], E[min(N, limit)²])`: a loop of N calls that may make at most `limit` of them.
    pub fn moments_up_to(&self, limit: u64) -> (f64, f64) {
        let limit = limit.min(self.most);
        (moment(&self.law, self.least, limit, Power::First), moment(&self.law, self.least, limit, Power::Second))
    }

    /// `Var[N]`.
    pub fn variance(&self) -> f64 {
        (self.second_moment() - self.mean().powi(2)).max(0.0)
    }

    /// The probability generating function `x ↦ E[x^N]`, ready to be evaluated often.
    pub fn generating(&self) -> Generating {
        if self.most == u64::MAX {
            Generating::of(&self.law, self.least)
        } else {
            Generating::Values(values(self.least, |k| self.at_least(k)))
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Power {
    First,
    Second,
}

impl Power {
    fn of(self, n: u64) -> f64 {
        let n = n as f64;
        if self == Power::First { n } else { n * n }
    }

    /// `k^p - (k-1)^p`
    fn step(self, k: f64) -> f64 {
        if self == Power::First { 1.0 } else { 2.0 * k - 1.0 }
    }
}

/// A power's mean of `min(max(least, round(X)), limit)`: value by value where the law has few, part by part for a
/// mixture, from the law's own moments where it lives on whole numbers, else as a sum of survival probabilities.
fn moment(law: &Dist, least: u64, limit: u64, power: Power) -> f64 {
    let at = |x: f64| power.of(round_to_whole(x).max(least).min(limit));
    match law {
        Dist::Constant(law) => at(law.value()),
        Dist::Choices(law) => law.choices().map(|(x, weight)| weight * at(x)).sum(),
        Dist::Empirical(law) => law.sorted().iter().map(|x| at(*x)).sum::<f64>() / law.sorted().len() as f64,
        Dist::Mixture(law) => law.parts().map(|(weight, part)| weight * moment(part, least, limit, power)).sum(),
        Dist::Geometric(_) | Dist::Poisson(_) if least <= 1 && limit as f64 >= law.quantile(1.0 - 1e-16) => {
            let own = if power == Power::First { law.mean() } else { law.variance() + law.mean().powi(2) };
            // a draw of 0 counts as 1
            own + if least == 1 { law.cdf(0.0) } else { 0.0 }
        }
        _ => sum_of_steps(law, least, limit, power),
    }
}

/// `sum over k = 1..=limit of (k^p - (k-1)^p) P(N >= k)`.
fn sum_of_steps(law: &Dist, least: u64, limit: u64, power: Power) -> f64 {
    let mut sum = 0.0;
    for k in 1..=EXACT_TERMS.min(limit) {
        let reached = at_least(law, least, k);
        sum += power.step(k as f64) * reached;
        if reached < 1e-18 {
            return sum;
        }
    }
    if limit > EXACT_TERMS {
        // k >= K + 1/2 .. limit + 1/2, each term the midpoint of its unit interval
        let (from, to) = (EXACT_TERMS as f64 + 0.5, if limit == u64::MAX { f64::INFINITY } else { limit as f64 + 0.5 });
        let mut kinks: Vec<f64> = law.kinks();
        kinks.push(least as f64 + 0.5);
        sum += super::numeric::tail_integral(
            |x| power.step(x) * if x <= least as f64 { 1.0 } else { law.sf(x - 0.5) },
            |p| law.quantile(p),
            &kinks,
            from,
            to,
        );
    }
    sum
}

fn at_least(law: &Dist, least: u64, k: u64) -> f64 {
    if k <= least {
        return 1.0;
    }
    // a half goes to the even neighbour
    let edge = k as f64 - 0.5;
    law.sf(if k.is_multiple_of(2) { edge.next_down() } else { edge })
}

/// Values of a law that are summed one by one in a generating function.
const MOST_TERMS: u64 = 2_000;

/// `x ↦ E[x^N]` for `x` in 0..=1.
#[derive(Debug, Clone)]
pub enum Generating {
    /// `e^(-mean (1-x)) + zero (x - 1)`: draws of 0, of chance `zero`, count as 1 where one is the least.
    Poisson {
        /// The law's mean.
        mean: f64,
        /// Chance of a 0 that counts as 1.
        zero: f64,
    },
    /// `x / (mean - (mean-1) x)`.
    Geometric {
        /// The law's mean.
        mean: f64,
    },
    /// `Σ P(N = n) x^n`, as (n, chance).
    Values(Vec<(u64, f64)>),
    /// Weighted parts.
    Mixture(Vec<(f64, Generating)>),
}

/// (n, chance) of the values of a law with this `P(N >= k)`.
fn values(least: u64, at_least: impl Fn(u64) -> f64) -> Vec<(u64, f64)> {
    let (mut values, mut n, mut reached) = (Vec::new(), least, 1.0);
    while reached > 1e-13 && n < least + MOST_TERMS {
        let next = at_least(n + 1);
        if reached > next {
            values.push((n, reached - next));
        }
        n += 1;
        reached = next;
    }
    values
}

impl Generating {
    fn of(law: &Dist, least: u64) -> Self {
        let at = |x: f64| round_to_whole(x).max(least);
        match law {
            Dist::Constant(law) => Self::Values(vec![(at(law.value()), 1.0)]),
            Dist::Choices(law) => Self::Values(law.choices().map(|(x, weight)| (at(x), weight)).collect()),
            Dist::Poisson(_) if least <= 1 => {
                Self::Poisson { mean: law.mean(), zero: if least == 1 { law.cdf(0.0) } else { 0.0 } }
            }
            Dist::Geometric(_) if least <= 1 => Self::Geometric { mean: law.mean() },
            Dist::Mixture(law) => {
                Self::Mixture(law.parts().map(|(weight, part)| (weight, Self::of(part, least))).collect())
            }
            _ => Self::Values(values(least, |k| at_least(law, least, k))),
        }
    }

    /// Whether it holds all but 1e-12 of the law; a law that spreads over more than 2,000 values isn't summed to its end.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Values(values) => values.iter().map(|(_, chance)| chance).sum::<f64>() > 1.0 - 1e-12,
            Self::Mixture(parts) => parts.iter().all(|(_, part)| part.is_complete()),
            Self::Poisson { .. } | Self::Geometric { .. } => true,
        }
    }

    /// Its value at `x`.
    pub fn at(&self, x: f64) -> f64 {
        match self {
            Self::Poisson { mean, zero } => (-mean * (1.0 - x)).exp() + zero * (x - 1.0),
            Self::Geometric { mean } => x / (mean - (mean - 1.0) * x),
            Self::Values(values) => {
                let (mut sum, mut power, mut before) = (0.0, 1.0, 0);
                for (n, chance) in values {
                    power *= if n - before == 1 { x } else { x.powf((n - before) as f64) };
                    before = *n;
                    sum += chance * power;
                    if power < 1e-30 {
                        break;
                    }
                }
                sum
            }
            Self::Mixture(parts) => parts.iter().map(|(weight, part)| weight * part.at(x)).sum(),
        }
    }
}
