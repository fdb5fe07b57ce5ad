//! How a system of agents is put together, in words that both the terminal and the pull request use: its tree, the ways
//! of loading its tools, which model runs, and how often it succeeds.

use super::format::{count, money, percent, seconds, whole};
use super::wording::{share_with_interval, with_interval};
use crate::model::Loading;
use crate::simulate::{Answer, ServerCosts};
use crate::stats::{Estimate, NodeSummary, Rate, Unit};

/// One row of the tree of agents.
pub(super) struct AgentRow {
    /// Indented by its depth: the tool that calls it, and its name.
    pub label: String,
    /// Its model, and the small one of the routing; nothing where none is named.
    pub model: String,
    /// Sessions, model calls, tokens sent, tokens written; mean of a session of the main agent.
    pub counts: [String; 4],
    /// Money, where there are prices, with its interval where it isn't fixed; and its share of the bill.
    pub cost: Option<(String, String)>,
    /// Mean duration of one session.
    pub duration: String,
    /// Share of its sessions that find tools and system cached at their first call; nothing for the main agent.
    pub warm: String,
}

/// A node's path: the tools that lead to it, as in `plan/research`; nothing for the main agent.
pub(super) fn paths(answer: &Answer) -> Vec<String> {
    let mut path: Vec<&str> = Vec::new();
    answer
        .scenario
        .agents
        .iter()
        .map(|node| {
            path.truncate(node.depth.saturating_sub(1));
            if node.depth > 0 {
                path.push(&node.tool);
            }
            path.join("/")
        })
        .collect()
}

/// The nodes with their figures; nothing where the main agent is alone.
pub(super) fn agent_rows(answer: &Answer) -> Vec<AgentRow> {
    let priced = answer.scenario.model.tariff.is_some();
    let total: f64 = answer.summary.nodes.iter().map(|node| node.cost_usd.value).sum();
    let row = |(node, figures): (&crate::scenario::AgentNode, &NodeSummary)| {
        let label = match node.depth {
            0 => "main agent".to_owned(),
            depth => format!("{}└ {}: {}", "  ".repeat(depth - 1), node.tool, node.agent),
        };
        let mean = |estimate: &Estimate| count(estimate.value);
        let share = |estimate: Option<&Estimate>| estimate.map_or_else(String::new, |share| percent(share.value));
        let cost = priced.then(|| {
            let of_the_bill = if total > 0.0 { percent(figures.cost_usd.value / total) } else { String::new() };
            (with_interval(Unit::Usd, &figures.cost_usd), of_the_bill)
        });
        let short = |price: &Option<crate::scenario::PriceInfo>| {
            price.as_ref().map(|price| price.model.rsplit('/').next().unwrap_or_default().to_owned())
        };
        let model = match (short(&node.price), short(&node.small_price)) {
            (Some(model), Some(small)) if model != small => format!("{model} / {small}"),
            (model, small) => model.or(small).unwrap_or_default(),
        };
        AgentRow {
            label,
            model,
            counts: [&figures.sessions, &figures.turns, &figures.input_tokens, &figures.output_tokens].map(mean),
            cost,
            duration: figures.duration_s.as_ref().map_or_else(String::new, |duration| seconds(duration.value)),
            warm: if node.depth > 0 { share(figures.warm.as_ref()) } else { String::new() },
        }
    };
    answer.scenario.agents.iter().zip(&answer.summary.nodes).map(row).collect()
}

/// Lines on agents whose sessions don't always end with their answer, lack a tool, or call one twice.
pub(super) fn unanswered(answer: &Answer) -> Vec<String> {
    let nodes = answer.scenario.agents.iter().zip(&answer.summary.nodes).skip(1);
    nodes
        .flat_map(|(node, figures)| {
            let line = |share: &Option<Estimate>, what: &str| {
                let share = share.as_ref().filter(|share| share.value > 0.0)?;
                Some(format!("{}: {} of its sessions {what}", node.agent, share_with_interval(share)))
            };
            let unserved = line(&figures.unserved, "lacked a tool that they had searched for");
            let twice = figures.duplicates_per_call.as_ref().filter(|share| share.value > 0.0);
            let twice = twice
                .map(|share| format!("{}: {} of its tool calls ran twice", node.agent, share_with_interval(share)));
            line(&figures.unanswered, "ended without their answer").into_iter().chain(unserved).chain(twice)
        })
        .collect()
}

/// A server's definitions under each way of loading.
pub(super) struct LoadingRow {
    pub server: String,
    pub tokens: String,
    /// Upfront, searched, as code, what code keeps out: a session, and a month where that is asked for.
    pub cells: [Vec<String>; 4],
}

