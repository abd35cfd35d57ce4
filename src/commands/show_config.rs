//! `pageledger config show`: every option, its value, and where it came from.

use std::io::Write;

use serde_json::json;

use super::CommandError;
use crate::config::Config;

/// One option a line, in the table's order.
pub fn show(config: &Config, as_json: bool, out: &mut dyn Write) -> Result<(), CommandError> {
    let width = config.shown.iter().map(|shown| shown.key.len()).max().unwrap_or_default();
    for shown in &config.shown {
        if as_json {
            writeln!(out, "{}", json!({ "key": shown.key, "value": shown.value, "source": shown.source }))?;
        } else {
            let value = shown.value.as_deref().unwrap_or("none");
            writeln!(out, "{:width$} = {value}  ({})", shown.key, shown.source)?;
        }
    }
    Ok(())
}
