//! What could be changed to save money or time: every lever that the literature names, as keys of the scenario's own file.
//!
//! A lever that is pulled already is there too, as the scenario without it. A lever that doesn't fit says why.

use std::cell::RefCell;

use super::compose::compose;
use super::mistake::Mistakes;
use super::tree::{Data, Table, name_of, parse_set, quoted};
use super::{Scenario, set_all};
use crate::dist::Dist;
use crate::model::{Model, Tool};
use crate::price::{Row, lifetime_label};

/// One thing that could be changed, or undone.
#[derive(Debug, Clone)]
pub struct Lever {
    /// What is done, in a few words.
    pub name: String,
    /// Whether the scenario does it already; `scenario` is then the one without it.
    pub is_on: bool,
    /// The server that the agent would have to do without, and its tools in the file.
    pub loses: Option<(String, Vec<String>)>,
    /// The scenario with it, or without it.
    pub scenario: Scenario,
}

/// All levers of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Levers {
    /// Those that can be played.
    pub levers: Vec<Lever>,
    /// Those that don't fit: (what, why).
    pub others: Vec<(String, String)>,
}

/// A change of the file.
enum Edit {
    /// As `--set` takes it.
    Set(String),
    /// Takes a key out.
    Remove(Vec<&'static str>),
    /// The same of a tool, by its name.
    RemoveOfTool(String, &'static str),
    /// Takes out a server and its tools.
    Drop(String),
}

use Edit::{Drop, Remove, RemoveOfTool, Set};

/// At this quantile of its latency a call is given up, or sent a second time.
const LATE: f64 = 0.95;
/// Of its lifetime: how long a cache is left alone before it is kept alive.
const PING_AT: f64 = 0.9;
/// Of the sessions: how many try the smaller model, and how many of those are done again.
const SMALL_SHARE: f64 = 0.5;
const REDO_SHARE: f64 = 0.1;
/// A smaller model costs at most this of the larger one's input.
const SMALL_COST: f64 = 0.5;
/// Where the messages are summarised, as shares of the last prompt; and how long the summary is.
const COMPACT_AT: [f64; 3] = [0.25, 0.5, 0.75];
const SUMMARY_TOKENS: u64 = 2_000;

impl Scenario {
    /// Every lever: of the main agent; agents that it calls take over what is theirs to take over.
    pub fn levers(&self) -> Levers {
        let mut found = Found { base: self, levers: Levers::default() };
        if self.model.herd.is_some() {
            found.refuse("levers of a session", "the file has a herd; compare its retry policies as strategies");
            return found.levers;
        }
        found.cache();
        found.results();
        found.servers();
        found.calls();
        found.models();
        found.compaction();
        found.levers
    }

    /// The same file with more to set, as `--set` does.
    ///
    /// # Errors
    /// What is wrong with it then.
    pub fn with_sets(&self, sets: &[String]) -> Result<Scenario, String> {
        let edits: Vec<Edit> = sets.iter().cloned().map(Set).collect();
        self.with(&edits)
    }

    /// The same file with changes.
    fn with(&self, edits: &[Edit]) -> Result<Scenario, String> {
        let mut tree = self.tree.clone();
        tree.remove("strategies");
        let mut mistakes = Mistakes::default();
        for edit in edits {
            match edit {
                Remove(path) => remove(&mut tree, path),
                RemoveOfTool(tool, key) => each_named(&mut tree, "tools", tool, &mut |table| {
                    table.remove(key);
                }),
                Drop(server) => drop_server(&mut tree, server),
                Set(_) => {}
            }
        }
        let sets: Vec<_> = edits
            .iter()
            .filter_map(|edit| if let Set(set) = edit { parse_set(1, set, &mut mistakes) } else { None })
            .collect();
        set_all(&mut tree, &sets, &mut mistakes);
        let sink = RefCell::new(mistakes);
        let composed = compose(&tree, &self.around, &sink);
        if let Some(mistake) = sink.into_inner().sorted().into_iter().next() {
            let help = mistake.help_text().map_or_else(String::new, |help| format!("; {help}"));
            return Err(format!("{}{help}", mistake.message()));
        }
        let resolved = composed.resolved;
        Ok(Scenario {
            model: resolved.model,
            servers: resolved.servers,
            tools: resolved.tools,
            agents: composed.nodes,
            price: resolved.price,
            notes: resolved.notes,
            writes: resolved.writes,
            tree,
            ..self.clone()
        })
    }
}

fn remove(tree: &mut Table, path: &[&str]) {
    match path {
        [] => {}
        [key] => {
            tree.remove(key);
        }
        [first, rest @ ..] => {
            if let Some(Data::Table(inner)) = tree.get_mut(first).map(|node| &mut node.data) {
                remove(inner, rest);
            }
        }
    }
}

/// Changes the table of this name in a list.
fn each_named(tree: &mut Table, list: &str, name: &str, change: &mut dyn FnMut(&mut Table)) {
    let Some(Data::Array(items)) = tree.get_mut(list).map(|node| &mut node.data) else { return };
    for item in items.iter_mut().filter(|item| name_of(item) == Some(name)) {
        if let Data::Table(table) = &mut item.data {
            change(table);
        }
    }
}

fn text_at<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    match &table.get(key)?.data {
        Data::String(text) => Some(text),
        _ => None,
    }
}

/// The tools of a server, by name.
fn tools_of(tree: &Table, server: &str) -> Vec<String> {
    let Some(Data::Array(tools)) = tree.get("tools").map(|node| &node.data) else { return Vec::new() };
    let is_of = |item: &&super::tree::Node| match &item.data {
        Data::Table(table) => text_at(table, "server") == Some(server),
        _ => false,
    };
    tools.iter().filter(is_of).filter_map(|item| name_of(item).map(str::to_owned)).collect()
}

/// Without a server, its tools, and what waits for them.
fn drop_server(tree: &mut Table, server: &str) {
    let gone = tools_of(tree, server);
    let is_gone = |name: &str| gone.iter().any(|tool| tool == name);
    if let Some(Data::Array(servers)) = tree.get_mut("servers").map(|node| &mut node.data) {
        servers.retain(|item| name_of(item) != Some(server));
    }
    if let Some(Data::Array(tools)) = tree.get_mut("tools").map(|node| &mut node.data) {
        tools.retain(|item| !name_of(item).is_some_and(is_gone));
        for tool in tools {
            let Data::Table(tool) = &mut tool.data else { continue };
            if let Some(Data::Array(before)) = tool.get_mut("after").map(|node| &mut node.data) {
                before.retain(|name| !matches!(&name.data, Data::String(name) if is_gone(name)));
            }
        }
    }
    for list in ["servers", "tools"] {
        if matches!(tree.get(list).map(|node| &node.data), Some(Data::Array(items)) if items.is_empty()) {
            tree.remove(list);
        }
    }
}

/// Seconds as the file has them.
fn seconds(s: f64) -> String {
    let (x, unit) = if s >= 1.0 { (s, "s") } else { (s * 1e3, "ms") };
    let digits = format!("{x:.3}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Seconds as a person reads them.
fn short(s: f64) -> String {
    match s {
        s if s >= 600.0 => format!("{:.0} min", s / 60.0),
        s if s >= 10.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.0} ms", s * 1e3),
    }
}

/// `27000` → `27_000`, as the file may have it.
fn thousands(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{}_{:03}", thousands(n / 1_000), n % 1_000) }
}

/// A list for a sentence.
fn all(names: &[&str]) -> String {
    match names {
        [few @ .., last] if few.len() < 3 && !few.is_empty() => format!("{} and {last}", few.join(", ")),
        [one] => (*one).to_owned(),
        names => format!("{} tools", names.len()),
    }
}

struct Found<'a> {
    base: &'a Scenario,
    levers: Levers,
}

impl Found<'_> {
    fn model(&self) -> &Model {
        &self.base.model
    }

