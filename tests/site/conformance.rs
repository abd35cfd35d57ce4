//! The pages of the conformance cases, made from the same data that the runner against a peer serves.
//!
//! `/conformance/GROUP/CASE/` is the case's page, what follows is one of its files. Pages begin with the
//! prelude. Must stay the same in benches/conformance/site.mjs.

use std::path::Path;

use serde_json::Value;

use super::Shared;
use super::http::Answer;

/// The answer for a path below `/conformance/`.
pub(super) fn answer(path: &str, shared: &Shared) -> Answer {
    found(path).map_or_else(
        || Answer::new(404, "text/plain", "nothing here\n"),
        |(media_type, disposition, body)| {
            let home = format!("/conformance/{}", path.rsplit_once('/').unwrap_or_default().0);
            let body = body
                .replace("{{here}}", &format!("{}{home}", shared.origin))
                .replace("{{there}}", &format!("{}{home}", shared.other));
            let answer = Answer::new(200, &format!("{media_type}; charset=utf-8"), body);
            match disposition {
                Some(disposition) => answer.with("Content-Disposition", disposition),
                None => answer,
            }
        },
    )
}

/// Media type, disposition and text of what the data has under `path`.
fn found(path: &str) -> Option<(String, Option<String>, String)> {
    let mut parts = path.splitn(3, '/');
    let (group, name, file) = (parts.next()?, parts.next()?, parts.next()?);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/conformance");
    // Names come from our own data alone.
    let cases = std::fs::read_to_string(fixtures.join(format!("{group}.json"))).ok()?;
    let cases: Vec<Value> = serde_json::from_str(&cases).ok()?;
    let case = cases.iter().find(|case| case["name"] == name)?;
    let part = if file.is_empty() { &case["page"] } else { &case["files"][file] };
    let said = |key: &str| part[key].as_str().map(str::to_owned);
    match part {
        Value::Object(_) => Some((said("type")?, said("disposition"), said("body")?)),
        Value::Array(lines) => {
            let prelude = std::fs::read_to_string(fixtures.join("prelude.html")).ok()?;
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            Some(("text/html".to_owned(), None, prelude + &lines.join("\n")))
        }
        _ => None,
    }
}
