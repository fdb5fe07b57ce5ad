//! Tools that are agents: a call is a whole session, played where it begins (MODEL.md §4.9).

use std::ops::AddAssign;

use super::draws::{Draws, Purpose};
use super::phase::{Batch, PhaseTotals, Workspace};
use super::record::{Limit, Outcome, Record};
use super::spend::Used;
use super::{Session, Step, Then, play_phase};
use crate::model::{Agent, Cache};
use crate::price::PicoUsd;

/// Money and tokens of the sessions of agents that a session called, and of those that they called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AgentSums {
    pub cost_input: PicoUsd,
    pub cost_output: PicoUsd,
    pub cost_tools: PicoUsd,
    pub cost_input_without_cache: PicoUsd,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub uncached_tokens: u64,
    pub output_tokens: u64,
}

impl AgentSums {
    /// A session with the agents that it called.
    fn of(record: &Record) -> Self {
        let mut sums = record.agents;
        sums += Self {
            cost_input: record.cost_input,
            cost_output: record.cost_output,
            cost_tools: record.cost_tools,
            cost_input_without_cache: record.cost_input_without_cache,
            cache_read_tokens: record.cache_read_tokens,
            cache_write_tokens: record.cache_write_tokens,
            uncached_tokens: record.uncached_tokens,
            output_tokens: record.output_tokens,
        };
        sums
    }

    /// Money in all.
    pub fn cost(&self) -> PicoUsd {
        self.cost_input + self.cost_output + self.cost_tools
    }

    /// Tokens sent.
    pub fn input_tokens(&self) -> u64 {
        self.cache_read_tokens + self.cache_write_tokens + self.uncached_tokens
    }

    /// Tokens sent and written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens() + self.output_tokens
    }
}

impl AddAssign for AgentSums {
    fn add_assign(&mut self, other: Self) {
        self.cost_input += other.cost_input;
        self.cost_output += other.cost_output;
        self.cost_tools += other.cost_tools;
        self.cost_input_without_cache += other.cost_input_without_cache;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.uncached_tokens += other.uncached_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// What the sessions of one node of the tree of agents came to in one session of the main agent; without the agents
/// that they called.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NodeTotals {
    /// Sessions.
    pub sessions: u64,
    /// Those that didn't end with their answer.
    pub unanswered: u64,
    /// Those that lacked a tool that they had searched for.
    pub unserved: u64,
    /// Those whose first call found tools and system in the cache.
    pub warm: u64,
    /// Turns.
    pub turns: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Executions of them.
    pub executions: u64,
    /// Those that were executed twice or more.
    pub duplicates: u64,
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Money.
    pub cost: PicoUsd,
    /// Durations, summed: sessions may run side by side, s.
    pub duration_s: f64,
    /// Attempts of model calls, summed, s.
    pub model_s: f64,
}

impl NodeTotals {
    /// One session of `duration_s`.
    pub fn of(record: &Record, duration_s: f64, warm: bool) -> Self {
        Self {
            sessions: 1,
            unanswered: u64::from(record.outcome != Outcome::Answered),
            unserved: u64::from(!record.served),
            warm: u64::from(warm),
            turns: record.turns,
            tool_calls: record.tool_calls,
            executions: record.executions,
            duplicates: record.duplicates,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            cost: record.cost_input + record.cost_output + record.cost_tools,
            duration_s,
            model_s: record.model_s - record.model_wait_s,
        }
    }
}

impl AddAssign for NodeTotals {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.unanswered += other.unanswered;
        self.unserved += other.unserved;
        self.warm += other.warm;
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.executions += other.executions;
        self.duplicates += other.duplicates;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cost += other.cost;
        self.duration_s += other.duration_s;
        self.model_s += other.model_s;
    }
}

/// A stretch of time in which a shared prefix can be read, on the main agent's clock.
#[derive(Debug, Clone)]
struct Warm {
    from_s: f64,
    until_s: f64,
    /// When the call that wrote it began.
    written_s: f64,
    /// How the session that wrote it was called.
    path: Path,
}

/// How a session was called: from the main agent on, the phase, how many attempts were over in it by then, and the call.
type Path = Vec<(u64, u64, u64)>;

/// Whether a session that was called like this was surely over, or under way, before another one was called: at the
/// first difference it belongs to an earlier phase, or something had ended in the same phase in between.
fn is_earlier(path: &Path, than: &Path) -> bool {
    let different = path.iter().zip(than).find(|(mine, theirs)| mine != theirs);
    different.is_some_and(|(mine, theirs)| (mine.0, mine.1) < (theirs.0, theirs.1))
}

/// The prefixes that sessions of agents share (MODEL.md §3.7): readable from the first token of the call that wrote
/// them until a lifetime after their last use.
#[derive(Debug, Default)]
pub(super) struct SharedPrefixes {
    by_name: Vec<Vec<Warm>>,
}

