//! Secrets never enter the log: not as they are in any file, and not in anything that is read back.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, program, wait_for, walk};

/// What must not be found anywhere.
const CANARIES: [&str; 4] = ["canary-query-1182", "canary-bearer-5520", "canary-cookie-7431", "canary-password-9067"];

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_nowhere_below_the_data_directory() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/form.html")).await;
    for tool in [("fill", "value"), ("type_text", "text")] {
        server.ok(tool.0, json!({"session_id": id, "selector": "#password", tool.1: CANARIES[3]})).await;
    }
    let leak = "console.log('leaked ' + document.querySelector('#password').value.slice(0, 20)); 1";
    server.ok("evaluate", json!({"session_id": id, "expression": leak})).await;
    let leaked = walk::console_with(&server, &id, "leaked").await;
    assert!(leaked.iter().all(|message| !message.to_string().contains(CANARIES[3])), "{leaked:?}");
    server.ok("navigate", json!({"session_id": id, "url": site.url("/network.html")})).await;
    walk::console_with(&server, &id, "network done").await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/cookie")})).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json?again=1")})).await;
    let sent: Vec<String> = site.received().iter().map(|request| format!("{request:?}")).collect();
    for canary in &CANARIES[..3] {
        assert!(sent.iter().any(|request| request.contains(canary)), "the site itself saw {canary}");
    }
    let requests = walk::requests(&server, &id).await;
    let mut shown = serde_json::to_string(&walk::events(&server, &id).await).expect("JSON");
    for request in &requests {
        for part in ["summary", "request_headers", "response_headers"] {
            let asked = json!({"session_id": id, "request_id": request["request_id"], "part": part});
            shown.push_str(&server.ok("get_network_request", asked).await.to_string());
        }
    }
    for format in ["ndjson", "parquet"] {
        server.ok("export_events", json!({"session_id": id, "format": format, "path": format!("all.{format}")})).await;
    }
    server.ok("close_session", json!({"session_id": id})).await;
    let ended = server.stop().await;
    let data = ended.data.path().display().to_string();
    let tail = program::run(&["tail", "--data-dir", &data, "--json"]).await;
    let tail = String::from_utf8(tail.stdout).expect("UTF-8");
    assert!(tail.lines().count() > 50 && ended.data.files().len() > 5);
    for canary in CANARIES {
        assert!(!shown.contains(canary), "{canary} is shown to the client");
        assert!(!tail.contains(canary), "{canary} is in the log");
        assert!(!ended.stderr.contains(canary), "{canary} is said on stderr");
        assert_eq!(ended.data.files_with(canary), Vec::<std::path::PathBuf>::new(), "{canary} is on disk");
    }
    assert!(tail.contains("[redacted"), "what was taken out is marked");
}

/// Sends one password in every shape a page may send it in; the file beside it is no text.
const SEND: &str = "(async () => {
    const password = ['canary', 'form', '3310'].join('-');
    const form = new FormData();
    form.append('user', 'ann');
    form.append('user[password]', password);
    const file = new FormData();
    file.append('password', password);
    file.append('photo', new Blob([new Uint8Array([255, 254, 0, 128])]), 'photo.png');
    const json = JSON.stringify({user: 'ann', password: {value: password}, tokens: [password]});
    const encoded = new URLSearchParams({user: 'ann', 'user[password]': password});
    const lines = '{\"user\": \"ann\"}\\n42[\"login\", {\"currentPassword\": ' + JSON.stringify(password) + '}]';
    console.log('sent', {user: 'ann', password}, lines, '/x?accessToken=' + password);
    for (const [shape, body] of Object.entries({form, file, json, encoded, lines})) {
        await fetch('/echo?shape=' + shape, {method: 'POST', body});
    }
    return 1;
})()";

#[tokio::test(flavor = "multi_thread")]
async fn posted_passwords_are_nowhere_in_whatever_shape() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--capture-bodies", "all")).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    server.ok("evaluate", json!({"session_id": id, "expression": SEND})).await;
    let canary = "canary-form-3310";
    let sent: Vec<String> =
        site.received_for("/echo").iter().map(|sent| String::from_utf8_lossy(&sent.body).into_owned()).collect();
    assert_eq!(sent.iter().filter(|body| body.contains(canary)).count(), 5, "the site saw them: {sent:?}");
    for shape in ["form", "file", "json", "encoded", "lines"] {
        let body = wait_for("both bodies are kept", || async {
            let requests = walk::requests(&server, &id).await;
            let sent = |request: &&Value| request["url"].as_str().is_some_and(|url| url.ends_with(shape));
            let request_id = requests.iter().find(sent)?["request_id"].clone();
            let part = async |part: &str| {
                let asked = json!({"session_id": id, "request_id": request_id, "part": part});
                server.ok("get_network_request", asked).await["content"].as_str().map(str::to_owned)
            };
            part("response_body").await?;
            part("request_body").await
        })
        .await;
        assert!(body.contains("[redacted:"), "{shape}: {body}");
        assert!(shape == "file" || body.contains("ann"), "{shape}: the rest stays: {body}");
        assert!(shape != "file" || body.contains("filename=\"photo.png\""), "{shape}: {body}");
    }
    let ended = server.stop().await;
    let data = ended.data.path().display().to_string();
    let tail = String::from_utf8(program::run(&["tail", "--data-dir", &data, "--json"]).await.stdout).expect("UTF-8");
    assert!(!tail.contains(canary), "it is in the log");
    assert_eq!(ended.data.files_with(canary), Vec::<std::path::PathBuf>::new(), "it is on disk");
}
