//! The shape of the code, held by a test: edges between crates, homes of third-party names, the size of
//! files and functions, and documents that are made from the program's own lists.

use std::path::{Path, PathBuf};

use pageledger::docs;

use crate::support::data::files_below;

/// A file that may be longer than the rest, and why.
const LONG_FILES: &[(&str, &str)] = &[
    ("storage/src/event/catalog.rs", "one flat list of event kinds"),
    ("src/fault/catalog.rs", "one flat list of faults"),
];
/// A function that may be longer than the rest, and why.
const LONG_FUNCTIONS: &[(&str, &str, &str)] =
    &[("exporters/src/metrics/fold.rs", "fn kind(", "one arm a kind; the compiler checks that none is forgotten")];
const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

/// Names of other people's crates, as code writes them, and the only places that may.
const HOMES: &[(&str, &[&str])] = &[
    ("rmcp::", &["src/transport/"]),
    ("chromiumoxide_", &["src/browser/chromium/"]),
    ("sled::", &["storage/src/index/"]),
    ("ed25519_dalek", &["storage/src/audit/key.rs"]),
    ("arrow_", &["exporters/src/"]),
    ("parquet::arrow", &["exporters/src/"]),
    ("parquet::file", &["exporters/src/"]),
    ("object_store", &["exporters/src/target/object.rs"]),
    ("use csv::", &["exporters/src/csv.rs"]),
    ("metrics_exporter_prometheus", &["exporters/src/metrics/"]),
    ("clap::", &["src/config/"]),
    ("url::Url", &["src/blocklist.rs"]),
    ("axum::", &["src/transport/"]),
    ("rustix::fs", &["storage/src/disk/"]),
    ("std::env::", &["src/config/", "src/browser/chromium/flags.rs", "src/main.rs"]),
    // The log names its own files, erasures stand in for names by hashes; samples are for tests.
    (
        "Clean::redacted",
        &[
            "src/redact.rs",
            "src/redact/",
            "storage/src/audit/arrears.rs",
            "storage/src/event/",
            "storage/src/log/opening.rs",
            "storage/src/upkeep/",
            "storage/src/audit/scribe.rs",
            "exporters/src/sample.rs",
        ],
    ),
    ("Json::redacted", &["src/redact.rs", "src/redact/", "storage/src/event/", "exporters/src/sample.rs"]),
    // Another process and sled's file lock cannot wake anybody; both say so where they wait.
    ("std::thread::sleep", &["src/commands/tail.rs", "storage/src/audit/verify/mod.rs", "storage/src/index/store.rs"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file with its path from the root, of the directories named.
fn sources(directories: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for directory in directories {
        let before = found.len();
        for path in files_below(&root().join(directory)) {
            if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).expect("below the root").display().to_string();
                found.push((name, std::fs::read_to_string(&path).expect("a source file")));
            }
        }
        assert!(found.len() > before, "no sources in {directory}");
    }
    found
}

const PRODUCT: [&str; 3] = ["src", "storage/src", "exporters/src"];
const EVERYTHING: [&str; 6] = ["src", "storage/src", "exporters/src", "tests", "benches", "storage/benches"];

/// The text of a file up to its tests: those may reach further.
fn without_tests<'a>(name: &str, text: &'a str) -> &'a str {
    let is_test = |part: &str| part == "tests" || part == "tests.rs";
    if Path::new(name).iter().any(|part| part.to_str().is_some_and(is_test)) {
        return "";
    }
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

#[test]
fn crates_know_only_who_they_should() {
    let allowed: [(&str, &[&str]); 2] = [("storage", &[]), ("exporters", &["storage"])];
    for (name, allowed) in allowed {
        let text = std::fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("it is TOML");
        let mut checked = 0;
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for dependency in
                manifest.get(table).and_then(toml::Value::as_table).into_iter().flat_map(|table| table.keys())
            {
                let ours =
                    ["storage", "exporters", "pageledger"].contains(&dependency.trim_start_matches("pageledger-"));
                assert!(!ours || allowed.contains(&dependency.as_str()), "{name} must not know {dependency}");
                checked += 1;
            }
        }
        assert!(checked > 3, "{name} has only {checked} dependencies");
    }
}

#[test]
fn every_name_has_its_home() {
    let sources = sources(&PRODUCT);
    let mut astray = Vec::new();
    for (name, homes) in HOMES {
        let mut at_home = 0;
        for (file, text) in &sources {
            let own = without_tests(file, text);
            let line = own.lines().position(|line| line.contains(name) && !line.trim_start().starts_with("//"));
            let Some(line) = line else { continue };
            if homes.iter().any(|home| file.starts_with(home)) {
                at_home += 1;
            } else {
                astray.push(format!("{file}:{}: {name} is not at home here", line + 1));
            }
        }
        assert!(at_home > 0, "nobody uses {name}: the rule is out of date");
    }
    assert_eq!(astray, Vec::<String>::new());
}

