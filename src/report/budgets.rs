//! How large a budget has to be.

use std::fmt::Write;

use serde::Serialize;

use super::Style;
use super::format::{money, percent, whole};
use super::head::{Head, PriceSheet};
use super::wording::{price_sentence, sessions_text};
use crate::simulate::{BudgetRow, InFlightRow, Needed, OutputRow, Sizing};
use crate::stats::Estimate;

fn share(estimate: &Estimate) -> String {
    if estimate.se > 0.0 {
        format!("{}\n{} … {}", percent(estimate.value), percent(estimate.ci95[0]), percent(estimate.ci95[1]))
    } else {
        percent(estimate.value)
    }
}

/// `99.9 %`.
fn through(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

fn amount(usd: Option<f64>) -> String {
    usd.map_or_else(|| "–".to_owned(), money)
}

/// The answer as a person reads it.
pub fn budget_terminal(sizing: &Sizing, style: Style) -> String {
    let mut out = String::new();
    let scenario = &sizing.scenario;
    let _ = writeln!(out, "{}", style.heading(&scenario.title));
    let about = format!(
        "{} · {}, seed {} · a budget of dollars alone, a call writes at most {} tokens",
        scenario.file,
        sessions_text(scenario, sizing.sessions),
        scenario.run.seed,
        whole(sizing.max_output)
    );
    let _ = writeln!(out, "{}\n", style.faint(&about));
    for needed in &sizing.needed {
        let Needed { share, usd, ci95: [low, high], too_few } = needed;
        let text = if *too_few {
            style.warning(&format!(
                "for {} of the sessions too few were played to tell: at least {}",
                through(*share),
                money(*usd)
            ))
        } else {
            format!(
                "{} lets {} of the sessions through ({} … {})",
                style.good(&money(*usd)),
                through(*share),
                money(*low),
                money(*high)
            )
        };
        let _ = writeln!(out, "  {text}");
    }
    let _ = writeln!(out, "\n{}", style.heading("What a budget stops"));
    let mut grid = style.table(
        ["budget", "stops", "by then spent", "of", "checked after: passed in", "by, on average", "at the most"],
        0..7,
    );
    for BudgetRow { usd, stopped, done_usd, whole_usd, overshoots, overshoot_usd } in &sizing.rows {
        grid.add_row([
            money(*usd),
            share(stopped),
            amount(*done_usd),
            amount(*whole_usd),
            share(overshoots),
            amount(overshoot_usd.map(|(mean, _)| mean)),
            amount(overshoot_usd.map(|(_, most)| most)),
        ]);
    }
    let _ = writeln!(out, "{}", style.whole_words(grid));
    let note = "Checked before each call, whose worst case has to fit, no session passes its budget: what it has spent by then is lost\nunless the partial result is of use; \"of\" is what those sessions would have cost. Checked after, the last call may pass it.";
    let _ = writeln!(out, "{}", style.faint(note));
    let _ = writeln!(out, "\n{}", style.heading("Head-room"));
    let mut grid = style.table(["max_output", "lets 99 % through", "needed beyond the cost"], 0..3);
    for OutputRow { max_output, p99_usd, head_room } in &sizing.outputs {
        grid.add_row([whole(*max_output), money(*p99_usd), money(head_room.value)]);
    }
    let _ = writeln!(out, "{}", style.whole_words(grid));
    let note = "What a reservation sets aside and most calls don't use, on average over the sessions. A smaller bound wastes less, and\ncuts longer outputs.";
    let _ = writeln!(out, "{}", style.faint(note));
    let _ = writeln!(out, "\n{}", style.heading("Side by side without reservations"));
    let mut grid = style.table(["sessions", "one budget of", "passed in", "by, on average", "at the most"], 0..5);
    for InFlightRow { side_by_side, budget_usd, passes, beyond_usd, .. } in &sizing.in_flight {
        grid.add_row([
            whole(*side_by_side),
            money(*budget_usd),
            share(passes),
            amount(beyond_usd.map(|(mean, _)| mean)),
            amount(beyond_usd.map(|(_, most)| most)),
        ]);
    }
    let _ = writeln!(out, "{}", style.whole_words(grid));
    let note = "So many sessions begin together and share a budget, of so many median costs if none is given. Each looks before a call\nwhether anything is left, and doesn't see what the others' calls in flight will cost. With reservations none is passed.\nTool fees apart.";
    let _ = writeln!(out, "{}", style.faint(note));
    if let Some(text) = price_sentence(scenario) {
        let _ = writeln!(out, "\n{}", style.faint(&text));
    }
    out
}

#[derive(Serialize)]
struct BudgetReport<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    max_output: u64,
    price_sheet: PriceSheet,
    needed: Vec<NeededReport>,
    budgets: Vec<RowReport>,
    head_room: Vec<OutputReport>,
    /// Sessions that begin together, share a budget and reserve nothing.
    side_by_side: Vec<InFlightReport>,
}

