//! Two ways on the same draws: the same session number met the same world under both, so the differences are taken
//! session by session (common random numbers; Glasserman and Yao 1992), and most of what chance did falls out.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Poisson};

use super::moments::{Covariance, Estimate, Moments, half_width};
use super::quantile::quantile_ranks;
use super::store::select;
use crate::engine::Collect;
use crate::session::{Bill, Record, Turn, Workspace};

/// What one way is beyond another.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    /// Sessions that were compared.
    pub sessions: u64,
    /// Mean of the differences.
    pub difference: Estimate,
    /// The ratio of the means; `None` where the other one's is 0.
    pub ratio: Option<Estimate>,
    /// The share of sessions in which it is less.
    pub share_less: Estimate,
    /// The share of sessions in which both are the same.
    pub share_equal: f64,
    /// Differences of quantiles.
    pub quantiles: Vec<QuantileDifference>,
}

/// The difference between the same quantile of two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileDifference {
    /// Which one, 0 to 1.
    pub p: f64,
    /// The two quantiles.
    pub values: [f64; 2],
    /// Their difference, with the percentile interval of a bootstrap over sessions (Efron and Tibshirani 1993, §13).
    pub difference: Estimate,
    /// Whether fewer than ten sessions lie beyond it.
    pub too_few: bool,
}

impl Paired {
    /// Of the same sessions' values, by session number. `replicate` is the generator of one bootstrap sample.
    pub fn new<R: Rng>(values: &[f64], against: &[f64], quantiles: &[f64], replicate: impl Fn(u64) -> R) -> Self {
        let n = values.len().min(against.len());
        let (values, against) = (&values[..n], &against[..n]);
        let share = |holds: &dyn Fn(f64, f64) -> bool| -> Vec<f64> {
            values.iter().zip(against).map(|(x, y)| f64::from(u8::from(holds(*x, *y)))).collect()
        };
        // the same sum added up in another order isn't a difference
        let is_same = |x: f64, y: f64| (x - y).abs() <= 1e-12 * x.abs().max(y.abs());
        let less = Covariance::of(&share(&|x, y| x < y && !is_same(x, y)), &vec![1.0; n]).ratio(true);
        let equal = share(&is_same).iter().sum::<f64>() / n.max(1) as f64;
        Self {
            sessions: n as u64,
            difference: difference(values, against),
            ratio: Covariance::of(values, against).ratio(false),
            share_less: less.unwrap_or(Estimate { value: 0.0, se: 0.0, ci95: [0.0; 2] }),
            share_equal: equal,
            quantiles: quantiles.iter().map(|p| quantile_difference(values, against, *p, &replicate)).collect(),
        }
    }

    /// Whether the interval of the difference leaves no doubt of its sign.
    pub fn is_decided(&self) -> bool {
        is_decided(&self.difference)
    }

    /// About how many sessions would decide it, if the difference is what it seems to be; `None` where it is decided, or
    /// where nothing differs.
    pub fn sessions_to_decide(&self) -> Option<u64> {
        let difference = &self.difference;
        if self.is_decided() || difference.value == 0.0 {
            return None;
        }
        let factor = half_width(self.sessions) * difference.se / difference.value.abs();
        // a tenth more, for luck
        factor.is_finite().then_some((self.sessions as f64 * factor * factor * 1.1).ceil() as u64)
    }
}

/// Whether an interval leaves no doubt of the sign.
pub fn is_decided(difference: &Estimate) -> bool {
    difference.ci95[0] > 0.0 || difference.ci95[1] < 0.0
}

/// Mean of paired differences with its Student interval.
pub(super) fn difference(values: &[f64], against: &[f64]) -> Estimate {
    let differences: Vec<f64> = values.iter().zip(against).map(|(mine, theirs)| mine - theirs).collect();
    let moments = Moments::of(&differences);
    let mut estimate = Estimate { ci95: [0.0; 2], ..moments.estimate() };
    if moments.n < 2 {
        return Estimate { ci95: [f64::NAN; 2], ..estimate };
    }
    // what is the same in every session differs in the last digit of its sums
    let size = values.iter().zip(against).map(|(x, y)| x.abs().max(y.abs())).fold(0.0, f64::max);
    if moments.sd() <= 1e-12 * size {
        estimate.se = 0.0;
        if estimate.value.abs() <= 1e-12 * size {
            estimate.value = 0.0;
        }
    }
    let half = half_width(moments.n) * estimate.se;
    estimate.ci95 = [estimate.value - half, estimate.value + half];
    estimate
}

/// Bootstrap samples; 2.5 % of them lie beyond each end of an interval. Fewer where many sessions have to be drawn.
const REPLICATES: u64 = 400;
const FEWER_REPLICATES: u64 = 100;
const MANY_SESSIONS: usize = 20_000;

/// So many standard deviations around a quantile's rank the resampled rank may lie.
const WINDOW_SDS: f64 = 5.5;

/// Where a session's value lies: below the window around its quantile, in it, or above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    In,
    Above,
}

/// The sessions whose values decide the resampled quantile of one sample.
struct Window {
    low: f64,
    high: f64,
    value: f64,
}

