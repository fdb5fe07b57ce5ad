//! The time from the start of one call to the start of the next: whether it outlasts a lifetime, and how many pings
//! fall into it.

use super::facts::{Facts, fixed_call_s, fixed_search_s, fixed_summary_s};
use super::phases::{PhaseLaw, rare_sf};
use super::{Events, NO_EVENTS, events};
use crate::dist::Dist;

/// Pings of one gap that are summed one by one.
const TERMS: u32 = 20_000;

/// What lies between two calls, besides the first one's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// A tool phase.
    Tools,
    /// The user's wait.
    Think,
    /// Nothing: the call was a summary.
    None,
    /// Nothing: a turn's call is followed by a search.
    Asked,
    /// What a search takes, with another search behind it.
    Search,
    /// What a search takes, and a tool phase behind it.
    Found,
}

/// The laws of the gaps.
pub(super) struct Gaps<'a> {
    phase: Option<PhaseLaw<'a>>,
    think: &'a Dist,
    /// Fixed time to the first token and for writing, s; `None` where random.
    fixed_s: Option<f64>,
    /// The same of a summary, and of a call that searches.
    summary_s: Option<f64>,
    search_s: Option<f64>,
    /// How long a search takes, s; `None` where random.
    waits_s: Option<f64>,
    /// Whether gaps are taken never to outlast a lifetime.
    never: bool,
}

impl<'a> Gaps<'a> {
    pub fn new(facts: &Facts<'a>) -> Result<Self, String> {
        let model = facts.model;
        let never = model.cache.is_kept_alive() || never_expires(facts);
        let gaps = Self {
            phase: PhaseLaw::of(model).ok(),
            think: &model.conversation.think_s,
            fixed_s: fixed_call_s(model),
            summary_s: fixed_summary_s(model),
            search_s: fixed_search_s(model),
            waits_s: model.search.as_ref().map_or(Some(0.0), |search| search.latency_s.as_constant()),
            never,
        };
        let compacts = model.context.compact_at_tokens < u64::MAX;
        let unknown = gaps.phase.is_none()
            || gaps.fixed_s.is_none()
            || (compacts && gaps.summary_s.is_none())
            || (model.searches() && (gaps.search_s.is_none() || gaps.waits_s.is_none()));
        if unknown && !never {
            return Err("the law of the gap between two calls has no closed form here".to_owned());
        }
        Ok(gaps)
    }

    /// Whether no gap outlasts a lifetime.
    pub fn never_expire(&self) -> bool {
        self.never
    }

    /// The same, if no gap expires.
    pub fn never(mut self) -> Self {
        self.never = true;
        self
    }

    /// `P(gap > x)` after a call that took `prefill_s` besides its fixed time.
    fn sf(&self, gap: Gap, prefill_s: f64, x: f64) -> f64 {
        let left_s = x - self.call_s(gap).unwrap_or(0.0) - prefill_s;
        if left_s < 0.0 {
            return 1.0;
        }
        match (gap, &self.phase) {
            (Gap::Tools | Gap::Found, Some(law)) => law.sf(left_s),
            (Gap::Think, _) => self.think.sf(left_s),
            _ => 0.0,
        }
    }

    /// The fixed time of the call before a gap, with what a search takes, s.
    fn call_s(&self, gap: Gap) -> Option<f64> {
        match gap {
            Gap::None => self.summary_s,
            Gap::Search | Gap::Found => Some(self.search_s? + self.waits_s?),
            Gap::Tools | Gap::Think | Gap::Asked => self.fixed_s,
        }
    }

    /// (prefix expired, messages expired) after a call that took `prefill_s` besides its fixed time.
    pub fn chances(&self, facts: &Facts<'_>, gap: Gap, prefill_s: f64) -> (f64, f64) {
        if self.never {
            return (0.0, 0.0);
        }
        let cache = &facts.model.cache;
        (self.sf(gap, prefill_s, cache.prefix_lifetime_s), self.sf(gap, prefill_s, cache.lifetime_s))
    }

    /// The same chances for every gap of a kind, where the call's own time doesn't depend on its prompt.
    pub fn same_for_all(&self, facts: &Facts<'_>) -> Result<[(f64, f64); 2], String> {
        let timing = &facts.model.timing;
        if self.never {
            return Ok([(0.0, 0.0); 2]);
        }
        if timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0 {
            return Err("gaps depend on the prompt through the prefill rate, and sizes are random".to_owned());
        }
        let chances = [Gap::Tools, Gap::Think].map(|gap| self.chances(facts, gap, 0.0));
        let sessions = facts.sessions();
        let thinks = sessions * (facts.messages.0 - 1.0);
        let expected = chances[0].1 * (sessions * (facts.calls() - 1.0) - thinks) + chances[1].1 * thinks;
        match events(expected, facts.expired_beyond(expected)) {
            Events::TooFew(_) if expected <= NO_EVENTS => Ok([(0.0, 0.0); 2]),
            Events::TooFew(why) => Err(why),
            _ => Ok(chances),
        }
    }

