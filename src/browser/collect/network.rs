//! Requests and responses, whoever sent them: documents, scripts, workers.
//!
//! One request keeps one id from its first event to its last, redirects included. A request may be
//! told of by two sessions when its frame changes process; the second telling is not recorded again.
//! The first end counts: what is told of a request after it (Chromium's error page answers under the
//! id of the document that failed) is not recorded, except for headers, which are often late.

use std::time::Instant;

use serde_json::value::RawValue;
use storage::event::catalog::{
    NetworkFailed, NetworkFinished, NetworkHeaders, NetworkRedirect, NetworkResponse, WebSocketClosed,
};
use storage::event::{Context, Symbol};
use storage::ids::FrameId;

use super::super::chromium::SessionKey;
use super::super::handle::Page;
use super::super::state::InFlight;
use super::body::{Direction, Job};
use super::flight::Flight;
use super::outgoing::truncated;
use super::stream::{Piece, STREAMS_MAX, Source};
use super::wire::{ExtraInfo, Progressed, Received, WillBeSent, remote_address, timing};
use super::{Collector, Handled, Role, read};

/// The media type of a response that is a sequence of messages.
const EVENT_STREAM: &str = "text/event-stream";
/// A response that still comes so long after its head is read while it runs.
const LONG_SECONDS: f64 = 1.0;

impl Collector {
    pub(super) fn network_event(&mut self, name: &str, session: &SessionKey, raw: &RawValue) -> Handled {
        match name {
            "requestWillBeSent" => self.request_sent(session, read(raw)?),
            "responseReceived" => self.response_received(session, read(raw)?),
            "dataReceived" => {
                self.data_received(read(raw)?);
            }
            "requestServedFromCache" => {
                let progressed: Progressed = read(raw)?;
                if let Some(flight) = self.flights.get_mut(&progressed.request_id) {
                    flight.from_memory = true;
                }
            }
            "loadingFinished" => self.finished(session, read(raw)?),
            "loadingFailed" => self.failed(session, read(raw)?),
            "requestWillBeSentExtraInfo" => self.headers(session, "request", read(raw)?),
            "responseReceivedExtraInfo" => self.headers(session, "response", read(raw)?),
            _ => return self.socket_event(name, session, raw),
        }
        Some(())
    }

    /// The flight of `browser_id`, new or known; a gap when there are too many.
    pub(super) fn flight(&mut self, browser_id: &str, session: &SessionKey) -> Option<&mut Flight> {
        let page = self.targets.get(session).and_then(|target| target.page.as_ref());
        let flight = self.flights.entry(browser_id, session, page);
        if flight.is_none() {
            *self.losses.entry(("network.request".to_owned(), "queue_full")).or_default() += 1;
        }
        flight
    }

    /// The context of an event about `browser_id` at `timestamp` of the browser's monotonic clock.
    pub(super) fn flight_context(&mut self, browser_id: &str, session: &SessionKey, timestamp: f64) -> Option<Context> {
        let offset = self.wall_minus_monotonic;
        let flight = self.flight(browser_id, session)?;
        let (page, frame_id, operation_id) =
            (flight.page.clone(), flight.frame_id.clone(), flight.operation_id.clone());
        let request_id = Some(flight.id.clone());
        let browser_time_micros = offset.filter(|_| timestamp > 0.0).map(|offset| super::micros(timestamp + offset));
        let of_page = self.page_context(page.as_ref());
        Some(Context { frame_id, operation_id, request_id, browser_time_micros, ..of_page })
    }

