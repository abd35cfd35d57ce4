//! `get_storage`, `set_storage`, `clear_storage`: local and session storage of the page's origin.

use serde_json::{Map, Value, json};

use super::faults;
use super::tool::{Call, Output, Tool};
use crate::browser::page::Area;
use crate::contract::facts::{SESSION, Scalar, TAB};
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;
use crate::limits::STORAGE_ITEMS_MAX;

const AREA: Parameter = Parameter::new("area", Shape::Choice(&["local", "session"]), "").or(Scalar::Text("local"));
const ORIGIN: Field = Field::text("origin");

pub static GET_STORAGE: Tool = Tool {
    facts: ToolFacts {
        name: "get_storage",
        title: "Get storage",
        text: "Read localStorage or sessionStorage of the tab's origin, whole or one key.",
        pack: Pack::State,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[SESSION, AREA, Parameter::text("key", ""), TAB],
        returns: Returns::Object(&[SESSION_ID, ORIGIN, Field::integer("count"), Field::any("items")]),
    },
    run: |call| Box::pin(get_storage(call)),
};

async fn get_storage(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let area = Area::parse(call.arguments.text("area"));
    let storage = page.web_storage(area, call.deadline).await.map_err(faults::page(&call))?;
    let stored = page.stored(&storage, call.deadline).await.map_err(faults::page(&call))?;
    let wanted = call.arguments.optional_text("key");
    let chosen = stored.into_iter().filter(|(key, _)| wanted.is_none_or(|wanted| wanted == key));
    let items: Map<String, Value> = chosen.map(|(key, value)| (key, value.into())).collect();
    Ok(Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "origin": storage.origin,
        "count": items.len(),
        "items": items,
    })))
}

pub static SET_STORAGE: Tool = Tool {
    facts: ToolFacts {
        name: "set_storage",
        title: "Set storage",
        text: "Set keys of localStorage or sessionStorage of the tab's origin.",
        pack: Pack::State,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("items", Shape::Record { fields: &[], open: true }, "key to string").required().typed(),
            AREA,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, ORIGIN, Field::integer("set")]),
    },
    run: |call| Box::pin(set_storage(call)),
};

async fn set_storage(call: Call) -> Result<Output, Fault> {
    let items = call.arguments.text_members("items", STORAGE_ITEMS_MAX)?;
    let page = call.page()?;
    let area = Area::parse(call.arguments.text("area"));
    let storage = page.web_storage(area, call.deadline).await.map_err(faults::page(&call))?;
    page.store(&storage, &items, call.deadline).await.map_err(faults::page(&call))?;
    let session_id = call.arguments.text("session_id");
    Ok(Output::value(json!({"session_id": session_id, "origin": storage.origin, "set": items.len()})))
}

pub static CLEAR_STORAGE: Tool = Tool {
    facts: ToolFacts {
        name: "clear_storage",
        title: "Clear storage",
        text: "Remove keys of localStorage or sessionStorage of the tab's origin, or everything.",
        pack: Pack::State,
        effect: Effect::END,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            AREA,
            Parameter::new("keys", Shape::Texts { items_min: 0, items_max: STORAGE_ITEMS_MAX }, "all when left out"),
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, ORIGIN, Field::integer("removed")]),
    },
    run: |call| Box::pin(clear_storage(call)),
};

async fn clear_storage(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let area = Area::parse(call.arguments.text("area"));
    let storage = page.web_storage(area, call.deadline).await.map_err(faults::page(&call))?;
    let before = page.stored(&storage, call.deadline).await.map_err(faults::page(&call))?;
    let keys = call.arguments.texts("keys");
    let removed = if call.arguments.value("keys").is_some() {
        for key in &keys {
            page.unstore(&storage, Some(key), call.deadline).await.map_err(faults::page(&call))?;
        }
        before.iter().filter(|(key, _)| keys.contains(key)).count()
    } else {
        page.unstore(&storage, None, call.deadline).await.map_err(faults::page(&call))?;
        before.len()
    };
    let session_id = call.arguments.text("session_id");
    Ok(Output::value(json!({"session_id": session_id, "origin": storage.origin, "removed": removed})))
}
