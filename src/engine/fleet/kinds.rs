//! The kinds of sessions in a fleet: the main agent's, those on the small model of `[routing]`, and those of every place in
//! the tree of agents.

use crate::model::{Agent, Fleet, Model};

/// One kind.
#[derive(Debug)]
pub(super) struct Kind<'m> {
    pub model: &'m Model,
    /// What it is called as, where it is an agent's.
    pub agent: Option<&'m Agent>,
    /// The station of its first tool.
    pub first_station: usize,
    /// The prefix that its sessions share.
    pub prefix: usize,
    /// Whether its model calls meet the fleet's limits and the model's outages: those of another model don't.
    pub is_limited: bool,
    /// Whether others have a say in its model calls.
    pub is_gated: bool,
    /// Whether its tool phases have to be played event by event.
    pub meets_in_phases: bool,
    /// Of each tool, the kind of the sessions that its calls are.
    pub agents: Vec<Option<u32>>,
}

/// The main agent's sessions.
pub(super) const MAIN: u32 = 0;

/// All of them.
#[derive(Debug)]
pub(super) struct Kinds<'m> {
    all: Vec<Kind<'m>>,
    /// Of every agent by number, the station of its first tool.
    stations: Vec<(usize, usize)>,
    /// Whether limits or outages can stop a call of the main agent's model.
    has_limits: bool,
    small: Option<u32>,
}

/// The prefixes of the main agent and of the small model come before those of agents.
const OWN_PREFIXES: usize = 2;

impl<'m> Kinds<'m> {
    pub fn new(model: &'m Model, fleet: &Fleet) -> Self {
        let mut kinds = Self {
            all: Vec::new(),
            stations: model.phase.agent_stations(),
            has_limits: fleet.rules_calls(),
            small: None,
        };
        kinds.add(model, None, 0, 0);
        kinds.small = model.routing.as_ref().map(|routing| kinds.add(&routing.small, None, 0, 1));
        kinds
    }

    fn add(&mut self, model: &'m Model, agent: Option<&'m Agent>, first_station: usize, prefix: usize) -> u32 {
        let own = self.all.len();
        let tools = &model.phase.tools;
        self.all.push(Kind {
            model,
            agent,
            first_station,
            prefix,
            is_limited: model.is_main,
            is_gated: (model.is_main && self.has_limits) || model.cache.enabled,
            meets_in_phases: model.phase.breaker.is_some() || tools.iter().any(crate::model::Tool::is_shared),
            agents: Vec::new(),
        });
        let below = |tool: &'m crate::model::Tool| {
            let agent = tool.agent.as_ref()?;
            let (_, first_station) = *self.stations.iter().find(|(number, _)| *number == agent.number)?;
            Some(self.add(&agent.model, Some(agent), first_station, OWN_PREFIXES + agent.prefix))
        };
        let agents = tools.iter().map(below).collect();
        if let Some(kind) = self.all.get_mut(own) {
            kind.agents = agents;
        }
        own as u32
    }

    /// The kind with this number.
    pub fn get(&self, number: u32) -> &Kind<'m> {
        &self.all[number as usize]
    }

    /// The number of the kind that a run of a session of the main agent is.
    pub fn of_run(&self, model: &Model) -> u32 {
        self.small.filter(|small| std::ptr::eq(self.get(*small).model, model)).unwrap_or(MAIN)
    }

    /// How many prefixes there are.
    pub fn prefixes(&self) -> usize {
        self.all.iter().map(|kind| kind.prefix + 1).max().unwrap_or(0)
    }
}