impl SharedPrefixes {
    fn clear(&mut self) {
        self.by_name.iter_mut().for_each(Vec::clear);
    }

    /// Whether it can be read at `now_s` by a session that is called so. Sessions that start together can't read each
    /// other's first write, also where calls take no time.
    fn is_warm(&self, prefix: usize, now_s: f64, path: &Path) -> bool {
        let readable = |warm: &Warm| {
            let began_before = warm.written_s < now_s || is_earlier(&warm.path, path);
            let before = warm.from_s < now_s || (warm.from_s <= now_s && began_before);
            before && now_s <= warm.until_s
        };
        self.by_name.get(prefix).is_some_and(|all| all.iter().any(readable))
    }

    fn add(&mut self, prefix: usize, warm: impl Iterator<Item = Warm>) {
        if self.by_name.len() <= prefix {
            self.by_name.resize_with(prefix + 1, Vec::new);
        }
        let Some(all) = self.by_name.get_mut(prefix) else { return };
        for new in warm {
            match all.iter_mut().find(|old| old.from_s <= new.from_s && new.from_s <= old.until_s) {
                // the same entry, used again
                Some(old) => old.until_s = old.until_s.max(new.until_s),
                None => all.push(new),
            }
        }
    }
}

/// A stretch of a session's calls that kept its prefix in the cache, s since the session began.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names)] // units stand in the names
pub(super) struct Stretch {
    /// Start of the call that wrote it, or found it, and from when on it can be read.
    written_s: f64,
    readable_s: f64,
    /// Start of the last call that touched it.
    last_s: f64,
}

/// When a session used its prefix.
#[derive(Debug, Clone, Default)]
pub(super) struct Touches {
    stretches: Vec<Stretch>,
    /// Whether the first of them found it.
    starts_warm: bool,
}

impl Touches {
    /// A call that starts at `now_s` reads the prefix, or writes it, which can be read from `readable_s` on.
    pub fn touch(&mut self, now_s: f64, readable_s: f64, found: bool) {
        self.starts_warm |= found && self.stretches.is_empty();
        match self.stretches.last_mut().filter(|_| found) {
            Some(stretch) => stretch.last_s = now_s,
            None => {
                let readable_s = if found { now_s } else { readable_s };
                self.stretches.push(Stretch { written_s: now_s, readable_s, last_s: now_s });
            }
        }
    }
}

/// What is kept while agents are called.
#[derive(Debug, Default)]
pub(super) struct AgentRoom {
    pub nodes: Vec<NodeTotals>,
    shared: SharedPrefixes,
    /// Rooms of sessions that are over, to be used again.
    spare: Vec<Workspace>,
    /// When the session that calls began on the main agent's clock, s; how it was called; and in which of its phases it
    /// is.
    origin_s: f64,
    path: Path,
    phase: u64,
    /// Attempts that are over in it.
    pub ended: u64,
}

impl AgentRoom {
    /// Before a session of the main agent whose tree has so many nodes.
    #[inline]
    pub fn start_session(&mut self, nodes: usize) {
        self.nodes.clear();
        self.nodes.resize(nodes, NodeTotals::default());
        self.shared.clear();
        self.path.clear();
        (self.origin_s, self.phase) = (0.0, 0);
    }

    /// Before run `number` of a session, which begins at `origin_s` of its clock. What was cached is still there.
    pub fn start_run(&mut self, number: u64, origin_s: f64) {
        self.path.clear();
        self.path.push((number, 0, 0));
        (self.origin_s, self.phase) = (origin_s, 0);
    }

    /// Before a phase that calls agents.
    pub fn start_phase(&mut self) {
        self.phase += 1;
        self.ended = 0;
    }

