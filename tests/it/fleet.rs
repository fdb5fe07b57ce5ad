//! `[fleet]`: the same sessions as alone where nothing is shared, queues and buckets against theory, outages, breakers, and
//! fleets that don't settle.

use std::collections::BTreeMap;

use agent_sim::Error;
use agent_sim::check::check_fleet;
use agent_sim::engine::{Collect, LimitKind, Play, play_fleet, with_threads};
use agent_sim::model::{Arrivals, Model, Station};
use agent_sim::scenario::Scenario;
use agent_sim::session::{Bill, Outcome, Record, Turn, Workspace};
use agent_sim::simulate::{Answer, Found, Options, Silent, plan, simulate};
use agent_sim::stats::{Bottleneck, Figure, Goal, Metric, Place, Sample, SeriesKind};
use agent_sim::theory::limits::{mmc_mean_wait, mmc_wait_chance};
use proptest::prelude::*;

use crate::support::{answer, assert_close, mean, scenario, scenario_with, shipped_scenario};

/// Records by session number.
#[derive(Default)]
pub struct Records {
    all: BTreeMap<u64, Record>,
    /// Whether turns and messages are wanted; and those of each session.
    watched: bool,
    turns: BTreeMap<u64, (Vec<Turn>, Vec<f64>)>,
    open: (Vec<Turn>, Vec<f64>),
}

impl Collect for Records {
    fn empty(&self) -> Self {
        Self { watched: self.watched, ..Self::default() }
    }

    fn watches(&self, _session: u64) -> bool {
        self.watched
    }

    fn turn(&mut self, turn: &Turn) {
        self.open.0.push(*turn);
    }

    fn message(&mut self, latency_s: f64) {
        self.open.1.push(latency_s);
    }

    fn session(&mut self, number: u64, record: &Record, _bill: &Bill, _room: &Workspace) {
        self.all.insert(number, *record);
        self.turns.insert(number, std::mem::take(&mut self.open));
    }

    fn merge(&mut self, next: &mut Self) {
        self.all.append(&mut next.all);
        self.turns.append(&mut next.turns);
    }
}

/// One replication, its sessions by number.
pub fn records(scenario: &Scenario) -> Vec<Record> {
    let fleet = scenario.model.fleet.as_ref().unwrap();
    let played =
        play_fleet(&scenario.model, fleet, scenario.run.seed, &Records::default(), |_| Records::default(), &|_| {});
    played.into_iter().flat_map(|replication| replication.sample.all.into_values()).collect()
}

pub fn summary(answer: &Answer) -> &agent_sim::stats::FleetSummary {
    &answer.fleet.as_ref().unwrap().summary
}

#[track_caller]
fn near(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 2e-7 * (1.0 + a.abs()), "{what}: {a} {b}");
}

/// The same model with servers without end for every tool, and agents that meet nobody's warm prefix.
fn with_servers(model: &mut Model) {
    model.cache.warm_prefix = 0.0;
    for tool in &mut model.phase.tools {
        tool.station = Some(Station { servers: 1_000_000, places: 0 });
        if let Some(agent) = &mut tool.agent {
            with_servers(&mut agent.model);
        }
    }
    if let Some(routing) = &mut model.routing {
        with_servers(&mut routing.small);
    }
}

/// Plays sessions of a scenario alone, and so far apart in a fleet that no session meets another or its prefix.
pub fn are_the_same_alone_and_in_a_fleet(scenario: Scenario, name: &str) {
    are_the_same(scenario.clone(), name, false);
    are_the_same(scenario, name, true);
}

fn are_the_same(mut scenario: Scenario, name: &str, watched: bool) {
    with_servers(&mut scenario.model);
    let mut shared = scenario.clone();
    let text = "session.turns = 1\n[fleet]\narrivals = { poisson = { per_hour = 0.004 } }\nhorizon = \"250000h\"\n\
                warm_up = \"0s\"\nreplications = 1";
    let mut fleet = self::scenario(text).model.fleet.unwrap();
    fleet.arrivals = Arrivals::Times((0..200).map(|number| f64::from(number) * 4_500_000.0).collect());
    shared.model.fleet = Some(fleet);
    let fresh = || Records { watched, ..Records::default() };
    let mut own = fresh();
    let fleet = shared.model.fleet.as_ref().unwrap();
    let played = play_fleet(&shared.model, fleet, 1, &fresh(), |_| fresh(), &|_| {});
    let together = &played[0].sample.all;
    assert!(together.len() > 190, "{name}: {}", together.len());
    let first = *together.keys().next().unwrap();
    Play { model: &scenario.model, seed: 1, sessions: first..first + together.len() as u64 }.run(&mut own, &|_| {});
    for (number, theirs) in together {
        let mine = &own.all[number];
        near(mine.latency_s, theirs.latency_s, name);
        near(mine.tool_s, theirs.tool_s, name);
        near(mine.retry_wait_s, theirs.retry_wait_s, name);
        near(mine.approval_s, theirs.approval_s, name);
        // an answer that comes when the time is up is a matter of taste
        let succeeded = |r: &Record| if scenario.model.budget.any() { 0 } else { r.succeeded_calls };
        let counts = |r: &Record| {
            [r.turns, r.tool_calls, r.attempts, r.executions, r.duplicates, r.hedges, succeeded(r), r.refused_calls]
        };
        assert_eq!((mine.cost, counts(mine)), (theirs.cost, counts(theirs)), "{name}");
        assert_eq!((mine.outcome, mine.expired_gaps), (theirs.outcome, theirs.expired_gaps), "{name}");
        assert_eq!((mine.model_calls, mine.model_attempts), (theirs.model_calls, theirs.model_attempts), "{name}");
        assert_eq!((mine.agents, mine.served), (theirs.agents, theirs.served), "{name}");
        assert_eq!((mine.runs, mine.redone, mine.succeeded), (theirs.runs, theirs.redone, theirs.succeeded), "{name}");
        assert_eq!(mine.keep_alive_pings, theirs.keep_alive_pings, "{name}");
        let ((turns, messages), (their_turns, their_messages)) = (&own.turns[number], &played[0].sample.turns[number]);
        assert_eq!((turns.len(), messages.len()), (their_turns.len(), their_messages.len()), "{name}");
        assert!(!watched || turns.len() as u64 == mine.turns || mine.outcome != Outcome::Answered, "{name}");
        for (mine, theirs) in turns.iter().zip(their_turns) {
            let facts = |t: &Turn| (t.number, t.run, t.message, t.cache, t.answered, t.usage);
            assert_eq!(facts(mine), facts(theirs), "{name}");
            assert_eq!((mine.cost, mine.cost_without_cache), (theirs.cost, theirs.cost_without_cache), "{name}");
            let times = |t: &Turn| [t.started_s, t.latency_s, t.first_token_s, t.tool_phase_s.unwrap_or(-1.0)];
            times(mine).iter().zip(times(theirs)).for_each(|(a, b)| near(*a, b, name));
        }
        messages.iter().zip(their_messages).for_each(|(a, b)| near(*a, *b, name));
    }
}

#[test]
fn where_nothing_is_shared_sessions_are_those_that_are_played_alone() {
    // each with its own stumbling stones: retries, hedges, people, a graph of tools, conversations, summaries, searches
    let files = [
        "retries.toml",
        "hedging.toml",
        "approvals.toml",
        "tool-graph.toml",
        "parallel-calls.toml",
        "conversation.toml",
        "compaction.toml",
        "model-failures.toml",
        "coding-agent.toml",
        "budget.toml",
        "cache-breaks.toml",
    ];
    for file in files {
        are_the_same_alone_and_in_a_fleet(shipped_scenario(file, None), file);
    }
    are_the_same_alone_and_in_a_fleet(shipped_scenario("conversation.toml", Some("keep-alive")), "pings");
}

