//! `launch_session`, `close_session`, `list_sessions`.

use std::sync::Arc;

use serde_json::{Value, json};
use storage::ids::{SessionId, random_suffix};

use super::launch_arguments;
use super::tool::{Call, Output, Tool};
use crate::contract::facts::{SESSION, Scalar};
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::{Code, Fault};
use crate::session::{Session, SessionOptions, open};

const CHANNELS: &[&str] = &["chromium", "chrome", "edge"];
pub(super) const PERSISTENCE_MODES: &[&str] = &["memory", "persistent", "storage-state"];

/// A session as the contract describes it.
const VIEW: &[Field] = &[
    SESSION_ID,
    Field::text("slug"),
    Field::text("channel"),
    Field::flag("incognito"),
    Field::flag("headless"),
    Field::text("persistence_mode"),
    Field::text("current_url").or_null(),
    Field::integer("created_at"),
    Field::text("owner"),
    Field::integer("lease_expires_at"),
    Field::integer("lease_paused_at").or_null(),
    Field::flag("disable_evaluate"),
    Field::flag("vault_enabled"),
    Field::flag("stealth"),
    Field::flag("fingerprint"),
    Field::flag("humanize"),
    Field::object("identity").or_null(),
    Field::text("proxy_label").or_null(),
];

pub static LAUNCH_SESSION: Tool = Tool {
    facts: ToolFacts {
        name: "launch_session",
        title: "Launch session",
        text: "Start a browser of its own for a new session; answers with the session_id that other tools take.",
        pack: Pack::Lifecycle,
        effect: Effect::ACT,
        lane: Lane::Free,
        parameters: &[
            Parameter::new("slug", Shape::Slug, "").required(),
            Parameter::new("channel", Shape::Choice(CHANNELS), "").or(Scalar::Text("chromium")),
            Parameter::flag("incognito", "").or(Scalar::Flag(false)),
            Parameter::flag("headless", "").or(Scalar::Flag(true)),
            Parameter::new("persistence_mode", Shape::Choice(PERSISTENCE_MODES), ""),
            Parameter::name("restore_profile", ""),
            Parameter::new(
                "launch_options",
                Shape::Record {
                    fields: &[
                        Parameter::new("args", Shape::Texts { items_min: 0, items_max: 64 }, ""),
                        Parameter::text("executablePath", ""),
                    ],
                    open: true,
                },
                "",
            ),
            Parameter::new("context_options", Shape::Record { fields: &[], open: true }, ""),
            Parameter::flag("disable_evaluate", "").or(Scalar::Flag(false)),
            Parameter::flag("vault_enabled", "").or(Scalar::Flag(true)),
            Parameter::flag("stealth", ""),
            Parameter::flag("fingerprint", ""),
            Parameter::flag("humanize", ""),
        ],
        returns: Returns::Object(VIEW),
    },
    run: |call| Box::pin(launch_session(call)),
};

async fn launch_session(call: Call) -> Result<Output, Fault> {
    let login = super::auth::asked(&call).await?;
    let options = launch_arguments::from_launch_session(&call, login)?;
    let id = SessionId::from(format!("{}-{}", options.slug, random_suffix(8)));
    let session = start(&call, id, options).await?;
    Ok(Output::value(view(&session)))
}

/// Reserves, launches, and enters the session's ids into the call.
pub(super) async fn start(call: &Call, id: SessionId, options: SessionOptions) -> Result<Arc<Session>, Fault> {
    let gateway = &call.gateway;
    let session = Session::new(id, call.owner.clone(), options, &gateway.config);
    gateway.registry.reserve(&session)?;
    call.target.set_session(&session);
    let deadline = call.deadline.within(gateway.config.launch_timeout);
    open::open(gateway, &session, &call.operation_id, deadline).await?;
    Ok(session)
}

pub static CLOSE_SESSION: Tool = Tool {
    facts: ToolFacts {
        name: "close_session",
        title: "Close session",
        text: "Close a session's browser and remove what it left. Its history stays readable.",
        pack: Pack::Lifecycle,
        effect: Effect::END,
        lane: Lane::Free,
        parameters: &[SESSION],
        returns: Returns::Object(&[SESSION_ID, Field::flag("closed")]),
    },
    run: |call| Box::pin(close_session(call)),
};

async fn close_session(call: Call) -> Result<Output, Fault> {
    let session_id = call.arguments.text("session_id");
    // Closing what is not there is no failure: the call is idempotent, and a stranger learns nothing.
    let closed = match call.gateway.registry.find(&call.owner, session_id) {
        Ok(session) => {
            call.target.set_session(&session);
            open::close(&call.gateway, &session, "requested").await?
        }
        Err(_) => false,
    };
    Ok(Output::value(json!({"session_id": session_id, "closed": closed})))
}

pub static LIST_SESSIONS: Tool = Tool {
    facts: ToolFacts {
        name: "list_sessions",
        title: "List sessions",
        text: "List the sessions that are open.",
        pack: Pack::Lifecycle,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[],
        returns: Returns::Array(VIEW),
    },
    run: |call| Box::pin(list_sessions(call)),
};

async fn list_sessions(call: Call) -> Result<Output, Fault> {
    let sessions = call.gateway.registry.list(&call.owner);
    Ok(Output::value(sessions.iter().map(|session| view(session)).collect()))
}

/// The contract's description of a session. Times are milliseconds since the epoch.
pub(super) fn view(session: &Session) -> Value {
    let options = &session.options;
    json!({
        "session_id": session.id.as_str(),
        "slug": options.slug,
        "channel": options.channel,
        "incognito": options.incognito,
        "headless": options.headless,
        "persistence_mode": options.persistence_mode,
        "current_url": current_url(session),
        "created_at": session.created_at_micros / 1000,
        "owner": session.owner.as_str(),
        "lease_expires_at": lease_expires_at_ms(session),
        "lease_paused_at": null,
        "disable_evaluate": options.disable_evaluate,
        "vault_enabled": options.vault_enabled,
        "stealth": false,
        "fingerprint": false,
        "humanize": false,
        "identity": null,
        "proxy_label": null,
        "instance_id": session.instance_id.as_str(),
        "status": session.state().as_str(),
    })
}

/// Address of the active tab.
pub(super) fn current_url(session: &Session) -> Option<String> {
    let browser = session.browser_if_any()?;
    browser.page(&browser.active()?).map(|page| page.url())
}

/// The last moment a JavaScript date can hold: a lease that never ends.
const NEVER_MS: i64 = 8_640_000_000_000_000;

pub(super) fn lease_expires_at_ms(session: &Session) -> i64 {
    match session.idle_ttl {
        None => NEVER_MS,
        Some(window) => {
            let window_ms = i64::try_from(window.as_millis()).unwrap_or(NEVER_MS);
            (session.last_used_micros() / 1000).saturating_add(window_ms)
        }
    }
}

/// What the named session is called by the other launching tool's caller.
pub(super) fn unsupported(what: impl Into<String>) -> Fault {
    Fault::new(Code::UnsupportedCapability).with("what", what.into())
}
