//! Names with values in text that is no document of its own: lines of JSON, cut JSON, JSON inside
//! strings, script, headers in messages, relative addresses.
//!
//! What must stay true: the time is in proportion to the length of the text, whatever it holds; a
//! value without an end is replaced to the end of the text; prose keeps its words.

use std::ops::Range;

use super::names::{NAME_BYTES_MAX, Place, Verdict, judge, may_name};
use super::{Redactor, Rule};

/// White space between a name, its sign and its value.
const GAP_BYTES_MAX: usize = 32;

/// A name in front of `:` or `=`.
struct Name<'a> {
    text: &'a str,
    /// The quotation mark around it, and the backslashes in front of each.
    quote: Option<(u8, usize)>,
    start: usize,
}

impl Redactor {
    /// `is_prose`: values without quotation marks count too, as people and logs write them.
    /// `None` when there is nothing to replace.
    pub(super) fn pairs_within(&self, raw: &str, is_prose: bool) -> Option<String> {
        if !may_name(raw) {
            return None;
        }
        let mut out = String::new();
        let mut copied = 0;
        for at in memchr::memchr2_iter(b':', b'=', raw.as_bytes()) {
            if at < copied {
                continue;
            }
            let Some((value, rule)) = name_before(raw, at, copied).and_then(|name| value_of(raw, &name, at, is_prose))
            else {
                continue;
            };
            if value.is_empty() || raw[value.start..].starts_with("[redacted:") {
                continue;
            }
            out.push_str(&raw[copied..value.start]);
            out.push_str(self.count(rule));
            copied = value.end;
        }
        (copied > 0).then(|| out + &raw[copied..])
    }
}

fn name_before(raw: &str, at: usize, floor: usize) -> Option<Name<'_>> {
    let bytes = raw.as_bytes();
    let gap = bytes[floor..at].iter().rev().take(GAP_BYTES_MAX).take_while(|byte| byte.is_ascii_whitespace()).count();
    let end = at - gap;
    let last = *bytes[floor..end].last()?;
    if !is_quote(last) {
        let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.$[]%+".contains(byte);
        let length = bytes[floor..end].iter().rev().take(NAME_BYTES_MAX).take_while(in_name).count();
        let start = end - length;
        return (length > 0).then(|| Name { text: &raw[start..end], quote: None, start });
    }
    let slashes = slashes_before(bytes, floor, end - 1);
    let end = end - 1 - slashes;
    let from = floor.max(end.saturating_sub(NAME_BYTES_MAX));
    let start = from + memchr::memrchr(last, &bytes[from..end])? + 1;
    Some(Name { text: raw.get(start..end)?, quote: Some((last, slashes)), start })
}

fn value_of(raw: &str, name: &Name<'_>, at: usize, is_prose: bool) -> Option<(Range<usize>, Rule)> {
    let bytes = raw.as_bytes();
    let is_in_query = name.quote.is_none() && bytes[at] == b'=' && before(bytes, name.start, b"?&");
    let verdict = judge(name.text, if is_in_query { Place::Address } else { Place::Member });
    if verdict == Verdict::Plain {
        return None;
    }
    // Comparisons, and the arrows of other languages.
    let sign_end = at + 1 + bytes[at + 1..].iter().take(2).take_while(|byte| b"=>".contains(byte)).count();
    let gap = bytes[sign_end..].iter().take(GAP_BYTES_MAX).take_while(|byte| byte.is_ascii_whitespace()).count();
    let start = sign_end + gap;
    let slashes = bytes[start..].iter().take_while(|byte| **byte == b'\\').take(NAME_BYTES_MAX).count();
    if let Some(quote) = bytes.get(start + slashes).copied().filter(|byte| is_quote(*byte)) {
        let start = start + slashes + 1;
        let end = string_end(bytes, start, quote, slashes);
        return verdict.hides_text(&raw[start..end]).then_some((start..end, Rule::Member));
    }
    if let Some((quote, slashes)) = name.quote {
        return (bytes[at] == b':').then(|| nested(bytes, start, quote, slashes, verdict))?;
    }
    let (value, rule) = if is_in_query {
        (at + 1..word_end(raw, at + 1), Rule::Query)
    } else if is_prose {
        bare_value(raw, name, at, start)?
    } else {
        return None;
    };
    let text = &raw[value.clone()];
    let is_told = !matches!(text, "true" | "false" | "null" | "undefined");
    (is_told && verdict.hides_text(text)).then_some((value, rule))
}

