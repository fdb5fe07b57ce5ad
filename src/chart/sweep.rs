//! One figure against a setting, with a line for each value of a second one.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{COLOURS, Chart, FONT, GREY, LIGHT, Outcome, Spots, axis, legend, titled};

/// "How does the cost rise with the number of turns, with the cache and without?"
#[derive(Debug, Clone)]
pub struct SweepLines {
    /// Title of the scenario.
    pub title: String,
    /// What is drawn.
    pub subtitle: String,
    /// What the horizontal axis shows.
    pub x_name: String,
    /// Names of its places, where they are no numbers: the points' x are then 0, 1, ….
    pub places: Option<Vec<String>>,
    /// The lines, from left to right.
    pub lines: Vec<SweepLine>,
    /// How a value is written.
    pub shown: fn(f64) -> String,
    /// Closed forms, one (x, value) list a line, where there are some.
    pub theory: Vec<Vec<(f64, f64)>>,
    /// Stretches of the horizontal axis that are shaded, and what they are.
    pub shaded: Option<(String, Vec<(f64, f64)>)>,
}

/// One line.
#[derive(Debug, Clone, Default)]
pub struct SweepLine {
    /// What it is called.
    pub name: String,
    /// (x, value, lower, upper)
    pub points: Vec<(f64, f64, f64, f64)>,
}

/// More dots than this would hide their line.
const MOST_DOTS: usize = 40;

impl Chart for SweepLines {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let top = points().map(|p| p.3).fold(0.0, f64::max);
        let (left, right) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, r), p| (l.min(p.0), r.max(p.0)));
        let room = ((right - left) * 0.04).max(if right > left { 0.0 } else { 0.5 });
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d((left - room)..(right + room), 0.0..(top * 1.25).max(1e-12))?;
        let place = |x: &f64| match &self.places {
            Some(places) if (x - x.round()).abs() < 1e-9 => {
                places.get(x.round().max(0.0) as usize).cloned().unwrap_or_default()
            }
            Some(_) => String::new(),
            None => axis(format!("{x:.4}")),
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LIGHT)
            .axis_style(GREY)
            .x_desc(self.x_name.clone())
            .x_labels(self.places.as_ref().map_or(8, |places| places.len().max(2)))
            .x_label_formatter(&place)
            .y_label_formatter(&|y| axis((self.shown)(*y)))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .draw()?;
        if let Some((what, stretches)) = &self.shaded {
            let grey = LIGHT.mix(0.7).filled();
            let boxes = stretches.iter().map(|(from, to)| Rectangle::new([(*from, 0.0), (*to, top * 1.25)], grey));
            chart
                .draw_series(boxes)?
                .label(what)
                .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 22, y + 5)], LIGHT.filled()));
        }
        for (SweepLine { name, points }, colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            let dot = if points.len() > MOST_DOTS { 0 } else { 3 };
            let band: Vec<(f64, f64)> =
                points.iter().map(|p| (p.0, p.3)).chain(points.iter().rev().map(|p| (p.0, p.2))).collect();
            chart.draw_series([Polygon::new(band, colour.mix(0.2).filled())])?;
            chart
                .draw_series(
                    LineSeries::new(points.iter().map(|p| (p.0, p.1)), colour.stroke_width(2)).point_size(dot),
                )?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2)));
            for (x, value, low, high) in points {
                let place = place(x);
                let place = if place.is_empty() { axis(format!("{x:.4}")) } else { place };
                let text = format!(
                    "{name}, {} {place}: {} ({} … {})",
                    self.x_name,
                    (self.shown)(*value),
                    (self.shown)(*low),
                    (self.shown)(*high)
                );
                spots.add(chart.backend_coord(&(*x, *value)), text);
            }
        }
        for (index, line) in self.theory.iter().filter(|line| !line.is_empty()).enumerate() {
            let drawn = chart.draw_series(DashedLineSeries::new(line.iter().copied(), 7, 6, BLACK.stroke_width(1)))?;
            if index == 0 {
                drawn.label("closed form").legend(|(x, y)| {
                    EmptyElement::at((x, y))
                        + PathElement::new([(0, 0), (8, 0)], BLACK.stroke_width(1))
                        + PathElement::new([(14, 0), (22, 0)], BLACK.stroke_width(1))
                });
            }
        }
        // on the side where the curves are lower
        let middle = f64::midpoint(left, right);
        let highest = |on_left: bool| points().filter(|p| (p.0 <= middle) == on_left).map(|p| p.3).fold(0.0, f64::max);
        let is_falling = highest(true) > highest(false);
        let side = if is_falling { SeriesLabelPosition::UpperRight } else { SeriesLabelPosition::UpperLeft };
        legend(&mut chart, side)
    }
}