    fn add(&mut self, name: impl Into<String>, is_on: bool, edits: &[Edit]) {
        let name = name.into();
        match self.base.with(edits) {
            // what changes nothing in the file isn't there to be changed
            Ok(scenario) if self.base.changes(&scenario).iter().all(|change| change.key.starts_with("strategies")) => {}
            Ok(scenario) => {
                let gone = || self.base.tools.iter().filter(|tool| !scenario.tools.contains(tool)).cloned().collect();
                let dropped =
                    edits.iter().find_map(|edit| if let Drop(server) = edit { Some(server.clone()) } else { None });
                let loses = dropped.map(|server| (server, gone()));
                self.levers.levers.push(Lever { name, is_on, loses, scenario });
            }
            Err(why) => self.levers.others.push((name, why)),
        }
    }

    fn refuse(&mut self, name: &str, why: &str) {
        self.levers.others.push((name.to_owned(), why.to_owned()));
    }

    /// The cache: on, for longer, for longer for the prefix only, kept alive.
    fn cache(&mut self) {
        if self.model().tariff.is_none() {
            self.refuse("a cache", "the scenario has no prices");
            return;
        }
        let cache = self.model().cache;
        let offered: Vec<u64> = self.base.writes.by_seconds.keys().copied().collect();
        let set = |key: &str, seconds: u64| Set(format!("cache.{key}={}", lifetime_label(seconds)));
        if !cache.enabled {
            if offered.is_empty() {
                // without a lifetime to choose the provider decides, for minutes
                self.add("a cache", false, &[set("lifetime", 300)]);
            }
            for seconds in offered {
                self.add(format!("a cache that lives {}", lifetime_label(seconds)), false, &[set("lifetime", seconds)]);
            }
            return;
        }
        let label = |seconds: f64| lifetime_label(seconds.round() as u64);
        let (lifetime, prefix) = (cache.lifetime_s.round() as u64, cache.prefix_lifetime_s.round() as u64);
        self.add(format!("the cache that lives {}", label(cache.lifetime_s)), true, &[Remove(vec!["cache"])]);
        let two = prefix > lifetime;
        if two {
            let name = format!("{} for tools and system", label(cache.prefix_lifetime_s));
            self.add(name, true, &[Remove(vec!["cache", "prefix_lifetime"])]);
        }
        for seconds in offered {
            let is_longer = seconds > lifetime;
            if seconds != lifetime {
                let name = format!("a cache that lives {}", lifetime_label(seconds));
                let mut edits = vec![Remove(vec!["cache", "prefix_lifetime"]), set("lifetime", seconds)];
                if cache.is_kept_alive() {
                    edits.push(Set(format!("cache.keep_alive={}", self::seconds(seconds as f64 * PING_AT))));
                }
                self.add(name, false, &edits);
            }
            if is_longer && !two {
                let name = format!("{} for tools and system only", lifetime_label(seconds));
                self.add(name, false, &[set("prefix_lifetime", seconds)]);
            }
        }
        if cache.is_kept_alive() {
            self.add("keep-alive", true, &[Remove(vec!["cache", "keep_alive"])]);
        } else {
            let every_s = cache.lifetime_s * PING_AT;
            let name = format!("keep-alive every {}", short(every_s));
            self.add(name, false, &[Set(format!("cache.keep_alive={}", seconds(every_s)))]);
        }
    }

