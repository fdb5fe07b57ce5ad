//! The report of SCENARIO.md. A contract: fields are added, never renamed.

use serde::{Serialize, Serializer};

use super::compare::way_name;
use super::head::PriceSheet;
use super::system::paths;
use super::wording::{budget_rows, class_shares, duplicates_by_tool, longest_path, month};
use crate::model::Loading;
use crate::session::Outcome;
use crate::simulate::{Answer, Comparison, Pair, ServerCosts};
use crate::stats::{Estimate, Metric, MetricSummary, Paired, Threshold, Verdict, quantile_name};

/// The schema's name and version.
pub const SCHEMA: &str = "agent-sim.report/1";

/// A JSON object with its keys in the order given.
pub(super) struct Object<V>(pub Vec<(String, V)>);

impl<V> Object<V> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V: Serialize> Serialize for Object<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<About>,
    strategies: Vec<Strategy>,
    /// Empty in a run: it compares nothing.
    comparisons: Vec<ComparisonReport>,
}

#[derive(Serialize)]
struct ComparisonReport {
    of: String,
    against: String,
    metric: &'static str,
    /// Mean of the differences, session by session.
    difference: f64,
    se: f64,
    ci95: [f64; 2],
    ratio: Option<f64>,
    ratio_ci95: Option<[f64; 2]>,
    /// Share of the sessions in which it is less.
    share_cheaper: f64,
    share_cheaper_ci95: [f64; 2],
    share_equal: f64,
    decided: bool,
    /// About how many sessions would decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions_to_decide: Option<u64>,
    /// Differences of quantiles.
    quantiles: Object<RateReport>,
    /// Those with too few sessions beyond them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    too_few_beyond: Vec<String>,
}

