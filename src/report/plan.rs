//! How much capacity is enough.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::figures::legend;
use super::fleet::unsettled_text;
use super::format::{key_heading, number, percent, seconds, whole};
use super::head::{Head, PriceSheet};
use super::wording::value;
use crate::model::Model;
use crate::simulate::{Found, Kind, Plan, Planned, Unsettled};
use crate::stats::{Bottleneck, Figure, Place, Reading};

/// A figure of a fleet as a person reads it.
pub fn figure_shown(figure: Figure, x: f64) -> String {
    match figure.unit() {
        Some(unit) => value(unit, x),
        None if figure.is_share() => percent(x),
        None => super::format::count(x),
    }
}

/// A value of the key.
fn key_value(plan: &Plan, x: f64) -> String {
    match plan.kind {
        Some(Kind::Whole) => whole(x.round().max(0.0) as u64),
        Some(Kind::Real) => number((x * 1e4).round() / 1e4),
        Some(Kind::Seconds) => seconds(x),
        None => plan.points.get(x as usize).map_or_else(String::new, |point| point.text.clone()),
    }
}

fn goals(plan: &Plan) -> String {
    plan.goals.iter().map(|goal| goal.text.as_str()).collect::<Vec<_>>().join(" and ")
}

fn busy_name(plan: &Plan, busy: Bottleneck) -> String {
    match busy {
        Bottleneck::Station(Place::Model) => "calls of the model".to_owned(),
        other => other.name(&plan.scenario.places).to_owned(),
    }
}

/// How much of something is used; more than all of it where it isn't enough.
fn used_share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// What fills up first: what is busiest where the goals are only just met, or are missed at last.
fn saturates(plan: &Plan) -> Option<String> {
    let at = match &plan.found {
        Found::Least { x, .. } | Found::Most { x, .. } => plan.points.iter().find(|point| point.x.total_cmp(x).is_eq()),
        Found::Nowhere | Found::Mixed => plan.points.last(),
        Found::First(place) => plan.points.get(*place),
        Found::Everywhere => plan.points.first(),
    }?;
    let (busy, share) = at.busiest?;
    let used = if matches!(busy, Bottleneck::Limit(_)) { "used up" } else { "busy" };
    let fleet = plan.scenario.model.fleet.as_ref();
    let is_steady = fleet.is_none_or(|fleet| fleet.arrivals.is_steady());
    let used = if is_steady { used.to_owned() } else { format!("{used} at its peak") };
    Some(format!("{} fills up first: {} {used} at {}", busy_name(plan, busy), used_share(share), key_value(plan, at.x)))
}

/// Whether the fleet may settle, and hadn't yet.
fn hasnt_settled(point: &Planned) -> bool {
    point.unsettled.as_ref().is_some_and(|unsettled| !unsettled.is_unstable())
}

/// The answer in one sentence.
fn sentence(plan: &Plan) -> String {
    let (key, goals) = (&plan.key, goals(plan));
    let surely = |between: &[Option<f64>; 2], below: &str, above: &str| {
        let low = between[0].map(|x| format!("{} surely {below}", key_value(plan, x)));
        let high = between[1].map(|x| format!("{} surely {above}", key_value(plan, x)));
        match (low, high) {
            (Some(low), Some(high)) => format!(" ({low}, {high})"),
            (Some(one), None) | (None, Some(one)) => {
                format!(" ({one}; how far the doubt goes on the other side isn't known in this range)")
            }
            (None, None) => " (within the whole range chance leaves it open)".to_owned(),
        }
    };
    match &plan.found {
        Found::Least { x, between } => {
            format!("The least {key} for {goals} is {}{}", key_value(plan, *x), surely(between, "isn't enough", "is"))
        }
        Found::Most { x, between } => {
            format!("The most {key} with {goals} is {}{}", key_value(plan, *x), surely(between, "is bearable", "isn't"))
        }
        Found::Everywhere => format!("{goals} holds at every {key} that was tried"),
        Found::Nowhere if plan.points.iter().all(hasnt_settled) => {
            format!("Whether {goals} holds isn't known: the fleet hadn't settled at any {key} that was tried")
        }
        Found::Nowhere => format!("{goals} holds at no {key} that was tried"),
        Found::First(place) => format!("From {} on {goals} holds", key_value(plan, *place as f64)),
        Found::Mixed => format!("{goals} holds at some {key} of the list, and not at its last"),
    }
}

