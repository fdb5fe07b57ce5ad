//! Fleets: M/M/5 as sessions of one model call with five places, a tool that fails, and how the time grows with the
//! sessions in progress. `cargo bench --bench fleet -- --ratios` prints ratios alone, measured in turns, and next to the
//! `SimPy` program of M/M/5 where its path is given in `AGENT_SIM_SIMPY` (and the Python that has `SimPy` in `PYTHON`).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use agent_sim::engine::{play_fleet, with_threads};
use agent_sim::scenario::{Request, Scenario};
use agent_sim::stats::Sample;
use criterion::{Criterion, Throughput};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "bench.toml", Path::new(""), &Request::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Four customers a second, five servers, a second each.
fn mm5(customers: u64, replications: u64) -> Scenario {
    let hours = customers as f64 / 14_400.0 / replications as f64;
    parse(&format!(
        "model.first_token = {{ exponential = {{ mean = \"1s\" }} }}\nsession.turns = 1\n[fleet]\n\
         arrivals = {{ poisson = {{ per_hour = 14400 }} }}\nhorizon = \"{hours:.6}h\"\nwarm_up = \"0s\"\n\
         replications = {replications}\nlimits.concurrent = 5"
    ))
}

/// So many sessions in progress on average, each of thirty turns and a shared tool.
fn busy(in_progress: f64) -> Scenario {
    // one takes about 118 s
    let per_hour = in_progress / 118.0 * 3600.0;
    let hours = 3_000.0 / per_hour + 0.05;
    parse(&format!(
        "model.first_token = \"1s\"\nmodel.output_rate = 100\nsession.turns = 30\nsession.output = 100\n\
         [[tools]]\nname = \"search\"\nlatency = {{ exponential = {{ mean = \"2s\" }} }}\ncapacity = 1000000\n[fleet]\n\
         arrivals = {{ poisson = {{ per_hour = {per_hour} }} }}\nhorizon = \"{hours:.6}h\"\nwarm_up = \"0s\"\nreplications = 2"
    ))
}

/// (events, seconds)
fn play(scenario: &Scenario, threads: usize) -> (u64, f64) {
    let model = &scenario.model;
    let fleet = model.fleet.as_ref().unwrap();
    let start = Instant::now();
    let fresh = || Sample::new(model, 1_000_000, &[]);
    let played =
        with_threads(Some(threads), || play_fleet(model, fleet, scenario.run.seed, &fresh(), |_| fresh(), &|_| {}))
            .unwrap();
    let events = played.iter().map(|replication| replication.events).sum();
    black_box(played);
    (events, start.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Customers a second of the `SimPy` program, if it is to be had.
fn peer(customers: u64) -> Option<f64> {
    let path = std::env::var("AGENT_SIM_SIMPY").ok()?;
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python).arg(path).arg(customers.to_string()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // "simpy M/M/5: 100000 customers in 0.91 s = 1.09e+05/s; mean wait 0.5123"
    text.split("= ").nth(1)?.split("/s").next()?.parse().ok()
}

/// Rounds in which everything is measured once, one after the other, so that a machine that slows down slows all.
fn ratios() {
    const CUSTOMERS: u64 = 4_000_000;
    // as many replications as a fleet has that doesn't say
    let queue = mm5(CUSTOMERS, 20);
    let (mut one, mut two, mut to_peer, mut events_per_s) = (vec![], vec![], vec![], vec![]);
    for _ in 0..7 {
        let (events, alone) = play(&queue, 1);
        let (_, both) = play(&queue, 2);
        one.push(CUSTOMERS as f64 / alone);
        two.push(CUSTOMERS as f64 / both);
        events_per_s.push(events as f64 / alone);
        to_peer.extend(peer(100_000).map(|per_s| (CUSTOMERS as f64 / alone / per_s, CUSTOMERS as f64 / both / per_s)));
    }
    println!("M/M/5, {CUSTOMERS} customers, medians of seven rounds");
    println!("  one thread            {:.0} customers/s, {:.0} events/s", median(one), median(events_per_s));
    println!("  two threads           {:.0} customers/s", median(two));
    if to_peer.is_empty() {
        println!("  `SimPy`: not measured; give the path of simpy_mmc.py in AGENT_SIM_SIMPY");
    } else {
        let (alone, both): (Vec<f64>, Vec<f64>) = to_peer.into_iter().unzip();
        println!("  over `SimPy`            {:.1} on one thread, {:.1} on two", median(alone), median(both));
    }
    println!("Thirty turns and a shared tool, ns an event by sessions in progress, medians of five rounds");
    for in_progress in [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0] {
        let scenario = busy(in_progress);
        let rounds = (0..5).map(|_| {
            let (events, took) = play(&scenario, 1);
            took * 1e9 / events as f64
        });
        println!("  {in_progress:>7}  {:.0}", median(rounds.collect()));
    }
}

fn main() {
    if std::env::args().any(|arg| arg == "--ratios") {
        return ratios();
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("fleet");
    let (queue, tool) = (mm5(20_000, 2), busy(100.0));
    group.sample_size(20);
    group.throughput(Throughput::Elements(play(&queue, 1).0));
    group.bench_function("M/M/5", |b| b.iter(|| play(&queue, 1)));
    group.throughput(Throughput::Elements(play(&tool, 1).0));
    group.bench_function("a shared tool", |b| b.iter(|| play(&tool, 1)));
    group.finish();
    criterion.final_summary();
}
