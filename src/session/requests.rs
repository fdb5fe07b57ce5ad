//! What the requests of a session use: booked in its ledger, added up for its budget.

use super::draws::Draws;
use super::record::Limit;
use super::spend::worst_case;
use super::step::{Call, Kind, Sending};
use super::{Lump, Session, State};
use crate::price::{PicoUsd, Split};

impl<D: Draws> Session<'_, D> {
    /// Whether the budget refuses the next attempt, which then ends the session.
    #[cold]
    pub(super) fn is_refused(&mut self, now_s: f64, number: u64) -> bool {
        let (model, budget) = (self.model, &self.model.budget);
        let max_output = match self.kind {
            Kind::Turn => budget.max_output_tokens,
            Kind::Summary => model.context.summary_tokens,
            Kind::Search => self.search_output(),
        };
        let worst = worst_case(model, self.parts.prefix, self.prompt_tokens, max_output);
        let out_of_time = self.time_left_s(now_s) <= 0.0;
        let limit = self.spend.refuses(budget, worst, number).or(out_of_time.then_some(Limit::Time));
        if limit.is_none() {
            self.record.needed = self.record.needed.max(self.spend.usd() + worst.usd);
        }
        if let Some(limit) = limit {
            self.stop(limit);
            self.record.refused_worst = worst.usd;
            self.record.refused_gaps = u64::from(self.turn > 0 && !self.is_under_way());
        }
        limit.is_some()
    }

    /// Sends the pings that are due by `now_s`, as far as the budget allows (MODEL.md §3.5).
    #[cold]
    pub(super) fn keep_alive(&mut self, now_s: f64) {
        let (due, tokens) = self.entry.due_pings(&self.model.cache, now_s);
        if due > 0 {
            let pings = self.book_pings(due, tokens);
            self.entry.pinged(&self.model.cache, pings);
        }
    }

    /// The ping that is due at `now_s` in a session whose calls others have a say in; `None` where nothing is cached any
    /// more that it could read.
    pub fn ping_to_send(&self, now_s: f64) -> Option<Sending> {
        let cache = &self.model.cache;
        let tokens = self.entry.ping_tokens(cache, self.parts, now_s);
        let is_sent = tokens > 0 && self.has_next_call() && self.pings_paid(1, tokens) > 0;
        is_sent.then_some(Sending { prompt_tokens: tokens, hit_tokens: tokens, output_tokens: 1 })
    }

    /// Whether a call is still to come, as far as that is known: a gap that no call ends has no pings.
    pub fn has_next_call(&self) -> bool {
        match self.state {
            State::Over(_) | State::Waiting { gives_up: true, .. } => false,
            State::Answered => self.message + 1 < self.messages,
            State::Loop => self.made < self.model.max_turns && self.prompt_tokens <= self.model.context.window_tokens,
            State::Found | State::Ready => self.made < self.model.max_turns,
            State::Waiting { .. } | State::Retrying | State::Searching => true,
        }
    }

    /// A ping that reads so many tokens was let through at `now_s`.
    pub fn pinged(&mut self, tokens: u64, now_s: f64) {
        self.book_pings(1, tokens);
        self.entry.used_at(now_s);
    }

    /// What a ping that reads so many tokens costs.
    fn ping_cost(&self, tokens: u64) -> PicoUsd {
        let one = Split { read_tokens: tokens, output_tokens: 1, ..Split::default() };
        self.model.tariff.as_ref().map_or_else(PicoUsd::default, |tariff| tariff.cost(&one))
    }

    /// As many of so many pings as the budget allows, each of which reads so many tokens.
    fn pings_paid(&self, due: u64, tokens: u64) -> u64 {
        let budget = &self.model.budget;
        if budget.before { due.min(self.spend.most(budget, self.ping_cost(tokens), tokens + 1)) } else { due }
    }

    /// Books so many pings, each of which reads so many tokens, as far as the budget allows: how many that is.
    fn book_pings(&mut self, due: u64, tokens: u64) -> u64 {
        let model = self.model;
        let tier = model.tariff.as_ref().map_or(0, |tariff| tariff.tier_of(tokens));
        let (cost, pings) = (self.ping_cost(tokens), self.pings_paid(due, tokens));
        let all = Split { read_tokens: tokens * pings, output_tokens: pings, ..Split::default() };
        self.ledger.lump(Lump::KeepAlive, tier, &all);
        self.spend.request(cost * pings, &all);
        self.record.keep_alive_pings += pings;
        self.record.keep_alive_tokens += tokens * pings;
        pings
    }

    /// Books a request that was executed.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    pub(super) fn book<const PLAIN: bool>(
        &mut self,
        answered: bool,
        prompt_tokens: u64,
        hit_tokens: u64,
        cacheable: bool,
        output_tokens: u64,
    ) {
        let tariff = self.model.tariff.as_ref();
        let tier = tariff.map_or(0, |tariff| tariff.tier_of(prompt_tokens));
        let lump = match (answered, self.kind) {
            _ if PLAIN => None,
            (false, _) => Some(Lump::LostReply),
            (true, Kind::Summary) => Some(Lump::Compaction),
            (true, Kind::Search) => Some(Lump::Search),
            (true, Kind::Turn) => None,
        };
        match lump {
            None => self.ledger.call(tier, prompt_tokens, hit_tokens, cacheable, output_tokens),
            Some(lump) => {
                let usage = self.usage_of(prompt_tokens, hit_tokens, output_tokens);
                self.ledger.lump(lump, tier, &usage);
            }
        }
        if self.spend.kept {
            let usage = self.usage_of(prompt_tokens, hit_tokens, output_tokens);
            let cost = tariff.map_or_else(PicoUsd::default, |tariff| tariff.cost(&usage));
            self.spend.request(cost, &usage);
            let plain = Split { plain_tokens: prompt_tokens, output_tokens, ..Split::default() };
            self.spend.without_cache += tariff.map_or_else(PicoUsd::default, |tariff| tariff.cost(&plain));
        }
    }

    pub(super) fn usage_of(&self, prompt_tokens: u64, hit_tokens: u64, output_tokens: u64) -> Split {
        let cache = &self.model.cache;
        let fresh = prompt_tokens - hit_tokens;
        let mut usage = Split { read_tokens: hit_tokens, output_tokens, ..Split::default() };
        if cache.enabled && prompt_tokens >= cache.min_tokens {
            usage.written_prefix_tokens = self.parts.prefix.saturating_sub(hit_tokens);
            usage.written_messages_tokens = fresh - usage.written_prefix_tokens;
        } else {
            usage.plain_tokens = fresh;
        }
        usage
    }

    /// The tokens of a call by class.
    pub fn usage(&self, call: &Call) -> Split {
        self.usage_of(call.prompt_tokens, call.hit_tokens, call.output_tokens)
    }

    /// Money of all model requests so far, for a session that is watched: as billed, and without a cache.
    pub fn spent(&self) -> [PicoUsd; 2] {
        [self.spend.requests, self.spend.without_cache]
    }

    /// Whether there is a prompt cache.
    pub fn caches(&self) -> bool {
        self.model.cache.enabled
    }

    /// Calls so far that found something expired, and before which earlier bytes had changed.
    pub fn met(&self) -> [u64; 2] {
        [self.record.expired_gaps, self.record.breaks]
    }
}
