//! What the run before left unfinished. After a crash every call and every session gets its end on
//! record, so that nobody has to guess: accepted but not entered did nothing, entered but not settled
//! is unknown, and no browser outlives the process that held its pipe.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use storage::StorageError;
use storage::event::catalog::{CallSettled, LogOpened, LogRecovered, SessionClosed};
use storage::event::codec::ContextField;
use storage::event::{Context, Draft, EventView, Kind, Payload, Symbol};
use storage::log::{Log, Reader};

use crate::envelope::outcome_of;
use crate::gateway::Gateway;

/// Kinds that tell how far calls and sessions came.
const TELLING: [Kind; 5] =
    [Kind::CallAccepted, Kind::CallEntered, Kind::CallSettled, Kind::SessionLaunching, Kind::SessionClosed];

struct OpenCall {
    context: Context,
    tool: Symbol,
    entered: bool,
}

struct OpenSession {
    context: Context,
    since_micros: i64,
    until_micros: i64,
}

#[derive(Default)]
struct Unfinished {
    calls: BTreeMap<String, OpenCall>,
    sessions: BTreeMap<String, OpenSession>,
}

/// The events that give the run before its ends; none when it ended in order.
///
/// # Errors
/// When the log cannot be read.
pub fn ends(log: &Log) -> Result<Vec<Draft>, StorageError> {
    // Most runs end in order, and then the long history is nothing to look at.
    if log.was_clean() {
        return Ok(Vec::new());
    }
    let reader = &log.reader();
    let mut unfinished = Unfinished::default();
    let tells = |kinds: u128| TELLING.iter().any(|kind| kinds >> kind.number() & 1 == 1);
    let scanned = openings(reader).and_then(|before| {
        reader.scan(before, &|header| tells(header.kinds), &mut |event| {
            unfinished.take_in(event);
            ControlFlow::Continue(())
        })
    });
    match scanned {
        // What lies behind the damage is not known to have ended; a second end says no more than unknown.
        Err(error @ StorageError::Damaged { .. }) => {
            tracing::error!(%error, "what the run before left unfinished cannot be told in full");
        }
        scanned => scanned?,
    }
    Ok(unfinished.drafts())
}

/// Where the first run that was not followed by an orderly start began.
fn openings(reader: &Reader) -> Result<u64, StorageError> {
    let mut before = reader.first_seq();
    let mut latest: Option<(u64, LogOpened)> = None;
    let opens = |kinds: u128| kinds >> Kind::LogOpened.number() & 1 == 1;
    reader.scan(before, &|header| opens(header.kinds), &mut |event| {
        if let Ok(opened) = LogOpened::take(event) {
            // A run that did not come to record the ends of the one before it leaves them to the next.
            if let Some((seq, LogOpened { clean: true, .. })) = latest.replace((event.seq, opened)) {
                before = seq;
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(before)
}

/// Puts each rebuild of the index on record.
pub async fn report_rebuilds(gateway: Gateway) {
    let mut rebuilds = gateway.index.watch_rebuilds();
    let mut reported = 0;
    loop {
        let count = *rebuilds.borrow_and_update();
        if count > reported {
            reported = count;
            let recovered = LogRecovered {
                what: Symbol::fold("index_rebuilt"),
                bytes_cut: None,
                kept_as: None,
                detail: gateway.index.health().reason.map(|reason| gateway.redactor.text(&reason)),
            };
            gateway.journal.record(vec![Draft::new(&Context::default(), &recovered)]);
        }
        if rebuilds.changed().await.is_err() {
            return;
        }
    }
}

impl Unfinished {
    fn take_in(&mut self, event: &EventView<'_>) {
        let operation = event.context(ContextField::OperationId).unwrap_or_default().to_owned();
        let session = event.context(ContextField::SessionId).unwrap_or_default().to_owned();
        if let Some(open) = self.sessions.get_mut(&session) {
            open.until_micros = event.recorded_at_micros;
        }
        match event.kind() {
            Some(Kind::CallAccepted) => {
                let tool = Symbol::fold(event.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default());
                self.calls.insert(operation, OpenCall { context: context(event), tool, entered: false });
            }
            Some(Kind::CallEntered) => {
                if let Some(call) = self.calls.get_mut(&operation) {
                    call.entered = true;
                }
            }
            Some(Kind::CallSettled) => {
                self.calls.remove(&operation);
            }
            Some(Kind::SessionLaunching) => {
                let at = event.recorded_at_micros;
                let context = Context { operation_id: None, ..context(event) };
                self.sessions.insert(session, OpenSession { context, since_micros: at, until_micros: at });
            }
            Some(Kind::SessionClosed) => {
                self.sessions.remove(&session);
            }
            _ => {}
        }
    }

    fn drafts(self) -> Vec<Draft> {
        let calls = self.calls.into_values().map(|call| {
            let (outcome, retry) = outcome_of(false, call.entered, false);
            let settled = CallSettled {
                tool: call.tool,
                outcome: Symbol::fold(outcome.as_str()),
                code: None,
                retry: Symbol::fold(retry.as_str()),
                duration_ms: 0.0,
                queue_ms: 0.0,
                result_bytes: 0,
            };
            Draft::new(&call.context, &settled)
        });
        let sessions = self.sessions.into_values().map(|session| {
            let lived = session.until_micros.saturating_sub(session.since_micros);
            let closed = SessionClosed { reason: Symbol::fold("interrupted"), duration_ms: lived as f64 / 1000.0 };
            Draft::new(&session.context, &closed)
        });
        calls.chain(sessions).collect()
    }
}

/// Whose event it was.
fn context(event: &EventView<'_>) -> Context {
    let text = |field: ContextField| event.context(field);
    Context {
        session_id: text(ContextField::SessionId).map(Into::into),
        instance_id: text(ContextField::InstanceId).map(Into::into),
        owner: text(ContextField::Owner).map(Into::into),
        page_id: text(ContextField::PageId).map(Into::into),
        operation_id: text(ContextField::OperationId).map(Into::into),
        ..Context::default()
    }
}
