//! Tokens sent by a session whose first prompt has `p0` tokens and that grows by `s` a turn.

/// `tokens.read`: `T P0 + s T (T-1) / 2`, all tokens that `t` calls send (sum of an arithmetic series).
pub fn read(p0: f64, s: f64, t: f64) -> f64 {
    expected_read(p0, s, t, t * t)
}

/// `tokens.reread`: `R_T = (T-1) P0 + s (T-1)(T-2) / 2`, tokens that an earlier call had sent already.
pub fn reread(p0: f64, s: f64, t: f64) -> f64 {
    expected_reread(p0, s, t, t * t)
}

/// `tokens.geometric`: `E[P0] E[T] + E[s] (E[T²] - E[T]) / 2` for random `T`, first prompt and growth, independent of
/// each other.
pub fn expected_read(p0: f64, s: f64, mean_t: f64, mean_t2: f64) -> f64 {
    p0 * mean_t + s * (mean_t2 - mean_t) / 2.0
}

/// The expectation of [`reread`] for random `T` of at least 1, first prompt and growth, independent of each other.
pub fn expected_reread(p0: f64, s: f64, mean_t: f64, mean_t2: f64) -> f64 {
    p0 * (mean_t - 1.0) + s * (mean_t2 - 3.0 * mean_t + 2.0) / 2.0
}

/// `tokens.definitions`: servers × tools × tokens per tool × calls.
pub fn definitions(tokens_per_call: f64, t: f64) -> f64 {
    tokens_per_call * t
}

/// `E[T²]` of the geometric law on 1, 2, … with this mean.
pub fn geometric_second_moment(mean: f64) -> f64 {
    2.0 * mean * mean - mean
}
