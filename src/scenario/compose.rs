//! Models within models. The small model of `[routing]` and every agent is the scenario's own tree with something laid
//! over it, read and checked like a scenario.

use std::cell::RefCell;

use super::mistake::{Mistake, Mistakes};
use super::raw::{self, Raw};
use super::reader::{At, Sink, complain};
use super::resolve::{self, Parts, Resolved};
use super::tools::unknown_name;
use super::tree::{Data, Span, Table};
use super::{AgentNode, Surroundings};
use crate::model::{Agent, Model, Routing};

/// The most agents in the tree: an agent that several tools call counts for each of them.
const MOST_NODES: usize = 256;

/// What belongs to a run or to the user's conversation, and isn't an agent's or the small model's.
const OF_THE_RUN: [&str; 8] = ["title", "run", "strategies", "volume", "outcome", "thresholds", "sweep", "herd"];

/// What an agent doesn't take over from its caller.
const OWN: [&str; 4] = ["prompt", "servers", "tools", "routing"];

/// What an agent may say.
const OF_AN_AGENT: [&str; 11] =
    ["prompt", "servers", "session", "tools", "retry", "cache", "context", "model", "price", "breaker", "tool_search"];

/// A scenario with what it is composed of.
pub(super) struct Composed {
    pub raw: Raw,
    pub resolved: Resolved,
    /// The tree of agents, as a walk meets them, the main agent first.
    pub nodes: Vec<AgentNode>,
}

/// Composes scenarios: what all models of one file have in common.
struct Composer<'a> {
    around: &'a Surroundings,
    /// The nodes so far.
    nodes: Vec<AgentNode>,
    /// (agent, model) of every shared prefix.
    prefixes: Vec<(String, Option<String>)>,
    /// Name and tools of every agent.
    agent_tools: Vec<(String, Vec<String>)>,
    /// The main agent's model, if it has a name.
    main: Option<String>,
    /// Whether it was said that there are too many.
    too_many: bool,
    /// Whether the agent that is read can run several times side by side, and how many agents stand above it.
    side_by_side: bool,
    depth: usize,
    /// Prefixes of the agents that were read.
    called: Vec<usize>,
}

pub(super) fn compose(root: &Table, around: &Surroundings, sink: &Sink) -> Composed {
    let raw = raw::read(root, &around.folder, sink);
    let mut composer = Composer {
        around,
        nodes: Vec::new(),
        prefixes: Vec::new(),
        agent_tools: Vec::new(),
        main: raw.model.name.as_ref().map(|at| at.value.clone()),
        too_many: false,
        side_by_side: false,
        depth: 0,
        called: Vec::new(),
    };
    let small = raw.routing.as_ref().and_then(|_| composer.small(root, &raw, sink));
    let small_nodes = std::mem::take(&mut composer.nodes);
    composer.called.clear();
    let mut resolved =
        composer.resolve(root, &raw, &mut Vec::new(), small.as_ref().map(|small| small.model.clone()), sink);
    let mut nodes = std::mem::take(&mut composer.nodes);
    for (node, small) in nodes.iter_mut().zip(small_nodes) {
        node.small_price = small.price;
    }
    if let Some(small) = small {
        if let Some(routing) = raw.routing.as_ref().filter(|_| small.priced != resolved.priced) {
            half_a_bill("[routing] between a model with prices and one without", routing.span, sink);
        }
        resolved.add_notes(small.notes);
    }
    for agent in &raw.agents {
        if !nodes.iter().any(|node| node.agent == agent.value) {
            // nobody calls it, and still its mistakes are wanted
            if let Some(tree) = agent_tree(root, agent, &raw, sink) {
                let own = RefCell::new(Mistakes::default());
                let raw = raw::read(&tree, &around.folder, &own);
                composer.resolve(&tree, &raw, &mut vec![agent.value.clone()], None, &own);
                forward(own.into_inner(), root, &agent.value, sink);
            }
            resolved.add_notes(vec![format!("no tool calls the agent \"{}\"", agent.value)]);
        }
    }
    Composed { raw, resolved, nodes }
}

