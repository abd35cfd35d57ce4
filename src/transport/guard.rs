//! Who may speak to the HTTP routes: programs on this machine, and no web page.
//!
//! A page in somebody's browser can send requests to loopback, under a name of its own choosing. It
//! cannot forge `Host` and `Origin`: requests for any other host than loopback are refused, and so is
//! every request that carries an `Origin` which is not loopback, on every route.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Lets a request pass or answers it: 400 without exactly one `Host`, 403 for a foreign one.
pub async fn guard(request: Request, next: Next) -> Response {
    match check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, reason)) => (status, reason).into_response(),
    }
}

fn check(headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| (StatusCode::BAD_REQUEST, "Host is not text\n"))?,
        _ => return Err((StatusCode::BAD_REQUEST, "exactly one Host header is needed\n")),
    };
    if !is_loopback(host) {
        return Err((StatusCode::FORBIDDEN, "this Host is not served here\n"));
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !host.is_some_and(is_loopback) {
            return Err((StatusCode::FORBIDDEN, "this Origin is not allowed\n"));
        }
    }
    Ok(())
}

/// Whether `authority` is `localhost` or a loopback address, with or without a port.
fn is_loopback(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) => (host, port.strip_prefix(':').or(port.is_empty().then_some("0"))),
            None => return false,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("0")),
        },
    };
    let port_fits = port.is_some_and(|port| port.parse::<u16>().is_ok());
    let host_fits = host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    port_fits && host_fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn verdict(host: Option<&str>, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        let mut put = |name: header::HeaderName, text: Option<&str>| {
            if let Some(text) = text {
                headers.append(name, HeaderValue::from_str(text).expect("the test's header is valid"));
            }
        };
        put(header::HOST, host);
        put(header::ORIGIN, origin);
        check(&headers).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn only_loopback_hosts_and_origins_pass() {
        for host in ["localhost", "LOCALHOST:8931", "127.0.0.1:8931", "[::1]:8931", "[::1]", "127.9.9.9"] {
            assert_eq!(verdict(Some(host), None), 200, "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "localhost.",
            "127.0.0.1.evil",
            "0.0.0.0",
            "[::1",
            "[::1]x",
            "localhost:x",
        ] {
            assert_eq!(verdict(Some(host), None), 403, "{host}");
        }
        assert_eq!(verdict(None, None), 400);
        for origin in ["http://localhost:3000", "http://127.0.0.1"] {
            assert_eq!(verdict(Some("localhost"), Some(origin)), 200, "{origin}");
        }
        for origin in ["null", "http://example.com", "file://", "http://localhost.evil", "localhost"] {
            assert_eq!(verdict(Some("localhost"), Some(origin)), 403, "{origin}");
        }
    }
}
