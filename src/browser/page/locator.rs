//! Selectors as agents write them, parsed into steps.
//!
//! Pure: text in, steps out, no browser. A selector is a chain of parts joined by ` >> `; each part
//! names an engine (`text=`, `role=`, ...) or is CSS. A chain may begin with a snapshot reference.

use serde::Serialize;

/// A whole selector, in bytes.
pub const SELECTOR_BYTES_MAX: usize = 16 * 1024;
/// Parts of one chain.
pub const SELECTOR_STEPS_MAX: usize = 32;

/// A parsed selector.
#[derive(Debug, Clone, PartialEq)]
pub struct Locator {
    pub steps: Vec<Step>,
}

/// One part of a chain. Serialised as the page's script expects it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "engine", rename_all = "lowercase")]
pub enum Step {
    Css {
        value: String,
    },
    Xpath {
        value: String,
    },
    Text {
        matcher: TextMatch,
    },
    Label {
        matcher: TextMatch,
    },
    /// Elements by the text of one attribute: placeholder, alt, title, data-testid.
    Attribute {
        name: &'static str,
        matcher: TextMatch,
    },
    /// The element of that place among the matches so far; negative counts from the end.
    Nth {
        index: i64,
    },
    /// Those of the matches so far that are visible, or those that are not.
    Visible {
        wanted: bool,
    },
    Role(RoleQuery),
    Reference {
        number: u32,
    },
}

/// How a text is compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextMatch {
    pub text: String,
    /// Whole text and same case; otherwise a part of it in any case.
    pub exact: bool,
    /// Flags when `text` is a regular expression of the page's own engine.
    pub flags: Option<String>,
}

/// An accessible role, with what else must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RoleQuery {
    pub role: String,
    pub name: Option<NameMatch>,
    /// Accessible properties and the value each must have, such as `checked` and `true`.
    pub properties: Vec<(String, String)>,
}

/// How an accessible name is compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum NameMatch {
    Exact(String),
    /// Whole name, any case.
    AnyCase(String),
    /// A Rust regular expression, already checked.
    Pattern(String),
}

impl Locator {
    /// # Errors
    /// Why `selector` is no selector, in words for its author.
    pub fn parse(selector: &str) -> Result<Self, String> {
        if selector.len() > SELECTOR_BYTES_MAX {
            return Err(format!("longer than {SELECTOR_BYTES_MAX} bytes"));
        }
        let parts = split(selector);
        if parts.len() > SELECTOR_STEPS_MAX {
            return Err(format!("more than {SELECTOR_STEPS_MAX} parts"));
        }
        let mut steps = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            let step = parse_step(part)?;
            if at > 0 && matches!(step, Step::Reference { .. }) {
                return Err("a reference can only be the first part".into());
            }
            steps.push(step);
        }
        match steps.first() {
            Some(Step::Nth { .. }) => return Err("nth= needs a part before it".into()),
            Some(Step::Visible { .. }) => return Err("visible= needs a part before it".into()),
            _ => {}
        }
        Ok(Self { steps })
    }

    /// The snapshot reference, when the selector is nothing else.
    #[must_use]
    pub fn reference(&self) -> Option<u32> {
        match self.steps.as_slice() {
            [Step::Reference { number }] => Some(*number),
            _ => None,
        }
    }
}

/// Cuts at `>>` outside quotes and brackets.
fn split(selector: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut scan = Scan::of(selector);
    let bytes = selector.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if scan.outside() && bytes[at..].starts_with(b">>") {
            parts.push(selector[start..at].trim());
            at += 2;
            start = at;
            scan = Scan::of(&selector[start..]);
            continue;
        }
        scan.step(bytes[at]);
        at += 1;
    }
    parts.push(selector[start..].trim());
    parts
}

