//! What a caller is refused as a matter of policy. Every refusal is the operator's to know of, whatever
//! the caller does next.

use std::path::{Path, PathBuf};

use storage::event::catalog::PolicyRefused;
use storage::event::{Context, Draft, Symbol};

use super::tool::Call;
use crate::fault::{Code, Fault};
use crate::paths;

/// Records that `what` was refused by `rule`, and by which of the operator's where there may be many.
pub(super) fn record(call: &Call, rule: &'static str, what: &str, matched: Option<&str>) {
    let ids = call.target.ids();
    let context = Context {
        session_id: ids.instance.map(Into::into),
        instance_id: ids.instance_id,
        owner: Some(call.owner.clone()),
        page_id: ids.page_id,
        operation_id: Some(call.operation_id.clone()),
        ..Context::default()
    };
    let redactor = &call.gateway.redactor;
    let matched = matched.map(|matched| redactor.text(matched));
    let refused = PolicyRefused { rule: Symbol::fold(rule), what: redactor.text(what), matched };
    call.gateway.journal.record(vec![Draft::new(&context, &refused)]);
}

/// Refuses a path, or a name that would become one.
pub(super) fn path(call: &Call, asked: &str) -> Fault {
    record(call, "path", asked, None);
    Fault::new(Code::PathNotAllowed).with("path", asked)
}

/// The path that a caller asked to have written, below `root`.
///
/// # Errors
/// `PATH_NOT_ALLOWED`.
pub(super) fn below(call: &Call, root: &Path, asked: &str) -> Result<PathBuf, Fault> {
    paths::below(root, asked).map_err(|_| path(call, asked))
}