/// What was found to say of an agent.
struct Said {
    mistakes: Mistakes,
    notes: Vec<String>,
}

impl Composer<'_> {
    /// The session on the small model of `[routing]`.
    fn small(&mut self, root: &Table, caller: &Raw, sink: &Sink) -> Option<Resolved> {
        let Data::Table(routing) = &root.get("routing")?.data else { return None };
        let Data::Table(overlay) = &routing.get("small")?.data else { return None };
        let mut tree = root.clone();
        for key in OF_THE_RUN.into_iter().chain(["routing"]) {
            tree.remove(key);
        }
        lay_over(&mut tree, overlay);
        let raw = raw::read(&tree, &self.around.folder, sink);
        let mut resolved = self.resolve(&tree, &raw, &mut Vec::new(), None, sink);
        if takes_over_timing(&raw, caller) {
            resolved.add_notes(vec![
                "the small model takes as long as the main one: give small = { model = { first_token, output_rate } } its own times"
                    .to_owned(),
            ]);
        }
        Some(resolved)
    }

    /// Resolves what was read, its agents first. `path` names the agents from the main one down to this.
    fn resolve(
        &mut self,
        tree: &Table,
        raw: &Raw,
        path: &mut Vec<String>,
        small: Option<Model>,
        sink: &Sink,
    ) -> Resolved {
        let own = self.nodes.len();
        self.nodes.push(AgentNode {
            agent: path.last().cloned().unwrap_or_default(),
            tool: String::new(),
            depth: path.len(),
            price: None,
            small_price: None,
        });
        let (mut notes, mut mistakes) = (Vec::new(), Vec::new());
        let agents = raw
            .tools
            .iter()
            .map(|tool| {
                let name = tool.value.agent.as_ref()?;
                // more than one call in a phase
                let several = tool.value.calls.as_ref().is_some_and(|calls| calls.value.sf(1.5) > 0.0);
                let label = tool.value.name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
                let (agent, mut said) = self.agent(tree, raw, (name, several), label, own, path, sink)?;
                mistakes.push((name.value.clone(), std::mem::take(&mut said.mistakes)));
                notes.extend(said.notes);
                Some(agent)
            })
            .collect();
        let routing = small.zip(raw.routing.as_ref()).map(|(small, routing)| Routing {
            share: routing.share.map_or(0.0, |at| at.value),
            redo: routing.redo.map_or(0.0, |at| at.value),
            small: Box::new(small),
        });
        let is_agent = !path.is_empty();
        let is_main = raw.model.name.as_ref().map(|at| &at.value) == self.main.as_ref();
        let parts = Parts { agents, routing, is_agent, is_main, agent_tools: &self.agent_tools };
        let mut resolved = resolve::resolve(raw, parts, self.around, sink);
        resolved.add_notes(notes);
        // what is wrong of a caller as well has been said
        for (agent, inner) in mistakes {
            forward(inner, tree, &agent, sink);
        }
        if let Some(node) = self.nodes.get_mut(own) {
            node.price.clone_from(&resolved.price);
        }
        resolved
    }

    /// What the reader should know of an agent.
    fn note_agent(&mut self, name: &str, inner: &Raw, caller: &Raw, resolved: &mut Resolved, prefix: usize) {
        let mut notes = Vec::new();
        let model = &resolved.model;
        let (cache, prompt) = (&model.cache, &model.prompt);
        let prefix_tokens = prompt.system.as_constant().map(|system| prompt.definition_tokens() + system);
        if inner.prompt.system.is_none() && inner.prompt.task.is_none() {
            notes.push(format!("the agent \"{name}\" begins with no prompt of its own: give [agents.{name}] prompt"));
        } else if let Some(tokens) = prefix_tokens.filter(|tokens| cache.enabled && *tokens < cache.min_tokens) {
            notes.push(format!(
                "the prompt of \"{name}\", {tokens} tokens with its tools, is below the smallest that its model caches, {}",
                cache.min_tokens
            ));
        }
        let names_model =
            inner.model.name.as_ref().map(|at| &at.value) != caller.model.name.as_ref().map(|at| &at.value);
        if names_model && takes_over_timing(inner, caller) {
            notes.push(format!("the agent \"{name}\" has a model of its own and the times of its caller's"));
        }
        // whoever is called by agents side by side
        let side_by_side = self.side_by_side || self.called.contains(&prefix);
        self.called.push(prefix);
        if self.depth > 0
            && side_by_side
            && cache.enabled
            && prefix_tokens.is_none_or(|tokens| tokens >= cache.min_tokens)
        {
            notes.push(format!(
                "agents that run side by side call \"{name}\": one caller's calls are played before the next one's, so which of \
                 them finds its prompt cached is approximate"
            ));
        }
        resolved.add_notes(notes);
    }

    #[allow(clippy::too_many_arguments)] // where it is called from, and what is said of it
    fn agent(
        &mut self,
        tree: &Table,
        raw: &Raw,
        (name, can_be_several): (&At<String>, bool),
        tool: String,
        caller: usize,
        path: &mut Vec<String>,
        sink: &Sink,
    ) -> Option<(Agent, Said)> {
        let known: Vec<&str> = raw.agents.iter().map(|at| at.value.as_str()).collect();
        if !known.contains(&name.value.as_str()) {
            unknown_name(&name.value, name.span, "agent", &known, sink);
            return None;
        }
        if let Some(from) = path.iter().position(|agent| *agent == name.value) {
            let mut cycle: Vec<&str> = path.iter().skip(from).map(String::as_str).collect();
            cycle.push(&name.value);
            let text = if cycle.len() == 2 {
                format!("the agent \"{}\" calls itself", name.value)
            } else {
                format!("the agent \"{}\" calls itself: {}", name.value, cycle.join(" calls "))
            };
            complain(
                sink,
                Mistake::at(name.span, text)
                    .label("a session that never ends")
                    .help("an agent can call other agents; give the inner one an entry of its own under [agents]"),
            );
            return None;
        }
        if self.nodes.len() >= MOST_NODES {
            if !std::mem::replace(&mut self.too_many, true) {
                complain(
                    sink,
                    Mistake::at(name.span, format!("the tree of agents has more than {MOST_NODES} nodes"))
                        .label("one more")
                        .help("an agent counts once for every tool that calls it"),
                );
            }
            return None;
        }
        let agent = raw.agents.iter().find(|at| at.value == name.value)?;
        let tree = agent_tree(tree, agent, raw, sink)?;
        let own = RefCell::new(Mistakes::default());
        let inner = raw::read(&tree, &self.around.folder, &own);
        let node = self.nodes.len();
        path.push(name.value.clone());
        let before = (self.side_by_side, self.depth);
        (self.side_by_side, self.depth) = (before.0 || can_be_several, before.1 + 1);
        let mut resolved = self.resolve(&tree, &inner, path, None, &own);
        (self.side_by_side, self.depth) = before;
        path.pop();
        if resolved.priced && !super::tariffs::is_priced(raw) {
            let text = format!("the agent \"{}\" has prices, and its caller has none", name.value);
            half_a_bill(&text, name.span, sink);
        }
        if let Some(node) = self.nodes.get_mut(node) {
            node.tool = tool;
        }
        let shared = (name.value.clone(), inner.model.name.as_ref().map(|at| at.value.clone()));
        let prefix = self.prefixes.iter().position(|known| *known == shared).unwrap_or_else(|| {
            self.prefixes.push(shared);
            self.prefixes.len() - 1
        });
        self.note_agent(&name.value, &inner, raw, &mut resolved, prefix);
        let number = self.agent_tools.iter().position(|(known, _)| *known == name.value).unwrap_or_else(|| {
            self.agent_tools.push((name.value.clone(), resolved.tools.clone()));
            self.agent_tools.len() - 1
        });
        let agent = Agent { model: Box::new(resolved.model), node: node - caller, prefix, number };
        Some((agent, Said { mistakes: own.into_inner(), notes: resolved.notes }))
    }
}

