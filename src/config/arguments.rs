//! The command line: what was typed, checked for form only. Values are checked with those of the
//! other sources in `resolve`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches};
use storage::upkeep::Subject;

use super::options::{Kind, OPTIONS, OptionFacts, Reach};
use super::resolve::{Flags, resolve};
use super::selecting::{self, Chosen};
use super::{Command, Config, ConfigError, Environment, EraseOrder, TailOrder, auditing, exporting};
use crate::limits::TAIL_LINES_MAX;

/// What the program was asked to do. `arguments` begin with the program's own name.
///
/// # Errors
/// Every problem found on the command line, in the environment and in the file.
pub fn parse(arguments: Vec<OsString>, environment: &Environment) -> Result<Command, ConfigError> {
    let matches = match command_line().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Command::Print(error.render().to_string()));
        }
        Err(error) => {
            let text = error.render().to_string();
            return Err(ConfigError { problems: vec![text.trim_start_matches("error: ").trim_end().to_owned()] });
        }
    };
    match matches.subcommand() {
        None => Ok(Command::Serve(config(&matches, environment)?)),
        Some(("export", given)) => match (exporting::read(given), config(given, environment)) {
            (Ok(asked), Ok(config)) => Ok(Command::Export(asked.order(config))),
            (asked, config) => Err(ConfigError {
                problems: asked
                    .err()
                    .into_iter()
                    .flatten()
                    .chain(config.err().map(|e| e.problems).into_iter().flatten())
                    .collect(),
            }),
        },
        Some(("tail", given)) => tail(given, environment),
        Some(("erase", given)) => erase(given, environment),
        // Where the directory is named nothing else is needed: an auditor has no configuration.
        Some(("verify", given)) => {
            let data_dir = match word(given, DIRECTORY).or(word(given, "data_dir")) {
                Some(directory) => directory.into(),
                None => config(given, environment)?.data_dir,
            };
            Ok(Command::Verify(auditing::verify(given, data_dir)))
        }
        Some(("audit", given)) => {
            let (name, given) = given.subcommand().unwrap_or(("key", given));
            Ok(Command::Audit(auditing::audit(name, given, config(given, environment)?.data_dir)))
        }
        Some(("tools", given)) => {
            Ok(Command::Tools { config: config(given, environment)?, json: given.get_flag("json") })
        }
        Some(("doctor", given)) => Ok(Command::Doctor(config(given, environment)?)),
        Some(("config", given)) => {
            let given = given.subcommand_matches("show").unwrap_or(given);
            Ok(Command::ShowConfig { config: config(given, environment)?, json: given.get_flag("json") })
        }
        Some((_, given)) => Ok(Command::Serve(config(given, environment)?)),
    }
}

fn command_line() -> clap::Command {
    let json = || switch("json", "Print JSON, one object a line");
    let show = with_options(clap::Command::new("show"), Reach::Serving).arg(json());
    let config = with_options(clap::Command::new("config"), Reach::Serving).arg(json());
    with_options(clap::Command::new("pageledger"), Reach::Serving)
        .version(env!("CARGO_PKG_VERSION"))
        .about("A browser gateway for AI agents that keeps the books: real Chromium over MCP, every event in a durable log.\nWithout a command it serves MCP over stdio.")
        .after_help(AFTER_HELP)
        .args_conflicts_with_subcommands(true)
        .subcommand(with_options(clap::Command::new("serve"), Reach::Serving).about("Serve MCP over stdio, or over HTTP with --http"))
        .subcommand(with_options(exporting::command(), Reach::Every).arg(json()))
        .subcommand(tail_command().arg(json()))
        .subcommand(erase_command().arg(json()))
        .subcommand(with_options(auditing::verify_command(), Reach::Every))
        .subcommand(auditing::audit_command(&|command| with_options(command, Reach::Every)))
        .subcommand(
            config
                .about("Show every option, its value and where it came from")
                .args_conflicts_with_subcommands(true)
                .subcommand(show.about("Show every option, its value and where it came from")),
        )
        .subcommand(tools_command().arg(json()))
        .subcommand(
            with_options(clap::Command::new("doctor"), Reach::Serving)
                .about("Check that Chromium is there and that the data directory is sound"),
        )
}

/// The place of the data directory on the command line.
const DIRECTORY: &str = "directory";

const AFTER_HELP: &str = "Each option can also be set as an environment variable (BROWSER_MCP_ and the \
option's name, for example BROWSER_MCP_DATA_DIR) or in the TOML file (data_dir = \"...\").\n\
A flag goes before the environment, the environment before the file, the file before the default.\n\
Exit codes: 0 done, 64 wrong options, 65 damaged data, 66 nothing of that name, 69 not available, 74 input or output failed, 75 in use.";

fn tools_command() -> clap::Command {
    let markdown = switch("markdown", "Print Markdown: the default").conflicts_with("json");
    let command = clap::Command::new("tools").about("Print the reference of the tools that would be offered");
    with_options(command, Reach::Serving).arg(markdown)
}

