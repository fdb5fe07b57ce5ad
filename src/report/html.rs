//! One self-contained page: verdict, tables, charts, how sure each figure is, and every assumption.

use askama::Template as _;

use super::checks::z_text;
use super::fleet::{LIMIT_HEADER, STATION_HEADER, growth_text, limit_cells, lines, station_cells, unanswered_text};
use super::format::{money, number, percent};
use super::page::{Alert, Card, Cell, Figure, Page, Section, Table, shown, two_lines};
use super::wording::{
    Part, about, cache_text, checks_sentence, month, month_text, outcome_text, price_sentence, share_with_interval,
    spending, threshold_texts, time_shares, value, with_interval,
};
use crate::simulate::Answer;
use crate::stats::{Rate, TurnMetric, Unit};

/// The page of a run.
///
/// # Errors
/// Never for a finished run; the template engine's signature has an error.
pub fn html(answer: &Answer, figures: Vec<Figure>) -> Result<String, std::fmt::Error> {
    let scenario = &answer.scenario;
    let page = Page {
        title: scenario.title.clone(),
        about: about(answer),
        version: env!("CARGO_PKG_VERSION"),
        verdict: cards(answer),
        alerts: alerts(answer),
        sections: sections(answer),
        figures: figures.into_iter().map(shown).collect(),
        scenario: scenario.text.clone(),
        sets: scenario.sets.clone(),
    };
    page.render().map_err(|_| std::fmt::Error)
}

fn cards(answer: &Answer) -> Vec<Card> {
    let summary = &answer.summary;
    let card = |label: &str, value: String, note: String| Card { label: label.to_owned(), value, note };
    let mut cards = Vec::new();
    let mut metric = |name: &str, label: &str, unit: Unit| {
        let Some(metric) = summary.metric(name) else { return };
        let fixed = metric.min.total_cmp(&metric.max).is_eq();
        let note = if fixed { "in every session".to_owned() } else { interval_note(unit, metric.mean.ci95) };
        cards.push(card(label, value(unit, metric.mean.value), note));
        for p in [0.5, 0.99] {
            if let Some(quantile) = metric.quantile(p).filter(|_| !fixed && unit == Unit::Seconds) {
                let note = if quantile.too_few {
                    "too few sessions lie beyond it".to_owned()
                } else {
                    interval_note(unit, quantile.ci95)
                };
                let label = format!("{label}, {}", crate::stats::quantile_name(p));
                cards.push(card(&label, value(unit, quantile.value), note));
            }
        }
    };
    metric("cost_usd", "cost of a session", Unit::Usd);
    metric("latency_s", "latency", Unit::Seconds);
    metric("herd_calls", "calls until the last client is done", Unit::Count);
    metric("herd_time_s", "until the last client is done", Unit::Seconds);
    if let Some(month) = month(answer) {
        let text = month_text(&month);
        let note = text.split_once(' ').map_or(String::new(), |(_, note)| note.to_owned());
        cards.push(card("cost of a month", money(month.bill.value), note));
    }
    if answer.scenario.model.herd.is_none()
        && let Some(answered) = summary.rate(Rate::Answered)
    {
        let note = interval_note_with(answered.ci95, percent);
        cards.push(card("sessions answered", percent(answered.value), note));
    }
    cards
}

fn interval_note(unit: Unit, ci95: [f64; 2]) -> String {
    interval_note_with(ci95, |x| value(unit, x))
}

fn interval_note_with(ci95: [f64; 2], shown: impl Fn(f64) -> String) -> String {
    let [low, high] = ci95;
    // may be broken behind the dots, not before
    if high > low { format!("{}\u{a0}… {}", shown(low), shown(high)) } else { String::new() }
}

fn alerts(answer: &Answer) -> Vec<Alert> {
    let mut alerts = Vec::new();
    if let Some(growth) = answer.fleet_summary().and_then(|fleet| fleet.growth.as_ref()) {
        alerts.push(Alert { kind: "bad", text: growth_text(answer, growth) });
    }
    alerts.extend(threshold_alerts(answer));
    let kind = if answer.checks.all_pass() { "good" } else { "bad" };
    let sentence = checks_sentence(answer, "the reasons stand below");
    alerts.push(Alert { kind, text: format!("Theory: {sentence}") });
    alerts.extend(unanswered_text(answer).map(|text| Alert { kind: "warning", text }));
    let notes = answer.scenario.notes.iter();
    alerts.extend(notes.map(|note| Alert { kind: "warning", text: format!("Note: {note}") }));
    alerts
}

/// Each threshold, whether it is kept, and how surely.
pub(super) fn threshold_alerts(answer: &Answer) -> impl Iterator<Item = Alert> {
    threshold_texts(answer).into_iter().map(|(pass, sure, text)| {
        let kind = match (pass, sure) {
            (false, _) => "bad",
            (true, true) => "good",
            (true, false) => "warning",
        };
        Alert { kind, text: format!("Threshold: {text}") }
    })
}

