//! Which strategy is cheapest, and how slow is its slowest session in a hundred? Grouped with polars.
//!
//! `cargo run --release --features frames --example frames`

use agent_sim::frames;
use agent_sim::scenario::{Request, Scenario};
use agent_sim::simulate::{Options, Silent};
use polars::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let load = |strategy: Option<&str>| {
        let sets = ["run.sessions=5000".to_owned()];
        let request = Request { strategy, sets: &sets, ..Request::default() };
        Scenario::load("scenarios/lifetimes.toml".as_ref(), &request)
    };
    let run =
        frames::play(vec![load(None)?, load(Some("hour"))?, load(Some("uncached"))?], Options::default(), &Silent)?;

    let sessions = frames::sessions(&run)?;
    for strategy in sessions.partition_by_stable(["strategy"], true)? {
        let name = strategy.column("strategy")?.str()?.get(0).unwrap_or_default().to_owned();
        let cost = strategy.column("cost_usd")?.f64()?.mean().unwrap_or_default();
        let p99 =
            strategy.column("latency_s")?.f64()?.quantile(0.99, QuantileMethod::Equiprobable)?.unwrap_or_default();
        println!("{name:<10} ${cost:.4} a session, one in a hundred takes longer than {p99:.0} s");
    }
    Ok(())
}
