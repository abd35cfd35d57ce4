//! Lines as YAML: `- button "Save" [ref=e3]`, indented by two spaces a level.

use std::fmt::Write as _;

use super::line::Line;

/// Indentation stops growing here, so that a hostile depth cannot square the size of the text.
const INDENT_LEVELS_MAX: usize = 60;

/// Writes the lines that are left.
pub(super) fn write(lines: &[Line]) -> String {
    let mut out = String::new();
    let shown: Vec<&Line> = lines.iter().filter(|line| !line.gone).collect();
    for (at, line) in shown.iter().enumerate() {
        for _ in 0..line.depth.min(INDENT_LEVELS_MAX) {
            out.push_str("  ");
        }
        out.push_str("- ");
        if line.role.is_empty() {
            let _ = writeln!(out, "text: {}", scalar(&line.text));
            continue;
        }
        out.push_str(&line.role);
        if !line.name.is_empty() {
            let _ = write!(out, " {}", quoted(&line.name));
        }
        out.push_str(&line.states);
        if let Some(reference) = line.reference {
            let _ = write!(out, " [ref=e{reference}]");
        }
        let parent = shown.get(at + 1).is_some_and(|next| next.depth > line.depth);
        match (line.text.is_empty(), parent) {
            (true, false) => {}
            (true, true) => out.push(':'),
            (false, false) => {
                let _ = write!(out, ": {}", scalar(&line.text));
            }
            // A field with a value and something inside: the value comes first.
            (false, true) => {
                let _ = write!(out, " [value={}]:", quoted(&line.text));
            }
        }
        out.push('\n');
    }
    out
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".into())
}

/// Plain when YAML reads it back as the same text, quoted otherwise.
fn scalar(text: &str) -> String {
    let special_start =
        text.starts_with(|first: char| "-?:,[]{}#&*!|>'\"%@`~=".contains(first) || first.is_whitespace());
    let special = text.is_empty()
        || special_start
        || text.ends_with([' ', ':'])
        || text.contains(": ")
        || text.contains(" #")
        || text.chars().any(char::is_control)
        || text.parse::<f64>().is_ok()
        || matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if special { quoted(text) } else { text.to_owned() }
}
