//! `pageledger audit`: the key that history is signed with, and what was signed.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use storage::StorageError;
use storage::audit::{
    AuditOptions, Auditor, CHECKPOINTS_FILE, KEY_FILE, PUBLIC_KEY_FILE, PublicKey, RawLines, SignedLine, Statement,
    hex, read_public_key,
};
use storage::log::{Log, LogOptions};
use storage::time::rfc3339;

use super::{CommandError, EXIT_DAMAGED, EXIT_NOTHING_THERE, EXIT_UNAVAILABLE, is_there, open_log};
use crate::config::{AuditOrder, AuditQuestion};

const HOW_TO_KEEP: &str = "Keep the public key and, now and then, a line of `pageledger audit checkpoint` where \
nobody who can write to the data directory can write. `pageledger verify --key` and `--from` take them. The private \
key stays in its file: whoever has it can sign another history.";

/// Is given each line and what it says, or what is wrong with it.
type EachLine<'a> = dyn FnMut(&[u8], Result<SignedLine, &'static str>) -> Result<(), CommandError> + 'a;

pub fn audit(order: &AuditOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    match order.question {
        AuditQuestion::Key => show_key(order, public_key(&order.data_dir)?, out),
        AuditQuestion::RotateKey => show_key(order, rotate(&order.data_dir)?, out),
        AuditQuestion::Checkpoints => list(order, out),
        AuditQuestion::Checkpoint => newest(order, out),
    }
}

fn public_key(data_dir: &Path) -> Result<PublicKey, CommandError> {
    let path = data_dir.join("audit").join(PUBLIC_KEY_FILE);
    if !is_there(&path)? {
        let message = format!("{} holds no key yet; the server makes one at its first start", data_dir.display());
        return Err(CommandError::new(EXIT_NOTHING_THERE, message));
    }
    Ok(read_public_key(&path)?)
}

fn show_key(order: &AuditOrder, key: PublicKey, out: &mut dyn Write) -> Result<(), CommandError> {
    let directory = order.data_dir.join("audit");
    let (private, public) = (directory.join(KEY_FILE), directory.join(PUBLIC_KEY_FILE));
    if order.json {
        let (private, public) = (private.display().to_string(), public.display().to_string());
        writeln!(
            out,
            "{}",
            json!({"public_key": key.to_string(), "key_id": key.to_string(), "public_key_file": public, "private_key_file": private})
        )?;
        return Ok(());
    }
    writeln!(out, "{key}")?;
    // Not among what a shell would put into a file of its own.
    let mut aside = std::io::stderr();
    writeln!(aside, "\nThis is the public key, and the key id that checkpoints name. It is in {}.", public.display())?;
    writeln!(aside, "The private key is in {}.\n{HOW_TO_KEEP}", private.display())?;
    Ok(())
}

/// The server must be stopped: the change is recorded in the log.
fn rotate(data_dir: &Path) -> Result<PublicKey, CommandError> {
    public_key(data_dir)?;
    open_log(data_dir)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (log, auditor) = open(data_dir)?;
    let changed = runtime.block_on(async {
        let changed = auditor.change_key().await;
        close(&log, &auditor).await.and(changed)
    });
    Ok(changed?)
}

/// Opens a log for writing, as the server does: what is recorded is signed.
pub fn open(data_dir: &Path) -> Result<(Log, Auditor), StorageError> {
    let log = Log::open(LogOptions::new(data_dir.join("log")))?;
    let auditor = Auditor::start(log.clone(), AuditOptions::new(data_dir.join("audit")))?;
    Ok((log, auditor))
}

pub async fn close(log: &Log, auditor: &Auditor) -> Result<(), StorageError> {
    log.seal().await?;
    auditor.close().await;
    log.close().await
}

/// Every line of the file: what it says, or what is wrong with it.
fn each_line(data_dir: &Path, visit: &mut EachLine<'_>) -> Result<(), CommandError> {
    let Some(lines) = RawLines::open(&data_dir.join("audit").join(CHECKPOINTS_FILE))? else {
        return Err(CommandError::new(EXIT_NOTHING_THERE, format!("{} holds no checkpoints", data_dir.display())));
    };
    for line in lines {
        let line = line?;
        if line.ended || line.given_up {
            visit(&line.bytes, line.read())?;
        }
    }
    Ok(())
}

fn list(order: &AuditOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut bad = 0;
    each_line(&order.data_dir, &mut |_, line| {
        match (line, order.json) {
            (Ok(line), true) => writeln!(out, "{}", as_json(&line))?,
            (Ok(line), false) => writeln!(out, "{}", as_text(&line))?,
            (Err(what), _) => {
                bad += 1;
                if order.json {
                    writeln!(out, "{}", json!({"kind": "bad", "problem": what}))?;
                } else {
                    writeln!(out, "not a checkpoint: {what}")?;
                }
            }
        }
        Ok(())
    })?;
    if bad == 0 {
        return Ok(());
    }
    Err(CommandError::new(EXIT_DAMAGED, format!("{bad} lines are no checkpoints; pageledger verify says more")))
}

fn newest(order: &AuditOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut newest = None;
    each_line(&order.data_dir, &mut |bytes, line| {
        if line.is_ok_and(|line| line.checkpoint().is_some()) {
            newest = Some(String::from_utf8_lossy(bytes).into_owned());
        }
        Ok(())
    })?;
    let line = newest.ok_or_else(|| CommandError::new(EXIT_UNAVAILABLE, "no line of the file is a checkpoint"))?;
    writeln!(out, "{line}")?;
    Ok(())
}

fn as_text(line: &SignedLine) -> String {
    match &line.statement {
        Statement::Checkpoint(it) => format!(
            "{} through event {} (epoch {}, oldest {}) chain {} by {}",
            rfc3339(it.at_micros),
            it.seq,
            it.epoch,
            it.oldest_seq,
            hex(&it.chain),
            line.key
        ),
        Statement::KeyChange(it) => {
            format!(
                "{} after event {} the key changed to {} by {}",
                rfc3339(it.at_micros),
                it.seq,
                it.next_key,
                line.key
            )
        }
    }
}

fn as_json(line: &SignedLine) -> Value {
    let previous = line.statement.previous().map(|digest| hex(&digest));
    match &line.statement {
        Statement::Checkpoint(it) => json!({
            "kind": "checkpoint", "log_id": it.log_id, "seq": it.seq, "chain": hex(&it.chain), "epoch": it.epoch,
            "at": rfc3339(it.at_micros), "since_seq": it.since_seq, "trail": hex(&it.trail),
            "oldest_seq": it.oldest_seq, "previous": previous, "key_id": line.key.to_string(),
            "line": hex(&line.digest),
        }),
        Statement::KeyChange(it) => json!({
            "kind": "key_change", "log_id": it.log_id, "seq": it.seq, "at": rfc3339(it.at_micros),
            "next_key": it.next_key.to_string(), "previous": previous, "key_id": line.key.to_string(),
            "line": hex(&line.digest),
        }),
    }
}
