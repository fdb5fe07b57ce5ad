//! `[fleet]`: sessions that arrive one after another and share limits, servers and outages.

use std::path::Path;
use std::sync::Arc;

use super::TierInfo;
use super::distribution::{read_column, read_first_column};
use super::mistake::Mistake;
use super::raw::Raw;
use super::reader::{
    At, Reader, Sink, boolean, chance, complain, duration, inline_table, number, positive, positive_duration, tables,
    text, whole, word,
};
use super::tiers::{Output, Rules, Tier};
use super::tree::{Data, Node, Span, Table};
use crate::model::{Arrivals, Faults, Fleet, LimitRules, Limits, Model, Outage, OutputRule};
use crate::price::Row;

const MOST_SERVERS: u64 = 1_000_000;

/// Replications where the file asks for no number.
const REPLICATIONS: u64 = 20;

/// The most arrivals of one replication that are expected.
const MOST_ARRIVALS: f64 = 1e9;

#[derive(Debug)]
pub(super) struct RawFleet {
    pub span: Span,
    arrivals: Option<At<RawArrivals>>,
    has_arrivals: bool,
    has_horizon: bool,
    horizon: Option<At<f64>>,
    warm_up: Option<At<f64>>,
    replications: Option<At<u64>>,
    limits: RawLimits,
    outages: Vec<At<RawOutage>>,
}

#[derive(Debug, Clone)]
enum RawArrivals {
    Poisson(f64),
    Profile(Vec<f64>),
    Times(Arc<[f64]>),
}

#[derive(Debug, Default)]
struct RawLimits {
    tier: Option<At<&'static Tier>>,
    rules: Option<At<&'static Rules>>,
    requests: Option<At<f64>>,
    input: Option<At<f64>>,
    output: Option<At<f64>>,
    tokens: Option<At<f64>>,
    /// Those of the four that are written as "off".
    off: [bool; 4],
    burst: Option<At<f64>>,
    burndown: Option<At<f64>>,
    cache_reads_count: Option<At<bool>>,
    rejected_count: Option<At<bool>>,
    retry_after: Option<At<bool>>,
    concurrent: Option<At<u64>>,
}

#[derive(Debug)]
struct RawOutage {
    of: Option<At<String>>,
    from: Option<At<f64>>,
    lasts: Option<At<f64>>,
    share: Option<At<f64>>,
    is_silent: Option<At<bool>>,
}

pub(super) fn read_fleet(top: &mut Reader<'_>, folder: &Path) -> Option<RawFleet> {
    let span = top.node("fleet")?.span;
    let sink = top.sink();
    top.table("fleet", "[fleet]", |mut reader| {
        let fleet = RawFleet {
            span,
            has_arrivals: reader.node("arrivals").is_some(),
            arrivals: reader.get("arrivals", |n, k, s| arrivals(n, k, folder, s)),
            has_horizon: reader.node("horizon").is_some(),
            horizon: reader.get("horizon", positive_duration),
            warm_up: reader.get("warm_up", duration),
            replications: reader.get("replications", |n, k, s| whole(n, k, 1, 10_000, s)),
            limits: reader.table("limits", "[fleet.limits]", read_limits).unwrap_or_default(),
            outages: match reader.node("outages") {
                None => Vec::new(),
                Some(node) => tables(node, "fleet.outages", sink)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|at| At { value: read_outage(at.value, sink), span: at.span })
                    .collect(),
            },
        };
        reader.finish();
        fleet
    })
}

