//! Many sessions at once: played, summed up over replications.

use super::{Answer, Progress};
use crate::check::check_fleet;
use crate::engine::{Collect, Play, Replication, play_fleet};
use crate::error::Error;
use crate::model::{Agent, Arrivals, Fleet, Model};
use crate::scenario::Scenario;
use crate::session::{Bill, Record, Turn, Workspace};
use crate::stats::{Figure, FleetSummary, Moments, Place, Sample, fleet_sessions};
use crate::table::{Rows, Sink};

/// A fleet's replications with what they came to.
#[derive(Debug, Clone)]
pub struct FleetAnswer {
    /// The numbers that only a fleet has.
    pub summary: FleetSummary,
    /// What each replication says of each figure; nothing where it says nothing.
    pub values: Vec<(Figure, Vec<Option<f64>>)>,
    /// What they come from, for checks and charts; samples apart.
    pub replications: Vec<Replication<()>>,
}

impl Collect for () {
    fn empty(&self) -> Self {}

    fn watches(&self, _session: u64) -> bool {
        false
    }

    fn turn(&mut self, _turn: &Turn) {}

    fn session(&mut self, _number: u64, _record: &Record, _bill: &Bill, _room: &Workspace) {}

    fn merge(&mut self, _next: &mut Self) {}
}

/// Plays the scenario's fleet.
///
/// # Errors
/// Where more work is sure to come than can be done.
pub(super) fn answer_fleet(
    scenario: Scenario,
    fleet: &Fleet,
    progress: &dyn Progress,
    tables: Option<&dyn Sink>,
) -> Result<Answer, Error> {
    let model = &scenario.model;
    if let Some(overload) = overload(&scenario, fleet) {
        return Err(Error::Unstable(overload));
    }
    let expected = fleet.arrivals.mean_per_s(fleet.horizon_s) * fleet.horizon_s * fleet.replications as f64;
    let most = (expected * MANY).ceil() as u64;
    progress.goal(expected as u64);
    let fresh = || Sample::new(model, if most > MOST_EXACT { u64::MAX } else { most }, &[]);
    let first = tables.map_or(0, |sink| sink.streams(fleet.replications));
    let recorded = |number: u64| {
        let rows = tables.map(|sink| Rows::new(model, &scenario.strategy, Some(number), sink, first + number));
        (fresh(), rows)
    };
    let empty = (fresh(), tables.map(|sink| Rows::new(model, &scenario.strategy, Some(0), sink, first)));
    let played = play_fleet(model, fleet, scenario.run.seed, &empty, recorded, &|n| progress.done(n));
    let played: Vec<Replication<Sample>> =
        played.into_iter().map(|replication| replication.map_sample(|(sample, _)| sample)).collect();
    let mut pooled = fresh();
    for replication in &played {
        pooled.join(replication.sample.clone());
    }
    let mut summary = fleet_sessions(model, &played, &pooled);
    let fleet_summary = FleetSummary::new(model, fleet, &played);
    if fleet_summary.growth.is_some() {
        // what grows has no mean
        (summary.metrics, summary.turn_metrics, summary.rates) = (Vec::new(), Vec::new(), Vec::new());
        (summary.sources, summary.times) = (None, None);
    }
    let of_each = |figure: Figure| (figure, played.iter().map(|r| figure.of(r)).collect());
    let values = Figure::all(model).into_iter().map(of_each).collect();
    let replications: Vec<Replication<()>> = played.into_iter().map(|r| r.map_sample(|_| ())).collect();
    let checks = check_fleet(model, fleet, &scenario.places, &fleet_summary, &replications);
    let answer = FleetAnswer { summary: fleet_summary, values, replications };
    Ok(Answer { sample: pooled, summary, checks, loadings: Vec::new(), fleet: Some(answer), scenario })
}

/// All values of so many sessions are kept; of more, quantiles come from histograms, so that memory doesn't grow with the
/// horizon.
const MOST_EXACT: u64 = 2_000_000;

/// Far more sessions than are expected don't come.
const MANY: f64 = 1.1;

/// A tool of an agent: where in the tree it is called, and its share of the tool calls there.
#[derive(Clone)]
struct AgentTool {
    nodes: Vec<usize>,
    share: f64,
}

impl AgentTool {
    /// Those of all agents, in the order of [`Model::station_tools`].
    fn all(model: &Model, places: &[(usize, &Agent)]) -> Vec<Self> {
        let of_agent = |(number, agent): (usize, &Model)| {
            let at = places.iter().filter(|(_, other)| other.number == number);
            let nodes: Vec<usize> = at.map(|(node, _)| *node).collect();
            let calls: Vec<f64> = agent.phase.tools.iter().map(|tool| tool.calls.mean()).collect();
            let all: f64 = calls.iter().sum();
            let share = move |calls: f64| if all > 0.0 { calls / all } else { 0.0 };
            calls.into_iter().map(move |calls| Self { nodes: nodes.clone(), share: share(calls) }).collect::<Vec<_>>()
        };
        model.agents_by_number().into_iter().flat_map(of_agent).collect()
    }

    /// Its calls in a session of the main agent, on average over which of the agent's tools they are of.
    fn calls(&self, room: &Workspace) -> f64 {
        let nodes = self.nodes.iter().filter_map(|node| room.per_node().get(*node));
        self.share * nodes.map(|totals| totals.tool_calls as f64).sum::<f64>()
    }
}

