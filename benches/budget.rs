//! Reserve and settle: one thread alone, and eight threads on one budget.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use agent_sim::budget::{Budget, Limits, Prices};
use agent_sim::price::{Sheet, Usage};
use criterion::{Criterion, Throughput};

fn prices() -> Prices {
    Prices::of(Sheet::embedded(), "claude-sonnet-4-6", Some(300), None).unwrap()
}

fn usage() -> Usage {
    // cheap, so that no number of rounds uses the budget up
    Usage { input_tokens: 3, cache_read_tokens: 100, output_tokens: 1, ..Usage::default() }
}

const EACH: u64 = 20_000;

fn main() {
    let (prices, usage) = (prices(), usage());
    let call = prices.call(100_000, 4_096).unwrap();
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("budget");
    for depth in [1, 3] {
        let mut budget = Budget::new("team", Limits::usd(1e6).unwrap());
        for _ in 1..depth {
            budget = budget.child("below", Limits::usd(1e6).unwrap());
        }
        group.bench_function(format!("reserve and settle, {depth} deep"), |bencher| {
            bencher.iter(|| budget.reserve(black_box(&call)).unwrap().settle(black_box(&usage)).unwrap());
        });
    }
    group.throughput(Throughput::Elements(8 * EACH));
    group.bench_function("eight threads on one budget", |bencher| {
        bencher.iter_custom(|rounds| {
            let start = Instant::now();
            for _ in 0..rounds {
                let budget = Budget::new("team", Limits::usd(1e6).unwrap());
                thread::scope(|scope| {
                    for _ in 0..8 {
                        scope.spawn(|| {
                            for _ in 0..EACH {
                                let held = budget.reserve(&call).unwrap();
                                held.settle(&usage).unwrap();
                            }
                        });
                    }
                });
            }
            start.elapsed()
        });
    });
    group.finish();
    criterion.final_summary();
}
