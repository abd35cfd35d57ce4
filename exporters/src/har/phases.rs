//! The phases of a request, in milliseconds, so that they add up to the whole.
//!
//! What must stay true: `blocked + dns + connect + send + wait + receive` is `time`; `ssl` is part of
//! `connect`; what was not measured is -1 and counts for nothing. The browser measures phases from the
//! moment it takes a request up, the whole is from the moment the page asked; both waits are `blocked`.

use serde_json::{Map, Value, json};

/// Decimals that a millisecond is told with: microseconds.
const MICROS_PER_MILLI: f64 = 1000.0;

pub(super) struct Phases {
    pub timings: Value,
    pub time: f64,
}

/// `measured` is what the response event says; `total_ms` the whole.
pub(super) fn phases(measured: &Map<String, Value>, total_ms: f64) -> Phases {
    let total = rounded(total_ms.max(0.0));
    let at = |name: &str| measured.get(name).and_then(Value::as_f64).filter(|value| *value >= 0.0);
    let between = |from: &str, to: &str| Some(rounded((at(to)? - at(from)?).max(0.0)));
    let (dns, connect, ssl) =
        (between("dns_start", "dns_end"), between("connect_start", "connect_end"), between("ssl_start", "ssl_end"));
    let send = between("send_start", "send_end").unwrap_or(0.0);
    let answered = at("headers_end").or(at("headers_start"));
    let wait = answered.zip(at("send_end")).map(|(answered, sent)| rounded((answered - sent).max(0.0)));
    let known = dns.unwrap_or(0.0) + connect.unwrap_or(0.0) + send + wait.unwrap_or(0.0);
    if wait.is_none() || known > total {
        // Nothing was measured (a cache, a failure), or it contradicts the whole: one phase is all there is.
        return Phases { timings: timings(None, None, None, None, (0.0, total, 0.0)), time: total };
    }
    // Before the first phase that was measured the request was held back in the browser.
    let first = ["dns_start", "connect_start", "send_start"].into_iter().filter_map(at).fold(f64::MAX, f64::min);
    let held_back = at("queued").unwrap_or(0.0) + if first == f64::MAX { 0.0 } else { first };
    let rest = rounded(total - known);
    let blocked = rounded(held_back.min(rest));
    let receive = rounded(rest - blocked);
    let timings = timings(Some(blocked), dns, connect, ssl, (send, wait.unwrap_or(0.0), receive));
    let time = rounded(blocked + known + receive);
    Phases { timings, time }
}

fn timings(
    blocked: Option<f64>,
    dns: Option<f64>,
    connect: Option<f64>,
    ssl: Option<f64>,
    (send, wait, receive): (f64, f64, f64),
) -> Value {
    let or_not = |phase: Option<f64>| phase.unwrap_or(-1.0);
    json!({
        "blocked": or_not(blocked),
        "dns": or_not(dns),
        "connect": or_not(connect),
        "send": send,
        "wait": wait,
        "receive": receive,
        "ssl": or_not(ssl),
    })
}

fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * MICROS_PER_MILLI).round() / MICROS_PER_MILLI
}
