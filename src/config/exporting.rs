//! `pageledger export` as it is typed: whose events, which of them, in which form, and where to.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches};
use exporters::{Address, Format};
use storage::event::{Kind, Level};
use storage::ids::Owner;
use storage::query::{CompiledFilter, EventFilter};
use storage::time::parse_rfc3339;

use super::arguments::{text, word};
use super::{Config, ExportOrder, ExportScope};

pub(super) fn command() -> clap::Command {
    clap::Command::new("export")
        .about("Write events to a file or an object, with a manifest beside it; works beside a running server")
        .arg(text("session", "SESSION", "Only this session, by its id or the name it was launched under"))
        .arg(text("owner", "OWNER", "Only this owner, with all sessions").conflicts_with("session"))
        .arg(text("format", "FORMAT", "Form of the file").value_parser(Format::WORDS).default_value("parquet"))
        .arg(text("out", "FILE", "File or s3:// URL to write; replaced only when the export is whole").required(true))
        .arg(kinds())
        .arg(text("level", "LEVEL", "Only this level and above").value_parser(["debug", "info", "warning", "error"]))
        .arg(text("text", "REGEX", "Only events whose text matches"))
        .arg(text("url", "REGEX", "Only events whose address matches"))
        .arg(text("page", "PAGE", "Only this page"))
        .arg(text("operation", "ID", "Only what happened during this call"))
        .arg(text("request", "ID", "Only this network request"))
        .arg(text("since", "TIME", "Only from this RFC 3339 time on"))
        .arg(text("until", "TIME", "Only up to this RFC 3339 time"))
        .arg(number("first-seq", "Only from this sequence number on"))
        .arg(number("last-seq", "Only up to this sequence number"))
}

fn kinds() -> Arg {
    text("kind", "KIND", "Only this kind, for example network.failed or console.*; may be repeated")
        .action(ArgAction::Append)
}

fn number(name: &'static str, help: &'static str) -> Arg {
    text(name, "SEQ", help).value_parser(clap::value_parser!(u64))
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
    let filter = filter(given, &mut problems);
    let out = word(given, "out").unwrap_or_default();
    let out = Address::parse(out).unwrap_or_else(|error| {
        problems.push(format!("flag --out: {out:?} {error}"));
        Address::File(PathBuf::new())
    });
    let seq = |name: &str| given.get_one::<u64>(name).copied();
    let (first_seq, last_seq) = (seq("first-seq").unwrap_or(1), seq("last-seq").unwrap_or(u64::MAX));
    if first_seq > last_seq {
        problems.push("flag --first-seq: is greater than --last-seq".to_owned());
    }
    let compiled = filter.compile().map_err(|error| problems.push(format!("flag --{}: {}", error.field, error.reason)));
    let scope = match (word(given, "session"), word(given, "owner")) {
        (Some(session), _) => ExportScope::Session(session.to_owned()),
        (None, Some(owner)) => ExportScope::Owner(Owner::from(owner)),
        (None, None) => ExportScope::Everything,
    };
    let format = word(given, "format").and_then(Format::parse).unwrap_or(Format::Parquet);
    match compiled {
        Ok(filter) if problems.is_empty() => {
            Ok(Asked { scope, first_seq, last_seq, filter, format, out, json: given.get_flag("json") })
        }
        _ => Err(problems),
    }
}

fn filter(given: &ArgMatches, problems: &mut Vec<String>) -> EventFilter {
    let mut kinds = Vec::new();
    for name in given.get_many::<String>("kind").unwrap_or_default() {
        let found = Kind::named(name);
        if found.is_empty() {
            problems.push(format!("flag --kind: no kind of event is called {name:?}"));
        }
        kinds.extend(found);
    }
    let mut moment = |name: &str| {
        let text = word(given, name)?;
        let micros = parse_rfc3339(text);
        if micros.is_none() {
            problems.push(format!("flag --{name}: must be an RFC 3339 time like 2026-01-31T12:00:00Z, not {text:?}"));
        }
        micros
    };
    let (since_micros, until_micros) = (moment("since"), moment("until"));
    EventFilter {
        kinds: (!kinds.is_empty()).then_some(kinds),
        level: word(given, "level").and_then(Level::parse),
        text: word(given, "text").map(str::to_owned),
        url: word(given, "url").map(str::to_owned),
        page_id: word(given, "page").map(Into::into),
        operation_id: word(given, "operation").map(Into::into),
        request_id: word(given, "request").map(Into::into),
        since_micros,
        until_micros,
        ..EventFilter::default()
    }
}
