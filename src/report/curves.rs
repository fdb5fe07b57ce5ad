//! What a chart needs beside the tables.

use serde::Serialize;

use crate::check;
use crate::model::{Fleet, Model};
use crate::stats::Quantity;

/// Points of a curve: from 0 to p99.9, with equal steps of `-log10(1 - p)`.
const POINTS: u32 = 120;

/// Points (p, s) of the quantile curves that have a closed form.
pub(super) fn closed_forms(model: &Model) -> Vec<(String, Vec<(f64, f64)>)> {
    if model.fleet.is_some() || model.herd.is_some() {
        return Vec::new();
    }
    let ps: Vec<f64> = (1..=POINTS).map(|step| 1.0 - 10_f64.powf(-3.0 * f64::from(step) / f64::from(POINTS))).collect();
    let session = Quantity::LatencyS.applies(model).then(|| check::session_quantiles(model, &ps)).flatten();
    let phase = check::phase_quantiles(model, &ps);
    let all = [("latency_s", session), ("tool_phase_s", phase)];
    all.into_iter().filter_map(|(name, curve)| Some((name.to_owned(), curve?))).collect()
}

/// When something of a fleet is out of order.
#[derive(Serialize)]
pub(super) struct OutageReport {
    from_s: f64,
    until_s: f64,
}

/// A fleet's outages, up to its horizon.
pub(super) fn outages(fleet: &Fleet) -> Vec<OutageReport> {
    let report = |outage: &crate::model::Outage| OutageReport {
        from_s: outage.from_s,
        until_s: outage.until_s.min(fleet.horizon_s),
    };
    fleet.outages.iter().map(report).collect()
}
