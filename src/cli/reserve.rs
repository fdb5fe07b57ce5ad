//! `agent-sim reserve`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::PriceSource;
use super::output::{in_width, print};
use crate::Error;
use crate::budget::Prices;
use crate::price::PicoUsd;
use crate::report::{self, ReserveAnswer};
use crate::scenario::duration_s;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReserveFormat {
    /// For a person
    Terminal,
    /// JSON, and nothing else on standard output
    Json,
}

/// Say whether a model call fits what is left of a budget, at the most that it can cost
///
/// The worst case is that every token of the prompt is written to the cache, at the price tier that the prompt hits, and
/// that all of the output is used. Exit code 0 where it fits, 3 where it doesn't.
#[derive(Debug, Args)]
pub(super) struct Reserve {
    /// A model of the price sheet, such as claude-sonnet-4-6
    #[arg(long, value_name = "NAME")]
    model: String,
    /// Tokens of the prompt
    #[arg(long, value_name = "N")]
    prompt_tokens: u64,
    /// The most tokens that the call may write
    #[arg(long, value_name = "N")]
    max_output: u64,
    /// The budget, $
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    budget: f64,
    /// What of it is spent, $
    #[arg(long, value_name = "DOLLARS", default_value_t = 0.0, allow_negative_numbers = true)]
    spent: f64,
    /// How long the cache lives that the call writes: "off", 5m, 1h (the shortest that the model offers)
    #[arg(long, value_name = "DURATION")]
    lifetime: Option<String>,
    #[command(flatten)]
    source: PriceSource,
    /// What to print
    #[arg(long, value_enum, default_value_t = ReserveFormat::Terminal)]
    format: ReserveFormat,
}

impl Reserve {
    pub fn run(self) -> Result<ExitCode, Error> {
        let wrong = |why: String| Error::Reserve(why);
        let dollars = |name: &str, usd: f64| {
            PicoUsd::from_usd(usd).map_err(|_| wrong(format!("--{name} {usd}: it must be from 0 to a million dollars")))
        };
        let (budget, spent) = (dollars("budget", self.budget)?, dollars("spent", self.spent)?);
        let sheet = self.source.sheet()?;
        let row = sheet.find(&self.model, self.source.as_of)?;
        let lifetime_s = match self.lifetime.as_deref() {
            Some("off") => None,
            Some(text) => {
                let seconds = duration_s(text).filter(|s| *s > 0.0 && s.fract() == 0.0);
                let seconds = seconds.ok_or_else(|| wrong(format!("--lifetime {text}: say \"off\", 5m or 1h")))?;
                Some(seconds as u64)
            }
            None => row.writes.by_seconds.keys().next().copied().or(row.writes.any.map(|_| 300)),
        };
        let prices =
            Prices::of(&sheet, &self.model, lifetime_s, self.source.as_of).map_err(|e| wrong(e.to_string()))?;
        let call = prices.call(self.prompt_tokens, self.max_output).map_err(|e| wrong(e.to_string()))?;
        let left = PicoUsd((budget.0 - spent.0).max(0));
        let answer = ReserveAnswer {
            model: format!("{}/{}", row.provider, row.model),
            lifetime_s,
            fits: call.worst_case() <= left,
            worst_case: call.worst_case(),
            left,
            largest_prompt_tokens: prices.largest_prompt(left, self.max_output),
            largest_max_output: prices.largest_output(left, self.prompt_tokens),
        };
        print(&match self.format {
            ReserveFormat::Terminal => in_width(|style| report::reserve_terminal(&answer, &sheet, style)),
            ReserveFormat::Json => report::reserve_json(&answer, &sheet).map_err(|e| Error::Output(e.into()))?,
        })?;
        Ok(if answer.fits { ExitCode::SUCCESS } else { ExitCode::from(3) })
    }
}
