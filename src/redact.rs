//! From raw text to text that may be stored: the one door into `Clean` and `Json`.
//!
//! Rules go by the type of what they look at (URL, headers, body, free text), never by guessing from
//! looks alone; each counts what it replaced. Text is redacted whole and cut afterwards, so that a
//! cut cannot leave half a secret behind. Plain text costs two searches while no secret is declared.

mod address;
mod body;
mod names;
mod pairs;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use regex::Regex;
use serde_json::{Map, Value};
use storage::event::{Clean, Json};
use storage::limits::TEXT_FIELD_BYTES_MAX;

pub use crate::limits::head as cut;

pub use body::looks_like_json;
use names::{Place, Verdict, judge};

/// Secrets that may be declared at one time.
const SECRETS_MAX: usize = 1000;
/// Shorter ones would turn up everywhere by chance.
const SECRET_BYTES_MIN: usize = 4;
/// One header value.
const HEADER_BYTES_MAX: usize = 4096;
/// All of one message's header values.
const HEADERS_BYTES_MAX: usize = TEXT_FIELD_BYTES_MAX;

/// The rules, by the name that stands in a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Secret,
    UrlCredentials,
    Query,
    Authorization,
    Cookie,
    Header,
    Member,
}

impl Rule {
    const ALL: [(Rule, &'static str); 7] = [
        (Rule::Secret, "secret"),
        (Rule::UrlCredentials, "url_credentials"),
        (Rule::Query, "query"),
        (Rule::Authorization, "authorization"),
        (Rule::Cookie, "cookie"),
        (Rule::Header, "header"),
        (Rule::Member, "member"),
    ];

    fn replacement(self) -> &'static str {
        match self {
            Rule::Secret => "[redacted:secret]",
            Rule::UrlCredentials => "[redacted:url_credentials]",
            Rule::Query => "[redacted:query]",
            Rule::Authorization => "[redacted:authorization]",
            Rule::Cookie => "[redacted:cookie]",
            Rule::Header => "[redacted:header]",
            Rule::Member => "[redacted:member]",
        }
    }
}

/// Text that was redacted whole and then cut to a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    pub clean: Clean,
    /// The whole redacted text, when it was longer than the bound.
    pub whole: Option<String>,
}

/// Applies the rules. One per session, or one for all.
#[derive(Default)]
pub struct Redactor {
    declared: AtomicBool,
    secrets: RwLock<Secrets>,
    counts: [AtomicU64; Rule::ALL.len()],
}

#[derive(Default)]
struct Secrets {
    values: Vec<String>,
    pattern: Option<Regex>,
}

impl Redactor {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `secret` is replaced wherever it stands. False when it is too short, or one too
    /// many: then it is not protected.
    pub fn declare(&self, secret: &str) -> bool {
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        if secrets.values.iter().any(|known| known == secret) {
            return true;
        }
        if secret.len() < SECRET_BYTES_MIN || secrets.values.len() >= SECRETS_MAX {
            return false;
        }
        secrets.values.push(secret.to_owned());
        // Longest first, so that a secret inside another does not leave the other's rest.
        secrets.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let forms =
            secrets.values.iter().flat_map(|value| [regex::escape(value), regex::escape(&percent_encoded(value))]);
        let Ok(pattern) = Regex::new(&forms.collect::<Vec<_>>().join("|")) else {
            secrets.values.retain(|value| value != secret);
            return false;
        };
        secrets.pattern = Some(pattern);
        self.declared.store(true, Ordering::Release);
        true
    }