#[derive(Serialize)]
struct InFlightReport {
    sessions: u64,
    budget_usd: f64,
    groups: u64,
    passed: f64,
    passed_ci95: [f64; 2],
    overshoot_mean_usd: Option<f64>,
    overshoot_max_usd: Option<f64>,
}

#[derive(Serialize)]
struct NeededReport {
    share: f64,
    usd: f64,
    ci95: [f64; 2],
    too_few: bool,
}

#[derive(Serialize)]
struct RowReport {
    usd: f64,
    stopped: f64,
    stopped_ci95: [f64; 2],
    spent_by_stopped_usd: Option<f64>,
    stopped_would_cost_usd: Option<f64>,
    passed_if_checked_after: f64,
    overshoot_mean_usd: Option<f64>,
    overshoot_max_usd: Option<f64>,
}

#[derive(Serialize)]
struct OutputReport {
    max_output: u64,
    p99_usd: f64,
    head_room_usd: f64,
}

/// The answer as JSON, pretty-printed, with a final line break.
///
/// # Errors
/// Never for a finished answer; the serialiser's signature has an error.
pub fn budget_json(sizing: &Sizing) -> Result<String, serde_json::Error> {
    let needed = |needed: &Needed| {
        let Needed { share, usd, ci95, too_few } = *needed;
        NeededReport { share, usd, ci95, too_few }
    };
    let row = |row: &BudgetRow| RowReport {
        usd: row.usd,
        stopped: row.stopped.value,
        stopped_ci95: row.stopped.ci95,
        spent_by_stopped_usd: row.done_usd,
        stopped_would_cost_usd: row.whole_usd,
        passed_if_checked_after: row.overshoots.value,
        overshoot_mean_usd: row.overshoot_usd.map(|(mean, _)| mean),
        overshoot_max_usd: row.overshoot_usd.map(|(_, most)| most),
    };
    let output = |output: &OutputRow| OutputReport {
        max_output: output.max_output,
        p99_usd: output.p99_usd,
        head_room_usd: output.head_room.value,
    };
    let in_flight = |row: &InFlightRow| InFlightReport {
        sessions: row.side_by_side,
        budget_usd: row.budget_usd,
        groups: row.groups,
        passed: row.passes.value,
        passed_ci95: row.passes.ci95,
        overshoot_mean_usd: row.beyond_usd.map(|(mean, _)| mean),
        overshoot_max_usd: row.beyond_usd.map(|(_, most)| most),
    };
    let scenario = &sizing.scenario;
    let report = BudgetReport {
        head: Head::of("agent-sim.budget/1", scenario, sizing.sessions),
        max_output: sizing.max_output,
        price_sheet: PriceSheet::of(scenario.price_sheet()),
        needed: sizing.needed.iter().map(needed).collect(),
        budgets: sizing.rows.iter().map(row).collect(),
        head_room: sizing.outputs.iter().map(output).collect(),
        side_by_side: sizing.in_flight.iter().map(in_flight).collect(),
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
