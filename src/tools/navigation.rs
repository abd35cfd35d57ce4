//! `navigate`, `go_back`, `go_forward`, `reload`, `wait_for_url`.

use serde_json::{Value, json};

use super::acting::{After, INCLUDE_SNAPSHOT, WAIT_FOR, wait_for_as};
use super::faults;
use super::refusals;
use super::tool::{Call, Output, Tool};
use crate::browser::page::{Direction, LoadState, Navigated, UrlPattern};
use crate::contract::facts::{SESSION, TAB, TIMEOUT, URL_LENGTH_MAX, WAIT_UNTIL};
use crate::contract::result::{SESSION_ID, TAB_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::{Code, Fault};

pub static NAVIGATE: Tool = Tool {
    facts: ToolFacts {
        name: "navigate",
        title: "Navigate",
        text: "Go to a URL (http, https or about:blank); opens a tab where there is none.",
        pack: Pack::Navigation,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("url", Shape::Text { length_min: 0, length_max: URL_LENGTH_MAX }, "").required(),
            WAIT_UNTIL,
            WAIT_FOR,
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[
            SESSION_ID,
            URL,
            Field::integer("status").or_null(),
            TAB_ID,
            Field::text("download_id").maybe(),
        ]),
    },
    run: |call| Box::pin(navigate(call)),
};

async fn navigate(call: Call) -> Result<Output, Fault> {
    let url = permitted(&call, call.arguments.text("url"))?;
    let page = call.page_or_new().await?;
    let after = After::watch(&call, &page).await?;
    call.session()?.count_navigation();
    let arrived = page.navigate(&url, wait_until(&call), call.deadline).await.map_err(faults::page(&call))?;
    let mut data = arrival(&call, &arrived);
    data["status"] = arrived.status.into();
    data["tab_id"] = page.page_id().as_str().into();
    after.finish(&call, data).await
}

/// The address as the browser gets it, unless the operator's rules refuse it.
///
/// # Errors
/// `NAVIGATION_FAILED` for what is no address, `SCHEME_NOT_ALLOWED` for other schemes, `URL_BLOCKED`.
pub(super) fn permitted(call: &Call, url: &str) -> Result<String, Fault> {
    let url = addressed(call, url)?;
    match call.gateway.config.blocked_origins.refuses(&url) {
        None => Ok(url),
        Some(rule) => {
            refusals::record(call, "blocklist", &url, Some(rule));
            Err(Fault::new(Code::UrlBlocked).with("rule", rule))
        }
    }
}

