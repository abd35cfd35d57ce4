//! Lists, one line an item: what the lines share is said once, above them.

use serde_json::{Map, Value};

use super::legend::of_all;
use super::messages::{self, Messages};
use super::requests::{self, Requests};
use super::text::{one_line, pairs, word};

/// How the items of a list are written.
pub(super) struct Shape {
    /// What stands at the beginning of a line, in this order.
    lead: &'static [&'static str],
    /// What several lines share: said on a line that begins with `--`, for the lines below it.
    shared: &'static [&'static str],
    /// What other tools tell of one item, or the item's other members already do.
    left_out: &'static [&'static str],
    /// An object whose members stand as the item's own.
    opened: Option<&'static str>,
}

/// A list that nothing particular is known of.
pub(super) const PLAIN: Shape = Shape { lead: &[], shared: &[], left_out: &[], opened: None };

static EVENTS: Shape = Shape {
    lead: &["seq", "recorded_at", "kind"],
    shared: &["page_id", "operation_id"],
    left_out: &["event_id", "browser_time", "version"],
    opened: Some("data"),
};
static DOWNLOADS: Shape = Shape {
    lead: &["download_id"],
    shared: &["tab_id", "operation_id"],
    left_out: &["seq", "timestamp"],
    opened: None,
};
static MATCHES: Shape = Shape { lead: &["selector"], ..PLAIN };

/// Whether a member of that name is a list with lines of its own form.
pub(super) fn is_known(key: &str) -> bool {
    matches!(key, "messages" | "requests") || shape(key).is_some()
}

fn shape(key: &str) -> Option<&'static Shape> {
    match key {
        "events" => Some(&EVENTS),
        "downloads" => Some(&DOWNLOADS),
        "matches" => Some(&MATCHES),
        _ => None,
    }
}

/// The list called `key`.
pub(super) fn put(out: &mut String, key: &str, items: &[Value]) {
    out.push_str(&format!("{} {key}", items.len()));
    match key {
        "messages" => {
            let messages = Messages::of(items);
            out.push_str(&messages.told());
            lines(out, items, messages::SHARED, &|item| messages.line(item));
        }
        "requests" => {
            let requests = Requests::of(items);
            out.push_str(&requests.told());
            lines(out, items, requests::SHARED, &|item| requests.line(item));
        }
        _ => {
            let shape = shape(key).unwrap_or(&PLAIN);
            let dates = items.iter().filter_map(|item| item["recorded_at"].as_str()?.get(..=10));
            let date = of_all(dates, items.len()).unwrap_or_default();
            if !date.is_empty() {
                out.push_str(&format!("; times begin with {}", one_line(date)));
            }
            lines(out, items, shape.shared, &|item| shape.line(item, date));
        }
    }
}

fn lines(out: &mut String, items: &[Value], shared: &[&str], line: &dyn Fn(&Map<String, Value>) -> String) {
    out.push('\n');
    let mut before = String::new();
    for item in items {
        let Some(members) = item.as_object() else {
            out.push_str(&format!("- {}\n", word(item)));
            continue;
        };
        let pairs = shared.iter().filter_map(|key| Some(format!("{key}={}", word(members.get(*key)?))));
        let now = pairs.collect::<Vec<_>>().join(" ");
        if now != before {
            out.push_str(&format!("-- {now}\n"));
            before = now;
        }
        out.push_str(&format!("{}\n", line(members)));
    }
}

impl Shape {
    fn line(&self, members: &Map<String, Value>, date: &str) -> String {
        let mut parts: Vec<String> = Vec::new();
        if self.lead.is_empty() {
            parts.push("-".to_owned());
        }
        parts.extend(self.lead.iter().filter_map(|key| match members.get(*key)? {
            Value::String(time) if *key == "recorded_at" => Some(one_line(time.strip_prefix(date).unwrap_or(time))),
            value => Some(word(value)),
        }));
        let opened: &[&str] = self.opened.as_slice();
        let without = [self.lead, self.shared, self.left_out, opened].concat();
        parts.push(pairs(members, &without));
        parts.extend(
            self.opened.and_then(|key| members.get(key)).and_then(Value::as_object).map(|data| pairs(data, &[])),
        );
        parts.retain(|part| !part.is_empty());
        parts.join(" ")
    }
}