/// Where in quotes and brackets a scan stands.
struct Scan {
    /// Quotes count anywhere in CSS, XPath and role parts; in text parts only as the first character,
    /// so that an apostrophe is a letter.
    quotes_anywhere: bool,
    quote: Option<u8>,
    escaped: bool,
    value_begun: bool,
    depth: u32,
    skip: usize,
}

impl Scan {
    fn of(rest: &str) -> Self {
        let trimmed = rest.trim_start();
        let (engine, value) = engine_of(trimmed);
        let structural = matches!(engine, None | Some("css" | "xpath" | "role"));
        let skip = rest.len() - value.len();
        Self { quotes_anywhere: structural, quote: None, escaped: false, value_begun: false, depth: 0, skip }
    }

    fn outside(&self) -> bool {
        self.quote.is_none() && self.depth == 0
    }

    fn step(&mut self, byte: u8) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if let Some(quote) = self.quote {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == quote {
                self.quote = None;
            }
            return;
        }
        let quote_counts = self.quotes_anywhere || !self.value_begun;
        match byte {
            b'"' | b'\'' if quote_counts => self.quote = Some(byte),
            b'[' | b'(' if self.quotes_anywhere => self.depth += 1,
            b']' | b')' if self.quotes_anywhere => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.value_begun |= !byte.is_ascii_whitespace();
    }
}

const ENGINES: [&str; 13] = [
    "css",
    "text",
    "role",
    "label",
    "placeholder",
    "alt",
    "title",
    "testid",
    "xpath",
    "nth",
    "visible",
    "ref",
    "aria-ref",
];

/// The engine a part names, and what follows the equals sign.
fn engine_of(part: &str) -> (Option<&'static str>, &str) {
    let named = ENGINES.iter().find_map(|name| {
        let value = part.strip_prefix(*name)?.strip_prefix('=')?;
        Some((Some(*name), value))
    });
    named.unwrap_or((None, part))
}

fn parse_step(part: &str) -> Result<Step, String> {
    let (engine, value) = engine_of(part);
    let value = value.trim();
    if value.is_empty() {
        return Err(match engine {
            Some(engine) => format!("{engine}= has no value"),
            None => "a part is empty".into(),
        });
    }
    let attribute = |name| Ok(Step::Attribute { name, matcher: text_match(value)? });
    match engine {
        None => Ok(bare_step(value)),
        Some("xpath") => Ok(Step::Xpath { value: value.into() }),
        Some("text") => Ok(Step::Text { matcher: text_match(value)? }),
        Some("label") => Ok(Step::Label { matcher: text_match(value)? }),
        Some("placeholder") => attribute("placeholder"),
        Some("alt") => attribute("alt"),
        Some("title") => attribute("title"),
        Some("testid") => {
            let matcher = text_match(value)?;
            Ok(Step::Attribute { name: "data-testid", matcher: TextMatch { exact: true, ..matcher } })
        }
        Some("nth") => match value.parse() {
            Ok(index) => Ok(Step::Nth { index }),
            Err(_) => Err(format!("nth= takes a whole number, not {value}")),
        },
        Some("visible") => match value {
            "true" => Ok(Step::Visible { wanted: true }),
            "false" => Ok(Step::Visible { wanted: false }),
            other => Err(format!("visible= takes true or false, not {other}")),
        },
        Some("role") => Ok(Step::Role(super::role::parse(value)?)),
        Some("ref" | "aria-ref") => match reference_number(value) {
            Some(number) => Ok(Step::Reference { number }),
            None => Err("a reference looks like e12".into()),
        },
        Some(_) => Ok(Step::Css { value: value.into() }),
    }
}

/// A part without an engine: a reference, an XPath, a quoted text, or CSS.
fn bare_step(part: &str) -> Step {
    if let Some(number) = reference_number(part) {
        return Step::Reference { number };
    }
    if part.starts_with("//") || part.starts_with("(//") || part.starts_with("..") {
        return Step::Xpath { value: part.into() };
    }
    match unquote(part) {
        Some(text) => Step::Text { matcher: TextMatch { text, exact: true, flags: None } },
        None => Step::Css { value: part.into() },
    }
}

