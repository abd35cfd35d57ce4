//! Results that are read in parts while the page goes on changing.
//!
//! The whole is kept as an artifact when it is made; a cursor names it and a place in it. So all parts
//! are of one moment, and they can be read as long as the artifact is kept, by its owner alone. The
//! first line says what it is a capture of.

use serde_json::{Map, Value};
use storage::StorageError;
use storage::ids::ArtifactHandle;

use super::tool::Call;
use crate::contract::{Parameter, Shape};
use crate::fault::{Code, Fault};
use crate::keep::{blocking, keep};
use crate::limits::head;

/// The rest of a capture.
pub(super) const CURSOR: Parameter = Parameter::new(
    "cursor",
    Shape::Text { length_min: 1, length_max: CURSOR_LENGTH_MAX },
    "next_cursor of the part before; the other arguments are those of the first part",
);
const CURSOR_LENGTH_MAX: usize = 128;
const CURSOR_VERSION: &str = "c1";
/// The first line of a capture, in bytes.
const HEAD_BYTES_MAX: usize = 8192;
/// A text in the first line, in bytes.
const HEAD_TEXT_BYTES_MAX: usize = 1024;
/// And of a reply at most one part in so many.
const HEAD_SHARE: usize = 16;
/// A capture, and where reading it goes on.
pub(super) struct Capture {
    /// What was said of it when it was made.
    pub(super) head: Map<String, Value>,
    /// `None` while it is not kept yet.
    pub(super) handle: Option<ArtifactHandle>,
    /// What is left of it, as much as a reply can need.
    pub(super) text: String,
    offset: u64,
    total: u64,
}

/// Keeps a whole: `text` below one line that tells of it.
pub(super) async fn freeze(
    call: &Call,
    purpose: &'static str,
    head: Map<String, Value>,
    text: String,
) -> Result<Capture, Fault> {
    // It stands in every part, and must leave room for the text.
    let text_bytes_max = HEAD_TEXT_BYTES_MAX.min(call.gateway.config.max_result_bytes / HEAD_SHARE);
    let head = shortened(&head, text_bytes_max);
    let mut bytes = format!("# {}\n", Value::Object(head.clone())).into_bytes();
    let offset = bytes.len() as u64;
    bytes.extend_from_slice(text.as_bytes());
    let total = bytes.len() as u64;
    let context = call.session()?.scope.context();
    let kept = keep(&call.gateway, &context, purpose, "text/plain; charset=utf-8", bytes).await?;
    Ok(Capture { head, handle: Some(kept.handle), text, offset, total })
}

/// Finds the capture that a cursor continues.
///
/// # Errors
/// `INVALID_CURSOR` for one that was never given, `STALE_SNAPSHOT_CURSOR` for one whose capture is no
/// longer kept.
pub(super) async fn thaw(call: &Call, purpose: &str, cursor: &str) -> Result<Capture, Fault> {
    let invalid = || Fault::new(Code::InvalidCursor);
    let (handle, offset) = parse(cursor).ok_or_else(invalid)?;
    let row = call.gateway.ledger.artifact(&call.owner, &handle).await?;
    let row = row.filter(|row| row.purpose == purpose).ok_or_else(invalid)?;
    let stale = |fault: Fault| match fault.code() {
        Code::UnknownHandle => Fault::new(Code::StaleSnapshotCursor),
        _ => fault,
    };
    let artifacts = call.gateway.artifacts.clone();
    let (named, length) = (handle.clone(), call.gateway.config.max_result_bytes);
    let read = move || {
        Ok::<_, StorageError>((artifacts.read(&named, 0, HEAD_BYTES_MAX)?, artifacts.read(&named, offset, length)?))
    };
    let (first, bytes) = blocking(read).await.map_err(stale)?;
    let (head, begin) = parse_head(&first).ok_or_else(invalid)?;
    let text = whole_characters(bytes).ok_or_else(invalid)?;
    if offset < begin || text.is_empty() {
        return Err(invalid());
    }
    Ok(Capture { head, handle: Some(handle), text, offset, total: row.bytes })
}

