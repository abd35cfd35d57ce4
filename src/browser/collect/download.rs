//! Downloads, however they began: from Chromium's file to an artifact with its hash.
//!
//! Chromium writes into the run directory under a name of its own; the finished file is moved into
//! the artifact store, so that it outlives the browser.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use storage::StorageError;
use storage::event::catalog::{DownloadFailed, DownloadFinished, DownloadProgress, DownloadStarted};
use storage::event::{Context, Draft, Symbol};
use storage::ids::{DownloadId, FrameId};

use super::outgoing::artifact_kept;
use super::{Collector, Handled, read};

/// Downloads followed at one time; further ones are counted in a gap.
const DOWNLOADS_MAX: usize = 1024;
/// Progress is recorded at most this often.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);

/// A download under way.
pub(super) struct Download {
    context: Context,
    received_bytes: u64,
    told_at: Instant,
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
        if self.downloads.len() >= DOWNLOADS_MAX {
            *self.losses.entry(("download.started".to_owned(), "queue_full")).or_default() += 1;
            return Some(());
        }
        let frame_id = FrameId::from(begin.frame_id);
        let page = self.setting.roster.pages().into_iter().find(|page| page.state().frames.contains_key(&frame_id));
        let mut context = self.page_context(page.as_ref());
        context.frame_id = Some(frame_id.clone());
        let payload = DownloadStarted {
            download_id: DownloadId::from(begin.guid.as_str()),
            url: self.setting.redactor.url(&begin.url),
            suggested_name: self.setting.redactor.text(&begin.suggested_filename),
        };
        self.record(&context, &payload);
        if let Some(page) = page {
            self.change(&page, |state| {
                state.downloads_started += 1;
                let of_frame = |load: &&mut super::super::state::Load| load.frame_id.as_ref() == Some(&frame_id);
                if let Some(load) = state.loads.iter_mut().rev().find(of_frame).filter(|load| load.url == begin.url) {
                    load.download = true;
                }
            });
        }
        self.downloads.insert(begin.guid, Download { context, received_bytes: 0, told_at: Instant::now() });
        Some(())
    }

    pub(super) fn download_progress(&mut self, raw: &RawValue) -> Handled {
        let progressed: Progressed = read(raw)?;
        let Some(download) = self.downloads.get_mut(&progressed.guid) else { return Some(()) };
        download.received_bytes = progressed.received_bytes.max(0.0) as u64;
        match progressed.state.as_str() {
            "completed" => self.download_finished(&progressed.guid, progressed.file_path),
            "canceled" => self.download_failed(&progressed.guid, "canceled"),
            _ if download.told_at.elapsed() >= PROGRESS_PAUSE => {
                download.told_at = Instant::now();
                let payload = DownloadProgress {
                    download_id: DownloadId::from(progressed.guid.as_str()),
                    received_bytes: download.received_bytes,
                    total_bytes: (progressed.total_bytes > 0.0).then_some(progressed.total_bytes as u64),
                };
                let context = download.context.clone();
                self.record(&context, &payload);
            }
            _ => {}
        }
        Some(())
    }

    pub(super) fn download_failed(&mut self, guid: &str, reason: &str) {
        let Some(download) = self.downloads.remove(guid) else { return };
        let payload = failure(guid, reason, download.received_bytes);
        self.record(&download.context, &payload);
    }

    fn download_finished(&mut self, guid: &str, file_path: Option<String>) {
        let Some(download) = self.downloads.remove(guid) else { return };
        // Only a file of the directory we gave is ours to move.
        let told = file_path.map(PathBuf::from).filter(|path| path.parent() == Some(&self.setting.downloads));
        let path = told.unwrap_or_else(|| self.setting.downloads.join(guid.replace(['/', '\\'], "_")));
        let (artifacts, journal) = (self.setting.artifacts.clone(), self.setting.journal.clone());
        let (redactor, guid) = (self.setting.redactor.clone(), guid.to_owned());
        let keep = move || {
            let Download { context, received_bytes, .. } = download;
            let drafts = match artifacts.put_file(&path) {
                Ok(kept) => {
                    let payload = DownloadFinished {
                        download_id: DownloadId::from(guid.as_str()),
                        bytes: kept.bytes,
                        sha256: redactor.text(&kept.sha256),
                        artifact: kept.handle.clone(),
                    };
                    let artifact = artifact_kept(&context, &kept, "download", "application/octet-stream", &redactor);
                    vec![artifact, Draft::new(&context, &payload)]
                }
                Err(error) => {
                    let reason = if matches!(error, StorageError::Limit { .. }) { "too_large" } else { "unreadable" };
                    vec![Draft::new(&context, &failure(&guid, reason, received_bytes))]
                }
            };
            journal.record(drafts);
        };
        self.fetcher.beside(keep);
    }
}

fn failure(guid: &str, reason: &str, received_bytes: u64) -> DownloadFailed {
    DownloadFailed { download_id: DownloadId::from(guid), reason: Symbol::fold(reason), received_bytes }
}
