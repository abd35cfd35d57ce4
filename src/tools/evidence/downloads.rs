//! `list_downloads`, `save_download`: what came out of pages, also after the session is gone.

use serde_json::{Map, Value, json};
use storage::ids::{ArtifactHandle, DownloadId, SessionId};
use storage::query::{DownloadRow, List as ListKind};
use storage::time::rfc3339;

use super::paging::{self, AFTER, LIMIT, OPERATION, ORDER, Row, SINCE, TAB, UNTIL, put};
use crate::browser::downloads::DownloadEnd;
use crate::contract::facts::{SESSION, TIMEOUT};
use crate::contract::result::{DROPPED_COUNT, HAS_MORE, NEXT_CURSOR, RETAINED_COUNT, RETENTION_LOST, SESSION_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, ToolFacts};
use crate::envelope::Reference;
use crate::fault::{Code, Fault};
use crate::keep;
use crate::paths;
use crate::tools::refusals;
use crate::tools::tool::{Call, Output, Tool};

pub static LIST_DOWNLOADS: Tool = Tool {
    facts: ToolFacts {
        name: "list_downloads",
        title: "List downloads",
        text: "Page through a session's downloads, however they began; read the bytes with read_artifact.",
        pack: Pack::Evidence,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[SESSION, TAB, OPERATION, SINCE, UNTIL, ORDER, AFTER, LIMIT],
        returns: Returns::Object(&[
            Field::objects("downloads"),
            NEXT_CURSOR,
            HAS_MORE,
            RETAINED_COUNT,
            DROPPED_COUNT,
            RETENTION_LOST,
        ]),
    },
    run: |call| Box::pin(list_downloads(call)),
};

async fn list_downloads(call: Call) -> Result<Output, Fault> {
    let session_id = paging::history(&call).await?;
    let filter = paging::compile(&paging::common_filter(&call.arguments, session_id)?)?;
    let asked = paging::request(&call, &filter);
    let page = call.gateway.ledger.downloads_page(&asked).await?;
    let rows = page.items.iter().map(|row| Row { seq: row.seq, value: Value::Object(row_json(row)) }).collect();
    Ok(paging::list(&call, ListKind::Downloads, "downloads", &asked, &page, rows).into())
}

fn row_json(row: &DownloadRow) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("download_id".into(), row.download_id.as_str().into());
    out.insert("seq".into(), row.seq.into());
    out.insert("timestamp".into(), rfc3339(row.started_micros).into());
    out.insert("url".into(), row.url.as_str().into());
    out.insert("suggested_name".into(), row.suggested_name.as_str().into());
    out.insert("file_name".into(), paths::plain_name(&row.suggested_name).into());
    out.insert("state".into(), row.state.into());
    out.insert("received_bytes".into(), row.received_bytes.into());
    put(&mut out, "total_bytes", row.total_bytes);
    put(&mut out, "sha256", row.sha256.as_deref());
    put(&mut out, "artifact", row.artifact.as_ref().map(|handle| handle.as_str()));
    put(&mut out, "failure", row.reason.as_deref());
    put(&mut out, "ended_at", row.ended_micros.map(rfc3339));
    put(&mut out, "tab_id", row.page_id.as_ref().map(|id| id.as_str()));
    put(&mut out, "operation_id", row.operation_id.as_ref().map(|id| id.as_str()));
    out
}

pub static SAVE_DOWNLOAD: Tool = Tool {
    facts: ToolFacts {
        name: "save_download",
        title: "Save download",
        text: "Wait for a download's end and give its artifact and hash; with path, copy it among the session's files.",
        pack: Pack::Evidence,
        effect: Effect::SET,
        lane: Lane::Free,
        parameters: &[
            SESSION,
            Parameter::name("download_id", "from list_downloads").required(),
            Parameter::text("path", "relative; omit for the artifact alone"),
            TIMEOUT,
        ],
        returns: Returns::Object(&[
            SESSION_ID,
            Field::text("download_id"),
            Field::text("artifact"),
            Field::integer("bytes"),
            Field::text("sha256"),
            Field::text("suggested_name"),
            URL,
            Field::text("saved_to").maybe(),
        ]),
    },
    run: |call| Box::pin(save_download(call)),
};

async fn save_download(call: Call) -> Result<Output, Fault> {
    let session_id = paging::history(&call).await?;
    let path = call.arguments.optional_text("path").map(|path| permitted(&call, path)).transpose()?;
    let row = settled(&call, &session_id).await?;
    let (Some(handle), Some(sha256)) = (row.artifact, row.sha256) else {
        let reason = row.reason.unwrap_or_else(|| "it did not end in time, and goes on".to_owned());
        return Err(Fault::new(Code::DownloadFailed).with("reason", reason));
    };
    let mut data = json!({
        "session_id": call.arguments.text("session_id"),
        "download_id": row.download_id.as_str(),
        "artifact": handle.as_str(),
        "bytes": row.received_bytes,
        "sha256": sha256,
        "suggested_name": row.suggested_name,
        "url": row.url,
    });
    let mut artifacts = vec![keep::reference(&handle)];
    if let Some(path) = path {
        data["saved_to"] = path.display().to_string().into();
        artifacts.push(Reference::Path(path.display().to_string()));
        copy(&call, handle, path, row.seq).await?;
    }
    let mut output = Output::value(data);
    output.artifacts = artifacts;
    Ok(output)
}

/// The download, once it has ended or the time is up.
async fn settled(call: &Call, session_id: &SessionId) -> Result<DownloadRow, Fault> {
    let download_id = DownloadId::from(call.arguments.text("download_id"));
    let ledger = &call.gateway.ledger;
    let unknown = || Fault::new(Code::DownloadNotFound).with("download_id", download_id.as_str());
    let mut row = ledger.download(&call.owner, session_id, &download_id).await?.ok_or_else(unknown)?;
    if row.ended_micros.is_some() {
        return Ok(row);
    }
    let session = call.gateway.registry.find(&call.owner, session_id.as_str()).ok();
    let Some(browser) = session.as_ref().and_then(|session| session.browser_if_any()) else { return Ok(row) };
    match browser.downloads().ended(&download_id, call.deadline).await {
        // Its end may be on its way to the log still.
        Ok(Some(DownloadEnd::Kept(kept))) => {
            row.received_bytes = kept.bytes;
            row.artifact = Some(kept.handle);
            row.sha256 = Some(kept.sha256);
        }
        Ok(Some(DownloadEnd::Failed(reason))) => row.reason = Some(reason.to_owned()),
        Ok(None) | Err(_) => {}
    }
    Ok(row)
}

/// Below the files of the session's latest run.
fn permitted(call: &Call, asked: &str) -> Result<std::path::PathBuf, Fault> {
    let instance_id = call.target.ids().instance_id.ok_or_else(|| refusals::path(call, asked))?;
    refusals::below(call, &call.gateway.files_directory(&instance_id), asked)
}

async fn copy(call: &Call, handle: ArtifactHandle, path: std::path::PathBuf, seq: u64) -> Result<(), Fault> {
    let artifacts = call.gateway.artifacts.clone();
    let copied = keep::blocking(move || paths::copy(&artifacts.path(&handle)?, &path)).await;
    copied.map_err(|fault| match fault.code() {
        Code::HistoryDamaged => fault.with("first_seq", seq).with("last_seq", seq),
        _ => fault,
    })
}
