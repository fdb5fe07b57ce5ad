//! A session of fixed sizes, call by call: what the closed forms of money come down to where gaps, tiers, breaks,
//! pings and summaries meet.

use super::facts::Facts;
use super::gaps::{Gap, Gaps};
use crate::price::{PicoUsdPerToken, Rates, Tariff};

/// One call of a session whose sizes are fixed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    /// All that is sent, tokens.
    pub prompt: u64,
    /// All that is written, tokens.
    pub output: u64,
    /// Whether it is a summary.
    pub summary: bool,
    /// What comes after it; nothing after the last.
    pub gap: Option<Gap>,
}

/// The calls of a session of fixed sizes.
pub(super) fn plan(facts: &Facts<'_>) -> Vec<Planned> {
    let model = facts.model;
    let mean = |x: f64| x.round() as u64;
    let (messages, turns) = (mean(facts.messages.0), mean(facts.turns.0));
    let output = mean(model.output.mean());
    let growth = mean(facts.growth.clone().unwrap_or(0.0));
    let prefix = mean(facts.prefix());
    let context = &model.context;
    let mut prompt = mean(facts.first_prompt());
    let mut calls = Vec::new();
    for message in 0..messages {
        for turn in 1..=turns {
            if prompt > context.compact_at_tokens {
                calls.push(Planned { prompt, output: context.summary_tokens, summary: true, gap: Some(Gap::None) });
                prompt = prefix + context.summary_tokens;
            }
            let last = turn == turns;
            let gap = match (last, message + 1 == messages) {
                (true, true) => None,
                (true, false) => Some(Gap::Think),
                (false, _) => Some(Gap::Tools),
            };
            calls.push(Planned { prompt, output, summary: false, gap });
            prompt += if last { output + mean(model.conversation.message.mean()) } else { growth };
        }
    }
    calls
}

/// What a session of fixed sizes is expected to come to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Walk {
    pub input_usd: f64,
    /// Gaps that expire.
    pub expired: f64,
}

pub(super) fn usd(price: PicoUsdPerToken) -> f64 {
    price.0 as f64 / 1e12
}

/// Money for the input of one call.
struct Billing<'a> {
    rates: &'a Rates,
    prompt: u64,
    prefix: u64,
    cacheable: bool,
    granularity: u64,
}

impl Billing<'_> {
    /// Where `valid` tokens of it are still cached; and the tokens read.
    fn input(&self, valid: u64) -> (f64, u64) {
        let Rates { input, read, write_prefix, write_messages, .. } = *self.rates;
        if !self.cacheable {
            return (usd(input) * self.prompt as f64, 0);
        }
        let hit = valid - valid % self.granularity;
        let fresh = self.prompt - hit;
        let fresh_prefix = self.prefix.saturating_sub(hit);
        let money = usd(read) * hit as f64
            + usd(write_prefix) * fresh_prefix as f64
            + usd(write_messages) * (fresh - fresh_prefix) as f64;
        (money, hit)
    }
}

/// The most tokens of messages over which the places of a break are summed one by one.
const MOST_PLACES: u64 = 100_000;

