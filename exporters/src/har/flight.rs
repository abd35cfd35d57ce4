//! One request or WebSocket, gathered from its events until it can be written.
//!
//! What must stay true: what counts is the first end; headers and a body may be told of after it. A
//! redirect ends a leg, and the next leg goes on under the same name.
//!
//! Chromium tells of the headers on the wire (`Network.*ExtraInfo`) by another way than of all else, in
//! order among themselves only. So a flight waits for those of its answer, a leg for its own while the
//! next one runs, and those of the next leg wait for it.

use storage::event::catalog::{
    NetworkBody, NetworkFailed, NetworkFinished, NetworkHeaders, NetworkRedirect, NetworkRequest, NetworkResponse,
    WebSocketClosed, WebSocketFrame, WebSocketOpened,
};
use storage::event::codec::ContextField;
use storage::event::{EventView, Kind, Payload as _, ValueRef};

/// Bytes of one WebSocket's messages; of more only the number is told.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a flight weighs beside its events.
const FLIGHT_BYTES: usize = 512;

/// How far a flight has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    /// Ended; its body or headers may still be told of.
    Ended,
    /// Nothing more is expected.
    Complete,
}

pub(super) enum Start {
    Request(Box<NetworkRequest>),
    Socket(WebSocketOpened),
}

pub(super) enum End {
    Finished(NetworkFinished),
    Failed(NetworkFailed),
    Redirected(NetworkRedirect),
    Closed(WebSocketClosed),
}

pub(super) struct Message {
    pub at_micros: i64,
    pub frame: WebSocketFrame,
}

/// Headers of a request and of its answer that came before the request they are of.
#[derive(Default)]
pub(super) struct Ahead {
    request: Option<NetworkHeaders>,
    response: Option<NetworkHeaders>,
}

impl Ahead {
    pub fn take(&mut self, event: &EventView<'_>) {
        let Ok(headers) = NetworkHeaders::take(event) else { return };
        let is_request = headers.direction.as_str() == "request";
        *(if is_request { &mut self.request } else { &mut self.response }) = Some(headers);
    }
}

pub(super) struct Flight {
    pub name: (String, String),
    pub seq: u64,
    pub started_micros: i64,
    pub page_id: Option<String>,
    pub frame_id: Option<String>,
    pub operation_id: Option<String>,
    pub start: Start,
    /// Headers as they went over the wire.
    pub request_headers: Option<NetworkHeaders>,
    pub response_headers: Option<NetworkHeaders>,
    pub response: Option<NetworkResponse>,
    pub request_body: Option<NetworkBody>,
    pub response_body: Option<NetworkBody>,
    pub end: Option<End>,
    pub ended_micros: i64,
    pub messages: Vec<Message>,
    pub messages_left_out: u64,
    /// Legs before this one that the headers of their answers are still expected for.
    pub legs: Vec<Flight>,
    ahead: Ahead,
    message_bytes: usize,
    bytes: usize,
}

impl Flight {
    /// A new flight, when `event` begins one, with the headers that came before it.
    pub fn begun(name: (String, String), event: &EventView<'_>, ahead: Ahead) -> Option<Self> {
        let start = match event.kind()? {
            Kind::NetworkRequest => Start::Request(Box::new(NetworkRequest::take(event).ok()?)),
            Kind::WebSocketOpened => Start::Socket(WebSocketOpened::take(event).ok()?),
            _ => return None,
        };
        let context = |field: ContextField| event.context(field).map(str::to_owned);
        let mut flight = Self {
            name,
            seq: event.seq,
            started_micros: moment(event),
            page_id: context(ContextField::PageId),
            frame_id: context(ContextField::FrameId),
            operation_id: context(ContextField::OperationId),
            start,
            request_headers: None,
            response_headers: None,
            response: None,
            request_body: None,
            response_body: None,
            end: None,
            ended_micros: 0,
            messages: Vec::new(),
            messages_left_out: 0,
            legs: Vec::new(),
            ahead,
            message_bytes: 0,
            bytes: FLIGHT_BYTES + event.body.len(),
        };
        flight.catch_up();
        Some(flight)
    }

    /// Takes the next event; gives back the leg that it completed.
    pub fn take(&mut self, event: &EventView<'_>) -> Option<Flight> {
        self.bytes += event.body.len();
        if matches!(event.kind(), Some(Kind::NetworkResponse | Kind::NetworkFinished | Kind::NetworkFailed)) {
            // No other leg follows: what came ahead is of this one, as when credentials were asked for.
            self.catch_up();
        }
        match event.kind() {
            Some(Kind::NetworkRedirect) => self.end_with(NetworkRedirect::take(event).ok().map(End::Redirected), event),
            Some(Kind::NetworkFinished) => self.end_with(NetworkFinished::take(event).ok().map(End::Finished), event),
            Some(Kind::NetworkFailed) => self.end_with(NetworkFailed::take(event).ok().map(End::Failed), event),
            Some(Kind::WebSocketClosed) => self.end_with(WebSocketClosed::take(event).ok().map(End::Closed), event),
            Some(Kind::NetworkRequest) => return self.next_leg(event),
            Some(Kind::NetworkResponse) => self.response = NetworkResponse::take(event).ok().or(self.response.take()),
            Some(Kind::NetworkHeaders) => return self.headers(event),
            Some(Kind::NetworkBody) => self.body(event),
            Some(Kind::WebSocketFrame) => self.message(event),
            _ => {}
        }
        None
    }