/// How much work the sessions bring to a station without an end of places.
struct Demand {
    /// Tools of the main agent.
    own_tools: usize,
    agent_tools: Vec<AgentTool>,
    /// Agents whose calls are of the main agent's model.
    on_main_model: Vec<usize>,
    /// Of each session: the time that calls of its model take, s, then the calls of each station's tool.
    sessions: Vec<Vec<f64>>,
}

impl Collect for Demand {
    fn empty(&self) -> Self {
        let (agent_tools, on_main_model) = (self.agent_tools.clone(), self.on_main_model.clone());
        Self { own_tools: self.own_tools, agent_tools, on_main_model, sessions: Vec::new() }
    }

    fn watches(&self, _session: u64) -> bool {
        false
    }

    fn turn(&mut self, _turn: &Turn) {}

    fn session(&mut self, _number: u64, record: &Record, _bill: &Bill, room: &Workspace) {
        let own = room.per_tool().iter().take(self.own_tools).map(|tool| tool.calls as f64);
        let of_agents = self.agent_tools.iter().map(|tool| tool.calls(room));
        let agents = self.on_main_model.iter().filter_map(|node| room.per_node().get(*node));
        let model_s = record.model_s - record.model_wait_s + agents.map(|totals| totals.model_s).sum::<f64>();
        self.sessions.push(std::iter::once(model_s).chain(own).chain(of_agents).collect());
    }

    fn merge(&mut self, next: &mut Self) {
        self.sessions.append(&mut next.sessions);
    }
}

/// What is surely asked of a station, and what it can do.
#[derive(Debug, Clone, PartialEq)]
pub struct Overload {
    /// Whose it is.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// Servers.
    pub servers: u64,
    /// Sessions that arrive, an hour.
    pub arrive_per_hour: f64,
    /// Servers that would be busy if there were enough; and the least that it can reasonably be, which decides.
    pub needed: f64,
    /// See `needed`.
    pub least_needed: f64,
}

impl Overload {
    /// By how many sessions in progress would grow at least, an hour. A session that comes back to the station gives each of
    /// its calls a longer wait than the last, so that fewer are done than could be.
    pub fn growth_per_hour(&self) -> f64 {
        self.arrive_per_hour * (1.0 - self.servers as f64 / self.least_needed)
    }
}

/// The busiest station that can't do what is surely asked of it, known before anything is played. Where sessions can fail
/// because of what they share, or a breaker spares a tool, nothing is sure.
fn overload(scenario: &Scenario, fleet: &Fleet) -> Option<Overload> {
    const SESSIONS: u64 = 2_000;
    let model = &scenario.model;
    let stations = model.station_tools();
    if fleet.limits.any_rate()
        || !fleet.outages.is_empty()
        || model.has_breakers()
        || matches!(fleet.arrivals, Arrivals::Times(_))
        || model.any_in_tree(&|model| model.budget.time_s.is_some() || model.searches())
        || stations.iter().any(|tool| tool.station.is_some_and(|station| station.places < u64::MAX))
    {
        return None;
    }
    let alone = Model { fleet: None, ..model.clone() };
    let agents = model.phase.agents_by_node();
    let mut demand = Demand {
        own_tools: model.phase.tools.len(),
        agent_tools: AgentTool::all(model, &agents),
        on_main_model: agents.iter().filter(|(_, agent)| agent.model.is_main).map(|(node, _)| *node).collect(),
        sessions: Vec::new(),
    };
    Play { model: &alone, seed: scenario.run.seed, sessions: 0..SESSIONS }.run(&mut demand, &|_| {});
    // the mean, and where chance is left the least that it can reasonably be
    let work = |index: usize| {
        let values: Vec<f64> = demand.sessions.iter().filter_map(|session| session.get(index).copied()).collect();
        let mean = Moments::of(&values).estimate();
        [mean.value, mean.value - 4.0 * mean.se.max(0.0)]
    };
    let per_s = fleet.arrivals.mean_per_s(fleet.horizon_s);
    let loads = stations.iter().enumerate().filter_map(|(index, tool)| {
        // first attempts alone
        let denied = tool.approval.as_ref().map_or(0.0, |approval| approval.share * approval.denied);
        let reach = (1.0 - tool.faults.lost_request - tool.faults.rejected) * (1.0 - denied);
        let work_s = work(index + 1).map(|calls| calls * reach * tool.latency_s.mean());
        Some((Place::Tool(index), scenario.places.get(index)?.clone(), tool.station?.servers, work_s))
    });
    // what others keep cached for it makes a call shorter
    let prefills = |model: &Model| {
        model.is_main && (model.timing.prefill_s_per_token > 0.0 || model.timing.cached_prefill_s_per_token > 0.0)
    };
    let of_model = fleet
        .limits
        .concurrent
        .filter(|_| !model.any_in_tree(&prefills) && model.routing.as_ref().is_none_or(|routing| routing.small.is_main))
        .map(|servers| (Place::Model, "the model".to_owned(), servers, work(0)));
    loads
        .chain(of_model)
        .map(|(place, name, servers, work_s)| Overload {
            place,
            name,
            servers,
            arrive_per_hour: per_s * 3600.0,
            needed: per_s * work_s[0],
            least_needed: per_s * work_s[1],
        })
        .filter(|load| load.least_needed >= load.servers as f64)
        .max_by(|a, b| (a.needed / a.servers as f64).total_cmp(&(b.needed / b.servers as f64)))
}
