//! Theory beside simulation, form by form.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Style;
use super::format::number;
use super::wording::{checks_sentence, played, price_sentence};
use crate::check::Check;
use crate::simulate::Answer;

/// The text of `agent-sim check` for one strategy.
pub fn checks_text(answer: &Answer, style: Style) -> String {
    let (scenario, checks) = (&answer.scenario, &answer.checks);
    let mut out = String::new();
    let strategy = if scenario.strategy == "base" { String::new() } else { format!(" · {}", scenario.strategy) };
    let _ = writeln!(out, "{}", style.heading(&format!("{}{strategy}", scenario.title)));
    let about = format!("{} · {}, seed {}", scenario.file, played(answer), scenario.run.seed);
    let _ = writeln!(out, "{}\n", style.faint(&about));
    if !checks.checks.is_empty() {
        let mut table = style.table(["closed form", "theory", "simulation", "± se", "z", ""], 1..5);
        for check in &checks.checks {
            let verdict = if check.pass { "agrees" } else { "DISAGREES" };
            table.add_row([
                format!("{} · {}\n  {}", check.id, check.of, check.formula),
                number(check.expected),
                number(check.observed),
                if check.se > 0.0 { format!("{:.2e}", check.se) } else { "fixed".to_owned() },
                z_text(check),
                verdict.to_owned(),
            ]);
        }
        // painted afterwards: the table counts escape sequences as width
        let _ = writeln!(out, "{}", style.whole_words(table).to_string().replace("DISAGREES", &style.bad("DISAGREES")));
        let _ = writeln!(
            out,
            "{}",
            style.faint("z: difference in standard errors, below 4 agrees; = equal to nine digits, nothing is random; ≤ a bound that held.")
        );
    }
    if !checks.not_checked.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("Not checked"));
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for not in &checks.not_checked {
            by_reason.entry(&not.why).or_default().push(not.id);
        }
        for (why, ids) in by_reason {
            let _ = writeln!(out, "  {}: {why}", ids.join(", "));
        }
    }
    let sentence = checks_sentence(answer, "the reasons stand above");
    let sentence = if checks.all_pass() { style.good(&sentence) } else { style.bad(&sentence) };
    let _ = writeln!(out, "\n{sentence}");
    if let Some(text) = price_sentence(scenario) {
        let _ = writeln!(out, "{}", style.faint(&text));
    }
    out
}

/// The difference in standard errors, or how a figure without chance compares.
pub(super) fn z_text(check: &Check) -> String {
    check.z.map_or_else(|| if check.at_most { "≤" } else { "=" }.to_owned(), |z| format!("{z:+.2}"))
}
