//! Money for input, with and without a prompt cache. Prices are per token of input (`c_in`); multipliers are of it.

/// Multipliers of the input price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Multipliers {
    /// Of a token read from the cache, κr.
    pub read: f64,
    /// Of a token written to it, κw.
    pub write: f64,
}

/// `cost.input.uncached`: `c_in (T P0 + s T (T-1) / 2)`.
pub fn uncached(c_in: f64, tokens_read: f64) -> f64 {
    c_in * tokens_read
}

/// `cost.input.cached`: `c_in [κ_w (n_T + q R_T) + κ_r (1-q) R_T]`, where the last prompt `n_T` counts every token once
/// and `R_T` those sent again; `q` is the chance that a gap outlasts the lifetime, the same for every gap.
pub fn cached(c_in: f64, k: Multipliers, last_prompt: f64, reread: f64, q: f64) -> f64 {
    c_in * cached_units(k, last_prompt, reread, q)
}

/// The bracket of [`cached`]: full-price tokens.
pub fn cached_units(k: Multipliers, last_prompt: f64, reread: f64, q: f64) -> f64 {
    k.write * (last_prompt + q * reread) + k.read * (1.0 - q) * reread
}

/// One of the two parts of a prompt that live differently long: [`cached`] for its own `n_T`, `R_T`, `q` and `κ_w`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Its size in the last prompt, tokens.
    pub last: f64,
    /// Its tokens that are sent again.
    pub reread: f64,
    /// Chance that a gap outlasts its lifetime.
    pub q: f64,
    /// Its multipliers.
    pub multipliers: Multipliers,
}

/// `cost.input.two_lifetimes`: prefix and messages summed by their own `q` and `κ_w`.
pub fn two_lifetimes(c_in: f64, prefix: Part, messages: Part) -> f64 {
    [prefix, messages].into_iter().map(|p| cached(c_in, p.multipliers, p.last, p.reread, p.q)).sum()
}

/// `cache.lifetime_break_even`: the share of gaps beyond the short lifetime from which the long one is cheaper,
/// `(κ_long - κ_short) n_T / ((κ_short - κ_r) R_T)`; no gap outlasts the long one.
pub fn lifetime_break_even(last_prompt: f64, reread: f64, read: f64, write_short: f64, write_long: f64) -> f64 {
    (write_long - write_short) * last_prompt / ((write_short - read) * reread)
}

/// `cache.keep_alive`: `1 / (e^(δ/g) - 1)` pings per exponential gap of mean `g`, one after each interval `δ`.
pub fn keep_alive_pings(interval_s: f64, gap_mean_s: f64) -> f64 {
    1.0 / (interval_s / gap_mean_s).exp_m1()
}

/// `cache.shared_prefix`: warm at a Poisson access with chance `1 - e^(-λ ttl)`.
pub fn shared_prefix_warm(accesses_per_s: f64, lifetime_s: f64) -> f64 {
    -(-accesses_per_s * lifetime_s).exp_m1()
}

/// A session with compaction: what it is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    /// Tools and system, tokens.
    pub fixed: f64,
    /// First message, tokens.
    pub task: f64,
    /// Growth a turn, tokens.
    pub growth: f64,
    /// Calls.
    pub turns: u64,
    /// A larger prompt is summarised before it is sent, tokens.
    pub compact_at: f64,
    /// Tokens of the summary.
    pub summary: f64,
    /// Multipliers, or `None` without a cache.
    pub multipliers: Option<Multipliers>,
}

/// `context.compaction`, by recurrence: (full-price tokens of all input, number of summaries). A summary call sends the
/// prompt as it stands; afterwards the prompt is fixed part and summary, of which the fixed part is still cached.
pub fn compaction(c: &Compaction) -> (f64, u64) {
    let (mut units, mut count, mut cached, mut prompt) = (0.0, 0, 0.0_f64, c.fixed + c.task);
    let mut call = |prompt: f64, cached: &mut f64| match c.multipliers {
        None => units += prompt,
        Some(k) => {
            let hit = cached.min(prompt);
            units += k.read * hit + k.write * (prompt - hit);
            *cached = prompt;
        }
    };
    for _ in 0..c.turns {
        if prompt > c.compact_at {
            call(prompt, &mut cached);
            count += 1;
            prompt = c.fixed + c.summary;
            cached = cached.min(c.fixed);
        }
        call(prompt, &mut cached);
        prompt += c.growth;
    }
    (units, count)
}
