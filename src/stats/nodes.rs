//! The tree of agents: what the sessions at each node come to.

use super::moments::{Covariance, Estimate, Moments};
use crate::session::{NodeTotals, Record};

/// What is counted at a node, in the order of its columns.
const COLUMNS: usize = 12;

/// Columns that are reported per session of the main agent, and those that are ratios to the node's sessions.
const SESSIONS: usize = 0;
const COST: usize = 1;
const DURATION: usize = 6;

fn columns(totals: &NodeTotals) -> [f64; COLUMNS] {
    [
        totals.sessions as f64,
        totals.cost.usd(),
        totals.input_tokens as f64,
        totals.output_tokens as f64,
        totals.turns as f64,
        totals.tool_calls as f64,
        totals.duration_s,
        totals.unanswered as f64,
        totals.warm as f64,
        totals.unserved as f64,
        totals.executions as f64,
        totals.duplicates as f64,
    ]
}

/// One node over all sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeSample {
    open: [Vec<f64>; COLUMNS],
    moments: [Moments; COLUMNS],
    per_session: [Covariance; COLUMNS],
    /// Duplicates per call.
    duplicates: Covariance,
}

/// One node's figures: the first six are means per session of the main agent, the last four per session of the node.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct NodeSummary {
    pub sessions: Estimate,
    pub cost_usd: Estimate,
    pub input_tokens: Estimate,
    pub output_tokens: Estimate,
    pub turns: Estimate,
    pub tool_calls: Estimate,
    /// From its first request to its end, s; `None` where there was no session.
    pub duration_s: Option<Estimate>,
    /// Share of its sessions that didn't end with their answer.
    pub unanswered: Option<Estimate>,
    /// Share of its sessions whose first call found tools and system in the cache.
    pub warm: Option<Estimate>,
    /// Share of its sessions that lacked a tool that they had searched for.
    pub unserved: Option<Estimate>,
    /// Executions of its tools' calls, per session of the main agent.
    pub executions: Estimate,
    /// Of its tools' calls, those that were executed twice or more.
    pub duplicates_per_call: Option<Estimate>,
}

impl NodeSummary {
    /// The same figures from those of several replications, as `mean` and `share` make one of many.
    pub(super) fn over(
        all: &[&Self],
        mean: &dyn Fn(Vec<f64>) -> Estimate,
        share: &dyn Fn(Vec<f64>) -> Estimate,
    ) -> Self {
        let each = |of: &dyn Fn(&Self) -> Estimate| mean(all.iter().map(|node| of(node).value).collect());
        let some = |of: &dyn Fn(&Self) -> Option<Estimate>, make: &dyn Fn(Vec<f64>) -> Estimate| {
            let values: Vec<f64> = all.iter().filter_map(|node| Some(of(node)?.value)).collect();
            (!values.is_empty()).then(|| make(values))
        };
        Self {
            sessions: each(&|node| node.sessions),
            cost_usd: each(&|node| node.cost_usd),
            input_tokens: each(&|node| node.input_tokens),
            output_tokens: each(&|node| node.output_tokens),
            turns: each(&|node| node.turns),
            tool_calls: each(&|node| node.tool_calls),
            duration_s: some(&|node| node.duration_s, mean),
            unanswered: some(&|node| node.unanswered, share),
            warm: some(&|node| node.warm, share),
            unserved: some(&|node| node.unserved, share),
            executions: each(&|node| node.executions),
            duplicates_per_call: some(&|node| node.duplicates_per_call, share),
        }
    }
}

impl NodeSample {
    /// What the main agent itself came to.
    pub fn main(record: &Record) -> NodeTotals {
        let mut totals = NodeTotals::of(record, record.latency_s, false);
        totals.sessions = record.runs.max(1);
        totals
    }

    pub fn push(&mut self, totals: &NodeTotals) {
        for (column, value) in self.open.iter_mut().zip(columns(totals)) {
            column.push(value);
        }
    }

    pub fn close(&mut self) {
        let [sessions, ..] = &self.open;
        for ((column, moments), ratio) in self.open.iter().zip(&mut self.moments).zip(&mut self.per_session) {
            *moments = Moments::of(column);
            *ratio = Covariance::of(column, sessions);
        }
        self.duplicates = Covariance::of(&self.open[11], &self.open[5]);
    }

    pub fn merge(&mut self, next: &mut Self) {
        for (mine, other) in self.moments.iter_mut().zip(&next.moments) {
            mine.merge(other);
        }
        for (mine, other) in self.per_session.iter_mut().zip(&next.per_session) {
            mine.merge(other);
        }
        self.duplicates.merge(&next.duplicates);
        next.open.iter_mut().for_each(Vec::clear);
    }

    pub fn summary(&self) -> NodeSummary {
        let mean = |column: usize| self.moments[column].estimate();
        let ratio = |column: usize, is_share: bool| self.per_session[column].ratio(is_share);
        NodeSummary {
            sessions: mean(SESSIONS),
            cost_usd: mean(COST),
            input_tokens: mean(2),
            output_tokens: mean(3),
            turns: mean(4),
            tool_calls: mean(5),
            duration_s: ratio(DURATION, false),
            unanswered: ratio(7, true),
            warm: ratio(8, true),
            unserved: ratio(9, true),
            executions: mean(10),
            duplicates_per_call: self.duplicates.ratio(true),
        }
    }
}
