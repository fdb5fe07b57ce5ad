//! What a scenario takes for granted: every key with its value, and the defaults of those that aren't written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tree::{quoted, segments};
use super::{SCHEMA, Scenario, changes};

/// A key and what it is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumption {
    /// Its path, as `--set` takes it.
    pub key: String,
    /// Its value, as TOML.
    pub value: String,
    /// What it means.
    pub about: String,
    /// Whether it isn't written, so that its default holds.
    pub is_default: bool,
}

/// Sections whose defaults shape every session.
const ALWAYS: [&str; 6] = ["run", "model", "prompt", "session", "cache", "context"];

/// Sections whose defaults hold where they are written.
const WRITTEN: [&str; 5] = ["budget", "tool_search", "outcome", "fleet", "herd"];

impl Scenario {
    /// Every key that is written, strategy and `--set` laid over, then the defaults of what isn't.
    pub fn assumptions(&self) -> Vec<Assumption> {
        // a text that is shipped with the program
        let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
        let written = changes::leaves(&self.tree);
        let about = |key: &str| {
            let node = segments(key).iter().try_fold(&schema, |node, (name, ..)| below(&schema, node, name));
            node.map(|node| description(&schema, node)).unwrap_or_default()
        };
        let assumption = |key: &str, value: &str, is_default: bool| Assumption {
            key: key.to_owned(),
            value: value.to_owned(),
            about: about(key),
            is_default,
        };
        let mut all: Vec<Assumption> = written.iter().map(|(key, value)| assumption(key, value, false)).collect();
        for place in self.places(&written) {
            let node = segments(&place).iter().try_fold(&schema, |node, (name, ..)| below(&schema, node, name));
            for (key, value) in node.map(|node| defaults(&schema, node)).unwrap_or_default() {
                let key = format!("{place}.{key}");
                if !is_written(&written, &key) && !self.is_governed(&key, &written) {
                    all.push(assumption(&key, &value, true));
                }
            }
        }
        if let Some(fleet) = &self.model.fleet {
            // some of them depend on the arrivals
            for (key, seconds) in [("fleet.horizon", fleet.horizon_s), ("fleet.warm_up", fleet.warm_up_s)] {
                if !is_written(&written, key) {
                    all.push(assumption(key, &format!("\"{seconds}s\""), true));
                }
            }
        }
        all
    }

    /// The tables whose defaults hold.
    fn places(&self, written: &BTreeMap<String, String>) -> Vec<String> {
        let is_herd = self.model.herd.is_some();
        let mut places: Vec<String> =
            ALWAYS.iter().filter(|name| !is_herd || **name == "run").map(|name| (*name).to_owned()).collect();
        places.extend(WRITTEN.iter().filter(|name| is_written(written, name)).map(|name| (*name).to_owned()));
        if self.model.fleet.is_some() {
            places.push("fleet.limits".to_owned());
        }
        if is_herd || !self.tools.is_empty() {
            places.push("retry".to_owned());
        }
        places.extend(self.tools.iter().map(|name| format!("tools.{}", quoted(name))));
        places
    }

    /// Whether something else than its default decides what a key is.
    fn is_governed(&self, key: &str, written: &BTreeMap<String, String>) -> bool {
        let by_preset =
            key.starts_with("retry.") && (written.contains_key("retry") || is_written(written, "retry.preset"));
        // a herd tries without end
        by_preset
            || (key == "retry.attempts" && self.model.herd.is_some())
            || matches!(key, "fleet.horizon" | "fleet.warm_up")
            || (key.starts_with("fleet.limits.") && is_written(written, "fleet.limits.tier"))
    }
}

/// Whether a key is there, or anything below it.
fn is_written(written: &BTreeMap<String, String>, key: &str) -> bool {
    let inside = format!("{key}.");
    written.keys().any(|own| own == key || own.starts_with(&inside))
}

/// The definition that a reference points to.
fn resolved<'s>(schema: &'s Value, node: &'s Value) -> &'s Value {
    let target = node["$ref"].as_str().and_then(|path| path.strip_prefix('#')).and_then(|path| schema.pointer(path));
    target.unwrap_or(node)
}

/// The node and those that it may be instead.
fn forms<'s>(schema: &'s Value, node: &'s Value) -> Vec<&'s Value> {
    let node = resolved(schema, node);
    let others = node["anyOf"].as_array().into_iter().flatten();
    std::iter::once(node).chain(others.flat_map(|other| forms(schema, other))).collect()
}

/// The node under a key; of a list of named tables the node of its items.
fn below<'s>(schema: &'s Value, node: &'s Value, key: &str) -> Option<&'s Value> {
    forms(schema, node).into_iter().find_map(|form| {
        let named = form["properties"].get(key).or_else(|| form.get("items"));
        let alike = || {
            let patterns = form["patternProperties"].as_object().into_iter().flatten();
            let begins = |pattern: &str| pattern.trim_start_matches('^').split('\\').next().map(str::to_owned);
            let mut alike =
                patterns.filter(|(pattern, _)| begins(pattern).is_some_and(|start| key.starts_with(&start)));
            alike.next().map(|(_, node)| node)
        };
        named.or_else(alike).or_else(|| form.get("additionalProperties").filter(|other| other.is_object()))
    })
}

fn description(schema: &Value, node: &Value) -> String {
    let own = node["description"].as_str();
    own.or_else(|| resolved(schema, node)["description"].as_str()).unwrap_or_default().to_owned()
}

/// Keys with the default that they have.
fn defaults(schema: &Value, node: &Value) -> Vec<(String, String)> {
    let properties = forms(schema, node).into_iter().filter_map(|form| form["properties"].as_object()).flatten();
    let default = |node: &Value| {
        let own = node.get("default").or_else(|| resolved(schema, node).get("default"));
        own.map(ToString::to_string)
    };
    properties.filter_map(|(key, node)| Some((key.clone(), default(node)?))).collect()
}