impl Window {
    fn of(values: &[f64], p: f64) -> Self {
        let n = values.len() as u64;
        let (rank, ..) = quantile_ranks(n, p);
        let half = (WINDOW_SDS * (n as f64 * p * (1.0 - p)).sqrt()).ceil() as u64 + 2;
        let ranks = [rank.saturating_sub(half).max(1), rank, (rank + half).min(n)];
        match select(&mut values.to_vec(), &ranks).as_slice() {
            [low, value, high] => Self { low: *low, high: *high, value: *value },
            _ => Self { low: f64::NAN, high: f64::NAN, value: f64::NAN },
        }
    }

    /// Whether every resampled quantile is the same.
    fn is_one_value(&self) -> bool {
        self.low.total_cmp(&self.high).is_eq()
    }

    fn side(&self, x: f64) -> Side {
        if x < self.low || self.is_one_value() {
            Side::Below
        } else if x > self.high {
            Side::Above
        } else {
            Side::In
        }
    }
}

/// A bootstrap over sessions draws each session a Poisson(1) number of times. Sessions far from both quantiles matter
/// only by how many lie where, and such a sum is one Poisson number; the few near a quantile are drawn one by one.
pub(super) fn quantile_difference<R: Rng>(
    values: &[f64],
    against: &[f64],
    p: f64,
    replicate: &impl Fn(u64) -> R,
) -> QuantileDifference {
    let n = values.len();
    let windows = [Window::of(values, p), Window::of(against, p)];
    let point = windows[0].value - windows[1].value;
    let too_few = n as u64 - quantile_ranks(n as u64, p).0.min(n as u64) < 10;
    // sessions in neither window, by side of each
    let mut far = [[0_u64; 2]; 2];
    let mut near: Vec<(f64, f64)> = Vec::new();
    for (x, y) in values.iter().zip(against) {
        match (windows[0].side(*x), windows[1].side(*y)) {
            (Side::In, _) | (_, Side::In) => near.push((*x, *y)),
            (a, b) => far[usize::from(a == Side::Above)][usize::from(b == Side::Above)] += 1,
        }
    }
    let order = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut order: Vec<usize> = (0..near.len()).collect();
        order.sort_unstable_by(|a, b| of(&near[*a]).total_cmp(&of(&near[*b])));
        order
    };
    let orders = [order(&|pair| pair.0), order(&|pair| pair.1)];
    let same = windows.iter().all(Window::is_one_value);
    let mut differences = Vec::new();
    if !same && n > 1 {
        let mut weights = vec![0_u32; near.len()];
        for number in 0..if near.len() > MANY_SESSIONS { FEWER_REPLICATES } else { REPLICATES } {
            let mut rng = replicate(number);
            let far = far.map(|row| row.map(|count| poisson(count, &mut rng)));
            for weight in &mut weights {
                *weight = poisson_one(&mut rng);
            }
            let total = far.as_flattened().iter().sum::<u64>() + weights.iter().map(|w| u64::from(*w)).sum::<u64>();
            let below = [far[0][0] + far[0][1], far[0][0] + far[1][0]];
            let quantile = |which: usize| {
                if windows[which].is_one_value() {
                    return windows[which].value;
                }
                let target = (total as f64 * p - 1e-9).ceil() as u64;
                let mut reached = below[which];
                let value = |index: usize| if which == 0 { near[index].0 } else { near[index].1 };
                for &index in &orders[which] {
                    reached += u64::from(weights[index]);
                    if reached >= target {
                        return value(index);
                    }
                }
                windows[which].high
            };
            differences.push(quantile(0) - quantile(1));
        }
    }
    QuantileDifference {
        p,
        values: [windows[0].value, windows[1].value],
        difference: percentile_interval(point, &mut differences),
        too_few,
    }
}

fn percentile_interval(value: f64, replicates: &mut [f64]) -> Estimate {
    if replicates.is_empty() {
        return Estimate { value, se: 0.0, ci95: [value; 2] };
    }
    let se = Moments::of(replicates).sd();
    replicates.sort_unstable_by(f64::total_cmp);
    let at = |p: f64| {
        let index = (p * (replicates.len() - 1) as f64).round() as usize;
        replicates.get(index).copied().unwrap_or(value)
    };
    Estimate { value, se, ci95: [at(0.025), at(0.975)] }
}

fn poisson<R: Rng>(mean: u64, rng: &mut R) -> u64 {
    if mean == 0 {
        return 0;
    }
    Poisson::new(mean as f64).map_or(mean, |law| law.sample(rng) as u64)
}

/// A Poisson number of mean 1, by inversion.
fn poisson_one<R: Rng>(rng: &mut R) -> u32 {
    let uniform = rng.random::<f64>();
    let (mut chance, mut below, mut k) = ((-1.0_f64).exp(), (-1.0_f64).exp(), 0);
    while uniform >= below && k < 20 {
        k += 1;
        chance /= f64::from(k);
        below += chance;
    }
    k
}

/// The cost of each session, $.
#[derive(Debug, Clone, Default)]
pub struct Costs(Vec<f64>);

impl Costs {
    /// Mean difference from the same sessions of another model, $, with the interval of paired differences.
    pub fn beyond(&self, other: &Costs) -> Estimate {
        difference(&self.0, &other.0)
    }
}

impl Collect for Costs {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn watches(&self, _session: u64) -> bool {
        false
    }

    fn turn(&mut self, _turn: &Turn) {}

    fn session(&mut self, _number: u64, record: &Record, _bill: &Bill, _room: &Workspace) {
        self.0.push(record.cost.usd());
    }

    fn merge(&mut self, next: &mut Self) {
        self.0.append(&mut next.0);
    }
}
