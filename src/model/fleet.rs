//! Many sessions at once: when they arrive, and what they share.

use std::sync::Arc;

/// Sessions that arrive one after another and share limits, servers, a prompt prefix and outages.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// When they arrive.
    pub arrivals: Arrivals,
    /// How long one replication is watched, s.
    pub horizon_s: f64,
    /// From its beginning so much isn't counted, s.
    pub warm_up_s: f64,
    /// Independent replications.
    pub replications: u64,
    /// Limits on model calls.
    pub limits: Limits,
    /// What breaks down, and when.
    pub outages: Vec<Outage>,
}

impl Fleet {
    /// Whether the model breaks down at some time.
    pub fn model_breaks_down(&self) -> bool {
        self.outages.iter().any(|outage| outage.station.is_none())
    }

    /// Whether anything that sessions share can hold up or stop a model call.
    pub fn rules_calls(&self) -> bool {
        self.limits.any_rate() || self.limits.concurrent.is_some() || self.model_breaks_down()
    }
}

/// When sessions arrive.
#[derive(Debug, Clone)]
pub enum Arrivals {
    /// At random at a constant rate, a second.
    Poisson {
        /// Sessions a second.
        per_s: f64,
    },
    /// At random at a rate that changes from hour to hour, and begins again after the last.
    Profile {
        /// Sessions a second, hour by hour.
        per_s: Vec<f64>,
    },
    /// At given times, rising, s.
    Times(Arc<[f64]>),
}

impl Arrivals {
    /// Whether as many arrive at all times.
    pub fn is_steady(&self) -> bool {
        matches!(self, Self::Poisson { .. })
    }

    /// Sessions a second on average over the first `horizon_s`.
    pub fn mean_per_s(&self, horizon_s: f64) -> f64 {
        match self {
            Self::Poisson { per_s } => *per_s,
            Self::Profile { per_s } => {
                let hours = horizon_s / 3600.0;
                let whole = hours.floor() as usize;
                let sum: f64 = (0..whole).map(|hour| per_s[hour % per_s.len()]).sum();
                (sum + per_s[whole % per_s.len()] * hours.fract()) / hours
            }
            Self::Times(times) => times.partition_point(|at_s| *at_s < horizon_s) as f64 / horizon_s,
        }
    }
}

/// Limits on model calls; each `None` where off. Rates are refilled continuously.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Requests a minute.
    pub requests_per_minute: Option<f64>,
    /// Tokens that are sent, a minute.
    pub input_tokens_per_minute: Option<f64>,
    /// Tokens that are written, a minute.
    pub output_tokens_per_minute: Option<f64>,
    /// Both together, a minute.
    pub tokens_per_minute: Option<f64>,
    /// What is left unused is kept for so long, s: the bucket holds what flows in during it.
    pub burst_s: f64,
    /// Model calls in flight.
    pub concurrent: Option<u64>,
    /// How the provider counts.
    pub rules: LimitRules,
}

impl Limits {
    /// Whether any rate is limited.
    pub fn any_rate(&self) -> bool {
        [self.requests_per_minute, self.input_tokens_per_minute, self.output_tokens_per_minute, self.tokens_per_minute]
            .iter()
            .any(Option::is_some)
    }
}

/// How a provider counts against its limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitRules {
    /// Whether tokens that are read from the cache count.
    pub cache_reads_count: bool,
    /// When and how the output counts.
    pub output: OutputRule,
    /// The most tokens that a call can write.
    pub max_output_tokens: u64,
    /// Whether a rejected request counts as one.
    pub rejected_count: bool,
    /// Whether a rejection says when to come again.
    pub retry_after: bool,
}

/// When and how the output of a call counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutputRule {
    /// What was written, when it is.
    Written,
    /// The most that it could write, when it is admitted; of both together the larger of that and the prompt.
    Reserved,
    /// The most that it could write is set aside, and replaced by what was written, times a factor, when it ends.
    Settled {
        /// The factor.
        burndown: f64,
    },
}

/// Servers that the calls of a tool share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// Calls that it serves at once.
    pub servers: u64,
    /// Calls that may wait; a further one is turned away. `u64::MAX` without an end.
    pub places: u64,
}

/// Something doesn't work for a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outage {
    /// The number of a tool among [`Model::station_tools`](super::Model::station_tools), or `None` for the model.
    pub station: Option<usize>,
    /// From when, s.
    pub from_s: f64,
    /// Until when, s.
    pub until_s: f64,
    /// Chance that it hits an attempt.
    pub share: f64,
    /// Whether attempts that it hits are lost; otherwise they are turned away.
    pub is_silent: bool,
}
