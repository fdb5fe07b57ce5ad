//! `agent-sim prices`.

use std::process::ExitCode;

use clap::Args;

use super::output::print;
use crate::Error;
use crate::price::Sheet;
use crate::report::{Style, price_details, price_table};

/// Show the price sheet, or one model's prices with their source
#[derive(Debug, Args)]
pub(super) struct Prices {
    /// A model, such as claude-sonnet-4-6 or anthropic/claude-sonnet-4-6
    model: Option<String>,
}

impl Prices {
    pub fn run(self) -> Result<ExitCode, Error> {
        let sheet = Sheet::embedded();
        print(&match self.model {
            None => price_table(sheet, Style::Colour),
            Some(name) => price_details(sheet, sheet.find(&name, None)?, Style::Colour),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