/// `e12`, also as `@e12`.
fn reference_number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('@').unwrap_or(text).strip_prefix('e')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn text_match(value: &str) -> Result<TextMatch, String> {
    if let Some(text) = unquote(value) {
        return Ok(TextMatch { text, exact: true, flags: None });
    }
    if let Some((pattern, flags)) = pattern_of(value) {
        if flags.chars().any(|flag| !"imsu".contains(flag)) {
            return Err(format!("unknown regular expression flags {flags}"));
        }
        return Ok(TextMatch { text: pattern.into(), exact: false, flags: Some(flags.into()) });
    }
    Ok(TextMatch { text: value.into(), exact: false, flags: None })
}

/// `/pattern/flags`.
pub(super) fn pattern_of(value: &str) -> Option<(&str, &str)> {
    let (pattern, flags) = value.strip_prefix('/')?.rsplit_once('/')?;
    let plain = !pattern.is_empty() && flags.chars().all(|flag| flag.is_ascii_lowercase());
    plain.then_some((pattern, flags))
}

/// The text inside one pair of quotes that spans all of `value`.
pub(super) fn unquote(value: &str) -> Option<String> {
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let inner = value.get(1..)?.strip_suffix(quote)?;
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.push(characters.next()?),
            other if other == quote => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(selector: &str) -> Vec<Step> {
        Locator::parse(selector).expect(selector).steps
    }

    fn text(text: &str, exact: bool) -> TextMatch {
        TextMatch { text: text.into(), exact, flags: None }
    }

    #[test]
    fn each_engine_has_its_step() {
        assert_eq!(steps("button.primary > span"), [Step::Css { value: "button.primary > span".into() }]);
        assert_eq!(steps("text=Save"), [Step::Text { matcher: text("Save", false) }]);
        assert_eq!(steps("text=\"Save\""), [Step::Text { matcher: text("Save", true) }]);
        assert_eq!(steps("'It\\'s'"), [Step::Text { matcher: text("It's", true) }]);
        assert_eq!(steps("testid=go"), [Step::Attribute { name: "data-testid", matcher: text("go", true) }]);
        assert_eq!(steps("//a[1]"), [Step::Xpath { value: "//a[1]".into() }]);
        assert_eq!(steps("@e7"), [Step::Reference { number: 7 }]);
        let pattern = TextMatch { text: "sa.e".into(), exact: false, flags: Some("i".into()) };
        assert_eq!(steps("label=/sa.e/i"), [Step::Label { matcher: pattern }]);
    }

    #[test]
    fn chains_are_cut_outside_quotes_and_brackets_only() {
        assert_eq!(steps("#a >> text=b >> nth=-1").len(), 3);
        assert_eq!(steps("text=\"a >> b\"").len(), 1);
        assert_eq!(steps("[title=\"x >> y\"]").len(), 1);
        assert_eq!(steps("a:has(b >> c)").len(), 1);
        assert_eq!(steps("text=It's here >> a").len(), 2);
        assert_eq!(steps("e12 >> button").len(), 2);
    }

    #[test]
    fn faults_are_named() {
        for (selector, reason) in [
            ("", "empty"),
            ("a >> ", "empty"),
            ("nth=1", "before"),
            ("a >> nth=x", "whole number"),
            ("visible=true", "before"),
            ("a >> visible=yes", "true or false"),
            ("a >> e12", "first"),
            ("text=", "no value"),
            ("role=button[name=", "bracket"),
        ] {
            let fault = Locator::parse(selector).expect_err(selector);
            assert!(fault.contains(reason), "{selector}: {fault}");
        }
        assert!(Locator::parse(&"a".repeat(SELECTOR_BYTES_MAX + 1)).is_err());
        assert!(Locator::parse(&["a"; SELECTOR_STEPS_MAX + 1].join(">>")).is_err());
    }
}
