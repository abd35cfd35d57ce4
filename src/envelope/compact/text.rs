//! Values as text on one line: short where they are plain, JSON where they are not.

use serde_json::{Map, Value};

use crate::unseen::is_unseen;

/// Members of members are shown on lines of their own down to here, deeper ones as JSON.
const DEPTH_MAX: usize = 3;

/// `text` without anything that ends a line or is not seen, each such character and the backslash escaped
/// as JSON does, so that the text can be had back.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => put_seen(&mut out, other),
        }
    }
    out
}

/// A value as JSON on one line, with everything in it to be seen.
pub(super) fn json(value: &Value) -> String {
    let mut out = String::new();
    value.to_string().chars().for_each(|character| put_seen(&mut out, character));
    out
}

fn put_seen(out: &mut String, character: char) {
    if is_unseen(character) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    } else {
        out.push(character);
    }
}

/// A value within a line of several: bare when it is one plain word.
pub(super) fn word(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => json(other),
    }
}

/// A value that has a line to itself: a text is bare unless it could be taken for another value.
fn alone(value: &Value) -> String {
    match value {
        Value::String(text) if !is_like_json(text) => one_line(text),
        other => json(other),
    }
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !is_unseen(c) && !matches!(c, '"' | '=' | '\\' | '|');
    !text.is_empty() && text.chars().all(plain) && !is_like_json(text)
}

/// Whether a text reads as a number, a truth value, `null`, or as JSON with a beginning of its own.
fn is_like_json(text: &str) -> bool {
    let begins = text.starts_with(['"', '[', '{', '-']) || text.starts_with(|c: char| c.is_ascii_digit());
    matches!(text, "true" | "false" | "null") || begins && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// `key: value`, an object's members below it and further in.
pub(super) fn put_member(out: &mut String, depth: usize, key: &str, value: &Value) {
    let indent = "  ".repeat(depth);
    let key = one_line(key);
    match value {
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
        other => out.push_str(&format!("{indent}{key}: {}\n", alone(other))),
    }
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|text| is_plain(text) && !text.contains(','))
}

/// The members of an object as `key=value`, without those in `without`.
pub(super) fn pairs(members: &Map<String, Value>, without: &[&str]) -> String {
    let shown = members.iter().filter(|(key, _)| !without.contains(&key.as_str()));
    let pairs: Vec<String> = shown.map(|(key, value)| format!("{}={}", one_line(key), word(value))).collect();
    pairs.join(" ")
}
