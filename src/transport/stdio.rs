//! MCP over standard input and output. Nothing but protocol is ever written to standard output.
//!
//! rmcp gives every request a task of its own. All of them run on one thread here, which starts tasks
//! in the order they were made: calls take their places in the order in which the client sent them.

use rmcp::ServiceExt;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Handler;
use super::lines::Lines;

/// Serves one client until its input ends or `stop` fires.
///
/// # Errors
/// When there is no thread to be had, or the first message is not a handshake.
pub async fn serve(handler: Handler, stop: CancellationToken) -> Result<(), String> {
    let (ended, end) = oneshot::channel();
    let thread = std::thread::Builder::new().name("stdio".to_owned());
    let run = move || {
        // Nobody listens any more only when the process ends anyway.
        let _ = ended.send(serve_on_this_thread(handler, stop));
    };
    thread.spawn(run).map_err(|error| error.to_string())?;
    end.await.unwrap_or_else(|_| Err("serving standard input ended in a panic".to_owned()))
}

fn serve_on_this_thread(handler: Handler, stop: CancellationToken) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let served = runtime.block_on(serve_client(handler, stop));
    // A blocked read of standard input must not keep the thread.
    runtime.shutdown_background();
    served
}

async fn serve_client(handler: Handler, stop: CancellationToken) -> Result<(), String> {
    let (reader, writer) = rmcp::transport::stdio_pipes();
    let running = match handler.serve_with_ct(Lines::new(reader, writer), stop).await {
        Ok(running) => running,
        // A client that goes away before the handshake has asked for nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    // How it ended does not matter: either way the client is gone.
    let _ = running.waiting().await;
    Ok(())
}
