//! The reservation library: public bug reports of group F, exact sums, and eight threads that spend at random.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use agent_sim::budget::{
    Budget, Call, CallError, Clock, Counted, Fsync, JournalError, Limit, Limits, Prices, Reservation, Window,
};
use agent_sim::price::{Also, PicoUsd, Sheet, Usage, UsageRead};
use jiff::Timestamp;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::support::assert_close;

/// $1 per million tokens of input and output, nothing else.
fn dollar() -> Prices {
    let sheet = Sheet::parse("provider\tmodel\tinput\toutput\tread\twrite_5m\nx\ty\t1\t1\t0.1\t1.25\n").unwrap();
    Prices::of(&sheet, "y", None, None).unwrap()
}

fn usd(dollars: f64) -> Limits {
    Limits::usd(dollars).unwrap()
}

/// A call that may cost this many dollars.
fn call(dollars: f64) -> Call {
    dollar().call((dollars * 1e6).round() as u64, 0).unwrap()
}

fn used(dollars: f64) -> Usage {
    Usage { input_tokens: (dollars * 1e6).round() as u64, ..Usage::default() }
}

#[test]
fn f1_one_of_five_sub_agents_is_admitted() {
    let team = Budget::new("team", usd(10.0));
    team.reserve(&call(9.9)).unwrap().settle(&used(9.9)).unwrap();
    let agents: Vec<Budget> = (0..5).map(|n| team.child(&format!("agent {n}"), usd(1.0))).collect();
    let held: Vec<_> = agents.iter().map(|agent| agent.reserve(&call(0.1))).collect();
    assert_eq!(held.iter().filter(|held| held.is_ok()).count(), 1);
    let refused = held[1].as_ref().unwrap_err();
    assert_eq!(refused.to_string(), "budget team: the call may cost $0.100000, and $0.000000 is left");
    // who was refused above holds nothing below
    assert_eq!((agents[1].held(), agents[1].held_calls(), team.held()), (PicoUsd(0), 0, PicoUsd(100_000_000_000)));
    // and once the one is done for less, there is room again
    drop(held);
    assert!(agents[4].reserve(&call(0.1)).is_ok());
}

#[test]
fn f2_first_requests_side_by_side_dont_all_pass() {
    for _ in 0..50 {
        let budget = Budget::new("key", usd(1.0));
        let admitted = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    if let Ok(reservation) = budget.reserve(&call(0.3)) {
                        admitted.fetch_add(1, Ordering::Relaxed);
                        reservation.settle(&used(0.3)).unwrap();
                    }
                });
            }
        });
        assert_eq!(admitted.into_inner(), 3);
        assert_eq!(budget.spent().usd(), 0.9);
    }
}

#[test]
fn f4_a_cost_that_isnt_known_is_refused() {
    let closed = Budget::new("b", usd(1.0));
    let refused = closed.reserve(&Call::unpriced(10, 10).unwrap()).unwrap_err();
    assert_eq!(refused.limit, Limit::Unpriced);
    assert!(refused.to_string().contains("no known price"), "{refused}");
    let open = Budget::new("b", Limits { lets_unpriced_through: true, ..usd(1.0) });
    assert!(open.reserve(&Call::unpriced(10, 10).unwrap()).is_ok());
    // where money isn't limited, its price doesn't matter
    assert!(
        Budget::new("b", Limits { tokens: Some(20), ..Limits::default() })
            .reserve(&Call::unpriced(10, 10).unwrap())
            .is_ok()
    );
    let unknown = Prices::of(Sheet::embedded(), "claude-sonnet-9", None, None).unwrap_err();
    assert!(unknown.to_string().contains("the nearest are"), "{unknown}");
    // no price for the lifetime that it would be written under
    assert!(Prices::of(Sheet::embedded(), "claude-sonnet-4-6", Some(420), None).is_err());
}

