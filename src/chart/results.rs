//! The charts of a folder of results, from its tables and its report alone.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::over_time::fleet_drawings;
use super::{
    CostByTurn, CostDistribution, Drawn, MoneyBySource, SweepLines, TailCurve, Way, WaysSideBySide, write_drawn,
};
use crate::Error;
use crate::report::{count, money, seconds, whole};
use crate::stats::quantile_ranks;
use crate::table::{Name, Table};

/// What a folder holds.
#[derive(Debug)]
pub struct Results {
    pub(super) title: String,
    /// Whether it is of several ways side by side.
    pub(super) compares: bool,
    pub(super) report: Value,
    /// Names of the ways, in the order of the table.
    pub(super) ways: Vec<Arc<str>>,
    sessions: Table,
    turns: Option<Table>,
    fleet: Option<Table>,
}

/// A chart of any kind.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Drawing {
    CostByTurn(CostByTurn),
    Money(MoneyBySource),
    Distribution(CostDistribution),
    Tail(TailCurve),
    Ways(WaysSideBySide),
    Lines(SweepLines),
}

impl Drawing {
    /// Writes it as [`super::write`] does, and keeps the picture at hand.
    ///
    /// # Errors
    /// Where a file can't be drawn or written.
    pub fn write(&self, folder: &Path, stem: &str) -> Result<Drawn, Error> {
        match self {
            Drawing::CostByTurn(chart) => write_drawn(chart, folder, stem),
            Drawing::Money(chart) => write_drawn(chart, folder, stem),
            Drawing::Distribution(chart) => write_drawn(chart, folder, stem),
            Drawing::Tail(chart) => write_drawn(chart, folder, stem),
            Drawing::Ways(chart) => write_drawn(chart, folder, stem),
            Drawing::Lines(chart) => write_drawn(chart, folder, stem),
        }
    }
}

/// Every stem that a folder's charts may have, but for those that name a tool.
pub const STEMS: [&str; 20] = [
    "herd-time",
    "cost-by-turn",
    "cost-sources",
    "cost-distribution",
    "latency",
    "tool-phase",
    "fleet-calls",
    "fleet-sessions",
    "fleet-latency",
    "fleet-unanswered",
    "fleet-use",
    "fleet-cost",
    "compare-cost",
    "compare-latency",
    "compare-latency-tail",
    "compare-sources",
    "compare-sessions",
    "compare-unanswered",
    "compare-herd_calls",
    "compare-herd_time_s",
];

/// The question that a chart answers, by the stem of its files.
pub fn question(stem: &str) -> String {
    match stem {
        "cost-by-turn" => "What does each call of a session cost, with the cache and without?",
        "cost-sources" | "compare-sources" => "What does the money go to?",
        "cost-distribution" => "How far apart are sessions?",
        "latency" => "How long does a session take, up to the slowest one in a thousand?",
        "tool-phase" => "How long does one tool phase take?",
        "herd-time" => "How long until the last client is done?",
        "fleet-calls" => "How many calls arrive, and how many fail?",
        "fleet-sessions" => "How many sessions are in progress, and what waits?",
        "fleet-latency" => "How long do sessions take that end now?",
        "fleet-unanswered" | "compare-unanswered" => "How many sessions end without their answer?",
        "fleet-use" => "What fills up?",
        "fleet-cost" => "What does an hour cost?",
        "compare-cost" => "Which way is cheaper?",
        "compare-latency" => "Which way is faster?",
        "compare-latency-tail" => "How slow are the slowest sessions of each way?",
        "compare-sessions" => "How many sessions are in progress?",
        "compare-herd_calls" => "Which way needs fewer calls?",
        "compare-herd_time_s" => "Which way is done sooner?",
        other => {
            let of = |start: &str, words: &str| other.strip_prefix(start).map(|name| format!("{words} {name}?"));
            return of("compare-calls-", "How many calls come to")
                .or_else(|| of("compare-waiting-", "How many calls wait for"))
                .or_else(|| of("compare-use-", "How many servers are busy of"))
                .unwrap_or_else(|| other.replace('-', " "));
        }
    }
    .to_owned()
}

/// Curves of more rows a way are drawn from every second, third and so on of them, so that memory stays flat; figures beside them
/// are the report's.
const MOST_ROWS: usize = 250_000;

/// Later calls aren't drawn.
const MOST_CALLS: usize = 100_000;

/// The 5th percentile.
fn fifth(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    let rank = quantile_ranks(values.len() as u64, 0.05).0.max(1) as usize;
    if rank > values.len() {
        return None;
    }
    Some(*values.select_nth_unstable_by(rank - 1, f64::total_cmp).1)
}

