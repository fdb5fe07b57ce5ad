//! Where the money goes, turn by turn and session by session.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{BLUE, Chart, FONT, GREY, LIGHT, ORANGE, Outcome, Spots, axis, legend, titled};
use crate::report::{money, percent, whole};
use crate::stats::{differ_by_magnitudes, quantile_name, steps};

/// "What does each call of a session cost, with the cache and without?"
#[derive(Debug, Clone)]
pub struct CostByTurn {
    /// Title of the scenario.
    pub title: String,
    /// Sessions that the means are taken over.
    pub sessions: u64,
    /// Mean dollars of a session's input, (with the cache, without), for the legend; nothing where other agents have a part
    /// in it.
    pub input_usd: Option<(Option<f64>, f64)>,
    /// Mean dollars of call 1, 2, …, as the scenario says.
    pub with_cache_usd: Option<Vec<f64>>,
    /// The same prompts at the plain input price.
    pub without_cache_usd: Vec<f64>,
}

impl Chart for CostByTurn {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let calls = self.without_cache_usd.len();
        let whose = if self.input_usd.is_some() { "" } else { " of the main agent" };
        let subtitle = format!(
            "mean cost of a model call{whose}, input and output, among the first {} sessions that reach it",
            whole(self.sessions)
        );
        let plot = titled(area, &self.title, &subtitle)?;
        let with = self.with_cache_usd.as_deref().unwrap_or_default();
        let top = self.without_cache_usd.iter().chain(with).copied().fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(1.0..(calls as f64).max(2.0), 0.0..(top * 1.3).max(1e-12))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LIGHT)
            .axis_style(GREY)
            .x_desc("call of the session")
            .y_desc("dollars a call")
            // calls are whole
            .x_label_formatter(&|x| if (x - x.round()).abs() < 1e-9 { format!("{x:.0}") } else { String::new() })
            .y_label_formatter(&|y| axis(money(*y)))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .draw()?;
        let (input_with, input_without) = self.input_usd.map_or((None, None), |(with, without)| (with, Some(without)));
        let lines = [
            ("without a cache", &self.without_cache_usd[..], input_without, ORANGE),
            ("with the cache", with, input_with, BLUE),
        ];
        for (label, usd, input_usd, colour) in lines {
            if usd.is_empty() {
                continue;
            }
            let points = usd.iter().enumerate().map(|(index, y)| (index as f64 + 1.0, *y));
            for (x, y) in points.clone() {
                spots.add(chart.backend_coord(&(x, y)), format!("call {x}, {label}: {}", money(y)));
            }
            let input = input_usd.map_or_else(String::new, |usd| format!(": {} of input a session", money(usd)));
            // a line of one point is nothing
            let dot = if usd.len() == 1 { 4 } else { 0 };
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(3)).point_size(dot))?
                .label(format!("{label}{input}"))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(3)));
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    }
}

/// "How far apart are sessions?"
#[derive(Debug, Clone)]
pub struct CostDistribution {
    title: String,
    subtitle: String,
    /// (left edge, right edge, share of sessions)
    bars: Vec<(f64, f64, f64)>,
    /// (name, dollars)
    marks: Vec<(String, f64)>,
    logarithmic: bool,
}

/// Bars of the histogram.
const BINS: usize = 60;

