//! `save_storage_state`, `save_full_profile`, `list_saved_auths`, and the saved login that a launch
//! asks for.

use std::sync::Arc;

use serde_json::{Value, json};
use storage::event::catalog::AuthStateSaved;
use storage::event::{Draft, Symbol};

use super::faults;
use super::lifecycle::unsupported;
use super::refusals;
use super::tool::{Call, Output, Tool};
use crate::auth_state::{self, AuthState};
use crate::contract::facts::SESSION;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, ToolFacts};
use crate::cookies;
use crate::fault::{Code, Fault};
use crate::keep::blocking;

const NAME: Parameter = Parameter::name("name", "").required();
const SAVED: Returns = Returns::Object(&[Field::text("name"), Field::text("path"), Field::integer("size")]);

pub static SAVE_STORAGE_STATE: Tool = Tool {
    facts: ToolFacts {
        name: "save_storage_state",
        title: "Save storage state",
        text: "Save the session's cookies and the localStorage of its open origins under a name; \
               launch_session restores them with context_options {storageState: name}.",
        pack: Pack::Auth,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[SESSION, NAME],
        returns: SAVED,
    },
    run: |call| Box::pin(save_storage_state(call)),
};

async fn save_storage_state(call: Call) -> Result<Output, Fault> {
    let name = checked_name(&call)?;
    let browser = call.browser()?;
    let all = browser.cookies(call.deadline).await.map_err(faults::cdp(&call))?;
    let origins = browser.local_storage(call.deadline).await.map_err(faults::page(&call))?;
    let cookies = cookies::all_shown(all.iter());
    let state = AuthState { name: Some(name.clone()), cookies, origins };
    let (cookies, origins) = (state.cookies.len() as u64, state.origins.len() as u64);
    let (data_dir, owner) = (call.gateway.config.data_dir.clone(), call.owner.clone());
    let (session_id, file) = (call.session()?.id.to_string(), name.clone());
    let saved = blocking(move || auth_state::save(&data_dir, &owner, &session_id, &file, &state)).await?;
    let event = AuthStateSaved {
        auth_kind: Symbol::fold("storage"),
        auth_name: call.gateway.redactor.text(&name),
        cookies,
        origins,
        bytes: saved.bytes,
    };
    call.gateway.journal.commit(vec![Draft::new(&call.session()?.scope.context(), &event)]).await?;
    Ok(Output::value(json!({
        "name": name,
        "path": saved.path.display().to_string(),
        "size": saved.bytes,
        "cookies": cookies,
        "origins": origins,
    })))
}

fn checked_name(call: &Call) -> Result<String, Fault> {
    let name = call.arguments.text("name");
    if auth_state::is_name(name) {
        return Ok(name.to_owned());
    }
    Err(refusals::path(call, name))
}

pub static SAVE_FULL_PROFILE: Tool = Tool {
    facts: ToolFacts {
        name: "save_full_profile",
        title: "Save full profile",
        text: "Save the whole profile of a persistent session under a name.",
        pack: Pack::Auth,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[SESSION, NAME],
        returns: SAVED,
    },
    run: |call| Box::pin(save_full_profile(call)),
};

async fn save_full_profile(call: Call) -> Result<Output, Fault> {
    checked_name(&call)?;
    if call.session()?.options.persistence_mode != "persistent" {
        let reason = "only a session of persistence_mode persistent has a profile to save";
        return Err(Fault::new(Code::InvalidPersistenceConfig).with("reason", reason));
    }
    Err(unsupported("full profiles: save_storage_state saves cookies and localStorage"))
}

pub static LIST_SAVED_AUTHS: Tool = Tool {
    facts: ToolFacts {
        name: "list_saved_auths",
        title: "List saved auths",
        text: "List the saved logins, newest first.",
        pack: Pack::Auth,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[],
        returns: Returns::Array(&[
            Field::text("name"),
            Field::choice("kind", &["storage", "profile"]),
            Field::integer("saved_at"),
            Field::integer("size"),
        ]),
    },
    run: |call| Box::pin(list_saved_auths(call)),
};

async fn list_saved_auths(call: Call) -> Result<Output, Fault> {
    let (data_dir, owner) = (call.gateway.config.data_dir.clone(), call.owner.clone());
    let found = blocking(move || Ok::<_, Fault>(auth_state::list(&data_dir, &owner))).await?;
    let row = |(facts, size): &(auth_state::Facts, u64)| json!({"name": facts.name, "kind": facts.kind, "saved_at": facts.saved_at, "size": size});
    Ok(Output::value(found.iter().map(row).collect::<Vec<Value>>().into()))
}

/// The login that a launch asks for by `context_options.storageState`: a name, or the content itself.
///
/// # Errors
/// `AUTH_STATE_NOT_FOUND`, `AUTH_STATE_DAMAGED`, `INVALID_ARGUMENTS`, `INVALID_PERSISTENCE_CONFIG`.
pub(super) async fn asked(call: &Call) -> Result<Option<Arc<AuthState>>, Fault> {
    let options = call.arguments.value("context_options");
    let Some(given) = options.and_then(|options| options.get("storageState")) else { return Ok(None) };
    if call.arguments.text("persistence_mode") == "persistent" {
        let reason = "a persistent profile has a login of its own: leave storageState out or the profile";
        return Err(Fault::new(Code::InvalidPersistenceConfig).with("reason", reason));
    }
    let state = match given {
        Value::String(name) => {
            let (data_dir, owner, name) = (call.gateway.config.data_dir.clone(), call.owner.clone(), name.clone());
            blocking(move || auth_state::load(&data_dir, &owner, &name)).await?
        }
        Value::Object(_) => AuthState::read(None, given)
            .map_err(|problem| Fault::invalid_argument("context_options.storageState", problem))?,
        _ => return Err(Fault::invalid_argument("context_options.storageState", "must be a saved name or an object")),
    };
    Ok(Some(Arc::new(state)))
}
