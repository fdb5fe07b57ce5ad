//! The binary itself, and what people read.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

use crate::support::{root, shipped};

fn agent_sim(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("agent-sim").unwrap();
    command.current_dir(root()).env_remove("NO_COLOR").env_remove("COLUMNS").args(args);
    command
}

/// In a terminal of so many columns, as far as it can be told.
fn agent_sim_in(args: &[&str], columns: &str) -> Output {
    command(args).env("COLUMNS", columns).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A fleet is played a few times.
fn few(file: &str) -> &'static [&'static str] {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    if text.contains("[fleet]") { &["--set", "fleet.replications=5"] } else { &[] }
}

#[test]
fn runs_every_shipped_scenario_in_every_format() {
    for file in shipped() {
        let file = file.strip_prefix(root()).unwrap().to_str().unwrap();
        for format in ["terminal", "json", "markdown"] {
            let output = agent_sim(&[&["run", file, "--sessions", "2000", "--format", format], few(file)].concat());
            assert!(output.status.success(), "{file}: {}", err(&output));
            assert!(output.stderr.is_empty(), "{file}: {}", err(&output));
            if format == "json" {
                let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(report["schema"], "agent-sim.report/1");
                let is_fleet = report["strategies"][0].get("fleet").is_some();
                assert!(is_fleet || report["scenario"]["sessions"] == 2000, "{file}");
                assert_eq!(report["strategies"][0]["name"], "base");
            }
        }
    }
}

#[test]
fn the_fifty_turn_session_prints_its_two_figures() {
    let output = agent_sim(&["run", "scenarios/fifty-turns.toml", "--sessions", "5000"]);
    let text = out(&output);
    assert!(text.contains("$0.6288") && text.contains("$4.4250"), "{text}");
    assert!(!text.contains('\u{1b}'), "escape sequences in a pipe: {text}");
}

#[test]
fn terminal_report() {
    insta::assert_snapshot!("fifty", out(&agent_sim(&["run", "scenarios/fifty-turns.toml", "--sessions", "5000"])));
    insta::assert_snapshot!("w1", out(&agent_sim(&["run", "scenarios/w1.toml", "--sessions", "5000"])));
    let sets = ["--set", "model.name=gemini-4-argon", "--set", "volume.sessions_per_month=1000"];
    let args = [&["run", "scenarios/tool-definitions.toml", "--sessions", "50"][..], &sets[..]].concat();
    insta::assert_snapshot!("tool_definitions", out(&agent_sim(&args)));
    insta::assert_snapshot!("few", out(&agent_sim(&["run", "scenarios/coding-agent.toml", "--sessions", "300"])));
}

#[test]
fn markdown_report() {
    let args = ["run", "scenarios/coding-agent.toml", "--sessions", "5000", "--format", "markdown"];
    insta::assert_snapshot!(out(&agent_sim(&args)));
}

#[test]
fn json_report() {
    let args = ["run", "scenarios/three-turns.toml", "--sessions", "10", "--format", "json"];
    insta::assert_snapshot!(out(&agent_sim(&args)));
}

