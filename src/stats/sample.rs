//! What is kept of the sessions that were played.

use super::columns::{Column, Columns};
use super::metric::{Getter, Metric, Quantity, Rate};
use super::moments::{Covariance, Estimate, Moments};
use super::nodes::{NodeSample, NodeSummary};
use super::store::{Piece, Store};
use super::watched::{Watched, WatchedTurns};
use crate::engine::Collect;
use crate::model::Model;
use crate::price::PicoUsd;
use crate::session::{Bill, Limit, Lump, Outcome, Record, Turn, Workspace};

/// Up to here every session's values are kept; beyond, quantiles come from histograms and memory stays flat.
pub const MOST_EXACT_SESSIONS: u64 = 10_000_000;

/// Money by what it went for, summed over sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Sources {
    /// Tool definitions, by server.
    pub definitions: Vec<PicoUsd>,
    pub system: PicoUsd,
    pub task: PicoUsd,
    pub history: PicoUsd,
    pub output: PicoUsd,
    /// First executions of tool calls.
    pub tools: PicoUsd,
    /// Executions after the first.
    pub duplicates: PicoUsd,
    /// Requests that made a summary.
    pub compaction: PicoUsd,
    /// Pings that kept the cache warm.
    pub keep_alive: PicoUsd,
    /// Model calls whose reply was lost.
    pub lost_replies: PicoUsd,
    /// Requests that searched for a tool.
    pub searches: PicoUsd,
    /// Sessions of other agents that were called.
    pub agents: PicoUsd,
}

/// Time by where it went, summed over sessions, s; the parts sum to the latency.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Times {
    /// Until the first token of each turn.
    pub first_token_s: f64,
    /// From the first token of each turn to the last.
    pub writing_s: f64,
    /// The last attempt of each tool call on the longest path of its phase.
    pub tools_s: f64,
    /// Attempts that were repeated and waits before the next, of the model and on the longest path of the tools.
    pub retries_s: f64,
    /// Waits for a person's approval on the longest path.
    pub people_s: f64,
    /// Summary calls.
    pub compaction_s: f64,
    /// Searches for tools, their calls among them.
    pub searches_s: f64,
    /// Waits for a free place of the model.
    pub queue_s: f64,
}

impl Times {
    /// Of one session.
    pub fn of(record: &Record) -> Self {
        Self {
            first_token_s: record.first_token_s,
            writing_s: record.writing_s,
            tools_s: record.tool_s - record.tool_retry_s - record.tool_approval_s,
            retries_s: record.tool_retry_s + record.model_lost_s + record.model_wait_s,
            people_s: record.tool_approval_s,
            compaction_s: record.summary_s,
            searches_s: record.search_s,
            queue_s: record.model_queue_s,
        }
    }

    fn add(&mut self, other: &Times) {
        self.first_token_s += other.first_token_s;
        self.writing_s += other.writing_s;
        self.tools_s += other.tools_s;
        self.retries_s += other.retries_s;
        self.people_s += other.people_s;
        self.compaction_s += other.compaction_s;
        self.searches_s += other.searches_s;
        self.queue_s += other.queue_s;
    }

    /// The sum of all, s.
    pub fn total_s(&self) -> f64 {
        self.first_token_s
            + self.writing_s
            + self.tools_s
            + self.retries_s
            + self.people_s
            + self.compaction_s
            + self.searches_s
            + self.queue_s
    }
}

/// Sessions that a limit of the budget ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stopped {
    /// How many.
    pub sessions: u64,
    /// What they had cost.
    pub cost: PicoUsd,
    /// What the calls could have cost that weren't made.
    pub refused_worst: PicoUsd,
    /// How many of them made no call at all.
    pub without_call: u64,
}

impl Sources {
    /// Whether there were summaries, pings or lost replies.
    pub fn has_more_than_turns(&self) -> bool {
        (self.compaction + self.keep_alive + self.lost_replies + self.searches + self.agents).0 > 0
    }

    fn of_servers(servers: usize) -> Self {
        Self { definitions: vec![PicoUsd::default(); servers], ..Self::default() }
    }

