//! Reading a table key by key: what was asked for is known, the rest is a mistake.

use std::cell::RefCell;

use jiff::SignedDuration;

use super::mistake::{Mistake, Mistakes};
use super::tree::{Data, Node, Span, Table};

/// A value and where it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct At<T> {
    pub value: T,
    pub span: Span,
}

/// Where mistakes go.
pub(super) type Sink = RefCell<Mistakes>;

pub(super) fn complain(sink: &Sink, mistake: Mistake) {
    sink.borrow_mut().push(mistake);
}

/// One table being read.
pub(super) struct Reader<'t> {
    table: &'t Table,
    /// `[tools]`, `latency`, for messages.
    name: String,
    known: Vec<String>,
    later: Vec<String>,
    sink: &'t Sink,
}

impl<'t> Reader<'t> {
    pub fn new(table: &'t Table, name: impl Into<String>, sink: &'t Sink) -> Self {
        Self { table, name: name.into(), known: Vec::new(), later: Vec::new(), sink }
    }

    /// Where mistakes go.
    pub fn sink(&self) -> &'t Sink {
        self.sink
    }

    /// The node under a key, which is known from now on.
    pub fn node(&mut self, key: &str) -> Option<&'t Node> {
        self.known.push(key.to_owned());
        self.table.get(key)
    }

    /// Reads the value under a key.
    pub fn get<T>(&mut self, key: &str, read: impl FnOnce(&'t Node, &str, &Sink) -> Option<T>) -> Option<At<T>> {
        let node = self.node(key)?;
        let value = read(node, key, self.sink)?;
        Some(At { value, span: node.span })
    }

    /// Reads the value under a key that can be "off", which is the same as leaving it out.
    pub fn unless_off<T>(&mut self, key: &str, read: impl FnOnce(&'t Node, &str, &Sink) -> Option<T>) -> Option<At<T>> {
        if self.is_on(key) { self.get(key, read) } else { None }
    }

    /// Whether a key is there, and isn't "off".
    pub fn is_on(&mut self, key: &str) -> bool {
        self.node(key).is_some_and(|node| !matches!(&node.data, Data::String(given) if given == "off"))
    }

    /// A subtable, read by `read`.
    pub fn table<T>(&mut self, key: &str, name: &str, read: impl FnOnce(Reader<'t>) -> T) -> Option<T> {
        let node = self.node(key)?;
        let table = as_table(node, key, self.sink)?;
        Some(read(Reader::new(table, name, self.sink)))
    }

    /// The same, where "off" stands for leaving the whole table out.
    pub fn table_unless_off<T>(&mut self, key: &str, name: &str, read: impl FnOnce(Reader<'t>) -> T) -> Option<T> {
        if self.is_on(key) { self.table(key, name, read) } else { None }
    }

    /// Keys that match a pattern, such as one price per lifetime.
    pub fn matching<T>(&mut self, mut read: impl FnMut(&'t str, Span, &'t Node) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        for (key, node) in &self.table.entries {
            if let Some(value) = read(&key.name, key.span, node) {
                self.known.push(key.name.clone());
                found.push(value);
            }
        }
        found
    }

    /// Keys that a later version will read: refused by name.
    pub fn later(&mut self, keys: &[&str]) {
        self.later.extend(keys.iter().map(|key| (*key).to_owned()));
    }

    /// Refuses every key that nobody asked for.
    pub fn finish(self) {
        for (key, _) in &self.table.entries {
            if self.later.contains(&key.name) {
                complain(
                    self.sink,
                    Mistake::at(key.span, format!("`{}` isn't supported yet", key.name))
                        .label("not simulated by this version")
                        .help("take it out; the run would not show what it does"),
                );
            } else if !self.known.contains(&key.name) {
                let mistake = Mistake::at(key.span, format!("{} has no key `{}`", self.name, key.name));
                let all: Vec<&str> = self.known.iter().map(String::as_str).collect();
                complain(
                    self.sink,
                    match nearest(&key.name, &all) {
                        Some(near) => mistake.label(format!("did you mean `{near}`?")).help(keys_help(&all)),
                        None => mistake.label("unknown key").help(keys_help(&all)),
                    },
                );
            }
        }
    }
}

fn keys_help(known: &[&str]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for key in known {
        if !all.contains(key) {
            all.push(key);
        }
    }
    format!("the keys here are {}", all.join(", "))
}

/// The most similar of some names, if one is similar.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), *candidate))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn wrong_kind(node: &Node, key: &str, wanted: &str, example: &str) -> Mistake {
    Mistake::at(node.span, format!("`{key}` must be {wanted}"))
        .label(format!("this is {}", node.kind()))
        .help(format!("for example {example}"))
}

pub(super) fn as_table<'t>(node: &'t Node, key: &str, sink: &Sink) -> Option<&'t Table> {
    match &node.data {
        Data::Table(table) => Some(table),
        _ => {
            complain(
                sink,
                Mistake::at(node.span, format!("`{key}` must be a table"))
                    .label(format!("this is {}", node.kind()))
                    .help(format!(
                        "write it as {key} = {{ … }}, or its keys under a line of their own, such as [{key}]"
                    )),
            );
            None
        }
    }
}

