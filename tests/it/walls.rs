//! The walls between the rooms (ARCHITECTURE.md), as far as a look at the sources can tell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::root;

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
}

/// (room, path, code without comments) of every source file.
fn rooms() -> Vec<(String, PathBuf, String)> {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    files
        .into_iter()
        .map(|path| {
            let inside = path.strip_prefix(root().join("src")).unwrap();
            let room = inside.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            (room, path, code.join("\n"))
        })
        .collect()
}

#[track_caller]
fn only_in(words: &[&str], allowed: &[&str]) {
    for (room, path, code) in rooms() {
        for word in words {
            assert!(!code.contains(word) || allowed.contains(&room.as_str()), "{} has `{word}`", path.display());
        }
    }
}

#[test]
fn each_library_has_its_room() {
    only_in(&["rayon"], &["engine"]);
    only_in(&["plotters"], &["chart"]);
    only_in(&["derive(Serialize", "derive(Deserialize", "Serialize)]"], &["report"]);
    only_in(&["println!", "print!(", "eprintln!", "indicatif"], &["cli"]);
    only_in(&["clap"], &["cli", "main"]);
    only_in(&["seed_from_u64", "SeedableRng"], &["engine"]);
    only_in(&["annotate_snippets", "toml::"], &["scenario"]);
    only_in(&["comfy_table"], &["report"]);
    only_in(&["parquet::", "csv::Writer"], &["table", "report"]);
    only_in(&["polars"], &["frames"]);
    only_in(&["askama", "textwrap"], &["report"]);
}

#[test]
fn session_knows_no_clock_thread_or_file() {
    for (room, path, code) in rooms() {
        if ["session", "model", "dist", "theory"].contains(&room.as_str()) {
            for word in ["std::time", "std::thread", "std::fs", "std::io", "Instant"] {
                assert!(!code.contains(word), "{} has `{word}`", path.display());
            }
        }
    }
}

#[test]
fn arrows_between_rooms_point_one_way() {
    // each room may use those before it
    let order = [
        "dist", "price", "budget", "model", "session", "engine", "stats", "theory", "check", "scenario", "table",
        "simulate", "report", "chart", "frames", "cli",
    ];
    // the model's own file format needs what it validates against
    let level: BTreeMap<&str, usize> = order.iter().enumerate().map(|(i, room)| (*room, i)).collect();
    for (room, path, code) in rooms() {
        let Some(own) = level.get(room.as_str()) else { continue };
        for (other, at) in &level {
            if code.contains(&format!("crate::{other}::")) || code.contains(&format!("use crate::{{{other}")) {
                assert!(at <= own, "{} uses {other}, which comes later", path.display());
            }
        }
    }
}

#[test]
fn files_hold_one_idea() {
    for (_, path, _) in rooms() {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", path.display());
    }
    let main = std::fs::read_to_string(root().join("src/main.rs")).unwrap();
    assert!(main.lines().count() <= 40);
}
