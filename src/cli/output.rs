//! Standard output and the folder of `-o`.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::simulate::Answer;
use crate::{Error, report};

/// Prints to standard output; escape sequences are dropped where nobody would see them (a pipe, `NO_COLOR`).
pub(super) fn print(text: &str) -> Result<(), Error> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The JSON report of some strategies.
pub(super) fn json(answers: &[Answer]) -> Result<String, Error> {
    report::json(answers).map_err(|e| Error::Output(e.into()))
}

/// A folder for results, made before the work starts so that a wrong path fails at once.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    written: Vec<PathBuf>,
}

impl Folder {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(failed)?;
        let probe = path.join(".agent-sim-can-write");
        std::fs::write(&probe, b"").map_err(failed)?;
        std::fs::remove_file(&probe).map_err(failed)?;
        Ok(Self { path: path.to_owned(), written: Vec::new() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file under a temporary name and renames it, so that it is whole or not there.
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        let failed = |source| Error::Write { path: path.clone(), source };
        let temporary = self.path.join(format!(".{name}.tmp"));
        std::fs::write(&temporary, text).map_err(failed)?;
        std::fs::rename(&temporary, &path).map_err(failed)?;
        self.written.push(path);
        Ok(())
    }

    pub fn add(&mut self, paths: Vec<PathBuf>) {
        self.written.extend(paths);
    }

    /// Says on standard error what was written, and which of the charts named here are left from an earlier run.
    pub fn close(self, charts: &[&str]) {
        let stale: Vec<String> = charts
            .iter()
            .flat_map(|chart| [format!("{chart}.svg"), format!("{chart}.png")])
            .filter(|name| !self.written.contains(&self.path.join(name)) && self.path.join(name).exists())
            .collect();
        if !stale.is_empty() {
            anstream::eprintln!("{} in {} come from an earlier run", stale.join(", "), self.path.display());
        }
        let names: Vec<String> =
            self.written.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
        anstream::eprintln!("wrote {} to {}", names.join(", "), self.path.display());
    }
}
