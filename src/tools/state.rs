//! `get_cookies`, `set_cookies`, `set_viewport`, `set_extra_http_headers`: the session's own state.
//!
//! What must stay true: values of cookies and headers go to the caller and the browser and nowhere
//! else; the log knows how many there were.

use serde_json::{Map, Value, json};

use super::faults;
use super::tool::{Call, Output, Tool};
use crate::contract::facts::{INTEGER_MAX, SESSION, TAB, TEXT_LENGTH_MAX};
use crate::contract::result::SESSION_ID;
use crate::contract::validate::join;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::cookies;
use crate::envelope::budget::weight;
use crate::fault::{Fault, Problem};
use crate::limits::{COOKIES_MAX, HEADERS_MAX, RESULT_BYTES_MIN, VIEWPORT_SIDE_PIXELS_MAX};

pub static GET_COOKIES: Tool = Tool {
    facts: ToolFacts {
        name: "get_cookies",
        title: "Get cookies",
        text: "The session's cookies, or those that would be sent to the given URLs.",
        pack: Pack::State,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[SESSION, Parameter::new("urls", Shape::Texts { items_min: 0, items_max: URLS_MAX }, "")],
        returns: Returns::Object(&[Field::objects("cookies")]),
    },
    run: |call| Box::pin(get_cookies(call)),
};

/// Addresses that one call may ask about.
const URLS_MAX: usize = 100;

async fn get_cookies(call: Call) -> Result<Output, Fault> {
    let mut addresses = Vec::new();
    let mut problems = Vec::new();
    for (position, url) in call.arguments.texts("urls").iter().enumerate() {
        match cookies::Address::parse(url) {
            Some(address) => addresses.push(address),
            None => problems.push(Problem::new(format!("urls.{position}"), "must be an absolute http or https URL")),
        }
    }
    if !problems.is_empty() {
        return Err(Fault::invalid(&problems));
    }
    let all = call.browser()?.cookies(call.deadline).await.map_err(faults::cdp(&call))?;
    let asked = call.arguments.value("urls").is_some();
    let sent = |cookie: &&Value| !asked || addresses.iter().any(|address| address.gets(cookie));
    // What does not fit a reply would be kept as a file: cookies are not.
    let room = call.gateway.config.max_result_bytes.saturating_sub(COOKIES_FRAME_BYTES);
    Ok(Output::value(fitting(cookies::all_shown(all.iter().filter(sent)), room)))
}

/// As many cookies as fit, those without their value that only so do, and how many are left out.
fn fitting(cookies: Vec<Value>, room: usize) -> Value {
    let (mut shown, mut omitted, mut spent) = (Vec::new(), 0, 0);
    for mut cookie in cookies {
        if spent + weight(&cookie) > room {
            let value = cookie["value"].take();
            cookie["value_bytes"] = value.as_str().map_or(0, str::len).into();
            cookie["truncated"] = true.into();
        }
        let cost = weight(&cookie) + COMMA_BYTES;
        if spent + cost > room {
            omitted += 1;
        } else {
            spent += cost;
            shown.push(cookie);
        }
    }
    let mut data = json!({"cookies": shown});
    if omitted > 0 {
        data["omitted"] = json!(omitted);
        data["next_step"] = "Pass urls to ask for fewer cookies.".into();
    }
    data
}

/// What a reply of cookies needs beside them.
const COOKIES_FRAME_BYTES: usize = RESULT_BYTES_MIN / 2;
const COMMA_BYTES: usize = 2;

pub static SET_COOKIES: Tool = Tool {
    facts: ToolFacts {
        name: "set_cookies",
        title: "Set cookies",
        text: "Set cookies, all or none. Each needs a url, or a domain and a path.",
        pack: Pack::State,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new(
                "cookies",
                Shape::Records {
                    items_min: 1,
                    items_max: COOKIES_MAX,
                    fields: &[
                        Parameter::new("name", Shape::Text { length_min: 0, length_max: TEXT_LENGTH_MAX }, "")
                            .required(),
                        Parameter::new("value", Shape::Text { length_min: 0, length_max: TEXT_LENGTH_MAX }, "")
                            .required(),
                    ],
                    open: true,
                },
                "also url, domain, path, expires (s), httpOnly, secure, sameSite, partitionKey",
            )
            .required()
            .typed(),
        ],
        returns: Returns::Object(&[Field::integer("added")]),
    },
    run: |call| Box::pin(set_cookies(call)),
};

