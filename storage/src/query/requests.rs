//! Network requests and WebSockets: one row each in order of start, joined with what became of them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, ValueRef};
use crate::ids::{ArtifactHandle, FrameId, OperationId, Owner, PageId, RequestId, SessionId};
use crate::index::{Chain, Failure, Space, TROUBLE_STATUS_MIN, View};
use crate::log::Position;
use crate::query::REQUEST_EVENTS_MAX;
use crate::query::events::Stream;
use crate::query::filter::EventFilter;
use crate::query::ledger::{Found, Wanted};
use crate::query::matching::CompiledFilter;
use crate::query::owned::OwnedEvent;
use crate::query::walk::{Sight, Walk, gather};

/// Kinds that begin a row.
const STARTS: [Kind; 2] = [Kind::NetworkRequest, Kind::WebSocketOpened];
/// Kinds that the requests of a page are made of, for what is declared missing.
const STREAM: [Kind; 10] = [
    Kind::NetworkRequest,
    Kind::NetworkRedirect,
    Kind::NetworkResponse,
    Kind::NetworkFinished,
    Kind::NetworkFailed,
    Kind::NetworkBody,
    Kind::NetworkHeaders,
    Kind::WebSocketOpened,
    Kind::WebSocketFrame,
    Kind::WebSocketClosed,
];
/// What `hide_static` leaves out when it arrived well.
const STATIC_RESOURCE_TYPES: [&str; 7] = ["image", "font", "stylesheet", "script", "media", "manifest", "texttrack"];

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// Not ended, as far as the log knows.
    Pending,
    Finished,
    Failed,
}

impl RequestState {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RequestState::Pending => "pending",
            RequestState::Finished => "finished",
            RequestState::Failed => "failed",
        }
    }
}

/// What is known of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFacts {
    pub bytes: u64,
    /// Whether the log itself holds the text.
    pub inline: bool,
    pub artifact: Option<ArtifactHandle>,
    /// Why it was not kept: `policy`, `too_large`, `unavailable`.
    pub omitted: Option<String>,
}

/// One request or WebSocket with its current state.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestRow {
    /// Of its first event: the row's place in the list.
    pub seq: u64,
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub page_id: Option<PageId>,
    pub frame_id: Option<FrameId>,
    pub operation_id: Option<OperationId>,
    pub started_micros: i64,
    /// Address of the latest leg.
    pub url: String,
    /// Of the latest leg; empty for a WebSocket.
    pub method: String,
    /// `websocket` for a WebSocket.
    pub resource_type: String,
    pub is_websocket: bool,
    pub state: RequestState,
    pub status: Option<u16>,
    pub status_text: Option<String>,
    pub mime_type: Option<String>,
    pub protocol: Option<String>,
    pub served_from: Option<String>,
    pub remote_address: Option<String>,
    /// Milliseconds of each phase, JSON text as recorded.
    pub timing: Option<String>,
    pub redirects: u64,
    /// The browser's error, when it failed.
    pub error: Option<String>,
    pub canceled: bool,
    pub blocked_reason: Option<String>,
    pub cors_error: Option<String>,
    pub duration_ms: Option<f64>,
    pub encoded_bytes: Option<u64>,
    pub decoded_bytes: Option<u64>,
    pub request_body: Option<BodyFacts>,
    pub response_body: Option<BodyFacts>,
    /// WebSocket frames held.
    pub frames: u64,
}

/// One request with all its events but the WebSocket frames, in order.
#[derive(Debug, Clone)]
pub struct RequestDetail {
    pub row: RequestRow,
    pub events: Vec<OwnedEvent>,
    /// More events than `REQUEST_EVENTS_MAX` belong to it.
    pub events_left_out: u64,
}

