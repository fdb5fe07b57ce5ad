//! `agent-sim prices`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::output::{in_width, print};
use super::{PriceSource, import};
use crate::Error;
use crate::price::Sheet;
use crate::report::{price_changes, price_details, price_table};

const OWN_TABLE: &str = "\
A table of your own has a header and tab-separated rows, $ per million tokens:
  provider, model, input, output           have to be there
  read, write_5m, write_30m, write_1h,     where they are known
  write_12h, write_any, storage_hour
  from                                     the first day of these prices
  tier_over, tier_input, tier_output,      for long prompts
  tier_read, tier_write_5m, ...
  min_cacheable_tokens, hit_granularity_tokens, context_tokens, max_output_tokens,
  source, source_date, notes";

/// Show the price sheet, or one model's prices with their source
#[derive(Debug, Args)]
#[command(after_help = OWN_TABLE)]
pub(super) struct Prices {
    /// A model, such as claude-sonnet-4-6 or anthropic/claude-sonnet-4-6
    model: Option<String>,
    #[command(flatten)]
    source: PriceSource,
    /// Show what another table says differently than the built-in sheet
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "prices"])]
    import: Option<PathBuf>,
}

impl Prices {
    pub fn run(self) -> Result<ExitCode, Error> {
        let as_of = self.source.as_of;
        if let Some(path) = &self.import {
            let imported = import(path)?;
            print(&in_width(|style| price_changes(&imported, Sheet::embedded(), as_of, style)))?;
            return Ok(ExitCode::SUCCESS);
        }
        let sheet = self.source.sheet()?;
        print(&match self.model {
            None => in_width(|style| price_table(&sheet, as_of, style)),
            Some(name) => {
                let row = sheet.find(&name, as_of)?;
                in_width(|style| price_details(&sheet, row, as_of, style))
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
