//! A session of fixed sizes, call by call: what the closed forms of money come down to where gaps, tiers, breaks,
//! pings and summaries meet.

use super::facts::{Facts, phase_growth};
use super::gaps::{Gap, Gaps};
use crate::model::{Loading, Model, Search, Tool};
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
    /// Whether earlier bytes can have changed before it.
    pub after_break: bool,
    /// What comes after it; nothing after the last.
    pub gap: Option<Gap>,
}

/// How the searches for a tool can go: (chance, searches, whether it was found).
fn search_ends(search: &Search) -> Vec<(f64, u32, bool)> {
    let (hit, miss) = (search.hit_rate, 1.0 - search.hit_rate);
    let found = |k: u32| (hit * miss.powi(k as i32 - 1), k, true);
    let mut ends: Vec<(f64, u32, bool)> = (1..=search.most).map(found).collect();
    ends.push((miss.powi(search.most as i32), search.most, false));
    ends.retain(|(chance, ..)| *chance > 0.0);
    ends
}

/// The most ways in which the searches of a session can go that are walked one by one.
const MOST_WAYS: usize = 4_096;

/// The calls of a session of fixed sizes, for each way in which its searches can go, with its chance; or why they aren't
/// known.
pub(super) fn plans(facts: &Facts<'_>) -> Result<Vec<(f64, Vec<Planned>)>, String> {
    let model = facts.model;
    let search = model.search.as_ref().filter(|_| model.searches());
    let Some(search) = search else { return Ok(vec![(1.0, plan(facts, &[])?)]) };
    let is_needed = |index: &usize| {
        let tool = &model.phase.tools[*index];
        matches!(tool.loading, Loading::Search { .. }) && tool.calls.as_constant() != Some(0)
    };
    let ends = search_ends(search);
    let mut ways: Vec<(f64, Vec<Searched>)> = vec![(1.0, Vec::new())];
    for tool in (0..model.phase.tools.len()).filter(is_needed) {
        if ways.len() * ends.len() > MOST_WAYS {
            return Err("searches can go in too many ways to be walked one by one".to_owned());
        }
        let longer = |(chance, way): &(f64, Vec<Searched>)| {
            let (chance, way) = (*chance, way.clone());
            ends.iter().map(move |(end_chance, searches, found)| {
                let mut way = way.clone();
                way.push(Searched { tool, searches: *searches, found: *found });
                (chance * end_chance, way)
            })
        };
        ways = ways.iter().flat_map(longer).collect();
    }
    ways.into_iter().map(|(chance, way)| Ok((chance, plan(facts, &way)?))).collect()
}

/// The mean over all ways of the sum over their calls.
pub(super) fn expected(plans: &[(f64, Vec<Planned>)], of: impl Fn(&Planned) -> f64) -> f64 {
    plans.iter().map(|(chance, calls)| chance * calls.iter().map(&of).sum::<f64>()).sum()
}

/// How the searches for a tool went.
#[derive(Debug, Clone, Copy)]
struct Searched {
    tool: usize,
    searches: u32,
    found: bool,
}

fn plan(facts: &Facts<'_>, searched: &[Searched]) -> Result<Vec<Planned>, String> {
    let model = facts.model;
    let mean = |x: f64| x.round() as u64;
    let given_up: Vec<usize> = searched.iter().filter(|s| !s.found).map(|s| s.tool).collect();
    let mut first_phase = true;
    let (messages, turns) = (mean(facts.messages.0), mean(facts.turns.0));
    let output = mean(model.output.mean());
    let results = mean(phase_growth(model, &given_up)?);
    let prefix = mean(facts.prefix());
    let context = &model.context;
    let mut prompt = mean(facts.first_prompt());
    let mut calls = Vec::new();
    for message in 0..messages {
        for turn in 1..=turns {
            let mut after_break = true;
            if prompt > context.compact_at_tokens {
                let output = context.summary_tokens;
                calls.push(Planned { prompt, output, summary: true, after_break, gap: Some(Gap::None) });
                prompt = prefix + context.summary_tokens;
                after_break = false;
            }
            let last = turn == turns;
            // a loop that is cut has a phase after its last call too
            let cut = last && model.turns.as_constant().is_some_and(|wanted| wanted > model.max_turns);
            let searches_now = (!last || cut) && first_phase && !searched.is_empty();
            let gap = match (last, message + 1 == messages) {
                (true, false) => Some(Gap::Think),
                (true, true) if !searches_now => None,
                _ if searches_now => Some(Gap::Asked),
                _ => Some(Gap::Tools),
            };
            calls.push(Planned { prompt, output, summary: false, after_break, gap });
            prompt += output;
            if searches_now {
                if context.compact_at_tokens < u64::MAX {
                    return Err("prompts may be summarised between searches".to_owned());
                }
                search_calls(model, searched, &mut prompt, &mut calls);
            }
            if last {
                if let Some(end) = calls.last_mut().filter(|_| message + 1 == messages) {
                    end.gap = None;
                }
                prompt += mean(model.conversation.message.mean());
                continue;
            }
            prompt += results;
            if std::mem::replace(&mut first_phase, false) {
                prompt += read_at_first_use(model);
            }
        }
    }
    Ok(calls)
}

