//! Patterns for addresses: exact text, a glob, or a regular expression.

use regex::Regex;

/// Bytes of a compiled pattern; larger ones are refused.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Clone)]
pub struct UrlPattern {
    exact: Option<String>,
    regex: Option<Regex>,
}

impl UrlPattern {
    /// The address itself, or a glob: `*` stays within a path segment, `**` does not, `{a,b}` is one
    /// of several. A question mark is itself.
    ///
    /// # Errors
    /// Why the text is no pattern.
    pub fn text(text: &str) -> Result<Self, String> {
        let exact = Some(text.to_owned());
        if !text.contains(['*', '{']) {
            return Ok(Self { exact, regex: None });
        }
        Ok(Self { exact, regex: Some(compile(&glob(text))?) })
    }

    /// A regular expression that has to match somewhere. Flags are those of JavaScript.
    ///
    /// # Errors
    /// Why it is no regular expression, or which flag is unknown.
    pub fn regex(pattern: &str, flags: &str) -> Result<Self, String> {
        let mut kept = String::new();
        for flag in flags.chars() {
            match flag {
                'i' | 'm' | 's' => kept.push(flag),
                // Of no meaning for one yes-or-no question about text that is always Unicode here.
                'g' | 'u' | 'v' | 'y' | 'd' => {}
                other => return Err(format!("unknown flag {other}")),
            }
        }
        let pattern = if kept.is_empty() { pattern.to_owned() } else { format!("(?{kept}){pattern}") };
        Ok(Self { exact: None, regex: Some(compile(&pattern)?) })
    }

    #[must_use]
    pub fn matches(&self, url: &str) -> bool {
        self.exact.as_deref() == Some(url) || self.regex.as_ref().is_some_and(|regex| regex.is_match(url))
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let built = regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
    built.map_err(|error| super::error::cut(&error.to_string(), 300))
}

fn glob(text: &str) -> String {
    let mut out = String::from("^");
    let mut characters = text.chars().peekable();
    let mut depth = 0u32;
    while let Some(character) = characters.next() {
        match character {
            '*' if characters.peek() == Some(&'*') => {
                characters.next();
                // `/**/` also stands for a single slash.
                if out.ends_with('/') && characters.peek() == Some(&'/') {
                    characters.next();
                    out.push_str("(?:.*/)?");
                } else {
                    out.push_str(".*");
                }
            }
            '*' => out.push_str("[^/]*"),
            '{' => {
                depth += 1;
                out.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                out.push(')');
            }
            ',' if depth > 0 => out.push('|'),
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push('$');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_exact_or_a_glob() {
        let cases = [
            ("http://a/b?c=1", "http://a/b?c=1", true),
            ("http://a/b?c=1", "http://a/bxc=1", false),
            ("**/done", "http://a/x/y/done", true),
            ("http://a/*/z", "http://a/b/z", true),
            ("http://a/*/z", "http://a/b/c/z", false),
            ("http://a/**/z", "http://a/z", true),
            ("**/*.{png,jpg}", "http://a/b.jpg", true),
            ("**/*.{png,jpg}", "http://a/bxjpg", false),
            ("**/x?y=*", "http://a/x?y=2", true),
        ];
        for (pattern, url, wanted) in cases {
            assert_eq!(UrlPattern::text(pattern).expect(pattern).matches(url), wanted, "{pattern} {url}");
        }
        assert!(UrlPattern::text("http://{a").is_err());
    }

    #[test]
    fn regular_expressions_take_javascript_flags() {
        assert!(UrlPattern::regex("/DONE$", "gi").expect("valid").matches("http://a/done"));
        assert!(UrlPattern::regex("(", "").is_err());
        assert!(UrlPattern::regex("a", "q").is_err());
        assert!(UrlPattern::regex(r"\w{1000}{1000}", "").is_err());
    }
}
