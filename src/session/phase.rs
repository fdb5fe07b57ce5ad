//! The tool phase: which calls there are, when they start, what they leave behind (MODEL.md §4).

use rand::RngExt;

use super::agenda::{When, is_guarded, play_guarded};
use super::agent::{AgentRoom, AgentSums, NodeTotals};
use super::breaker::BreakerState;
use super::draws::{Draws, Purpose, draw_whole};
use super::together::play_together;
use super::{AttemptEnd, Attempts, Fate, Progress, Request, Session};
use crate::dist::Dist;
use crate::model::{CodeServer, Loading, Model, Phase, Tool};
use crate::price::PicoUsd;

/// What the tool phases of a session came to, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PhaseTotals {
    /// Calls.
    pub calls: u64,
    /// Calls of which at least one attempt was sent.
    pub sent: u64,
    /// Attempts of all calls.
    pub attempts: u64,
    /// Executions of all calls.
    pub executions: u64,
    /// Second copies that were sent.
    pub hedges: u64,
    /// Calls that were executed twice or more by a tool that isn't idempotent.
    pub duplicates: u64,
    /// Calls that ended with the tool's result.
    pub succeeded: u64,
    /// Calls that a breaker ended.
    pub refused: u64,
    /// Waits between attempts, summed over calls, s.
    pub retry_wait_s: f64,
    /// Waits for a free server, summed over calls, s.
    pub queue_s: f64,
    /// Waits for a person, summed over calls, s.
    pub approval_s: f64,
    /// Money for each call's first execution.
    pub fees: PicoUsd,
    /// Money for executions after the first.
    pub duplicate_fees: PicoUsd,
    /// What the agents came to that were called.
    pub agents: AgentSums,
    /// Those of their sessions that lacked a tool.
    pub agents_unserved: u64,
}

/// One tool phase.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PhaseEnd {
    /// From its start to the end of its last call, s.
    pub duration_s: f64,
    /// Tokens that enter the history.
    pub result_tokens: u64,
    /// Of the longest path all that wasn't the last attempt of a call: attempts that failed, and waits, s.
    pub retry_s: f64,
    /// Of the longest path the part in which a person was waited for, s.
    pub approval_s: f64,
}

/// What one tool did in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolTotals {
    /// Its calls.
    pub calls: u64,
    /// Those that the server executed twice or more, where it isn't idempotent.
    pub duplicates: u64,
    /// Phases on whose longest path it lay.
    pub on_path: u64,
}

/// Room for bookkeeping, kept from phase to phase and from session to session.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(super) spans: Vec<Span>,
    per_tool: Vec<ToolTotals>,
    pub(super) breakers: Vec<BreakerState>,
    code: Vec<CodeUse>,
    pub(super) agents: AgentRoom,
    /// Whether there is anything to keep: of a session without tools there isn't.
    is_used: bool,
}

/// What the tools of a server that is called from code did.
#[derive(Debug, Clone, Copy, Default)]
struct CodeUse {
    /// Whether its definitions were read in this session.
    read: bool,
    /// Calls of the phase, and the tokens of their results.
    calls: u64,
    result_tokens: u64,
}

impl CodeUse {
    /// Tokens of a phase that enter the history (MODEL.md §4.11).
    fn close_phase(&mut self, server: &CodeServer) -> u64 {
        let mut tokens = self.result_tokens.min(server.kept_tokens);
        if self.calls > 0 && !self.read {
            self.read = true;
            tokens += server.read_tokens;
        }
        (self.calls, self.result_tokens) = (0, 0);
        tokens
    }
}

impl Workspace {
    /// Empties the books of the last session.
    #[inline]
    pub fn start_session(&mut self, model: &Model) {
        let has_tools = !model.phase.tools.is_empty();
        if has_tools || self.is_used {
            self.clear(model);
        }
        self.is_used = has_tools;
    }

    fn clear(&mut self, model: &Model) {
        let tools = model.phase.tools.len();
        self.per_tool.clear();
        self.per_tool.resize(tools, ToolTotals::default());
        self.spans.clear();
        self.spans.resize(tools, Span::default());
        if model.phase.breaker.is_some() {
            self.breakers.clear();
            self.breakers.resize(tools, BreakerState::default());
        }
        self.code.clear();
        self.code.resize(model.phase.code.len(), CodeUse::default());
        // a room that served another agent forgets it
        self.agents.start_session(if model.has_agents() { model.nodes() } else { 0 });
    }