#[test]
fn f5_what_was_held_is_given_back_once() {
    let budget = Budget::new("b", usd(1.0));
    for _ in 0..1_000 {
        budget.reserve(&call(0.5)).unwrap().settle(&used(0.0001)).unwrap();
        budget.reserve(&call(0.4)).unwrap().release();
        drop(budget.reserve(&call(0.4)).unwrap());
    }
    assert_eq!((budget.spent().usd(), budget.held(), budget.left().unwrap().usd()), (0.1, PicoUsd(0), 0.9));
    assert_eq!((budget.spent_calls(), budget.held_calls(), budget.spent_tokens()), (1_000, 0, 100_000));
}

#[test]
fn f6_children_share_what_their_parent_has() {
    let run = Budget::new("run", usd(1.25));
    let (a, b) = (run.child("a", usd(1.0)), run.child("b", usd(1.0)));
    a.reserve(&call(1.0)).unwrap().settle(&used(1.0)).unwrap();
    assert_eq!(b.reserve(&call(1.0)).unwrap_err().budget, "run");
    b.reserve(&call(0.25)).unwrap().settle(&used(0.25)).unwrap();
    assert_eq!((run.spent().usd(), a.spent().usd(), b.spent().usd()), (1.25, 1.0, 0.25));
    // grandchildren too
    let below = b.child("below", Limits::default());
    assert_eq!(below.reserve(&call(0.000_001)).unwrap_err().budget, "run");
}

#[test]
fn f14_tokens_read_from_the_cache_count_where_they_are_wanted() {
    let left = |counted: Counted| {
        let budget = Budget::new("b", Limits { tokens: Some(10_000), counted, ..Limits::default() });
        let usage = Usage { input_tokens: 100, cache_read_tokens: 5_000, output_tokens: 50, ..Usage::default() };
        budget.reserve(&dollar().call(5_100, 200).unwrap()).unwrap().settle(&usage).unwrap();
        budget.spent_tokens()
    };
    assert_eq!([Counted::All, Counted::WithoutCacheReads, Counted::Output].map(left), [5_150, 150, 50]);
    let output = Budget::new("b", Limits { tokens: Some(100), counted: Counted::Output, ..Limits::default() });
    assert!(output.reserve(&dollar().call(900_000, 100).unwrap()).is_ok());
    assert_eq!(output.reserve(&dollar().call(1, 101).unwrap()).unwrap_err().limit, Limit::Tokens);
}

#[test]
fn the_worst_case_is_at_the_tier_that_the_prompt_will_hit() {
    let prices = |model: &str| Prices::of(Sheet::embedded(), model, Some(300), None).unwrap();
    // MODEL.md §8
    assert_eq!(prices("claude-sonnet-4-6").worst_case(100_000, 4_096).usd(), 0.43644);
    let sonnet = prices("claude-sonnet-4-5");
    assert_eq!(sonnet.worst_case(200_000, 0).usd(), 0.75);
    assert!(matches!(sonnet.call(200_001, 0), Err(CallError::TooLong { window_tokens: 200_000, .. })));
    let haiku = prices("claude-haiku-5-5");
    assert_close(haiku.worst_case(100_000, 1_000).usd(), 0.1 * 0.125 + 0.0005, 1e-12);
    assert_close(haiku.worst_case(100_001, 1_000).usd(), 0.100001 * 0.625 + 0.0025, 1e-12);
    assert!(matches!(haiku.call(10, 1_000_000), Err(CallError::TooMuchOutput { most: 128_000, .. })));
    assert!(matches!(dollar().call(u64::MAX, 1), Err(CallError::Absurd(_))));
    for wrong in [-1.0, f64::NAN, f64::INFINITY, 2e6] {
        assert!(Limits::usd(wrong).is_err());
    }
}

