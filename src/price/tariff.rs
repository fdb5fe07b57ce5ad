//! Usage × prices → money (MODEL.md §2).

use super::{PicoUsd, PicoUsdPerToken};

/// What one simulated call used: each prompt token in exactly one of the first four classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// Prompt tokens read from the cache.
    pub read_tokens: u64,
    /// Prompt tokens written to the cache under the prefix's lifetime (tools and system).
    pub written_prefix_tokens: u64,
    /// Prompt tokens written to the cache under the messages' lifetime.
    pub written_messages_tokens: u64,
    /// Prompt tokens neither read nor written.
    pub plain_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
}

impl Split {
    /// The whole prompt: what chooses the long-context tier.
    pub fn prompt_tokens(&self) -> u64 {
        self.read_tokens + self.written_prefix_tokens + self.written_messages_tokens + self.plain_tokens
    }
}

/// Prices per token of each class. Where a scenario doesn't cache, the cache's classes stay empty and carry the input
/// price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rates {
    pub input: PicoUsdPerToken,
    pub read: PicoUsdPerToken,
    pub write_prefix: PicoUsdPerToken,
    pub write_messages: PicoUsdPerToken,
    pub output: PicoUsdPerToken,
}

/// The prices that apply to a scenario, with the long-context tier where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tariff {
    /// Prices of an ordinary request.
    pub base: Rates,
    /// From this many prompt tokens on, every token of the request is billed at the second rates.
    pub tier: Option<(u64, Rates)>,
}

impl Tariff {
    /// 1 where a prompt of this size falls into the long-context tier, else 0. The prompt alone decides: never the
    /// output, never an aggregate of several requests.
    #[inline]
    pub fn tier_of(&self, prompt_tokens: u64) -> usize {
        match self.tier {
            Some((from, _)) if prompt_tokens >= from => 1,
            _ => 0,
        }
    }

    /// The prices of a tier from [`Tariff::tier_of`].
    pub fn rates(&self, tier: usize) -> &Rates {
        match &self.tier {
            Some((_, rates)) if tier > 0 => rates,
            _ => &self.base,
        }
    }

    /// `budget.reserve`: the most that a request can cost, `κ_w c_in n + c_out · max output` at the tier that the prompt
    /// will hit. A token that is written can't cost less than one that isn't; of the prompt, `prefix` tokens are written
    /// under the prefix's lifetime.
    pub fn worst_case(&self, prefix: u64, prompt: u64, max_output: u64, caches: bool) -> PicoUsd {
        let rates = self.rates(self.tier_of(prompt));
        let dearest = |written| if caches { rates.input.max(written) } else { rates.input };
        let prefix = prefix.min(prompt);
        dearest(rates.write_prefix) * prefix
            + dearest(rates.write_messages) * (prompt - prefix)
            + rates.output * max_output
    }

    /// What one request costs.
    ///
    /// ```
    /// use agent_sim::price::{Sheet, Split};
    /// let row = Sheet::embedded().find("claude-sonnet-4-5", None)?;
    /// let tariff = row.tariff(None)?;
    /// let cost = |n| tariff.cost(&Split { plain_tokens: n, ..Split::default() }).usd();
    /// assert_eq!(cost(200_000), 0.60);
    /// assert_eq!(cost(200_001), 1.200006); // a cliff: the whole request moves
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cost(&self, usage: &Split) -> PicoUsd {
        let rates = self.rates(self.tier_of(usage.prompt_tokens()));
        rates.read * usage.read_tokens
            + rates.write_prefix * usage.written_prefix_tokens
            + rates.write_messages * usage.written_messages_tokens
            + rates.input * usage.plain_tokens
            + rates.output * usage.output_tokens
    }
}
