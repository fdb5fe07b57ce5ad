//! An attempt of a model call: what is drawn for it, what it finds cached, what it costs, and what comes after it
//! (MODEL.md §1.4, §2, §3).

use rand::RngExt;

use super::draws::{Draws, Purpose, draw_real, draw_whole};
use super::search::Searching;
use super::{
    AttemptEnd, Attempts, Call, Fate, Kind, Limit, Outcome, Progress, Request, Ruling, Sending, Session, State, Step,
    Then, real,
};

/// A model call under way that can fail.
#[derive(Debug)]
pub(super) struct Retrying<S> {
    pub attempts: Attempts,
    stream: S,
}

/// What others have a say in, where sessions meet: sent in two steps, so that it can be held back in between.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Whether nothing but turns can happen but for what others decide.
    is_plain: bool,
    /// The attempt that is about to be sent.
    pending: Option<Drawn>,
    /// Whether it is let through now.
    is_open: bool,
    /// Whether other sessions keep tools and system cached.
    shared: Option<bool>,
    /// The server's retry-after for the last rejection, s.
    retry_after_s: f64,
}

impl Gate {
    pub fn of(is_plain: bool) -> Self {
        Self { is_plain, ..Self::default() }
    }
}

/// What is drawn for an attempt of a model call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    fate: Fate,
    output_tokens: u64,
    first_token_s: f64,
    writing_s: f64,
}

