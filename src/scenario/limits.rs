//! Conversations, context, budgets, and model calls that fail: rules between their values, and what they mean.

use super::mistake::Mistake;
use super::raw::{Raw, RawModel};
use super::reader::{At, Sink, complain};
use super::resolve::{finite_mean, whole_law};
use super::tools;
use crate::dist::{Dist, Whole};
use crate::model::{Budget, Context, Conversation, Faults, Model, Retry, Success, SuccessChance};
use crate::price::{PicoUsd, Row};

pub(super) fn conversation(raw: &Raw, sink: &Sink) -> Conversation {
    let session = &raw.session;
    let messages = whole_law(session.messages.as_ref(), "messages", 1.0, 1, sink);
    if let Some(At { value, span }) = &session.messages
        && value.as_constant().is_some_and(|messages| messages < 1.0)
    {
        complain(
            sink,
            Mistake::at(*span, "a session handles at least one message").label("none").help("messages = 1 is the task"),
        );
    } else if !session.has_messages {
        let later = [("message", &session.message), ("think", &session.think)];
        for (key, at) in later.into_iter().filter_map(|(key, at)| Some((key, at.as_ref()?))) {
            complain(
                sink,
                Mistake::at(at.span, format!("`{key}` is about later messages, and the session has one"))
                    .label("never used")
                    .help("say how many messages a session handles: messages = { geometric = { mean = 4 } }"),
            );
        }
    }
    Conversation {
        messages,
        message: whole_law(session.message.as_ref(), "message", 0.0, 0, sink),
        think_s: match &session.think {
            None => Dist::constant(0.0),
            Some(at) => finite_mean(at.value.clone(), "think", at.span, sink),
        },
    }
}

/// What can happen to a model call, and its retries.
pub(super) fn model_faults(raw: &Raw, sink: &Sink, notes: &mut Vec<String>) -> (Faults, Retry) {
    let model: &RawModel = &raw.model;
    let mut faults = tools::faults(
        [&model.lost_request, &model.rejected, &model.lost_reply],
        model.timeout,
        model.has_timeout,
        model.rejected.or(model.lost_reply).or(model.lost_request).map(|at| at.span),
        sink,
    );
    let retry = tools::retry(&[&model.retry]);
    let unretried = faults.any() && retry.attempts == 1;
    if unretried && (raw.retry.attempts.is_some() || raw.retry.preset.is_some()) {
        notes.push(
            "[retry] is the tools' default; model calls aren't repeated, and a failed one ends the session: give [model] retry"
                .to_owned(),
        );
    }
    // where nothing else can go wrong, the deadline still ends a call (MODEL.md §4.4), as a timeout of that length does
    if !faults.any() {
        faults.timeout_s = retry.deadline_s;
    }
    (faults, retry)
}

/// The window, when the prompt is summarised, and how long a summary is.
pub(super) fn context(raw: &Raw, row: Option<&Row>, sink: &Sink) -> Context {
    let context = &raw.context;
    let models = row.and_then(|row| row.context_tokens);
    if let (Some(At { value, span }), Some(most)) = (context.window, models)
        && value > most
    {
        complain(
            sink,
            Mistake::at(span, format!("`window` is larger than the model's own, {most} tokens")).label("too large"),
        );
    }
    let window_tokens = context.window.map(|at| at.value).or(models).unwrap_or(u64::MAX);
    match (context.compact_at, context.summary) {
        (Some(at), None) => complain(
            sink,
            Mistake::at(at.span, "`compact_at` needs `summary`: how many tokens does a summary have?")
                .label("no size of the summary")
                .help("for example summary = 2_000"),
        ),
        (None, Some(summary)) if !context.has_compact_at => complain(
            sink,
            Mistake::at(summary.span, "`summary` without `compact_at`")
                .label("never made")
                .help("say when the messages are summarised: compact_at = 150_000"),
        ),
        (Some(at), Some(_)) if at.value >= window_tokens => complain(
            sink,
            Mistake::at(at.span, format!("`compact_at` isn't below the window of {window_tokens} tokens"))
                .label("never reached")
                .help("a prompt that outgrows the window ends the session before it is summarised"),
        ),
        _ => {}
    }
    Context {
        window_tokens,
        compact_at_tokens: context.compact_at.map_or(u64::MAX, |at| at.value),
        summary_tokens: context.summary.map_or(0, |at| at.value),
    }
}

/// What the sizes mean for compaction.
pub(super) fn check_context(raw: &Raw, model: &Model, sink: &Sink) {
    let (Some(at), Some(summary)) = (raw.context.compact_at, raw.context.summary) else { return };
    let least = model.prompt.definition_tokens() + model.prompt.system.as_constant().unwrap_or(0) + summary.value;
    if least > at.value {
        complain(
            sink,
            Mistake::at(
                at.span,
                format!("tools, system and summary come to {least} tokens, so every prompt would be summarised"),
            )
            .label("below what is left after a summary")
            .help("a larger compact_at, a smaller summary, or a shorter prefix"),
        );
    }
}

