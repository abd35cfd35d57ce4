//! `pageledger tail`: events as lines, oldest first, and with `--follow` as they come.

use std::io::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use storage::StorageError;
use storage::event::Kind;
use storage::ids::SessionId;
use storage::log::{BlockHeader, Reader};

use super::session::kind_bit;
use super::{CommandError, EXIT_NOTHING_THERE, open_log, printable, session};
use crate::config::TailOrder;
use crate::limits::TAIL_LOOK_MS;

/// Prints what is there; goes on with what comes when asked to.
pub fn tail(order: &TailOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    let reader = open_log(&order.config.data_dir)?;
    let session_id = match &order.session {
        Some(wanted) => match session::find(&reader, wanted)? {
            // Whoever follows may wait for a session that is still to come.
            None if order.follow => Some(SessionId::from(wanted.as_str())),
            None => {
                let message =
                    format!("no session of id or name {wanted:?} is on record in {}", order.config.data_dir.display());
                return Err(CommandError::new(EXIT_NOTHING_THERE, message));
            }
            found => found,
        },
        None => None,
    };
    let selection = Selection { session_id, kinds: &order.kinds, json: order.json };
    let mut next_seq = reader.first_seq();
    loop {
        next_seq = selection.print(&reader, next_seq, out)?;
        out.flush()?;
        if !order.follow {
            return Ok(());
        }
        wait_for(&reader, next_seq)?;
    }
}

/// Which events, in which form.
struct Selection<'a> {
    session_id: Option<SessionId>,
    kinds: &'a [Kind],
    json: bool,
}

impl Selection<'_> {
    /// Prints the events from `from_seq` to the durable end; returns the number after that end.
    fn print(&self, reader: &Reader, from_seq: u64, out: &mut dyn Write) -> Result<u64, CommandError> {
        // Taken before the scan: what is durable after it will be met by the next one.
        let last_seq = reader.durable()?.last_seq;
        let mut failed = None;
        reader.scan(from_seq, &|header| self.wants(header), &mut |event| {
            if event.seq > last_seq {
                return ControlFlow::Break(());
            }
            if !self.kinds.is_empty() && !event.kind().is_some_and(|kind| self.kinds.contains(&kind)) {
                return ControlFlow::Continue(());
            }
            let line =
                if self.json { printable::json_line(event, reader.log_id()) } else { printable::short_line(event) };
            match writeln!(out, "{line}") {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(last_seq + 1),
        }
    }

    fn wants(&self, header: &BlockHeader) -> bool {
        let kinds = self.kinds.iter().fold(0, |bits, kind| bits | kind_bit(*kind));
        let session = self.session_id.is_none() || header.session_id == self.session_id;
        session && (kinds == 0 || header.kinds & kinds != 0)
    }
}

/// Waits until the log holds `seq`. Another process writes it and has no way to wake this one that
/// works on every file system, so the mark is looked at again and again: one small read each time.
fn wait_for(reader: &Reader, seq: u64) -> Result<(), StorageError> {
    while reader.durable()?.last_seq < seq {
        std::thread::sleep(Duration::from_millis(TAIL_LOOK_MS));
    }
    Ok(())
}
