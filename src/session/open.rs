//! A session's life from launch to the last trace of its browser.
//!
//! Each step is on record before the next is taken: `session.launching`, then the browser starts,
//! then `session.opened`; `session.closed` only once the process group and the profile are gone. A
//! process that dies between two of them leaves a history that says how far it came.

use std::sync::Arc;
use std::time::Duration;

use storage::event::catalog::{
    AuthStateRestored, SessionClosed, SessionCrashed, SessionLaunching, SessionOpened, SessionWarning,
};
use storage::event::{Clean, Context, Draft, Symbol};
use storage::ids::OperationId;

use super::{Session, State, restore};
use crate::browser::{BodyPolicy, BodyRules, Browser, Closed, LaunchError, LaunchOptions};
use crate::config::{CaptureBodies, Config};
use crate::deadline::Deadline;
use crate::fault::{Code, Fault};
use crate::gateway::Gateway;

/// Launches the session's browser and starts following it. The registry must hold its reservation.
///
/// # Errors
/// The fault of the launch; the reservation is given back then.
pub async fn open(
    gateway: &Gateway,
    session: &Arc<Session>,
    operation: &OperationId,
    deadline: Deadline,
) -> Result<(), Fault> {
    let context = Context { operation_id: Some(operation.clone()), ..session.scope.context() };
    let opened = match launch(gateway, session, &context, deadline).await {
        Ok(browser) => match restore::restore(gateway, session, &browser, deadline).await {
            Ok(restored) => enlist(gateway, session, &context, browser, restored).await,
            Err(fault) => {
                browser.close("launch_failed", close_deadline(gateway)).await;
                Err(fault)
            }
        },
        Err(fault) => Err(fault),
    };
    if let Err(fault) = opened {
        session.lane.close();
        session.advance(State::Closed);
        let closed = SessionClosed { reason: Symbol::fold("launch_failed"), duration_ms: session.lived_ms() };
        let recorded = gateway.journal.commit_or_leave(vec![Draft::new(&context, &closed)]).await;
        gateway.registry.release(session, false);
        return recorded.map_err(Fault::from).and(Err(fault));
    }
    Ok(())
}

async fn launch(gateway: &Gateway, session: &Session, context: &Context, deadline: Deadline) -> Result<Browser, Fault> {
    let options = &session.options;
    let described = serde_json::json!({
        "arguments": options.arguments,
        "incognito": options.incognito,
        "profile": if options.profile_directory.is_some() { "persistent" } else { "ephemeral" },
        "sandbox": gateway.config.chromium_sandbox,
        "disable_evaluate": options.disable_evaluate,
    });
    let launching = SessionLaunching {
        name: Symbol::fold(session.id.as_str()),
        channel: Symbol::fold(&options.channel),
        headless: options.headless,
        options: gateway.redactor.json(&described),
    };
    gateway.journal.commit_one(context, &launching).await?;
    let launch_options = LaunchOptions {
        executable: gateway.executable(options.headless, options.executable.as_deref())?,
        headless: options.headless,
        sandbox: gateway.config.chromium_sandbox,
        arguments: options.arguments.clone(),
        profile_directory: options.profile_directory.clone(),
        run_directory: gateway.run_directory(&session.instance_id)?,
        window: options.window,
        bodies: body_rules(&gateway.config),
        blocklist: gateway.config.blocked_origins.clone(),
        download_bytes_max: gateway.config.download_bytes_max,
    };
    let scope = Arc::clone(&session.scope);
    let artifacts = gateway.artifacts.clone();
    let redactor = Arc::clone(&gateway.redactor);
    Browser::launch(launch_options, scope, gateway.journal.clone(), artifacts, redactor, deadline)
        .await
        .map_err(launch_fault)
}

fn body_rules(config: &Config) -> BodyRules {
    let policy = match config.capture_bodies {
        CaptureBodies::Text => BodyPolicy::Text,
        CaptureBodies::All => BodyPolicy::All,
        CaptureBodies::None => BodyPolicy::None,
    };
    BodyRules { policy, bytes_max: config.body_bytes_max, session_bytes_max: config.session_body_bytes_max }
}

/// What a failed launch is to a caller.
pub(crate) fn launch_fault(error: LaunchError) -> Fault {
    match error {
        LaunchError::NotFound { .. } => Fault::new(Code::BrowserNotInstalled)
            .with("channel", "chromium")
            .with("remedy", "install Debian's chromium or chromium-headless-shell, or name one with --chromium"),
        LaunchError::SandboxUnavailable { reason } => Fault::new(Code::SandboxUnavailable).with("reason", reason),
        LaunchError::Failed { reason } => Fault::new(Code::BrowserLaunchFailed).with("reason", reason),
    }
}

