//! Console messages: `34Wc text` is message 34, a warning, logged at the place that the first line calls c.
//!
//! Number, level and place stand in one word before the text, so that no text can pass for them.

use serde_json::{Map, Value};

use super::legend::Legend;
use super::text::{one_line, pairs, word};

/// What several lines share.
pub(super) const SHARED: &[&str] = &["tab_id", "operation_id"];
/// Said in the line's own form, or told by `list_events`.
const OWN: &[&str] =
    &["seq", "timestamp", "type", "level", "text", "location", "stack", "tab_id", "operation_id", "source"];

pub(super) struct Messages(Legend);

impl Messages {
    pub fn of(items: &[Value]) -> Self {
        let places: Vec<String> = items.iter().map(|item| place(&item["location"])).collect();
        Self(Legend::of(places.iter().map(String::as_str).filter(|place| !place.is_empty())))
    }

    /// The first line's end.
    pub fn told(&self) -> String {
        let places = if self.0.is_empty() { String::new() } else { format!("; places:{}", self.0.told()) };
        format!(" (E error, W warning, D debug){places}")
    }

    pub fn line(&self, message: &Map<String, Value>) -> String {
        let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
        let level = match text("level") {
            "info" => "",
            "error" => "E",
            "warning" => "W",
            "debug" => "D",
            other => other,
        };
        let place = message.get("location").map(place).unwrap_or_default();
        let place = self.0.letter(&place).unwrap_or_else(|| if place.is_empty() { place } else { format!("@{place}") });
        let kind = match text("type") {
            "" | "log" | "info" | "warning" | "error" | "debug" => String::new(),
            kind => format!("({}{}{})", kind, if text("source").is_empty() { "" } else { ":" }, text("source")),
        };
        let seq = message.get("seq").map(word).unwrap_or_default();
        let begin = one_line(&format!("{seq}{level}{place}{kind}")).replace(' ', "_");
        let others = pairs(message, OWN);
        let others = if others.is_empty() { others } else { format!("[{others}] ") };
        format!("{begin} {others}{}", one_line(text("text")))
    }
}

/// `address:line` of a script, and the column where it may all be on one line.
fn place(location: &Value) -> String {
    let Some(url) = location["url"].as_str() else { return String::new() };
    let keys: &[&str] = if location["line"] == 1 { &["line", "column"] } else { &["line"] };
    let numbers = keys.iter().filter_map(|key| location[*key].as_u64());
    one_line(&numbers.fold(url.to_owned(), |place, number| format!("{place}:{number}"))).replace(' ', "%20")
}
