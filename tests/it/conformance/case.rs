//! The cases of tests/fixtures/conformance: a page, what is done to it, and what must come of it.
//!
//! They are plain data so that benches/conformance can run the same ones against another driver, which
//! shows that what they expect is right.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// One behaviour. What its page and files hold is the site's to know.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The file it stands in.
    #[serde(skip)]
    pub group: String,
    /// In what the peer differs, for the peer's runner.
    #[serde(rename = "peer")]
    _peer: Option<String>,
    /// What is known to be missing; the case is run and may fail.
    pub awaits: Option<String>,
    #[serde(rename = "page")]
    _page: Value,
    #[serde(default, rename = "files")]
    _files: BTreeMap<String, Value>,
    /// Files to upload, by name.
    #[serde(default)]
    pub uploads: BTreeMap<String, String>,
    pub steps: Vec<Step>,
    /// What the page must have told.
    pub said: Option<Vec<String>>,
    /// How many tabs there must be.
    pub tabs: Option<usize>,
    #[serde(default)]
    pub expect: Vec<Expectation>,
}

/// One call. It succeeds unless a fault is named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub tool: String,
    pub arguments: Value,
    pub fault: Option<String>,
    /// A part of the fault's reason.
    pub reason: Option<String>,
    /// How many elements the fault must have counted.
    pub count: Option<u64>,
    /// Fields of the result.
    #[serde(default)]
    pub gives: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    pub evaluate: String,
    pub equals: Value,
}

impl Case {
    /// Every case, in the order of the files.
    ///
    /// # Panics
    /// When a file is not as it should be.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/conformance");
        let entries = std::fs::read_dir(&fixtures).expect("the cases are there").flatten();
        let mut paths: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        paths.sort();
        let mut all = Vec::new();
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a file of cases");
            let cases: Vec<Self> =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let group = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.extend(cases.into_iter().map(|case| Self { group: group.clone(), ..case }));
        }
        all
    }

    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.group, self.name)
    }
}
