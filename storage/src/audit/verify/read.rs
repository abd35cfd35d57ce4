//! Reads the segments on a thread of its own, so that unpacking and hashing go on side by side.
//!
//! Beside a running server segments are written anew and removed: a file that is not where it was is
//! looked for again before anything is said about it.

use std::path::Path;
use std::sync::mpsc::SyncSender;

use super::facts::Describer;
use super::parse::{Parsed, parse};
use crate::StorageError;
use crate::log::inspect::{self, Look, Piece, SegmentClaims, SegmentWalk};

/// Commits that wait to be followed; each is a few mebibytes at most.
pub(super) const STEPS_WAITING_MAX: usize = 4;
/// Times that a file is looked for again when its segment was changed just then.
const LOOKS_MAX: usize = 5;

/// What was read next.
pub(super) enum Step {
    Segment {
        number: u32,
        generation: u16,
        name: String,
        claims: SegmentClaims,
    },
    Commit(Parsed),
    /// The segment ends at `offset`, or cannot be read further for the reason given. Its file is
    /// `length` bytes long.
    SegmentEnd {
        offset: u64,
        length: u64,
        damage: Option<&'static str>,
    },
    /// There is no such segment, or it is none.
    Unreadable {
        number: u32,
        what: &'static str,
    },
    /// Older segments were removed meanwhile: what was read does not fit together.
    Stale,
    Failed(StorageError),
}

/// Sends everything from segment `oldest` on; stops early when nobody listens.
pub(super) fn read(directory: &Path, oldest: u32, first: Look, steps: &SyncSender<Step>) {
    let outcome = Reading { directory, look: first, steps, describer: Describer::new() }.run(oldest);
    if let Err(error) = outcome {
        // Nobody listening is an end like any other.
        let _ = steps.send(Step::Failed(error));
    }
}

struct Reading<'a> {
    directory: &'a Path,
    look: Look,
    steps: &'a SyncSender<Step>,
    describer: Describer,
}

impl Reading<'_> {
    fn run(&mut self, oldest: u32) -> Result<(), StorageError> {
        let mut number = oldest;
        while let Some(listed) = self.next_from(number)? {
            if listed > number && !self.send(Step::Unreadable { number, what: "it is missing" }) {
                return Ok(());
            }
            number = listed;
            let read = match self.open(number)? {
                Ok(walk) => self.segment(number, walk)?,
                Err(_) if self.look.mark.as_ref().is_some_and(|mark| mark.oldest_segment > number) => {
                    self.send(Step::Stale);
                    return Ok(());
                }
                Err(what) => self.send(Step::Unreadable { number, what }),
            };
            if !read {
                return Ok(());
            }
            number += 1;
        }
        let marked = self.look.mark.as_ref().is_some_and(|mark| mark.segment >= number);
        if marked {
            self.send(Step::Unreadable { number, what: "it is missing" });
        }
        Ok(())
    }

    /// The first segment from `number` on that is there.
    fn next_from(&mut self, number: u32) -> Result<Option<u32>, StorageError> {
        let next = |look: &Look| look.segments.iter().map(|(number, _)| *number).find(|other| *other >= number);
        if next(&self.look).is_some_and(|other| other > number) {
            self.look = inspect::look(self.directory)?;
        }
        Ok(next(&self.look))
    }

    /// Whether anybody listens.
    fn send(&self, step: Step) -> bool {
        self.steps.send(step).is_ok()
    }

    /// Inside, why it cannot be read.
    fn open(&mut self, number: u32) -> Result<Result<(u16, SegmentWalk), &'static str>, StorageError> {
        let mut what = "it is missing";
        for _ in 0..LOOKS_MAX {
            let found =
                self.look.segments.iter().find(|(other, _)| *other == number).map(|(_, generation)| *generation);
            match found.map(|generation| SegmentWalk::open(self.directory, number, generation)).transpose()? {
                Some(Some(Ok(walk))) => return Ok(Ok((found.unwrap_or_default(), walk))),
                Some(Some(Err(problem))) => what = problem,
                Some(None) | None => what = "it is missing",
            }
            self.look = inspect::look(self.directory)?;
        }
        Ok(Err(what))
    }

    /// Whether anybody listened to the end.
    fn segment(&mut self, number: u32, (generation, mut walk): (u16, SegmentWalk)) -> Result<bool, StorageError> {
        let (name, claims) = (walk.name.clone(), walk.claims.clone());
        let path = self.directory.join(&name);
        let mut heard = self.send(Step::Segment { number, generation, name, claims });
        while heard {
            let piece = walk.next_piece().map_err(StorageError::io("read", &path))?;
            let damage = match piece {
                Piece::Commit(commit) => {
                    heard = self.send(Step::Commit(parse(commit, walk.offset, &self.describer)));
                    continue;
                }
                _ if self.was_ended_meanwhile(number)? => {
                    walk.look_again().map_err(StorageError::io("read", &path))?;
                    continue;
                }
                Piece::End => None,
                Piece::Damage(what) => Some(what),
            };
            return Ok(self.send(Step::SegmentEnd { offset: walk.offset, length: walk.length, damage }));
        }
        Ok(false)
    }

    /// Whether the newest segment is not the newest any more: a running server had more to write into
    /// it, and cut it to its length, before it began another.
    fn was_ended_meanwhile(&mut self, number: u32) -> Result<bool, StorageError> {
        let is_newest = |look: &Look| look.segments.last().is_some_and(|(newest, _)| *newest == number);
        if !is_newest(&self.look) {
            return Ok(false);
        }
        self.look = inspect::look(self.directory)?;
        Ok(!is_newest(&self.look))
    }
}
