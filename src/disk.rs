//! Follows the room on the disk: looks every second and whenever a write was refused, puts each change
//! of level on record, and declares what was shed once there is room again.

use std::time::Duration;

use storage::disk::{BallastState, DiskLevel, DiskState};
use storage::event::{Context, Draft, Symbol, catalog};

use crate::gateway::Gateway;
use crate::limits::DISK_LOOK_SECONDS;

/// Goes on for as long as the process does.
pub async fn follow(gateway: Gateway) {
    let mut news = gateway.disk.watch();
    let mut tick = tokio::time::interval(Duration::from_secs(DISK_LOOK_SECONDS));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // A disk with enough room is nothing to report.
    let mut told = (DiskLevel::Ok, None);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            // The gateway holds the sender, so this is never the end.
            _ = news.changed() => {}
        }
        let disk = gateway.disk.clone();
        let Ok(state) = tokio::task::spawn_blocking(move || disk.look()).await else { continue };
        news.mark_unchanged();
        let now = (state.level, (state.level != DiskLevel::Ok).then_some(state.ballast));
        if now != told {
            report(&gateway, told.0, &state);
            told = now;
        }
        if state.level != DiskLevel::ReadOnly {
            gateway.journal.declare();
        }
    }
}

fn report(gateway: &Gateway, before: DiskLevel, state: &DiskState) {
    let (level, free_bytes) = (state.level.as_str(), state.space.free_bytes);
    if state.level > before {
        tracing::warn!(level, free_bytes, "the data directory's disk is low");
    } else {
        tracing::info!(level, free_bytes, "the data directory's disk has changed its level");
    }
    let changed = catalog::DiskLevel {
        level: Symbol::fold(level),
        free_bytes,
        total_bytes: state.space.total_bytes,
        ballast: Symbol::fold(state.ballast.as_str()),
    };
    gateway.journal.record(vec![Draft::new(&Context::default(), &changed)]);
}

/// The disk, as status shows it.
#[must_use]
pub fn shown(gateway: &Gateway) -> serde_json::Value {
    let state = gateway.disk.state();
    serde_json::json!({
        "level": state.level.as_str(),
        "free_bytes": state.space.free_bytes,
        "total_bytes": state.space.total_bytes,
        "ballast": state.ballast.as_str(),
        "ballast_bytes": if state.ballast == BallastState::Off { 0 } else { state.ballast_bytes },
        "write_refused": state.refusing,
    })
}