    /// The sum of all.
    pub fn total(&self) -> PicoUsd {
        self.definitions.iter().copied().sum::<PicoUsd>()
            + self.system
            + self.task
            + self.history
            + self.output
            + self.tools
            + self.duplicates
            + self.compaction
            + self.keep_alive
            + self.lost_replies
            + self.searches
            + self.agents
    }

    fn add_session(&mut self, record: &Record, bill: &Bill) {
        for (sum, more) in self.definitions.iter_mut().zip(&bill.definitions) {
            *sum += *more;
        }
        self.system += bill.system;
        self.task += bill.task;
        self.history += bill.history;
        self.output += bill.output;
        self.tools += record.cost_tools - record.duplicate_fees;
        self.duplicates += record.duplicate_fees;
        self.compaction += bill.lump(Lump::Compaction);
        self.keep_alive += bill.lump(Lump::KeepAlive);
        self.lost_replies += bill.lump(Lump::LostReply);
        self.searches += bill.lump(Lump::Search);
        self.agents += record.agents.cost();
    }

    fn add(&mut self, other: &Sources) {
        for (sum, more) in self.definitions.iter_mut().zip(&other.definitions) {
            *sum += *more;
        }
        self.system += other.system;
        self.task += other.task;
        self.history += other.history;
        self.output += other.output;
        self.tools += other.tools;
        self.duplicates += other.duplicates;
        self.compaction += other.compaction;
        self.keep_alive += other.keep_alive;
        self.lost_replies += other.lost_replies;
        self.searches += other.searches;
        self.agents += other.agents;
    }
}

/// Of each tool: duplicates, calls, and phases on whose longest path it lay.
const TOOL_COLUMNS: usize = 3;

/// What is kept of the sessions of a model.
#[derive(Debug, Clone)]
struct Kept {
    quantities: Vec<Quantity>,
    /// Their columns, and what finds them in a session's record.
    getters: Vec<(Column, Getter)>,
    rates: Vec<Rate>,
}

impl Kept {
    fn of(model: &Model) -> Self {
        let quantities: Vec<Quantity> = Quantity::ALL.iter().copied().filter(|q| q.applies(model)).collect();
        let has = |quantity: Quantity| quantities.contains(&quantity);
        let kept = |rate: &Rate| has(rate.parts().0) && has(rate.parts().1);
        let rates = Rate::ALL.iter().copied().filter(kept).collect();
        let getters = quantities.iter().map(|q| (Column::number(*q as usize), q.getter())).collect();
        Self { quantities, getters, rates }
    }
}

/// Everything that is kept of a run.
#[derive(Debug, Clone)]
pub struct Sample {
    sessions: u64,
    watched: Watched,
    /// The quantities and ratios of which anything is kept.
    kept: Kept,
    /// Of the open chunk, one per [`Quantity`], then one per probe, then three per tool; of a whole run, none.
    open: Columns,
    /// What the stores get of a chunk that is closed.
    pieces: Vec<(Quantity, Piece)>,
    stores: Vec<Store>,
    moments: Vec<Moments>,
    ratios: Vec<Covariance>,
    /// Phases up to each probe, per phase.
    probe_ratios: Vec<Covariance>,
    probes_s: Vec<f64>,
    probe_counts: Vec<u64>,
    /// Of each tool: duplicates per call, and phases on whose longest path it lay.
    tool_ratios: Vec<[Covariance; 2]>,
    /// The tree of agents, the main agent first; empty where there are no others.
    nodes: Vec<NodeSample>,
    sources: Sources,
    times: Times,
    outcomes: [u64; 6],
    stopped: [Stopped; 4],
    pub(super) turns: WatchedTurns,
    open_turns: (u32, u32),
}