    /// Counts what a tool did since `before`, calls and duplicates.
    pub(super) fn count(&mut self, index: usize, (calls, duplicates): (u64, u64), totals: &PhaseTotals) {
        if let Some(own) = self.per_tool.get_mut(index) {
            own.calls += totals.calls - calls;
            own.duplicates += totals.duplicates - duplicates;
        }
    }

    /// Before run `number` of a session, which begins at `origin_s` of its clock.
    #[inline]
    pub fn start_run(&mut self, number: u64, origin_s: f64) {
        if self.is_used {
            self.clear_run(number, origin_s);
        }
    }

    fn clear_run(&mut self, number: u64, origin_s: f64) {
        self.spans.fill(Span::default());
        self.breakers.fill(BreakerState::default());
        self.code.fill(CodeUse::default());
        self.agents.start_run(number, origin_s);
    }

    /// What each tool did since the session started.
    pub fn per_tool(&self) -> &[ToolTotals] {
        &self.per_tool
    }

    /// What the sessions at each node of the tree of agents came to since the session started; the first node, the
    /// main agent itself, is left empty.
    pub fn per_node(&self) -> &[NodeTotals] {
        &self.agents.nodes
    }
}

/// One tool's part of a phase.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub end_s: f64,
    pub calls: u64,
    /// What wasn't the last attempt, of the last call to end, or of all calls where they follow each other, s.
    pub retry_s: f64,
    /// Waits for a person, of the same, s.
    pub approval_s: f64,
}

/// All calls of one tool in one phase.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BatchEnd {
    /// From their start to the end of the last, s.
    pub duration_s: f64,
    pub result_tokens: u64,
}

/// Plays the phase after call `turn` of a session, which begins at `now_s`, where nothing is shared with other sessions,
/// and adds to `totals`. What would begin after a budget of time is used up doesn't happen. The calls of a tool start when all
/// calls of the tools that it waits for are done; a tool that makes no call this time passes its own start on.
#[inline(always)]
#[allow(clippy::inline_always)] // out of line it costs a fifth of a run's time
pub fn play_phase<D: Draws>(
    session: &Session<'_, D>,
    turn: u64,
    now_s: f64,
    room: &mut Workspace,
    totals: &mut PhaseTotals,
) -> PhaseEnd {
    let (phase, draws, left_s) = (&session.model.phase, session.draws(), session.time_left_s(now_s));
    if session.has_more_than_tools() {
        return play_together(session, turn, now_s, room, totals);
    }
    let mut end = PhaseEnd::default();
    let (mut last, mut active, mut only) = (None, 0, 0);
    for &index in &phase.order {
        let tool = &phase.tools[index];
        let start_s = phase.after[index].iter().map(|&before| room.spans[before].end_s).fold(0.0, f64::max);
        let (calls_before, duplicates_before) = (totals.calls, totals.duplicates);
        let mut calls = draw_whole(draws, &tool.calls, Purpose::Calls { tool: index }, turn);
        if start_s >= left_s {
            calls = 0;
        }
        let batch = Batch { tool, index, one_at_a_time: phase.one_at_a_time, turn, calls };
        // filled in place: a small struct that is returned and stored at once stalls the processor
        let span = &mut room.spans[index];
        span.calls = calls;
        let played = if calls == 0 {
            BatchEnd::default()
        } else if is_guarded(phase, tool, left_s) {
            let breaker = phase.breaker.as_ref().zip(room.breakers.get_mut(index)).map(|(rule, own)| (rule, own, 0.0));
            let when = When { start_s: now_s + start_s, left_s: left_s - start_s };
            play_guarded(batch, session, when, breaker, &mut room.agents, span, totals)
        } else {
            play_tool(batch, draws, span, totals)
        };
        let end_s = start_s + played.duration_s;
        span.end_s = end_s;
        let own = &mut room.per_tool[index];
        own.calls += totals.calls - calls_before;
        own.duplicates += totals.duplicates - duplicates_before;
        if end_s > end.duration_s {
            end.duration_s = end_s;
            last = Some(index);
        }
        if calls > 0 {
            (active, only) = (active + 1, index);
        }
        end.result_tokens += played.result_tokens;
    }
    if active == 1 && end.duration_s > 0.0 {
        // the path through the others takes no time
        let span = &room.spans[only];
        room.per_tool[only].on_path += 1;
        (end.retry_s, end.approval_s) = (span.retry_s, span.approval_s);
        return end;
    }
    walk_longest_path(phase, last, room, &mut end);
    end
}

