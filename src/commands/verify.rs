//! `pageledger verify`: is history as it was recorded? Needs only the files, changes none of them, and
//! works beside a running server.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use storage::audit::verify::{Finding, Problem, Progress, Report, VerifyOptions, verify as verify_directory};
use storage::audit::{PublicKey, RawLines, SignedLine, read_public_key_of};
use storage::time::rfc3339;

use super::progress::ProgressLine;
use super::{CommandError, EXIT_DAMAGED, EXIT_NOTHING_THERE, EXIT_USAGE, is_there};
use crate::config::VerifyOrder;

/// Prints what was found; fails with [`EXIT_DAMAGED`] when anything was.
pub fn verify(order: &VerifyOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    let directory = &order.data_dir;
    if !is_there(&directory.join("log"))? {
        return Err(CommandError::new(EXIT_NOTHING_THERE, format!("there is no log in {}", directory.display())));
    }
    let mut options = VerifyOptions::new(directory);
    options.artifacts = order.artifacts;
    options.key = order.key.as_deref().map(public_key).transpose()?;
    for text in &order.from {
        options.saved.extend(saved(text)?);
    }
    let mut shown = ProgressLine::new();
    let report = verify_directory(&options, &mut |Progress { bytes, bytes_total, .. }| {
        shown.show(&|| format!("{:3} % of {}", bytes * 100 / bytes_total.max(1), megabytes(bytes_total)));
    })?;
    shown.clear();
    if order.json {
        writeln!(out, "{}", as_json(&report))?;
    } else {
        describe(&report, directory, out)?;
    }
    if report.is_sound() {
        return Ok(());
    }
    let first = report.first_bad().map_or_else(String::new, |finding| {
        let (from, to) = (finding.first_seq, finding.last_seq);
        let exact = if finding.exact || from == to { format!("is {from}") } else { format!("lies in {from} to {to}") };
        format!("; the first event concerned {exact}")
    });
    let count = report.findings.len() as u64 + report.findings_left_out;
    Err(CommandError::new(EXIT_DAMAGED, format!("{} does not verify: {count} findings{first}", directory.display())))
}

fn public_key(text: &str) -> Result<PublicKey, CommandError> {
    if let Some(key) = PublicKey::parse(text) {
        return Ok(key);
    }
    let wrong = |error: String| {
        CommandError::new(EXIT_USAGE, format!("--key is neither a public key nor a file with one: {error}"))
    };
    let file = File::open(text).map_err(|error| wrong(error.to_string()))?;
    read_public_key_of(file, Path::new(text)).map_err(|error| wrong(error.to_string()))
}

/// One checkpoint, or the lines of a file.
fn saved(text: &str) -> Result<Vec<SignedLine>, CommandError> {
    if let Ok(line) = SignedLine::read(text.trim()) {
        return Ok(vec![line]);
    }
    let wrong = |why: String| {
        CommandError::new(EXIT_USAGE, format!("--from is neither a checkpoint nor a file of them: {why}"))
    };
    let lines = RawLines::of(File::open(text).map_err(|error| wrong(error.to_string()))?);
    let mut found = Vec::new();
    for line in lines {
        let line = line?;
        if line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let text = std::str::from_utf8(&line.bytes).unwrap_or_default().trim();
        found.push(SignedLine::read(text).map_err(|what| wrong(format!("line {}: {what}", line.number)))?);
    }
    if found.is_empty() { Err(wrong("it is empty".into())) } else { Ok(found) }
}

fn describe(report: &Report, directory: &Path, out: &mut dyn Write) -> Result<(), CommandError> {
    let rate = |bytes: u64| format!("{:.0} MB/s", bytes as f64 / 1e6 / report.seconds.max(1e-6));
    writeln!(
        out,
        "log {} in {}: events {} to {} in {} segments",
        report.log_id,
        directory.display(),
        report.first_seq,
        report.last_seq,
        report.segments
    )?;
    writeln!(
        out,
        "read {} ({} of events) in {:.2} s: {} stored, {} raw",
        megabytes(report.stored_bytes),
        megabytes(report.raw_bytes),
        report.seconds,
        rate(report.stored_bytes),
        rate(report.raw_bytes)
    )?;
    describe_removed(report, out)?;
    if let Some(at) = report.signed_at_micros {
        writeln!(
            out,
            "{} checkpoints; the newest that agrees with the log covers event {} and was signed at {}",
            report.checkpoints,
            report.signed_through,
            rfc3339(at)
        )?;
    }
    match report.artifacts {
        Some((count, bytes)) => writeln!(
            out,
            "{count} artifacts ({}) have the content that their names say; events name artifacts {} times",
            megabytes(bytes),
            report.artifacts_named
        )?,
        None => writeln!(out, "artifacts were not looked at: --no-artifacts")?,
    }
    if report.signed_late > 0 {
        writeln!(
            out,
            "{} events were signed only by a later run, {} of them of runs that were closed in order; until then \
             whoever could write the files could have changed them",
            report.signed_late, report.signed_late_closed
        )?;
    }
    let unsigned = report.unsigned_events();
    if unsigned > 0 {
        writeln!(out, "{unsigned} events at the end are covered by the hash chain alone, not by a signature")?;
    }
    trust(report, out)?;
    for finding in &report.findings {
        writeln!(out, "{}", finding_line(finding))?;
    }
    if report.findings_left_out > 0 {
        writeln!(out, "and {} more findings", report.findings_left_out)?;
    }
    if report.is_sound() {
        writeln!(out, "{}", verdict(report))?;
    }
    Ok(())
}

