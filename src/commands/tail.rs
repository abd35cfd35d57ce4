//! `pageledger tail`: events as lines, oldest first, and with `--follow` as they come.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use storage::StorageError;
use storage::ids::SessionId;
use storage::log::{BlockHeader, Reader};

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
    let tail = Tail { session_id, order };
    let mut next_seq = tail.print_last(&reader, out)?;
    out.flush()?;
    while order.follow && next_seq <= order.last_seq {
        wait_for(&reader, next_seq)?;
        next_seq = tail.each_line(&reader, next_seq, &mut |line| writeln!(out, "{line}"))?;
        out.flush()?;
    }
    Ok(())
}

/// Which events, in which form.
struct Tail<'a> {
    session_id: Option<SessionId>,
    order: &'a TailOrder,
}

impl Tail<'_> {
    /// Prints what is there, or the last of it; returns the number after the durable end.
    fn print_last(&self, reader: &Reader, out: &mut dyn Write) -> Result<u64, CommandError> {
        let first_seq = reader.first_seq().max(self.order.first_seq);
        let Some(count) = self.order.lines else {
            return self.each_line(reader, first_seq, &mut |line| writeln!(out, "{line}"));
        };
        let mut last: VecDeque<String> = VecDeque::new();
        let next_seq = self.each_line(reader, first_seq, &mut |line| {
            if last.len() == count {
                last.pop_front();
            }
            last.push_back(line);
            Ok(())
        })?;
        last.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        Ok(next_seq)
    }

    /// The lines of events from `from_seq` to the durable end; returns the number after that end.
    fn each_line(
        &self,
        reader: &Reader,
        from_seq: u64,
        take: &mut dyn FnMut(String) -> std::io::Result<()>,
    ) -> Result<u64, CommandError> {
        // Taken before the scan: what is durable after it will be met by the next one.
        let durable_seq = reader.durable()?.last_seq;
        let last_seq = durable_seq.min(self.order.last_seq);
        let mut taken = Ok(());
        reader.scan(from_seq, &|header| self.wants(header), &mut |event| {
            if event.seq > last_seq {
                return ControlFlow::Break(());
            }
            if !self.order.filter.matches(event) {
                return ControlFlow::Continue(());
            }
            taken = take(match self.order.json {
                true => printable::json_line(event, reader.log_id()),
                false => printable::short_line(event),
            });
            if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        taken?;
        Ok(durable_seq + 1)
    }

    fn wants(&self, header: &BlockHeader) -> bool {
        let of_session = self.session_id.is_none() || header.session_id == self.session_id;
        of_session && self.order.filter.matches_block(header)
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
