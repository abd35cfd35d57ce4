//! The network evidence, against a server that misbehaves: what is known of a request, which bodies are
//! kept and why not, and how everything ends.

mod bodies;
mod ends;
mod facts;
mod floods;
mod origins;
mod secure;

use serde_json::{Value, json};

use crate::support::{Server, wait_for, walk};

/// Runs the body of an asynchronous function on the page.
async fn run(server: &Server, id: &str, script: &str) {
    let expression = format!("(async () => {{ {script} }})()");
    server.ok("evaluate", json!({"session_id": id, "expression": expression})).await;
}

async fn part(server: &Server, id: &str, request: &Value, part: &str) -> Value {
    server.ok("get_network_request", json!({"session_id": id, "request_id": request["request_id"], "part": part})).await
}

/// The first request whose address ends so, once `ready` holds for it.
async fn request(server: &Server, id: &str, end: &str, ready: impl Fn(&Value) -> bool) -> Value {
    wait_for(end, || async {
        let requests = walk::requests(server, id).await;
        let ends = |request: &&Value| request["url"].as_str().is_some_and(|url| url.ends_with(end));
        requests.iter().find(ends).filter(|request| ready(request)).cloned()
    })
    .await
}

async fn ended(server: &Server, id: &str, end: &str) -> Value {
    request(server, id, end, |request| request["state"] != "pending").await
}

/// What is told of a body once that is known.
async fn body(server: &Server, id: &str, request: &Value, direction: &str) -> Value {
    wait_for("the body", || async {
        let body = part(server, id, request, direction).await;
        let unknown = ["unavailable", "not_finished"].iter().any(|word| body["omitted"] == **word);
        (!unknown).then_some(body)
    })
    .await
}
