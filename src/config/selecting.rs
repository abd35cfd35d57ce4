//! Which events a command is about, as it is typed: `export` and `tail` choose alike.

use clap::{Arg, ArgAction, ArgMatches};
use storage::event::{Kind, Level};
use storage::query::{CompiledFilter, EventFilter};
use storage::time::parse_rfc3339;

use super::arguments::{text, word};

pub(super) fn arguments(command: clap::Command) -> clap::Command {
    command
        .arg(kinds())
        .arg(text("level", "LEVEL", "Only this level and above").value_parser(["debug", "info", "warning", "error"]))
        .arg(text("text-filter", "REGEX", "Only events whose text matches"))
        .arg(text("url-filter", "REGEX", "Only events whose address matches"))
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

/// What was chosen.
pub(super) struct Chosen {
    pub filter: CompiledFilter,
    pub first_seq: u64,
    pub last_seq: u64,
}

/// `None` when there are problems, which are added to `problems`.
pub(super) fn read(given: &ArgMatches, problems: &mut Vec<String>) -> Option<Chosen> {
    let filter = filter(given, problems);
    let seq = |name: &str| given.get_one::<u64>(name).copied();
    let (first_seq, last_seq) = (seq("first-seq").unwrap_or(1), seq("last-seq").unwrap_or(u64::MAX));
    if first_seq > last_seq {
        problems.push("flag --first-seq: is greater than --last-seq".to_owned());
    }
    let compiled = filter.compile().map_err(|error| {
        let flag =
            if matches!(error.field, "text" | "url") { format!("{}-filter", error.field) } else { error.field.into() };
        problems.push(format!("flag --{flag}: {}", error.reason));
    });
    compiled.ok().map(|filter| Chosen { filter, first_seq, last_seq })
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
        text: word(given, "text-filter").map(str::to_owned),
        url: word(given, "url-filter").map(str::to_owned),
        page_id: word(given, "page").map(Into::into),
        operation_id: word(given, "operation").map(Into::into),
        request_id: word(given, "request").map(Into::into),
        since_micros,
        until_micros,
        ..EventFilter::default()
    }
}
