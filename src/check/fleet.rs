//! A fleet against queueing theory: Little's law and conservation on every path, token buckets over every window, the
//! waits of M/M/c and M/G/1, and the prefix that sessions keep warm for each other (MODEL.md §7).

use super::facts::can_be_cut_short;
use super::{Check, Checks, Events, NotChecked, OF_ONE_RUN, events};
use crate::dist::{Dist, Whole};
use crate::engine::Replication;
use crate::model::{Arrivals, Fleet, Model, Tool};
use crate::stats::{Estimate, FleetSummary, Moments, Place};
use crate::theory::cache::shared_prefix_warm;
use crate::theory::limits::{mg1_mean_wait, mmc_mean_wait, mmc_wait_chance, mmc_wait_quantile};

/// With fewer replications than this their spread says little.
const FEWEST_REPLICATIONS: u64 = 5;

/// A warm-up of so many relaxation times has forgotten the empty beginning.
const RELAXED: f64 = 10.0;

/// Long waits come in swarms: with fewer relaxation times than this beyond a quantile their number is far from normal.
const FEWEST_EPISODES: f64 = 100.0;

/// Rounding of buckets whose tokens flow in continuously.
const A_PART_OF_A_TOKEN: f64 = 1e-3;

/// Holds every form that applies against a fleet. `names` are those of the tools.
pub fn check_fleet(
    model: &Model,
    fleet: &Fleet,
    names: &[String],
    summary: &FleetSummary,
    replications: &[Replication<()>],
) -> Checks {
    // exact forms hold however few sessions there were
    let mut checks = Checks { sessions: u64::MAX, ..Checks::default() };
    conservation(names, replications, &mut checks);
    buckets(replications, &mut checks);
    if summary.growth.is_some() {
        for id in ["queue.mmc", "queue.mg1", "cache.shared_prefix"] {
            checks.refuse(id, "the fleet doesn't settle");
        }
    } else {
        queues(model, fleet, names, summary, replications, &mut checks);
        prefix(model, fleet, summary, replications, &mut checks);
    }
    for id in OF_ONE_RUN {
        checks.refuse(id, "a session of a fleet meets others; without [fleet] its own forms are checked");
    }
    checks
}

fn name(names: &[String], tool: Option<usize>) -> &str {
    tool.map_or("model", |tool| names.get(tool).map_or("", String::as_str))
}

fn exactly(value: f64) -> Estimate {
    Estimate { value, se: 0.0, ci95: [value; 2] }
}

/// What came is what was served, was turned away, was lost or is still there; and what is there, summed over time, is
/// what all stays come to (Little 1961, on one path: Stidham 1974).
fn conservation(names: &[String], replications: &[Replication<()>], checks: &mut Checks) {
    let sum = |of: &dyn Fn(&Replication<()>) -> f64| replications.iter().map(of).sum::<f64>();
    let came = sum(&|r| r.arrived.all as f64);
    let went = sum(&|r| (r.ended.all + r.in_progress.level) as f64);
    let form = "arrived = ended + in progress";
    checks.add(Ok(Check::new("queue.conservation", form, "sessions", came, exactly(went))));
    let stations = replications.first().map_or(0, |first| first.stations.len());
    for index in 0..stations {
        let of = |count: &dyn Fn(&crate::engine::StationRecord) -> u64| sum(&|r| count(&r.stations[index]) as f64);
        let came = of(&|s| s.came.all);
        let went = of(&|s| s.served.all + s.turned_away.all + s.down.all + s.left.all + s.busy.level + s.waiting.level);
        if came <= 0.0 {
            continue;
        }
        let whose = format!("calls of {}", name(names, replications[0].stations[index].tool));
        let form = "came = served + turned away + failed + left + there";
        checks.add(Ok(Check::new("queue.conservation", form, whose, came, exactly(went))));
    }
    let form = "time in the system, session by session";
    let stays = sum(&|r| r.stay_in_window.s());
    let area = sum(&|r| r.in_progress.area_s);
    checks.add(Ok(Check::new("queue.little", form, "sessions in progress × time", stays, exactly(area))));
    for index in 0..stations {
        if replications[0].stations[index].servers < u64::MAX {
            let waits = sum(&|r| r.stations[index].waited_in_window.s());
            let area = sum(&|r| r.stations[index].waiting.area_s);
            let whose = format!("calls of {} that wait × time", name(names, replications[0].stations[index].tool));
            checks.add(Ok(Check::new("queue.little", "waits, call by call", whose, waits, exactly(area))));
        }
    }
}

