//! `pageledger tools`: the reference of the tools that would be offered.

use std::io::Write;

use super::CommandError;
use crate::config::Config;
use crate::docs::reference;
use crate::tools::offer::Offer;

/// Markdown, or one JSON object a line.
pub fn tools(config: &Config, as_json: bool, out: &mut dyn Write) -> Result<(), CommandError> {
    if !as_json {
        writeln!(out, "# Tools\n")?;
    }
    for tool in Offer::of(config).tools() {
        if as_json {
            writeln!(out, "{}", reference::data(tool))?;
        } else {
            writeln!(out, "{}", reference::markdown(tool))?;
        }
    }
    Ok(())
}
