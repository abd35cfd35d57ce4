//! One line of a snapshot, before it is text, and the rules that make a tree of lines short.

/// Lines inside a line that the rules look at; one that holds more stays as it is. Keeps a deep tree
/// from costing the square of its size.
const INSIDE_MAX: usize = 64;

/// An element or a text, in document order.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) depth: usize,
    /// Empty for plain text.
    pub(super) role: String,
    pub(super) name: String,
    pub(super) reference: Option<u32>,
    pub(super) states: String,
    /// The value of a field, or the text of a line that holds nothing else.
    pub(super) text: String,
    /// The node whose child a text is; texts of one node belong together.
    pub(super) parent: (usize, usize),
    /// Something that an agent can act on.
    pub(super) interactive: bool,
    /// Dropped by a rule.
    pub(super) gone: bool,
}

impl Line {
    fn is_text(&self) -> bool {
        self.role.is_empty()
    }
}

/// Joins the texts of one node, then drops texts that a name already says and moves a lone text up to
/// the line that holds it.
pub(super) fn shorten(lines: &mut [Line]) {
    join_texts(lines);
    for at in 0..lines.len() {
        if lines[at].is_text() || lines[at].gone {
            continue;
        }
        let depth = lines[at].depth;
        let limit = lines.len().min(at + 1 + INSIDE_MAX);
        let end = (at + 1..limit).find(|next| lines[*next].depth <= depth).unwrap_or(limit);
        if end == limit && limit < lines.len() && lines[limit].depth > depth {
            continue;
        }
        let children: Vec<usize> = (at + 1..end).filter(|child| !lines[*child].gone).collect();
        let texts: Vec<usize> = children.iter().copied().filter(|child| lines[*child].is_text()).collect();
        if texts.is_empty() {
            continue;
        }
        let said = squeeze(texts.iter().map(|text| lines[*text].text.as_str()).collect::<Vec<_>>().join(" ").as_str());
        let name = squeeze(&lines[at].name);
        let without_spaces = |text: &str| text.replace(' ', "");
        if !name.is_empty() && without_spaces(&said) == without_spaces(&name) {
            for text in texts {
                lines[text].gone = true;
            }
        } else if children.len() == 1 && lines[at].text.is_empty() {
            lines[at].text = said;
            lines[texts[0]].gone = true;
        }
    }
}

fn join_texts(lines: &mut [Line]) {
    let mut last: Option<usize> = None;
    for at in 0..lines.len() {
        if !lines[at].is_text() {
            last = None;
            continue;
        }
        match last {
            Some(first) if lines[first].parent == lines[at].parent && lines[first].depth == lines[at].depth => {
                let text = std::mem::take(&mut lines[at].text);
                lines[first].text.push_str(&text);
                lines[at].gone = true;
            }
            _ => last = Some(at),
        }
    }
    for line in lines.iter_mut().filter(|line| line.is_text()) {
        line.text = squeeze(&line.text);
        line.gone |= line.text.is_empty();
    }
}

/// `text` with every run of white space as one space and none at the ends.
pub(in crate::browser::page) fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