fn sections(answer: &Answer) -> Vec<Section> {
    let mut all = vec![figures(answer)];
    if let Some(fleet) = answer.fleet_summary() {
        let cells = |cells: Vec<String>| -> Vec<Cell> { cells.into_iter().map(two_lines).collect() };
        let mut tables = vec![Table {
            caption: "Where sessions meet".to_owned(),
            header: STATION_HEADER.map(str::to_owned).to_vec(),
            rows: fleet.stations.iter().map(|station| cells(station_cells(answer, station))).collect(),
            folded: false,
        }];
        if !fleet.limits.is_empty() {
            tables.push(Table {
                caption: "Provider limits".to_owned(),
                header: LIMIT_HEADER.map(str::to_owned).to_vec(),
                rows: fleet.limits.iter().map(|limit| cells(limit_cells(limit))).collect(),
                folded: false,
            });
        }
        all.push(Section {
            id: "fleet",
            title: "The fleet".to_owned(),
            lead: "Sessions of a fleet aren't independent: intervals come from independent replications.".to_owned(),
            lines: lines(answer, fleet).into_iter().map(|(label, text)| (label.to_owned(), text)).collect(),
            tables,
        });
    }
    let (money_parts, time_parts) = (spending(answer), time_shares(answer));
    if !money_parts.is_empty() || time_parts.len() > 1 {
        let mut tables = Vec::new();
        for (caption, parts) in [("What the money goes to", money_parts), ("Where the time goes", time_parts)] {
            if !parts.is_empty() {
                tables.push(parts_table(caption, parts));
            }
        }
        let lines = cache_text(answer).map(|text| ("input".to_owned(), text)).into_iter().collect();
        let lead = "Means a session; the parts add up to the whole.".to_owned();
        all.push(Section { id: "parts", title: "What it consists of".to_owned(), lead, lines, tables });
    }
    all.push(ended(answer));
    all.push(sure(answer));
    all.push(assumptions(answer));
    all
}

fn parts_table(caption: &str, parts: Vec<Part>) -> Table {
    let row = |part: Part| {
        let bar = Some(format!("{:.1}", part.share * 100.0));
        vec![
            Cell::text(part.label),
            Cell::figure(part.amount, String::new(), part.share),
            Cell { bar, ..Cell::figure(percent(part.share), String::new(), part.share) },
        ]
    };
    Table {
        caption: caption.to_owned(),
        header: ["", "a session", "share"].map(str::to_owned).to_vec(),
        rows: parts.into_iter().map(row).collect(),
        folded: false,
    }
}

fn figures(answer: &Answer) -> Section {
    let summary = &answer.summary;
    let header = ["figure", "mean", "p50", "p90", "p95", "p99", "p99.9"].map(str::to_owned).to_vec();
    let row = |name: &str, about: &str, unit: Unit, metric: &crate::stats::MetricSummary| {
        let fixed = metric.min.total_cmp(&metric.max).is_eq();
        let note = if fixed { "the same in all".to_owned() } else { interval_note(unit, metric.mean.ci95) };
        let mut row = vec![
            Cell { note: about.to_owned(), ..Cell::text(name) },
            Cell::figure(value(unit, metric.mean.value), note, metric.mean.value),
        ];
        for p in [0.5, 0.9, 0.95, 0.99, 0.999] {
            row.push(match metric.quantile(p) {
                Some(q) if fixed => Cell::figure(value(unit, q.value), String::new(), q.value),
                Some(q) if q.too_few => {
                    Cell::figure(format!("{} ?", value(unit, q.value)), "too few beyond".into(), q.value)
                }
                Some(q) => Cell::figure(value(unit, q.value), interval_note(unit, q.ci95), q.value),
                None => Cell::text(""),
            });
        }
        row
    };
    let metrics = summary
        .metrics
        .iter()
        .map(|(metric, figures)| row(metric.quantity().name(), metric.about(), metric.quantity().unit(), figures));
    let turns = summary.turn_metrics.iter().map(|(metric, figures)| {
        let about = match metric {
            TurnMetric::Latency => "One turn with its tools, s",
            TurnMetric::ToolPhase => "One tool phase, s",
            TurnMetric::FirstToken => "Time to the first token of a call, s",
            TurnMetric::Message => "One message until its answer, s",
        };
        row(metric.name(), about, Unit::Seconds, figures)
    });
    let mut tables =
        vec![Table { caption: "Every metric".to_owned(), header, rows: metrics.chain(turns).collect(), folded: false }];
    let rate = |(rate, estimate): &(Rate, crate::stats::Estimate)| {
        let text = if rate.is_at_most_one() { percent(estimate.value) } else { number(estimate.value) };
        let note = interval_note_with(estimate.ci95, if rate.is_at_most_one() { percent } else { number });
        Some(vec![Cell::text(rate.name()?), Cell::figure(text, note, estimate.value)])
    };
    let rates: Vec<Vec<Cell>> = summary.rates.iter().filter_map(rate).collect();
    if !rates.is_empty() {
        tables.push(Table {
            caption: "Rates".to_owned(),
            header: ["rate", "value"].map(str::to_owned).to_vec(),
            rows: rates,
            folded: false,
        });
    }
    Section {
        id: "figures",
        title: "Figures".to_owned(),
        lead:
            "Below each figure its 95 % interval: in 95 of 100 runs with other seeds it holds the model's true value."
                .to_owned(),
        lines: Vec::new(),
        tables,
    }
}

