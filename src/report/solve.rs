//! Where two figures are equal.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::format::{number, percent, seconds, whole};
use super::head::{Head, PriceSheet};
use super::prices::sheet_line;
use super::sweep::{shown, signed};
use super::wording::sessions_text;
use crate::price::lifetime_label;
use crate::simulate::{Crossing, Kind, Point, Solution};
use crate::stats::Statistic;

/// A value of the key.
fn key_value(solution: &Solution, x: f64) -> String {
    match solution.unknown.kind {
        Kind::Whole => whole(x.round().max(0.0) as u64),
        Kind::Real => number(x),
        Kind::Seconds => seconds(x),
    }
}

fn figure(solution: &Solution, x: f64) -> String {
    solution.question.statistic().map_or_else(|| number(x), |statistic| shown(statistic, x))
}

/// Left less right, with its interval where chance leaves one.
fn difference(solution: &Solution, point: &Point) -> String {
    let Some(statistic) = solution.question.statistic() else { return number(point.difference.value) };
    let estimate = &point.difference;
    let text = signed(statistic, estimate.value);
    if estimate.se > 0.0 && estimate.ci95[0].is_finite() {
        format!("{text}  ({} … {})", signed(statistic, estimate.ci95[0]), signed(statistic, estimate.ci95[1]))
    } else {
        text
    }
}

fn labels(solution: &Solution) -> [&str; 2] {
    let [left, right] = &solution.question.sides;
    [left.label(), right.label()]
}

fn larger(sign: i8) -> &'static str {
    match sign {
        1 => "larger",
        -1 => "smaller",
        _ => "the same",
    }
}

/// What changes where.
fn change(solution: &Solution, crossing: &Crossing) -> String {
    let [left, right] = labels(solution);
    let [before, after] = crossing.signs.map(larger);
    let key = &solution.unknown.key;
    let (low, at) = (key_value(solution, crossing.between[0]), key_value(solution, crossing.x));
    if solution.unknown.kind == Kind::Whole && !crossing.is_exact() {
        format!("up to {key} = {low} {left} is {before} than {right}, from {at} on it is {after}")
    } else {
        format!("below it {left} is {before} than {right}, above it is {after}")
    }
    .replace("the same than", "the same as")
}

fn interval(solution: &Solution, crossing: &Crossing) -> String {
    let [low, high] = crossing.ci95;
    let unknown = &solution.unknown;
    let low_text =
        if low.is_finite() { key_value(solution, low) } else { format!("below {}", key_value(solution, unknown.low)) };
    let high_text = if high.is_finite() {
        key_value(solution, high)
    } else {
        format!("above {}", key_value(solution, unknown.high))
    };
    if low.to_bits() == high.to_bits() || (low_text == high_text && crossing_is_fixed(solution, crossing)) {
        "chance leaves no doubt of it".to_owned()
    } else if low_text == high_text {
        "within the digits that are shown".to_owned()
    } else {
        format!("{low_text} … {high_text}")
    }
}

/// Whether chance leaves nothing open on either side of a crossing.
fn crossing_is_fixed(solution: &Solution, crossing: &Crossing) -> bool {
    let fixed = |x: f64| solution.points.iter().any(|point| (point.x - x).abs() <= 0.0 && point.difference.se <= 0.0);
    crossing.between.into_iter().all(fixed)
}

/// Where sessions don't all end with their answer: a figure is then of sessions that broke off too.
fn broken_off(solution: &Solution) -> Option<String> {
    let by = |a: &&Point, b: &&Point| a.answered.total_cmp(&b.answered);
    let (least, most) = (solution.points.iter().min_by(by)?, solution.points.iter().max_by(by)?);
    if least.answered >= 1.0 {
        return None;
    }
    let at = |point: &Point| format!("{} at {}", percent(point.answered), key_value(solution, point.x));
    Some(format!(
        "Not all sessions end with their answer: from {} to {}. The figures are of all sessions, also of those that broke off.",
        at(most),
        at(least)
    ))
}

