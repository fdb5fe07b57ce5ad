//! The scenario file: reading it, checking it, and saying what is wrong so that it can be mended.
//!
//! The way is `tree` (TOML with places) → `--set` and strategies laid over it → `raw` (sections, every key known or
//! refused) → `resolve` (rules between values, defaults, prices) → [`Model`]. All mistakes of a file come at once.

mod assumptions;
mod changes;
mod compose;
mod distribution;
mod fleet;
mod herd;
mod levers;
mod limits;
mod loadings;
mod mistake;
mod presets;
mod raw;
mod raw_agents;
mod raw_tools;
mod reader;
mod resolve;
mod servers;
mod tariffs;
mod tiers;
mod tools;
mod tree;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use assumptions::Assumption;
pub use changes::Change;
use jiff::civil::Date;
pub use levers::{Lever, Levers};
pub use loadings::ServerLoadings;
use mistake::Mistakes;
pub use mistake::{Mistake, ScenarioError, SourceText};
pub use reader::duration_s;
pub use servers::SEARCH_TOOL;
pub use tree::split_values;
use tree::{Data, Table};

use crate::model::Model;
use crate::price::{Lifetimes, Sheet};
use crate::stats::{Target, Threshold};

/// The largest file that is read.
const MOST_BYTES: u64 = 10_000_000;

/// The JSON Schema of the file, for editors. A test holds it against what is read here.
pub const SCHEMA: &str = include_str!("schema.json");

/// The scenario that `agent-sim init` writes.
pub const TEMPLATE: &str = include_str!("template.toml");

/// A checked scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its title, or the file's name.
    pub title: String,
    /// The path it was read from, as given.
    pub file: String,
    /// The strategy laid over the file; "base" for the file itself.
    pub strategy: String,
    /// Names of all strategies in the file.
    pub strategies: Vec<String>,
    /// `[run]`.
    pub run: RunOptions,
    /// What is simulated.
    pub model: Model,
    /// Names of the servers, in the order of `model.prompt.definitions`.
    pub servers: Vec<String>,
    /// Names of the tools, in the order of `model.phase.tools`.
    pub tools: Vec<String>,
    /// Names of all places at which sessions of a fleet can meet but the model: its tools, then those of its agents as
    /// "agent.tool", in the order of [`Model::station_tools`].
    pub places: Vec<String>,
    /// The tier of provider limits, if one is named.
    pub tier: Option<TierInfo>,
    /// `[volume]`.
    pub sessions_per_month: Option<u64>,
    /// `[sweep]`: keys and their values, as TOML.
    pub sweep: Vec<(String, Vec<String>)>,
    /// The tree of agents as a walk through it meets them: the main agent first, each before the agents that it calls.
    pub agents: Vec<AgentNode>,
    /// The row of the price sheet that is used, if a model is named.
    pub price: Option<PriceInfo>,
    /// What the reader should know of it, such as a price that is about to change.
    pub notes: Vec<String>,
    /// The file's text, and what `--set` laid over it.
    pub text: String,
    /// See `text`.
    pub sets: Vec<String>,
    /// As it was read, the strategy laid over it; and with what.
    tree: Table,
    around: Surroundings,
    /// The prices of writing to the cache, whether it is on or not.
    writes: Lifetimes,
}

/// What a scenario is read with.
#[derive(Debug, Clone)]
struct Surroundings {
    /// Where its own files are looked for.
    folder: PathBuf,
    sheet: Arc<Sheet>,
    /// The day whose prices are asked for, whatever the file says.
    as_of: Option<Date>,
}

/// `[run]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Sessions to play; the first leg where `precision` is asked for.
    pub sessions: u64,
    /// Names the world.
    pub seed: u64,
    /// Where a run with `precision` stops at the latest.
    pub max_sessions: u64,
    /// What has to become how precise.
    pub precision: Vec<Target>,
    /// Bounds that the answer has to keep.
    pub thresholds: Vec<Threshold>,
}

