//! Ways side by side: a figure of each with its interval and its spread.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{BLUE, Chart, FONT, GREY, ORANGE, Outcome, Spots, rows_mesh, shortened, titled};

/// "Which strategy is cheaper, and are they really different?"
#[derive(Debug, Clone)]
pub struct WaysSideBySide {
    /// Title of the scenario.
    pub title: String,
    /// What is drawn.
    pub subtitle: String,
    /// What the horizontal axis shows.
    pub x_name: String,
    /// From top to bottom.
    pub ways: Vec<Way>,
    /// How a value is written.
    pub shown: fn(f64) -> String,
}

/// One of the ways.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// Its name.
    pub name: String,
    /// Mean, and the ends of its 95 % interval.
    pub mean: [f64; 3],
    /// Percentiles: 5, 50, 95 and 99.
    pub spread: [f64; 4],
}

/// Most ways that one picture holds; more would be too thin to read.
pub(super) const MOST: usize = 12;

impl Chart for WaysSideBySide {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let ways: Vec<&Way> = self.ways.iter().take(MOST).collect();
        let rows = ways.len().max(1) as f64;
        let top = ways.iter().map(|way| way.spread[3].max(way.mean[2])).fold(0.0, f64::max);
        let names = ways.iter().map(|way| way.name.chars().count().min(22)).max().unwrap_or(1) as u32;
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size((names * 8 + 20).max(76))
            .build_cartesian_2d(0.0..(top * 1.12).max(1e-12), 0.0..rows)?;
        rows_mesh(&mut chart, &self.x_name, self.shown)?;
        for (row, way) in ways.iter().enumerate() {
            let y = rows - row as f64 - 0.5;
            let half = 0.13;
            let [p5, p50, p95, p99] = way.spread;
            chart.draw_series([PathElement::new([(p5, y), (p99, y)], GREY.stroke_width(1))])?;
            chart.draw_series([Rectangle::new([(p5, y - half), (p95, y + half)], BLUE.mix(0.25).filled())])?;
            let tick = |x: f64, half: f64, colour: RGBColor, width: u32| {
                PathElement::new([(x, y - half), (x, y + half)], colour.stroke_width(width))
            };
            chart.draw_series([tick(p50, half, BLUE, 3), tick(p99, half * 0.6, GREY, 1)])?;
            let [mean, low, high] = way.mean;
            chart.draw_series([PathElement::new([(low, y), (high, y)], ORANGE.stroke_width(5))])?;
            chart.draw_series([Circle::new((mean, y), 4, ORANGE.filled())])?;
            let shown = self.shown;
            let text = format!(
                "{}: mean {} ({} … {}), p5 {}, p50 {}, p95 {}, p99 {}",
                way.name,
                shown(mean),
                shown(low),
                shown(high),
                shown(p5),
                shown(p50),
                shown(p95),
                shown(p99)
            );
            let x_pixel = chart.backend_coord(&(mean, y)).0;
            spots.add(chart.backend_coord(&(mean, y)), text);
            let left = chart.plotting_area().get_pixel_range().0.start;
            let name = shortened(&way.name, 22);
            let root = chart.plotting_area();
            let style = (FONT, 14).into_font().color(&BLACK);
            root.draw(
                &(EmptyElement::at((0.0, y))
                    + Text::new(name.clone(), (-(8 * name.chars().count() as i32) - 8, -7), style.clone())),
            )?;
            let label = (self.shown)(mean);
            let shift = (-(4 * label.chars().count() as i32)).max(left - x_pixel + 2);
            root.draw(&(EmptyElement::at((mean, y)) + Text::new(label, (shift, -34), style)))?;
        }
        Ok(())
    }
}
