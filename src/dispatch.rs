//! The life of a call, from raw arguments to bounded reply, all branches in one place.
//!
//! ```text
//! rejected                                   nothing was done
//! accepted -> (lane) -> entered -> settled   from `entered` on there may have been effects
//!                  \-> settled               not started: late, cancelled, closing
//! ```
//!
//! Record, then tell: a tool that acts runs only after `call.entered` is durable, and every reply
//! leaves only after `call.settled` is. A client that goes away changes nothing about a call that
//! acts: it ends, and its outcome is on record. A call that only reads is dropped instead, so that
//! waiting for something nobody waits for does not hold up the session.

mod admission;
mod shown;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use storage::event::catalog::{CallAccepted, CallCancelled, CallEntered, CallRejected, CallSettled};
use storage::event::{Context, Draft, Kind, Symbol};
use storage::ids::{OperationId, Owner, random_uuid};
use storage::time::now_micros;
use tokio_util::sync::CancellationToken;

use crate::contract::{Arguments, Lane, Pack, ToolFacts, validate};
use crate::deadline::Deadline;
use crate::envelope::{self, Form, Operation, Reply};
use crate::fault::{Code, Fault};
use crate::gateway::Gateway;
use crate::keep::KeepForCall;
use crate::limits::{CALL_GRACE_MS, CATCH_UP_MS, IMAGE_SHARE_MAX, RESULT_BYTES_MIN};
use crate::session::Session;
use crate::session::lane::{NoTurn, Turn};
use crate::tools::tool::{Call, Image, Output, Target, Tool};

/// A reply and the picture that goes with it.
pub struct Answer {
    pub reply: Reply,
    pub image: Option<Image>,
}

/// One call on its way, as dispatch keeps track of it.
struct Progress {
    facts: &'static ToolFacts,
    operation_id: OperationId,
    owner: Owner,
    started: Instant,
    started_at_micros: i64,
    target: Target,
    form: Form,
    queue: Duration,
    entered: bool,
    /// The disk has no room for the call's own events: they are counted, and declared later.
    off_record: bool,
}

impl Progress {
    /// Reading a history does not become part of it: else polling would never find it at rest. Who
    /// read what is on record all the same, under the reader.
    fn context(&self) -> Context {
        let (owner, operation_id) = (Some(self.owner.clone()), Some(self.operation_id.clone()));
        if self.facts.pack == Pack::Evidence {
            return Context { owner, operation_id, ..Context::default() };
        }
        let ids = self.target.ids();
        Context {
            session_id: ids.instance.map(Into::into),
            instance_id: ids.instance_id,
            owner,
            page_id: ids.page_id,
            frame_id: ids.frame_id,
            operation_id,
            ..Context::default()
        }
    }
}

/// Runs one call to its end. Spawn it: the caller may stop listening.
pub async fn call(
    gateway: Gateway,
    tool: &'static Tool,
    raw: Map<String, Value>,
    owner: Owner,
    form: Form,
    cancelled: CancellationToken,
) -> Answer {
    let mut progress = Progress {
        facts: &tool.facts,
        operation_id: OperationId::from(random_uuid()),
        owner,
        started: Instant::now(),
        started_at_micros: now_micros(),
        target: Target::default(),
        form,
        queue: Duration::ZERO,
        entered: false,
        off_record: admission::is_off_record(&gateway, &tool.facts),
    };
    let result = match prepare(&gateway, tool, raw, &progress, cancelled) {
        Ok(call) => {
            gateway.calls_running.fetch_add(1, Ordering::Relaxed);
            let result = perform(&gateway, tool, call, &mut progress).await;
            gateway.calls_running.fetch_sub(1, Ordering::Relaxed);
            result
        }
        Err(fault) => {
            let rejected = reject(&gateway, &tool.facts, &progress, &fault).await;
            return answer(&gateway, tool, &progress, Err(rejected.err().unwrap_or(fault)), None).await;
        }
    };
    settle(&gateway, tool, &progress, result).await
}

