//! Network requests and WebSockets: one row each in order of start, joined with what became of them.

use std::ops::ControlFlow;

use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, ValueRef};
use crate::ids::{Owner, RequestId, SessionId};
use crate::index::{Chain, Failure, Space, TROUBLE_STATUS_MIN, View};
use crate::log::Position;
use crate::query::REQUEST_EVENTS_MAX;
use crate::query::events::Stream;
use crate::query::filter::EventFilter;
use crate::query::ledger::{Found, Wanted};
use crate::query::matching::CompiledFilter;
use crate::query::owned::OwnedEvent;
use crate::query::removed::Removed;
use crate::query::request_row::{RequestRow, RequestState, place, row, state, status};
use crate::query::walk::{Sight, Walk, gather};

/// Kinds that begin a row.
const STARTS: [Kind; 2] = [Kind::NetworkRequest, Kind::WebSocketOpened];
/// Kinds that the requests of a page are made of, for what is declared missing.
const STREAM: [Kind; 11] = [
    Kind::NetworkRequest,
    Kind::NetworkRedirect,
    Kind::NetworkResponse,
    Kind::NetworkFinished,
    Kind::NetworkFailed,
    Kind::NetworkBody,
    Kind::NetworkChunk,
    Kind::NetworkHeaders,
    Kind::WebSocketOpened,
    Kind::WebSocketFrame,
    Kind::WebSocketClosed,
];
/// What `hide_static` leaves out when it arrived well.
const STATIC_RESOURCE_TYPES: [&str; 7] = ["image", "font", "stylesheet", "script", "media", "manifest", "texttrack"];

/// One request with all its events but the WebSocket frames, in order.
#[derive(Debug, Clone)]
pub struct RequestDetail {
    pub row: RequestRow,
    pub events: Vec<OwnedEvent>,
    /// More events than `REQUEST_EVENTS_MAX` belong to it.
    pub events_left_out: u64,
}

pub(super) fn page(view: &View, wanted: &Wanted) -> Result<Found<RequestRow>, Failure> {
    let removed = Removed::of(view, wanted, Some(&STREAM), &|_| true)?;
    let Some(stream) = Stream::of(view, wanted)? else { return Ok(Found::nothing(removed)) };
    let starts = starts(wanted.filter.filter());
    let mut rows = Vec::new();
    let mut hidden = 0;
    let mut visit = |event: &EventView<'_>| {
        let verdict = judge(view, &wanted.filter, event)?;
        match verdict {
            Verdict::No => {}
            Verdict::Hidden => hidden += 1,
            Verdict::Row(_) if rows.len() == wanted.limit => return Ok(ControlFlow::Break(())),
            Verdict::Row(chain) => rows.push((place(event), chain)),
        }
        Ok(ControlFlow::Continue(()))
    };
    let troubles = asks_for_trouble(wanted.filter.filter());
    let walked = Walk { troubles, ..wanted.walk(view, &starts) }.run(&mut visit)?;
    let links =
        |chain: &Chain| chain.links.iter().take(REQUEST_EVENTS_MAX).map(|l| (l.position, l.seq)).collect::<Vec<_>>();
    let all: Vec<(Position, u64)> = rows.iter().flat_map(|(_, chain)| links(chain)).collect();
    let events = gather(view, &all)?;
    let items = rows.iter().map(|(place, chain)| row(place, chain, &events)).collect();
    let (retained, dropped) = (Some(stream.row.requests()), stream.row.dropped(Some(&STREAM)));
    Ok(Found { items, walked, retained, dropped, removed, hidden })
}

pub(super) fn detail(
    view: &View,
    owner: &Owner,
    session: &SessionId,
    request: &RequestId,
) -> Result<Option<RequestDetail>, Failure> {
    let chain = view.chain(Space::Request, session.as_str(), request.as_str())?;
    let kept: Vec<_> = chain.links.iter().take(REQUEST_EVENTS_MAX).map(|link| (link.position, link.seq)).collect();
    let events = gather(view, &kept)?;
    let start = chain.start().or_else(|| chain.links.first().copied());
    if state(&chain) == RequestState::Pending {
        // How it went on may be what cannot be read.
        view.check_readable(start.map_or(0, |link| link.seq), u64::MAX)?;
    }
    let Some(first) = start.and_then(|link| events.get(&link.seq)) else { return Ok(None) };
    if !Sight::new(view, owner).sees(&first.view())? {
        return Ok(None);
    }
    let row = row(&place(&first.view()), &chain, &events);
    let events_left_out = (chain.links.len() - kept.len()) as u64;
    let mut events: Vec<OwnedEvent> = events.into_values().collect();
    events.sort_unstable_by_key(OwnedEvent::seq);
    Ok(Some(RequestDetail { row, events, events_left_out }))
}

