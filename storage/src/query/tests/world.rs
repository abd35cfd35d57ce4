//! A data directory with a log, an index and a ledger, and short words for putting events into it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::StorageError;
use crate::event::catalog::{
    CallEntered, ConsoleException, ConsoleMessage, Gap, LogEntry, NetworkFailed, NetworkFinished, NetworkRedirect,
    NetworkRequest, NetworkResponse, SessionLaunching,
};
use crate::event::{Clean, Context, Draft, Json, Level};
use crate::ids::{Owner, RequestId, SessionId};
use crate::index::{Index, IndexHealth};
use crate::log::{Log, LogOptions};
use crate::query::{CursorKey, EventFilter, Ledger, Order, OwnedEvent, Page, PageRequest};
use crate::time::ManualClock;

/// Longer than anything here takes; reached only when a test fails.
pub const LIMIT: Duration = Duration::from_secs(20);

/// In memory where there is such a place.
pub fn temporary() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("a temporary directory can be made")
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("read") {
        let (from, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).expect("read");
        if from.is_dir() {
            copy(&from, &to);
        } else {
            // What goes while it is being copied was not needed any more.
            let _ = std::fs::copy(&from, &to);
        }
    }
}

pub struct World {
    pub log: Log,
    pub index: Index,
    pub ledger: Ledger,
    pub clock: Arc<ManualClock>,
    /// A segment of its own for each commit.
    rolling: bool,
}

impl World {
    /// As few segments as there can be, or as many.
    pub const WAYS: [fn(&Path) -> Self; 2] = [Self::open, Self::open_rolling];

    pub fn open(directory: &Path) -> Self {
        let clock = Arc::new(ManualClock::default());
        clock.set_micros(crate::time::now_micros());
        let log = LogOptions { clock: clock.clone(), ..LogOptions::new(directory.join("log")) };
        let log = Log::open(log).expect("the log opens");
        let index = Index::start(&directory.join("index"), log.reader(), log.watch());
        let key = CursorKey::load_or_create(&directory.join("cursor.key")).expect("the key is made");
        let ledger = Ledger::new(log.reader(), index.clone(), key);
        Self { log, index, ledger, clock, rolling: false }
    }

    pub fn open_rolling(directory: &Path) -> Self {
        Self { rolling: true, ..Self::open(directory) }
    }

    pub async fn put(&self, drafts: Vec<Draft>) -> u64 {
        let last_seq = self.log.commit(drafts).await.expect("the log records").last_seq;
        if self.rolling {
            self.log.roll().await.expect("the segment is sealed");
        }
        last_seq
    }

    /// The index as it stands once it has seen everything.
    pub async fn settled(&self) -> IndexHealth {
        let last_seq = self.log.watch().borrow().last_seq;
        tokio::time::timeout(LIMIT, self.index.caught_up(last_seq)).await.expect("the index catches up");
        self.index.health()
    }

    pub async fn close(self) {
        self.index.close();
        self.log.close().await.expect("the log closes");
    }

    pub async fn page(&self, filter: &EventFilter, after: Option<&str>, limit: usize) -> Page<OwnedEvent> {
        self.try_page(filter, Order::Oldest, after, limit, "ann").await.expect("the page is read")
    }

    pub async fn try_page(
        &self,
        filter: &EventFilter,
        order: Order,
        after: Option<&str>,
        limit: usize,
        owner: &str,
    ) -> Result<Page<OwnedEvent>, StorageError> {
        let (filter, owner) = (filter.compile().expect("the filter is valid"), Owner::from(owner));
        self.ledger.page(&PageRequest { filter: &filter, order, after, limit, owner: &owner }).await
    }
}

pub fn context(owner: &str, session: &str) -> Context {
    Context {
        session_id: Some(SessionId::from(session)),
        owner: Some(Owner::from(owner)),
        instance_id: Some("i-1".into()),
        ..Context::default()
    }
}

