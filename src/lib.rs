//! The gateway: contract, sessions, browser, transport.
//!
//! `ARCHITECTURE.md` beside this file is the map. A newcomer reads in this order.

pub mod aftermath;
pub mod auth_state;
pub mod blocklist;
pub mod browser;
pub mod commands;
pub mod config;
pub mod contract;
pub mod cookies;
pub mod deadline;
pub mod disk;
pub mod dispatch;
pub mod docs;
pub mod envelope;
pub mod fault;
pub mod gateway;
pub mod journal;
pub mod keep;
pub mod limits;
pub mod metering;
pub mod paths;
pub mod redact;
pub mod serve;
pub mod session;
pub mod surrogates;
pub mod telemetry;
pub mod tools;
pub mod transport;
pub mod unseen;

/// Standard base64 with padding (RFC 4648, section 4).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
