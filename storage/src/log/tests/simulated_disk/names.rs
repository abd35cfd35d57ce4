//! The directory of the simulated disk: which names lead to which files, now and after a power cut.
//!
//! What is modelled, and why: creating, renaming and removing a name is durable after the next sync of
//! its directory that succeeds. Until then a power cut leaves either the first so many of the changes,
//! as a journal does, or any choice of them, as POSIX allows; each of them as a whole, since a rename
//! is atomic on every file system that has a journal. A failed sync of a directory leaves its changes
//! to a later one: a journal that cannot be written stops the whole file system, it forgets nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::Dice;

#[derive(Clone)]
enum Change {
    Create(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Clone, Default)]
pub(super) struct Names {
    pub live: BTreeMap<PathBuf, usize>,
    disk: BTreeMap<PathBuf, usize>,
    pending: Vec<Change>,
}

impl Change {
    /// Without effect when what it starts from is not there.
    fn apply(&self, to: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Change::Create(path, file) => {
                to.insert(path.clone(), *file);
            }
            Change::Rename(from, onto) => {
                if let Some(file) = to.remove(from) {
                    to.insert(onto.clone(), file);
                }
            }
            Change::Remove(path) => {
                to.remove(path);
            }
        }
    }

    fn directory(&self) -> Option<&Path> {
        let (Change::Create(path, _) | Change::Rename(_, path) | Change::Remove(path)) = self;
        path.parent()
    }
}

impl Names {
    pub fn create(&mut self, path: &Path, file: usize) {
        self.change(Change::Create(path.to_owned(), file));
    }

    pub fn rename(&mut self, from: &Path, to: &Path) {
        self.change(Change::Rename(from.to_owned(), to.to_owned()));
    }

    pub fn remove(&mut self, path: &Path) {
        self.change(Change::Remove(path.to_owned()));
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    pub fn sync(&mut self, directory: &Path) {
        for change in std::mem::take(&mut self.pending) {
            if change.directory() == Some(directory) {
                change.apply(&mut self.disk);
            } else {
                self.pending.push(change);
            }
        }
    }

    pub fn cut_power(&mut self, dice: &mut Dice) {
        let pending = std::mem::take(&mut self.pending);
        let journal = dice.one_in(2);
        let first_many = dice.below(pending.len() as u64 + 1) as usize;
        for (position, change) in pending.iter().enumerate() {
            if if journal { position < first_many } else { dice.one_in(2) } {
                change.apply(&mut self.disk);
            }
        }
        self.live.clone_from(&self.disk);
    }
}
