//! Console arguments as a developer reads them.
//!
//! Strings stand as they are, objects as the preview the browser made, format specifiers of the first
//! argument are applied. Nothing is asked of the page: rendering must not run its code.

use serde::Deserialize;
use serde_json::Value;

/// Levels of previews inside previews that are written out.
const DEPTH_MAX: usize = 3;

/// A value in the page, as far as the browser describes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RemoteObject {
    pub r#type: String,
    pub subtype: Option<String>,
    pub class_name: Option<String>,
    pub value: Option<Value>,
    pub unserializable_value: Option<String>,
    pub description: Option<String>,
    pub preview: Option<Preview>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Preview {
    subtype: Option<String>,
    description: Option<String>,
    overflow: bool,
    properties: Vec<Property>,
    entries: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Property {
    name: String,
    r#type: String,
    value: Option<String>,
    subtype: Option<String>,
    value_preview: Option<Preview>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    key: Option<Preview>,
    value: Preview,
}

/// The whole line.
pub(super) fn arguments(arguments: &[RemoteObject]) -> String {
    let mut out = String::new();
    let mut rest = arguments;
    if let Some((first, others)) = arguments.split_first()
        && let Some(Value::String(format)) = &first.value
        && !others.is_empty()
        && format.contains('%')
    {
        rest = &others[apply_format(&mut out, format, others)..];
    } else if let Some((first, others)) = arguments.split_first() {
        top_level(&mut out, first);
        rest = others;
    }
    for argument in rest {
        out.push(' ');
        top_level(&mut out, argument);
    }
    out
}

/// Applies `format` and returns how many arguments it used.
fn apply_format(out: &mut String, format: &str, arguments: &[RemoteObject]) -> usize {
    let mut used = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let mut following = rest[at + 1..].chars();
        let Some(specifier) = following.next() else {
            rest = &rest[at..];
            break;
        };
        let argument = arguments.get(used);
        match (specifier, argument) {
            ('%', _) => out.push('%'),
            ('s' | 'o' | 'O', Some(argument)) => top_level(out, argument),
            ('d' | 'i', Some(argument)) => {
                out.push_str(&number(argument).map_or("NaN".to_owned(), |n| format!("{}", n.trunc())))
            }
            ('f', Some(argument)) => out.push_str(&number(argument).map_or("NaN".to_owned(), |n| n.to_string())),
            ('c', Some(_)) => {}
            (other, _) => {
                // Not a specifier, or nothing left for it: it stands as written.
                out.push('%');
                out.push(other);
                rest = following.as_str();
                continue;
            }
        }
        if specifier != '%' {
            used += 1;
        }
        rest = following.as_str();
    }
    out.push_str(rest);
    used
}

fn number(argument: &RemoteObject) -> Option<f64> {
    match &argument.value {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(Value::Bool(flag)) => Some(f64::from(u8::from(*flag))),
        _ => None,
    }
}

fn top_level(out: &mut String, argument: &RemoteObject) {
    match &argument.value {
        Some(Value::String(text)) => return out.push_str(text),
        Some(value) if !value.is_null() => return out.push_str(&value.to_string()),
        _ => {}
    }
    if let Some(text) = &argument.unserializable_value {
        return out.push_str(text);
    }
    let described =
        matches!(argument.subtype.as_deref(), Some("error" | "node" | "regexp" | "date" | "promise" | "proxy"));
    match (&argument.preview, described) {
        (Some(preview), false) => write_preview(out, preview, 0),
        _ => out.push_str(plain(argument)),
    }
}

