//! What the sessions of a fleet share: the servers of tools, breakers, outages, the agenda.

use super::clock::{Agenda, Shelf, ns, seconds};
use super::kinds::Kind;
use super::recorder::{Ruler, Tally};
use super::station::{Place, Station};
use crate::engine::rng::SessionDraws;
use crate::model::{Fleet, MOST_TOOLS, Model};
use crate::session::{Arrival, BreakerState, Draws, Purpose, Reception, Servers, What};

/// Where a session is kept, and which of its phases is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whose {
    pub slot: u32,
    pub phase: u32,
}

/// What happens in a fleet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Happening {
    /// The next session arrives.
    Arrives,
    /// A session goes on.
    GoesOn(u32),
    /// A model call is over.
    CallOver(u32),
    /// A model call that waits for a place can't wait any longer.
    LeavesQueue { slot: u32, wait: u32 },
    /// It is time for a session's ping, if no call has come before it.
    Pings { slot: u32, ping: u32 },
    /// Something happens to a call of a tool.
    InPhase { whose: Whose, tool: u16, call: u16, what: What },
    /// A tool has served the request that is kept here.
    Served(u32),
    /// A tool that is an agent begins with the request that is kept here.
    AgentBegins(u32),
    /// An outage begins or ends.
    Weather,
    /// The warm-up is over.
    WarmedUp,
}

/// A request at a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtTool {
    pub whose: Whose,
    /// Its number among all tools of the fleet, and among those of the session that calls it.
    pub station: u32,
    pub tool: u16,
    pub call: u16,
    pub attempt: u32,
    pub is_answered: bool,
    pub work: Work,
}

/// What a tool does with a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// It works on it for so long, ns.
    Takes(u64),
    /// It is an agent, and plays a session of this kind.
    Session { draws: SessionDraws, kind: u32 },
}

/// Outages at the moment, of each tool and then of the model: chance and whether it is silent.
#[derive(Debug)]
pub(super) struct Weather {
    shares: Vec<Option<(f64, bool)>>,
}

impl Weather {
    /// Looks out at `now_ns`. Where several outages overlap the larger share counts.
    fn look(&mut self, fleet: &Fleet, now_ns: u64) {
        self.shares.fill(None);
        let model = self.shares.len() - 1;
        for outage in &fleet.outages {
            if ns(outage.from_s) <= now_ns && now_ns < ns(outage.until_s) {
                let share = &mut self.shares[outage.station.unwrap_or(model)];
                *share = Some(match *share {
                    Some(other) if other.0 >= outage.share => other,
                    _ => (outage.share, outage.is_silent),
                });
            }
        }
    }
}

/// What sessions share.
#[derive(Debug)]
pub(super) struct Shared<'m> {
    pub fleet: &'m Fleet,
    pub now_ns: u64,
    pub agenda: Agenda<Happening>,
    pub ruler: Ruler,
    pub piece: usize,
    /// One a tool.
    pub tools: Vec<Station<AtTool>>,
    /// Requests that events are about, which are small without them.
    requests: Shelf<AtTool>,
    meets: Vec<bool>,
    weather: Weather,
    breakers: Option<Vec<BreakerState>>,
    /// Calls that a breaker ended.
    pub refused: Tally,
}

impl<'m> Shared<'m> {
    pub fn new(model: &Model, fleet: &'m Fleet) -> Self {
        let tools = model.station_tools();
        let ruler = Ruler::new(ns(fleet.horizon_s));
        let stations = tools.iter().enumerate().map(|(index, tool)| {
            let (servers, places) = tool.station.map_or((u64::MAX, u64::MAX), |s| (s.servers, s.places));
            Station::new(Some(index), servers, places, ruler)
        });
        let mut agenda = Agenda::new();
        for outage in &fleet.outages {
            agenda.plan(ns(outage.from_s), Happening::Weather);
            agenda.plan(ns(outage.until_s), Happening::Weather);
        }
        Self {
            fleet,
            now_ns: 0,
            agenda,
            ruler,
            piece: 0,
            tools: stations.collect(),
            requests: Shelf::default(),
            meets: tools.iter().map(|tool| tool.is_shared()).collect(),
            weather: Weather { shares: vec![None; tools.len() + 1] },
            breakers: model.has_breakers().then(|| vec![BreakerState::default(); tools.len()]),
            refused: Tally::new(),
        }
    }

    /// Plans something some seconds from now.
    #[inline]
    pub fn plan_in(&mut self, after_s: f64, what: Happening) {
        self.agenda.plan(self.now_ns.saturating_add(ns(after_s)), what);
    }