/// Everything that can be refused without having been accepted.
fn prepare(
    gateway: &Gateway,
    tool: &Tool,
    raw: Map<String, Value>,
    progress: &Progress,
    cancelled: CancellationToken,
) -> Result<Call, Fault> {
    admission::admit(gateway, &tool.facts)?;
    let arguments = validate::arguments(tool.facts.parameters, raw)?;
    let session = match tool.facts.lane {
        Lane::Free => {
            if let Some(session) = concerned(gateway, &tool.facts, &arguments, &progress.owner) {
                progress.target.set_session(&session);
            }
            None
        }
        Lane::Session | Lane::Beside => {
            let session = gateway.registry.find(&progress.owner, arguments.text("session_id"))?;
            progress.target.set_session(&session);
            session.browser()?;
            session.touch();
            Some(session)
        }
    };
    Ok(Call {
        gateway: gateway.clone(),
        deadline: deadline(gateway, &arguments),
        limit: Deadline::after(gateway.config.operation_timeout),
        arguments,
        owner: progress.owner.clone(),
        operation_id: progress.operation_id.clone(),
        session,
        cancelled,
        target: progress.target.clone(),
        form: progress.form,
    })
}

/// The session that a tool opens or closes without running in its lane.
fn concerned(gateway: &Gateway, facts: &ToolFacts, arguments: &Arguments, owner: &Owner) -> Option<Arc<Session>> {
    let name = match facts.pack {
        Pack::Lifecycle => arguments.optional_text("session_id"),
        Pack::Instances => arguments.optional_text("name"),
        _ => None,
    };
    name.and_then(|name| gateway.registry.find(owner, name).ok())
}

/// The call's own limit where it names one, never beyond the server's.
fn deadline(gateway: &Gateway, arguments: &Arguments) -> Deadline {
    let limit = gateway.config.operation_timeout;
    let asked = arguments.integer("timeout").filter(|ms| *ms > 0).map_or(limit, Duration::from_millis);
    Deadline::after(asked.min(limit))
}

async fn reject(gateway: &Gateway, facts: &ToolFacts, progress: &Progress, fault: &Fault) -> Result<(), Fault> {
    let problems = fault.details().get("problems").map(|problems| gateway.redactor.json(problems));
    let code = Symbol::fold(fault.shown_code().as_str());
    let rejected = CallRejected { tool: Symbol::fold(facts.name), code, problems };
    match gateway.journal.commit_one(&progress.context(), &rejected).await {
        // Nothing was done, so the refusal itself is told all the same.
        Err(error) if error.is_full() => gateway.journal.miss(&[Kind::CallRejected]),
        recorded => _ = recorded?,
    }
    Ok(())
}

/// From acceptance to the tool's own result.
async fn perform(gateway: &Gateway, tool: &'static Tool, call: Call, progress: &mut Progress) -> Result<Output, Fault> {
    if progress.off_record {
        gateway.journal.miss(&[Kind::CallAccepted, Kind::CallEntered, Kind::CallSettled]);
        progress.entered = true;
        return run(gateway, tool, &call, progress).await;
    }
    let accepted = CallAccepted {
        tool: Symbol::fold(tool.facts.name),
        arguments: shown::arguments(gateway, tool, &call),
        deadline_ms: u64::try_from(call.deadline.budget().as_millis()).ok(),
    };
    // Not waited for: the log keeps order, so whatever is waited for next covers it.
    let mut drafts = vec![Draft::new(&progress.context(), &accepted)];
    // A call that has to wait is on record while it waits.
    let waits = tool.facts.lane == Lane::Session && call.session.as_ref().is_some_and(|session| session.lane.is_busy());
    if waits {
        gateway.journal.record(std::mem::take(&mut drafts));
    }
    let turn = match take_turn(&call, tool.facts.lane).await {
        Ok(turn) => turn,
        Err(no_turn) => {
            drafts.extend(cancelled_draft(tool, &call, progress, no_turn));
            gateway.journal.commit(drafts).await?;
            return Err(no_turn_fault(no_turn, &call));
        }
    };
    progress.queue = progress.started.elapsed();
    let entered = CallEntered { tool: Symbol::fold(tool.facts.name), queue_ms: milliseconds(progress.queue) };
    drafts.push(Draft::new(&progress.context(), &entered));
    if tool.facts.effect.read_only {
        gateway.journal.record(drafts);
    } else {
        gateway.journal.commit(drafts).await?;
    }
    progress.entered = true;
    let result = run(gateway, tool, &call, progress).await;
    leave(&call, tool.facts.lane).await;
    drop(turn);
    result
}