#[test]
fn a_usage_that_cant_be_billed_counts_as_the_worst_case() {
    let budget = Budget::new("b", usd(1.0));
    let reservation = budget.reserve(&call(0.4)).unwrap();
    let hour = Usage { cache_write_tokens: [(3_600, 10)].into(), ..Usage::default() };
    let error = reservation.settle(&hour).unwrap_err();
    assert!(error.to_string().contains("so at least the worst case counts"), "{error}");
    assert_eq!((budget.spent().usd(), budget.held()), (0.4, PicoUsd(0)));
    // more than was set aside counts too, and is told where it passes a limit
    let more = budget.reserve(&call(0.5)).unwrap().settle(&used(0.55)).unwrap();
    assert!(!more.over);
    let most = budget.reserve(&call(0.05)).unwrap().settle(&used(0.1)).unwrap();
    assert!(most.over && budget.left() == Some(PicoUsd(0)));
    assert_close(budget.spent().usd(), 1.05, 1e-12);
    assert!(budget.reserve(&call(0.000_001)).is_err());
}

#[test]
fn an_abandoned_call_counts_where_it_should() {
    let strict = Budget::new("b", Limits { abandoned_is_spent: true, ..usd(1.0) });
    drop(strict.reserve(&call(0.4)).unwrap());
    strict.reserve(&call(0.4)).unwrap().release();
    assert_eq!((strict.spent().usd(), strict.held(), strict.spent_calls()), (0.4, PicoUsd(0), 1));
}

#[test]
fn each_budget_says_for_itself_whether_an_abandoned_call_counts() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("team.journal"), Arc::new(Set::default()));
    let strict = Limits { abandoned_is_spent: true, ..usd(1.0) };
    let (team, _) = Budget::with_journal("team", strict.clone(), &path, Fsync::Never, clock.clone()).unwrap();
    let user = team.child("user", usd(0.5));
    drop(user.reserve(&call(0.4)).unwrap());
    assert_eq!((team.spent().usd(), user.spent().usd()), (0.4, 0.0));
    assert_eq!((team.held(), user.held()), (PicoUsd(0), PicoUsd(0)));
    drop((team, user));
    let (team, found) = Budget::with_journal("team", strict, &path, Fsync::Never, clock).unwrap();
    assert_eq!((team.spent().usd(), found.in_flight), (0.4, 0));
}

#[test]
fn the_largest_usage_shuts_a_budget_and_doesnt_open_it() {
    let most = |tokens: u64| Usage { input_tokens: tokens, output_tokens: tokens, ..Usage::default() };
    for tokens in [1_000_000_000_000_000, u64::MAX / 4, u64::MAX] {
        let budget = Budget::new("b", Limits { tokens: Some(1_000_000), ..usd(1.0) });
        for _ in 0..4 {
            // its cost may be beyond what can be counted: then it's an error, and still counts
            if let Ok(reservation) = budget.reserve(&call(0.000_001)) {
                let over =
                    reservation.settle(&most(tokens)).map_or_else(|error| error.settled.over, |settled| settled.over);
                assert!(over, "{tokens}");
            }
        }
        assert!(budget.spent() > PicoUsd::from_usd(1.0).unwrap() && budget.spent() <= budget.committed());
        assert_eq!(budget.reserve(&call(0.000_001)).unwrap_err().left, 0.0);
    }
    assert!(matches!(Call::unpriced(u64::MAX, 1), Err(CallError::Absurd(_))));
}

#[test]
fn requests_that_were_made_on_the_way_are_settled_too() {
    let sheet = Sheet::embedded();
    let prices = Prices::of(sheet, "claude-sonnet-4-6", Some(300), None).unwrap();
    let of = |model: &str, input_tokens: u64| Also {
        model: (!model.is_empty()).then(|| model.to_owned()),
        usage: Usage { input_tokens, ..Usage::default() },
    };
    let settle = |also: Vec<Also>| {
        let budget = Budget::new("b", usd(1.0));
        let read = UsageRead { usage: Usage { output_tokens: 100, ..Usage::default() }, also, ..UsageRead::default() };
        let result = budget.reserve(&prices.call(10_000, 1_000).unwrap()).unwrap().settle_read(&read, sheet);
        (result.map_err(|error| error.why), budget.spent().usd())
    };
    // $3 and $15 per million; Haiku 4.5 $1
    assert_close(settle(vec![]).1, 0.0015, 1e-12);
    assert_close(settle(vec![of("", 1_000), of("claude-haiku-4-5", 2_000)]).1, 0.0015 + 0.003 + 0.002, 1e-12);
    let (result, spent) = settle(vec![of("nobody-knows", 2_000)]);
    assert!(result.is_err());
    // the worst case of 10,000 tokens written for five minutes and 1,000 of output
    assert_close(spent, 0.01 * 3.75 + 0.001 * 15.0, 1e-12);
}

