//! The four named-instance tools: the same sessions, under a name the client chooses.

use serde_json::{Value, json};
use storage::ids::SessionId;
use storage::time::{now_micros, rfc3339};

use super::launch_arguments;
use super::lifecycle::{current_url, start};
use super::tool::{Call, Output, Tool};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;
use crate::session::{Session, State, open};

const SUMMARY: &[Field] = &[
    Field::text("name"),
    Field::text("instance_id"),
    Field::text("status"),
    Field::text("mode"),
    Field::text("profile_dir").or_null(),
    Field::integer("page_count"),
    Field::text("active_url").or_null(),
    Field::number("idle_seconds"),
    Field::text("created_at"),
];

const NAME: Parameter = Parameter::name("name", "").required();

pub static BROWSER_CREATE_INSTANCE: Tool = Tool {
    facts: ToolFacts {
        name: "browser_create_instance",
        title: "Create instance",
        text: "Start a browser of its own under a name; the name serves as session_id everywhere.",
        pack: Pack::Instances,
        effect: Effect::ACT,
        lane: Lane::Free,
        parameters: &[
            NAME,
            Parameter::text("profile_dir", "below the server's profiles directory; omit for a private profile"),
            Parameter::new("headless", Shape::FlagOrChoice(&["virtual"]), ""),
            Parameter::new(
                "proxy",
                Shape::Record {
                    fields: &[
                        Parameter::text("server", "").required(),
                        Parameter::text("username", ""),
                        Parameter::text("password", ""),
                        Parameter::text("bypass", ""),
                    ],
                    open: false,
                },
                "",
            ),
            Parameter::new("humanize", Shape::FlagOrNumber, ""),
            Parameter::new("window", Shape::Integers { items: 2 }, "[width, height]"),
            Parameter::flag("block_images", ""),
            Parameter::flag("block_webrtc", ""),
            Parameter::flag("block_webgl", ""),
            Parameter::new("camoufox_os", Shape::Texts { items_min: 0, items_max: 8 }, ""),
            Parameter::name("locale", ""),
            Parameter::flag("geoip", ""),
            Parameter::new("firefox_user_prefs", Shape::Record { fields: &[], open: true }, ""),
            Parameter::new("camoufox_args", Shape::Texts { items_min: 0, items_max: 64 }, "Chromium arguments"),
            Parameter::flag("enable_cache", ""),
            Parameter::new("ff_version", Shape::Integer { min: 1, max: 10_000 }, ""),
        ],
        returns: Returns::Object(SUMMARY),
    },
    run: |call| Box::pin(create(call)),
};

async fn create(call: Call) -> Result<Output, Fault> {
    let options = launch_arguments::from_create_instance(&call)?;
    let id = SessionId::from(call.arguments.text("name"));
    let session = start(&call, id, options).await?;
    Ok(Output::value(summary(&session)))
}

pub static BROWSER_DESTROY_INSTANCE: Tool = Tool {
    facts: ToolFacts {
        name: "browser_destroy_instance",
        title: "Destroy instance",
        text: "Close a named browser and remove what it left. Its history stays readable.",
        pack: Pack::Instances,
        effect: Effect::END,
        lane: Lane::Free,
        parameters: &[NAME],
        returns: Returns::Object(&[]),
    },
    run: |call| Box::pin(destroy(call)),
};

async fn destroy(call: Call) -> Result<Output, Fault> {
    let session = call.gateway.registry.find(&call.owner, call.arguments.text("name"))?;
    call.target.set_session(&session);
    open::close(&call.gateway, &session, "requested").await?;
    Ok(Output::value(json!({})))
}

pub static BROWSER_LIST_INSTANCES: Tool = Tool {
    facts: ToolFacts {
        name: "browser_list_instances",
        title: "List instances",
        text: "List the browsers that are open.",
        pack: Pack::Instances,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[],
        returns: Returns::Object(&[Field::objects("instances")]),
    },
    run: |call| Box::pin(list(call)),
};

async fn list(call: Call) -> Result<Output, Fault> {
    let sessions = call.gateway.registry.list(&call.owner);
    let open = |s: &&std::sync::Arc<Session>| matches!(s.state(), State::Live | State::Crashed);
    let instances: Vec<Value> = sessions.iter().filter(open).map(|s| summary(s)).collect();
    Ok(Output::value(json!({"instances": instances})))
}

pub static BROWSER_HEALTH: Tool = Tool {
    facts: ToolFacts {
        name: "browser_health",
        title: "Browser health",
        text: "Report the server's health without touching a browser.",
        pack: Pack::Instances,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[],
        returns: Returns::Object(&[
            Field::integer("instance_count"),
            Field::integer("reserved_count"),
            Field::texts("failed_launches"),
            Field::integer("max_instances"),
            Field::objects("instances"),
            Field::object("config"),
        ]),
    },
    run: |call| Box::pin(health(call)),
};

async fn health(call: Call) -> Result<Output, Fault> {
    let gateway = &call.gateway;
    let sessions = gateway.registry.list(&call.owner);
    let http = gateway.config.http;
    Ok(Output::value(json!({
        "instance_count": gateway.registry.live(),
        "reserved_count": gateway.registry.reserved(),
        "failed_launches": [],
        "max_instances": gateway.registry.sessions_max(),
        "instances": sessions.iter().map(|s| summary(s)).collect::<Vec<Value>>(),
        "config": {
            "idle_ttl_seconds": gateway.config.idle_ttl.map_or(0, |idle| idle.as_secs()),
            "transport": gateway.transport.as_str(),
            "host": http.map(|address| address.ip().to_string()),
            "port": http.map(|address| address.port()),
            "max_instances": gateway.registry.sessions_max(),
        },
        "log": super::introspection::log(gateway),
    })))
}

fn summary(session: &Session) -> Value {
    let options = &session.options;
    let idle_micros = now_micros().saturating_sub(session.last_used_micros()).max(0);
    json!({
        "name": session.id.as_str(),
        "instance_id": session.instance_id.as_str(),
        "status": session.state().as_str(),
        "mode": if options.profile_directory.is_some() { "persistent" } else { "ephemeral" },
        "profile_dir": options.profile_directory.as_ref().map(|path| path.display().to_string()),
        "page_count": session.browser_if_any().map_or(0, |browser| browser.pages().len()),
        "active_url": current_url(session),
        "idle_seconds": idle_micros as f64 / 1_000_000.0,
        "created_at": rfc3339(session.created_at_micros),
    })
}