async fn take_turn(call: &Call, lane: Lane) -> Result<Option<Turn>, NoTurn> {
    match (&call.session, lane) {
        (Some(session), Lane::Session) => {
            let turn = session.lane.enter(call.deadline, &call.cancelled).await?;
            session.scope.set_operation(Some(call.operation_id.clone()));
            Ok(Some(turn))
        }
        _ => Ok(None),
    }
}

/// Everything the browser said up to the call's end belongs to the call, and precedes its end.
async fn leave(call: &Call, lane: Lane) {
    let Some(session) = call.session.as_ref().filter(|_| lane == Lane::Session) else { return };
    if let Some(browser) = session.browser_if_any() {
        let catching_up = Deadline::after(Duration::from_millis(CATCH_UP_MS));
        if browser.recorded(catching_up).await.is_err() {
            tracing::warn!(operation = %call.operation_id, "a call settles before all of its events are recorded");
        }
    }
    session.scope.set_operation(None);
    session.touch();
}

/// The tool itself: in a task of its own, so that a panic is a fault and not the end of the lane.
async fn run(gateway: &Gateway, tool: &'static Tool, call: &Call, progress: &Progress) -> Result<Output, Fault> {
    let mut task = tokio::spawn((tool.run)(call.clone()));
    // A tool keeps its own deadline; this one catches the tool that does not.
    let goes_on = call.arguments.value("wait_for").is_some() || call.arguments.flag("include_snapshot") == Some(true);
    let end = if goes_on { call.limit } else { call.deadline };
    let late = end.extended(Duration::from_millis(CALL_GRACE_MS));
    let outcome = tokio::select! {
        outcome = late.bound(&mut task) => outcome,
        () = call.cancelled.cancelled() => {
            let cancelled = CallCancelled { tool: Symbol::fold(tool.facts.name), phase: Symbol::fold("running") };
            gateway.journal.record(vec![Draft::new(&progress.context(), &cancelled)]);
            if tool.facts.effect.read_only {
                task.abort();
                return Err(Fault::new(Code::OperationCancelled).with("phase", "running"));
            }
            late.bound(&mut task).await
        }
    };
    match outcome {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(Fault::new(Code::InternalError).because(panic)),
        Err(_) => {
            task.abort();
            let budget = u64::try_from(call.deadline.budget().as_millis()).unwrap_or(u64::MAX);
            Err(Fault::new(Code::OperationTimeout).with("timeout_ms", budget).with("phase", "running"))
        }
    }
}

fn cancelled_draft(tool: &Tool, call: &Call, progress: &Progress, no_turn: NoTurn) -> Option<Draft> {
    let cancelled = CallCancelled { tool: Symbol::fold(tool.facts.name), phase: Symbol::fold("queued") };
    (no_turn == NoTurn::Cancelled && call.cancelled.is_cancelled()).then(|| Draft::new(&progress.context(), &cancelled))
}

fn no_turn_fault(no_turn: NoTurn, call: &Call) -> Fault {
    let session_id = call.arguments.text("session_id");
    match no_turn {
        NoTurn::Full => Fault::new(Code::SessionBusy).with("depth", call.gateway.config.lane_depth),
        NoTurn::Late => {
            let budget = u64::try_from(call.deadline.budget().as_millis()).unwrap_or(u64::MAX);
            Fault::new(Code::OperationTimeout).with("timeout_ms", budget).with("phase", "queued")
        }
        NoTurn::Cancelled => Fault::new(Code::OperationCancelled).with("phase", "queued"),
        NoTurn::Closing => match call.session.as_ref().map(|session| session.browser()) {
            Some(Err(fault)) => fault,
            _ => Fault::new(Code::SessionClosing).with("session_id", session_id),
        },
    }
}

