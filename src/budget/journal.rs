//! What a budget writes down, so that a crash loses nothing that was settled and counts nothing twice.
//!
//! A line is written for every reservation, settlement and release, each with a checksum. A last line that was torn is
//! dropped; a broken line in the middle is an error. Reading a journal writes it anew, in one line, beside the old one and
//! then in its place, so that it doesn't grow for ever.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::clock::Window;
use super::limits::{Amount, Counted};
use crate::price::PicoUsd;

const HEADER: &str = "agent-sim budget journal 1";

/// When what was written is forced onto the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fsync {
    /// Never: a crash of the process loses nothing, one of the machine may.
    Never,
    /// After every settlement.
    #[default]
    Settled,
    /// After every line.
    Always,
}

/// What a journal said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// What was settled, in the present window where there are windows.
    pub spent: PicoUsd,
    /// Calls that were settled.
    pub calls: u64,
    /// Calls that were under way.
    pub in_flight: u64,
    /// What was set aside for them. It is spent or given back, as the budget has it of abandoned calls.
    pub in_flight_usd: PicoUsd,
    /// Whether the last line was torn, and dropped.
    pub torn: bool,
}

/// Why a journal can't be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system says so.
    #[error("the journal {}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// It isn't one, or not of this version.
    #[error("{} isn't a budget journal of this version: it begins with {found:?}", path.display())]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its first line.
        found: String,
    },
    /// A line that was whole isn't what was written.
    #[error("{}, line {line}: it is broken", path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: usize,
    },
}

/// A journal that is open for writing.
#[derive(Debug)]
pub(super) struct Journal {
    file: Mutex<File>,
    fsync: Fsync,
}

fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(4).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn with_checksum(text: &str) -> String {
    format!("{text} {}\n", checksum(text))
}

/// Money, tokens and calls that count.
type Sums = [u64; 3];

/// What the lines say.
struct Books {
    spent: Sums,
    open: BTreeMap<u64, Amount>,
}

impl Books {
    /// Takes in a line without its checksum; nothing where it isn't one.
    fn line(&mut self, text: &str, counted: Counted, in_window: impl Fn(i64) -> bool) -> Option<()> {
        let mut words = text.split(' ');
        let kind = words.next()?;
        let numbers: Vec<i64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        let count = |n: &i64| u64::try_from(*n).ok();
        match (kind, numbers.as_slice()) {
            ("B", [at_s, usd, tokens, calls]) => {
                if in_window(*at_s) {
                    self.spent = [count(usd)?, count(tokens)?, count(calls)?];
                }
            }
            ("R", [id, usd, prompt, output]) => {
                let (prompt_tokens, output_tokens) = (count(prompt)?, count(output)?);
                let worst = Amount { pico_usd: count(usd)?, prompt_tokens, read_tokens: 0, output_tokens };
                self.open.insert(count(id)?, worst);
            }
            ("S", [id, at_s, usd, prompt, read, output]) => {
                self.open.remove(&count(id)?)?;
                let (prompt_tokens, read_tokens, output_tokens) = (count(prompt)?, count(read)?, count(output)?);
                if in_window(*at_s) {
                    let amount = Amount { pico_usd: count(usd)?, prompt_tokens, read_tokens, output_tokens };
                    self.add(&amount, counted);
                }
            }
            ("X", [id]) => {
                self.open.remove(&count(id)?)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn add(&mut self, used: &Amount, counted: Counted) {
        for (sum, part) in self.spent.iter_mut().zip(used.by_meter(counted)) {
            *sum = sum.saturating_add(part);
        }
    }
}

impl Journal {
    /// Opens a journal, or begins one. What it says is returned with the sums that count.
    pub fn open(
        path: &Path,
        fsync: Fsync,
        counted: Counted,
        window: Option<Window>,
        now: Timestamp,
        abandoned_is_spent: bool,
    ) -> Result<(Self, Recovered, Sums), JournalError> {
        let failed = |source| JournalError::Io { path: path.to_owned(), source };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        let in_window = |at_s: i64| match (window, Timestamp::from_second(at_s)) {
            (Some(window), Ok(at)) => window.number(at) == window.number(now),
            _ => true,
        };
        let mut books = Books { spent: [0; 3], open: BTreeMap::new() };
        let mut recovered = Recovered::default();
        let (whole, rest) = text.rfind('\n').map_or(("", text.as_str()), |end| text.split_at(end + 1));
        recovered.torn = !rest.is_empty();
        let begins = whole.lines().next().unwrap_or(rest);
        let is_ours = if whole.is_empty() { HEADER.starts_with(begins) } else { begins == HEADER };
        if !is_ours {
            let found = begins.chars().take(60).collect();
            return Err(JournalError::Version { path: path.to_owned(), found });
        }
        for (index, line) in whole.lines().enumerate().skip(1) {
            let read = line.rsplit_once(' ').filter(|(text, sum)| checksum(text) == *sum);
            read.and_then(|(text, _)| books.line(text, counted, in_window))
                .ok_or_else(|| JournalError::Broken { path: path.to_owned(), line: index + 1 })?;
        }
        recovered.in_flight = books.open.len() as u64;
        recovered.in_flight_usd = PicoUsd(books.open.values().map(|worst| i128::from(worst.pico_usd)).sum());
        (recovered.spent, recovered.calls) = (PicoUsd(i128::from(books.spent[0])), books.spent[2]);
        if abandoned_is_spent {
            for worst in std::mem::take(&mut books.open).values() {
                books.add(worst, counted);
            }
        }
        let [usd, tokens, calls] = books.spent;
        let base = with_checksum(&format!("B {} {usd} {tokens} {calls}", now.as_second()));
        let beside = path.with_extension("new");
        let mut file = File::create(&beside).map_err(failed)?;
        file.write_all(format!("{HEADER}\n{base}").as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&beside, path).map_err(failed)?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        Ok((Self { file: Mutex::new(file), fsync }, recovered, books.spent))
    }

    /// Writes a line in one piece.
    fn write(&self, text: &str, settles: bool) -> io::Result<()> {
        let mut file = self.file.lock().map_err(|_| io::Error::other("another thread failed while it wrote"))?;
        file.write_all(with_checksum(text).as_bytes())?;
        let now = match self.fsync {
            Fsync::Never => false,
            Fsync::Settled => settles,
            Fsync::Always => true,
        };
        if now { file.sync_data() } else { Ok(()) }
    }

    pub fn reserved(&self, id: u64, worst: &Amount) -> io::Result<()> {
        let Amount { pico_usd, prompt_tokens, output_tokens, .. } = worst;
        self.write(&format!("R {id} {pico_usd} {prompt_tokens} {output_tokens}"), false)
    }

    pub fn settled(&self, id: u64, used: &Amount, now: Timestamp) -> io::Result<()> {
        let Amount { pico_usd, prompt_tokens, read_tokens, output_tokens } = used;
        let at_s = now.as_second();
        self.write(&format!("S {id} {at_s} {pico_usd} {prompt_tokens} {read_tokens} {output_tokens}"), true)
    }

    pub fn released(&self, id: u64) -> io::Result<()> {
        self.write(&format!("X {id}"), false)
    }
}
