//! The read side of storage: what tools, exports and the operator page ask.
//!
//! Every question is asked on behalf of an owner. What belongs to another owner is answered exactly
//! like what does not exist.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::StorageError;
use crate::ids::{ArtifactHandle, DownloadId, Owner, RequestId, SessionId};
use crate::index::{ArtifactRow, Failure, Index, SessionRow, View};
use crate::limits;
use crate::log::Reader;
use crate::query::cursor::{Binding, CursorKey, List, Order};
use crate::query::downloads::{self, DownloadRow};
use crate::query::matching::CompiledFilter;
use crate::query::owned::OwnedEvent;
use crate::query::removed::Removed;
use crate::query::request_row::RequestRow;
use crate::query::requests::{self, RequestDetail};
use crate::query::walk::Walked;
use crate::query::{CATCH_UP_MILLIS, PAGE_SCAN_MILLIS, events};

/// Ties the log's reader, the index and the cursor key together. Cheap to clone.
#[derive(Clone)]
pub struct Ledger {
    reader: Reader,
    index: Index,
    key: CursorKey,
}

/// One page, please.
#[derive(Debug, Clone, Copy)]
pub struct PageRequest<'a> {
    pub filter: &'a CompiledFilter,
    pub order: Order,
    /// Cursor of an earlier page of the same filter, order and owner.
    pub after: Option<&'a str>,
    /// At least 1 and at most `limits::PAGE_LIMIT_MAX`; what is beyond is brought back within.
    pub limit: usize,
    pub owner: &'a Owner,
}

/// One page of a walk.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Always good for going on, also when nothing is left for now.
    pub next_cursor: String,
    /// Whether more is known to be there, or the page ended early and more may be.
    pub has_more: bool,
    /// What the stream (the session's events of the filter's kinds) holds, whatever else is filtered.
    pub retained_count: Option<u64>,
    /// What `gap` events declare missing from that stream.
    pub dropped_count: u64,
    /// What retention took of that stream.
    pub removed_count: u64,
    /// Whether retention took an event that the filter would show, or may have shown, beyond `after`.
    pub retention_lost: bool,
    /// Matches left out by `hide_static` between `after` and `next_cursor`.
    pub hidden_count: u64,
}

/// A page request made fit to cross into a blocking thread.
#[derive(Clone)]
pub(super) struct Wanted {
    pub filter: CompiledFilter,
    pub order: Order,
    pub after: Option<u64>,
    pub limit: usize,
    pub owner: Owner,
    pub until: Instant,
}

/// What a walk found, before its cursor is written.
pub(super) struct Found<T> {
    pub items: Vec<T>,
    pub walked: Walked,
    pub retained: Option<u64>,
    pub dropped: u64,
    pub removed: Removed,
    pub hidden: u64,
}

/// Looks that one question takes: each may find one more table damaged.
const ATTEMPTS_MAX: u32 = 16;

type Ask<T> = dyn Fn(&View) -> Result<T, Failure> + Send + Sync;

impl Ledger {
    #[must_use]
    pub fn new(reader: Reader, index: Index, key: CursorKey) -> Self {
        Self { reader, index, key }
    }

    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Events in order of `seq`.
    ///
    /// # Errors
    /// `StorageError::Cursor` when `after` does not belong here; else when the log cannot be read.
    pub async fn page(&self, request: &PageRequest<'_>) -> Result<Page<OwnedEvent>, StorageError> {
        self.list(request, List::Events, events::page).await
    }

    /// Requests and WebSockets in order of their start. State is that of the moment of reading: a
    /// request still pending is no match for `status`, and is not looked at again by later pages.
    ///
    /// # Errors
    /// As [`Ledger::page`].
    pub async fn requests_page(&self, request: &PageRequest<'_>) -> Result<Page<RequestRow>, StorageError> {
        self.list(request, List::Requests, requests::page).await
    }

    /// Downloads in order of their start.
    ///
    /// # Errors
    /// As [`Ledger::page`].
    pub async fn downloads_page(&self, request: &PageRequest<'_>) -> Result<Page<DownloadRow>, StorageError> {
        self.list(request, List::Downloads, downloads::page).await
    }

