//! Which names announce a secret: of query parameters, form fields, JSON members, headers and cookies.
//!
//! What must stay true: one function judges all of them, by whole words however they are joined or
//! encoded, so that `user%5Bpassword%5D`, `accessToken` and `X-Auth-Token` are no way around it; and
//! a name that says how many, how long or where is not taken for the secret itself.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Where a name stands: some are too common elsewhere to be judged alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Query, fragment or form.
    Address,
    Header,
    /// JSON and what looks like it.
    Member,
    /// Our own values, whose sessions are not those of a site.
    Own,
}

/// What a name says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Plain,
    /// A secret if it is a word; a number or an object is none.
    Word,
    /// Several secrets; a number says how many.
    Several,
    Secret,
}

/// What some word of the name, or words in a row, must end with.
const ENDINGS: [&str; 26] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "accesskey",
    "authkey",
    "sessionkey",
    "sharedkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "credential",
    "authorization",
    "signature",
    "cookie",
    "sessionid",
    "sessid",
    "csrf",
    "xsrf",
    "jwt",
    "authcode",
];
/// Words that count only whole.
const WORDS: [&str; 3] = ["otp", "totp", "hotp"];
/// Last words after which the value is something about the secret.
const ABOUT: [&str; 38] = [
    "count",
    "counts",
    "type",
    "types",
    "length",
    "used",
    "usage",
    "limit",
    "limits",
    "expires",
    "expiry",
    "expiration",
    "expired",
    "policy",
    "consent",
    "name",
    "endpoint",
    "url",
    "uri",
    "budget",
    "size",
    "strength",
    "field",
    "label",
    "placeholder",
    "required",
    "enabled",
    "supported",
    "version",
    "algorithm",
    "method",
    "methods",
    "ttl",
    "age",
    "at",
    "in",
    "per",
    "remaining",
];
/// First words that ask or measure.
const ASKING: [&str; 10] = ["is", "has", "show", "needs", "max", "min", "num", "total", "prompt", "completion"];
/// Parameters of addresses and forms by their last part.
const PARAMETERS: [&str; 6] = ["key", "code", "sig", "session", "auth", "pass"];
/// Names are at most this long where they have to be searched for.
pub(super) const NAME_BYTES_MAX: usize = 128;

static STEMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let stems = "pass|pwd|secret|token|otp|key|credential|auth|signature|cookie|sess|csrf|xsrf|jwt|code=|sig=";
    Regex::new(&format!(r"(?i-u:{stems}|\\u00|%(?:25)*[4-7][0-9a-f])")).ok()
});

/// Whether there may be such a name in a text: one search that plain text does not get past.
pub(super) fn may_name(raw: &str) -> bool {
    STEMS.as_ref().is_none_or(|stems| stems.is_match(raw))
}

pub(super) fn judge(name: &str, place: Place) -> Verdict {
    let is_parameter = |name: &str| PARAMETERS.iter().any(|parameter| name.eq_ignore_ascii_case(parameter));
    if !may_name(name) && !is_parameter(last_part(name)) {
        return Verdict::Plain;
    }
    let name = decoded(name);
    let last = last_part(&name);
    if place == Place::Address && is_parameter(last) {
        return Verdict::Secret;
    }
    let words = words(&name);
    let (Some(first_word), Some(last_word)) = (words.first(), words.last()) else { return Verdict::Plain };
    if ABOUT.contains(&last_word.as_str()) || (words.len() > 1 && ASKING.contains(&first_word.as_str())) {
        return Verdict::Plain;
    }
    by_words(&words, last_word, place)
}

fn by_words(words: &[String], last_word: &str, place: Place) -> Verdict {
    let mut joined = String::new();
    for word in words {
        joined.push_str(word);
        let ends = |ending: &&str| joined.ends_with(*ending) && (place != Place::Own || **ending != *"sessionid");
        if WORDS.contains(&word.as_str()) || ENDINGS.iter().any(ends) {
            return Verdict::Secret;
        }
    }
    if joined.strip_suffix('s').is_some_and(|one| ENDINGS.iter().any(|ending| one.ends_with(ending))) {
        return Verdict::Several;
    }
    match (last_word, place) {
        ("pass" | "auth", Place::Address | Place::Header) => Verdict::Secret,
        ("pass" | "auth", Place::Member) => Verdict::Word,
        _ => Verdict::Plain,
    }
}

impl Verdict {
    pub(super) fn hides(self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(_) => self == Verdict::Secret,
            Value::String(text) => self.hides_text(text),
            Value::Array(_) | Value::Object(_) => matches!(self, Verdict::Secret | Verdict::Several),
        }
    }

    pub(super) fn hides_text(self, text: &str) -> bool {
        match self {
            Verdict::Plain => false,
            Verdict::Secret => true,
            // What `fetch` takes as `credentials` says whether they are sent.
            Verdict::Word | Verdict::Several => {
                let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                !is_number && !matches!(text, "include" | "omit" | "same-origin")
            }
        }
    }
}

/// `password` of `user[password]` and of `user.password`.
fn last_part(name: &str) -> &str {
    name.split(['[', ']', '.']).rfind(|part| !part.is_empty()).unwrap_or_default()
}

/// Without the encodings of addresses, twice over, and of JSON.
fn decoded(name: &str) -> Cow<'_, str> {
    let mut name = Cow::Borrowed(name);
    if name.contains("\\u")
        && let Ok(plain) = serde_json::from_str(&format!("\"{name}\""))
    {
        name = Cow::Owned(plain);
    }
    for _ in 0..2 {
        if name.contains('%') {
            let plain = url::form_urlencoded::parse(name.as_bytes()).next().map(|(key, _)| key.into_owned());
            name = plain.map_or(name, Cow::Owned);
        }
    }
    name
}

/// In small letters, split where the case changes, at digits and at all that is no letter.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        let begins = !before.is_alphanumeric()
            || before.is_ascii_digit() != c.is_ascii_digit()
            || (c.is_uppercase() && (before.is_lowercase() || after.is_lowercase()));
        if c.is_alphanumeric() {
            match words.last_mut().filter(|_| !begins) {
                Some(word) => word.extend(c.to_lowercase()),
                None => words.push(c.to_lowercase().collect()),
            }
        }
        before = c;
    }
    words
}