impl Capture {
    /// One that nobody has cut yet.
    pub(super) fn whole(head: Map<String, Value>, text: String) -> Self {
        let total = text.len() as u64;
        Self { head, handle: None, text, offset: 0, total }
    }

    /// How much of it there is to give, when a part is at most `bytes_max` long.
    pub(super) fn length(&self, bytes_max: usize) -> usize {
        head(&self.text, bytes_max).len()
    }

    /// The beginning that is at most `bytes_max` long, to a line's end where there is one; and the cursor for
    /// what follows it.
    pub(super) fn part(&self, bytes_max: usize) -> (&str, Option<String>) {
        let mut part = head(&self.text, bytes_max);
        if self.offset + (part.len() as u64) < self.total {
            part = part.rfind('\n').map_or(part, |line_end| &part[..=line_end]);
        }
        let next = self.offset + part.len() as u64;
        (part, self.cursor_at(next).filter(|_| next < self.total))
    }

    /// The first `limit` lines, each a JSON value, with where it ends; and whether more follow.
    pub(super) fn lines(&self, limit: usize) -> (Vec<(Value, u64)>, bool) {
        let mut rows = Vec::new();
        let mut end = self.offset;
        // What was read may end in the middle of a line, which then belongs to the next part.
        for line in self.text.split_inclusive('\n').take(limit).filter(|line| line.ends_with('\n')) {
            end += line.len() as u64;
            rows.extend(serde_json::from_str(line).map(|value| (value, end)));
        }
        (rows, end < self.total)
    }

    /// The cursor for what follows a place; only what is kept can be continued.
    pub(super) fn cursor_at(&self, offset: u64) -> Option<String> {
        let handle = self.handle.as_ref()?;
        Some(format!("{CURSOR_VERSION}.{}.{offset}", handle.as_str()))
    }
}

fn parse(cursor: &str) -> Option<(ArtifactHandle, u64)> {
    let mut parts = cursor.split('.');
    let parts = (parts.next()?, parts.next()?, parts.next()?, parts.next());
    let (version, handle, offset) = (parts.0, parts.1, parts.2);
    let plain = version == CURSOR_VERSION && parts.3.is_none() && offset.bytes().all(|byte| byte.is_ascii_digit());
    Some((ArtifactHandle::from(handle), offset.parse().ok()?)).filter(|_| plain)
}

/// The first line, and where the second begins.
fn parse_head(bytes: &[u8]) -> Option<(Map<String, Value>, u64)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = serde_json::from_slice(bytes.get(2..end)?).ok()?;
    Some((head, end as u64 + 1))
}

/// Bytes that begin with a whole character, without a part of one at their end.
fn whole_characters(mut bytes: Vec<u8>) -> Option<String> {
    if let Err(error) = std::str::from_utf8(&bytes) {
        let cut_short = error.error_len().is_none();
        let valid = error.valid_up_to();
        bytes.truncate(if cut_short { valid } else { 0 });
    }
    String::from_utf8(bytes).ok()
}

/// Long texts are cut, so that the first line stays within its bound.
fn shortened(members: &Map<String, Value>, text_bytes_max: usize) -> Map<String, Value> {
    let cut = |value: &Value| match value {
        Value::String(text) => head(text, text_bytes_max).into(),
        other => other.clone(),
    };
    members.iter().map(|(key, value)| (key.clone(), cut(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_cursors_are_read() {
        let (handle, offset) = parse("c1.art-00.17").expect("ours");
        assert_eq!((handle.as_str(), offset), ("art-00", 17));
        for cursor in ["", "c1", "c1.art", "c2.art.1", "c1.art.1.1", "c1.art.-1", "c1.art.1x", "c1.art.", "..."] {
            assert!(parse(cursor).is_none(), "{cursor}");
        }
    }
}