    /// One download with its present state.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn download(
        &self,
        owner: &Owner,
        session: &SessionId,
        download: &DownloadId,
    ) -> Result<Option<DownloadRow>, StorageError> {
        let (owner, only, download) = (owner.clone(), session.clone(), download.clone());
        self.ask(Some(session.clone()), Arc::new(move |view| downloads::one(view, &owner, &only, &download))).await
    }

    /// The cursor that goes on after the item of that `seq`, for a caller that keeps only the beginning
    /// of a page.
    #[must_use]
    pub fn cursor_at(&self, request: &PageRequest<'_>, list: List, seq: u64) -> String {
        self.key.write(&self.binding(request, list), seq)
    }

    #[cfg(test)]
    pub(super) fn place_of(&self, request: &PageRequest<'_>, list: List, cursor: &str) -> u64 {
        self.key.read(&self.binding(request, list), cursor).expect("the cursor belongs here")
    }

    /// # Errors
    /// When the log cannot be read.
    pub async fn request(
        &self,
        owner: &Owner,
        session: &SessionId,
        request: &RequestId,
    ) -> Result<Option<RequestDetail>, StorageError> {
        let (owner, only, request) = (owner.clone(), session.clone(), request.clone());
        self.ask(Some(session.clone()), Arc::new(move |view| requests::detail(view, &owner, &only, &request))).await
    }

    /// # Errors
    /// When the log cannot be read.
    pub async fn session(&self, owner: &Owner, session: &SessionId) -> Result<Option<SessionRow>, StorageError> {
        let (owner, only) = (owner.clone(), session.clone());
        self.ask(Some(session.clone()), Arc::new(move |view| view.session(&owner, &only))).await
    }

    /// Every session of an owner that the log knows, in order of their first event.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn sessions(&self, owner: &Owner) -> Result<Vec<SessionRow>, StorageError> {
        let owner = owner.clone();
        let named = |row: &SessionRow| !row.session_id.as_str().is_empty();
        self.ask(None, Arc::new(move |view| Ok(view.sessions(&owner)?.into_iter().filter(named).collect()))).await
    }

    /// # Errors
    /// When the log cannot be read.
    pub async fn artifact(&self, owner: &Owner, handle: &ArtifactHandle) -> Result<Option<ArtifactRow>, StorageError> {
        let (owner, handle) = (owner.clone(), handle.clone());
        self.ask(None, Arc::new(move |view| view.artifact(&owner, &handle))).await
    }

    async fn list<T: Send + 'static>(
        &self,
        request: &PageRequest<'_>,
        list: List,
        find: fn(&View, &Wanted) -> Result<Found<T>, Failure>,
    ) -> Result<Page<T>, StorageError> {
        let binding = self.binding(request, list);
        let after = request.after.map(|text| self.key.read(&binding, text)).transpose()?;
        if after.is_some_and(|seq| seq > self.reader.durable().map_or(0, |durable| durable.last_seq)) {
            return Err(StorageError::Cursor { what: "log" });
        }
        let wanted = Wanted {
            filter: request.filter.clone(),
            order: request.order,
            after,
            limit: request.limit.clamp(1, limits::PAGE_LIMIT_MAX),
            owner: request.owner.clone(),
            until: Instant::now() + Duration::from_millis(CATCH_UP_MILLIS + PAGE_SCAN_MILLIS),
        };
        let only = request.filter.filter().session_id.clone();
        let found = self.ask(only, Arc::new(move |view| find(view, &wanted))).await?;
        let first_seq = self.reader.first_seq();
        // Where nothing was examined the walk stays where it is, or where it would begin.
        let start = match request.order {
            Order::Oldest => first_seq.saturating_sub(1),
            Order::Newest => first_seq,
        };
        let place = found.walked.examined.or(after).unwrap_or(start);
        Ok(Page {
            next_cursor: self.key.write(&binding, place),
            has_more: !found.walked.complete,
            items: found.items,
            retained_count: found.retained,
            dropped_count: found.dropped,
            removed_count: found.removed.count,
            retention_lost: found.removed.beyond,
            hidden_count: found.hidden,
        })
    }

    fn binding<'a>(&'a self, request: &PageRequest<'a>, list: List) -> Binding<'a> {
        Binding {
            list,
            order: request.order,
            log_id: self.reader.log_id(),
            owner: request.owner,
            fingerprint: request.filter.fingerprint(),
        }
    }

    /// Answers from the index; what fails there is made again, and meanwhile the log answers.
    async fn ask<T: Send + 'static>(&self, only: Option<SessionId>, ask: Arc<Ask<T>>) -> Result<T, StorageError> {
        let last_seq = self.reader.durable()?.last_seq;
        let patience = Duration::from_millis(CATCH_UP_MILLIS);
        // Late is not wrong: the view makes up for what the index has not seen.
        let _ = tokio::time::timeout(patience, self.index.caught_up(last_seq)).await;
        let mut reason = String::new();
        for attempt in 1..=ATTEMPTS_MAX {
            let trusting = attempt < ATTEMPTS_MAX;
            match self.attempt(only.clone(), ask.clone(), last_seq, trusting).await {
                Ok(answer) => return Ok(answer),
                // A segment was written anew or removed meanwhile: a new look sees it as it is now.
                Err(Failure::Storage(StorageError::Moved)) => reason = StorageError::Moved.to_string(),
                Err(Failure::Storage(error)) => return Err(error),
                Err(failure) => {
                    reason = failure.to_string();
                    self.index.complain(failure);
                }
            }
        }
        Err(StorageError::Unavailable { reason })
    }

    async fn attempt<T: Send + 'static>(
        &self,
        only: Option<SessionId>,
        ask: Arc<Ask<T>>,
        last_seq: u64,
        trusting: bool,
    ) -> Result<T, Failure> {
        let (index, reader) = (self.index.clone(), self.reader.clone());
        let work = move || index.view(&reader, last_seq, only.as_ref(), trusting).and_then(|view| ask(&view));
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(Failure::Index(format!("a question was not answered: {error}"))))
    }
}
