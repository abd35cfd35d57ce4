//! Everything that works on a log beside its writers, in haste, so that a kill at any moment hits some
//! of it: checkpoints, the index and its tables, compression, retention.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use storage::artifact::ArtifactStore;
use storage::audit::{AuditOptions, Auditor, Pace};
use storage::index::Index;
use storage::log::Log;
use storage::time::SystemClock;
use storage::upkeep::{Parts, Policy, Upkeep};

/// How long noise is kept here.
pub const NOISE_KEPT: Duration = Duration::from_millis(1_500);
const PACE: Pace = Pace {
    events: 100,
    within: Duration::from_millis(100),
    apart: Duration::from_millis(20),
    idle: Duration::from_secs(60),
};

pub struct Housekeeping {
    auditor: Auditor,
    index: Index,
    upkeep: Upkeep,
}

/// Begins all of it on the data directory that the log lies in.
pub fn start(log: &Log, directory: &Path) -> Housekeeping {
    let data = directory.parent().expect("a log lies in a data directory");
    let auditor = Auditor::start(log.clone(), AuditOptions { pace: PACE, ..AuditOptions::new(data.join("audit")) });
    let index = Index::start(&data.join("index"), log.reader(), log.watch());
    let parts = Parts {
        log: log.clone(),
        index: Some(index.clone()),
        artifacts: ArtifactStore::open(&data.join("artifacts"), 1 << 30).expect("the artifacts open"),
        policy: Policy { telemetry: Some(NOISE_KEPT), ..Policy::KEEP_ALL },
        clock: Arc::new(SystemClock),
    };
    let upkeep = Upkeep::start(&data.join("upkeep"), parts).expect("upkeep starts");
    Housekeeping { auditor: auditor.expect("the auditor starts"), index, upkeep }
}

impl Housekeeping {
    pub async fn close(self) {
        self.upkeep.close();
        self.auditor.close().await;
        self.index.close();
    }
}
