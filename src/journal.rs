//! The only caller of append: what the gateway tells the log, and how it waits for it.
//!
//! Two ways in. [`Journal::commit`] waits until the events are on disk, for calls and lifecycle.
//! [`Journal::record`] does not wait, for what pages do; when the log cannot keep up it sheds, and
//! says so with a `gap` event as soon as there is room: produced = stored + declared.
//!
//! On a full disk what room is left is for ending in order: audit events go in, everything else is shed
//! and declared once there is room again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use storage::StorageError;
use storage::disk::{DiskLevel, DiskWatch};
use storage::event::catalog::Gap;
use storage::event::{Class, Context, Draft, Kind, Payload, Symbol};
use storage::ids::{InstanceId, OperationId, Owner, SessionId};
use storage::log::{Appended, Log};

/// A handle on the log for everything that produces events. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    log: Log,
    disk: Option<DiskWatch>,
    shed: Arc<Mutex<Shed>>,
}

/// What was shed and not yet declared.
#[derive(Default)]
struct Shed {
    counts: BTreeMap<(Option<SessionId>, Kind, Reason), u64>,
}

/// Why something was shed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    QueueFull,
    DiskFull,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::DiskFull => "disk_full",
        }
    }
}

impl Journal {
    #[must_use]
    pub fn new(log: Log) -> Self {
        Self { log, disk: None, shed: Arc::default() }
    }

    /// Sheds when `disk` is at its lowest level.
    #[must_use]
    pub fn minding(self, disk: DiskWatch) -> Self {
        Self { disk: Some(disk), ..self }
    }

    fn disk_is_full(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.level() == DiskLevel::ReadOnly)
    }

    fn shed(&self) -> MutexGuard<'_, Shed> {
        self.shed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Appends and waits until the events are durable.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log cannot record: nothing may then be done or answered
    /// as done.
    pub async fn commit(&self, drafts: Vec<Draft>) -> Result<Appended, StorageError> {
        self.log.commit(drafts).await
    }

    /// One event of `payload`'s kind, waited for.
    ///
    /// # Errors
    /// As [`Journal::commit`].
    pub async fn commit_one<P: Payload>(&self, context: &Context, payload: &P) -> Result<Appended, StorageError> {
        self.commit(vec![Draft::new(context, payload)]).await
    }

    /// As [`Journal::commit`], for what must be on record sooner or later: refused for lack of room on
    /// the disk, the events wait until there is some.
    ///
    /// # Errors
    /// As [`Journal::commit`]; the caller may then not tell them as recorded.
    pub async fn commit_or_leave(&self, drafts: Vec<Draft>) -> Result<Appended, StorageError> {
        let committed = self.commit(drafts.clone()).await;
        if committed.as_ref().is_err_and(StorageError::is_full) {
            self.record(drafts);
        }
        committed
    }

    /// Appends without waiting. Events that find no room are counted and declared later.
    pub fn record(&self, mut drafts: Vec<Draft>) {
        let disk_full = self.disk_is_full();
        let reason = if disk_full { Reason::DiskFull } else { Reason::QueueFull };
        let mut shed = self.shed();
        let mut batch = Vec::new();
        if disk_full {
            // Declarations take room too: they come once there is some.
            let is_audit = |draft: &Draft| draft.kind.facts().class == Class::Audit;
            let (kept, rest): (Vec<Draft>, Vec<Draft>) = drafts.into_iter().partition(is_audit);
            shed.add(&rest, reason);
            drafts = kept;
        } else {
            batch = shed.declarations();
        }
        let declared = batch.len();
        batch.append(&mut drafts);
        if batch.is_empty() {
            return;
        }
        match self.log.offer(batch) {
            // The declarations themselves are not lost: their counts are still in `shed`.
            Err(refused) => shed.add(&refused.drafts[declared.min(refused.drafts.len())..], reason),
            Ok(()) if declared > 0 => shed.counts.clear(),
            Ok(()) => {}
        }
    }

    /// Counts events that are not even made, because the disk has no room for them.
    pub fn miss(&self, kinds: &[Kind]) {
        let mut shed = self.shed();
        for kind in kinds {
            *shed.counts.entry((None, *kind, Reason::DiskFull)).or_default() += 1;
        }
    }

    /// Declares what was shed, if the disk has room for that; otherwise it stays counted.
    pub fn declare(&self) {
        self.record(Vec::new());
    }

    /// Declares what was shed, and waits for it: nothing may be left when the log is sealed.
    ///
    /// # Errors
    /// As [`Journal::commit`].
    pub async fn declare_all(&self) -> Result<(), StorageError> {
        let declarations = {
            let mut shed = self.shed();
            let declarations = shed.declarations();
            shed.counts.clear();
            declarations
        };
        self.commit_or_leave(declarations).await.map(|_| ())
    }

    /// Waits until the log's queue has room again. Producers that can be slowed down call this
    /// before reading more, so that shedding stays the last resort.
    pub async fn room(&self) {
        self.log.room().await;
    }
}

impl Shed {
    fn declarations(&self) -> Vec<Draft> {
        let declare = |((session_id, kind, reason), count): (&(Option<SessionId>, Kind, Reason), &u64)| {
            let context = Context { session_id: session_id.clone(), ..Context::default() };
            let (what, reason) = (Symbol::fold(kind.name()), Symbol::fold(reason.as_str()));
            Draft::new(&context, &Gap { what, count: *count, reason })
        };
        self.counts.iter().map(declare).collect()
    }

    fn add(&mut self, drafts: &[Draft], reason: Reason) {
        for draft in drafts {
            *self.counts.entry((draft.session_id.clone(), draft.kind, reason)).or_default() += 1;
        }
    }
}

/// Whose events these are, and which call is running: the context every event of a session starts
/// from. Shared by the session's lane, which sets the call, and its collector, which reads it.
#[derive(Debug)]
pub struct Scope {
    pub session_id: SessionId,
    pub instance_id: InstanceId,
    pub owner: Owner,
    operation: Mutex<Option<OperationId>>,
}

impl Scope {
    #[must_use]
    pub fn new(session_id: SessionId, instance_id: InstanceId, owner: Owner) -> Arc<Self> {
        Arc::new(Self { session_id, instance_id, owner, operation: Mutex::new(None) })
    }

    /// The call that events now belong to; `None` between calls.
    pub fn set_operation(&self, operation: Option<OperationId>) {
        *self.operation.lock().unwrap_or_else(PoisonError::into_inner) = operation;
    }

    /// The call that is running now.
    #[must_use]
    pub fn operation(&self) -> Option<OperationId> {
        self.operation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[must_use]
    pub fn context(&self) -> Context {
        Context {
            session_id: Some(self.session_id.clone()),
            instance_id: Some(self.instance_id.clone()),
            owner: Some(self.owner.clone()),
            operation_id: self.operation(),
            ..Context::default()
        }
    }
}
