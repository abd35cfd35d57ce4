//! Metrics follow the log: every durable event is folded in once, and gauges are read at each scrape.
//! No handler counts anything by hand.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use exporters::metrics::{Gauge, Total};
use storage::disk::BallastState;
use storage::log::{Durability, Durable, Reader};

use crate::gateway::Gateway;
use crate::limits::{METRICS_FOLD_MS, METRICS_UPKEEP_SECONDS};

/// Folds events into the metrics until the log closes. Starts at the log's present end: counters
/// count what this process has seen.
pub async fn follow(gateway: Gateway) {
    let log = gateway.journal.log();
    let mut durable = log.watch();
    let reader = log.reader();
    let mut reached = gateway.first_own_seq.saturating_sub(1);
    loop {
        let end = *durable.borrow_and_update();
        if end.last_seq > reached {
            reached = fold(gateway.clone(), reader.clone(), reached, end).await;
        }
        if durable.changed().await.is_err() {
            return;
        }
        // Commits come by the hundred a second; scrapes by the minute.
        tokio::time::sleep(Duration::from_millis(METRICS_FOLD_MS)).await;
    }
}

async fn fold(gateway: Gateway, reader: Reader, reached: u64, end: Durable) -> u64 {
    let folded = tokio::task::spawn_blocking(move || {
        let mut last = reached;
        let scanned = reader.scan(reached + 1, &|_| true, &mut |event| {
            gateway.metrics.observe(event);
            last = event.seq;
            ControlFlow::Continue(())
        });
        if let Err(error) = scanned {
            tracing::error!(%error, "metrics could not read the log");
            // Going on from here keeps one unreadable block from stopping the metrics for good.
            last = end.last_seq;
        }
        last
    });
    folded.await.unwrap_or(end.last_seq)
}

/// Drains histogram samples now and then, so that they do not pile up between scrapes.
pub async fn upkeep(gateway: Gateway) {
    let mut tick = tokio::time::interval(Duration::from_secs(METRICS_UPKEEP_SECONDS));
    loop {
        tick.tick().await;
        gateway.metrics.run_upkeep();
    }
}

/// The text exposition, with every gauge as of now.
#[must_use]
pub fn render(gateway: &Gateway) -> String {
    let metrics = &gateway.metrics;
    let log = gateway.journal.log().health();
    let index = gateway.index.health();
    metrics.set(Gauge::SessionsLive, count(gateway.registry.reserved()));
    metrics.set(Gauge::SessionsMax, count(gateway.registry.sessions_max()));
    metrics.set(Gauge::CallsRunning, count(gateway.calls_running.load(Ordering::Relaxed)));
    metrics.set(Gauge::CallsQueued, count(gateway.registry.all().iter().map(|s| s.lane.depth()).sum()));
    metrics.set(Gauge::LogAvailable, f64::from(u8::from(log.unavailable.is_none())));
    metrics.set(Gauge::LogFull, f64::from(u8::from(log.full)));
    metrics.set(Gauge::LogSyncInterval, sync_interval_ms(log.durability).unwrap_or(0) as f64 / 1e3);
    metrics.set(Gauge::LogUnsynced, log.unsynced_micros.unwrap_or(0) as f64 / 1e6);
    metrics.set(Gauge::LogLastSeq, log.last_seq as f64);
    metrics.set(Gauge::LogEpoch, log.epoch as f64);
    metrics.set(Gauge::LogQueueBytes, log.queue_bytes as f64);
    metrics.set(Gauge::LogQueueBytesMax, count(storage::limits::QUEUE_BYTES_MAX));
    metrics.set(Gauge::LogLastFsync, log.last_fsync_micros as f64 / 1e6);
    metrics.set(Gauge::IndexReachedSeq, index.reached_seq as f64);
    metrics.set(Gauge::IndexLag, log.last_seq.saturating_sub(index.reached_seq) as f64);
    let audit = gateway.auditor.health();
    metrics.set(Gauge::AuditSigning, f64::from(u8::from(audit.failing.is_none())));
    metrics.set(Gauge::AuditSignedSeq, audit.signed_seq as f64);
    metrics.set(Gauge::AuditUnsigned, log.last_seq.saturating_sub(audit.signed_seq) as f64);
    if let Some(micros) = audit.signed_at_micros {
        metrics.set(Gauge::AuditSignedAt, micros as f64 / 1e6);
    }
    looked_after(gateway);
    metrics.set(Gauge::ArtifactsQuota, gateway.config.artifact_quota_bytes as f64);
    metrics.set_total(Total::LogCommits, log.commits as f64);
    metrics.set_total(Total::LogBytes, log.synced_bytes as f64);
    metrics.set_total(Total::LogFsync, log.fsync_seconds);
    disk(gateway);
    process(gateway);
    metrics.render()
}

