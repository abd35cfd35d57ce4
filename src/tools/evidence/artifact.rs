//! `read_artifact`: a range of anything kept.

use serde_json::{Map, Value};
use storage::artifact::ArtifactStore;
use storage::ids::ArtifactHandle;

use crate::contract::facts::{INTEGER_MAX, Scalar};
use crate::contract::result::HAS_MORE;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::{Data, Piece};
use crate::fault::{Code, Fault};
use crate::keep::blocking;
use crate::limits;
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
    let length = longest(&call, asked);
    let artifacts = call.gateway.artifacts.clone();
    let bytes = read_kept(artifacts, handle, offset, length, row.seq).await?;
    let mut data = Map::new();
    data.insert("handle".into(), row.handle.as_str().into());
    data.insert("media_type".into(), row.media_type.as_str().into());
    data.insert("purpose".into(), row.purpose.as_str().into());
    data.insert("total_bytes".into(), row.bytes.into());
    data.insert("sha256".into(), row.sha256.as_str().into());
    Ok(range(data, bytes, offset, row.bytes, call.arguments.text("encoding"))?.into())
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

/// How much of `asked` a reply could hold in the form that takes least for it.
pub(super) fn longest(call: &Call, asked: u64) -> usize {
    usize::try_from(asked).unwrap_or(usize::MAX).min(call.gateway.config.max_result_bytes)
}

/// `head` with `offset`, `length`, `content`, `encoding`, `next_offset`, `has_more` of a range, as much of it
/// as the reply has room for. Text ends at a character's boundary.
pub(super) fn range(
    head: Map<String, Value>,
    mut bytes: Vec<u8>,
    offset: u64,
    total: u64,
    encoding: &str,
) -> Result<Data, Fault> {
    let text = if encoding == "base64" { None } else { text_length(&bytes) };
    if text.is_none() && encoding == "text" {
        return Err(Fault::invalid_argument("encoding", "these bytes are not UTF-8 text; ask for base64"));
    }
    bytes.truncate(text.unwrap_or(bytes.len()));
    let length = bytes.len();
    let text = text.and_then(|_| String::from_utf8(std::mem::take(&mut bytes)).ok());
    let beginning = move |bytes_max: usize| {
        let (content, length, encoding) = match &text {
            Some(text) => {
                let content = limits::head(text, bytes_max);
                (content.to_owned(), content.len(), "text")
            }
            None => {
                let length = bytes_max.min(bytes.len());
                (crate::base64(&bytes[..length]), length, "base64")
            }
        };
        let next = offset + length as u64;
        let mut data = head.clone();
        data.insert("offset".into(), offset.into());
        data.insert("length".into(), length.into());
        data.insert("encoding".into(), encoding.into());
        data.insert("content".into(), content.into());
        data.insert("next_offset".into(), next.into());
        data.insert("has_more".into(), (next < total).into());
        Value::Object(data)
    };
    Ok(Data::Piece(Piece { length, beginning: Box::new(beginning) }))
}

/// How many of these bytes are whole UTF-8 characters; `None` when they are no text.
fn text_length(bytes: &[u8]) -> Option<usize> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Some(bytes.len()),
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => Some(error.valid_up_to()),
        Err(_) => None,
    }
}
