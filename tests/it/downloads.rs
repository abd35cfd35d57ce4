//! Files out of pages: however a download begins it is kept whole, named plainly, and its end is told.

use serde_json::{Value, json};

use crate::site::{self, Site};
use crate::support::data::files_below;
use crate::support::{Options, Server, SmallDisk, processes, wait_for, walk};

fn download(id: &str, selector: &str) -> Value {
    json!({"session_id": id, "trigger_selector": selector})
}

async fn failed(server: &Server, arguments: Value, reason: &str) {
    let fault = server.fault("download_file", arguments.clone(), "DOWNLOAD_FAILED").await;
    let told = fault["details"]["reason"].as_str().unwrap_or_default();
    assert!(told.contains(reason), "{arguments}: {fault}");
}

async fn rows(server: &Server, id: &str) -> Vec<Value> {
    walk::all(server, "list_downloads", "downloads", json!({"session_id": id}), 3).await
}

/// The rows once none of them goes on.
async fn ended(server: &Server, id: &str, count: usize) -> Vec<Value> {
    wait_for("the downloads to end", || async {
        let rows = rows(server, id).await;
        (rows.len() == count && rows.iter().all(|row| row["state"] != "in_progress")).then_some(rows)
    })
    .await
}

/// What `download_file` saved.
fn saved(data: &Value) -> Vec<u8> {
    let path = data["saved_to"].as_str().unwrap_or_else(|| panic!("it says where: {data}"));
    std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_saved_whole() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    let plain = site::pattern(4_096);
    let kinds: [(&str, &str, Vec<u8>); 10] = [
        ("#header", "header.bin", site::pattern(300_000)),
        ("#blob", "blob.txt", b"blob content".to_vec()),
        ("#data", "data.txt", b"data content".to_vec()),
        ("#navigation", "navigation.bin", plain.clone()),
        ("#window", "window.bin", plain.clone()),
        ("#blank", "blank.bin", plain.clone()),
        ("#frame", "frame.bin", plain.clone()),
        ("#form", "form.bin", plain),
        ("#link", "link.txt", Vec::new()),
        ("#late", "link.txt", Vec::new()),
    ];
    for (selector, name, content) in &kinds {
        let data = server.ok("download_file", download(&id, selector)).await;
        assert_eq!(data["suggested_name"], *name, "{selector}: {data}");
        let bytes = saved(&data);
        assert!(content.is_empty() && bytes.len() == 5_000 || bytes == *content, "{selector}: {} bytes", bytes.len());
        assert_eq!(data["size"], bytes.len(), "{selector}: {data}");
        let artifact = walk::artifact(&server, data["artifact"].as_str().expect("a handle"), 100_000).await;
        assert_eq!(artifact, bytes, "{selector}: what is kept is what was saved");
        let path = data["saved_to"].as_str().expect("a path");
        assert!(path.starts_with(&server.data_dir().path().display().to_string()), "{path}");
    }
    let clicks = json!({"session_id": id, "expression": "clicks"});
    assert_eq!(server.ok("evaluate", clicks).await["result"], 11, "one click each, and the one of #late itself");
    let names: Vec<_> = rows(&server, &id).await.iter().map(|row| row["file_name"].clone()).collect();
    assert_eq!(names, kinds.iter().map(|(_, name, _)| json!(name)).collect::<Vec<_>>());
    let tabs = wait_for("tabs that were only downloads to be gone", || async {
        let tabs = server.ok("list_tabs", json!({"session_id": id})).await;
        (tabs.as_array().map(Vec::len) == Some(1)).then_some(tabs)
    })
    .await;
    assert_eq!(tabs[0]["url"], site.url("/downloads.html"));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_complete_and_replies_tell_of_downloads() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    let clicked = server.ok("click", json!({"session_id": id, "selector": "#header"})).await;
    let arrived = json!({"session_id": id, "url": site.url("/download/straight.bin?bytes=10")});
    let arrived = server.ok("navigate", arrived).await;
    assert_eq!(
        (&arrived["download"], &arrived["url"]),
        (&json!(true), &json!(site.url("/downloads.html"))),
        "{arrived}"
    );
    let rows = ended(&server, &id, 2).await;
    assert_eq!(clicked["downloads"], json!([rows[0]["download_id"]]), "{clicked}");
    assert_eq!(arrived["download_id"], rows[1]["download_id"]);
    let content = site::pattern(10);
    let digest = server.ok("read_artifact", json!({"handle": rows[1]["artifact"]})).await;
    let row = &rows[1];
    assert_eq!(row["url"], site.url("/download/straight.bin?bytes=10"));
    assert_eq!(
        (&row["state"], &row["received_bytes"], &row["total_bytes"]),
        (&json!("finished"), &json!(10), &json!(10))
    );
    assert_eq!((&row["sha256"], &row["file_name"]), (&digest["sha256"], &json!("straight.bin")));
    assert!(row["ended_at"].is_string() && row["tab_id"].is_string() && row["operation_id"].is_string(), "{row}");
    assert_eq!(walk::artifact(&server, row["artifact"].as_str().expect("a handle"), 100).await, content);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_plain_whatever_was_suggested() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    let mut paths = Vec::new();
    for _ in 0..3 {
        let data = server.ok("download_file", download(&id, "#blob")).await;
        paths.push(data["saved_to"].as_str().expect("a path").rsplit('/').next().unwrap_or_default().to_owned());
    }
    assert_eq!(paths, ["blob.txt", "blob (1).txt", "blob (2).txt"], "the same name twice overwrites nothing");
    for name in ["own.txt", "below/own.txt", "own.txt"] {
        let mut named = download(&id, "#blob");
        named["save_as"] = name.into();
        let data = server.ok("download_file", named).await;
        assert!(data["saved_to"].as_str().is_some_and(|path| path.ends_with(&format!("/downloads/{name}"))), "{data}");
    }
    let before = rows(&server, &id).await.len();
    for name in ["../out.txt", "/etc/out.txt", "a/../../out.txt", "", "a\0b", "downloads/"] {
        let mut named = download(&id, "#blob");
        named["save_as"] = name.into();
        server.fault("download_file", named, "PATH_NOT_ALLOWED").await;
    }
    assert_eq!(rows(&server, &id).await.len(), before, "nothing was clicked");

    let long = format!("{}.txt", "n".repeat(300));
    let root = server.data_dir().path().join("files");
    for header in [
        "filename=%22../../../out.txt%22",
        "filename=%22..\\..\\out.txt%22",
        "filename*=UTF-8''%2e%2e%2f%2e%2e%2fout.txt",
        "filename*=UTF-8''a%00b%0a%1bc.txt",
        "filename=%22CON%22",
        "filename=%22/etc/passwd%22",
        "filename=%22.bashrc%22",
        "filename=%22%22",
        "filename=%22a%20'$(touch%20x);&|`.sh%22",
        "filename*=UTF-8''gpj.%E2%80%AEexe",
        &format!("filename=%22{long}%22"),
    ] {
        let set = json!(format!("/named?{header}"));
        let set = format!(
            "(() => {{ const a = document.getElementById('named'); a.removeAttribute('download'); a.href = {set}; }})()"
        );
        server.ok("evaluate", json!({"session_id": id, "expression": set})).await;
        let data = server.ok("download_file", download(&id, "#named")).await;
        assert_eq!(saved(&data), b"named", "{header}: {data}");
        let path = std::path::PathBuf::from(data["saved_to"].as_str().expect("a path"));
        assert!(path.canonicalize().expect("it is there").starts_with(root.canonicalize().expect("so is this")));
        assert_eq!(path.parent().and_then(std::path::Path::file_name), Some("downloads".as_ref()), "{header}: {data}");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.len() <= 255 && !name.starts_with('.'), "{header}: {name:?}");
        assert!(!name.chars().any(|c| c.is_control() || c == '\u{202e}'), "{header}: {name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_come_is_said() {
    let site = Site::start().await;
    let options = Options::stdio().argument("--download-bytes-max", "1MiB");
    let server = Server::start(options).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    failed(&server, download(&id, "#cut"), "canceled").await;
    failed(&server, download(&id, "#flood"), "too_large").await;
    server.fault("download_file", download(&id, "#absent"), "ELEMENT_NOT_FOUND").await;
    let mut nothing = download(&id, "#nothing");
    nothing["timeout"] = 500.into();
    failed(&server, nothing, "no download began").await;
    let fault = server.fault("download_file", download(&id, "#asking"), "MODAL_STATE_BLOCKED").await;
    assert_eq!(fault["details"]["dialog_type"], "confirm");
    server.ok("dismiss_next_dialog", json!({"session_id": id})).await;
    server.ok("accept_next_dialog", json!({"session_id": id})).await;
    server.ok("download_file", download(&id, "#asking")).await;
    let mut held = download(&id, "#held");
    held["timeout"] = 1_000.into();
    failed(&server, held, "it still runs").await;
    let rows = rows(&server, &id).await;
    let states: Vec<_> = rows.iter().map(|row| (row["state"].as_str(), row["failure"].as_str())).collect();
    let wanted = [
        (Some("failed"), Some("canceled")),
        (Some("failed"), Some("too_large")),
        (Some("finished"), None),
        (Some("in_progress"), None),
    ];
    assert_eq!(states, wanted, "{rows:?}");
    let left = files_below(&server.data_dir().path().join("run"));
    let left: Vec<_> = left.iter().filter(|path| path.iter().any(|part| part == "downloads")).collect();
    assert!(left.len() <= 1, "nothing stays of what failed: {left:?}");
    server.ok("close_session", json!({"session_id": id})).await;
    let rows = ended(&server, &id, 4).await;
    assert_eq!(rows[3]["failure"], "session_closed", "{rows:?}");
    let ended = server.fault(
        "save_download",
        json!({"session_id": id, "download_id": rows[3]["download_id"]}),
        "DOWNLOAD_FAILED",
    );
    assert_eq!(ended.await["details"]["reason"], "session_closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quota_stops_a_download_while_it_runs() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--artifact-quota-bytes", "16MiB")).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    failed(&server, download(&id, "#flood"), "quota").await;
    // What fits goes on fitting.
    server.ok("download_file", download(&id, "#header")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_saved_when_it_has_ended() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    server.ok("click", json!({"session_id": id, "selector": "#held"})).await;
    let running = wait_for("the download", || async { rows(&server, &id).await.into_iter().next() }).await;
    let save = |path: Option<&str>, timeout: u64| json!({"session_id": id, "download_id": running["download_id"], "path": path, "timeout": timeout});
    let late = server.fault("save_download", save(None, 200), "DOWNLOAD_FAILED").await;
    assert!(late["details"]["reason"].as_str().is_some_and(|reason| reason.contains("goes on")), "{late}");
    for path in ["../x", "/etc/x", "", "a/../../x"] {
        server.fault("save_download", save(Some(path), 200), "PATH_NOT_ALLOWED").await;
    }
    let waiting = server.begin("save_download", save(Some("kept/held.bin"), 20_000)).await;
    site.release();
    let data = waiting.reply().await.data().clone();
    assert_eq!(saved(&data), site::pattern(200_000));
    let kept = server.ok("read_artifact", json!({"handle": data["artifact"], "length": 1})).await;
    assert_eq!((&data["sha256"], &data["bytes"]), (&kept["sha256"], &json!(200_000)));
    // The browser is not needed for it.
    server.ok("close_session", json!({"session_id": id})).await;
    let again = server.ok("save_download", save(Some("kept/again.bin"), 200)).await;
    assert_eq!((&again["sha256"], saved(&again)), (&data["sha256"], site::pattern(200_000)));
    let server = Server::start(Options::stdio().on(&server.stop().await.data)).await;
    let again = server.ok("save_download", save(None, 200)).await;
    assert_eq!((&again["artifact"], &again["suggested_name"]), (&data["artifact"], &json!("held.bin")));
    let mut unknown = save(None, 200);
    unknown["download_id"] = "none".into();
    let fault = server.fault("save_download", unknown, "DOWNLOAD_NOT_FOUND").await;
    assert_eq!(fault["details"]["download_id"], "none");
    // Another session's is none of this one's.
    let mut foreign = save(None, 200);
    foreign["session_id"] = server.launch().await.into();
    server.fault("save_download", foreign, "DOWNLOAD_NOT_FOUND").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_dies_ends_its_downloads() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    let waiting = server.begin("download_file", download(&id, "#held")).await;
    site.arrived("/held").await;
    wait_for("the download", || async { rows(&server, &id).await.into_iter().next() }).await;
    processes::signal(processes::browser(server.pid(), &[]).pid, "KILL").await;
    let fault = waiting.reply().await;
    assert!(["DOWNLOAD_FAILED", "BROWSER_CRASHED"].contains(&fault.code()), "{}", fault.structured);
    assert_eq!(ended(&server, &id, 1).await[0]["failure"], "browser_gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room_keeps_no_download_and_says_so() {
    const MEBIBYTE: u64 = 1024 * 1024;
    let site = Site::start().await;
    let disk = SmallDisk::tmpfs(160);
    let server = Server::start(disk.serving(Options::stdio())).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    server.ok("click", json!({"session_id": id, "selector": "#held"})).await;
    let level = |wanted: &'static str| {
        let server = &server;
        wait_for(wanted, move || async move {
            let status = server.ok("server_status", json!({})).await;
            (status["disk"]["level"] == wanted).then_some(())
        })
    };
    disk.leave_free(3 * MEBIBYTE);
    level("read_only").await;
    site.release();
    wait_for("its end on disk", || async {
        let left = files_below(&disk.data().join("run"));
        left.iter().all(|path| path.iter().all(|part| part != "downloads")).then_some(())
    })
    .await;
    disk.empty();
    level("ok").await;
    // The record has a gap where the end was, since nothing but calls found room; the session knows.
    let download_id = rows(&server, &id).await.remove(0)["download_id"].take();
    let saving = json!({"session_id": id, "download_id": download_id});
    let fault = server.fault("save_download", saving, "DOWNLOAD_FAILED").await;
    assert_eq!(fault["details"]["reason"], "disk_low");
    let back = server.ok("download_file", download(&id, "#blob")).await;
    assert_eq!(saved(&back), b"blob content");
}
