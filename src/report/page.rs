//! The page itself: what it is made of, and the template that it is written with.

use askama::Template;

/// A chart of the page.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The question that it answers.
    pub question: String,
    /// The picture.
    pub svg: String,
    /// Spots of it with the figure that stands there: pixels from the left, from the top, and the text.
    pub spots: Vec<(i32, i32, String)>,
}

#[derive(Template)]
#[template(path = "page.html", config = "src/report/askama.toml")]
pub(super) struct Page {
    pub title: String,
    pub about: String,
    pub version: &'static str,
    pub verdict: Vec<Card>,
    pub alerts: Vec<Alert>,
    pub sections: Vec<Section>,
    pub figures: Vec<Shown>,
    pub scenario: String,
    pub sets: Vec<String>,
}

/// A headline figure.
pub(super) struct Card {
    pub label: String,
    pub value: String,
    pub note: String,
}

/// Something to be seen first.
pub(super) struct Alert {
    /// "good", "warning" or "bad".
    pub kind: &'static str,
    pub text: String,
}

pub(super) struct Section {
    pub id: &'static str,
    pub title: String,
    pub lead: String,
    pub lines: Vec<(String, String)>,
    pub tables: Vec<Table>,
}

pub(super) struct Table {
    pub caption: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// Whether it is hidden until somebody asks for it.
    pub folded: bool,
}

pub(super) struct Cell {
    pub text: String,
    pub note: String,
    /// What it is sorted by.
    pub sort: Option<f64>,
    /// A bar as long as this share.
    pub bar: Option<String>,
}

pub(super) struct Shown {
    question: String,
    svg: String,
    spots: String,
    rows: Vec<String>,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), note: String::new(), sort: None, bar: None }
    }

    pub fn figure(text: String, note: String, sort: f64) -> Self {
        Self { text, note, sort: Some(sort), bar: None }
    }
}

pub(super) fn shown(figure: Figure) -> Shown {
    let rows = figure.spots.iter().map(|(_, _, text)| text.clone()).collect();
    // inside a script element no markup may begin
    let spots = serde_json::to_string(&figure.spots).unwrap_or_default().replace('<', "\\u003c");
    let svg = figure.svg.find("<svg").map_or("", |at| &figure.svg[at..]);
    let svg = svg.replacen("<svg ", "<svg role=\"img\" focusable=\"false\" ", 1);
    let named = svg.replacen('>', &format!(" aria-label=\"{}\">", escaped(&figure.question)), 1);
    let svg = named.replacen("width=\"800\" height=\"480\" ", "", 1);
    Shown { question: figure.question, svg, spots, rows }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// `value\ninterval` as a cell.
pub(super) fn two_lines(text: String) -> Cell {
    match text.split_once('\n') {
        Some((value, note)) => {
            Cell { sort: sort_key(value), note: note.replace(" … ", "\u{a0}… "), ..Cell::text(value) }
        }
        None => Cell { sort: sort_key(&text), ..Cell::text(text) },
    }
}

/// What a figure is sorted by: its number, in its base unit; nothing for words.
pub(super) fn sort_key(figure: &str) -> Option<f64> {
    let plain: String = figure.chars().filter(|letter| !matches!(letter, '$' | ',' | '×' | '+')).collect();
    let plain = plain.trim_start();
    let end = plain
        .find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | '-' | 'e')))
        .unwrap_or(plain.len());
    let number: f64 = plain.get(..end)?.parse().ok()?;
    let unit = plain.get(end..)?.split_whitespace().next().unwrap_or_default();
    let scale = match unit {
        "µs" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3_600.0,
        _ => 1.0,
    };
    Some(number * scale)
}
