//! From accessibility nodes to lines: what is shown, under which name, with which states.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;
use storage::ids::FrameId;

use super::line::{Line, shorten, squeeze};
use super::select::select;
use super::{FrameTree, SnapshotOptions, yaml};
use crate::browser::page::ax::{Node, Scalar};

/// A name or a value in a snapshot, in characters.
const NAME_CHARACTERS_MAX: usize = 1000;

/// What stands for a value that nobody should see.
const HIDDEN: &str = "[hidden]";
/// Levels inside a field at which its text is looked for.
const MASK_DEPTH_MAX: usize = 4;
/// Roles that an agent can act on, in the words of [`plain`].
const INTERACTIVE: [&str; 19] = [
    "button",
    "checkbox",
    "combobox",
    "gridcell",
    "link",
    "listbox",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "summary",
    "switch",
    "tab",
    "textbox",
    "treeitem",
];

pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) references: u64,
    /// Lines that the options left out.
    pub(super) omitted: u64,
}

/// What becomes of a node.
enum Shown<'a> {
    /// Itself and what is below it.
    Not,
    /// Only what is below it.
    Through,
    Text,
    As(&'a str),
}

/// A node to visit: its tree, its place there, its depth, and the node it hangs under.
struct Visit {
    tree: usize,
    node: usize,
    depth: usize,
    parent: (usize, usize),
}

/// Renders the first tree, with the others where their frames' elements are.
pub(super) fn render(
    trees: &[FrameTree],
    options: &SnapshotOptions,
    inside: &dyn Fn(&FrameId, i64) -> Option<usize>,
    number: &mut dyn FnMut(&FrameTree, i64) -> u32,
) -> Rendered {
    let places: Vec<HashMap<&str, usize>> = trees.iter().map(places).collect();
    let mut lines: Vec<Line> = Vec::new();
    let mut entered = vec![false; trees.len()];
    // A stack of our own: the depth of a document is its author's choice.
    let mut visits = Vec::new();
    if let Some(first) = entered.first_mut() {
        *first = true;
        visits.push(Visit { tree: 0, node: 0, depth: 0, parent: (0, 0) });
    }
    let mut visited: Vec<Vec<bool>> = trees.iter().map(|tree| vec![false; tree.nodes.len()]).collect();
    while let Some(visit) = visits.pop() {
        let tree = &trees[visit.tree];
        let Some(node) = tree.nodes.get(visit.node) else { continue };
        if std::mem::replace(&mut visited[visit.tree][visit.node], true) {
            continue;
        }
        let masked = || masked(tree, &places[visit.tree], node);
        let (line, below) = line_of(node, &visit, &masked, &mut |backend| number(tree, backend));
        let (depth, leaf) = match below {
            Below::Nothing => (0, true),
            Below::At(depth) => (depth, false),
        };
        lines.extend(line);
        if leaf {
            continue;
        }
        let here = (visit.tree, visit.node);
        let frame = node.backend_node_id.and_then(|backend| inside(&tree.frame_id, backend));
        if let Some(child) = frame.filter(|child| !std::mem::replace(&mut entered[*child], true)) {
            visits.push(Visit { tree: child, node: 0, depth, parent: here });
        }
        let children = node.child_ids.iter().rev().filter_map(|id| places[visit.tree].get(id.as_str()));
        visits.extend(children.map(|child| Visit { tree: visit.tree, node: *child, depth, parent: here }));
    }
    shorten(&mut lines);
    let omitted = select(&mut lines, options);
    let references = lines.iter().filter(|line| !line.gone && line.reference.is_some()).count() as u64;
    Rendered { text: yaml::write(&lines), references, omitted }
}

fn places(tree: &FrameTree) -> HashMap<&str, usize> {
    tree.nodes.iter().enumerate().map(|(at, node)| (node.node_id.as_str(), at)).collect()
}

enum Below {
    Nothing,
    At(usize),
}

