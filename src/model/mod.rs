//! What a scenario means, in plain numbers: no value that was a default is optional, no string was a name.
//!
//! A [`Model`] is made by [`crate::scenario::Scenario::model`] from a validated scenario; on such a model the engines
//! can't fail. All times are seconds, all sizes whole tokens, all prices pico-dollars per token.

mod fleet;
mod phase;

use crate::dist::{Dist, Whole};
use crate::price::{PicoUsd, Tariff};

/// The most calls that one tool may make in one phase, the most tools, and the most turns of a session: beyond them
/// the numbers that name a random stream would collide (`engine::rng`).
pub const MOST_CALLS: u64 = 65_535;
/// See [`MOST_CALLS`].
pub const MOST_TOOLS: usize = 1_000;
/// See [`MOST_CALLS`].
pub const MOST_TURNS: u64 = 1_000_000;

/// One kind of session.
#[derive(Debug, Clone)]
pub struct Model {
    /// Many clients at one resource; a repeat of it is then played instead of a session.
    pub herd: Option<Herd>,
    /// Sessions that arrive one after another and share things; they are then played together.
    pub fleet: Option<Fleet>,
    /// The first prompt.
    pub prompt: Prompt,
    /// The user's messages.
    pub conversation: Conversation,
    /// Model calls until the answer to a message, at least one.
    pub turns: Whole,
    /// A message's loop ends unanswered after this many calls; `u64::MAX` where there is no limit.
    pub max_turns: u64,
    /// Tokens that the model writes a turn.
    pub output: Whole,
    /// How long a model call takes.
    pub timing: Timing,
    /// What can happen to an attempt of a model call, and what is done then.
    pub faults: Faults,
    /// When a failed model call is repeated.
    pub retry: Retry,
    /// What happens between two model calls.
    pub phase: Phase,
    /// The prompt cache.
    pub cache: Cache,
    /// What keeps the prompt small.
    pub context: Context,
    /// Limits on what a run may use.
    pub budget: Budget,
    /// How tools are found that aren't loaded upfront; `None` where none is searched for.
    pub search: Option<Search>,
    /// Which sessions run on a smaller model first.
    pub routing: Option<Routing>,
    /// Which sessions succeed, and how often one is tried.
    pub success: Option<Success>,
    /// Prices; `None` where the scenario names neither a model nor prices, and money isn't reported.
    pub tariff: Option<Tariff>,
    /// Whether its calls are calls of the main agent's model: in a fleet they meet at the same limits.
    pub is_main: bool,
}

pub use fleet::{Arrivals, Fleet, LimitRules, Limits, Outage, OutputRule, Station};
pub use phase::{Approval, Breaker, CodeServer, Loading, Phase, Tool};

/// Many clients that all start at time 0 and use one resource once each.
#[derive(Debug, Clone)]
pub struct Herd {
    /// How many.
    pub clients: u64,
    /// What they use.
    pub resource: Resource,
    /// How long one message takes, s.
    pub network_s: Dist,
    /// How they wait after a failure.
    pub retry: Retry,
}

/// What a herd uses.
#[derive(Debug, Clone)]
pub enum Resource {
    /// A row that is read and then written, where the write succeeds only if nobody else has written since.
    Optimistic,
    /// Servers with places to wait; who finds none is turned away.
    Queue {
        /// Servers.
        servers: u64,
        /// Places to wait; `u64::MAX` without an end.
        places: u64,
        /// How long a request is served, s.
        service_s: Dist,
    },
}

/// How the model finds tools whose definitions aren't in the prompt (MODEL.md §4.10).
#[derive(Debug, Clone)]
pub struct Search {
    /// Tokens that the model writes to search.
    pub output_tokens: u64,
    /// How long a search takes, s.
    pub latency_s: Dist,
    /// Chance that one search finds the tool.
    pub hit_rate: f64,
    /// Searches for one tool, at least 1; then its calls fail.
    pub most: u32,
}

/// A tool that is an agent: a call is a whole session of it (MODEL.md §4.9).
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its sessions.
    pub model: Box<Model>,
    /// Where it stands in the tree of agents, counted from its caller in the order of a walk through the tree.
    pub node: usize,
    /// Names the prefix (tools and system) that its sessions share.
    pub prefix: usize,
    /// Numbers the agents by name: wherever it is called, on whatever model, its tools are the same.
    pub number: usize,
}

/// Some sessions run on another model first (MODEL.md §4.12).
#[derive(Debug, Clone)]
pub struct Routing {
    /// Chance that a session runs on it.
    pub share: f64,
    /// Chance that such a session then has to be done again without it.
    pub redo: f64,
    /// The session on that model.
    pub small: Box<Model>,
}

/// Whether a session succeeds (MODEL.md §4.12). One that doesn't end with its answer never does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Success {
    /// The chance.
    pub chance: SuccessChance,
    /// How often a session is tried until it succeeds, at least 1.
    pub attempts: u32,
}

