//! MCP over standard input and output. Nothing but protocol is ever written to standard output.

use rmcp::ServiceExt;
use tokio_util::sync::CancellationToken;

use super::Handler;

/// Serves one client until its input ends or `stop` fires.
///
/// # Errors
/// When the first message is not a handshake.
pub async fn serve(handler: Handler, stop: CancellationToken) -> Result<(), String> {
    let served = handler.serve_with_ct(rmcp::transport::stdio(), stop.clone()).await;
    let running = match served {
        Ok(running) => running,
        // A client that goes away before the handshake has asked for nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    // How it ended does not matter: either way the client is gone.
    let _ = running.waiting().await;
    Ok(())
}