fn describe_removed(report: &Report, out: &mut dyn Write) -> Result<(), CommandError> {
    if report.removed > 0 {
        writeln!(out, "{} events of these segments were removed, and are on record as removed", report.removed)?;
    }
    if report.removed_pending > 0 {
        writeln!(out, "the removal of {} events is on record and not done yet", report.removed_pending)?;
    }
    if report.removed_unsigned > 0 {
        writeln!(out, "the record of {} of them is not covered by a checkpoint yet", report.removed_unsigned)?;
    }
    Ok(())
}

/// Soundness reaches as far as signatures do.
fn verdict(report: &Report) -> String {
    let all = "nothing was changed, removed without record, or added";
    match (report.unsigned_events(), report.signed_through) {
        (0, _) => format!("sound: {all}"),
        (unsigned, 0) => format!("nothing contradicts itself; all {unsigned} events are without a signature"),
        (unsigned, through) => {
            format!("sound through event {through}: {all}; for the {unsigned} events behind it no signature vouches")
        }
    }
}

/// What the signatures are worth.
fn trust(report: &Report, out: &mut dyn Write) -> Result<(), CommandError> {
    for key in &report.keys {
        writeln!(out, "signed by {key}")?;
    }
    match (report.pinned.key, report.pinned.checkpoints) {
        (false, 0) => writeln!(
            out,
            "neither --key nor --from was given: a log that was made anew or rolled back as a whole would not show"
        )?,
        (true, 0) if report.findings.iter().any(|finding| finding.problem == Problem::Key) => {
            writeln!(out, "the key given is not the one that vouches for this log")?
        }
        (true, 0) => {
            writeln!(out, "the key is the one given; a log rolled back as a whole would show only with --from")?
        }
        (_, count) => {
            let reach = report.pinned.reach_seq;
            write!(out, "{count} checkpoints kept elsewhere, which reach to event {reach}, were held against it")?;
            if reach < report.last_seq {
                write!(out, "; a log rolled back to an event behind that would not show")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn finding_line(finding: &Finding) -> String {
    let Finding { first_seq, last_seq, .. } = finding;
    if !finding.concerns_events() {
        return format!("{}: {}: {}", finding.problem.as_str(), finding.place, finding.detail);
    }
    let events = match (finding.exact, first_seq == last_seq) {
        (_, true) => format!("event {first_seq}"),
        (true, false) => format!("event {first_seq} and on to {last_seq}"),
        (false, false) => format!("within events {first_seq} to {last_seq}"),
    };
    format!("{}: {events}: {}: {}", finding.problem.as_str(), finding.place, finding.detail)
}

fn as_json(report: &Report) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "problem": finding.problem.as_str(),
            "first_seq": finding.first_seq,
            "last_seq": finding.last_seq,
            "exact": finding.exact,
            "place": finding.place,
            "detail": finding.detail,
        })
    };
    let first_bad = report.first_bad();
    json!({
        "sound": report.is_sound(),
        "first_bad_seq": first_bad.map(|finding| finding.first_seq),
        "first_bad_exact": first_bad.map(|finding| finding.exact),
        "log_id": report.log_id,
        "first_seq": report.first_seq,
        "last_seq": report.last_seq,
        "events": report.events,
        "removed": report.removed,
        "removed_unsigned": report.removed_unsigned,
        "removed_pending": report.removed_pending,
        "segments": report.segments,
        "artifacts_checked": report.artifacts.is_some(),
        "artifacts": report.artifacts.map(|(count, _)| count),
        "artifact_bytes": report.artifacts.map(|(_, bytes)| bytes),
        "artifacts_named": report.artifacts_named,
        "stored_bytes": report.stored_bytes,
        "raw_bytes": report.raw_bytes,
        "seconds": report.seconds,
        "checkpoints": report.checkpoints,
        "signed_through": report.signed_through,
        "signed_at": report.signed_at_micros.map(rfc3339),
        "unsigned_events": report.unsigned_events(),
        "signed_late_events": report.signed_late,
        "signed_late_closed_events": report.signed_late_closed,
        "keys": report.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "key_given": report.pinned.key,
        "checkpoints_given": report.pinned.checkpoints,
        "checkpoints_given_reach": report.pinned.reach_seq,
        "torn_checkpoint_bytes": report.torn_checkpoint_bytes,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "findings_left_out": report.findings_left_out,
    })
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
