//! The command lines of `verify` and `audit`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches};

use super::{AuditOrder, AuditQuestion, VerifyOrder};

/// `verify`, without the options that every command has.
pub fn verify_command() -> clap::Command {
    clap::Command::new("verify")
        .about("Check that no event was changed, removed or added; works beside a running server")
        .arg(Arg::new("directory").value_name("DIR").help("Data directory to verify [default: that of --data-dir]"))
        .arg(Arg::new("from").long("from").value_name("CHECKPOINT").action(ArgAction::Append).help(
            "A checkpoint kept elsewhere, or a file of such lines: finds a log that was rolled back or made anew",
        ))
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("PUBLIC-KEY")
                .help("The public key kept elsewhere, or a file that holds it: finds a log that was signed by another"),
        )
        .arg(
            Arg::new("no-artifacts")
                .long("no-artifacts")
                .action(ArgAction::SetTrue)
                .help("Leave out what is kept beside the log: bodies, screenshots, downloads"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object"))
}

/// `audit`, each of whose commands gets the options that every command has.
pub fn audit_command(with_options: &dyn Fn(clap::Command) -> clap::Command) -> clap::Command {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON, one object a line");
    let rotate = Arg::new("rotate")
        .long("rotate")
        .action(ArgAction::SetTrue)
        .help("Make a new key, vouched for by the old one, and destroy the old one; the server must be stopped");
    let key = clap::Command::new("key").about("Show the public key that checkpoints are signed with").arg(rotate);
    let checkpoints = clap::Command::new("checkpoints").about("List what was signed");
    let checkpoint = clap::Command::new("checkpoint").about("Print the newest checkpoint: one line to keep elsewhere");
    clap::Command::new("audit")
        .about("Show or change the signing key, or show checkpoints")
        .subcommand_required(true)
        .subcommand(with_options(key.arg(json())))
        .subcommand(with_options(checkpoints.arg(json())))
        .subcommand(with_options(checkpoint))
}

pub fn verify(given: &ArgMatches, data_dir: PathBuf) -> VerifyOrder {
    VerifyOrder {
        data_dir,
        from: given.get_many::<String>("from").unwrap_or_default().cloned().collect(),
        key: given.get_one::<String>("key").cloned(),
        artifacts: !given.get_flag("no-artifacts"),
        json: given.get_flag("json"),
    }
}

/// `given` is what was asked of `audit` under that name.
pub fn audit(name: &str, given: &ArgMatches, data_dir: PathBuf) -> AuditOrder {
    let switch = |name: &str| given.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false);
    let question = match name {
        "checkpoints" => AuditQuestion::Checkpoints,
        "checkpoint" => AuditQuestion::Checkpoint,
        _ if switch("rotate") => AuditQuestion::RotateKey,
        _ => AuditQuestion::Key,
    };
    AuditOrder { data_dir, question, json: switch("json") }
}
