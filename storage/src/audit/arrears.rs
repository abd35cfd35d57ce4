//! What is unsigned when signing begins, and should not be: the end of the run before, or everything,
//! because the checkpoints are gone.
//!
//! Why it exists: what no checkpoint covers can be written anew by whoever can write the files, and the
//! next signature would vouch for it. So it goes on record, before that signature, which part of history
//! was signed only afterwards.

use std::ops::ControlFlow;

use crate::StorageError;
use crate::event::catalog::{LogCheckpoint, LogRecovered};
use crate::event::{Clean, Context, Draft, Kind, Payload as _, Symbol};
use crate::log::Log;

pub(super) enum Arrears {
    /// The run before ended behind its last checkpoint.
    Tail { first_seq: u64, last_seq: u64, closed: bool },
    /// There are checkpoints on record, and none beside the log.
    Lost { count: u64, through_seq: u64, key_id: String },
}

impl Arrears {
    /// `signed_seq` is what the newest checkpoint covers; `None` when there is none.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn of(log: &Log, signed_seq: Option<u64>) -> Result<Option<Self>, StorageError> {
        if signed_seq.is_none()
            && let Some(lost) = lost(log)?
        {
            return Ok(Some(lost));
        }
        let first_seq = log.reader().first_seq().max(signed_seq.unwrap_or(0) + 1);
        let last_seq = log.before_seq();
        Ok((first_seq <= last_seq).then(|| Self::Tail { first_seq, last_seq, closed: log.was_clean() }))
    }

    pub fn in_words(&self) -> String {
        match self {
            Self::Tail { first_seq, last_seq, closed } => {
                let end = if *closed { "was closed in order" } else { "did not end in order" };
                let count = last_seq - first_seq + 1;
                format!(
                    "{count} events, {first_seq} to {last_seq}, were not signed by the run that recorded them, \
                     which {end}; they are signed as they were found"
                )
            }
            Self::Lost { count, through_seq, key_id } => format!(
                "the log has {count} checkpoints on record, up to event {through_seq} and the last by {key_id}, and \
                 none of them is in the audit directory, which was lost or replaced; it is signed anew"
            ),
        }
    }

    /// Tells whoever looks after the server, as loudly as it deserves.
    pub fn tell(&self) {
        let words = self.in_words();
        match self {
            Self::Tail { closed: false, .. } => tracing::info!("{words}"),
            _ => tracing::warn!("{words}"),
        }
    }

    pub fn draft(&self) -> Draft {
        let what = match self {
            Self::Tail { .. } => "unsigned_tail",
            Self::Lost { .. } => "checkpoints_lost",
        };
        let recovered = LogRecovered {
            what: Symbol::fold(what),
            bytes_cut: None,
            kept_as: None,
            detail: Some(Clean::redacted(self.in_words())),
        };
        Draft::new(&Context::default(), &recovered)
    }
}

/// The checkpoints on record, as far as the log can be read.
fn lost(log: &Log) -> Result<Option<Arrears>, StorageError> {
    let (mut count, mut newest) = (0, None);
    let wanted = 1 << Kind::LogCheckpoint.number();
    let scanned = log.reader().scan(0, &|header| header.kinds & wanted != 0, &mut |event| {
        if let Ok(checkpoint) = LogCheckpoint::take(event) {
            count += 1;
            newest = Some((checkpoint.through_seq, checkpoint.key_id.as_str().to_owned()));
        }
        ControlFlow::Continue(())
    });
    match scanned {
        Ok(()) | Err(StorageError::Damaged { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(newest.map(|(through_seq, key_id)| Arrears::Lost { count, through_seq, key_id }))
}
