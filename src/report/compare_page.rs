//! The page of a comparison: which way is better and by how much, in what the ways differ, and how sure it is.

use askama::Template as _;

use super::compare::{
    change_text, changes, metric_rows, metric_title, metrics, months, price_sentences, verdict, way_name,
};
use super::fleet::{unanswered_text, watched};
use super::fleets::{lines as fleet_lines, unstable};
use super::head::texts;
use super::html::{assumptions, threshold_alerts};
use super::page::{Alert, Cell, Figure, Page, Section, Table, shown, two_lines};
use super::wording::{checks_sentence, sessions_text};
use crate::scenario::Scenario;
use crate::simulate::{Comparison, FleetComparison};

/// The page of several ways on the same sessions.
///
/// # Errors
/// Never for a finished comparison; the template engine's signature has an error.
pub fn compare_html(comparison: &Comparison, figures: Vec<Figure>) -> Result<String, std::fmt::Error> {
    let Some(first) = comparison.answers.first() else { return Ok(String::new()) };
    let scenario = &first.scenario;
    let scenarios: Vec<Scenario> = comparison.answers.iter().map(|answer| answer.scenario.clone()).collect();
    let page = Page {
        title: scenario.title.clone(),
        about: format!(
            "{} · {} ways, the same {}, seed {}",
            scenario.file,
            comparison.answers.len(),
            sessions_text(scenario, first.summary.sessions),
            scenario.run.seed
        ),
        version: env!("CARGO_PKG_VERSION"),
        verdict: Vec::new(),
        alerts: alerts(comparison),
        sections: vec![figures_of(comparison), differences(comparison), sure(comparison), assumptions(first)],
        figures: figures.into_iter().map(shown).collect(),
        scenario: texts(&scenarios),
        sets: scenario.sets.clone(),
    };
    page.render().map_err(|_| std::fmt::Error)
}

/// The page of several fleets side by side.
///
/// # Errors
/// Never for a finished comparison; the template engine's signature has an error.
pub fn fleets_html(comparison: &FleetComparison, figures: Vec<Figure>) -> Result<String, std::fmt::Error> {
    let first = comparison.ways.iter().find_map(|way| way.answer.as_ref().ok());
    let base = comparison.ways.first().map_or("", |way| way.name.as_str());
    let mut alerts = Vec::new();
    for way in &comparison.ways {
        let name = &way.name;
        alerts.extend(unstable(way).map(|why| Alert { kind: "bad", text: format!("{name}: {why}") }));
        if let Ok(answer) = &way.answer {
            let kind = if answer.checks.all_pass() { "good" } else { "bad" };
            alerts.push(Alert {
                kind,
                text: format!("{name}: {}", checks_sentence(answer, "`agent-sim check` says why")),
            });
            alerts
                .extend(unanswered_text(answer).map(|text| Alert { kind: "warning", text: format!("{name}: {text}") }));
            alerts.extend(
                threshold_alerts(answer).map(|alert| Alert { text: format!("{name}: {}", alert.text), ..alert }),
            );
        }
    }
    let mut figure = String::new();
    let row = |[name, way, value, difference]: [String; 4]| {
        if !name.is_empty() {
            figure = name;
        }
        vec![Cell::text(&figure), Cell::text(way), two_lines(value), two_lines(difference)]
    };
    let table = Table {
        caption: "Every figure of every way".to_owned(),
        header: ["figure", "way", "value", &format!("beyond {base}")].map(str::to_owned).to_vec(),
        rows: fleet_lines(comparison).into_iter().map(row).collect(),
        folded: false,
    };
    let section = Section {
        id: "figures",
        title: "Figures".to_owned(),
        lead: "Differences replication by replication, on the same arrivals and draws, with their 95 % intervals. ? is undecided."
            .to_owned(),
        lines: Vec::new(),
        tables: vec![table],
    };
    let about = first.map(|first| {
        let watched = first.fleet_summary().map_or_else(String::new, watched);
        let scenario = &first.scenario;
        format!("{} · {watched}, on the same arrivals and draws, seed {}", scenario.file, scenario.run.seed)
    });
    let answers: Vec<Scenario> =
        comparison.ways.iter().filter_map(|way| Some(way.answer.as_ref().ok()?.scenario.clone())).collect();
    let page = Page {
        title: first.map_or("Several fleets", |first| first.scenario.title.as_str()).to_owned(),
        about: about.unwrap_or_else(|| "none of the ways could be played".to_owned()),
        version: env!("CARGO_PKG_VERSION"),
        verdict: Vec::new(),
        alerts,
        sections: std::iter::once(section).chain(first.map(assumptions)).collect(),
        figures: figures.into_iter().map(shown).collect(),
        scenario: texts(&answers),
        sets: first.map(|first| first.scenario.sets.clone()).unwrap_or_default(),
    };
    page.render().map_err(|_| std::fmt::Error)
}

