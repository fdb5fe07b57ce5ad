//! Quantile curves on a tail scale.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::scale::TailScale;
use super::{BLUE, COLOURS, Chart, FONT, GREY, LIGHT, ORANGE, Outcome, Spots, axis, legend, titled};
use crate::report::seconds;
use crate::stats::quantile_ranks;

/// "How long does it take, up to the slowest one in a thousand?"
#[derive(Debug, Clone)]
pub struct TailCurve {
    title: String,
    subtitle: String,
    lines: Vec<TailLine>,
    /// (p, value), s; empty where there is no closed form
    theory: Vec<(f64, f64)>,
    /// Percentiles whose values are written beside the curve: (p, value), s
    labels: Vec<(f64, f64)>,
}

#[derive(Debug, Clone)]
struct TailLine {
    name: String,
    /// (p, value, lower, upper), s
    points: Vec<(f64, f64, f64, f64)>,
}

/// Percentiles whose values are written beside the curve.
const LABELLED: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

/// Percentiles from 0 to `largest` with equal steps on the tail scale, and the labelled ones.
fn tail_percentiles(largest: f64) -> Vec<f64> {
    let end = -(1.0 - largest).log10();
    let grid = (1..=120).map(|step| 1.0 - 10_f64.powf(-end * f64::from(step) / 120.0));
    let mut ps: Vec<f64> = grid.chain(LABELLED.into_iter().filter(|p| *p <= largest)).collect();
    ps.sort_by(f64::total_cmp);
    ps
}

/// The largest percentile of a curve of `n` values: p99.9, or where fewer than ten values lie beyond.
fn largest(n: usize) -> f64 {
    (1.0 - 10.0 / n.max(11) as f64).clamp(0.05, 0.999)
}

impl TailLine {
    fn of(name: &str, values_s: &[f64]) -> Self {
        let mut sorted = values_s.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as u64;
        let at = |rank: u64| sorted.get(rank as usize - 1).copied().unwrap_or(0.0);
        let points = tail_percentiles(largest(sorted.len()))
            .iter()
            .filter(|_| n > 0)
            .map(|p| {
                let (rank, lower, upper) = quantile_ranks(n, *p);
                (*p, at(rank), at(lower), at(upper))
            })
            .collect();
        Self { name: name.to_owned(), points }
    }
}

impl TailCurve {
    /// The curve of some durations, s, with the closed form's points (p, s) where there is one. `known` are percentiles (p, s)
    /// of all durations, where these are only some of them.
    pub fn new(title: &str, subtitle: &str, values_s: &[f64], theory: &[(f64, f64)], known: &[(f64, f64)]) -> Self {
        let most = largest(values_s.len());
        let line = TailLine::of("simulated, with its 95 % interval", values_s);
        let near = |p: f64| {
            let far = |point: &&(f64, f64, f64, f64)| (point.0 - p).abs();
            line.points.iter().min_by(|a, b| far(a).total_cmp(&far(b))).map(|point| (p, point.1))
        };
        let known_at = |p: f64| known.iter().copied().find(|(own, _)| (own - p).abs() < 1e-9);
        let labelled = LABELLED.into_iter().filter(|p| *p <= most + 1e-9);
        let labels = labelled.filter_map(|p| known_at(p).or_else(|| near(p))).collect();
        Self {
            title: title.to_owned(),
            subtitle: subtitle.to_owned(),
            lines: vec![line],
            labels,
            theory: theory.iter().copied().filter(|(p, _)| *p <= most + 1e-12).collect(),
        }
    }

    /// A curve for each of some ways.
    pub fn of_ways(title: &str, subtitle: &str, ways: &[(String, Vec<f64>)]) -> Self {
        let lines = ways.iter().map(|(name, values_s)| TailLine::of(name, values_s)).collect();
        Self { title: title.to_owned(), subtitle: subtitle.to_owned(), lines, theory: Vec::new(), labels: Vec::new() }
    }
}

impl Chart for TailCurve {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let largest = points().map(|point| point.0).fold(0.05, f64::max);
        let top = points().map(|p| p.3).chain(self.theory.iter().map(|p| p.1)).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(TailScale::up_to(largest), 0.0..(top * 1.08).max(1e-9))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LIGHT)
            .axis_style(GREY)
            .x_desc("share of all that are at most this slow (percentile, spaced by rarity)")
            .y_desc("seconds")
            .y_label_formatter(&|y| axis(seconds(*y)))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .draw()?;
        for (TailLine { name, points }, colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            let band: Vec<(f64, f64)> =
                points.iter().map(|p| (p.0, p.3)).chain(points.iter().rev().map(|p| (p.0, p.2))).collect();
            chart.draw_series([Polygon::new(band, colour.mix(0.25).filled())])?;
            chart
                .draw_series(LineSeries::new(points.iter().map(|p| (p.0, p.1)), colour.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2)));
            let whose = if self.lines.len() > 1 { format!("{name}, ") } else { String::new() };
            for (p, value, low, high) in points.iter().step_by(2) {
                let percentile = (p * 1e4).round() / 1e2;
                let text =
                    format!("{whose}p{percentile}: {} ({} … {})", seconds(*value), seconds(*low), seconds(*high));
                spots.add(chart.backend_coord(&(*p, *value)), text);
            }
        }
        if !self.theory.is_empty() {
            chart
                .draw_series(DashedLineSeries::new(self.theory.iter().copied(), 7, 6, ORANGE.stroke_width(2)))?
                .label("closed form")
                .legend(|(x, y)| {
                    EmptyElement::at((x, y))
                        + PathElement::new([(0, 0), (8, 0)], ORANGE.stroke_width(2))
                        + PathElement::new([(14, 0), (22, 0)], ORANGE.stroke_width(2))
                });
        }
        for (p, value) in &self.labels {
            let label = seconds(*value);
            let shift = -(7 * label.chars().count() as i32) - if *p > 0.9985 { 12 } else { 6 };
            chart.draw_series([EmptyElement::at((*p, *value))
                + Circle::new((0, 0), 4, BLUE.filled())
                + Text::new(label, (shift, -20), (FONT, 14).into_font().color(&BLACK))])?;
        }
        // a curve that is cut off reaches its top early
        let early = points().filter(|point| point.0 >= 0.9 && point.0 < 0.95).any(|point| point.1 > 0.9 * top);
        legend(&mut chart, if early { SeriesLabelPosition::LowerRight } else { SeriesLabelPosition::UpperLeft })
    }
}
