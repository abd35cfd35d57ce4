//! Headers, cookies, queries and forms, as an archive lists them.
//!
//! They are split and not decoded: what stands in the log may be cut or replaced in the middle of an
//! escape, and a reader who decodes can do so.

use serde_json::{Map, Value, json};

/// A JSON object as events hold it; empty when it is none.
pub(super) fn object(text: Option<&str>) -> Map<String, Value> {
    match text.map(serde_json::from_str::<Value>) {
        Some(Ok(Value::Object(members))) => members,
        _ => Map::new(),
    }
}

/// A header that came several times has its values on lines of their own.
pub(super) fn headers(recorded: &Map<String, Value>) -> Value {
    let of = |(name, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.split('\n').map(|line| json!({"name": name, "value": line})).collect::<Vec<_>>()
    };
    recorded.iter().flat_map(of).collect()
}

pub(super) fn header<'a>(recorded: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    recorded.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
}

/// What was sent.
pub(super) fn cookies_sent(recorded: &Map<String, Value>) -> Value {
    let sent = header(recorded, "cookie").unwrap_or_default();
    let pair = |cookie: &str| {
        let (name, value) = cookie.trim().split_once('=').unwrap_or((cookie.trim(), ""));
        json!({"name": name, "value": value})
    };
    sent.split(';').filter(|cookie| !cookie.trim().is_empty()).map(pair).collect()
}

/// What was set, with the attributes that an archive knows.
pub(super) fn cookies_set(recorded: &Map<String, Value>) -> Value {
    let set = header(recorded, "set-cookie").unwrap_or_default();
    set.split('\n').filter(|line| !line.trim().is_empty()).map(cookie_set).collect()
}

fn cookie_set(line: &str) -> Value {
    let mut parts = line.split(';').map(str::trim);
    let cookie = parts.next().unwrap_or_default();
    let (name, value) = cookie.split_once('=').unwrap_or((cookie, ""));
    let mut shown = json!({"name": name, "value": value, "httpOnly": false, "secure": false});
    for part in parts {
        let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
        match attribute.to_ascii_lowercase().as_str() {
            "path" => shown["path"] = value.into(),
            "domain" => shown["domain"] = value.into(),
            "httponly" => shown["httpOnly"] = true.into(),
            "secure" => shown["secure"] = true.into(),
            "samesite" => shown["sameSite"] = value.into(),
            // An archive wants another form of time than a header has.
            "expires" => shown["_expires"] = value.into(),
            "max-age" => shown["_maxAge"] = value.into(),
            _ => {}
        }
    }
    shown
}

/// Names and values of `a=1&b=2`.
pub(super) fn pairs(text: &str) -> Value {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        json!({"name": name, "value": value})
    };
    text.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// The query of an address, without its question mark.
pub(super) fn query(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or_default();
    url.split_once('?').map_or("", |(_, query)| query)
}

/// A protocol as archives name it.
pub(super) fn http_version(protocol: Option<&str>) -> String {
    match protocol {
        Some("http/1.0") => "HTTP/1.0".into(),
        Some("http/1.1") => "HTTP/1.1".into(),
        Some("h2") => "HTTP/2".into(),
        Some("h3") => "HTTP/3".into(),
        other => other.unwrap_or("unknown").to_owned(),
    }
}
