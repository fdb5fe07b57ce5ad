//! Success of whole sessions.

/// `outcome.pass_k`: chance that `k` independent sessions all succeed, `p^k`.
pub fn pass_k(success: f64, k: u32) -> f64 {
    success.powi(k as i32)
}

/// Cost per success, `E[cost] / p`.
pub fn cost_per_success(mean_cost: f64, success: f64) -> f64 {
    mean_cost / success
}

/// `search.ceiling`: chance that a tool is found in at most `searches` searches which each find it with chance
/// `hit_rate`, `1 - (1-h)^k` (MODEL.md §4.10).
pub fn search_ceiling(hit_rate: f64, searches: u32) -> f64 {
    1.0 - (1.0 - hit_rate).powi(searches as i32)
}
