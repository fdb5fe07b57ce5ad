//! Rate limits, queues and worst cases.

/// `limit.bucket`: the most that a bucket of rate `per_s` and capacity `capacity` passes in any window of `window_s`:
/// `β + ρ Δ`.
pub fn bucket_most(per_s: f64, capacity: f64, window_s: f64) -> f64 {
    capacity + per_s * window_s
}

/// Chance to wait in M/M/c (Erlang C; Erlang 1917), by the recursion of Erlang B.
pub fn mmc_wait_chance(servers: u32, arrivals_per_s: f64, service_mean_s: f64) -> f64 {
    let load = arrivals_per_s * service_mean_s;
    let blocked = (1..=servers).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
    let utilisation = load / f64::from(servers);
    blocked / (1.0 - utilisation * (1.0 - blocked))
}

/// Mean wait in M/M/c, s.
pub fn mmc_mean_wait(servers: u32, arrivals_per_s: f64, service_mean_s: f64) -> f64 {
    let spare_per_s = f64::from(servers) / service_mean_s - arrivals_per_s;
    mmc_wait_chance(servers, arrivals_per_s, service_mean_s) / spare_per_s
}

/// Quantile of the wait in M/M/c: 0 up to `1 - C`, beyond it `ln(C / (1-p)) / (cμ - λ)`, s.
pub fn mmc_wait_quantile(servers: u32, arrivals_per_s: f64, service_mean_s: f64, p: f64) -> f64 {
    let spare_per_s = f64::from(servers) / service_mean_s - arrivals_per_s;
    let chance = mmc_wait_chance(servers, arrivals_per_s, service_mean_s);
    ((chance / (1.0 - p)).ln() / spare_per_s).max(0.0)
}

/// Mean wait in M/G/1 (Pollaczek–Khinchine): `ρ (1 + scv) / (2 (1-ρ)) · E[S]`, s; `scv` is the squared coefficient of
/// variation of the service.
pub fn mg1_mean_wait(arrivals_per_s: f64, service_mean_s: f64, scv: f64) -> f64 {
    let utilisation = arrivals_per_s * service_mean_s;
    utilisation * (1.0 + scv) / (2.0 * (1.0 - utilisation)) * service_mean_s
}

/// `budget.reserve`: the worst case of one call, `κ_w c_in n + c_out · max output`.
pub fn worst_case(prompt_tokens: f64, write_price: f64, max_output: f64, output_price: f64) -> f64 {
    write_price * prompt_tokens + output_price * max_output
}
