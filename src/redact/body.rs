//! Bodies: JSON by its members, forms by their fields, all else as free text.
//!
//! What a body looks like counts beside what its sender calls it: JSON is posted as plain text as
//! often as not. A file inside a form is left out whole; its name and size stay.

use std::borrow::Cow;

use serde_json::Value;

use super::names::{Place, judge, may_name};
use super::{Redactor, Rule};

impl Redactor {
    /// A body of the given media type, whole.
    #[must_use]
    pub fn body<'a>(&self, raw: &'a str, media_type: &str) -> Cow<'a, str> {
        if let Some(redacted) = self.json_text(raw) {
            return Cow::Owned(redacted);
        }
        let media_type_lower = media_type.to_ascii_lowercase();
        if media_type_lower.contains("x-www-form-urlencoded") {
            return self.hide_secrets(Cow::Owned(self.query(raw)));
        }
        let told = media_type_lower.trim_start().starts_with("multipart/") && !raw.is_empty();
        if told || looks_multipart(raw) {
            return Cow::Owned(self.multipart(raw, media_type));
        }
        // In what is written for machines a word behind a name is a word of theirs.
        let is_source = ["script", "css", "html", "xml", "wasm"].iter().any(|kind| media_type_lower.contains(kind));
        self.free_as(raw, !is_source)
    }

    /// `None` when it is no JSON, or none that needs more than free text does.
    fn json_text(&self, raw: &str) -> Option<String> {
        if !looks_like_json(raw) || !may_name(raw) {
            return None;
        }
        let value: Value = serde_json::from_str(trimmed(raw)).ok()?;
        Some(self.value(&value, Place::Member).to_string())
    }

    pub(super) fn value(&self, raw: &Value, place: Place) -> Value {
        match raw {
            Value::String(text) => self.free(text).into_owned().into(),
            Value::Array(items) => items.iter().map(|item| self.value(item, place)).collect(),
            Value::Object(members) => {
                let redact = |(name, value): (&String, &Value)| {
                    let hide = judge(name, place).hides(value);
                    (name.clone(), if hide { self.count(Rule::Member).into() } else { self.value(value, place) })
                };
                Value::Object(members.iter().map(redact).collect())
            }
            other => other.clone(),
        }
    }

    /// Parts between the delimiters. Without a delimiter nothing can be told apart, and nothing is kept.
    fn multipart(&self, raw: &str, media_type: &str) -> String {
        let delimiter = delimiter(raw, media_type);
        let at_line_start = |at: &usize| *at == 0 || raw.as_bytes()[*at - 1] == b'\n';
        let starts: Vec<usize> = match &delimiter {
            Some(delimiter) => {
                memchr::memmem::find_iter(raw.as_bytes(), delimiter.as_bytes()).filter(at_line_start).collect()
            }
            None => Vec::new(),
        };
        let (Some(delimiter), Some(first)) = (delimiter, starts.first()) else { return left_out(raw) };
        let mut out = self.free(&raw[..*first]).into_owned();
        for (position, start) in starts.iter().enumerate() {
            let end = starts.get(position + 1).copied().unwrap_or(raw.len());
            out.push_str(&delimiter);
            self.part(&raw[start + delimiter.len()..end], &mut out);
        }
        out
    }

    /// One part, from behind its delimiter to the next.
    fn part(&self, raw: &str, out: &mut String) {
        let blank_line = |line_ends: &str| raw.find(line_ends).map(|at| at + line_ends.len());
        let head_end = [blank_line("\r\n\r\n"), blank_line("\n\n")].into_iter().flatten().min();
        let Some(head_end) = head_end.filter(|_| !raw.starts_with("--")) else {
            // What follows the last delimiter is nobody's; a part without a head cannot be told.
            let ends_here = raw.strip_prefix("--").filter(|rest| rest.trim().is_empty());
            return out.push_str(&ends_here.map_or_else(|| left_out(raw), |_| raw.to_owned()));
        };
        let (head, rest) = raw.split_at(head_end);
        let content = rest.strip_suffix("\r\n").or_else(|| rest.strip_suffix('\n')).unwrap_or(rest);
        out.push_str(&self.free(head));
        let name = parameter(head, "name").unwrap_or_default();
        if parameter(head, "filename").or_else(|| parameter(head, "filename*")).is_some() {
            out.push_str(&left_out(content));
        } else if !content.is_empty() && judge(name, Place::Address).hides_text(content) {
            out.push_str(self.count(Rule::Member));
        } else if let Some(redacted) = self.json_text(content) {
            out.push_str(&redacted);
        } else {
            out.push_str(&self.free(content));
        }
        out.push_str(&rest[content.len()..]);
    }
}

/// Whether the text looks like a JSON object or array, whatever it is called.
#[must_use]
pub fn looks_like_json(raw: &str) -> bool {
    trimmed(raw).starts_with(['{', '['])
}

fn trimmed(raw: &str) -> &str {
    raw.trim_start_matches('\u{feff}').trim()
}

fn left_out(raw: &str) -> String {
    format!("[{} bytes]", raw.len())
}

fn looks_multipart(raw: &str) -> bool {
    let first_lines = super::cut(raw, 1024).to_ascii_lowercase();
    first_lines.starts_with("--") && first_lines.contains("content-disposition: form-data")
}

/// The line between parts: as the media type has it, else the first line.
fn delimiter(raw: &str, media_type: &str) -> Option<String> {
    let told = attribute(media_type, "boundary").map(|boundary| format!("--{boundary}"));
    let first_line = || raw.lines().next().map(str::trim_end).filter(|line| line.starts_with("--"));
    told.filter(|told| raw.contains(told.as_str()))
        .or_else(|| first_line().map(str::to_owned))
        .filter(|found| found.len() > 2)
}

/// A parameter of a part's `Content-Disposition`.
fn parameter<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    const HEADER: &str = "content-disposition:";
    let fits = |line: &&str| line.get(..HEADER.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEADER));
    attribute(head.lines().find(fits)?, wanted)
}

/// `wanted` among the `; name=value` of a header.
fn attribute<'a>(header: &'a str, wanted: &str) -> Option<&'a str> {
    let pairs = header.split(';').skip(1).filter_map(|pair| pair.split_once('='));
    let (_, value) =
        pairs.map(|(name, value)| (name.trim(), value.trim())).find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
    Some(value.trim_matches('"'))
}
