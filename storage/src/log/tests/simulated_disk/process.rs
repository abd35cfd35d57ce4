//! The seam of the log, served from the simulated disk for one process.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::super::storage_io::{StorageFile, StorageIo};
use super::trouble::{Call, Mishap, Plan, Trouble, dead};
use super::{SimulatedDisk, State};

/// One process's view of the disk.
pub struct Process {
    disk: SimulatedDisk,
    trouble: Arc<Mutex<Trouble>>,
}

impl Process {
    pub(super) fn new(disk: SimulatedDisk) -> Self {
        Self { disk, trouble: Arc::default() }
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what is to go wrong next; gives back what was set before and did not happen.
    pub fn plan(&self, plan: Option<Plan>) -> Option<Plan> {
        std::mem::replace(&mut self.trouble().plan, plan)
    }

    /// The process dies now.
    pub fn kill(&self) {
        self.trouble().dead = true;
    }

    pub fn is_dead(&self) -> bool {
        self.trouble().dead
    }

    /// What went wrong so far.
    pub fn happened(&self) -> Vec<(Mishap, Call)> {
        self.trouble().happened.clone()
    }

    fn file(&self, file: usize) -> Arc<dyn StorageFile> {
        Arc::new(OpenFile { disk: self.disk.clone(), trouble: self.trouble.clone(), file })
    }
}

/// Does `whole`, or, when something goes wrong, `part` of it.
fn attempt<T>(
    disk: &SimulatedDisk,
    trouble: &Mutex<Trouble>,
    call: Call,
    whole: impl FnOnce(&mut State) -> io::Result<T>,
    part: impl FnOnce(&mut State, Mishap),
) -> io::Result<T> {
    let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
    if trouble.dead {
        return Err(dead());
    }
    let mut state = disk.lock();
    let Some(mishap) = trouble.at(call) else {
        let outcome = whole(&mut state);
        if matches!(&outcome, Err(error) if error.kind() == io::ErrorKind::StorageFull) {
            trouble.happened.push((Mishap::NoRoom, call));
        }
        return outcome;
    };
    part(&mut state, mishap);
    drop((state, trouble));
    Err(mishap.error())
}

/// A call that is done as a whole or not at all: who dies in the middle of it may have done it.
fn attempt_atomic<T>(
    disk: &SimulatedDisk,
    trouble: &Mutex<Trouble>,
    call: Call,
    whole: impl Fn(&mut State) -> io::Result<T>,
) -> io::Result<T> {
    attempt(disk, trouble, call, &whole, |state, mishap| {
        if matches!(mishap, Mishap::Kill | Mishap::PowerCut) && state.dice.one_in(2) {
            // Nobody is left to be told.
            let _ = whole(state);
        }
    })
}

impl StorageIo for Process {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let create = |state: &mut State| match state.names.live.contains_key(path) {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false if state.room_for(1) == 0 => Err(Mishap::NoRoom.error()),
            false => Ok(state.create(path)),
        };
        attempt_atomic(&self.disk, &self.trouble, Call::Create, create).map(|file| self.file(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        attempt_atomic(&self.disk, &self.trouble, Call::Open, |state| state.find(path)).map(|file| self.file(file))
    }

    fn open_read_only(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.open(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        attempt_atomic(&self.disk, &self.trouble, Call::List, |state| {
            let inside = state.names.live.keys().filter(|path| path.parent() == Some(directory));
            Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        attempt_atomic(&self.disk, &self.trouble, Call::Rename, |state| {
            state.find(from)?;
            state.names.rename(from, to);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        attempt_atomic(&self.disk, &self.trouble, Call::Remove, |state| {
            state.find(path)?;
            state.names.remove(path);
            Ok(())
        })
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        attempt_atomic(&self.disk, &self.trouble, Call::SyncDirectory, |state| {
            state.names.sync(directory);
            Ok(())
        })
    }
}

struct OpenFile {
    disk: SimulatedDisk,
    trouble: Arc<Mutex<Trouble>>,
    file: usize,
}

impl OpenFile {
    fn sync(&self, with_length: bool) -> io::Result<()> {
        let sync = |state: &mut State| {
            state.files[self.file].sync(with_length);
            Ok(())
        };
        attempt(&self.disk, &self.trouble, Call::Sync, sync, |state, mishap| {
            if matches!(mishap, Mishap::Refused | Mishap::NoRoom) {
                let State { files, dice, .. } = state;
                files[self.file].fail_sync(dice);
            }
        })
    }
}

impl StorageFile for OpenFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = offset as usize;
        let write = |state: &mut State| state.write(self.file, bytes, offset);
        attempt(&self.disk, &self.trouble, Call::Write, write, |state, _| {
            let done = state.part_of(offset, bytes.len());
            // It fails as a whole anyhow.
            let _ = state.write(self.file, &bytes[..done], offset);
        })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = |state: &mut State| {
            let live = &state.files[self.file].live;
            let from = (offset as usize).min(live.len());
            let count = buffer.len().min(live.len() - from);
            buffer[..count].copy_from_slice(&live[from..from + count]);
            Ok(count)
        };
        attempt(&self.disk, &self.trouble, Call::Read, read, |_, _| {})
    }

    fn length(&self) -> io::Result<u64> {
        attempt_atomic(&self.disk, &self.trouble, Call::Length, |state| Ok(state.files[self.file].live.len() as u64))
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        attempt_atomic(&self.disk, &self.trouble, Call::SetLength, |state| {
            state.files[self.file].set_length(length as usize);
            Ok(())
        })
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        let (from, zeros) = (from as usize, vec![0; to.saturating_sub(from) as usize]);
        let allocate = |state: &mut State| state.write(self.file, &zeros, from);
        attempt(&self.disk, &self.trouble, Call::Allocate, allocate, |state, _| {
            let done = state.part_of(from, zeros.len());
            // It fails as a whole anyhow.
            let _ = state.write(self.file, &zeros[..done], from);
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(false)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(true)
    }
}
