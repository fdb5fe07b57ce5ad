//! What is written down of the turns of a session that is watched.

use super::rng::SessionDraws;
use crate::price::PicoUsd;
use crate::session::{Cached, Call, Kind, Session, Turn};

/// The turn that is being watched.
#[derive(Debug, Default)]
pub(super) struct OpenTurn {
    started_s: Option<f64>,
    call: Option<Call>,
    /// Spent before it, and with its last call.
    spent_before: [PicoUsd; 2],
    spent: [PicoUsd; 2],
    /// Expired gaps and breaks before it.
    met: [u64; 2],
    run: u64,
    /// The message that it belongs to, and the busy time at which that began, s.
    message: u64,
    message_from_s: f64,
}

/// What was written down of a session of a fleet, until it leaves.
#[derive(Debug, Default)]
pub(super) struct Watch {
    open: OpenTurn,
    /// Its turns.
    pub turns: Vec<Turn>,
    /// How long each of its messages took, s.
    pub messages_s: Vec<f64>,
}

impl Watch {
    /// Forgets its session.
    pub fn clear(&mut self) {
        self.turns.clear();
        self.messages_s.clear();
    }

    /// Before the first turn of run `number`, from 0.
    pub fn begin_run(&mut self, number: u64) {
        self.open = OpenTurn::of_run(number);
    }

    /// A call wants to begin at `now_s`; it may have to wait for a place. `busy_s` was the session's time without the user's
    /// waits before it said so.
    pub fn begins(&mut self, session: &Session<'_, SessionDraws>, now_s: f64, busy_s: f64) {
        self.messages_s.extend(self.open.message(session, busy_s));
        self.open.begins(now_s);
    }

    /// A call was sent.
    pub fn called(&mut self, call: &Call, session: &Session<'_, SessionDraws>) {
        self.open.called(call, session);
    }

    /// Something is waited for; it may be the user's next message.
    pub fn waits(&mut self, session: &Session<'_, SessionDraws>, busy_s: f64) {
        self.messages_s.extend(self.open.message(session, busy_s));
    }

    /// A turn is over.
    pub fn close(&mut self, session: &Session<'_, SessionDraws>, now_s: f64, tool_phase_s: Option<f64>) {
        self.turns.extend(self.open.close(session, now_s, tool_phase_s));
    }

    /// A run is over.
    pub fn end(&mut self, session: &Session<'_, SessionDraws>, now_s: f64) {
        self.close(session, now_s, None);
        self.messages_s.extend(self.open.last_message(session, session.busy_s(now_s)));
    }
}

impl OpenTurn {
    /// Before the first turn of run `number`, from 0.
    pub fn of_run(number: u64) -> Self {
        Self { run: number + 1, ..Self::default() }
    }

    /// A call wants to begin at `now_s`; a turn begins with its first one, or with the summary before it.
    pub fn begins(&mut self, now_s: f64) {
        self.started_s.get_or_insert(now_s);
    }

    /// A call was sent. What is requested after it, until the next one, are pings, and belongs to the next turn.
    pub fn called(&mut self, call: &Call, session: &Session<'_, SessionDraws>) {
        self.spent = session.spent();
        if call.kind == Kind::Turn {
            self.call = Some(*call);
        }
    }

    /// Closes the books of a message when the next one has begun: how long it took, s.
    pub fn message(&mut self, session: &Session<'_, SessionDraws>, busy_s: f64) -> Option<f64> {
        if session.message() == self.message {
            return None;
        }
        let latency_s = (busy_s - self.message_from_s).max(0.0);
        (self.message, self.message_from_s) = (session.message(), busy_s);
        Some(latency_s)
    }

    /// The same of the last one, where the session ends.
    pub fn last_message(&self, session: &Session<'_, SessionDraws>, busy_s: f64) -> Option<f64> {
        session.message_has_begun().then(|| (busy_s - self.message_from_s).max(0.0))
    }

    /// Closes the books of a turn, if one has begun.
    pub fn close(
        &mut self,
        session: &Session<'_, SessionDraws>,
        now_s: f64,
        tool_phase_s: Option<f64>,
    ) -> Option<Turn> {
        let (started_s, call) = (self.started_s.take(), self.call.take());
        let (started_s, call) = (started_s?, call?);
        let (spent, usage) = (self.spent, session.usage(&call));
        let before = std::mem::replace(&mut self.spent_before, spent);
        let met = session.met();
        let met_before = std::mem::replace(&mut self.met, met);
        Some(Turn {
            number: call.turn,
            run: self.run,
            message: self.message + 1,
            started_s,
            cache: if !session.caches() {
                Cached::Off
            } else if met[0] > met_before[0] {
                Cached::Expired
            } else if met[1] > met_before[1] {
                Cached::Broken
            } else if call.hit_tokens > 0 {
                Cached::Warm
            } else if usage.written_prefix_tokens + usage.written_messages_tokens > 0 {
                Cached::Cold
            } else {
                Cached::Off
            },
            latency_s: now_s - started_s,
            tool_phase_s,
            first_token_s: call.first_token_s,
            answered: call.is_answered,
            usage,
            cost: spent[0] - before[0],
            cost_without_cache: spent[1] - before[1],
        })
    }
}
