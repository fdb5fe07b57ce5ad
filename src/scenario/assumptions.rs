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
const SECTIONS: [&str; 6] = ["run", "model", "prompt", "session", "retry", "cache"];

impl Scenario {
    /// Every key that is written, strategy and `--set` laid over, then the defaults of the sections that shape a session.
    pub fn assumptions(&self) -> Vec<Assumption> {
        // a text that is shipped with the program
        let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
        let written = changes::leaves(&self.tree);
        let about = |key: &str| {
            let node = segments(key).iter().try_fold(&schema, |node, (name, ..)| below(&schema, node, name));
            node.map(|node| description(&schema, node)).unwrap_or_default()
        };
        let mut all: Vec<Assumption> = written
            .iter()
            .map(|(key, value)| Assumption {
                key: key.clone(),
                value: value.clone(),
                about: about(key),
                is_default: false,
            })
            .collect();
        let mut places: Vec<(String, &Value)> =
            SECTIONS.iter().filter_map(|name| Some(((*name).to_owned(), below(&schema, &schema, name)?))).collect();
        if let Some(tools) = below(&schema, &schema, "tools") {
            let tool = self
                .tools
                .iter()
                .filter_map(|name| Some((format!("tools.{}", quoted(name)), below(&schema, tools, name)?)));
            places.extend(tool);
        }
        for (place, node) in places {
            for (key, value) in defaults(&schema, node) {
                let key = format!("{place}.{key}");
                if !is_written(&written, &key) {
                    let about = about(&key);
                    all.push(Assumption { key, value, about, is_default: true });
                }
            }
        }
        all
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
        named.or_else(|| form.get("additionalProperties").filter(|other| other.is_object()))
    })
}

fn description(schema: &Value, node: &Value) -> String {
    let own = node["description"].as_str();
    own.or_else(|| resolved(schema, node)["description"].as_str()).unwrap_or_default().to_owned()
}

/// Keys with the default that they have.
fn defaults(schema: &Value, node: &Value) -> Vec<(String, String)> {
    let properties = forms(schema, node).into_iter().filter_map(|form| form["properties"].as_object()).flatten();
    let default = |node: &Value| match node.get("default") {
        Some(default) => Some(default.to_string()),
        None => forms(schema, node).iter().any(|form| form["const"] == "off").then(|| "\"off\"".to_owned()),
    };
    properties.filter_map(|(key, node)| Some((key.clone(), default(node)?))).collect()
}
