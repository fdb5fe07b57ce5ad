//! Fleets over time.

use std::sync::Arc;

use serde_json::Value;

use super::results::{Drawing, Results};
use super::{SweepLine, SweepLines};
use crate::report::{count, money, percent, seconds};
use crate::table::Table;

/// The charts of a fleet, or of several, from its table.
pub(super) fn fleet_drawings(results: &Results, table: &Table) -> Vec<(String, Drawing)> {
    let Some(all) = Over::of(table) else { return Vec::new() };
    let title = &results.title;
    let outages = results.report["outages"].as_array().or_else(|| {
        let first = results.report["strategies"].get(0)?;
        first["fleet"]["outages"].as_array()
    });
    let chart = |what: &str, lines: Vec<SweepLine>, shown| all.chart(title, what, lines, shown, outages);
    let mut drawings = Vec::new();
    let mut add = |stem: String, chart: Option<SweepLines>| {
        drawings.extend(chart.map(|chart| (stem, Drawing::Lines(chart))));
    };
    if results.compares {
        // a line a way
        let each = |series: &str, of: &str| all.ways(series, of);
        add("compare-sessions".into(), chart("sessions in progress", each("in_progress", ""), count));
        add(
            "compare-latency".into(),
            chart("99th percentile of the latency of sessions that end", each("latency_p99_s", ""), seconds),
        );
        add(
            "compare-unanswered".into(),
            chart("sessions without an answer, an hour", each("unanswered_per_hour", ""), count),
        );
        let names = all.names("calls_per_s");
        for of in names.clone() {
            // names that differ in what no file name takes get a number
            let plain = |name: &str| name.replace(['/', '\\'], "-");
            let before = names.iter().take_while(|other| **other != of);
            let alike = before.filter(|other| plain(other) == plain(&of)).count();
            let file = if alike == 0 { plain(&of) } else { format!("{}-{}", plain(&of), alike + 1) };
            let lines = |series: &str| each(series, &of);
            add(
                format!("compare-calls-{file}"),
                chart(&format!("calls of {of} a second"), lines("calls_per_s"), count),
            );
            add(
                format!("compare-waiting-{file}"),
                chart(&format!("calls that wait for {of}"), lines("waiting"), count),
            );
            add(
                format!("compare-use-{file}"),
                chart(&format!("servers of {of} that are busy"), lines("utilisation"), percent),
            );
        }
        return drawings;
    }
    let Some(way) = results.ways.first() else { return Vec::new() };
    let line = |series: &str, of: &str, name: String| all.line(way, series, of, name);
    let mut calls = Vec::new();
    let mut sessions: Vec<SweepLine> = line("in_progress", "", "sessions in progress".into()).into_iter().collect();
    let mut used = Vec::new();
    for of in all.names("calls_per_s") {
        calls.extend(line("calls_per_s", &of, format!("calls of {of}")));
        calls.extend(line("failures_per_s", &of, format!("{of} turned away or lost")));
        sessions.extend(line("waiting", &of, format!("calls that wait for {of}")));
        used.extend(line("utilisation", &of, format!("{of}: servers busy")));
    }
    calls.extend(line("breaker_per_s", "", "ended by a breaker".into()));
    for limit in all.names("limit_use") {
        used.extend(line("limit_use", &limit, limit.clone()));
    }
    let latency = [("latency_p50_s", "p50"), ("latency_p99_s", "p99")];
    let latency = latency.into_iter().filter_map(|(series, name)| line(series, "", name.to_owned())).collect();
    let one = |series: &str, name: &str| line(series, "", name.to_owned()).into_iter().collect();
    add("fleet-calls".into(), chart("calls a second", calls, count));
    add("fleet-sessions".into(), chart("sessions in progress, and calls that wait", sessions, count));
    add("fleet-latency".into(), chart("latency of the sessions that end within each piece of time", latency, seconds));
    let unanswered = one("unanswered_per_hour", "unanswered");
    add("fleet-unanswered".into(), chart("sessions that end without their answer, an hour", unanswered, count));
    add("fleet-use".into(), chart("share that is used of servers and provider limits", used, percent));
    let cost = one("cost_per_hour_usd", "dollars an hour");
    add("fleet-cost".into(), chart("money of the sessions that end, an hour", cost, money));
    drawings
}

