//! `role=button[name="Save"][disabled=false]`: the parser, and the comparison with what the
//! browser's accessibility engine says about a node.

use serde_json::Value;

use super::ax::Node;
use super::locator::{NameMatch, RoleQuery, pattern_of, unquote};
use super::snapshot::squeeze;

/// Accessible properties that may be asked for.
const PROPERTIES: [&str; 7] = ["checked", "disabled", "expanded", "level", "pressed", "selected", "focused"];
/// Roles that Chromium calls otherwise, or makes finer differences within.
const NATIVE_ROLES: &[(&str, &[&str])] = &[
    ("img", &["image", "SvgRoot"]),
    ("image", &["image", "SvgRoot"]),
    ("presentation", &["none"]),
    ("textbox", &["textbox", "Date", "DateTime", "InputTime", "ColorWell"]),
    ("list", &["list", "DescriptionList"]),
    ("term", &["term", "DescriptionListTerm"]),
    ("definition", &["definition", "DescriptionListDetail"]),
    ("option", &["option", "MenuListOption"]),
    ("summary", &["DisclosureTriangle", "DisclosureTriangleGrouped"]),
    ("iframe", &["Iframe", "IframePresentational"]),
    ("math", &["math", "MathMLMath"]),
    ("figcaption", &["Figcaption"]),
    ("canvas", &["Canvas"]),
    ("video", &["Video"]),
    ("audio", &["Audio"]),
];
/// Filters of one role part.
const FILTERS_MAX: usize = 16;

pub(super) fn parse(value: &str) -> Result<RoleQuery, String> {
    let end = value.find('[').unwrap_or(value.len());
    let role = value[..end].trim();
    if role.is_empty() || !role.chars().all(|character| character.is_ascii_alphanumeric() || character == '-') {
        return Err(format!("{role} is not a role name"));
    }
    let mut query = RoleQuery { role: role.to_ascii_lowercase(), ..RoleQuery::default() };
    let mut rest = value[end..].trim();
    while !rest.is_empty() {
        if query.properties.len() >= FILTERS_MAX {
            return Err(format!("more than {FILTERS_MAX} filters"));
        }
        let (filter, after) = bracketed(rest)?;
        add_filter(&mut query, filter)?;
        rest = after.trim_start();
    }
    Ok(query)
}

/// The text between one pair of brackets, quotes respected, and what follows.
fn bracketed(text: &str) -> Result<(&str, &str), String> {
    let inner = text.strip_prefix('[').ok_or_else(|| format!("expected [ before {text}"))?;
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in inner.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, ']') => return Ok((&inner[..at], &inner[at + 1..])),
            (None, _) => {}
        }
    }
    Err("a bracket is not closed".into())
}

fn add_filter(query: &mut RoleQuery, filter: &str) -> Result<(), String> {
    let (key, value) = match filter.split_once('=') {
        Some((key, value)) => (key.trim(), value.trim()),
        None => (filter.trim(), "true"),
    };
    if key == "name" {
        query.name = Some(name_match(value)?);
        return Ok(());
    }
    if !PROPERTIES.contains(&key) {
        return Err(format!("unknown filter {key}; known are name, {}", PROPERTIES.join(", ")));
    }
    let value = unquote(value).unwrap_or_else(|| value.to_owned());
    query.properties.push((key.to_owned(), value));
    Ok(())
}

fn name_match(value: &str) -> Result<NameMatch, String> {
    if let Some((pattern, flags)) = pattern_of(value) {
        if flags.chars().any(|flag| !"ims".contains(flag)) {
            return Err(format!("unknown regular expression flags {flags}"));
        }
        let pattern = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
        regex::Regex::new(&pattern).map_err(|error| format!("the name's pattern is not valid: {error}"))?;
        return Ok(NameMatch::Pattern(pattern));
    }
    if let Some(quoted) = value.strip_suffix(" i").and_then(|text| unquote(text.trim_end())) {
        return Ok(NameMatch::AnyCase(quoted));
    }
    match unquote(value) {
        Some(text) => Ok(NameMatch::Exact(text)),
        None if value.is_empty() || value.starts_with(['"', '\'']) => Err("the name's quotes do not match".into()),
        None => Ok(NameMatch::AnyCase(value.to_owned())),
    }
}

impl RoleQuery {
    /// Chromium's words for the role: several where agents know but one, as in snapshots.
    pub(super) fn native_roles(&self) -> Vec<&str> {
        let role = self.role.as_str();
        NATIVE_ROLES.iter().find(|(known, _)| *known == role).map_or_else(|| vec![role], |(_, native)| native.to_vec())
    }

    /// The name to hand to the browser's own search, when it can compare it by itself.
    pub(super) fn exact_name(&self) -> Option<&str> {
        match &self.name {
            Some(NameMatch::Exact(name)) => Some(name),
            _ => None,
        }
    }

    pub(super) fn matches(&self, node: &Node) -> bool {
        if node.ignored || !self.native_roles().contains(&node.role()) {
            return false;
        }
        // As snapshots show it.
        let name = squeeze(&node.name.as_ref().map(super::ax::Scalar::text).unwrap_or_default());
        let named = match &self.name {
            None => true,
            Some(NameMatch::Exact(wanted)) => squeeze(wanted) == name,
            Some(NameMatch::AnyCase(wanted)) => squeeze(wanted).to_lowercase() == name.to_lowercase(),
            Some(NameMatch::Pattern(pattern)) => regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(&name)),
        };
        named && self.properties.iter().all(|(key, wanted)| property_is(node, key, wanted))
    }
}

fn property_is(node: &Node, key: &str, wanted: &str) -> bool {
    match node.property(key) {
        Some(Value::String(actual)) => actual == wanted,
        Some(Value::Bool(actual)) => actual.to_string() == wanted,
        Some(Value::Number(actual)) => actual.to_string() == wanted,
        // A button that opens nothing is not closed.
        _ => wanted == "false" && key != "expanded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_properties_are_read() {
        let query = parse("button[name=\"Save ] all\"][disabled=false][level=2]").expect("valid");
        assert_eq!(query.role, "button");
        let escaped = parse(r#"button[name="a \"] b"]"#).expect("valid");
        assert_eq!(escaped.name, Some(NameMatch::Exact("a \"] b".into())));
        assert_eq!(query.name, Some(NameMatch::Exact("Save ] all".into())));
        assert_eq!(query.properties, [("disabled".into(), "false".into()), ("level".into(), "2".into())]);
        assert_eq!(parse("link[name=\"a\" i]").expect("valid").name, Some(NameMatch::AnyCase("a".into())));
        assert_eq!(parse("link[name=/^a/i]").expect("valid").name, Some(NameMatch::Pattern("(?i)^a".into())));
    }

    #[test]
    fn wrong_filters_are_refused() {
        for text in ["", "button[colour=red]", "button[name=\"a]", "button[name=/(/]", "button x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