/// Tokens of a phase that enter the history, from those of each tool's results.
pub(super) fn enter_history(phase: &Phase, tokens: &[u64], room: &mut Workspace) -> u64 {
    let mut entered = 0;
    for (index, tokens) in tokens.iter().enumerate() {
        match phase.tools[index].loading {
            Loading::Code { server } if server < room.code.len() => {
                room.code[server].calls += room.spans[index].calls;
                room.code[server].result_tokens += tokens;
            }
            _ => entered += tokens,
        }
    }
    for (used, server) in room.code.iter_mut().zip(&phase.code) {
        entered += used.close_phase(server);
    }
    entered
}

/// What lay on the longest path of a phase, from its last tool on.
pub(super) fn walk_longest_path(phase: &Phase, mut last: Option<usize>, room: &mut Workspace, end: &mut PhaseEnd) {
    while let Some(index) = last {
        let (span, own) = (&room.spans[index], &mut room.per_tool[index]);
        if span.calls > 0 {
            own.on_path += 1;
            end.retry_s += span.retry_s;
            end.approval_s += span.approval_s;
        }
        last = None;
        let mut latest_s = 0.0;
        for &before in &phase.after[index] {
            if room.spans[before].end_s > latest_s {
                latest_s = room.spans[before].end_s;
                last = Some(before);
            }
        }
    }
}

/// The calls of a tool that starts them freely.
#[inline]
pub(super) fn play_tool<D: Draws>(batch: Batch<'_>, draws: &D, span: &mut Span, totals: &mut PhaseTotals) -> BatchEnd {
    match &batch.tool.latency_s {
        Dist::Constant(law) => batch.play(draws, span, totals, || law.value()),
        law => {
            let mut stream = draws.stream(Purpose::Latency { tool: batch.index }, batch.turn);
            batch.play(draws, span, totals, || law.draw(&mut stream))
        }
    }
}

/// The calls of one tool in one phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch<'a> {
    pub tool: &'a Tool,
    pub index: usize,
    pub one_at_a_time: bool,
    pub turn: u64,
    pub calls: u64,
}

/// What is drawn for a call before anything happens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    pub fate: Fate,
    pub latency_s: f64,
    pub result_tokens: u64,
    pub tool_fails: bool,
}

/// What a call that isn't simply answered came to.
pub(super) struct Troubled {
    pub answered: bool,
    pub took_s: f64,
    /// The part that wasn't its last attempt, s.
    pub retry_s: f64,
}

/// How the beginnings of a tool's calls in one phase are drawn.
pub(super) struct Beginnings<S> {
    fault_chance: f64,
    fixed_result: Option<u64>,
    has_table: bool,
    /// Sizes of results that aren't drawn by inversion.
    results: Option<S>,
}

impl<S: rand::Rng> Beginnings<S> {
    pub fn new(tool: &Tool) -> Self {
        let (fixed_result, has_table) = (tool.result.as_constant(), tool.result.has_table());
        Self { fault_chance: tool.faults.chance(), fixed_result, has_table, results: None }
    }

    /// The beginning of a call; its latency was drawn already. Calls are drawn in their order.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the innermost of all loops
    pub fn draw<D: Draws<Stream = S>>(&mut self, batch: Batch<'_>, draws: &D, number: u64, latency_s: f64) -> Drawn {
        let Batch { tool, index, turn, .. } = batch;
        let fate = if self.fault_chance > 0.0 {
            let uniform = draws.uniform(Purpose::Fate { tool: index }, turn, number);
            if uniform >= self.fault_chance { Fate::Served } else { Fate::of(&tool.faults, uniform) }
        } else {
            Fate::Served
        };
        let purpose = Purpose::Result { tool: index };
        let result_tokens = match self.fixed_result {
            Some(tokens) => tokens,
            None if self.has_table => tool.result.at(draws.bits(purpose, turn, number)),
            None => tool.result.draw(self.results.get_or_insert_with(|| draws.stream(purpose, turn))),
        };
        let tool_fails = tool.error > 0.0 && draws.uniform(Purpose::Error { tool: index }, turn, number) < tool.error;
        Drawn { fate, latency_s, result_tokens, tool_fails }
    }
}

