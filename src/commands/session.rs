//! Which session a person means: its id, or the name it was launched under.

use std::ops::ControlFlow;

use storage::event::catalog::SessionLaunching;
use storage::event::codec::ContextField;
use storage::event::{Kind, Payload};
use storage::ids::SessionId;
use storage::log::{BlockHeader, Reader};

use super::CommandError;

/// The session called `wanted`; of several launched under one name, the latest. `None` when there is
/// none of that id or name on record.
pub fn find(reader: &Reader, wanted: &str) -> Result<Option<SessionId>, CommandError> {
    for block in reader.blocks(reader.start())? {
        let session_id = block?.header.session_id;
        if session_id.as_ref().is_some_and(|id| id.as_str() == wanted) {
            return Ok(session_id);
        }
    }
    let launches = |header: &BlockHeader| header.kinds & kind_bit(Kind::SessionLaunching) != 0;
    let mut found = None;
    reader.scan(reader.first_seq(), &launches, &mut |event| {
        let launched = SessionLaunching::take(event);
        if launched.is_ok_and(|launched| launched.name.as_str() == wanted) {
            found = event.context(ContextField::SessionId).map(SessionId::from);
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The bit of a kind in a block's header.
pub fn kind_bit(kind: Kind) -> u128 {
    1 << kind.number()
}
