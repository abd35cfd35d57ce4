//! `upload_file`, `download_file`: files into pages and out of them.
//!
//! What a page gets lies in the operator's upload directories or among the session's own files; what
//! comes out goes to the session's own files, and stays kept as an artifact too.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use storage::StorageError;
use storage::artifact::Kept;

use super::acting::{acted, echo, ok};
use super::faults;
use super::refusals;
use super::tool::{Call, Output, Tool};
use crate::browser::Page;
use crate::browser::downloads::{Download, DownloadEnd};
use crate::browser::page::{ActionDone, ClickOptions, Offered};
use crate::contract::facts::{SELECTOR, SESSION, TAB, TIMEOUT};
use crate::contract::result::{OK, SELECTED, SESSION_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::Reference;
use crate::fault::{Code, Fault};
use crate::keep;
use crate::paths::{self, NotReadable};

/// Files in one upload.
const UPLOAD_FILES_MAX: usize = 1_000;
/// Where a session's downloads go, below its own files.
const DOWNLOADS: &str = "downloads";

pub static UPLOAD_FILE: Tool = Tool {
    facts: ToolFacts {
        name: "upload_file",
        title: "Upload file",
        text: "Give files to a file input (hidden ones too), to what opens a file chooser, or to the chooser that is open.",
        pack: Pack::Files,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            SELECTOR,
            Parameter::new(
                "paths",
                Shape::Texts { items_min: 1, items_max: UPLOAD_FILES_MAX },
                "below the server's uploads directory, or saved in this session",
            )
            .required(),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, SELECTED, OK, Field::objects("files")]),
    },
    run: |call| Box::pin(upload_file(call)),
};

async fn upload_file(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    // Looked at before the page is touched.
    let offered = offered(&call).await?;
    let selector = call.arguments.text("selector");
    let done = page.upload(selector, &offered, call.deadline).await.map_err(faults::page(&call))?;
    let files: Value = offered.paths.iter().map(|path| told(path)).collect();
    Ok(Output::value(acted(&call, &done, &[echo(&call, "selector"), ok(), ("files", files)])))
}

fn told(path: &Path) -> Value {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let bytes = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|facts| facts.len());
    json!({"name": name, "bytes": bytes})
}

async fn offered(call: &Call) -> Result<Offered, Fault> {
    let mut roots = vec![call.gateway.config.data_dir.join("uploads"), call.files_directory()?];
    roots.extend(call.gateway.config.upload_dir.clone());
    let asked = call.arguments.texts("paths");
    let refused = match keep::blocking(move || Ok::<_, Fault>(look(&roots, &asked))).await? {
        Ok(offered) => return Ok(offered),
        Err(refused) => refused,
    };
    let reason = match refused.why {
        Some(NotReadable::Absent) => "there is no such file",
        Some(NotReadable::Special) => "it is neither a file nor a directory",
        Some(NotReadable::Outside | NotReadable::Linked) => {
            return Err(refusals::path(call, &refused.path));
        }
        None => "a directory is given alone",
    };
    Err(Fault::new(Code::UploadFailed).with("reason", format!("{reason}: {}", refused.path)))
}

/// A path that cannot be given.
struct Refused {
    path: String,
    /// `None`: a directory beside other paths.
    why: Option<NotReadable>,
}

/// Every path, or the first that is refused.
fn look(roots: &[PathBuf], asked: &[String]) -> Result<Offered, Refused> {
    // Paths of the directories may be given as the caller sees them or as they are.
    let mut known = Vec::new();
    for root in roots {
        known.extend(root.canonicalize().ok());
        known.push(root.clone());
    }
    let mut paths = Vec::with_capacity(asked.len());
    let mut directory = false;
    for path in asked {
        let refuse = |why: Option<NotReadable>| Refused { path: path.clone(), why };
        let found = paths::readable(&known, path).map_err(|why| refuse(Some(why)))?;
        if found.is_dir() {
            if asked.len() > 1 {
                return Err(refuse(None));
            }
            paths::without_links(&found).map_err(|why| refuse(Some(why)))?;
            directory = true;
        }
        paths.push(found);
    }
    Ok(Offered { paths, directory })
}