fn plain(argument: &RemoteObject) -> &str {
    if argument.subtype.as_deref() == Some("null") {
        return "null";
    }
    let fallback = argument.class_name.as_deref().unwrap_or(&argument.r#type);
    argument.description.as_deref().unwrap_or(fallback)
}

fn write_preview(out: &mut String, preview: &Preview, depth: usize) {
    let description = preview.description.as_deref().unwrap_or_default();
    let list = matches!(preview.subtype.as_deref(), Some("array" | "typedarray"));
    if depth >= DEPTH_MAX {
        return out.push_str(description);
    }
    if !preview.entries.is_empty() {
        out.push_str(description);
        out.push_str(" {");
        for (position, entry) in preview.entries.iter().enumerate() {
            separate(out, position);
            if let Some(key) = &entry.key {
                write_preview(out, key, depth + 1);
                out.push_str(" => ");
            }
            write_preview(out, &entry.value, depth + 1);
        }
        return close(out, preview.overflow, '}');
    }
    let simple = preview.properties.is_empty() && !list && description != "Object";
    if simple {
        return out.push_str(description);
    }
    if !list && !description.is_empty() && description != "Object" {
        out.push_str(description);
        out.push(' ');
    }
    out.push(if list { '[' } else { '{' });
    for (position, property) in preview.properties.iter().enumerate() {
        separate(out, position);
        if !(list && property.name.bytes().all(|byte| byte.is_ascii_digit())) {
            out.push_str(&property.name);
            out.push_str(": ");
        }
        write_property(out, property, depth);
    }
    close(out, preview.overflow, if list { ']' } else { '}' });
}

fn separate(out: &mut String, position: usize) {
    if position > 0 {
        out.push_str(", ");
    }
}

fn close(out: &mut String, overflow: bool, bracket: char) {
    if overflow {
        out.push_str(", ...");
    }
    out.push(bracket);
}

fn write_property(out: &mut String, property: &Property, depth: usize) {
    if let Some(preview) = &property.value_preview {
        return write_preview(out, preview, depth + 1);
    }
    let value = property.value.as_deref().unwrap_or_default();
    match property.r#type.as_str() {
        "string" => {
            out.push('"');
            out.push_str(value);
            out.push('"');
        }
        "function" if value.is_empty() => out.push_str("function"),
        "object" if value.is_empty() => out.push_str(property.subtype.as_deref().unwrap_or("Object")),
        "accessor" => out.push_str("(...)"),
        _ => out.push_str(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(values: Value) -> String {
        let parsed: Vec<RemoteObject> = serde_json::from_value(values).expect("the test writes remote objects");
        arguments(&parsed)
    }

    #[test]
    fn primitives_stand_as_they_are() {
        let text = line(json!([
            {"type": "string", "value": "100%"}, {"type": "number", "value": 1.5}, {"type": "boolean", "value": false},
            {"type": "undefined"}, {"type": "object", "subtype": "null", "value": null},
            {"type": "number", "unserializableValue": "NaN", "description": "NaN"},
            {"type": "bigint", "unserializableValue": "12n"}, {"type": "symbol", "description": "Symbol(a)"}
        ]));
        assert_eq!(text, "100% 1.5 false undefined null NaN 12n Symbol(a)");
    }

    #[test]
    fn format_specifiers_take_their_arguments() {
        let text = line(json!([
            {"type": "string", "value": "%c%s is %d of %i, %f%% %x %s"}, {"type": "string", "value": "color: red"},
            {"type": "string", "value": "it"}, {"type": "number", "value": 4.9}, {"type": "string", "value": "x"},
            {"type": "number", "value": 0.5}, {"type": "string", "value": "last"}, {"type": "string", "value": "more"}
        ]));
        assert_eq!(text, "it is 4 of NaN, 0.5% %x last more");
    }

    #[test]
    fn previews_show_two_levels() {
        let text = line(json!([
            {"type": "object", "description": "Object", "preview": {"type": "object", "description": "Object", "overflow": true,
                "properties": [{"name": "a", "type": "number", "value": "1"}, {"name": "b", "type": "string", "value": "x"},
                    {"name": "c", "type": "object", "value": "Array(2)", "subtype": "array"}]}},
            {"type": "object", "subtype": "array", "description": "Array(2)", "preview": {"type": "object", "subtype": "array",
                "description": "Array(2)", "properties": [{"name": "0", "type": "number", "value": "1"}, {"name": "1", "type": "undefined", "value": "undefined"}]}},
            {"type": "object", "subtype": "map", "description": "Map(1)", "preview": {"type": "object", "subtype": "map", "description": "Map(1)",
                "entries": [{"key": {"type": "string", "description": "k"}, "value": {"type": "number", "description": "2"}}]}},
            {"type": "object", "subtype": "error", "description": "Error: no\n    at f (a.js:1:2)", "preview": {"description": "Error"}}
        ]));
        assert_eq!(
            text,
            "{a: 1, b: \"x\", c: Array(2), ...} [1, undefined] Map(1) {k => 2} Error: no\n    at f (a.js:1:2)"
        );
    }
}
