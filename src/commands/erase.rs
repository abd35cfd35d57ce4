//! `pageledger erase`: one session or owner is forgotten, for good.
//!
//! The only command that changes a data directory. The log's lock keeps it from one that a server uses.
//! What it says names the subject, what it records does not.

use std::io::Write;

use serde_json::json;
use storage::event::Clean;
use storage::time::rfc3339;
use storage::upkeep::{self, Erased, Erasure, Subject};

use super::{CommandError, EXIT_NOTHING_THERE, EXIT_USAGE, audit, open_log};
use crate::config::EraseOrder;
use crate::redact::Redactor;

/// Erases and tells what was done.
pub fn erase(order: &EraseOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    let data_dir = &order.config.data_dir;
    if order.reason.trim().is_empty() {
        return Err(CommandError::new(EXIT_USAGE, "an erasure needs a reason"));
    }
    // Opening for writing would make a log where there is none.
    drop(open_log(data_dir)?);
    let redactor = Redactor::new();
    let erasure = Erasure { subject: order.subject.clone(), by: by(&redactor), note: redactor.text(&order.reason) };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (log, auditor) = audit::open(data_dir)?;
    let erased = upkeep::erase(data_dir, &log, &erasure)?;
    runtime.block_on(audit::close(&log, &auditor))?;
    let name = match &order.subject {
        Subject::Session(session) => format!("session {session}"),
        Subject::Owner(owner) => format!("owner {owner}"),
    };
    if erased.events == 0 {
        return Err(CommandError::new(EXIT_NOTHING_THERE, nothing(&name, &erased)));
    }
    if order.json {
        writeln!(out, "{}", as_json(&erased))?;
    } else {
        tell(&name, &erased, out)?;
    }
    Ok(())
}

/// The system's user, by number and, where there is one, by name.
fn by(redactor: &Redactor) -> Clean {
    let number = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(number)).then_some(name)
    });
    redactor.text(&format!("{} (uid {number})", named.unwrap_or("unnamed")))
}

fn nothing(name: &str, erased: &Erased) -> String {
    match erased.earlier.last() {
        Some((at, _)) => {
            let events: u64 = erased.earlier.iter().map(|(_, events)| events).sum();
            format!(
                "nothing of {name} is on record; {events} events of it were erased before, the last at {}",
                rfc3339(*at)
            )
        }
        None => {
            format!("nothing of {name} is on record; pageledger tail --kind session.opened shows whole ids and owners")
        }
    }
}

fn tell(name: &str, erased: &Erased, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "{name} is erased: {} events in {} segments, {} artifacts of {} bytes, {} files",
        erased.events, erased.segments, erased.artifacts, erased.artifact_bytes, erased.files
    )?;
    writeln!(out, "The index is made again when the server starts.")?;
    writeln!(
        out,
        "Out of reach: copies and exports made elsewhere, and what browsers wrote to files of theirs that are"
    )?;
    writeln!(out, "removed since and may lie in the disk's free space.")?;
    for path in &erased.paths {
        writeln!(out, "Out of reach: {path}, which a call was asked to write")?;
    }
    for path in &erased.beside {
        writeln!(out, "Left alone: {path}, which may tell of others too; remove it by hand if it must go")?;
    }
    Ok(())
}

fn as_json(erased: &Erased) -> serde_json::Value {
    json!({
        "events": erased.events,
        "segments": erased.segments,
        "artifacts": erased.artifacts,
        "artifact_bytes": erased.artifact_bytes,
        "files": erased.files,
        "out_of_reach": erased.paths,
        "left_alone": erased.beside,
    })
}
