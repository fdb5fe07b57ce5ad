//! Where the money goes: one bar a way, stacked by what it was paid for.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{BLUE, Chart, FONT, GREY, ORANGE, Outcome, Spots, rows_mesh, shortened, titled};
use crate::report::{money, percent};

/// "What do we pay for?"
#[derive(Debug, Clone)]
pub struct MoneyBySource {
    /// Title of the scenario.
    pub title: String,
    /// What is drawn.
    pub subtitle: String,
    /// Name of each way, with what it paid for: (what, mean dollars a session).
    pub ways: Vec<(String, Vec<(String, f64)>)>,
}

/// Okabe and Ito's eight, the darkest last.
const COLOURS: [RGBColor; 8] = [
    BLUE,
    RGBColor(86, 180, 233),
    ORANGE,
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(240, 228, 66),
    GREY,
];

/// Sources that are told apart; what is less is put together.
const MOST_SOURCES: usize = 7;
pub(super) const MOST_WAYS: usize = 8;

impl Chart for MoneyBySource {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let plot = titled(area, &self.title, &self.subtitle)?;
        let ways = &self.ways[..self.ways.len().min(MOST_WAYS)];
        let mut sources: Vec<(String, f64)> = Vec::new();
        for (name, usd) in ways.iter().flat_map(|(_, parts)| parts) {
            match sources.iter_mut().find(|(own, _)| own == name) {
                Some((_, sum)) => *sum += usd,
                None => sources.push((name.clone(), *usd)),
            }
        }
        sources.sort_by(|a, b| b.1.total_cmp(&a.1));
        let others = sources.len() > MOST_SOURCES + 1;
        let named: Vec<String> =
            sources.iter().take(if others { MOST_SOURCES } else { MOST_SOURCES + 1 }).map(|(n, _)| n.clone()).collect();
        let totals = ways.iter().map(|(_, parts)| parts.iter().map(|(_, usd)| usd).sum::<f64>());
        let top = totals.clone().fold(0.0, f64::max);
        let wide = ways.iter().map(|(name, _)| name.chars().count().min(22)).max().unwrap_or(1) as u32;
        let legend_rows = (named.len() + usize::from(others)).div_ceil(2) as i32;
        let plot = plot.margin(0, 22 * legend_rows + 6, 0, 0);
        let rows = ways.len().max(1) as f64;
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size((wide * 8 + 20).max(76))
            .build_cartesian_2d(0.0..(top * 1.12).max(1e-12), 0.0..rows)?;
        rows_mesh(&mut chart, "dollars a session", money)?;
        let black = (FONT, 14).into_font().color(&BLACK);
        for (row, ((name, parts), total)) in ways.iter().zip(totals).enumerate() {
            let y = rows - row as f64 - 0.5;
            let half = if rows > 1.0 { 0.3 } else { 0.18 };
            let mut from = 0.0;
            let amount = |source: &str| parts.iter().find(|(own, _)| own == source).map_or(0.0, |(_, usd)| *usd);
            let rest: f64 = parts.iter().filter(|(own, _)| !named.contains(own)).map(|(_, usd)| usd).sum();
            let labels = named.iter().map(String::as_str).chain(others.then_some("all else"));
            let amounts = named.iter().map(|source| amount(source)).chain(others.then_some(rest));
            for ((usd, colour), source) in amounts.zip(COLOURS).zip(labels) {
                let to = from + usd;
                chart.draw_series([Rectangle::new([(from, y - half), (to, y + half)], colour.filled())])?;
                let share = percent(usd / total.max(1e-300));
                let middle = f64::midpoint(from, to);
                spots.add(chart.backend_coord(&(middle, y)), format!("{name}, {source}: {} ({share})", money(usd)));
                let room = chart.backend_coord(&(to, y)).0 - chart.backend_coord(&(from, y)).0;
                if room > 9 * share.chars().count() as i32 {
                    let dark = u32::from(colour.0) * 3 + u32::from(colour.1) * 6 + u32::from(colour.2) < 1_300;
                    let style = (FONT, 13).into_font().color(if dark { &WHITE } else { &BLACK });
                    let label = EmptyElement::at((from, y)) + Text::new(share, (6, -7), style);
                    chart.draw_series([label])?;
                }
                from = to;
            }
            let name = shortened(name, 22);
            let area = chart.plotting_area();
            let left = -(8 * name.chars().count() as i32) - 8;
            area.draw(&(EmptyElement::at((0.0, y)) + Text::new(name, (left, -7), black.clone())))?;
            area.draw(&(EmptyElement::at((total, y)) + Text::new(money(total), (6, -7), black.clone())))?;
        }
        // the names of the colours below the plot, in two columns
        let (width, height) = area.dim_in_pixel();
        for (index, name) in named.iter().map(String::as_str).chain(others.then_some("all else")).enumerate() {
            let x = 28 + (index % 2) as i32 * (width as i32 / 2 - 10);
            let y = height as i32 - 22 * legend_rows + 22 * (index / 2) as i32 - 6;
            let colour = COLOURS[index.min(COLOURS.len() - 1)];
            area.draw(&Rectangle::new([(x, y), (x + 14, y + 14)], colour.filled()))?;
            area.draw(&Text::new(shortened(name, 48), (x + 22, y), (FONT, 14).into_font().color(&BLACK)))?;
        }
        Ok(())
    }
}