/// The calls that search, before the first phase.
fn search_calls(model: &Model, searched: &[Searched], prompt: &mut u64, calls: &mut Vec<Planned>) {
    let output = model.search.as_ref().map_or(0, |search| search.output_tokens);
    for Searched { tool, searches, .. } in searched {
        for _ in 0..*searches {
            calls.push(Planned { prompt: *prompt, output, summary: false, after_break: false, gap: Some(Gap::Search) });
            *prompt += output;
            if let Loading::Search { appended_tokens } = model.phase.tools[*tool].loading {
                *prompt += appended_tokens;
            }
        }
    }
    if let Some(last) = calls.last_mut() {
        last.gap = Some(Gap::Found);
    }
}

/// Definitions that enter the history in the first phase, tokens.
fn read_at_first_use(model: &Model) -> u64 {
    let is_used = |index: usize| {
        let own = |tool: &&Tool| tool.loading == Loading::Code { server: index };
        model.phase.tools.iter().filter(own).any(|tool| tool.calls.as_constant() != Some(0))
    };
    let servers = model.phase.code.iter().enumerate().filter(|(index, _)| is_used(*index));
    servers.map(|(_, server)| server.read_tokens).sum()
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
    let mut sum = Walk::default();
    for (chance, calls) in plans(facts)? {
        let walk = walk_one(facts, tariff, gaps, &calls)?;
        sum.input_usd += chance * walk.input_usd;
        sum.expired += chance * walk.expired;
    }
    Ok(sum)
}

fn walk_one(facts: &Facts<'_>, tariff: &Tariff, gaps: &Gaps<'_>, calls: &[Planned]) -> Result<Walk, String> {
    let model = facts.model;
    let (cache, timing) = (&model.cache, &model.timing);
    let breaks = &cache.breaks;
    let (definitions, prefix) = (model.prompt.definition_tokens(), facts.prefix().round() as u64);
    let at_least_min = |tokens: u64| if tokens >= cache.min_tokens { tokens } else { 0 };
    let has_prefill = timing.prefill_s_per_token > 0.0 || timing.cached_prefill_s_per_token > 0.0;
    let mut walk = Walk::default();
    // chance to find nothing, the prefix, everything, with what everything is
    let mut found = [1.0 - cache.warm_prefix, cache.warm_prefix, 0.0];
    let (mut cached, mut sent, mut first) = (0, 0, true);
    for call in calls {
        let rates = tariff.rates(tariff.tier_of(call.prompt));
        let cacheable = cache.enabled && call.prompt >= cache.min_tokens;
        let granularity = cache.granularity_tokens.max(1);
        let billing = Billing { rates, prompt: call.prompt, prefix, cacheable, granularity };
        // what can have happened to earlier bytes: (chance, what is kept of them)
        let can_break = breaks.any() && !first && call.after_break;
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
        first = false;
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
    let plans = plans(facts)?;
    let weighted = plans.iter().flat_map(|(chance, calls)| calls.iter().map(move |call| (*chance, call)));
    for (chance, call) in weighted {
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
        input += chance * pings * usd(rates.read) * tokens as f64;
        output += chance * pings * usd(rates.output);
    }
    Ok((input, output))
}
