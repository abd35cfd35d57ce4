//! Values as text on one line: short where they are plain, JSON where they are not.

use serde_json::{Map, Value};

use crate::unseen::is_unseen;

/// Members of members are shown on lines of their own down to here, deeper ones as JSON.
const DEPTH_MAX: usize = 3;

/// `text` without anything that ends a line or is not seen.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            unseen if is_unseen(unseen) => {
                for unit in unseen.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            seen => out.push(seen),
        }
    }
    out
}

/// A value within a line of several: bare when it is one plain word.
pub(super) fn word(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => one_line(&other.to_string()),
    }
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !is_unseen(c) && !matches!(c, '"' | '=' | '\\' | '|');
    !text.is_empty() && text.chars().all(plain)
}

/// `key: value`, an object's members below it and further in. What is absent is left out.
pub(super) fn put_member(out: &mut String, depth: usize, key: &str, value: &Value) {
    let indent = "  ".repeat(depth);
    let key = one_line(key);
    match value {
        Value::Null => {}
        Value::String(text) => out.push_str(&format!("{indent}{key}: {}\n", one_line(text))),
        Value::Object(members) if depth < DEPTH_MAX && !members.is_empty() => {
            out.push_str(&format!("{indent}{key}:\n"));
            for (name, member) in members {
                put_member(out, depth + 1, name, member);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            out.push_str(&format!("{indent}{key}:\n"));
            for item in items {
                out.push_str(&format!(
                    "{indent}- {}\n",
                    item.as_object().map_or_else(|| word(item), |members| pairs(members, &[]))
                ));
            }
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(is_word) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            out.push_str(&format!("{indent}{key}: {}\n", words.join(", ")));
        }
        other => out.push_str(&format!("{indent}{key}: {}\n", one_line(&other.to_string()))),
    }
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|text| is_plain(text) && !text.contains(','))
}

/// The members of an object as `key=value`, without those that are absent or in `without`.
pub(super) fn pairs(members: &Map<String, Value>, without: &[&str]) -> String {
    let shown = members.iter().filter(|(key, value)| !value.is_null() && !without.contains(&key.as_str()));
    let pairs: Vec<String> = shown.map(|(key, value)| format!("{}={}", one_line(key), word(value))).collect();
    pairs.join(" ")
}