    /// Plays the session that is copy number `copy` of a call, which starts at `start_s` of its caller's clock. Returns
    /// its duration, s, and whether it ended with its answer.
    #[inline(never)]
    pub fn play<D: Draws>(
        &mut self,
        caller: &Session<'_, D>,
        batch: Batch<'_>,
        agent: &Agent,
        (call, copy): (u64, u64),
        start_s: f64,
        totals: &mut PhaseTotals,
    ) -> (f64, bool) {
        let (model, origin_s) = (&*agent.model, self.origin_s + start_s);
        let mut path = self.path.clone();
        path.push((self.phase, self.ended, ((batch.index as u64) << 48) | (call << 16) | copy));
        let draws = caller.draws().child(Purpose::Agent { tool: batch.index, call }, batch.turn, copy);
        let before: Used = caller.used(start_s, totals);
        let cache = &model.cache;
        let from_elsewhere =
            || caller.draws().uniform(Purpose::AgentWarm { tool: batch.index }, batch.turn, 0) < cache.warm_prefix;
        let warm = self.shared.is_warm(agent.prefix, origin_s, &path) || from_elsewhere();
        let mut session = Session::new(model, draws, false, before);
        session.is_of_agent(warm);
        let mut room = self.spare.pop().unwrap_or_default();
        room.start_session(model);
        std::mem::swap(&mut room.agents.shared, &mut self.shared);
        (room.agents.origin_s, room.agents.path) = (origin_s, path.clone());
        let (mut now_s, mut own) = (0.0, PhaseTotals::default());
        let outcome = loop {
            let turn = match session.next_step(now_s) {
                Step::End(outcome) => break outcome,
                // said by gated sessions alone
                Step::Send => break Outcome::Failed,
                Step::Wait(wait_s) => {
                    now_s += wait_s;
                    continue;
                }
                Step::Tools(turn) => turn,
                Step::Call(call) => {
                    now_s += call.took_s;
                    if call.then != Then::Tools {
                        continue;
                    }
                    call.turn
                }
            };
            let end = play_phase(&session, turn, now_s, &mut room, &mut own);
            now_s += session.after_tools(&end, now_s, &own);
        };
        std::mem::swap(&mut room.agents.shared, &mut self.shared);
        let lifetime_s = cache.prefix_lifetime_s;
        self.shared.add(
            agent.prefix,
            session.touches().iter().map(|stretch| Warm {
                from_s: origin_s + stretch.readable_s,
                written_s: origin_s + stretch.written_s,
                until_s: origin_s + stretch.last_s + lifetime_s,
                path: path.clone(),
            }),
        );
        let starts_warm = session.starts_warm();
        session.close(outcome, &own, now_s);
        let record = session.record();
        self.take_in(agent, record, now_s, starts_warm, &room);
        totals.add_agent(record);
        self.spare.push(room);
        if record.stopped_by == Some(Limit::Time) && model.budget.before {
            // the caller's time is up too, whatever the rounding of two sums says
            now_s = now_s.max(caller.time_left_s(start_s) * (1.0 + 1e-9) + 1e-9);
        }
        (now_s, outcome == Outcome::Answered)
    }

    /// Counts a session of an agent that is over, and those of the agents below it, which are in `room`, at their nodes.
    fn take_in(&mut self, agent: &Agent, record: &Record, duration_s: f64, starts_warm: bool, room: &Workspace) {
        let below = room.agents.nodes.iter().skip(1);
        for (sum, more) in self.nodes.iter_mut().skip(agent.node + 1).zip(below) {
            *sum += *more;
        }
        if let Some(sum) = self.nodes.get_mut(agent.node) {
            *sum += NodeTotals::of(record, duration_s, starts_warm);
        }
    }
}

impl Workspace {
    /// Counts a session of an agent that was played elsewhere, and the agents below it, which are in its own `room`.
    /// `starts_warm` says whether its first call found tools and system in the cache.
    pub fn agent_over(&mut self, agent: &Agent, record: &Record, starts_warm: bool, room: &Workspace) {
        self.agents.take_in(agent, record, record.elapsed_s, starts_warm, room);
    }
}

impl PhaseTotals {
    /// Adds a session of an agent that was called.
    pub fn add_agent(&mut self, record: &Record) {
        self.agents += AgentSums::of(record);
        self.agents_unserved += u64::from(!record.served);
    }
}

impl Record {
    /// Adds sessions of agents that were still under way when the session that had called them was over.
    pub fn add_late_agents(&mut self, late: &PhaseTotals) {
        self.agents += late.agents;
        self.cost += late.agents.cost();
        self.served &= late.agents_unserved == 0;
    }
}

impl<D: Draws> Session<'_, D> {
    /// It is an agent's, before its first call, which finds the shared prefix in the cache if `warm`.
    pub fn is_of_agent(&mut self, warm: bool) {
        self.starts_warm = Some(warm);
        if self.model.cache.enabled {
            // every call's touch of the prefix is wanted
            self.plain = false;
            self.touched = Some(Touches::default());
        }
    }

    /// Whether the first call of an agent's session found tools and system in the cache.
    pub fn starts_warm(&self) -> bool {
        self.touched.as_ref().is_some_and(|touched| touched.starts_warm)
    }

    fn touches(&self) -> &[Stretch] {
        self.touched.as_ref().map_or(&[], |touched| &touched.stretches)
    }

    /// Whether a call that reads so many tokens has found tools and system in the cache, but for what hits round down.
    pub fn found_prefix(&self, hit_tokens: u64) -> bool {
        hit_tokens > 0 && hit_tokens + self.model.cache.granularity_tokens > self.parts.prefix
    }

    /// Notes that an executed call used the prefix, if it is one that can be cached.
    pub(super) fn touch(&mut self, cache: &Cache, now_s: f64, first_token_s: f64, hit_tokens: u64) {
        let (prefix, found) = (self.parts.prefix, self.found_prefix(hit_tokens));
        if let Some(touched) = self.touched.as_mut().filter(|_| prefix >= cache.min_tokens) {
            touched.touch(now_s, now_s + first_token_s, found);
        }
    }
}
