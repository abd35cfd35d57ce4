//! Files into pages: from permitted directories, into whatever asks for files.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

/// A server whose uploads directory holds `names`, each with its own name as content.
async fn server_with(names: &[&str]) -> (Server, PathBuf) {
    let options = Options::stdio();
    let uploads = options.data.path().join("uploads");
    std::fs::create_dir_all(&uploads).expect("the directory can be made");
    for name in names {
        let path = uploads.join(name);
        std::fs::create_dir_all(path.parent().expect("it lies below uploads")).expect("a directory");
        std::fs::write(path, name).expect("a file");
    }
    (Server::start(options).await, uploads)
}

fn upload(id: &str, selector: &str, paths: &[&str]) -> Value {
    json!({"session_id": id, "selector": selector, "paths": paths})
}

async fn refused(server: &Server, arguments: Value, reason: &str) {
    let fault = server.fault("upload_file", arguments.clone(), "UPLOAD_FAILED").await;
    let told = fault["details"]["reason"].as_str().unwrap_or_default();
    assert!(told.contains(reason), "{arguments}: {fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_take_files_wherever_they_hide() {
    let site = Site::start().await;
    let (server, uploads) = server_with(&["a.txt", "b.txt", "set/c.txt", "set/deep/d.txt"]).await;
    let id = server.launch_at(&site.url("/uploads.html")).await;
    let absolute = uploads.join("b.txt").display().to_string();
    for (selector, paths, told) in [
        ("#one", vec!["a.txt"], "one got a.txt 5"),
        ("#many", vec!["a.txt", absolute.as_str(), "set/c.txt"], "many got a.txt 5, b.txt 5, c.txt 9"),
        ("#hidden", vec!["a.txt"], "hidden got a.txt 5"),
        ("#button", vec!["a.txt", "b.txt"], "hidden got a.txt 5, b.txt 5"),
        ("#label", vec!["a.txt"], "labelled got a.txt 5"),
        ("#made", vec!["b.txt"], "made got b.txt 5"),
        ("#late", vec!["a.txt"], "made got a.txt 5"),
        ("role=button[name=\"Choose\"]", vec!["b.txt"], "hidden got b.txt 5"),
        ("iframe >> #inner", vec!["a.txt"], "inner got a.txt 5"),
    ] {
        let done = server.ok("upload_file", upload(&id, selector, &paths)).await;
        assert_eq!((&done["ok"], &done["selector"]), (&json!(true), &json!(selector)), "{done}");
        assert_eq!(done["files"].as_array().map(Vec::len), Some(paths.len()), "{done}");
        let lines = walk::console_with(&server, &id, told).await;
        let last = walk::texts(&lines).last().copied().unwrap_or_default().to_owned();
        assert_eq!(last, told, "{selector} changes once: {lines:?}");
    }
    // What comes of it is told as with any other action.
    let begin = "document.getElementById('one').onchange = () => {
        const link = Object.assign(document.createElement('a'), { href: '/download/a.bin' });
        link.click();
    }; 1";
    server.ok("evaluate", json!({"session_id": id, "expression": begin})).await;
    let done = server.ok("upload_file", upload(&id, "#one", &["b.txt"])).await;
    assert_eq!(done["downloads"].as_array().map(Vec::len), Some(1), "{done}");
    // Another choice takes the place of the first, as a person's would.
    server.ok("upload_file", upload(&id, "#many", &["b.txt"])).await;
    walk::console_with(&server, &id, "many got b.txt 5").await;
    server.ok("upload_file", upload(&id, "#folder", &["set"])).await;
    let lines = walk::console_with(&server, &id, "folder got ").await;
    let told = walk::texts(&lines).last().copied().unwrap_or_default().to_owned();
    assert!(told.contains("set/c.txt 9") && told.contains("set/deep/d.txt 14"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_chooser_takes_files_without_another_click() {
    let site = Site::start().await;
    let (server, _) = server_with(&["a.txt", "b.txt"]).await;
    let id = server.launch_at(&site.url("/uploads.html")).await;
    for selector in ["#made", "#gone-by-now"] {
        server.ok("click", json!({"session_id": id, "selector": "#made"})).await;
        server.ok("upload_file", upload(&id, selector, &["a.txt"])).await;
    }
    let lines = walk::console_with(&server, &id, "made got a.txt 5").await;
    assert_eq!(walk::texts(&lines).len(), 2, "{lines:?}");
    let opened = json!({"session_id": id, "kinds": ["filechooser.opened"]});
    let opened = walk::all(&server, "list_events", "events", opened, 500).await;
    assert_eq!(opened.len(), 2, "nothing was clicked again: {opened:?}");
    // It is used up.
    server.fault("upload_file", upload(&id, "#gone-by-now", &["a.txt"]), "ELEMENT_NOT_FOUND").await;
    // The chooser of a document that is gone is none.
    server.ok("click", json!({"session_id": id, "selector": "#made"})).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/uploads.html")})).await;
    server.fault("upload_file", upload(&id, "#gone-by-now", &["a.txt"]), "ELEMENT_NOT_FOUND").await;
    // A chooser's input has its own rules.
    server.ok("click", json!({"session_id": id, "selector": "#made"})).await;
    refused(&server, upload(&id, "#made", &["a.txt", "b.txt"]), "takes one file").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_input_does_not_take_is_said() {
    let site = Site::start().await;
    let (server, _) = server_with(&["a.txt", "b.txt", "set/c.txt"]).await;
    let id = server.launch_at(&site.url("/uploads.html")).await;
    for (selector, paths, reason) in [
        ("#one", vec!["a.txt", "b.txt"], "takes one file"),
        ("#off", vec!["a.txt"], "disabled"),
        ("#one", vec!["set"], "not a directory"),
        ("#folder", vec!["a.txt"], "takes one directory"),
        ("#folder", vec!["set", "a.txt"], "a directory is given alone"),
        ("#nothing", vec!["a.txt"], "opened no file chooser"),
        ("#one", vec!["absent.txt"], "no such file: absent.txt"),
    ] {
        refused(&server, upload(&id, selector, &paths), reason).await;
    }
    assert_eq!(walk::console(&server, &id).await, Vec::<Value>::new(), "the page got nothing");
    server.fault("upload_file", upload(&id, "#absent", &["a.txt"]), "ELEMENT_NOT_FOUND").await;
    server.fault("upload_file", upload(&id, "input", &["a.txt"]), "LOCATOR_AMBIGUOUS").await;
    server.fault("upload_file", upload(&id, "#one", &[]), "INVALID_ARGUMENTS").await;
    server.fault("upload_file", upload(&id, "#one", &[""]), "INVALID_ARGUMENTS").await;
    let blocked = server.fault("upload_file", upload(&id, "#asking", &["a.txt"]), "MODAL_STATE_BLOCKED").await;
    assert_eq!(blocked["details"]["dialog_type"], "confirm");
    let mut tab = upload(&id, "#one", &["a.txt"]);
    tab["tab_id"] = "t-none".into();
    server.fault("upload_file", tab, "TAB_NOT_FOUND").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_permitted_paths_leave_this_machine() {
    let site = Site::start().await;
    let more = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(more.path().join("more.txt"), "more").expect("a file");
    let options = Options::stdio().argument("--upload-dir", more.path().display());
    let data = options.data.path().to_owned();
    let uploads = data.join("uploads");
    std::fs::create_dir_all(uploads.join("linked")).expect("a directory");
    std::fs::write(data.join("outside.txt"), "outside").expect("a file");
    symlink(data.join("outside.txt"), uploads.join("link.txt")).expect("a link");
    symlink(&data, uploads.join("way")).expect("a link");
    symlink(data.join("outside.txt"), uploads.join("linked/link.txt")).expect("a link");
    let _socket = std::os::unix::net::UnixListener::bind(uploads.join("socket")).expect("a socket");
    let server = Server::start(options).await;
    let id = server.launch_at(&site.url("/uploads.html")).await;
    let outside = data.join("outside.txt").display().to_string();
    let key = data.join("cursor.key").display().to_string();
    let paths =
        ["/etc/hostname", "../outside.txt", "link.txt", "way/outside.txt", &outside, &key, "/proc/self/environ"];
    for path in paths {
        let fault = server.fault("upload_file", upload(&id, "#one", &[path]), "PATH_NOT_ALLOWED").await;
        assert_eq!(fault["details"]["path"], path);
        // One bad path among good ones keeps all of them here.
        let mixed = upload(&id, "#many", &[&more.path().join("more.txt").display().to_string(), path]);
        server.fault("upload_file", mixed, "PATH_NOT_ALLOWED").await;
    }
    server.fault("upload_file", upload(&id, "#folder", &["linked"]), "PATH_NOT_ALLOWED").await;
    refused(&server, upload(&id, "#one", &["socket"]), "neither a file nor a directory").await;
    let refusals = json!({"session_id": id, "kinds": ["policy.refused"]});
    let refusals = walk::all(&server, "list_events", "events", refusals, 500).await;
    assert_eq!(refusals.len(), 2 * paths.len() + 1, "each refusal is on record: {refusals:?}");
    assert_eq!(walk::console(&server, &id).await, Vec::<Value>::new(), "the page got nothing");
    server.ok("upload_file", upload(&id, "#one", &["more.txt"])).await;
    walk::console_with(&server, &id, "one got more.txt 4").await;
    // What the session saved itself may go out again; what another saved may not.
    let shot = server.ok("screenshot", json!({"session_id": id, "save_path": "shot.png"})).await;
    let saved = shot["saved_to"].as_str().expect("a path");
    server.ok("upload_file", upload(&id, "#one", &["shot.png"])).await;
    server.ok("upload_file", upload(&id, "#one", &[saved])).await;
    let other = server.launch_at(&site.url("/uploads.html")).await;
    server.fault("upload_file", upload(&other, "#one", &[saved]), "PATH_NOT_ALLOWED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_files_and_many_go_whole() {
    const LARGE_BYTES: u64 = 200 * 1024 * 1024;
    let site = Site::start().await;
    let names: Vec<String> = (0..300).map(|n| format!("many/{n}.txt")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (server, uploads) = server_with(&names).await;
    let large = std::fs::File::create(uploads.join("large.bin")).expect("a file");
    large.set_len(LARGE_BYTES).expect("a sparse file");
    std::os::unix::fs::FileExt::write_all_at(&large, b"end", LARGE_BYTES - 3).expect("its last bytes");
    let id = server.launch_at(&site.url("/uploads.html")).await;
    let done = server.ok("upload_file", upload(&id, "#one", &["large.bin"])).await;
    assert_eq!(done["files"], json!([{"name": "large.bin", "bytes": LARGE_BYTES}]));
    let last = json!({"session_id": id, "expression": "document.getElementById('one').files[0].slice(-3).text()"});
    assert_eq!(server.ok("evaluate", last).await["result"], "end");
    server.ok("upload_file", upload(&id, "#many", &names)).await;
    let total = "(async () => (await Promise.all([...document.getElementById('many').files].map((f) => f.text()))).join('').length)()";
    let total = server.ok("evaluate", json!({"session_id": id, "expression": total})).await;
    assert_eq!(total["result"], names.iter().map(|name| name.len()).sum::<usize>());
}