/// What sessions miss without anybody to wait for, so that no capacity makes up for it.
fn missed_alone(plan: &Plan) -> Option<String> {
    let cached = if may_cache(&plan.scenario.model) { " with tools and system cached at every call" } else { "" };
    let shown = |(place, reading): &(usize, Reading)| {
        let goal = plan.goals.get(*place)?;
        Some((goal.text.as_str(), cell(goal.figure, Some(reading))))
    };
    let missed: Vec<_> = plan.missed_alone.iter().filter_map(shown).collect();
    let width = missed.iter().map(|(goal, _)| goal.chars().count()).max()?;
    let mut out = format!("Missed without any waiting too, by sessions played one by one{cached}:\n");
    for (goal, figure) in missed {
        let _ = writeln!(out, "  {goal:width$}  {figure}");
    }
    out.push_str("Change what a session does, or the goal.");
    Some(out)
}

/// Whether any of its calls, its agents' or the small model's can find something cached.
fn may_cache(model: &Model) -> bool {
    let cached = |model: &Model| model.any_in_tree(&|model| model.cache.enabled);
    cached(model) || model.routing.as_ref().is_some_and(|routing| cached(&routing.small))
}

fn cell(figure: Figure, reading: Option<&Reading>) -> String {
    let Some(Reading { value, ci95: [low, high], too_few }) = reading else { return "–".to_owned() };
    let mark = if *too_few { " ?" } else { "" };
    let interval = if high > low {
        format!("  ({} … {})", figure_shown(figure, *low), figure_shown(figure, *high))
    } else {
        String::new()
    };
    format!("{}{mark}{interval}", figure_shown(figure, *value))
}

fn verdict(point: &Planned) -> &'static str {
    match (point.unsettled.as_ref().map(Unsettled::is_unstable), point.meets(), point.surely()) {
        (Some(true), ..) => "unstable",
        (Some(false), ..) => "not settled",
        (_, true, Some(_)) => "met",
        (_, true, None) => "met ?",
        (_, false, Some(_)) => "missed",
        (_, false, None) => "missed ?",
    }
}

/// Calls that are turned away make a fleet look fast: said of values that meet the goals nevertheless, unless a goal asks for it.
fn turned_away(plan: &Plan) -> Option<String> {
    let asks = |goal: &crate::stats::Goal| {
        let name = goal.figure.name(&plan.scenario.places);
        name.ends_with("turned_away") || ["answered", "call_success", "availability"].contains(&name.as_str())
    };
    if plan.goals.iter().any(asks) {
        return None;
    }
    let among = plan.points.iter().filter(|point| point.meets());
    let at = among.filter_map(|point| Some((point, point.turned_away?)));
    let (point, (place, share)) = at.max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    let name = place.name(&plan.scenario.places);
    Some(format!(
        "At {} {} of the calls of {name} are turned away, and sessions that go on without them are fast and cheap: add a goal \
         such as `call_success >= 0.99` or `{name}.turned_away <= 0.01`.",
        key_value(plan, point.x),
        percent(share)
    ))
}

