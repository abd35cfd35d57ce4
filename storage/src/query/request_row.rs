//! One row of the requests list, joined from the events of its chain.
//!
//! Absent events leave their columns empty: a row never says more than the log. The first end counts:
//! an answer or an end told after it belongs to something else and changes nothing.

use std::collections::HashMap;

use serde_json::Value;

use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, ValueRef};
use crate::ids::{ArtifactHandle, FrameId, OperationId, PageId, RequestId, SessionId};
use crate::index::{Chain, Link};
use crate::query::owned::OwnedEvent;

/// Status of an answer that has the cached copy used.
const NOT_MODIFIED: u64 = 304;

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
    /// Whether it broke off, or only its beginning was kept.
    pub cut: bool,
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
    /// Status on the wire where the page saw another: 304 when a cached copy was confirmed, or any when
    /// the answer was kept from the page or came after the page had gone.
    pub wire_status: Option<u64>,
    pub priority: Option<String>,
    /// The request that this one, a preflight, asked leave for.
    pub preflight_for: Option<String>,
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
    /// WebSocket frames held, or parts of a response that were recorded while it ran.
    pub frames: u64,
}

/// Status of the latest response.
pub(super) fn status(chain: &Chain) -> Option<u64> {
    let response = Kind::NetworkResponse.number();
    to_end(chain).iter().rev().find(|link| link.kind == response && link.note != 0).map(|link| link.note)
}

pub(super) fn state(chain: &Chain) -> RequestState {
    chain.links.iter().find_map(end).unwrap_or(RequestState::Pending)
}

/// What this event made of the request, when it ended it.
fn end(link: &Link) -> Option<RequestState> {
    match Kind::from_number(link.kind) {
        Some(Kind::NetworkFailed) => Some(RequestState::Failed),
        Some(Kind::WebSocketClosed) if link.note == 1 => Some(RequestState::Failed),
        Some(Kind::NetworkFinished | Kind::WebSocketClosed) => Some(RequestState::Finished),
        _ => None,
    }
}

/// The events up to the first end, that one included.
fn to_end(chain: &Chain) -> &[Link] {
    let last = chain.links.iter().position(|link| end(link).is_some());
    last.map_or(&chain.links[..], |last| &chain.links[..=last])
}

/// Whether an event counts only until the request has ended; headers and bodies may come after.
fn counts_until_end(link: &Link) -> bool {
    end(link).is_some() || Kind::from_number(link.kind) == Some(Kind::NetworkResponse)
}

/// A row with what its first event alone says.
pub(super) fn place(start: &EventView<'_>) -> RequestRow {
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
        wire_status: None,
        priority: None,
        preflight_for: None,
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

pub(super) fn row(place: &RequestRow, chain: &Chain, events: &HashMap<u64, OwnedEvent>) -> RequestRow {
    let mut row = place.clone();
    row.state = state(chain);
    row.frames = chain.frames.iter().map(|frames| frames.count).sum();
    let lived = to_end(chain).len();
    let counting = chain.links.iter().enumerate().filter(|(at, link)| *at < lived || !counts_until_end(link));
    let (mut heads, mut last_head) = (0, None);
    for event in counting.filter_map(|(_, link)| events.get(&link.seq)) {
        let view = event.view();
        row.join(&view);
        if let (Some(Kind::NetworkHeaders), Some(status)) = (view.kind(), view.get("status").and_then(ValueRef::as_u64))
        {
            heads += 1;
            last_head = Some(status);
        }
    }
    // Each redirect had a head of its own, which is not the answer.
    if row.state == RequestState::Failed && row.status.is_none() && heads > row.redirects {
        row.wire_status = last_head;
    }
    row
}

impl RequestRow {
    fn join(&mut self, event: &EventView<'_>) {
        let text = |name: &str| event.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        let number = |name: &str| event.get(name).and_then(ValueRef::as_u64);
        let duration =
            || event.get("duration_ms").and_then(|value| if let ValueRef::F64(ms) = value { Some(ms) } else { None });
        match event.kind() {
            Some(Kind::NetworkRequest | Kind::WebSocketOpened) => self.join_request(event),
            Some(Kind::NetworkRedirect) => self.redirects += 1,
            Some(Kind::NetworkResponse) => {
                self.status =
                    number("status").and_then(|status| u16::try_from(status).ok()).filter(|status| *status > 0);
                self.status_text = text("status_text");
                self.mime_type = text("mime_type");
                self.protocol = text("protocol");
                self.served_from = text("served_from").or(self.served_from.take());
                self.remote_address = text("remote_address");
                self.timing = text("timing");
            }
            Some(Kind::NetworkHeaders) if number("status") == Some(NOT_MODIFIED) => {
                self.wire_status = Some(NOT_MODIFIED);
                self.served_from = Some("revalidated".to_owned());
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
                    cut: text("truncated_fields").is_some(),
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
        self.priority = text("priority");
        let initiator = text("initiator").and_then(|told| serde_json::from_str::<Value>(&told).ok());
        self.preflight_for = initiator.and_then(|told| told["request_id"].as_str().map(str::to_owned));
        let (inline, artifact) = (event.get("body").is_some(), text("body_artifact").map(ArtifactHandle::from));
        let told = event.get("body_bytes").and_then(ValueRef::as_u64);
        let bytes = told.or_else(|| text("body").map(|body| body.len() as u64));
        if let Some(bytes) = bytes {
            let omitted = (!inline && artifact.is_none()).then(|| "unavailable".to_owned());
            self.request_body = Some(BodyFacts { bytes, inline, artifact, cut: false, omitted });
        }
    }
}