impl Batch<'_> {
    /// Plays them.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as above
    fn play<D: Draws>(
        self,
        draws: &D,
        span: &mut Span,
        totals: &mut PhaseTotals,
        mut latency_s: impl FnMut() -> f64,
    ) -> BatchEnd {
        let tool = self.tool;
        let mut beginnings = Beginnings::new(tool);
        let patience_s = tool.faults.timeout_s.min(tool.retry.deadline_s).min(tool.hedge_after_s);
        let (mut longest_s, mut sum_s, mut result_tokens) = (0.0_f64, 0.0_f64, 0);
        let (mut at_once, mut succeeded) = (0, 0);
        // of the calls that weren't simply answered: the longest, its part that was repeated, and the sum of those parts
        let (mut troubled_s, mut troubled_retry_s, mut sum_retry_s) = (-1.0_f64, 0.0, 0.0);
        totals.calls += self.calls;
        totals.sent += self.calls;
        for number in 0..self.calls {
            let beginning = beginnings.draw(self, draws, number, latency_s());
            let (mut answered, mut took_s) = (true, beginning.latency_s);
            if beginning.fate == Fate::Served && took_s <= patience_s {
                at_once += 1;
            } else {
                let troubled = play_troubled_call(self, number, beginning, draws, totals);
                (answered, took_s) = (troubled.answered, troubled.took_s);
                sum_retry_s += troubled.retry_s;
                if took_s > troubled_s {
                    (troubled_s, troubled_retry_s) = (took_s, troubled.retry_s);
                }
            }
            let success = answered && !beginning.tool_fails;
            succeeded += u64::from(success);
            result_tokens += if success { beginning.result_tokens } else { tool.error_result_tokens };
            if took_s > longest_s {
                longest_s = took_s;
            }
            sum_s += took_s;
        }
        let longest_retry_s = if troubled_s >= longest_s { troubled_retry_s } else { 0.0 };
        totals.attempts += at_once;
        totals.executions += at_once;
        totals.succeeded += succeeded;
        totals.fees += tool.price * at_once;
        span.retry_s = if self.one_at_a_time { sum_retry_s } else { longest_retry_s };
        BatchEnd { duration_s: if self.one_at_a_time { sum_s } else { longest_s }, result_tokens }
    }
}

/// A call under way, with what its next attempt will meet. Its stream, from which everything after the first attempt's
/// beginning is drawn, is made when it is needed.
#[derive(Debug)]
pub(super) struct CallRun<S> {
    number: u64,
    pub attempts: Attempts,
    fate: Fate,
    latency_s: f64,
    stream: Option<S>,
}

impl<S: rand::Rng> CallRun<S> {
    pub fn new(number: u64, drawn: Drawn) -> Self {
        Self { number, attempts: Attempts::default(), fate: drawn.fate, latency_s: drawn.latency_s, stream: None }
    }

    /// What its next attempt will meet.
    pub fn fate(&self) -> Fate {
        self.fate
    }

    /// How long the next attempt will take to be answered, where that isn't drawn, s.
    pub fn answer_after(&mut self, latency_s: f64) {
        self.latency_s = latency_s;
    }

    fn stream<D: Draws<Stream = S>>(&mut self, batch: Batch<'_>, draws: &D) -> &mut S {
        let purpose = Purpose::Retry { tool: batch.index, call: self.number };
        self.stream.get_or_insert_with(|| draws.stream(purpose, batch.turn))
    }

    /// The first copy of the next attempt.
    pub fn first<D: Draws<Stream = S>>(&mut self, batch: Batch<'_>, draws: &D) -> Request {
        let (fate, latency_s) = (self.fate, self.latency_s);
        request(batch.tool, fate, latency_s, self.stream(batch, draws))
    }

