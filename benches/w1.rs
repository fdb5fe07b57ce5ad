//! W1 (`scenarios/w1.toml`): sessions a second on one thread and two, and the floor, a loop that only draws W1's random
//! variates with the same generator and families. `cargo bench --bench w1 -- --ratios` prints the ratios alone, measured
//! in turns, and next to the numpy program where its path is given in `AGENT_SIM_PEER`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use agent_sim::dist::{Choices, Dist, Exponential, LogNormal};
use agent_sim::engine::{Play, with_threads};
use agent_sim::model::Model;
use agent_sim::scenario::{Request, Scenario};
use agent_sim::session::{Draws, Purpose};
use agent_sim::stats::Sample;
use criterion::{Criterion, Throughput};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::SplitMix64;

const TURNS: u64 = 50;

fn w1() -> Model {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/w1.toml");
    Scenario::load(path.as_ref(), &Request::default()).unwrap_or_else(|e| panic!("{e}")).model
}

fn play(model: &Model, sessions: u64, threads: usize) -> u64 {
    with_threads(Some(threads), || {
        let mut sample = Sample::new(model, sessions, &[]);
        Play { model, seed: 7, sessions: 0..sessions }.run(&mut sample, &|_| {});
        sample.sessions()
    })
    .unwrap()
}

struct Laws {
    output: Dist,
    result: Dist,
    latency: Dist,
    person: Dist,
}

fn laws() -> Laws {
    Laws {
        output: LogNormal::from_quantile_cv(0.5, 245.0, 0.6583).unwrap().into(),
        result: LogNormal::from_quantile_cv(0.5, 181.0, 0.9468).unwrap().into(),
        latency: Exponential::new(2.0).unwrap().into(),
        person: Choices::new(vec![(0.0, 0.98), (1.0, 0.02)]).unwrap().into(),
    }
}

/// One turn's variates: an output; three fates, latencies and results; whether a person is asked.
#[inline(always)]
#[allow(clippy::inline_always)]
fn draw_turn(laws: &Laws, rng: &mut SplitMix64) -> f64 {
    let mut sum = laws.output.draw(rng);
    for _ in 0..3 {
        sum += rng.random::<f64>() + laws.latency.draw(rng) + laws.result.draw(rng);
    }
    sum + laws.person.draw(rng)
}

/// Only the variates, from one generator a session.
fn floor(laws: &Laws, sessions: u64) -> f64 {
    (0..sessions)
        .map(|session| {
            let mut rng = SplitMix64::seed_from_u64(session);
            (0..TURNS).map(|_| draw_turn(laws, &mut rng)).sum::<f64>()
        })
        .sum()
}

/// The same variates from a fresh stream per purpose and turn, as reproducibility and common random numbers need it.
fn floor_with_streams(laws: &Laws, sessions: u64) -> f64 {
    use agent_sim::engine::rng::SessionDraws;
    let mut sum = 0.0;
    for session in 0..sessions {
        let draws = SessionDraws::new(7, session);
        for turn in 1..=TURNS {
            sum += laws.output.draw(&mut draws.stream(Purpose::Output, turn));
            let mut fates = draws.stream(Purpose::Fate { tool: 0 }, turn);
            let mut latencies = draws.stream(Purpose::Latency { tool: 0 }, turn);
            let mut results = draws.stream(Purpose::Result { tool: 0 }, turn);
            for _ in 0..3 {
                sum += fates.random::<f64>() + laws.latency.draw(&mut latencies) + laws.result.draw(&mut results);
            }
            sum += laws.person.draw(&mut draws.stream(Purpose::Calls { tool: 1 }, turn));
        }
    }
    sum
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Sessions a second of the numpy program, if it is to be had.
fn peer(sessions: u64) -> Option<f64> {
    let path = std::env::var("AGENT_SIM_PEER").ok()?;
    let output = Command::new("python3").arg(path).arg(sessions.to_string()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // "100000 sessions, 0.98 s, …"
    let took: f64 = text.split(", ").nth(1)?.strip_suffix(" s")?.parse().ok()?;
    Some(sessions as f64 / took)
}

/// Rounds in which everything is measured once, one after the other, so that a machine that slows down slows all.
fn ratios() {
    let (model, laws) = (w1(), laws());
    let n = 100_000;
    let (mut to_floor, mut to_streams, mut two, mut to_peer, mut speed) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..9 {
        let one = seconds(|| {
            black_box(play(&model, n, 1));
        });
        let both = seconds(|| {
            black_box(play(&model, n, 2));
        });
        let least = seconds(|| {
            black_box(floor(&laws, n));
        });
        let streams = seconds(|| {
            black_box(floor_with_streams(&laws, n));
        });
        to_floor.push(one / least);
        to_streams.push(one / streams);
        two.push(one / both);
        speed.push(n as f64 / one);
        to_peer.extend(peer(n).map(|sessions_per_s| n as f64 / one / sessions_per_s));
    }
    println!("W1, {n} sessions, medians of nine rounds");
    println!("  one thread                       {:.0} sessions/s", median(speed));
    println!("  time over drawing only           {:.2}", median(to_floor));
    println!("  time over drawing from streams   {:.2}", median(to_streams));
    println!("  two threads over one             {:.2}", median(two));
    if to_peer.is_empty() {
        println!("  numpy: not measured; give the path of numpy_w1.py in AGENT_SIM_PEER");
    } else {
        println!("  one thread over numpy            {:.2}", median(to_peer));
    }
}

fn main() {
    if std::env::args().any(|arg| arg == "--ratios") {
        return ratios();
    }
    let mut criterion = Criterion::default().configure_from_args();
    let (model, laws) = (w1(), laws());
    let n = 4_096;
    let mut group = criterion.benchmark_group("w1");
    group.throughput(Throughput::Elements(n)).sample_size(20);
    group.bench_function("one thread", |b| b.iter(|| play(&model, n, 1)));
    group.bench_function("two threads", |b| b.iter(|| play(&model, n, 2)));
    group.bench_function("floor: draws only", |b| b.iter(|| floor(&laws, n)));
    group.bench_function("floor: draws from streams", |b| b.iter(|| floor_with_streams(&laws, n)));
    group.finish();
    criterion.final_summary();
}