/// A scheme may be left out, and only some are allowed.
fn addressed(call: &Call, url: &str) -> Result<String, Fault> {
    let url = url.trim();
    // Chromium ignores these inside an address, so that a refused scheme could hide behind them.
    let plain = |c: char| !matches!(c, '\t' | '\n' | '\r' | '\0');
    if url.is_empty() || !url.chars().all(plain) {
        return Err(Fault::new(Code::NavigationFailed).with("reason", "this is no URL").with("url", url));
    }
    if url.eq_ignore_ascii_case("about:blank") {
        return Ok(url.to_owned());
    }
    let scheme = url.split_once(':').map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest));
    match scheme {
        Some((scheme, rest)) if matches!(scheme.as_str(), "http" | "https") => {
            if rest.trim_start_matches('/').is_empty() {
                return Err(Fault::new(Code::NavigationFailed)
                    .with("reason", "the URL names no host")
                    .with("url", url));
            }
            Ok(url.to_owned())
        }
        // `localhost:8080/x`: what stands before the colon is a host when a port follows.
        Some((_, rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => Ok(format!("http://{url}")),
        None if !url.contains(char::is_whitespace) => Ok(format!("http://{url}")),
        None => Err(Fault::new(Code::NavigationFailed).with("reason", "this is no URL").with("url", url)),
        Some((scheme, _)) => {
            refusals::record(call, "scheme", &scheme, None);
            Err(Fault::new(Code::SchemeNotAllowed).with("scheme", scheme))
        }
    }
}

pub(super) fn wait_until(call: &Call) -> LoadState {
    LoadState::parse(call.arguments.text("wait_until")).unwrap_or_default()
}

fn arrival(call: &Call, arrived: &Navigated) -> Value {
    let mut data = json!({"session_id": call.arguments.text("session_id"), "url": arrived.url});
    if let Some(dialog) = &arrived.dialog {
        data["dialog"] = super::dialogs::shown(dialog);
    }
    if let Some(download) = &arrived.download {
        data["download"] = true.into();
        data["download_id"] = download.as_str().into();
    }
    data
}

pub static GO_BACK: Tool = Tool {
    facts: ToolFacts {
        name: "go_back",
        title: "Go back",
        text: "Go back in a tab's history; without an entry to go to, it stays where it is.",
        pack: Pack::Navigation,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[SESSION, WAIT_UNTIL, wait_for_as("navigate"), INCLUDE_SNAPSHOT, TIMEOUT, TAB],
        returns: Returns::Object(&[SESSION_ID, URL]),
    },
    run: |call| Box::pin(go(call, Direction::Back)),
};

pub static GO_FORWARD: Tool = Tool {
    facts: ToolFacts {
        name: "go_forward",
        title: "Go forward",
        text: "Go forward in a tab's history; without an entry to go to, it stays where it is.",
        pack: Pack::Navigation,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[SESSION, WAIT_UNTIL, wait_for_as("navigate"), INCLUDE_SNAPSHOT, TIMEOUT, TAB],
        returns: Returns::Object(&[SESSION_ID, URL]),
    },
    run: |call| Box::pin(go(call, Direction::Forward)),
};

async fn go(call: Call, direction: Direction) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    call.session()?.count_navigation();
    let arrived = page.go(direction, wait_until(&call), call.deadline).await.map_err(faults::page(&call))?;
    after.finish(&call, arrival(&call, &arrived)).await
}

pub static RELOAD: Tool = Tool {
    facts: ToolFacts {
        name: "reload",
        title: "Reload",
        text: "Reload a tab.",
        pack: Pack::Navigation,
        effect: Effect::ACT_IDEMPOTENT,
        lane: Lane::Session,
        parameters: &[SESSION, WAIT_UNTIL, wait_for_as("navigate"), INCLUDE_SNAPSHOT, TIMEOUT, TAB],
        returns: Returns::Object(&[SESSION_ID, URL]),
    },
    run: |call| Box::pin(reload(call)),
};

async fn reload(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    call.session()?.count_navigation();
    let arrived = page.reload(wait_until(&call), call.deadline).await.map_err(faults::page(&call))?;
    after.finish(&call, arrival(&call, &arrived)).await
}

pub static WAIT_FOR_URL: Tool = Tool {
    facts: ToolFacts {
        name: "wait_for_url",
        title: "Wait for URL",
        text: "Wait until a tab's URL is equal to or matches a glob (* within a segment, ** across), or matches a regular expression.",
        pack: Pack::Navigation,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new(
                "url",
                Shape::TextOrRecord {
                    fields: &[Parameter::name("pattern", "").required(), Parameter::text("flags", "")],
                },
                "",
            )
            .required(),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, URL]),
    },
    run: |call| Box::pin(wait_for_url(call)),
};

async fn wait_for_url(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let pattern = match call.arguments.value("url") {
        Some(Value::String(text)) => UrlPattern::text(text),
        Some(value) => {
            let part = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
            UrlPattern::regex(part("pattern"), part("flags"))
        }
        None => UrlPattern::text(""),
    };
    let pattern = pattern.map_err(|reason| Fault::invalid_argument("url", reason))?;
    let url = page.wait_for_url(&pattern, call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(json!({"session_id": call.arguments.text("session_id"), "url": url})))
}