fn buckets(replications: &[Replication<()>], checks: &mut Checks) {
    const ID: &str = "limit.bucket";
    let limits = replications.first().map_or(0, |first| first.limits.len());
    if limits == 0 {
        checks.refuse(ID, "no rate is limited");
    }
    for index in 0..limits {
        let limit = &replications[0].limits[index];
        if !limit.is_exact {
            checks.refuse(ID, "what a call uses of the limit isn't known before it ends, so it can be passed a little");
            continue;
        }
        let worst = replications.iter().map(|r| r.limits[index].worst_window).fold(0.0, f64::max);
        let bound = limit.capacity * (1.0 + 1e-9) + A_PART_OF_A_TOKEN;
        let of = format!("{}: the most in any window Δ, less ρΔ", limit.kind.key());
        checks.add(Ok(Check::at_most(ID, "β", of, bound, worst)));
    }
}

/// A queue that theory knows.
struct Queue {
    place: Place,
    servers: u64,
    arrivals_per_s: f64,
    service: Dist,
    /// Whether its arrivals are surely a Poisson process, not only distributed in time as one.
    is_poisson: bool,
    /// How many of its calls belong to one session, by the calls: a queue forgets as slowly as its customers' whole work.
    comes_back: f64,
}

/// Whether a session is a plain loop of model calls and single calls of one tool, which fail never and wait only for
/// servers. Then its stations are those of an open network with a product form if service is exponential (Baskett, Chandy,
/// Muntz and Palacios 1975).
fn plain_loop(model: &Model, fleet: &Fleet) -> Result<f64, &'static str> {
    let Arrivals::Poisson { per_s } = fleet.arrivals else {
        return Err("sessions don't arrive at random at a constant rate");
    };
    if fleet.limits.any_rate() || !fleet.outages.is_empty() || model.faults.any() || model.phase.breaker.is_some() {
        return Err("calls of the model can fail");
    }
    if model.has_agents() {
        return Err("sessions of agents call too");
    }
    if !model.is_played_once() || can_be_cut_short(model).is_some() || !model.conversation.is_single() {
        return Err("a session isn't one loop that ends with its answer");
    }
    if model.context.compact_at_tokens < u64::MAX || model.searches() {
        return Err("a session can make other calls");
    }
    Ok(per_s)
}

fn never_fails(tool: &Tool) -> bool {
    !tool.attempts_can_fail() && tool.retry.deadline_s.is_infinite() && !tool.is_hedged() && tool.approval.is_none()
}

/// `E[T²] / E[T]`: the calls of the session that a call belongs to.
fn size_biased(turns: &Whole) -> f64 {
    let mean = turns.mean();
    (turns.variance() + mean * mean) / mean
}

/// The queue of a tool.
fn of_tool(model: &Model, fleet: &Fleet, index: usize) -> Result<Queue, &'static str> {
    let per_s = plain_loop(model, fleet)?;
    if fleet.limits.concurrent.is_some() {
        return Err("several stations stand one behind the other");
    }
    let [tool] = model.phase.tools.as_slice() else {
        return Err("several tools are called in a phase, so that calls don't come one by one");
    };
    if !never_fails(tool) || tool.calls.as_constant() != Some(1) {
        return Err("calls of the tool can fail, wait for a person, or come several at a time");
    }
    let station = tool.station.ok_or("the tool has no end of servers")?;
    Ok(Queue {
        place: Place::Tool(index),
        servers: station.servers,
        arrivals_per_s: per_s * (model.turns.mean() - 1.0),
        service: tool.latency_s.clone(),
        is_poisson: model.turns.as_constant() == Some(2),
        comes_back: size_biased(&model.turns),
    })
}