#[derive(Serialize)]
struct About {
    title: String,
    file: String,
    seed: u64,
    sessions: u64,
    price_sheet: PriceSheet,
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<Prices>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Prices {
    model: String,
    as_of: String,
    source: String,
    source_date: String,
    overridden: bool,
}

#[derive(Serialize)]
struct Strategy {
    name: String,
    metrics: Object<Object<serde_json::Value>>,
    rates: Object<RateReport>,
    /// Per tool, where its calls can run twice.
    #[serde(skip_serializing_if = "Object::is_empty")]
    duplicates_per_call_by_tool: Object<RateReport>,
    outcomes: Object<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_shares: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_by_source_usd: Option<Money>,
    /// Of the input tokens, by class.
    #[serde(skip_serializing_if = "Object::is_empty")]
    input_shares: Object<f64>,
    /// Of the latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_shares: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_by_source_s: Option<Time>,
    /// Of the tool phases, the share on whose longest path each tool lay.
    #[serde(skip_serializing_if = "Object::is_empty")]
    longest_path: Object<RateReport>,
    /// The tree of agents, the main agent first; means a session of the main agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agents: Vec<AgentReport>,
    /// Of each server, where other ways of loading it are known: dollars a session.
    #[serde(skip_serializing_if = "Object::is_empty")]
    definitions: Object<DefinitionsReport>,
    /// "1" to "8": the chance that so many sessions all succeed.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pass_k: Object<RateReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    month: Option<MonthReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    precision: Vec<Precision>,
    /// What only a fleet has.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<super::fleet::FleetReport>,
    /// Of a session and of a tool phase, where they have one: points (p, s) of the quantile curve.
    #[serde(skip_serializing_if = "Object::is_empty")]
    closed_form_quantiles: Object<Vec<(f64, f64)>>,
    checks: Vec<CheckReport>,
    not_checked: Vec<NotCheckedReport>,
    thresholds: Vec<ThresholdReport>,
}

#[derive(Serialize)]
struct ThresholdReport {
    metric: String,
    want: String,
    got: Option<f64>,
    ci95: Option<[f64; 2]>,
    pass: bool,
    /// Whether the interval reaches over the bound.
    undecided: bool,
}

#[derive(Serialize)]
pub(super) struct RateReport {
    pub value: f64,
    pub se: f64,
    pub ci95: [f64; 2],
}

impl From<&Estimate> for RateReport {
    fn from(e: &Estimate) -> Self {
        Self { value: e.value, se: e.se, ci95: e.ci95 }
    }
}

#[derive(Serialize)]
struct Money {
    definitions: Object<f64>,
    system: f64,
    task: f64,
    history: f64,
    output: f64,
    tools: f64,
    compaction: f64,
    duplicates: f64,
    keep_alive: f64,
    lost_replies: f64,
    search: f64,
    agents: f64,
}

#[derive(Serialize)]
struct Time {
    first_token: f64,
    writing: f64,
    tools: f64,
    retries: f64,
    people: f64,
    compaction: f64,
    search: f64,
    /// For a free place of the model, in a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<f64>,
}

#[derive(Serialize)]
struct AgentReport {
    /// Tools that lead to it, as in "plan/research"; "" for the main agent.
    path: String,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The model of the sessions that run on the small one.
    #[serde(skip_serializing_if = "Option::is_none")]
    small_model: Option<String>,
    sessions: RateReport,
    turns: RateReport,
    tool_calls: RateReport,
    executions: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates_per_call: Option<RateReport>,
    input_tokens: RateReport,
    output_tokens: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<RateReport>,
    /// Of one of its sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_s: Option<RateReport>,
    /// Of its sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered: Option<RateReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_warm: Option<RateReport>,
    /// Of its sessions, those that lacked a tool that they had searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    unserved: Option<RateReport>,
}

#[derive(Serialize)]
struct DefinitionsReport {
    tokens: u64,
    /// "upfront", "search" or "code".
    loading: &'static str,
    /// Sessions that were compared.
    sessions: u64,
    upfront_usd: RateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_usd: Option<RateReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_usd: Option<RateReport>,
    /// What leaving results outside changes, on top of `code_usd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_out_usd: Option<RateReport>,
    /// The same times `sessions_per_month`, as it is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    month_usd: Option<f64>,
}

#[derive(Serialize)]
struct BudgetReport {
    /// "before" or "after" each call.
    check: &'static str,
    limits: Object<LimitReport>,
}

#[derive(Serialize)]
struct LimitReport {
    limit: f64,
    stopped: u64,
    /// What the stopped sessions had cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_cost_usd: Option<f64>,
    /// Worst case of the call that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_refused_worst_usd: Option<f64>,
    /// Sessions that it stopped before their first call.
    stopped_without_call: u64,
}

#[derive(Serialize)]
struct MonthReport {
    sessions: u64,
    cost_usd: RateReport,
    /// Half-width of the range in which 19 of 20 months lie by chance.
    chance_spread_usd: f64,
}

#[derive(Serialize)]
struct Precision {
    metric: String,
    want: f64,
    got: Option<f64>,
    pass: bool,
}

#[derive(Serialize)]
struct CheckReport {
    id: &'static str,
    formula: String,
    of: String,
    expected: f64,
    observed: f64,
    se: f64,
    z: Option<f64>,
    pass: bool,
}

#[derive(Serialize)]
struct NotCheckedReport {
    id: &'static str,
    why: String,
}

fn metric(summary: &MetricSummary) -> Object<serde_json::Value> {
    let mut fields: Vec<(String, serde_json::Value)> = vec![
        ("mean".into(), summary.mean.value.into()),
        ("se".into(), summary.mean.se.into()),
        ("ci95".into(), summary.mean.ci95.to_vec().into()),
        ("sd".into(), summary.sd.into()),
        ("min".into(), summary.min.into()),
    ];
    for q in &summary.quantiles {
        fields.push((quantile_name(q.p), q.value.into()));
    }
    fields.push(("max".into(), summary.max.into()));
    for q in &summary.quantiles {
        fields.push((format!("{}_ci95", quantile_name(q.p)), q.ci95.to_vec().into()));
    }
    fields.push(("values".into(), summary.values.into()));
    let marked: Vec<String> = summary.quantiles.iter().filter(|q| q.too_few).map(|q| quantile_name(q.p)).collect();
    if !marked.is_empty() {
        fields.push(("too_few_beyond".into(), marked.into()));
    }
    Object(fields)
}

/// Pretty-printed, with a final line break. The answers are strategies of one scenario, base first.
///
/// # Errors
/// Never for a finished answer; the serialiser's signature has an error.
pub fn json(answers: &[Answer]) -> Result<String, serde_json::Error> {
    whole_report(answers, answers.iter().map(strategy).collect(), Vec::new())
}

fn whole_report(
    answers: &[Answer],
    strategies: Vec<Strategy>,
    comparisons: Vec<ComparisonReport>,
) -> Result<String, serde_json::Error> {
    let first = answers.first();
    let about = first.map(|answer| {
        let scenario = &answer.scenario;
        About {
            title: scenario.title.clone(),
            file: scenario.file.clone(),
            seed: scenario.run.seed,
            sessions: answer.summary.sessions,
            price_sheet: PriceSheet::of(scenario.price_sheet()),
            prices: scenario.price.clone().map(|p| Prices {
                model: p.model,
                as_of: p.as_of,
                source: p.source,
                source_date: p.source_date,
                overridden: p.overridden,
            }),
            notes: scenario.notes.clone(),
        }
    });
    let report =
        Report { schema: SCHEMA, version: env!("CARGO_PKG_VERSION"), scenario: about, strategies, comparisons };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

/// Several ways on the same sessions, with their comparisons. Pretty-printed, with a final line break.
///
/// # Errors
/// Never for a finished comparison; the serialiser's signature has an error.
pub fn compare_json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    let report = |pair: &Pair, metric: Metric, paired: &Paired| ComparisonReport {
        of: way_name(comparison, pair.way),
        against: way_name(comparison, 0),
        metric: metric.quantity().name(),
        difference: paired.difference.value,
        se: paired.difference.se,
        ci95: paired.difference.ci95,
        ratio: paired.ratio.as_ref().map(|ratio| ratio.value),
        ratio_ci95: paired.ratio.as_ref().map(|ratio| ratio.ci95),
        share_cheaper: paired.share_less.value,
        share_cheaper_ci95: paired.share_less.ci95,
        share_equal: paired.share_equal,
        decided: paired.is_decided(),
        sessions_to_decide: paired.sessions_to_decide(),
        quantiles: Object(paired.quantiles.iter().map(|q| (quantile_name(q.p), (&q.difference).into())).collect()),
        too_few_beyond: paired.quantiles.iter().filter(|q| q.too_few).map(|q| quantile_name(q.p)).collect(),
    };
    let comparisons = comparison
        .pairs
        .iter()
        .flat_map(|pair| pair.metrics.iter().map(move |(metric, paired)| report(pair, *metric, paired)))
        .collect();
    let mut strategies: Vec<Strategy> = comparison.answers.iter().map(strategy).collect();
    for (way, strategy) in strategies.iter_mut().enumerate() {
        strategy.name = way_name(comparison, way);
    }
    whole_report(&comparison.answers, strategies, comparisons)
}

fn threshold_report(threshold: &Threshold, answer: &Answer) -> ThresholdReport {
    let Verdict { got, ci95, pass, undecided } = threshold.judge(&answer.summary, answer.fleet_summary());
    ThresholdReport {
        metric: threshold.metric.clone(),
        want: threshold.want.clone(),
        got,
        ci95: Some(ci95).filter(|[low, _]| !low.is_nan()),
        pass,
        undecided,
    }
}

fn agents(answer: &Answer) -> Vec<AgentReport> {
    let priced = answer.scenario.model.tariff.is_some();
    let nodes = answer.scenario.agents.iter().zip(&answer.summary.nodes).zip(paths(answer));
    nodes
        .map(|((node, figures), path)| AgentReport {
            path,
            agent: node.agent.clone(),
            model: node.price.as_ref().map(|price| price.model.clone()),
            small_model: node.small_price.as_ref().map(|price| price.model.clone()),
            sessions: (&figures.sessions).into(),
            turns: (&figures.turns).into(),
            tool_calls: (&figures.tool_calls).into(),
            executions: (&figures.executions).into(),
            duplicates_per_call: figures.duplicates_per_call.as_ref().map(Into::into),
            input_tokens: (&figures.input_tokens).into(),
            output_tokens: (&figures.output_tokens).into(),
            cost_usd: priced.then(|| (&figures.cost_usd).into()),
            duration_s: figures.duration_s.as_ref().map(Into::into),
            unanswered: figures.unanswered.as_ref().map(Into::into),
            unserved: figures.unserved.as_ref().filter(|share| node.depth > 0 && share.value > 0.0).map(Into::into),
            starts_warm: figures.warm.as_ref().filter(|_| node.depth > 0).map(Into::into),
        })
        .collect()
}

fn definitions(answer: &Answer) -> Object<DefinitionsReport> {
    let report = |costs: &ServerCosts| {
        let kept_out = costs.kept_out.as_ref().map_or(0.0, |kept_out| kept_out.value);
        let (loading, usd) = match costs.loading {
            Loading::Upfront => ("upfront", Some(costs.upfront.value)),
            Loading::Search { .. } => ("search", costs.search.as_ref().map(|search| search.value)),
            Loading::Code { .. } => ("code", costs.code.as_ref().map(|code| code.value + kept_out)),
        };
        let report = DefinitionsReport {
            tokens: costs.tokens,
            loading,
            sessions: costs.sessions,
            upfront_usd: (&costs.upfront).into(),
            search_usd: costs.search.as_ref().map(Into::into),
            code_usd: costs.code.as_ref().map(Into::into),
            kept_out_usd: costs.kept_out.as_ref().map(Into::into),
            month_usd: answer.scenario.sessions_per_month.zip(usd).map(|(n, usd)| n as f64 * usd),
        };
        (costs.server.clone(), report)
    };
    Object(answer.loadings.iter().map(report).collect())
}

fn strategy(answer: &Answer) -> Strategy {
    let (scenario, summary) = (&answer.scenario, &answer.summary);
    let mut metrics: Vec<(String, Object<serde_json::Value>)> =
        summary.metrics.iter().map(|(m, s)| (m.quantity().name().to_owned(), metric(s))).collect();
    metrics.extend(summary.turn_metrics.iter().map(|(m, s)| (m.name().to_owned(), metric(s))));
    let rates =
        summary.rates.iter().filter_map(|(rate, estimate)| Some((rate.name()?.to_owned(), estimate.into()))).collect();
    let known = [
        Outcome::Answered,
        Outcome::TurnLimit,
        Outcome::Budget,
        Outcome::Deadline,
        Outcome::ContextFull,
        Outcome::Failed,
    ];
    let ended = |outcome| summary.outcomes.iter().find(|(other, _)| *other == outcome).map_or(0, |(_, count)| *count);
    let outcomes = known.into_iter().map(|outcome| (outcome.name().to_owned(), ended(outcome))).collect();
    let money = |scale: &dyn Fn(i128) -> f64| {
        summary.sources.as_ref().map(|s| Money {
            definitions: Object(
                scenario.servers.iter().cloned().zip(s.definitions.iter().map(|d| scale(d.0))).collect(),
            ),
            system: scale(s.system.0),
            task: scale(s.task.0),
            history: scale(s.history.0),
            output: scale(s.output.0),
            tools: scale(s.tools.0),
            compaction: scale(s.compaction.0),
            duplicates: scale(s.duplicates.0),
            keep_alive: scale(s.keep_alive.0),
            lost_replies: scale(s.lost_replies.0),
            search: scale(s.searches.0),
            agents: scale(s.agents.0),
        })
    };
    let time = |divisor: f64| {
        summary.times.as_ref().map(|t| Time {
            first_token: t.first_token_s / divisor,
            writing: t.writing_s / divisor,
            tools: t.tools_s / divisor,
            retries: t.retries_s / divisor,
            people: t.people_s / divisor,
            compaction: t.compaction_s / divisor,
            search: t.searches_s / divisor,
            queue: answer.fleet.is_some().then_some(t.queue_s / divisor),
        })
    };
    let total_s = summary.times.as_ref().map_or(0.0, crate::stats::Times::total_s);
    let limits: Vec<(String, LimitReport)> = budget_rows(answer)
        .into_iter()
        .map(|row| {
            let limit = LimitReport {
                limit: row.limit_value,
                stopped: row.sessions,
                mean_cost_usd: row.mean_usd,
                mean_refused_worst_usd: row.refused_usd,
                stopped_without_call: row.without_call,
            };
            (row.name.to_owned(), limit)
        })
        .collect();
    let total = summary.sources.as_ref().map_or(0, |s| s.total().0);
    Strategy {
        name: scenario.strategy.clone(),
        metrics: Object(metrics),
        rates: Object(rates),
        duplicates_per_call_by_tool: Object(
            duplicates_by_tool(answer).map(|(name, rate)| (name.to_owned(), rate.into())).collect(),
        ),
        outcomes: Object(outcomes),
        cost_shares: if total > 0 { money(&|pico| pico as f64 / total as f64) } else { None },
        cost_by_source_usd: money(&|pico| pico as f64 / 1e12 / summary.sessions as f64),
        input_shares: Object(
            class_shares(answer).into_iter().map(|(name, _, share)| (name.to_owned(), share)).collect(),
        ),
        time_shares: time(total_s),
        time_by_source_s: time(summary.sessions as f64),
        longest_path: Object(
            longest_path(answer).iter().map(|(name, share)| ((*name).to_owned(), share.into())).collect(),
        ),
        agents: agents(answer),
        definitions: definitions(answer),
        pass_k: Object(summary.pass_k.iter().map(|(k, chance)| (k.to_string(), chance.into())).collect()),
        budget: Some(limits).filter(|limits| !limits.is_empty()).map(|limits| BudgetReport {
            check: if scenario.model.budget.before { "before" } else { "after" },
            limits: Object(limits),
        }),
        month: month(answer).map(|m| MonthReport {
            sessions: m.sessions,
            cost_usd: (&m.bill).into(),
            chance_spread_usd: m.spread_usd,
        }),
        precision: scenario
            .run
            .precision
            .iter()
            .map(|target| Precision {
                metric: target.name.clone(),
                want: target.relative_half_width,
                got: Some(target.reached(summary)).filter(|x| x.is_finite()),
                pass: target.met(summary),
            })
            .collect(),
        fleet: answer.fleet.as_ref().map(|fleet| super::fleet::report(answer, &fleet.summary)),
        closed_form_quantiles: Object(super::curves::closed_forms(&scenario.model)),
        checks: answer
            .checks
            .checks
            .iter()
            .map(|c| CheckReport {
                id: c.id,
                formula: c.formula.clone(),
                of: c.of.clone(),
                expected: c.expected,
                observed: c.observed,
                se: c.se,
                z: c.z,
                pass: c.pass,
            })
            .collect(),
        not_checked: answer
            .checks
            .not_checked
            .iter()
            .map(|n| NotCheckedReport { id: n.id, why: n.why.clone() })
            .collect(),
        thresholds: scenario.run.thresholds.iter().map(|threshold| threshold_report(threshold, answer)).collect(),
    }
}
