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

/// `max(least, round(X))`, with the exact moments of the rounded variable.
#[derive(Debug, Clone)]
pub struct Whole {
    law: Dist,
    least: u64,
    constant: Option<u64>,
    table: Option<Table>,
}

impl Whole {
    /// Rounds `law`; no draw is below `least`.
    pub fn new(law: Dist, least: u64) -> Self {
        let constant = law.as_constant().map(|x| round_to_whole(x).max(least));
        let mut whole = Self { law, least, constant, table: None };
        if constant.is_none() {
            whole.table = Table::new(least, |k| whole.at_least(k));
        }
        whole
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
        round_to_whole(self.law.quantile(u)).max(self.least)
    }

    /// Whether [`Whole::at`] only looks into a table.
    #[inline]
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// One draw from a generator, without inversion.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        round_to_whole(self.law.draw(rng)).max(self.least)
    }

    /// `P(N >= k)`.
    pub fn at_least(&self, k: u64) -> f64 {
        if k <= self.least {
            return 1.0;
        }
        // a half goes to the even neighbour
        let edge = k as f64 - 0.5;
        self.law.sf(if k.is_multiple_of(2) { edge.next_down() } else { edge })
    }

    /// `E[N]`.
    pub fn mean(&self) -> f64 {
        self.sum_of_steps(|_| 1.0, u64::MAX)
    }

    /// `E[N²]`.
    pub fn second_moment(&self) -> f64 {
        self.sum_of_steps(|k| 2.0 * k - 1.0, u64::MAX)
    }

    /// `(E[min(N, limit)], E[min(N, limit)²])`: a loop of N calls that may make at most `limit` of them.
    pub fn moments_up_to(&self, limit: u64) -> (f64, f64) {
        (self.sum_of_steps(|_| 1.0, limit), self.sum_of_steps(|k| 2.0 * k - 1.0, limit))
    }

    /// `Var[N]`.
    pub fn variance(&self) -> f64 {
        (self.second_moment() - self.mean().powi(2)).max(0.0)
    }

    /// `sum over k >= 1 of step(k) P(N >= k)`, the moment whose difference from k-1 to k is `step(k)`.
    fn sum_of_steps(&self, step: impl Fn(f64) -> f64, limit: u64) -> f64 {
        let mut sum = 0.0;
        for k in 1..=EXACT_TERMS.min(limit) {
            let reached = self.at_least(k);
            sum += step(k as f64) * reached;
            if reached < 1e-18 {
                return sum;
            }
        }
        if limit > EXACT_TERMS {
            // k >= K + 1/2 .. limit + 1/2, each term the midpoint of its unit interval
            let (from, to) =
                (EXACT_TERMS as f64 + 0.5, if limit == u64::MAX { f64::INFINITY } else { limit as f64 + 0.5 });
            let mut kinks: Vec<f64> = self.law.kinks();
            kinks.push(self.least as f64 + 0.5);
            sum += super::numeric::tail_integral(
                |x| step(x) * if x <= self.least as f64 { 1.0 } else { self.law.sf(x - 0.5) },
                |p| self.law.quantile(p),
                &kinks,
                from,
                to,
            );
        }
        sum
    }

    /// `E[x^N]`, the probability generating function, for `x` in 0..=1.
    pub fn generating(&self, x: f64) -> f64 {
        if let Some(n) = self.constant {
            return x.powf(n as f64);
        }
        let (mut sum, mut power, mut k, mut reached) = (0.0, x.powf(self.least as f64), self.least, 1.0);
        loop {
            let next = self.at_least(k + 1);
            sum += (reached - next) * power;
            if next < 1e-15 || power < 1e-18 || k > 1_000_000 {
                return sum + next * power * x;
            }
            power *= x;
            k += 1;
            reached = next;
        }
    }
}
