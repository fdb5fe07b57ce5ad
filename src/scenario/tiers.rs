//! Named tiers of provider limits and the rules by which providers count: data files with sources.

use std::sync::LazyLock;

use super::mistake::Mistake;
use super::reader::{Sink, complain, nearest, text};
use super::tree::Node;

/// How much a tier allows a minute.
#[derive(Debug, PartialEq)]
pub(super) struct Tier {
    pub name: String,
    /// The name of its [`Rules`].
    pub rules: String,
    pub requests: Option<f64>,
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub tokens: Option<f64>,
    pub source: String,
    pub source_date: String,
}

/// When output counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Written,
    Reserved,
    Settled,
}

/// How a provider counts.
#[derive(Debug, PartialEq)]
pub(super) struct Rules {
    pub name: String,
    pub cache_reads_count: bool,
    pub output: Output,
    pub rejected_count: bool,
    pub retry_after: bool,
}

/// Rows of a table with a header, comments apart.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.skip(1).map(|line| line.split('\t').collect())
}

static TIERS: LazyLock<Vec<Tier>> = LazyLock::new(|| {
    let tier = |cells: Vec<&str>| {
        let [name, rules, requests, input, output, tokens, source, date] = cells.as_slice() else { return None };
        let rate = |cell: &str| cell.parse::<f64>().ok();
        let [requests, input, output, tokens] = [requests, input, output, tokens].map(|cell| rate(cell));
        let [name, rules, source, source_date] = [name, rules, source, date].map(|cell| (*cell).to_owned());
        Some(Tier { name, rules, requests, input, output, tokens, source, source_date })
    };
    rows(include_str!("tiers.tsv")).filter_map(tier).collect()
});

static RULES: LazyLock<Vec<Rules>> = LazyLock::new(|| {
    let rules = |cells: Vec<&str>| {
        let [name, reads, output, rejected, retry_after, ..] = cells.as_slice() else { return None };
        let output = match *output {
            "written" => Output::Written,
            "reserved" => Output::Reserved,
            "settled" => Output::Settled,
            _ => return None,
        };
        Some(Rules {
            name: (*name).to_owned(),
            cache_reads_count: *reads == "yes",
            output,
            rejected_count: *rejected == "yes",
            retry_after: *retry_after == "yes",
        })
    };
    rows(include_str!("limit_rules.tsv")).filter_map(rules).collect()
});

/// What nobody has written down: nothing counts twice, nobody says when to come again.
static PLAIN: LazyLock<Rules> = LazyLock::new(|| Rules {
    name: "plain".to_owned(),
    cache_reads_count: true,
    output: Output::Written,
    rejected_count: false,
    retry_after: false,
});

impl Tier {
    pub fn read(node: &Node, key: &str, sink: &Sink) -> Option<&'static Self> {
        named(node, key, "tier", TIERS.iter().map(|tier| (tier.name.as_str(), tier)), sink)
    }
}

impl Rules {
    pub fn read(node: &Node, key: &str, sink: &Sink) -> Option<&'static Self> {
        named(node, key, "rules", RULES.iter().map(|rules| (rules.name.as_str(), rules)), sink)
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        RULES.iter().find(|rules| rules.name == name)
    }

    /// Those of a model whose provider isn't known.
    pub fn plain() -> &'static Self {
        &PLAIN
    }
}

/// The row that a text names.
fn named<T>(
    node: &Node,
    key: &str,
    what: &str,
    all: impl Iterator<Item = (&'static str, &'static T)>,
    sink: &Sink,
) -> Option<&'static T> {
    let given = text(node, key, sink)?;
    let all: Vec<(&str, &T)> = all.collect();
    let found = all.iter().find(|(name, _)| *name == given).map(|(_, row)| *row);
    if found.is_none() {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let label = nearest(&given, &names).map_or_else(|| "unknown".to_owned(), |n| format!("did you mean \"{n}\"?"));
        let mistake = Mistake::at(node.span, format!("there is no {what} \"{given}\"")).label(label);
        complain(sink, mistake.help(format!("there are {}", names.join(", "))));
    }
    found
}
