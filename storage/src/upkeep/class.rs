//! The class of one event: that of its kind, but for what somebody will look for because it went wrong.
//!
//! Errors on a console, and every event of a request that failed or was answered by a status of 400 or
//! above, count as evidence even where their kind is noise. Requests are judged by what one segment
//! holds of them, so that no segment need be read for another's sake.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::event::codec::ContextField;
use crate::event::{Class, EventView, Kind, Level, ValueRef};
use crate::index::TROUBLE_STATUS_MIN;

/// The requests of one segment that went wrong. Eight bytes each: two requests of one hash are both
/// kept, which harms nobody.
#[derive(Default)]
pub struct Troubles(HashSet<u64>);

impl Troubles {
    /// Kinds of events that tell of trouble, as the bits of a block's header.
    pub const KINDS: u128 =
        1 << Kind::NetworkResponse as u16 | 1 << Kind::NetworkFailed as u16 | 1 << Kind::WebSocketClosed as u16;

    /// Takes note when the event says that its request went wrong.
    pub fn note(&mut self, view: &EventView<'_>) {
        let wrong = match view.kind() {
            Some(Kind::NetworkFailed) => true,
            Some(Kind::NetworkResponse) => {
                view.get("status").and_then(ValueRef::as_u64).is_some_and(|status| status >= TROUBLE_STATUS_MIN)
            }
            Some(Kind::WebSocketClosed) => view.get("error").is_some(),
            _ => false,
        };
        if wrong && let Some(request) = request_of(view) {
            self.0.insert(request);
        }
    }

    /// What the event counts as. A kind of a newer build counts as audit: this one cannot judge it.
    #[must_use]
    pub fn class(&self, view: &EventView<'_>) -> Class {
        let Some(kind) = view.kind() else { return Class::Audit };
        let class = kind.facts().class;
        if class == Class::Telemetry && (is_error(kind, view) || self.concern(view)) { Class::Evidence } else { class }
    }

    fn concern(&self, view: &EventView<'_>) -> bool {
        !self.0.is_empty() && request_of(view).is_some_and(|request| self.0.contains(&request))
    }
}

fn is_error(kind: Kind, view: &EventView<'_>) -> bool {
    let error = Level::Error as u64;
    matches!(kind, Kind::ConsoleMessage | Kind::LogEntry) && view.get("level").and_then(ValueRef::as_u64) == Some(error)
}

/// Which request of which session the event belongs to.
fn request_of(view: &EventView<'_>) -> Option<u64> {
    let request = view.context(ContextField::RequestId)?;
    let mut hasher = DefaultHasher::new();
    (view.context(ContextField::SessionId), request).hash(&mut hasher);
    Some(hasher.finish())
}
