//! `server_status`, `session_info`.

use serde_json::{Value, json};

use super::lifecycle::{PERSISTENCE_MODES, current_url, lease_expires_at_ms};
use super::offer::Offer;
use super::tool::{Call, Output, Tool};
use crate::contract::facts::SESSION;
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Returns, ToolFacts};
use crate::fault::Fault;
use crate::gateway::Gateway;

pub static SERVER_STATUS: Tool = Tool {
    facts: ToolFacts {
        name: "server_status",
        title: "Server status",
        text: "Report uptime, version, session counts, the log's and the disk's health, every limit in force.",
        pack: Pack::Introspection,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[],
        returns: Returns::Object(&[
            Field::integer("uptime_ms"),
            Field::text("version"),
            Field::choice("transport", &["stdio", "http"]),
            Field::object("sessions"),
            Field::object("vault"),
            Field::choice("persistence_mode", PERSISTENCE_MODES),
            Field::object("log"),
            Field::object("disk"),
            Field::texts("packs"),
            Field::object("limits"),
        ]),
    },
    run: |call| Box::pin(server_status(call)),
};

async fn server_status(call: Call) -> Result<Output, Fault> {
    let gateway = &call.gateway;
    let offer = Offer::of(&gateway.config);
    let uptime_ms = u64::try_from(gateway.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Output::value(json!({
        "uptime_ms": uptime_ms,
        "version": env!("CARGO_PKG_VERSION"),
        "transport": gateway.transport.as_str(),
        "sessions": {"count": gateway.registry.list(&call.owner).len(), "limit": gateway.registry.sessions_max()},
        "vault": {"enabled": false, "backend": null, "evaluate_warning": false},
        "persistence_mode": "memory",
        "log": log(gateway),
        "audit": audit(gateway),
        "upkeep": upkeep(gateway),
        "disk": crate::disk::shown(gateway),
        "packs": offer.packs(),
        "tools": offer.tools().len(),
        "blocked_origins": {"rules": gateway.config.blocked_origins.len()},
        "limits": gateway.config.limits(),
    })))
}

/// The log's health, as status and readiness show it.
pub(crate) fn log(gateway: &Gateway) -> Value {
    let health = gateway.journal.log().health();
    let index = gateway.index.health();
    let sync_interval_ms = crate::metering::sync_interval_ms(health.durability);
    json!({
        "available": health.unavailable.is_none(),
        "reason": health.unavailable,
        "disk_full": health.full,
        "durability": if sync_interval_ms.is_some() { "interval" } else { "commit" },
        "sync_interval_ms": sync_interval_ms,
        "unsynced_ms": health.unsynced_micros.map(|micros| micros / 1000),
        "log_id": gateway.journal.log().log_id(),
        "epoch": health.epoch,
        "last_seq": health.last_seq,
        "queue_bytes": health.queue_bytes,
        "commits": health.commits,
        "index_reached_seq": index.reached_seq,
        "index_rebuilds": index.rebuilds,
    })
}

/// What becomes of old events.
fn upkeep(gateway: &Gateway) -> Value {
    let health = gateway.upkeep.health();
    let counts = &health.counts;
    let removed = |row: usize| {
        let [telemetry, evidence, audit] = counts.removed[row];
        json!({"telemetry": telemetry, "evidence": evidence, "audit": audit})
    };
    json!({
        "running": health.running,
        "last_pass_at": health.last_pass_micros.map(storage::time::rfc3339),
        "reason": health.last_error,
        "over_quota": health.over_quota,
        "segments": counts.segments,
        "plain_bytes": counts.plain_bytes,
        "compressed_bytes": counts.compressed_bytes,
        "removed_by_age": removed(0),
        "removed_by_bytes": removed(1),
        "artifacts_removed": counts.artifacts_removed,
        "artifact_bytes_removed": counts.artifact_bytes_removed,
    })
}

/// How far history is signed.
fn audit(gateway: &Gateway) -> Value {
    let health = gateway.auditor.health();
    let last_seq = gateway.journal.log().health().last_seq;
    json!({
        "signing": health.failing.is_none(),
        "reason": health.failing,
        "lost": health.lost,
        "key_id": health.key.map(|key| key.to_string()),
        "signed_seq": health.signed_seq,
        "signed_at": health.signed_at_micros.map(storage::time::rfc3339),
        "unsigned_events": last_seq.saturating_sub(health.signed_seq),
        "checkpoints": health.checkpoints,
    })
}

pub static SESSION_INFO: Tool = Tool {
    facts: ToolFacts {
        name: "session_info",
        title: "Session info",
        text: "Report one session's configuration and live state.",
        pack: Pack::Introspection,
        effect: Effect::READ,
        lane: Lane::Beside,
        parameters: &[SESSION],
        returns: Returns::Object(&[
            SESSION_ID,
            Field::object("config"),
            Field::integer("page_count"),
            Field::text("current_url").or_null(),
            Field::integer("created_at"),
            Field::integer("last_tool_at"),
            Field::integer("lease_expires_at"),
            Field::integer("navigation_count"),
        ]),
    },
    run: |call| Box::pin(session_info(call)),
};

async fn session_info(call: Call) -> Result<Output, Fault> {
    let session = call.session()?;
    let options = &session.options;
    let config = json!({
        "slug": options.slug,
        "channel": options.channel,
        "headless": options.headless,
        "incognito": options.incognito,
        "persistence_mode": options.persistence_mode,
        "disable_evaluate": options.disable_evaluate,
        "vault_enabled": options.vault_enabled,
        "stealth": false,
        "fingerprint": false,
        "humanize": false,
        "owner": session.owner.as_str(),
        "sandbox": call.gateway.config.chromium_sandbox,
    });
    Ok(Output::value(json!({
        "session_id": session.id.as_str(),
        "config": config,
        "page_count": call.browser()?.pages().len(),
        "current_url": current_url(session),
        "created_at": session.created_at_micros / 1000,
        "last_tool_at": session.last_used_micros() / 1000,
        "lease_expires_at": lease_expires_at_ms(session),
        "navigation_count": session.navigations(),
        "instance_id": session.instance_id.as_str(),
        "status": session.state().as_str(),
        "queue_depth": session.lane.depth(),
        "browser": call.browser()?.version(),
    })))
}