impl<D: Draws> Session<'_, D> {
    /// Draws the first attempt of a turn, its fate apart.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    pub(super) fn draw_turn(&self, number: u64) -> Drawn {
        let model = self.model;
        let output_tokens = draw_whole(&self.draws, &model.output, Purpose::Output, number);
        let first_token_s = match self.facts.fixed_first_token_s {
            Some(fixed_s) => fixed_s,
            None => draw_real(&self.draws, &model.timing.first_token_s, Purpose::FirstToken, number),
        };
        let writing_s = match (self.facts.fixed_rate, &model.timing.output_rate) {
            (Some(rate), _) => real(output_tokens) / rate,
            (None, None) => 0.0,
            (None, Some(rate)) => real(output_tokens) / draw_real(&self.draws, rate, Purpose::OutputRate, number),
        };
        Drawn { fate: Fate::Served, output_tokens, first_token_s, writing_s }
    }

    #[inline(never)]
    pub(super) fn first_attempt(&mut self, now_s: f64, kind: Kind) -> Step {
        let (model, number) = (self.model, self.turn + 1);
        let cache = &model.cache;
        // the pings of the gap before this call read what was cached then
        if cache.is_kept_alive() && self.gate.is_none() {
            self.keep_alive(now_s);
        }
        if self.summary_to_apply {
            self.summary_to_apply = false;
            self.entry.truncate(cache, self.parts.prefix);
        }
        self.expired_seen = false;
        if cache.breaks.any() && kind != Kind::Search && self.breaks_before < number {
            self.breaks_before = number;
            let kept = self.entry.break_by_chance(cache, self.parts, self.sent_tokens, number, &self.draws);
            self.broken = kept.is_some();
            self.has_own_prefix |= kept.is_some_and(|kept| kept < self.parts.prefix);
        }
        self.kind = kind;
        if kind != Kind::Turn {
            let stream = match kind {
                Kind::Search => self.draws.stream(self.search_purpose(), self.turn),
                _ => self.draws.stream(Purpose::Summary, self.next_call()),
            };
            self.retrying = Some(Retrying { attempts: Attempts::default(), stream });
            return self.next_attempt(now_s);
        }
        let mut drawn = self.draw_turn(number);
        if model.faults.chance() > 0.0 {
            drawn.fate = Fate::of(&model.faults, self.draws.uniform(Purpose::ModelFate, number, 0));
        }
        if model.faults.any() || self.gate.is_some() {
            self.can_be_repeated(number);
        }
        self.attempt::<false>(now_s, drawn, None)
    }

    /// The first attempt of a turn may not be the last one.
    fn can_be_repeated(&mut self, number: u64) {
        let stream = self.draws.stream(Purpose::ModelRetry, number);
        self.retrying = Some(Retrying { attempts: Attempts::default(), stream });
    }

    /// Draws a turn of a gated session in which nothing but turns can happen but for what others decide, if one comes next.
    #[inline]
    pub(super) fn asks_for_plain_turn(&mut self) -> bool {
        if !self.gate.as_ref().is_some_and(|gate| gate.is_plain) || !self.is_before_turn() {
            return false;
        }
        let drawn = self.draw_turn(self.turn + 1);
        (self.kind, self.expired_seen) = (Kind::Turn, false);
        if let Some(gate) = &mut self.gate {
            gate.pending = Some(drawn);
        }
        true
    }

    /// An attempt that is drawn from the call's own stream.
    pub(super) fn next_attempt(&mut self, now_s: f64) -> Step {
        let (model, search_output) = (self.model, self.search_output());
        let Some(Retrying { stream, .. }) = &mut self.retrying else { return self.end(Outcome::Failed) };
        let fate = Fate::of(&model.faults, stream.random::<f64>());
        let output_tokens = match self.kind {
            Kind::Turn => model.output.draw(stream),
            Kind::Summary => model.context.summary_tokens,
            Kind::Search => search_output,
        };
        let first_token_s = model.timing.first_token_s.draw(stream);
        let writing_s = model.timing.output_rate.as_ref().map_or(0.0, |rate| real(output_tokens) / rate.draw(stream));
        self.attempt::<false>(now_s, Drawn { fate, output_tokens, first_token_s, writing_s }, None)
    }

    /// Makes an attempt, if the budget allows it. `PLAIN` is for turns of a session in which nothing else can happen;
    /// `shared` says whether other sessions keep tools and system cached for one, where they can.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the plain one is most of a run's time, the other is called from cold functions
    pub(super) fn attempt<const PLAIN: bool>(&mut self, now_s: f64, drawn: Drawn, shared: Option<bool>) -> Step {
        let (model, prompt_tokens) = (self.model, self.prompt_tokens);
        let kind = if PLAIN { Kind::Turn } else { self.kind };
        let under_way = !PLAIN && self.is_under_way();
        let number = if kind == Kind::Search || (kind == Kind::Turn && under_way) { self.turn } else { self.turn + 1 };
        let is_held = !PLAIN && self.gate.as_ref().is_some_and(|gate| !gate.is_open);
        let is_let_through = !PLAIN && self.gate.is_some() && !is_held;
        if !PLAIN && model.budget.any() && model.budget.before && !is_let_through && self.is_refused(now_s, number) {
            return self.next_step(now_s);
        }
        if is_held && let Some(gate) = &mut self.gate {
            gate.pending = Some(drawn);
            return Step::Send;
        }
        if kind == Kind::Turn {
            self.turn = number;
        }
        let executed = PLAIN || matches!(drawn.fate, Fate::Served | Fate::LostReply);
        let cacheable = model.cache.enabled && prompt_tokens >= model.cache.min_tokens;
        let mut hit_tokens = 0;
        if executed && model.cache.enabled {
            let starts_warm = || {
                let by_chance = || {
                    let chance = model.cache.warm_prefix;
                    chance > 0.0 && self.draws.uniform(Purpose::Warm, 0, 0) < chance
                };
                self.starts_warm.unwrap_or_else(by_chance)
            };
            let shared = if PLAIN { shared } else { self.gate.as_ref().and_then(|gate| gate.shared) };
            let (hit, expired) =
                self.entry.look_up(&model.cache, self.parts, prompt_tokens, now_s, shared, starts_warm);
            hit_tokens = hit;
            // once a call, however often it is attempted
            if PLAIN || !self.expired_seen {
                self.record.expired_gaps += u64::from(expired);
            }
            if !PLAIN {
                self.expired_seen |= expired;
            }
        }
        let timing = &model.timing;
        let first_token_s = drawn.first_token_s
            + real(prompt_tokens - hit_tokens) * timing.prefill_s_per_token
            + real(hit_tokens) * timing.cached_prefill_s_per_token;
        let mut took_s = first_token_s + drawn.writing_s;
        let mut progress = Progress::Answered;
        if !PLAIN && let Some(Retrying { attempts, .. }) = &mut self.retrying {
            let before_s = attempts.elapsed_s;
            let request = Request { fate: drawn.fate, latency_s: took_s, reject_latency_s: 0.0 };
            progress = attempts.attempted(&model.retry, AttemptEnd::of(model.faults.timeout_s, request));
            took_s = attempts.elapsed_s - before_s;
            if progress == Progress::Answered {
                // without the rounding of the difference
                took_s = first_token_s + drawn.writing_s;
            }
        }
        let left_s = if PLAIN { f64::INFINITY } else { self.time_left_s(now_s) };
        let out_of_time = took_s > left_s;
        if out_of_time {
            took_s = left_s.max(0.0);
            progress = Progress::Failed;
        }
        if !PLAIN {
            self.record.model_calls += u64::from(!under_way);
            self.careful_turns += u64::from(!under_way && kind == Kind::Turn);
            self.record.breaks += u64::from(std::mem::take(&mut self.broken));
            self.record.model_attempts += 1;
            self.record.model_executions += u64::from(executed);
        }
        self.record.model_s += took_s;
        let answered = progress == Progress::Answered;
        if !PLAIN && !answered {
            self.record.model_lost_s += took_s;
        }
        if executed {
            self.book::<PLAIN>(answered, prompt_tokens, hit_tokens, cacheable, drawn.output_tokens);
            let more = if model.cache.caches_output && answered { drawn.output_tokens } else { 0 };
            if !PLAIN && cacheable && self.touched.is_some() {
                self.touch(&model.cache, now_s, first_token_s, hit_tokens);
            }
            self.entry.leave(if cacheable { prompt_tokens + more } else { 0 }, now_s);
            self.sent_tokens = prompt_tokens;
        }
        let then = if out_of_time {
            self.stop(Limit::Time);
            Then::TurnOver
        } else {
            self.after_attempt::<PLAIN>(progress, &drawn, first_token_s, took_s, now_s)
        };
        Step::Call(Call {
            turn: number,
            kind,
            prompt_tokens,
            hit_tokens,
            output_tokens: drawn.output_tokens,
            first_token_s,
            took_s,
            is_answered: answered,
            then,
        })
    }

    /// Whether tools and system can be in the cache by themselves and are those of other sessions too: a session whose own have
    /// changed doesn't share them any more.
    pub fn shares_prefix(&self) -> bool {
        let (cache, prefix) = (&self.model.cache, self.parts.prefix);
        cache.enabled && prefix > 0 && prefix >= cache.min_tokens && !self.has_own_prefix
    }

    /// Whether what it is about to send, after it has said [`Step::Send`], will get as far as the provider.
    pub fn arrives(&self) -> bool {
        let drawn = self.gate.as_ref().and_then(|gate| gate.pending);
        drawn.is_none_or(|drawn| matches!(drawn.fate, Fate::Served | Fate::LostReply))
    }

    /// What the session is about to send, after it has said [`Step::Send`]; `shared` says whether other sessions keep
    /// tools and system cached.
    pub fn sending(&self, now_s: f64, shared: bool) -> Sending {
        let cache = &self.model.cache;
        let drawn = self.gate.as_ref().and_then(|gate| gate.pending);
        let (hit_tokens, _) = if cache.enabled {
            let warm = || self.starts_warm == Some(true);
            self.entry.look_up(cache, self.parts, self.prompt_tokens, now_s, Some(shared), warm)
        } else {
            (0, false)
        };
        Sending {
            prompt_tokens: self.prompt_tokens,
            hit_tokens,
            output_tokens: drawn.map_or(0, |drawn| drawn.output_tokens),
        }
    }

    /// How long what it is about to send can wait for a place, s: until a budget of time is used up, or the deadline of a
    /// call that was attempted before.
    pub fn waits_at_most_s(&self, now_s: f64) -> f64 {
        let under_way = self.retrying.as_ref().filter(|retrying| retrying.attempts.sent > 0);
        let deadline_s =
            under_way.map_or(f64::INFINITY, |retrying| self.model.retry.deadline_s - retrying.attempts.elapsed_s);
        self.time_left_s(now_s).min(deadline_s)
    }

    /// It has waited for a place as long as it could, and ends.
    pub fn gives_up_waiting(&mut self, now_s: f64, waited_s: f64) {
        self.waited(waited_s);
        if let Some(gate) = &mut self.gate {
            gate.pending = None;
        }
        // the clock may be rounded to a nanosecond
        if self.time_left_s(now_s) <= 1e-6 {
            self.stop(Limit::Time);
        } else {
            self.state = State::Over(Outcome::Failed);
        }
    }

    /// Takes in a wait for a place; it counts for the deadline of a call that was attempted before.
    fn waited(&mut self, waited_s: f64) {
        self.record.queue_s += waited_s;
        self.record.model_queue_s += waited_s;
        if let Some(Retrying { attempts, .. }) = self.retrying.as_mut().filter(|retrying| retrying.attempts.sent > 0) {
            attempts.elapsed_s += waited_s;
        }
    }

    /// Sends what it was about to send, at `now_s`, as others have decided. It waited `waited_s` for a place.
    pub fn send(&mut self, now_s: f64, waited_s: f64, shared: bool, ruling: Ruling) -> Step {
        let Some(gate) = &mut self.gate else { return self.next_step(now_s) };
        let is_plain = gate.is_plain;
        let Some(mut drawn) = gate.pending.take() else { return self.next_step(now_s) };
        if waited_s > 0.0 {
            self.waited(waited_s);
        }
        if is_plain && self.retrying.is_none() {
            if ruling == Ruling::Pass {
                return self.attempt::<true>(now_s, drawn, Some(shared));
            }
            self.can_be_repeated(self.turn + 1);
        }
        let mut retry_after = 0.0;
        match ruling {
            Ruling::Pass => {}
            Ruling::Reject { retry_after_s } => {
                drawn.fate = Fate::Rejected;
                retry_after = retry_after_s;
            }
            Ruling::Lose => drawn.fate = Fate::LostRequest,
        }
        let is_open = true;
        self.gate = Some(Gate { is_plain, is_open, shared: Some(shared), retry_after_s: retry_after, pending: None });
        let step = self.attempt::<false>(now_s, drawn, None);
        if let Some(gate) = &mut self.gate {
            gate.is_open = false;
        }
        step
    }

    /// Whether the call that is being attempted was attempted before.
    pub(super) fn is_under_way(&self) -> bool {
        self.retrying.as_ref().is_some_and(|retrying| retrying.attempts.sent > 0)
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    fn after_attempt<const PLAIN: bool>(
        &mut self,
        progress: Progress,
        drawn: &Drawn,
        first_token_s: f64,
        took_s: f64,
        now_s: f64,
    ) -> Then {
        if PLAIN {
            return self.complete::<true>(drawn, first_token_s, took_s);
        }
        let then = match progress {
            Progress::Answered => self.complete::<false>(drawn, first_token_s, took_s),
            Progress::Failed | Progress::Attempt => {
                self.state = State::Over(Outcome::Failed);
                Then::TurnOver
            }
            Progress::Wait => {
                self.plan_wait();
                Then::GoesOn
            }
        };
        let budget = &self.model.budget;
        let goes_on = match self.state {
            State::Over(_) => false,
            State::Answered => self.message + 1 < self.messages,
            _ => true,
        };
        // a turn whose call is still to be repeated isn't made yet
        let made = self.turn - u64::from(progress == Progress::Wait && self.kind == Kind::Turn);
        if goes_on
            && budget.any()
            && !budget.before
            && let Some(limit) = self.spend.passed(budget, made, self.busy_s(now_s) + took_s)
        {
            self.stop(limit);
            return Then::TurnOver;
        }
        then
    }

    #[cold]
    fn plan_wait(&mut self) {
        let retry = &self.model.retry;
        let Some(Retrying { attempts, stream }) = &mut self.retrying else { return };
        // a server's retry-after is a floor under the wait (MODEL.md §4.3)
        let floor_s = self.gate.as_ref().map_or(0.0, |gate| gate.retry_after_s);
        let drawn_s = attempts.draw_wait(retry, stream).max(floor_s);
        let before_s = attempts.elapsed_s;
        // where the deadline comes first, the time until then passes, and the session has failed
        let gives_up = attempts.waited(retry, drawn_s) != Progress::Attempt;
        let wait_s = if gives_up { attempts.elapsed_s - before_s } else { drawn_s };
        self.state = State::Waiting { wait_s, gives_up };
    }

    /// An attempt was answered.
    #[inline(always)]
    #[allow(clippy::inline_always)] // with `attempt`
    fn complete<const PLAIN: bool>(&mut self, drawn: &Drawn, first_token_s: f64, took_s: f64) -> Then {
        if !PLAIN {
            self.retrying = None;
        }
        if !PLAIN && self.kind == Kind::Summary {
            self.record.summaries += 1;
            self.record.summary_s += took_s;
            self.summarised_before = self.next_call();
            self.prompt_tokens = self.parts.prefix + self.model.context.summary_tokens;
            if self.model.cache.is_kept_alive() {
                self.summary_to_apply = true;
            } else {
                self.entry.truncate(&self.model.cache, self.parts.prefix);
            }
            self.sent_tokens = self.parts.prefix;
            self.ledger.summarised();
            let is_searching = self.searching.as_ref().is_some_and(Searching::has_more);
            self.state = if is_searching { State::Searching } else { State::Loop };
            return Then::GoesOn;
        }
        if !PLAIN && self.kind == Kind::Search {
            self.searched(took_s);
            return Then::GoesOn;
        }
        self.record.first_token_s += first_token_s;
        self.record.writing_s += drawn.writing_s;
        if !PLAIN {
            self.record.answered_turns += 1;
        }
        self.prompt_tokens += drawn.output_tokens;
        self.made += 1;
        if self.made == self.turns {
            self.state = State::Answered;
            return Then::TurnOver;
        }
        self.state = State::Loop;
        if !PLAIN && self.has_to_search() {
            self.state = State::Searching;
            return Then::GoesOn;
        }
        if PLAIN || self.can_pay_tools() { Then::Tools } else { Then::TurnOver }
    }
}
