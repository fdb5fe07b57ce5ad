//! The same scenario with one of its servers loaded in other ways, for what its definitions cost in each of them.

use std::cell::RefCell;

use super::Surroundings;
use super::compose::compose;
use super::mistake::Mistakes;
use super::raw::RawServer;
use super::reader::At;
use super::tree::{Data, Key, Node, Span, Table};
use crate::model::{Loading, Model};

/// One server of the main agent, and the model under each way of loading it.
#[derive(Debug, Clone)]
pub struct ServerLoadings {
    /// Its name.
    pub server: String,
    /// All of its definitions, tokens.
    pub tokens: u64,
    /// How the scenario loads it.
    pub loading: Loading,
    /// With definitions that weigh nothing: what the others are compared with.
    pub weightless: Model,
    /// With its definitions in every prompt.
    pub upfront: Model,
    /// With its tools found by `[tool_search]`, where the scenario says how.
    pub search: Option<Model>,
    /// With its tools called from code and all of their results kept, where the scenario says what is read.
    pub code: Option<Model>,
    /// The same with the results that stay outside left out, where the scenario says what is kept.
    pub code_kept: Option<Model>,
}

/// The servers of a checked scenario, where other ways of loading one of them are known; else nothing.
pub(super) fn loadings(root: &Table, around: &Surroundings) -> Vec<ServerLoadings> {
    let sink = RefCell::new(Mistakes::default());
    let base = compose(root, around, &sink);
    let raw = &base.raw;
    let is_known = |server: &RawServer| server.has_read_tokens;
    if raw.search.is_none() && !raw.servers.iter().any(|at| is_known(&at.value)) {
        return Vec::new();
    }
    let with = |server: &str, changes: &[(&str, Option<Data>)]| {
        let mut tree = root.clone();
        change(&mut tree, server, changes);
        compose(&tree, around, &sink).resolved.model
    };
    let named = |at: &At<RawServer>| Some((at.value.name.as_ref()?.value.clone(), at.value.tokens()?));
    raw.servers
        .iter()
        .enumerate()
        .filter_map(|(index, at)| {
            let ((name, tokens), server) = (named(at)?, &at.value);
            let loading = |way: &str| Some(Data::String(way.to_owned()));
            let weightless = [
                ("loading", None),
                ("tools", None),
                ("tokens_per_tool", None),
                ("definition_tokens", Some(Data::Integer(Some(0)))),
            ];
            let by_tool = server.tokens_per_tool.is_some();
            let search = (raw.search.is_some() && by_tool).then(|| with(&name, &[("loading", loading("search"))]));
            let code = |kept| is_known(server).then(|| with(&name, &[("loading", loading("code")), ("kept", kept)]));
            let kept = server.kept.map(|at| Data::Integer(i64::try_from(at.value).ok()));
            Some(ServerLoadings {
                loading: base.resolved.loadings.get(index).copied().unwrap_or(Loading::Upfront),
                weightless: with(&name, &weightless),
                upfront: with(&name, &[("loading", loading("upfront"))]),
                search,
                code: code(None),
                code_kept: kept.and_then(|kept| code(Some(kept))),
                server: name,
                tokens,
            })
        })
        .collect()
}

/// Sets or removes keys of a server.
fn change(tree: &mut Table, server: &str, changes: &[(&str, Option<Data>)]) {
    let Some(Node { data: Data::Array(servers), .. }) = tree.get_mut("servers") else { return };
    let Some(Node { data: Data::Table(table), span }) =
        servers.iter_mut().find(|node| super::tree::name_of(node) == Some(server))
    else {
        return;
    };
    let span: Span = *span;
    for (key, value) in changes {
        table.remove(key);
        if let Some(data) = value {
            table.entries.push((Key { name: (*key).to_owned(), span }, Node { span, data: data.clone() }));
        }
    }
}
