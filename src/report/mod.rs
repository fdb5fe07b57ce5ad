//! Answers in the forms that people and programs read: pure functions of an [`Answer`](crate::simulate::Answer).

mod budgets;
mod checks;
mod compare;
mod compare_page;
mod curves;
mod figures;
mod fit;
mod fleet;
mod fleets;
mod format;
mod head;
mod html;
mod json;
mod levers;
mod line;
mod markdown;
mod page;
mod plan;
mod prices;
mod reserve;
mod solve;
mod spark;
mod sweep;
mod system;
mod terminal;
mod wording;

pub use budgets::{budget_json, budget_terminal};
pub use checks::checks_text;
pub use compare::{compare_markdown, compare_terminal, way_name, way_names};
pub use compare_page::{compare_html, fleets_html};
pub use figures::figures_terminal;
pub use fleet::{growth_text, place_name, series_name};
pub use fleets::{fleets_json, fleets_markdown, fleets_terminal};
pub use format::{count, money, percent, seconds, whole};
pub use head::{digest, texts};
pub use html::html;
pub use json::{SCHEMA, compare_json, json};
pub use levers::{levers_json, levers_markdown, levers_terminal};
pub use line::one_line;
pub use markdown::markdown;
pub use page::Figure;
pub use plan::{figure_shown, plan_json, plan_terminal};
pub use prices::{price_changes, price_details, price_table};
pub use reserve::{ReserveAnswer, reserve_json, reserve_terminal};
pub use solve::{solve_json, solve_terminal};
pub use sweep::{sweep_csv, sweep_json, sweep_terminal};
pub use terminal::terminal;
pub use wording::not_kept;

/// Whether headings and warnings stand out, and how many columns there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colour: bool,
    /// `usize::MAX` where there is no end of them.
    width: usize,
}

impl Style {
    /// No escape sequences, as wide as it gets.
    pub const PLAIN: Style = Style { colour: false, width: usize::MAX };
    /// Bold and colour, as wide as it gets.
    pub const COLOUR: Style = Style { colour: true, width: usize::MAX };

    /// The same in so many columns, at least forty.
    #[must_use]
    pub fn in_width(self, columns: usize) -> Self {
        Self { width: columns.max(40), ..self }
    }

    fn paint(self, style: anstyle::Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn heading(self, text: &str) -> String {
        self.paint(anstyle::Style::new().bold(), text)
    }

    fn faint(self, text: &str) -> String {
        self.paint(anstyle::Style::new().dimmed(), text)
    }

    fn warning(self, text: &str) -> String {
        self.paint(anstyle::AnsiColor::Yellow.on_default(), text)
    }

    fn good(self, text: &str) -> String {
        self.paint(anstyle::AnsiColor::Green.on_default(), text)
    }

    fn bad(self, text: &str) -> String {
        self.paint(anstyle::AnsiColor::Red.on_default().bold(), text)
    }
}
