//! Rows of sessions and turns, while they are played.

use std::sync::Arc;

use super::schema::kind;
use super::{Kind, Name, Part, Sink, Values};
use crate::engine::{CHUNK, Collect, SESSION_NUMBERS};
use crate::model::Model;
use crate::session::{Bill, Limit, Outcome, Record, Turn, Workspace};
use crate::stats::Metric;

/// Rows that are handed on together: a row group of the file.
const TOGETHER: usize = 65_536;

/// Collects rows and hands them on.
pub struct Rows<'s> {
    sink: Option<(&'s dyn Sink, u64)>,
    what: Arc<What>,
    /// The open chunk.
    chunk: Chunk,
    open_turns: Vec<Turn>,
    /// Chunks that are complete, and how many rows they have together.
    complete: Vec<Chunk>,
    sessions: usize,
    turns: usize,
}

/// What is collected.
struct What {
    strategy: Arc<str>,
    replication: Option<i64>,
    metrics: Vec<Metric>,
    has_budget: bool,
    is_priced: bool,
}

#[derive(Default)]
struct Chunk {
    numbers: Vec<i64>,
    outcomes: Vec<Outcome>,
    stopped_by: Vec<Option<Limit>>,
    metrics: Vec<Values>,
    /// Sessions of the turns.
    turns_of: Vec<i64>,
    turns: Vec<Turn>,
}

impl<'s> Rows<'s> {
    /// Of the sessions of a model, as a stream of the sink; `replication` is that of a fleet.
    pub fn new(model: &Model, strategy: &str, replication: Option<u64>, sink: &'s dyn Sink, stream: u64) -> Self {
        let what = Arc::new(What {
            strategy: strategy.into(),
            replication: replication.map(|number| number as i64),
            metrics: Metric::ALL.into_iter().filter(|metric| metric.applies(model)).collect(),
            has_budget: model.budget.any(),
            is_priced: model.tariff.is_some(),
        });
        Self { sink: Some((sink, stream)), ..Self::of(what) }
    }

    fn of(what: Arc<What>) -> Self {
        Self {
            sink: None,
            what,
            chunk: Chunk::default(),
            open_turns: Vec::new(),
            complete: Vec::new(),
            sessions: 0,
            turns: 0,
        }
    }

    /// All rows so far, as a part of each table.
    fn hand_on(&mut self) {
        let Some((sink, stream)) = self.sink else { return };
        let mut chunks = std::mem::take(&mut self.complete);
        let (sessions, turns) = (std::mem::take(&mut self.sessions), std::mem::take(&mut self.turns));
        if turns > 0 {
            sink.rows(stream, turn_part(&self.what, &mut chunks, turns));
        }
        if sessions > 0 {
            sink.rows(stream, session_part(&self.what, chunks, sessions));
        }
    }
}

fn session_part(what: &What, chunks: Vec<Chunk>, rows: usize) -> Part {
    let mut columns = vec![("strategy", vec![Values::Same(what.strategy.clone(), rows)])];
    columns.extend(what.replication.map(|number| ("replication", vec![Values::SameWhole(number, rows)])));
    let (mut numbers, mut outcomes, mut stopped) = (Vec::new(), Vec::new(), Vec::new());
    let mut metrics: Vec<Vec<Values>> = what.metrics.iter().map(|_| Vec::new()).collect();
    for chunk in chunks {
        numbers.push(Values::Whole(chunk.numbers));
        outcomes.push(Values::Word(chunk.outcomes.into_iter().map(Outcome::name).collect()));
        if what.has_budget {
            stopped.push(Values::Word(chunk.stopped_by.into_iter().map(|by| by.map_or("", Limit::name)).collect()));
        }
        for (pieces, values) in metrics.iter_mut().zip(chunk.metrics) {
            pieces.push(values);
        }
    }
    columns.push(("session", numbers));
    columns.push(("outcome", outcomes));
    if what.has_budget {
        columns.push(("stopped_by", stopped));
    }
    columns.extend(what.metrics.iter().map(|metric| metric.quantity().name()).zip(metrics));
    Part { table: Name::Sessions, rows, columns }
}

