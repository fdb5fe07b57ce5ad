//! The JSON Schema of the scenario file: it takes what is read, and knows the keys that the reader knows.

use std::collections::BTreeSet;
use std::path::Path;

use agent_sim::scenario::{Request, SCHEMA, Scenario, TEMPLATE};
use serde_json::Value;

use crate::support::{root, shipped};

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn as_json(text: &str) -> Value {
    // dates as text, as editors take them
    fn json(value: toml::Value) -> Value {
        match value {
            toml::Value::Datetime(date) => Value::String(date.to_string()),
            toml::Value::Array(items) => items.into_iter().map(json).collect(),
            toml::Value::Table(table) => {
                Value::Object(table.into_iter().map(|(key, value)| (key, json(value))).collect())
            }
            other => serde_json::to_value(other).unwrap(),
        }
    }
    json(toml::Value::Table(toml::from_str(text).unwrap()))
}

#[test]
fn every_shipped_scenario_names_the_schema_and_keeps_it() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        let named = first.strip_prefix("#:schema ").unwrap_or_else(|| panic!("{} names no schema", path.display()));
        let named = path.parent().unwrap().join(named).canonicalize().unwrap();
        assert_eq!(named, root().join("src/scenario/schema.json").canonicalize().unwrap());
        let json = as_json(&text);
        let wrong: Vec<String> =
            validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
    }
    assert!(validator.is_valid(&as_json(TEMPLATE)));
}

#[test]
fn it_refuses_what_a_schema_can_tell() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let (mut refused, mut all) = (0, 0);
    for entry in std::fs::read_dir(root().join("tests/it/wrong")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        // what isn't TOML is refused by every editor
        let Ok(table) = toml::from_str::<toml::Table>(&text) else { continue };
        all += 1;
        refused += usize::from(!validator.is_valid(&as_json(&toml::to_string(&table).unwrap())));
    }
    // the others are wrong because of how their values stand to each other
    assert!(all > 100 && refused >= 80, "{refused} of {all}");
    for wrong in ["[session]\nturn = 3", "[prompt]\nsystem = \"5k\"", "[cache]\nlifetime = 5", "[[tools]]\nlatency = 2"]
    {
        assert!(!validator.is_valid(&as_json(wrong)), "{wrong}");
    }
}

/// The keys that the reader names where it meets one that it doesn't know.
fn known(text: &str) -> BTreeSet<String> {
    let error = Scenario::parse(text, "test.toml", Path::new(""), &Request::default()).unwrap_err().render(false);
    let lists = error.lines().filter_map(|line| Some(line.split_once("help: the keys here are ")?.1.to_owned()));
    let keys = lists.flat_map(|list| list.split(", ").map(str::to_owned).collect::<Vec<_>>());
    keys.filter(|key| !key.starts_with("write_multiplier_") && !key.starts_with("cache_write_")).collect()
}

#[test]
fn it_knows_the_keys_that_the_reader_knows() {
    let schema = schema();
    let agent = "[[tools]]\nname = \"t\"\nagent = \"a\"\n[agents.a.session]\nturns = 1\n[agents.a]\nzzz = 1\n";
    let sections = [
        ("zzz = 1\n", "/properties"),
        ("[run]\nzzz = 1\n", "/properties/run/properties"),
        ("[model]\nzzz = 1\n", "/$defs/model/properties"),
        ("[price]\nzzz = 1\n", "/$defs/price/properties"),
        ("[prompt]\nzzz = 1\n", "/$defs/prompt/properties"),
        ("[[servers]]\nzzz = 1\n", "/$defs/server/properties"),
        ("[tool_search]\nzzz = 1\n", "/$defs/tool_search/properties"),
        ("[session]\nzzz = 1\n", "/$defs/session/properties"),
        ("[[tools]]\nzzz = 1\n", "/$defs/tool/properties"),
        ("[[tools]]\napproval = { zzz = 1 }\n", "/$defs/tool/properties/approval/anyOf/0/properties"),
        ("[retry]\nzzz = 1\n", "/$defs/retry/anyOf/1/properties"),
        ("[breaker]\nzzz = 1\n", "/$defs/breaker/anyOf/0/properties"),
        ("[cache]\nzzz = 1\n", "/$defs/cache/properties"),
        ("[cache]\nbreaks = { zzz = 1 }\n", "/$defs/cache/properties/breaks/anyOf/0/properties"),
        ("[context]\nzzz = 1\n", "/$defs/context/properties"),
        ("[budget]\nzzz = 1\n", "/$defs/budget/properties"),
        ("[volume]\nzzz = 1\n", "/properties/volume/properties"),
        ("[outcome]\nzzz = 1\n", "/properties/outcome/properties"),
        ("[routing]\nzzz = 1\n", "/properties/routing/anyOf/0/properties"),
        ("[herd]\nzzz = 1\n", "/$defs/herd/properties"),
        ("[fleet]\nzzz = 1\n", "/$defs/fleet/properties"),
        ("[fleet]\narrivals = { zzz = 1 }\n", "/$defs/fleet/properties/arrivals/properties"),
        ("[fleet.limits]\nzzz = 1\n", "/$defs/limits/properties"),
        ("[fleet]\n[[fleet.outages]]\nzzz = 1\n", "/$defs/outage/properties"),
        (agent, "/$defs/agent/properties"),
    ];
    for (text, place) in sections {
        let properties = schema.pointer(place).unwrap_or_else(|| panic!("the schema has no {place}"));
        let mine: BTreeSet<String> = properties.as_object().unwrap().keys().cloned().collect();
        let theirs = known(text);
        assert!(!theirs.is_empty(), "nothing is said of {text}");
        let missing: Vec<_> = theirs.difference(&mine).collect();
        let unknown: Vec<_> = mine.difference(&theirs).filter(|key| *key != "cache_write").collect();
        assert!(missing.is_empty(), "{place} lacks {missing:?}");
        assert!(unknown.is_empty(), "{place} has {unknown:?}, which the reader doesn't know");
    }
    let families = schema.pointer("/$defs/count_law/anyOf/1/properties").unwrap().as_object().unwrap();
    let text = "[session]\nturns = { zzz = 1 }\n";
    let error = Scenario::parse(text, "test.toml", Path::new(""), &Request::default()).unwrap_err().to_string();
    for family in families.keys() {
        assert!(error.contains(family.as_str()), "{family}: {error}");
    }
    assert_eq!(families.len(), 14);
}