/// Whether a value belongs into the table: one of those that were tried first, or beside a crossing.
fn is_shown(solution: &Solution, x: f64) -> bool {
    let is = |y: f64| (x - y).abs() <= 0.0;
    let beside = |crossing: &Crossing| {
        let [low, high] = crossing.ci95;
        let last = solution.points.iter().map(|point| point.x).filter(|y| *y <= low).fold(f64::NAN, f64::max);
        let next = solution.points.iter().map(|point| point.x).filter(|y| *y >= high).fold(f64::NAN, f64::min);
        crossing.between.into_iter().chain([crossing.x, last, next]).any(is)
    };
    solution.unknown.first_values().into_iter().any(is)
        || solution.crossings.iter().any(beside)
        || (solution.crossings.is_empty() && nearest(solution).is_some_and(|point| is(point.x)))
}

/// What it takes for a longer lifetime to pay.
fn gaps(crossing: &Crossing) -> Option<String> {
    let (share, seen, [short, long]) = crossing.gaps.as_ref()?;
    let label = |s: &f64| lifetime_label(s.round() as u64);
    Some(format!(
        "{} pays where more than {} of the gaps outlast {} (cache.lifetime_break_even); here {} did",
        label(long),
        percent(*share),
        label(short),
        percent(seen.value)
    ))
}

/// Where the difference is smallest, for a question without an answer.
fn nearest(solution: &Solution) -> Option<&Point> {
    solution.points.iter().min_by(|a, b| a.difference.value.abs().total_cmp(&b.difference.value.abs()))
}

/// The answer as a person reads it.
pub fn solve_terminal(solution: &Solution, style: Style) -> String {
    let mut out = String::new();
    let scenario = &solution.scenario;
    let unknown = &solution.unknown;
    let _ = writeln!(out, "{}", style.heading(&scenario.title));
    let about = format!(
        "{} · {} from {} to {} · the same {} at each value, seed {}",
        scenario.file,
        unknown.key,
        key_value(solution, unknown.low),
        key_value(solution, unknown.high),
        sessions_text(scenario, solution.sessions),
        scenario.run.seed
    );
    let _ = writeln!(out, "{}\n", style.faint(&about));
    let [left, right] = labels(solution);
    for crossing in &solution.crossings {
        let found = format!("{left} = {right} at {} = {}", unknown.key, key_value(solution, crossing.x));
        let _ = writeln!(out, "  {}", style.good(&found));
        let mut line = |label: &str, text: &str| {
            let _ = writeln!(out, "    {label:<16}{text}");
        };
        line("", &change(solution, crossing));
        line("95 % interval", &interval(solution, crossing));
        match crossing.theory {
            Some(x) => line("closed form", &key_value(solution, x)),
            None => line("closed form", "not known here"),
        }
        if let Some(text) = gaps(crossing) {
            line("gaps", &text);
        }
    }
    if let (true, Some(point)) = (solution.crossings.is_empty(), nearest(solution)) {
        let sign = point.difference.value;
        let first = solution.points.first().map_or(sign, |point| point.difference.value);
        let text = if solution.points.iter().all(|point| point.difference.value.abs() <= 0.0) {
            format!("{left} and {right} are the same at every value that was tried")
        } else if solution.points.iter().all(|point| (point.difference.value - first).abs() <= 1e-12 * first.abs()) {
            format!(
                "the difference of {left} and {right} doesn't depend on {}: {}",
                unknown.key,
                difference(solution, point)
            )
        } else {
            let stays = larger(if sign > 0.0 { 1 } else { -1 });
            format!(
                "not at any of the {} values that were tried: {left} is {stays} than {right}, nearest at {} = {}: {}",
                solution.points.len(),
                unknown.key,
                key_value(solution, point.x),
                difference(solution, point)
            )
        };
        let _ = writeln!(out, "  {}", style.warning(&text));
    }
    let _ = writeln!(out);
    let mut grid = style.table([unknown.key.as_str(), left, right, "left less right"], 0..4);
    for point in solution.points.iter().filter(|point| is_shown(solution, point.x)) {
        grid.add_row([
            key_value(solution, point.x),
            figure(solution, point.sides[0]),
            figure(solution, point.sides[1]),
            difference(solution, point),
        ]);
    }
    let _ = writeln!(out, "{}", style.whole_words(grid));
    let how = match solution.question.statistic() {
        Some(Statistic::Rate(_) | Statistic::TurnMean(_) | Statistic::TurnQuantile(..)) => {
            "In brackets the 95 % interval, the two sides' own added up: it is rather too wide than too narrow."
        }
        _ => "In brackets the 95 % interval, of the same sessions.",
    };
    let rest = format!(
        "{how} The interval of an answer is where it covers zero.\n\
         {} values were tried, of which those beside the answer and the first {} are shown; two changes between neighbours\n\
         wouldn't be seen.",
        solution.points.len(),
        unknown.first_values().len()
    );
    let _ = writeln!(out, "{}", style.faint(&rest));
    if let Some(text) = broken_off(solution) {
        let _ = writeln!(out, "{}", style.warning(&text));
    }
    if let Some(x) = solution.wrong_at.first() {
        let text = format!(
            "at {} = {} a closed form DISAGREES with the simulation; `agent-sim check --set {}={}` shows which",
            unknown.key,
            key_value(solution, *x),
            unknown.key,
            unknown.text(*x)
        );
        let _ = writeln!(out, "{}", style.bad(&text));
    }
    if scenario.price.is_some() {
        let _ = writeln!(out, "{}", style.faint(&sheet_line(scenario.price_sheet())));
    }
    out
}

