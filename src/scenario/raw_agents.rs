//! Searched tools, routing and outcomes as they are written.

use std::path::Path;

use super::distribution::{Measure, distribution};
use super::reader::{At, Reader, chance, whole};
use super::tree::Span;
use crate::dist::Dist;

/// `[outcome]`.
#[derive(Debug)]
pub(super) struct RawOutcome {
    pub span: Span,
    pub success: Option<At<f64>>,
    pub turn_success: Option<At<f64>>,
    /// Whether one of them was written at all.
    pub has_chance: bool,
    pub attempts: Option<At<u64>>,
}

/// `[routing]`, without what its overlay says.
#[derive(Debug)]
pub(super) struct RawRouting {
    pub span: Span,
    pub share: Option<At<f64>>,
    pub has_share: bool,
    pub redo: Option<At<f64>>,
    pub has_small: bool,
}

/// `[tool_search]`.
#[derive(Debug)]
pub(super) struct RawSearch {
    pub span: Span,
    pub tokens: Option<At<u64>>,
    pub found: Option<At<u64>>,
    pub has_found: bool,
    pub hit_rate: Option<At<f64>>,
    pub output: Option<At<u64>>,
    pub latency: Option<At<Dist>>,
    pub max_searches: Option<At<u64>>,
}

const MOST_TOKENS: u64 = 1_000_000_000;

pub(super) fn read_outcome(top: &mut Reader<'_>) -> Option<RawOutcome> {
    let span = top.node("outcome")?.span;
    top.table("outcome", "[outcome]", |mut reader| {
        let outcome = RawOutcome {
            span,
            has_chance: ["success", "turn_success"].iter().any(|key| reader.node(key).is_some()),
            success: reader.get("success", chance),
            turn_success: reader.get("turn_success", chance),
            attempts: reader.get("attempts", |n, k, s| whole(n, k, 1, 1_000, s)),
        };
        reader.finish();
        outcome
    })
}

pub(super) fn read_routing(top: &mut Reader<'_>) -> Option<RawRouting> {
    let span = top.node("routing")?.span;
    if !top.is_on("routing") {
        return None;
    }
    top.table("routing", "[routing]", |mut reader| {
        let is_table = reader.table("small", "`small`", |mut small| {
            let known = ["model", "price"].map(|key| small.node(key).is_some());
            small.finish();
            known.contains(&true)
        });
        let has_small = is_table.unwrap_or_else(|| reader.node("small").is_some());
        let routing = RawRouting {
            span,
            has_share: reader.node("share").is_some(),
            share: reader.get("share", chance),
            redo: reader.get("redo", chance),
            has_small,
        };
        reader.finish();
        routing
    })
}

pub(super) fn read_search(top: &mut Reader<'_>, folder: &Path) -> Option<RawSearch> {
    let span = top.node("tool_search")?.span;
    if !top.is_on("tool_search") {
        return None;
    }
    top.table("tool_search", "[tool_search]", |mut reader| {
        let search = RawSearch {
            span,
            tokens: reader.get("tokens", |n, k, s| whole(n, k, 0, MOST_TOKENS, s)),
            has_found: reader.node("found").is_some(),
            found: reader.get("found", |n, k, s| whole(n, k, 0, 100_000, s)),
            hit_rate: reader.get("hit_rate", chance),
            output: reader.get("output", |n, k, s| whole(n, k, 0, MOST_TOKENS, s)),
            latency: reader.get("latency", |n, k, s| distribution(n, k, Measure::Duration, folder, s)),
            max_searches: reader.get("max_searches", |n, k, s| whole(n, k, 1, 1_000, s)),
        };
        reader.finish();
        search
    })
}