/// Renders the reply, puts the outcome on record, and only then lets the reply go.
async fn settle(gateway: &Gateway, tool: &Tool, progress: &Progress, result: Result<Output, Fault>) -> Answer {
    if let Err(fault) = &result {
        report(tool, progress, fault);
    }
    let (result, image) = match result {
        Ok(mut output) => {
            let image = output.image.take();
            (Ok(output), image)
        }
        Err(fault) => (Err(fault), None),
    };
    let answer = answer(gateway, tool, progress, result, image).await;
    let reply = &answer.reply;
    let settled = CallSettled {
        tool: Symbol::fold(tool.facts.name),
        outcome: Symbol::fold(reply.outcome.as_str()),
        code: reply.code.map(|code| Symbol::fold(code.as_str())),
        retry: Symbol::fold(reply.retry.as_str()),
        duration_ms: milliseconds(progress.started.elapsed()),
        queue_ms: milliseconds(progress.queue),
        result_bytes: reply.data_bytes,
    };
    if progress.off_record {
        return answer;
    }
    match gateway.journal.commit_or_leave(vec![Draft::new(&progress.context(), &settled)]).await {
        Ok(_) => answer,
        Err(_) if admission::reads_the_record(&tool.facts) => answer,
        // What was not recorded is not told: the caller learns that the outcome is unknown.
        Err(error) => self::answer(gateway, tool, progress, Err(error.into()), None).await,
    }
}

/// Faults of ours are somebody's work; everything else is the caller's and on record anyway.
fn report(tool: &Tool, progress: &Progress, fault: &Fault) {
    let (tool, operation, code) = (tool.facts.name, &progress.operation_id, fault.code().as_str());
    let cause = fault.cause().unwrap_or_default();
    match fault.code() {
        Code::InternalError | Code::LogUnavailable => tracing::error!(tool, %operation, code, cause, "call failed"),
        _ => tracing::debug!(tool, %operation, code, cause, "call failed"),
    }
}

async fn answer(
    gateway: &Gateway,
    tool: &Tool,
    progress: &Progress,
    result: Result<Output, Fault>,
    image: Option<Image>,
) -> Answer {
    let ids = progress.target.ids();
    let bytes_max = gateway.config.max_result_bytes;
    // A picture that would crowd out the text is left to `read_artifact`.
    let share = bytes_max / IMAGE_SHARE_MAX;
    let image = image.filter(|image| image.wire_bytes() <= share && bytes_max - image.wire_bytes() >= RESULT_BYTES_MIN);
    let room = bytes_max - image.as_ref().map_or(0, Image::wire_bytes);
    let (result, artifacts) = match result {
        Ok(output) => (Ok(output.data), output.artifacts),
        Err(fault) => (Err(admission::with_room(gateway, fault)), Vec::new()),
    };
    let operation = Operation {
        id: progress.operation_id.clone(),
        tool: tool.facts.name.to_owned(),
        instance_id: ids.instance_id,
        page_id: ids.page_id,
        frame_id: ids.frame_id,
        started_at_micros: progress.started_at_micros,
        finished_at_micros: now_micros(),
        duration_ms: milliseconds(progress.started.elapsed()),
        entered: progress.entered,
        reads: tool.facts.effect.read_only,
        artifacts,
    };
    let keep = KeepForCall { gateway, context: progress.context() };
    let reply = envelope::reply(ids.instance.as_deref(), operation, result, progress.form, room, &keep).await;
    Answer { reply, image }
}

/// A name nobody has: on record without a tool's name, which could be anything.
pub async fn unknown_tool(gateway: &Gateway, owner: Owner) {
    let context =
        Context { owner: Some(owner), operation_id: Some(OperationId::from(random_uuid())), ..Context::default() };
    let rejected = CallRejected { tool: Symbol::fold("other"), code: Symbol::fold("unknown_tool"), problems: None };
    // The protocol error says all there is to say; a log that cannot record shows in readiness.
    let _ = gateway.journal.commit_one(&context, &rejected).await;
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
