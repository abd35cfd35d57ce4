//! A saved login, given to a browser before its session's first call.

use storage::event::Symbol;
use storage::event::catalog::AuthStateRestored;

use super::Session;
use crate::browser::page::PageError;
use crate::browser::{Browser, CdpError};
use crate::cookies;
use crate::deadline::Deadline;
use crate::fault::{Code, Fault};
use crate::gateway::Gateway;

/// Restores the login that the session was asked to start with, if any; gives what is to be recorded.
///
/// # Errors
/// `AUTH_STATE_DAMAGED` or `INVALID_ARGUMENTS` for a login that Chromium does not take, and
/// `BROWSER_LAUNCH_FAILED`.
pub(super) async fn restore(
    gateway: &Gateway,
    session: &Session,
    browser: &Browser,
    deadline: Deadline,
) -> Result<Option<AuthStateRestored>, Fault> {
    let Some(state) = &session.options.auth_state else { return Ok(None) };
    let unusable = |why: String| match &state.name {
        Some(name) => Fault::new(Code::AuthStateDamaged).with("name", name.as_str()).because(why),
        None => Fault::invalid_argument("context_options.storageState", "Chromium does not take it").because(why),
    };
    let late = |why: String| Fault::new(Code::BrowserLaunchFailed).with("reason", "restoring the login").because(why);
    let cookies = cookies::checked(&state.cookies).map_err(|_| unusable("cookies".to_owned()))?;
    browser.set_cookies(&cookies, deadline).await.map_err(|error| match error {
        CdpError::Protocol { message, .. } => unusable(message),
        error => late(error.to_string()),
    })?;
    browser.restore_local_storage(&state.origins, deadline).await.map_err(|error| match error {
        PageError::Unsupported { what } => unusable(what),
        error => late(error.to_string()),
    })?;
    Ok(Some(AuthStateRestored {
        auth_kind: Symbol::fold("storage"),
        auth_name: state.name.as_deref().map(|name| gateway.redactor.text(name)),
        cookies: cookies.len() as u64,
        origins: state.origins.len() as u64,
    }))
}
