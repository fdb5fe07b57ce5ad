//! What a session finds in the prompt cache (MODEL.md §3).

use super::draws::{Draws, Purpose};
use crate::model::Cache;

/// The entry of one session: a prefix of its prompt, with the clock of its last use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// What the last call left in the cache, tokens.
    pub cached_tokens: u64,
    /// When it was last read or written, s.
    used_at_s: f64,
    /// Whether any call has been executed.
    used: bool,
}

/// Parts of the prompt that a session's cache has to tell apart, tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    pub definitions: u64,
    /// Tools and system.
    pub prefix: u64,
}

impl Parts {
    /// The prefix where an entry of its own can exist for it.
    fn readable_prefix(self, cache: &Cache) -> u64 {
        if self.prefix >= cache.min_tokens { self.prefix } else { 0 }
    }
}

impl Entry {
    /// The longest prefix that is still valid at `now_s`, and whether some of it had expired.
    #[inline]
    pub fn valid(&self, cache: &Cache, parts: Parts, now_s: f64) -> (u64, bool) {
        let idle_s = now_s - self.used_at_s;
        if idle_s <= cache.lifetime_s {
            return (self.cached_tokens, false);
        }
        let prefix_lives = idle_s <= cache.prefix_lifetime_s;
        let kept = if prefix_lives { parts.readable_prefix(cache).min(self.cached_tokens) } else { 0 };
        (kept, kept < self.cached_tokens)
    }

    /// What a call of `prompt_tokens` at `now_s` reads. `shared` says whether other sessions keep tools and system warm,
    /// where they are shared.
    #[inline]
    pub fn look_up(
        &self,
        cache: &Cache,
        parts: Parts,
        prompt_tokens: u64,
        now_s: f64,
        shared: Option<bool>,
        starts_warm: impl FnOnce() -> bool,
    ) -> (u64, bool) {
        let (mut valid, mut expired) = if self.used {
            self.valid(cache, parts, now_s)
        } else {
            (if starts_warm() { parts.readable_prefix(cache) } else { 0 }, false)
        };
        if shared == Some(true) {
            valid = valid.max(parts.readable_prefix(cache));
            expired = expired && valid < self.cached_tokens;
        }
        let readable = if prompt_tokens < cache.min_tokens { 0 } else { valid };
        (round_down(cache, readable), expired)
    }

    /// A call that starts at `now_s` leaves so much in the cache.
    #[inline]
    pub fn leave(&mut self, cached_tokens: u64, now_s: f64) {
        *self = Self { cached_tokens, used_at_s: now_s, used: true };
    }

    /// When tools and system were last read or written, if they are in the cache by themselves, s.
    pub fn prefix_used_at_s(&self, cache: &Cache, parts: Parts) -> Option<f64> {
        let prefix = parts.readable_prefix(cache);
        (cache.enabled && self.used && prefix > 0 && self.cached_tokens >= prefix).then_some(self.used_at_s)
    }

    /// The pings that are due by `now_s`: how many, and how many tokens each reads.
    pub fn due_pings(&self, cache: &Cache, now_s: f64) -> (u64, u64) {
        let tokens = round_down(cache, self.cached_tokens);
        let due = if self.used && tokens > 0 { ((now_s - self.used_at_s) / cache.keep_alive_s).floor() } else { 0.0 };
        (due.max(0.0) as u64, tokens)
    }

    /// What a ping at `now_s` reads, tokens: nothing where messages have expired.
    pub fn ping_tokens(&self, cache: &Cache, parts: Parts, now_s: f64) -> u64 {
        let (kept, expired) = self.valid(cache, parts, now_s);
        if self.used && !expired { round_down(cache, kept) } else { 0 }
    }

    /// It was read at `now_s`.
    pub fn used_at(&mut self, now_s: f64) {
        self.used_at_s = now_s;
    }

    /// So many pings were sent, one after each interval.
    pub fn pinged(&mut self, cache: &Cache, pings: u64) {
        self.used_at_s += pings as f64 * cache.keep_alive_s;
    }

    /// Only so much of it is still true.
    pub fn truncate(&mut self, cache: &Cache, tokens: u64) {
        let kept = if tokens >= cache.min_tokens { tokens } else { 0 };
        self.cached_tokens = self.cached_tokens.min(kept);
    }

    /// Earlier bytes change before a call, by chance; returns how many tokens before them didn't. `sent_tokens` is the last
    /// prompt.
    pub fn break_by_chance<D: Draws>(
        &mut self,
        cache: &Cache,
        parts: Parts,
        sent_tokens: u64,
        turn: u64,
        draws: &D,
    ) -> Option<u64> {
        let breaks = &cache.breaks;
        let uniform = |which: u64| draws.uniform(Purpose::Breaks, turn, which);
        let kept = if uniform(0) < breaks.tools {
            0
        } else if uniform(1) < breaks.system {
            parts.definitions
        } else if uniform(2) < breaks.history {
            let messages = sent_tokens.saturating_sub(parts.prefix);
            parts.prefix + (uniform(3) * messages as f64) as u64
        } else {
            return None;
        };
        self.truncate(cache, kept);
        Some(kept)
    }
}

fn round_down(cache: &Cache, tokens: u64) -> u64 {
    if cache.granularity_tokens <= 1 { tokens } else { tokens - tokens % cache.granularity_tokens }
}
