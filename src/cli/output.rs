//! Standard output and the folder of `-o`.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::Which;
use crate::chart::{self, Drawing, Drawn, Results};
use crate::engine;
use crate::report::{Figure, Style};
use crate::scenario::Scenario;
use crate::simulate::{Answer, Options};
use crate::table::{Files, Schema, Sink, hidden};
use crate::{Error, report};

/// Prints to standard output; escape sequences are dropped where nobody would see them (a pipe, `NO_COLOR`).
pub(super) fn print(text: &str) -> Result<(), Error> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A text as wide as the terminal, or `COLUMNS` where standard output is none; without either as wide as it gets.
pub(super) fn in_width(text: impl FnOnce(Style) -> String) -> String {
    let of_terminal = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    let columns = of_terminal().or_else(|| std::env::var("COLUMNS").ok()?.parse().ok());
    let style = columns.map_or(Style::COLOUR, |columns| Style::COLOUR.in_width(columns));
    style.fit(&text(style))
}

/// The JSON report of some strategies.
pub(super) fn json(answers: &[Answer]) -> Result<String, Error> {
    report::json(answers).map_err(|e| Error::Output(e.into()))
}

/// The options of the arguments, and where rows go.
pub(super) fn options<'a>(which: &Which, tables: Option<&'a Files>) -> Options<'a> {
    Options { tables: tables.map(|files| files as &dyn Sink), ..which.options() }
}

/// The exit code of a program that was stopped from the keyboard.
const STOPPED: i32 = 130;

/// A folder for results, made before the work starts so that a wrong path fails at once.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    written: Vec<PathBuf>,
    is_quiet: bool,
}

impl Folder {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        if path.is_file() {
            return Err(Error::NoFolder(path.to_owned()));
        }
        std::fs::create_dir_all(path).map_err(failed)?;
        let probe = path.join(".agent-sim-can-write");
        std::fs::write(&probe, b"").map_err(failed)?;
        std::fs::remove_file(&probe).map_err(failed)?;
        Ok(Self { path: path.to_owned(), written: Vec::new(), is_quiet: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file under a temporary name and renames it, so that it is whole or not there.
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        let failed = |source| Error::Write { path: path.clone(), source };
        let temporary = hidden(&self.path, name);
        std::fs::write(&temporary, text).map_err(failed)?;
        std::fs::rename(&temporary, &path).map_err(failed)?;
        self.written.push(path);
        Ok(())
    }

    /// Opens the tables of some ways to play; `command` is what plays them.
    pub fn tables(&self, command: &str, scenarios: &[Scenario], csv: bool) -> Result<Files, Error> {
        let models: Vec<_> = scenarios.iter().map(|scenario| &scenario.model).collect();
        let mut about = vec![
            ("agent-sim.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("agent-sim.command".to_owned(), command.to_owned()),
        ];
        if let Some(first) = scenarios.first() {
            let ways: Vec<&str> = scenarios.iter().map(|scenario| scenario.strategy.as_str()).collect();
            let more = [
                ("agent-sim.title", first.title.clone()),
                ("agent-sim.file", first.file.clone()),
                ("agent-sim.scenario", report::texts(scenarios)),
                ("agent-sim.set", first.sets.join("\n")),
                ("agent-sim.seed", first.run.seed.to_string()),
                ("agent-sim.ways", ways.join("\n")),
            ];
            about.extend(more.map(|(key, value)| (key.to_owned(), value)));
        }
        // tables of one run know each other by it
        let run = format!("{about:?}{:?}", scenarios.iter().map(|scenario| &scenario.run).collect::<Vec<_>>());
        about.push(("agent-sim.run".to_owned(), report::digest(&run)));
        let files = Files::create(&self.path, &Schema::all(&models), csv, &about)?;
        let hidden = files.hidden();
        // without a handler a run that is stopped leaves its hidden files behind, and nothing else is different
        let _ = ctrlc::set_handler(move || {
            for path in &hidden {
                let _ = std::fs::remove_file(path);
            }
            anstream::eprintln!("stopped; nothing of this run is in the folder");
            std::process::exit(STOPPED);
        });
        Ok(files)
    }

    /// Gives the tables their names, draws what the folder holds, and says what was written.
    /// `page` is made of the charts.
    pub fn finish(
        mut self,
        tables: Option<Files>,
        quiet: bool,
        page: &dyn Fn(Vec<Figure>) -> Result<String, std::fmt::Error>,
    ) -> Result<(), Error> {
        self.add(tables.map(Files::finish).transpose()?.unwrap_or_default());
        self.is_quiet = quiet;
        let figures = self.draw_all(&Results::read(&self.path)?.drawings())?;
        self.write("report.html", &page(figures).map_err(|error| Error::Output(std::io::Error::other(error)))?)?;
        let mut stale = self.left_from_earlier(&["sessions", "turns", "fleet"], &["parquet", "csv"]);
        let reports = ["report", "compare", "sweep", "plan", "budget"];
        stale.extend(self.left_from_earlier(&reports, &["md", "json", "csv"]));
        self.close_with(stale, &chart::STEMS);
        Ok(())
    }

    /// Draws what a folder holds into this one, and says what was written.
    pub fn draw(mut self, from: &Path) -> Result<(), Error> {
        self.draw_all(&Results::read(from)?.drawings())?;
        self.close(&chart::STEMS);
        Ok(())
    }

    /// Draws on all cores, and returns what a page shows of it.
    fn draw_all(&mut self, drawings: &[(String, Drawing)]) -> Result<Vec<Figure>, Error> {
        let drawn = engine::map(drawings, |(stem, drawing)| drawing.write(&self.path, stem));
        let mut figures = Vec::new();
        for ((stem, _), drawn) in drawings.iter().zip(drawn) {
            let Drawn { files, svg, spots } = drawn?;
            figures.push(Figure { question: chart::question(stem), svg, spots: spots.0 });
            self.add(files);
        }
        Ok(figures)
    }

    /// Files with these stems and endings that are there and weren't written.
    fn left_from_earlier(&self, stems: &[&str], endings: &[&str]) -> Vec<String> {
        stems
            .iter()
            .flat_map(|stem| endings.iter().map(move |ending| format!("{stem}.{ending}")))
            .filter(|name| !self.written.contains(&self.path.join(name)) && self.path.join(name).exists())
            .collect()
    }

    pub fn add(&mut self, paths: Vec<PathBuf>) {
        self.written.extend(paths);
    }

    /// Says on standard error what was written, and which of the charts named here are left from an earlier run.
    pub fn close(self, charts: &[&str]) {
        self.close_with(Vec::new(), charts);
    }

    fn close_with(self, mut stale: Vec<String>, charts: &[&str]) {
        if self.is_quiet {
            return;
        }
        stale.extend(self.left_from_earlier(charts, &["svg", "png"]));
        if !stale.is_empty() {
            anstream::eprintln!("{} in {} come from an earlier run", stale.join(", "), self.path.display());
        }
        let names: Vec<String> =
            self.written.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
        anstream::eprintln!("wrote {} to {}", names.join(", "), self.path.display());
    }
}
