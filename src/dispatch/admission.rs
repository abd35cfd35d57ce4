//! Which calls may begin when the log or the disk is not as it should be.
//!
//! What must stay true: what stands on record stays readable in every state; sessions can be closed on
//! a full disk; nothing else touches a browser then.

use storage::disk::DiskLevel;

use crate::contract::{Effect, Lane, Pack, ToolFacts};
use crate::fault::{Code, Fault};
use crate::gateway::Gateway;

/// Whether a call may begin at all.
///
/// # Errors
/// `SERVER_SHUTTING_DOWN`, `LOG_UNAVAILABLE` or `DISK_LOW`.
pub(super) fn admit(gateway: &Gateway, facts: &ToolFacts) -> Result<(), Fault> {
    if let Err(fault) = gateway.ready() {
        let goes_on = match fault.code() {
            Code::LogUnavailable => reads_the_record(facts),
            Code::DiskLow => reads_the_record(facts) || closes_a_session(facts) || looks(gateway, facts),
            _ => false,
        };
        return if goes_on { Ok(()) } else { Err(fault) };
    }
    if opens_a_session(facts) && gateway.disk.level() >= DiskLevel::RefuseSessions {
        return Err(gateway.disk_low());
    }
    Ok(())
}

/// What touches no browser and changes nothing goes on when the log can record no more.
pub(super) fn reads_the_record(facts: &ToolFacts) -> bool {
    facts.effect.read_only && facts.lane == Lane::Free
}

/// Looking at a page is no act, but its events need what room there is.
fn looks(gateway: &Gateway, facts: &ToolFacts) -> bool {
    facts.effect.read_only && !gateway.disk.state().refusing
}

fn closes_a_session(facts: &ToolFacts) -> bool {
    facts.effect == Effect::END && facts.lane == Lane::Free
}

fn opens_a_session(facts: &ToolFacts) -> bool {
    facts.effect == Effect::ACT && matches!(facts.pack, Pack::Lifecycle | Pack::Instances)
}

/// Whether the call's own events find no room on the disk. It is answered all the same.
pub(super) fn is_off_record(gateway: &Gateway, facts: &ToolFacts) -> bool {
    reads_the_record(facts) && gateway.disk.state().refusing
}

/// A refusal for lack of room says how much there is, wherever it came from.
pub(super) fn with_room(gateway: &Gateway, fault: Fault) -> Fault {
    if fault.code() != Code::DiskLow || fault.details().contains_key("free_bytes") {
        return fault;
    }
    fault.with("free_bytes", gateway.disk.state().space.free_bytes)
}