async fn set_cookies(call: Call) -> Result<Output, Fault> {
    let given = call.arguments.value("cookies").and_then(Value::as_array).cloned().unwrap_or_default();
    let cookies = cookies::checked(&given).map_err(|problems| Fault::invalid(&problems))?;
    let browser = call.browser()?;
    let refused = browser.cookies_refused(&cookies, call.deadline).await.map_err(faults::cdp(&call))?;
    if !refused.is_empty() {
        let problem = |position: &usize| {
            Problem::new(
                format!("cookies.{position}"),
                "Chromium does not take it: check name, domain, secure and sameSite",
            )
        };
        return Err(Fault::invalid(&refused.iter().map(problem).collect::<Vec<_>>()));
    }
    browser.set_cookies(&cookies, call.deadline).await.map_err(faults::cdp(&call))?;
    Ok(Output::value(json!({"added": cookies.len()})))
}

pub static SET_VIEWPORT: Tool = Tool {
    facts: ToolFacts {
        name: "set_viewport",
        title: "Set viewport",
        text: "Set a tab's viewport in CSS pixels; more than 10000 a side is clamped to that.",
        pack: Pack::State,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("width", Shape::Integer { min: 1, max: INTEGER_MAX }, "").required(),
            Parameter::new("height", Shape::Integer { min: 1, max: INTEGER_MAX }, "").required(),
            TAB,
        ],
        returns: Returns::Object(&[
            SESSION_ID,
            Field::integer("width"),
            Field::integer("height"),
            Field::yes("clamped").maybe(),
        ]),
    },
    run: |call| Box::pin(set_viewport(call)),
};

async fn set_viewport(call: Call) -> Result<Output, Fault> {
    let page = call.page_or_new().await?;
    let asked = |name: &str| call.arguments.integer(name).unwrap_or(1);
    let (width, height) = (asked("width"), asked("height"));
    let clamped = |side: u64| side.min(VIEWPORT_SIDE_PIXELS_MAX);
    let given = (clamped(width), clamped(height));
    page.set_viewport(given.0, given.1, call.deadline).await.map_err(faults::page(&call))?;
    let mut data = json!({"session_id": call.arguments.text("session_id"), "width": given.0, "height": given.1});
    if given != (width, height) {
        data["clamped"] = true.into();
    }
    Ok(Output::value(data))
}

pub static SET_EXTRA_HTTP_HEADERS: Tool = Tool {
    facts: ToolFacts {
        name: "set_extra_http_headers",
        title: "Set extra HTTP headers",
        text: "Send these headers with every request of all tabs, new ones included, in place of those set before; {} for none.",
        pack: Pack::State,
        effect: Effect::SET,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("headers", Shape::Record { fields: &[], open: true }, "name to value").required().typed(),
        ],
        returns: Returns::Object(&[SESSION_ID, Field::integer("applied"), Field::texts("rejected")]),
    },
    run: |call| Box::pin(set_extra_http_headers(call)),
};

async fn set_extra_http_headers(call: Call) -> Result<Output, Fault> {
    let given = call.arguments.text_members("headers", HEADERS_MAX)?;
    let mut headers = Map::new();
    let mut rejected = Vec::new();
    for (name, value) in given {
        // Names differ by more than case alone: of two spellings the last holds.
        let lower = name.to_ascii_lowercase();
        let fits = is_allowed(&lower) && value.as_str().is_some_and(is_header_value);
        if fits {
            headers.insert(lower, value);
        } else {
            rejected.push(join("", &name));
        }
    }
    let applied = headers.len();
    call.browser()?.set_extra_headers(headers);
    Ok(Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "applied": applied,
        "rejected": rejected,
    })))
}

/// Headers that the browser keeps for itself: connections, lengths, cookies, and what tells servers
/// where a request came from.
const HEADERS_REFUSED: &[&str] = &[
    "access-control-request-headers",
    "access-control-request-method",
    "connection",
    "content-length",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "host",
    "keep-alive",
    "origin",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Whether a name, in lower case, is a header's and free to be set.
fn is_allowed(name: &str) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let kept = HEADERS_REFUSED.contains(&name) || name.starts_with("proxy-") || name.starts_with("sec-");
    !name.is_empty() && name.len() <= HEADER_NAME_BYTES_MAX && name.chars().all(token) && !kept
}

/// The longest header name, in bytes.
const HEADER_NAME_BYTES_MAX: usize = 256;
/// The longest header value, in bytes: servers take no more.
const HEADER_VALUE_BYTES_MAX: usize = 8_192;

fn is_header_value(value: &str) -> bool {
    value.len() <= HEADER_VALUE_BYTES_MAX && value.chars().all(|c| c == '\t' || (' '..='~').contains(&c))
}