async fn enlist(
    gateway: &Gateway,
    session: &Arc<Session>,
    context: &Context,
    browser: Browser,
    restored: Option<AuthStateRestored>,
) -> Result<(), Fault> {
    let opened = SessionOpened {
        browser: gateway.redactor.text(browser.version()),
        process_id: u64::from(browser.process_id()),
        sandbox: gateway.config.chromium_sandbox,
        launch_ms: browser.launch_ms(),
    };
    let mut drafts = vec![Draft::new(context, &opened)];
    if !gateway.config.chromium_sandbox {
        let warning = SessionWarning {
            code: Symbol::fold("sandbox_off"),
            message: Clean::fixed("Chromium runs without its sandbox because --no-chromium-sandbox was given."),
        };
        drafts.push(Draft::new(context, &warning));
    }
    drafts.extend(restored.map(|restored| Draft::new(context, &restored)));
    if let Err(error) = gateway.journal.commit(drafts).await {
        browser.close("launch_failed", close_deadline(gateway)).await;
        return Err(error.into());
    }
    let gone = browser.gone();
    // Nobody else sets it: `open` runs once per session.
    let _ = session.browser.set(browser);
    session.advance(State::Live);
    tokio::spawn(follow(gateway.clone(), Arc::clone(session), gone));
    Ok(())
}

/// Waits for the browser to go away by itself, records it, and clears what it left.
async fn follow(
    gateway: Gateway,
    session: Arc<Session>,
    mut gone: tokio::sync::watch::Receiver<Option<crate::browser::Exit>>,
) {
    let exit = match gone.wait_for(Option::is_some).await {
        Ok(exit) => exit.clone(),
        Err(_) => None,
    };
    if !session.advance(State::Crashed) {
        return;
    }
    session.lane.close();
    let crashed = SessionCrashed {
        reason: Symbol::fold(exit.as_ref().map_or("disconnected", |e| e.reason)),
        exit_code: exit.as_ref().and_then(|e| e.code).map(i64::from),
        signal: exit.as_ref().and_then(|e| e.signal).map(i64::from),
    };
    // When the log cannot record, readiness says so; the browser is cleared all the same.
    let _ = gateway.journal.commit_or_leave(vec![Draft::new(&session.scope.context(), &crashed)]).await;
    let _ = finish(&gateway, &session, "crashed").await;
}

/// Closes the session for `reason` and waits until nothing of it is left. Returns whether this call
/// closed it.
///
/// # Errors
/// `LOG_UNAVAILABLE` when the closing could not be recorded; the browser is gone all the same.
pub async fn close(gateway: &Gateway, session: &Arc<Session>, reason: &'static str) -> Result<bool, Fault> {
    // A browser that is just starting is closed once it has started, so that it cannot be forgotten.
    let _ = session.watch().wait_for(|state| *state != State::Launching).await;
    if session.state() == State::Crashed || !session.advance(State::Closing) {
        let mut state = session.watch();
        // The other closer never drops the sender while we hold the session.
        let _ = state.wait_for(|s| *s == State::Closed).await;
        return Ok(false);
    }
    session.lane.close();
    finish(gateway, session, reason).await.map(|()| true)
}

async fn finish(gateway: &Gateway, session: &Arc<Session>, reason: &'static str) -> Result<(), Fault> {
    if let Some(browser) = session.browser_if_any() {
        let closed = browser.close(reason, close_deadline(gateway)).await;
        report_leftovers(gateway, session, &closed);
    }
    gateway.remove_run_directory(&session.instance_id);
    let context = session.scope.context();
    let closed = SessionClosed { reason: Symbol::fold(reason), duration_ms: session.lived_ms() };
    let recorded = gateway.journal.commit_or_leave(vec![Draft::new(&context, &closed)]).await;
    session.advance(State::Closed);
    gateway.registry.release(session, reason == "crashed");
    recorded.map(|_| ()).map_err(Fault::from)
}

/// A browser that could not be cleared away is the operator's to know of.
fn report_leftovers(gateway: &Gateway, session: &Session, closed: &Closed) {
    let warn = |code: &'static str, message: &'static str| {
        let warning = SessionWarning { code: Symbol::fold(code), message: Clean::fixed(message) };
        gateway.journal.record(vec![Draft::new(&session.scope.context(), &warning)]);
    };
    if !closed.group_gone {
        warn("process_left_behind", "Processes of the browser's group did not end in time.");
    }
    if !closed.profile_removed {
        warn("profile_left_behind", "The browser's private profile could not be removed.");
    }
}

fn close_deadline(gateway: &Gateway) -> Deadline {
    Deadline::after(gateway.config.close_timeout)
}

/// Closes every session, side by side, and lets no new one in.
pub async fn close_all(gateway: &Gateway, reason: &'static str) {
    let closing: Vec<_> = gateway
        .registry
        .shut()
        .into_iter()
        .map(|session| {
            let gateway = gateway.clone();
            tokio::spawn(async move { close(&gateway, &session, reason).await })
        })
        .collect();
    for task in closing {
        // A session that could not record its end has still lost its browser.
        let _ = task.await;
    }
}

/// Closes sessions nobody has used for `idle`.
pub async fn close_idle(gateway: Gateway, idle: Duration) {
    let mut tick = tokio::time::interval((idle / 4).clamp(Duration::from_millis(250), Duration::from_secs(30)));
    while !gateway.registry.is_shutting_down() {
        tick.tick().await;
        let now = storage::time::now_micros();
        for session in gateway.registry.all() {
            let unused = now.saturating_sub(session.last_used_micros());
            let busy = session.lane.is_busy();
            if session.state() == State::Live && !busy && unused > i64::try_from(idle.as_micros()).unwrap_or(i64::MAX) {
                let _ = close(&gateway, &session, "lease_expired").await;
            }
        }
    }
}