    /// Tools with their names that hold of something.
    fn tools(&self, holds: impl Fn(&Tool) -> bool) -> Vec<(&str, &Tool)> {
        let named = self.base.tools.iter().map(String::as_str).zip(&self.base.model.phase.tools);
        named.filter(|(_, tool)| tool.calls.as_constant() != Some(0) && holds(tool)).collect()
    }

    /// What tools return: half of it, or cut.
    fn results(&mut self) {
        let tools = self.tools(|tool| tool.result.mean() > 0.0);
        if tools.is_empty() {
            self.refuse("shorter tool results", "no tool returns anything");
            return;
        }
        let halve = |(name, tool): &(&str, &Tool)| {
            let half = match tool.result.as_constant() {
                Some(tokens) => (tokens / 2).to_string(),
                None => {
                    let own = self.base.value_at(&format!("tools.{}.result", quoted(name))).unwrap_or_default();
                    format!("{{ scaled = {{ by = 0.5, of = {own} }} }}")
                }
            };
            Set(format!("tools.{}.result={half}", quoted(name)))
        };
        let halves: Vec<Edit> = tools.iter().map(halve).collect();
        let random = tools.iter().filter(|(_, tool)| tool.result.as_constant().is_none());
        let cut = random.map(|(_, tool)| tool.result.quantile(0.9)).fold(f64::NAN, f64::max);
        let is_cut = self.base.value_at("context.max_result").is_some_and(|text| text != "\"off\"");
        self.add("half of every tool's result", false, &halves);
        if is_cut {
            self.add("cut results", true, &[Remove(vec!["context", "max_result"])]);
        } else if cut.is_finite() {
            let tokens = cut.round() as u64;
            let name = format!("results cut at {} tokens, the longest tool's p90", thousands(tokens));
            self.add(name, false, &[Set(format!("context.max_result={tokens}"))]);
        } else {
            self.refuse("cut results", "every tool's results have one length; halving them says the same");
        }
    }