impl CostDistribution {
    /// Of the cost of sessions, $, of `sessions` in all; `None` where all cost the same. The last half percent is cut off,
    /// so that the rest has room. `marks` are percentiles with their values.
    pub fn new(title: &str, mut usd: Vec<f64>, sessions: u64, marks: Vec<(f64, f64)>) -> Option<Self> {
        usd.sort_by(f64::total_cmp);
        let sorted = usd;
        if sorted.first()?.total_cmp(sorted.last()?).is_eq() {
            return None;
        }
        let cut = (sorted.len() as f64 * 0.995).ceil() as usize;
        let cut = cut.max(2).min(sorted.len());
        // sessions that differ by orders of magnitude need a logarithmic axis, without the cheapest half percent
        let first = sorted.len() / 200;
        let logarithmic = differ_by_magnitudes(sorted[first], sorted[cut - 1]);
        let first = if logarithmic { first } else { 0 };
        let shown = sorted.get(first..cut)?;
        let (low, high) = (*shown.first()?, *shown.last()?);
        if high <= low {
            return None;
        }
        let n = sorted.len() as f64;
        let bars = steps(shown, BINS, logarithmic).into_iter().map(|(from, to, count)| (from, to, count as f64 / n));
        let bars = bars.collect();
        let marks = marks.into_iter().map(|(p, usd)| (quantile_name(p), usd)).collect();
        // of all sessions, where these are every second or third of them
        let all = |some: usize| whole((some as f64 * sessions as f64 / n).round() as u64);
        let beyond = sorted.len() - cut;
        let hidden = if first > 0 {
            format!("the cheapest {} and dearest {} lie outside", all(first), all(beyond))
        } else {
            format!("the dearest {} lie further right", all(beyond))
        };
        Some(Self {
            title: title.to_owned(),
            subtitle: format!("cost of one session over {} sessions; {hidden}", whole(sessions)),
            bars,
            marks,
            logarithmic,
        })
    }
}

impl Chart for CostDistribution {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let (left, right) = (self.bars.first().map_or(0.0, |b| b.0), self.bars.last().map_or(1.0, |b| b.1));
        let top = (self.bars.iter().map(|b| b.2).fold(0.0, f64::max) * 1.22).max(1e-12);
        let mut builder = ChartBuilder::on(&plot);
        builder.x_label_area_size(44).y_label_area_size(76);
        if self.logarithmic {
            self.fill(builder.build_cartesian_2d((left..right).log_scale(), 0.0..top)?, top, spots)
        } else {
            self.fill(builder.build_cartesian_2d(left..right, 0.0..top)?, top, spots)
        }
    }
}

impl CostDistribution {
    fn fill<DB, X>(
        &self,
        mut chart: ChartContext<'_, DB, Cartesian2d<X, RangedCoordf64>>,
        top: f64,
        spots: &mut Spots,
    ) -> Outcome<DB>
    where
        DB: DrawingBackend,
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let axis_text = if self.logarithmic { "dollars a session (logarithmic)" } else { "dollars a session" };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LIGHT)
            .axis_style(GREY)
            .x_desc(axis_text)
            .y_desc("share of sessions")
            .x_labels(8)
            .x_label_formatter(&|x| axis(money(*x)))
            .y_label_formatter(&|y| format!("{:.1} %", y * 100.0))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .draw()?;
        chart.draw_series(
            self.bars
                .iter()
                .map(|(from, to, share)| Rectangle::new([(*from, 0.0), (*to, *share)], BLUE.mix(0.6).filled())),
        )?;
        for (from, to, share) in &self.bars {
            let (middle, percent) = (f64::midpoint(*from, *to), percent(*share));
            let text = format!("{} to {}: {percent} of the sessions", money(*from), money(*to));
            spots.add(chart.backend_coord(&(middle, *share)), text);
        }
        for (index, (name, usd)) in self.marks.iter().enumerate() {
            // taller to the right, labels to the left of their lines: no line crosses another's label
            let height = top * (1.0 - 0.055 * (self.marks.len() - 1 - index) as f64);
            let label = format!("{name} {}", money(*usd));
            let plotted = chart.plotting_area().get_pixel_range().0;
            let room_left = chart.backend_coord(&(*usd, 0.0)).0 - plotted.start > 130;
            let shift = if room_left { -(8 * label.chars().count() as i32) - 4 } else { 5 };
            chart.draw_series([PathElement::new([(*usd, 0.0), (*usd, height)], ORANGE.stroke_width(2))])?;
            chart
                .draw_series([EmptyElement::at((*usd, height))
                    + Text::new(label, (shift, 0), (FONT, 14).into_font().color(&BLACK))])?;
        }
        Ok(())
    }
}
