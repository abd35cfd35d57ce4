//! Requests on their way into the log: all in one commit, or, when the disk has no room for that, as
//! many of them as there is room for.
//!
//! What must stay true: what nobody waits for is never overtaken and never given up, but for an ending
//! that would else fail; whoever waits is told that nothing of the request was written. The disk is
//! told of each refusal, for it may have a ballast to give back, and of the first success after one.

use std::path::PathBuf;

use super::Appended;
use super::admit::condense;
use super::queue::Request;
use super::writer::Writer;
use crate::StorageError;

/// How a commit fared on a disk with too little room.
#[derive(Default)]
struct Shortage {
    path: Option<PathBuf>,
    /// A request that nobody waits for found no room: none may go before it.
    blocked: bool,
}

impl Writer {
    /// Writes the requests. Those that are settled have their outcome afterwards; where some are not,
    /// gives the place that has no room.
    ///
    /// # Errors
    /// What ends the log.
    pub fn commit(&mut self, requests: &mut [Request]) -> Result<Option<PathBuf>, StorageError> {
        let mut shortage = Shortage::default();
        self.commit_some(requests, &mut shortage)?;
        if shortage.path.is_none() {
            self.found_room();
        }
        Ok(shortage.path)
    }

    /// As [`Writer::commit`], when nobody will append any more: all of it in one commit, if need be with
    /// what only tells of pages counted instead of recorded.
    ///
    /// # Errors
    /// What ends the log; a disk that has no room even then does.
    pub fn commit_last(&mut self, requests: &mut Vec<Request>) -> Result<(), StorageError> {
        let appended = match self.append_with_ballast(requests, &Shortage::default()) {
            Err(StorageError::Full { .. }) => {
                condense(requests);
                self.append(&mut requests.iter().flat_map(|request| &request.drafts))?
            }
            appended => appended?,
        };
        settle(requests, appended);
        self.found_room();
        Ok(())
    }

    fn commit_some(&mut self, requests: &mut [Request], shortage: &mut Shortage) -> Result<(), StorageError> {
        let appended = match &shortage.path {
            Some(path) if shortage.blocked => Err(StorageError::Full { path: path.clone() }),
            _ => self.append_with_ballast(requests, shortage),
        };
        match appended {
            Ok(appended) => settle(requests, appended),
            Err(StorageError::Full { path }) => match requests {
                [] => {}
                [request] => {
                    shortage.path = Some(path.clone());
                    if request.reply.is_some() {
                        request.outcome = Some(Err(StorageError::Full { path }));
                    } else {
                        shortage.blocked = true;
                    }
                }
                _ => {
                    shortage.path = Some(path);
                    let (first, rest) = requests.split_at_mut(requests.len() / 2);
                    self.commit_some(first, shortage)?;
                    self.commit_some(rest, shortage)?;
                }
            },
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The first refusal of a commit gives the ballast back and tries again.
    fn append_with_ballast(&mut self, requests: &[Request], shortage: &Shortage) -> Result<Appended, StorageError> {
        let drafts = || requests.iter().flat_map(|request| &request.drafts);
        let appended = self.append(&mut drafts());
        if !matches!(appended, Err(StorageError::Full { .. })) {
            return appended;
        }
        let bytes = requests.iter().map(|request| request.bytes as u64).sum();
        if shortage.path.is_none() && self.found_no_room(bytes) {
            return self.append(&mut drafts());
        }
        appended
    }

    /// `bytes` found no room. Whether some was made.
    pub fn found_no_room(&mut self, bytes: u64) -> bool {
        self.refused_bytes = Some(bytes.max(1));
        self.disk.as_ref().is_some_and(|disk| disk.refused())
    }

    /// Everything found room; that is news only after something did not.
    pub fn found_room(&mut self) {
        if self.refused_bytes.take().is_some()
            && let Some(disk) = &self.disk
        {
            disk.accepted();
        }
    }
}

/// Gives each request the numbers of its events, which lie in the order of the requests.
fn settle(requests: &mut [Request], appended: Appended) {
    let mut seq = appended.first_seq;
    for request in requests {
        let first_seq = seq;
        seq += request.drafts.len() as u64;
        request.outcome = Some(Ok(Appended { first_seq, last_seq: seq - 1 }));
    }
}
