//! What may enter the queue: an event that is too large becomes a gap that says so. And what may stay
//! in it when the log ends on a full disk: the audit's own, and gaps that count the rest.
//!
//! What must stay true: what goes is declared, by kind and session.

use std::collections::BTreeMap;

use super::block::SESSION_ID_BYTES_MAX;
use super::queue::Request;
use crate::event::catalog::Gap;
use crate::event::codec::{ContextField, put_record};
use crate::event::{Class, Context, Draft, EventView, Kind, Symbol};
use crate::ids::SessionId;
use crate::limits::EVENT_BYTES_MAX;

/// What a draft takes in memory besides its body.
const DRAFT_OVERHEAD_BYTES: usize = 64;
/// No gap event is larger than this, its context included.
const GAP_BYTES: usize = 512;

/// What the drafts will take in the queue.
pub(super) fn admitted_bytes(drafts: &[Draft]) -> usize {
    let bytes = |draft: &Draft| if fits(draft) { draft.body.len() } else { GAP_BYTES };
    drafts.iter().map(|draft| bytes(draft) + DRAFT_OVERHEAD_BYTES).sum()
}

/// Replaces each draft that is too large for the log by a gap.
pub(super) fn replace_oversized(drafts: &mut [Draft]) {
    for draft in drafts.iter_mut().filter(|draft| !fits(draft)) {
        let gap = Gap { what: Symbol::fold(draft.kind.name()), count: 1, reason: Symbol::fold("too_large") };
        *draft = Draft::new(&context_of(draft), &gap);
    }
}

/// Leaves what somebody waits for and events of the audit as they are, and counts the others in gaps at
/// the end.
pub(super) fn condense(requests: &mut Vec<Request>) {
    let mut counts: BTreeMap<(Option<SessionId>, Kind), u64> = BTreeMap::new();
    for request in requests.iter_mut().filter(|request| request.reply.is_none()) {
        request.drafts.retain(|draft| {
            let stays = draft.kind.facts().class == Class::Audit;
            if !stays {
                *counts.entry((draft.session_id.clone(), draft.kind)).or_default() += 1;
            }
            stays
        });
    }
    let gaps = counts.into_iter().map(|((session_id, kind), count)| {
        let context = Context { session_id, ..Context::default() };
        let (what, reason) = (Symbol::fold(kind.name()), Symbol::fold("disk_full"));
        Draft::new(&context, &Gap { what, count, reason })
    });
    requests.push(Request::new(gaps.collect(), None));
}

fn fits(draft: &Draft) -> bool {
    let session_bytes = draft.session_id.as_ref().map_or(0, |session_id| session_id.as_str().len());
    draft.body.len() <= EVENT_BYTES_MAX && session_bytes <= SESSION_ID_BYTES_MAX
}

/// The draft's own context, as far as each part of it is of a sane length.
fn context_of(draft: &Draft) -> Context {
    let mut record = Vec::new();
    put_record(&mut record, 0, 0, &draft.body);
    let Ok((view, _)) = EventView::split_from(&record) else { return Context::default() };
    let text = |field| view.context(field).filter(|text| text.len() <= SESSION_ID_BYTES_MAX / 16);
    Context {
        session_id: draft.session_id.clone().filter(|id| id.as_str().len() <= SESSION_ID_BYTES_MAX),
        instance_id: text(ContextField::InstanceId).map(Into::into),
        owner: text(ContextField::Owner).map(Into::into),
        page_id: text(ContextField::PageId).map(Into::into),
        frame_id: text(ContextField::FrameId).map(Into::into),
        operation_id: text(ContextField::OperationId).map(Into::into),
        request_id: text(ContextField::RequestId).map(Into::into),
        browser_time_micros: None,
    }
}
