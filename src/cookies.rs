//! Cookies as callers write and read them, and which of them go to which address.
//!
//! The shape is that of Playwright: `expires` in seconds since the epoch, -1 for a session cookie,
//! `sameSite` one of Strict, Lax, None. What is read can be set again as it is.

use serde_json::{Map, Value, json};

use crate::contract::validate::join;
use crate::fault::Problem;

const KEYS: &[&str] =
    &["name", "value", "url", "domain", "path", "expires", "httpOnly", "secure", "sameSite", "partitionKey"];

/// Chromium's cookies as callers read them, in an order that does not depend on when they were set.
#[must_use]
pub fn all_shown<'a>(cookies: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut shown: Vec<Value> = cookies.map(shown).collect();
    let key = |cookie: &Value| ["domain", "path", "name", "partitionKey"].map(|key| cookie[key].to_string());
    shown.sort_by_cached_key(key);
    shown
}

/// One of Chromium's cookies as callers read it.
#[must_use]
fn shown(cookie: &Value) -> Value {
    let session = cookie["session"] == true;
    let mut out = json!({
        "name": cookie["name"],
        "value": cookie["value"],
        "domain": cookie["domain"],
        "path": cookie["path"],
        "expires": if session { json!(-1) } else { cookie["expires"].clone() },
        "httpOnly": cookie["httpOnly"],
        "secure": cookie["secure"],
        // Chromium takes those that say nothing for Lax.
        "sameSite": cookie["sameSite"].as_str().unwrap_or("Lax"),
    });
    if cookie["partitionKey"].is_object() {
        out["partitionKey"] = cookie["partitionKey"].clone();
    }
    out
}

/// Cookies as Chromium takes them.
///
/// # Errors
/// Everything that is wrong, each by the position of its cookie.
pub fn checked(given: &[Value]) -> Result<Vec<Value>, Vec<Problem>> {
    let mut problems = Vec::new();
    let cookies = given.iter().enumerate().map(|(position, cookie)| one(cookie, position, &mut problems)).collect();
    if problems.is_empty() { Ok(cookies) } else { Err(problems) }
}

fn one(cookie: &Value, position: usize, problems: &mut Vec<Problem>) -> Value {
    let empty = Map::new();
    let cookie = cookie.as_object().unwrap_or(&empty);
    let mut wrong = |key: &str, problem: &str| {
        problems.push(Problem::new(join(&format!("cookies.{position}"), key), problem));
    };
    let mut out = Map::new();
    for (key, value) in cookie.iter().filter(|(_, value)| !value.is_null()) {
        let fits = match key.as_str() {
            "name" | "value" | "url" | "domain" | "path" => value.is_string(),
            "httpOnly" | "secure" => value.is_boolean(),
            "expires" => value.as_f64().is_some_and(|seconds| seconds == -1.0 || (0.0..1.0e11).contains(&seconds)),
            "sameSite" => value.as_str().is_some_and(|text| ["Strict", "Lax", "None"].contains(&text)),
            "partitionKey" => value.is_string() || value["topLevelSite"].is_string(),
            _ => {
                wrong(key, &format!("unknown key; accepted are {}", KEYS.join(", ")));
                continue;
            }
        };
        if !fits {
            wrong(key, rule(key));
            continue;
        }
        match (key.as_str(), value) {
            // A session cookie is one that names no end.
            ("expires", value) if value.as_f64() == Some(-1.0) => {}
            ("partitionKey", Value::String(site)) => {
                out.insert(key.clone(), json!({"topLevelSite": site, "hasCrossSiteAncestor": false}));
            }
            _ => drop(out.insert(key.clone(), value.clone())),
        }
    }
    let has = |key: &str| cookie.get(key).is_some_and(|value| value.as_str().is_some_and(|text| !text.is_empty()));
    if has("url") {
        if has("domain") || has("path") {
            wrong("url", "is either given, or domain and path are; not both");
        } else if cookie["url"].as_str().and_then(Address::parse).is_none() {
            wrong("url", "must be an absolute http or https URL");
        }
    } else if !(has("domain") && has("path")) {
        wrong("domain", "needs a url, or a domain and a path");
    }
    if cookie.get("sameSite") == Some(&json!("None")) && cookie.get("secure") != Some(&json!(true)) {
        wrong("sameSite", "None needs secure to be true");
    }
    Value::Object(out)
}

fn rule(key: &str) -> &'static str {
    match key {
        "httpOnly" | "secure" => "must be true or false",
        "expires" => "must be seconds since 1970, or -1 for a session cookie",
        "sameSite" => "must be one of Strict, Lax, None",
        "partitionKey" => "must be a site, or an object with topLevelSite and hasCrossSiteAncestor",
        _ => "must be a string",
    }
}

/// Where a request would go, as far as cookies care.
#[derive(Debug, PartialEq, Eq)]
pub struct Address {
    secure: bool,
    host: String,
    path: String,
}

impl Address {
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" | "wss" => true,
            "http" | "ws" => false,
            _ => return None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = rest[..end].rsplit('@').next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(rest) => format!("[{}]", rest.split_once(']')?.0),
            None => authority.split(':').next().unwrap_or_default().to_owned(),
        };
        let path = rest[end..].split(['?', '#']).next().unwrap_or_default();
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        (!host.is_empty()).then(|| Self { secure, host: host.to_ascii_lowercase(), path })
    }

    /// Whether Chromium would send `cookie` there.
    #[must_use]
    pub fn gets(&self, cookie: &Value) -> bool {
        let domain = cookie["domain"].as_str().unwrap_or_default();
        let host = match domain.strip_prefix('.') {
            Some(site) => self.host == site || self.host.ends_with(domain),
            None => self.host == domain,
        };
        let path = cookie["path"].as_str().unwrap_or("/");
        let below = self.path.strip_prefix(path);
        let within = below.is_some_and(|rest| rest.is_empty() || path.ends_with('/') || rest.starts_with('/'));
        let local = self.host == "localhost" || self.host.ends_with(".localhost") || self.host == "127.0.0.1";
        host && within && (cookie["secure"] != true || self.secure || local || self.host == "[::1]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_go_where_they_belong() {
        let to = |url: &str, domain: &str, path: &str, secure: bool| {
            let address = Address::parse(url).expect("an address");
            address.gets(&json!({"domain": domain, "path": path, "secure": secure}))
        };
        assert!(to("http://a.test/x?y", "a.test", "/", false));
        assert!(to("http://b.a.test/", ".a.test", "/", false) && to("http://a.test:8/", ".a.test", "/", false));
        assert!(!to("http://b.a.test/", "a.test", "/", false) && !to("http://ba.test/", ".a.test", "/", false));
        assert!(to("http://a.test/x/y", "a.test", "/x", false) && !to("http://a.test/xy", "a.test", "/x", false));
        assert!(to("https://a.test", "a.test", "/", true) && !to("http://a.test", "a.test", "/", true));
        assert!(to("http://127.0.0.1:80/", "127.0.0.1", "/", true));
        for url in ["", "a.test", "ftp://a.test/", "http://", "about:blank", "http:///x", "http://[::1"] {
            assert_eq!(Address::parse(url), None, "{url}");
        }
    }
}