/// A table that is written in one line, as in the example.
pub(super) fn inline_table<'t>(node: &'t Node, key: &str, example: &str, sink: &Sink) -> Option<&'t Table> {
    if let Data::Table(table) = &node.data {
        return Some(table);
    }
    complain(sink, wrong_kind(node, key, "a table", &format!("{key} = {example}")));
    None
}

/// A list of tables, `[[name]]`.
pub(super) fn tables<'t>(node: &'t Node, key: &str, sink: &Sink) -> Option<Vec<At<&'t Table>>> {
    let Data::Array(items) = &node.data else {
        complain(
            sink,
            Mistake::at(node.span, format!("`{key}` must be a list of tables"))
                .label(format!("this is {}", node.kind()))
                .help(format!(
                    "write each one under a line of its own, such as [[{key}]], or all as {key} = [{{ … }}]"
                )),
        );
        return None;
    };
    let table = |item: &'t Node| match &item.data {
        Data::Table(table) => Some(At { value: table, span: item.span }),
        _ => {
            complain(
                sink,
                Mistake::at(item.span, format!("each of `{key}` must be a table"))
                    .label(format!("this is {}", item.kind()))
                    .help(format!("for example {key} = [{{ name = \"…\" }}]")),
            );
            None
        }
    };
    Some(items.iter().filter_map(table).collect())
}

pub(super) fn text(node: &Node, key: &str, sink: &Sink) -> Option<String> {
    match &node.data {
        Data::String(text) => Some(text.clone()),
        _ => {
            complain(sink, wrong_kind(node, key, "a text", &format!("{key} = \"…\"")));
            None
        }
    }
}

pub(super) fn boolean(node: &Node, key: &str, sink: &Sink) -> Option<bool> {
    match &node.data {
        Data::Boolean(value) => Some(*value),
        _ => {
            complain(sink, wrong_kind(node, key, "true or false", &format!("{key} = true")));
            None
        }
    }
}

/// One of a few words.
pub(super) fn word<T: Copy>(node: &Node, key: &str, words: &[(&str, T)], sink: &Sink) -> Option<T> {
    let all: Vec<&str> = words.iter().map(|w| w.0).collect();
    let list = all.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ");
    let Data::String(given) = &node.data else {
        complain(sink, wrong_kind(node, key, &format!("one of {list}"), &format!("{key} = \"{}\"", all[0])));
        return None;
    };
    if let Some((_, value)) = words.iter().find(|(word, _)| word == given) {
        return Some(*value);
    }
    let label = nearest(given, &all).map_or_else(|| "unknown".to_owned(), |near| format!("did you mean \"{near}\"?"));
    complain(sink, Mistake::at(node.span, format!("`{key}` must be one of {list}")).label(label));
    None
}

/// A list of texts, each with its place.
pub(super) fn texts(node: &Node, key: &str, sink: &Sink) -> Option<Vec<At<String>>> {
    let Data::Array(items) = &node.data else {
        complain(sink, wrong_kind(node, key, "a list of names", &format!("{key} = [\"search\"]")));
        return None;
    };
    Some(items.iter().filter_map(|item| Some(At { value: text(item, key, sink)?, span: item.span })).collect())
}

/// Any finite number.
pub(super) fn number(node: &Node, key: &str, sink: &Sink) -> Option<f64> {
    let value = match &node.data {
        Data::Integer(Some(value)) => *value as f64,
        Data::Float(value) => *value,
        _ => {
            complain(sink, wrong_kind(node, key, "a number", &format!("{key} = 3.5")));
            return None;
        }
    };
    if !value.is_finite() {
        complain(sink, Mistake::at(node.span, format!("`{key}` must be a finite number")).label("not finite"));
        return None;
    }
    Some(value)
}

/// A number above zero.
pub(super) fn positive(node: &Node, key: &str, sink: &Sink) -> Option<f64> {
    let value = number(node, key, sink)?;
    if value > 0.0 {
        return Some(value);
    }
    complain(sink, Mistake::at(node.span, format!("`{key}` must be above 0")).label("not above 0"));
    None
}

