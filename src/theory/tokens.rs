//! Tokens sent by a session whose first prompt has `p0` tokens and that grows by `s` a turn.

/// `tokens.read`: `T P0 + s T (T-1) / 2`, all tokens that `t` calls send (sum of an arithmetic series).
pub fn read(p0: f64, s: f64, t: f64) -> f64 {
    expected_read(p0, s, t, t * t)
}

/// `tokens.reread`: `R_T = (T-1) P0 + s (T-1)(T-2) / 2`, tokens that an earlier call had sent already.
pub fn reread(p0: f64, s: f64, t: f64) -> f64 {
    expected_reread(p0, s, t, t * t)
}

/// `tokens.geometric`: `E[P0] E[T] + E[s] (E[T²] - E[T]) / 2` for random `T`, first prompt and growth, independent of
/// each other.
pub fn expected_read(p0: f64, s: f64, mean_t: f64, mean_t2: f64) -> f64 {
    p0 * mean_t + s * (mean_t2 - mean_t) / 2.0
}

/// The expectation of [`reread`] for random `T` of at least 1, first prompt and growth, independent of each other.
pub fn expected_reread(p0: f64, s: f64, mean_t: f64, mean_t2: f64) -> f64 {
    p0 * (mean_t - 1.0) + s * (mean_t2 - 3.0 * mean_t + 2.0) / 2.0
}

/// A conversation, for the expectations of its sums: first two moments of the calls a message takes (`T`) and of the
/// messages (`M`), all independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Talk {
    /// Mean of the first prompt, tokens.
    pub p0: f64,
    /// Mean growth of the history in a tool phase: output and results, tokens.
    pub s: f64,
    /// Mean growth between messages: the answer and the next message, tokens.
    pub between: f64,
    /// `E[T]`, `E[T²]`.
    pub turns: (f64, f64),
    /// `E[M]`, `E[M²]`.
    pub messages: (f64, f64),
}

impl Talk {
    /// Mean growth from one message's first call to the next one's.
    fn growth(&self) -> f64 {
        (self.turns.0 - 1.0) * self.s + self.between
    }

    /// `E[M] E[T]`: calls.
    pub fn calls(&self) -> f64 {
        self.messages.0 * self.turns.0
    }

    /// Waits for the user's next message.
    pub fn thinks(&self) -> f64 {
        self.messages.0 - 1.0
    }

    /// `tokens.read` over messages: `E[M] (P0 E[T] + s (E[T²]-E[T])/2) + E[T] D E[M(M-1)]/2` with `D` the growth from
    /// message to message.
    pub fn read(&self) -> f64 {
        let (m, m2) = self.messages;
        m * expected_read(self.p0, self.s, self.turns.0, self.turns.1) + self.turns.0 * self.growth() * (m2 - m) / 2.0
    }

    /// The last prompt: what is sent at all.
    pub fn last_prompt(&self) -> f64 {
        self.p0 + self.thinks() * self.growth() + (self.turns.0 - 1.0) * self.s
    }

    /// Tokens that were sent before, in all.
    pub fn reread(&self) -> f64 {
        self.read() - self.last_prompt()
    }

    /// Those of them that are sent again after the user's wait: each message's last prompt but the last's.
    pub fn reread_after_think(&self) -> f64 {
        let (m, m2) = self.messages;
        self.thinks() * (self.p0 + (self.turns.0 - 1.0) * self.s) + self.growth() * (m2 - 3.0 * m + 2.0) / 2.0
    }
}

/// `tokens.definitions`: servers × tools × tokens per tool × calls.
pub fn definitions(tokens_per_call: f64, t: f64) -> f64 {
    tokens_per_call * t
}

/// `E[T²]` of the geometric law on 1, 2, … with this mean.
pub fn geometric_second_moment(mean: f64) -> f64 {
    2.0 * mean * mean - mean
}