/// The caller's tree with an agent's table laid over it.
fn agent_tree(caller: &Table, agent: &At<String>, raw: &Raw, sink: &Sink) -> Option<Table> {
    let Data::Table(all) = &caller.get("agents")?.data else { return None };
    let (key, node) = all.entries.iter().find(|(key, _)| key.name == agent.value)?;
    let Data::Table(overlay) = &node.data else { return None };
    for (inner, _) in &overlay.entries {
        if !OF_AN_AGENT.contains(&inner.name.as_str()) {
            let near = super::reader::nearest(&inner.name, &OF_AN_AGENT);
            let label = near.map_or_else(|| "unknown key".to_owned(), |near| format!("did you mean `{near}`?"));
            complain(
                sink,
                Mistake::at(inner.span, format!("[agents.{}] has no key `{}`", key.name, inner.name))
                    .label(label)
                    .help(format!("the keys here are {}", OF_AN_AGENT.join(", "))),
            );
        }
    }
    let mut tree = caller.clone();
    for name in OF_THE_RUN.into_iter().chain(OWN) {
        tree.remove(name);
    }
    // an agent has no user to talk to, and its turns aren't its caller's
    remove_in(&mut tree, "session", &["messages", "message", "think"]);
    remove_in(&mut tree, "budget", &["turns"]);
    if raw.budget.is_only_turns() {
        tree.remove("budget");
    }
    let known = Table {
        entries: overlay.entries.iter().filter(|(key, _)| OF_AN_AGENT.contains(&key.name.as_str())).cloned().collect(),
    };
    lay_over(&mut tree, &known);
    Some(tree)
}