    /// Servers: left out, found by search, called from code.
    fn servers(&mut self) {
        let servers = self.base.servers.clone();
        if servers.iter().all(|name| name == super::SEARCH_TOOL) {
            self.refuse("fewer tool definitions", "the scenario has no [[servers]]");
            return;
        }
        for server in servers.iter().filter(|name| *name != super::SEARCH_TOOL) {
            self.add(format!("without the server {server}"), false, &[Drop(server.clone())]);
            let loading = match self.base.value_at(&format!("servers.{}.loading", quoted(server))).as_deref() {
                Some("\"search\"") => "search",
                Some("\"code\"") => "code",
                _ => "upfront",
            };
            let load = |way: &str| [Set(format!("servers.{}.loading={way}", quoted(server)))];
            if loading != "upfront" {
                let name = if loading == "search" { "found by search" } else { "called from code" };
                self.add(format!("{server} {name}"), true, &load("upfront"));
                continue;
            }
            if self.base.tree.get("tool_search").is_some() {
                self.add(format!("{server} found by search"), false, &load("search"));
            } else {
                self.refuse(
                    &format!("{server} found by search"),
                    "[tool_search] doesn't say what a search takes and finds",
                );
            }
            if self.base.value_at(&format!("servers.{}.read_tokens", quoted(server))).is_some() {
                self.add(format!("{server} called from code"), false, &load("code"));
            }
        }
    }

