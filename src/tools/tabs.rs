//! `new_tab`, `close_tab`, `switch_tab`, `list_tabs`.

use std::time::Duration;

use serde_json::{Value, json};
use storage::ids::PageId;

use super::faults;
use super::navigation::{permitted, wait_until};
use super::tool::{Call, Output, Tool};
use crate::browser::CdpError;
use crate::contract::facts::{SESSION, TIMEOUT, URL_LENGTH_MAX, WAIT_UNTIL};
use crate::contract::result::{SESSION_ID, TAB_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;

/// How long a list of tabs waits for their titles.
pub(super) const TITLES_WAIT: Duration = Duration::from_millis(500);

const TAB_REQUIRED: Parameter = Parameter::name("tab_id", "").required();

pub static NEW_TAB: Tool = Tool {
    facts: ToolFacts {
        name: "new_tab",
        title: "New tab",
        text: "Open a tab and make it the active one; with url, navigate it.",
        pack: Pack::Tabs,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("url", Shape::Text { length_min: 0, length_max: URL_LENGTH_MAX }, ""),
            WAIT_UNTIL,
            TIMEOUT,
        ],
        returns: Returns::Object(&[SESSION_ID, TAB_ID, URL]),
    },
    run: |call| Box::pin(new_tab(call)),
};

async fn new_tab(call: Call) -> Result<Output, Fault> {
    // Refused before the tab exists, so that a refusal leaves none behind.
    let url = call.arguments.optional_text("url").map(|url| permitted(&call, url)).transpose()?;
    let page = call.browser()?.open_page(call.deadline).await.map_err(|error| match (error, &url) {
        // The address is what was waited for, whichever part of the way took the time.
        (CdpError::Timeout, Some(url)) => faults::navigation_timeout(&call, url),
        (error, _) => faults::cdp(&call)(error),
    })?;
    call.target.update(|ids| ids.page_id = Some(page.page_id().clone()));
    if let Some(url) = url {
        call.session()?.count_navigation();
        page.navigate(&url, wait_until(&call), call.deadline).await.map_err(faults::page(&call))?;
    }
    Ok(Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "tab_id": page.page_id().as_str(),
        "url": page.url(),
    })))
}

pub static CLOSE_TAB: Tool = Tool {
    facts: ToolFacts {
        name: "close_tab",
        title: "Close tab",
        text: "Close a tab; where it was the active one, the newest other becomes active.",
        pack: Pack::Tabs,
        effect: Effect::END,
        lane: Lane::Session,
        parameters: &[SESSION, TAB_REQUIRED],
        returns: Returns::Object(&[SESSION_ID, TAB_ID, Field::yes("closed")]),
    },
    run: |call| Box::pin(close_tab(call)),
};

async fn close_tab(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    call.browser()?.close_page(page.page_id(), call.deadline).await.map_err(faults::cdp(&call))?;
    Ok(Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "tab_id": page.page_id().as_str(),
        "closed": true,
    })))
}

/// Tabs that an action opened; those that are gone already are told without an address.
pub(super) fn popups(call: &Call, popups: &[PageId]) -> Value {
    let browser = call.browser().ok();
    let tab = |page_id: &PageId| {
        let url = browser.and_then(|browser| browser.page(page_id)).map(|page| page.url());
        json!({"tab_id": page_id.as_str(), "url": url})
    };
    popups.iter().map(tab).collect()
}

pub static SWITCH_TAB: Tool = Tool {
    facts: ToolFacts {
        name: "switch_tab",
        title: "Switch tab",
        text: "Make a tab the one that calls without tab_id work on.",
        pack: Pack::Tabs,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[SESSION, TAB_REQUIRED],
        returns: Returns::Object(&[SESSION_ID, TAB_ID, URL]),
    },
    run: |call| Box::pin(switch_tab(call)),
};

async fn switch_tab(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    call.browser()?.activate(page.page_id());
    Ok(Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "tab_id": page.page_id().as_str(),
        "url": page.url(),
    })))
}

pub static LIST_TABS: Tool = Tool {
    facts: ToolFacts {
        name: "list_tabs",
        title: "List tabs",
        text: "List the open tabs in order of opening.",
        pack: Pack::Tabs,
        effect: Effect::READ,
        lane: Lane::Beside,
        parameters: &[SESSION],
        returns: Returns::Array(&[TAB_ID, URL, Field::text("title"), Field::flag("active")]),
    },
    run: |call| Box::pin(list_tabs(call)),
};

async fn list_tabs(call: Call) -> Result<Output, Fault> {
    let browser = call.browser()?;
    // A page that is busy or waits on a dialog is listed under the title it had.
    let _ = browser.refresh_titles(call.deadline.within(TITLES_WAIT)).await;
    let active: Option<PageId> = browser.active();
    let tab = |info: crate::browser::PageInfo| {
        let is_active = active.as_ref() == Some(&info.page_id);
        json!({"tab_id": info.page_id.as_str(), "url": info.url, "title": info.title, "active": is_active})
    };
    Ok(Output::value(browser.pages().into_iter().map(tab).collect::<Vec<Value>>().into()))
}
