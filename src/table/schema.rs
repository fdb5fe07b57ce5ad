//! Which columns each table has.

use crate::model::Model;
use crate::stats::{Metric, Unit};

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// A row a session.
    Sessions,
    /// A row a turn of the first sessions, or of some sessions of a fleet.
    Turns,
    /// A row a number of a fleet and piece of its time.
    Fleet,
}

impl Name {
    /// The name of its file, without an ending.
    pub fn stem(self) -> &'static str {
        match self {
            Name::Sessions => "sessions",
            Name::Turns => "turns",
            Name::Fleet => "fleet",
        }
    }
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers, 64 bits.
    Whole,
    /// Numbers, 64 bits.
    Number,
    /// Yes or no.
    Flag,
    /// Text.
    Text,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether a row may have nothing there.
    pub optional: bool,
}

/// A table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Which table.
    pub table: Name,
    /// In their order.
    pub columns: Vec<Column>,
}

fn column(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, about, kind, optional: false }
}

fn optional(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { optional: true, ..column(name, kind, about) }
}

const STRATEGY: &str = "The strategy; base is the file itself";
const SESSION: &str = "The session's number, from 0; the same number meets the same turns, latencies and failures in every \
                       strategy";

/// Where some of the models are fleets.
fn replication(models: &[&Model]) -> Option<Column> {
    let fleets = models.iter().filter(|model| model.fleet.is_some()).count();
    let column = column("replication", Kind::Whole, "The replication of the fleet, from 0");
    (fleets > 0).then_some(Column { optional: fleets < models.len(), ..column })
}

impl Schema {
    /// Of the sessions of some models: their own columns, then every metric that applies to one of them.
    pub fn sessions(models: &[&Model]) -> Self {
        let mut columns = vec![column("strategy", Kind::Text, STRATEGY)];
        columns.extend(replication(models));
        columns.push(column("session", Kind::Whole, SESSION));
        columns.push(column(
            "outcome",
            Kind::Text,
            "How it ended: answered, turn_limit, budget, deadline, context_full or failed",
        ));
        if models.iter().any(|model| model.budget.any()) {
            let about = "The limit of the budget that ended it, if one did: dollars, turns, tokens or time";
            columns.push(optional("stopped_by", Kind::Text, about));
        }
        for metric in Metric::ALL {
            let applies = models.iter().filter(|model| metric.applies(model)).count();
            if applies > 0 {
                columns.push(Column {
                    name: metric.quantity().name(),
                    about: metric.about(),
                    kind: kind(metric),
                    optional: applies < models.len(),
                });
            }
        }
        Self { table: Name::Sessions, columns }
    }

    /// Of turns; nothing where there are none.
    pub fn turns(models: &[&Model]) -> Option<Self> {
        if models.iter().all(|model| model.herd.is_some()) {
            return None;
        }
        let mut columns = vec![column("strategy", Kind::Text, STRATEGY)];
        columns.extend(replication(models));
        columns.extend([
            column("session", Kind::Whole, SESSION),
            column(
                "run",
                Kind::Whole,
                "The run of the session, from 1; there are several with [routing] or [outcome] attempts",
            ),
            column("message", Kind::Whole, "The user's message that it belongs to, from 1"),
            column("turn", Kind::Whole, "The number of the call in its run, from 1"),
            column("started_s", Kind::Number, "When it began after the run's first call, the user's waits counted, s"),
            column("latency_s", Kind::Number, "From the start of its call to the end of its tool phase, s"),
            optional(
                "first_token_s",
                Kind::Number,
                "Until the first token of its call, s; nothing if it wasn't answered",
            ),
            optional("tool_phase_s", Kind::Number, "Its tool phase, s; nothing after the answer"),
            column("answered", Kind::Flag, "Whether its call was answered"),
            column(
                "cache",
                Kind::Text,
                "What its call met in the prompt cache: off, cold (nothing was there), warm, expired (some of it) or broken (earlier \
                 bytes had changed)",
            ),
            column("input_tokens", Kind::Whole, "All that its call sent"),
            column("uncached_tokens", Kind::Whole, "Of them, neither read from the cache nor written to it"),
            column("cache_read_tokens", Kind::Whole, "Of them, read from the cache"),
            column("cache_write_tokens", Kind::Whole, "Of them, written to the cache"),
            column("output_tokens", Kind::Whole, "Tokens that the model wrote"),
        ]);
        let priced = models.iter().filter(|model| model.tariff.is_some()).count();
        if priced > 0 {
            let cost = "All that the main agent requested since the turn before: its call, lost replies, summaries and pings, without \
                        tool fees and other agents, $";
            for (name, about) in [("cost_usd", cost), ("cost_without_cache_usd", "The same without a cache, $")] {
                columns.push(Column { optional: priced < models.len(), ..column(name, Kind::Number, about) });
            }
        }
        Some(Self { table: Name::Turns, columns })
    }

    /// Of fleets over time; nothing where there is no fleet.
    pub fn fleet(models: &[&Model]) -> Option<Self> {
        models.iter().any(|model| model.fleet.is_some()).then(|| Self {
            table: Name::Fleet,
            columns: vec![
                column("strategy", Kind::Text, STRATEGY),
                column("from_s", Kind::Number, "Where the piece of time begins, s after the fleet's start"),
                column("to_s", Kind::Number, "Where it ends, s"),
                column("counted", Kind::Flag, "Whether it lies behind the warm-up, and so enters the report's figures"),
                column(
                    "series",
                    Kind::Text,
                    "What is counted, with its unit: in_progress, arrivals_per_s, calls_per_s, failures_per_s, waiting, \
                     utilisation, limit_use, breaker_per_s, unanswered_per_hour, cost_per_hour_usd, latency_p50_s, latency_p99_s",
                ),
                optional("of", Kind::Text, "The tool, the model or the limit that it is of, if it is of one"),
                column("mean", Kind::Number, "The mean over replications"),
                optional("ci95_low", Kind::Number, "The lower end of its 95 % interval; nothing with one replication"),
                optional("ci95_high", Kind::Number, "The upper end"),
            ],
        })
    }

    /// Every table of some models.
    pub fn all(models: &[&Model]) -> Vec<Self> {
        std::iter::once(Self::sessions(models)).chain(Self::turns(models)).chain(Self::fleet(models)).collect()
    }
}

/// Money and time are numbers, counts and tokens whole.
pub(super) fn kind(metric: Metric) -> Kind {
    match metric.quantity().unit() {
        Unit::Usd | Unit::Seconds => Kind::Number,
        Unit::Tokens | Unit::Count => Kind::Whole,
    }
}
