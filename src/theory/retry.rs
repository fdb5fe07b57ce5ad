//! Retried calls: an attempt is lost before the server with chance `a`, executed with its reply lost with chance `b`,
//! and otherwise answered; up to `attempts`. All follow from the geometric series in `a` and `a + b`.

use crate::model::{Jitter, Retry};

/// `retry.duplicates`: chance that a call is executed twice or more,
/// `1 - a^R - (1-a-b)(1-a^R)/(1-a) - R b a^(R-1)`.
///
/// The form loses its digits where duplicates are rare, so it is summed attempt by attempt: not executed yet (`none`),
/// executed once with the reply lost (`once`), and every further execution makes a duplicate.
pub fn duplicates(a: f64, b: f64, attempts: u32) -> f64 {
    let (mut none, mut once, mut twice) = (1.0, 0.0, 0.0);
    for _ in 0..attempts {
        twice += once * (1.0 - a);
        once = once * a + none * b;
        none *= a;
    }
    twice
}

/// `retry.attempts`: `Σ_{k<R} (a+b)^k` attempts a call.
pub fn attempts(a: f64, b: f64, attempts: u32) -> f64 {
    (0..attempts.min(10_000) as i32).map(|k| (a + b).powi(k)).sum()
}

/// `retry.executions`: `(1-a) Σ_{k<R} (a+b)^k` executions a call.
pub fn executions(a: f64, b: f64, limit: u32) -> f64 {
    (1.0 - a) * attempts(a, b, limit)
}

/// `1 -` `retry.availability`: `(a+b)^R`.
pub fn unavailability(a: f64, b: f64, attempts: u32) -> f64 {
    (a + b).powi(attempts as i32)
}

/// The mean wait after failure `k` = 1, 2, …, s; `None` for decorrelated jitter once its cap can bind, where it has no
/// closed form. Without the cap decorrelated waits follow `E[w_k] = (base + 3 E[w_(k-1)]) / 2`, `w_0 = base`.
pub fn mean_wait(retry: &Retry, failure: u32) -> Option<f64> {
    mean_wait_from(retry, retry.base_s, failure)
}

/// [`mean_wait`] where the first bound is `base_s`.
fn mean_wait_from(retry: &Retry, base_s: f64, failure: u32) -> Option<f64> {
    let bound = retry.cap_s.min(base_s * 2_f64.powi(failure as i32 - 1));
    match retry.jitter {
        Jitter::None => Some(bound),
        Jitter::Full => Some(bound / 2.0),
        Jitter::Equal => Some(bound * 0.75),
        Jitter::Decorrelated => {
            let largest = base_s * 3_f64.powi(failure as i32);
            (largest <= retry.cap_s && retry.rejected_base_s.total_cmp(&retry.base_s).is_eq())
                .then(|| (0..failure).fold(base_s, |last, _| f64::midpoint(base_s, 3.0 * last)))
        }
        Jitter::Quarter => Some(bound * 0.875),
        Jitter::Plus { spread_s, capped } => {
            // E[min(U, room)] of a uniform U up to the spread
            let room = if capped { (retry.cap_s - bound).min(spread_s) } else { spread_s };
            Some(bound + room - room * room / (2.0 * spread_s))
        }
    }
}

/// `retry.wait`: `½ Σ_{k<j} min(cap, base 2^k)` after `j` failures under full jitter; for another jitter the sum of its
/// own mean waits.
pub fn total_wait(retry: &Retry, failures: u32) -> Option<f64> {
    (1..=failures).map(|k| mean_wait(retry, k)).sum()
}

/// Mean of all waits of one call whose attempts fail with chance `f` each: `Σ_{k<R} f^k E[w_k]`; `rejected` of the
/// failures are rejections, after which some clients wait from another base.
pub fn wait_per_call(retry: &Retry, fail: f64, rejected: f64) -> Option<f64> {
    if fail <= 0.0 {
        return Some(0.0);
    }
    (1..retry.attempts)
        .map(|k| {
            let (ordinary, after_rejection) = (mean_wait(retry, k)?, mean_wait_from(retry, retry.rejected_base_s, k)?);
            Some(fail.powi(k as i32) * ((1.0 - rejected) * ordinary + rejected * after_rejection))
        })
        .sum()
}
