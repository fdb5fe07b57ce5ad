//! What a budget writes down, so that a crash loses nothing that was settled and counts nothing twice.
//!
//! A line is written for every reservation, settlement and release, each with a checksum. A last line that was torn is
//! dropped; a broken line in the middle is an error. Reading a journal writes it anew, in one line, beside the old one and
//! then in its place, so that it doesn't grow for ever. One budget has it at a time: a file beside it, with `.lock` at the
//! end of its name, is locked as long as it is in use.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::clock::Window;
use super::limits::{Amount, Counted, Limits};
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
    /// Another budget has it, in this process or in another one.
    #[error("{} is in use by another budget", path.display())]
    InUse {
        /// Which file.
        path: PathBuf,
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
    end: Mutex<End>,
    fsync: Fsync,
    _lock: Lock,
}

/// The file that says that a journal is in use.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    fn take(journal: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: journal.to_owned(), source };
        let file = OpenOptions::new().create(true).append(true).open(beside(journal, ".lock")).map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse { path: journal.to_owned() },
            TryLockError::Error(source) => failed(source),
        })?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    /// Closing isn't enough: a process that another thread is about to start has a copy of the open file until it runs.
    fn drop(&mut self) {
        // one that can't be given back is given back by closing it
        let _ = self.0.unlock();
    }
}

/// Where lines are added.
#[derive(Debug)]
struct End {
    file: File,
    /// How long the file is with its whole lines, bytes.
    whole: u64,
    /// Whether nobody knows what is at its end. Nothing is written from then on.
    unknown: bool,
}

impl End {
    fn add(&mut self, line: &[u8], sync: bool) -> io::Result<()> {
        if self.unknown {
            return Err(io::Error::other("an earlier line could be neither written nor taken back"));
        }
        if let Err(error) = self.file.write_all(line) {
            self.unknown = self.file.set_len(self.whole).is_err();
            return Err(error);
        }
        self.whole += line.len() as u64;
        if sync {
            self.file.sync_data().inspect_err(|_| self.unknown = true)?;
        }
        Ok(())
    }
}

/// The same name with something at its end.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// What a file holds; nothing, where there is none.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

/// Whether this can be a journal of this version, or its torn beginning.
fn is_ours(bytes: &[u8]) -> bool {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => bytes[..end] == *HEADER.as_bytes(),
        None => HEADER.as_bytes().starts_with(bytes),
    }
}

fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(4).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

fn with_checksum(text: &str) -> String {
    format!("{text} {}\n", checksum(text))
}

/// Money, tokens and calls that count.
pub(super) type Sums = [u64; 3];

/// What the lines say.
struct Books {
    counted: Counted,
    window: Option<Window>,
    /// The last window that anything was spent in.
    number: u64,
    /// When something was last written, s since 1970.
    last_s: i64,
    spent: Sums,
    open: BTreeMap<u64, Amount>,
}

impl Books {
    /// A later window begins with nothing spent; an earlier time counts in the present one, as it does in a budget whose
    /// clock goes back. Nothing where there is no such time.
    fn at(&mut self, at_s: i64) -> Option<()> {
        let at = Timestamp::from_second(at_s).ok()?;
        self.last_s = self.last_s.max(at_s);
        if let Some(number) = self.window.map(|window| window.number(at)).filter(|number| *number > self.number) {
            (self.number, self.spent) = (number, [0; 3]);
        }
        Some(())
    }

