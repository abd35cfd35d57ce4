//! What is recorded of a request as it leaves: its body as bytes, and who sent it.
//!
//! Chromium tells a body as pieces in base64; its text form takes every byte for a character and is no
//! body. Of files there are no pieces: such a body is fetched beside.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use storage::event::catalog::NetworkRequest;
use storage::event::{Context, Draft, Json, Symbol};
use storage::ids::RequestId;
use storage::limits::TEXT_FIELD_BYTES_MAX;

use super::super::chromium::SessionKey;
use super::Collector;
use super::body::{Direction, Job, omit};
use super::outgoing::{Keep, Outgoing, truncated};
use super::wire::{Initiator, InitiatorFrame, Request, WillBeSent, header};

/// A method longer than this is cut; the page chooses it.
const METHOD_BYTES_MAX: usize = 64;
/// Call frames told of who sent a request, those before awaits included.
const STACK_FRAMES_MAX: usize = 16;
/// Text of one function's name.
const FUNCTION_BYTES_MAX: usize = 256;

/// The body as far as it came with the request.
fn told_body(request: &Request) -> Option<Vec<u8>> {
    let entries = &request.post_data_entries;
    if entries.is_empty() {
        return request.post_data.as_ref().map(|text| text.clone().into_bytes());
    }
    let pieces: Option<Vec<Vec<u8>>> =
        entries.iter().map(|entry| STANDARD.decode(entry.bytes.as_deref()?).ok()).collect();
    pieces.map(|pieces| pieces.concat())
}

impl Collector {
    pub(super) fn record_request(
        &mut self,
        context: Context,
        session: &SessionKey,
        url: &str,
        redirects: Option<u64>,
        sent: WillBeSent,
    ) {
        let redactor = self.setting.redactor.clone();
        let (headers, headers_cut) = redactor.headers(&sent.request.headers);
        let media_type = header(&sent.request.headers, "content-type").unwrap_or_default().to_owned();
        let body = told_body(&sent.request);
        let fetch = body.is_none() && sent.request.has_post_data && redirects.is_none();
        let body_bytes = body.as_ref().map(|body| body.len() as u64);
        let refused = body_bytes.and_then(|bytes| self.fetcher.refuses(Direction::Request, &media_type, bytes));
        let body = body.filter(|_| refused.is_none());
        let body = body.map(|body| super::body::redacted(&redactor, body, &media_type));
        let short = body.as_ref().and_then(|body| std::str::from_utf8(body).ok());
        // A preflight is told before the request that it asks leave for as often as after it.
        let asked_for = sent.initiator.request_id.as_deref().and_then(|id| self.flight(id, session));
        let asked_for = asked_for.map(|flight| flight.id.clone());
        let url_cut = url.len() > TEXT_FIELD_BYTES_MAX && !url.starts_with("data:");
        let mut payload = NetworkRequest {
            url: redactor.url(url),
            method: redactor.text(crate::redact::cut(&sent.request.method, METHOD_BYTES_MAX)),
            resource_type: Symbol::fold(&sent.r#type),
            headers,
            initiator: self.initiator(&sent.initiator, asked_for),
            priority: (!sent.request.initial_priority.is_empty()).then(|| Symbol::fold(&sent.request.initial_priority)),
            body_bytes,
            body: short.and_then(|body| redactor.short_body(body, TEXT_FIELD_BYTES_MAX)),
            body_artifact: None,
            redirects,
            truncated_fields: truncated(&redactor, &[("url", url_cut), ("headers", headers_cut)]),
        };
        if let Some(bytes) = body.filter(|_| payload.body.is_none()) {
            let finish_context = context.clone();
            let finish = Box::new(move |handle| {
                payload.body_artifact = handle;
                Draft::new(&finish_context, &payload)
            });
            self.outgoing.push(Outgoing::Keep(Keep { bytes, purpose: "body", media_type, context, finish }));
            return;
        }
        self.record(&context, &payload);
        if let (Some(reason), Some(bytes)) = (refused, body_bytes) {
            self.record(&context, &omit(Direction::Request, bytes, reason));
        }
        if fetch && let Some(flight) = self.flights.get_mut(&sent.request_id) {
            let session = flight.session.clone();
            self.fetch_body(Job::of_request(context, session, sent.request_id, media_type));
        }
    }

    fn initiator(&self, initiator: &Initiator, asked_for: Option<RequestId>) -> Option<Json> {
        if initiator.r#type.is_empty() {
            return None;
        }
        let redactor = &self.setting.redactor;
        let frames = frames(initiator);
        let url = initiator.url.as_deref().or_else(|| frames.first().map(|frame| frame.url.as_str()));
        let line = initiator.line_number.or_else(|| frames.first().map(|frame| frame.line_number));
        let mut shown = json!({ "type": initiator.r#type });
        if let Some(url) = url.filter(|url| !url.is_empty()) {
            shown["url"] = redactor.url(url).as_str().into();
        }
        if let Some(line) = line {
            shown["line"] = (line as u64).saturating_add(1).into();
        }
        if let Some(id) = asked_for {
            shown["request_id"] = id.as_str().into();
        }
        if !frames.is_empty() {
            shown["stack"] = frames.iter().map(|frame| self.told_frame(frame)).collect();
        }
        Some(redactor.json(&shown))
    }

    fn told_frame(&self, frame: &InitiatorFrame) -> Value {
        json!({
            "function": crate::redact::cut(&frame.function_name, FUNCTION_BYTES_MAX),
            "url": self.setting.redactor.url(&frame.url).as_str(),
            "line": (frame.line_number as u64).saturating_add(1),
            "column": (frame.column_number as u64).saturating_add(1),
        })
    }
}

/// The innermost call first, then what awaited it.
fn frames(initiator: &Initiator) -> Vec<&InitiatorFrame> {
    let stacks = std::iter::successors(initiator.stack.as_ref(), |stack| stack.parent.as_deref());
    stacks.flat_map(|stack| &stack.call_frames).take(STACK_FRAMES_MAX).collect()
}
