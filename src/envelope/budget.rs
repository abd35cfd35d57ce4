//! What JSON costs on the wire, to the byte.
//!
//! A reply in JSON carries its envelope twice: as `structuredContent`, and again escaped inside the text of a
//! content block. So every byte counts two, and every quote and backslash one more. The sum over parts
//! is the cost of the whole, which lets lists and previews be cut without rendering them again.

use std::io;

use serde_json::Value;

/// What `value` costs within a reply.
#[must_use]
pub fn weight(value: &Value) -> usize {
    let count = count(value);
    2 * count.bytes + count.escapes
}

/// Length of `value` as JSON.
#[must_use]
pub fn json_bytes(value: &Value) -> usize {
    count(value).bytes
}

/// Length of `text` as a JSON string.
#[must_use]
pub fn text_bytes(text: &str) -> usize {
    let mut count = Count::default();
    // As for `count`.
    let _ = serde_json::to_writer(&mut count, text);
    count.bytes
}

/// What JSON text costs within a reply.
#[must_use]
pub fn weight_of_json(json: &str) -> usize {
    2 * json.len() + json.bytes().filter(|byte| needs_escape(*byte)).count()
}

/// Length of the longest prefix of `text` that costs at most `budget` inside a JSON string.
#[must_use]
pub fn prefix_within(text: &str, budget: usize) -> usize {
    let mut spent = 0;
    for (position, character) in text.char_indices() {
        spent += weight_of_char(character);
        if spent > budget {
            return position;
        }
    }
    text.len()
}

/// JSON writes a quote, a backslash and some controls with one backslash, the other controls as
/// `\u00xx`; the text copy then escapes each of those backslashes and quotes again.
fn weight_of_char(character: char) -> usize {
    match character {
        '"' | '\\' => 2 * 2 + 2,
        '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2 * 2 + 1,
        control if control < ' ' => 2 * 6 + 1,
        plain => 2 * plain.len_utf8(),
    }
}

fn needs_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\')
}

#[derive(Default)]
struct Count {
    bytes: usize,
    escapes: usize,
}

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        self.escapes += bytes.iter().filter(|byte| needs_escape(**byte)).count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn count(value: &Value) -> Count {
    let mut count = Count::default();
    // A `Value` has only text keys and the counter never refuses, so this cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_twice(value: &Value) -> usize {
        let json = value.to_string();
        json.len() + Value::from(json.as_str()).to_string().len() - 2
    }

    #[test]
    fn weight_is_what_two_copies_take() {
        let awkward = "\u{0}\u{1f}\u{7f}\u{8}\t\n\u{c}\r\"\\/<\u{e9}\u{20ac}\u{1f600}\u{2028}";
        let value = serde_json::json!({ "a\"b": [awkward, 1.5, null, { "": true }] });
        assert_eq!(weight(&value), sent_twice(&value));
        assert_eq!(weight_of_json(&value.to_string()), sent_twice(&value));
        assert_eq!(json_bytes(&value), value.to_string().len());
    }

    #[test]
    fn prefixes_cost_what_they_say() {
        let awkward = "\u{0}a\"\\\n\u{e9}\u{1f600}z";
        let whole = weight(&awkward.into()) - weight(&"".into());
        assert_eq!(prefix_within(awkward, whole), awkward.len());
        for budget in 0..whole {
            let end = prefix_within(awkward, budget);
            let cost = |end: usize| weight(&awkward[..end].into()) - weight(&"".into());
            let next = end + awkward[end..].chars().next().map_or(0, char::len_utf8);
            assert!(cost(end) <= budget && budget < cost(next), "budget {budget}");
        }
    }
}