/// A chance, 0 to 1.
pub(super) fn chance(node: &Node, key: &str, sink: &Sink) -> Option<f64> {
    if !matches!(node.data, Data::Integer(_) | Data::Float(_)) {
        complain(sink, wrong_kind(node, key, "a chance between 0 and 1", &format!("{key} = 0.02 for 2 %")));
        return None;
    }
    let value = number(node, key, sink)?;
    if (0.0..=1.0).contains(&value) {
        return Some(value);
    }
    let mistake = Mistake::at(node.span, format!("`{key}` is a chance and must lie between 0 and 1"));
    let help = if value > 1.0 && value <= 100.0 {
        format!("for {value} % write {key} = {}", value / 100.0)
    } else {
        format!("for 2 % write {key} = 0.02")
    };
    complain(sink, mistake.label(format!("{value} can't be a chance")).help(help));
    None
}

/// A whole number in a range.
pub(super) fn whole(node: &Node, key: &str, least: u64, most: u64, sink: &Sink) -> Option<u64> {
    let value = match &node.data {
        Data::Integer(Some(value)) => u64::try_from(*value).ok(),
        Data::Integer(None) => None,
        Data::Float(value) => {
            let mistake = Mistake::at(node.span, format!("`{key}` must be a whole number")).label("not a whole number");
            complain(sink, mistake.help(format!("for example {key} = {}", value.max(0.0).round())));
            return None;
        }
        Data::String(given) => {
            let mistake = wrong_kind(node, key, "a whole number", &format!("{key} = 1_000"));
            let bare = given.parse::<u64>().ok().map(|n| format!("without the quotes: {key} = {n}"));
            complain(sink, bare.map_or(mistake.clone(), |help| mistake.help(help)));
            return None;
        }
        _ => {
            complain(sink, wrong_kind(node, key, "a whole number", &format!("{key} = 1_000")));
            return None;
        }
    };
    match value {
        Some(value) if (least..=most).contains(&value) => Some(value),
        _ => {
            complain(
                sink,
                Mistake::at(node.span, format!("`{key}` must lie between {least} and {most}")).label("out of range"),
            );
            None
        }
    }
}

/// The longest duration: about thirty years.
const LONGEST_S: f64 = 1e9;

/// Seconds of a text such as `250ms`, `2s`, `5m`; nothing where it is no duration.
pub fn duration_s(text: &str) -> Option<f64> {
    text.parse::<SignedDuration>().ok().map(|duration| duration.as_secs_f64()).filter(|s| (0.0..=LONGEST_S).contains(s))
}

/// A duration with its unit, in seconds.
pub(super) fn duration(node: &Node, key: &str, sink: &Sink) -> Option<f64> {
    let given = match &node.data {
        Data::String(given) => given,
        Data::Integer(_) | Data::Float(_) => {
            let mistake = Mistake::at(node.span, format!("`{key}` needs a unit")).label("seconds? milliseconds?");
            let shown = match &node.data {
                Data::Integer(Some(n)) => n.to_string(),
                Data::Float(x) => x.to_string(),
                _ => "2".to_owned(),
            };
            complain(
                sink,
                mistake.help(format!("write {key} = \"{shown}s\" for seconds, \"{shown}ms\" for milliseconds")),
            );
            return None;
        }
        _ => {
            complain(
                sink,
                wrong_kind(node, key, "a duration", &format!("{key} = \"2s\" or \"250ms\", \"5m\", \"1h\"")),
            );
            return None;
        }
    };
    let mistake = |message: String| {
        Mistake::at(node.span, message).help("units are ms, s, m and h: \"250ms\", \"2s\", \"5m\", \"1h\"")
    };
    match given.parse::<SignedDuration>() {
        Ok(duration) => {
            let seconds = duration.as_secs_f64();
            if seconds < 0.0 {
                complain(sink, mistake(format!("`{key}` can't be negative")).label("below zero"));
                return None;
            }
            if seconds > LONGEST_S {
                complain(sink, mistake(format!("`{key}` is longer than thirty years")).label("too long"));
                return None;
            }
            Some(seconds)
        }
        Err(_) if given.trim().parse::<f64>().is_ok() => {
            complain(sink, mistake(format!("`{key}` needs a unit")).label("seconds? milliseconds?"));
            None
        }
        Err(_) => {
            complain(sink, mistake(format!("`{key}` isn't a duration")).label("can't be read"));
            None
        }
    }
}

/// A duration above zero, in seconds.
pub(super) fn positive_duration(node: &Node, key: &str, sink: &Sink) -> Option<f64> {
    let seconds = duration(node, key, sink)?;
    if seconds > 0.0 {
        return Some(seconds);
    }
    complain(sink, Mistake::at(node.span, format!("`{key}` must be above 0")).label("no time at all"));
    None
}