fn alerts(comparison: &Comparison) -> Vec<Alert> {
    let mut alerts: Vec<Alert> = comparison
        .pairs
        .iter()
        .map(|pair| {
            let is_decided = pair.metrics.first().is_some_and(|(_, paired)| paired.is_decided());
            Alert { kind: if is_decided { "good" } else { "warning" }, text: verdict(comparison, pair) }
        })
        .collect();
    for (way, answer) in comparison.answers.iter().enumerate() {
        let name = way_name(comparison, way);
        alerts.extend(threshold_alerts(answer).map(|alert| Alert { text: format!("{name}: {}", alert.text), ..alert }));
        if !answer.checks.all_pass() {
            alerts.push(Alert { kind: "bad", text: format!("{name}: {}", checks_sentence(answer, "")) });
        }
    }
    alerts
}

fn figures_of(comparison: &Comparison) -> Section {
    let against = format!("beyond {}", way_name(comparison, 0));
    let mut tables = Vec::new();
    let months = months(comparison);
    if !months.is_empty() {
        let row = |(way, bill, difference): (String, String, String)| {
            vec![Cell::text(way), two_lines(bill), two_lines(difference)]
        };
        tables.push(Table {
            caption: "A month".to_owned(),
            header: vec!["way".to_owned(), "per month".to_owned(), against.clone()],
            rows: months.into_iter().map(row).collect(),
            folded: false,
        });
    }
    for metric in metrics(comparison) {
        let (title, less) = metric_title(metric);
        let name = metric.quantity().name();
        let mean = |way: &str| {
            let at = (0..comparison.answers.len()).find(|index| way_name(comparison, *index) == way)?;
            Some(comparison.answers.get(at)?.summary.metric(name)?.mean.value)
        };
        let row = |row: [String; 7]| {
            let sort = mean(&row[0]);
            row.into_iter()
                .enumerate()
                .map(|(column, text)| if column == 1 { Cell { sort, ..Cell::text(text) } } else { two_lines(text) })
                .collect()
        };
        let header = ["way", "mean", &against, "ratio", less, "at p50", "at p99"].map(str::to_owned).to_vec();
        tables.push(Table {
            caption: title.to_owned(),
            header,
            rows: metric_rows(comparison, metric).into_iter().map(row).collect(),
            folded: false,
        });
    }
    Section {
        id: "figures",
        title: "Figures".to_owned(),
        lead: "Differences are taken session by session, on the same turns, outputs, latencies and failures; below each its 95 % \
               interval. ? marks one whose interval covers zero: undecided."
            .to_owned(),
        lines: Vec::new(),
        tables,
    }
}

fn differences(comparison: &Comparison) -> Section {
    let mut rows = Vec::new();
    for pair in &comparison.pairs {
        let way = way_name(comparison, pair.way);
        for change in changes(comparison, pair.way) {
            rows.push(vec![Cell::text(&way), Cell::text(change_text(&change))]);
        }
    }
    Section {
        id: "differences",
        title: "What differs".to_owned(),
        lead: "Everything else is the same, and stands among the assumptions.".to_owned(),
        lines: Vec::new(),
        tables: vec![Table {
            caption: format!("Keys in which a way differs from {}", way_name(comparison, 0)),
            header: ["way", "key: from → to"].map(str::to_owned).to_vec(),
            rows,
            folded: false,
        }],
    }
}

fn sure(comparison: &Comparison) -> Section {
    let ways = comparison.answers.iter().enumerate();
    let lines =
        ways.map(|(way, answer)| (way_name(comparison, way), checks_sentence(answer, "`agent-sim check` says why")));
    let prices = price_sentences(comparison).into_iter().map(|text| ("prices".to_owned(), text));
    Section {
        id: "sure",
        title: "How sure".to_owned(),
        lead: "Each way against the closed forms that apply to it.".to_owned(),
        lines: lines.chain(prices).collect(),
        tables: Vec::new(),
    }
}
