//! What is shown of a tree when not all of it is asked for: so many levels, or only what can be acted on.

use super::SnapshotOptions;
use super::line::Line;

/// Lines that keep their place around what can be acted on, since they say what it is for.
const HOLDERS: [&str; 22] = [
    "alertdialog",
    "article",
    "banner",
    "complementary",
    "contentinfo",
    "dialog",
    "form",
    "grid",
    "group",
    "iframe",
    "listbox",
    "menu",
    "menubar",
    "navigation",
    "radiogroup",
    "region",
    "search",
    "table",
    "tablist",
    "tabpanel",
    "toolbar",
    "tree",
];

/// Drops lines that are not asked for; gives how many.
pub(super) fn select(lines: &mut [Line], options: &SnapshotOptions) -> u64 {
    let before = shown(lines);
    if options.interactive_only {
        keep_interactive(lines);
    }
    if let Some(depth_max) = options.depth_max {
        for line in lines.iter_mut() {
            line.gone |= line.depth > depth_max;
        }
    }
    before - shown(lines)
}

fn shown(lines: &[Line]) -> u64 {
    lines.iter().filter(|line| !line.gone).count() as u64
}

fn keep_interactive(lines: &mut [Line]) {
    // From the end: a line that holds others comes before them. `wanted` is the depth below which
    // something kept still looks for what holds it.
    let mut wanted: Option<usize> = None;
    for line in lines.iter_mut().rev().filter(|line| !line.gone) {
        let above = wanted.is_some_and(|depth| line.depth < depth);
        if above {
            wanted = Some(line.depth);
        }
        let holder = above && HOLDERS.contains(&line.role.as_str()) && (!line.name.is_empty() || line.role == "iframe");
        line.gone = !(line.interactive || holder);
        if line.interactive {
            wanted = Some(wanted.map_or(line.depth, |depth| depth.max(line.depth)));
        }
    }
    // What is left moves up to the line that holds it now.
    let mut open: Vec<usize> = Vec::new();
    for line in lines {
        while open.last().is_some_and(|depth| *depth >= line.depth) {
            open.pop();
        }
        // What is gone still ends what stood before it.
        if line.gone {
            continue;
        }
        let depth = std::mem::replace(&mut line.depth, open.len());
        open.push(depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(depth: usize, role: &str, name: &str, interactive: bool) -> Line {
        Line { depth, role: role.into(), name: name.into(), interactive, ..Line::default() }
    }

    #[test]
    fn what_can_be_acted_on_stays_with_what_holds_it() {
        let mut lines = vec![
            line(0, "heading", "Shop", false),
            line(0, "form", "Order", false),
            line(1, "list", "", false),
            line(2, "listitem", "", false),
            line(3, "button", "One", true),
            line(2, "listitem", "", false),
            line(1, "button", "Two", true),
            line(0, "navigation", "Empty", false),
            line(1, "paragraph", "x", false),
            line(0, "region", "", false),
            line(1, "link", "Three", true),
        ];
        let options = SnapshotOptions { interactive_only: true, ..SnapshotOptions::default() };
        assert_eq!(select(&mut lines, &options), 7);
        let left: Vec<(usize, &str)> =
            lines.iter().filter(|line| !line.gone).map(|line| (line.depth, line.name.as_str())).collect();
        assert_eq!(left, [(0, "Order"), (1, "One"), (1, "Two"), (0, "Three")]);
    }
}
