//! What the HTTP routes serve, and to whom.

use std::net::SocketAddr;

use serde_json::json;

use crate::site::Site;
use crate::support::{Options, Server, http, program, wait_for};

const ROUTES: [&str; 4] = ["/mcp", "/metrics", "/healthz", "/readyz"];

async fn status(address: SocketAddr, route: &str, host: &str, origin: Option<&str>) -> u16 {
    let mut headers =
        vec![("Host", host), ("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
    headers.extend(origin.map(|origin| ("Origin", origin)));
    let method = if route == "/mcp" { "POST" } else { "GET" };
    let body = if route == "/mcp" {
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bare","version":"1"}}}"#
    } else {
        ""
    };
    http::request(address, method, route, &headers, body).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_for_this_machine_alone() {
    let server = Server::start(Options::http()).await;
    let address = server.address();
    let own = address.to_string();
    let local = format!("localhost:{}", address.port());
    for route in ROUTES {
        for (host, origin) in [
            (own.as_str(), None),
            (&local, None),
            (&own, Some("http://localhost:3000")),
            (&local, Some("http://127.0.0.1")),
        ] {
            assert_ne!(status(address, route, host, origin).await / 100, 4, "{route} for {host} from {origin:?}");
        }
        for host in ["example.com", "localhost.example.com", "127.0.0.1.example.com", "0.0.0.0", ""] {
            assert_eq!(status(address, route, host, None).await, 403, "{route} for {host}");
        }
        for origin in
            ["http://example.com", "null", "file://", "http://localhost.example.com", "http://127.0.0.1@example.com"]
        {
            assert_eq!(status(address, route, &own, Some(origin)).await, 403, "{route} from {origin}");
        }
        assert_eq!(http::request(address, "GET", route, &[], "").await.status, 400, "{route} without a host");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_readiness_are_told_apart() {
    let server = Server::start(Options::http()).await;
    let address = server.address();
    assert_eq!(http::get(address, "/healthz").await.body, "ok\n");
    assert_eq!(http::get(address, "/readyz").await.body, "ready\n");
    let metrics = http::get(address, "/metrics").await;
    assert!(metrics.head.contains("text/plain; version=0.0.4"), "{}", metrics.head);
    assert_eq!(http::get(address, "/none").await.status, 404);

    let beside = Server::start(Options::stdio().argument("--metrics", "127.0.0.1:0")).await;
    assert_eq!(http::get(beside.address(), "/readyz").await.status, 200);
    assert_eq!(http::get(beside.address(), "/mcp").await.status, 404, "beside stdio there is no second way in");
    beside.ok("server_status", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_beside_http_have_an_address_of_their_own() {
    let server = Server::start(Options::http().argument("--metrics", "127.0.0.2:0")).await;
    let aside = wait_for("the second listener", || async {
        let said = server.stderr();
        let addresses = said.split("listening address=").skip(1).filter_map(|rest| rest.split_whitespace().next());
        addresses.filter_map(|address| address.parse::<SocketAddr>().ok()).find(|found| *found != server.address())
    })
    .await;
    for address in [server.address(), aside] {
        assert!(http::get(address, "/metrics").await.head.contains("text/plain; version=0.0.4"), "{address}");
    }
    assert_eq!(http::get(aside, "/readyz").await.status, 200);
    assert_eq!(status(aside, "/mcp", &aside.to_string(), None).await, 404, "there is one way in");
    server.ok("server_status", json!({})).await;
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_over_http_share_the_gateway() {
    let site = Site::start().await;
    let server = Server::start(Options::http()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let other = server.another_client().await;
    let reply = other.begin("evaluate", json!({"session_id": id, "expression": "document.title"})).await.reply().await;
    assert_eq!(reply.data()["result"], "Plain");
    other.close().await;
    // One client's end is not the session's.
    server.ok("evaluate", json!({"session_id": id, "expression": "1"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_machine_is_served() {
    let data = crate::support::DataDir::fresh();
    let directory = data.path().display().to_string();
    for flag in ["--http", "--metrics"] {
        let refused = program::run(&["serve", "--data-dir", &directory, flag, "0.0.0.0:0"]).await;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(64), "{said}");
        assert!(said.contains("loopback"), "{said}");
    }
}
