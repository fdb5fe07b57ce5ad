//! What a budget stops, by its amount.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{BLUE, Chart, FONT, GREY, LIGHT, ORANGE, Outcome, Spots, axis, titled};
use crate::report::{money, percent};

/// "How large does a budget have to be?"
#[derive(Debug, Clone)]
pub struct BudgetCurve {
    /// Title of the scenario.
    pub title: String,
    /// Sessions that were played.
    pub sessions: String,
    /// (budget in $, share of the sessions that it stops), rising.
    pub curve: Vec<(f64, f64)>,
    /// What lets a share of the sessions through: (share, $).
    pub needed: Vec<(f64, f64)>,
}

impl Chart for BudgetCurve {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, spots: &mut Spots) -> Outcome<DB> {
        let about = format!(
            "share of {} sessions that a budget stops, where the worst case of each call has to fit before it",
            self.sessions
        );
        let plot = titled(area, &self.title, &about)?;
        let left = self.curve.first().map_or(0.01, |point| point.0).max(1e-9);
        let right = self.curve.last().map_or(1.0, |point| point.0).max(left * 2.0);
        let mut builder = ChartBuilder::on(&plot);
        builder.x_label_area_size(44).y_label_area_size(76);
        // a logarithmic axis needs room for its powers of ten
        if right / left > 30.0 {
            self.fill(builder.build_cartesian_2d((left..right).log_scale(), 0.0..1.05)?, " (logarithmic)", spots)
        } else {
            self.fill(builder.build_cartesian_2d(left..right, 0.0..1.05)?, "", spots)
        }
    }
}

impl BudgetCurve {
    fn fill<DB, X>(
        &self,
        mut chart: ChartContext<'_, DB, Cartesian2d<X, RangedCoordf64>>,
        axis_note: &str,
        spots: &mut Spots,
    ) -> Outcome<DB>
    where
        DB: DrawingBackend,
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LIGHT)
            .axis_style(GREY)
            .x_desc(format!("budget of a session, dollars{axis_note}"))
            .y_desc("sessions that it stops")
            .x_label_formatter(&|x| axis(money(*x)))
            .y_label_formatter(&|y| format!("{:.0} %", y * 100.0))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 13))
            .draw()?;
        chart.draw_series(LineSeries::new(self.curve.iter().copied(), BLUE.stroke_width(2)))?;
        for (usd, stopped) in &self.curve {
            spots.add(chart.backend_coord(&(*usd, *stopped)), format!("{} stops {}", money(*usd), percent(*stopped)));
        }
        for (index, (share, usd)) in self.needed.iter().enumerate() {
            // each higher than the last, so that no label meets another's line
            let height = 0.44 + 0.13 * index as f64;
            chart.draw_series([PathElement::new([(*usd, 0.0), (*usd, height)], ORANGE.stroke_width(1))])?;
            let label = format!("{} through: {}", axis(percent(*share)), money(*usd));
            let wide = 7 * label.chars().count() as i32;
            let room = chart.backend_coord(&(*usd, 0.0)).0 - chart.plotting_area().get_pixel_range().0.start;
            let shift = if room > wide + 10 { -wide - 6 } else { 6 };
            let text = Text::new(label, (shift, 0), (FONT, 14).into_font().color(&BLACK));
            chart.draw_series([EmptyElement::at((*usd, height)) + text])?;
        }
        Ok(())
    }
}
