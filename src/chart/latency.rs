//! Quantile curves on a tail scale.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::scale::TailScale;
use super::{BLUE, Chart, FONT, GREY, LIGHT, ORANGE, Outcome, axis, legend, titled};
use crate::report::seconds;
use crate::stats::quantile_ranks;

/// "How long does it take, up to the slowest one in a thousand?"
#[derive(Debug, Clone)]
pub struct TailCurve {
    title: String,
    subtitle: String,
    /// (p, value, lower, upper), s
    simulated: Vec<(f64, f64, f64, f64)>,
    /// (p, value), s; empty where there is no closed form
    theory: Vec<(f64, f64)>,
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

impl TailCurve {
    /// The curve of some durations, s, with the closed form's points where there is one. Stops at p99.9, or where fewer
    /// than ten values lie beyond.
    pub fn new(title: &str, subtitle: &str, values_s: &[f64], theory: impl Fn(&[f64]) -> Vec<(f64, f64)>) -> Self {
        let mut sorted = values_s.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as u64;
        let largest = (1.0 - 10.0 / n.max(11) as f64).clamp(0.05, 0.999);
        let ps = tail_percentiles(largest);
        let at = |rank: u64| sorted.get(rank as usize - 1).copied().unwrap_or(0.0);
        let simulated = ps
            .iter()
            .filter(|_| n > 0)
            .map(|p| {
                let (rank, lower, upper) = quantile_ranks(n, *p);
                (*p, at(rank), at(lower), at(upper))
            })
            .collect();
        Self { title: title.to_owned(), subtitle: subtitle.to_owned(), simulated, theory: theory(&ps) }
    }
}

impl Chart for TailCurve {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let largest = self.simulated.last().map_or(0.99, |point| point.0);
        let top = self.simulated.iter().map(|p| p.3).chain(self.theory.iter().map(|p| p.1)).fold(0.0, f64::max);
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
        let band: Vec<(f64, f64)> =
            self.simulated.iter().map(|p| (p.0, p.3)).chain(self.simulated.iter().rev().map(|p| (p.0, p.2))).collect();
        chart.draw_series([Polygon::new(band, BLUE.mix(0.25).filled())])?;
        chart
            .draw_series(LineSeries::new(self.simulated.iter().map(|p| (p.0, p.1)), BLUE.stroke_width(2)))?
            .label("simulated, with its 95 % interval")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 22, y)], BLUE.stroke_width(2)));
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
        for p in LABELLED {
            if let Some(point) = self
                .simulated
                .iter()
                .min_by(|a, b| (a.0 - p).abs().total_cmp(&(b.0 - p).abs()))
                .filter(|_| p <= largest + 1e-9)
            {
                let label = seconds(point.1);
                let shift = if p > 0.9985 {
                    -(7 * label.chars().count() as i32) - 12
                } else {
                    -(7 * label.chars().count() as i32) - 6
                };
                chart.draw_series([EmptyElement::at((point.0, point.1))
                    + Circle::new((0, 0), 4, BLUE.filled())
                    + Text::new(label, (shift, -20), (FONT, 14).into_font().color(&BLACK))])?;
            }
        }
        // a curve that is cut off reaches its top early
        let early = self.simulated.iter().find(|point| point.0 >= 0.9).is_some_and(|point| point.1 > 0.9 * top);
        legend(&mut chart, if early { SeriesLabelPosition::LowerRight } else { SeriesLabelPosition::UpperLeft })
    }
}