/// `{ poisson = { per_hour = 600 } }`, `{ profile = { per_hour = [...] } }` or `{ file = "x.csv", column = "seconds" }`.
fn arrivals(node: &Node, key: &str, folder: &Path, sink: &Sink) -> Option<RawArrivals> {
    const EXAMPLE: &str = "{ poisson = { per_hour = 600 } }";
    const KEYS: [&str; 4] = ["poisson", "profile", "file", "column"];
    let table = inline_table(node, key, EXAMPLE, sink)?;
    let mut reader = Reader::new(table, "`arrivals`", sink);
    let poisson = reader.get("poisson", |node, key, sink| {
        let mut inner = Reader::new(inline_table(node, key, "{ per_hour = 600 }", sink)?, "`poisson`", sink);
        let per_hour = inner.get("per_hour", positive);
        if per_hour.is_none() && inner.node("per_hour").is_none() {
            complain(sink, Mistake::at(node.span, "`poisson` needs `per_hour`").label("how many sessions an hour?"));
        }
        inner.finish();
        per_hour.map(|at| RawArrivals::Poisson(at.value / 3600.0))
    });
    let profile = reader.get("profile", |node, key, sink| {
        let example = "{ per_hour = [120, 80, 40] }";
        let mut inner = Reader::new(inline_table(node, key, example, sink)?, "`profile`", sink);
        let per_hour = inner.get("per_hour", rates);
        let scale = inner.get("scale", positive).map_or(1.0, |at| at.value);
        if per_hour.is_none() && inner.node("per_hour").is_none() {
            let mistake = Mistake::at(node.span, "`profile` needs `per_hour`").label("how many sessions in each hour?");
            complain(sink, mistake.help(format!("for example {example}")));
        }
        inner.finish();
        per_hour.map(|at| RawArrivals::Profile(at.value.into_iter().map(|per_s| per_s * scale).collect()))
    });
    let (file, column) = (reader.get("file", text), reader.get("column", text));
    let has_file = file.is_some();
    let times = file.and_then(|file| {
        let path = folder.join(&file.value);
        let read = match &column {
            Some(column) => read_column(&path, &column.value),
            None => read_first_column(&path),
        };
        match read {
            Ok(mut times) if !times.is_empty() => {
                times.sort_by(f64::total_cmp);
                Some(RawArrivals::Times(times.into()))
            }
            Ok(_) => {
                complain(sink, Mistake::at(file.span, format!("{} has no times", path.display())).label("empty"));
                None
            }
            Err(message) => {
                complain(sink, Mistake::at(file.span, message).label("times of arrival can't be read"));
                None
            }
        }
    });
    let named = ["poisson", "profile", "file"].iter().filter(|key| table.get(key).is_some()).count();
    let is_misspelt = table.entries.iter().any(|(key, _)| !KEYS.contains(&key.name.as_str()));
    reader.finish();
    if named == 0 && is_misspelt {
        return None;
    }
    if named != 1 {
        let text = "`arrivals` is one of poisson, profile and file";
        complain(
            sink,
            Mistake::at(node.span, text).label(format!("{named} of them")).help(format!("for example {EXAMPLE}")),
        );
        return None;
    }
    if has_file { times } else { poisson.or(profile).map(|at| at.value) }
}

/// Sessions a second, hour by hour.
fn rates(node: &Node, key: &str, sink: &Sink) -> Option<Vec<f64>> {
    let Data::Array(items) = &node.data else {
        let mistake = Mistake::at(node.span, format!("`{key}` of a profile is a list: one number an hour"));
        complain(sink, mistake.label(node.kind()).help("per_hour = [120, 80, 40]"));
        return None;
    };
    let rate = |item: &Node| {
        let rate = number(item, key, sink)?;
        if rate < 0.0 {
            complain(sink, Mistake::at(item.span, format!("`{key}` can't be negative")).label("sessions an hour"));
            return None;
        }
        Some(rate / 3600.0)
    };
    let rates = items.iter().map(rate).collect::<Option<Vec<f64>>>()?;
    if rates.iter().sum::<f64>() <= 0.0 {
        complain(sink, Mistake::at(node.span, "no session ever arrives").label("all zero, or empty"));
        return None;
    }
    Some(rates)
}

fn read_limits(mut reader: Reader<'_>) -> RawLimits {
    let mut off = [false; 4];
    let mut rate = |reader: &mut Reader<'_>, key: &'static str, index: usize| {
        off[index] = reader.node(key).is_some() && !reader.is_on(key);
        reader.unless_off(key, positive)
    };
    let [requests, input, output, tokens] = [
        rate(&mut reader, "requests_per_minute", 0),
        rate(&mut reader, "input_tokens_per_minute", 1),
        rate(&mut reader, "output_tokens_per_minute", 2),
        rate(&mut reader, "tokens_per_minute", 3),
    ];
    let limits = RawLimits {
        tier: reader.get("tier", Tier::read),
        rules: reader.get("rules", Rules::read),
        requests,
        input,
        output,
        tokens,
        off,
        burst: reader.get("burst", positive_duration),
        burndown: reader.get("burndown", positive),
        cache_reads_count: reader.get("cache_reads_count", boolean),
        rejected_count: reader.get("rejected_count", boolean),
        retry_after: reader.get("retry_after", boolean),
        concurrent: reader.unless_off("concurrent", |n, k, s| whole(n, k, 1, MOST_SERVERS, s)),
    };
    reader.finish();
    limits
}