pub(super) fn page(view: &View, wanted: &Wanted) -> Result<Found<RequestRow>, Failure> {
    let Some(stream) = Stream::of(view, wanted)? else { return Ok(Found::nothing()) };
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
    let links = |chain: &Chain| chain.links.iter().take(REQUEST_EVENTS_MAX).map(|l| (l.position, l.seq)).collect::<Vec<_>>();
    let all: Vec<(Position, u64)> = rows.iter().flat_map(|(_, chain)| links(chain)).collect();
    let events = gather(view, &all)?;
    let items = rows.iter().map(|(place, chain)| row(place, chain, &events)).collect();
    let retained = Some(stream.sum(crate::index::SessionRow::requests));
    Ok(Found { items, walked, retained, dropped: stream.sum(|row| row.dropped(Some(&STREAM))), hidden })
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
    let Some(first) = chain.links.first().and_then(|link| events.get(&link.seq)) else { return Ok(None) };
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
    let among = |words: &[String]| words.is_empty() || words.iter().any(|word| word.eq_ignore_ascii_case(resource_type));
    let Some(request) = start.context(ContextField::RequestId) else { return Ok(Verdict::No) };
    if !among(&filter.resource_types) {
        return Ok(Verdict::No);
    }
    let session = start.context(ContextField::SessionId).unwrap_or_default();
    let chain = view.chain(Space::Request, session, request)?;
    // A later leg of a redirected request is no row of its own.
    if chain.links.first().map(|link| link.seq) != Some(start.seq) {
        return Ok(Verdict::No);
    }
    let legs = legs(view, compiled, &chain)?;
    let fits = |pattern: &regex::Regex| legs.iter().any(|leg| leg.url(pattern)) || text("url").is_some_and(|url| pattern.is_match(url));
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

/// Status of the latest response.
fn status(chain: &Chain) -> Option<u64> {
    let response = Kind::NetworkResponse.number();
    chain.links.iter().rev().find(|link| link.kind == response && link.note != 0).map(|link| link.note)
}

fn state(chain: &Chain) -> RequestState {
    let ended = chain.links.iter().rev().find_map(|link| match Kind::from_number(link.kind) {
        Some(Kind::NetworkFailed) => Some(RequestState::Failed),
        Some(Kind::WebSocketClosed) if link.note == 1 => Some(RequestState::Failed),
        Some(Kind::NetworkFinished | Kind::WebSocketClosed) => Some(RequestState::Finished),
        _ => None,
    });
    ended.unwrap_or(RequestState::Pending)
}

/// A row with what its first event alone says.
fn place(start: &EventView<'_>) -> RequestRow {
    let context = |field: ContextField| start.context(field);
    let is_websocket = start.kind() == Some(Kind::WebSocketOpened);
    RequestRow {
        seq: start.seq,
        session_id: context(ContextField::SessionId).unwrap_or_default().into(),
        request_id: context(ContextField::RequestId).unwrap_or_default().into(),
        page_id: context(ContextField::PageId).map(PageId::from),
        frame_id: context(ContextField::FrameId).map(FrameId::from),
        operation_id: context(ContextField::OperationId).map(OperationId::from),
        started_micros: start.recorded_at_micros,
        url: String::new(),
        method: String::new(),
        resource_type: if is_websocket { "websocket".into() } else { String::new() },
        is_websocket,
        state: RequestState::Pending,
        status: None,
        status_text: None,
        mime_type: None,
        protocol: None,
        served_from: None,
        remote_address: None,
        timing: None,
        redirects: 0,
        error: None,
        canceled: false,
        blocked_reason: None,
        cors_error: None,
        duration_ms: None,
        encoded_bytes: None,
        decoded_bytes: None,
        request_body: None,
        response_body: None,
        frames: 0,
    }
}

fn row(place: &RequestRow, chain: &Chain, events: &HashMap<u64, OwnedEvent>) -> RequestRow {
    let mut row = place.clone();
    row.state = state(chain);
    row.frames = chain.frames.iter().map(|frames| frames.count).sum();
    for event in chain.links.iter().filter_map(|link| events.get(&link.seq)) {
        row.join(&event.view());
    }
    row
}

impl RequestRow {
    fn join(&mut self, event: &EventView<'_>) {
        let text = |name: &str| event.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        let number = |name: &str| event.get(name).and_then(ValueRef::as_u64);
        let duration = || event.get("duration_ms").and_then(|value| if let ValueRef::F64(ms) = value { Some(ms) } else { None });
        match event.kind() {
            Some(Kind::NetworkRequest | Kind::WebSocketOpened) => self.join_request(event),
            Some(Kind::NetworkRedirect) => self.redirects += 1,
            Some(Kind::NetworkResponse) => {
                self.status = number("status").and_then(|status| u16::try_from(status).ok()).filter(|status| *status > 0);
                self.status_text = text("status_text");
                self.mime_type = text("mime_type");
                self.protocol = text("protocol");
                self.served_from = text("served_from");
                self.remote_address = text("remote_address");
                self.timing = text("timing");
            }
            Some(Kind::NetworkFinished) => {
                self.encoded_bytes = number("encoded_bytes");
                self.decoded_bytes = number("decoded_bytes");
                self.duration_ms = duration();
            }
            Some(Kind::NetworkFailed) => {
                self.error = text("error");
                self.canceled = event.get("canceled") == Some(ValueRef::Bool(true));
                self.blocked_reason = text("blocked_reason");
                self.cors_error = text("cors_error");
                self.duration_ms = duration();
            }
            Some(Kind::NetworkBody) => {
                let body = BodyFacts {
                    bytes: number("bytes").unwrap_or(0),
                    inline: event.get("text").is_some(),
                    artifact: text("artifact").map(ArtifactHandle::from),
                    omitted: text("omitted"),
                };
                let request = text("direction").as_deref() == Some("request");
                *(if request { &mut self.request_body } else { &mut self.response_body }) = Some(body);
            }
            Some(Kind::WebSocketClosed) => self.error = text("error"),
            _ => {}
        }
    }

    fn join_request(&mut self, event: &EventView<'_>) {
        let text = |name: &str| event.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        self.url = text("url").unwrap_or_default();
        if self.is_websocket {
            return;
        }
        self.method = text("method").unwrap_or_default();
        self.resource_type = text("resource_type").unwrap_or_default();
        let (inline, artifact) = (event.get("body").is_some(), text("body_artifact").map(ArtifactHandle::from));
        if inline || artifact.is_some() {
            let bytes = event.get("body_bytes").and_then(ValueRef::as_u64).or_else(|| text("body").map(|body| body.len() as u64));
            self.request_body = Some(BodyFacts { bytes: bytes.unwrap_or(0), inline, artifact, omitted: None });
        }
    }
}