impl Sample {
    /// An empty sample of `model`. `most_sessions` decides whether all values can be kept. For each of `probes_s` the
    /// share of tool phases that last at most so long is counted.
    pub fn new(model: &Model, most_sessions: u64, probes_s: &[f64]) -> Self {
        let stores = Metric::ALL
            .iter()
            .map(|metric| {
                if most_sessions > MOST_EXACT_SESSIONS {
                    Store::buckets(metric.quantity().unit())
                } else {
                    Store::exact()
                }
            })
            .collect();
        let mean_turns = (model.turns.mean().min(model.max_turns as f64) * model.conversation.messages.mean()).max(1.0);
        Self {
            sessions: 0,
            kept: Kept::of(model),
            watched: Watched::of(model, mean_turns),
            open: Columns::default(),
            pieces: Vec::new(),
            stores,
            moments: vec![Moments::default(); Quantity::ALL.len()],
            ratios: vec![Covariance::default(); Rate::ALL.len()],
            probe_ratios: vec![Covariance::default(); probes_s.len()],
            probes_s: probes_s.to_vec(),
            probe_counts: vec![0; probes_s.len()],
            tool_ratios: vec![Default::default(); model.phase.tools.len()],
            nodes: vec![NodeSample::default(); if model.has_agents() { model.nodes() } else { 0 }],
            sources: Sources::of_servers(model.prompt.definitions.len()),
            times: Times::default(),
            outcomes: [0; 6],
            stopped: Default::default(),
            turns: WatchedTurns::default(),
            open_turns: (0, 0),
        }
    }

    /// Takes in another sample of the same model: a replication.
    pub fn join(&mut self, mut other: Sample) {
        for (mine, theirs) in self.stores.iter_mut().zip(std::mem::take(&mut other.stores)) {
            mine.join(theirs);
        }
        self.merge(&mut other);
    }

    /// Sessions played.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Moments over sessions.
    pub fn moments(&self, quantity: Quantity) -> &Moments {
        &self.moments[quantity as usize]
    }

    /// The ratio of two sums, where there was something to divide by.
    pub fn ratio(&self, rate: Rate) -> Option<Estimate> {
        let mut estimate = self.ratios[rate as usize].ratio(rate.is_share())?;
        if rate.is_at_most_one() {
            estimate.ci95[1] = estimate.ci95[1].min(1.0);
        }
        Some(estimate)
    }

    /// Of the calls of tool number `index`, the share that ran twice; `None` where it made none.
    pub fn tool_duplicates(&self, index: usize) -> Option<Estimate> {
        self.tool_ratios.get(index)?[0].ratio(true)
    }

    /// Of the tool phases, the share on whose longest path tool number `index` lay.
    pub fn tool_on_path(&self, index: usize) -> Option<Estimate> {
        self.tool_ratios.get(index)?[1].ratio(true)
    }

    /// The nodes of the tree of agents, the main agent first; empty where there are no others.
    pub fn nodes(&self) -> Vec<NodeSummary> {
        self.nodes.iter().map(NodeSample::summary).collect()
    }

    /// The share of tool phases that lasted at most as long as probe number `index`.
    pub fn phases_within_probe(&self, index: usize) -> Option<Estimate> {
        self.probe_ratios.get(index)?.ratio(true)
    }

    /// Values at rising ranks (from 1).
    pub(super) fn at_ranks(&self, metric: Metric, ranks: &[u64]) -> Vec<f64> {
        let moments = self.moments(metric.quantity());
        if moments.is_constant() {
            return vec![moments.min; ranks.len()];
        }
        self.stores[metric.quantity() as usize].at_ranks(ranks)
    }

    /// All values of a metric by session number, unless the run was too large to keep them.
    pub fn values(&self, metric: Metric) -> Option<Vec<f64>> {
        self.stores[metric.quantity() as usize].values()
    }

    /// How many sessions have at most this value, unless the run was too large to keep them.
    pub fn count_at_most(&self, metric: Metric, value: f64) -> Option<usize> {
        self.stores[metric.quantity() as usize].count_at_most(value)
    }

    /// How many sessions have at most this value; where not all are kept, to within a bucket.
    pub(super) fn about_at_most(&self, metric: Metric, value: f64) -> u64 {
        self.stores[metric.quantity() as usize].about_at_most(value)
    }

    /// The durations (s) of the watched sessions' turns or phases.
    pub fn turn_values_s(&self, metric: super::TurnMetric) -> &[f64] {
        match metric {
            super::TurnMetric::Latency => &self.turns.latency_s,
            super::TurnMetric::ToolPhase => &self.turns.phase_s,
            super::TurnMetric::FirstToken => &self.turns.first_token_s,
            super::TurnMetric::Message => &self.turns.message_s,
        }
    }

