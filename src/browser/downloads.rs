//! The downloads of one browser, for calls that wait for one: where each began and how it ended.
//!
//! The log is the record; this forgets the oldest ones that have ended. The collector writes here
//! after a download's events are on their way to the log, so that whoever wakes finds them before its own.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use storage::artifact::Kept;
use storage::ids::{DownloadId, PageId};
use tokio::sync::watch;

use crate::deadline::{Deadline, Passed};

/// Downloads remembered; when more are under way, the oldest is forgotten here all the same.
const REMEMBERED_MAX: usize = 1024;

/// One download.
#[derive(Debug, Clone)]
pub struct Download {
    pub download_id: DownloadId,
    /// The tab it began in.
    pub page_id: Option<PageId>,
    /// The tab that opened that one.
    pub opener: Option<PageId>,
    pub url: String,
    pub suggested_name: String,
    pub end: Option<DownloadEnd>,
}

/// How a download ended.
#[derive(Debug, Clone)]
pub enum DownloadEnd {
    Kept(Kept),
    /// Without a file; the reason as `download.failed` has it.
    Failed(&'static str),
}

/// All of a browser.
#[derive(Default)]
pub struct Downloads {
    inner: Mutex<Inner>,
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    begun: u64,
    latest: VecDeque<Download>,
}

impl Downloads {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, download: Download) {
        let mut inner = self.lock();
        inner.begun += 1;
        if inner.latest.len() >= REMEMBERED_MAX {
            let oldest_ended = inner.latest.iter().position(|download| download.end.is_some());
            inner.latest.remove(oldest_ended.unwrap_or(0));
        }
        inner.latest.push_back(download);
    }

    pub(super) fn end(&self, download_id: &DownloadId, end: DownloadEnd) {
        let mut inner = self.lock();
        if let Some(download) = inner.latest.iter_mut().find(|download| download.download_id == *download_id) {
            download.end = Some(end);
        }
    }

    pub(super) fn notify(&self) {
        self.version.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Tells those that begin later from those up to now.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.lock().begun
    }

    #[must_use]
    pub fn find(&self, download_id: &DownloadId) -> Option<Download> {
        self.lock().latest.iter().find(|download| download.download_id == *download_id).cloned()
    }

    /// Waits for the first download after `mark` that began in `page_id` or in a tab that it opened.
    ///
    /// # Errors
    /// `Passed` when the deadline comes first.
    pub async fn begun_in(&self, page_id: &PageId, mark: u64, deadline: Deadline) -> Result<Download, Passed> {
        let of_page = |download: &&Download| {
            download.page_id.as_ref() == Some(page_id) || download.opener.as_ref() == Some(page_id)
        };
        self.wait(deadline, |inner| {
            let new = usize::try_from(inner.begun.saturating_sub(mark)).unwrap_or(usize::MAX);
            let first = inner.latest.len().saturating_sub(new);
            inner.latest.iter().skip(first).find(of_page).cloned()
        })
        .await
    }

    /// Waits until a download has ended. One that is not remembered any more has.
    ///
    /// # Errors
    /// `Passed` when the deadline comes first.
    pub async fn ended(&self, download_id: &DownloadId, deadline: Deadline) -> Result<Option<DownloadEnd>, Passed> {
        self.wait(deadline, |inner| match inner.latest.iter().find(|download| download.download_id == *download_id) {
            Some(download) => download.end.clone().map(Some),
            None => Some(None),
        })
        .await
    }

    async fn wait<T>(&self, deadline: Deadline, find: impl Fn(&Inner) -> Option<T>) -> Result<T, Passed> {
        let mut version = self.version.subscribe();
        loop {
            version.borrow_and_update();
            if let Some(found) = find(&self.lock()) {
                return Ok(found);
            }
            // The sender lives as long as this value: a change or the deadline comes.
            let _ = deadline.bound(version.changed()).await?;
        }
    }
}
