//! A disk in memory that fails as told, and that knows what a power cut would leave.
//!
//! Everything it decides comes from one seed, so that what it did can be done again. `content` says
//! what is modelled of files, `names` of directories, `trouble` of single calls. Each process has its
//! own view with its own troubles; a process that died can change nothing any more.

mod content;
mod names;
mod process;
mod trouble;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Dice;
use content::{Content, SECTOR_BYTES};
use names::Names;

pub use process::Process;
pub use trouble::{Call, Mishap, Plan};

/// The disk. Clones share it.
#[derive(Clone)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Clone)]
struct State {
    files: Vec<Content>,
    names: Names,
    /// Room for all files together; `None` for as much as they like.
    bytes_max: Option<u64>,
    dice: Dice,
}

impl SimulatedDisk {
    pub fn new(seed: u64) -> Self {
        let state = State { files: Vec::new(), names: Names::default(), bytes_max: None, dice: Dice::of(seed) };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A view for a process that starts now.
    pub fn process(&self) -> Arc<Process> {
        Arc::new(Process::new(self.clone()))
    }

    /// The same bytes, and the same in doubt, on another disk.
    pub fn copy(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.lock().clone())) }
    }

    /// The power goes and comes back. All processes must be dead.
    pub fn cut_power(&self) {
        let State { files, names, dice, .. } = &mut *self.lock();
        names.cut_power(dice);
        for file in files {
            file.cut_power(dice);
        }
    }

    /// What failed syncs gave up is no longer shown.
    pub fn forget_lost(&self) {
        self.lock().files.iter_mut().for_each(Content::forget_lost);
    }

    /// From now on all files together may hold this much more, or as much as they like.
    pub fn set_room(&self, bytes: Option<u64>) {
        let mut state = self.lock();
        state.bytes_max = bytes.map(|bytes| state.used_bytes() + bytes);
    }

    /// Names and contents as processes see them.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.lock();
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        state.names.live.iter().map(|(path, file)| (name(path), state.files[*file].live.clone())).collect()
    }

    /// Puts a file there, durable as if it had always been.
    pub fn plant(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.lock();
        let file = state.create(path);
        state.files[file].write(bytes, 0);
        state.files[file].sync(true);
        state.names.sync(path.parent().unwrap_or(path));
    }
}

impl State {
    fn used_bytes(&self) -> u64 {
        self.names.live.values().map(|file| self.files[*file].live.len() as u64).sum()
    }

    fn create(&mut self, path: &Path) -> usize {
        self.files.push(Content::default());
        let file = self.files.len() - 1;
        self.names.create(path, file);
        file
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.live.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// How many of `bytes` more fit.
    fn room_for(&self, bytes: usize) -> usize {
        let Some(most) = self.bytes_max else { return bytes };
        bytes.min(usize::try_from(most.saturating_sub(self.used_bytes())).unwrap_or(bytes))
    }

    /// How much of a write that fails is done: some whole sectors, or all of it, or nothing.
    fn part_of(&mut self, offset: usize, bytes: usize) -> usize {
        let sectors = (offset + bytes) / SECTOR_BYTES - offset / SECTOR_BYTES + 2;
        let until = (offset / SECTOR_BYTES + self.dice.below(sectors as u64) as usize) * SECTOR_BYTES;
        until.saturating_sub(offset).min(bytes)
    }

    /// Writes as much as fits.
    fn write(&mut self, file: usize, bytes: &[u8], offset: usize) -> io::Result<()> {
        let growth = (offset + bytes.len()).saturating_sub(self.files[file].live.len());
        let missing = growth - self.room_for(growth);
        self.files[file].write(&bytes[..bytes.len().saturating_sub(missing)], offset);
        if missing > 0 { Err(Mishap::NoRoom.error()) } else { Ok(()) }
    }
}
