//! Storage that fails at a chosen call, and that can show what a power cut would leave.
//!
//! Files are real. Of each write that was not synced yet the bytes before it are kept, so that
//! [`FaultyIo::power_cut`] can copy the directory as a disk might hold it: every unsynced sector of
//! 512 bytes either old or new, by the throw of dice. What a failed sync covered is lost for good,
//! however often it is synced later, unless it is written again: so do real kernels behave.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::storage_io::{StorageFile, StorageIo, SystemIo};
use super::{Dice, copy_directory};

const SECTOR_BYTES: usize = 512;

#[derive(Default)]
pub struct FaultyIo {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Calls that change something, so far.
    calls: u64,
    /// The call that fails, and whether it panics instead.
    fail_at: Option<(u64, bool)>,
    /// From that call on all fail, as if the process had died.
    dead_from: Option<u64>,
    /// Bytes before unsynced writes, by the file's current path, oldest first.
    unsynced: HashMap<PathBuf, Vec<Undo>>,
    /// Bytes before writes that a failed sync gave up.
    lost: HashMap<PathBuf, Vec<Undo>>,
}

enum Undo {
    Bytes { offset: u64, before: Vec<u8> },
    Length(u64),
}

impl FaultyIo {
    pub fn failing_at(call: u64, panics: bool) -> Self {
        let io = Self::default();
        io.lock().fail_at = Some((call, panics));
        io
    }

    /// Nothing changes any more from that call on.
    pub fn dying_at(call: u64) -> Self {
        let io = Self::default();
        io.lock().dead_from = Some(call);
        io
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_failed(&self) -> bool {
        let state = self.lock();
        state.fail_at.map(|(call, _)| call).or(state.dead_from).is_some_and(|call| state.calls >= call)
    }

    /// Copies `from` to `to` as it would be after a power cut at this moment.
    pub fn power_cut(&self, from: &Path, to: &Path, dice: &mut Dice) {
        let state = self.lock();
        copy_directory(from, to);
        let lost = state.lost.iter().map(|(path, undos)| (path, undos, 1));
        for (path, undos, one_in) in state.unsynced.iter().map(|(path, undos)| (path, undos, 2)).chain(lost) {
            let name = path.file_name().expect("files have names");
            let Ok(file) = std::fs::OpenOptions::new().write(true).open(to.join(name)) else { continue };
            for undo in undos.iter().rev() {
                match undo {
                    Undo::Length(length) if dice.below(one_in) == 0 => file.set_len(*length).expect("it can be cut"),
                    Undo::Length(_) => {}
                    Undo::Bytes { offset, before } => undo_sectors(&file, *offset, before, dice, one_in),
                }
            }
        }
    }

    fn wrap(&self, file: Arc<dyn StorageFile>, path: &Path) -> Arc<dyn StorageFile> {
        let path = Arc::new(Mutex::new(path.to_owned()));
        Arc::new(FaultyFile { file, path, state: self.state.clone() })
    }
}

fn undo_sectors(file: &std::fs::File, offset: u64, before: &[u8], dice: &mut Dice, one_in: u64) {
    let mut at = 0;
    while at < before.len() {
        let in_sector = SECTOR_BYTES - (offset as usize + at) % SECTOR_BYTES;
        let until = (at + in_sector).min(before.len());
        if dice.below(one_in) == 0 {
            file.write_at(&before[at..until], offset + at as u64).expect("it can be written");
        }
        at = until;
    }
}

impl State {
    /// Counts a call, and fails it when its time has come.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.dead_from.is_some_and(|call| self.calls >= call) {
            return Err(io::Error::other("dead"));
        }
        match self.fail_at {
            Some((call, true)) if call == self.calls => panic!("injected"),
            Some((call, false)) if call == self.calls => Err(io::Error::other("injected")),
            _ => Ok(()),
        }
    }
}

impl StorageIo for FaultyIo {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        self.lock().call()?;
        Ok(self.wrap(SystemIo.create(path)?, path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.wrap(SystemIo.open(path)?, path))
    }

    fn open_read_only(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(self.wrap(SystemIo.open_read_only(path)?, path))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        SystemIo.list(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.call()?;
        // Only what was synced is ever renamed here, so no undo has to follow the name.
        assert!(state.unsynced.get(from).is_none_or(Vec::is_empty), "renamed before it was synced");
        SystemIo.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lock().call()?;
        SystemIo.remove(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.lock().call()?;
        SystemIo.sync_directory(directory)
    }
}

struct FaultyFile {
    file: Arc<dyn StorageFile>,
    path: Arc<Mutex<PathBuf>>,
    state: Arc<Mutex<State>>,
}

impl FaultyFile {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path under which the file is known by now: unfinished files lose their suffix.
    fn path(&self) -> PathBuf {
        let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = path.with_extension("");
        if path.extension().is_some_and(|extension| extension == "new") && !path.exists() && finished.exists() {
            *path = finished;
        }
        path.clone()
    }

    fn sync(&self, sync: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        let outcome = state.call().and_then(|()| sync());
        let path = self.path();
        let pending = state.unsynced.remove(&path).unwrap_or_default();
        if outcome.is_err() {
            state.lost.entry(path).or_default().extend(pending);
        }
        outcome
    }
}

impl StorageFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.lock();
        if state.dead_from.is_some_and(|call| state.calls >= call) {
            return Err(io::Error::other("dead"));
        }
        let outcome = state.call();
        let mut before = vec![0; bytes.len()];
        self.file.read_at(&mut before, offset)?;
        let (path, until) = (self.path(), offset + bytes.len() as u64);
        let again = |undo: &Undo| matches!(undo, Undo::Bytes { offset: at, before } if *at >= offset && at + before.len() as u64 <= until);
        state.lost.entry(path.clone()).or_default().retain(|undo| !again(undo));
        state.unsynced.entry(path).or_default().push(Undo::Bytes { offset, before });
        // A write that fails may have written some of it.
        let written = if outcome.is_ok() { bytes.len() } else { bytes.len() / 2 };
        self.file.write_at(&bytes[..written], offset)?;
        outcome
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.lock().call()?;
        self.file.set_length(length)
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.call()?;
        state.unsynced.entry(self.path()).or_default().push(Undo::Length(self.file.length()?));
        self.file.allocate(from, to)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(&|| self.file.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(&|| self.file.sync_all())
    }
}