/// Sessions of one model call that takes so long, with so many places.
fn model_queue(per_hour: f64, servers: u64, first_token: &str, more: &[&str]) -> Scenario {
    let text = format!(
        "model.first_token = {first_token}\nsession.turns = 1\n[fleet]\narrivals = {{ poisson = {{ per_hour = {per_hour} }} }}\n\
         horizon = \"8h\"\nwarm_up = \"2h\"\nreplications = 20\nlimits.concurrent = {servers}"
    );
    scenario_with(&text, more)
}

#[track_caller]
fn assert_agrees(answer: &Answer, wanted: &[&str]) {
    let ids: Vec<&str> = answer.checks.checks.iter().map(|check| check.id).collect();
    for id in wanted {
        assert!(ids.contains(id), "{id} isn't checked: {:?}", answer.checks.not_checked);
    }
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
}

const SECOND: &str = "{ exponential = { mean = \"1s\" } }";

#[test]
fn one_and_five_servers_are_erlangs() {
    for (per_hour, servers) in [(1_800.0, 1), (14_400.0, 5), (43_200.0, 16)] {
        let answer = answer(model_queue(per_hour, servers, SECOND, &[]));
        assert_agrees(&answer, &["queue.mmc", "queue.little", "queue.conservation"]);
        let station = summary(&answer).station(Place::Model).unwrap();
        let c = u32::try_from(servers).unwrap();
        let chance = mmc_wait_chance(c, per_hour / 3600.0, 1.0);
        let wait = mmc_mean_wait(c, per_hour / 3600.0, 1.0);
        assert_close(station.waited.unwrap().value, chance, 0.05);
        assert_close(station.wait_s.unwrap().value, wait, 0.1);
        // what a session waits is what its calls wait
        assert_close(mean(&answer, "queue_s"), station.wait_s.unwrap().value, 1e-3);
    }
}

#[test]
fn one_server_with_any_service_is_pollaczeks_and_khinchines() {
    for law in
        ["\"500ms\"", "{ lognormal = { mean = \"500ms\", cv = 1.5 } }", "{ uniform = { min = \"0s\", max = \"1s\" } }"]
    {
        assert_agrees(&answer(model_queue(4_320.0, 1, law, &[])), &["queue.mg1"]);
    }
}