    /// Mean dollars of call 1, 2, … among the first sessions that reach it, as long as fifty do.
    pub fn turn_costs_usd(&self) -> Vec<f64> {
        const FEWEST: u64 = 50;
        let enough = FEWEST.min(self.turns.turns_per_session.len() as u64).max(1);
        let reached = self.turns.costs.iter().take_while(|(_, turns)| *turns >= enough);
        reached.map(|(cost, turns)| cost.usd() / *turns as f64).collect()
    }

    /// Money by what it went for, summed over all sessions.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Time by where it went, summed over all sessions.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The sessions that this limit ended.
    pub fn stopped(&self, limit: Limit) -> Stopped {
        self.stopped[limit as usize]
    }

    /// pass^k: chance that `k` sessions all succeed. Unbiased, over all choices of `k` sessions (Yao et al. 2024):
    /// `C(successes, k) / C(sessions, k)`, with the interval that follows from that of the success rate. `None` without
    /// `[outcome]`, or where there are fewer sessions.
    pub fn pass_k(&self, k: u32) -> Option<Estimate> {
        self.pass_k_with(k, &self.ratio(Rate::Success)?)
    }

    /// The same with the interval that follows from another estimate of the success rate.
    pub(super) fn pass_k_with(&self, k: u32, one: &Estimate) -> Option<Estimate> {
        let sessions = self.sessions as f64;
        let successes = (self.ratio(Rate::Success)?.value * sessions).round();
        let k = f64::from(k);
        if sessions < k {
            return None;
        }
        let value = (0..k as u64).map(|i| ((successes - i as f64) / (sessions - i as f64)).max(0.0)).product();
        let se = k * one.value.powf(k - 1.0) * one.se;
        Some(Estimate { value, se, ci95: one.ci95.map(|p| p.max(0.0).powf(k)) })
    }

    /// How many sessions ended so.
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }
}

impl Collect for Sample {
    fn empty(&self) -> Self {
        Self {
            sessions: 0,
            watched: self.watched,
            kept: self.kept.clone(),
            open: Columns::new(Quantity::ALL.len() + self.probes_s.len() + TOOL_COLUMNS * self.tool_ratios.len()),
            pieces: Vec::new(),
            stores: Vec::new(),
            moments: Vec::new(),
            ratios: Vec::new(),
            probe_ratios: Vec::new(),
            probes_s: self.probes_s.clone(),
            probe_counts: vec![0; self.probes_s.len()],
            tool_ratios: vec![Default::default(); self.tool_ratios.len()],
            nodes: vec![NodeSample::default(); self.nodes.len()],
            sources: Sources::of_servers(self.sources.definitions.len()),
            times: Times::default(),
            outcomes: [0; 6],
            stopped: Default::default(),
            turns: WatchedTurns::default(),
            open_turns: (0, 0),
        }
    }

    #[inline]
    fn watches(&self, session: u64) -> bool {
        self.watched.is_in(session)
    }

    fn turn(&mut self, turn: &Turn) {
        self.turns.latency_s.push(turn.latency_s);
        self.turns.add_cost(turn.number as usize - 1, turn.cost, 1);
        if turn.answered {
            self.turns.first_token_s.push(turn.first_token_s);
        }
        self.open_turns.0 += 1;
        if let Some(phase_s) = turn.tool_phase_s {
            self.turns.phase_s.push(phase_s);
            self.open_turns.1 += 1;
        }
    }

    fn message(&mut self, latency_s: f64) {
        self.turns.message_s.push(latency_s);
    }

    #[inline]
    fn phase(&mut self, duration_s: f64) {
        for (count, probe_s) in self.probe_counts.iter_mut().zip(&self.probes_s) {
            *count += u64::from(duration_s <= *probe_s);
        }
    }