#[test]
fn files_and_functions_stay_small() {
    let sources = sources(&EVERYTHING);
    for (file, _) in LONG_FILES {
        assert!(sources.iter().any(|(name, _)| name == file), "{file} is excepted and not there");
    }
    let mut problems = Vec::new();
    for (file, text) in &sources {
        let said = text.lines().find(|line| !line.starts_with("#![allow"));
        if !said.is_some_and(|line| line.starts_with("//! ")) {
            problems.push(format!("{file} does not say why it exists"));
        }
        let lines = text.lines().count();
        let excepted = LONG_FILES.iter().any(|(name, _)| name == file);
        if lines > FILE_LINES_MAX && !excepted {
            problems.push(format!("{file} has {lines} lines"));
        }
        let excepted =
            |name: &str| LONG_FUNCTIONS.iter().any(|(home, begin, _)| home == file && name.starts_with(begin));
        let long = functions(text).into_iter().filter(|(name, lines)| *lines > FUNCTION_LINES_MAX && !excepted(name));
        problems.extend(long.map(|(name, lines)| format!("{file}: {name} has {lines} lines")));
    }
    assert_eq!(problems, Vec::<String>::new());
    assert!(functions(include_str!("tidy.rs")).len() > 8, "functions are found");
}

/// Each function's first line and how many it has, by the indentation that rustfmt gives.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let begins = [
            "fn ",
            "pub fn ",
            "async fn ",
            "pub async fn ",
            "pub(super) fn ",
            "pub(super) async fn ",
            "pub(crate) fn ",
            "const fn ",
            "pub const fn ",
        ];
        if !begins.iter().any(|begin| trimmed.starts_with(begin)) {
            continue;
        }
        let end = format!("{}}}", " ".repeat(line.len() - trimmed.len()));
        let length = lines[at..].iter().position(|line| *line == end);
        found.extend(length.map(|length| (trimmed, length + 1)));
    }
    found
}

#[test]
fn texts_are_plain_ascii() {
    let mut checked = 0;
    for directory in ["src", "storage", "exporters", "tests", "benches", "dashboards", ".ci"] {
        for path in files_below(&root().join(directory)) {
            check_ascii(&path);
            checked += 1;
        }
    }
    for name in ["README.md", "CHANGELOG.md", "Cargo.toml", "Makefile"] {
        check_ascii(&root().join(name));
    }
    assert!(checked > 100, "only {checked} files");
}

fn check_ascii(path: &PathBuf) {
    let bytes = std::fs::read(path).expect("a file");
    // The contract's data came as it is.
    if path.ends_with("tests/fixtures/contract/tools.json") {
        return;
    }
    if path.extension().is_some_and(|extension| extension == "bin") {
        return;
    }
    // So did the data directories of released formats.
    if path.iter().any(|part| part.to_str().is_some_and(|part| part.starts_with("format-"))) {
        return;
    }
    let at = bytes.iter().position(|byte| !byte.is_ascii());
    let line = at.map(|at| bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1);
    assert_eq!(line, None, "{} is not plain ASCII at this line", path.display());
}

#[test]
fn the_map_shows_what_is_there() {
    let map = std::fs::read_to_string(root().join("src/ARCHITECTURE.md")).expect("the map");
    let mut checked = 0;
    for name in map.split('`').skip(1).step_by(2) {
        let is_path = name.contains('/') && !name.starts_with('/') && !name.contains(' ');
        if is_path {
            assert!(root().join(name).exists(), "the map names {name}");
            checked += 1;
        }
    }
    assert!(checked > 10, "the map names only {checked} places");
    for module in ["config", "tools", "session", "browser", "envelope", "transport", "fault", "contract"] {
        assert!(map.contains(&format!("`src/{module}")), "the map leaves out src/{module}");
    }
}

/// `UPDATE_DOCS=1` writes the README's tables anew.
#[test]
fn the_readme_is_made_from_the_programs_own_lists() {
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).expect("the README");
    let fresh = docs::refreshed(&readme).unwrap_or_else(|section| panic!("the README has no markers for {section}"));
    assert!(fresh.contains("`launch_session`") && fresh.contains("`console.message`"), "the tables are filled");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, fresh).expect("the README can be written");
    } else {
        assert!(readme == fresh, "the README's tables are stale: run the tests once with UPDATE_DOCS=1");
    }
}
