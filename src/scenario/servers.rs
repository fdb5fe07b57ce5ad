//! Servers: how large their definitions are, and how the model comes to know their tools.

use super::mistake::Mistake;
use super::raw::{Raw, RawLoading, RawServer};
use super::reader::{At, Sink, complain};
use super::resolve::finite_mean;
use super::tree::Span;
use crate::dist::Dist;
use crate::model::{CodeServer, Loading, Search};

/// The most tokens of definitions of one server.
const MOST_TOKENS: u64 = 1_000_000_000;

/// The name under which the search tool's own definition is listed among the servers'.
pub const SEARCH_TOOL: &str = "tool_search";

/// One server.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub name: String,
    /// All of its definitions, tokens, wherever they are loaded.
    pub tokens: u64,
    /// How its tools come to be known.
    pub loading: Loading,
}

/// All servers of a scenario.
#[derive(Debug, Default)]
pub(super) struct Servers {
    pub all: Vec<Server>,
    /// Those whose tools are called from code.
    pub code: Vec<CodeServer>,
    pub search: Option<Search>,
    /// Tokens of the search tool's own definition, where one is needed.
    search_tokens: Option<u64>,
}

impl Servers {
    /// Names and tokens of the definitions that every prompt begins with.
    pub fn definitions(&self) -> Vec<(String, u64)> {
        let in_prompt = |server: &Server| if server.loading == Loading::Upfront { server.tokens } else { 0 };
        let mut all: Vec<(String, u64)> =
            self.all.iter().map(|server| (server.name.clone(), in_prompt(server))).collect();
        all.extend(self.search_tokens.map(|tokens| (SEARCH_TOOL.to_owned(), tokens)));
        all
    }

    /// How the tools of a server come to be known.
    pub fn loading(&self, name: &str) -> Option<Loading> {
        self.all.iter().find(|server| server.name == name).map(|server| server.loading)
    }
}

pub(super) fn servers(raw: &Raw, sink: &Sink) -> Servers {
    let mut servers = Servers { search: search(raw, sink), ..Servers::default() };
    for At { value: server, span } in &raw.servers {
        let Some(name) = &server.name else {
            complain(sink, Mistake::at(*span, "a server needs a `name`").label("nameless"));
            continue;
        };
        if servers.all.iter().any(|known| known.name == name.value) {
            complain(
                sink,
                Mistake::at(name.span, format!("there are two servers named \"{}\"", name.value))
                    .label("the second one"),
            );
        }
        let tokens = definition_tokens(server, name.span, sink);
        let loading = match server.loading.map(|at| (at.value, at.span)) {
            None | Some((RawLoading::Upfront, _)) => Loading::Upfront,
            Some((RawLoading::Search, span)) => searched(raw, server, span, sink),
            Some((RawLoading::Code, span)) => {
                if !server.has_read_tokens {
                    complain(
                        sink,
                        Mistake::at(span, "a server that is called from code needs `read_tokens`")
                            .label("how much of its definitions is read on the first use?")
                            .help("for example read_tokens = 900, and kept = 200 for what of a turn's results stays"),
                    );
                }
                let kept_tokens = server.kept.map_or(u64::MAX, |at| at.value);
                servers.code.push(CodeServer { read_tokens: server.read_tokens.map_or(0, |at| at.value), kept_tokens });
                Loading::Code { server: servers.code.len() - 1 }
            }
        };
        servers.all.push(Server { name: name.value.clone(), tokens, loading });
    }
    let searched = servers.all.iter().any(|server| matches!(server.loading, Loading::Search { .. }));
    if searched {
        servers.search_tokens = Some(raw.search.as_ref().and_then(|search| search.tokens).map_or(0, |at| at.value));
        for At { value: server, .. } in &raw.servers {
            if let Some(name) = &server.name
                && name.value == SEARCH_TOOL
            {
                complain(
                    sink,
                    Mistake::at(name.span, format!("`{SEARCH_TOOL}` is the search tool's own name"))
                        .label("taken")
                        .help("give the server another name"),
                );
            }
        }
    }
    servers
}

fn is_searched(server: &RawServer) -> bool {
    server.loading.is_some_and(|at| at.value == RawLoading::Search)
}

/// How many tools the searched servers have.
fn searched_tools(raw: &Raw) -> u64 {
    raw.servers.iter().filter(|at| is_searched(&at.value)).filter_map(|at| at.value.tools).map(|at| at.value).sum()
}

/// What a search finds beyond all the tools that there are.
pub(super) fn note_found(raw: &Raw, notes: &mut Vec<String>) {
    let all = searched_tools(raw);
    if let Some(found) = raw.search.as_ref().and_then(|search| search.found)
        && raw.servers.iter().any(|at| is_searched(&at.value))
        && found.value > all
    {
        notes.push(format!(
            "one search appends {all} definitions, not {}: the searched servers have no more",
            found.value
        ));
    }
}

fn definition_tokens(server: &RawServer, span: Span, sink: &Sink) -> u64 {
    let tokens = server.tokens().unwrap_or_else(|| {
        complain(
            sink,
            Mistake::at(span, "a server needs `tools` and `tokens_per_tool`, or `definition_tokens`")
                .label("how large are its definitions?")
                .help("for example tools = 14 and tokens_per_tool = 89, or definition_tokens = 1_246"),
        );
        0
    });
    if tokens > MOST_TOKENS {
        complain(
            sink,
            Mistake::at(span, format!("its definitions come to {tokens} tokens; {MOST_TOKENS} is the most"))
                .label("too large"),
        );
    }
    tokens.min(MOST_TOKENS)
}

/// A searched server: what is found is appended tool by tool.
fn searched(raw: &Raw, server: &RawServer, span: Span, sink: &Sink) -> Loading {
    let Some(search) = &raw.search else {
        complain(
            sink,
            Mistake::at(span, "a searched server needs [tool_search]")
                .label("how is a tool found?")
                .help("for example [tool_search] with tokens = 300, found = 5, output = 60 and latency = \"400ms\""),
        );
        return Loading::Upfront;
    };
    let Some(each) = server.tokens_per_tool else {
        if server.definition_tokens.is_some() {
            complain(
                sink,
                Mistake::at(span, "a searched server needs `tools` and `tokens_per_tool`")
                    .label("what is found is appended tool by tool")
                    .help("for example tools = 14 and tokens_per_tool = 89 instead of definition_tokens = 1_246"),
            );
        }
        return Loading::Upfront;
    };
    // no more is found than there is
    let found = search.found.map_or(0, |at| at.value).min(searched_tools(raw));
    let appended_tokens = found.saturating_mul(each.value).min(MOST_TOKENS);
    Loading::Search { appended_tokens }
}

fn search(raw: &Raw, sink: &Sink) -> Option<Search> {
    let search = raw.search.as_ref()?;
    if !search.has_found {
        complain(
            sink,
            Mistake::at(search.span, "[tool_search] needs `found`: how many definitions does one search append?")
                .label("how many tools?")
                .help("for example found = 5"),
        );
    }
    Some(Search {
        output_tokens: search.output.map_or(0, |at| at.value),
        latency_s: match &search.latency {
            None => Dist::constant(0.0),
            Some(at) => finite_mean(at.value.clone(), "latency", at.span, sink),
        },
        hit_rate: search.hit_rate.map_or(1.0, |at| at.value),
        most: search.max_searches.map_or(1, |at| at.value as u32),
    })
}
