//! The one public error, with a kind that says whose turn it is.

use std::path::PathBuf;

use crate::price::{ImportError, UnknownModel};
use crate::report::whole;
use crate::scenario::ScenarioError;
use crate::simulate::Overload;
use crate::stats::ThresholdError;

fn count(x: f64) -> String {
    whole(x.round() as u64)
}

/// Why a command couldn't answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario is wrong; every mistake is in it. Nothing was run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// No such model on the price sheet.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// A file that couldn't be read.
    #[error("{} can't be read: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that is no price table.
    #[error(transparent)]
    Import(#[from] ImportError),
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
    /// Two scenarios that aren't played on the same sessions.
    #[error(
        "{0} and {1} are run with different seeds or numbers of sessions, so their sessions can't be compared one by one; \
         give both --seed and --sessions"
    )]
    Unpaired(String, String),
    /// More sessions than can be kept to be compared.
    #[error("{0} sessions; a comparison keeps every session's figures, of at most 10000000")]
    TooManyToCompare(u64),
    /// There is nothing to compare with.
    #[error(
        "{0} has no strategies to compare; add [strategies.NAME] with what is to be different, or give a second file"
    )]
    NothingToCompare(String),
    /// There is no grid.
    #[error("{0} has no [sweep]; say what to change: --over session.turns=10,50,100")]
    NothingToSweep(String),
    /// A grid that can't be played.
    #[error("{0}")]
    Sweep(String),
    /// A call that can't be judged.
    #[error("{0}")]
    Reserve(String),
    /// A budget that can't be sized.
    #[error("{0}")]
    Budget(String),
    /// More work comes to a station of a fleet than it can do.
    #[error(
        "the fleet is unstable: {} sessions an hour keep at least {:.2} servers of {} busy, and it has {}; sessions in \
         progress would grow by at least {} an hour, without end. It settles with fewer than about {} sessions an hour, or with {} servers",
        count(.0.arrive_per_hour), .0.needed, .0.name, whole(.0.servers), count(.0.growth_per_hour()),
        count(.0.arrive_per_hour * .0.servers as f64 / .0.needed), count(.0.needed.floor() + 1.0)
    )]
    Unstable(Overload),
    /// A command that plays single sessions.
    #[error(
        "`{0}` holds single sessions side by side, and the sessions of a fleet aren't single; `run`, `check`, `compare`, `sweep` and `plan` play a fleet"
    )]
    NotOfFleets(&'static str),
    /// A file in the place of a folder.
    #[error("{} is a file; -o needs a folder, which is made where there is none", .0.display())]
    NoFolder(PathBuf),
    /// A folder without results.
    #[error("{} is no folder of results: `run -o` and `compare -o` write what is drawn here; the charts of sweep, plan and budget are drawn by those commands", .0.display())]
    NoResults(PathBuf),
    /// A plan that can't be made.
    #[error("{0}")]
    Plan(String),
    /// A question without an answer.
    #[error("{0}")]
    Solve(String),
    /// A metric that can't be compared.
    #[error("there is no metric `{name}`{}", crate::stats::or_list(.nearest.as_deref()))]
    UnknownMetric {
        /// What was asked for.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// A threshold that can't be read, or told of the scenario.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
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
            Error::Scenario(_)
            | Error::UnknownModel(_)
            | Error::Exists(_)
            | Error::Read { .. }
            | Error::Import(_)
            | Error::Unpaired(..)
            | Error::TooManyToCompare(_)
            | Error::NothingToCompare(_)
            | Error::NothingToSweep(_)
            | Error::Sweep(_)
            | Error::Solve(_)
            | Error::Plan(_)
            | Error::NoResults(_)
            | Error::NoFolder(_)
            | Error::NotOfFleets(_)
            | Error::Budget(_)
            | Error::Reserve(_)
            | Error::UnknownMetric { .. }
            | Error::Threshold(_) => 2,
            _ => 1,
        }
    }
}
