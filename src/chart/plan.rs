//! A figure against load or capacity, with the bound that it has to keep: the hockey stick.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{BLUE, Chart, FONT, GREY, LIGHT, ORANGE, Outcome, Spots, axis, legend, titled};

/// "From how many sessions an hour on does the 99th percentile run away?"
#[derive(Debug, Clone)]
pub struct HockeyStick {
    /// Title of the scenario.
    pub title: String,
    /// What is drawn.
    pub subtitle: String,
    /// What the horizontal axis shows.
    pub x_name: String,
    /// What the curve is.
    pub name: String,
    /// (x, value, lower, upper), rising in x.
    pub points: Vec<(f64, f64, f64, f64)>,
    /// The bound.
    pub bound: f64,
    /// Values at which it doesn't settle.
    pub unstable: Vec<f64>,
    /// Where the bound is met at last.
    pub answer: Option<f64>,
    /// How a value is written.
    pub shown: fn(f64) -> String,
}

impl Chart for HockeyStick {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let top = self.points.iter().map(|p| p.1).fold(self.bound, f64::max) * 1.15;
        let all = || self.points.iter().map(|p| p.0).chain(self.unstable.iter().copied());
        let (left, right) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, r), x| (l.min(x), r.max(x)));
        let room = ((right - left) * 0.03).max(1e-9);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d((left - room)..(right + room), 0.0..top.max(1e-12))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LIGHT)
            .axis_style(GREY)
            .x_desc(self.x_name.clone())
            .x_label_formatter(&|x| axis(format!("{x:.4}")))
            .y_label_formatter(&|y| axis((self.shown)(*y)))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .draw()?;
        let low = self.unstable.iter().copied().fold(f64::INFINITY, f64::min);
        if low.is_finite() {
            let high = self.unstable.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (from, to) = if low > self.points.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max) {
                (low, right + room)
            } else {
                (left - room, high)
            };
            chart
                .draw_series([Rectangle::new([(from, 0.0), (to, top)], LIGHT.mix(0.7).filled())])?
                .label("doesn't settle")
                .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 22, y + 5)], LIGHT.filled()));
        }
        let band: Vec<(f64, f64)> = self
            .points
            .iter()
            .map(|p| (p.0, p.3.min(top)))
            .chain(self.points.iter().rev().map(|p| (p.0, p.2)))
            .collect();
        chart.draw_series([Polygon::new(band, BLUE.mix(0.2).filled())])?;
        chart
            .draw_series(LineSeries::new(self.points.iter().map(|p| (p.0, p.1)), BLUE.stroke_width(2)).point_size(3))?
            .label(self.name.clone())
            .legend(|(x, y)| PathElement::new([(x, y), (x + 22, y)], BLUE.stroke_width(2)));
        chart
            .draw_series([PathElement::new(
                [(left - room, self.bound), (right + room, self.bound)],
                ORANGE.stroke_width(1),
            )])?
            .label(format!("bound: {}", axis((self.shown)(self.bound))))
            .legend(|(x, y)| PathElement::new([(x, y), (x + 22, y)], ORANGE.stroke_width(1)));
        for (x, value, low, high) in &self.points {
            let text = format!(
                "{} {}: {} ({} … {})",
                self.x_name,
                axis(format!("{x:.4}")),
                (self.shown)(*value),
                (self.shown)(*low),
                (self.shown)(*high)
            );
            spots.add(chart.backend_coord(&(*x, value.min(top))), text);
        }
        if let Some(answer) = self.answer {
            chart.draw_series([PathElement::new([(answer, 0.0), (answer, self.bound)], ORANGE.stroke_width(1))])?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperMiddle)
    }
}
