//! `console.table` as a table: one line per row, cells apart by bars, columns in the order they are met.

use super::preview::{Preview, Property, write_preview, write_property};

/// Columns of one table; the browser shows fewer members of one row, but each row may have others.
const COLUMNS_MAX: usize = 64;
const SEPARATOR: &str = " | ";

struct Line<'a> {
    index: String,
    /// The row's members, or none when the row is a value by itself.
    members: &'a [Property],
    value: Option<String>,
    overflow: bool,
}

/// None when there are no rows: then it is a value like any other.
pub(super) fn table(data: &Preview) -> Option<String> {
    let lines = lines(data);
    if lines.is_empty() {
        return None;
    }
    let (mut columns, mut overflow): (Vec<&str>, bool) = (Vec::new(), false);
    for line in &lines {
        overflow |= line.overflow;
        for member in line.members.iter().filter(|member| !columns.contains(&member.name.as_str())).collect::<Vec<_>>()
        {
            if columns.len() < COLUMNS_MAX {
                columns.push(&member.name);
            } else {
                overflow = true;
            }
        }
    }
    let mut out = String::from("(index)");
    let values = lines.iter().any(|line| line.value.is_some());
    for column in columns.iter().copied().chain(values.then_some("Value")).chain(overflow.then_some("...")) {
        out.push_str(SEPARATOR);
        out.push_str(column);
    }
    for line in &lines {
        out.push('\n');
        out.push_str(&line.index);
        for column in &columns {
            out.push_str(SEPARATOR);
            if let Some(member) = line.members.iter().find(|member| member.name == *column) {
                write_property(&mut out, member, 0);
            }
        }
        if values {
            out.push_str(SEPARATOR);
            out.push_str(line.value.as_deref().unwrap_or_default());
        }
    }
    if data.overflow {
        out.push_str("\n...");
    }
    Some(out)
}

fn lines(data: &Preview) -> Vec<Line<'_>> {
    let of_entries = data.entries.iter().enumerate().map(|(position, entry)| {
        let mut index = String::new();
        match &entry.key {
            Some(key) => write_preview(&mut index, key, 0),
            None => index = position.to_string(),
        }
        line(index, Some(&entry.value), || written(|out| write_preview(out, &entry.value, 0)))
    });
    if !data.entries.is_empty() {
        return of_entries.collect();
    }
    let of_properties = data.properties.iter().map(|property| {
        let value = || written(|out| write_property(out, property, 0));
        line(property.name.clone(), property.value_preview.as_ref(), value)
    });
    of_properties.collect()
}

fn line<'a>(index: String, row: Option<&'a Preview>, value: impl FnOnce() -> String) -> Line<'a> {
    match row.filter(|row| !row.properties.is_empty()) {
        Some(row) => Line { index, members: &row.properties, value: None, overflow: row.overflow },
        None => Line { index, members: &[], value: Some(value()), overflow: false },
    }
}

fn written(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    out
}
