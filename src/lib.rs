//! The gateway: contract, sessions, browser, transport.
//!
//! `ARCHITECTURE.md` beside this file is the map. A newcomer reads in this order.

pub mod config;
pub mod limits;
pub mod serve;
pub mod gateway;
pub mod aftermath;
pub mod transport;
pub mod dispatch;
pub mod contract;
pub mod tools;
pub mod fault;
pub mod envelope;
pub mod session;
pub mod browser;
pub mod journal;
pub mod redact;
pub mod keep;
pub mod paths;
pub mod metering;
pub mod deadline;
pub mod telemetry;
pub mod commands;
pub mod docs;

/// Standard base64 with padding (RFC 4648, section 4).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