/// For a person.
pub fn plan_terminal(plan: &Plan, style: Style) -> String {
    let mut out = String::new();
    let scenario = &plan.scenario;
    let _ = writeln!(out, "{}", style.heading(&scenario.title));
    let fleet = scenario.model.fleet.as_ref();
    let replications = fleet.map_or(0, |fleet| fleet.replications);
    let _ = writeln!(
        out,
        "{}\n",
        style.faint(&format!(
            "{} · {} replications at each value, on the same arrivals and draws, seed {}",
            scenario.file,
            whole(replications),
            scenario.run.seed
        ))
    );
    let answer = sentence(plan);
    let found = !matches!(plan.found, Found::Nowhere | Found::Mixed);
    let _ = writeln!(out, "{}", if found { style.good(&answer) } else { style.bad(&answer) });
    if let Some(text) = missed_alone(plan) {
        let _ = writeln!(out, "{}", style.warning(&text));
    }
    if !plan.is_missed_alone()
        && let Some(text) = saturates(plan)
    {
        let _ = writeln!(out, "{text}");
    }
    if plan.is_mixed() {
        let text = "Farther away it holds and fails by turns. Sessions and calls that fail early can make a figure small: add a\n\
                    goal such as `answered >= 0.99` or `NAME.turned_away <= 0.01`.";
        let _ = writeln!(out, "{}", style.warning(text));
    }
    if let Some(text) = turned_away(plan) {
        let _ = writeln!(out, "{}", style.warning(&text));
    }
    let mut rows = style.table([""; 8], 0..0);
    let mut header = vec![key_heading(&plan.key)];
    header.extend(plan.goals.iter().map(|goal| goal.figure.name(&scenario.places)));
    header.extend(["busiest".to_owned(), String::new()]);
    rows.set_header(header);
    for point in &plan.points {
        let mut cells = vec![if plan.kind.is_some() { key_value(plan, point.x) } else { point.text.clone() }];
        cells.extend(
            plan.goals.iter().zip(&point.goals).map(|(goal, (reading, _))| cell(goal.figure, reading.as_ref())),
        );
        cells.push(
            point
                .busiest
                .map_or_else(String::new, |(busy, share)| format!("{} {}", busy_name(plan, busy), used_share(share))),
        );
        cells.push(verdict(point).to_owned());
        rows.add_row(cells);
    }
    let _ = writeln!(out, "\n{}", style.whole_words(rows));
    let note = "In brackets 95 % intervals over replications. ?  the interval reaches over the bound, or too few sessions lie beyond the percentile.";
    let _ = writeln!(out, "{}", style.faint(note));
    for text in legend(plan.goals.iter().map(|goal| (goal.figure.name(&scenario.places), &goal.figure))) {
        let _ = writeln!(out, "{}", style.faint(&text));
    }
    let unsettled = |point: &Planned| Some((key_value(plan, point.x), unsettled_text(point.unsettled.as_ref()?)));
    if let Some((at, why)) = plan.points.iter().find_map(unsettled) {
        let _ = writeln!(out, "{}", style.faint(&format!("At {at}: {why}.")));
    }
    out
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    key: &'a str,
    #[serde(rename = "for")]
    goals: Vec<&'a str>,
    /// "least", "most", "everywhere", "nowhere", "first" or "mixed".
    found: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<serde_json::Value>,
    /// Between them it isn't sure.
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<[Option<f64>; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saturates_first: Option<String>,
    points: Vec<PointReport>,
    /// Where no value is enough: figures that miss their goals even of sessions played one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed_alone: Vec<AloneReport>,
    price_sheet: PriceSheet,
}

#[derive(Serialize)]
struct PointReport {
    value: serde_json::Value,
    figures: Vec<FigureReport>,
    meets: bool,
    /// Whether that is sure.
    sure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unstable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busiest: Option<BusyReport>,
}

#[derive(Serialize)]
struct FigureReport {
    name: String,
    got: Option<f64>,
    ci95: Option<[f64; 2]>,
    pass: bool,
    undecided: bool,
}

#[derive(Serialize)]
struct AloneReport {
    name: String,
    got: f64,
    ci95: [f64; 2],
}

#[derive(Serialize)]
struct BusyReport {
    of: String,
    share: f64,
}

/// JSON, with a final line break.
///
/// # Errors
/// Never for a finished plan; the serialiser's signature has an error.
pub fn plan_json(plan: &Plan) -> Result<String, serde_json::Error> {
    let value_of = |point: &Planned| -> serde_json::Value {
        if plan.kind.is_some() { point.x.into() } else { point.text.clone().into() }
    };
    let (found, value, between) = match &plan.found {
        Found::Least { x, between } => ("least", Some((*x).into()), Some(*between)),
        Found::Most { x, between } => ("most", Some((*x).into()), Some(*between)),
        Found::Everywhere => ("everywhere", None, None),
        Found::Nowhere => ("nowhere", None, None),
        Found::Mixed => ("mixed", None, None),
        Found::First(place) => ("first", plan.points.get(*place).map(value_of), None),
    };
    let point = |point: &Planned| PointReport {
        value: value_of(point),
        figures: plan
            .goals
            .iter()
            .zip(&point.goals)
            .map(|(goal, (reading, verdict))| FigureReport {
                name: goal.figure.name(&plan.scenario.places),
                got: reading.map(|reading| reading.value),
                ci95: reading.map(|reading| reading.ci95),
                pass: verdict.pass,
                undecided: verdict.undecided,
            })
            .collect(),
        meets: point.meets(),
        sure: point.surely().is_some(),
        unstable: point.unsettled.as_ref().map(unsettled_text),
        busiest: point.busiest.map(|(busy, share)| BusyReport { of: busy_name(plan, busy), share }),
    };
    let alone = |(place, reading): &(usize, Reading)| {
        let name = plan.goals.get(*place)?.figure.name(&plan.scenario.places);
        Some(AloneReport { name, got: reading.value, ci95: reading.ci95 })
    };
    let report = Report {
        head: Head::of("agent-sim.plan/1", &plan.scenario, 0),
        key: &plan.key,
        goals: plan.goals.iter().map(|goal| goal.text.as_str()).collect(),
        found,
        value,
        between,
        saturates_first: saturates(plan),
        points: plan.points.iter().map(point).collect(),
        missed_alone: plan.missed_alone.iter().filter_map(alone).collect(),
        price_sheet: PriceSheet::of(plan.scenario.price_sheet()),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