/// A number, an array or an object behind a name in quotation marks.
fn nested(bytes: &[u8], start: usize, quote: u8, slashes: usize, verdict: Verdict) -> Option<(Range<usize>, Rule)> {
    let first = *bytes.get(start)?;
    if first.is_ascii_digit() || first == b'-' {
        let in_number = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = bytes[start..].iter().take_while(in_number).count();
        return (verdict == Verdict::Secret).then_some((start..start + length, Rule::Member));
    }
    if !matches!(first, b'[' | b'{') || verdict == Verdict::Word {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            byte if *byte == quote => at = (string_end(bytes, at, quote, slashes) + slashes + 1).min(bytes.len()),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    Some((start..at, Rule::Member))
}

/// A value without quotation marks, where people and logs write one.
fn bare_value(raw: &str, name: &Name<'_>, at: usize, start: usize) -> Option<(Range<usize>, Rule)> {
    let bytes = raw.as_bytes();
    let line_end = memchr::memchr2(b'\n', b'\r', &bytes[at..]).map_or(raw.len(), |length| at + length);
    if start >= line_end || (bytes[at] == b':' && start == at + 1 && bytes[start] == b'/') {
        return None;
    }
    let header = name.text.to_ascii_lowercase();
    if header.ends_with("authorization")
        && let Some(value) = credentials(raw, start, line_end)
    {
        return Some((value, Rule::Authorization));
    }
    if bytes[at] == b':' && matches!(header.as_str(), "cookie" | "set-cookie") && raw[start..line_end].contains('=') {
        let end = raw[start..line_end].find(['"', '\'']).map_or(line_end, |length| start + length);
        return Some((start..end, Rule::Cookie));
    }
    let is_open = b"[{(<>".contains(&bytes[start]);
    let is_line = is_line_start(bytes, name.start);
    let end = if is_line { line_word_end(raw, start, line_end) } else { word_end(raw, start).min(line_end) };
    let is_value = if bytes[at] == b'=' {
        let is_tight = start == at + 1 && name.start + name.text.len() == at;
        let is_call = raw[start..end].contains('(');
        (is_line || (is_tight && !is_call && before(bytes, name.start, b" \t,;&?({\"'`"))) && !is_open
    } else {
        let is_last = raw[end..line_end].trim_start().is_empty();
        let is_listed = raw[end..].trim_start_matches(' ').starts_with([',', '}']);
        !is_open && ((is_line && is_last) || (after_bracket(bytes, name.start) && (is_listed || is_last)))
    };
    is_value.then_some((start..end, Rule::Member))
}

/// What follows the scheme, as in `Basic dXNlcg==`.
fn credentials(raw: &str, start: usize, line_end: usize) -> Option<Range<usize>> {
    let (scheme, rest) = raw[start..line_end].split_once(' ')?;
    let from = line_end - rest.len();
    match scheme.to_ascii_lowercase().as_str() {
        "basic" | "bearer" | "token" | "negotiate" | "ntlm" | "dpop" | "apikey" => Some(from..word_end(raw, from)),
        "digest" | "hawk" | "oauth" | "aws4-hmac-sha256" => Some(from..line_end),
        _ => None,
    }
}

/// Where a string ends whose opening mark had so many backslashes in front.
fn string_end(bytes: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    for found in memchr::memchr_iter(quote, &bytes[start..]) {
        let run = slashes_before(bytes, start, start + found);
        if if slashes == 0 { run.is_multiple_of(2) } else { run <= slashes } {
            return start + found - if slashes == 0 { 0 } else { run };
        }
    }
    bytes.len()
}

fn slashes_before(bytes: &[u8], floor: usize, at: usize) -> usize {
    bytes[floor..at].iter().rev().take_while(|byte| **byte == b'\\').count()
}

fn word_end(raw: &str, start: usize) -> usize {
    let ends = |c: char| c.is_whitespace() || "&;#?\"'`<>),}\\".contains(c);
    raw[start..].find(ends).map_or(raw.len(), |length| start + length)
}

/// On a line of its own only white space and `&` end a value.
fn line_word_end(raw: &str, start: usize, line_end: usize) -> usize {
    raw[start..line_end].find(|c: char| c.is_whitespace() || c == '&').map_or(line_end, |length| start + length)
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

fn before(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    at.checked_sub(1).is_some_and(|previous| wanted.contains(&bytes[previous]))
}

/// Nothing but a little white space between here and the line's beginning.
fn is_line_start(bytes: &[u8], at: usize) -> bool {
    let from = at.saturating_sub(GAP_BYTES_MAX);
    let previous = bytes[from..at].iter().rev().find(|byte| !matches!(**byte, b' ' | b'\t'));
    previous.map_or(from == 0, |byte| matches!(byte, b'\n' | b'\r'))
}

fn after_bracket(bytes: &[u8], at: usize) -> bool {
    let previous = bytes[..at].iter().rev().take(GAP_BYTES_MAX).find(|byte| !byte.is_ascii_whitespace());
    previous.is_some_and(|byte| b"{,".contains(byte))
}