/// Sessions that call one tool.
const SHARED_TOOL: &str = "model.first_token = { lognormal = { p50 = \"1s\", p99 = \"6s\" } }
[session]
turns = 4
[[tools]]
name = \"search\"
latency = { exponential = { mean = \"2s\" } }
capacity = 3
[fleet]
arrivals = { poisson = { per_hour = 1440 } }
horizon = \"12h\"
warm_up = \"2h\"
replications = 20";

#[test]
fn a_tool_that_sessions_come_back_to_waits_like_erlangs() {
    let answer = answer(scenario(SHARED_TOOL));
    assert_agrees(&answer, &["queue.mmc"]);
    let tool = Place::Tool(0);
    let z = (summary(&answer).station(tool).unwrap().wait_s.unwrap().value - mmc_mean_wait(3, 1.2, 2.0)) / 0.2;
    assert!(z.abs() < 4.0);
}

#[test]
fn the_wrong_number_of_servers_or_sessions_disagrees() {
    let right = answer(model_queue(14_400.0, 5, SECOND, &[]));
    let fleet = right.fleet.as_ref().unwrap();
    let disagrees = |change: &dyn Fn(&mut Model)| {
        let mut wrong = right.scenario.model.clone();
        change(&mut wrong);
        let shared = wrong.fleet.clone().unwrap();
        let checks = check_fleet(&wrong, &shared, &[], &fleet.summary, &fleet.replications);
        checks.checks.iter().any(|check| check.id == "queue.mmc" && !check.pass)
    };
    assert!(!disagrees(&|_| {}));
    assert!(disagrees(&|model| model.fleet.as_mut().unwrap().limits.concurrent = Some(6)));
    assert!(disagrees(&|model| {
        let slower = model_queue(13_500.0, 5, SECOND, &[]).model.fleet.unwrap().arrivals;
        model.fleet.as_mut().unwrap().arrivals = slower;
    }));
    // books that don't balance
    let mut cooked = fleet.replications.clone();
    cooked[3].ended.all += 1;
    let shared = right.scenario.model.fleet.clone().unwrap();
    assert!(!check_fleet(&right.scenario.model, &shared, &[], &fleet.summary, &cooked).all_pass());
    let mut cooked = fleet.replications.clone();
    cooked[0].in_progress.area_s *= 1.0 + 1e-6;
    assert!(!check_fleet(&right.scenario.model, &shared, &[], &fleet.summary, &cooked).all_pass());
}

#[test]
fn without_a_place_to_wait_erlang_b_are_turned_away() {
    let text = "session.turns = 2
[[tools]]
name = \"search\"
latency = { lognormal = { mean = \"2s\", cv = 0.8 } }
capacity = 4
queue = 0
[fleet]
arrivals = { poisson = { per_hour = 7200 } }
horizon = \"8h\"
replications = 20";
    let answer = answer(scenario(text));
    // Erlang B with a load of 4 on 4 servers, whatever the law of the service
    let b = (1..=4).fold(1.0, |b, k| 4.0 * b / (f64::from(k) + 4.0 * b));
    let seen = summary(&answer).station(Place::Tool(0)).unwrap().turned_away;
    assert!(((seen.value - b) / seen.se).abs() < 4.0, "{seen:?} {b}");
    // and at the same time: a call that is turned away has failed
    let failed = 1.0 - answer.summary.rate(agent_sim::stats::Rate::Availability).unwrap().value;
    assert_close(failed, seen.value, 1e-3);
}

#[test]
fn a_bucket_of_five_serves_five_at_once_then_one_every_half_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut times = "seconds\n".to_owned();
    for _ in 0..10 {
        times.push_str("0\n");
    }
    for step in 1..=6 {
        times.push_str(&format!("{0}\n{0}\n", f64::from(step) * 0.5));
    }
    std::fs::write(folder.path().join("times.csv"), times).unwrap();
    let text = "session.turns = 1
[fleet]
arrivals = { file = \"times.csv\" }
horizon = \"10s\"
replications = 1
[fleet.limits]
requests_per_minute = 120
burst = \"2500ms\"";
    let request = agent_sim::scenario::Request::default();
    let scenario = Scenario::parse(text, "test.toml", folder.path(), &request).unwrap();
    let answer = answer(scenario);
    let ended = |outcome| answer.summary.outcomes.iter().find(|(other, _)| *other == outcome).unwrap().1;
    // 5 at time 0, then one of two each half second
    assert_eq!(ended(agent_sim::session::Outcome::Answered), 5 + 6);
    assert_eq!(ended(agent_sim::session::Outcome::Failed), 5 + 6);
    assert!(answer.checks.checks.iter().any(|check| check.id == "limit.bucket" && check.pass));
    let limit = &answer.fleet.as_ref().unwrap().replications[0].limits[0];
    assert_close(limit.worst_window, 5.0, 1e-9);
}

#[test]
fn retry_after_is_a_floor_under_the_wait() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("times.csv"), "seconds\n0\n0\n").unwrap();
    let text = "model.retry = { attempts = 2, base = \"1ms\", jitter = \"none\" }
session.turns = 1
[fleet]
arrivals = { file = \"times.csv\" }
horizon = \"5m\"
replications = 1
[fleet.limits]
requests_per_minute = 1
burst = \"1m\"
rules = \"anthropic\"";
    let request = agent_sim::scenario::Request::default();
    let scenario = Scenario::parse(text, "test.toml", folder.path(), &request).unwrap();
    let records = records(&scenario);
    let mut latencies: Vec<f64> = records.iter().map(|record| record.latency_s).collect();
    latencies.sort_by(f64::total_cmp);
    assert_eq!(latencies, [0.0, 60.0]);
}

#[test]
fn what_a_provider_counts_decides_what_passes() {
    let text = |rules: &str| {
        format!(
            "[model]\nfirst_token = \"1s\"\nmax_output = 4_000\n[prompt]\nsystem = 9_000\ntask = 1_000\n\
             [session]\nturns = 1\noutput = 500\n[cache]\nlifetime = \"5m\"\n\
             [price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n\
             [fleet]\narrivals = {{ poisson = {{ per_hour = 3600 }} }}\nhorizon = \"2h\"\nreplications = 5\n\
             [fleet.limits]\n{rules}"
        )
    };
    let used = |rules: &str, kind: &str| {
        let answer = answer(scenario(&text(rules)));
        let limit = summary(&answer).limits.iter().find(|limit| limit.kind.key() == kind).unwrap().clone();
        limit.used.value * limit.per_minute / 60.0
    };
    // a session a second: of 10,000 tokens 9,000 are read, 500 are written
    let any = "rules = \"anthropic\"\ninput_tokens_per_minute = 100_000_000\noutput_tokens_per_minute = 100_000_000";
    assert_close(used(any, "input_tokens_per_minute"), 1_000.0, 0.05);
    assert_close(used(any, "output_tokens_per_minute"), 500.0, 0.05);
    let all = "rules = \"openai\"\ntokens_per_minute = 100_000_000";
    assert_close(used(all, "tokens_per_minute"), 10_000.0, 0.05);
    let counted = "rules = \"anthropic\"\ncache_reads_count = true\ninput_tokens_per_minute = 100_000_000";
    assert_close(used(counted, "input_tokens_per_minute"), 10_000.0, 0.05);
    let settled = "rules = \"bedrock\"\nburndown = 5\ntokens_per_minute = 100_000_000";
    assert_close(used(settled, "tokens_per_minute"), 1_000.0 + 5.0 * 500.0, 0.05);
}

#[test]
fn sessions_keep_their_prefix_warm_for_each_other() {
    let text = "[prompt]\nsystem = 5_000\n[session]\nturns = 1\noutput = 10\n[cache]\nlifetime = \"5m\"\n\
        [price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n\
        [fleet]\narrivals = { poisson = { per_hour = 10 } }\nhorizon = \"600h\"\nwarm_up = \"20h\"\nreplications = 20";
    let right = answer(scenario(text));
    assert_agrees(&right, &["cache.shared_prefix"]);
    // a lifetime that is wrong by a tenth
    let fleet = right.fleet.as_ref().unwrap();
    let mut wrong = right.scenario.model.clone();
    wrong.cache.prefix_lifetime_s *= 1.1;
    let shared = wrong.fleet.clone().unwrap();
    assert!(!check_fleet(&wrong, &shared, &[], &fleet.summary, &fleet.replications).all_pass());
}

#[test]
fn sessions_that_begin_together_all_write_the_prefix() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("times.csv"), "seconds\n0\n0\n0\n1\n2.5\n400\n").unwrap();
    let text = "[model]\nfirst_token = \"2s\"\n[prompt]\nsystem = 5_000\n[session]\nturns = 1\n[cache]\nlifetime = \"5m\"\n\
        [price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n\
        [fleet]\narrivals = { file = \"times.csv\" }\nhorizon = \"1h\"\nreplications = 1";
    let request = agent_sim::scenario::Request::default();
    let scenario = Scenario::parse(text, "test.toml", folder.path(), &request).unwrap();
    let fleet = scenario.model.fleet.as_ref().unwrap();
    let played = play_fleet(&scenario.model, fleet, 1, &Records::default(), |_| Records::default(), &|_| {});
    // the first token of those at 0 comes at 2 s: the one at 2.5 s reads, the one after six minutes writes again
    let read: Vec<u64> = played[0].sample.all.values().map(|record| record.cache_read_tokens).collect();
    assert_eq!(read, [0, 0, 0, 0, 5_000, 0]);
}

const STORM: &str = "model.first_token = \"1s\"
[session]
turns = 5
[[tools]]
name = \"search\"
latency = \"200ms\"
capacity = 20
[retry]
attempts = 4
base = \"1s\"
[fleet]
arrivals = { poisson = { per_hour = 7200 } }
horizon = \"20m\"
warm_up = \"0s\"
replications = 6
[[fleet.outages]]
of = \"search\"
from = \"10m\"
for = \"2m\"";

#[test]
fn an_outage_piles_up_retries_and_a_breaker_spares_them() {
    let calls = |answer: &Answer, minute: usize| {
        let series = summary(answer).series(SeriesKind::CallsPerS(Place::Tool(0))).unwrap();
        // three pieces a minute
        series.values[3 * minute + 1].unwrap().value
    };
    let plain = answer(scenario(STORM));
    assert!(plain.checks.all_pass(), "{:#?}", plain.checks.checks);
    // four attempts where one was enough
    assert!(calls(&plain, 11) > 2.5 * calls(&plain, 9), "{} {}", calls(&plain, 11), calls(&plain, 9));
    assert!(calls(&plain, 16) < 1.3 * calls(&plain, 9));
    let failures = summary(&plain).series(SeriesKind::FailuresPerS(Place::Tool(0))).unwrap();
    assert!(failures.values[3 * 8].unwrap().value <= 0.0 && failures.values[3 * 11].unwrap().value > 1.0);
    let guarded = answer(scenario_with(STORM, &["breaker={ failures = 10, cooldown = \"5s\" }"]));
    assert!(guarded.checks.all_pass());
    assert!(calls(&guarded, 11) < 0.2 * calls(&guarded, 9));
    assert!(calls(&guarded, 14) > 0.8 * calls(&guarded, 9));
}

#[test]
fn an_outage_of_the_model_ends_sessions_that_dont_try_again() {
    let text = "model.first_token = \"1s\"\nmodel.timeout = \"3s\"\n[session]\nturns = 1\n[fleet]\n\
        arrivals = { poisson = { per_hour = 36000 } }\nhorizon = \"20m\"\nwarm_up = \"0s\"\nreplications = 10\n\
        [[fleet.outages]]\nof = \"model\"\nfrom = \"5m\"\nfor = \"5m\"\nshare = 0.4";
    for how in ["rejected", "lost"] {
        let answer = answer(scenario_with(
            text,
            &[&format!(
                "fleet.outages=[{{ of = \"model\", from = \"5m\", for = \"5m\", share = 0.4, as = \"{how}\" }}]"
            )],
        ));
        let failed = answer.summary.rate(agent_sim::stats::Rate::Answered).unwrap();
        // a quarter of the time, four in ten
        assert!(((failed.value - 0.9) / failed.se).abs() < 4.0, "{how}: {failed:?}");
        assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
        assert_close(mean(&answer, "latency_s"), if how == "lost" { 1.2 } else { 0.9 }, 0.02);
    }
}

#[test]
fn more_than_can_be_done_is_told_before_anything_is_played() {
    let error =
        simulate(scenario_with(SHARED_TOOL, &["fleet.arrivals.poisson.per_hour=2000"]), Options::default(), &Silent)
            .unwrap_err();
    assert!(matches!(error, Error::Unstable(_)));
    assert_eq!(error.exit_code(), 1);
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn a_fleet_that_grows_is_noticed_while_it_is_played() {
    // a limit that is there, but doesn't bind: then it isn't known before
    let text = format!("{SHARED_TOOL}\n[fleet.limits]\nrequests_per_minute = 100_000");
    let grows = answer(scenario_with(&text, &["fleet.arrivals.poisson.per_hour=2000"]));
    let growth = summary(&grows).growth.clone().unwrap();
    assert_eq!(growth.saturated, Some(Bottleneck::Station(Place::Tool(0))));
    // three calls of two seconds each for three servers: 5,400 calls an hour. Where the wait grows by d a second, what comes
    // at a rate goes at its 1/(1+d): 2000 (r + r² + r³) = 5400, and 2000 (1 - r³) sessions more an hour
    let mut r = 1.0_f64;
    for _ in 0..200 {
        r -= (r + r * r + r * r * r - 2.7) / (1.0 + 2.0 * r + 3.0 * r * r);
    }
    let expected = 2000.0 * (1.0 - r * r * r);
    assert!(((growth.per_hour.value - expected) / growth.per_hour.se).abs() < 4.0, "{growth:?} {expected}");
    assert_close(growth.per_hour.value, expected, 0.05);
    assert!(grows.summary.metrics.is_empty());
    let settles = answer(scenario(&text));
    assert!(summary(&settles).growth.is_none());
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let text = |threads: usize| {
        let played =
            |scenario: Scenario| simulate(scenario, Options { threads: Some(threads), tables: None }, &Silent).unwrap();
        let storm = played(scenario_with(STORM, &["fleet.replications=3"]));
        let queue = played(model_queue(14_400.0, 5, SECOND, &["fleet.horizon=3h", "fleet.replications=3"]));
        agent_sim::report::json(&[storm, queue]).unwrap()
    };
    let one = text(1);
    assert_eq!(one, text(2));
    assert_eq!(one, text(5));
    assert_ne!(one, {
        let other = scenario_with(STORM, &["fleet.replications=3", "run.seed=2"]);
        let queue = model_queue(14_400.0, 5, SECOND, &["fleet.horizon=3h", "fleet.replications=3"]);
        agent_sim::report::json(&[answer(other), answer(queue)]).unwrap()
    });
}

#[test]
fn intervals_over_replications_cover_the_truth() {
    let truth = mmc_mean_wait(1, 0.5, 1.0);
    let covered = (1..=200)
        .filter(|seed| {
            let sets = ["fleet.replications=10", "fleet.horizon=3h", "fleet.warm_up=30m", &format!("run.seed={seed}")];
            let answer = answer(model_queue(1_800.0, 1, SECOND, &sets));
            let wait = summary(&answer).station(Place::Model).unwrap().wait_s.unwrap();
            wait.ci95[0] <= truth && truth <= wait.ci95[1]
        })
        .count();
    // 190 of 200 are expected, give or take 3.1
    assert!((178..=200).contains(&covered), "{covered}");
}

#[test]
fn every_value_is_kept_where_most_are_the_same() {
    // one session in 500 calls the tool, so that some chunks of 512 have no call at all
    let text = "model.first_token = { exponential = { mean = \"1s\" } }\nsession.turns = 2\n[[tools]]\nname = \"rare\"\n\
        calls = { poisson = { mean = 0.002 } }\nlatency = \"1s\"\n[fleet]\narrivals = { poisson = { per_hour = 20000 } }\n\
        horizon = \"1h\"\nwarm_up = \"0s\"\nreplications = 1";
    let scenario = scenario(text);
    let (model, seed) = (&scenario.model, scenario.run.seed);
    let records = records(&scenario);
    for most_sessions in [100_000, 20_000_000] {
        let fresh = || Sample::new(model, most_sessions, &[]);
        let fleet = model.fleet.as_ref().unwrap();
        let played = play_fleet(model, fleet, seed, &fresh(), |_| fresh(), &|_| {});
        for (name, get) in
            [("tool_calls", (|r| r.tool_calls as f64) as fn(&Record) -> f64), ("latency_s", |r| r.latency_s)]
        {
            let metric = *Metric::ALL.iter().find(|metric| metric.quantity().name() == name).unwrap();
            let mut wanted: Vec<f64> = records.iter().map(get).collect();
            wanted.sort_by(f64::total_cmp);
            let moments = played[0].sample.moments(metric.quantity());
            assert_eq!(moments.n, wanted.len() as u64);
            assert_close(moments.mean, wanted.iter().sum::<f64>() / wanted.len() as f64, 1e-12);
            match played[0].sample.values(metric) {
                Some(mut values) => {
                    values.sort_by(f64::total_cmp);
                    assert_eq!(values, wanted, "{name}");
                    let none = wanted.partition_point(|value| *value <= 0.0);
                    assert_eq!(played[0].sample.count_at_most(metric, 0.0), Some(none), "{name}");
                }
                None => assert_eq!(most_sessions, 20_000_000),
            }
        }
    }
    let called = records.iter().filter(|record| record.tool_calls > 0).count();
    assert!((10..=90).contains(&called), "{called}");
}

#[test]
fn latency_over_time_is_that_of_the_sessions_that_end_then() {
    // two seconds each
    let text = "model.first_token = \"2s\"\nsession.turns = 1\n[fleet]\narrivals = { poisson = { per_hour = 3600 } }\n\
        horizon = \"1h\"\nwarm_up = \"0s\"\nreplications = 2\nlimits.concurrent = 1000";
    let answer = answer(scenario(text));
    for kind in [SeriesKind::LatencyP50, SeriesKind::LatencyP99] {
        let series = summary(&answer).series(kind).unwrap();
        assert!(series.values.iter().all(|value| value.unwrap().value == 2.0), "{kind:?}");
    }
    // one in ten takes ten times as long: the median and the 99th percentile of a piece are the two values themselves
    let text = text.replace("\"2s\"", "{ mixture = [{ weight = 0.9, of = \"2s\" }, { weight = 0.1, of = \"20s\" }] }");
    let played = crate::support::answer(scenario(&text));
    for (kind, wanted) in [(SeriesKind::LatencyP50, 2.0), (SeriesKind::LatencyP99, 20.0)] {
        let series = summary(&played).series(kind).unwrap();
        let right = series.values.iter().filter(|value| value.is_some_and(|value| value.value == wanted)).count();
        assert!(right >= 55, "{kind:?}: {right} of 60");
    }
}

#[test]
fn a_profile_follows_its_hours_and_begins_again() {
    let text = "session.turns = 1\n[fleet]\narrivals = { profile = { per_hour = [3600, 0, 7200] } }\nhorizon = \"6h\"\n\
        replications = 40";
    let answer = answer(scenario(text));
    let series = summary(&answer).series(SeriesKind::ArrivalsPerS).unwrap();
    // ten pieces an hour
    let hour = |hour: usize| (0..10).map(|piece| series.values[10 * hour + piece].unwrap().value).sum::<f64>() / 10.0;
    for (at, wanted) in [1.0, 0.0, 2.0, 1.0, 0.0, 2.0].into_iter().enumerate() {
        assert!((hour(at) - wanted).abs() < 4.0 * (wanted / 3600.0 / 40.0_f64).sqrt() + 1e-12, "{at}: {}", hour(at));
    }
    assert_close(summary(&answer).ended_per_hour.value, 3600.0, 0.01);
}

#[test]
fn a_plan_finds_the_least_capacity_and_the_most_load() {
    let text = "model.first_token = { exponential = { mean = \"1s\" } }\nsession.turns = 1\n[fleet]\n\
        arrivals = { poisson = { per_hour = 14400 } }\nhorizon = \"3h\"\nwarm_up = \"1h\"\nreplications = 10\nlimits.concurrent = 20";
    let base = scenario(text);
    let found = |key: &str, low: f64, high: f64, kind, goal: &str| {
        let goals = vec![Goal::parse(goal, &base.model, &base.tools).unwrap()];
        let unknown = agent_sim::simulate::Unknown { key: key.to_owned(), kind, low, high };
        let load = |value: &str| Ok(scenario_with(text, &[&format!("{key}={value}")]));
        plan(&unknown, goals, &load, Options::default(), &Silent).unwrap()
    };
    // Erlang C: 5 servers wait 0.554 s, 6 wait 0.142 s
    let least =
        found("fleet.limits.concurrent", 1.0, 40.0, agent_sim::simulate::Kind::Whole, "model.wait_s.mean < 0.3");
    assert_eq!(least.found, Found::Least { x: 6.0, between: [Some(5.0), Some(6.0)] });
    let most = found(
        "fleet.arrivals.poisson.per_hour",
        10_000.0,
        80_000.0,
        agent_sim::simulate::Kind::Real,
        "model.wait_s.mean <= 0.2",
    );
    let Found::Most { x, between: [Some(surely), Some(surely_not)] } = most.found else { panic!("{:?}", most.found) };
    assert!(surely <= x && x <= surely_not);
    let wait = |per_hour: f64| mmc_mean_wait(20, per_hour / 3600.0, 1.0);
    assert!(
        wait(surely) < 0.2 && wait(surely_not) > 0.2,
        "{surely} {x} {surely_not}: {} {}",
        wait(surely),
        wait(surely_not)
    );
    let nowhere =
        found("fleet.limits.concurrent", 1.0, 4.0, agent_sim::simulate::Kind::Whole, "model.wait_s.mean < 0.3");
    assert_eq!(nowhere.found, Found::Nowhere);
    assert!(nowhere.points.iter().all(|point| point.x > 3.5 || point.unsettled.is_some()));
}

#[test]
fn figures_have_names_that_are_read_again() {
    let scenario = scenario(SHARED_TOOL);
    for figure in Figure::all(&scenario.model) {
        let name = figure.name(&scenario.tools);
        assert_eq!(Figure::parse(&name, &scenario.model, &scenario.tools).unwrap(), figure, "{name}");
    }
    let unknown = Figure::parse("serch.wait_s.p99", &scenario.model, &scenario.tools).unwrap_err();
    assert!(unknown.to_string().contains("search.wait_s.p99"), "{unknown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn books_balance_and_buckets_hold_whatever_happens(
        per_hour in 200.0..20_000.0_f64,
        capacity in 1_u64..30,
        queue in 0_u64..50,
        attempts in 1_u64..6,
        timeout_ms in 300_u64..5_000,
        hedge in proptest::bool::ANY,
        sequential in proptest::bool::ANY,
        requests in 60_u64..20_000,
        tokens in 20_000_u64..5_000_000,
        burst_s in 1_u64..90,
        concurrent in 1_u64..400,
        share in 0.0..1.0_f64,
        seed in 1_u64..1_000,
    ) {
        let hedged = if hedge { format!("hedge_after = \"{}ms\"\n", timeout_ms / 2) } else { String::new() };
        let text = format!(
            "[model]\nfirst_token = {{ lognormal = {{ p50 = \"500ms\", p99 = \"4s\" }} }}\nmax_output = 2_000\n\
             retry = {{ attempts = 3, base = \"200ms\" }}\n[prompt]\nsystem = 3_000\n[session]\nturns = {{ geometric = {{ mean = 4 }} }}\n\
             output = 100\ntool_calls = \"{}\"\n\
             [[tools]]\nname = \"search\"\ncalls = 2\nresult = 100\nlatency = {{ exponential = {{ mean = \"400ms\" }} }}\n\
             capacity = {capacity}\nqueue = {queue}\ntimeout = \"{timeout_ms}ms\"\n{hedged}lost_reply = 0.02\nrejected = 0.01\n\
             retry = {{ attempts = {attempts}, base = \"100ms\" }}\n\
             [[tools]]\nname = \"read\"\nafter = [\"search\"]\nlatency = \"50ms\"\ncapacity = 5\n\
             [cache]\nlifetime = \"5m\"\n[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n\
             [breaker]\nfailures = 30\ncooldown = \"5s\"\n\
             [run]\nseed = {seed}\n\
             [fleet]\narrivals = {{ poisson = {{ per_hour = {per_hour} }} }}\nhorizon = \"10m\"\nwarm_up = \"2m\"\nreplications = 2\n\
             [fleet.limits]\nrequests_per_minute = {requests}\ninput_tokens_per_minute = {tokens}\nburst = \"{burst_s}s\"\nconcurrent = {concurrent}\n\
             rules = \"anthropic\"\n\
             [[fleet.outages]]\nof = \"search\"\nfrom = \"4m\"\nfor = \"1m\"\nshare = {share}\n\
             [[fleet.outages]]\nof = \"model\"\nfrom = \"6m\"\nfor = \"30s\"\nshare = {share}",
            if sequential { "sequential" } else { "parallel" },
        );
        let scenario = scenario(&text);
        let fleet = scenario.model.fleet.clone().unwrap();
        let answer = with_threads(Some(1), || simulate(scenario, Options::default(), &Silent)).unwrap().unwrap();
        prop_assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
        for replication in &answer.fleet.as_ref().unwrap().replications {
            for station in &replication.stations {
                prop_assert!(station.busy.most <= station.servers);
                prop_assert!(station.waiting.most <= station.places);
            }
        }
        for record in records(&answer.scenario) {
            prop_assert!(record.latency_s >= record.tool_s - 1e-6);
            prop_assert!(record.latency_s + 1e-6 >= record.model_s + record.tool_s + record.model_queue_s, "{record:?}");
            prop_assert!(record.latency_s <= fleet.horizon_s + 1e-6);
            prop_assert!(record.executions <= 2 * record.attempts && record.attempts <= attempts.max(1) * record.tool_calls);
        }
    }
}

#[test]
fn too_much_for_a_limit_or_a_short_queue_doesnt_settle_either() {
    let limit = "model.retry = { attempts = 1000, base = \"1s\" }\nmodel.first_token = \"1s\"\nsession.turns = 5\n[fleet]\n\
        arrivals = { poisson = { per_hour = 3600 } }\nhorizon = \"2h\"\nwarm_up = \"20m\"\nreplications = 5\n\
        limits.requests_per_minute = 150";
    let growth = summary(&answer(scenario(limit))).growth.clone().unwrap();
    assert_eq!(growth.saturated, Some(Bottleneck::Limit(LimitKind::Requests)));
    let queue = "model.first_token = \"1s\"\nsession.turns = 2\n[[tools]]\nname = \"t\"\nlatency = \"1s\"\ncapacity = 2\nqueue = 10\n\
        retry = { attempts = 1000, base = \"1s\" }\n[fleet]\narrivals = { poisson = { per_hour = 10800 } }\nhorizon = \"1h\"\n\
        replications = 5";
    for replications in [5, 1] {
        let answer = answer(scenario_with(queue, &[&format!("fleet.replications={replications}")]));
        let growth = summary(&answer).growth.clone().unwrap();
        assert_eq!(growth.saturated, Some(Bottleneck::Station(Place::Tool(0))));
        assert!((2_500.0..5_000.0).contains(&growth.per_hour.value), "{growth:?}");
    }
}

#[test]
fn sessions_that_outlast_the_warm_up_arent_taken_for_settled() {
    let text = "session.turns = 2\n[[tools]]\nname = \"t\"\nlatency = { exponential = { mean = \"30m\" } }\n[fleet]\n\
        arrivals = { poisson = { per_hour = 3600 } }\nreplications = 5";
    let growth = summary(&answer(scenario(text))).growth.clone().unwrap();
    assert_eq!(growth.saturated, None);
    let settled = answer(scenario_with(text, &["fleet.horizon=12h", "fleet.warm_up=5h"]));
    assert!(summary(&settled).growth.is_none());
    assert_close(mean(&settled, "latency_s"), 1_800.0, 0.02);
    let shorter = answer(scenario_with(text, &["fleet.horizon=6h", "fleet.warm_up=2h"]));
    let told = agent_sim::report::terminal(&shorter, agent_sim::report::Style::PLAIN);
    assert!(told.contains("longer ones are hardly seen"), "{told}");
}

#[test]
fn only_what_is_surely_too_much_is_refused() {
    let plays = |text: &str| simulate(scenario(text), Options::default(), &Silent).is_ok();
    // half of the calls are denied
    let denied = "session.turns = 2\n[[tools]]\nname = \"t\"\nlatency = \"1s\"\ncapacity = 1\n\
        approval = { share = 1.0, wait = \"1s\", denied = 0.5 }\n\
        [fleet]\narrivals = { poisson = { per_hour = 4320 } }\nreplications = 2";
    assert!(plays(denied));
    // what others keep cached is read in no time
    let cached = "model.first_token = \"100ms\"\nmodel.prefill_rate = 10_000\nprompt.system = 100_000\nsession.turns = 1\n\
        [cache]\nlifetime = \"5m\"\n[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n\
        [fleet]\narrivals = { poisson = { per_hour = 720 } }\nreplications = 2\nlimits.concurrent = 1";
    assert!(plays(cached));
    // a budget of time ends what waits
    let cut = "model.first_token = \"1s\"\nsession.turns = 4\nbudget = { time = \"30s\" }\n[fleet]\n\
        arrivals = { poisson = { per_hour = 6000 } }\nhorizon = \"1h\"\nreplications = 3\nlimits.concurrent = 4";
    let answer = answer(scenario(cut));
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    // nothing is called that there is no time for, and nobody waits beyond it
    let records = records(&answer.scenario);
    assert!(records.iter().any(|record| record.queue_s > 25.0));
    for record in records {
        // each call takes a second, but for the one that the end cuts
        let turns = record.turns as f64;
        assert!(record.model_s <= turns + 1e-6 && record.model_s > turns - 1.0, "{record:?}");
        assert!(record.queue_s + record.model_s <= 30.0 + 1e-6 && record.latency_s <= 30.0 + 1e-6, "{record:?}");
    }
}

#[test]
fn a_deadline_of_model_calls_ends_waits_too() {
    let text = "[model]\nfirst_token = { exponential = { mean = \"1s\" } }\nrejected = 0.5\n\
        retry = { attempts = 5, base = \"10ms\", deadline = \"3s\" }\n[session]\nturns = 1\n[fleet]\n\
        arrivals = { poisson = { per_hour = 6000 } }\nhorizon = \"1h\"\nreplications = 3\nlimits.concurrent = 2";
    let answer = answer(scenario(text));
    assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    let records = records(&answer.scenario);
    assert!(records.iter().any(|record| record.outcome == agent_sim::session::Outcome::Failed));
    for record in records {
        assert!(record.model_s <= 3.0 + 1e-6, "{record:?}");
    }
}

/// A deadline needs neither a timeout nor a fault to end a call, alone or where others have a say in it.
#[test]
fn a_deadline_ends_a_model_call_that_only_takes_too_long() {
    let text = "[model]\nfirst_token = { uniform = { min = \"20s\", max = \"30s\" } }\nretry = { attempts = 2, deadline = \"25s\" }\n\
        [session]\nturns = 1\n";
    let fleet =
        "[fleet]\narrivals = { poisson = { per_hour = 600 } }\nhorizon = \"4h\"\nwarm_up = \"0s\"\nreplications = 2\n";
    let limits = [
        "",
        "limits.concurrent = 1000",
        "limits.requests_per_minute = 6000",
        "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[cache]\nlifetime = \"5m\"",
    ];
    let fleets = limits.map(|more| records(&scenario(&format!("{text}{fleet}{more}"))));
    let mut alone = Records::default();
    let by_itself = scenario(text);
    Play { model: &by_itself.model, seed: 1, sessions: 0..2_000 }.run(&mut alone, &|_| {});
    for records in fleets.into_iter().chain([alone.all.into_values().collect()]) {
        let failed = records.iter().filter(|record| record.outcome == Outcome::Failed).count();
        let share = failed as f64 / records.len() as f64;
        assert!((share - 0.5).abs() < 4.0 * (0.25 / records.len() as f64).sqrt(), "{failed} of {}", records.len());
        for record in &records {
            assert!(
                record.latency_s <= 25.0 + 1e-6
                    && (record.outcome == Outcome::Failed) == (record.latency_s > 25.0 - 1e-6)
            );
            assert_eq!((record.model_attempts, record.model_executions), (1, 1));
        }
    }
}

#[test]
fn forms_that_dont_hold_arent_checked() {
    let prefix = "model.first_token = \"0s\"\nprompt.system = 5_000\nsession.turns = 1\n[cache]\nlifetime = \"5m\"\n\
        [price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[fleet]\n\
        arrivals = { poisson = { per_hour = 12 } }\nhorizon = \"200h\"\nreplications = 5\nlimits.concurrent = 1";
    let wild = "session.turns = 2\n[[tools]]\nname = \"t\"\nlatency = { pareto = { min = \"200ms\", alpha = 2.1 } }\ncapacity = 1\n\
        [fleet]\narrivals = { poisson = { per_hour = 3600 } }\nhorizon = \"10h\"\nreplications = 5";
    for (text, id) in [(prefix, "cache.shared_prefix"), (wild, "queue.mg1")] {
        let answer = answer(scenario(text));
        assert!(answer.checks.checks.iter().all(|check| check.id != id));
        assert!(answer.checks.not_checked.iter().any(|not| not.id == id));
        assert!(answer.checks.all_pass(), "{:#?}", answer.checks.checks);
    }
}

#[test]
fn a_rate_next_to_nothing_ends_all_the_same() {
    let text = "session.turns = 1\n[fleet]\narrivals = { profile = { per_hour = [1e-300] } }\nhorizon = \"24h\"\nreplications = 2";
    assert_eq!(answer(scenario(text)).summary.sessions, 0);
}

#[test]
fn a_plan_of_whole_numbers_goes_to_the_last_one_and_sees_what_fails_early() {
    let text = "session.turns = 2\n[[tools]]\nname = \"t\"\nlatency = { exponential = { mean = \"10s\" } }\ncapacity = 300\n[fleet]\n\
        arrivals = { poisson = { per_hour = 72000 } }\nhorizon = \"1h\"\nreplications = 4";
    let base = scenario(text);
    let goals = || vec![Goal::parse("t.wait_s.mean <= 0.5", &base.model, &base.tools).unwrap()];
    let key = "tools.t.capacity";
    let load = |value: &str| Ok(scenario_with(text, &[&format!("{key}={value}")]));
    let unknown = |low: f64, high: f64| agent_sim::simulate::Unknown {
        key: key.to_owned(),
        kind: agent_sim::simulate::Kind::Whole,
        low,
        high,
    };
    let planned = plan(&unknown(150.0, 400.0), goals(), &load, Options::default(), &Silent).unwrap();
    let Found::Least { x, .. } = planned.found else { panic!("{:?}", planned.found) };
    let below = planned.points.iter().find(|point| point.x.total_cmp(&(x - 1.0)).is_eq()).unwrap();
    assert!(!below.meets());
    // with few requests a minute sessions fail at once, and are fast
    let text = "model.first_token = \"1s\"\nmodel.retry = { attempts = 3, base = \"1s\", jitter = \"none\" }\nsession.turns = 8\n[fleet]\n\
        arrivals = { poisson = { per_hour = 1800 } }\nhorizon = \"1h\"\nreplications = 4\nlimits = { requests_per_minute = 300, burst = \"10s\" }";
    let base = scenario(text);
    let goals = vec![Goal::parse("latency_s.p99 <= 12", &base.model, &base.tools).unwrap()];
    let load = |value: &str| Ok(scenario_with(text, &[&format!("fleet.limits.requests_per_minute={value}")]));
    let unknown = agent_sim::simulate::Unknown {
        key: "fleet.limits.requests_per_minute".to_owned(),
        kind: agent_sim::simulate::Kind::Real,
        low: 10.0,
        high: 1_000.0,
    };
    let planned = plan(&unknown, goals, &load, Options::default(), &Silent).unwrap();
    let Found::Least { x, .. } = planned.found else { panic!("{:?}", planned.found) };
    assert!(x > 200.0 && planned.is_mixed(), "{x} {:#?}", planned.points);
    let told = agent_sim::report::plan_terminal(&planned, agent_sim::report::Style::PLAIN);
    assert!(told.contains("answered >= 0.99"), "{told}");
}

#[test]
fn thresholds_take_figures_of_fleets() {
    let text = format!("{SHARED_TOOL}\n[thresholds]\n\"search.utilisation\" = \"< 0.5\"\n\"in_progress\" = \"< 100\"");
    let answer = answer(scenario_with(&text, &["fleet.replications=5", "fleet.horizon=3h"]));
    let not_kept = agent_sim::report::not_kept(&answer, false);
    assert_eq!(not_kept.len(), 1);
    assert!(not_kept[0].starts_with("search.utilisation < 0.5: NOT kept, at 0."), "{not_kept:?}");
    let alone = Scenario::parse(
        "session.turns = 2\n[thresholds]\n\"in_progress\" = \"< 100\"",
        "test.toml",
        "".as_ref(),
        &agent_sim::scenario::Request::default(),
    );
    let said = "`in_progress` is a figure of many sessions at once, and there is no [fleet] here";
    assert!(alone.unwrap_err().to_string().contains(said));
}

#[test]
fn what_is_used_at_the_peak_of_a_day_is_told() {
    let text = "model.first_token = \"1s\"\nsession.turns = 3\n[fleet]\n\
        arrivals = { profile = { per_hour = [60, 1200, 60], scale = 2 } }\nreplications = 5\nlimits.requests_per_minute = 200";
    let answer = answer(scenario(text));
    let limit = &summary(&answer).limits[0];
    // 120 requests a minute of 200 in the middle hour, and a third of that on average
    assert_close(limit.used_at_peak.value, 0.6, 0.1);
    assert_close(limit.used.value, 0.22, 0.05);
    let (what, share) = summary(&answer).bottleneck().unwrap();
    assert_eq!(what, Bottleneck::Limit(LimitKind::Requests));
    assert_close(share, limit.used_at_peak.value, 1e-12);
}

#[test]
fn every_hour_of_a_fleets_day_costs_what_its_sessions_cost() {
    let mut answer = shipped_scenario("rate-limits.toml", None);
    answer.model.fleet.as_mut().unwrap().replications = 3;
    let answer = crate::support::answer(answer);
    let cost = summary(&answer).cost_per_hour_usd.unwrap().value;
    assert_close(cost, mean(&answer, "cost_usd") * summary(&answer).ended_per_hour.value, 1e-3);
}

#[test]
fn a_request_that_nobody_waits_for_is_executed_and_no_wait() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("times.csv"), "seconds\n0\n0.5\n1\n").unwrap();
    let text = "session.turns = 2\n[[tools]]\nname = \"t\"\nlatency = \"10s\"\ncapacity = 1\ntimeout = \"15s\"\n[fleet]\n\
        arrivals = { file = \"times.csv\" }\nhorizon = \"10m\"\nreplications = 1";
    let request = agent_sim::scenario::Request::default();
    let scenario = Scenario::parse(text, "test.toml", folder.path(), &request).unwrap();
    let all = records(&scenario);
    // the first is served at once; the second after 9.5 s and too late; the third's client has gone when its turn comes
    let seen: Vec<(f64, f64, u64, u64)> =
        all.iter().map(|r| (r.tool_s, r.queue_s, r.executions, r.succeeded_calls)).collect();
    assert_eq!(seen, [(10.0, 0.0, 1, 1), (15.0, 9.5, 1, 0), (15.0, 0.0, 1, 0)]);
    let station = &answer(scenario).fleet.unwrap().replications[0].stations[1];
    assert_eq!((station.came.all, station.served.all), (3, 3));
}