    fn session(&mut self, number: u64, record: &Record, bill: &Bill, room: &Workspace) {
        self.sessions += 1;
        let mut row = self.open.add_row();
        for (column, get) in &self.kept.getters {
            row.set(*column, get(record));
        }
        let mut next = Quantity::ALL.len();
        for count in &mut self.probe_counts {
            row.set(Column::number(next), std::mem::take(count) as f64);
            next += 1;
        }
        for tool in room.per_tool().iter().take(self.tool_ratios.len()) {
            row.set(Column::number(next), tool.duplicates as f64);
            row.set(Column::number(next + 1), tool.calls as f64);
            row.set(Column::number(next + 2), tool.on_path as f64);
            next += TOOL_COLUMNS;
        }
        if let Some((main, others)) = self.nodes.split_first_mut() {
            main.push(&NodeSample::main(record));
            for (node, totals) in others.iter_mut().zip(room.per_node().iter().skip(1)) {
                node.push(totals);
            }
        }
        self.times.add(&Times::of(record));
        if let Some(limit) = record.stopped_by {
            let stopped = &mut self.stopped[limit as usize];
            stopped.sessions += 1;
            stopped.cost += record.cost;
            stopped.refused_worst += record.refused_worst;
            stopped.without_call += u64::from(record.turns == 0);
        }
        if record.cost.0 > 0 {
            self.sources.add_session(record, bill);
        }
        self.outcomes[record.outcome as usize] += 1;
        if self.watches(number) {
            let (turns, phases) = std::mem::take(&mut self.open_turns);
            self.turns.turns_per_session.push(turns);
            self.turns.phases_per_session.push(phases);
            self.turns.messages_per_session.push(record.messages as u32);
            self.turns.answers_per_session.push(record.answered_turns as u32);
        }
    }

    fn close(&mut self) {
        let column = |quantity: Quantity| self.open.get(quantity as usize);
        self.moments = vec![Moments::default(); Quantity::ALL.len()];
        for quantity in &self.kept.quantities {
            self.moments[*quantity as usize] = Moments::of(column(*quantity));
        }
        self.ratios = vec![Covariance::default(); Rate::ALL.len()];
        for rate in &self.kept.rates {
            let (y, x) = rate.parts();
            self.ratios[*rate as usize] = Covariance::of(column(y), column(x));
        }
        let piece = |metric: &Metric| {
            let quantity = metric.quantity();
            let is_kept = self.kept.quantities.contains(&quantity);
            is_kept.then(|| (quantity, Piece::of(column(quantity), &self.moments[quantity as usize])))
        };
        self.pieces = Metric::ALL.iter().filter_map(piece).collect();
        self.nodes.iter_mut().for_each(NodeSample::close);
        let phases = column(Quantity::Phases);
        let probes = Quantity::ALL.len();
        let tools = probes + self.probes_s.len();
        self.probe_ratios = (probes..tools).map(|probe| Covariance::of(self.open.get(probe), phases)).collect();
        let tool_ratio = |tool: usize| {
            let [duplicates, calls, on_path] =
                [0, 1, 2].map(|which| self.open.get(tools + TOOL_COLUMNS * tool + which));
            [Covariance::of(duplicates, calls), Covariance::of(on_path, phases)]
        };
        self.tool_ratios = (0..self.tool_ratios.len()).map(tool_ratio).collect();
    }

    fn merge(&mut self, next: &mut Self) {
        self.sessions += std::mem::take(&mut next.sessions);
        for (quantity, piece) in next.pieces.drain(..) {
            if let Some(store) = self.stores.get_mut(quantity as usize) {
                store.take(piece);
            }
        }
        next.open.clear();
        for (mine, other) in self.moments.iter_mut().zip(&next.moments) {
            mine.merge(other);
        }
        for (mine, other) in self.ratios.iter_mut().zip(&next.ratios) {
            mine.merge(other);
        }
        for (mine, other) in self.probe_ratios.iter_mut().zip(&next.probe_ratios) {
            mine.merge(other);
        }
        for (mine, other) in self.tool_ratios.iter_mut().flatten().zip(next.tool_ratios.iter().flatten()) {
            mine.merge(other);
        }
        for (mine, other) in self.nodes.iter_mut().zip(&mut next.nodes) {
            mine.merge(other);
        }
        self.times.add(&std::mem::take(&mut next.times));
        for (mine, other) in self.stopped.iter_mut().zip(std::mem::take(&mut next.stopped)) {
            mine.sessions += other.sessions;
            mine.cost += other.cost;
            mine.refused_worst += other.refused_worst;
            mine.without_call += other.without_call;
        }
        self.sources.add(&next.sources);
        next.sources = Sources::of_servers(next.sources.definitions.len());
        for (mine, other) in self.outcomes.iter_mut().zip(std::mem::take(&mut next.outcomes)) {
            *mine += other;
        }
        self.turns.append(&mut next.turns);
    }
}