pub static DOWNLOAD_FILE: Tool = Tool {
    facts: ToolFacts {
        name: "download_file",
        title: "Download file",
        text: "Click what starts a download, wait for its end, and save the file among the session's own.",
        pack: Pack::Files,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::selector("trigger_selector", "").required(),
            TIMEOUT,
            TAB,
            Parameter::text("save_as", "file name; the suggested one by default"),
        ],
        returns: Returns::Object(&[
            SESSION_ID,
            Field::text("saved_to"),
            Field::text("suggested_name"),
            Field::integer("size"),
            Field::text("sha256"),
            URL,
            Field::text("download_id"),
            Field::text("artifact"),
        ]),
    },
    run: |call| Box::pin(download_file(call)),
};

async fn download_file(call: Call) -> Result<Output, Fault> {
    let directory = call.files_directory()?.join(DOWNLOADS);
    let save_as =
        call.arguments.optional_text("save_as").map(|name| refusals::below(&call, &directory, name)).transpose()?;
    let page = call.page()?;
    let downloads = call.browser()?.downloads();
    let mark = downloads.mark();
    let selector = call.arguments.text("trigger_selector");
    let done = page.click(selector, &ClickOptions::default(), call.deadline).await.map_err(faults::page(&call))?;
    let begun = begun(&call, &page, mark, &done).await?;
    let end = downloads.ended(&begun.download_id, call.deadline).await;
    let kept = match end {
        Ok(Some(DownloadEnd::Kept(kept))) => kept,
        Ok(Some(DownloadEnd::Failed(reason))) => return Err(failed(reason)),
        Ok(None) => return Err(failed("too many downloads at once; see list_downloads")),
        Err(_) => return Err(failed("it still runs; see list_downloads, then save_download")),
    };
    let saved = save(&call, &kept, directory, save_as, &begun.suggested_name).await?;
    let shown = saved.display().to_string();
    let mut output = Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "saved_to": shown,
        "suggested_name": begun.suggested_name,
        "size": kept.bytes,
        "sha256": kept.sha256,
        "url": begun.url,
        "download_id": begun.download_id.as_str(),
        "artifact": kept.handle.as_str(),
    }));
    output.artifacts = vec![Reference::Path(shown), keep::reference(&kept.handle)];
    Ok(output)
}

/// The download that the click set off.
async fn begun(call: &Call, page: &Page, mark: u64, done: &ActionDone) -> Result<Download, Fault> {
    let downloads = call.browser()?.downloads();
    // One that began meanwhile counts, whatever else happened.
    let begun = downloads.begun_in(page.page_id(), mark, call.deadline.within(std::time::Duration::ZERO)).await;
    if let Ok(begun) = begun {
        return Ok(begun);
    }
    if let Some(dialog) = &done.dialog {
        return Err(faults::dialog_blocks(&dialog.dialog_type));
    }
    let begun = downloads.begun_in(page.page_id(), mark, call.deadline).await;
    begun.map_err(|_| failed("the click was done, but no download began in time"))
}

fn failed(reason: &str) -> Fault {
    Fault::new(Code::DownloadFailed).with("reason", reason)
}

/// Copies what was kept to `save_as`, or to the suggested name with a number where that is taken.
async fn save(
    call: &Call,
    kept: &Kept,
    directory: PathBuf,
    save_as: Option<PathBuf>,
    suggested_name: &str,
) -> Result<PathBuf, Fault> {
    let (artifacts, handle) = (call.gateway.artifacts.clone(), kept.handle.clone());
    let name = paths::plain_name(suggested_name);
    let refused = Fault::new(Code::PathNotAllowed).with("path", name.as_str());
    let saved = keep::blocking(move || {
        let target = match save_as {
            Some(path) => Some(path),
            None => paths::below(&directory, &name).and_then(|_| paths::free_name(&directory, &name)).ok(),
        };
        let Some(target) = target else { return Ok(None) };
        paths::copy(&artifacts.path(&handle)?, &target)?;
        Ok::<_, StorageError>(Some(target))
    });
    saved.await?.ok_or(refused)
}
