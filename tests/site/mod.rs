//! A web site on loopback with everything the gateway has to cope with. Tests and the demo share it.
//!
//! Two ports make two origins and, by `127.0.0.1` against `localhost`, two sites. Pages are the files
//! under `pages/`, with `{{origin}}` and `{{other}}` filled in; everything else is in `routes`.
//! Nothing here waits by the clock: what is held is held until [`Site::release`].

// Not every user of this needs all of it.
#![allow(dead_code, unused_imports)]

mod conformance;
pub mod http;
mod odd;
mod routes;
mod secure;
mod sha1;
mod websocket;

use std::sync::{Arc, Mutex, PoisonError};

use http::Received;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use routes::pattern;
pub use secure::Secure;

/// A running site; it ends with the value.
pub struct Site {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

/// What every connection knows.
struct Shared {
    origin: String,
    other: String,
    received: Mutex<Vec<Received>>,
    arrivals: watch::Sender<usize>,
    released: watch::Sender<bool>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Site {
    pub async fn start() -> Self {
        let first = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let second = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = |listener: &TcpListener| listener.local_addr().expect("a bound socket has an address").port();
        let shared = Arc::new(Shared {
            origin: format!("http://127.0.0.1:{}", port(&first)),
            other: format!("http://localhost:{}", port(&second)),
            received: Mutex::default(),
            arrivals: watch::channel(0).0,
            released: watch::channel(false).0,
        });
        let tasks = [first, second].map(|listener| tokio::spawn(accept(listener, shared.clone())));
        Self { shared, tasks: tasks.into() }
    }

    /// A path on the first origin.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.shared.origin)
    }

    /// A path on the second origin, which is another site.
    pub fn other_url(&self, path: &str) -> String {
        format!("{}{path}", self.shared.other)
    }

    /// Every request so far, in order of arrival.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests for a path, query aside.
    pub fn received_for(&self, path: &str) -> Vec<Received> {
        self.received().into_iter().filter(|request| request.plain_path() == path).collect()
    }

    /// Returns once a request for `path` has come in.
    pub async fn arrived(&self, path: &str) {
        let mut arrivals = self.shared.arrivals.subscribe();
        while self.received_for(path).is_empty() {
            arrivals.changed().await.expect("the site lives as long as this value");
        }
    }

    /// Lets everything go that `/hold` and `/endless` hold, now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Shared {
    fn note(&self, request: &Received) {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        self.arrivals.send_modify(|count| *count += 1);
    }

    async fn until_released(&self) {
        let mut released = self.released.subscribe();
        let _ = released.wait_for(|released| *released).await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        // A browser that goes away mid-answer is nothing to report.
        tokio::spawn(async move { connection(stream, &shared).await.ok() });
    }
}

async fn connection(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    while let Some(request) = http::read(&mut stream).await? {
        shared.note(&request);
        match request.plain_path() {
            "/ws" => return websocket::serve(&mut stream, &request).await,
            "/abort" => return Ok(()),
            "/held" | "/cut" | "/flood" => return routes::pour(&mut stream, &request, shared).await,
            "/lie" => return odd::lie(&mut stream).await,
            "/events" => return odd::events(&mut stream, shared).await,
            "/trickle" => return odd::trickle(&mut stream, shared).await,
            "/endless" => return routes::endless(&mut stream, shared).await,
            "/hold" => shared.until_released().await,
            _ => {}
        }
        let answer = routes::answer(&request, shared);
        let answer = if request.method == "HEAD" { answer.head_alone() } else { answer };
        answer.write(&mut stream).await?;
    }
    Ok(())
}