/// ", the first 6 of 8 ways", where not all are drawn.
fn first_of(drawn: usize, all: usize) -> String {
    if all > drawn { format!("; the first {drawn} of {all} ways") } else { String::new() }
}

/// A call that fewer sessions reach isn't shown: its mean would be noise.
const FEWEST_SESSIONS: u64 = 50;

impl Results {
    /// Reads a folder that `run -o` or `compare -o` wrote.
    ///
    /// # Errors
    /// Where a table or the report isn't there, or can't be read.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = |name: Name| folder.join(format!("{}.parquet", name.stem()));
        if !path(Name::Sessions).exists() {
            return Err(Error::NoResults(folder.to_owned()));
        }
        let columns = ["strategy", "cost_usd", "latency_s", "herd_calls", "herd_time_s"];
        let ways = Table::about_file(&path(Name::Sessions), "agent-sim.ways")?.unwrap_or_default();
        // one way needs no names
        let first = usize::from(ways.lines().count() == 1);
        let most_rows = MOST_ROWS * ways.lines().count().max(1);
        let sessions = Table::read(&path(Name::Sessions), Some(&columns[first..]), most_rows)?;
        let about = |key: &str| sessions.about(key).unwrap_or_default().to_owned();
        let (title, command) = (about("agent-sim.title"), about("agent-sim.command"));
        let report = folder.join(format!("{}.json", if command == "compare" { "compare" } else { "report" }));
        let unreadable = |source| Error::Read { path: report.clone(), source };
        let text = std::fs::read_to_string(&report).map_err(unreadable)?;
        let json = serde_json::from_str(&text).map_err(|error| unreadable(error.into()))?;
        let columns = ["strategy", "session", "turn", "cost_usd", "cost_without_cache_usd", "tool_phase_s"];
        let read = |name: Name, columns: Option<&[&str]>| {
            let path = path(name);
            // a table of an earlier run says so of itself
            let table = path.exists().then(|| Table::read(&path, columns, usize::MAX)).transpose()?;
            Ok::<_, Error>(table.filter(|table| table.about("agent-sim.run") == sessions.about("agent-sim.run")))
        };
        let (turns, fleet) = (read(Name::Turns, Some(&columns))?, read(Name::Fleet, None)?);
        let ways = ways.lines().map(Arc::from).collect();
        Ok(Self { title, compares: command == "compare", report: json, ways, sessions, turns, fleet })
    }

    /// Every chart with the stem of its files, in the order of the questions.
    pub fn drawings(&self) -> Vec<(String, Drawing)> {
        if let Some(fleet) = &self.fleet {
            return fleet_drawings(self, fleet);
        }
        let mut all = Vec::new();
        let mut add = |stem: &str, drawing: Option<Drawing>| {
            all.extend(drawing.map(|drawing| (stem.to_owned(), drawing)));
        };
        if self.compares {
            for (stem, column, words, shown) in [
                ("compare-cost", "cost_usd", "dollars a session", money as fn(f64) -> String),
                ("compare-latency", "latency_s", "latency of a session", seconds),
                ("compare-herd_calls", "herd_calls", "calls until the last client is done", count),
                ("compare-herd_time_s", "herd_time_s", "until the last client is done", seconds),
            ] {
                add(stem, self.side_by_side(column, words, shown).map(Drawing::Ways));
            }
            add("compare-latency-tail", self.tails().map(Drawing::Tail));
            add("compare-sources", self.money().map(Drawing::Money));
            return all;
        }
        add("cost-by-turn", self.cost_by_turn().map(Drawing::CostByTurn));
        add("cost-sources", self.money().map(Drawing::Money));
        add("cost-distribution", self.distribution().map(Drawing::Distribution));
        add("latency", self.latency().map(Drawing::Tail));
        add("tool-phase", self.tool_phase().map(Drawing::Tail));
        add("herd-time", self.herd_time().map(Drawing::Tail));
        all
    }

    /// The values of a way's sessions; none where the column has none.
    fn values(&self, column: &str, way: &str) -> Vec<f64> {
        of_way(&self.sessions, column, way)
    }

    /// What the report says of a way.
    fn strategy(&self, way: &str) -> Option<&Value> {
        let mut all = self.report["strategies"].as_array()?.iter();
        all.find(|strategy| strategy["name"].as_str() == Some(way))
    }

    /// A figure of a metric that the report holds.
    fn figure(&self, way: &str, metric: &str, name: &str) -> Option<f64> {
        self.strategy(way)?["metrics"][metric][name].as_f64()
    }

    /// Percentiles of a metric that enough sessions lie beyond.
    fn known(&self, way: &str, metric: &str) -> Vec<(f64, f64)> {
        let few = self.strategy(way).map(|strategy| &strategy["metrics"][metric]["too_few_beyond"]);
        let is_known = |name: &str| {
            let few = few.and_then(Value::as_array);
            !few.is_some_and(|few| few.iter().any(|own| own.as_str() == Some(name)))
        };
        let all = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")];
        let known = all.into_iter().filter(|(_, name)| is_known(name));
        known.filter_map(|(p, name)| Some((p, self.figure(way, metric, name)?))).collect()
    }

    /// How many sessions a way played.
    fn count(&self, way: &str) -> u64 {
        let outcomes = self.strategy(way).and_then(|strategy| strategy["outcomes"].as_object());
        outcomes.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
    }

    fn distribution(&self) -> Option<CostDistribution> {
        let way = self.ways.first()?;
        let marks = self.known(way, "cost_usd").into_iter().filter(|(p, _)| *p < 0.995).collect();
        CostDistribution::new(&self.title, self.values("cost_usd", way), self.count(way), marks)
    }

    fn side_by_side(&self, column: &str, words: &str, shown: fn(f64) -> String) -> Option<WaysSideBySide> {
        let way = |way: &Arc<str>| {
            let strategy = self.strategy(way)?;
            let figure = |name: &str| strategy["metrics"][column][name].as_f64();
            let mean = figure("mean")?;
            let end = |index: usize| strategy["metrics"][column]["ci95"][index].as_f64().unwrap_or(mean);
            let fifth = fifth(&self.values(column, way))?;
            let spread = [fifth, figure("p50")?, figure("p95")?, figure("p99")?];
            Some(Way { name: way.to_string(), mean: [mean, end(0), end(1)], spread })
        };
        let ways: Vec<Way> = self.ways.iter().filter_map(way).collect();
        let sessions = self.ways.first().map_or(0, |way| self.count(way));
        (!ways.is_empty() && ways.iter().any(|way| way.spread[3] > 0.0)).then(|| WaysSideBySide {
            title: self.title.clone(),
            subtitle: format!(
                "{}, mean with its 95 % interval; box p5 to p95 with p50, line to p99; the same {} sessions each{}",
                words,
                whole(sessions),
                first_of(super::ways::MOST, ways.len())
            ),
            x_name: words.to_owned(),
            ways,
            shown,
        })
    }

    fn tails(&self) -> Option<TailCurve> {
        let mut ways: Vec<(String, Vec<f64>)> = Vec::new();
        let mut others = 0;
        for way in &self.ways {
            let values = self.values("latency_s", way);
            // ways that take the same time share a curve
            let same = |(_, other): &&mut (String, Vec<f64>)| {
                other.len() == values.len() && other.iter().zip(&values).all(|(a, b)| a.total_cmp(b).is_eq())
            };
            if let Some((name, _)) = ways.iter_mut().find(same) {
                *name = format!("{name}, {way}");
            } else if !values.is_empty() && ways.len() < super::COLOURS.len() {
                ways.push((way.to_string(), values));
            } else {
                others += usize::from(!values.is_empty());
            }
        }
        let about =
            format!("latency of a whole session, with 95 % intervals{}", first_of(ways.len(), ways.len() + others));
        (!ways.is_empty()).then(|| TailCurve::of_ways(&self.title, &about, &ways))
    }

    fn money(&self) -> Option<MoneyBySource> {
        let ways: Vec<(String, Vec<(String, f64)>)> = self
            .ways
            .iter()
            .filter_map(|way| Some((way.to_string(), sources(&self.strategy(way)?["cost_by_source_usd"])?)))
            .collect();
        let subtitle =
            format!("what the money goes to; means a session{}", first_of(super::sources::MOST_WAYS, ways.len()));
        (!ways.is_empty()).then(|| MoneyBySource { title: self.title.clone(), subtitle, ways })
    }

    fn cost_by_turn(&self) -> Option<CostByTurn> {
        let turns = self.turns.as_ref()?;
        let (number, usd) = (turns.numbers("turn")?, turns.numbers("cost_usd")?);
        let (session, without) = (turns.numbers("session")?, turns.numbers("cost_without_cache_usd")?);
        // (billed, without a cache, turns) of call 1, 2, …
        let mut calls: Vec<(f64, f64, u64)> = Vec::new();
        for ((number, usd), without) in number.iter().zip(&usd).zip(&without) {
            let (Some(number), Some(usd), Some(without)) = (number, usd, without) else { continue };
            let Some(index) = (*number as usize).checked_sub(1).filter(|index| *index < MOST_CALLS) else { continue };
            if calls.len() <= index {
                calls.resize(index + 1, (0.0, 0.0, 0));
            }
            let call = &mut calls[index];
            *call = (call.0 + usd, call.1 + without, call.2 + 1);
        }
        let sessions = session.iter().flatten().fold((None, 0), |(last, sessions), session| {
            let is_next = last.is_none_or(|last: f64| last.total_cmp(session).is_ne());
            (Some(*session), sessions + u64::from(is_next))
        });
        let sessions = sessions.1;
        let enough = FEWEST_SESSIONS.min(sessions);
        let shown = || calls.iter().take_while(|call| call.2 >= enough);
        let mean = |sum: fn(&(f64, f64, u64)) -> f64| shown().map(|call| sum(call) / call.2.max(1) as f64).collect();
        let strategy = self.strategy(self.ways.first()?)?;
        let input = |name: &str| strategy["metrics"][name]["mean"].as_f64();
        let billed = input("cost_input_usd")?;
        let has_agents = strategy["agents"].as_array().is_some_and(|agents| agents.len() > 1);
        // a metric that doesn't apply is left out
        let without = input("cost_input_without_cache_usd");
        (shown().count() > 0).then(|| CostByTurn {
            title: self.title.clone(),
            sessions,
            // that of the whole tree says nothing of the main agent's calls
            input_usd: (!has_agents).then(|| without.map_or((None, billed), |without| (Some(billed), without))),
            with_cache_usd: without.map(|_| mean(|call| call.0)),
            without_cache_usd: mean(|call| call.1),
        })
    }

    fn latency(&self) -> Option<TailCurve> {
        let way = self.ways.first()?;
        let values = self.values("latency_s", way);
        let strategy = self.strategy(way)?;
        let answered = strategy["outcomes"]["answered"].as_u64().unwrap_or_default();
        let count = self.count(way);
        let about = format!("latency of a whole session; {} sessions, {} answered", whole(count), whole(answered));
        let theory = closed_form(strategy, "latency_s");
        let known = self.known(way, "latency_s");
        (!values.is_empty()).then(|| TailCurve::new(&self.title, &about, &values, &theory, &known))
    }

    fn herd_time(&self) -> Option<TailCurve> {
        let values = self.values("herd_time_s", self.ways.first()?);
        let way = self.ways.first()?;
        let about = format!("until the last client is done; {} repeats", whole(self.count(way)));
        let known = self.known(way, "herd_time_s");
        (!values.is_empty()).then(|| TailCurve::new(&self.title, &about, &values, &[], &known))
    }

    fn tool_phase(&self) -> Option<TailCurve> {
        let way = self.ways.first()?;
        let theory = closed_form(self.strategy(way)?, "tool_phase_s");
        let phases = of_way(self.turns.as_ref()?, "tool_phase_s", way);
        let about = format!("one tool phase; {} phases of the first sessions", whole(phases.len() as u64));
        (!theory.is_empty() && !phases.is_empty()).then(|| TailCurve::new(&self.title, &about, &phases, &theory, &[]))
    }
}