    /// The second copy of an attempt at a tool that is no agent.
    pub fn second<D: Draws<Stream = S>>(&mut self, batch: Batch<'_>, draws: &D) -> Request {
        let (tool, stream) = (batch.tool, self.stream(batch, draws));
        let fate = Fate::of(&tool.faults, stream.random::<f64>());
        let latency_s = tool.latency_s.draw(stream);
        request(tool, fate, latency_s, stream)
    }

    /// How long it takes to be turned away, s.
    pub fn turned_away(&mut self, tool: &Tool) -> f64 {
        self.stream.as_mut().map_or(0.0, |stream| tool.reject_latency_s.draw(stream))
    }

    /// Plays the next attempt, and says whether a second copy was sent, which `second` gives its latency: not at the
    /// call's deadline or after `left_s`.
    pub fn attempt<D: Draws<Stream = S>>(
        &mut self,
        batch: Batch<'_>,
        draws: &D,
        left_s: f64,
        second: impl FnOnce(Fate, &mut S) -> f64,
    ) -> (Progress, bool) {
        let tool = batch.tool;
        let first = self.first(batch, draws);
        let left_s = left_s.min(tool.retry.deadline_s - self.attempts.elapsed_s);
        let stream = self.stream(batch, draws);
        let (end, both) = if tool.hedge_after_s < left_s {
            AttemptEnd::hedged(tool.faults.timeout_s, tool.hedge_after_s, first, || {
                let fate = Fate::of(&tool.faults, stream.random::<f64>());
                let latency_s = second(fate, stream);
                request(tool, fate, latency_s, stream)
            })
        } else {
            (AttemptEnd::of(tool.faults.timeout_s, first), false)
        };
        (self.attempts.attempted(&tool.retry, end), both)
    }

    /// Draws the wait after a failed attempt and what the next attempt will meet.
    pub fn wait(&mut self, tool: &Tool) -> Progress {
        let Some(stream) = &mut self.stream else { return Progress::Failed };
        let wait_s = self.attempts.draw_wait(&tool.retry, stream);
        let progress = self.attempts.waited(&tool.retry, wait_s);
        if progress == Progress::Attempt {
            self.fate = Fate::of(&tool.faults, stream.random::<f64>());
            self.latency_s = tool.latency_s.draw(stream);
        }
        progress
    }

    /// Books the call when it is over.
    pub fn book(&self, tool: &Tool, totals: &mut PhaseTotals) {
        let call = &self.attempts;
        totals.attempts += u64::from(call.sent);
        totals.executions += u64::from(call.executions);
        totals.retry_wait_s += call.waited_s;
        totals.fees += tool.price * u64::from(call.executions > 0);
        if call.executions > 1 && !tool.idempotent {
            totals.duplicates += 1;
            totals.duplicate_fees += tool.price * u64::from(call.executions - 1);
        }
    }
}

fn request<R: rand::Rng>(tool: &Tool, fate: Fate, latency_s: f64, stream: &mut R) -> Request {
    let reject_latency_s = if fate == Fate::Rejected { tool.reject_latency_s.draw(stream) } else { 0.0 };
    Request { fate, latency_s, reject_latency_s }
}

/// A call whose first attempt doesn't simply succeed.
#[cold]
#[inline(never)]
fn play_troubled_call<D: Draws>(
    batch: Batch<'_>,
    number: u64,
    beginning: Drawn,
    draws: &D,
    totals: &mut PhaseTotals,
) -> Troubled {
    let mut run = CallRun::new(number, beginning);
    let answered = loop {
        let second = |_, stream: &mut D::Stream| batch.tool.latency_s.draw(stream);
        let (mut progress, both) = run.attempt(batch, draws, f64::INFINITY, second);
        totals.hedges += u64::from(both);
        if progress == Progress::Wait {
            progress = run.wait(batch.tool);
        }
        match progress {
            Progress::Answered => break true,
            Progress::Failed => break false,
            Progress::Wait | Progress::Attempt => {}
        }
    };
    run.book(batch.tool, totals);
    Troubled { answered, took_s: run.attempts.elapsed_s, retry_s: run.attempts.retry_s() }
}