pub(super) fn budget(raw: &Raw, row: Option<&Row>, priced: bool, sink: &Sink) -> Budget {
    let budget = &raw.budget;
    let before = budget.before.is_none_or(|at| at.value);
    let max_output = raw.model.max_output.map(|at| at.value).or(row.and_then(|row| row.max_output_tokens));
    if let Some(at) = budget.dollars
        && !priced
    {
        complain(
            sink,
            Mistake::at(at.span, "a budget in dollars needs prices")
                .label("of which model?")
                .help("name a model, [model] name = \"claude-sonnet-4-6\", or give [price] input and output"),
        );
    }
    for span in [budget.dollars.map(|at| at.span), budget.tokens.map(|at| at.span)].into_iter().flatten() {
        if before && max_output.is_none() {
            complain(
                sink,
                Mistake::at(span, "a budget that is checked before a call needs the call's worst case")
                    .label("how much can one call write?")
                    .help("[model] max_output = 4_096; or check = \"after\""),
            );
        }
    }
    if let Some(at) = budget.before
        && !budget.has_limit
    {
        complain(
            sink,
            Mistake::at(at.span, "`check` without a limit")
                .label("nothing to check")
                .help("give dollars, turns, tokens or time"),
        );
    }
    let dollars = budget.dollars.and_then(|at| match PicoUsd::from_usd(at.value) {
        Ok(dollars) => Some(dollars),
        Err(error) => {
            complain(sink, Mistake::at(at.span, error.to_string()).label("not a budget"));
            None
        }
    });
    Budget {
        dollars,
        turns: budget.turns.map(|at| at.value),
        tokens: budget.tokens.map(|at| at.value),
        time_s: budget.time.map(|at| at.value),
        before,
        max_output_tokens: max_output.unwrap_or(0),
    }
}

/// A budget that doesn't allow a first call.
pub(super) fn check_budget(raw: &Raw, model: &Model, sink: &Sink) {
    let budget = &model.budget;
    if !budget.before {
        return;
    }
    // the smallest first prompt that can be drawn
    let least = |law: &Whole| law.quantile(1e-9).floor().max(0.0) as u64;
    let prefix = model.prompt.definition_tokens() + least(&model.prompt.system);
    let prompt = prefix + least(&model.prompt.task);
    let worst = crate::session::worst_case(model, prefix, prompt, budget.max_output_tokens);
    if let (Some(at), Some(most)) = (raw.budget.dollars, budget.dollars)
        && worst.usd > most
    {
        complain(
            sink,
            Mistake::at(
                at.span,
                format!(
                    "the first call alone could cost ${:.4} ({} tokens of output at most), so no session could begin",
                    worst.usd.usd(),
                    budget.max_output_tokens
                ),
            )
            .label("below the worst case of one call")
            .help("a larger budget, a smaller [model] max_output, or check = \"after\""),
        );
    }
    if let (Some(at), Some(most)) = (raw.budget.tokens, budget.tokens)
        && worst.tokens > most
    {
        complain(
            sink,
            Mistake::at(
                at.span,
                format!("the first call alone could use {} tokens, so no session could begin", worst.tokens),
            )
            .label("below the worst case of one call")
            .help("a larger budget, a smaller [model] max_output, or check = \"after\""),
        );
    }
}

/// `[outcome]`.
pub(super) fn success(raw: &Raw, sink: &Sink) -> Option<Success> {
    let outcome = raw.outcome.as_ref()?;
    let chance = match (outcome.success, outcome.turn_success) {
        (Some(_), Some(turn)) => {
            complain(
                sink,
                Mistake::at(
                    turn.span,
                    "`turn_success` beside `success`: one of them says how often a session succeeds",
                )
                .label("the second one")
                .help("`success` is a session's chance; with `turn_success` every model call has to succeed"),
            );
            return None;
        }
        (Some(session), None) => SuccessChance::Session(session.value),
        (None, Some(turn)) => SuccessChance::Turn(turn.value),
        (None, None) => {
            if !outcome.has_chance {
                complain(
                    sink,
                    Mistake::at(outcome.span, "[outcome] needs `success` or `turn_success`")
                        .label("how often does a session succeed?")
                        .help("for example success = 0.8 per session, or turn_success = 0.99 per model call"),
                );
            }
            return None;
        }
    };
    Some(Success { chance, attempts: outcome.attempts.map_or(1, |at| at.value as u32) })
}

/// What `[routing]` needs.
pub(super) fn check_routing(raw: &Raw, sink: &Sink) {
    let Some(routing) = &raw.routing else { return };
    let needs = |text: &str, label: &str| {
        let help = "for example share = 0.6, redo = 0.1 and small = { model = { name = \"claude-haiku-4-5\" } }";
        complain(sink, Mistake::at(routing.span, text).label(label.to_owned()).help(help));
    };
    if !routing.has_share {
        needs("[routing] needs `share`: how many of the sessions run on the small model?", "which sessions?");
    }
    if !routing.has_small {
        needs("[routing] needs `small`: the model and prices of those sessions", "on which model?");
    }
}