/// A chance of success.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SuccessChance {
    /// Of a session.
    Session(f64),
    /// Of each of its model calls; all of them have to succeed.
    Turn(f64),
}

/// The parts of the first prompt, in the order in which they are sent: tools, system, messages.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Tokens of each server's tool definitions, in file order.
    pub definitions: Vec<u64>,
    /// Tokens of the system prompt.
    pub system: Whole,
    /// Tokens of the first user message.
    pub task: Whole,
}

impl Model {
    /// Whether an attempt of a model call can fail, for the model's own reasons or because of what sessions share.
    pub fn calls_can_fail(&self) -> bool {
        let shared = |fleet: &Fleet| fleet.limits.any_rate() || fleet.model_breaks_down();
        self.faults.any() || self.fleet.as_ref().is_some_and(shared)
    }

    /// Whether sessions may have to wait for each other.
    pub fn has_queues(&self) -> bool {
        let queues = |fleet: &Fleet| {
            fleet.limits.concurrent.is_some() || self.phase.tools.iter().any(|tool| tool.station.is_some())
        };
        self.fleet.as_ref().is_some_and(queues)
    }

    /// Whether a session is one run of this model.
    pub fn is_one_run(&self) -> bool {
        self.routing.is_none() && self.success.is_none()
    }

    /// Whether a session is surely one run of this model, whatever is said of its success.
    pub fn is_played_once(&self) -> bool {
        self.routing.is_none() && self.is_tried_once()
    }

    /// Whether a session is tried once, if on two models.
    pub fn is_tried_once(&self) -> bool {
        self.success.is_none_or(|wanted| wanted.attempts == 1)
    }

    /// Whether some of its tools are agents.
    pub fn has_agents(&self) -> bool {
        self.agents().next().is_some()
    }

    /// The models of the agents that it calls itself, one for each tool that is an agent.
    pub fn agents(&self) -> impl Iterator<Item = &Model> {
        self.phase.tools.iter().filter_map(|tool| Some(&*tool.agent.as_ref()?.model))
    }

    /// Whether something holds of it or of an agent below it.
    pub fn any_in_tree(&self, holds: &dyn Fn(&Model) -> bool) -> bool {
        holds(self) || self.agents().any(|agent| agent.any_in_tree(holds))
    }

    /// The tools of all stations of a fleet: its own, then each agent's once, in the order in which a walk through the tree
    /// meets them.
    pub fn station_tools(&self) -> Vec<&Tool> {
        let mut tools: Vec<&Tool> = self.phase.tools.iter().collect();
        for (_, agent) in self.agents_by_number() {
            tools.extend(&agent.phase.tools);
        }
        tools
    }

    /// The agents of the tree, each once with its number, as a walk meets them.
    pub fn agents_by_number(&self) -> Vec<(usize, &Model)> {
        self.phase.agents_by_number()
    }

    /// Whether it or an agent below it has a breaker.
    pub fn has_breakers(&self) -> bool {
        self.any_in_tree(&|model| model.phase.breaker.is_some())
    }

    /// Nodes of the tree of agents below it, itself among them.
    pub fn nodes(&self) -> usize {
        1 + self.agents().map(Model::nodes).sum::<usize>()
    }

    /// Whether any tool is searched for.
    pub fn searches(&self) -> bool {
        self.search.is_some() && self.phase.tools.iter().any(|tool| matches!(tool.loading, Loading::Search { .. }))
    }
}

impl Prompt {
    /// Tokens of all definitions.
    pub fn definition_tokens(&self) -> u64 {
        self.definitions.iter().sum()
    }
}

/// The user's messages after the task (MODEL.md §1.1).
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Messages that a session handles, the task among them, at least one.
    pub messages: Whole,
    /// Tokens of each later message.
    pub message: Whole,
    /// The user's wait before each later message, s: it counts for the cache's clock and not for latency.
    pub think_s: Dist,
}

impl Conversation {
    /// Whether there is never a second message.
    pub fn is_single(&self) -> bool {
        self.messages.as_constant() == Some(1)
    }
}

/// What chance does to one attempt of a call (MODEL.md §4.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// After this long the client gives an attempt up, s; infinite where off.
    pub timeout_s: f64,
    /// Chance that an attempt is lost before it reaches the server.
    pub lost_request: f64,
    /// Chance that an attempt is turned away quickly and isn't executed.
    pub rejected: f64,
    /// Chance that an attempt is executed and its reply lost.
    pub lost_reply: f64,
}

impl Faults {
    /// Chance that an attempt doesn't even get a latency: lost, rejected or reply lost.
    pub fn chance(&self) -> f64 {
        self.lost_request + self.rejected + self.lost_reply
    }