/// A clock that stands where it is put.
#[derive(Debug, Default)]
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

#[test]
fn a_window_rolls_over_by_its_clock() {
    let clock = Arc::new(Set::default());
    let set = |day: &str| clock.0.store(day.parse::<Timestamp>().unwrap().as_second(), Ordering::SeqCst);
    set("2026-11-30T23:59:59Z");
    let day = Limits { window: Some(Window::Day), ..usd(1.0) };
    let team = Budget::with_clock("team", Limits { window: Some(Window::Month), ..usd(1.5) }, clock.clone());
    let user = team.child("user", day);
    user.reserve(&call(0.7)).unwrap().settle(&used(0.7)).unwrap();
    let over_midnight = user.reserve(&call(0.3)).unwrap();
    assert_eq!(user.reserve(&call(0.1)).unwrap_err().budget, "user");
    set("2026-12-01T00:00:00Z");
    // a new day and a new month; what is under way is still held, and is billed where it ends
    assert_eq!((user.spent(), user.left().unwrap().usd(), team.left().unwrap().usd()), (PicoUsd(0), 0.7, 1.2));
    over_midnight.settle(&used(0.2)).unwrap();
    assert_eq!((user.spent().usd(), user.held(), team.spent().usd()), (0.2, PicoUsd(0), 0.2));
    set("2026-12-02T12:00:00Z");
    assert_eq!((user.spent().usd(), team.spent().usd()), (0.0, 0.2));
    // a clock that goes back fills nothing
    user.reserve(&call(1.0)).unwrap().settle(&used(1.0)).unwrap();
    set("2026-12-01T12:00:00Z");
    assert!(user.reserve(&call(0.1)).is_err());
}

#[test]
fn what_ends_first_in_a_new_window_counts_there() {
    let clock = Arc::new(Set::default());
    let day = Limits { window: Some(Window::Day), ..usd(1.0) };
    let budget = Budget::with_clock("b", day, clock.clone());
    budget.reserve(&call(0.5)).unwrap().settle(&used(0.5)).unwrap();
    let over_midnight = budget.reserve(&call(0.4)).unwrap();
    clock.0.store(86_400, Ordering::SeqCst);
    over_midnight.settle(&used(0.3)).unwrap();
    assert_eq!((budget.spent().usd(), budget.committed().usd(), budget.spent_calls()), (0.3, 0.3, 1));
    // and so does one that is given back
    let again = budget.reserve(&call(0.6)).unwrap();
    clock.0.store(2 * 86_400, Ordering::SeqCst);
    again.release();
    assert_eq!((budget.spent(), budget.committed()), (PicoUsd(0), PicoUsd(0)));
    // the time limit is one of a window too
    let clock = Arc::new(Set::default());
    let hour = Limits { window: Some(Window::Day), time: Some(Duration::from_secs(3_600)), ..Limits::default() };
    let budget = Budget::with_clock("b", hour, clock.clone());
    clock.0.store(3_600, Ordering::SeqCst);
    assert_eq!(budget.reserve(&call(0.1)).unwrap_err().limit, Limit::Time);
    clock.0.store(86_400, Ordering::SeqCst);
    assert!(budget.reserve(&call(0.1)).is_ok());
}

#[test]
fn time_and_calls_are_limits_too() {
    let clock = Arc::new(Set::default());
    let limits = Limits { time: Some(Duration::from_secs(60)), calls: Some(2), ..Limits::default() };
    let budget = Budget::with_clock("run", limits, clock.clone());
    let held = budget.reserve(&call(1.0)).unwrap();
    let second = budget.reserve(&call(1.0)).unwrap();
    assert_eq!(budget.reserve(&call(1.0)).unwrap_err().to_string(), "budget run: no call is left");
    second.release();
    held.settle(&used(0.1)).unwrap();
    clock.0.store(61, Ordering::SeqCst);
    let refused = budget.reserve(&call(1.0)).unwrap_err();
    assert_eq!(refused.to_string(), "budget run: 61.0 s have passed of 60.0 s");
    // a limit that comes after another one holds nothing of it
    assert_eq!((budget.spent_calls(), budget.held_calls(), budget.held()), (1, 0, PicoUsd(0)));
}