/// One place in the tree of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNode {
    /// The agent's name; empty for the main agent.
    pub agent: String,
    /// The tool that calls it; empty for the main agent.
    pub tool: String,
    /// How many agents stand above it.
    pub depth: usize,
    /// Its row of the price sheet, if its model is named.
    pub price: Option<PriceInfo>,
    /// The same where the session runs on the small model of `[routing]`.
    pub small_price: Option<PriceInfo>,
}

/// Where the prices come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PriceInfo {
    pub model: String,
    pub as_of: String,
    pub source: String,
    pub source_date: String,
    /// Whether `[price]` changes some of them.
    pub overridden: bool,
}

/// A tier of provider limits, and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TierInfo {
    pub name: String,
    pub source: String,
    pub source_date: String,
}

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// `--set` arguments, later ones win.
    pub sets: &'a [String],
    /// What other arguments set, laid over these: each argument's name for messages, and `key=value`.
    pub more_sets: &'a [(&'static str, String)],
    /// A strategy of the file to lay over it.
    pub strategy: Option<&'a str>,
    /// The price sheet; the built-in one where there is none.
    pub sheet: Option<Arc<Sheet>>,
    /// The day whose prices are taken, whatever `[price] as_of` says.
    pub as_of: Option<Date>,
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Where the file can't be read, isn't UTF-8, or anything in it is wrong; the error holds every mistake.
    pub fn load(path: &Path, request: &Request<'_>) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let unreadable = |message: String| ScenarioError {
            sources: vec![SourceText { name: name.clone(), text: String::new() }],
            mistakes: vec![Mistake::nowhere(message)],
        };
        let size = std::fs::metadata(path).map_err(|e| unreadable(format!("{name} can't be read: {e}")))?;
        if size.is_dir() {
            return Err(unreadable(format!("{name} is a folder; a scenario is one TOML file")));
        }
        if size.len() > MOST_BYTES {
            return Err(unreadable(format!("{name} has {} bytes; a scenario has at most {MOST_BYTES}", size.len())));
        }
        let bytes = std::fs::read(path).map_err(|e| unreadable(format!("{name} can't be read: {e}")))?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                // up to here the lossy text has the same bytes
                let start = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let span = tree::Span { source: 0, start, end: start + char::REPLACEMENT_CHARACTER.len_utf8() };
                let mistake =
                    Mistake::at(span, "this isn't UTF-8").label("not a character").help("save the file as UTF-8 text");
                return Err(ScenarioError { sources: vec![SourceText { name, text }], mistakes: vec![mistake] });
            }
        };
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self::parse(&text, &name, &folder, request)
    }

    /// Checks a text. `name` stands in messages; files named in the scenario are looked for in `folder`.
    ///
    /// ```
    /// use agent_sim::scenario::{Request, Scenario};
    /// let text = "session.turns = 3\nsession.output = 10\nprompt.sistem = 100";
    /// let error = Scenario::parse(text, "my.toml", "".as_ref(), &Request::default()).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `system`?"));
    /// ```
    ///
    /// # Errors
    /// Where anything is wrong; the error holds every mistake.
    pub fn parse(text: &str, name: &str, folder: &Path, request: &Request<'_>) -> Result<Self, ScenarioError> {
        let mut sources = vec![SourceText { name: name.to_owned(), text: text.to_owned() }];
        let mut mistakes = Mistakes::default();
        let mut root = Table::parse(0, text, &mut mistakes);
        if !mistakes.is_empty() {
            // the rest of a file with broken syntax can't be told apart
            return Err(ScenarioError { sources, mistakes: mistakes.sorted() });
        }
        let mut sets = Vec::new();
        let plain = request.sets.iter().map(|set| ("--set", set));
        let texts: Vec<(&str, &String)> =
            plain.chain(request.more_sets.iter().map(|(argument, set)| (*argument, set))).collect();
        for (argument, set) in &texts {
            let source = sources.len();
            sources.push(SourceText { name: (*argument).to_owned(), text: (*set).clone() });
            sets.extend(tree::parse_set(source, set, &mut mistakes));
        }
        set_all(&mut root, &sets, &mut mistakes);
        let sink = RefCell::new(mistakes);
        let built = build(&root, &sets, name, folder, request, &sink);
        let mistakes = sink.into_inner();
        match built {
            Some(scenario) if mistakes.is_empty() => {
                let sets = texts.into_iter().map(|(_, set)| set.clone()).collect();
                Ok(Scenario { text: text.to_owned(), sets, ..scenario })
            }
            _ => Err(ScenarioError { sources, mistakes: mistakes.sorted() }),
        }
    }
}

