//! MCP over streamable HTTP, with metrics and health beside it.
//!
//! `/mcp`, `/metrics`, `/healthz` (the process answers), `/readyz` (calls would be accepted). One
//! listener may serve all four or, beside stdio, only the last three.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use storage::disk::DiskLevel;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Handler, guard};
use crate::gateway::Gateway;
use crate::limits::{HTTP_BODY_BYTES_MAX, HTTP_REPLY_KEPT_SECONDS, HTTP_SESSION_IDLE_SECONDS, HTTP_SESSIONS_MAX};
use crate::metering;

/// Serves `listener` until `stop` fires and the open answers are written.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    handler: Option<Handler>,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let mut router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(gateway);
    if let Some(handler) = handler {
        router = router.merge(mcp(handler, stop.child_token()));
    }
    let router = router.layer(axum::middleware::from_fn(guard::guard));
    // Without this every small answer waits 40 ms for the peer's delayed acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await }).await
}

fn mcp(handler: Handler, stop: CancellationToken) -> Router {
    let mut sessions = LocalSessionManager::default();
    // A silent long call counts as no traffic, so the limit is well above any call's.
    sessions.session_config.keep_alive = Some(Duration::from_secs(HTTP_SESSION_IDLE_SECONDS));
    // Answers are kept for clients that lost their stream; replies are large, so not for long.
    sessions.session_config.completed_cache_ttl = Duration::from_secs(HTTP_REPLY_KEPT_SECONDS);
    let sessions = Arc::new(sessions);
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(stop)
        .with_max_request_body_bytes(HTTP_BODY_BYTES_MAX)
        // `guard` has already checked both, for every route and by one rule.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let service = StreamableHttpService::new(move || Ok(handler.clone()), Arc::clone(&sessions), config);
    Router::new().nest_service("/mcp", service).layer(axum::middleware::from_fn_with_state(sessions, cap))
}

/// Refuses a new MCP session when there are as many as allowed. Requests of the revisions without
/// sessions, and those within a session, pass.
async fn cap(State(sessions): State<Arc<LocalSessionManager>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let begins = request.method() == Method::POST
        && !headers.contains_key("mcp-session-id")
        && headers.get("mcp-protocol-version").is_none_or(|version| version.as_bytes() < b"2026".as_slice());
    if begins && sessions.sessions.read().await.len() >= HTTP_SESSIONS_MAX {
        let retry = [(header::RETRY_AFTER, "30")];
        return (StatusCode::SERVICE_UNAVAILABLE, retry, "too many MCP sessions; close one\n").into_response();
    }
    next.run(request).await
}

async fn metrics(State(gateway): State<Gateway>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, metering::render(&gateway)).into_response()
}

async fn ready(State(gateway): State<Gateway>) -> Response {
    match gateway.ready() {
        Ok(()) => {
            let remarks = remarks(&gateway);
            let remarks = if remarks.is_empty() { String::new() } else { format!(", but {}", remarks.join("; ")) };
            format!("ready{remarks}\n").into_response()
        }
        Err(fault) => (StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n")).into_response(),
    }
}

/// What a gateway that is ready does not do as one would like.
fn remarks(gateway: &Gateway) -> Vec<String> {
    let mut remarks = Vec::new();
    if gateway.disk.level() >= DiskLevel::RefuseSessions {
        remarks.push(format!("new sessions are refused: {}", gateway.disk_low()));
    }
    let audit = gateway.auditor.health();
    remarks.extend(audit.lost);
    if let Some(reason) = audit.failing {
        remarks.push(format!("no checkpoint can be signed: {reason}"));
    }
    if let Some(millis) = metering::sync_interval_ms(gateway.config.durability) {
        remarks.push(format!("a power cut may cost the last {millis} ms"));
    }
    remarks
}

/// Binds `address`. Only loopback: without tokens nobody else could be told apart.
///
/// # Errors
/// When the address is not loopback or cannot be bound.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    if !address.ip().is_loopback() {
        let reason =
            format!("{address} is not a loopback address, and there are no access tokens yet to protect any other");
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, reason));
    }
    TcpListener::bind(address).await
}
