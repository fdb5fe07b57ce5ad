//! Tables of results: what is in them, that files hold the same as memory, and that memory and bytes stay what they were.

use std::path::Path;

use agent_sim::scenario::Scenario;
use agent_sim::simulate::{Answer, Options, Silent, compare, simulate};
use agent_sim::stats::Metric;
use agent_sim::table::{Cells, Files, Memory, Name, Schema, Sink, Table};

use crate::support::{root, scenario_with, shipped, shipped_scenario};

fn quick(scenario: &mut Scenario, sessions: u64) {
    scenario.run.sessions = sessions;
    scenario.run.precision.clear();
    if let Some(fleet) = &mut scenario.model.fleet {
        fleet.replications = 3;
        fleet.horizon_s = fleet.horizon_s.min(fleet.warm_up_s + 3_600.0);
    }
}

fn recorded(scenario: Scenario) -> (Answer, Vec<(Name, Table)>) {
    let memory = Memory::new(&Schema::all(&[&scenario.model]));
    let options = Options { tables: Some(&memory), ..Options::default() };
    let answer = simulate(scenario, options, &Silent).unwrap();
    (answer, memory.into_tables())
}

fn table(tables: &[(Name, Table)], name: Name) -> &Table {
    &tables.iter().find(|(own, _)| *own == name).unwrap().1
}

fn numbers(table: &Table, column: &str) -> Vec<f64> {
    let values = table.numbers(column).unwrap_or_else(|| panic!("no {column}"));
    values.into_iter().map(|x| x.unwrap()).collect()
}

/// Writes the tables of a scenario to a folder.
fn written(scenario: Scenario, folder: &Path, csv: bool, threads: usize) -> Answer {
    let about = [("agent-sim.title".to_owned(), scenario.title.clone())];
    let files = Files::create(folder, &Schema::all(&[&scenario.model]), csv, &about).unwrap();
    let options = Options { threads: Some(threads), tables: Some(&files) };
    let answer = simulate(scenario, options, &Silent).unwrap();
    files.finish().unwrap();
    answer
}

#[test]
fn a_row_a_session_sums_to_the_report_in_every_shipped_scenario() {
    for path in shipped() {
        let mut scenario = Scenario::load(&path, &agent_sim::scenario::Request::default()).unwrap();
        quick(&mut scenario, 1_500);
        let (answer, tables) = recorded(scenario);
        let sessions = table(&tables, Name::Sessions);
        assert_eq!(sessions.rows() as u64, answer.sample.sessions(), "{}", path.display());
        let model = &answer.scenario.model;
        for metric in Metric::ALL.into_iter().filter(|metric| metric.applies(model)) {
            let values = numbers(sessions, metric.quantity().name());
            let moments = answer.sample.moments(metric.quantity());
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let near = (mean - moments.mean).abs() <= 1e-9 * moments.mean.abs().max(1e-12);
            assert!(near, "{}: {} {mean} {}", path.display(), metric.quantity().name(), moments.mean);
        }
        let outcomes = sessions.texts("outcome").unwrap();
        for (outcome, count) in &answer.summary.outcomes {
            let rows = outcomes.iter().filter(|text| text.as_deref() == Some(outcome.name())).count() as u64;
            assert_eq!(rows, *count, "{}: {}", path.display(), outcome.name());
        }
        // numbers in their order, in every replication
        let order = numbers(sessions, "session");
        if model.fleet.is_none() {
            assert!(order.iter().enumerate().all(|(row, number)| row as f64 == *number));
        } else {
            let replications = numbers(sessions, "replication");
            assert!(replications.is_sorted() && replications.last() == Some(&2.0));
            // a session that ended stands once in its replication
            let mut once: Vec<(u64, u64)> =
                replications.iter().zip(&order).map(|(r, s)| (*r as u64, *s as u64)).collect();
            once.sort_unstable();
            assert!(once.windows(2).all(|pair| pair[0] != pair[1]) && order.iter().all(|number| *number < 1e9));
            assert!(table(&tables, Name::Fleet).rows() > 60, "{}", path.display());
        }
    }
}