/// A fleet's table, column by column.
struct Over<'a> {
    strategy: &'a [Option<Arc<str>>],
    series: &'a [Option<Arc<str>>],
    of: &'a [Option<Arc<str>>],
    from_s: Vec<Option<f64>>,
    to_s: Vec<Option<f64>>,
    /// Mean, and the ends of its interval.
    values: [Vec<Option<f64>>; 3],
    /// The unit of the horizontal axis, and how many seconds it is.
    unit: (&'static str, f64),
}

impl<'a> Over<'a> {
    fn of(table: &'a Table) -> Option<Self> {
        let (from_s, to_s) = (table.numbers("from_s")?, table.numbers("to_s")?);
        let horizon_s = to_s.iter().flatten().copied().fold(0.0, f64::max);
        Some(Self {
            strategy: table.texts("strategy")?,
            series: table.texts("series")?,
            of: table.texts("of")?,
            from_s,
            to_s,
            values: [table.numbers("mean")?, table.numbers("ci95_low")?, table.numbers("ci95_high")?],
            unit: if horizon_s > 3.0 * 3600.0 { ("hours", 3600.0) } else { ("minutes", 60.0) },
        })
    }

    /// What a series is of, in the order of the table.
    fn names(&self, series: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (own, of) in self.series.iter().zip(self.of) {
            let name = of.as_deref().unwrap_or_default();
            if own.as_deref() == Some(series) && !names.iter().any(|own| own == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    fn line(&self, way: &str, series: &str, of: &str, name: String) -> Option<SweepLine> {
        let mut points = Vec::new();
        for row in 0..self.series.len() {
            let is = |texts: &[Option<Arc<str>>], text: &str| texts[row].as_deref().unwrap_or_default() == text;
            if !is(self.strategy, way) || !is(self.series, series) || !is(self.of, of) {
                continue;
            }
            let (Some(from_s), Some(to_s), Some(mean)) = (self.from_s[row], self.to_s[row], self.values[0][row]) else {
                continue;
            };
            let [low, high] = [1, 2].map(|end| self.values[end][row].unwrap_or(mean));
            points.push((f64::midpoint(from_s, to_s) / self.unit.1, mean, low, high));
        }
        (!points.is_empty()).then_some(SweepLine { name, points })
    }

    /// A line for each way.
    fn ways(&self, series: &str, of: &str) -> Vec<SweepLine> {
        let mut ways: Vec<&str> = Vec::new();
        for way in self.strategy.iter().flatten() {
            if !ways.contains(&&**way) {
                ways.push(way);
            }
        }
        ways.into_iter().filter_map(|way| self.line(way, series, of, way.to_owned())).collect()
    }

    fn chart(
        &self,
        title: &str,
        what: &str,
        lines: Vec<SweepLine>,
        shown: fn(f64) -> String,
        outages: Option<&Vec<Value>>,
    ) -> Option<SweepLines> {
        let stretch = |outage: &Value| {
            let at = |key: &str| outage[key].as_f64().map(|s| s / self.unit.1);
            Some((at("from_s")?, at("until_s")?))
        };
        let shaded: Vec<(f64, f64)> = outages.into_iter().flatten().filter_map(stretch).collect();
        (!lines.is_empty()).then(|| SweepLines {
            title: title.to_owned(),
            subtitle: format!("{what}; means over replications with 95 % intervals"),
            x_name: self.unit.0.to_owned(),
            places: None,
            lines,
            shown,
            theory: Vec::new(),
            shaded: (!shaded.is_empty()).then(|| ("outage".to_owned(), shaded)),
        })
    }
}
