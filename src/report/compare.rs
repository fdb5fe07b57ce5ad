//! Several ways of one agent side by side, on the same sessions.

use std::fmt::Write;

use super::Style;
use super::format::{money, percent, whole};
use super::wording::{month, price_sentence, sessions_text, share_with_interval, threshold_texts, value};
use crate::scenario::Change;
use crate::scenario::Scenario;
use crate::simulate::{Comparison, Pair};
use crate::stats::{Estimate, Metric, Paired, Unit, is_decided};

/// What a way is called: the strategy's name, or the file's where two files are compared.
pub fn way_name(comparison: &Comparison, way: usize) -> String {
    let scenarios: Vec<&Scenario> = comparison.answers.iter().map(|answer| &answer.scenario).collect();
    way_names(&scenarios).into_iter().nth(way).unwrap_or_default()
}

/// What scenarios that are held side by side are called: their strategies, or their files where there are several.
pub fn way_names(scenarios: &[&Scenario]) -> Vec<String> {
    let stem = |scenario: &Scenario| {
        let path = std::path::Path::new(&scenario.file);
        path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    };
    let name = |scenario: &Scenario| {
        let file = &scenario.file;
        let others = || scenarios.iter().filter(|other| other.file != *file);
        if others().next().is_none() {
            scenario.strategy.clone()
        } else if others().any(|other| stem(other) == stem(scenario)) {
            file.clone()
        } else {
            stem(scenario)
        }
    };
    let mut names: Vec<String> = Vec::new();
    for scenario in scenarios {
        let name = name(scenario);
        let alike = names.iter().filter(|own| **own == name).count();
        names.push(if alike == 0 { name } else { format!("{name} ({})", alike + 1) });
    }
    names
}

fn signed(unit: Unit, x: f64) -> String {
    if x > 0.0 { format!("+{}", value(unit, x)) } else { value(unit, x) }
}

fn signed_interval(unit: Unit, estimate: &Estimate) -> String {
    if estimate.ci95[0].is_nan() {
        return "one session only".to_owned();
    }
    if estimate.se <= 0.0 {
        return "in every session".to_owned();
    }
    format!("{} … {}", signed(unit, estimate.ci95[0]), signed(unit, estimate.ci95[1]))
}

/// One sentence on one way: dearer or cheaper, by how much, how surely.
pub(super) fn verdict(comparison: &Comparison, pair: &Pair) -> String {
    let (name, against) = (way_name(comparison, pair.way), way_name(comparison, 0));
    let Some((metric, paired)) = pair.metrics.first() else {
        return format!("{name}: nothing applies to both {name} and {against}");
    };
    let unit = metric.quantity().unit();
    let (less, more) = match unit {
        Unit::Usd => ("cheaper", "dearer"),
        Unit::Seconds => ("faster", "slower"),
        Unit::Tokens | Unit::Count => ("less", "more"),
    };
    let what = match metric.quantity().name() {
        "cost_usd" => String::new(),
        name => format!(" in {name}"),
    };
    let difference = &paired.difference;
    let one =
        if comparison.answers.iter().any(|answer| answer.scenario.model.herd.is_some()) { "repeat" } else { "session" };
    if !paired.is_decided() {
        if difference.se <= 0.0 {
            return format!("{name} and {against} are the same{what} in all {} sessions", whole(paired.sessions));
        }
        let more = paired
            .sessions_to_decide()
            .map_or(String::new(), |n| format!("; about {} sessions would decide it", whole(round_up(n))));
        return format!(
            "{name} against {against}{what} is undecided: {} a {one} ({}){more}",
            signed(unit, difference.value),
            signed_interval(unit, difference)
        );
    }
    let word = if difference.value < 0.0 { less } else { more };
    let ratio = paired.ratio.as_ref().map_or(String::new(), |ratio| format!(", {}", relative(ratio.value)));
    format!(
        "{name} is {word} than {against}{what}: {} a {one} ({}){ratio}",
        signed(unit, difference.value),
        signed_interval(unit, difference)
    )
}

/// `12.3 % less`, `5.4 times as much`.
fn relative(ratio: f64) -> String {
    if ratio >= 2.0 {
        format!("{ratio:.2} times as much")
    } else if ratio >= 1.0 {
        format!("{} more", percent(ratio - 1.0))
    } else {
        format!("{} less", percent(1.0 - ratio))
    }
}

/// To two digits.
fn round_up(n: u64) -> u64 {
    let step = 10_u64.pow(n.max(1).ilog10().saturating_sub(1));
    n.div_ceil(step) * step
}

/// The difference of a percentile: it may be the same however sessions are drawn again, and yet not in every session.
fn quantile_cell(unit: Unit, estimate: &Estimate) -> String {
    if estimate.se > 0.0 || estimate.value == 0.0 {
        return cell(unit, estimate);
    }
    format!("{}\nin every resample", signed(unit, estimate.value))
}