/// The values of a column in the rows of a way.
fn of_way(table: &Table, column: &str, way: &str) -> Vec<f64> {
    let Some(values) = table.numbers(column) else { return Vec::new() };
    let Some(ways) = table.texts("strategy") else { return values.into_iter().flatten().collect() };
    let own = values.into_iter().zip(ways).filter(|(_, own)| own.as_deref() == Some(way));
    own.filter_map(|(value, _)| value).collect()
}

/// Points (p, s) of a closed form that the report holds.
fn closed_form(strategy: &Value, metric: &str) -> Vec<(f64, f64)> {
    let points = strategy["closed_form_quantiles"][metric].as_array();
    let point = |point: &Value| Some((point.get(0)?.as_f64()?, point.get(1)?.as_f64()?));
    points.into_iter().flatten().filter_map(point).collect()
}

/// What the report says of each source, in words: (what, mean dollars a session); nothing without prices.
fn sources(report: &Value) -> Option<Vec<(String, f64)>> {
    let mut parts = Vec::new();
    for (key, value) in report.as_object()? {
        let words = match key.as_str() {
            "definitions" => {
                let servers = value.as_object().into_iter().flatten();
                parts.extend(
                    servers.filter_map(|(server, usd)| Some((format!("definitions of {server}"), usd.as_f64()?))),
                );
                continue;
            }
            "system" => "system prompt",
            "history" => "history, sent again",
            "tools" => "tool fees",
            "duplicates" => "tool fees of repeats",
            "compaction" => "summaries",
            "keep_alive" => "keep-alive pings",
            "lost_replies" => "lost replies",
            "search" => "searches for tools",
            "agents" => "other agents",
            other => other,
        };
        parts.push((words.to_owned(), value.as_f64()?));
    }
    parts.retain(|(_, usd)| *usd > 0.0);
    (!parts.is_empty()).then_some(parts)
}