#[test]
fn the_turns_of_a_session_are_the_whole_session() {
    let files = [
        "fifty-turns.toml",
        "lifetimes.toml",
        "coding-agent.toml",
        "model-failures.toml",
        "compaction.toml",
        "conversation.toml",
    ];
    for file in files {
        let mut scenario = shipped_scenario(file, None);
        quick(&mut scenario, 300);
        let (_, tables) = recorded(scenario);
        let (sessions, turns) = (table(&tables, Name::Sessions), table(&tables, Name::Turns));
        let whose = numbers(turns, "session");
        let watched = whose.last().map_or(0, |last| *last as usize + 1);
        assert!(watched >= 50, "{file}");
        let sums = |column: &str| {
            let mut sums = vec![0.0; watched];
            for (session, value) in whose.iter().zip(numbers(turns, column)) {
                sums[*session as usize] += value;
            }
            sums
        };
        let of = |column: &str| numbers(sessions, column)[..watched].to_vec();
        let near = |mine: &[f64], theirs: &[f64], what: &str| {
            for (session, (mine, theirs)) in mine.iter().zip(theirs).enumerate() {
                assert!(
                    (mine - theirs).abs() <= 1e-9 * theirs.abs().max(1.0),
                    "{file}: {what} of {session}: {mine} {theirs}"
                );
            }
        };
        let outcomes = sessions.texts("outcome").unwrap();
        let last_call_counts = outcomes[..watched].iter().all(|text| text.as_deref() != Some("failed"));
        if last_call_counts {
            let tools = sessions.numbers("cost_tools_usd").map_or(vec![0.0; watched], |_| of("cost_tools_usd"));
            let billed: Vec<f64> = of("cost_usd").iter().zip(&tools).map(|(all, fees)| all - fees).collect();
            near(&sums("cost_usd"), &billed, "cost");
            near(&sums("latency_s"), &of("latency_s"), "latency");
        }
        if file == "fifty-turns.toml" || file == "lifetimes.toml" {
            for column in
                ["input_tokens", "uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"]
            {
                near(&sums(column), &of(column), column);
            }
            let cache = turns.texts("cache").unwrap();
            let expired = cache.iter().filter(|text| text.as_deref() == Some("expired")).count() as f64;
            near(&[expired], &[of("expired_gaps").iter().sum()], "expired");
            assert!(file != "lifetimes.toml" || expired > 20.0, "{expired}");
        }
        // each token in exactly one class
        let [all, plain, read, write] = ["input_tokens", "uncached_tokens", "cache_read_tokens", "cache_write_tokens"]
            .map(|name| numbers(turns, name));
        for row in 0..all.len() {
            assert_eq!(all[row], plain[row] + read[row] + write[row], "{file}");
        }
    }
}

#[test]
fn files_hold_what_memory_holds_on_one_thread_or_two() {
    for (file, sessions) in [("coding-agent.toml", 70_000), ("budget.toml", 900), ("fleet.toml", 0), ("outage.toml", 0)]
    {
        let load = || {
            let mut scenario = shipped_scenario(file, None);
            quick(&mut scenario, sessions);
            scenario
        };
        let (_, kept) = recorded(load());
        let [one, two] = [1, 2].map(|threads| {
            let folder = tempfile::tempdir().unwrap();
            written(load(), folder.path(), true, threads);
            folder
        });
        for (name, table) in kept {
            let parquet = format!("{}.parquet", name.stem());
            let mut read = Table::read(&one.path().join(&parquet), None, usize::MAX).unwrap();
            assert!(read.metadata.iter().any(|(key, _)| key == "agent-sim.columns"));
            read.metadata.clear();
            // of more rows than are wanted every so many, over all row groups
            let most = table.rows() / 3;
            let some = Table::read(&one.path().join(&parquet), None, most).unwrap();
            let every = table.rows().div_ceil(most);
            assert_eq!(some.rows(), table.rows().div_ceil(every));
            for (column, _) in &table.columns {
                if let (Some(mine), Some(all)) = (some.numbers(column), table.numbers(column)) {
                    assert!(mine.iter().zip(all.iter().step_by(every)).all(|(a, b)| a == b), "{file}: {column}");
                }
            }
            assert!(read == table, "{file}: {parquet} differs from memory");
            for ending in ["parquet", "csv"] {
                let path = format!("{}.{ending}", name.stem());
                let [mine, theirs] = [&one, &two].map(|folder| std::fs::read(folder.path().join(&path)).unwrap());
                assert!(mine == theirs, "{file}: {path} differs between one thread and two");
            }
            let text = std::fs::read_to_string(one.path().join(format!("{}.csv", name.stem()))).unwrap();
            assert_eq!(text.lines().count(), table.rows() + 1, "{file}");
            for row in [0, table.rows() / 2, table.rows() - 1] {
                let fields: Vec<&str> = text.lines().nth(row + 1).unwrap().split(',').collect();
                for (field, (column, cells)) in fields.iter().zip(&table.columns) {
                    let same = match cells {
                        Cells::Whole(cells) => cells[row].map_or(field.is_empty(), |x| field.parse() == Ok(x)),
                        Cells::Number(cells) => cells[row].map_or(field.is_empty(), |x| field.parse() == Ok(x)),
                        Cells::Flag(cells) => cells[row].map_or(field.is_empty(), |x| field.parse() == Ok(x)),
                        Cells::Text(cells) => cells[row].as_deref().unwrap_or_default() == *field,
                    };
                    assert!(same, "{file}: {column} of row {row} is {field}");
                }
            }
        }
    }
}