/// Eight threads reserve, settle, release and abandon at random under two levels of budgets; nobody ever sees more spent and
/// held than the limit, and in the end exactly what was settled is spent.
#[test]
fn eight_threads_never_overspend() {
    for seed in 0..6 {
        // half of the seeds come to the limit of calls, the others to that of money
        let calls = (seed % 2 == 0).then_some(500);
        let team = Budget::new("team", Limits { calls, ..usd(5.0) });
        let users: Vec<Budget> = (0..3).map(|n| team.child(&format!("user {n}"), usd(2.5))).collect();
        let settled = AtomicU64::new(0);
        let running = AtomicBool::new(true);
        let limit = PicoUsd::from_usd(5.0).unwrap();
        thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut looks = 0_u64;
                while running.load(Ordering::Relaxed) {
                    assert!(team.committed() <= limit && team.spent() <= limit);
                    looks += 1;
                }
                looks
            });
            let workers: Vec<_> = (0..8_u64)
                .map(|thread| {
                    let (users, settled) = (&users, &settled);
                    scope.spawn(move || {
                        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed * 100 + thread);
                        let mut held: Vec<(Reservation, u64)> = Vec::new();
                        for _ in 0..2_000 {
                            let tokens = rng.random_range(1..200_000_u64);
                            let call = dollar().call(tokens, 0).unwrap();
                            if let Ok(reservation) = users[rng.random_range(0..3)].reserve(&call) {
                                held.push((reservation, tokens));
                            }
                            if held.len() > 4 || rng.random_bool(0.5) {
                                let Some((reservation, most)) = held.pop() else { continue };
                                match rng.random_range(0..4) {
                                    0 => reservation.release(),
                                    1 => drop(reservation),
                                    _ => {
                                        let tokens =
                                            rng.random_range(0..=if calls.is_some() { 3_000.min(most) } else { most });
                                        let usage = Usage { input_tokens: tokens, ..Usage::default() };
                                        settled.fetch_add(tokens * 1_000_000, Ordering::Relaxed);
                                        assert!(!reservation.settle(&usage).unwrap().over);
                                    }
                                }
                            }
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker.join().unwrap();
            }
            running.store(false, Ordering::Relaxed);
            assert!(watch.join().unwrap() > 0);
        });
        assert_eq!((team.held(), team.held_calls()), (PicoUsd(0), 0));
        assert_eq!(team.spent().0, i128::from(settled.into_inner()));
        assert_eq!(team.spent().0, users.iter().map(|user| user.spent().0).sum::<i128>());
        assert!(team.spent() > PicoUsd(0) && team.spent() <= limit);
        match calls {
            Some(most) => assert!(team.spent_calls() <= most && team.spent_calls() > most / 2),
            None => assert!(team.left().unwrap().usd() < 0.2),
        }
    }
}

/// Reserves, settles, releases and abandons, and returns the journal's bytes.
fn journal_of_a_run(path: &std::path::Path, clock: &Arc<Set>) -> Vec<u8> {
    let (budget, found) = Budget::with_journal("b", usd(10.0), path, Fsync::Never, clock.clone()).unwrap();
    assert_eq!(found, agent_sim::budget::Recovered::default());
    let first = budget.reserve(&call(1.0)).unwrap();
    let second = budget.reserve(&call(2.0)).unwrap();
    first.settle(&used(0.25)).unwrap();
    let third = budget.child("c", Limits::default()).reserve(&call(3.0)).unwrap();
    second.release();
    drop(budget.reserve(&call(0.5)).unwrap());
    third.settle(&used(2.5)).unwrap();
    let left = budget.reserve(&call(0.75)).unwrap();
    let bytes = std::fs::read(path).unwrap();
    drop(left);
    bytes
}