fn line_of(
    node: &Node,
    visit: &Visit,
    masked: &dyn Fn() -> bool,
    number: &mut dyn FnMut(i64) -> u32,
) -> (Option<Line>, Below) {
    let role = match shown(node) {
        Shown::Not => return (None, Below::Nothing),
        Shown::Through => return (None, Below::At(visit.depth)),
        Shown::Text => {
            let text = node.name.as_ref().map(Scalar::text).unwrap_or_default();
            let line = Line { depth: visit.depth, text, parent: visit.parent, ..Line::default() };
            return (Some(line), Below::Nothing);
        }
        Shown::As(role) => role,
    };
    let name = cut(&squeeze(node.name.as_ref().map(Scalar::as_str).unwrap_or_default()));
    // What is inside a field is its value once more, and a password's dots.
    let leaf = matches!(role, "textbox" | "searchbox" | "spinbutton" | "slider" | "progressbar" | "meter");
    let mut value = value_of(node, role);
    if leaf && !value.is_empty() && masked() {
        value = HIDDEN.into();
    }
    let reference = node.backend_node_id.filter(|_| referable(node, role)).map(&mut *number);
    let line = Line {
        depth: visit.depth,
        role: role.to_ascii_lowercase(),
        name,
        reference,
        states: states(node),
        text: value,
        parent: visit.parent,
        interactive: reference.is_some() && (INTERACTIVE.contains(&role) || node.flag("focusable")),
        gone: false,
    };
    (Some(line), if leaf { Below::Nothing } else { Below::At(visit.depth + 1) })
}

fn shown(node: &Node) -> Shown<'_> {
    let role = node.role();
    if node.ignored {
        return Shown::Through;
    }
    let named = node.name.as_ref().is_some_and(|name| !name.as_str().trim().is_empty());
    match role {
        "StaticText" | "LineBreak" => Shown::Text,
        "InlineTextBox" | "ListMarker" => Shown::Not,
        ""
        | "none"
        | "RootWebArea"
        | "WebArea"
        | "LabelText"
        | "MenuListPopup"
        | "Section"
        | "LayoutTable"
        | "LayoutTableRow"
        | "LayoutTableCell"
        | "rowgroup"
        | "Iframe presentational"
        | "ScrollBar"
        | "Legend"
        | "Abbr"
        | "Ruby"
        | "RubyAnnotation" => Shown::Through,
        "generic" | "group" | "SvgRoot" | "Canvas" if named || node.flag("focusable") => Shown::As(plain(role)),
        "generic" | "SvgRoot" => Shown::Through,
        "group" => Shown::Through,
        "image" if !named => Shown::Through,
        role if role.starts_with("MathML") && role != "MathMLMath" => Shown::Through,
        other => Shown::As(plain(other)),
    }
}

/// The word that agents know for a role of Chromium's.
pub(in crate::browser::page) fn plain(role: &str) -> &str {
    match role {
        "image" | "SvgRoot" => "img",
        "Iframe" | "IframePresentational" => "iframe",
        "MathMLMath" => "math",
        "DisclosureTriangle" | "DisclosureTriangleGrouped" => "summary",
        "MenuListOption" => "option",
        "DescriptionList" => "list",
        "DescriptionListTerm" => "term",
        "DescriptionListDetail" => "definition",
        "Date" | "DateTime" | "InputTime" | "ColorWell" => "textbox",
        other => other,
    }
}

/// Whether an agent may want to act on it; the rest would only cost space.
fn referable(node: &Node, role: &str) -> bool {
    !matches!(
        role,
        "paragraph"
            | "list"
            | "listitem"
            | "row"
            | "separator"
            | "strong"
            | "emphasis"
            | "code"
            | "time"
            | "term"
            | "definition"
            | "mark"
            | "superscript"
            | "subscript"
            | "deletion"
            | "insertion"
            | "caption"
            | "figure"
            | "blockquote"
            | "group"
            | "generic"
    ) || node.flag("focusable")
}

fn value_of(node: &Node, role: &str) -> String {
    let value = node.value.as_ref().map(Scalar::text).unwrap_or_default();
    let name = node.name.as_ref().map(Scalar::as_str).unwrap_or_default();
    if value.is_empty() || value == name || matches!(role, "link" | "option" | "heading") {
        return String::new();
    }
    // Chromium shows a password as dots, one a letter: even their number says too much.
    if is_mask(&value) {
        return HIDDEN.into();
    }
    cut(&squeeze(&value))
}

fn is_mask(text: &str) -> bool {
    text.chars().all(|letter| matches!(letter, '\u{2022}' | '\u{25cf}' | '\u{25a0}' | '\u{25e6}' | '*'))
}

