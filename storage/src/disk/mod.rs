//! Watches the room on the data directory's disk, and keeps some in hand for an orderly end.
//!
//! [`level`] says what the room allows; [`ballast`] is the room in hand. It is given back when the disk
//! is at its lowest level or refused a write, and taken again once there is plenty.
//!
//! What must stay true: giving back or taking the ballast changes no level, because what it lacks
//! counts as used; a refused write is known at once to whoever asks, and until writing works again.

mod ballast;
mod level;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::StorageError;
use crate::limits::{BALLAST_SHARE_PERCENT_MAX, DISK_MARGIN_PERCENT};
use ballast::Ballast;

pub use level::{DiskLevel, Space, Watermarks};

/// What to watch for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskPolicy {
    pub watermarks: Watermarks,
    /// Room to keep in hand, at most a share of the file system; 0 for none.
    pub ballast_bytes: u64,
}

/// Room to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BallastState {
    /// None is wanted.
    Off,
    Held,
    Released,
}

impl BallastState {
    /// As events and status show it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Held => "held",
            Self::Released => "released",
        }
    }
}

/// The disk as it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskState {
    pub level: DiskLevel,
    pub space: Space,
    pub ballast: BallastState,
    /// What the ballast takes, or would take, of the disk.
    pub ballast_bytes: u64,
    /// A write was refused for lack of room, and none has gone through since.
    pub refusing: bool,
}

/// Asks the operating system for the room there is.
type Probe = Box<dyn Fn() -> io::Result<Space> + Send + Sync>;

/// Watches one disk. Cheap to clone.
#[derive(Clone)]
pub struct DiskWatch {
    shared: Arc<Shared>,
}

struct Shared {
    policy: DiskPolicy,
    probe: Probe,
    /// Locked while the ballast is changed.
    ballast: Mutex<Ballast>,
    state: watch::Sender<DiskState>,
}

impl DiskWatch {
    /// Watches the disk that holds `data_directory`, and looks once: at its lowest level the ballast is
    /// given back at once. It is not made here, since that takes time.
    ///
    /// # Errors
    /// When the operating system does not say how much room there is.
    pub fn open(data_directory: &Path, policy: DiskPolicy) -> Result<Self, StorageError> {
        let directory = data_directory.to_owned();
        let probe = Box::new(move || room(&directory));
        Self::probing(data_directory, policy, probe).map_err(StorageError::io("ask for the room on", data_directory))
    }

    fn probing(data_directory: &Path, policy: DiskPolicy, probe: Probe) -> io::Result<Self> {
        let space = probe()?;
        let ballast = Ballast::new(data_directory);
        let first =
            DiskState { level: DiskLevel::Ok, space, ballast: BallastState::Off, ballast_bytes: 0, refusing: false };
        let state = watch::Sender::new(first);
        let watch = Self { shared: Arc::new(Shared { policy, probe, ballast: Mutex::new(ballast), state }) };
        watch.shared.look(false);
        Ok(watch)
    }

    /// As last looked at.
    #[must_use]
    pub fn state(&self) -> DiskState {
        *self.shared.state.borrow()
    }

    #[must_use]
    pub fn level(&self) -> DiskLevel {
        self.state().level
    }

    /// Follows the state; every look and every refused write is news.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<DiskState> {
        self.shared.state.subscribe()
    }

    /// Looks now, and gives back or makes the ballast as the room allows. Blocks on the disk.
    pub fn look(&self) -> DiskState {
        self.shared.look(true);
        self.state()
    }

    /// The disk refused a write for lack of room. Gives the ballast back; returns whether that made
    /// room, so that it is worth another attempt.
    pub fn refused(&self) -> bool {
        let shared = &self.shared;
        let ballast = shared.lock();
        let held = ballast.held_bytes() > 0;
        shared.release(&ballast);
        shared.state.send_modify(|state| {
            state.refusing = true;
            state.level = DiskLevel::ReadOnly;
            if state.ballast == BallastState::Held {
                state.ballast = BallastState::Released;
            }
        });
        held
    }

    /// A write went through. Whether that changes the level is for the next look to say.
    pub fn accepted(&self) {
        self.shared.state.send_if_modified(|state| std::mem::replace(&mut state.refusing, false));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ballast> {
        self.ballast.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, makes_ballast: bool) {
        let ballast = self.lock();
        let Ok(mut space) = (self.probe)() else {
            // What was known before still is the best guess; a disk that is gone fails the log itself.
            return;
        };
        let before = *self.state.borrow();
        let wanted = self.policy.ballast_bytes.min(space.total_bytes / 100 * BALLAST_SHARE_PERCENT_MAX);
        let mut held = ballast.held_bytes();
        let room = |held: u64, space: &Space| Space {
            free_bytes: (space.free_bytes + held).saturating_sub(wanted),
            total_bytes: space.total_bytes,
        };
        let reckoned = room(held, &space);
        let mut level = self.policy.watermarks.level(before.level, &reckoned);
        if before.refusing {
            level = DiskLevel::ReadOnly;
        }
        if level == DiskLevel::ReadOnly || wanted == 0 {
            self.release(&ballast);
            held = 0;
        } else if makes_ballast && held != wanted && self.has_plenty(&reckoned) {
            if let Err(error) = ballast.hold(wanted) {
                tracing::warn!(%error, "the ballast could not be made");
            }
            held = ballast.held_bytes();
        }
        space = (self.probe)().unwrap_or(space);
        let state = match (wanted, held) {
            (0, _) => BallastState::Off,
            (wanted, held) if held == wanted => BallastState::Held,
            _ => BallastState::Released,
        };
        self.state.send_modify(|now| {
            // A write may have been refused meanwhile by somebody who did not need the ballast.
            let refusing = now.refusing;
            let level = if refusing { DiskLevel::ReadOnly } else { level };
            *now = DiskState { level, space, ballast: state, ballast_bytes: wanted, refusing };
        });
    }

    /// Whether the disk is so far from its lowest level that room can be put aside.
    fn has_plenty(&self, reckoned: &Space) -> bool {
        let percent = self.policy.watermarks.read_only_percent + DISK_MARGIN_PERCENT;
        reckoned.free_bytes >= reckoned.percent_bytes(percent).max(1)
    }

    fn release(&self, ballast: &Ballast) {
        if let Err(error) = ballast.release() {
            tracing::warn!(%error, "the ballast could not be given back");
        }
    }
}

/// The room on the file system that holds `directory`.
fn room(directory: &Path) -> io::Result<Space> {
    let facts = rustix::fs::statvfs(directory)?;
    Ok(Space {
        free_bytes: facts.f_bavail.saturating_mul(facts.f_frsize),
        total_bytes: facts.f_blocks.saturating_mul(facts.f_frsize),
    })
}

/// Whether the operating system refused for lack of room: on the disk, or within the user's quota.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
