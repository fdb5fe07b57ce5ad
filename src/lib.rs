//! What will your LLM agents cost, and how long will they take? Before you run them.
//!
//! A scenario describes one kind of agent session: its prompt, turns, tools, retries and cache. agent-sim plays many such
//! sessions turn by turn, answers in dollars and seconds, each figure with its 95 % interval, and holds its own figures
//! against closed forms.
//!
//! # Three steps
//!
//! **Describe** a session, in a file or a text ([`scenario`]). Mistakes come all at once, each with its line.
//!
//! ```
//! use agent_sim::scenario::{Request, Scenario};
//!
//! let text = r#"
//!     [price] # $ per million tokens
//!     input = 3.00
//!     output = 15.00
//!     cache_read = 0.30
//!     cache_write_5m = 3.75
//!
//!     [prompt]
//!     system = 5_000
//!
//!     [session]
//!     turns = 50
//!     output = 300
//!
//!     [[tools]]
//!     name = "search"
//!     result = 700
//!     latency = { exponential = { mean = "2s" } }
//!
//!     [cache]
//!     lifetime = "5m"
//! "#;
//! let sets = ["run.sessions=2000".to_owned()];
//! let scenario = Scenario::parse(text, "fifty.toml", "".as_ref(), &Request { sets: &sets, ..Request::default() })?;
//!
//! // **Play** it ([`simulate`](mod@simulate)). The same seed gives the same answer, to the last bit, on any number of threads.
//! use agent_sim::simulate::{Options, Silent, simulate};
//! let answer = simulate(scenario, Options::default(), &Silent)?;
//!
//! // **Read** the answer: figures with intervals ([`stats`]), and the closed forms beside them ([`check`]).
//! let input = answer.summary.metric("cost_input_usd").ok_or("no prices")?;
//! assert!((input.mean.value - 0.6288).abs() < 1e-12);
//! let latency = answer.summary.metric("latency_s").ok_or("nothing takes time")?;
//! assert!(latency.mean.ci95[0] < 98.0 && 98.0 < latency.mean.ci95[1]);
//! assert!(answer.checks.all_pass());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The rooms
//!
//! [`budget`] a budget that can't be overspent, for a live agent · [`dist`] laws of random amounts · [`price`] money and the dated price sheet · [`model`] a scenario in plain numbers ·
//! [`session`] the rules of one session · [`engine`] sessions on all cores · [`stats`] estimates and intervals ·
//! [`theory`] closed forms · [`check`](mod@check) theory against simulation · [`scenario`] the file format ·
//! [`table`] results as Parquet and CSV · [`report`] terminal, JSON, markdown · [`chart`] SVG and PNG · [`cli`] the commands. `ARCHITECTURE.md` has the map.

pub mod budget;
pub mod chart;
pub mod check;
pub mod cli;
pub mod dist;
pub mod engine;
mod error;
#[cfg(feature = "frames")]
pub mod frames;
pub mod model;
pub mod price;
pub mod report;
pub mod scenario;
pub mod session;
pub mod simulate;
pub mod stats;
pub mod table;
pub mod theory;

pub use error::Error;