/// The longest time between two syncs, where they do not come with each commit.
#[must_use]
pub fn sync_interval_ms(durability: Durability) -> Option<u64> {
    match durability {
        Durability::Commit => None,
        Durability::Interval { millis } => Some(millis),
    }
}

fn looked_after(gateway: &Gateway) {
    let metrics = &gateway.metrics;
    let health = gateway.upkeep.health();
    let counts = &health.counts;
    metrics.set(Gauge::UpkeepFailing, f64::from(u8::from(!health.running || health.last_error.is_some())));
    metrics.set(Gauge::UpkeepOverQuota, f64::from(u8::from(health.over_quota)));
    if let Some(micros) = health.last_pass_micros {
        metrics.set(Gauge::UpkeepLastPass, micros as f64 / 1e6);
        metrics.set(Gauge::LogSegments, counts.segments as f64);
        metrics.set(Gauge::LogPlainBytes, counts.plain_bytes as f64);
        metrics.set(Gauge::LogCompressedBytes, counts.compressed_bytes as f64);
    }
    metrics.set(Gauge::LogQuota, gateway.config.retention.log_bytes_max.unwrap_or(0) as f64);
    let [telemetry, evidence, audit] = [0, 1, 2].map(|class| counts.removed.iter().map(|row| row[class]).sum::<u64>());
    metrics.set_total(Total::UpkeepTelemetry, telemetry as f64);
    metrics.set_total(Total::UpkeepEvidence, evidence as f64);
    metrics.set_total(Total::UpkeepAudit, audit as f64);
    metrics.set_total(Total::UpkeepArtifacts, counts.artifacts_removed as f64);
    metrics.set_total(Total::UpkeepArtifactBytes, counts.artifact_bytes_removed as f64);
}

fn disk(gateway: &Gateway) {
    let metrics = &gateway.metrics;
    let disk = gateway.disk.state();
    metrics.set(Gauge::DiskFree, disk.space.free_bytes as f64);
    metrics.set(Gauge::DiskSize, disk.space.total_bytes as f64);
    metrics.set(Gauge::DiskLevel, f64::from(disk.level as u8));
    let held = if disk.ballast == BallastState::Held { disk.ballast_bytes } else { 0 };
    metrics.set(Gauge::DiskBallast, held as f64);
}

/// What the operating system knows of this process; left as it was where it does not say.
fn process(gateway: &Gateway) {
    let metrics = &gateway.metrics;
    metrics.set(Gauge::BuildInfo, 1.0);
    let started = storage::time::now_micros() as f64 / 1e6 - gateway.started.elapsed().as_secs_f64();
    metrics.set(Gauge::ProcessStart, started.round());
    if let Some(bytes) = resident_bytes() {
        metrics.set(Gauge::ProcessResident, bytes as f64);
    }
    if let Some(seconds) = processor_seconds() {
        metrics.set_total(Total::ProcessCpu, seconds);
    }
    if let Ok(bytes) = gateway.artifacts.stored_bytes() {
        metrics.set(Gauge::ArtifactsStored, bytes as f64);
    }
}

/// Resident memory of this process in bytes, from proc(5).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// User and system time of this process in seconds, from proc(5).
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold anything; what follows its closing parenthesis begins with field 3.
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / rustix::param::clock_ticks_per_second() as f64)
}

fn count(number: usize) -> f64 {
    number as f64
}
