//! Parameters of network events, as far as they are of use, all optional.
//!
//! A newer Chromium may leave out or add what it likes; nothing here fails over it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WillBeSent {
    pub request_id: String,
    pub loader_id: String,
    pub request: Request,
    pub timestamp: f64,
    pub wall_time: f64,
    pub initiator: Initiator,
    pub redirect_response: Option<Response>,
    pub r#type: String,
    pub frame_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Request {
    pub url: String,
    pub url_fragment: String,
    pub method: String,
    pub headers: Map<String, Value>,
    pub post_data: Option<String>,
    pub post_data_entries: Vec<PostDataEntry>,
    pub has_post_data: bool,
    pub initial_priority: String,
}

/// Base64 of a piece of a request body; a file's piece has none.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PostDataEntry {
    pub bytes: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Initiator {
    pub r#type: String,
    pub url: Option<String>,
    pub line_number: Option<f64>,
    pub stack: Option<InitiatorStack>,
    /// The request that a preflight asks leave for.
    pub request_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct InitiatorStack {
    pub call_frames: Vec<InitiatorFrame>,
    pub parent: Option<Box<InitiatorStack>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct InitiatorFrame {
    pub function_name: String,
    pub url: String,
    pub line_number: f64,
    pub column_number: f64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Received {
    pub request_id: String,
    pub loader_id: String,
    pub timestamp: f64,
    pub r#type: String,
    pub response: Response,
    pub frame_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Response {
    pub url: String,
    pub status: i64,
    pub status_text: String,
    pub headers: Map<String, Value>,
    pub mime_type: String,
    #[serde(rename = "remoteIPAddress")]
    pub remote_address: Option<String>,
    pub remote_port: Option<i64>,
    pub from_disk_cache: bool,
    pub from_service_worker: bool,
    pub from_prefetch_cache: bool,
    pub protocol: Option<String>,
    pub timing: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Progressed {
    pub request_id: String,
    pub timestamp: f64,
    pub data_length: u64,
    /// Base64, when the response is read while it runs.
    pub data: Option<String>,
    pub encoded_data_length: f64,
    pub error_text: String,
    pub canceled: bool,
    pub blocked_reason: Option<String>,
    pub cors_error_status: Option<CorsError>,
}

impl Progressed {
    /// What it failed with. The browser has no name for what it never tried.
    pub fn error(&self) -> String {
        match &self.blocked_reason {
            Some(reason) if self.error_text.is_empty() => format!("blocked:{reason}"),
            _ => self.error_text.clone(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CorsError {
    pub cors_error: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ExtraInfo {
    pub request_id: String,
    pub headers: Map<String, Value>,
    pub status_code: Option<i64>,
}

pub(super) fn header<'a>(headers: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
}

pub(super) fn remote_address(response: &Response) -> Option<String> {
    let address = response.remote_address.as_deref().filter(|address| !address.is_empty())?;
    Some(response.remote_port.map_or_else(|| address.to_owned(), |port| format!("{address}:{port}")))
}

/// The phases the browser measured, in milliseconds since it took the request up, and how long it
/// waited for that after `started` (seconds on the same clock as the browser's own).
pub(super) fn timing(raw: &Map<String, Value>, started: f64) -> Option<Value> {
    const PHASES: [(&str, &str); 11] = [
        ("dnsStart", "dns_start"),
        ("dnsEnd", "dns_end"),
        ("connectStart", "connect_start"),
        ("connectEnd", "connect_end"),
        ("sslStart", "ssl_start"),
        ("sslEnd", "ssl_end"),
        ("sendStart", "send_start"),
        ("sendEnd", "send_end"),
        ("workerStart", "worker_start"),
        ("receiveHeadersStart", "headers_start"),
        ("receiveHeadersEnd", "headers_end"),
    ];
    let measured = |(theirs, ours): &(&str, &str)| {
        let value = raw.get(*theirs)?.as_f64().filter(|value| *value >= 0.0)?;
        Some(((*ours).to_owned(), json!(value)))
    };
    let mut phases: Map<String, Value> = PHASES.iter().filter_map(measured).collect();
    let taken_up = raw.get("requestTime").and_then(Value::as_f64).unwrap_or(0.0);
    if !phases.is_empty() && started > 0.0 && taken_up > started {
        phases.insert("queued".into(), json!((taken_up - started) * 1_000.0));
    }
    (!phases.is_empty()).then_some(Value::Object(phases))
}
