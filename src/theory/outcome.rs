//! Success of whole sessions.

/// `outcome.pass_k`: chance that `k` independent sessions all succeed, `p^k`.
pub fn pass_k(success: f64, k: u32) -> f64 {
    success.powi(k as i32)
}

/// Cost per success, `E[cost] / p`.
pub fn cost_per_success(mean_cost: f64, success: f64) -> f64 {
    mean_cost / success
}