fn half_a_bill(text: &str, span: Span, sink: &Sink) {
    complain(
        sink,
        Mistake::at(span, text)
            .label("half a bill")
            .help("name a model, [model] name = \"claude-sonnet-4-6\", or give [price] input and output"),
    );
}

/// Whether how long a model takes is said, and said by the caller.
fn takes_over_timing(inner: &Raw, caller: &Raw) -> bool {
    let times = |raw: &Raw| {
        let model = &raw.model;
        [model.first_token.as_ref().map(|at| at.span), model.output_rate.as_ref().map(|at| at.span)]
    };
    times(caller) != [None, None] && times(inner) == times(caller)
}

/// Lays an overlay over a tree. One that names another model doesn't take over the prices that the scenario gives: they
/// are another model's. The day of the price sheet is the same for all.
fn lay_over(tree: &mut Table, overlay: &Table) {
    let names_model = overlay
        .get("model")
        .is_some_and(|node| matches!(&node.data, Data::Table(model) if model.get("name").is_some()));
    if names_model
        && let Some(node) = tree.get_mut("price")
        && let Data::Table(price) = &mut node.data
    {
        price.entries.retain(|(key, _)| key.name == "as_of");
    }
    tree.lay_over(overlay);
}

fn remove_in(tree: &mut Table, section: &str, keys: &[&str]) {
    if let Some(node) = tree.get_mut(section)
        && let Data::Table(table) = &mut node.data
    {
        for key in keys {
            table.remove(key);
        }
    }
}

/// Passes on the mistakes of an agent. Those that stand in its caller's lines, and weren't made there, say whose they are.
fn forward(mistakes: Mistakes, tree: &Table, agent: &str, sink: &Sink) {
    let own = tree.get("agents").map(super::tree::Node::spans).unwrap_or_default();
    for mistake in mistakes.into_found() {
        let is_own = mistake.span.is_none_or(|span| own.contains(&span));
        if is_own || !sink.borrow().contains(&mistake) {
            complain(sink, if is_own { mistake } else { mistake.taken_over_by(agent) });
        }
    }
}
