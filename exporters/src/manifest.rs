//! What lies beside every exported file: enough to tell whether it is whole and what it leaves out.
//!
//! The manifest is written after the file has its final name, so its presence means that the export
//! was finished; its hash ties it to that very file.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use storage::time::{now_micros, rfc3339};

use crate::columns::SCHEMA_VERSION;
use crate::export::{ExportError, ExportOptions, GAPS_LISTED_MAX, Written};
use crate::target::TargetFile;

/// Version of the manifest's own keys; keys are added, never renamed.
pub const MANIFEST_VERSION: u32 = 1;
/// A manifest is at most this long; the gaps listed are bounded, so it never comes near.
const MANIFEST_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// `<target>.manifest.json`.
#[must_use]
pub fn path_beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(target);
    name.push(".manifest.json");
    PathBuf::from(name)
}

pub(crate) fn write(written: &Written, options: &ExportOptions) -> Result<(), ExportError> {
    let mut file = TargetFile::create(&written.manifest_path, MANIFEST_BYTES_MAX, options.overwrite)?;
    let text = format!("{:#}\n", describe(written, options));
    file.write_all(text.as_bytes()).map_err(|error| file.error("write", error))?;
    file.commit()?;
    Ok(())
}

fn describe(written: &Written, options: &ExportOptions) -> Value {
    let gaps: Vec<Value> = written
        .gaps
        .iter()
        .map(|gap| json!({"seq": gap.seq, "what": gap.what, "count": gap.count, "reason": gap.reason}))
        .collect();
    json!({
        "manifest_version": MANIFEST_VERSION,
        "schema_version": SCHEMA_VERSION,
        "format": written.format.as_str(),
        "file": written.path.file_name().map(|name| name.to_string_lossy()),
        "bytes": written.bytes,
        "sha256": written.sha256,
        "created_at": rfc3339(now_micros()),
        "gateway_version": options.gateway_version,
        "log_id": options.log_id,
        "filter": options.filter,
        "events": {
            "read": written.events + written.excluded,
            "written": written.events,
            "excluded": written.excluded,
        },
        "sequence": {"first": written.first_seq, "last": written.last_seq},
        "row_groups": written.row_groups,
        "gaps": {
            "events": written.gap_events,
            "lost": written.lost_events,
            "listed": gaps,
            "listed_max": GAPS_LISTED_MAX,
        },
        "durability": {
            "mode": if options.sync_interval_ms.is_some() { "interval" } else { "commit" },
            "sync_interval_ms": options.sync_interval_ms,
        },
        "redaction": options.redaction,
    })
}
