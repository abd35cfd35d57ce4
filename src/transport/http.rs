//! MCP over streamable HTTP, with metrics and health beside it.
//!
//! `/mcp`, `/metrics`, `/healthz` (the process answers), `/readyz` (calls would be accepted). One
//! listener may serve all four or, beside stdio, only the last three.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Handler, guard};
use crate::gateway::Gateway;
use crate::limits::{HTTP_BODY_BYTES_MAX, HTTP_SESSION_IDLE_SECONDS};
use crate::metering;

/// Serves `listener` until `stop` fires and the open answers are written.
///
/// # Errors
/// When the listener fails.
pub async fn serve(gateway: Gateway, listener: TcpListener, with_mcp: bool, stop: CancellationToken) -> std::io::Result<()> {
    let mut router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(gateway.clone());
    if with_mcp {
        router = router.nest_service("/mcp", mcp(gateway, stop.child_token()));
    }
    let router = router.layer(axum::middleware::from_fn(guard::guard));
    // Without this every small answer waits 40 ms for the peer's delayed acknowledgement.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await }).await
}

fn mcp(gateway: Gateway, stop: CancellationToken) -> StreamableHttpService<Handler, LocalSessionManager> {
    let mut sessions = LocalSessionManager::default();
    // A silent long call counts as no traffic, so the limit is well above any call's.
    sessions.session_config.keep_alive = Some(Duration::from_secs(HTTP_SESSION_IDLE_SECONDS));
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(stop)
        .with_max_request_body_bytes(HTTP_BODY_BYTES_MAX)
        // `guard` has already checked both, for every route and by one rule.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    StreamableHttpService::new(move || Ok(Handler::new(gateway.clone())), Arc::new(sessions), config)
}

async fn metrics(State(gateway): State<Gateway>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, metering::render(&gateway)).into_response()
}

async fn ready(State(gateway): State<Gateway>) -> Response {
    match gateway.ready() {
        Ok(()) => "ready\n".into_response(),
        Err(fault) => (StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n")).into_response(),
    }
}

/// Binds `address`. Only loopback: without tokens nobody else could be told apart.
///
/// # Errors
/// When the address is not loopback or cannot be bound.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    if !address.ip().is_loopback() {
        let reason = format!("{address} is not a loopback address, and there are no access tokens yet to protect any other");
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, reason));
    }
    TcpListener::bind(address).await
}