/// What the definitions of each server cost; nothing where there are no servers or no prices.
pub(super) fn loading_rows(answer: &Answer) -> Vec<LoadingRow> {
    let month = answer.scenario.sessions_per_month;
    let cell = |estimate: Option<&Estimate>, marked: bool| match estimate {
        None => vec!["–".to_owned()],
        Some(estimate) => {
            let mark = if marked { " ●" } else { "" };
            let mut lines = vec![format!("{}{mark}", money(estimate.value))];
            if estimate.se > 0.0 {
                lines.push(super::wording::interval(Unit::Usd, estimate.ci95));
            }
            lines.extend(month.map(|n| format!("{} a month", money(estimate.value * n as f64))));
            lines
        }
    };
    let row = |costs: &ServerCosts| LoadingRow {
        server: costs.server.clone(),
        tokens: whole(costs.tokens),
        cells: [
            cell(Some(&costs.upfront), costs.loading == Loading::Upfront),
            cell(costs.search.as_ref(), matches!(costs.loading, Loading::Search { .. })),
            cell(costs.code.as_ref(), matches!(costs.loading, Loading::Code { .. })),
            cell(costs.kept_out.as_ref(), matches!(costs.loading, Loading::Code { .. })),
        ],
    };
    if !answer.loadings.is_empty() {
        return answer.loadings.iter().map(row).collect();
    }
    // loaded upfront, as most are: known from the bill itself
    let Some(sources) = &answer.summary.sources else { return Vec::new() };
    let sessions = answer.summary.sessions as f64;
    let definitions =
        answer.scenario.servers.iter().zip(&sources.definitions).zip(&answer.scenario.model.prompt.definitions);
    definitions
        .map(|((server, usd), tokens)| {
            let value = usd.usd() / sessions;
            let mean = Estimate { value, se: 0.0, ci95: [value; 2] };
            LoadingRow {
                server: server.clone(),
                tokens: whole(*tokens),
                cells: [cell(Some(&mean), true), cell(None, false), cell(None, false), cell(None, false)],
            }
        })
        .collect()
}

/// What the ways of loading mean, under their table.
pub(super) fn loading_note(answer: &Answer) -> String {
    match answer.loadings.first() {
        None => {
            "● as it is loaded. [tool_search] and a server's read_tokens and kept show what the other ways would cost."
                .to_owned()
        }
        Some(first) => format!(
            "● as it is loaded. Each a session, beyond the same {} sessions with definitions that weigh nothing.\n\
             Searched: with the searches themselves and the search tool, which several servers share, so their rows don't\n\
             add up. Left out as code: what results that stay outside change. Of the main agent's servers.",
            whole(first.sessions)
        ),
    }
}

/// (label, text) of routing, service and success.
pub(super) fn success_lines(answer: &Answer) -> Vec<(&'static str, String)> {
    let summary = &answer.summary;
    let mut lines = Vec::new();
    let mut share = |rate: Rate, label: &'static str, text: &str| {
        if let Some(rate) = summary.rate(rate) {
            lines.push((label, format!("{} {text}", share_with_interval(rate))));
        }
    };
    let tries = if answer.scenario.model.is_tried_once() { "sessions" } else { "tries" };
    share(Rate::RunsOnSmallModel, "on the small model", &format!("of the {tries} begin there"));
    share(Rate::Redone, "done again", &format!("of the {tries}, on the main model"));
    share(Rate::Served, "served", "of the sessions found every tool that they needed");
    share(Rate::ToolsFound, "tools found", "of those that were searched for");
    share(Rate::Success, "succeeded", "of the sessions");
    share(Rate::SuccessPerTry, "", "of the tries");
    if let Some(searches) = summary.metric("tool_searches") {
        lines.push(("searches", format!("{} a session", with_interval(Unit::Count, &searches.mean))));
    }
    if let Some(runs) = summary.metric("runs") {
        lines.push(("runs", format!("{} a session", with_interval(Unit::Count, &runs.mean))));
    }
    if let Some(cost) = summary.rate(Rate::CostPerSuccess) {
        lines.push(("cost per success", with_interval(Unit::Usd, cost)));
    }
    for (k, chance) in summary.pass_k.iter().filter(|(k, _)| [1, 2, 4, 8].contains(k)) {
        let label = match k {
            1 => "pass^1",
            2 => "pass^2",
            4 => "pass^4",
            _ => "pass^8",
        };
        let what = if *k == 1 { "one session succeeds".to_owned() } else { format!("{k} sessions in a row succeed") };
        lines.push((label, format!("{}: {what}", share_with_interval(chance))));
    }
    lines
}