/// Whether a field shows dots in place of its value, which the tree tells all the same.
fn masked(tree: &FrameTree, places: &HashMap<&str, usize>, field: &Node) -> bool {
    let mut inside = field;
    for _ in 0..MASK_DEPTH_MAX {
        let first = inside.child_ids.first().and_then(|id| places.get(id.as_str()));
        let Some(child) = first.and_then(|at| tree.nodes.get(*at)) else { return false };
        let text = child.name.as_ref().map(Scalar::as_str).unwrap_or_default();
        if child.role() == "StaticText" {
            return !text.is_empty() && is_mask(text);
        }
        inside = child;
    }
    false
}

fn states(node: &Node) -> String {
    let mut out = String::new();
    for (property, word) in [("checked", "checked"), ("pressed", "pressed")] {
        match node
            .property(property)
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .as_deref()
        {
            Some("true") => {
                let _ = write!(out, " [{word}]");
            }
            Some("mixed") => {
                let _ = write!(out, " [{word}=mixed]");
            }
            _ => {}
        }
    }
    for word in ["disabled", "selected"] {
        if node.flag(word) {
            let _ = write!(out, " [{word}]");
        }
    }
    match node.property("expanded") {
        Some(Value::Bool(true)) => out.push_str(" [expanded]"),
        Some(Value::Bool(false)) if node.role() != "Iframe" => out.push_str(" [collapsed]"),
        _ => {}
    }
    if node.flag("focused") && node.role() != "RootWebArea" {
        out.push_str(" [focused]");
    }
    if let Some(level) = node.property("level").and_then(Value::as_u64).filter(|_| node.role() == "heading") {
        let _ = write!(out, " [level={level}]");
    }
    out
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::browser::page::ax::Nodes;

    fn tree(nodes: &str) -> FrameTree {
        let Nodes { nodes } = serde_json::from_str(&format!(r#"{{"nodes":[{nodes}]}}"#)).expect("nodes");
        FrameTree { frame_id: FrameId::from("f"), loader_id: Arc::from("l"), nodes }
    }

    fn text(nodes: &str) -> String {
        let options = SnapshotOptions::default();
        render(&[tree(nodes)], &options, &|_, _| None, &mut |_, backend| u32::try_from(backend).unwrap_or(0)).text
    }

    const ROOT: &str =
        r#"{"nodeId":"1","role":{"value":"RootWebArea"},"childIds":["2","3","4","9"],"backendDOMNodeId":1}"#;

    #[test]
    fn names_texts_values_and_states_become_short_lines() {
        let shown = text(&format!(
            r#"{ROOT},
            {{"nodeId":"2","role":{{"value":"button"}},"name":{{"value":"Say \"hi\""}},"backendDOMNodeId":2,"childIds":["5"],
              "properties":[{{"name":"disabled","value":{{"value":true}}}}]}},
            {{"nodeId":"5","role":{{"value":"StaticText"}},"name":{{"value":"Say \"hi\""}}}},
            {{"nodeId":"3","ignored":true,"role":{{"value":"none"}},"childIds":["6"]}},
            {{"nodeId":"6","role":{{"value":"paragraph"}},"childIds":["7","8"]}},
            {{"nodeId":"7","role":{{"value":"StaticText"}},"name":{{"value":"key: "}}}},
            {{"nodeId":"8","role":{{"value":"StaticText"}},"name":{{"value":"value"}}}},
            {{"nodeId":"4","role":{{"value":"textbox"}},"name":{{"value":"Pin"}},"value":{{"value":"\u2022\u2022"}},"backendDOMNodeId":4}}"#
        ));
        assert_eq!(
            shown,
            "- button \"Say \\\"hi\\\"\" [disabled] [ref=e2]\n- paragraph: \"key: value\"\n- textbox \"Pin\" [ref=e4]: \"[hidden]\"\n"
        );
    }

    #[test]
    fn hostile_trees_end() {
        let circle = r#"{"nodeId":"2","role":{"value":"list"},"childIds":["2","3","1","none"]},{"nodeId":"3"},{"childIds":["3"]}"#;
        assert_eq!(text(&format!("{ROOT},{circle}")), "- list\n");
        assert_eq!(text(""), "");
        let depth = 50_000;
        let link = |n: usize| format!(r#"{{"nodeId":"{n}","role":{{"value":"list"}},"childIds":["{}"]}}"#, n + 1);
        let deep: Vec<String> = (0..depth).map(link).collect();
        let shown = text(&deep.join(","));
        assert_eq!(shown.lines().count(), depth);
        assert!(shown.len() < depth * 140, "{}", shown.len());
    }
}