#[derive(Serialize)]
struct SolveReport<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    price_sheet: PriceSheet,
    question: &'a str,
    key: &'a str,
    /// Durations are in seconds.
    range: [f64; 2],
    crossings: Vec<CrossingReport>,
    points: Vec<PointReport>,
    checks_pass: bool,
}

#[derive(Serialize)]
struct CrossingReport {
    value: f64,
    between: [f64; 2],
    /// Null where it goes on beyond the range.
    ci95: [Option<f64>; 2],
    /// Of the left side, against the right one.
    before: &'static str,
    after: &'static str,
    closed_form: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifetime_break_even: Option<BreakEven>,
}

#[derive(Serialize)]
struct BreakEven {
    gap_expired: f64,
    observed: f64,
    observed_ci95: [f64; 2],
    lifetimes_s: [f64; 2],
}

#[derive(Serialize)]
struct PointReport {
    value: f64,
    left: f64,
    right: f64,
    difference: f64,
    difference_ci95: [Option<f64>; 2],
    answered: f64,
}

fn finite(x: f64) -> Option<f64> {
    Some(x).filter(|x| x.is_finite())
}

/// The answer as JSON, pretty-printed, with a final line break.
///
/// # Errors
/// Never for a finished answer; the serialiser's signature has an error.
pub fn solve_json(solution: &Solution) -> Result<String, serde_json::Error> {
    let crossing = |crossing: &Crossing| CrossingReport {
        value: crossing.x,
        between: crossing.between,
        ci95: crossing.ci95.map(finite),
        before: larger(crossing.signs[0]),
        after: larger(crossing.signs[1]),
        closed_form: crossing.theory,
        lifetime_break_even: crossing.gaps.as_ref().map(|(share, seen, lifetimes_s)| BreakEven {
            gap_expired: *share,
            observed: seen.value,
            observed_ci95: seen.ci95,
            lifetimes_s: *lifetimes_s,
        }),
    };
    let point = |point: &Point| PointReport {
        value: point.x,
        left: point.sides[0],
        right: point.sides[1],
        difference: point.difference.value,
        difference_ci95: point.difference.ci95.map(finite),
        answered: point.answered,
    };
    let scenario = &solution.scenario;
    let report = SolveReport {
        head: Head::of("agent-sim.solve/1", scenario, solution.sessions),
        price_sheet: PriceSheet::of(scenario.price_sheet()),
        question: &solution.question.text,
        key: &solution.unknown.key,
        range: [solution.unknown.low, solution.unknown.high],
        crossings: solution.crossings.iter().map(crossing).collect(),
        points: solution.points.iter().map(point).collect(),
        checks_pass: solution.wrong_at.is_empty(),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