    fn end_with(&mut self, end: Option<End>, event: &EventView<'_>) {
        if self.end.is_none() {
            (self.end, self.ended_micros) = (end, moment(event));
        }
    }

    fn next_leg(&mut self, event: &EventView<'_>) -> Option<Flight> {
        let mut next = Self::begun(self.name.clone(), event, Ahead::default())?;
        if !matches!(self.end, Some(End::Redirected(_))) {
            return None;
        }
        next.ahead = std::mem::take(&mut self.ahead);
        // The name's place among the flights stays that of the first leg.
        next.seq = self.seq;
        next.legs = std::mem::take(&mut self.legs);
        next.catch_up();
        let leg = std::mem::replace(self, next);
        if leg.response_headers.is_some() {
            return Some(leg);
        }
        self.legs.push(leg);
        None
    }

    /// Takes over what came ahead.
    fn catch_up(&mut self) {
        let Ahead { request, response } = std::mem::take(&mut self.ahead);
        self.request_headers = request.or(self.request_headers.take());
        self.response_headers = response.or(self.response_headers.take());
    }

    /// Gives headers to the leg they are of; gives back the leg that waited for them.
    fn headers(&mut self, event: &EventView<'_>) -> Option<Flight> {
        let headers = NetworkHeaders::take(event).ok()?;
        if headers.direction.as_str() == "request" {
            let slot = if self.request_headers.is_none() { &mut self.request_headers } else { &mut self.ahead.request };
            *slot = Some(headers);
            return None;
        }
        let is_of = |leg: &Flight| matches!(&leg.end, Some(End::Redirected(to)) if headers.status == Some(to.status));
        if let Some(position) = self.legs.iter().position(is_of) {
            let mut leg = self.legs.remove(position);
            leg.response_headers = Some(headers);
            return Some(leg);
        }
        let of_next = self.ahead.request.is_some();
        *(if of_next { &mut self.ahead.response } else { &mut self.response_headers }) = Some(headers);
        None
    }

    fn body(&mut self, event: &EventView<'_>) {
        let Ok(body) = NetworkBody::take(event) else { return };
        let slot = if body.direction.as_str() == "request" { &mut self.request_body } else { &mut self.response_body };
        *slot = Some(body);
    }

    fn message(&mut self, event: &EventView<'_>) {
        self.message_bytes += event.body.len();
        if self.message_bytes > MESSAGE_BYTES_MAX {
            self.bytes -= event.body.len();
            self.messages_left_out += 1;
        } else if let Ok(frame) = WebSocketFrame::take(event) {
            self.messages.push(Message { at_micros: moment(event), frame });
        }
    }

    pub fn state(&self) -> State {
        let body_is_told = self.response_body.is_some() || self.has_no_body_event();
        match &self.end {
            None | Some(End::Redirected(_)) => State::Pending,
            Some(End::Closed(_)) => State::Complete,
            // Of a response that broke off the beginning may have been kept.
            Some(End::Failed(_)) if self.response.is_none() => State::Complete,
            Some(End::Failed(_) | End::Finished(_)) if body_is_told && self.has_headers() => State::Complete,
            Some(End::Failed(_) | End::Finished(_)) => State::Ended,
        }
    }

    /// The headers of the answer are told, or there was nothing on the wire.
    fn has_headers(&self) -> bool {
        let was_kept = self.response.as_ref().is_some_and(|response| response.served_from.is_some());
        self.response_headers.is_some() || was_kept || !self.url().starts_with("http")
    }

    /// Bodies of addresses that hold their content are not recorded a second time.
    fn has_no_body_event(&self) -> bool {
        self.url().starts_with("data:")
    }

    pub fn url(&self) -> &str {
        match &self.start {
            Start::Request(request) => request.url.as_str(),
            Start::Socket(socket) => socket.url.as_str(),
        }
    }

    /// About what it takes to hold it.
    pub fn bytes(&self) -> usize {
        self.bytes + self.legs.iter().map(Flight::bytes).sum::<usize>()
    }

    pub fn is_document(&self) -> bool {
        matches!(&self.start, Start::Request(request) if request.resource_type.as_str() == "document")
    }
}

/// The browser's own time, or else when it was recorded.
fn moment(event: &EventView<'_>) -> i64 {
    match event.fields().find(|(number, _)| *number == ContextField::BrowserTime as u32) {
        Some((_, ValueRef::I64(micros))) => micros,
        _ => event.recorded_at_micros,
    }
}