#[test]
fn ways_share_a_table_and_a_metric_that_one_has_not_is_empty_there() {
    let text = "[price]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write_5m = 3.75\n[prompt]\nsystem = 5000\n[session]\nturns = 4\noutput = 300\n\
                [cache]\nlifetime = \"5m\"\n[budget]\nturns = 3\n[strategies.off]\ncache.lifetime = \"off\"\n";
    let load = |sets: &[&str]| scenario_with(text, &[&["run.sessions=1000"], sets].concat());
    let mut off = load(&["cache.lifetime=off"]);
    off.strategy = "off".to_owned();
    let all = vec![load(&[]), off];
    let memory = Memory::new(&Schema::all(&[&all[0].model, &all[1].model]));
    let options = Options { tables: Some(&memory), ..Options::default() };
    compare(all, &[Metric::named("cost_usd").unwrap()], options, &Silent).unwrap();
    let tables = memory.into_tables();
    let sessions = table(&tables, Name::Sessions);
    assert_eq!(sessions.rows(), 2_000);
    let strategies = sessions.texts("strategy").unwrap();
    let read = sessions.numbers("cache_read_tokens").unwrap();
    for (strategy, read) in strategies.iter().zip(&read) {
        assert_eq!(read.is_some(), strategy.as_deref() == Some("base"));
    }
    let stopped = sessions.texts("stopped_by").unwrap();
    assert!(stopped.iter().all(|text| text.as_deref() == Some("turns")));
}

#[test]
fn what_is_not_finished_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario_with("[session]\nturns = 3\n", &[]);
    let files = Files::create(folder.path(), &Schema::all(&[&scenario.model]), true, &[]).unwrap();
    let stream = files.streams(1);
    assert_eq!(stream, 0);
    assert!(std::fs::read_dir(folder.path()).unwrap().count() == 4, "hidden until they are whole");
    drop(files);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let nowhere = folder.path().join("nowhere");
    let error = Files::create(&nowhere, &Schema::all(&[&scenario.model]), false, &[]).unwrap_err().to_string();
    assert!(error.contains("sessions.parquet can't be written"), "{error}");
    // a file that is no table
    let other = folder.path().join("other.parquet");
    std::fs::write(&other, "no table").unwrap();
    assert!(Table::read(&other, None, usize::MAX).unwrap_err().to_string().contains("other.parquet can't be read"));
}

#[test]
fn the_readme_names_every_column() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut scenarios: Vec<Scenario> =
        shipped().iter().map(|path| Scenario::load(path, &agent_sim::scenario::Request::default()).unwrap()).collect();
    scenarios.sort_by_key(|scenario| scenario.model.fleet.is_some());
    let models: Vec<_> = scenarios.iter().map(|scenario| &scenario.model).collect();
    let single = &models[..1];
    let schemas = [Schema::sessions(&models), Schema::turns(single).unwrap(), Schema::fleet(&models).unwrap()];
    for schema in schemas {
        for column in schema.columns {
            assert!(readme.contains(&format!("`{}`", column.name)), "README doesn't name {}", column.name);
            assert!(!column.about.is_empty(), "{} has no description", column.name);
        }
    }
}