    /// How often each rule replaced something.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        Rule::ALL.iter().map(|(rule, name)| (*name, self.counts[*rule as usize].load(Ordering::Relaxed))).collect()
    }

    /// Free text, cut to the bound of one field.
    #[must_use]
    pub fn text(&self, raw: &str) -> Clean {
        self.bounded(raw, TEXT_FIELD_BYTES_MAX).clean
    }

    /// Free text, cut to `bytes_max`.
    #[must_use]
    pub fn bounded(&self, raw: &str, bytes_max: usize) -> Bounded {
        let redacted = self.free(raw);
        if redacted.len() <= bytes_max {
            return Bounded { clean: Clean::redacted(redacted), whole: None };
        }
        let clean = Clean::redacted(cut(&redacted, bytes_max));
        Bounded { clean, whole: Some(redacted.into_owned()) }
    }

    /// An address: credentials and sensitive query values replaced, `data:` shortened.
    #[must_use]
    pub fn url(&self, raw: &str) -> Clean {
        let redacted = self.address(raw);
        Clean::redacted(cut(&redacted, TEXT_FIELD_BYTES_MAX))
    }

    /// Headers by name, and whether any was cut.
    #[must_use]
    pub fn headers(&self, raw: &Map<String, Value>) -> (Json, bool) {
        let mut kept = Map::new();
        let mut bytes = 0;
        let mut any_cut = false;
        for (name, value) in raw {
            let value = match value {
                Value::String(text) => self.header(name, text),
                other => Cow::Owned(other.to_string()),
            };
            let shown = cut(&value, HEADER_BYTES_MAX);
            any_cut |= shown.len() < value.len();
            bytes += name.len() + shown.len();
            if bytes > HEADERS_BYTES_MAX {
                any_cut = true;
                break;
            }
            kept.insert(name.clone(), shown.into());
        }
        (Json::redacted(&Value::Object(kept)), any_cut)
    }

    /// A JSON value: every string as free text, values of sensitive members replaced.
    #[must_use]
    pub fn json(&self, raw: &Value) -> Json {
        Json::redacted(&self.value(raw, Place::Own))
    }

    /// [`Redactor::body`] as text for an event, when it fits `bytes_max`.
    #[must_use]
    pub fn short_body(&self, redacted: &str, bytes_max: usize) -> Option<Clean> {
        (redacted.len() <= bytes_max).then(|| Clean::redacted(redacted))
    }

    fn count(&self, rule: Rule) -> &'static str {
        self.counts[rule as usize].fetch_add(1, Ordering::Relaxed);
        rule.replacement()
    }

    fn free<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        self.free_as(raw, true)
    }

    fn free_as<'a>(&self, raw: &'a str, is_prose: bool) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(raw);
        if memchr::memmem::find(text.as_bytes(), b"://").is_some() {
            text = self.addresses_within(raw);
        }
        if let Some(redacted) = self.pairs_within(&text, is_prose) {
            text = Cow::Owned(redacted);
        }
        if let Some(redacted) = self.bearer_within(&text) {
            text = Cow::Owned(redacted);
        }
        self.hide_secrets(text)
    }

    fn hide_secrets<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        if !self.declared.load(Ordering::Acquire) {
            return text;
        }
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        let Some(pattern) = &secrets.pattern else { return text };
        if !pattern.is_match(&text) {
            return text;
        }
        Cow::Owned(pattern.replace_all(&text, |_: &regex::Captures<'_>| self.count(Rule::Secret)).into_owned())
    }

    /// `Bearer` and what follows it, as it stands in logged headers. In small letters it is a word of
    /// prose as well, and what follows must look like no other word.
    fn bearer_within(&self, raw: &str) -> Option<String> {
        static BEARER: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"(?i-u:\bbearer)[ \t]{1,8}([A-Za-z0-9._~+/=-]{8,})").ok());
        let found = |found: &regex::Captures<'_>| {
            let (whole, token) = (&found[0], &found[1]);
            let is_word = !whole.starts_with("Bearer ") && token.bytes().all(|byte| byte.is_ascii_lowercase());
            let shown = if is_word { token } else { self.count(Rule::Authorization) };
            format!("{}{shown}", &whole[..whole.len() - token.len()])
        };
        match BEARER.as_ref()?.replace_all(raw, found) {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        }
    }

    fn header<'a>(&self, raw_name: &str, value: &'a str) -> Cow<'a, str> {
        let name = raw_name.to_ascii_lowercase();
        match name.as_str() {
            "authorization" | "proxy-authorization" => {
                let scheme = value.split_once(' ').map_or("", |(scheme, _)| scheme);
                Cow::Owned(format!("{scheme} {}", self.count(Rule::Authorization)).trim_start().to_owned())
            }
            "cookie" => Cow::Owned(value.split(';').map(|cookie| self.cookie(cookie)).collect::<Vec<_>>().join(";")),
            "set-cookie" => {
                Cow::Owned(value.split('\n').map(|cookie| self.cookie_line(cookie)).collect::<Vec<_>>().join("\n"))
            }
            "location" | "content-location" | "referer" | ":path" => self.address(value),
            "sec-websocket-protocol" => Cow::Owned(self.protocols(value)),
            _ if is_sensitive_header(raw_name, value) => Cow::Borrowed(self.count(Rule::Header)),
            _ => self.free(value),
        }
    }

    /// Names of protocols, among which scripts send tokens because they can set no other header.
    fn protocols(&self, value: &str) -> String {
        let mut follows_name = false;
        let protocol = |part: &str| {
            let word = part.trim();
            let is_name = judge(word, Place::Header) != Verdict::Plain || word.to_ascii_lowercase().contains("bearer");
            let is_joined = is_name && word.contains('.') || looks_random(word);
            let hide = !word.is_empty() && (std::mem::replace(&mut follows_name, is_name) || is_joined);
            if hide { self.count(Rule::Header).to_owned() } else { word.to_owned() }
        };
        value.split(',').map(protocol).collect::<Vec<_>>().join(", ")
    }

    fn cookie(&self, cookie: &str) -> String {
        let name = cookie.split_once('=').map_or("", |(name, _)| name);
        format!("{name}={}", self.count(Rule::Cookie))
    }

    fn cookie_line(&self, line: &str) -> String {
        let (cookie, attributes) = line.find(';').map_or((line, ""), |at| line.split_at(at));
        self.cookie(cookie) + attributes
    }
}

/// Longer than names of protocols are, or with more digits.
fn looks_random(word: &str) -> bool {
    const NAME_BYTES_MAX: usize = 24;
    const DIGITS_MAX: usize = 3;
    word.len() > NAME_BYTES_MAX || word.bytes().filter(u8::is_ascii_digit).count() > DIGITS_MAX
}

fn is_sensitive_header(name: &str, value: &str) -> bool {
    let is_csrf = ["csrf", "xsrf"].iter().any(|part| name.to_ascii_lowercase().contains(part));
    is_csrf || judge(name, Place::Header).hides_text(value)
}

fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