/// The queue before the model.
fn of_model(model: &Model, fleet: &Fleet, servers: u64) -> Result<Queue, &'static str> {
    let per_s = plain_loop(model, fleet)?;
    if model.phase.tools.iter().any(|tool| tool.station.is_some()) {
        return Err("several stations stand one behind the other");
    }
    let timing = &model.timing;
    if timing.output_rate.is_some() || timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0 {
        return Err("a model call's time depends on its tokens");
    }
    Ok(Queue {
        place: Place::Model,
        servers,
        arrivals_per_s: per_s * model.turns.mean(),
        service: timing.first_token_s.clone(),
        is_poisson: model.turns.as_constant() == Some(1),
        comes_back: size_biased(&model.turns),
    })
}

fn queues(
    model: &Model,
    fleet: &Fleet,
    names: &[String],
    summary: &FleetSummary,
    replications: &[Replication<()>],
    checks: &mut Checks,
) {
    let tools = model.phase.tools.iter().enumerate().filter(|(_, tool)| tool.station.is_some());
    let mut found: Vec<Result<Queue, &'static str>> = tools.map(|(index, _)| of_tool(model, fleet, index)).collect();
    found.extend(fleet.limits.concurrent.map(|servers| of_model(model, fleet, servers)));
    if found.is_empty() {
        for id in ["queue.mmc", "queue.mg1"] {
            checks.refuse(id, "no tool has a `capacity`, and the model has no `concurrent`");
        }
    }
    for queue in found {
        let held = queue
            .map_err(ToOwned::to_owned)
            .and_then(|queue| hold(&queue, fleet, names, summary, replications, checks));
        if let Err(why) = held {
            for id in ["queue.mmc", "queue.mg1"] {
                checks.refuse(id, why.clone());
            }
        }
    }
}

/// Whether the third moment of a service may be infinite, and with it the variance of waits.
fn has_a_wild_tail(service: &Dist) -> bool {
    match service {
        Dist::Pareto(_) | Dist::Mixture(_) | Dist::Scaled(_) | Dist::Shifted(_) => true,
        law => !law.variance().is_finite(),
    }
}

/// Student's t as a normal z of the same chance.
fn against(id: &'static str, form: &str, of: String, expected: f64, seen: Estimate, n: u64) -> Check {
    let mut check = Check::new(id, form, of, expected, seen);
    if let Some(t) = check.z {
        let z = crate::stats::normal_score(t, n);
        (check.z, check.pass) = (Some(z), z.abs() < super::LARGEST_Z || check.equal());
    }
    check
}

