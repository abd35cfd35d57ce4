//! The site once more over TLS and HTTP/2, under a certificate that nobody vouches for.
//!
//! A browser refuses it, unless it was started with [`Secure::arguments`]: they accept this one key and
//! leave every other check in place.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use rcgen::PublicKeyData;
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use super::http::{Answer, Received};
use super::{Shared, Site, routes};

/// A running site over TLS; it ends with the value.
pub struct Secure {
    address: String,
    key_hash: String,
    task: JoinHandle<()>,
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    /// The same pages over TLS on a port of their own.
    pub async fn secure(&self) -> Secure {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key_hash = STANDARD.encode(Sha256::digest(made.signing_key.subject_public_key_info()));
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder().with_no_client_auth();
        let mut config =
            config.with_single_cert(vec![made.cert.der().clone()], key.into()).expect("they belong together");
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Secure { address, key_hash, task: tokio::spawn(accept(listener, acceptor, self.shared.clone())) }
    }
}

impl Secure {
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Address and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What Chromium is started with to accept the certificate.
    pub fn arguments(&self) -> Vec<String> {
        vec![format!("--ignore-certificate-errors-spki-list={}", self.key_hash)]
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        // A browser that refuses the certificate or goes away is nothing to report.
        tokio::spawn(connection(stream, acceptor.clone(), shared.clone()));
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut connection = h2::server::handshake(acceptor.accept(stream).await.ok()?).await.ok()?;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            let received = read(request).await?;
            shared.note(&received);
            let answer = routes::answer(&received, &shared);
            let bodiless = received.method == "HEAD" || matches!(answer.status, 204 | 304);
            let mut stream = respond.send_response(head(&answer)?, bodiless).ok()?;
            if bodiless { Some(()) } else { stream.send_data(answer.body.into(), true).ok() }
        });
    }
    Some(())
}

async fn read(request: Request<h2::RecvStream>) -> Option<Received> {
    let (head, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.ok()?;
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len()).ok()?;
    }
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    Some(Received { method: head.method.to_string(), path, headers, body })
}

fn head(answer: &Answer) -> Option<Response<()>> {
    let head = Response::builder().status(answer.status);
    let head = answer.headers.iter().fold(head, |head, (name, value)| head.header(*name, value.as_str()));
    head.body(()).ok()
}
