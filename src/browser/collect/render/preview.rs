//! The browser's own preview of an object, written as a developer reads it.
//!
//! Strings inside stand unescaped, so that a declared secret is found in them as in any text.

use serde::Deserialize;

/// Levels of previews inside previews that are written out.
const DEPTH_MAX: usize = 3;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Preview {
    r#type: String,
    subtype: Option<String>,
    description: Option<String>,
    pub overflow: bool,
    pub properties: Vec<Property>,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Property {
    pub name: String,
    r#type: String,
    value: Option<String>,
    subtype: Option<String>,
    pub value_preview: Option<Preview>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    pub key: Option<Preview>,
    pub value: Preview,
}

pub(super) fn write_preview(out: &mut String, preview: &Preview, depth: usize) {
    let description = preview.description.as_deref().unwrap_or_default();
    let subtype = preview.subtype.as_deref();
    let collection = matches!(subtype, Some("map" | "set" | "weakmap" | "weakset" | "iterator"));
    if preview.r#type == "string" {
        return quoted(out, description);
    }
    if depth >= DEPTH_MAX {
        return out.push_str(description);
    }
    match subtype {
        Some("array" | "typedarray") => write_list(out, preview, description, depth),
        Some("promise") => write_promise(out, preview),
        _ if collection => write_entries(out, preview, description, depth),
        Some("node" | "regexp" | "date" | "error") => out.push_str(description),
        _ if preview.properties.is_empty() && description != "Object" => out.push_str(description),
        _ => write_members(out, preview, description, depth),
    }
}

fn write_entries(out: &mut String, preview: &Preview, description: &str, depth: usize) {
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
    close(out, preview.overflow, '}');
}

/// A list, its holes told by their number; how long it is where not all of it is shown.
fn write_list(out: &mut String, preview: &Preview, description: &str, depth: usize) {
    let plain = description.starts_with("Array(");
    if !plain || preview.overflow {
        out.push_str(description);
        out.push(' ');
    }
    out.push('[');
    let (mut position, mut next) = (0, 0_u64);
    for property in &preview.properties {
        let Ok(index) = property.name.parse::<u64>() else {
            // What all such lists have is not worth showing; a plain array's further members are its own.
            if plain {
                separate(out, position);
                member(out, property, depth);
                position += 1;
            }
            continue;
        };
        position = holes(out, position, index.saturating_sub(next));
        separate(out, position);
        write_property(out, property, depth);
        (position, next) = (position + 1, index.saturating_add(1));
    }
    if !preview.overflow && plain {
        holes(out, position, length(description).saturating_sub(next));
    }
    close(out, preview.overflow, ']');
}

fn length(description: &str) -> u64 {
    let digits = description.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn holes(out: &mut String, position: usize, count: u64) -> usize {
    if count == 0 {
        return position;
    }
    separate(out, position);
    out.push_str("empty");
    if count > 1 {
        out.push_str(" x ");
        out.push_str(&count.to_string());
    }
    position + 1
}

/// `Promise {<rejected>: Error: no}`
fn write_promise(out: &mut String, preview: &Preview) {
    let internal = |name: &str| preview.properties.iter().find(|property| property.name == name);
    let state = internal("[[PromiseState]]").and_then(|property| property.value.as_deref());
    out.push_str("Promise {<");
    out.push_str(state.unwrap_or("pending"));
    out.push('>');
    if let Some(result) = internal("[[PromiseResult]]").filter(|_| state.is_some_and(|state| state != "pending")) {
        out.push_str(": ");
        write_property(out, result, DEPTH_MAX);
    }
    out.push('}');
}

fn write_members(out: &mut String, preview: &Preview, description: &str, depth: usize) {
    if !description.is_empty() && description != "Object" {
        out.push_str(description);
        out.push(' ');
    }
    out.push('{');
    for (position, property) in preview.properties.iter().enumerate() {
        separate(out, position);
        if property.name == "[[PrimitiveValue]]" {
            write_property(out, property, depth);
        } else {
            member(out, property, depth);
        }
    }
    close(out, preview.overflow, '}');
}

/// What an error has besides its name, message and stack, which its description tells.
pub(super) fn failure(out: &mut String, preview: &Preview, class: Option<&str>) {
    let told = |name: &str| match name {
        "stack" | "message" | "name" | "cause" => true,
        "code" => class == Some("DOMException"),
        _ => false,
    };
    let mut opening = "\n{";
    for property in preview.properties.iter().filter(|property| !told(&property.name)) {
        out.push_str(opening);
        member(out, property, 0);
        opening = ", ";
    }
    if opening == ", " {
        close(out, preview.overflow, '}');
    }
    if let Some(cause) = preview.properties.iter().find(|property| property.name == "cause") {
        out.push_str("\nCaused by: ");
        write_property(out, cause, DEPTH_MAX);
    }
}

fn member(out: &mut String, property: &Property, depth: usize) {
    out.push_str(&property.name);
    out.push_str(": ");
    write_property(out, property, depth);
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

pub(super) fn write_property(out: &mut String, property: &Property, depth: usize) {
    if let Some(preview) = &property.value_preview {
        return write_preview(out, preview, depth + 1);
    }
    let value = property.value.as_deref().unwrap_or_default();
    match property.r#type.as_str() {
        "string" => quoted(out, value),
        "function" if value.is_empty() => out.push_str("function"),
        "object" if value.is_empty() => out.push_str(property.subtype.as_deref().unwrap_or("Object")),
        "accessor" => out.push_str("(...)"),
        _ => out.push_str(value),
    }
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}