    /// Takes in a line without its checksum; nothing where it isn't one.
    fn line(&mut self, text: &str) -> Option<()> {
        let words: Vec<&str> = text.split(' ').collect();
        let count = |word: &str| word.parse::<u64>().ok();
        match words.as_slice() {
            ["B", at_s, usd, tokens, calls] => {
                self.at(at_s.parse().ok()?)?;
                self.spent = [count(usd)?, count(tokens)?, count(calls)?];
            }
            ["R", id, usd, prompt, output] => {
                let (prompt_tokens, output_tokens) = (count(prompt)?, count(output)?);
                let worst = Amount { pico_usd: count(usd)?, prompt_tokens, read_tokens: 0, output_tokens };
                self.open.insert(count(id)?, worst);
            }
            ["S", id, at_s, usd, prompt, read, output] => {
                self.open.remove(&count(id)?)?;
                self.at(at_s.parse().ok()?)?;
                let (prompt_tokens, read_tokens, output_tokens) = (count(prompt)?, count(read)?, count(output)?);
                self.add(&Amount { pico_usd: count(usd)?, prompt_tokens, read_tokens, output_tokens });
            }
            ["X", id] => {
                self.open.remove(&count(id)?)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn add(&mut self, used: &Amount) {
        for (sum, part) in self.spent.iter_mut().zip(used.by_meter(self.counted)) {
            *sum = sum.saturating_add(part);
        }
    }
}

/// What a journal had when it was opened.
pub(super) struct Opened {
    pub journal: Journal,
    pub recovered: Recovered,
    /// What counts from now on.
    pub sums: Sums,
    /// The window that it counts in, where there are windows.
    pub window_number: u64,
}

impl Journal {
    /// Opens a journal, or begins one.
    pub fn open(path: &Path, fsync: Fsync, limits: &Limits, now: Timestamp) -> Result<Opened, JournalError> {
        let failed = |source| JournalError::Io { path: path.to_owned(), source };
        let lock = Lock::take(path)?;
        let old = bytes(path).map_err(failed)?;
        let whole = old.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let (whole, rest) = old.split_at(whole);
        if !is_ours(&old) {
            let begins = String::from_utf8_lossy(old.split(|byte| *byte == b'\n').next().unwrap_or_default());
            return Err(JournalError::Version { path: path.to_owned(), found: begins.chars().take(60).collect() });
        }
        let Limits { counted, window, .. } = *limits;
        let mut books = Books { counted, window, number: 0, last_s: i64::MIN, spent: [0; 3], open: BTreeMap::new() };
        for (index, line) in whole.split_inclusive(|byte| *byte == b'\n').enumerate().skip(1) {
            let text = str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n')?.rsplit_once(' '));
            text.filter(|(text, sum)| checksum(text) == *sum)
                .and_then(|(text, _)| books.line(text))
                .ok_or_else(|| JournalError::Broken { path: path.to_owned(), line: index + 1 })?;
        }
        // now is a time that there is
        let _ = books.at(now.as_second());
        let recovered = Recovered {
            spent: PicoUsd(i128::from(books.spent[0])),
            calls: books.spent[2],
            in_flight: books.open.len() as u64,
            in_flight_usd: PicoUsd(books.open.values().map(|worst| i128::from(worst.pico_usd)).sum()),
            torn: !rest.is_empty(),
        };
        if limits.abandoned_is_spent {
            for worst in std::mem::take(&mut books.open).values() {
                books.add(worst);
            }
        }
        let end = begin(path, &books).map_err(failed)?;
        let (sums, window_number) = (books.spent, books.number);
        Ok(Opened { journal: Self { end: Mutex::new(end), fsync, _lock: lock }, recovered, sums, window_number })
    }

    /// Writes a line in one piece.
    fn write(&self, text: &str, settles: bool) -> io::Result<()> {
        let mut end = self.end.lock().map_err(|_| io::Error::other("another thread failed while it wrote"))?;
        let sync = match self.fsync {
            Fsync::Never => false,
            Fsync::Settled => settles,
            Fsync::Always => true,
        };
        end.add(with_checksum(text).as_bytes(), sync)
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

/// Puts a journal that only says what was spent in the place of the one that said how.
fn begin(path: &Path, books: &Books) -> io::Result<End> {
    let new = beside(path, ".new");
    if !is_ours(&bytes(&new)?) {
        let text = format!("{} is in the way: it isn't a budget journal", new.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let [usd, tokens, calls] = books.spent;
    let text = format!("{HEADER}\n{}", with_checksum(&format!("B {} {usd} {tokens} {calls}", books.last_s)));
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(End { file: OpenOptions::new().append(true).open(path)?, whole: text.len() as u64, unknown: false })
}
