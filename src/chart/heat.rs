//! One figure over two settings.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Chart, FONT, GREY, Outcome, Spots, shortened, titled};

/// "What does it cost with so many turns and such a lifetime?": a cell for each pair of values.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// Title of the scenario.
    pub title: String,
    /// What is drawn.
    pub subtitle: String,
    /// What goes from left to right, with its values.
    pub x: (String, Vec<String>),
    /// What goes from bottom to top, with its values.
    pub y: (String, Vec<String>),
    /// By row from the bottom, then from left to right: a figure, and whether too few sessions stand behind it; or why there
    /// is none.
    pub cells: Vec<Vec<Result<(f64, bool), &'static str>>>,
    /// How a figure is written.
    pub shown: fn(f64) -> String,
}

/// From light to dark in one hue, so that more is darker for every reader.
const LOW: (f64, f64, f64) = (240.0, 246.0, 252.0);
const HIGH: (f64, f64, f64) = (0.0, 74.0, 134.0);

fn shade(share: f64) -> RGBColor {
    let mix = |low: f64, high: f64| (low + (high - low) * share).round() as u8;
    RGBColor(mix(LOW.0, HIGH.0), mix(LOW.1, HIGH.1), mix(LOW.2, HIGH.2))
}

/// Where a figure lies between the least and the most: by ratio where they are far apart.
fn share(value: f64, low: f64, high: f64) -> f64 {
    if high <= low {
        0.0
    } else if low > 0.0 && high / low > 10.0 {
        (value / low).ln() / (high / low).ln()
    } else {
        (value - low) / (high - low)
    }
}

impl Chart for HeatMap {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        const LEFT: i32 = 110;
        const BELOW: i32 = 56;
        let plot = titled(area, &self.title, &self.subtitle)?;
        let (width, height) = plot.dim_in_pixel();
        let (width, height) = (width as i32, height as i32);
        let (columns, rows) = (self.x.1.len().max(1) as i32, self.y.1.len().max(1) as i32);
        let (across, up) = ((width - LEFT) / columns, (height - BELOW) / rows);
        let figures = || self.cells.iter().flatten().flatten();
        let (low, high) = figures().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (x, _)| (l.min(*x), h.max(*x)));
        let size = (across / 7).clamp(7, 15).min(up - 2).max(6);
        let centred = Pos::new(HPos::Center, VPos::Center);
        let text = |size: i32, colour: RGBColor, pos: Pos| (FONT, size).into_font().color(&colour).pos(pos);
        for (row, cells) in self.cells.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                let (left, bottom) = (LEFT + column as i32 * across, height - BELOW - row as i32 * up);
                let corners = [(left, bottom - up), (left + across - 1, bottom - 1)];
                let middle = (left + across / 2, bottom - up / 2);
                let (value, mark) = match cell {
                    Ok((value, too_few)) => (value, if *too_few { " ?" } else { "" }),
                    Err(why) => {
                        let (x, y) = plot.get_base_pixel();
                        let spot = format!("{} {}, {} {}: {why}", self.x.0, self.x.1[column], self.y.0, self.y.1[row]);
                        spots.add((x + middle.0, y + middle.1), spot);
                        let fits = why.len() as i32 * size * 3 / 5 < across;
                        plot.draw(&Text::new(if fits { *why } else { "–" }, middle, text(size, GREY, centred)))?;
                        continue;
                    }
                };
                let share = share(*value, low, high);
                plot.draw(&Rectangle::new(corners, shade(share).filled()))?;
                let (x, y) = plot.get_base_pixel();
                let spot = format!(
                    "{} {}, {} {}: {}{mark}",
                    self.x.0,
                    self.x.1[column],
                    self.y.0,
                    self.y.1[row],
                    (self.shown)(*value)
                );
                spots.add((x + middle.0, y + middle.1), spot);
                let colour = if share > 0.55 { WHITE } else { BLACK };
                let shown = (self.shown)(*value) + mark;
                plot.draw(&Text::new(shown, middle, text(size, colour, centred)))?;
            }
        }
        let most = |pixels: i32| (pixels / 7).max(4) as usize;
        for (column, name) in self.x.1.iter().enumerate() {
            let at = (LEFT + column as i32 * across + across / 2, height - BELOW + 8);
            let below = Pos::new(HPos::Center, VPos::Top);
            plot.draw(&Text::new(shortened(name, most(across)), at, text(13, GREY, below)))?;
        }
        for (row, name) in self.y.1.iter().enumerate() {
            let at = (LEFT - 8, height - BELOW - row as i32 * up - up / 2);
            plot.draw(&Text::new(
                shortened(name, most(LEFT)),
                at,
                text(13, GREY, Pos::new(HPos::Right, VPos::Center)),
            ))?;
        }
        let middle = LEFT + columns * across / 2;
        plot.draw(&Text::new(
            self.x.0.clone(),
            (middle, height - 22),
            text(13, BLACK, Pos::new(HPos::Center, VPos::Top)),
        ))?;
        let up_title = text(13, BLACK, centred).transform(FontTransform::Rotate270);
        plot.draw(&Text::new(self.y.0.clone(), (14, (height - BELOW) / 2), up_title))
    }
}
