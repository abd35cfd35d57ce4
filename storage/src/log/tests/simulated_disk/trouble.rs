//! What goes wrong for one process of the simulated disk, and when: at the n-th call of a class.

use std::io;

/// The calls of the seam, as faults tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Create,
    Open,
    List,
    Read,
    Length,
    Rename,
    Remove,
    SyncDirectory,
    Write,
    SetLength,
    Allocate,
    Sync,
}

impl Call {
    /// Whether it changes anything.
    pub fn changes(self) -> bool {
        !matches!(self, Call::Open | Call::List | Call::Read | Call::Length)
    }

    /// Whether a full disk is a reason for it to fail.
    pub fn needs_room(self) -> bool {
        matches!(self, Call::Create | Call::Rename | Call::SyncDirectory | Call::Write | Call::Allocate | Call::Sync)
    }
}

/// What happens at the chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    /// The disk refuses; a write may have been done in part, and a sync gives pages up.
    Refused,
    /// The same for want of room.
    NoRoom,
    Panic,
    /// The process dies; what it wrote stays in memory.
    Kill,
    PowerCut,
}

#[derive(Clone, Copy)]
pub struct Plan {
    /// Calls counted before, and how many of the class are still let pass.
    pub passes: u64,
    pub calls: fn(Call) -> bool,
    pub mishap: Mishap,
    /// What goes wrong at a later call that changes something, and how many of those pass before.
    pub then: Option<(u64, Mishap)>,
}

#[derive(Default)]
pub(super) struct Trouble {
    pub plan: Option<Plan>,
    /// What has happened so far, in order.
    pub happened: Vec<(Mishap, Call)>,
    /// The process is dead.
    pub dead: bool,
}

impl Trouble {
    /// What happens to this call.
    pub fn at(&mut self, call: Call) -> Option<Mishap> {
        let plan = self.plan.as_mut().filter(|plan| (plan.calls)(call))?;
        if plan.passes > 0 {
            plan.passes -= 1;
            return None;
        }
        let mishap = plan.mishap;
        let next = plan.then;
        self.plan = next.map(|(passes, mishap)| Plan { passes, calls: Call::changes, mishap, then: None });
        self.dead = matches!(mishap, Mishap::Kill | Mishap::PowerCut);
        self.happened.push((mishap, call));
        Some(mishap)
    }
}

impl Mishap {
    /// How the caller learns of it.
    pub(super) fn error(self) -> io::Error {
        match self {
            Mishap::Refused => io::Error::from_raw_os_error(libc::EIO),
            Mishap::NoRoom => io::Error::from_raw_os_error(libc::ENOSPC),
            // Unwinds as any panic does, without a word on the way.
            Mishap::Panic => std::panic::resume_unwind(Box::new("injected")),
            Mishap::Kill | Mishap::PowerCut => dead(),
        }
    }
}

pub(super) fn dead() -> io::Error {
    io::Error::other("this process is dead")
}
