//! Charts: one function per question. The only room that knows plotters.
//!
//! SVG always; PNG too with the feature `png`, which brings a subset of `DejaVu Sans` so that no font has to be
//! installed. Colours are Okabe and Ito's (2008), which colour-blind readers tell apart.

mod budget;
mod costs;
mod heat;
mod latency;
mod over_time;
mod plan;
mod results;
mod scale;
mod sources;
mod sweep;
mod tradeoff;
mod ways;

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

pub use budget::BudgetCurve;
pub use costs::{CostByTurn, CostDistribution};
pub use heat::HeatMap;
pub use latency::TailCurve;
pub use plan::HockeyStick;
pub use results::{Drawing, Results, STEMS, question};
pub use sources::MoneyBySource;
pub use sweep::{SweepLine, SweepLines};
pub use tradeoff::{TradeLine, TradeOff};
pub use ways::{Way, WaysSideBySide};

use crate::Error;

const SIZE: (u32, u32) = (800, 480);
const BLUE: RGBColor = RGBColor(0, 114, 178);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
/// The colours of lines, and how often they come again.
const COLOURS: [RGBColor; 6] =
    [BLUE, ORANGE, RGBColor(0, 158, 115), RGBColor(204, 121, 167), RGBColor(230, 159, 0), RGBColor(86, 180, 233)];
const GREY: RGBColor = RGBColor(90, 90, 90);
const LIGHT: RGBColor = RGBColor(225, 225, 225);
const FONT: &str = "sans-serif";

type Outcome<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// Spots of a picture at which a figure stands, in pixels, with the figure as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spots(pub Vec<(i32, i32, String)>);

impl Spots {
    fn add(&mut self, at: (i32, i32), text: impl Into<String>) {
        self.0.push((at.0, at.1, text.into()));
    }
}

/// Something that can be drawn on any surface.
pub trait Chart {
    /// Draws it, 800 by 480, and says at which spots which figures stand.
    ///
    /// # Errors
    /// What the surface says.
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB>;
}

/// A picture that was written.
#[derive(Debug)]
pub struct Drawn {
    /// Its files.
    pub files: Vec<PathBuf>,
    /// What the SVG holds, and its spots.
    pub svg: String,
    /// See `svg`.
    pub spots: Spots,
}

/// Writes `stem.svg`, and `stem.png` where the feature is on; returns what was written.
///
/// # Errors
/// Where a file can't be drawn or written.
pub fn write(chart: &impl Chart, folder: &Path, stem: &str) -> Result<Vec<PathBuf>, Error> {
    Ok(write_drawn(chart, folder, stem)?.files)
}

/// The same, with the picture at hand.
fn write_drawn(chart: &impl Chart, folder: &Path, stem: &str) -> Result<Drawn, Error> {
    register_font();
    let (mut svg, mut spots) = (String::new(), Spots::default());
    let path = folder.join(format!("{stem}.svg"));
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        chart.draw(&area, &mut spots).and_then(|()| area.present()).map_err(|e| failed(&path, &e))?;
    }
    std::fs::write(&path, &svg).map_err(|e| failed(&path, &e))?;
    let mut files = vec![path];
    #[cfg(feature = "png")]
    {
        let png = folder.join(format!("{stem}.png"));
        {
            let area = BitMapBackend::new(&png, SIZE).into_drawing_area();
            chart.draw(&area, &mut Spots::default()).and_then(|()| area.present()).map_err(|e| failed(&png, &e))?;
        }
        files.push(png);
    }
    Ok(Drawn { files, svg, spots })
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Chart { path: path.to_owned(), message: error.to_string() }
}

fn register_font() {
    #[cfg(feature = "png")]
    {
        // a second registration replaces the first with the same font
        let font = include_bytes!("font/DejaVuSans-latin.ttf");
        let _ = plotters::style::register_font(FONT, FontStyle::Normal, font);
    }
}

/// A title with a line under it that says what is drawn.
fn titled<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    title: &str,
    subtitle: &str,
) -> Result<DrawingArea<DB, Shift>, DrawingAreaErrorKind<DB::ErrorType>> {
    area.fill(&WHITE)?;
    area.draw(&Text::new(shortened(title, 80), (20, 14), (FONT, 19).into_font().color(&BLACK)))?;
    area.draw(&Text::new(shortened(subtitle, 115), (20, 40), (FONT, 14).into_font().color(&GREY)))?;
    Ok(area.margin(66, 8, 8, 28))
}

/// The names of the lines, at the upper left where most curves are low, or where the caller knows better.
fn legend<'a, DB: DrawingBackend + 'a, X: Ranged>(
    chart: &mut ChartContext<'a, DB, Cartesian2d<X, RangedCoordf64>>,
    position: SeriesLabelPosition,
) -> Outcome<DB> {
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .label_font((FONT, 14))
        .margin(8)
        .draw()
}

/// The grid of a chart whose rows are named by hand.
fn rows_mesh<DB: DrawingBackend>(
    chart: &mut ChartContext<'_, DB, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
    x_name: &str,
    shown: fn(f64) -> String,
) -> Outcome<DB> {
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LIGHT)
        .axis_style(GREY)
        .x_desc(x_name)
        .x_labels(7)
        .x_label_formatter(&|x| axis(shown(*x)))
        .y_labels(0)
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 13))
        .draw()
}

/// A figure beside an axis, without zeros that say nothing: `$0.1800` → `$0.18`, `14.00 s` → `14 s`.
fn axis(figure: String) -> String {
    let (number, unit) = figure.split_once(' ').map_or((figure.as_str(), ""), |(n, u)| (n, u));
    if !number.contains('.') {
        return figure;
    }
    let number = number.trim_end_matches('0').trim_end_matches('.');
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
