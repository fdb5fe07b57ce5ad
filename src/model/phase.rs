//! The tools of a session, and how their calls follow each other.

use super::{Agent, Faults, Model, Retry, Station};
use crate::dist::{Dist, Whole};
use crate::price::PicoUsd;

/// The tool phase after a model call.
#[derive(Debug, Clone)]
pub struct Phase {
    /// The tools in file order.
    pub tools: Vec<Tool>,
    /// Indices of `tools` such that each comes after all that it waits for.
    pub order: Vec<usize>,
    /// For each tool, the tools whose calls must be done before its own start.
    pub after: Vec<Vec<usize>>,
    /// Whether a tool's calls run one after another (`sequential`) instead of together.
    pub one_at_a_time: bool,
    /// When a failing tool isn't called any more.
    pub breaker: Option<Breaker>,
    /// Servers whose tools are called from code.
    pub code: Vec<CodeServer>,
}

impl Phase {
    /// The agents below it as a walk meets them, each with its place in the tree, in which it stands at 0 itself.
    pub fn agents_by_node(&self) -> Vec<(usize, &Agent)> {
        let mut found = Vec::new();
        self.walk_agents(0, &mut found);
        found
    }

    fn walk_agents<'a>(&'a self, node: usize, found: &mut Vec<(usize, &'a Agent)>) {
        for agent in self.tools.iter().filter_map(|tool| tool.agent.as_ref()) {
            found.push((node + agent.node, agent));
            agent.model.phase.walk_agents(node + agent.node, found);
        }
    }

    /// The same agents, each once with its number.
    pub fn agents_by_number(&self) -> Vec<(usize, &Model)> {
        let mut found: Vec<(usize, &Model)> = Vec::new();
        for (_, agent) in self.agents_by_node() {
            if !found.iter().any(|(number, _)| *number == agent.number) {
                found.push((agent.number, &agent.model));
            }
        }
        found
    }

    /// The number of each agent with that of its first tool among [`Model::station_tools`].
    pub fn agent_stations(&self) -> Vec<(usize, usize)> {
        let mut next = self.tools.len();
        let station = |(number, agent): (usize, &Model)| {
            let first = next;
            next += agent.phase.tools.len();
            (number, first)
        };
        self.agents_by_number().into_iter().map(station).collect()
    }

    /// Marks a station of a fleet, by its number among [`Model::station_tools`], as one that can be out of order.
    pub fn mark_outage(&mut self, station: usize) {
        if let Some(tool) = self.tools.get_mut(station) {
            tool.has_outage = true;
        } else if let Some((number, first)) =
            self.agent_stations().into_iter().rev().find(|(_, first)| *first <= station)
        {
            self.mark_of_agent(number, station - first);
        }
    }

    /// The same of a tool of every copy of an agent.
    fn mark_of_agent(&mut self, number: usize, index: usize) {
        for agent in self.tools.iter_mut().filter_map(|tool| tool.agent.as_mut()) {
            let phase = &mut agent.model.phase;
            if agent.number == number
                && let Some(tool) = phase.tools.get_mut(index)
            {
                tool.has_outage = true;
            }
            phase.mark_of_agent(number, index);
        }
    }
}

/// After `failures` failed attempts in a row a tool's calls fail at once for `cooldown_s`; then one probe decides
/// (MODEL.md §4.8). Each tool has a breaker of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breaker {
    /// Failed attempts in a row, at least 1.
    pub failures: u64,
    /// How long it stays open, s.
    pub cooldown_s: f64,
}

/// A person who has to agree before a tool's call runs (MODEL.md §4.7).
#[derive(Debug, Clone)]
pub struct Approval {
    /// Chance that a call has to wait for a person.
    pub share: f64,
    /// How long it waits, s.
    pub wait_s: Dist,
    /// Chance that the person says no; such a call never runs.
    pub denied: f64,
}

/// One tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Calls per phase.
    pub calls: Whole,
    /// How the model comes to know it.
    pub loading: Loading,
    /// The agent that it is, if it is one; `latency_s` is 0 then.
    pub agent: Option<Agent>,
    /// Tokens of one result.
    pub result: Whole,
    /// Tokens of a failed call's text.
    pub error_result_tokens: u64,
    /// Time from request to answer, s.
    pub latency_s: Dist,
    /// What can happen to an attempt.
    pub faults: Faults,
    /// How long a rejection takes, s.
    pub reject_latency_s: Dist,
    /// A second copy of an attempt is sent after this long, s; infinite where off.
    pub hedge_after_s: f64,
    /// The servers that its calls share in a fleet; `None` where there is no end of them.
    pub station: Option<Station>,
    /// Whether it breaks down in a fleet.
    pub has_outage: bool,
    /// Whether calls wait for a person.
    pub approval: Option<Approval>,
    /// Chance that an answered call reports an error of the tool itself.
    pub error: f64,
    /// Whether the server answers a repeated call with its first result instead of doing it again.
    pub idempotent: bool,
    /// Money per execution.
    pub price: PicoUsd,
    /// What the client does after a failed attempt.
    pub retry: Retry,
}

impl Tool {
    /// Whether a call can be executed twice: it is hedged, or sent again after its reply was lost, by chance or by the
    /// timeout.
    pub fn can_run_twice(&self) -> bool {
        let late = match &self.agent {
            Some(_) => self.faults.timeout_s.is_finite(),
            None if self.station.is_some() => self.faults.timeout_s.is_finite(),
            None => self.latency_s.sf(self.faults.timeout_s) > 0.0,
        };
        let again = self.retry.attempts > 1 && (self.faults.lost_reply > 0.0 || late);
        !self.idempotent && (again || self.is_hedged())
    }

    /// Whether an attempt can fail: by chance, by a timeout, or because of what sessions share.
    pub fn attempts_can_fail(&self) -> bool {
        self.faults.any() || self.has_outage || self.station.is_some_and(|station| station.places < u64::MAX)
    }

    /// Whether its calls meet those of other sessions of a fleet: at servers, in an outage, or as sessions of an agent.
    pub fn is_shared(&self) -> bool {
        self.station.is_some() || self.has_outage || self.agent.is_some()
    }

    /// Whether a second copy may be sent.
    pub fn is_hedged(&self) -> bool {
        self.hedge_after_s.is_finite()
    }
}

/// How the model comes to know a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// Its definition is in the prompt.
    Upfront,
    /// It is searched for when it is first needed, and each search appends so many tokens of definitions.
    Search {
        /// Tokens.
        appended_tokens: u64,
    },
    /// It is called from code; the number of its server in [`Phase::code`].
    Code {
        /// Index.
        server: usize,
    },
}

/// A server whose tools are called from code (MODEL.md §4.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeServer {
    /// Tokens of definitions that enter the history at the first use.
    pub read_tokens: u64,
    /// The most tokens of a phase's results that enter the history; `u64::MAX` for all.
    pub kept_tokens: u64,
}
