//! `pageledger serve`: start, serve, and stop in order.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use storage::StorageError;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::gateway::{Gateway, Transport};
use crate::session::open;
use crate::tools::offer::Offer;
use crate::transport::Handler;
use crate::{aftermath, disk, metering, transport};

/// One listener being served.
type Listening = JoinHandle<std::io::Result<()>>;

/// How a run ended, in terms of sysexits(3).
pub const EXIT_UNAVAILABLE: u8 = 69;
/// The data directory is damaged.
pub const EXIT_DAMAGED: u8 = 65;
/// The data directory is another process's.
pub const EXIT_LOCKED: u8 = 75;

/// Why serving could not start or go on, and the exit code that says so.
#[derive(Debug)]
pub struct ServeError {
    pub code: u8,
    pub message: String,
}

/// Serves until the client is gone or the process is told to stop.
///
/// # Errors
/// When the data directory, the listener or the handshake fails.
pub async fn serve(config: Config) -> Result<(), ServeError> {
    let transport = if config.http.is_some() { Transport::Http } else { Transport::Stdio };
    let way_in = bind(config.http).await?;
    let aside = bind(config.metrics).await?;
    let (offer, text) = (Offer::of(&config), config.text);
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone()).map_err(|error| unavailable(error.to_string()))?;
    let (door, doorway) = watch::channel(None);
    // The handshake and the tool list do not wait for the log; the first call does.
    let client = (transport == Transport::Stdio).then(|| {
        let serving = transport::serve_stdio(Handler::new(doorway.clone(), offer.clone(), text), stop.clone());
        tokio::spawn(serving)
    });
    let gateway = open_gateway(config, transport).await?;
    door.send_replace(Some(gateway.clone()));
    follow(&gateway);
    let mut listening = Vec::new();
    if let Some(listener) = way_in {
        listening.push(listen(&gateway, listener, Some(Handler::new(doorway, offer, text)), &stop));
    }
    if let Some(listener) = aside {
        listening.push(listen(&gateway, listener, None, &stop));
    }
    let served = match client {
        Some(client) => client.await.map_err(|panic| panic.to_string()).and_then(|served| served).map_err(unavailable),
        None => {
            stop.cancelled().await;
            Ok(())
        }
    };
    shut_down(&gateway, stop, listening).await?;
    served
}

async fn bind(address: Option<SocketAddr>) -> Result<Option<TcpListener>, ServeError> {
    let Some(address) = address else { return Ok(None) };
    let bound = transport::bind(address).await;
    bound.map(Some).map_err(|error| unavailable(format!("{address}: {error}")))
}

/// Serves metrics and health on `listener`, and MCP too when there is a handler.
fn listen(gateway: &Gateway, listener: TcpListener, handler: Option<Handler>, stop: &CancellationToken) -> Listening {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, mcp = handler.is_some(), "listening");
    }
    tokio::spawn(transport::serve_http(gateway.clone(), listener, handler, stop.clone()))
}

async fn open_gateway(config: Config, transport: Transport) -> Result<Gateway, ServeError> {
    let opened = tokio::task::spawn_blocking(move || Gateway::open(config, transport)).await;
    let opened = opened.map_err(|panic| unavailable(panic.to_string()))?;
    opened.map_err(|error| ServeError {
        code: match error {
            StorageError::Locked { .. } => EXIT_LOCKED,
            StorageError::Damaged { .. } | StorageError::Format { .. } => EXIT_DAMAGED,
            _ => EXIT_UNAVAILABLE,
        },
        message: error.to_string(),
    })
}

/// Starts what runs beside the calls for as long as the process does.
fn follow(gateway: &Gateway) {
    tokio::spawn(metering::follow(gateway.clone()));
    tokio::spawn(metering::upkeep(gateway.clone()));
    tokio::spawn(disk::follow(gateway.clone()));
    tokio::spawn(aftermath::report_rebuilds(gateway.clone()));
    if let Some(idle) = gateway.config.idle_ttl {
        tokio::spawn(open::close_idle(gateway.clone(), idle));
    }
}

/// New work is refused, browsers close, the log is sealed last: everything before it is on record.
async fn shut_down(gateway: &Gateway, stop: CancellationToken, listening: Vec<Listening>) -> Result<(), ServeError> {
    let limit = gateway.config.close_timeout + Duration::from_secs(2);
    within(limit, open::close_all(gateway, "shutdown")).await;
    stop.cancel();
    for listener in listening {
        within(Duration::from_secs(2), listener).await;
    }
    // A segment being written anew is left as it was; the step being taken is waited for.
    let upkeep = gateway.upkeep.clone();
    within(limit, tokio::task::spawn_blocking(move || upkeep.close())).await;
    gateway.index.close();
    // What was shed is declared before the log ends. Where that is refused, sealing is too, and says why.
    let _ = gateway.journal.declare_all().await;
    let log = gateway.journal.log();
    let sealed = log.seal().await;
    // The last checkpoint covers the seal, and is written while the lock still keeps others out.
    within(Duration::from_secs(2), gateway.auditor.close()).await;
    sealed.map_err(|error| unavailable(error.to_string()))?;
    log.close().await.map_err(|error| unavailable(error.to_string()))
}

async fn within<F: Future>(limit: Duration, work: F) {
    if tokio::time::timeout(limit, work).await.is_err() {
        tracing::warn!(seconds = limit.as_secs(), "gave up waiting during shutdown");
    }
}

/// The first signal asks for an orderly stop; a second one does not ask.
fn stop_on_signal(stop: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        for round in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if round == 0 {
                stop.cancel();
            }
        }
        // Browsers die with their pipes; the log's last acknowledged event is already on disk.
        std::process::exit(130);
    });
    Ok(())
}

fn unavailable(message: impl Into<String>) -> ServeError {
    ServeError { code: EXIT_UNAVAILABLE, message: message.into() }
}
