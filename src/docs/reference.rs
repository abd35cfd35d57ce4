//! The tool reference, made from the tool table: what `pageledger tools` prints, and the README's
//! short table. What clients are told by `tools/list` comes from the same rows.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::contract::{Pack, Returns, ToolFacts, result, schema};
use crate::tools::TOOLS;
use crate::tools::offer::CORE_TOOLS;
use crate::tools::tool::Tool;

/// Every tool with one line, pack by pack.
#[must_use]
pub fn short() -> String {
    let mut out = String::from("| pack | tool | what it does |\n|---|---|---|\n");
    for pack in Pack::ALL {
        for tool in TOOLS.iter().filter(|tool| tool.facts.pack == pack) {
            let facts = &tool.facts;
            let core = if CORE_TOOLS.contains(&facts.name) { " *" } else { "" };
            let _ = writeln!(out, "| {} | `{}`{core} | {} |", pack.as_str(), facts.name, cell(facts.text));
        }
    }
    out
}

/// One tool in full.
#[must_use]
pub fn markdown(tool: &Tool) -> String {
    let facts = &tool.facts;
    let mut out =
        format!("## `{}`\n\n**{}**, pack `{}`. {}\n", facts.name, facts.title, facts.pack.as_str(), facts.text);
    let _ = writeln!(out, "\n{}.\n", hints(facts));
    if facts.parameters.is_empty() {
        out.push_str("No arguments.\n");
    } else {
        out.push_str("| argument | type | required | default | notes |\n|---|---|---|---|---|\n");
    }
    for parameter in facts.parameters {
        let shown = Value::Object(schema::property(parameter));
        let required = if parameter.required { "yes" } else { "no" };
        let default = shown.get("default").map(|default| format!("`{default}`")).unwrap_or_default();
        let notes: Vec<String> =
            [bounds(&shown), cell(parameter.text)].into_iter().filter(|note| !note.is_empty()).collect();
        let (name, kind, notes) = (parameter.name, kind(&shown), notes.join("; "));
        let _ = writeln!(out, "| `{name}` | {} | {required} | {default} | {notes} |", cell(&kind));
    }
    let head = match facts.returns {
        Returns::Object(_) => "an object",
        Returns::Array(_) => "an array; each item",
    };
    let _ = writeln!(out, "\nGives {head}:\n\n| field | type | always |\n|---|---|---|");
    for field in facts.returns.fields() {
        let always = if field.always { "yes" } else { "no" };
        let _ = writeln!(out, "| `{}` | {} | {always} |", field.name, cell(&result::kind_text(field)));
    }
    out
}

/// One tool as data.
#[must_use]
pub fn data(tool: &Tool) -> Value {
    let facts = &tool.facts;
    let effect = facts.effect;
    json!({
        "name": facts.name,
        "title": facts.title,
        "pack": facts.pack.as_str(),
        "core": CORE_TOOLS.contains(&facts.name),
        "description": facts.text,
        "annotations": {
            "readOnlyHint": effect.read_only,
            "destructiveHint": effect.destructive,
            "idempotentHint": effect.idempotent,
            "openWorldHint": effect.open_world,
        },
        "inputSchema": schema::input(facts),
        "outputSchema": facts.returns.schema(),
    })
}

fn hints(facts: &ToolFacts) -> String {
    let effect = facts.effect;
    let yes_or_no = |flag: bool| if flag { "yes" } else { "no" };
    format!(
        "Read only {}, destructive {}, idempotent {}, open world {}",
        yes_or_no(effect.read_only),
        yes_or_no(effect.destructive),
        yes_or_no(effect.idempotent),
        yes_or_no(effect.open_world),
    )
}

/// The type that a schema admits, in words.
fn kind(schema: &Value) -> String {
    let names = |value: &Value| match value {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    };
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", words.join(", "));
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        return alternatives.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["items"] {
        Value::Null => names(&schema["type"]),
        items => format!("array of {}", kind(items)),
    }
}

fn bounds(schema: &Value) -> String {
    let words = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "min length"),
        ("maxLength", "max length"),
        ("minItems", "min items"),
        ("maxItems", "max items"),
        ("pattern", "pattern"),
    ];
    let said = words.iter().filter_map(|(key, word)| Some(format!("{word} {}", schema.get(key)?)));
    said.collect::<Vec<_>>().join(", ")
}

/// Text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
