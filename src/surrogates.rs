//! Lone surrogate escapes, which JavaScript strings may hold and UTF-8 may not: both the browser and
//! MCP clients write them into otherwise sound JSON.

/// The text with every lone surrogate escape replaced by `\ufffd`; `None` when there is none.
#[must_use]
pub fn mend(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let Some(unit) = escaped_unit(bytes, at) else {
            at += 2;
            continue;
        };
        let low_follows = || escaped_unit(bytes, at + 6).is_some_and(|next| (0xDC00..0xE000).contains(&next));
        match unit {
            0xD800..0xDC00 if low_follows() => at += 12,
            0xD800..0xE000 => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            _ => at += 6,
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// The code unit of an escape `\uXXXX` at `at`.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    if !escape.starts_with(b"\\u") {
        return None;
    }
    let digits = std::str::from_utf8(&escape[2..]).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_stay() {
        assert_eq!(mend(r#""a\ud800b""#).as_deref(), Some(r#""a\ufffdb""#));
        assert_eq!(mend(r"\ude00\ud83d\ude00\ud83d").as_deref(), Some(r"\ufffd\ud83d\ude00\ufffd"));
        assert_eq!(mend(r"\\ud800"), None);
        assert_eq!(mend(r"\\\ud800").as_deref(), Some(r"\\\ufffd"));
        assert_eq!(mend(r"\ud83d\ude00 \u0041"), None);
    }
}