    fn request_sent(&mut self, session: &SessionKey, sent: WillBeSent) {
        if sent.wall_time > 0.0 {
            self.wall_minus_monotonic = Some(sent.wall_time - sent.timestamp);
        }
        let page = self.page_of(session).cloned();
        if sent.redirect_response.is_none() {
            self.flights.renew(&sent.request_id, session, page.as_ref());
        }
        let over = self.flights.has_ended(&sent.request_id);
        let Some(flight) = self.flight(&sent.request_id, session) else { return };
        if flight.announced && (over || sent.redirect_response.is_none()) {
            return;
        }
        let url = format!("{}{}", sent.request.url, sent.request.url_fragment);
        let from = std::mem::replace(&mut flight.url, url.clone());
        flight.announced = true;
        flight.session = session.clone();
        flight.frame_id = sent.frame_id.as_deref().map(FrameId::from);
        flight.loader_id.clone_from(&sent.loader_id);
        flight.resource_type = sent.r#type.to_ascii_lowercase();
        flight.outlives_page = sent.r#type == "Ping";
        flight.preflight = sent.initiator.r#type == "preflight";
        flight.method.clone_from(&sent.request.method);
        flight.redirects += u64::from(sent.redirect_response.is_some());
        if flight.started == 0.0 {
            flight.started = sent.timestamp;
        }
        let redirects = (flight.redirects > 0).then_some(flight.redirects);
        let Some(context) = self.flight_context(&sent.request_id, session, sent.timestamp) else { return };
        if let Some(response) = &sent.redirect_response {
            let redactor = &self.setting.redactor;
            let (headers, headers_cut) = redactor.headers(&response.headers);
            let payload = NetworkRedirect {
                url: redactor.url(&from),
                status: u64::try_from(response.status).unwrap_or(0),
                location: redactor.url(&url),
                headers,
                truncated_fields: truncated(redactor, &[("headers", headers_cut)]),
            };
            self.record(&context, &payload);
        }
        if let Some(page) = page.as_ref().filter(|_| !over) {
            self.request_began(page, &sent);
        }
        self.record_request(context, session, &url, redirects, sent);
    }

