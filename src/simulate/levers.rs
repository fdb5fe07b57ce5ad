//! What to change first: every lever by itself, on the same sessions.

use super::compare::{pair_with, paired};
use super::{Answer, Options, Progress, sample};
use crate::scenario::{Change, Scenario};
use crate::stats::{Estimate, Metric, Paired, Rate, Statistic};
use crate::{Error, check, engine};

/// The quantile of the latency by which levers are ranked.
pub const RANKED_QUANTILE: f64 = 0.99;

/// A lever that was played.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// What is done.
    pub name: String,
    /// Whether the scenario does it already: the figures are then what it brings.
    pub is_on: bool,
    /// The server that the agent would have to do without, and its tools in the file.
    pub loses: Option<(String, Vec<String>)>,
    /// What is to be said of the scenario with it that isn't said of it as it is.
    pub notes: Vec<String>,
    /// The keys that are set by pulling it; for a lever that is on, by letting go of it.
    pub changes: Vec<Change>,
    /// What a session is dearer without it, $.
    pub saved: Option<Paired>,
    /// The same by the closed forms of both, where there are any.
    pub saved_in_theory_usd: Option<f64>,
    /// How much longer a session takes without it, s.
    pub faster: Option<Paired>,
    /// What else it changes surely, in the order of the report.
    pub effects: Vec<Effect>,
}

/// Something else that a lever changes.
#[derive(Debug, Clone)]
pub struct Effect {
    /// A metric's name with `.mean`, or a rate's.
    pub name: String,
    /// What it is of.
    pub statistic: Statistic,
    /// With the lever, and without it.
    pub values: [f64; 2],
}

/// All levers of a scenario, the best first.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// The scenario as it is.
    pub base: Answer,
    /// By money saved, and by time where there are no prices.
    pub pulled: Vec<Pulled>,
    /// What doesn't fit: (what, why).
    pub others: Vec<(String, String)>,
}

impl Pulled {
    /// Whether fewer sessions or calls end well with it.
    pub fn harms(&self) -> bool {
        let is_share = |effect: &&Effect| matches!(effect.statistic, Statistic::Rate(_));
        self.effects.iter().filter(is_share).any(|effect| effect.values[0] < effect.values[1])
    }

    /// Seconds off the ranked quantile.
    pub fn off_tail(&self) -> Option<&Estimate> {
        let quantiles = &self.faster.as_ref()?.quantiles;
        quantiles.first().filter(|quantile| !quantile.too_few).map(|quantile| &quantile.difference)
    }
}

/// Plays a scenario with each of its levers by itself, and ranks them.
///
/// # Errors
/// Where the scenario is too long for every session's values to be kept, or the threads can't be had.
pub fn levers(scenario: Scenario, options: Options<'_>, progress: &dyn Progress) -> Result<Ranking, Error> {
    if scenario.model.fleet.is_some() {
        return Err(Error::NotOfFleets("levers"));
    }
    let found = scenario.levers();
    let play = |scenario: Scenario| {
        engine::with_threads(options.threads, || sample(scenario, progress)).map_err(Error::Threads)
    };
    let mut scenario = scenario;
    pair_with(&mut scenario, None)?;
    let mut base = play(scenario)?;
    base.checks = check::check(&base.scenario.model, &base.sample);
    let mut pulled = Vec::new();
    for lever in found.levers {
        let mut scenario = lever.scenario;
        pair_with(&mut scenario, Some(&base))?;
        let other = play(scenario)?;
        let changes = base.scenario.changes(&other.scenario);
        // with the lever, and without it
        let [with, without] = if lever.is_on { [&base, &other] } else { [&other, &base] };
        let metric = |name: &str, quantiles: &[f64]| {
            let metric = Metric::named(name)?;
            let paired = || paired(without, with, metric, quantiles);
            engine::with_threads(options.threads, paired).ok().flatten()
        };
        let expected = |answer: &Answer| {
            Metric::named("cost_usd").and_then(|cost| check::expected(&answer.scenario.model, Statistic::Mean(cost)))
        };
        pulled.push(Pulled {
            name: lever.name,
            is_on: lever.is_on,
            loses: lever.loses,
            notes: if lever.is_on {
                Vec::new()
            } else {
                let known = &base.scenario.notes;
                other.scenario.notes.iter().filter(|note| !known.contains(note)).cloned().collect()
            },
            changes: changes.into_iter().filter(|change| !change.key.starts_with("strategies")).collect(),
            saved: metric("cost_usd", &[]),
            saved_in_theory_usd: expected(without).zip(expected(with)).map(|(without, with)| without - with),
            faster: metric("latency_s", &[RANKED_QUANTILE]),
            effects: effects(with, without),
        });
    }
    let value = |pulled: &Pulled| {
        let money = pulled.saved.as_ref().map_or(0.0, |saved| saved.difference.value);
        let time = pulled.off_tail().map_or(0.0, |off| off.value);
        (money, time)
    };
    pulled.sort_by(|a, b| {
        let ((money, time), (other_money, other_time)) = (value(a), value(b));
        other_money.total_cmp(&money).then(other_time.total_cmp(&time))
    });
    Ok(Ranking { base, pulled, others: found.others })
}

/// What else two ways surely differ in.
fn effects(with: &Answer, without: &Answer) -> Vec<Effect> {
    const METRICS: [&str; 2] = ["latency_s", "duplicates"];
    const RATES: [Rate; 4] = [Rate::Answered, Rate::Availability, Rate::Served, Rate::Success];
    let mut effects = Vec::new();
    for metric in METRICS.into_iter().filter_map(Metric::named) {
        let name = metric.quantity().name();
        let mean = |answer: &Answer| answer.summary.metric(name).map(|metric| metric.mean.value);
        // a metric that doesn't apply to one of them is 0 there
        let values = [mean(with), mean(without)];
        let surely = match values {
            [Some(_), Some(_)] => paired(with, without, metric, &[]).is_some_and(|paired| paired.is_decided()),
            [None, None] => false,
            [a, b] => a.or(b).is_some_and(|x| x > 0.0),
        };
        if surely {
            effects.push(Effect {
                name: format!("{name}.mean"),
                statistic: Statistic::Mean(metric),
                values: values.map(|x| x.unwrap_or(0.0)),
            });
        }
    }
    for rate in RATES {
        let read = |answer: &Answer| Statistic::Rate(rate).read(&answer.summary);
        // a share that doesn't apply is 1: nothing can fail there
        let (mine, theirs) = (read(with), read(without));
        let apart = match (&mine, &theirs) {
            (Some(mine), Some(theirs)) => mine.ci95[0] > theirs.ci95[1] || theirs.ci95[0] > mine.ci95[1],
            (None, None) => false,
            (Some(one), None) | (None, Some(one)) => one.ci95[1] < 1.0,
        };
        if apart && let Some(name) = rate.name() {
            let value = |reading: Option<crate::stats::Reading>| reading.map_or(1.0, |reading| reading.value);
            effects.push(Effect {
                name: name.to_owned(),
                statistic: Statistic::Rate(rate),
                values: [value(mine), value(theirs)],
            });
        }
    }
    effects
}
