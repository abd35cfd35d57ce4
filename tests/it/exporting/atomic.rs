//! An export and its manifest appear together or not at all, whatever the disk or a kill does.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{DataDir, SmallDisk, program};

/// EX_IOERR of sysexits(3).
const EXIT_IO: i32 = 74;
/// What a file system in memory gives room by.
const PAGE_BYTES: u64 = 4_096;

fn line(data: &DataDir, out: &Path) -> Vec<String> {
    let (data, out) = (data.path().display().to_string(), out.display().to_string());
    ["export", "--data-dir", &data, "--format", "ndjson", "--out", &out, "--json"].map(str::to_owned).to_vec()
}

/// The exit code, and what was told on standard output.
async fn export(data: &DataDir, out: &Path) -> (Option<i32>, Value) {
    let output = program::run_with(&line(data, out), &[]).await;
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Events that the manifest tells of, which must be of the very file.
fn told_of(out: &Path) -> Option<u64> {
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest(out)).ok()?).expect("JSON");
    let bytes = std::fs::read(out).expect("a manifest has its file");
    assert_eq!(
        manifest["sha256"],
        storage::audit::hex(&storage::audit::digest(&bytes)),
        "the manifest is of this file"
    );
    manifest["events"]["written"].as_u64()
}

fn manifest(out: &Path) -> PathBuf {
    PathBuf::from(format!("{}.manifest.json", out.display()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_with_room_for_the_file_alone_keeps_the_export_before() {
    let (data, disk, elsewhere) = (DataDir::fresh(), SmallDisk::tmpfs(8), tempfile::tempdir().expect("a directory"));
    let directory = disk.data();
    std::fs::create_dir(&directory).expect("a directory");
    let out = directory.join("a.ndjson");
    super::grow(data.path(), 100).await;
    assert_eq!(export(&data, &out).await.0, Some(0));
    let before = told_of(&out);
    assert!(before >= Some(100));

    super::grow(data.path(), 1_000).await;
    let (_, whole) = export(&data, &elsewhere.path().join("a.ndjson")).await;
    let bytes = whole["bytes"].as_u64().expect("a length");
    disk.leave_free(bytes.next_multiple_of(PAGE_BYTES));
    let (code, _) = export(&data, &out).await;
    assert_eq!(code, Some(EXIT_IO), "the file has room, its manifest has none");
    assert_eq!(told_of(&out), before, "what was there still is, whole");
    disk.leave_free(bytes.next_multiple_of(PAGE_BYTES) - PAGE_BYTES);
    assert_eq!(export(&data, &out).await.0, Some(EXIT_IO), "not even the file has room");
    assert_eq!(told_of(&out), before);
    assert_eq!(names_in(&directory), ["a.ndjson", "a.ndjson.manifest.json"], "nothing is left behind");
    disk.empty();
    assert_eq!(export(&data, &out).await.0, Some(0));
    assert!(told_of(&out) > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_step_it_is_whole_or_seen_not_to_be() {
    let (data, directory) = (DataDir::fresh(), tempfile::tempdir().expect("a directory"));
    let out = directory.path().join("a.ndjson");
    super::grow(data.path(), 100).await;
    let mut told = Vec::new();
    for (call, when) in [("fsync", 1), ("unlink", 1), ("rename", 1), ("fsync", 2), ("rename", 2), ("fsync", 4)] {
        // A new name is linked, one that is taken is renamed: begin with an export that is there.
        assert_eq!(export(&data, &out).await.0, Some(0));
        let before = told_of(&out);
        super::grow(data.path(), 100).await;
        assert!(killed(&data, &out, call, when).await, "{call} {when}: it is killed there");
        // Without a manifest it was not finished; with one it is the file of before, or all of the new one.
        let now = told_of(&out);
        told.push(now.map(|events| Some(events) > before));
        assert_eq!(export(&data, &out).await.0, Some(0), "{call} {when}: the next export is not in the way of it");
        assert!(told_of(&out) > before);
        assert_eq!(names_in(directory.path()), ["a.ndjson", "a.ndjson.manifest.json"], "{call} {when}");
    }
    assert_eq!(told, [Some(false), Some(false), None, Some(false), None, Some(true)]);
}

/// Whether the command died when it made this system call for the n-th time.
async fn killed(data: &DataDir, out: &Path, call: &str, when: u32) -> bool {
    let inject = format!("inject={call}:signal=KILL:when={when}");
    let mut command = tokio::process::Command::new("strace");
    command.args(["-f", "-o", "/dev/null", "-e"]).arg(format!("trace={call}")).args(["-e", &inject]);
    command.arg(program::path()).args(line(data, out)).kill_on_drop(true);
    let output = tokio::time::timeout(crate::support::LIMIT, command.output()).await.expect("it ends in time");
    use std::os::unix::process::ExitStatusExt as _;
    output.expect("strace is installed by .ci/setup").status.signal() == Some(9)
}