/// Whether only failures and answers of 400 or above can match: the index finds those by themselves.
fn asks_for_trouble(filter: &EventFilter) -> bool {
    let status = filter.status.is_some_and(|status| u64::from(status.low) >= TROUBLE_STATUS_MIN);
    status || filter.failed == Some(true)
}

/// The conditions that the first event of a row can be held to without looking further.
fn starts(filter: &EventFilter) -> CompiledFilter {
    let kinds = match &filter.kinds {
        Some(kinds) => STARTS.into_iter().filter(|kind| kinds.contains(kind)).collect(),
        None => STARTS.to_vec(),
    };
    // Conditions that no request can meet leave nothing.
    let foreign = filter.level.is_some() || !filter.types.is_empty() || filter.text.is_some();
    let starts = EventFilter {
        session_id: filter.session_id.clone(),
        owner: filter.owner.clone(),
        kinds: Some(if foreign { Vec::new() } else { kinds }),
        page_id: filter.page_id.clone(),
        operation_id: filter.operation_id.clone(),
        request_id: filter.request_id.clone(),
        since_micros: filter.since_micros,
        until_micros: filter.until_micros,
        ..EventFilter::default()
    };
    CompiledFilter::new(starts, None, None)
}

enum Verdict {
    No,
    Hidden,
    Row(Chain),
}

fn judge(view: &View, compiled: &CompiledFilter, start: &EventView<'_>) -> Result<Verdict, Failure> {
    let filter = compiled.filter();
    let text = |name: &str| start.get(name).and_then(ValueRef::as_str);
    let is_websocket = start.kind() == Some(Kind::WebSocketOpened);
    let resource_type = if is_websocket { "websocket" } else { text("resource_type").unwrap_or_default() };
    let method = text("method").unwrap_or_default();
    let among =
        |words: &[String]| words.is_empty() || words.iter().any(|word| word.eq_ignore_ascii_case(resource_type));
    let Some(request) = start.context(ContextField::RequestId) else { return Ok(Verdict::No) };
    if !among(&filter.resource_types) {
        return Ok(Verdict::No);
    }
    let session = start.context(ContextField::SessionId).unwrap_or_default();
    let chain = view.chain(Space::Request, session, request)?;
    // A later leg of a redirected request is no row of its own.
    if chain.start().map(|link| link.seq) != Some(start.seq) {
        return Ok(Verdict::No);
    }
    let legs = legs(view, compiled, &chain)?;
    let fits = |pattern: &regex::Regex| {
        legs.iter().any(|leg| leg.url(pattern)) || text("url").is_some_and(|url| pattern.is_match(url))
    };
    if !compiled.url().is_none_or(fits) {
        return Ok(Verdict::No);
    }
    let method_fits = |wanted: &str| wanted.eq_ignore_ascii_case(method) || legs.iter().any(|leg| leg.method(wanted));
    if !filter.method.as_deref().is_none_or(method_fits) {
        return Ok(Verdict::No);
    }
    let status = status(&chain);
    if !filter.status.is_none_or(|range| status.is_some_and(|status| range.holds(status))) {
        return Ok(Verdict::No);
    }
    let state = state(&chain);
    if filter.failed.is_some_and(|failed| failed != (state == RequestState::Failed)) {
        return Ok(Verdict::No);
    }
    let arrived = state == RequestState::Finished && status.is_none_or(|status| status < 400);
    if filter.hide_static && arrived && STATIC_RESOURCE_TYPES.contains(&resource_type) {
        return Ok(Verdict::Hidden);
    }
    Ok(Verdict::Row(chain))
}

/// A later leg of a redirected request.
struct Leg(OwnedEvent);

impl Leg {
    fn url(&self, pattern: &regex::Regex) -> bool {
        self.0.view().get("url").and_then(ValueRef::as_str).is_some_and(|url| pattern.is_match(url))
    }

    fn method(&self, wanted: &str) -> bool {
        self.0.view().get("method").and_then(ValueRef::as_str).is_some_and(|method| method.eq_ignore_ascii_case(wanted))
    }
}

/// Loaded only where a condition looks at them.
fn legs(view: &View, compiled: &CompiledFilter, chain: &Chain) -> Result<Vec<Leg>, Failure> {
    if compiled.url().is_none() && compiled.filter().method.is_none() {
        return Ok(Vec::new());
    }
    let request = Kind::NetworkRequest.number();
    let later = chain.links.iter().skip(1).filter(|link| link.kind == request).take(REQUEST_EVENTS_MAX);
    let wanted: Vec<_> = later.map(|link| (link.position, link.seq)).collect();
    Ok(gather(view, &wanted)?.into_values().map(Leg).collect())
}
