//! The file as a tree in which every key and value knows where it was written, so that a mistake can be shown in its
//! place, and so that `--set` and strategies can be laid over the file before anything is read.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistake, Mistakes};

/// Bytes `start..end` of source number `source`: 0 is the file, the others are `--set` arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Span {
    pub source: usize,
    pub start: usize,
    pub end: usize,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub span: Span,
    pub data: Data,
}

#[derive(Debug, Clone)]
pub(super) enum Data {
    String(String),
    Integer(Option<i64>),
    Float(f64),
    Boolean(bool),
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys in the order of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub entries: Vec<(Key, Node)>,
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub name: String,
    pub span: Span,
}

impl Node {
    /// What kind of value it is, for a message.
    pub fn kind(&self) -> &'static str {
        match &self.data {
            Data::String(_) => "a text",
            Data::Integer(_) => "a whole number",
            Data::Float(_) => "a number",
            Data::Boolean(_) => "true or false",
            Data::Date(_) => "a date",
            Data::Array(_) => "a list",
            Data::Table(_) => "a table",
        }
    }

    /// The places of all that it holds, itself among them.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = vec![self.span];
        match &self.data {
            Data::Array(items) => spans.extend(items.iter().flat_map(Node::spans)),
            Data::Table(table) => {
                for (key, value) in &table.entries {
                    spans.push(key.span);
                    spans.extend(value.spans());
                }
            }
            _ => {}
        }
        spans
    }

    fn from_toml(source: usize, value: &Spanned<DeValue<'_>>) -> Self {
        let range = value.span();
        let data = match value.get_ref() {
            DeValue::String(text) => Data::String(text.to_string()),
            DeValue::Integer(number) => Data::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()),
            DeValue::Float(number) => Data::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(value) => Data::Boolean(*value),
            DeValue::Datetime(date) => Data::Date(date.to_string()),
            DeValue::Array(items) => Data::Array(items.iter().map(|item| Node::from_toml(source, item)).collect()),
            DeValue::Table(table) => Data::Table(Table::from_toml(source, table)),
        };
        Node { span: Span { source, start: range.start, end: range.end }, data }
    }
}

impl Table {
    fn from_toml(source: usize, table: &DeTable<'_>) -> Self {
        let mut entries: Vec<(Key, Node)> = table
            .iter()
            .map(|(key, value)| {
                let range = key.span();
                let span = Span { source, start: range.start, end: range.end };
                (Key { name: key.get_ref().to_string(), span }, Node::from_toml(source, value))
            })
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        Table { entries }
    }

    /// Reads TOML; every error of syntax becomes a mistake.
    pub fn parse(source: usize, text: &str, mistakes: &mut Mistakes) -> Table {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let range = error.span().unwrap_or(0..0);
            let span = Span { source, start: range.start.min(text.len()), end: range.end.min(text.len()) };
            mistakes.push(
                Mistake::at(span, format!("this isn't valid TOML: {}", error.message().replace('\n', "; ")))
                    .label("here"),
            );
        }
        Table::from_toml(source, table.get_ref())
    }

    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    pub fn remove(&mut self, name: &str) -> Option<(Key, Node)> {
        let index = self.entries.iter().position(|(key, _)| key.name == name)?;
        Some(self.entries.remove(index))
    }

    /// Lays another table over this one: tables are merged, lists of named tables merged by name, and everything else,
    /// distributions too, replaced.
    pub fn lay_over(&mut self, overlay: &Table) {
        for (key, new) in &overlay.entries {
            let Some(old) = self.get_mut(&key.name) else {
                self.entries.push((key.clone(), new.clone()));
                continue;
            };
            match (&mut old.data, &new.data) {
                (Data::Table(mine), Data::Table(theirs)) if !is_distribution(theirs) && !is_distribution(mine) => {
                    mine.lay_over(theirs);
                }
                (Data::Array(mine), Data::Array(theirs))
                    if theirs.iter().all(|item| name_of(item).is_some()) && !theirs.is_empty() =>
                {
                    for item in theirs {
                        match (mine.iter_mut().find(|old| name_of(old) == name_of(item)), &item.data) {
                            (Some(Node { data: Data::Table(old), .. }), Data::Table(new)) => old.lay_over(new),
                            _ => mine.push(item.clone()),
                        }
                    }
                }
                // `tools.search.timeout` enters a list of named tables by name, as `--set` does
                (Data::Array(mine), Data::Table(theirs)) if all_named(mine, theirs) => {
                    for (key, node) in &theirs.entries {
                        let item = mine.iter_mut().find(|item| name_of(item) == Some(key.name.as_str()));
                        if let (Some(Node { data: Data::Table(old), .. }), Data::Table(new)) = (item, &node.data) {
                            old.lay_over(new);
                        }
                    }
                }
                _ => *old = new.clone(),
            }
        }
    }

    /// Whether this table puts something else than a table where the path leads through, such as `approval = "off"` where
    /// `tools.deploy.approval.wait` is meant.
    pub fn blocks(&self, path: &[Key]) -> bool {
        let [key, rest @ ..] = path else { return false };
        if rest.is_empty() {
            return false;
        }
        match self.get(&key.name).map(|node| &node.data) {
            None => false,
            Some(Data::Table(table)) => table.blocks(rest),
            Some(Data::Array(items)) => items.iter().any(|item| match &item.data {
                Data::Table(table) => name_of(item) == Some(rest[0].name.as_str()) && table.blocks(&rest[1..]),
                _ => false,
            }),
            Some(_) => true,
        }
    }

    /// Sets the value at a path. A list of named tables is entered by name: `tools.search.timeout`.
    ///
    /// Returns the segment at which the path leads nowhere, if it does.
    pub fn set(&mut self, path: &[Key], value: Node) -> Result<(), Key> {
        let Some((first, rest)) = path.split_first() else { return Ok(()) };
        if rest.is_empty() {
            match self.entries.iter_mut().find(|(key, _)| key.name == first.name) {
                Some(entry) => *entry = (first.clone(), value),
                None => self.entries.push((first.clone(), value)),
            }
            return Ok(());
        }
        let index = match self.entries.iter().position(|(key, _)| key.name == first.name) {
            Some(index) => index,
            None => {
                let empty = Node { span: first.span, data: Data::Table(Table::default()) };
                self.entries.push((first.clone(), empty));
                self.entries.len() - 1
            }
        };
        let node = &mut self.entries[index].1;
        match &mut node.data {
            Data::Array(items) => {
                let (wanted, deeper) = (&rest[0], &rest[1..]);
                let item = items.iter_mut().find(|item| name_of(item) == Some(wanted.name.as_str()));
                match item.map(|item| &mut item.data) {
                    Some(Data::Table(table)) if !deeper.is_empty() => table.set(deeper, value),
                    _ => Err(wanted.clone()),
                }
            }
            Data::Table(table) => {
                let other_family = is_distribution(table) && table.get(&rest[0].name).is_none();
                if other_family {
                    *table = Table::default();
                }
                table.set(rest, value)
            }
            _ => {
                let mut table = Table::default();
                table.set(rest, value)?;
                node.data = Data::Table(table);
                Ok(())
            }
        }
    }
}

