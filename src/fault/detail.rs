//! What may stand in a fault's details: short text without URL queries or credentials.

use serde_json::{Map, Value};

use crate::limits::{DETAIL_CHARS_MAX, DETAIL_ITEMS_MAX};

/// Levels of nesting that details need: a list of problems, each an object of texts.
const DEPTH_MAX: usize = 3;

/// `value` cut to what details may hold. Values below the deepest level become null.
pub fn bounded(key: &str, value: Value) -> Value {
    shallow(key, value, 0)
}

fn shallow(key: &str, value: Value, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(short(key, &text)),
        Value::Array(_) | Value::Object(_) if depth == DEPTH_MAX => Value::Null,
        Value::Array(items) => {
            items.into_iter().take(DETAIL_ITEMS_MAX).map(|item| shallow(key, item, depth + 1)).collect()
        }
        Value::Object(members) => {
            let cut = |(name, value): (String, Value)| {
                let value = shallow(&name, value, depth + 1);
                (short("", &name), value)
            };
            Value::Object(members.into_iter().take(DETAIL_ITEMS_MAX).map(cut).collect::<Map<_, _>>())
        }
        plain => plain,
    }
}

fn short(key: &str, text: &str) -> String {
    let clean = if key == "url" { without_query(text).to_owned() } else { without_queries(text) };
    if clean.chars().count() <= DETAIL_CHARS_MAX {
        return clean;
    }
    clean.chars().take(DETAIL_CHARS_MAX - 3).chain("...".chars()).collect()
}

/// Everything before the query or fragment of what is a URL as a whole, credentials left out.
fn without_query(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    without_credentials(plain)
}

/// Text in which each `scheme://...` has lost its query, fragment and credentials.
fn without_queries(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find("://") {
        let after = found + "://".len();
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | ')' | ']');
        let end = rest[after..].find(ends).map_or(rest.len(), |length| after + length);
        out.push_str(&rest[..after]);
        out.push_str(&without_query(&rest[after..end]));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Drops `user:password@` before the first slash of what follows `://`, if any.
fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.find("://").map_or(("", url), |found| url.split_at(found + "://".len()));
    let host_end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..host_end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}{}", &rest[host..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_fragments_and_credentials_are_dropped() {
        let text = |key, raw: &str| bounded(key, raw.into());
        assert_eq!(text("url", "https://me:pw@host/a?token=1#x"), "https://host/a");
        assert_eq!(text("url", "/a?b"), "/a");
        assert_eq!(
            text("reason", "net::ERR at http://h/p?secret=1 and ws://u:p@h?x"),
            "net::ERR at http://h/p and ws://h"
        );
        assert_eq!(text("selector", "a[href='https://h/?q=1']"), "a[href='https://h/']");
        assert_eq!(text("what", "a@b?c"), "a@b?c");
    }

    #[test]
    fn text_lists_and_nesting_are_bounded() {
        let long = bounded("reason", "\u{e9}".repeat(1000).into());
        assert_eq!(long.as_str().map(|text| text.chars().count()), Some(DETAIL_CHARS_MAX));
        let list = bounded("problems", (0..100).collect::<Vec<u64>>().into());
        assert_eq!(list.as_array().map(Vec::len), Some(DETAIL_ITEMS_MAX));
        let deep: Value = serde_json::from_str(r#"[[[["x"]]]]"#).expect("literal is JSON");
        assert_eq!(bounded("problems", deep).to_string(), "[[[null]]]");
    }
}
