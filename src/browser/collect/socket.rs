//! WebSockets: their opening, their handshake, each frame, their end.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use storage::event::catalog::{NetworkHeaders, WebSocketClosed, WebSocketFrame, WebSocketOpened};
use storage::event::{Context, Draft, Symbol};
use storage::limits::TEXT_FIELD_BYTES_MAX;

use super::super::chromium::SessionKey;
use super::body::Direction;
use super::outgoing::{Keep, Outgoing, truncated};
use super::{Collector, Handled, read};

/// The opcode of a frame whose payload is text.
const TEXT: u64 = 1;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SocketEvent {
    request_id: String,
    url: String,
    timestamp: f64,
    error_message: Option<String>,
    request: Handshake,
    response: Message,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Handshake {
    headers: Map<String, Value>,
}

/// Either a handshake's response or a frame.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Message {
    status: Option<u64>,
    headers: Map<String, Value>,
    opcode: f64,
    payload_data: String,
}

impl Collector {
    pub(super) fn socket_event(&mut self, name: &str, session: &SessionKey, raw: &RawValue) -> Handled {
        if !name.starts_with("webSocket") {
            return Some(());
        }
        let event: SocketEvent = read(raw)?;
        let Some(mut context) = self.flight_context(&event.request_id, session, event.timestamp) else {
            return Some(());
        };
        if !matches!(
            name,
            "webSocketCreated" | "webSocketWillSendHandshakeRequest" | "webSocketHandshakeResponseReceived"
        ) {
            // A socket outlives the call that opened it: what goes over it is of the call that runs.
            context.operation_id = self.setting.scope.operation();
        }
        let redactor = self.setting.redactor.clone();
        match name {
            "webSocketCreated" => {
                if let Some(flight) = self.flight(&event.request_id, session) {
                    flight.announced = true;
                    flight.is_websocket = true;
                    flight.url.clone_from(&event.url);
                }
                self.record(&context, &WebSocketOpened { url: redactor.url(&event.url) });
                self.socket_asked(&context, session, &event.url);
            }
            "webSocketWillSendHandshakeRequest" => {
                self.handshake(&context, "request", None, &event.request.headers);
            }
            "webSocketHandshakeResponseReceived" => {
                self.handshake(&context, "response", event.response.status, &event.response.headers);
            }
            "webSocketFrameSent" | "webSocketFrameReceived" => {
                let direction = if name.ends_with("Sent") { "sent" } else { "received" };
                self.frame(context, direction, event.response);
            }
            // An error is followed by the end, which does not repeat it.
            "webSocketFrameError" => {
                let error = event.error_message.as_deref().map(|error| redactor.text(error));
                self.record(&context, &WebSocketClosed { error });
                self.flights.end(&event.request_id);
            }
            "webSocketClosed" if !self.flights.has_ended(&event.request_id) => {
                self.record(&context, &WebSocketClosed { error: None });
                self.flights.end(&event.request_id);
            }
            _ => {}
        }
        Some(())
    }

    fn handshake(
        &mut self,
        context: &Context,
        direction: &'static str,
        status: Option<u64>,
        headers: &Map<String, Value>,
    ) {
        let redactor = &self.setting.redactor;
        let (headers, headers_cut) = redactor.headers(headers);
        let truncated_fields = truncated(redactor, &[("headers", headers_cut)]);
        self.record(context, &NetworkHeaders { direction: Symbol::fold(direction), status, headers, truncated_fields });
    }

    /// A frame too long for the log is kept whole beside it, as a body would be.
    fn frame(&mut self, context: Context, direction: &'static str, message: Message) {
        let redactor = self.setting.redactor.clone();
        let opcode = message.opcode.max(0.0) as u64;
        let bytes = payload_bytes(opcode, &message.payload_data);
        let shown =
            if opcode == TEXT { redactor.body(&message.payload_data, "").into_owned() } else { message.payload_data };
        let payload = redactor.bounded(&shown, TEXT_FIELD_BYTES_MAX);
        let mut frame = WebSocketFrame {
            direction: Symbol::fold(direction),
            opcode,
            payload: payload.clean,
            bytes,
            truncated_fields: truncated(&redactor, &[("payload", payload.whole.is_some())]),
            artifact: None,
        };
        let media_type = if opcode == TEXT { "text/plain" } else { "application/octet-stream" };
        let whole = payload.whole.filter(|_| self.fetcher.refuses(Direction::Response, media_type, bytes).is_none());
        let Some(whole) = whole else { return self.record(&context, &frame) };
        let kept = if opcode == TEXT { whole.into_bytes() } else { STANDARD.decode(whole).unwrap_or_default() };
        let of_frame = context.clone();
        let finish = Box::new(move |handle| {
            frame.artifact = handle;
            Draft::new(&of_frame, &frame)
        });
        let media_type = media_type.to_owned();
        self.outgoing.push(Outgoing::Keep(Keep { bytes: kept, purpose: "body", media_type, context, finish }));
    }
}

/// Length of the payload itself: binary ones are told in base64.
fn payload_bytes(opcode: u64, told: &str) -> u64 {
    if opcode == TEXT {
        return told.len() as u64;
    }
    let padding = told.bytes().rev().take_while(|byte| *byte == b'=').count();
    (told.len() / 4 * 3).saturating_sub(padding) as u64
}