#[test]
fn a_queue_that_nobody_waits_for_any_more_grows_nevertheless() {
    // 1,740 calls an hour of two seconds each are nearly all that one server can do; tried twice they are far more. Sessions
    // give up after ten seconds and don't pile up; the calls that they leave behind do.
    let text = "model.first_token = \"1s\"\nsession.turns = 4\n[[tools]]\nname = \"search\"\n\
                latency = { exponential = { mean = \"2s\" } }\ntimeout = \"10s\"\ncapacity = 1\n\
                retry = { attempts = 2, base = \"1s\", jitter = \"none\" }\n[fleet]\n\
                arrivals = { poisson = { per_hour = 580 } }\nhorizon = \"3h\"\nwarm_up = \"30m\"\nreplications = 4";
    let answered = answer(scenario(text));
    let growth = summary(&answered).growth.clone().unwrap();
    assert_eq!(growth.waiting_at, Some(Place::Tool(0)));
    assert_eq!(growth.saturated, Some(Bottleneck::Station(Place::Tool(0))));
    // two attempts of each call come, 1,800 an hour are served
    assert!(
        (growth.per_hour.value - (2.0 * 1_740.0 - 1_800.0)).abs() < 4.0 * growth.per_hour.se.max(20.0),
        "{growth:?}"
    );
    assert!(answered.summary.metrics.is_empty());
    let told = agent_sim::report::growth_text(&answered, &growth);
    assert!(told.starts_with("unstable: calls that wait for search grow by 1,"), "{told}");
    // places to wait that come to an end don't grow, nor does what is only busy
    for settles in ["tools.search.queue=20", "tools.search.capacity=2", "fleet.arrivals.poisson.per_hour=250"] {
        assert!(summary(&answer(scenario_with(text, &[settles]))).growth.is_none(), "{settles}");
    }
}

