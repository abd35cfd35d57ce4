//! Downloads, however they began: from Chromium's file to an artifact with its hash.
//!
//! Chromium writes into the run directory under a name of its own, never under one that a server or
//! page chose; the finished file is moved into the artifact store, so that it outlives the browser. A
//! download that goes past a bound is stopped while it runs, and nothing of it stays.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use storage::StorageError;
use storage::artifact::{ArtifactStore, Kept, LIMIT_OF_ALL};
use storage::event::catalog::{DownloadFailed, DownloadFinished, DownloadProgress, DownloadStarted};
use storage::event::{Context, Draft, Symbol};
use storage::ids::{DownloadId, FrameId};

use super::super::downloads::{Download, DownloadEnd};
use super::super::handle::Page;
use super::super::state::{Load, WindowAsked};
use super::outgoing::artifact_kept;
use super::{Collector, Handled, read};

/// Downloads followed at one time; further ones are counted in a gap.
const DOWNLOADS_MAX: usize = 1024;
/// Progress is recorded at most this often.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// A download under way.
pub(super) struct Running {
    context: Context,
    received_bytes: u64,
    told_at: Instant,
    /// Why it is being stopped by us.
    stopped: Arc<OnceLock<&'static str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Begin {
    frame_id: String,
    guid: String,
    url: String,
    suggested_filename: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Progressed {
    guid: String,
    total_bytes: f64,
    received_bytes: f64,
    state: String,
    file_path: Option<String>,
}

impl Collector {
    pub(super) fn download_started(&mut self, raw: &RawValue) -> Handled {
        let begin: Begin = read(raw)?;
        if self.running_downloads.len() >= DOWNLOADS_MAX {
            *self.losses.entry(("download.started".to_owned(), "queue_full")).or_default() += 1;
            self.setting.connection.post(None, "Browser.cancelDownload", json!({ "guid": begin.guid }));
            return Some(());
        }
        let frame_id = FrameId::from(begin.frame_id);
        let page = self.setting.roster.pages().into_iter().find(|page| page.state().frames.contains_key(&frame_id));
        let mut context = self.page_context(page.as_ref());
        context.frame_id = Some(frame_id.clone());
        let download_id = DownloadId::from(begin.guid.as_str());
        let payload = DownloadStarted {
            download_id: download_id.clone(),
            url: self.setting.redactor.url(&begin.url),
            suggested_name: self.setting.redactor.text(&begin.suggested_filename),
        };
        self.record(&context, &payload);
        let opener = page.as_ref().and_then(Page::opener).cloned();
        self.setting.downloads.begin(Download {
            download_id: download_id.clone(),
            page_id: page.as_ref().map(|page| page.page_id().clone()),
            opener: opener.clone(),
            url: begin.url.clone(),
            suggested_name: begin.suggested_filename,
            end: None,
        });
        self.downloads_touched = true;
        if let Some(page) = &page {
            self.change(page, |state| {
                state.downloads.add(download_id.clone());
                let of_frame = |load: &&mut Load| load.frame_id.as_ref() == Some(&frame_id);
                if let Some(load) = state.loads.iter_mut().rev().find(of_frame).filter(|load| load.url == begin.url) {
                    load.download = true;
                }
            });
        }
        if let Some(opener) = opener.and_then(|opener| self.setting.roster.by_id(&opener)) {
            self.change(&opener, |state| state.downloads.add(download_id));
            if let Some(page) = page.filter(|page| was_opened_for(page, &opener, &frame_id)) {
                self.setting.connection.post(None, "Target.closeTarget", json!({ "targetId": page.target_id() }));
            }
        }
        let running = Running { context, received_bytes: 0, told_at: Instant::now(), stopped: Arc::default() };
        self.running_downloads.insert(begin.guid, running);
        Some(())
    }

    pub(super) fn download_progress(&mut self, raw: &RawValue) -> Handled {
        let progressed: Progressed = read(raw)?;
        let Some(running) = self.running_downloads.get_mut(&progressed.guid) else { return Some(()) };
        // The last word on a download that failed names no bytes.
        running.received_bytes = running.received_bytes.max(progressed.received_bytes.max(0.0) as u64);
        let total_bytes = (progressed.total_bytes > 0.0).then_some(progressed.total_bytes as u64);
        match progressed.state.as_str() {
            "completed" => self.download_finished(&progressed.guid, progressed.file_path),
            "canceled" => {
                let closing = *self.setting.closing.borrow();
                self.download_failed(&progressed.guid, if closing { "session_closed" } else { "canceled" });
            }
            _ => {
                self.watch_bounds(&progressed.guid, total_bytes);
                self.tell_progress(&progressed.guid, total_bytes);
            }
        }
        Some(())
    }

    fn tell_progress(&mut self, guid: &str, total_bytes: Option<u64>) {
        let running = self.running_downloads.get_mut(guid);
        let Some(running) = running.filter(|running| running.told_at.elapsed() >= PROGRESS_PAUSE) else { return };
        running.told_at = Instant::now();
        let (context, received_bytes) = (running.context.clone(), running.received_bytes);
        self.record(&context, &DownloadProgress { download_id: DownloadId::from(guid), received_bytes, total_bytes });
    }