fn read_outage(table: &Table, sink: &Sink) -> RawOutage {
    let mut reader = Reader::new(table, "[[fleet.outages]]", sink);
    let outage = RawOutage {
        of: reader.get("of", text),
        from: reader.get("from", duration),
        lasts: reader.get("for", positive_duration),
        share: reader.get("share", chance),
        is_silent: reader.get("as", |n, k, s| word(n, k, &[("rejected", false), ("lost", true)], s)),
    };
    reader.finish();
    outage
}

/// The tier whose limits are taken, and where they are from.
pub(super) fn tier(raw: &Raw) -> Option<TierInfo> {
    let Tier { name, source, source_date, .. } = raw.fleet.as_ref()?.limits.tier?.value;
    Some(TierInfo { name: name.clone(), source: source.clone(), source_date: source_date.clone() })
}

/// What a fleet can't hold yet, or what has no meaning in one.
pub(super) fn check_fleet(raw: &Raw, model: &Model, sink: &Sink) {
    let Some(fleet) = &raw.fleet else { return };
    let spans = fleet.outages.iter().map(|at| at.span);
    let refuse = |span: Span, text: &str, help: &str| {
        complain(sink, Mistake::at(span, text.to_owned()).label("in a file with [fleet]").help(help.to_owned()));
    };
    let agent = raw.tools.iter().find_map(|tool| tool.value.agent.as_ref()).filter(|_| model.fleet.is_some());
    if let Some(at) = agent.filter(|_| model.agents_by_number().iter().any(|(_, agent)| agent.budget.any())) {
        refuse(
            at.span,
            "a fleet doesn't play agents with a [budget] yet: those that run side by side would have to share it",
            "take [budget] out, or play the file without [fleet]",
        );
    }
    if let Some(at) = raw.cache.warm_prefix.filter(|at| at.value > 0.0) {
        let help = "sessions keep the prefix warm for each other: take it out";
        refuse(at.span, "`warm_prefix` stands in for other sessions, and a fleet has them", help);
    }
    if let Some(name) = raw.tools.iter().filter_map(|tool| tool.value.name.as_ref()).find(|name| name.value == MODEL) {
        refuse(name.span, "a tool can't be called \"model\": calls of the model are", "another name");
    }
    for (outage, at) in model.fleet.iter().flat_map(|fleet| &fleet.outages).zip(spans) {
        let waits_forever = |faults: &Faults| faults.timeout_s.is_infinite();
        let model_waits = |model: &Model| model.is_main && waits_forever(&model.faults);
        let any_waits = match outage.station {
            Some(station) => model.station_tools().get(station).is_some_and(|tool| waits_forever(&tool.faults)),
            None => {
                let small = model.routing.as_ref().map(|routing| &*routing.small);
                std::iter::once(model).chain(small).any(|model| model.any_in_tree(&model_waits))
            }
        };
        if outage.is_silent && any_waits {
            let help = "give it a `timeout`, or as = \"rejected\"";
            refuse(at, "an outage that loses attempts needs a client that notices", help);
        }
    }
    if let Some(at) = raw.run.precision.first() {
        refuse(at.span, "`precision` is about single sessions", "more [fleet] replications, or a longer horizon");
    }
}

/// What is said of sessions that run on another model than the main agent's.
pub(super) fn note_other_models(model: &Model, agents: &[(String, Vec<String>)], notes: &mut Vec<String>) {
    if !model.is_main || !model.fleet.as_ref().is_some_and(Fleet::rules_calls) {
        return;
    }
    let others = model.agents_by_number().into_iter().filter(|(_, agent)| !agent.is_main);
    let named = others.filter_map(|(number, _)| Some(format!("the agent \"{}\"", agents.get(number)?.0)));
    let small = model.routing.iter().filter(|routing| !routing.small.is_main).map(|_| "[routing] small".to_owned());
    let others: Vec<String> = named.chain(small).collect();
    if !others.is_empty() {
        notes.push(format!(
            "[fleet.limits] and outages of \"model\" are of the main agent's model; calls of another one don't meet them: {}",
            others.join(", ")
        ));
    }
}

