//! D06: a file of the log that was deleted, emptied or put back from an older copy is refused by name and
//! numbers, unless nothing of what was acknowledged is missing; what is derived is made again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use storage::log::Reader;

use super::sample::{self, Sample};
use crate::damage::{EXIT_DAMAGED, refused};
use crate::support::check::Check;
use crate::support::{DataDir, Options, Server, program, walk};

/// A directory that went on for a while after it was copied.
async fn older_and_newer() -> (Sample, DataDir) {
    let older = Sample::make().await;
    let newer = older.copy();
    let server = Server::start(Options::stdio().on(&newer)).await;
    let session_id = server.launch().await;
    server.ok("evaluate", json!({"session_id": session_id, "expression": "console.log('newer'); 1"})).await;
    server.stop().await;
    (older, newer)
}

fn copy_of(data: &DataDir) -> DataDir {
    let copy = DataDir::fresh();
    sample::copy_into(data.path(), copy.path());
    copy
}

/// Segments that hold, oldest first.
fn segments(data: &DataDir) -> Vec<PathBuf> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "seg");
    data.files().into_iter().filter(is_segment).collect()
}

/// The numbers in what a refusal says, of which the last two are the range.
fn range(said: &str) -> (u64, u64) {
    let (_, rest) = said.split_once("sequence ").unwrap_or_else(|| panic!("no sequence is named: {said}"));
    let numbers: Vec<u64> = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

/// What is done to the file at `path`, when there is an older copy of it or another one of its kind.
fn harm(how: &str, path: &Path, other: &Path) {
    match how {
        "deleted" => fs::remove_file(path).expect("it is deleted"),
        "emptied" => fs::write(path, "").expect("it is emptied"),
        _ => assert!(fs::copy(other, path).expect("it is replaced") > 0),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_log_that_is_gone_or_older_is_refused_by_numbers() {
    let mut check = Check::begin("D06", "segments and mark deleted, emptied, put back from older copies");
    let (older, newer) = older_and_newer().await;
    let names = segments(&newer);
    let (last, middle) = (names.len() - 1, names.len() / 2);
    let mark = newer.path().join("log/mark");
    let last_seq = Reader::open(&newer.path().join("log")).and_then(|reader| reader.durable()).expect("whole").last_seq;
    assert!(last_seq > older.last_seq);
    let below = |path: &Path| path.strip_prefix(newer.path()).expect("it lies below").to_owned();
    for (what, path, other) in [
        ("last segment", &names[last], older.data.path().join(below(&names[last]))),
        ("middle segment", &names[middle], names[middle + 1].clone()),
        ("mark", &mark, PathBuf::new()),
    ] {
        for how in ["deleted", "emptied", "replaced"] {
            if how == "replaced" && other.as_os_str().is_empty() {
                continue;
            }
            let data = copy_of(&newer);
            harm(how, &data.path().join(below(path)), &other);
            let said = refused(&data).await;
            let (first, last) = range(&said);
            assert!(first <= last && last <= last_seq, "{what} {how}: {said}");
            check.tried(1);
        }
    }
    check.figure("refused by numbers", 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_mark_and_derived_files_that_are_gone_cost_nothing() {
    let mut check = Check::begin("D06", "older mark; index and artifacts' own files deleted, emptied");
    let (older, newer) = older_and_newer().await;
    let before = Reader::open(&newer.path().join("log")).map(|reader| sample::read(&reader)).expect("it is whole");
    for how in ["older mark", "no index", "emptied index"] {
        let data = copy_of(&newer);
        let index = data.path().join("index");
        match how {
            "older mark" => harm(how, &data.path().join("log/mark"), &older.data.path().join("log/mark")),
            "no index" => fs::remove_dir_all(&index).expect("it is deleted"),
            _ => crate::support::data::files_below(&index).iter().for_each(|file| harm("emptied", file, file)),
        }
        let server = Server::start(Options::stdio().on(&data)).await;
        let events = walk::events(&server, &older.session_id).await;
        assert!(events.len() > 50, "{how}");
        server.stop().await;
        let after = Reader::open(&data.path().join("log")).map(|reader| sample::read(&reader)).expect("it is whole");
        let differs = before.0.iter().find(|(seq, digest)| after.0.get(seq) != Some(digest));
        assert_eq!(differs, None, "{how}");
        check.tried(1);
    }
    check.figure("lost", 0);
}

/// What `pageledger verify` ends with, and what it says.
async fn verified(data: &DataDir, more: &[&str]) -> (Option<i32>, String) {
    let directory = data.path().display().to_string();
    let output = program::run(&[&["verify", &directory], more].concat()).await;
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_that_are_gone_or_older_are_found_and_so_is_a_whole_older_directory() {
    let mut check = Check::begin("D06", "checkpoints and trail deleted, emptied, older; whole directory older");
    let (older, newer) = older_and_newer().await;
    assert_eq!(verified(&newer, &[]).await.0, Some(0), "what nobody harmed is sound");
    for name in ["audit/checkpoints.jws", "audit/trail"] {
        for how in ["deleted", "emptied", "replaced"] {
            let data = copy_of(&newer);
            harm(how, &data.path().join(name), &older.data.path().join(name));
            let (code, said) = verified(&data, &[]).await;
            assert_eq!(code, Some(EXIT_DAMAGED), "{name} {how}: {said}");
            check.tried(1);
        }
    }
    // All of it together is as it once was: only what was kept elsewhere tells.
    let kept = program::run(&["audit", "checkpoint", "--data-dir", &newer.path().display().to_string()]).await;
    let kept = String::from_utf8(kept.stdout).expect("a checkpoint is text");
    assert_eq!(verified(&older.data, &[]).await.0, Some(0));
    let (code, said) = verified(&older.data, &["--from", kept.trim()]).await;
    assert_eq!(code, Some(EXIT_DAMAGED), "{said}");
    let first_lost = (older.last_seq + 1).to_string();
    assert!(said.contains(&first_lost), "the first number that is gone is {first_lost}: {said}");
    check.tried(1);
    check.figure("found", 7);
}
