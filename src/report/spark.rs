//! Small pictures in a line of text.

use super::format::{money, seconds};
use crate::simulate::Answer;
use crate::stats::{Metric, Quantity, differ_by_magnitudes, steps};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each value, from nothing to the largest.
fn bars(values: &[f64]) -> String {
    let top = values.iter().copied().fold(0.0, f64::max);
    let level = |x: f64| if top > 0.0 { (x / top * 7.0).round().clamp(0.0, 7.0) as usize } else { 0 };
    values.iter().filter_map(|x| LEVELS.get(level(*x))).collect()
}

/// At most so many values, each the mean of its neighbours.
fn thinned(values: &[f64], most: usize) -> Vec<f64> {
    let most = most.max(1);
    if values.len() <= most {
        return values.to_vec();
    }
    let edge = |index: usize| index * values.len() / most;
    let mean = |index: usize| {
        let piece = &values[edge(index)..edge(index + 1)];
        piece.iter().sum::<f64>() / piece.len().max(1) as f64
    };
    (0..most).map(mean).collect()
}

/// What each call of a session costs, from the first to the last.
pub(super) fn calls(answer: &Answer, columns: usize) -> Option<String> {
    answer.scenario.model.tariff.as_ref()?;
    let costs = answer.sample.turn_costs_usd();
    let top = costs.iter().copied().fold(0.0, f64::max);
    if costs.len() < 3 || top <= 0.0 {
        return None;
    }
    let ends = format!("{} … {}", money(*costs.first()?), money(*costs.last()?));
    let fees = if answer.summary.metric("cost_tools_usd").is_some() { ", without tool fees" } else { "" };
    Some(format!("{}  {ends} in {} calls{fees}", bars(&thinned(&costs, columns)), costs.len()))
}

/// How far apart sessions are: a bar for each of equal steps between the percentiles 0.5 and 99.5.
pub(super) fn spread(answer: &Answer, quantity: Quantity, columns: usize) -> Option<String> {
    let metric = Metric::of(quantity).filter(|metric| metric.applies(&answer.scenario.model))?;
    let mut values = answer.sample.values(metric)?;
    if values.len() < 100 {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 200;
    let shown = &values[cut..values.len() - cut];
    let (low, high) = (*shown.first()?, *shown.last()?);
    if high <= low {
        return None;
    }
    let by_ratio = differ_by_magnitudes(low, high);
    let counts: Vec<f64> = steps(shown, columns.max(8), by_ratio).into_iter().map(|(.., count)| count as f64).collect();
    let shown = if quantity == Quantity::CostUsd { money } else { seconds };
    let scale = if by_ratio { ", log scale" } else { "" };
    Some(format!("{}  {} … {}{scale}, 99 % of all", bars(&counts), shown(low), shown(high)))
}
