//! What is wrong with a scenario, where, and what would work.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::tree::Span;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub(super) span: Option<Span>,
    message: String,
    label: String,
    help: Option<String>,
}

impl Mistake {
    pub(super) fn at(span: Span, message: impl Into<String>) -> Self {
        Self { span: Some(span), message: message.into(), label: String::new(), help: None }
    }

    /// At a place where one is known.
    pub(super) fn maybe_at(span: Option<Span>, message: impl Into<String>) -> Self {
        Self { span, ..Self::nowhere(message) }
    }

    pub(super) fn nowhere(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), label: String::new(), help: None }
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, of an agent that takes over a line of its caller.
    pub(super) fn taken_over_by(mut self, agent: &str) -> Self {
        if !self.message.contains("[agents.") {
            self.message = format!("in [agents.{agent}], which takes this over: {}", self.message);
        }
        self
    }

    /// The same, of a line of the file that is only wrong under a strategy.
    pub(super) fn with_strategy(mut self, strategy: &str) -> Self {
        self.message = format!("with the strategy \"{strategy}\": {}", self.message);
        self
    }

    /// What is wrong, without its place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What would work.
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    found: Vec<Mistake>,
}

impl Mistakes {
    /// Adds one, unless the same was said of the same place.
    pub fn push(&mut self, mistake: Mistake) {
        if !self.found.contains(&mistake) {
            self.found.push(mistake);
        }
    }

    pub fn contains(&self, mistake: &Mistake) -> bool {
        self.found.contains(mistake)
    }

    pub fn into_found(self) -> Vec<Mistake> {
        self.found
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// In the order of the file.
    pub fn sorted(mut self) -> Vec<Mistake> {
        self.found.sort_by_key(|m| (m.span.is_some(), m.span));
        self.found
    }
}

/// A text that mistakes point into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// The file's path, or `--set`.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Every mistake of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render(false))]
pub struct ScenarioError {
    /// What they point into.
    pub sources: Vec<SourceText>,
    /// In the order of the file.
    pub mistakes: Vec<Mistake>,
}

/// More than this many mistakes are counted, not shown.
const MOST_SHOWN: usize = 50;

impl ScenarioError {
    /// The messages as a person reads them: each with its line, what is wrong and what would work.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() }.decor_style(DecorStyle::Ascii);
        let mut out = String::new();
        for mistake in self.mistakes.iter().take(MOST_SHOWN) {
            let source = mistake.span.and_then(|span| Some((span, self.sources.get(span.source)?)));
            let mut group = Group::with_title(Level::ERROR.primary_title(mistake.message.as_str()));
            if let Some((span, source)) = source {
                let range = within(&source.text, span);
                let mut annotation = AnnotationKind::Primary.span(range);
                if !mistake.label.is_empty() {
                    annotation = annotation.label(mistake.label.as_str());
                }
                group = group
                    .element(Snippet::source(source.text.as_str()).path(source.name.as_str()).annotation(annotation));
            }
            if let Some(help) = &mistake.help {
                group = group.element(Level::HELP.message(help.as_str()));
            }
            out.push_str(&renderer.render(&[group]));
            out.push_str("\n\n");
        }
        let (name, count) = (self.sources.first().map_or("the scenario", |s| s.name.as_str()), self.mistakes.len());
        if count > MOST_SHOWN {
            out.push_str(&format!("… and {} more\n\n", count - MOST_SHOWN));
        }
        out.push_str(&format!("{name}: {count} mistake{}, nothing was run", if count == 1 { "" } else { "s" }));
        out
    }
}

/// The span on character boundaries of the text and, where it covers several lines, cut at the end of its first.
fn within(text: &str, span: Span) -> std::ops::Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(span.start), floor(span.end.max(span.start)));
    let line_end = text[start..end].find('\n').map_or(end, |at| start + at);
    start..line_end
}