    /// `Σ weight · pings`, over gaps of each kind whose calls take a fixed time.
    pub fn weighted_pings(&self, facts: &Facts<'_>, weights: [(f64, Gap); 2]) -> Result<f64, String> {
        let mut sum = 0.0;
        for (weight, gap) in weights {
            if weight > 0.0 {
                sum += weight * self.pings(facts, gap, 0.0)?;
            }
        }
        Ok(sum)
    }

    /// Mean number of pings in a gap, `Σ_k P(gap ≥ k δ)`; one exponential phase of mean g and calls that take no time
    /// make it `1/(e^(δ/g) - 1)`. Or why it isn't known.
    pub fn pings(&self, facts: &Facts<'_>, gap: Gap, prefill_s: f64) -> Result<f64, String> {
        let cache = &facts.model.cache;
        if !cache.is_kept_alive() {
            return Ok(0.0);
        }
        if self.call_s(gap).is_none() || (matches!(gap, Gap::Tools | Gap::Found) && self.phase.is_none()) {
            return Err("the law of the gap between two calls has no closed form here".to_owned());
        }
        if gap == Gap::Think
            && let Some(think_s) = self.think.as_constant()
        {
            return Ok(((self.fixed_s.unwrap_or(0.0) + prefill_s + think_s) / cache.keep_alive_s).floor());
        }
        let mut pings = 0.0;
        for k in 1..=TERMS {
            // at least k intervals: a gap of exactly so many has its ping
            let chance = self.sf(gap, prefill_s, (f64::from(k) * cache.keep_alive_s).next_down());
            pings += chance;
            if chance < 1e-16 {
                return Ok(pings);
            }
        }
        match gap {
            // the rest as an integral, each term the midpoint of its interval
            Gap::Think if !matches!(self.think, Dist::Choices(_) | Dist::Empirical(_) | Dist::Mixture(_)) => {
                let from_s = (f64::from(TERMS) + 0.5) * cache.keep_alive_s - prefill_s - self.fixed_s.unwrap_or(0.0);
                Ok(pings + (self.think.mean() - self.think.mean_up_to(from_s)).max(0.0) / cache.keep_alive_s)
            }
            _ => Err("gaps spread too widely for their pings to be summed".to_owned()),
        }
    }
}

/// Whether no gap in a sample of this size can be expected to outlast the messages' lifetime: the largest prefill plus
/// three parts of which each stays within a third of what is left.
fn never_expires(facts: &Facts<'_>) -> bool {
    let model = facts.model;
    if model.faults.any() {
        return false;
    }
    let timing = &model.timing;
    let largest = facts.largest_prompt().max(facts.first_prompt());
    let prefill_s = largest * timing.prefill_s_per_token.max(timing.cached_prefill_s_per_token);
    let third = (model.cache.lifetime_s - prefill_s) / 3.0;
    if third <= 0.0 {
        return false;
    }
    let writing = match &timing.output_rate {
        None => 0.0,
        // o / r > x only if o > √x·c or r < …: split at the rate's low quantile
        Some(rate) => {
            let slow = rate.quantile(1e-13).max(f64::MIN_POSITIVE);
            model.output.at_least((third * slow).floor().min(1e18) as u64 + 1)
        }
    };
    if model.context.compact_at_tokens < u64::MAX
        && let Some(rate) = &timing.output_rate
        && model.context.summary_tokens as f64 > third * rate.quantile(1e-13).max(f64::MIN_POSITIVE)
    {
        return false;
    }
    let mut searches = 0.0;
    if model.searches()
        && let Some(search) = &model.search
    {
        let writing_s = match &timing.output_rate {
            None => 0.0,
            Some(rate) => search.output_tokens as f64 / rate.quantile(1e-13).max(f64::MIN_POSITIVE),
        };
        // a search and the phase behind it share a third
        if writing_s > third {
            return false;
        }
        let most = f64::from(search.most) * model.phase.tools.len() as f64;
        searches = most * (search.latency_s.sf(third / 2.0) + rare_sf(model, third / 2.0));
    }
    let sessions = facts.sessions();
    let thinks = if model.conversation.is_single() { 0.0 } else { model.conversation.think_s.sf(third) };
    let chance = timing.first_token_s.sf(third) + writing + rare_sf(model, third);
    sessions * (chance * facts.calls() + thinks * (facts.messages.0 - 1.0) + searches) <= NO_EVENTS
}
