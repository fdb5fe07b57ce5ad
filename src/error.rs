//! The one public error, with a kind that says whose turn it is.

use std::path::PathBuf;

use crate::price::UnknownModel;
use crate::scenario::ScenarioError;

/// Why a command couldn't answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario is wrong; every mistake is in it. Nothing was run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// No such model on the price sheet.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// A file that couldn't be written. What was written before it stands.
    #[error("{} can't be written: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that is there already and would be lost.
    #[error("{} is there already; choose another name, or --force to replace it", .0.display())]
    Exists(PathBuf),
    /// A chart couldn't be drawn.
    #[error("{} can't be drawn: {message}", path.display())]
    Chart {
        /// Which file.
        path: PathBuf,
        /// What the drawing library said.
        message: String,
    },
    /// The pool of threads couldn't be made.
    #[error("no threads: {0}")]
    Threads(String),
    /// Standard output couldn't be written to.
    #[error("standard output can't be written to: {0}")]
    Output(#[from] std::io::Error),
}

impl Error {
    /// 2 where the file or the arguments are wrong, 1 where the run failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Scenario(_) | Error::UnknownModel(_) | Error::Exists(_) => 2,
            _ => 1,
        }
    }
}
