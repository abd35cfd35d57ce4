//! The only caller of append: what the gateway tells the log, and how it waits for it.
//!
//! Two ways in. [`Journal::commit`] waits until the events are on disk, for calls and lifecycle.
//! [`Journal::record`] does not wait, for what pages do; when the log cannot keep up it sheds, and
//! says so with a `gap` event as soon as there is room: produced = stored + declared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use storage::StorageError;
use storage::event::catalog::Gap;
use storage::event::{Context, Draft, Kind, Payload, Symbol};
use storage::ids::{InstanceId, OperationId, Owner, SessionId};
use storage::log::{Appended, Log};

/// A handle on the log for everything that produces events. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    log: Log,
    shed: Arc<Mutex<Shed>>,
}

/// What was shed and not yet declared, by session and kind.
#[derive(Default)]
struct Shed {
    counts: BTreeMap<(Option<SessionId>, Kind), u64>,
}

impl Journal {
    #[must_use]
    pub fn new(log: Log) -> Self {
        Self { log, shed: Arc::default() }
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

    /// Appends without waiting. Events that find no room are counted and declared later.
    pub fn record(&self, drafts: Vec<Draft>) {
        let mut shed = self.shed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = shed.declarations();
        let declared = batch.len();
        batch.extend(drafts);
        if let Err(refused) = self.log.offer(batch) {
            // The declarations themselves are not lost: their counts are still in `shed`.
            shed.add(&refused.drafts[declared.min(refused.drafts.len())..]);
            return;
        }
        shed.counts.clear();
    }

    /// Waits until the log's queue has room again. Producers that can be slowed down call this
    /// before reading more, so that shedding stays the last resort.
    pub async fn room(&self) {
        self.log.room().await;
    }
}

impl Shed {
    fn declarations(&self) -> Vec<Draft> {
        let declare = |(key, count): (&(Option<SessionId>, Kind), &u64)| {
            let context = Context { session_id: key.0.clone(), ..Context::default() };
            let gap = Gap { what: Symbol::fold(key.1.name()), count: *count, reason: Symbol::fold("queue_full") };
            Draft::new(&context, &gap)
        };
        self.counts.iter().map(declare).collect()
    }

    fn add(&mut self, drafts: &[Draft]) {
        for draft in drafts {
            *self.counts.entry((draft.session_id.clone(), draft.kind)).or_default() += 1;
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

    #[must_use]
    pub fn context(&self) -> Context {
        Context {
            session_id: Some(self.session_id.clone()),
            instance_id: Some(self.instance_id.clone()),
            owner: Some(self.owner.clone()),
            operation_id: self.operation.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..Context::default()
        }
    }
}