    fn request_began(&mut self, page: &Page, sent: &WillBeSent) {
        let frame_id = sent.frame_id.as_deref().map(FrameId::from);
        let document = sent.r#type == "Document";
        // These stay open for as long as the page wants.
        let endless = matches!(sent.r#type.as_str(), "EventSource" | "WebSocket" | "Ping");
        self.change(page, |state| {
            if document && sent.request_id == sent.loader_id {
                if frame_id.as_ref() == Some(&state.main_frame_id) {
                    state.navigating = Some(sent.loader_id.clone());
                }
                let load = state.load_mut(&sent.loader_id);
                load.frame_id.clone_from(&frame_id);
                load.url.clone_from(&sent.request.url);
            }
            if !endless {
                let method = sent.request.method.clone();
                let request = InFlight { method, loader_id: sent.loader_id.clone(), frame_id, since: Instant::now() };
                state.request_began(&sent.request_id, request);
            }
        });
    }

    fn response_received(&mut self, session: &SessionKey, received: Received) {
        if self.flights.has_ended(&received.request_id) {
            return;
        }
        let Some(flight) = self.flight(&received.request_id, session) else { return };
        let response = received.response;
        flight.session = session.clone();
        flight.mime_type.clone_from(&response.mime_type);
        flight.answered = true;
        flight.head_came = received.timestamp;
        flight.is_event_stream = response.mime_type == EVENT_STREAM;
        // A preflight has no body that anybody could read.
        let preflight = flight.preflight;
        flight.bodiless = preflight || flight.method == "HEAD" || matches!(response.status, 100..200 | 204 | 205 | 304);
        let started = flight.started;
        if flight.frame_id.is_none() {
            flight.frame_id = received.frame_id.map(FrameId::from);
        }
        let from_memory = flight.from_memory;
        let (page, frame_id, request_id) = (flight.page.clone(), flight.frame_id.clone(), flight.id.clone());
        let Some(context) = self.flight_context(&received.request_id, session, received.timestamp) else { return };
        if let Some(page) = &page {
            let status = u64::try_from(response.status).unwrap_or(0);
            self.change(page, |state| {
                state.response_began(&received.request_id, &response.url, status, request_id.as_str());
            });
        }
        if let (Some(page), "Document") = (page, received.r#type.as_str()) {
            let status = u16::try_from(response.status).ok();
            self.change(&page, |state| {
                let load = state.load_mut(&received.loader_id);
                load.status = status;
                load.url.clone_from(&response.url);
                load.frame_id = frame_id.or(load.frame_id.take());
            });
        }
        let redactor = &self.setting.redactor;
        let (headers, headers_cut) = redactor.headers(&response.headers);
        let served_from = match () {
            () if from_memory => Some("memory"),
            () if response.from_service_worker => Some("service_worker"),
            () if response.from_prefetch_cache => Some("prefetch"),
            () if response.from_disk_cache => Some("disk"),
            () => None,
        };
        let payload = NetworkResponse {
            url: redactor.url(&response.url),
            status: u64::try_from(response.status).unwrap_or(0),
            status_text: redactor.text(&response.status_text),
            mime_type: redactor.text(&response.mime_type),
            protocol: response.protocol.as_deref().map(Symbol::fold),
            headers,
            remote_address: remote_address(&response).map(|address| redactor.text(&address)),
            served_from: served_from.map(Symbol::fold),
            timing: response
                .timing
                .as_ref()
                .and_then(|told| timing(told, started))
                .map(|timing| redactor.json(&timing)),
            truncated_fields: truncated(redactor, &[("headers", headers_cut)]),
        };
        self.record(&context, &payload);
        if response.mime_type == EVENT_STREAM {
            self.read_along(context, &received.request_id);
        }
    }

    fn data_received(&mut self, progressed: Progressed) {
        let browser_id = progressed.request_id;
        let Some(flight) = self.flights.get_mut(&browser_id) else { return };
        flight.decoded_bytes += progressed.data_length;
        if let Some(pieces) = &flight.pieces {
            // With no room for it the body is cut here: its reader finds the sender gone.
            let sent = progressed.data.is_none_or(|data| pieces.try_send(Piece::Data(data)).is_ok());
            if !sent {
                flight.pieces = None;
                flight.reads_along = false;
            }
            return;
        }
        let is_long = flight.head_came > 0.0 && progressed.timestamp - flight.head_came >= LONG_SECONDS;
        if is_long && flight.reads_along {
            let session = flight.session.clone();
            let context = self.flight_context(&browser_id, &session, progressed.timestamp);
            if let Some(context) = context {
                self.read_along(context, &browser_id);
            }
        }
    }

    /// Reads a response while it runs; once refused it is not asked for again.
    fn read_along(&mut self, context: Context, browser_id: &str) {
        let many = self.flights.streams() >= STREAMS_MAX;
        let Some(flight) = self.flights.get_mut(browser_id) else { return };
        flight.reads_along = false;
        if many || flight.bodiless {
            return;
        }
        let (session, media_type) = (flight.session.clone(), flight.mime_type.clone());
        let source = Source { context, session, browser_id: browser_id.to_owned(), media_type };
        flight.pieces = self.fetcher.stream(source);
    }

    fn finished(&mut self, session: &SessionKey, progressed: Progressed) {
        let browser_id = progressed.request_id;
        if self.flights.has_ended(&browser_id) {
            return;
        }
        let Some(context) = self.flight_context(&browser_id, session, progressed.timestamp) else { return };
        let Some(flight) = self.flights.get_mut(&browser_id) else { return };
        flight.session = session.clone();
        let decoded_bytes = flight.decoded_bytes;
        let told = flight.is_event_stream && self.fetcher.ends(flight.pieces.as_ref());
        let payload = NetworkFinished {
            encoded_bytes: progressed.encoded_data_length.max(0.0) as u64,
            decoded_bytes: Some(decoded_bytes),
            duration_ms: duration_ms(flight, progressed.timestamp),
        };
        self.record(&context, &payload);
        self.flight_ended(&browser_id);
        if !told {
            self.response_body(context, &browser_id, false);
        }
    }

    /// Has the response's body fetched, unless its address says it all.
    fn response_body(&mut self, context: Context, browser_id: &str, broken_off: bool) {
        let Some(flight) = self.flights.get_mut(browser_id) else { return };
        if flight.url.starts_with("data:") {
            return;
        }
        let by_service_worker =
            self.targets.get(&flight.session).is_some_and(|target| target.role == Role::Worker("service_worker"));
        let job = Job {
            context,
            session: flight.session.clone(),
            browser_id: browser_id.to_owned(),
            direction: Direction::Response,
            media_type: flight.mime_type.clone(),
            decoded_bytes: flight.decoded_bytes,
            bodiless: flight.bodiless,
            broken_off,
            by_service_worker,
        };
        self.fetch_body(job);
    }

    fn failed(&mut self, session: &SessionKey, progressed: Progressed) {
        let (error, browser_id) = (progressed.error(), progressed.request_id);
        if self.flights.has_ended(&browser_id) {
            return;
        }
        let Some(context) = self.flight_context(&browser_id, session, progressed.timestamp) else { return };
        let Some(flight) = self.flights.get_mut(&browser_id) else { return };
        let payload = NetworkFailed {
            error: self.setting.redactor.text(&error),
            canceled: progressed.canceled,
            blocked_reason: progressed.blocked_reason.as_deref().map(Symbol::fold),
            cors_error: progressed.cors_error_status.map(|status| Symbol::fold(&status.cors_error)),
            duration_ms: duration_ms(flight, progressed.timestamp),
        };
        let document = flight.page.clone().filter(|_| flight.resource_type == "document");
        let loader_id = flight.loader_id.clone();
        let told = self.fetcher.ends(flight.pieces.as_ref());
        let begun = !told && flight.answered && (flight.bodiless || flight.decoded_bytes > 0);
        self.record(&context, &payload);
        self.flight_ended(&browser_id);
        if begun {
            self.response_body(context, &browser_id, true);
        }
        if let Some(page) = document {
            self.change(&page, |state| {
                state.load_mut(&loader_id).failure = Some(error);
                if state.navigating.as_deref() == Some(&loader_id) {
                    state.navigating = None;
                }
            });
        }
    }

    fn flight_ended(&mut self, browser_id: &str) {
        self.flights.end(browser_id);
        let page = self.flights.get_mut(browser_id).and_then(|flight| flight.page.clone());
        if let Some(page) = page {
            self.change(&page, |state| state.request_ended(browser_id));
        }
    }

    fn headers(&mut self, session: &SessionKey, direction: &'static str, extra: ExtraInfo) {
        let Some(context) = self.flight_context(&extra.request_id, session, 0.0) else { return };
        let redactor = &self.setting.redactor;
        let (headers, headers_cut) = redactor.headers(&extra.headers);
        let payload = NetworkHeaders {
            direction: Symbol::fold(direction),
            status: extra.status_code.and_then(|status| u64::try_from(status).ok()),
            headers,
            truncated_fields: truncated(redactor, &[("headers", headers_cut)]),
        };
        self.record(&context, &payload);
    }

    pub(super) fn fetch_body(&mut self, job: Job) {
        if let Some((context, refused)) = self.fetcher.submit(job) {
            self.record(&context, &refused);
        }
    }

    /// A new document stands in the frame. What the one before it had under way is not told of any more
    /// when it lived in another process.
    pub(super) fn document_left(
        &mut self,
        page: &Page,
        session: &SessionKey,
        frame_id: &FrameId,
        loader_id: &str,
        is_main: bool,
    ) {
        self.cut_off("page_left", |flight| {
            let here = flight.page.as_ref().is_some_and(|of| of.page_id() == page.page_id());
            let of_frame = flight.frame_id.as_ref() == Some(frame_id);
            let coming = of_frame && flight.resource_type == "document";
            here && flight.session == *session
                && (is_main || of_frame)
                && !coming
                && !flight.loader_id.is_empty()
                && flight.loader_id != loader_id
        });
    }

    /// Ends what is under way and `fits`: whoever would have told of its end is gone.
    pub(super) fn cut_off(&mut self, reason: &str, fits: impl Fn(&Flight) -> bool) {
        for browser_id in self.flights.under_way(fits) {
            let Some(flight) = self.flights.get_mut(&browser_id) else { continue };
            let (session, is_websocket) = (flight.session.clone(), flight.is_websocket);
            // A beacon is sent all the same; only its answer nobody hears.
            let canceled = !flight.outlives_page;
            self.fetcher.ends(flight.pieces.as_ref());
            let Some(context) = self.flight_context(&browser_id, &session, 0.0) else { continue };
            let error = self.setting.redactor.text(reason);
            if is_websocket {
                self.record(&context, &WebSocketClosed { error: Some(error) });
            } else {
                let failed =
                    NetworkFailed { error, canceled, blocked_reason: None, cors_error: None, duration_ms: None };
                self.record(&context, &failed);
            }
            self.flight_ended(&browser_id);
        }
    }
}

fn duration_ms(flight: &Flight, timestamp: f64) -> Option<f64> {
    (flight.started > 0.0 && timestamp >= flight.started).then_some((timestamp - flight.started) * 1000.0)
}