pub fn of_request(owner: &str, session: &str, request: &str) -> Context {
    Context { request_id: Some(RequestId::from(request)), ..context(owner, session) }
}

pub fn launching(owner: &str, session: &str) -> Draft {
    let payload = SessionLaunching {
        name: session.into(),
        channel: "chromium".into(),
        headless: true,
        options: Json::redacted(&serde_json::json!({})),
    };
    Draft::new(&context(owner, session), &payload)
}

pub fn console(owner: &str, session: &str, level: Level, text: &str) -> Draft {
    let payload = ConsoleMessage {
        level,
        r#type: "log".into(),
        text: Clean::redacted(text),
        url: None,
        line: None,
        column: None,
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context(owner, session), &payload)
}

/// An error nobody caught.
pub fn thrown(owner: &str, session: &str) -> Draft {
    let payload = ConsoleException {
        level: Level::Error,
        text: Clean::redacted("not caught"),
        url: None,
        line: None,
        column: None,
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context(owner, session), &payload)
}

/// A warning of the browser's log.
pub fn entry(owner: &str, session: &str, source: &str) -> Draft {
    let payload = LogEntry {
        level: Level::Warning,
        source: source.into(),
        text: Clean::redacted("said by the browser"),
        url: None,
        line: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context(owner, session), &payload)
}

pub fn entered(owner: &str, session: &str) -> Draft {
    Draft::new(&context(owner, session), &CallEntered { tool: "click".into(), queue_ms: 0.0 })
}

/// As the journal declares it: with its session and without an owner.
pub fn gap(session: &str, what: &str, count: u64) -> Draft {
    let context = Context { session_id: Some(session.into()), ..Context::default() };
    Draft::new(&context, &Gap { what: what.into(), count, reason: "queue_full".into() })
}

pub fn request(context: &Context, url: &str, method: &str, resource_type: &str, redirects: u64) -> Draft {
    let payload = NetworkRequest {
        url: Clean::redacted(url),
        method: Clean::redacted(method),
        resource_type: resource_type.into(),
        headers: Json::redacted(&serde_json::json!({})),
        initiator: None,
        priority: None,
        body_bytes: None,
        body: None,
        body_artifact: None,
        redirects: Some(redirects).filter(|redirects| *redirects > 0),
        truncated_fields: None,
    };
    Draft::new(context, &payload)
}

pub fn redirect(context: &Context, from: &str, to: &str) -> Draft {
    let payload = NetworkRedirect {
        url: Clean::redacted(from),
        status: 302,
        location: Clean::redacted(to),
        headers: Json::redacted(&serde_json::json!({})),
        truncated_fields: None,
    };
    Draft::new(context, &payload)
}

pub fn response(context: &Context, url: &str, status: u64) -> Draft {
    let payload = NetworkResponse {
        url: Clean::redacted(url),
        status,
        status_text: Clean::fixed("so"),
        mime_type: Clean::fixed("text/html"),
        protocol: Some("h2".into()),
        headers: Json::redacted(&serde_json::json!({})),
        remote_address: None,
        served_from: None,
        timing: None,
        truncated_fields: None,
    };
    Draft::new(context, &payload)
}

pub fn finished(context: &Context) -> Draft {
    Draft::new(context, &NetworkFinished { encoded_bytes: 7, decoded_bytes: Some(9), duration_ms: Some(1.5) })
}

pub fn failed(context: &Context, error: &str) -> Draft {
    let payload = NetworkFailed {
        error: Clean::redacted(error),
        canceled: true,
        blocked_reason: None,
        cors_error: None,
        duration_ms: None,
    };
    Draft::new(context, &payload)
}

pub fn of_session(session: &str) -> EventFilter {
    EventFilter { session_id: Some(session.into()), ..EventFilter::default() }
}

pub fn seqs(page: &Page<OwnedEvent>) -> Vec<u64> {
    page.items.iter().map(OwnedEvent::seq).collect()
}
