//! Console arguments as a developer reads them.
//!
//! Strings stand as they are, objects as the preview the browser made, format specifiers of the first
//! argument are applied. Nothing is asked of the page: rendering must not run its code. What is nested
//! deeper than the preview goes is named, not shown.

mod preview;
mod table;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::Value;

use preview::{Preview, failure, write_preview};

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
    preview: Option<Preview>,
}

/// The whole line of a call of `console`.
pub(super) fn called(method: &str, given: &[RemoteObject]) -> String {
    let shown = || arguments(given);
    // Where nothing was given, the browser puts the method's name in its place.
    let only = match given {
        [RemoteObject { value: Some(Value::String(text)), .. }] => text.as_str(),
        _ => "",
    };
    match method {
        "assert" if only == "console.assert" => "Assertion failed".to_owned(),
        "assert" => format!("Assertion failed: {}", shown()),
        "clear" => "Console was cleared".to_owned(),
        "table" => given.first().and_then(|first| table::table(first.preview.as_ref()?)).unwrap_or_else(shown),
        _ => shown(),
    }
}

/// Values side by side, after what a format makes of them.
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
            // The browser has made numbers of what is to be one already, where that can be done.
            ('d' | 'i' | 'f', Some(argument)) if argument.r#type == "number" => top_level(out, argument),
            ('d' | 'i' | 'f', Some(_)) => out.push_str("NaN"),
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

fn top_level(out: &mut String, argument: &RemoteObject) {
    match &argument.value {
        Some(Value::String(text)) => return out.push_str(text),
        // The description of a number is how the page's language writes it.
        Some(value) if !value.is_null() => match &argument.description {
            Some(description) => return out.push_str(description),
            None => return out.push_str(&value.to_string()),
        },
        _ => {}
    }
    if let Some(text) = &argument.unserializable_value {
        return out.push_str(text);
    }
    let subtype = argument.subtype.as_deref();
    match &argument.preview {
        Some(preview) if subtype == Some("error") => {
            out.push_str(plain(argument));
            failure(out, preview, argument.class_name.as_deref());
        }
        // Attributes and flags behind these say less than their description.
        Some(preview) if !matches!(subtype, Some("node" | "regexp" | "date")) => write_preview(out, preview, 0),
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
