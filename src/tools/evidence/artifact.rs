//! `read_artifact`: a range of anything kept.

use serde_json::{Map, Value, json};
use storage::artifact::ArtifactStore;
use storage::ids::ArtifactHandle;

use crate::contract::facts::{INTEGER_MAX, Scalar};
use crate::contract::result::HAS_MORE;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::{Code, Fault};
use crate::keep::blocking;
use crate::tools::tool::{Call, Output, Tool};

/// What one call reads when it names no length, in bytes.
const LENGTH_DEFAULT: u64 = 65_536;
/// What one call may read, in bytes; a reply that is too small for it carries less and says so.
const LENGTH_MAX: u64 = 16 * 1024 * 1024;

pub static READ_ARTIFACT: Tool = Tool {
    facts: ToolFacts {
        name: "read_artifact",
        title: "Read artifact",
        text: "Read a byte range of a kept value: oversized results, bodies, screenshots, downloads, exports.",
        pack: Pack::Evidence,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[
            Parameter::name("handle", "art-...").required(),
            Parameter::new("offset", Shape::Integer { min: 0, max: INTEGER_MAX }, "byte").or(Scalar::Integer(0)),
            Parameter::new("length", Shape::Integer { min: 1, max: LENGTH_MAX }, "bytes")
                .or(Scalar::Integer(LENGTH_DEFAULT)),
            Parameter::new("encoding", Shape::Choice(&["auto", "text", "base64"]), "").or(Scalar::Text("auto")),
        ],
        returns: Returns::Object(&[
            Field::text("handle"),
            Field::text("media_type"),
            Field::integer("total_bytes"),
            Field::choice("encoding", &["text", "base64"]),
            Field::text("content"),
            Field::integer("next_offset"),
            HAS_MORE,
        ]),
    },
    run: |call| Box::pin(read_artifact(call)),
};

async fn read_artifact(call: Call) -> Result<Output, Fault> {
    let handle = ArtifactHandle::from(call.arguments.text("handle"));
    let row =
        call.gateway.ledger.artifact(&call.owner, &handle).await?.ok_or_else(|| Fault::new(Code::UnknownHandle))?;
    let offset = call.arguments.integer("offset").unwrap_or(0);
    let asked = call.arguments.integer("length").unwrap_or(LENGTH_DEFAULT);
    let length = usize::try_from(asked.min(room(&call))).unwrap_or(usize::MAX);
    let artifacts = call.gateway.artifacts.clone();
    let bytes = read_kept(artifacts, handle, offset, length, row.seq).await?;
    let mut data = Map::new();
    data.insert("handle".into(), row.handle.as_str().into());
    data.insert("media_type".into(), row.media_type.as_str().into());
    data.insert("purpose".into(), row.purpose.as_str().into());
    data.insert("total_bytes".into(), row.bytes.into());
    data.insert("sha256".into(), row.sha256.as_str().into());
    data.extend(range(bytes, offset, row.bytes, call.arguments.text("encoding"), room(&call))?);
    Ok(Output::value(Value::Object(data)))
}

/// A range of what is kept; where it was altered on disk, the fault names the event that tells of it.
pub(super) async fn read_kept(
    artifacts: ArtifactStore,
    handle: ArtifactHandle,
    offset: u64,
    length: usize,
    seq: u64,
) -> Result<Vec<u8>, Fault> {
    let read = blocking(move || artifacts.read(&handle, offset, length)).await;
    read.map_err(|fault| match fault.code() {
        Code::HistoryDamaged => fault.with("first_seq", seq).with("last_seq", seq),
        _ => fault,
    })
}

/// How many bytes fit a reply in their most wasteful form: two copies, the text one escaped twice.
pub(super) fn room(call: &Call) -> u64 {
    let bytes_max = call.gateway.config.max_result_bytes as u64;
    (bytes_max.saturating_sub(2_048) / 4).max(256)
}

/// `offset`, `length`, `content`, `encoding`, `next_offset`, `has_more` of a range. Text ends at a
/// character's boundary, and early where escaping makes it too long for the reply.
pub(super) fn range(
    mut bytes: Vec<u8>,
    offset: u64,
    total: u64,
    encoding: &str,
    room: u64,
) -> Result<Map<String, Value>, Fault> {
    let text = if encoding == "base64" { None } else { text_length(&bytes) };
    let (content, name) = match text {
        Some(length) => {
            bytes.truncate(length);
            let mut text = String::from_utf8(bytes.clone()).unwrap_or_default();
            cut_to_wire(&mut text, room);
            bytes.truncate(text.len());
            (text, "text")
        }
        None if encoding == "text" => {
            return Err(Fault::invalid_argument("encoding", "these bytes are not UTF-8 text; ask for base64"));
        }
        None => {
            // Base64 is four thirds as long, and is not escaped.
            bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
            (crate::base64(&bytes), "base64")
        }
    };
    let next = offset + bytes.len() as u64;
    let fields = json!({
        "offset": offset,
        "length": bytes.len(),
        "encoding": name,
        "content": content,
        "next_offset": next,
        "has_more": next < total,
    });
    match fields {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// How many of these bytes are whole UTF-8 characters; `None` when they are no text.
fn text_length(bytes: &[u8]) -> Option<usize> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Some(bytes.len()),
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => Some(error.valid_up_to()),
        Err(_) => None,
    }
}

/// Cuts `text` so that its JSON form within JSON stays below twice `room`.
fn cut_to_wire(text: &mut String, room: u64) {
    let mut wire = 0u64;
    let end = text.char_indices().find_map(|(at, c)| {
        wire += match c {
            '"' | '\\' => 2 + 4,
            '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2 + 3,
            c if u32::from(c) < 0x20 => 6 + 7,
            c => 2 * c.len_utf8() as u64,
        };
        (wire > room * 2).then_some(at)
    });
    if let Some(end) = end {
        text.truncate(end);
    }
}
