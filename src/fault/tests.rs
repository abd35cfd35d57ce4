//! The list of faults against the contract's, and its texts against their own rules.

use serde_json::Value;

use super::*;
use crate::limits::{MESSAGE_BYTES_MAX, NEXT_STEP_BYTES_MAX};

fn contract() -> Value {
    serde_json::from_str(include_str!("../../tests/fixtures/contract/faults.json")).expect("the fixture is JSON")
}

#[test]
fn rows_are_the_contracts() {
    let ours: Vec<Value> = FAULTS
        .iter()
        .map(|row| {
            serde_json::json!({
                "code": row.name,
                "error_type": row.error_type.as_str(),
                "retry": row.retry.as_str(),
                "details": row.details,
            })
        })
        .collect();
    let contract = contract();
    let theirs = contract["faults"].as_array().expect("the fixture lists faults");
    assert!(!theirs.is_empty());
    let (first, added) = ours.split_at(theirs.len());
    for (ours, theirs) in first.iter().zip(theirs) {
        for key in ["code", "error_type", "retry"] {
            assert_eq!(ours[key], theirs[key], "{theirs}");
        }
        let known = |of: &Value| of["details"].as_array().cloned().unwrap_or_default();
        assert!(known(ours).starts_with(&known(theirs)), "{ours} has less than {theirs}");
    }
    // The contract only grows: what is ours alone comes after it, and is named here.
    let added: Vec<&str> = added.iter().filter_map(|row| row["code"].as_str()).collect();
    assert_eq!(added, ["HISTORY_DAMAGED"]);
    let error_types: Vec<&str> = ErrorType::ALL.iter().map(|word| word.as_str()).collect();
    assert_eq!(Value::from(error_types), contract["error_types"]);
}

#[test]
fn codes_find_their_rows() {
    for (position, row) in FAULTS.iter().enumerate() {
        assert_eq!(row.code as usize, position);
        assert_eq!(Code::parse(row.name), Some(row.code));
    }
    assert_eq!(Code::parse("NO_SUCH_CODE"), None);
}

#[test]
fn texts_are_short_plain_sentences() {
    for row in FAULTS {
        for (text, bytes_max) in [(row.message, MESSAGE_BYTES_MAX), (row.next_step, NEXT_STEP_BYTES_MAX)] {
            assert!(!text.is_empty() && text.len() <= bytes_max, "{}: {} bytes", row.name, text.len());
            assert!(text.is_ascii() && !text.contains('|'), "{}: {text}", row.name);
            assert!(text.ends_with('.') && text.starts_with(|c: char| c.is_ascii_uppercase()), "{}: {text}", row.name);
        }
    }
}

/// Words with an underscore are names, and each must be one that a caller can use.
#[test]
fn next_steps_name_what_exists() {
    const NAMES: &[&str] = &[
        "clear_with",
        "close_session",
        "dialog_type",
        "domcontentloaded",
        "download_id",
        "evaluate",
        "export_events",
        "first_seq",
        "get_attention_result",
        "get_content",
        "last_seq",
        "launch_session",
        "list_console_messages",
        "list_downloads",
        "list_events",
        "list_network_requests",
        "list_saved_auths",
        "list_sessions",
        "list_tabs",
        "max_instances",
        "new_tab",
        "press_key",
        "read_artifact",
        "request_attention",
        "retry_after_ms",
        "save_full_profile",
        "save_storage_state",
        "server_status",
        "session_id",
        "timeout_ms",
        "wait_for_selector",
        "wait_until",
    ];
    for row in FAULTS {
        let words = row.next_step.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.contains('_')) {
            assert!(NAMES.contains(&word), "{} names {word}", row.name);
        }
        // A detail that a next step points to must be one the code allows.
        for detail in row.next_step.split("details.").skip(1) {
            let name = detail.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            assert!(row.details.contains(&name), "{} points to details.{name}", row.name);
        }
    }
}

#[test]
fn another_owners_session_looks_like_none() {
    let (denied, missing) = (Code::SessionAccessDenied.facts(), Code::SessionNotFound.facts());
    assert_eq!((denied.message, denied.next_step), (missing.message, missing.next_step));
    assert_eq!(Fault::new(Code::SessionAccessDenied).shown_code(), Code::SessionNotFound);
}