#[test]
fn a_journal_cut_at_any_byte_loses_nothing_that_was_settled() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("run.journal"), Arc::new(Set::default()));
    let bytes = journal_of_a_run(&path, &clock);
    let cut = folder.path().join("cut.journal");
    for length in 0..=bytes.len() {
        let part = &bytes[..length];
        std::fs::write(&cut, part).unwrap();
        // by hand: dollars settled, and what is under way
        let whole = part.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = std::str::from_utf8(&part[..whole]).unwrap();
        let (mut settled, mut open) = (0_u64, std::collections::BTreeMap::new());
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[0] {
                "R" => {
                    open.insert(words[1], words[2].parse::<u64>().unwrap());
                }
                "S" => {
                    settled += words[3].parse::<u64>().unwrap();
                    assert!(open.remove(words[1]).is_some());
                }
                "X" => assert!(open.remove(words[1]).is_some()),
                _ => {}
            }
        }
        for abandoned_is_spent in [false, true] {
            std::fs::write(&cut, part).unwrap();
            let limits = Limits { abandoned_is_spent, ..usd(10.0) };
            let (budget, found) =
                Budget::with_journal("b", limits.clone(), &cut, Fsync::Always, clock.clone()).unwrap();
            let held: u64 = open.values().sum();
            assert_eq!(
                (found.spent.0, found.in_flight, found.in_flight_usd.0),
                (settled.into(), open.len() as u64, held.into())
            );
            assert_eq!(found.torn, whole < length, "{length}");
            let spent = if abandoned_is_spent { settled + held } else { settled };
            assert_eq!((budget.spent().0, budget.held()), (spent.into(), PicoUsd(0)), "{length}");
            // and goes on from there, again and again, without counting anything twice
            budget.reserve(&call(0.5)).unwrap().settle(&used(0.5)).unwrap();
            drop(budget);
            let (again, found) = Budget::with_journal("b", limits, &cut, Fsync::Settled, clock.clone()).unwrap();
            assert_eq!((again.spent().0, found.in_flight, found.torn), (i128::from(spent) + 500_000_000_000, 0, false));
        }
    }
}

#[test]
fn a_journal_is_free_again_while_processes_are_started() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("run.journal"), Arc::new(Set::default()));
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let binary = env!("CARGO_BIN_EXE_agent-sim");
                    let ran = std::process::Command::new(binary).arg("--version").output().unwrap();
                    assert!(ran.status.success());
                }
            });
        }
        let failed = (0..3_000)
            .filter(|_| Budget::with_journal("b", usd(1.0), &path, Fsync::Never, clock.clone()).is_err())
            .count();
        done.store(true, Ordering::SeqCst);
        assert_eq!(failed, 0);
    });
}

#[test]
fn a_journal_that_isnt_ours_or_is_broken_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("b.journal"), Arc::new(Set::default()));
    let open =
        || Budget::with_journal("b", usd(1.0), &path, Fsync::Never, clock.clone()).map(|(budget, _)| budget.spent());
    std::fs::write(&path, "agent-sim budget journal 2\n").unwrap();
    assert!(matches!(open(), Err(JournalError::Version { .. })));
    std::fs::write(&path, "[package]\nname = \"x\"\n").unwrap();
    assert!(open().unwrap_err().to_string().contains("it begins with \"[package]\""));
    std::fs::remove_file(&path).unwrap();
    let good = String::from_utf8(journal_of_a_run(&path, &clock)).unwrap();
    let line = good.lines().position(|line| line.starts_with('S')).unwrap();
    // one digit of a settlement
    let broken: Vec<String> = good
        .lines()
        .enumerate()
        .map(|(at, text)| if at == line { text.replacen("250000000000", "150000000000", 1) } else { text.to_owned() })
        .collect();
    std::fs::write(&path, broken.join("\n") + "\n").unwrap();
    assert!(open().unwrap_err().to_string().contains(&format!("line {}: it is broken", line + 1)));
    let nowhere = folder.path().join("no").join("such.journal");
    assert!(Budget::with_journal("b", usd(1.0), &nowhere, Fsync::Never, clock).is_err());
}

