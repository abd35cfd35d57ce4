//! What a message is, read tolerantly: a reply, an event, or something to count and pass over.
//!
//! Parameters stay raw text until somebody needs them. Nothing here fails because of a field or a
//! method it does not know.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::surrogates;

/// One message, borrowed from the bytes read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Envelope<'a> {
    pub id: Option<u64>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    pub session: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    pub error: Option<Refusal>,
}

/// Chromium's no to a command.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Refusal {
    pub code: i64,
    pub message: String,
}

/// Parses `raw`, mending what JavaScript strings may hold and UTF-8 may not.
#[must_use]
pub fn parse<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    parse_text(raw.get())
}

fn parse_text<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&surrogates::mend(text)?).ok())
}

/// The command a message answers, from its first bytes alone.
#[must_use]
pub fn reply_id(head: &[u8]) -> Option<u64> {
    let digits = head.strip_prefix(b"{\"id\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// The method a message names, from its first bytes alone; `unknown` when it names none there.
#[must_use]
pub fn method_name(head: &[u8]) -> String {
    const KEY: &[u8] = b"\"method\":\"";
    let head = &head[..head.len().min(4096)];
    let Some(start) = head.windows(KEY.len()).position(|window| window == KEY) else {
        return "unknown".to_owned();
    };
    let name = &head[start + KEY.len()..];
    let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.').unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn heads_of_messages_tell_what_was_lost() {
        assert_eq!(reply_id(br#"{"id":17,"result":{"#), Some(17));
        assert_eq!(reply_id(br#"{"method":"A.b"}"#), None);
        assert_eq!(method_name(br#"{"method":"Runtime.consoleAPICalled","params":"#), "Runtime.consoleAPICalled");
        assert_eq!(method_name(b"\xff\xff"), "unknown");
    }

    #[test]
    fn deep_nesting_is_carried_raw() {
        let deep = format!(r#"{{"method":"X.y","params":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let envelope: Envelope<'_> = serde_json::from_str(&deep).expect("raw parts are not descended into");
        assert_eq!(envelope.method.as_deref(), Some("X.y"));
        assert_eq!(parse::<Value>(envelope.params.expect("there are params")), None);
    }
}
