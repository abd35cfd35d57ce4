//! Addresses: credentials before the host, sensitive values of queries, fragments and forms, and
//! the contents of `data:` URLs.

use std::borrow::Cow;

use super::names::{Place, judge};
use super::{Redactor, Rule, cut};

/// What is kept of a `data:` URL: its media type.
const DATA_URL_HEAD_BYTES_MAX: usize = 96;
impl Redactor {
    pub(super) fn addresses_within<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let mut copied = 0;
        for at in memchr::memmem::find_iter(raw.as_bytes(), b"://") {
            if at < copied {
                continue;
            }
            let in_scheme = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            let start = at - raw[copied..at].chars().rev().take_while(in_scheme).count();
            let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | ')' | '}' | ',');
            let end = raw[at..].find(ends).map_or(raw.len(), |length| at + length);
            if let Cow::Owned(redacted) = self.address_parts(&raw[start..end]) {
                out.push_str(&raw[copied..start]);
                out.push_str(&redacted);
                copied = end;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(raw);
        }
        out.push_str(&raw[copied..]);
        Cow::Owned(out)
    }

    pub(super) fn address<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        if raw.starts_with("data:") {
            let head = raw.split(',').next().unwrap_or(raw);
            return Cow::Owned(format!("{},[{} bytes]", cut(head, DATA_URL_HEAD_BYTES_MAX), raw.len()));
        }
        self.hide_secrets(self.address_parts(raw))
    }

    fn address_parts<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(raw);
        if let Some(after) = raw.find("://").map(|at| at + 3) {
            let authority_end = raw[after..].find(['/', '?', '#']).map_or(raw.len(), |length| after + length);
            if let Some(at) = raw[after..authority_end].rfind('@') {
                let hidden = self.count(Rule::UrlCredentials);
                text = Cow::Owned(format!("{}{hidden}{}", &raw[..after], &raw[after + at..]));
            }
        }
        let Some(query) = text.find(['?', '#']).map(|at| at + 1) else { return text };
        if !text[query..].contains('=') {
            return text;
        }
        let redacted = self.query(&text[query..]);
        if redacted == text[query..] { text } else { Cow::Owned(format!("{}{redacted}", &text[..query])) }
    }

    /// Pairs of a query, a fragment or a form.
    pub(super) fn query(&self, raw: &str) -> String {
        let mut out = String::with_capacity(raw.len());
        for piece in raw.split_inclusive(['&', ';', '#', '?']) {
            let (pair, end) = match piece.char_indices().next_back() {
                Some((at, '&' | ';' | '#' | '?')) => piece.split_at(at),
                _ => (piece, ""),
            };
            match pair.split_once('=') {
                Some((key, value)) if !value.is_empty() && judge(key, Place::Address).hides_text(value) => {
                    out.extend([key, "=", self.count(Rule::Query)]);
                }
                _ => out.push_str(pair),
            }
            out.push_str(end);
        }
        out
    }
}
