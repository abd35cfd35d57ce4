//! The reply as a model reads it best: the facts of the envelope, on few and short lines.
//!
//! What must stay true: every id, cursor, handle and count of the envelope is there, or stands in a line
//! that says it for those below; nothing that a page, a server or a file wrote can make a line of its own,
//! but for one long text, which comes last and is announced with its length; nothing is said that the
//! envelope does not say, so that the bound holds for both.
//!
//! A success is `key: value` lines, lists are one line an item. A failure begins with its code.

mod legend;
mod lists;
mod messages;
mod requests;
mod text;

use serde_json::{Map, Value};

use text::{json, put_member};

/// What a reader knows who has called.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader {
    /// The call may have changed something: its operation can be asked for what it caused.
    pub acts: bool,
    /// The call named its session.
    pub names_session: bool,
}

/// A text of this many bytes, or of several lines, may stand last and as it is.
const BLOCK_BYTES_MIN: usize = 240;

/// The envelope as text.
#[must_use]
pub fn render(envelope: &Value, reader: Reader) -> String {
    let mut out = String::new();
    let block = if envelope["status"] == "error" {
        failure(&mut out, envelope);
        None
    } else {
        success(&mut out, envelope, reader)
    };
    match block {
        Some((name, text)) => out.push_str(&format!("{name}, {} bytes to the end:\n{text}", text.len())),
        None => out.truncate(out.trim_end_matches('\n').len()),
    }
    out
}

fn failure(out: &mut String, envelope: &Value) {
    let word = |key: &str| envelope[key].as_str().unwrap_or_default();
    out.push_str(&format!("{}: {}\n", word("code"), word("message")));
    out.push_str(&format!("next_step: {}\n", word("next_step")));
    members(out, envelope["details"].as_object(), &[]);
    let operation = &envelope["operation"];
    for key in ["outcome", "retry"] {
        put_member(out, 0, key, &operation[key]);
    }
    put_member(out, 0, "operation", &operation["id"]);
    artifacts(out, operation);
}

/// Gives the long text that comes last, and its name.
fn success<'a>(out: &mut String, envelope: &'a Value, reader: Reader) -> Option<(String, &'a str)> {
    let operation = &envelope["operation"];
    let known: &[&str] = if reader.names_session { &["session_id"] } else { &[] };
    let mut block = None;
    match &envelope["data"] {
        Value::Object(data) => {
            let list =
                data.iter().find_map(|(key, value)| Some((key, value.as_array().filter(|_| lists::is_known(key))?)));
            match list {
                Some((key, items)) => {
                    members(out, Some(data), &[known, &[key]].concat());
                    lists::put(out, key, items);
                }
                None => block = object(out, data, known),
            }
        }
        Value::Array(items) => lists::put(out, "items", items),
        other => out.push_str(&format!("{}\n", json(other))),
    }
    if reader.acts {
        put_member(out, 0, "operation", &operation["id"]);
    }
    artifacts(out, operation);
    block
}

/// The members on lines of their own; gives the one long text that is still to come.
fn object<'a>(out: &mut String, data: &'a Map<String, Value>, known: &[&str]) -> Option<(String, &'a str)> {
    let long = |text: &str| text.len() >= BLOCK_BYTES_MIN || text.contains('\n');
    let own = data.iter().filter_map(|(key, value)| Some((key.clone(), key.as_str(), value.as_str()?)));
    let snapshot = data.get("snapshot").and_then(Value::as_object);
    let tree = snapshot.and_then(|snapshot| snapshot.get("tree")).and_then(Value::as_str);
    let tree = tree.map(|tree| ("snapshot.tree".to_owned(), "snapshot", tree));
    let block = own.chain(tree).filter(|(_, _, text)| long(text)).max_by_key(|(_, _, text)| text.len());
    match &block {
        Some((_, key, _)) => members(out, Some(data), &[known, &[key]].concat()),
        None => members(out, Some(data), known),
    }
    if let (Some((_, "snapshot", _)), Some(snapshot)) = (&block, snapshot) {
        out.push_str("snapshot:\n");
        for (key, value) in snapshot.iter().filter(|(key, _)| *key != "tree") {
            put_member(out, 1, key, value);
        }
    }
    block.map(|(name, _, text)| (name, text))
}

fn members(out: &mut String, data: Option<&Map<String, Value>>, without: &[&str]) {
    for (key, value) in data.into_iter().flatten() {
        if !without.contains(&key.as_str()) {
            put_member(out, 0, key, value);
        }
    }
}

/// What the reply refers to and has not named above.
fn artifacts(out: &mut String, operation: &Value) {
    for reference in operation["artifacts"].as_array().into_iter().flatten() {
        for (key, value) in reference.as_object().into_iter().flatten() {
            if value.as_str().is_some_and(|value| !out.contains(value)) {
                put_member(out, 0, if key == "handle" { "artifact" } else { key }, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
