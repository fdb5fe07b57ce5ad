//! A fleet over time as rows.

use std::sync::Arc;

use super::{Name, Part, Values};
use crate::stats::{FleetSummary, Place, SeriesKind};

/// The series of a fleet, a row a piece of time and number; `tools` are the names of its tools.
pub fn fleet_part(strategy: &str, fleet: &FleetSummary, tools: &[String]) -> Part {
    let place = |place: Place| place.name(tools).to_owned();
    let (mut from_s, mut to_s, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut of) = (Vec::new(), Vec::new());
    let (mut means, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for series in &fleet.series {
        let (name, whose) = match series.kind {
            SeriesKind::InProgress => ("in_progress", String::new()),
            SeriesKind::ArrivalsPerS => ("arrivals_per_s", String::new()),
            SeriesKind::CallsPerS(at) => ("calls_per_s", place(at)),
            SeriesKind::FailuresPerS(at) => ("failures_per_s", place(at)),
            SeriesKind::Waiting(at) => ("waiting", place(at)),
            SeriesKind::Utilisation(at) => ("utilisation", place(at)),
            SeriesKind::LimitUse(kind) => ("limit_use", kind.key().to_owned()),
            SeriesKind::BreakerPerS => ("breaker_per_s", String::new()),
            SeriesKind::UnansweredPerHour => ("unanswered_per_hour", String::new()),
            SeriesKind::CostPerHour => ("cost_per_hour_usd", String::new()),
            SeriesKind::LatencyP50 => ("latency_p50_s", String::new()),
            SeriesKind::LatencyP99 => ("latency_p99_s", String::new()),
        };
        for (piece, value) in series.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let begins_s = piece as f64 * fleet.piece_s;
            from_s.push(begins_s);
            to_s.push((begins_s + fleet.piece_s).min(fleet.horizon_s));
            counted.push(begins_s >= fleet.warm_up_s - 1e-9);
            names.push(name);
            of.push(whose.clone());
            means.push(value.value);
            low.push(value.ci95[0]);
            high.push(value.ci95[1]);
        }
    }
    let rows = means.len();
    let columns = [
        ("strategy", Values::Same(Arc::from(strategy), rows)),
        ("from_s", Values::Number(from_s)),
        ("to_s", Values::Number(to_s)),
        ("counted", Values::Flag(counted)),
        ("series", Values::Word(names)),
        ("of", Values::Text(of)),
        ("mean", Values::Number(means)),
        ("ci95_low", Values::Number(low)),
        ("ci95_high", Values::Number(high)),
    ];
    let columns = columns.into_iter().map(|(name, values)| (name, vec![values])).collect();
    Part { table: Name::Fleet, rows, columns }
}