fn hold(
    queue: &Queue,
    fleet: &Fleet,
    names: &[String],
    summary: &FleetSummary,
    replications: &[Replication<()>],
    checks: &mut Checks,
) -> Result<(), String> {
    let station = summary.station(queue.place).ok_or("nothing was called")?;
    let (mean_s, n) = (queue.service.mean(), summary.replications);
    if mean_s <= 0.0 {
        return Err("calls take no time".to_owned());
    }
    if n < FEWEST_REPLICATIONS {
        return Err(format!("{n} replications say little of their spread; {FEWEST_REPLICATIONS} are enough"));
    }
    let (rate, servers) = (queue.arrivals_per_s, queue.servers);
    let utilisation = rate * mean_s / servers as f64;
    let is_exponential = matches!(queue.service, Dist::Exponential(_));
    let one_poisson = servers == 1 && queue.is_poisson;
    if !is_exponential && !one_poisson {
        return Err("service isn't exponential, and it isn't one server with arrivals at random".to_owned());
    }
    // how long a queue remembers: the relaxation time of M/M/1 with the same work (Morse 1955), for other laws longer by
    // their spread
    let scv = queue.service.variance() / (mean_s * mean_s);
    let relaxation_s =
        queue.comes_back * mean_s / servers as f64 * (1.0 + scv) / 2.0 / (1.0 - utilisation.sqrt()).powi(2);
    let needed_s = RELAXED * relaxation_s;
    if fleet.warm_up_s < needed_s || fleet.horizon_s - fleet.warm_up_s < RELAXED * needed_s {
        return Err(format!(
            "a queue as busy as this forgets slowly: it takes a warm-up of {needed_s:.0} s and {:.0} s behind it",
            RELAXED * needed_s
        ));
    }
    let tool = if let Place::Tool(tool) = queue.place { Some(tool) } else { None };
    let whose = name(names, tool);
    let wait = station.wait_s.ok_or("nothing was called")?;
    let of = |what: &str| format!("{what} at {whose}");
    if is_exponential && let Ok(c) = u32::try_from(servers) {
        const ID: &str = "queue.mmc";
        let mean = mmc_mean_wait(c, rate, mean_s);
        checks.add(Ok(against(ID, "C/(cμ-λ)", of("mean wait"), mean, wait, n)));
        if let Some(waited) = station.waited {
            let chance = mmc_wait_chance(c, rate, mean_s);
            checks.add(Ok(against(ID, "C (Erlang C)", of("chance to wait"), chance, waited, n)));
        }
        for p in [0.9, 0.95, 0.99] {
            let quantile_s = mmc_wait_quantile(c, rate, mean_s, p);
            let beyond = n as f64 * (fleet.horizon_s - fleet.warm_up_s) / relaxation_s * (1.0 - p);
            if quantile_s > 0.0 && beyond >= FEWEST_EPISODES {
                let records = replications.iter().filter_map(|r| r.stations.iter().find(|s| s.tool == tool));
                let within: Vec<f64> =
                    records.map(|s| s.waits.at_most(quantile_s) as f64 / s.waits.count as f64).collect();
                let what = format!("share of waits up to p{:.0}, {quantile_s:.3} s,", p * 100.0);
                let seen = Moments::of(&within).estimate();
                checks.add(Ok(against(ID, "ln(C/(1-p))/(cμ-λ)", of(&what), p, seen, n)));
            }
        }
    }
    if one_poisson && has_a_wild_tail(&queue.service) {
        checks.refuse("queue.mg1", "waits behind a service whose third moment may be infinite don't average out");
    } else if one_poisson {
        let expected = mg1_mean_wait(rate, mean_s, scv);
        let form = "ρ(1+cv²)/(2(1-ρ)) E[S] (Pollaczek–Khinchine)";
        checks.add(Ok(against("queue.mg1", form, of("mean wait"), expected, wait, n)));
    } else {
        checks.refuse("queue.mg1", "it isn't one server with arrivals at random, one call a session");
    }
    Ok(())
}

fn prefix(model: &Model, fleet: &Fleet, summary: &FleetSummary, replications: &[Replication<()>], checks: &mut Checks) {
    const ID: &str = "cache.shared_prefix";
    let held = || -> Result<Check, NotChecked> {
        let not = |why: &str| NotChecked { id: ID, why: why.to_owned() };
        let per_s = plain_loop(model, fleet).map_err(not)?;
        if fleet.limits.concurrent.is_some() {
            return Err(not("calls wait for a place, so that they don't use the prefix at random times"));
        }
        if model.turns.as_constant() != Some(1) {
            return Err(not("sessions of several calls don't use the prefix at random times"));
        }
        if model.timing.first_token_s.as_constant() != Some(0.0)
            || model.timing.prefill_s_per_token > 0.0
            || model.timing.cached_prefill_s_per_token > 0.0
        {
            return Err(not("what is written can be read from its first token on, and that takes a time"));
        }
        let warm = summary.prefix_warm.ok_or_else(|| not("no prompt begins with a prefix that can be cached"))?;
        let lifetime_s = model.cache.prefix_lifetime_s;
        if fleet.warm_up_s < RELAXED / per_s {
            return Err(not("the warm-up is too short for the prefix to have been used"));
        }
        if summary.replications < FEWEST_REPLICATIONS {
            return Err(not("too few replications"));
        }
        let expected = shared_prefix_warm(per_s, lifetime_s);
        let calls = replications.iter().map(|r| r.prefix_calls).sum::<u64>() as f64;
        let rarer = expected.min(1.0 - expected) * calls;
        if let Events::TooFew(why) = events(rarer, (warm.value - expected) * calls) {
            return Err(NotChecked { id: ID, why });
        }
        let of = "model calls that find tools and system cached".to_owned();
        Ok(against(ID, "1 - e^(-λ·ttl)", of, expected, warm, summary.replications))
    };
    checks.add(held());
}