/// The fleet, if the file has one. `places` are the names of the tools, those of agents among them;
/// `max_output` is the most that a call writes.
pub(super) fn fleet(
    raw: &Raw,
    places: &[String],
    row: Option<&Row>,
    max_output: Option<u64>,
    sink: &Sink,
    notes: &mut Vec<String>,
) -> Option<Fleet> {
    let fleet = raw.fleet.as_ref()?;
    if !fleet.has_arrivals {
        complain(
            sink,
            Mistake::at(fleet.span, "`[fleet]` needs `arrivals`")
                .label("how many sessions come?")
                .help("for example arrivals = { poisson = { per_hour = 600 } }"),
        );
    }
    let arrivals = match fleet.arrivals.as_ref().map(|at| &at.value) {
        None => Arrivals::Poisson { per_s: 1.0 },
        Some(RawArrivals::Poisson(per_s)) => Arrivals::Poisson { per_s: *per_s },
        Some(RawArrivals::Profile(per_s)) => Arrivals::Profile { per_s: per_s.clone() },
        Some(RawArrivals::Times(times)) => Arrivals::Times(times.clone()),
    };
    let horizon_s = match (&fleet.horizon, &arrivals) {
        (Some(at), _) => at.value,
        (None, Arrivals::Poisson { .. }) => 3600.0,
        (None, Arrivals::Profile { per_s }) => 3600.0 * per_s.len() as f64,
        (None, Arrivals::Times(_)) => {
            let mistake = Mistake::at(fleet.span, "`[fleet]` with arrivals from a file needs `horizon`");
            complain(sink, mistake.label("how long is it watched?").help("for example horizon = \"2h\""));
            3600.0
        }
    };
    let warm_up_s = match &fleet.warm_up {
        Some(at) if at.value >= horizon_s && fleet.has_horizon == fleet.horizon.is_some() => {
            let text = format!("`warm_up` isn't shorter than the horizon of {horizon_s} s");
            complain(sink, Mistake::at(at.span, text).label("nothing would be left").help("a longer horizon"));
            0.0
        }
        Some(at) => at.value,
        // a profile's hours and a file's times are meant from the first on
        None if arrivals.is_steady() => horizon_s / 10.0,
        None => 0.0,
    };
    let expected = arrivals.mean_per_s(horizon_s) * horizon_s;
    if let Some(at) = fleet.arrivals.as_ref().filter(|_| expected > MOST_ARRIVALS) {
        let text = format!("about {expected:.1e} sessions would arrive in one replication");
        complain(sink, Mistake::at(at.span, text).label(format!("{MOST_ARRIVALS:.0e} is the most")));
    }
    if raw.run.sessions.is_some() {
        notes.push(
            "`sessions` has no meaning here: a fleet plays what arrives until its horizon, fleet.replications times"
                .to_owned(),
        );
    }
    let limits = limits(&fleet.limits, row, max_output, sink, notes);
    let limited = limits.any_rate() || fleet.outages.iter().any(|at| is_models(&at.value));
    if limited && raw.model.retry.attempts.is_none() && raw.model.retry.preset.is_none() {
        notes.push(
            "model calls aren't repeated, so one that is turned away ends its session: give [model] retry".to_owned(),
        );
    }
    Some(Fleet {
        arrivals,
        horizon_s,
        warm_up_s,
        replications: fleet.replications.map_or(REPLICATIONS, |at| at.value),
        limits,
        outages: fleet.outages.iter().filter_map(|at| outage(at, places, horizon_s, sink)).collect(),
    })
}

fn is_models(outage: &RawOutage) -> bool {
    outage.of.as_ref().is_some_and(|of| of.value == MODEL)
}

const MODEL: &str = "model";

/// How a provider counts that isn't named: by the model's provider, else nothing special.
fn rules_of(raw: &RawLimits, row: Option<&Row>) -> &'static Rules {
    let by_name = |name: &str| Rules::named(name);
    raw.rules
        .map(|at| at.value)
        .or_else(|| by_name(&raw.tier?.value.rules))
        .or_else(|| by_name(&row?.provider))
        .unwrap_or_else(|| Rules::plain())
}

