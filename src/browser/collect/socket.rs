//! WebSockets: their opening, their handshake, each frame, their end.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use storage::event::Symbol;
use storage::event::catalog::{NetworkHeaders, WebSocketClosed, WebSocketFrame, WebSocketOpened};
use storage::limits::TEXT_FIELD_BYTES_MAX;

use super::super::chromium::SessionKey;
use super::outgoing::truncated;
use super::{Collector, Handled, read};

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
        let Some(context) = self.flight_context(&event.request_id, session, event.timestamp) else { return Some(()) };
        let redactor = self.setting.redactor.clone();
        match name {
            "webSocketCreated" => {
                if let Some(flight) = self.flight(&event.request_id, session) {
                    flight.announced = true;
                    flight.url.clone_from(&event.url);
                }
                self.record(&context, &WebSocketOpened { url: redactor.url(&event.url) });
            }
            "webSocketWillSendHandshakeRequest" => {
                let headers = redactor.headers(&event.request.headers).0;
                self.record(&context, &NetworkHeaders { direction: Symbol::fold("request"), status: None, headers });
            }
            "webSocketHandshakeResponseReceived" => {
                let headers = redactor.headers(&event.response.headers).0;
                let status = event.response.status;
                self.record(&context, &NetworkHeaders { direction: Symbol::fold("response"), status, headers });
            }
            "webSocketFrameSent" | "webSocketFrameReceived" => {
                let direction = if name.ends_with("Sent") { "sent" } else { "received" };
                let message = event.response;
                let payload = redactor.bounded(&message.payload_data, TEXT_FIELD_BYTES_MAX);
                let opcode = message.opcode.max(0.0) as u64;
                let frame = WebSocketFrame {
                    direction: Symbol::fold(direction),
                    opcode,
                    payload: payload.clean,
                    bytes: payload_bytes(opcode, &message.payload_data),
                    truncated_fields: truncated(&redactor, &[("payload", payload.whole.is_some())]),
                };
                self.record(&context, &frame);
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
}

/// Length of the payload itself: binary ones are told in base64.
fn payload_bytes(opcode: u64, told: &str) -> u64 {
    const TEXT: u64 = 1;
    if opcode == TEXT {
        return told.len() as u64;
    }
    let padding = told.bytes().rev().take_while(|byte| *byte == b'=').count();
    (told.len() / 4 * 3).saturating_sub(padding) as u64
}