#[test]
fn a_journal_knows_its_window() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("b.journal"), Arc::new(Set::default()));
    let day = Limits { window: Some(Window::Day), ..usd(1.0) };
    let open = || Budget::with_journal("b", day.clone(), &path, Fsync::Settled, clock.clone()).unwrap().0;
    let budget = open();
    budget.reserve(&call(0.4)).unwrap().settle(&used(0.4)).unwrap();
    clock.0.store(86_400 + 5, Ordering::SeqCst);
    budget.reserve(&call(0.3)).unwrap().settle(&used(0.3)).unwrap();
    drop(budget);
    assert_eq!(open().spent().usd(), 0.3);
    clock.0.store(2 * 86_400 + 5, Ordering::SeqCst);
    assert_eq!(open().spent().usd(), 0.0);
}

#[test]
fn a_journal_goes_on_as_its_budget_did_when_the_clock_went_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("b.journal"), Arc::new(Set::default()));
    let day = Limits { window: Some(Window::Day), ..usd(1.0) };
    let open = || Budget::with_journal("b", day.clone(), &path, Fsync::Settled, clock.clone()).unwrap().0;
    clock.0.store(86_400 + 5, Ordering::SeqCst);
    let budget = open();
    budget.reserve(&call(0.4)).unwrap().settle(&used(0.4)).unwrap();
    clock.0.store(86_400 - 5, Ordering::SeqCst);
    budget.reserve(&call(0.3)).unwrap().settle(&used(0.3)).unwrap();
    assert_eq!(budget.spent().usd(), 0.7);
    drop(budget);
    // once as lines, once as the sum of them; and nothing is free before the day after
    for _ in 0..2 {
        assert_eq!(open().spent().usd(), 0.7);
    }
    clock.0.store(86_400 + 10, Ordering::SeqCst);
    assert_eq!(open().spent().usd(), 0.7);
    clock.0.store(2 * 86_400, Ordering::SeqCst);
    assert_eq!(open().spent().usd(), 0.0);
}

#[test]
fn a_journal_has_one_budget_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let (path, clock) = (folder.path().join("b.journal"), Arc::new(Set::default()));
    let open = || Budget::with_journal("b", usd(1.0), &path, Fsync::Never, clock.clone());
    let (budget, _) = open().unwrap();
    let under_way = budget.reserve(&call(0.4)).unwrap();
    drop(budget);
    // a call under way has it still
    assert!(matches!(open().unwrap_err(), JournalError::InUse { .. }));
    under_way.settle(&used(0.3)).unwrap();
    assert_eq!(open().unwrap().0.spent().usd(), 0.3);
    // nothing of somebody else's is written over
    let new = folder.path().join("b.journal.new");
    std::fs::write(&new, "my notes").unwrap();
    let error = open().unwrap_err().to_string();
    assert!(error.contains("b.journal.new is in the way"), "{error}");
    assert_eq!(std::fs::read_to_string(&new).unwrap(), "my notes");
}

#[test]
fn the_example_host_stops_in_the_middle_with_its_reason() {
    // beside this test's own folder, where examples are built for it
    let here = std::env::current_exe().unwrap();
    let example = here.parent().unwrap().parent().unwrap().join("examples").join("agent_host");
    let output = std::process::Command::new(&example).output().unwrap_or_else(|e| panic!("{}: {e}", example.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let steps: Vec<f64> = text.lines().filter_map(|line| line.rsplit_once("tokens: $")?.1.parse().ok()).collect();
    assert!(steps.len() > 5 && steps.len() < 40, "{text}");
    let stopped = text.lines().find(|line| line.starts_with("stopped after")).unwrap();
    assert!(stopped.contains("of 40 steps: budget run: the call may cost $"), "{stopped}");
    let spent: f64 = text.rsplit_once("spent $").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert!((spent - steps.iter().sum::<f64>()).abs() < 1e-5 && spent <= 0.15, "{text}");
}
