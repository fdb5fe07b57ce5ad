//! Results as polars frames: the same rows as the files.

use agent_sim::frames;
use agent_sim::simulate::{Options, Silent};
use agent_sim::table::{Files, Schema, Table};
use polars::prelude::{AnyValue, ChunkAgg as _};

use crate::support::{assert_close, mean, scenario_with, shipped_scenario};

#[test]
fn frames_hold_the_answers_and_what_the_files_hold() {
    let load = |strategy| {
        let mut scenario = shipped_scenario("lifetimes.toml", strategy);
        scenario.run.sessions = 1_500;
        scenario
    };
    let run = frames::play(vec![load(None), load(Some("hour"))], Options::default(), &Silent).unwrap();
    let sessions = frames::sessions(&run).unwrap();
    assert_eq!(sessions.height(), 3_000);
    for (strategy, answer) in sessions.partition_by_stable(["strategy"], true).unwrap().iter().zip(&run.answers) {
        let cost = strategy.column("cost_usd").unwrap().f64().unwrap().mean().unwrap();
        assert_close(cost, mean(answer, "cost_usd"), 1e-9);
    }
    let turns = frames::turns(&run).unwrap();
    assert_eq!(turns.height(), 2 * 1_500 * 50);
    let last = turns.column("tool_phase_s").unwrap().get(49).unwrap();
    assert_eq!(last, AnyValue::Null, "the answer has no tool phase");
    assert_eq!(frames::fleet(&run).unwrap().height(), 0);

    let folder = tempfile::tempdir().unwrap();
    let scenario = load(None);
    let files = Files::create(folder.path(), &Schema::all(&[&scenario.model]), false, &[]).unwrap();
    agent_sim::simulate::simulate(scenario, Options { tables: Some(&files), ..Options::default() }, &Silent).unwrap();
    files.finish().unwrap();
    let file = Table::read(&folder.path().join("sessions.parquet"), None, usize::MAX).unwrap();
    for (name, _) in &file.columns {
        if let Some(values) = file.numbers(name) {
            let column = sessions.column(name).unwrap();
            for row in [0, 700, 1_499] {
                let theirs = column.get(row).unwrap().try_extract::<f64>().unwrap();
                assert_eq!(Some(theirs), values[row], "{name}");
            }
        }
    }
}

#[test]
fn a_fleet_has_its_frame() {
    let text = "[session]\nturns = 3\n[[tools]]\nname = \"t\"\nlatency = \"1s\"\ncapacity = 2\n[fleet]\narrivals = { poisson = { per_hour = 600 } }\n\
                horizon = \"1h\"\nwarm_up = \"6m\"\nreplications = 3\n";
    let run = frames::play(vec![scenario_with(text, &[])], Options::default(), &Silent).unwrap();
    let (fleet, sessions) = (frames::fleet(&run).unwrap(), frames::sessions(&run).unwrap());
    assert!(fleet.height() > 300 && fleet.column("ci95_low").is_ok());
    assert_eq!(sessions.column("replication").unwrap().get(sessions.height() - 1).unwrap(), AnyValue::Int64(2));
    // a few sessions are all watched
    let turns = frames::turns(&run).unwrap();
    assert_eq!(turns.height(), 3 * sessions.height());
    assert_eq!(turns.column("replication").unwrap().get(turns.height() - 1).unwrap(), AnyValue::Int64(2));
}
