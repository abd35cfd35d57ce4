//! `request_attention`, `get_attention_result`, `vault_list_available`, `vault_fill`: tools whose other
//! end is a person or a vault.
//!
//! This server has neither an operator page nor a vault yet. Each tool says so by a fault of its own
//! before it looks at anything else, so that callers learn what to do instead.

use super::lifecycle::unsupported;
use super::tool::{Call, Output, Tool};
use crate::contract::facts::{INTEGER_MAX, NAME_LENGTH_MAX, SESSION, Scalar, TAB};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::{Code, Fault};
use crate::gateway::Transport;

const DECISION: Returns = Returns::Object(&[
    Field::choice("status", &["resolved", "rejected", "timeout", "cancelled"]),
    Field::text("message").maybe(),
    Field::text("resolved_by").maybe(),
    Field::number("resolved_at").or_null(),
    Field::text("request_id"),
]);

pub static REQUEST_ATTENTION: Tool = Tool {
    facts: ToolFacts {
        name: "request_attention",
        title: "Request attention",
        text: "Ask a person to help with this session and wait for the answer. HTTP only.",
        pack: Pack::Attention,
        effect: Effect { read_only: false, destructive: false, idempotent: false, open_world: false },
        lane: Lane::Free,
        parameters: &[
            SESSION,
            Parameter::new("reason", Shape::Text { length_min: 1, length_max: REASON_LENGTH_MAX }, "").required(),
            Parameter::new("mode", Shape::Choice(&["takeover", "notify"]), "").or(Scalar::Text("takeover")),
            Parameter::new("options", Shape::Any, ""),
            Parameter::new("max_wait_seconds", Shape::Integer { min: 0, max: INTEGER_MAX }, ""),
        ],
        returns: DECISION,
    },
    run: |call| Box::pin(request_attention(call)),
};

/// What a person is told, in characters.
const REASON_LENGTH_MAX: usize = 4_096;

async fn request_attention(call: Call) -> Result<Output, Fault> {
    over_http(&call)?;
    call.gateway.registry.find(&call.owner, call.arguments.text("session_id"))?.browser()?;
    Err(no_operator())
}

pub static GET_ATTENTION_RESULT: Tool = Tool {
    facts: ToolFacts {
        name: "get_attention_result",
        title: "Get attention result",
        text: "The outcome of an earlier request_attention; waits while it is open. HTTP only.",
        pack: Pack::Attention,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[Parameter::name("request_id", "").required()],
        returns: DECISION,
    },
    run: |call| Box::pin(get_attention_result(call)),
};

async fn get_attention_result(call: Call) -> Result<Output, Fault> {
    over_http(&call)?;
    Err(no_operator())
}

/// Over standard input nobody but the client is connected.
fn over_http(call: &Call) -> Result<(), Fault> {
    match call.gateway.transport {
        Transport::Http => Ok(()),
        Transport::Stdio => Err(Fault::new(Code::AttentionRequiresHttp)),
    }
}

fn no_operator() -> Fault {
    unsupported("attention: this server has no operator page on which a person could answer")
}

pub static VAULT_LIST_AVAILABLE: Tool = Tool {
    facts: ToolFacts {
        name: "vault_list_available",
        title: "Vault: list available",
        text: "The vault entries that may be filled on the page that the session shows; never secrets.",
        pack: Pack::Vault,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[SESSION, Parameter::text("url", "domain of the login page")],
        returns: Returns::Object(&[
            Field::objects("entries"),
            Field::choice("scope", &["unscoped", "page", "no_page", "rejected"]),
            Field::text("scoped_to").or_null(),
            Field::object("mismatch").maybe(),
            Field::text("note").maybe(),
        ]),
    },
    run: |_| Box::pin(no_vault()),
};

pub static VAULT_FILL: Tool = Tool {
    facts: ToolFacts {
        name: "vault_fill",
        title: "Vault: fill",
        text: "Fill a login form with a vault entry, after checking the page's origin; the secret is never shown.",
        pack: Pack::Vault,
        effect: Effect::ACT,
        lane: Lane::Free,
        parameters: &[
            SESSION,
            Parameter::new("entry_name", Shape::Text { length_min: 1, length_max: NAME_LENGTH_MAX }, "").required(),
            Parameter::selector("username_selector", "").required(),
            Parameter::selector("password_selector", "").required(),
            Parameter::selector("submit_selector", ""),
            Parameter::new("after_submit_wait_ms", Shape::Integer { min: 0, max: INTEGER_MAX }, ""),
            Parameter::flag("clear_after_fill", ""),
            TAB,
        ],
        returns: Returns::Object(&[
            Field::choice("status", &["success", "origin_mismatch", "auth_failed", "blocked"]),
            Field::yes("redacted"),
            Field::text("reason").maybe(),
        ]),
    },
    run: |_| Box::pin(no_vault()),
};

async fn no_vault() -> Result<Output, Fault> {
    Err(Fault::new(Code::VaultNotConfigured))
}
