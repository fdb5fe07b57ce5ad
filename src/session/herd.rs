//! Many clients that all start at once and use one resource once each (SCENARIO.md `[herd]`).
//!
//! **Optimistic**: a client reads the version of a row and then writes with it. The write succeeds only where the version
//! is still the same, and then raises it; otherwise the client waits by its retry policy and reads again. **Queue**: a
//! request is served, waits for a server, or is turned away where all places are taken; then the client waits and asks
//! again. Every message takes its time. The model of the optimistic one is that of the article that made jitter known
//! (Brooker 2015, "Exponential backoff and jitter").

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::call::{AttemptEnd, Attempts, Progress};
use super::draws::{Draws, Purpose};
use super::record::{Outcome, Record};
use crate::model::{Herd, Resource};

/// What reaches the resource, or leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A client asks: it reads the row, or wants to be served.
    Asks,
    /// It writes with the version that it read.
    Writes,
    /// It has been served.
    Served,
}

struct Client<S> {
    network: S,
    waits: S,
    attempts: Attempts,
    /// The version that it read.
    version: u64,
    /// When its attempt began, ns.
    begun_ns: u64,
}

/// A repeat under way. Time is whole nanoseconds, and events of one moment happen in the order in which they were planned.
struct Under<'a, D: Draws> {
    herd: &'a Herd,
    clients: Vec<Client<D::Stream>>,
    events: BinaryHeap<Reverse<(u64, u64, u32, What)>>,
    planned: u64,
    calls: u64,
    gave_up: u64,
    last_ns: u64,
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl<D: Draws> Under<'_, D> {
    fn plan(&mut self, at_ns: u64, client: u32, what: What) {
        self.events.push(Reverse((at_ns, self.planned, client, what)));
        self.planned += 1;
    }

    /// How long the client's next message takes, ns.
    fn message(&mut self, client: u32) -> u64 {
        let law = &self.herd.network_s;
        ns(law.draw(&mut self.clients[client as usize].network))
    }

    /// The client begins an attempt.
    fn ask(&mut self, client: u32, now_ns: u64) {
        self.clients[client as usize].begun_ns = now_ns;
        let message_ns = self.message(client);
        self.plan(now_ns.saturating_add(message_ns), client, What::Asks);
    }

    fn deadline_ns(&self) -> u64 {
        ns(self.herd.retry.deadline_s)
    }

    fn ends(&mut self, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// The client hears that it is done, or has given up before.
    fn done(&mut self, client: u32, now_ns: u64) {
        let heard_ns = now_ns.saturating_add(self.message(client));
        self.gave_up += u64::from(heard_ns > self.deadline_ns());
        self.ends(heard_ns.min(self.deadline_ns()));
    }

    /// The client hears that it failed, waits and asks again, or gives up.
    fn failed(&mut self, client: u32, now_ns: u64, rejected: bool) {
        let heard_ns = now_ns.saturating_add(self.message(client));
        let retry = &self.herd.retry;
        let own = &mut self.clients[client as usize];
        let took_s = (heard_ns - own.begun_ns) as f64 / 1e9;
        let end = AttemptEnd { took_s, executions: 1, answered: false, rejected };
        if own.attempts.attempted(retry, end) == Progress::Wait {
            let wait_s = own.attempts.draw_wait(retry, &mut own.waits);
            if own.attempts.waited(retry, wait_s) == Progress::Attempt {
                return self.ask(client, heard_ns.saturating_add(ns(wait_s)));
            }
        }
        let in_time = own.attempts.elapsed_s < retry.deadline_s;
        self.gave_up += 1;
        self.ends(if in_time { heard_ns } else { self.deadline_ns() });
    }
}

/// Plays one repeat. Its sums stand in a session's record: requests that reached the resource are its attempts, clients
/// that gave up its refused calls, and the time at which the last one was done its latency.
pub fn play_herd<D: Draws>(herd: &Herd, draws: &D) -> Record {
    let client = |number: u64| Client {
        network: draws.stream(Purpose::HerdNetwork { client: number }, 0),
        waits: draws.stream(Purpose::HerdWait { client: number }, 0),
        attempts: Attempts::default(),
        version: 0,
        begun_ns: 0,
    };
    let mut under: Under<'_, D> = Under {
        herd,
        clients: (0..herd.clients).map(client).collect(),
        events: BinaryHeap::with_capacity(herd.clients as usize),
        planned: 0,
        calls: 0,
        gave_up: 0,
        last_ns: 0,
    };
    for number in 0..herd.clients as u32 {
        under.ask(number, 0);
    }
    match &herd.resource {
        Resource::Optimistic => optimistic(&mut under),
        Resource::Queue { servers, places, service_s } => {
            let mut stream = draws.stream(Purpose::HerdService, 0);
            queue(&mut under, *servers, *places, || ns(service_s.draw(&mut stream)));
        }
    }
    Record {
        outcome: if under.gave_up > 0 { Outcome::Failed } else { Outcome::Answered },
        attempts: under.calls,
        refused_calls: under.gave_up,
        latency_s: under.last_ns as f64 / 1e9,
        ..Record::default()
    }
}

fn optimistic<D: Draws>(under: &mut Under<'_, D>) {
    let mut version = 0;
    while let Some(Reverse((now_ns, _, client, what))) = under.events.pop() {
        if what == What::Asks {
            under.clients[client as usize].version = version;
            let both_ns = under.message(client).saturating_add(under.message(client));
            under.plan(now_ns.saturating_add(both_ns), client, What::Writes);
        } else {
            under.calls += 1;
            if under.clients[client as usize].version == version {
                version += 1;
                under.done(client, now_ns);
            } else {
                under.failed(client, now_ns, false);
            }
        }
    }
}

fn queue<D: Draws>(under: &mut Under<'_, D>, servers: u64, places: u64, mut service_ns: impl FnMut() -> u64) {
    let (mut busy, mut waiting) = (0, VecDeque::new());
    while let Some(Reverse((now_ns, _, client, what))) = under.events.pop() {
        if what == What::Asks {
            under.calls += 1;
            if busy < servers {
                busy += 1;
                under.plan(now_ns.saturating_add(service_ns()), client, What::Served);
            } else if (waiting.len() as u64) < places {
                waiting.push_back(client);
            } else {
                under.failed(client, now_ns, true);
            }
        } else {
            under.done(client, now_ns);
            match waiting.pop_front() {
                Some(next) => under.plan(now_ns.saturating_add(service_ns()), next, What::Served),
                None => busy -= 1,
            }
        }
    }
}