/// The expected cost of a session, call by call: what the last call found cached decides how long it took, and so with
/// which chance the next one finds what. With equal chances for all gaps this is the closed form.
pub(super) fn walk(facts: &Facts<'_>, tariff: &Tariff, gaps: &Gaps<'_>) -> Result<Walk, String> {
    let model = facts.model;
    let (cache, timing) = (&model.cache, &model.timing);
    let breaks = &cache.breaks;
    let (definitions, prefix) = (model.prompt.definition_tokens(), facts.prefix().round() as u64);
    let at_least_min = |tokens: u64| if tokens >= cache.min_tokens { tokens } else { 0 };
    let has_prefill = timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0;
    let mut walk = Walk::default();
    // chance to find nothing, the prefix, everything, with what everything is
    let mut found = [1.0 - cache.warm_prefix, cache.warm_prefix, 0.0];
    let (mut cached, mut sent, mut first, mut after_summary) = (0, 0, true, false);
    for call in plan(facts) {
        let rates = tariff.rates(tariff.tier_of(call.prompt));
        let cacheable = cache.enabled && call.prompt >= cache.min_tokens;
        let granularity = cache.granularity_tokens.max(1);
        let billing = Billing { rates, prompt: call.prompt, prefix, cacheable, granularity };
        // what can have happened to earlier bytes: (chance, what is kept of them)
        let can_break = breaks.any() && !first && !after_summary;
        let mut kept = vec![(1.0, u64::MAX)];
        if can_break {
            let (tools, system, history) = (breaks.tools, breaks.system, breaks.history);
            let intact = (1.0 - tools) * (1.0 - system);
            kept = vec![(tools, 0), ((1.0 - tools) * system, definitions), (intact * (1.0 - history), u64::MAX)];
            let places = sent - prefix;
            if history > 0.0 {
                if has_prefill && !gaps.never_expire() {
                    return Err("a break's place decides how long the prefill takes".to_owned());
                }
                let each = intact * history;
                if granularity == 1 && cache.min_tokens <= prefix {
                    // money is linear in the place, whose mean may lie between two tokens
                    let twice = places.saturating_sub(1);
                    kept.extend([twice / 2, twice.div_ceil(2)].map(|place| (each / 2.0, prefix + place)));
                } else if places > MOST_PLACES {
                    return Err("the places of breaks are too many to be summed".to_owned());
                } else {
                    let all = places.max(1);
                    kept.extend((0..all).map(|place| (each / all as f64, prefix + place)));
                }
            }
        }
        let valid = [0, at_least_min(prefix), cached];
        let mut next = [0.0; 3];
        for (chance, valid) in found.into_iter().zip(valid) {
            if chance <= 0.0 {
                continue;
            }
            for (break_chance, most) in &kept {
                if *break_chance <= 0.0 {
                    continue;
                }
                let (money, hit) = billing.input(valid.min(at_least_min(*most)));
                walk.input_usd += chance * break_chance * money;
                let Some(gap) = call.gap else { continue };
                let prefill_s = (call.prompt - hit) as f64 * timing.prefill_s_per_token
                    + hit as f64 * timing.cached_prefill_s_per_token;
                let weight = chance * break_chance;
                let (no_prefix, no_messages) = gaps.chances(facts, gap, prefill_s);
                for (sum, share) in next.iter_mut().zip([no_prefix, no_messages - no_prefix, 1.0 - no_messages]) {
                    *sum += weight * share;
                }
            }
        }
        let more = if cache.caches_output && !call.summary { call.output } else { 0 };
        let left = if cacheable { call.prompt + more } else { 0 };
        if cacheable && call.gap.is_some() {
            walk.expired += next[0] + next[1];
        }
        cached = if call.summary { left.min(at_least_min(prefix)) } else { left };
        sent = if call.summary { prefix } else { call.prompt };
        found = if cacheable { next } else { [1.0, 0.0, 0.0] };
        (first, after_summary) = (false, call.summary);
    }
    Ok(walk)
}

/// Money for the pings of a session of fixed sizes: (input, output).
pub(super) fn ping_usd(facts: &Facts<'_>, tariff: &Tariff, gaps: &Gaps<'_>) -> Result<(f64, f64), String> {
    let (cache, timing) = (&facts.model.cache, &facts.model.timing);
    if !cache.is_kept_alive() {
        return Ok((0.0, 0.0));
    }
    if (timing.prefill_s_per_token - timing.cached_prefill_s_per_token).abs() > 0.0 {
        return Err("the number of pings depends on the prefill, and so on what was found".to_owned());
    }
    let (mut input, mut output) = (0.0, 0.0);
    // gaps of a kind are alike unless the prefill makes them longer
    let mut known: Vec<(Gap, u64, f64)> = Vec::new();
    for call in plan(facts) {
        let Some(gap) = call.gap.filter(|_| call.prompt >= cache.min_tokens) else { continue };
        let more = if cache.caches_output && !call.summary { call.output } else { 0 };
        let cached = call.prompt + more;
        let tokens = cached - cached % cache.granularity_tokens.max(1);
        let rates = tariff.rates(tariff.tier_of(tokens));
        let prefill_s = call.prompt as f64 * timing.prefill_s_per_token;
        let same = known.iter().find(|(kind, bits, _)| *kind == gap && *bits == prefill_s.to_bits());
        let pings = match same {
            Some((_, _, pings)) => *pings,
            None => {
                let pings = gaps.pings(facts, gap, prefill_s)?;
                known.push((gap, prefill_s.to_bits(), pings));
                pings
            }
        };
        input += pings * usd(rates.read) * tokens as f64;
        output += pings * usd(rates.output);
    }
    Ok((input, output))
}