/// Values apart at their commas, but not inside brackets, braces or quotes.
pub fn split_values(text: &str) -> Vec<String> {
    let (mut values, mut value, mut depth, mut quoted) = (Vec::new(), String::new(), 0_i32, false);
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                values.push(std::mem::take(&mut value).trim().to_owned());
                continue;
            }
            _ => {}
        }
        value.push(letter);
    }
    values.push(value.trim().to_owned());
    values
}

/// A name as a segment of a path: in quotes where it has a dot or the like.
pub(super) fn quoted(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if is_bare { name.to_owned() } else { format!("\"{name}\"") }
}

/// Where the first of some letters stands that isn't in quotes.
fn find_unquoted(text: &str, wanted: char) -> Option<usize> {
    let mut in_quotes = false;
    text.char_indices()
        .find(|(_, letter)| {
            in_quotes ^= *letter == '"';
            !in_quotes && *letter == wanted
        })
        .map(|(at, _)| at)
}

/// The segments of a path: (name, start, end).
pub(super) fn segments(path: &str) -> Vec<(String, usize, usize)> {
    let mut segments = Vec::new();
    let mut start = 0;
    loop {
        let end = find_unquoted(&path[start..], '.').map_or(path.len(), |at| start + at);
        segments.push((path[start..end].trim().trim_matches('"').to_owned(), start, end));
        if end == path.len() {
            return segments;
        }
        start = end + 1;
    }
}

/// Reads one `--set key.path=value`. A value that isn't TOML by itself (`1h`, `off`) is taken as a text.
pub(super) fn parse_set(source: usize, text: &str, mistakes: &mut Mistakes) -> Option<(Vec<Key>, Node)> {
    let whole = Span { source, start: 0, end: text.len() };
    let split = find_unquoted(text, '=').map(|at| (&text[..at], &text[at + 1..]));
    let Some((path, value)) = split.filter(|(path, _)| !path.trim().is_empty()) else {
        mistakes
            .push(Mistake::at(whole, "`--set` needs a key and a value").help("write it as --set cache.lifetime=1h"));
        return None;
    };
    let key = |(name, start, end)| Key { name, span: Span { source, start, end } };
    let keys: Vec<Key> = segments(path).into_iter().map(key).collect();
    let value_at = path.len() + 1;
    let shift = |span: &mut Span| {
        span.start = (span.start + value_at).saturating_sub(4).min(text.len());
        span.end = (span.end + value_at).saturating_sub(4).min(text.len());
    };
    let as_text = |value: &str| Node {
        span: Span { source, start: value_at, end: text.len() },
        data: Data::String(value.trim().to_owned()),
    };
    let mut ignored = Mistakes::default();
    let mut parsed = Table::parse(source, &format!("v = {value}"), &mut ignored);
    let node = match parsed.remove("v") {
        Some((_, mut node)) if ignored.is_empty() && parsed.entries.is_empty() => {
            each_span(&mut node, &shift);
            node
        }
        _ => as_text(value),
    };
    Some((keys, node))
}

fn each_span(node: &mut Node, change: &impl Fn(&mut Span)) {
    change(&mut node.span);
    match &mut node.data {
        Data::Array(items) => items.iter_mut().for_each(|item| each_span(item, change)),
        Data::Table(table) => {
            for (key, value) in &mut table.entries {
                change(&mut key.span);
                each_span(value, change);
            }
        }
        _ => {}
    }
}

/// Whether every key of a table is the name of a table in a list.
fn all_named(items: &[Node], table: &Table) -> bool {
    let is_there = |name: &str| items.iter().any(|item| name_of(item) == Some(name));
    !table.entries.is_empty()
        && table.entries.iter().all(|(key, node)| matches!(node.data, Data::Table(_)) && is_there(&key.name))
}

pub(super) fn name_of(node: &Node) -> Option<&str> {
    match &node.data {
        Data::Table(table) => match &table.get("name")?.data {
            Data::String(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn is_distribution(table: &Table) -> bool {
    matches!(table.entries.as_slice(), [(key, _)] if super::distribution::FAMILIES.contains(&key.name.as_str()))
}