/// The plan of a scenario over whole numbers of a key, and what is told of it.
fn planned(text: &str, key: &str, [low, high]: [f64; 2], goals: &[&str]) -> (agent_sim::simulate::Plan, String) {
    let base = scenario(text);
    let goals = goals.iter().map(|goal| Goal::parse(goal, &base.model, &base.tools).unwrap()).collect();
    let load = |value: &str| Ok(scenario_with(text, &[&format!("{key}={value}")]));
    let kind = agent_sim::simulate::Kind::Whole;
    let unknown = agent_sim::simulate::Unknown { key: key.to_owned(), kind, low, high };
    let planned = plan(&unknown, goals, &load, Options::default(), &Silent).unwrap();
    let told = agent_sim::report::plan_terminal(&planned, agent_sim::report::Style::PLAIN);
    (planned, told)
}

#[test]
fn a_plan_without_an_answer_says_what_sessions_miss_alone() {
    // eight calls of one second and seven of two: 22 s for each session, however many servers there are
    let text = "model.first_token = \"1s\"\nsession.turns = 8\n[[tools]]\nname = \"search\"\nlatency = \"2s\"\ncapacity = 9\n\
                [fleet]\narrivals = { poisson = { per_hour = 100 } }\nhorizon = \"2h\"\nreplications = 3";
    let says = "Missed without any waiting too, by sessions played one by one:\n  latency_s.p99 <= 21.9  22.00 s\n";
    // the other goal is met
    let goals = ["search.wait_s.mean < 60", "latency_s.p99 <= 21.9"];
    let (plan, told) = planned(text, "tools.search.capacity", [5.0, 20.0], &goals);
    let [(1, reading)] = plan.missed_alone[..] else { panic!("{:?}", plan.missed_alone) };
    assert_eq!(plan.found, Found::Nowhere);
    assert_close(reading.value, 22.0, 1e-9);
    assert!(told.contains(says) && !told.contains("fills up first"), "{told}");
    let json: serde_json::Value = serde_json::from_str(&agent_sim::report::plan_json(&plan).unwrap()).unwrap();
    assert_eq!(json["missed_alone"][0]["name"], "latency_s.p99");
    // the other goal is missed for want of capacity
    let (plan, told) = planned(text, "tools.search.capacity", [1.0, 2.0], &["search.wait_s.mean < 0.01", goals[1]]);
    assert_eq!((&plan.found, plan.missed_alone.len()), (&Found::Nowhere, 1), "{told}");
    assert!(told.contains(says) && told.contains("search fills up first"), "{told}");
    // calls wait for one server or two, and alone 22 s are enough
    let (plan, told) = planned(text, "tools.search.capacity", [1.0, 2.0], &["latency_s.p99 <= 22.1"]);
    assert_eq!((&plan.found, plan.missed_alone.len()), (&Found::Nowhere, 0), "{told}");
    // the longer calls wait, the better is it kept
    let (plan, told) = planned(text, "tools.search.capacity", [5.0, 9.0], &["latency_s.mean >= 30"]);
    assert_eq!((&plan.found, plan.missed_alone.len()), (&Found::Nowhere, 0), "{told}");
    // sessions of another length aren't those that were planned
    let (plan, told) = planned(text, "session.turns", [8.0, 20.0], &["latency_s.p99 <= 21.9"]);
    assert_eq!((&plan.found, plan.missed_alone.len()), (&Found::Nowhere, 0), "{told}");
}

