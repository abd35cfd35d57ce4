//! The README's tables, made from the lists that the program itself runs on. A test keeps them fresh.

pub mod reference;

use std::fmt::Write;

use storage::event::{FieldKind, KINDS};

use crate::{config, fault};

/// Every generated section: the name in its markers, and its text.
#[must_use]
pub fn sections() -> [(&'static str, String); 4] {
    [
        ("options", config::options_markdown()),
        ("tools", reference::short()),
        ("events", events_markdown()),
        ("faults", fault::catalog::faults_markdown()),
    ]
}

/// `readme` with every generated section as it should be.
///
/// # Errors
/// Names the first section whose markers are missing: a generator that skips what it cannot find
/// would let the section go stale for ever.
pub fn refreshed(readme: &str) -> Result<String, &'static str> {
    let mut out = readme.to_owned();
    for (name, text) in sections() {
        let (begin, end) = (format!("<!-- generated:{name} -->\n"), format!("<!-- /generated:{name} -->"));
        let from = out.find(&begin).ok_or(name)? + begin.len();
        let to = from + out[from..].find(&end).ok_or(name)?;
        out.replace_range(from..to, &text);
    }
    Ok(out)
}

fn events_markdown() -> String {
    let mut out =
        String::from("| number | kind | version | kept as | what happened | fields |\n|---|---|---|---|---|---|\n");
    for kind in KINDS {
        let class = kind.class.as_str();
        let fields: Vec<String> = kind
            .fields
            .iter()
            .map(|field| format!("`{}` {}{}", field.name, type_name(field.kind), if field.optional { "?" } else { "" }))
            .collect();
        let doc = kind.doc.trim().replace('|', "\\|");
        let (number, name, version) = (kind.number, kind.name, kind.version);
        let _ = writeln!(out, "| {number} | `{name}` | {version} | {class} | {doc} | {} |", fields.join(", "));
    }
    out
}

fn type_name(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::U64 => "u64",
        FieldKind::I64 => "i64",
        FieldKind::F64 => "f64",
        FieldKind::Bool => "bool",
        FieldKind::Symbol => "word",
        FieldKind::Level => "level",
        FieldKind::Id => "id",
        FieldKind::Handle => "handle",
        FieldKind::Text => "text",
        FieldKind::Json => "json",
    }
}