fn cell(unit: Unit, estimate: &Estimate) -> String {
    let text = signed(unit, estimate.value);
    let mark = if is_decided(estimate) || estimate.se <= 0.0 { "" } else { " ?" };
    format!("{text}{mark}\n{}", signed_interval(unit, estimate))
}

/// The rows of the comparison of one metric: the first way, then the others with what they are beyond it.
pub(super) fn metric_rows(comparison: &Comparison, metric: Metric) -> Vec<[String; 7]> {
    let unit = metric.quantity().unit();
    let name = metric.quantity().name();
    let mean = |way: usize| {
        let found = comparison.answers.get(way).and_then(|answer| answer.summary.metric(name));
        found.map_or_else(String::new, |found| value(unit, found.mean.value))
    };
    let mut rows = vec![[
        way_name(comparison, 0),
        mean(0),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
    ]];
    for pair in &comparison.pairs {
        let Some(paired) = pair.metric(name) else { continue };
        let mut row = [
            way_name(comparison, pair.way),
            mean(pair.way),
            cell(unit, &paired.difference),
            paired.ratio.as_ref().map_or_else(String::new, |ratio| format!("× {:.4}", ratio.value)),
            less_in(paired),
            String::new(),
            String::new(),
        ];
        for (place, p) in [(5, 0.5), (6, 0.99)] {
            if let Some(quantile) = paired.quantiles.iter().find(|q| (q.p - p).abs() < 1e-9) {
                let mark = if quantile.too_few { "\ntoo few sessions" } else { "" };
                row[place] =
                    if mark.is_empty() { quantile_cell(unit, &quantile.difference) } else { format!("–{mark}") };
            }
        }
        rows.push(row);
    }
    rows
}

/// In how many of the sessions it is less.
fn less_in(paired: &Paired) -> String {
    if paired.share_equal >= 1.0 { "the same in all".to_owned() } else { share_with_interval(&paired.share_less) }
}

pub(super) fn metrics(comparison: &Comparison) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    for (metric, _) in comparison.pairs.iter().flat_map(|pair| &pair.metrics) {
        if !all.contains(metric) {
            all.push(*metric);
        }
    }
    all
}

pub(super) fn metric_title(metric: Metric) -> (&'static str, &'static str) {
    match metric.quantity().name() {
        "cost_usd" => ("Cost of a session", "cheaper in"),
        "latency_s" => ("Latency of a session", "faster in"),
        name => (name, "less in"),
    }
}

/// (way, bill of a month, difference to the first), where the scenario asks for a month.
pub(super) fn months(comparison: &Comparison) -> Vec<(String, String, String)> {
    let Some(sessions) = comparison.answers.first().and_then(|answer| answer.scenario.sessions_per_month) else {
        return Vec::new();
    };
    let bill = |way: usize| comparison.answers.get(way).and_then(month).map(|month| money(month.bill.value));
    let mut rows: Vec<(String, String, String)> =
        bill(0).map(|bill| (way_name(comparison, 0), bill, String::new())).into_iter().collect();
    for pair in &comparison.pairs {
        let (Some(bill), Some(paired)) = (bill(pair.way), pair.metric("cost_usd")) else { continue };
        let n = sessions as f64;
        let difference = Estimate {
            value: paired.difference.value * n,
            se: paired.difference.se * n,
            ci95: paired.difference.ci95.map(|x| x * n),
        };
        rows.push((way_name(comparison, pair.way), bill, cell(Unit::Usd, &difference)));
    }
    rows
}

/// How a way differs from the first: its keys.
pub(super) fn changes(comparison: &Comparison, way: usize) -> Vec<Change> {
    match (comparison.answers.first(), comparison.answers.get(way)) {
        (Some(first), Some(other)) => first.scenario.changes(&other.scenario),
        _ => Vec::new(),
    }
}

pub(super) fn change_text(change: &Change) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "left out".to_owned());
    format!("{}: {} → {}", change.key, shown(&change.from), shown(&change.to))
}