fn tail_command() -> clap::Command {
    let command = clap::Command::new("tail")
        .about("Print events, oldest first; works beside a running server")
        .arg(text("session", "SESSION", "Only events of this session"))
        .arg(
            text("lines", "COUNT", "Only the last of what is there")
                .value_parser(clap::value_parser!(u64).range(1..=TAIL_LINES_MAX as u64)),
        )
        .arg(switch("follow", "Go on with events as they come"));
    with_options(selecting::arguments(command), Reach::Every)
}

fn erase_command() -> clap::Command {
    let command = clap::Command::new("erase")
        .about("Erase every event and artifact of one session or owner for good; the server must be stopped")
        .arg(data_directory())
        .arg(text("session", "SESSION", "Session to erase, by its id"))
        .arg(text("owner", "OWNER", "Owner to erase, with all sessions and calls"))
        .group(clap::ArgGroup::new("subject").args(["session", "owner"]).required(true))
        .arg(text("reason", "TEXT", "Why, for the record").required(true));
    with_options(command, Reach::Every)
}

fn erase(given: &ArgMatches, environment: &Environment) -> Result<Command, ConfigError> {
    let subject = match (word(given, "session"), word(given, "owner")) {
        (Some(session), _) => Subject::Session(session.into()),
        (None, owner) => Subject::Owner(owner.unwrap_or_default().into()),
    };
    let reason = word(given, "reason").unwrap_or_default().to_owned();
    Ok(Command::Erase(EraseOrder {
        config: config(given, environment)?,
        subject,
        reason,
        json: given.get_flag("json"),
    }))
}

fn tail(given: &ArgMatches, environment: &Environment) -> Result<Command, ConfigError> {
    let mut problems = Vec::new();
    let chosen = selecting::read(given, &mut problems);
    let config = config(given, environment).map_err(|error| problems.extend(error.problems));
    match (config, chosen) {
        (Ok(config), Some(Chosen { filter, first_seq, last_seq })) if problems.is_empty() => {
            Ok(Command::Tail(TailOrder {
                config,
                session: word(given, "session").map(str::to_owned),
                filter,
                first_seq,
                last_seq,
                lines: given.get_one::<u64>("lines").and_then(|lines| usize::try_from(*lines).ok()),
                follow: given.get_flag("follow"),
                json: given.get_flag("json"),
            }))
        }
        _ => Err(ConfigError { problems }),
    }
}

fn config(given: &ArgMatches, environment: &Environment) -> Result<Config, ConfigError> {
    // Commands that only read or mend do not know the options that are about serving.
    let said = |row: &OptionFacts| given.try_get_one::<String>(row.key).ok().flatten().cloned();
    let mut values: BTreeMap<_, _> = OPTIONS.iter().filter_map(|row| Some((row.key, said(row)?))).collect();
    if let Ok(Some(directory)) = given.try_get_one::<String>(DIRECTORY) {
        values.insert("data_dir", directory.clone());
    }
    resolve(&Flags { values, config: word(given, "config").map(str::to_owned) }, environment)
}

fn with_options(command: clap::Command, reach: Reach) -> clap::Command {
    let rows = OPTIONS.iter().filter(|row| reach == Reach::Serving || row.reach == Reach::Every);
    let command = command.arg(text(
        "config",
        "FILE",
        "TOML file with options [default: pageledger/config.toml in the platform's configuration directory]",
    ));
    rows.fold(command, |command, row| command.arg(option(row)))
}

fn option(row: &OptionFacts) -> Arg {
    let value_name = match row.kind {
        Kind::Address => "ADDRESS:PORT",
        Kind::Path => "PATH",
        Kind::Prefix => "URL",
        Kind::Count { .. } => "N",
        Kind::Bytes { .. } => "BYTES",
        Kind::Seconds { .. } => "SECONDS",
        Kind::Days { .. } => "DAYS",
        Kind::Switch => "BOOL",
        Kind::Word(_) => "WORD",
        Kind::Words(_) => "WORD,...",
        Kind::Blocklist => "RULE,...",
        Kind::Durability { .. } => "commit|interval=MS",
    };
    let values = if let Kind::Word(words) | Kind::Words(words) = row.kind {
        format!(" ({})", words.join(", "))
    } else {
        String::new()
    };
    let help = format!("{}{values} [default: {}]", row.text, row.default_text());
    let argument = Arg::new(row.key).long(row.flag).value_name(value_name).help(help);
    match row.kind {
        Kind::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => argument,
    }
}

/// The data directory, for commands that are about one.
fn data_directory() -> Arg {
    Arg::new(DIRECTORY).value_name("DIR").help("Data directory, as --data-dir names it").conflicts_with("data_dir")
}

pub(super) fn text(name: &'static str, value_name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value_name).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

pub(super) fn word<'a>(given: &'a ArgMatches, name: &str) -> Option<&'a str> {
    given.get_one::<String>(name).map(String::as_str)
}