    /// Whether an attempt can fail, given that its latency may outlast any timeout.
    pub fn any(&self) -> bool {
        self.chance() > 0.0 || self.timeout_s.is_finite()
    }
}

/// What keeps the prompt small (MODEL.md §3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The largest prompt that can be sent, tokens; `u64::MAX` where unknown.
    pub window_tokens: u64,
    /// A larger prompt is summarised before it is sent, tokens; `u64::MAX` where off.
    pub compact_at_tokens: u64,
    /// Tokens of the summary.
    pub summary_tokens: u64,
}

/// Limits on a run (MODEL.md §5), each `None` where off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Money of all calls and tool fees.
    pub dollars: Option<PicoUsd>,
    /// Model calls, summaries not counted.
    pub turns: Option<u64>,
    /// Tokens: all that is sent, whatever its class, and all that is written.
    pub tokens: Option<u64>,
    /// Time from the first request, without the user's think time, s.
    pub time_s: Option<f64>,
    /// Whether a call is made only if its worst case fits; otherwise the loop stops once a limit is passed.
    pub before: bool,
    /// The most tokens that a call can write, for the worst case.
    pub max_output_tokens: u64,
}

impl Budget {
    /// Whether there is any limit.
    pub fn any(&self) -> bool {
        self.dollars.is_some() || self.turns.is_some() || self.tokens.is_some() || self.time_s.is_some()
    }
}

/// Duration of a model call: `first_token_s + uncached · s + cached · s`, then `output / rate`.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Fixed part of the time to the first token, s.
    pub first_token_s: Dist,
    /// Seconds per prompt token that isn't read from the cache; 0 where off.
    pub prefill_s_per_token: f64,
    /// Seconds per prompt token read from the cache; 0 where free.
    pub cached_prefill_s_per_token: f64,
    /// Output tokens per second; `None` where writing takes no time.
    pub output_rate: Option<Dist>,
}

/// When and how often a failed attempt is repeated (MODEL.md §4.3, §4.4).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// The bound of the first wait, s.
    pub base_s: f64,
    /// The same where the attempt was rejected, s: some clients wait longer then.
    pub rejected_base_s: f64,
    /// No wait is longer, s.
    pub cap_s: f64,
    /// How the wait is drawn below its bound.
    pub jitter: Jitter,
    /// The call ends this long after its first attempt began, s; infinite where off.
    pub deadline_s: f64,
}

impl Retry {
    /// One attempt.
    pub const NEVER: Self = Self {
        attempts: 1,
        base_s: 0.5,
        rejected_base_s: 0.5,
        cap_s: 8.0,
        jitter: Jitter::Full,
        deadline_s: f64::INFINITY,
    };
}

/// How a wait is drawn (Brooker, "Exponential backoff and jitter", AWS 2015; the last two as public clients do it).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// The bound itself.
    None,
    /// Uniform from 0 to the bound.
    Full,
    /// Half the bound plus uniform from 0 to half the bound.
    Equal,
    /// `min(cap, U(base, 3 · last wait))`.
    Decorrelated,
    /// The bound less a uniform share of it, up to a quarter.
    Quarter,
    /// The bound plus uniform from 0 to `spread_s`; with `capped` the sum is capped too.
    Plus {
        /// The most that is added, s.
        spread_s: f64,
        /// Whether the cap holds for the sum.
        capped: bool,
    },
}

/// The prompt cache of a session (MODEL.md §3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cache {
    /// Whether prompts are cached at all.
    pub enabled: bool,
    /// How long the messages stay cached after their last use, s.
    pub lifetime_s: f64,
    /// How long tools and system stay cached after their last use, s; at least `lifetime_s`.
    pub prefix_lifetime_s: f64,
    /// Chance that tools and system are cached when the session begins.
    pub warm_prefix: f64,
    /// A shorter prompt is neither read nor written, tokens.
    pub min_tokens: u64,
    /// Hits round down to a multiple of this, tokens.
    pub granularity_tokens: u64,
    /// After this long without a use a request reads all that is cached, s; infinite where off.
    pub keep_alive_s: f64,
    /// What changes earlier bytes.
    pub breaks: Breaks,
    /// Whether what the model writes is in the cache at once; otherwise the next call writes it.
    pub caches_output: bool,
}

impl Cache {
    /// Whether idle entries are kept warm.
    pub fn is_kept_alive(&self) -> bool {
        self.keep_alive_s.is_finite()
    }
}

/// Chances, before each call but the first, that earlier bytes changed (MODEL.md §3.4, §3.9).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Breaks {
    /// Of the tool definitions: everything is lost.
    pub tools: f64,
    /// Of the system prompt: everything after the tools is lost.
    pub system: f64,
    /// Of the messages, from a token drawn uniformly among those sent: everything from there on is lost.
    pub history: f64,
}

impl Breaks {
    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.tools > 0.0 || self.system > 0.0 || self.history > 0.0
    }
}