/// A parsed `--set`: where and what.
type Setting = (Vec<tree::Key>, tree::Node);

impl Scenario {
    /// The main agent's servers, each with the models that load it in other ways; nothing where the scenario knows no
    /// other way, with `[tool_search]` or `read_tokens`.
    pub fn loadings(&self) -> Vec<ServerLoadings> {
        loadings::loadings(&self.tree, &self.around)
    }

    /// The price sheet it was read with.
    pub fn price_sheet(&self) -> &Arc<Sheet> {
        &self.around.sheet
    }

    /// The day whose prices are taken.
    pub fn prices_as_of(&self) -> Date {
        self.around.as_of.unwrap_or(self.around.sheet.date())
    }

    /// What is written at a key (`tools.search.timeout`), as TOML; nothing where it isn't written.
    pub fn value_at(&self, key: &str) -> Option<String> {
        changes::value_at(&self.tree, key)
    }

    /// The keys in which another scenario differs.
    pub fn changes(&self, other: &Scenario) -> Vec<Change> {
        changes::changes(&self.tree, &other.tree)
    }
}

fn set_all(root: &mut Table, sets: &[Setting], mistakes: &mut Mistakes) {
    for (path, value) in sets {
        if let [agents, name, _, ..] = path.as_slice()
            && agents.name == "agents"
        {
            let known: Vec<&str> = match root.get("agents").map(|node| &node.data) {
                Some(Data::Table(table)) => table.entries.iter().map(|(key, _)| key.name.as_str()).collect(),
                _ => Vec::new(),
            };
            if !known.contains(&name.name.as_str()) {
                let sink = RefCell::new(std::mem::take(mistakes));
                tools::unknown_name(&name.name, name.span, "agent", &known, &sink);
                *mistakes = sink.into_inner();
                continue;
            }
        }
        if let Err(lost) = root.set(path, value.clone()) {
            mistakes.push(
                Mistake::at(lost.span, format!("the file has no `{}` to set", lost.name))
                    .label("leads nowhere")
                    .help("a tool or server is reached by its name: tools.search.timeout=5s"),
            );
        }
    }
}

