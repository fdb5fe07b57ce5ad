//! `[herd]`: many clients at one resource, instead of a session.

use std::path::Path;

use super::distribution::{Measure, distribution};
use super::mistake::Mistake;
use super::raw::Raw;
use super::reader::{At, Reader, Sink, complain, whole, word};
use super::tools::retry;
use super::tree::{Span, Table};
use crate::dist::Dist;
use crate::model::{Herd, Jitter, Resource, Retry};

/// The most clients: each has a stream of its own.
const MOST_CLIENTS: u64 = 50_000;

/// Repeats where the file asks for no number.
pub(super) const REPEATS: u64 = 1_000;

/// What a herd is played with; everything else is about sessions.
const WITH_A_HERD: [&str; 8] = ["title", "herd", "retry", "run", "strategies", "thresholds", "sweep", "agents"];

#[derive(Debug)]
pub(super) struct RawHerd {
    pub span: Span,
    pub clients: Option<At<u64>>,
    pub resource: Option<At<RawResource>>,
    pub capacity: Option<At<u64>>,
    pub queue: Option<At<u64>>,
    pub service: Option<At<Dist>>,
    pub network: Option<At<Dist>>,
    pub repeats: Option<At<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RawResource {
    Optimistic,
    Queue,
}

pub(super) fn read_herd(top: &mut Reader<'_>, folder: &Path) -> Option<RawHerd> {
    let span = top.node("herd")?.span;
    top.table("herd", "[herd]", |mut reader| {
        let law = |reader: &mut Reader<'_>, key: &'static str| {
            reader.get(key, |n, k, s| distribution(n, k, Measure::Duration, folder, s))
        };
        let resources = [("optimistic", RawResource::Optimistic), ("queue", RawResource::Queue)];
        let herd = RawHerd {
            span,
            clients: reader.get("clients", |n, k, s| whole(n, k, 1, MOST_CLIENTS, s)),
            resource: reader.get("resource", |n, k, s| word(n, k, &resources, s)),
            capacity: reader.get("capacity", |n, k, s| whole(n, k, 1, MOST_CLIENTS, s)),
            queue: reader.unless_off("queue", |n, k, s| whole(n, k, 0, MOST_CLIENTS, s)),
            service: law(&mut reader, "service"),
            network: law(&mut reader, "network"),
            repeats: reader.get("repeats", |n, k, s| whole(n, k, 1, 10_000_000, s)),
        };
        reader.finish();
        herd
    })
}

/// Whatever a file with a herd can't hold.
pub(super) fn check_alone(root: &Table, sink: &Sink) {
    if root.get("herd").is_none() {
        return;
    }
    for (key, _) in root.entries.iter().filter(|(key, _)| !WITH_A_HERD.contains(&key.name.as_str())) {
        let text = format!("a file with [herd] has no [{}]: its clients make one request each", key.name);
        complain(
            sink,
            Mistake::at(key.span, text).label("about sessions").help("a herd is played with [herd], [retry] and [run]"),
        );
    }
}

/// Time is counted in nanoseconds.
const A_MOMENT_S: f64 = 1e-9;

/// Whether all waits of a client that is turned away are of no length.
fn never_waits(retry: &Retry) -> bool {
    let spread_s = match retry.jitter {
        Jitter::Plus { spread_s, .. } => spread_s,
        _ => 0.0,
    };
    let capped = !matches!(retry.jitter, Jitter::Plus { capped: false, .. });
    (retry.rejected_base_s.min(retry.cap_s) + spread_s < A_MOMENT_S) || (capped && retry.cap_s < A_MOMENT_S)
}

/// The herd, if the file has one.
pub(super) fn herd(raw: &Raw, sink: &Sink) -> Option<Herd> {
    let herd = raw.herd.as_ref()?;
    let needs = |key: &str, example: &str| {
        let mistake = Mistake::at(herd.span, format!("`[herd]` needs `{key}`"));
        complain(sink, mistake.label("left out").help(format!("for example {example}")));
    };
    if herd.clients.is_none() {
        needs("clients", "clients = 100");
    }
    let only_a_queue = |key: &str, span: Span| {
        let mistake = Mistake::at(span, format!("`{key}` belongs to resource = \"queue\"")).label("of no use here");
        complain(sink, mistake);
    };
    let resource = match herd.resource.map(|at| at.value) {
        None => {
            needs("resource", "resource = \"optimistic\", or \"queue\" with capacity and service");
            Resource::Optimistic
        }
        Some(RawResource::Optimistic) => {
            let counts = [("capacity", &herd.capacity), ("queue", &herd.queue)];
            for (key, at) in counts.into_iter().filter_map(|(key, at)| Some((key, at.as_ref()?))) {
                only_a_queue(key, at.span);
            }
            if let Some(at) = &herd.service {
                only_a_queue("service", at.span);
            }
            Resource::Optimistic
        }
        Some(RawResource::Queue) => {
            if herd.service.is_none() {
                needs("service", "service = { exponential = { mean = \"20ms\" } }");
            }
            Resource::Queue {
                servers: herd.capacity.map_or(1, |at| at.value),
                places: herd.queue.map_or(u64::MAX, |at| at.value),
                service_s: herd.service.as_ref().map_or_else(|| Dist::constant(0.0), |at| at.value.clone()),
            }
        }
    };
    let mut retry = retry(&[&raw.retry]);
    if raw.retry.attempts.is_none() && raw.retry.preset.is_none() {
        retry.attempts = u32::MAX;
    }
    let network_s = herd.network.as_ref().map_or_else(|| Dist::constant(0.0), |at| at.value.clone());
    let turns_away = matches!(resource, Resource::Queue { places, .. } if places < u64::MAX);
    if turns_away && retry.attempts == u32::MAX && never_waits(&retry) && network_s.mean() < A_MOMENT_S {
        let text = "a client that is turned away would ask again at once, and never come to an end";
        let mistake = Mistake::at(herd.span, text.to_owned()).label("no time passes between two attempts");
        complain(
            sink,
            mistake.help(
                "let messages take time (network), let clients wait (base and cap in [retry]), or limit attempts",
            ),
        );
    }
    Some(Herd { clients: herd.clients.map_or(1, |at| at.value), resource, network_s, retry })
}
