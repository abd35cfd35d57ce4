//! `pageledger export` as it is typed: whose events, which of them, in which form, and where to.

use std::path::PathBuf;

use clap::ArgMatches;
use exporters::{Address, Format};
use storage::ids::Owner;
use storage::query::CompiledFilter;

use super::arguments::{text, word};
use super::selecting::{self, Chosen};
use super::{Config, ExportOrder, ExportScope};

pub(super) fn command() -> clap::Command {
    let command = clap::Command::new("export")
        .about("Write events to a file or an object, with a manifest beside it; works beside a running server")
        .arg(text("session", "SESSION", "Only this session, by its id or the name it was launched under"))
        .arg(text("owner", "OWNER", "Only this owner, with all sessions").conflicts_with("session"))
        .arg(text("format", "FORMAT", "Form of the file").value_parser(Format::WORDS).default_value("parquet"))
        .arg(text("out", "FILE", "File or s3:// URL to write; replaced only when the export is whole").required(true));
    selecting::arguments(command)
}

/// What was asked for, without the options.
pub(super) struct Asked {
    scope: ExportScope,
    first_seq: u64,
    last_seq: u64,
    filter: CompiledFilter,
    format: Format,
    out: Address,
    json: bool,
}

impl Asked {
    pub fn order(self, config: Config) -> ExportOrder {
        let Self { scope, first_seq, last_seq, filter, format, out, json } = self;
        ExportOrder { config, scope, first_seq, last_seq, filter, format, out, json }
    }
}

/// # Errors
/// Every problem.
pub(super) fn read(given: &ArgMatches) -> Result<Asked, Vec<String>> {
    let mut problems = Vec::new();
    let chosen = selecting::read(given, &mut problems);
    let out = word(given, "out").unwrap_or_default();
    let out = Address::parse(out).unwrap_or_else(|error| {
        problems.push(format!("flag --out: {out:?} {error}"));
        Address::File(PathBuf::new())
    });
    let scope = match (word(given, "session"), word(given, "owner")) {
        (Some(session), _) => ExportScope::Session(session.to_owned()),
        (None, Some(owner)) => ExportScope::Owner(Owner::from(owner)),
        (None, None) => ExportScope::Everything,
    };
    let format = word(given, "format").and_then(Format::parse).unwrap_or(Format::Parquet);
    match chosen {
        Some(Chosen { filter, first_seq, last_seq }) if problems.is_empty() => {
            Ok(Asked { scope, first_seq, last_seq, filter, format, out, json: given.get_flag("json") })
        }
        _ => Err(problems),
    }
}
