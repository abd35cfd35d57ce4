//! What long commands show while they work: progress where somebody looks, and nothing anywhere else.

use serde_json::Value;

use super::readers;
use crate::support::{DataDir, program};

/// Enough for a command to take a while: about a second in a debug build, where progress comes every 250 ms.
const EVENTS: u64 = 30_000;

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_for_terminals_and_leaves_the_output_alone() {
    let data = DataDir::fresh();
    super::grow(data.path(), EVENTS).await;
    let directory = data.path().display().to_string();
    let out = data.path().join("exports").join("a.csv").display().to_string();
    std::fs::create_dir_all(data.path().join("exports")).expect("a directory");
    let line = ["export", "--data-dir", &directory, "--format", "csv", "--out", &out, "--json"];
    let path = program::path().display().to_string();

    let found = readers::on_terminal(&[&[path.as_str()], &line[..]].concat()).await;
    assert_eq!(found["code"], 0, "{found:#}");
    let shown = found["stderr"].as_str().expect("text");
    let percents: Vec<u64> = shown.split('\r').filter_map(percent).collect();
    assert!(
        !percents.is_empty() && percents.is_sorted() && percents.iter().all(|percent| *percent <= 100),
        "{shown:?}"
    );
    assert_eq!(shown.rsplit('\r').nth(1).map(str::trim), Some(""), "the line is cleared in the end: {shown:?}");
    assert!(!shown.contains('\n'), "it is one line: {shown:?}");
    let told: Value = serde_json::from_str(found["stdout"].as_str().expect("text")).expect("JSON alone");
    assert!(told["events"].as_u64() >= Some(EVENTS), "{told:#}");

    let found = program::run(&line).await;
    assert_eq!(String::from_utf8_lossy(&found.stderr), "", "nobody looks, so nothing is shown");
    let again: Value = serde_json::from_slice(&found.stdout).expect("JSON alone");
    assert_eq!(again, told);
}

fn percent(text: &str) -> Option<u64> {
    text.split_once('%')?.0.trim().parse().ok()
}