    /// How calls are made: side by side, given up, hedged, replayed.
    fn calls(&mut self) {
        if self.model().phase.tools.is_empty() {
            self.refuse("other ways to call tools", "the scenario has no [[tools]]");
            return;
        }
        let at_once = |tool: &Tool| tool.calls.at_least(2) > 0.0;
        if self.model().phase.one_at_a_time {
            self.add("calls side by side", false, &[Set("session.tool_calls=parallel".to_owned())]);
        } else if self.model().phase.tools.len() > 1 || !self.tools(at_once).is_empty() {
            self.add("calls side by side", true, &[Set("session.tool_calls=sequential".to_owned())]);
        }
        let varies = |law: &Dist| law.as_constant().is_none() && law.quantile(LATE).is_finite();
        let is_own = |tool: &Tool| tool.agent.is_none() && varies(&tool.latency_s);
        let (waiting, hedged, single, repeated, replayed) = (
            self.tools(|tool| is_own(tool) && !tool.faults.timeout_s.is_finite()),
            self.tools(Tool::is_hedged),
            self.tools(|tool| is_own(tool) && !tool.is_hedged()),
            self.tools(Tool::can_run_twice),
            self.tools(|tool| tool.idempotent && Tool { idempotent: false, ..tool.clone() }.can_run_twice()),
        );
        let names = |tools: &[(&str, &Tool)]| all(&tools.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let late = |tool: &Tool| seconds(tool.latency_s.quantile(LATE));
        let mut adds: Vec<(String, bool, Vec<Edit>)> = Vec::new();
        let mut refusals: Vec<(&str, &str)> = Vec::new();
        if waiting.is_empty() {
            refusals.push(("a timeout at p95", "no tool without a timeout has a latency that varies"));
        } else {
            let mut edits = Vec::new();
            for (name, tool) in &waiting {
                edits.push(Set(format!("tools.{}.timeout={}", quoted(name), late(tool))));
                if tool.retry.attempts < 2 {
                    edits.push(Set(format!("tools.{}.retry.attempts=2", quoted(name))));
                }
            }
            let again =
                if waiting.iter().any(|(_, tool)| tool.retry.attempts < 2) { " and a second attempt" } else { "" };
            let after = if let [(_, one)] = waiting.as_slice() {
                format!(" ({})", short(one.latency_s.quantile(LATE)))
            } else {
                String::new()
            };
            adds.push((format!("a timeout at p95{again} for {}{after}", names(&waiting)), false, edits));
        }
        if !hedged.is_empty() {
            let edits = hedged.iter().map(|(name, _)| RemoveOfTool((*name).to_owned(), "hedge_after")).collect();
            adds.push((format!("hedging of {}", names(&hedged)), true, edits));
        }
        if single.is_empty() {
            refusals.push(("hedging at p95", "no tool that isn't hedged has a latency that varies"));
        } else {
            let edits = single
                .iter()
                .map(|(name, tool)| Set(format!("tools.{}.hedge_after={}", quoted(name), late(tool))))
                .collect();
            let after = if let [(_, one)] = single.as_slice() {
                format!(" ({})", short(one.latency_s.quantile(LATE)))
            } else {
                String::new()
            };
            adds.push((format!("hedging at p95 of {}{after}", names(&single)), false, edits));
        }
        if !replayed.is_empty() {
            let edits =
                replayed.iter().map(|(name, _)| Set(format!("tools.{}.idempotent=false", quoted(name)))).collect();
            adds.push((format!("idempotency keys of {}", names(&replayed)), true, edits));
        }
        if repeated.is_empty() {
            refusals.push(("idempotency keys", "no call without one can run twice"));
        } else {
            let edits =
                repeated.iter().map(|(name, _)| Set(format!("tools.{}.idempotent=true", quoted(name)))).collect();
            adds.push((format!("idempotency keys for {}", names(&repeated)), false, edits));
        }
        for (name, is_on, edits) in adds {
            self.add(name, is_on, &edits);
        }
        for (name, why) in refusals {
            self.refuse(name, why);
        }
    }

    /// A smaller model for a share of the sessions.
    fn models(&mut self) {
        const NAME: &str = "a smaller model for a share of the sessions";
        if self.model().routing.is_some() {
            self.add("the smaller model of [routing]", true, &[Remove(vec!["routing"])]);
            return;
        }
        let Some(price) = self.base.price.clone() else {
            return self.refuse(NAME, "the scenario names no model");
        };
        if price.overridden {
            return self.refuse(NAME, "[price] gives the prices, whatever the model");
        }
        let sheet = self.base.around.sheet.clone();
        let day = price.as_of.parse().ok();
        let Ok(own) = sheet.find(&price.model, day) else { return };
        let is_smaller = |row: &&Row| {
            row.provider == own.provider
                && row.model != own.model
                && row.input.0 as f64 <= SMALL_COST * own.input.0 as f64
                && row.retires.is_none_or(|retires| day.is_none_or(|day| retires > day))
        };
        let mut smaller: Vec<&Row> = sheet
            .rows()
            .iter()
            .filter(is_smaller)
            .filter(|row| {
                sheet.find(&format!("{}/{}", row.provider, row.model), day).is_ok_and(|now| std::ptr::eq(now, *row))
            })
            .collect();
        // the best of them is the dearest; of those that cost the same the first, which is the newest
        smaller.sort_by_key(|row| std::cmp::Reverse((row.input, row.output)));
        let route = |row: &Row| {
            let small = format!("{}/{}", row.provider, row.model);
            Set(format!(
                "routing={{ share = {SMALL_SHARE}, redo = {REDO_SHARE}, small = {{ model = {{ name = \"{small}\" }} }} }}"
            ))
        };
        let Some(row) = smaller.iter().find(|row| self.base.with(&[route(row)]).is_ok()) else {
            return self.refuse(NAME, "the price sheet has no model of this provider at half its price or less");
        };
        let name = format!(
            "{} for {:.0} % of the sessions, {:.0} % of them done again",
            row.model,
            SMALL_SHARE * 100.0,
            REDO_SHARE * 100.0
        );
        let edits = [route(row)];
        self.add(name, false, &edits);
    }

    /// Summaries of the messages, at several lengths.
    fn compaction(&mut self) {
        let model = self.model();
        let context = &model.context;
        let is_on = context.compact_at_tokens < u64::MAX;
        let summary = if is_on { context.summary_tokens } else { SUMMARY_TOKENS };
        let prefix = model.prompt.definition_tokens() as f64 + model.prompt.system.mean();
        let results: f64 = model.phase.tools.iter().map(|tool| tool.calls.mean() * tool.result.mean()).sum();
        let calls = model.turns.mean() * model.conversation.messages.mean();
        let last = prefix + model.prompt.task.mean() + (calls - 1.0) * (model.output.mean() + results);
        let present = context.compact_at_tokens;
        if is_on {
            self.add("compaction", true, &[Remove(vec!["context", "compact_at"]), Remove(vec!["context", "summary"])]);
        }
        let mut tried = 0;
        for share in COMPACT_AT {
            let step = 10_f64.powf((share * last).log10().floor() - 1.0).max(1.0);
            let at = ((share * last / step).round() * step) as u64;
            // below this there would be little but summaries
            if at == present || (at as f64) < prefix + 2.0 * summary as f64 {
                continue;
            }
            tried += 1;
            let name = format!("compaction at {} tokens to a summary of {}", thousands(at), thousands(summary));
            let edits = [Set(format!("context.compact_at={at}")), Set(format!("context.summary={summary}"))];
            self.add(name, false, &edits);
        }
        if tried == 0 && !is_on {
            self.refuse("compaction", "prompts hardly outgrow tools, system and a summary");
        }
    }
}
