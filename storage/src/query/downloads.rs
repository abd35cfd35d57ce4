//! Downloads: one row each in order of start, joined with how they ended.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, ValueRef};
use crate::ids::{ArtifactHandle, DownloadId, OperationId, Owner, PageId, SessionId};
use crate::index::{Chain, Failure, Space, View};
use crate::log::Position;
use crate::query::events::Stream;
use crate::query::filter::EventFilter;
use crate::query::ledger::{Found, Wanted};
use crate::query::matching::CompiledFilter;
use crate::query::owned::OwnedEvent;
use crate::query::removed::Removed;
use crate::query::walk::{Sight, gather};

/// Kinds that the downloads of a page are made of, for what is declared missing.
const STREAM: [Kind; 4] = [Kind::DownloadStarted, Kind::DownloadProgress, Kind::DownloadFinished, Kind::DownloadFailed];

/// One download with its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadRow {
    /// Of its first event: the row's place in the list.
    pub seq: u64,
    pub session_id: SessionId,
    pub download_id: DownloadId,
    pub page_id: Option<PageId>,
    pub operation_id: Option<OperationId>,
    pub started_micros: i64,
    pub url: String,
    pub suggested_name: String,
    /// `in_progress`, `finished` or `failed`.
    pub state: &'static str,
    pub received_bytes: u64,
    pub total_bytes: Option<u64>,
    pub sha256: Option<String>,
    pub artifact: Option<ArtifactHandle>,
    /// Why it failed.
    pub reason: Option<String>,
    pub ended_micros: Option<i64>,
}

pub(super) fn page(view: &View, wanted: &Wanted) -> Result<Found<DownloadRow>, Failure> {
    let removed = Removed::of(view, wanted, Some(&STREAM), &|_| true)?;
    let Some(stream) = Stream::of(view, wanted)? else { return Ok(Found::nothing(removed)) };
    let starts = starts(wanted.filter.filter());
    let mut rows = Vec::new();
    let mut visit = |event: &EventView<'_>| {
        let text = |name: &str| event.get(name).and_then(ValueRef::as_str).unwrap_or_default();
        if !wanted.filter.url().is_none_or(|pattern| pattern.is_match(text("url"))) {
            return Ok(ControlFlow::Continue(()));
        }
        let row = begun(event);
        let chain = view.chain(Space::Download, row.session_id.as_str(), row.download_id.as_str())?;
        let failed = chain.links.iter().any(|link| link.kind == Kind::DownloadFailed.number());
        if wanted.filter.filter().failed.is_some_and(|wanted| wanted != failed) {
            return Ok(ControlFlow::Continue(()));
        }
        if rows.len() == wanted.limit {
            return Ok(ControlFlow::Break(()));
        }
        rows.push((row, chain));
        Ok(ControlFlow::Continue(()))
    };
    let walked = wanted.walk(view, &starts).run(&mut visit)?;
    let all: Vec<_> = rows.iter().flat_map(|(_, chain)| telling(chain)).collect();
    let events = gather(view, &all)?;
    let items = rows.into_iter().map(|(row, chain)| row.joined(&chain, &events)).collect();
    let (retained, dropped) =
        (Some(stream.row.count(Some(&[Kind::DownloadStarted]))), stream.row.dropped(Some(&STREAM)));
    Ok(Found { items, walked, retained, dropped, removed, hidden: 0 })
}

pub(super) fn one(
    view: &View,
    owner: &Owner,
    session: &SessionId,
    download: &DownloadId,
) -> Result<Option<DownloadRow>, Failure> {
    let chain = view.chain(Space::Download, session.as_str(), download.as_str())?;
    let events = gather(view, &telling(&chain))?;
    let start = chain.links.iter().find(|link| link.kind == Kind::DownloadStarted.number());
    let Some(first) = start.and_then(|link| events.get(&link.seq)) else { return Ok(None) };
    if !Sight::new(view, owner).sees(&first.view())? {
        return Ok(None);
    }
    Ok(Some(begun(&first.view()).joined(&chain, &events)))
}

/// Session, page, call, time; a condition that no download can meet leaves nothing.
fn starts(filter: &EventFilter) -> CompiledFilter {
    let foreign = filter.level.is_some()
        || !filter.types.is_empty()
        || filter.text.is_some()
        || filter.method.is_some()
        || filter.status.is_some()
        || !filter.resource_types.is_empty()
        || filter.kinds.as_ref().is_some_and(|kinds| !kinds.contains(&Kind::DownloadStarted));
    let starts = EventFilter {
        kinds: Some(if foreign { Vec::new() } else { vec![Kind::DownloadStarted] }),
        url: None,
        failed: None,
        ..filter.clone()
    };
    CompiledFilter::new(starts, None, None)
}

/// The events that tell the current state: the beginning, the end, the latest progress.
fn telling(chain: &Chain) -> Vec<(Position, u64)> {
    let progress = Kind::DownloadProgress.number();
    let latest = chain.links.iter().rfind(|link| link.kind == progress).map(|link| link.seq);
    let tells = chain.links.iter().filter(|link| link.kind != progress || Some(link.seq) == latest);
    tells.map(|link| (link.position, link.seq)).collect()
}

fn begun(start: &EventView<'_>) -> DownloadRow {
    let text = |name: &str| start.get(name).and_then(ValueRef::as_str).unwrap_or_default();
    DownloadRow {
        seq: start.seq,
        session_id: start.context(ContextField::SessionId).unwrap_or_default().into(),
        download_id: text("download_id").into(),
        page_id: start.context(ContextField::PageId).map(PageId::from),
        operation_id: start.context(ContextField::OperationId).map(OperationId::from),
        started_micros: start.recorded_at_micros,
        url: text("url").to_owned(),
        suggested_name: text("suggested_name").to_owned(),
        state: "in_progress",
        received_bytes: 0,
        total_bytes: None,
        sha256: None,
        artifact: None,
        reason: None,
        ended_micros: None,
    }
}

impl DownloadRow {
    fn joined(mut self, chain: &Chain, events: &HashMap<u64, OwnedEvent>) -> Self {
        for event in chain.links.iter().filter_map(|link| events.get(&link.seq)) {
            self.join(&event.view());
        }
        self
    }

    fn join(&mut self, event: &EventView<'_>) {
        let text = |name: &str| event.get(name).and_then(ValueRef::as_str);
        let number = |name: &str| event.get(name).and_then(ValueRef::as_u64);
        match event.kind() {
            Some(Kind::DownloadProgress) => {
                self.received_bytes = number("received_bytes").unwrap_or(0);
                self.total_bytes = number("total_bytes");
            }
            Some(Kind::DownloadFinished) => {
                self.state = "finished";
                self.received_bytes = number("bytes").unwrap_or(0);
                self.total_bytes = number("bytes");
                self.sha256 = text("sha256").map(str::to_owned);
                self.artifact = text("artifact").map(ArtifactHandle::from);
                self.ended_micros = Some(event.recorded_at_micros);
            }
            Some(Kind::DownloadFailed) => {
                self.state = "failed";
                self.received_bytes = number("received_bytes").unwrap_or(0);
                self.reason = text("reason").map(str::to_owned);
                self.ended_micros = Some(event.recorded_at_micros);
            }
            _ => {}
        }
    }
}