fn turn_part(what: &What, chunks: &mut [Chunk], rows: usize) -> Part {
    let sessions = chunks.iter_mut().map(|chunk| Values::Whole(std::mem::take(&mut chunk.turns_of))).collect();
    let turns: Vec<Turn> = chunks.iter_mut().flat_map(|chunk| std::mem::take(&mut chunk.turns)).collect();
    let whole = |of: fn(&Turn) -> u64| vec![Values::Whole(turns.iter().map(|turn| of(turn) as i64).collect())];
    let number = |of: fn(&Turn) -> f64| vec![Values::Number(turns.iter().map(of).collect())];
    let mut columns = vec![("strategy", vec![Values::Same(what.strategy.clone(), rows)])];
    columns.extend(what.replication.map(|number| ("replication", vec![Values::SameWhole(number, rows)])));
    columns.extend([
        ("session", sessions),
        ("run", whole(|t| t.run)),
        ("message", whole(|t| t.message)),
        ("turn", whole(|t| t.number)),
        ("started_s", number(|t| t.started_s)),
        ("latency_s", number(|t| t.latency_s)),
        ("first_token_s", number(|t| if t.answered { t.first_token_s } else { f64::NAN })),
        ("tool_phase_s", number(|t| t.tool_phase_s.unwrap_or(f64::NAN))),
        ("answered", vec![Values::Flag(turns.iter().map(|turn| turn.answered).collect())]),
        ("cache", vec![Values::Word(turns.iter().map(|turn| turn.cache.name()).collect())]),
        ("input_tokens", whole(|t| t.usage.prompt_tokens())),
        ("uncached_tokens", whole(|t| t.usage.plain_tokens)),
        ("cache_read_tokens", whole(|t| t.usage.read_tokens)),
        ("cache_write_tokens", whole(|t| t.usage.written_prefix_tokens + t.usage.written_messages_tokens)),
        ("output_tokens", whole(|t| t.usage.output_tokens)),
    ]);
    if what.is_priced {
        columns.push(("cost_usd", number(|t| t.cost.usd())));
        columns.push(("cost_without_cache_usd", number(|t| t.cost_without_cache.usd())));
    }
    Part { table: Name::Turns, rows, columns }
}

impl Chunk {
    fn of(metrics: &[Metric]) -> Self {
        let empty = |metric: &Metric| match kind(*metric) {
            Kind::Whole => Values::Whole(Vec::with_capacity(CHUNK as usize)),
            _ => Values::Number(Vec::with_capacity(CHUNK as usize)),
        };
        Self {
            numbers: Vec::with_capacity(CHUNK as usize),
            outcomes: Vec::with_capacity(CHUNK as usize),
            metrics: metrics.iter().map(empty).collect(),
            ..Self::default()
        }
    }
}

impl Collect for Rows<'_> {
    fn empty(&self) -> Self {
        Self::of(self.what.clone())
    }

    fn watches(&self, _session: u64) -> bool {
        false
    }

    fn turn(&mut self, turn: &Turn) {
        self.open_turns.push(*turn);
    }

    fn session(&mut self, number: u64, record: &Record, _bill: &Bill, _room: &Workspace) {
        let chunk = &mut self.chunk;
        if chunk.numbers.is_empty() {
            *chunk = Chunk::of(&self.what.metrics);
        }
        let number = (number & SESSION_NUMBERS) as i64;
        chunk.turns_of.extend(self.open_turns.iter().map(|_| number));
        chunk.turns.append(&mut self.open_turns);
        chunk.numbers.push(number);
        chunk.outcomes.push(record.outcome);
        if self.what.has_budget {
            chunk.stopped_by.push(record.stopped_by);
        }
        for (metric, values) in self.what.metrics.iter().zip(&mut chunk.metrics) {
            match values {
                Values::Whole(values) => values.push(metric.quantity().of(record) as i64),
                Values::Number(values) => values.push(metric.quantity().of(record)),
                _ => {}
            }
        }
    }

    fn merge(&mut self, next: &mut Self) {
        let chunk = std::mem::take(&mut next.chunk);
        self.sessions += chunk.numbers.len();
        self.turns += chunk.turns.len();
        self.complete.push(chunk);
        if self.sessions >= TOGETHER || self.turns >= TOGETHER {
            self.hand_on();
        }
    }

    fn finish(&mut self) {
        self.hand_on();
        if let Some((sink, stream)) = self.sink.take() {
            sink.end(stream);
        }
    }
}
