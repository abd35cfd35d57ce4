//! Events as lines for a terminal: whatever a page wrote, a line stays one line and moves no cursor.

use std::fmt::Write;

use serde_json::Value;
use storage::event::codec::ContextField;
use storage::event::{EventView, json};
use storage::time::rfc3339;

use crate::limits::{TAIL_LINE_BYTES_MAX, head};
use crate::unseen::is_unseen;

/// The whole event as one line of JSON.
pub fn json_line(event: &EventView<'_>, log_id: &str) -> String {
    let mut line = String::new();
    // Outside of strings JSON has no such characters, so escaping them leaves it JSON.
    put_escaped(&mut line, &json::event(event, log_id).to_string(), &mut json_escape);
    line
}

/// Number, time, session, kind, page, and the kind's fields, cut to a readable length.
pub fn short_line(event: &EventView<'_>) -> String {
    let session = event.context(ContextField::SessionId).unwrap_or("-");
    let mut line = format!("{} {} ", event.seq, rfc3339(event.recorded_at_micros));
    put_escaped(&mut line, &format!("{session} {}", json::kind_name(event)), &mut text_escape);
    if let Some(page) = event.context(ContextField::PageId) {
        line.push_str(" page_id=");
        put_escaped(&mut line, page, &mut text_escape);
    }
    if let Value::Object(fields) = json::payload(event) {
        for (name, value) in fields {
            line.push_str(&format!(" {name}="));
            put_escaped(&mut line, &value.to_string(), &mut text_escape);
            if line.len() > TAIL_LINE_BYTES_MAX {
                break;
            }
        }
    }
    if line.len() > TAIL_LINE_BYTES_MAX {
        line.truncate(head(&line, TAIL_LINE_BYTES_MAX - 3).len());
        line.push_str("...");
    }
    line
}

fn put_escaped(line: &mut String, text: &str, escape: &mut dyn FnMut(&mut String, char)) {
    for character in text.chars() {
        if is_unseen(character) {
            escape(line, character);
        } else {
            line.push(character);
        }
    }
}

fn json_escape(line: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        let _ = write!(line, "\\u{unit:04x}");
    }
}

fn text_escape(line: &mut String, character: char) {
    line.extend(character.escape_unicode());
}

#[cfg(test)]
mod tests {
    use storage::event::catalog::ConsoleMessage;
    use storage::event::codec::put_record;
    use storage::event::{Clean, Context, Draft, Level, Symbol};

    use super::*;

    fn lines(text: &str) -> (String, String) {
        let message = ConsoleMessage {
            level: Level::Info,
            r#type: Symbol::fold("log"),
            text: Clean::redacted(text),
            url: None,
            line: None,
            column: None,
            stack: None,
            text_bytes: None,
            text_artifact: None,
            truncated_fields: None,
        };
        let context = Context { session_id: Some("s\u{1b}[2J".into()), ..Context::default() };
        let mut record = Vec::new();
        put_record(&mut record, 7, 0, &Draft::new(&context, &message).body);
        let (event, _) = EventView::split_from(&record).expect("the record is whole");
        (json_line(&event, "log"), short_line(&event))
    }

    #[test]
    fn nothing_a_page_writes_leaves_its_line() {
        let hostile = "a\u{1b}[31m\r\n\u{7f}\u{9b}2J\u{2028}\u{202e}\u{0}\u{200b}\u{e0041}z";
        let (json, short) = lines(hostile);
        for line in [&json, &short] {
            assert!(!line.chars().any(is_unseen), "{line:?}");
        }
        let parsed: Value = serde_json::from_str(&json).expect("the line is JSON");
        assert_eq!(parsed["data"]["text"], hostile);
        assert!(
            short.starts_with("7 1970-01-01T00:00:00.000000Z s\\u{1b}[2J console.message level=\"info\""),
            "{short}"
        );
    }

    #[test]
    fn short_lines_are_short_and_json_lines_whole() {
        let (json, short) = lines(&"\u{e9}".repeat(10_000));
        assert!(short.len() <= TAIL_LINE_BYTES_MAX && short.ends_with("..."));
        assert!(json.len() > 20_000);
    }
}