/// The comparison as a person reads it.
pub fn compare_terminal(comparison: &Comparison, style: Style) -> String {
    let mut out = String::new();
    let Some(first) = comparison.answers.first() else { return out };
    let _ = writeln!(out, "{}", style.heading(&first.scenario.title));
    let about = format!(
        "{} · {} ways, the same {}, seed {}",
        first.scenario.file,
        comparison.answers.len(),
        sessions_text(&first.scenario, first.summary.sessions),
        first.scenario.run.seed
    );
    let _ = writeln!(out, "{}\n", style.faint(&about));
    for pair in &comparison.pairs {
        let sentence = verdict(comparison, pair);
        let decided = pair.metrics.first().is_some_and(|(_, paired)| paired.is_decided());
        let _ = writeln!(out, "  {}", if decided { style.good(&sentence) } else { style.warning(&sentence) });
    }
    let months = months(comparison);
    if !months.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("A month"));
        let against = format!("beyond {}", way_name(comparison, 0));
        let mut table = style.table(["", "per month", &against], 1..3);
        for (way, bill, difference) in months {
            table.add_row([way, bill, difference]);
        }
        let _ = writeln!(out, "{}", style.whole_words(table));
    }
    for metric in metrics(comparison) {
        let (title, less) = metric_title(metric);
        let _ = writeln!(out, "\n{}", style.heading(title));
        let against = format!("beyond {}", way_name(comparison, 0));
        let mut table = style.table(["", "mean", &against, "ratio", less, "at p50", "at p99"], 1..7);
        for row in metric_rows(comparison, metric) {
            table.add_row(row);
        }
        let _ = writeln!(out, "{}", style.whole_words(table));
    }
    let _ = writeln!(
        out,
        "{}",
        style.faint(
            "Differences of the same sessions, with their 95 % intervals. ?  the interval covers zero: undecided."
        )
    );
    let _ = writeln!(out, "\n{}", style.heading("What differs"));
    for pair in &comparison.pairs {
        let name = way_name(comparison, pair.way);
        let changes = changes(comparison, pair.way);
        if changes.is_empty() {
            let _ = writeln!(out, "  {name}: {}", style.warning("nothing"));
        }
        for change in changes {
            let _ = writeln!(out, "  {name}: {}", change_text(&change));
        }
    }
    let thresholds: Vec<(usize, (bool, bool, String))> = comparison
        .answers
        .iter()
        .enumerate()
        .flat_map(|(way, answer)| threshold_texts(answer).into_iter().map(move |text| (way, text)))
        .collect();
    if !thresholds.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("Thresholds"));
        for (way, (pass, _, text)) in thresholds {
            let text = format!("{}: {text}", way_name(comparison, way));
            let _ = writeln!(out, "  {}", if pass { text } else { style.bad(&text) });
        }
    }
    let _ = writeln!(out, "\n{}", style.heading("How sure"));
    for (way, answer) in comparison.answers.iter().enumerate() {
        let sentence = super::wording::checks_sentence(answer, "`agent-sim check` says why");
        let sentence = if answer.checks.all_pass() { sentence } else { style.bad(&sentence) };
        let _ = writeln!(out, "  {}: {sentence}", way_name(comparison, way));
    }
    for text in price_sentences(comparison) {
        let _ = writeln!(out, "  {text}");
    }
    out
}

/// Where the prices of the ways come from, each once.
pub(super) fn price_sentences(comparison: &Comparison) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for sentence in comparison.answers.iter().filter_map(|answer| price_sentence(&answer.scenario)) {
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

pub(super) fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', "<br>")
}

/// The comparison for a pull request: the verdict, then the bill, then the rest.
pub fn compare_markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    let Some(first) = comparison.answers.first() else { return out };
    for pair in &comparison.pairs {
        let _ = writeln!(out, "**{}.**\n", escape(&verdict(comparison, pair)));
    }
    let against = escape(&way_name(comparison, 0));
    let months = months(comparison);
    if !months.is_empty() {
        let _ = writeln!(out, "| | per month | beyond {against} |\n|---|---:|---:|");
        for (way, bill, difference) in months {
            let _ = writeln!(out, "| {} | {bill} | {} |", escape(&way), escape(&difference));
        }
        let _ = writeln!(out);
    }
    for metric in metrics(comparison) {
        let (title, less) = metric_title(metric);
        let _ = writeln!(
            out,
            "| {} | mean | beyond {against} | ratio | {less} | at p50 | at p99 |\n|---|---:|---:|---:|---:|---:|---:|",
            title.to_lowercase()
        );
        for row in metric_rows(comparison, metric) {
            let _ = writeln!(out, "| {} |", row.map(|cell| escape(&cell)).join(" | "));
        }
        let _ = writeln!(out);
    }
    for pair in &comparison.pairs {
        for change in changes(comparison, pair.way) {
            let _ = writeln!(out, "- {}: `{}`", escape(&way_name(comparison, pair.way)), escape(&change_text(&change)));
        }
    }
    for text in price_sentences(comparison) {
        let _ = writeln!(out, "- {}", escape(&text));
    }
    let _ = writeln!(
        out,
        "\n<sub>{}, the same for all, seed {}; differences with their 95 % intervals; ? undecided.</sub>",
        sessions_text(&first.scenario, first.summary.sessions),
        first.scenario.run.seed
    );
    out
}