fn ended(answer: &Answer) -> Section {
    let summary = &answer.summary;
    let ended = summary.outcomes.iter().filter(|(_, count)| *count > 0 && answer.scenario.model.herd.is_none());
    let mut lines: Vec<(String, String)> = ended
        .map(|(outcome, count)| {
            let share = *count as f64 / summary.sessions.max(1) as f64;
            let text = format!("{} ({})", super::format::whole(*count), percent(share));
            (outcome_text(*outcome).to_owned(), text)
        })
        .collect();
    if let Some(rate) = summary.rate(Rate::DuplicatesPerCall) {
        lines.push(("tool calls that ran twice".to_owned(), share_with_interval(rate)));
    }
    if let Some(rate) = summary.rate(Rate::CacheHit) {
        lines.push(("input tokens read from the cache".to_owned(), share_with_interval(rate)));
    }
    if let Some(calls) = summary.metric("tool_calls") {
        lines.push(("tool calls a session".to_owned(), with_interval(Unit::Count, &calls.mean)));
    }
    Section { id: "ended", title: "What happened".to_owned(), lead: String::new(), lines, tables: Vec::new() }
}

fn sure(answer: &Answer) -> Section {
    let checks = &answer.checks;
    let check = |check: &crate::check::Check| {
        vec![
            Cell { note: check.formula.clone(), ..Cell::text(format!("{} · {}", check.id, check.of)) },
            Cell::figure(number(check.expected), String::new(), check.expected),
            Cell::figure(number(check.observed), String::new(), check.observed),
            Cell::figure(z_text(check), String::new(), check.z.map_or(0.0, f64::abs)),
            Cell::text(if check.pass { "agrees" } else { "DISAGREES" }),
        ]
    };
    let not = checks.not_checked.iter().map(|not| vec![Cell::text(not.id), Cell::text(not.why.clone())]);
    let mut tables = Vec::new();
    if !checks.checks.is_empty() {
        tables.push(Table {
            caption: "Closed forms that apply".to_owned(),
            header: ["closed form", "theory", "simulation", "z", ""].map(str::to_owned).to_vec(),
            rows: checks.checks.iter().map(check).collect(),
            folded: false,
        });
    }
    if !checks.not_checked.is_empty() {
        tables.push(Table {
            caption: "Closed forms that don't apply, and why".to_owned(),
            header: ["closed form", "the assumption that fails"].map(str::to_owned).to_vec(),
            rows: not.collect(),
            folded: true,
        });
    }
    let mut lines = Vec::new();
    if let Some(price) = &answer.scenario.price {
        let changed = if price.overridden { ", changed by [price]" } else { "" };
        lines.push(("prices".to_owned(), format!("{} as of {}{changed}", price.model, price.as_of)));
        lines.push(("their source".to_owned(), format!("{}, {}", price.source, price.source_date)));
    }
    lines.extend(price_sentence(&answer.scenario).map(|text| ("price sheet".to_owned(), text)));
    Section {
        id: "sure",
        title: "How sure".to_owned(),
        lead: "z is the difference between theory and simulation in standard errors; below 4 they agree. = is equal to nine \
               digits, ≤ a bound that held."
            .to_owned(),
        lines,
        tables,
    }
}

pub(super) fn assumptions(answer: &Answer) -> Section {
    let all = answer.scenario.assumptions();
    let rows = |is_default: bool| {
        let some = all.iter().filter(move |assumption| assumption.is_default == is_default);
        some.map(|a| vec![Cell::text(&a.key), Cell::text(&a.value), Cell::text(&a.about)]).collect::<Vec<_>>()
    };
    let header = || ["key", "value", "what it means"].map(str::to_owned).to_vec();
    Section {
        id: "assumptions",
        title: "Assumptions".to_owned(),
        lead: "What the figures stand on. A wrong input moves them more than chance does.".to_owned(),
        lines: Vec::new(),
        tables: vec![
            Table { caption: "Written in the scenario".to_owned(), header: header(), rows: rows(false), folded: false },
            Table { caption: "Left at their default".to_owned(), header: header(), rows: rows(true), folded: true },
        ],
    }
}