    pub fn look_at_weather(&mut self) {
        self.weather.look(self.fleet, self.now_ns);
    }

    /// Whether an outage hits an attempt: if so, whether it is silent. `at` is the station of a tool and its number in the
    /// session, `None` for the model.
    pub fn is_hit(&self, at: Option<(usize, usize)>, draws: &impl Draws, number: &mut u64) -> Option<bool> {
        let (station, tool) = at.unwrap_or((self.tools.len(), MOST_TOOLS));
        let (share, is_silent) = (*self.weather.shares.get(station)?)?;
        let purpose = Purpose::Outage { tool };
        let uniform = draws.uniform(purpose, 0, *number);
        *number += 1;
        (uniform < share).then_some(is_silent)
    }

    /// A server begins with a request.
    fn serve(&mut self, request: AtTool) {
        let place = self.requests.put(request);
        match request.work {
            Work::Takes(service_ns) => {
                self.agenda.plan(self.now_ns.saturating_add(service_ns), Happening::Served(place));
            }
            Work::Session { .. } => self.agenda.plan(self.now_ns, Happening::AgentBegins(place)),
        }
    }

    /// The request that an event is about; its place is free again.
    pub fn take(&mut self, place: u32) -> Option<AtTool> {
        self.requests.take(place)
    }

    /// A tool has served a request; returns the request whose service begins, and how long it waited, s.
    pub fn served(&mut self, tool: usize) -> Option<(AtTool, f64)> {
        let (now_ns, piece) = (self.now_ns, self.piece);
        let station = self.tools.get_mut(tool)?;
        station.record.served.count(piece);
        let (next, waited_ns) = station.freed(now_ns)?;
        self.serve(next);
        Some((next, seconds(waited_ns)))
    }
}

/// What a session's calls meet.
pub(super) struct Meeting<'a, 'm> {
    pub shared: &'a mut Shared<'m>,
    /// What the session is.
    pub kind: &'a Kind<'m>,
    pub draws: &'a SessionDraws,
    pub whose: Whose,
    /// When its run began.
    pub run_ns: u64,
    /// Attempts that met an outage so far.
    pub outage_draws: &'a mut u64,
    /// Sessions of agents that it has called and that aren't over.
    pub open_agents: &'a mut u32,
}

impl Servers for Meeting<'_, '_> {
    fn are_shared(&self, tool: usize) -> bool {
        self.shared.meets.get(self.kind.first_station + tool).copied().unwrap_or(false)
    }

    fn breaker(&self, tool: usize) -> Option<(BreakerState, f64)> {
        Some((*self.shared.breakers.as_ref()?.get(self.kind.first_station + tool)?, seconds(self.run_ns)))
    }

    fn set_breaker(&mut self, tool: usize, state: BreakerState) {
        let station = self.kind.first_station + tool;
        if let Some(own) = self.shared.breakers.as_mut().and_then(|all| all.get_mut(station)) {
            *own = state;
        }
    }

    fn receive(&mut self, arrival: Arrival) -> Reception {
        let Arrival { tool, call, attempt, is_second, turn, service_s, is_answered } = arrival;
        let at = self.kind.first_station + tool;
        let hit = self.shared.is_hit(Some((at, tool)), self.draws, self.outage_draws);
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let Some(station) = self.shared.tools.get_mut(at) else { return Reception::Lost };
        station.record.came.count(piece);
        if let Some(is_silent) = hit {
            station.record.down.count(piece);
            return if is_silent { Reception::Lost } else { Reception::TurnedAway };
        }
        let agent = self.kind.agents.get(tool).copied().flatten();
        let work = match agent {
            None => Work::Takes(ns(service_s)),
            Some(kind) => {
                // as where a session is played alone
                let copy = 2 * u64::from(attempt) + u64::from(is_second);
                let draws = self.draws.child(Purpose::Agent { tool, call: call as u64 }, turn, copy);
                Work::Session { draws, kind }
            }
        };
        let (station_number, whose) = (at as u32, self.whose);
        let (tool, call) = (tool as u16, call as u16);
        let request = AtTool { whose, station: station_number, tool, call, attempt, is_answered, work };
        match station.receive(request, now_ns, piece) {
            Place::Served => self.shared.serve(request),
            Place::Waits => {}
            Place::None => return Reception::TurnedAway,
        }
        *self.open_agents += u32::from(agent.is_some());
        Reception::Admitted
    }
}