#[test]
fn the_report_keeps_its_contract() {
    let args = ["run", "scenarios/w1.toml", "--sessions", "2000", "--format", "json"];
    let report: serde_json::Value = serde_json::from_str(&out(&agent_sim(&args))).unwrap();
    let base = &report["strategies"][0];
    let metrics = [
        "cost_usd",
        "cost_input_usd",
        "cost_output_usd",
        "input_tokens",
        "uncached_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "output_tokens",
        "turns",
        "tool_calls",
        "attempts",
        "executions",
        "duplicates",
        "latency_s",
        "model_s",
        "tool_s",
        "retry_wait_s",
        "expired_gaps",
        "turn_latency_s",
        "tool_phase_s",
        "first_token_s",
    ];
    for name in metrics {
        for field in ["mean", "se", "ci95", "sd", "min", "p50", "p90", "p95", "p99", "p999", "max", "p99_ci95"] {
            assert!(!base["metrics"][name][field].is_null(), "{name}.{field}");
        }
    }
    // no tool has a fee here: left out, not 0
    assert!(base["metrics"]["cost_tools_usd"].is_null());
    for name in ["duplicates_per_call", "availability", "cache_hit", "gap_expired", "answered"] {
        assert!(base["rates"][name]["ci95"].is_array(), "{name}");
    }
    for name in ["answered", "turn_limit", "budget", "deadline", "context_full", "failed"] {
        assert!(base["outcomes"][name].is_u64(), "{name}");
    }
    let shares = &base["cost_shares"];
    let sum: f64 = ["system", "task", "history", "output", "tools", "duplicates"]
        .iter()
        .map(|key| shares[key].as_f64().unwrap_or_else(|| panic!("{key}")))
        .sum();
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    let check = &base["checks"][0];
    for field in ["id", "formula", "expected", "observed", "se", "pass"] {
        assert!(!check[field].is_null(), "{field}");
    }
    assert!(base["not_checked"][0]["why"].is_string());
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn check_report() {
    let output = agent_sim(&["check", "scenarios/retries.toml", "--sessions", "5000", "--strategy", "base"]);
    assert!(output.status.success());
    insta::assert_snapshot!(out(&output));
}

#[test]
fn check_passes_on_every_shipped_scenario() {
    for file in shipped() {
        let file = file.strip_prefix(root()).unwrap().to_str().unwrap();
        let output = agent_sim(&[&["check", file, "--sessions", "10000"], few(file)].concat());
        assert_eq!(output.status.code(), Some(0), "{file}: {}", out(&output));
        let output = agent_sim(&[&["check", file, "--sessions", "200", "--format", "json"], few(file)].concat());
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    }
}

/// A short look at a shipped fleet.
const SHORT: [&str; 6] = ["--set", "fleet.replications=6", "--set", "fleet.horizon=3h", "--set", "fleet.warm_up=30m"];

#[test]
fn fleet_reports() {
    let fleet = |args: &[&str]| out(&agent_sim(&[args, &SHORT].concat()));
    insta::assert_snapshot!("fleet", fleet(&["run", "scenarios/fleet.toml"]));
    insta::assert_snapshot!("fleet_limits", fleet(&["run", "scenarios/rate-limits.toml", "--strategy", "uncached"]));
    insta::assert_snapshot!("fleet_markdown", fleet(&["run", "scenarios/fleet.toml", "--format", "markdown"]));
    insta::assert_snapshot!("fleet_check", fleet(&["check", "scenarios/shared-prefix.toml", "--strategy", "base"]));
    insta::assert_snapshot!("fleet_compare", fleet(&["compare", "scenarios/rate-limits.toml"]));
    let metrics = ["--metric", "latency_s.p99", "--metric", "search.turned_away", "--markdown"];
    let outage = ["compare", "scenarios/outage.toml", "--set", "fleet.replications=3"];
    insta::assert_snapshot!("fleet_outage", out(&agent_sim(&[&outage[..], &metrics[..]].concat())));
    let plan = ["plan", "scenarios/fleet.toml", "--for", "latency_s.p99 <= 120", "--for", "search.utilisation < 0.9"];
    let vary = ["--vary", "tools.search.capacity", "--between", "4,9"];
    insta::assert_snapshot!("fleet_plan", fleet(&[&plan[..], &vary[..]].concat()));
    let tiers = "fleet.limits.tier=anthropic-start,anthropic-build,anthropic-scale";
    let list = ["plan", "scenarios/rate-limits.toml", "--for", "answered >= 0.99", "--vary", tiers];
    let uncached = ["--set", "cache.lifetime=off"];
    insta::assert_snapshot!("fleet_plan_tiers", fleet(&[&list[..], &uncached[..]].concat()));
}

#[test]
fn a_fleet_as_json() {
    let args = ["run", "scenarios/rate-limits.toml", "--strategy", "uncached", "--format", "json"];
    let report: serde_json::Value = serde_json::from_slice(&agent_sim(&[&args[..], &SHORT].concat()).stdout).unwrap();
    let fleet = &report["strategies"][0]["fleet"];
    assert_eq!(fleet["replications"], 6);
    for field in ["arrived_per_hour", "ended_per_hour", "in_progress", "cost_per_hour_usd"] {
        assert!(fleet[field]["value"].as_f64().unwrap() > 0.0, "{field}");
        assert!(fleet[field]["ci95"][0].as_f64().unwrap() < fleet[field]["ci95"][1].as_f64().unwrap(), "{field}");
    }
    assert!(fleet["stations"]["model"]["turned_away"]["value"].as_f64().unwrap() > 0.2);
    assert!(fleet["limits"]["input_tokens_per_minute"]["used"]["value"].as_f64().unwrap() > 0.9);
    assert_eq!(fleet["series"]["means"]["in_progress"].as_array().unwrap().len(), 60);
    let plan = ["plan", "scenarios/fleet.toml", "--for", "latency_s.p99 <= 120", "--vary", "tools.search.capacity=5,7"];
    let json = agent_sim(&[&plan[..], &["--format", "json"], &SHORT].concat());
    let plan: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((plan["schema"].as_str(), plan["found"].as_str()), (Some("agent-sim.plan/1"), Some("first")));
    assert_eq!(plan["value"], "7");
    let compare = ["compare", "scenarios/rate-limits.toml", "--format", "json"];
    let json = agent_sim(&[&compare[..], &SHORT].concat());
    let compare: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(compare["ways"][1]["name"], "uncached");
}

#[test]
fn fleets_that_cant_be_answered_say_why() {
    let said = |args: &[&str]| {
        let output = agent_sim(args);
        (output.status.code(), err(&output))
    };
    let (code, text) = said(&["run", "scenarios/fleet.toml", "--set", "tools.search.capacity=3"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("unstable") && text.contains("4 servers"), "{text}");
    // where no way settles there is no table
    let fleet = "scenarios/fleet.toml";
    let compared = agent_sim(&["compare", fleet, fleet, "--set", "tools.search.capacity=1"]);
    assert_eq!(compared.status.code(), Some(1));
    assert!(out(&compared).contains("the fleet is unstable") && !out(&compared).contains("beyond"));
    for command in [
        &["levers", "scenarios/fleet.toml"][..],
        &["budget", "scenarios/fleet.toml"],
        &["solve", "scenarios/fleet.toml", "--find", "session.turns", "--where", "latency_s.p99 = 60"],
    ] {
        let (code, text) = said(command);
        assert_eq!(code, Some(2), "{command:?}: {text}");
        assert!(text.contains("aren't single"), "{text}");
    }
    let goal = ["--vary", "tools.search.capacity", "--for"];
    for (goals, wanted) in [
        ("latency.p99 <= 120", "did you mean"),
        ("latency_s.p99", "must be a figure and a bound"),
        ("latency_s.p99 <= soon", "must be a bound"),
        ("serch.utilisation < 0.5", "search.utilisation"),
    ] {
        let (code, text) = said(&[&["plan", "scenarios/fleet.toml"], &goal[..], &[goals]].concat());
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(wanted), "{goals}: {text}");
    }
    let (code, text) = said(&["plan", "scenarios/w1.toml", "--vary", "session.turns", "--for", "latency_s.p99 < 60"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("no [fleet]"), "{text}");
    let never = ["plan", "scenarios/fleet.toml", "--vary", "tools.search.capacity=5,8", "--for", "latency_s.p99 < 60"];
    assert_eq!(said(&[&never[..], &SHORT].concat()).0, Some(3));
}

#[test]
fn a_fleets_charts_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let storm = ["scenarios/outage.toml", "--set", "fleet.replications=2", "-o", to];
    assert!(agent_sim(&[&["run"], &storm[..]].concat()).status.success());
    assert!(agent_sim(&[&["compare"], &storm[..]].concat()).status.success());
    let plan = ["plan", "scenarios/fleet.toml", "--for", "latency_s.p99 <= 120", "--vary", "tools.search.capacity"];
    let least = ["--between", "4,8", "--set", "fleet.replications=2", "-o", to];
    assert!(agent_sim(&[&plan[..], &least].concat()).status.success());
    for stem in ["fleet-calls", "fleet-sessions", "fleet-latency", "compare-calls-search", "compare-sessions", "plan"] {
        let svg = std::fs::read_to_string(folder.path().join(format!("{stem}.svg"))).unwrap();
        assert!(svg.contains("<svg") && svg.contains("polyline"), "{stem}");
    }
    for name in ["report.json", "report.md", "compare.json", "compare.md", "plan.json"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

#[test]
fn exit_codes() {
    assert_eq!(agent_sim(&["run", "no-such-file.toml"]).status.code(), Some(2));
    assert_eq!(agent_sim(&["run", "scenarios/w1.toml", "--sessions", "none"]).status.code(), Some(2));
    assert_eq!(agent_sim(&["run", "scenarios/w1.toml", "--threads", "0"]).status.code(), Some(2));
    assert_eq!(agent_sim(&["rum"]).status.code(), Some(2));
    assert_eq!(agent_sim(&["prices", "gtp-5"]).status.code(), Some(2));
    let unwritable = agent_sim(&["run", "scenarios/w1.toml", "--sessions", "10", "-o", "Cargo.toml/x"]);
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(err(&unwritable).contains("can't be written"), "{}", err(&unwritable));
    assert!(unwritable.stdout.is_empty(), "the run started before the folder was tried");
}

#[test]
fn mistakes_name_the_argument_and_what_would_work() {
    let (solve, plan) = ("cost_usd.mean = 1", "latency_s.p99 < 60");
    for (args, said) in [
        (&["run", "scenarios/w1.toml", "--seed", "x"][..], &["--seed:1:10", "must be a whole number"][..]),
        (&["run", "scenarios/w1.toml", "--sessions", "-5"], &["--sessions:1:14", "must"]),
        (&["sweep", "scenarios/w1.toml", "--over", "session.turnz=1,2"], &["--over:1:9", "did you mean `turns`?"]),
        (
            &["solve", "scenarios/lifetimes.toml", "--find", "session.turn", "--where", solve],
            &["--find:1:9", "did you mean `turns`?"],
        ),
        // of five minutes and an hour there is a price
        (
            &["solve", "scenarios/lifetimes.toml", "--find", "cache.lifetime", "--where", solve],
            &["--find:1:16", "cache.lifetime=600s", "on offer: 5m, 1h"],
        ),
        (
            &["plan", "scenarios/fleet.toml", "--for", plan, "--vary", "tools.search.capacty"],
            &["--vary:1:14", "did you mean `capacity`?"],
        ),
        (&["plan", "scenarios/fleet.toml", "--for", plan, "--vary", "tools.search.queue"], &["say --between LOW,HIGH"]),
        (&["compare", "scenarios/lifetimes.toml", "--metric", "foo"], &["`agent-sim figures FILE` lists"]),
    ] {
        let output = agent_sim(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        for part in said {
            assert!(err(&output).contains(part), "{args:?}: {}", err(&output));
        }
    }
}

#[test]
fn mistakes_go_to_standard_error() {
    let output = agent_sim(&["run", "tests/it/wrong/unit-missing-integer.toml", "--format", "json"]);
    assert!(output.stdout.is_empty());
    assert!(err(&output).contains("needs a unit"), "{}", err(&output));
}

#[test]
fn tables_fit_eighty_columns() {
    let sessions = |n: &'static str| ["--sessions", n];
    let commands: [&[&str]; 9] = [
        &["run", "scenarios/coding-agent.toml"],
        &["run", "scenarios/architectures/supervisor.toml"],
        &["compare", "scenarios/lifetimes.toml"],
        &["sweep", "scenarios/fifty-turns.toml", "--over", "session.turns=5,10"],
        &["levers", "scenarios/fifty-turns.toml"],
        &["budget", "scenarios/budget.toml"],
        &["check", "scenarios/fifty-turns.toml"],
        &["prices"],
        &["run", "scenarios/fleet.toml", "--set", "fleet.replications=2"],
    ];
    for command in commands {
        let mut arguments = command.to_vec();
        if !["prices", "check"].contains(&command[0]) && !command.contains(&"scenarios/fleet.toml") {
            arguments.extend(sessions("500"));
        }
        let output = agent_sim_in(&arguments, "80");
        let text = out(&output);
        assert!(output.status.success() && text.lines().count() > 10, "{command:?}: {}", err(&output));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
        if command[1..].contains(&"scenarios/coding-agent.toml") {
            insta::assert_snapshot!("eighty_columns", text);
        }
    }
    // one line
    for (file, words) in [("fifty-turns", "$0.8538 a session"), ("herd", "until the last client is done")] {
        let file = format!("scenarios/{file}.toml");
        let text = out(&agent_sim(&["run", &file, "--sessions", "500", "--quiet"]));
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(words) && text.contains("closed form"), "{text}");
    }
}

#[test]
fn charts_are_drawn_again_from_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let [first, again] = ["first", "again"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let commands: [&[&str]; 4] = [
        &["run", "scenarios/coding-agent.toml", "--sessions", "2000", "--csv"],
        &["compare", "scenarios/lifetimes.toml", "--sessions", "500"],
        &["compare", "scenarios/three-turns.toml", "scenarios/fifty-turns.toml", "--sessions", "500"],
        &["compare", "scenarios/outage.toml", "--set", "fleet.replications=2"],
    ];
    for command in commands {
        let _ = std::fs::remove_dir_all(&first);
        let _ = std::fs::remove_dir_all(&again);
        let played = agent_sim(&[command, &["-o", &first]].concat());
        assert!(played.status.success(), "{}", err(&played));
        let drawn = agent_sim(&["plot", &first, "-o", &again]);
        assert!(drawn.status.success(), "{}", err(&drawn));
        let mut pictures = 0;
        for entry in std::fs::read_dir(&first).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".svg") {
                let [mine, theirs] = [&first, &again].map(|dir| std::fs::read(Path::new(dir).join(&name)).unwrap());
                assert!(mine == theirs, "{name} differs");
                pictures += 1;
            }
        }
        assert!(pictures >= 3, "{command:?}");
    }
    let none = agent_sim(&["plot", "scenarios"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("scenarios is no folder of results"), "{}", err(&none));
    // tables of another run aren't taken for this one's
    let fleet = ["--set", "fleet.replications=2", "-o", &first];
    assert!(agent_sim(&[&["run", "scenarios/fleet.toml"], &fleet[..]].concat()).status.success());
    let single = agent_sim(&["run", "scenarios/fifty-turns.toml", "--sessions", "500", "-o", &first]);
    let said = err(&single);
    assert!(said.contains("fleet.parquet") && said.contains("come from an earlier run"), "{said}");
    assert!(said.contains("cost-by-turn.svg") && !said.contains("wrote fleet"), "{said}");
    // a fleet and single sessions can't be the same sessions
    let scenario = folder.path().join("mixed.toml");
    let text = "[session]\nturns = 2\n[[tools]]\nname = \"t\"\nlatency = \"1s\"\n[strategies.many.fleet]\narrivals = { poisson = { per_hour = 60 } }\n";
    std::fs::write(&scenario, text).unwrap();
    let mixed = agent_sim(&["compare", scenario.to_str().unwrap(), "-o", &again]);
    assert_eq!(mixed.status.code(), Some(2));
    assert!(err(&mixed).contains("aren't the same sessions"), "{}", err(&mixed));
}

#[test]
fn sweeps_and_budgets_draw_their_questions() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let calls = ["sweep", "scenarios/parallel-calls.toml", "--over", "tools.search.calls=1,5,20", "--sessions", "300"];
    let drawn = agent_sim(&[&calls, &["--metric", "tool_phase_s.p99", "--chart", "lines", "-o", to][..]].concat());
    assert!(drawn.status.success(), "{}", err(&drawn));
    let svg = |name: &str| std::fs::read_to_string(folder.path().join(format!("{name}.svg"))).unwrap();
    assert!(svg("sweep-tool_phase_s.p99").contains("closed form"));
    let timeouts = ["sweep", "scenarios/timeouts.toml", "--sessions", "300", "--chart", "tradeoff", "-o", to];
    let figures = ["--metric", "tool_phase_s.p99", "--metric", "duplicates_per_call"];
    let drawn = agent_sim(&[&timeouts[..], &figures[..]].concat());
    assert!(drawn.status.success(), "{}", err(&drawn));
    let picture = svg("sweep-tradeoff");
    assert!(picture.contains("duplicates_per_call") && picture.contains("1500ms"), "{picture}");
    let one = agent_sim(&[&timeouts[..], &figures[..2]].concat());
    assert!(one.stdout.is_empty() && err(&one).contains("a trade-off is drawn of two figures"), "{}", err(&one));
    let sized = agent_sim(&["budget", "scenarios/budget.toml", "--sessions", "2000", "-o", to]);
    assert!(sized.status.success(), "{}", err(&sized));
    assert!(svg("budget-stopped").contains("95 % through"));
    assert!(folder.path().join("budget.json").exists());
}

#[test]
fn manual_pages_and_the_schema() {
    let page = out(&agent_sim(&["man"]));
    assert!(page.contains(".TH") && page.contains("Exit codes"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    assert!(agent_sim(&["man", "-o", folder.path().to_str().unwrap()]).status.success());
    let run = std::fs::read_to_string(folder.path().join("agent-sim-run.1")).unwrap();
    assert!(run.contains("agent\\-sim run") && run.contains("strategy"), "{run}");
    let schema: serde_json::Value = serde_json::from_str(&out(&agent_sim(&["schema"]))).unwrap();
    assert_eq!(schema["title"], "agent-sim scenario");
}

#[test]
fn a_folder_of_results() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("deep/er");
    let output =
        agent_sim(&["run", "scenarios/coding-agent.toml", "--sessions", "3000", "-o", target.to_str().unwrap()]);
    assert!(output.status.success(), "{}", err(&output));
    let size = |name: &str| std::fs::metadata(target.join(name)).map_or(0, |m| m.len());
    for name in [
        "report.html",
        "report.md",
        "report.json",
        "sessions.parquet",
        "turns.parquet",
        "cost-by-turn.svg",
        "cost-distribution.svg",
        "latency.svg",
        "tool-phase.svg",
    ] {
        assert!(size(name) > 500, "{name}");
        assert!(err(&output).contains(name));
    }
    if cfg!(feature = "png") {
        assert!(size("latency.png") > 5_000);
    }
    let svg = std::fs::read_to_string(target.join("tool-phase.svg")).unwrap();
    assert!(svg.contains("closed form") && svg.contains("p99.9"), "{svg}");
    let json = std::fs::read_to_string(target.join("report.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
    assert_eq!(std::fs::read_dir(&target).unwrap().filter(|e| is_hidden(&e.as_ref().unwrap().path())).count(), 0);
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().unwrap().to_string_lossy().starts_with('.')
}

#[test]
fn init_writes_once() {
    let folder = tempfile::tempdir().unwrap();
    let init = |args: &[&str]| {
        Command::cargo_bin("agent-sim").unwrap().current_dir(folder.path()).args(args).output().unwrap()
    };
    let first = init(&["init"]);
    assert!(first.status.success());
    assert!(out(&first).contains("agent-sim run scenario.toml"));
    let again = init(&["init"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(err(&again).contains("is there already"));
    assert!(init(&["init", "--force"]).status.success());
    assert!(init(&["run", "scenario.toml", "--sessions", "500"]).status.success());
}

#[test]
fn prices_of_one_model_and_of_all() {
    insta::assert_snapshot!("prices_haiku", out(&agent_sim(&["prices", "claude-haiku-5-5"])));
    insta::assert_snapshot!("prices_dated", out(&agent_sim(&["prices", "google/gemini-4-argon"])));
    let all = out(&agent_sim(&["prices"]));
    assert!(all.lines().count() > 66 && all.contains("claude-sonnet-4-6") && all.contains("2026-11"), "{all}");
    let wrong = agent_sim(&["prices", "claude-sonnet-4.6"]);
    insta::assert_snapshot!("prices_unknown", err(&wrong));
}

#[test]
fn help_teaches() {
    insta::assert_snapshot!("help", out(&agent_sim(&["--help"])));
    for command in [
        "run",
        "check",
        "init",
        "prices",
        "completions",
        "compare",
        "sweep",
        "solve",
        "levers",
        "reserve",
        "budget",
        "plan",
        "figures",
    ] {
        insta::with_settings!({ snapshot_suffix => command }, {
            insta::assert_snapshot!("help", out(&agent_sim(&[command, "--help"])));
        });
    }
}

#[test]
fn figures_are_listed_and_can_be_asked_for() {
    let listed = |file: &str| {
        let output = agent_sim(&["figures", file]);
        assert!(output.status.success(), "{}", err(&output));
        out(&output)
    };
    insta::assert_snapshot!("figures", listed("scenarios/fleet-of-agents.toml"));
    // what is listed is taken where figures are asked for
    for (file, more) in [
        ("scenarios/w1.toml", &["--sessions", "60"][..]),
        ("scenarios/herd.toml", &["--sessions", "60"]),
        ("scenarios/outage.toml", &["--set", "fleet.replications=2"]),
    ] {
        let text = listed(file);
        let (mut names, mut ending, mut in_body) = (Vec::new(), "", false);
        for line in text.lines().skip(2) {
            let first = line.split_whitespace().next().unwrap_or_default();
            if first.starts_with(['─', '═']) {
                in_body = first.starts_with('═');
            } else if !first.is_empty() && !in_body {
                ending = if line.contains("with .mean") { ".mean" } else { "" };
            } else if !first.is_empty() {
                names.push(format!("{first}{}", if first.ends_with(".wait_s") { ".p99" } else { ending }));
            }
        }
        assert!(names.len() > 1, "{text}");
        let asked: Vec<&str> = names.iter().flat_map(|name| ["--metric", name.as_str()]).collect();
        let output =
            agent_sim(&[&["sweep", file, "--over", "strategy=base", "--format", "csv"][..], more, &asked].concat());
        assert!(output.status.success(), "{}", err(&output));
        assert_eq!(out(&output).lines().count(), names.len() + 1);
    }
    let none = agent_sim(&["figures", "scenarios/none.toml"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(out(&agent_sim(&["completions", shell])).contains("agent-sim"), "{shell}");
    }
}

#[test]
fn colour_only_where_it_is_wanted() {
    let forced = Command::cargo_bin("agent-sim")
        .unwrap()
        .current_dir(root())
        .env("CLICOLOR_FORCE", "1")
        .args(["run", "scenarios/three-turns.toml", "--sessions", "10"])
        .output()
        .unwrap();
    assert!(out(&forced).contains('\u{1b}'));
    let refused = Command::cargo_bin("agent-sim")
        .unwrap()
        .current_dir(root())
        .env("NO_COLOR", "1")
        .args(["run", "scenarios/three-turns.toml", "--sessions", "10"])
        .output()
        .unwrap();
    assert!(!out(&refused).contains('\u{1b}'));
}

#[test]
fn a_strategy_of_the_file() {
    let args = ["run", "scenarios/fifty-turns.toml", "--strategy", "uncached", "--sessions", "100"];
    let text = out(&agent_sim(&args));
    assert!(text.contains("strategy uncached") && text.contains("$4.6500"), "{text}");
}

#[test]
fn systems_of_agents() {
    let run = |name: &str, sets: &[&str]| {
        let file = format!("scenarios/architectures/{name}.toml");
        let args = [&["run", file.as_str(), "--sessions", "2000"][..], sets].concat();
        out(&agent_sim(&args))
    };
    insta::assert_snapshot!("supervisor", run("supervisor", &[]));
    insta::assert_snapshot!("supervisor_markdown", run("supervisor", &["--format", "markdown"]));
    insta::assert_snapshot!(
        "searched",
        run("sixty-tools-searched", &["--set", "outcome.success=0.8", "--set", "outcome.attempts=2"])
    );
    let routed = [
        "--set",
        "routing.share=0.5",
        "--set",
        "routing.redo=0.2",
        "--set",
        "routing.small.model.name=claude-haiku-4-5",
    ];
    insta::assert_snapshot!(
        "routed_markdown",
        run("sixty-tools-as-code", &[&routed[..], &["--format", "markdown"]].concat())
    );
    let json = run("supervisor", &["--format", "json", "--set", "outcome.success=0.9"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let strategy = &report["strategies"][0];
    assert_eq!(strategy["agents"][1]["path"], "research");
    assert_eq!(strategy["agents"][1]["sessions"]["value"], 6.0);
    assert!((strategy["pass_k"]["8"]["value"].as_f64().unwrap() - 0.43).abs() < 0.05);
    assert!(strategy["rates"]["cost_per_success_usd"]["value"].as_f64().unwrap() > 0.2);
    // the tree's money is the bill
    let usd = |value: &serde_json::Value| value.as_f64().unwrap();
    let nodes: f64 = strategy["agents"].as_array().unwrap().iter().map(|node| usd(&node["cost_usd"]["value"])).sum();
    assert!((nodes - usd(&strategy["metrics"]["cost_usd"]["mean"])).abs() < 1e-12);
    let searched: serde_json::Value =
        serde_json::from_str(&run("sixty-tools-searched", &["--format", "json"])).unwrap();
    let office = &searched["strategies"][0]["definitions"]["office"];
    assert_eq!(office["loading"], "search");
    assert!(usd(&office["upfront_usd"]["value"]) > usd(&office["search_usd"]["value"]));
    assert!((usd(&office["month_usd"]) - 20_000.0 * usd(&office["search_usd"]["value"])).abs() < 1e-9);
}

#[test]
fn comparing_on_the_command_line() {
    let output = agent_sim(&["compare", "scenarios/fifty-turns.toml", "--sessions", "2000", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let comparison = &report["comparisons"][0];
    assert_eq!((&comparison["of"], &comparison["against"]), (&"uncached".into(), &"base".into()));
    assert!((comparison["difference"].as_f64().unwrap() - 3.7962).abs() < 1e-9);
    assert_eq!((comparison["decided"].as_bool(), comparison["share_cheaper"].as_f64()), (Some(true), Some(0.0)));
    assert_eq!(report["strategies"].as_array().unwrap().len(), 2);
    // two files
    let (one, other) = ("scenarios/architectures/single-loop.toml", "scenarios/architectures/supervisor.toml");
    let output = agent_sim(&["compare", one, other, "--sessions", "2000", "--markdown"]);
    insta::assert_snapshot!("two_files", out(&output));
    let nothing = agent_sim(&["compare", "scenarios/w1.toml", "--sessions", "100"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(err(&nothing).contains("no strategies to compare"), "{}", err(&nothing));
    let unknown = agent_sim(&["compare", "scenarios/fifty-turns.toml", "--sessions", "100", "--metric", "cost_us"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("did you mean `cost_usd`?"), "{}", err(&unknown));
}

#[test]
fn thresholds_decide_the_exit_code() {
    let run = |args: &[&str]| {
        let sessions: &[&str] = if args.contains(&"--sessions") { &[] } else { &["--sessions", "2000"] };
        agent_sim(&[&["run", "scenarios/w1.toml"], sessions, args].concat())
    };
    let code = |args: &[&str]| run(args).status.code();
    // about $0.95 a session
    assert_eq!(code(&["--fail-if", "cost_usd.p95 > 100", "--fail-if", "latency_s.mean<0"]), Some(0));
    let dear = run(&["--fail-if", "cost_usd.mean >= 0.1"]);
    assert_eq!(dear.status.code(), Some(3));
    assert!(out(&dear).contains("cost_usd.mean < 0.1: NOT kept, at $"), "{}", out(&dear));
    // a job that only keeps what went wrong sees why it stopped
    assert!(err(&dear).starts_with("threshold: cost_usd.mean < 0.1: NOT kept, at $"), "{}", err(&dear));
    assert_eq!(err(&run(&["--fail-if", "cost_usd.p95 > 100"])), "");
    // as close as the mean itself: the interval reaches over it
    let json: serde_json::Value = serde_json::from_slice(&run(&["--format", "json"]).stdout).unwrap();
    let mean = json["strategies"][0]["metrics"]["cost_usd"]["mean"].as_f64().unwrap();
    let close = format!("cost_usd.mean > {}", mean * 0.99999);
    assert_eq!((code(&["--fail-if", &close]), code(&["--fail-if", &close, "--strict"])), (Some(0), Some(3)));
    assert!(out(&run(&["--fail-if", &close])).contains("undecided"));
    for (condition, said) in [
        ("cost_us.mean > 1", "did you mean `cost_usd.mean`?"),
        ("cost_usd.p95", "must be a metric and a bound"),
        ("cost_usd.p95 > much", "must be a bound"),
        ("cost_usd > 1", "must end in .mean"),
        ("budget_stopped > 0.1", "doesn't apply to this scenario"),
    ] {
        let output = run(&["--fail-if", condition]);
        assert_eq!(output.status.code(), Some(2), "{condition}");
        assert!(err(&output).contains(said), "{condition}: {}", err(&output));
    }
    let file =
        ["--set", "thresholds.cost_usd.p95=< 0.5", "--set", "thresholds.turn_latency_s.p50=< 1000", "--format", "json"];
    let report: serde_json::Value = serde_json::from_slice(&run(&file).stdout).unwrap();
    let thresholds = report["strategies"][0]["thresholds"].as_array().unwrap();
    assert_eq!((&thresholds[0]["metric"], &thresholds[0]["want"]), (&"cost_usd.p95".into(), &"< 0.5".into()));
    assert_eq!((thresholds[0]["pass"].as_bool(), thresholds[1]["pass"].as_bool()), (Some(false), Some(true)));
    assert!(thresholds[0]["got"].as_f64().unwrap() > 0.5);
    let compared =
        agent_sim(&["compare", "scenarios/fifty-turns.toml", "--sessions", "500", "--fail-if", "cost_usd.mean > 2"]);
    assert_eq!(compared.status.code(), Some(3));
    let said = "uncached: cost_usd.mean <= 2: NOT kept, at $4.65";
    assert!(out(&compared).contains(said) && err(&compared).contains(said), "{}", err(&compared));
}

#[test]
fn a_grid_of_settings() {
    let grid = ["--over", "session.turns=10,50", "--over", "cache.lifetime=off,5m"];
    let run = |more: &[&str]| {
        agent_sim(&[&["sweep", "scenarios/fifty-turns.toml", "--sessions", "500"][..], &grid, more].concat())
    };
    insta::assert_snapshot!("grid", out(&run(&[])));
    // each point is the scenario with its settings
    let report: serde_json::Value = serde_json::from_slice(&run(&["--format", "json"]).stdout).unwrap();
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in points {
        let set = |key: &str| format!("{key}={}", point["settings"][key].as_str().unwrap());
        let sets = [set("session.turns"), set("cache.lifetime")];
        let args = [
            "run",
            "scenarios/fifty-turns.toml",
            "--sessions",
            "500",
            "--format",
            "json",
            "--set",
            &sets[0],
            "--set",
            &sets[1],
        ];
        let alone: serde_json::Value = serde_json::from_slice(&agent_sim(&args).stdout).unwrap();
        let metrics = &alone["strategies"][0]["metrics"];
        assert_eq!(point["metrics"][0]["value"], metrics["cost_usd"]["mean"]);
        assert_eq!(point["metrics"][2]["value"], metrics["latency_s"]["p99"]);
    }
    let csv = out(&run(&["--format", "csv", "--metric", "cost_usd.mean", "--metric", "cache_hit"]));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "session.turns,cache.lifetime,metric,value,low,high,difference,difference_low,difference_high,too_few_beyond,unstable"
    );
    assert_eq!(lines.len(), 1 + 8);
    assert!(lines[7].starts_with("50,5m,cost_usd.mean,0.8538"), "{csv}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(run(&["-o", path]).status.success());
    for name in ["sweep.csv", "sweep.json", "sweep-cost_usd.mean.svg", "sweep-latency_s.p99.svg"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    // two keys make a heat map: a figure in each cell, the dearest the darkest
    let map = std::fs::read_to_string(folder.path().join("sweep-cost_usd.mean.svg")).unwrap();
    let cells = ["$0.3300", "$0.1218", "$4.6500", "$0.8538"];
    assert!(cells.iter().all(|cell| map.contains(cell)), "{map}");
    let darkest = map.matches("fill=\"#004A86\"").count();
    assert_eq!(darkest, 1, "{map}");
    // the file's own grid, and the same from the command line
    let file = folder.path().join("grid.toml");
    let text = "[session]\nturns = 3\noutput = 5\n[price]\ninput = 1\noutput = 2\n[sweep]\n\"session.turns\" = [1, 2, { geometric = { mean = 3 } }]\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let own = agent_sim(&["sweep", file, "--sessions", "200", "--metric", "cost_usd.mean", "--format", "csv"]);
    let over = "session.turns=1,2,{ geometric = { mean = 3 } }";
    let given = agent_sim(&[
        "sweep",
        file,
        "--sessions",
        "200",
        "--metric",
        "cost_usd.mean",
        "--format",
        "csv",
        "--over",
        over,
    ]);
    assert_eq!((out(&own), out(&own).lines().count()), (out(&given), 4));
    for (args, said) in [
        (&["--over", "session.turns"][..], "must be a key and its values"),
        (&["--over", "session.turns=1,,2"], "must be a key and its values"),
        (&["--over", "run.seed=1,2"], "can't change `run.seed`"),
        (&["--over", "session.turns=1,many"], "must be a number"),
        (&["--over", "session.turns=1,2", "--metric", "cost"], "there is no metric or rate `cost`"),
        (&["--over", "session.turns=1,2", "--metric", "search.wait_s.p99"], "is a figure of many sessions at once"),
        (&["--over", "session.turns=1,2", "--metric", "cost.wait.p9"], "did you mean `cost_usd.mean`?"),
        (&[], "has no [sweep]"),
        (&["--over", "session.turns=1,2", "--over", "session.turns=3"], "`session.turns` is set twice"),
        (&["--over", "session.turns=2,2"], "has the value 2 twice"),
        (&["--over", "strategy=none"], "no strategy \"none\""),
    ] {
        let output = agent_sim(&[&["sweep", "scenarios/w1.toml", "--sessions", "100"][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(said), "{args:?}: {}", err(&output));
    }
}

#[test]
fn a_grid_of_fleets() {
    let grid = ["--over", "fleet.arrivals.poisson.per_hour=300,700", "--over", "tools.search.capacity=4,6"];
    let set = ["--set", "fleet.replications=3", "--set", "fleet.horizon=4h"];
    let figures = ["--metric", "cost_per_hour_usd", "--metric", "latency_s.p99", "--metric", "search.utilisation"];
    let run =
        |more: &[&str]| agent_sim(&[&["sweep", "scenarios/fleet.toml"][..], &grid, &set, &figures, more].concat());
    let output = run(&[]);
    assert!(output.status.success(), "{}", err(&output));
    insta::assert_snapshot!("fleet_grid", out(&output));
    // each point is the fleet with its settings; differences are those of `compare`
    let report: serde_json::Value = serde_json::from_slice(&run(&["--format", "json"]).stdout).unwrap();
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in points {
        let sets: Vec<String> = ["fleet.arrivals.poisson.per_hour", "tools.search.capacity"]
            .map(|key| format!("{key}={}", point["settings"][key].as_str().unwrap()))
            .into();
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set.as_str()]).collect();
        let alone = agent_sim(&[&["run", "scenarios/fleet.toml", "--format", "json"][..], &set, &sets].concat());
        if point["metrics"][1]["value"].is_null() {
            assert!(point["unstable"].as_str().unwrap().contains("search"), "{point}");
            assert_eq!(alone.status.code(), Some(1));
            continue;
        }
        let alone: serde_json::Value = serde_json::from_slice(&alone.stdout).unwrap();
        let alone = &alone["strategies"][0];
        assert_eq!(point["metrics"][0]["value"], alone["fleet"]["cost_per_hour_usd"]["value"]);
        assert_eq!(point["metrics"][1]["value"], alone["metrics"]["latency_s"]["p99"]);
        assert_eq!(point["metrics"][2]["value"], alone["fleet"]["stations"]["search"]["utilisation"]["value"]);
        assert!(point["metrics"][1]["difference"].is_number());
    }
    assert_eq!(points[0]["metrics"][1]["difference"], 0.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(run(&["-o", path]).status.success());
    let map = std::fs::read_to_string(folder.path().join("sweep-search.utilisation.svg")).unwrap();
    assert!(map.contains("by fleet.arrivals.poisson.per_hour and tools.search.capacity"), "{map}");
    for (args, said) in [
        (&["--over", "fleet.horizon=4h,6h"][..], "can't change `fleet.horizon`"),
        (&["--over", "session.turns=5,6", "--metric", "serch.utilisation"], "did you mean `search.utilisation`"),
        (&["--over", "session.turns=5,6", "--metric", "model.utilisation"], "only `concurrent`"),
        (&["--over", "tools.search.capacity=5,off", "--metric", "calender.wait_s.mean"], "there is no metric"),
    ] {
        let output = agent_sim(&[&["sweep", "scenarios/fleet.toml"][..], &set, args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(said), "{args:?}: {}", err(&output));
    }
    // where nothing settles
    let over = ["--over", "tools.search.capacity=1,2"];
    let output = agent_sim(&[&["sweep", "scenarios/fleet.toml"][..], &set, &over, &["-o", path]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("The first point doesn't settle"), "{}", out(&output));
    let csv = std::fs::read_to_string(folder.path().join("sweep.csv")).unwrap();
    assert_eq!(csv.matches("the fleet is unstable").count(), 6, "{csv}");
    // asked for twice, shown once
    let twice =
        ["--over", "tools.search.capacity=6", "--metric", "answered", "--metric", "answered", "--format", "csv"];
    let output = agent_sim(&[&["sweep", "scenarios/fleet.toml"][..], &set, &twice].concat());
    assert_eq!(out(&output).lines().count(), 2, "{}", out(&output));
    // a fleet without prices is asked for what it has
    let output = agent_sim(&["sweep", "scenarios/outage.toml", "--over", "strategy=base,no-retries", set[0], set[1]]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).contains("latency_s.p99") && !out(&output).contains("cost_usd"), "{}", out(&output));
    // sessions that are turned away make a fleet fast
    let crowded = ["--over", "tools.search.capacity=4,40", "--set", "tools.search.queue=0", "--chart", "lines"];
    let output = agent_sim(&[&["sweep", "scenarios/fleet.toml"][..], &set, &crowded].concat());
    assert!(out(&output).contains("At 1 of the 2 points calls are turned away"), "{}", out(&output));
    // what a file's name can't hold
    let named = folder.path().join("slash.toml");
    std::fs::write(
        &named,
        "model.first_token = \"1s\"\nsession.turns = 2\n[[tools]]\nname = \"a/b\"\nlatency = \"1s\"\ncapacity = 2\n[fleet]\n\
         arrivals = { poisson = { per_hour = 60 } }\nreplications = 2\n[strategies.alone]\nsession.turns = 3\n",
    )
    .unwrap();
    let named = named.to_str().unwrap();
    let figure = ["--metric", "a/b.utilisation", "-o", path];
    let output = agent_sim(&[&["sweep", named, "--over", "session.turns=2,3"][..], &figure].concat());
    assert!(output.status.success() && folder.path().join("sweep-a_b.utilisation.svg").exists(), "{}", err(&output));
}

#[test]
fn prices_of_another_table() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("own.tsv");
    std::fs::write(
        &table,
        "provider\tmodel\tinput\toutput\tread\twrite_5m\twrite_1h\tmin_cacheable_tokens\tsource\n\
         anthropic\tclaude-opus-4-8\t4\t20\t0.4\t5\t8\t1024\tour contract\n\
         anthropic\tclaude-sonnet-4-6\t3\t15\t0.3\t3.75\t6\t1024\tour contract\n\
         us\thouse-model\t1\t2\t\t\t\t\tour contract\n",
    )
    .unwrap();
    let table = table.display().to_string();
    let shown = |args: &[&str]| out(&agent_sim(args)).replace(&table, "own.tsv");
    insta::assert_snapshot!("prices_import", shown(&["prices", "--import", &table, "--as-of", "2026-11-29"]));
    insta::assert_snapshot!("prices_own", shown(&["prices", "--prices", &table, "--as-of", "2026-11-29"]));
    let file = folder.path().join("a.toml");
    let text = "[model]\nname = \"claude-opus-4-8\"\n[prompt]\nsystem = 5000\n[session]\nturns = 9\noutput = 100\n\
                [cache]\nlifetime = \"5m\"\n";
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let run = |more: &[&str]| {
        let mut args = vec!["run", &file, "--sessions", "20", "--format", "json"];
        args.extend(more);
        serde_json::from_str::<serde_json::Value>(&out(&agent_sim(&args))).unwrap()
    };
    let (built_in, own) = (run(&[]), run(&["--prices", &table]));
    let cost = |report: &serde_json::Value| report["strategies"][0]["metrics"]["cost_usd"]["mean"].as_f64().unwrap();
    // every price is four fifths
    assert!((cost(&own) / cost(&built_in) - 0.8).abs() < 1e-9);
    assert_ne!(own["scenario"]["price_sheet"]["sha256"], built_in["scenario"]["price_sheet"]["sha256"]);
    let missing = agent_sim(&["run", "scenarios/coding-agent.toml", "--prices", "nowhere.json"]);
    assert_eq!((missing.status.code(), err(&missing).contains("nowhere.json can't be read")), (Some(2), true));
    let day = agent_sim(&["prices", "--as-of", "tomorrow"]);
    assert_eq!((day.status.code(), err(&day).contains("a day is written as 2026-12-01")), (Some(2), true));
    let argon = out(&agent_sim(&["prices", "gemini-4-argon", "--as-of", "2026-12-01"]));
    assert!(argon.contains("from 2026-12-01, in force on 2026-12-01"), "{argon}");
}

#[test]
fn solve_prints_where_two_ways_break_even() {
    let solve = |more: &[&str]| {
        let mut args = vec!["solve", "scenarios/lifetimes.toml", "--sessions", "1000", "--find"];
        args.extend(more);
        agent_sim(&args)
    };
    let question = "cost_usd.mean(hour) = cost_usd.mean(base)";
    let latency = "tools.search.latency.exponential.mean";
    insta::assert_snapshot!("solve_latency", out(&solve(&[latency, "--where", question])));
    insta::assert_snapshot!("solve_turns", out(&solve(&["session.turns", "--where", "latency_s.p95 = 1000"])));
    let nowhere = solve(&["price.output", "--where", "cost_usd.mean = 9", "--between", "1.5,30"]);
    insta::assert_snapshot!("solve_nowhere", out(&nowhere));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let json =
        out(&solve(&["session.turns", "--where", question, "--between", "100,400", "--format", "json", "-o", &path]));
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((report["schema"].as_str(), report["key"].as_str()), (Some("agent-sim.solve/1"), Some("session.turns")));
    let crossing = &report["crossings"][0];
    assert_eq!((crossing["before"].as_str(), crossing["after"].as_str()), (Some("larger"), Some("smaller")));
    assert!(
        (crossing["value"].as_f64().unwrap() - crossing["closed_form"].as_f64().unwrap()).abs() < 25.0,
        "{crossing}"
    );
    assert!(folder.path().join("solve.svg").exists() && folder.path().join("solve.json").exists());
    for (args, says) in [
        (
            vec!["session.turns", "--where", "cost_usd.mean = 1", "--between", "9,3"],
            "the first is to be the smaller one",
        ),
        (vec!["session.turns", "--where", "cost_usd.mean = 1", "--between", "9"], "two values are wanted"),
        (vec!["session.turns", "--where", "cost_usd.mean = 1", "--between", "1s,9"], "one end is a duration"),
        (vec!["session.turn", "--where", "cost_usd.mean = 1"], "did you mean `turns`?"),
        (vec!["session.max_turns", "--where", "cost_usd.mean = 1"], "isn't written in the file"),
        (vec!["session.turn", "--where", "cost_usd.mean = 1", "--between", "1,9"], "did you mean `turns`?"),
        (vec!["cache.lifetime", "--where", "cost_usd.mean = 1", "--between", "1m,9m"], "no price for a cache write"),
        (vec!["run.seed", "--where", "cost_usd.mean = 1"], "all values are tried on the same sessions"),
        (vec!["session.turns", "--where", "cost_usd = 1"], "must end in .mean"),
    ] {
        let wrong = solve(&args);
        assert_eq!((wrong.status.code(), err(&wrong).contains(says)), (Some(2), true), "{args:?}: {}", err(&wrong));
    }
}

#[test]
fn levers_are_ranked() {
    let levers = |args: &[&str]| {
        let mut all = vec!["levers"];
        all.extend(args);
        agent_sim(&all)
    };
    insta::assert_snapshot!("levers_fifty", out(&levers(&["scenarios/fifty-turns.toml", "--sessions", "2000"])));
    let sixty = ["scenarios/architectures/sixty-tools.toml", "--sessions", "2000"];
    insta::assert_snapshot!("levers_sixty", out(&levers(&sixty)));
    let few = ["scenarios/coding-agent.toml", "--sessions", "60", "--format", "markdown"];
    insta::assert_snapshot!("levers_markdown", out(&levers(&few)));
    let uncached = ["scenarios/fifty-turns.toml", "--sessions", "100", "--strategy", "uncached", "--format", "json"];
    let report: serde_json::Value = serde_json::from_str(&out(&levers(&uncached))).unwrap();
    let first = &report["levers"][0];
    assert_eq!((report["schema"].as_str(), first["on_already"].as_bool()), (Some("agent-sim.levers/1"), Some(false)));
    assert_eq!(first["changes"][0]["key"].as_str(), Some("cache.lifetime"));
    assert!((first["saved_usd"]["value"].as_f64().unwrap() - 3.7962).abs() < 1e-9, "{first}");
    let wrong = levers(&["scenarios/fifty-turns.toml", "--strategy", "none"]);
    assert_eq!((wrong.status.code(), err(&wrong).contains("no strategy \"none\"")), (Some(2), true));
}

#[test]
fn a_call_is_held_against_a_budget() {
    let reserve = |args: &[&str]| {
        let mut all = vec!["reserve", "--model", "claude-sonnet-4-6", "--max-output", "4096"];
        all.extend(args);
        agent_sim(&all)
    };
    let no = reserve(&["--prompt-tokens", "100000", "--budget", "5.00", "--spent", "4.70"]);
    assert_eq!(no.status.code(), Some(3));
    insta::assert_snapshot!("reserve_no", out(&no));
    let yes = reserve(&["--prompt-tokens", "50000", "--budget", "5.00", "--spent", "4.70"]);
    assert_eq!(yes.status.code(), Some(0));
    insta::assert_snapshot!("reserve_yes", out(&yes));
    let json = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--format", "json"]);
        serde_json::from_str::<serde_json::Value>(&out(&reserve(&all))).unwrap()
    };
    // MODEL.md §8, and the same without a cache
    let report = json(&["--prompt-tokens", "100000", "--budget", "5.00", "--spent", "4.70"]);
    assert_eq!((report["worst_case_usd"].as_f64(), report["fits"].as_bool()), (Some(0.43644), Some(false)));
    assert_eq!((report["left_usd"].as_f64(), report["largest_max_output"].as_u64()), (Some(0.3), None));
    let plain = json(&["--prompt-tokens", "100000", "--budget", "5", "--lifetime", "off"]);
    assert_eq!(plain["worst_case_usd"].as_f64(), Some(0.36144));
    // what would fit does, and a token more doesn't
    let largest = report["largest_prompt_tokens"].as_u64().unwrap();
    for (tokens, fits) in [(largest, true), (largest + 1, false)] {
        let report = json(&["--prompt-tokens", &tokens.to_string(), "--budget", "5.00", "--spent", "4.70"]);
        assert_eq!(report["fits"].as_bool(), Some(fits), "{report}");
    }
    for (args, says) in [
        (vec!["--prompt-tokens", "2000000", "--budget", "5"], "longer than the window"),
        (vec!["--prompt-tokens", "10", "--budget", "-5"], "it must be from 0 to a million dollars"),
        (vec!["--prompt-tokens", "10", "--budget", "NaN"], "it must be from 0 to a million dollars"),
        (
            vec!["--prompt-tokens", "10", "--budget", "5", "--lifetime", "7m"],
            "no price of claude-sonnet-4-6 for a cache write",
        ),
        (vec!["--prompt-tokens", "-1", "--budget", "5"], "unexpected argument"),
    ] {
        let wrong = reserve(&args);
        assert_eq!((wrong.status.code(), err(&wrong).contains(says)), (Some(2), true), "{args:?}: {}", err(&wrong));
    }
}

#[test]
fn a_budget_is_sized() {
    let budget =
        |args: &[&str]| agent_sim(&[&["budget", "scenarios/budget.toml", "--sessions", "2000"][..], args].concat());
    insta::assert_snapshot!("budget_size", out(&budget(&[])));
    let report: serde_json::Value = serde_json::from_str(&out(&budget(&["--format", "json"]))).unwrap();
    assert_eq!(report["schema"].as_str(), Some("agent-sim.budget/1"));
    assert_eq!((report["needed"].as_array().unwrap().len(), report["max_output"].as_u64()), (3, Some(4_096)));
    let wrong = agent_sim(&["budget", "scenarios/fifty-turns.toml"]);
    assert_eq!((wrong.status.code(), err(&wrong).contains("max_output = 4_096")), (Some(2), true), "{}", err(&wrong));
}

#[test]
fn every_command_tells_what_a_reader_should_know_of_the_scenario() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("capacity.toml");
    let text = "[model]\nname = \"claude-sonnet-4-6\"\nfirst_token = \"1s\"\n[session]\nturns = 2\noutput = 10\n[[tools]]\n\
                name = \"search\"\nlatency = \"2s\"\ncapacity = 3\n[strategies.once]\nsession.turns = 1\n";
    std::fs::write(&path, text).unwrap();
    let file = path.to_str().unwrap();
    let told = |args: &[&str]| err(&agent_sim(&[args, &["--sessions", "100"]].concat()));
    let of_all = "note: the capacity of search matters where sessions meet: give [fleet] arrivals\n";
    let once = ": a session of one model call never calls a tool: the first call is the answer\n";
    for args in [
        &["compare", file][..],
        &["sweep", file, "--over", "session.turns=2,3"],
        &["levers", file],
        &["budget", file],
        &["solve", file, "--where", "latency_s.mean = 7", "--find", "tools.search.latency"],
    ] {
        let told = told(args);
        assert!(told.contains(of_all) && told.matches(of_all).count() == 1, "{args:?}: {told}");
    }
    assert!(told(&["compare", file]).contains(&format!("note (once){once}")));
    let over = ["sweep", file, "--over", "session.turns=1,2", "--over", "tools.search.latency=1s,2s"];
    let grid = told(&over);
    assert!(grid.contains(&format!("note (session.turns=1, tools.search.latency=1s and 1 more){once}")), "{grid}");
    let fleet = ["plan", "scenarios/fleet.toml", "--vary", "tools.search.capacity=6", "--for", "latency_s.p99 <= 120"];
    assert!(told(&fleet).contains("note: `sessions` has no meaning here"));
    let json =
        out(&agent_sim(&["sweep", file, "--sessions", "100", "--over", "session.turns=2,3", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["notes"][0], "the capacity of search matters where sessions meet: give [fleet] arrivals");
}
