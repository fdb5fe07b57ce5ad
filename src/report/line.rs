//! The answer in one line.

use super::fleet::growth_text;
use super::format::{money, percent, seconds};
use super::wording::threshold_texts;
use crate::simulate::Answer;

/// Cost and latency of a session, how many were answered, the bill a month, and whether theory and thresholds agree.
pub fn one_line(answer: &Answer) -> String {
    let summary = &answer.summary;
    if let Some(growth) = answer.fleet_summary().and_then(|fleet| fleet.growth.as_ref()) {
        return growth_text(answer, growth) + "\n";
    }
    let mut parts = Vec::new();
    let figure = |name: &str, shown: fn(f64) -> String, what: &str| {
        let metric = summary.metric(name)?;
        let p99 = metric.quantile(0.99).filter(|q| !q.too_few && metric.min < metric.max);
        let tail = p99.map_or_else(String::new, |q| format!(" (p99 {})", shown(q.value)));
        Some(format!("{}{what}{tail}", shown(metric.mean.value)))
    };
    parts.extend(figure("cost_usd", money, " a session"));
    parts.extend(super::wording::month(answer).map(|month| format!("{} a month", money(month.bill.value))));
    parts.extend(figure("latency_s", seconds, ""));
    parts.extend(figure("herd_calls", super::format::count, " calls"));
    parts.extend(figure("herd_time_s", seconds, " until the last client is done"));
    if answer.scenario.model.herd.is_none() {
        let answered = summary.outcomes.iter().find(|(outcome, _)| *outcome == crate::session::Outcome::Answered);
        let share = answered.map_or(0.0, |(_, count)| *count as f64 / summary.sessions.max(1) as f64);
        parts.push(format!("{} answered", percent(share)));
    }
    let all = &answer.checks.checks;
    let books = all.iter().filter(|check| check.is_of_books()).count();
    let forms = all.len() - books;
    parts.push(match all.iter().filter(|check| !check.pass).count() {
        0 if forms == 0 && books > 0 => "the books balance".to_owned(),
        0 if forms == 0 => "no closed form applies".to_owned(),
        0 if forms == 1 => "1 closed form agrees".to_owned(),
        0 => format!("{forms} closed forms agree"),
        wrong => format!("{wrong} of {} closed forms DISAGREE", all.len()),
    });
    let broken = threshold_texts(answer).into_iter().filter(|(pass, _, _)| !pass).count();
    if broken > 0 {
        parts.push(format!("{broken} thresholds not kept"));
    }
    parts.join(" · ") + "\n"
}
