//! What the sessions of a fleet share: the servers of tools, breakers, outages, the agenda.

use super::clock::{Agenda, ns, seconds};
use super::recorder::{Ruler, Tally};
use super::station::{Place, Station};
use crate::model::{Fleet, MOST_TOOLS, Model, Tool};
use crate::session::{Arrival, BreakerState, Draws, Purpose, Reception, Servers, Session, What};

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
    /// Something happens to a call of a tool.
    InPhase { whose: Whose, tool: u32, call: u32, what: What },
    /// A tool has served a request.
    Served(AtTool),
    /// An outage begins or ends.
    Weather,
    /// The warm-up is over.
    WarmedUp,
}

/// A request at a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtTool {
    pub whose: Whose,
    pub tool: u32,
    pub call: u32,
    pub attempt: u32,
    pub is_answered: bool,
    service_ns: u64,
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
                let share = &mut self.shares[outage.tool.unwrap_or(model)];
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
    meets: Vec<bool>,
    weather: Weather,
    breakers: Option<Vec<BreakerState>>,
    /// Calls that a breaker ended.
    pub refused: Tally,
}

impl<'m> Shared<'m> {
    pub fn new(model: &Model, fleet: &'m Fleet) -> Self {
        let tools = &model.phase.tools;
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
            meets: tools.iter().map(Tool::is_shared).collect(),
            weather: Weather { shares: vec![None; tools.len() + 1] },
            breakers: model.phase.breaker.is_some().then(|| vec![BreakerState::default(); tools.len()]),
            refused: Tally::new(),
        }
    }

    /// Whether tool phases have to be played event by event.
    pub fn meet_in_phases(&self) -> bool {
        self.breakers.is_some() || self.meets.contains(&true)
    }

    /// Plans something some seconds from now.
    pub fn plan_in(&mut self, after_s: f64, what: Happening) {
        self.agenda.plan(self.now_ns.saturating_add(ns(after_s)), what);
    }

    pub fn look_at_weather(&mut self) {
        self.weather.look(self.fleet, self.now_ns);
    }

    /// Whether an outage hits an attempt: if so, whether it is silent. `tool` is `None` for the model.
    pub fn is_hit(&self, tool: Option<usize>, draws: &impl Draws, number: &mut u64) -> Option<bool> {
        let index = tool.unwrap_or(self.tools.len());
        let (share, is_silent) = (*self.weather.shares.get(index)?)?;
        let purpose = Purpose::Outage { tool: tool.unwrap_or(MOST_TOOLS) };
        let uniform = draws.uniform(purpose, 0, *number);
        *number += 1;
        (uniform < share).then_some(is_silent)
    }

    /// A server begins with a request.
    fn serve(&mut self, request: AtTool) {
        self.agenda.plan(self.now_ns.saturating_add(request.service_ns), Happening::Served(request));
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
pub(super) struct Meeting<'a, 'm, D> {
    shared: &'a mut Shared<'m>,
    draws: &'a D,
    whose: Whose,
    /// When the session began, s.
    origin_s: f64,
    /// Attempts that met an outage so far.
    outage_draws: &'a mut u64,
}

impl<'a, 'm, D: Draws> Meeting<'a, 'm, D> {
    /// Of a phase of a session that began at `run_ns`.
    pub fn new(
        shared: &'a mut Shared<'m>,
        session: &'a Session<'m, D>,
        whose: Whose,
        run_ns: u64,
        outage_draws: &'a mut u64,
    ) -> Self {
        Self { shared, draws: session.draws(), whose, origin_s: seconds(run_ns), outage_draws }
    }
}

impl<D: Draws> Servers for Meeting<'_, '_, D> {
    fn are_shared(&self, tool: usize) -> bool {
        self.shared.meets.get(tool).copied().unwrap_or(false)
    }

    fn breaker(&self, tool: usize) -> Option<(BreakerState, f64)> {
        Some((*self.shared.breakers.as_ref()?.get(tool)?, self.origin_s))
    }

    fn set_breaker(&mut self, tool: usize, state: BreakerState) {
        if let Some(own) = self.shared.breakers.as_mut().and_then(|all| all.get_mut(tool)) {
            *own = state;
        }
    }

    fn receive(&mut self, arrival: Arrival) -> Reception {
        let Arrival { tool, call, attempt, service_s, is_answered } = arrival;
        let hit = self.shared.is_hit(Some(tool), self.draws, self.outage_draws);
        let (now_ns, piece) = (self.shared.now_ns, self.shared.piece);
        let Some(station) = self.shared.tools.get_mut(tool) else { return Reception::Lost };
        station.record.came.count(piece);
        if let Some(is_silent) = hit {
            station.record.down.count(piece);
            return if is_silent { Reception::Lost } else { Reception::TurnedAway };
        }
        let (tool, call) = (tool as u32, call as u32);
        let request = AtTool { whose: self.whose, tool, call, attempt, is_answered, service_ns: ns(service_s) };
        match station.receive(request, now_ns, piece) {
            Place::Served => self.shared.serve(request),
            Place::Waits => {}
            Place::None => return Reception::TurnedAway,
        }
        Reception::Admitted
    }
}
