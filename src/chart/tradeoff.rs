//! Two figures against each other, over the values of a setting.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{COLOURS, Chart, FONT, GREY, LIGHT, Outcome, Spots, axis, legend, titled};

/// "How many duplicates buy how much of p99?"
#[derive(Debug, Clone)]
pub struct TradeOff {
    /// Title of the scenario.
    pub title: String,
    /// What is drawn.
    pub subtitle: String,
    /// Names of the figures, across and up.
    pub names: [String; 2],
    /// How their values are written.
    pub shown: [fn(f64) -> String; 2],
    /// The lines.
    pub lines: Vec<TradeLine>,
}

/// A line from value to value of the setting.
#[derive(Debug, Clone, Default)]
pub struct TradeLine {
    /// What it is called.
    pub name: String,
    /// (the value, across, up)
    pub points: Vec<(String, f64, f64)>,
}

/// Labels nearer than this to one that is drawn already are left out, pixels.
const APART: i32 = 26;

impl Chart for TradeOff {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let right = all().map(|point| point.1).fold(0.0, f64::max);
        let top = all().map(|point| point.2).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(0.0..(right * 1.12).max(1e-12), 0.0..(top * 1.15).max(1e-12))?;
        let [across, up] = self.shown;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LIGHT)
            .axis_style(GREY)
            .x_desc(self.names[0].clone())
            .y_desc(self.names[1].clone())
            .x_label_formatter(&|x| axis(across(*x)))
            .y_label_formatter(&|y| axis(up(*y)))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .draw()?;
        let mut labelled: Vec<(i32, i32)> = Vec::new();
        for (TradeLine { name, points }, colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            let line = points.iter().map(|point| (point.1, point.2));
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)).point_size(4))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2)));
            for (value, x, y) in points {
                let (left, above) = chart.backend_coord(&(*x, *y));
                spots.add(
                    (left, above),
                    format!("{value}: {} {}, {} {}", self.names[0], across(*x), self.names[1], up(*y)),
                );
                if labelled.iter().any(|(l, a)| (l - left).abs() < 2 * APART && (a - above).abs() < APART / 2) {
                    continue;
                }
                labelled.push((left, above));
                let label = Text::new(value.clone(), (8, -14), (FONT, 13).into_font().color(&BLACK));
                chart.draw_series([EmptyElement::at((*x, *y)) + label])?;
            }
        }
        if self.lines.len() > 1 { legend(&mut chart, SeriesLabelPosition::UpperRight) } else { Ok(()) }
    }
}
