//! Where two scenarios differ, key by key.

use std::collections::BTreeMap;

use super::tree::{Data, Node, Table, is_distribution, name_of, quoted, segments};

/// A key that two scenarios don't share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its path, as `--set` takes it.
    pub key: String,
    /// Its value in the first, as TOML; `None` where it isn't written.
    pub from: Option<String>,
    /// Its value in the second.
    pub to: Option<String>,
}

/// What says nothing about the sessions.
const ABOUT: [&str; 3] = ["title", "strategies", "sweep"];

/// The differences between two files.
pub(super) fn changes(from: &Table, to: &Table) -> Vec<Change> {
    let (from, to) = (leaves(from), leaves(to));
    let mut keys: Vec<&String> = from.keys().chain(to.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|key| from.get(*key) != to.get(*key))
        .map(|key| Change { key: key.clone(), from: from.get(key).cloned(), to: to.get(key).cloned() })
        .collect()
}

pub(super) fn leaves(root: &Table) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    for (key, node) in root.entries.iter().filter(|(key, _)| !ABOUT.contains(&key.name.as_str())) {
        collect(&key.name, node, &mut leaves);
    }
    leaves
}

fn collect(path: &str, node: &Node, into: &mut BTreeMap<String, String>) {
    match &node.data {
        Data::Table(table) if !is_distribution(table) => {
            for (key, node) in &table.entries {
                collect(&format!("{path}.{}", quoted(&key.name)), node, into);
            }
        }
        Data::Array(items) if !items.is_empty() && items.iter().all(|item| name_of(item).is_some()) => {
            for item in items {
                let name = name_of(item).unwrap_or_default();
                collect(&format!("{path}.{}", quoted(name)), item, into);
            }
        }
        // a named table's name stands in the path
        Data::String(name) if path.ends_with(&format!("{}.name", quoted(name))) => {}
        _ => {
            into.insert(path.to_owned(), text(node));
        }
    }
}

/// A value as TOML.
pub(super) fn text(node: &Node) -> String {
    match &node.data {
        Data::String(text) => format!("\"{text}\""),
        Data::Integer(Some(number)) => number.to_string(),
        Data::Integer(None) => "?".to_owned(),
        Data::Float(number) => number.to_string(),
        Data::Boolean(value) => value.to_string(),
        Data::Date(date) => date.clone(),
        Data::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Data::Table(table) => {
            let entries: Vec<String> =
                table.entries.iter().map(|(key, node)| format!("{} = {}", key.name, text(node))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// The value at a path, as TOML; a list of named tables is entered by name.
pub(super) fn value_at(root: &Table, path: &str) -> Option<String> {
    let mut names = segments(path).into_iter().map(|(name, ..)| name);
    let mut node = root.get(&names.next()?)?;
    for name in names {
        node = match &node.data {
            Data::Table(table) => table.get(&name)?,
            Data::Array(items) => items.iter().find(|item| name_of(item) == Some(name.as_str()))?,
            _ => return None,
        };
    }
    Some(match &node.data {
        // with its point, so that it can't be taken for a whole number
        Data::Float(number) => format!("{number:?}"),
        _ => text(node),
    })
}