    /// Stops a download for whose file there would be no place. Looked at beside the stream of events:
    /// how much is kept may have to be read from the disk.
    fn watch_bounds(&mut self, guid: &str, total_bytes: Option<u64>) {
        let altogether: u64 = self.running_downloads.values().map(|running| running.received_bytes).sum();
        let Some(running) = self.running_downloads.get(guid).filter(|running| running.stopped.get().is_none()) else {
            return;
        };
        let bytes = total_bytes.unwrap_or(0).max(running.received_bytes);
        let altogether = altogether - running.received_bytes + bytes;
        let (bytes_max, artifacts) = (self.setting.download_bytes_max, self.setting.artifacts.clone());
        let (connection, stopped) = (self.setting.connection.clone(), running.stopped.clone());
        let guid = guid.to_owned();
        self.fetcher.beside(move || {
            let refused = refusal(bytes, bytes_max).or_else(|| artifacts.room(altogether).err().map(|e| reason(&e)));
            if let Some(refused) = refused {
                let _ = stopped.set(refused);
                connection.post(None, "Browser.cancelDownload", json!({ "guid": guid }));
            }
        });
    }

    pub(super) fn download_failed(&mut self, guid: &str, reason: &'static str) {
        let Some(running) = self.running_downloads.remove(guid) else { return };
        let reason = running.stopped.get().copied().unwrap_or(reason);
        self.record(&running.context, &failure(guid, reason, running.received_bytes));
        self.setting.downloads.end(&DownloadId::from(guid), DownloadEnd::Failed(reason));
        self.downloads_touched = true;
    }

    fn download_finished(&mut self, guid: &str, file_path: Option<String>) {
        let Some(running) = self.running_downloads.remove(guid) else { return };
        // Only a file of the directory we gave is ours to move.
        let directory = &self.setting.download_directory;
        let told = file_path.map(PathBuf::from).filter(|path| path.parent() == Some(directory));
        let path = told.unwrap_or_else(|| directory.join(guid.replace(['/', '\\'], "_")));
        let (artifacts, journal) = (self.setting.artifacts.clone(), self.setting.journal.clone());
        let (redactor, downloads) = (self.setting.redactor.clone(), self.setting.downloads.clone());
        let bytes_max = self.setting.download_bytes_max;
        let download_id = DownloadId::from(guid);
        self.fetcher.beside(move || {
            let Running { context, received_bytes, .. } = running;
            let (drafts, end) = match keep(&artifacts, &path, bytes_max) {
                Ok(kept) => {
                    let payload = DownloadFinished {
                        download_id: download_id.clone(),
                        bytes: kept.bytes,
                        sha256: redactor.text(&kept.sha256),
                        artifact: kept.handle.clone(),
                    };
                    let artifact = artifact_kept(&context, &kept, "download", "application/octet-stream", &redactor);
                    (vec![artifact, Draft::new(&context, &payload)], DownloadEnd::Kept(kept))
                }
                Err(reason) => {
                    // What is not kept takes no room either; the directory goes with the session.
                    let _ = std::fs::remove_file(&path);
                    let failed = failure(download_id.as_str(), reason, received_bytes);
                    (vec![Draft::new(&context, &failed)], DownloadEnd::Failed(reason))
                }
            };
            journal.record(drafts);
            downloads.end(&download_id, end);
            downloads.notify();
        });
    }
}

/// Whether `page` is a window that came for the download alone: a browser with windows closes it, and
/// one without has to be told. One that its opener fills by script stays.
fn was_opened_for(page: &Page, opener: &Page, frame_id: &FrameId) -> bool {
    let (state, opener) = (page.state(), opener.state());
    let filled = opener.windows.since(0).contains(&WindowAsked::Empty);
    state.main_frame_id == *frame_id && state.navigations_committed == 0 && !filled
}

fn keep(artifacts: &ArtifactStore, path: &std::path::Path, bytes_max: u64) -> Result<Kept, &'static str> {
    let bytes = std::fs::metadata(path).map_err(|_| "unreadable")?.len();
    match refusal(bytes, bytes_max) {
        Some(refused) => Err(refused),
        None => artifacts.put_file(path).map_err(|error| reason(&error)),
    }
}

fn refusal(bytes: u64, bytes_max: u64) -> Option<&'static str> {
    (bytes > bytes_max).then_some("too_large")
}

/// Why the artifact store does not take a file, as `download.failed` says it.
fn reason(error: &StorageError) -> &'static str {
    match error {
        StorageError::Limit { name, .. } if *name == LIMIT_OF_ALL => "quota",
        StorageError::Limit { .. } => "too_large",
        error if error.is_full() => "disk_low",
        _ => "unreadable",
    }
}

fn failure(guid: &str, reason: &str, received_bytes: u64) -> DownloadFailed {
    DownloadFailed { download_id: DownloadId::from(guid), reason: Symbol::fold(reason), received_bytes }
}
