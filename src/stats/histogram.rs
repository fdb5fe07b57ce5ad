//! How many values lie in each of some steps.

/// Sorted values counted in steps from the least to the largest: equal ones, or ones of equal ratio. (left edge, right edge,
/// values); the largest value counts in the last step.
pub fn steps(sorted: &[f64], steps: usize, by_ratio: bool) -> Vec<(f64, f64, usize)> {
    let (Some(low), Some(high)) = (sorted.first().copied(), sorted.last().copied()) else { return Vec::new() };
    let edge = |step: usize| {
        let share = step as f64 / steps as f64;
        if by_ratio { low * (high / low).powf(share) } else { low + (high - low) * share }
    };
    let below = |step: usize| {
        if step == steps { sorted.len() } else { sorted.partition_point(|value| *value < edge(step)) }
    };
    (0..steps).map(|step| (edge(step), edge(step + 1), below(step + 1).saturating_sub(below(step)))).collect()
}

/// Whether positive values differ so much that only steps of equal ratio tell them apart.
pub fn differ_by_magnitudes(low: f64, high: f64) -> bool {
    low > 0.0 && high / low > 30.0
}
