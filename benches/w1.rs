//! Quick look at the speed of W1 against a bench that only draws its variates.
use agent_sim::dist::{Choices, Dist, Exponential, LogNormal};
use agent_sim::engine::Play;
use agent_sim::scenario::{Request, Scenario};
use agent_sim::stats::{Metric, Sample};
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use std::time::Instant;
fn main() {
    let s = Scenario::load("scenarios/w1.toml".as_ref(), &Request::default()).unwrap_or_else(|e| panic!("{e}"));
    for round in 0..3 {
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let t = Instant::now();
            let mut sample = Sample::new(&s.model, 100_000, &[]);
            pool.install(|| Play { model: &s.model, seed: 7, sessions: 0..100_000 }.run(&mut sample, &|_| {}));
            let dt = t.elapsed().as_secs_f64();
            println!(
                "{round} {threads} threads {dt:.3} s, {:.1} ns/turn, cost {:?}",
                dt / 5e6 * 1e9,
                sample.moments(Metric::named("cost_usd").unwrap().quantity()).mean
            );
        }
        let out = Dist::from(LogNormal::from_quantile_cv(0.5, 245.0, 0.6583).unwrap());
        let res = Dist::from(LogNormal::from_quantile_cv(0.5, 181.0, 0.9468).unwrap());
        let lat = Dist::from(Exponential::new(2.0).unwrap());
        let ch = Dist::from(Choices::new(vec![(0.0, 0.98), (1.0, 0.02)]).unwrap());
        let t = Instant::now();
        let mut sum = 0.0;
        for i in 0..100_000u64 {
            let mut r = Xoshiro256PlusPlus::seed_from_u64(i);
            for _ in 0..50 {
                sum += out.draw(&mut r);
                for _ in 0..3 {
                    sum += r.random::<f64>();
                    sum += lat.draw(&mut r);
                    sum += res.draw(&mut r);
                }
                sum += ch.draw(&mut r);
            }
        }
        let dt = t.elapsed().as_secs_f64();
        println!("{round} floor {dt:.3} s {:.1} ns/turn {sum}", dt / 5e6 * 1e9);
    }
}