#[test]
fn a_plan_tells_what_never_settles_from_what_only_hasnt_yet() {
    // sessions of ninety minutes, watched for two hours: nobody knows what they come to
    let long = "model.first_token = \"90m\"\nsession.turns = 1\n[fleet]\n\
                arrivals = { poisson = { per_hour = 1000 } }\nhorizon = \"2h\"\nreplications = 3";
    let (plan, told) = planned(long, "fleet.arrivals.poisson.per_hour", [1000.0, 1100.0], &["in_progress <= 9000"]);
    assert!(plan.points.iter().all(|point| point.surely().is_none()), "{:?}", plan.points);
    assert!(
        told.contains(" not settled ") && told.contains("At 1,000: not settled: sessions in progress grow by"),
        "{told}"
    );
    assert!(told.contains("Whether in_progress <= 9000 holds isn't known") && !told.contains("unstable"), "{told}");
    // four servers are needed: known before it is played, and found while it is
    let full = "model.first_token = \"1s\"\nsession.turns = 2\n[[tools]]\nname = \"search\"\nlatency = \"4s\"\ncapacity = 9\n\
                [fleet]\narrivals = { poisson = { per_hour = 3600 } }\nhorizon = \"2h\"\nreplications = 3";
    for text in [full.to_owned(), full.replace("[fleet]", "[budget]\ntime = \"100h\"\n[fleet]")] {
        let (plan, told) = planned(&text, "tools.search.capacity", [3.0, 8.0], &["latency_s.mean <= 9"]);
        assert_eq!(plan.points[0].surely(), Some(false));
        assert!(told.contains(" unstable ") && told.contains("At 3: "), "{told}");
        let json: serde_json::Value = serde_json::from_str(&agent_sim::report::plan_json(&plan).unwrap()).unwrap();
        assert!(json["points"][0]["unstable"].as_str().unwrap().contains("unstable"), "{json}");
    }
}

