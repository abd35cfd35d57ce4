//! `list_downloads`.

use serde_json::{Map, Value};
use storage::query::{DownloadRow, List as ListKind};
use storage::time::rfc3339;

use super::paging::{self, AFTER, LIMIT, OPERATION, ORDER, Row, SINCE, TAB, UNTIL, put};
use crate::contract::facts::SESSION;
use crate::contract::result::{DROPPED_COUNT, HAS_MORE, NEXT_CURSOR, RETAINED_COUNT, RETENTION_LOST};
use crate::contract::{Effect, Field, Lane, Pack, Returns, ToolFacts};
use crate::fault::Fault;
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
    out.insert("state".into(), row.state.into());
    out.insert("received_bytes".into(), row.received_bytes.into());
    put(&mut out, "total_bytes", row.total_bytes);
    put(&mut out, "sha256", row.sha256.as_deref());
    put(&mut out, "artifact", row.artifact.as_ref().map(|handle| handle.as_str()));
    put(&mut out, "failure", row.reason.as_deref());
    put(&mut out, "tab_id", row.page_id.as_ref().map(|id| id.as_str()));
    put(&mut out, "operation_id", row.operation_id.as_ref().map(|id| id.as_str()));
    out
}
