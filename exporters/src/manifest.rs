//! What lies beside every exported file: enough to tell whether it is whole and what it leaves out.
//!
//! The manifest is written before the file has its final name and gets its own after it, and that of a file
//! that is replaced goes before it is: so its presence means that the export was finished; its hash ties it
//! to that very file.

use std::io::Write as _;

use serde_json::{Map, Value, json};
use storage::audit::{CHECKPOINTS_FILE, hex, newest_line};
use storage::time::{now_micros, rfc3339};

use crate::columns::SCHEMA_VERSION;
use crate::export::{ExportError, ExportOptions, Format, Sealed, Surroundings};
use crate::tally::{GAPS_LISTED_MAX, Tally};
use crate::target::{Destination, Target};

/// Version of the manifest's own keys; keys are added, never renamed.
pub const MANIFEST_VERSION: u32 = 2;
/// A manifest is at most this long; what it lists is bounded, so it never comes near.
const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The end of a manifest's name.
pub(crate) const SUFFIX: &str = ".manifest.json";

/// `<target>.manifest.json`.
#[must_use]
pub fn beside(target: &Destination) -> Destination {
    target.with_suffix(SUFFIX)
}

/// The manifest's bytes, to be published after those of its file.
pub(crate) fn prepare(manifest: &Destination, text: &str, overwrite: bool) -> Result<Target, ExportError> {
    let mut out = Target::create(manifest, MANIFEST_BYTES_MAX, overwrite)?;
    out.write_all(text.as_bytes()).map_err(|error| out.error("write", error))?;
    out.prepare()?;
    Ok(out)
}

pub(crate) fn text(
    target: &Destination,
    format: Format,
    sealed: &Sealed,
    tally: &Tally,
    surroundings: &Surroundings,
    options: &ExportOptions,
) -> Result<String, ExportError> {
    let mut members = head(target, format, sealed, options);
    members.insert("events".into(), events(tally));
    members.insert("sequence".into(), json!({"first": tally.first_seq, "last": tally.last_seq}));
    members.insert("row_groups".into(), sealed.row_groups.into());
    members.insert("gaps".into(), gaps(tally, surroundings));
    members.insert("retention".into(), retention(surroundings));
    members.insert("durability".into(), durability(options));
    members.insert("redaction".into(), options.redaction.as_str().into());
    members.insert("redactions".into(), redactions(tally));
    members.insert("checkpoint".into(), checkpoint(options, tally.last_seq)?);
    if let Some(damage) = &surroundings.damage {
        members.insert("damage".into(), damage.as_str().into());
    }
    if let Some(details) = &sealed.details {
        members.insert(format.as_str().into(), details.clone());
    }
    Ok(format!("{:#}\n", Value::Object(members)))
}

fn head(target: &Destination, format: Format, sealed: &Sealed, options: &ExportOptions) -> Map<String, Value> {
    let name = target.name();
    let head = json!({
        "manifest_version": MANIFEST_VERSION,
        "schema_version": SCHEMA_VERSION,
        "format": format.as_str(),
        "file": name,
        "bytes": sealed.bytes,
        "sha256": sealed.sha256,
        "files": [{"name": name, "bytes": sealed.bytes, "sha256": sealed.sha256}],
        "created_at": rfc3339(now_micros()),
        "gateway_version": options.gateway_version,
        "log_id": options.log_id,
        "filter": options.filter,
    });
    if let Value::Object(members) = head { members } else { Map::new() }
}

fn events(tally: &Tally) -> Value {
    json!({
        "read": tally.events + tally.excluded + tally.unplaced,
        "written": tally.events,
        "excluded": tally.excluded,
        "without_place_in_format": tally.unplaced,
    })
}

fn gaps(tally: &Tally, surroundings: &Surroundings) -> Value {
    let listed: Vec<Value> = tally
        .gaps
        .iter()
        .map(|gap| json!({"seq": gap.seq, "what": gap.what, "count": gap.count, "reason": gap.reason}))
        .collect();
    json!({
        "events": tally.gap_events,
        "lost": tally.lost_events,
        "listed": listed,
        "listed_max": GAPS_LISTED_MAX,
        "of_no_session": {
            "events": surroundings.nobodys_gap_events,
            "lost": surroundings.nobodys_lost_events,
        },
    })
}

/// `null` when whoever chose the events did not look.
fn retention(surroundings: &Surroundings) -> Value {
    let Some(removed) = &surroundings.removed else { return Value::Null };
    json!({"removed": removed.events, "by_kind": removed.by_kind, "exact": removed.exact})
}

fn durability(options: &ExportOptions) -> Value {
    json!({
        "mode": if options.sync_interval_ms.is_some() { "interval" } else { "commit" },
        "sync_interval_ms": options.sync_interval_ms,
    })
}

fn redactions(tally: &Tally) -> Value {
    json!({"replaced": tally.redactions.values().sum::<u64>(), "by_rule": tally.redactions})
}

/// The newest signed statement of the log's chain; `verify --from` takes its `line`.
fn checkpoint(options: &ExportOptions, last_seq: u64) -> Result<Value, ExportError> {
    let Some(directory) = &options.audit_directory else { return Ok(Value::Null) };
    let Some((line, signed)) = newest_line(&directory.join(CHECKPOINTS_FILE))? else { return Ok(Value::Null) };
    let Some(checkpoint) = signed.checkpoint() else { return Ok(Value::Null) };
    Ok(json!({
        "seq": checkpoint.seq,
        "covers_all": checkpoint.seq >= last_seq,
        "chain": hex(&checkpoint.chain),
        "epoch": checkpoint.epoch,
        "at": rfc3339(checkpoint.at_micros),
        "key_id": signed.key.to_string(),
        "line": line,
    }))
}