#[test]
fn what_other_sessions_keep_cached_is_not_missed_alone() {
    // tools and system of 10,000 tokens cost $0.0375 to write and $0.003 to read
    let fleet = "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[cache]\nlifetime = \"5m\"\n\
                 [fleet]\narrivals = { poisson = { per_hour = 2 } }\nhorizon = \"400h\"\nwarm_up = \"20h\"\nreplications = 3\n";
    let ask = "[session]\nturns = 2\n[[tools]]\nname = \"ask\"\n";
    let big = "prompt = { system = 10_000 }\nsession = { turns = 1 }\n";
    let cases = [
        // its second call comes when the first one's write has expired
        (format!("{ask}latency = \"400s\"\n[prompt]\nsystem = 10_000\n"), 0.006),
        (format!("{ask}agent = \"helper\"\n[agents.helper]\n{big}"), 0.003),
        (
            format!(
                "{ask}agent = \"outer\"\n[agents.outer]\nsession = {{ turns = 2 }}\n[[agents.outer.tools]]\nname = \"in\"\n\
                 agent = \"inner\"\n[agents.inner]\n{big}"
            ),
            0.003,
        ),
        (
            "[session]\nturns = 1\n[prompt]\nsystem = 10_000\n[routing]\nshare = 1\nredo = 0\n\
             small = { price = { input = 3, output = 15, cache_read = 0.3, cache_write_5m = 3.75 } }\n"
                .to_owned(),
            0.003,
        ),
    ];
    for (sessions, least_usd) in cases {
        let text = format!("{sessions}{fleet}");
        let at = |usd: f64| {
            let goal = format!("cost_usd.mean <= {usd}");
            planned(&text, "fleet.arrivals.poisson.per_hour", [2.0, 4.0], &[&goal])
        };
        // met where so many sessions are under way that all of them find it
        let (plan, told) = at(least_usd * 1.05);
        assert_eq!((&plan.found, plan.missed_alone.len()), (&Found::Nowhere, 0), "{told}");
        let (plan, told) = at(least_usd * 0.95);
        let [(0, reading)] = plan.missed_alone[..] else { panic!("{:?}\n{told}", plan.missed_alone) };
        assert_close(reading.value, least_usd, 1e-9);
        assert!(
            told.contains(
                "by sessions played one by one with tools and system cached at every call:\n  cost_usd.mean <= 0.0"
            ),
            "{told}"
        );
        let busy = scenario_with(&text, &["fleet.arrivals.poisson.per_hour=400", "fleet.horizon=60h"]);
        let got = mean(&answer(busy), "cost_usd");
        assert!((least_usd * 0.999_999..least_usd * 1.05).contains(&got), "{got} {text}");
    }
}

#[test]
fn a_plan_tells_of_calls_that_are_turned_away() {
    let text = "model.first_token = \"1s\"\nsession.turns = 8\n[[tools]]\nname = \"search\"\nlatency = \"2s\"\ncapacity = 1\n\
                queue = 0\n[fleet]\narrivals = { poisson = { per_hour = 400 } }\nhorizon = \"2h\"\nreplications = 3";
    let planned = |goals: &[&str]| planned(text, "tools.search.capacity", [1.0, 12.0], goals);
    let (plan, told) = planned(&["latency_s.p99 <= 60"]);
    assert_eq!(plan.found, Found::Everywhere);
    assert!(
        told.contains("of the calls of search are turned away") && told.contains("search.turned_away <= 0.01"),
        "{told}"
    );
    let (plan, told) = planned(&["latency_s.p99 <= 60", "search.turned_away <= 0.01"]);
    assert!(matches!(plan.found, Found::Least { .. }), "{:?}", plan.found);
    assert!(!told.contains("sessions that go on without them"), "{told}");
}
