//! Requests: `12b POST 404 items?page=2` is request 12, at the address that begins with what the first
//! line calls b.
//!
//! What most requests have alike, method, status and type, is said once; a request that has no status
//! says why.

use serde_json::{Map, Value};

use super::legend::{Legend, of_all, usual};
use super::text::{one_line, pairs, word};

/// What several lines share.
pub(super) const SHARED: &[&str] = &["tab_id", "operation_id"];
/// Said in the line's own form, or told by `get_network_request`.
const OWN: &[&str] = &[
    "request_id",
    "seq",
    "timestamp",
    "method",
    "url",
    "resource_type",
    "state",
    "status",
    "mime_type",
    "duration_ms",
    "encoded_bytes",
    "tab_id",
    "operation_id",
];
/// Facts of a request, with one that is usual.
const USUAL: [&str; 3] = ["method", "status", "resource_type"];

pub(super) struct Requests {
    ids: String,
    usual: [String; 3],
    bases: Legend,
}

impl Requests {
    pub fn of(items: &[Value]) -> Self {
        let texts = |key: &'static str| items.iter().filter_map(move |item| item[key].as_str());
        let ids = of_all(texts("request_id").filter_map(|id| Some(&id[..=id.rfind('-')?])), items.len());
        let usual = USUAL.map(|key| {
            let words: Vec<String> =
                items.iter().map(|item| fact(&item[key])).filter(|word| !word.is_empty()).collect();
            usual(words.iter().map(String::as_str)).unwrap_or_default().to_owned()
        });
        let ids = ids.filter(|ids| one_line(ids) == *ids).unwrap_or_default().to_owned();
        Self { ids, usual, bases: Legend::of(texts("url").map(base).filter(|base| !base.is_empty())) }
    }

    /// The first line's end.
    pub fn told(&self) -> String {
        let mut told = String::new();
        let usual: Vec<&str> = self.usual.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        if !usual.is_empty() {
            told.push_str(&format!(", each {} unless said", usual.join(" ")));
        }
        if !self.ids.is_empty() {
            told.push_str(&format!("; ids begin with {}", self.ids));
        }
        if !self.bases.is_empty() {
            told.push_str(&format!("; addresses:{}", self.bases.told()));
        }
        told
    }

    pub fn line(&self, request: &Map<String, Value>) -> String {
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, url) = (text("request_id"), text("url"));
        let base = base(url);
        let (letter, rest) = match self.bases.letter(base) {
            Some(letter) => (letter, &url[base.len()..]),
            None => (String::new(), url),
        };
        let id = one_line(id.strip_prefix(self.ids.as_str()).unwrap_or(id)).replace(' ', "_");
        let mut parts = vec![format!("{id}{letter}")];
        let facts = USUAL.iter().zip(&self.usual).map(|(key, usual)| (request.get(*key).map(fact), usual));
        parts.extend(facts.filter_map(|(fact, usual)| fact.filter(|fact| fact != usual)));
        if text("state") != "finished" {
            parts.push(format!("state={}", word(&text("state").into())));
        }
        parts.push(pairs(request, OWN));
        parts.push(one_line(rest).replace(' ', "%20"));
        parts.retain(|part| !part.is_empty());
        parts.join(" ")
    }
}

fn fact(value: &Value) -> String {
    if value.is_null() { String::new() } else { word(value) }
}

/// An address up to its last slash before query and fragment, where it has a host.
fn base(url: &str) -> &str {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let host = url.find("://").map_or(end, |at| at + 3);
    let plain = |base: &&str| base.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\\'));
    match url[..end].rfind('/').filter(|at| *at >= host) {
        Some(at) => Some(&url[..=at]).filter(plain).unwrap_or_default(),
        None => "",
    }
}
