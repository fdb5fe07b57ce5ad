//! What a session asks of whoever drives it.

use super::record::Outcome;

/// What a session wants next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// An attempt of a model call.
    Call(Call),
    /// A gated session is about to send an attempt of a model call: [`super::Session::send`] sends it.
    Send,
    /// So much time has to pass, s: between two attempts, or until the user's next message.
    Wait(f64),
    /// The tool phase of the turn with this number, where something lay between them: its tools were searched for.
    Tools(u64),
    /// Nothing: it is over.
    End(Outcome),
}

/// One attempt of a model call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// The turn's number, from 1; of a summary, the turn that it comes before; of a search, the turn that it is for.
    pub turn: u64,
    /// What it is for.
    pub kind: Kind,
    /// All tokens that are sent.
    pub prompt_tokens: u64,
    /// Those of them that are read from the cache.
    pub hit_tokens: u64,
    /// Tokens that the model writes.
    pub output_tokens: u64,
    /// From the request to the first token, s.
    pub first_token_s: f64,
    /// From the request until the client knows what became of it, s.
    pub took_s: f64,
    /// Whether the client got the answer.
    pub is_answered: bool,
    /// What comes after it.
    pub then: Then,
}

/// What a gated session is about to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// All tokens.
    pub prompt_tokens: u64,
    /// Those of them that would be read from the cache.
    pub hit_tokens: u64,
    /// Tokens that the model would write.
    pub output_tokens: u64,
}

/// What others than the session decide about an attempt of a model call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ruling {
    /// It goes its way.
    Pass,
    /// It is turned away, and has to wait at least this long, s.
    Reject {
        /// The server's retry-after, s; 0 where it names none.
        retry_after_s: f64,
    },
    /// It is lost before it arrives.
    Lose,
}

/// What a model call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A turn of the loop.
    Turn,
    /// A summary that replaces the messages.
    Summary,
    /// A search for a tool.
    Search,
}

/// What comes after an attempt of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The tool phase of the turn.
    Tools,
    /// The turn is over without one: it was the answer, or a limit was passed.
    TurnOver,
    /// The turn goes on: this was a summary or a search, the attempt failed, or a tool has to be found first.
    GoesOn,
}
