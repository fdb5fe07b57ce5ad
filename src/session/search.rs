//! Tools that are found when they are needed (MODEL.md §4.10).

use super::draws::{Draws, Purpose, draw_real};
use super::{Limit, Outcome, Session, State, Step};
use crate::model::{Loading, Model};

/// What a session knows of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Not needed yet.
    No,
    /// Its definition was loaded or found.
    Yes,
    /// Searched for in vain.
    GivenUp,
}

/// What a session has found so far.
#[derive(Debug)]
pub(super) struct Searching {
    known: Vec<Known>,
    /// Tools that the phase to come needs and that aren't known, the next one last.
    wanted: Vec<usize>,
    /// Searches for that one so far.
    tried: u64,
}

impl Searching {
    pub fn new(model: &Model) -> Self {
        let known = |loading: Loading| if matches!(loading, Loading::Search { .. }) { Known::No } else { Known::Yes };
        let known = model.phase.tools.iter().map(|tool| known(tool.loading)).collect();
        Self { known, wanted: Vec::new(), tried: 0 }
    }

    /// Whether something has to be searched for before the phase.
    pub fn has_more(&self) -> bool {
        !self.wanted.is_empty()
    }

    fn settle(&mut self, index: usize, known: Known) {
        self.wanted.pop();
        self.tried = 0;
        if let Some(state) = self.known.get_mut(index) {
            *state = known;
        }
    }
}

impl<D: Draws> Session<'_, D> {
    /// Whether the phase of the last turn needs tools that have to be found first.
    pub(super) fn has_to_search(&mut self) -> bool {
        let Some(mut searching) = self.searching.take() else { return false };
        let unknown = |index: &usize| searching.known.get(*index) == Some(&Known::No) && self.calls_of(*index) > 0;
        searching.wanted = (0..searching.known.len()).rev().filter(unknown).collect();
        self.record.tools_needed += searching.wanted.len() as u64;
        let has_more = searching.has_more();
        self.searching = Some(searching);
        has_more
    }

    /// Whether a tool was searched for in vain: its calls fail without being executed.
    pub(super) fn is_given_up(&self, index: usize) -> bool {
        self.searching.as_ref().is_some_and(|searching| searching.known.get(index) == Some(&Known::GivenUp))
    }

    /// The tool that is searched for, and how often it was.
    fn wanted(&self) -> (usize, u64) {
        self.searching.as_ref().map_or((0, 0), |s| (s.wanted.last().copied().unwrap_or(0), s.tried))
    }

    pub(super) fn search_purpose(&self) -> Purpose {
        let (tool, search) = self.wanted();
        Purpose::Search { tool, search }
    }

    pub(super) fn search_output(&self) -> u64 {
        self.model.search.as_ref().map_or(0, |search| search.output_tokens)
    }

    /// The call that searches was answered; what it asks for takes its time.
    pub(super) fn searched(&mut self, took_s: f64) {
        self.record.searches += 1;
        self.record.search_s += took_s;
        self.prompt_tokens += self.search_output();
        self.state = State::Found;
    }

    /// Waits for the result of a search and takes it in; `None` where another search follows at once.
    pub(super) fn after_search(&mut self, now_s: f64) -> Option<Step> {
        let Some(search) = &self.model.search else { return Some(self.end(Outcome::Failed)) };
        let (tool, tried) = self.wanted();
        let mut wait_s =
            draw_real(&self.draws, &search.latency_s, Purpose::SearchLatency { tool, search: tried }, self.turn);
        let left_s = self.time_left_s(now_s);
        if wait_s >= left_s {
            wait_s = left_s.max(0.0);
            self.record.search_s += wait_s;
            self.stop(Limit::Time);
            return Some(Step::Wait(wait_s));
        }
        self.record.search_s += wait_s;
        if let Some(Loading::Search { appended_tokens }) = self.model.phase.tools.get(tool).map(|tool| tool.loading) {
            self.prompt_tokens += appended_tokens;
        }
        let hit = self.draws.uniform(Purpose::SearchHit { tool }, self.turn, tried) < search.hit_rate;
        let most = u64::from(search.most);
        let Some(searching) = &mut self.searching else { return Some(self.end(Outcome::Failed)) };
        searching.tried += 1;
        if hit || searching.tried >= most {
            searching.settle(tool, if hit { Known::Yes } else { Known::GivenUp });
            self.record.tools_settled += 1;
            self.record.tools_found += u64::from(hit);
        }
        let has_more = searching.has_more();
        let budget = &self.model.budget;
        if budget.any()
            && !budget.before
            && let Some(limit) = self.spend.passed(budget, self.turn, self.busy_s(now_s) + wait_s)
        {
            self.stop(limit);
            return Some(Step::Wait(wait_s));
        }
        self.state = if has_more { State::Searching } else { State::Ready };
        match (wait_s > 0.0, self.state) {
            (true, _) => Some(Step::Wait(wait_s)),
            (false, State::Searching) => None,
            (false, _) => Some(self.start_tools(now_s)),
        }
    }

    /// The phase begins, if its fees fit the budget.
    pub(super) fn start_tools(&mut self, now_s: f64) -> Step {
        self.state = State::Loop;
        if self.can_pay_tools() { Step::Tools(self.turn) } else { self.next_step(now_s) }
    }
}