fn limits(raw: &RawLimits, row: Option<&Row>, max_output: Option<u64>, sink: &Sink, notes: &mut Vec<String>) -> Limits {
    let rules = rules_of(raw, row);
    let tier = raw.tier.map(|at| at.value);
    let [off_requests, off_input, off_output, off_tokens] = raw.off;
    let pick = |own: &Option<At<f64>>, off: bool, of_tier: fn(&Tier) -> Option<f64>| {
        own.map(|at| at.value).or_else(|| of_tier(tier?)).filter(|_| !off)
    };
    let limits = [
        pick(&raw.requests, off_requests, |tier| tier.requests),
        pick(&raw.input, off_input, |tier| tier.input),
        pick(&raw.output, off_output, |tier| tier.output),
        pick(&raw.tokens, off_tokens, |tier| tier.tokens),
    ];
    if let Some(at) = raw.tier {
        let own = [&raw.requests, &raw.input, &raw.output, &raw.tokens];
        let of_tier = [at.value.requests, at.value.input, at.value.output, at.value.tokens];
        let pairs = || own.iter().zip(of_tier).zip(raw.off);
        if pairs().all(|((own, of_tier), off)| of_tier.is_none() || own.is_some() || off) {
            notes.push(format!("the tier \"{}\" changes nothing: all of its limits are written out", at.value.name));
        }
    }
    let [requests_per_minute, input_tokens_per_minute, output_tokens_per_minute, tokens_per_minute] = limits;
    let spans = [raw.output, raw.tokens].into_iter().flatten().map(|at| at.span);
    let span = spans.chain(raw.tier.map(|at| at.span)).chain(raw.rules.map(|at| at.span)).next();
    let counts_output = output_tokens_per_minute.is_some() || tokens_per_minute.is_some();
    if counts_output && rules.output != Output::Written && max_output.is_none() {
        let text = format!("by the rules \"{}\" a call is counted by the most that it may write", rules.name);
        complain(
            sink,
            Mistake::maybe_at(span, text).label("how much may it write?").help("[model] max_output = 4_096"),
        );
    }
    let output = match (rules.output, raw.burndown) {
        (Output::Written, _) => OutputRule::Written,
        (Output::Reserved, _) => OutputRule::Reserved,
        (Output::Settled, Some(at)) => OutputRule::Settled { burndown: at.value },
        (Output::Settled, None) => {
            if counts_output {
                let text = format!("the rules \"{}\" count an output token several times", rules.name);
                complain(
                    sink,
                    Mistake::maybe_at(span, text).label("needs `burndown`").help(
                        "burndown = 5 for Claude up to 4.7, 10 for Opus 5 and Sonnet 5, 15 for Claude 4.8, 1 for most others",
                    ),
                );
            }
            OutputRule::Settled { burndown: 1.0 }
        }
    };
    if let (Some(at), true) = (raw.burndown, rules.output != Output::Settled) {
        let text = format!("`burndown` has no meaning by the rules \"{}\"", rules.name);
        complain(sink, Mistake::at(at.span, text).label("never used").help("rules = \"bedrock\""));
    }
    Limits {
        requests_per_minute,
        input_tokens_per_minute,
        output_tokens_per_minute,
        tokens_per_minute,
        burst_s: raw.burst.map_or(60.0, |at| at.value),
        concurrent: raw.concurrent.map(|at| at.value),
        rules: LimitRules {
            cache_reads_count: raw.cache_reads_count.map_or(rules.cache_reads_count, |at| at.value),
            output,
            max_output_tokens: max_output.unwrap_or(0),
            rejected_count: raw.rejected_count.map_or(rules.rejected_count, |at| at.value),
            retry_after: raw.retry_after.map_or(rules.retry_after, |at| at.value),
        },
    }
}

fn outage(at: &At<RawOutage>, places: &[String], horizon_s: f64, sink: &Sink) -> Option<Outage> {
    let raw = &at.value;
    let needs = |key: &str, example: &str| {
        let mistake = Mistake::at(at.span, format!("`[[fleet.outages]]` needs `{key}`"));
        complain(sink, mistake.label("left out").help(format!("for example {example}")));
    };
    let Some(of) = &raw.of else {
        needs("of", "of = \"model\", or a tool's name");
        return None;
    };
    let station = places.iter().position(|name| *name == of.value);
    if station.is_none() && of.value != MODEL {
        let of_agent = places.iter().find(|place| place.ends_with(&format!(".{}", of.value)));
        if let Some(place) = of_agent {
            let text = format!("\"{}\" is a tool of an agent", of.value);
            complain(sink, Mistake::at(of.span, text).label(format!("did you mean \"{place}\"?")));
        } else {
            let known: Vec<&str> = places.iter().map(String::as_str).chain([MODEL]).collect();
            super::tools::unknown_name(&of.value, of.span, "tool", &known, sink);
        }
    }
    if raw.lasts.is_none() {
        needs("for", "for = \"5m\"");
    }
    let from_s = raw.from.map_or(0.0, |from| from.value);
    if let Some(from) = raw.from.filter(|from| from.value >= horizon_s) {
        let text = format!("the outage begins after the horizon of {horizon_s} s");
        complain(sink, Mistake::at(from.span, text).label("never seen").help("a longer horizon, or an earlier outage"));
    }
    Some(Outage {
        station,
        from_s,
        until_s: from_s + raw.lasts?.value,
        share: raw.share.map_or(1.0, |share| share.value),
        is_silent: raw.is_silent.is_some_and(|at| at.value),
    })
}