fn build(
    root: &Table,
    sets: &[Setting],
    name: &str,
    folder: &Path,
    request: &Request<'_>,
    sink: &RefCell<Mistakes>,
) -> Option<Scenario> {
    let around = Surroundings {
        folder: if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() },
        sheet: request.sheet.clone().unwrap_or_else(|| Sheet::embedded().clone()),
        as_of: request.as_of,
    };
    let base = compose::compose(root, &around, sink);
    let named = base.raw.strategies.clone();
    let strategies: Vec<String> = named.iter().map(|at| at.value.clone()).collect();
    // thresholds that apply to none of the ways
    let mut unused = base.resolved.idle_thresholds.clone();
    let mut chosen = request.strategy.is_none_or(|s| s == "base").then(|| (base, root.clone()));
    let mut idle = Vec::new();
    // every strategy is checked, the wanted one is kept
    for at in &named {
        if at.value == "base" {
            let mistake = Mistake::at(at.span, "`base` is the file itself; a strategy needs another name");
            reader::complain(sink, mistake.label("taken"));
            continue;
        }
        let Some(overlay) = overlay(root, &at.value) else { continue };
        if let Some((key, _)) = overlay.entries.iter().find(|(key, _)| key.name == "strategies") {
            reader::complain(sink, Mistake::at(key.span, "a strategy can't hold strategies").label("inside another"));
            continue;
        }
        if let Some(Data::Table(run)) = overlay.get("run").map(|node| &node.data) {
            for (key, _) in &run.entries {
                reader::complain(
                    sink,
                    Mistake::at(key.span, format!("a strategy can't change `run.{}`", key.name))
                        .label("strategies are compared on the same sessions")
                        .help("set it under the file's own [run], or with --set for all strategies"),
                );
            }
        }
        let mut laid = root.clone();
        laid.remove("strategies");
        laid.lay_over(overlay);
        if changes::changes(root, &laid).is_empty() {
            idle.push(format!("the strategy \"{}\" changes nothing", at.value));
        }
        // the command line has the last word, but for what the strategy has switched off altogether
        let sets: Vec<Setting> = sets.iter().filter(|(path, _)| !overlay.blocks(path)).cloned().collect();
        set_all(&mut laid, &sets, &mut sink.borrow_mut());
        let own = RefCell::new(Mistakes::default());
        let composed = compose::compose(&laid, &around, &own);
        let written: Vec<tree::Span> = overlay.entries.iter().flat_map(|(_, node)| node.spans()).collect();
        for mistake in own.into_inner().into_found() {
            let is_own = mistake.span.is_some_and(|span| written.contains(&span));
            if is_own || !sink.borrow().contains(&mistake) {
                reader::complain(sink, if is_own { mistake } else { mistake.with_strategy(&at.value) });
            }
        }
        unused.retain(|at| composed.resolved.idle_thresholds.iter().any(|idle| idle.value == at.value));
        if request.strategy == Some(at.value.as_str()) {
            chosen = Some((composed, laid));
        }
    }
    if chosen.is_none() {
        let known: Vec<&str> = strategies.iter().map(String::as_str).chain(["base"]).collect();
        let wanted = request.strategy.unwrap_or_default();
        let near = reader::nearest(wanted, &known).map_or(String::new(), |n| format!(", did you mean \"{n}\"?"));
        reader::complain(
            sink,
            Mistake::nowhere(format!("the file has no strategy \"{wanted}\"{near}"))
                .help(format!("its strategies are {}", known.join(", "))),
        );
    }
    for at in unused {
        let text = format!("`{}` doesn't apply to this scenario, so it can't be bounded", at.value);
        reader::complain(sink, Mistake::at(at.span, text).label("not a threshold"));
    }
    let (compose::Composed { raw, resolved, nodes }, tree) = chosen?;
    for at in &resolved.idle_thresholds {
        idle.push(format!("the threshold on {} doesn't apply here", at.value));
    }
    let tier = fleet::tier(&raw);
    Some(Scenario {
        text: String::new(),
        sets: Vec::new(),
        title: raw.title.map_or_else(|| name.to_owned(), |at| at.value),
        file: name.to_owned(),
        strategy: request.strategy.unwrap_or("base").to_owned(),
        strategies,
        run: resolved.run,
        model: resolved.model,
        servers: resolved.servers,
        tools: resolved.tools,
        places: resolved.places,
        tier,
        sessions_per_month: raw.sessions_per_month.map(|at| at.value),
        sweep: raw.sweep,
        agents: nodes,
        price: resolved.price,
        notes: resolved.notes.into_iter().chain(idle).collect(),
        tree,
        around,
        writes: resolved.writes,
    })
}

fn overlay<'t>(root: &'t Table, strategy: &str) -> Option<&'t Table> {
    let Data::Table(all) = &root.get("strategies")?.data else { return None };
    match &all.get(strategy)?.data {
        Data::Table(table) => Some(table),
        _ => None,
    }
}
