#![allow(unsafe_code)]
//! The few calls that Rust's standard library does not offer safely: descriptors 3 and 4 of a child,
//! and signals to a process group.
//!
//! The only unsafe code of the program. Everything done between fork and exec is async-signal-safe.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use tokio::process::Command;

/// Chromium reads commands here.
const COMMANDS_FD: i32 = 3;
/// Chromium writes replies and events here.
const REPLIES_FD: i32 = 4;
/// Above this no descriptor is in the way of 3 and 4.
const PARKING_FD: i32 = 10;

/// Gives `commands` and `replies` to the child as descriptors 3 and 4. The command owns them from
/// here on, so dropping it closes our copies.
pub fn pass_pipes(command: &mut Command, commands: OwnedFd, replies: OwnedFd) {
    let place = move || {
        // SAFETY: fcntl and dup2 are async-signal-safe and touch only descriptors; both of ours stay
        // open because this closure owns them.
        unsafe {
            let commands = check(libc::fcntl(commands.as_raw_fd(), libc::F_DUPFD_CLOEXEC, PARKING_FD))?;
            let replies = check(libc::fcntl(replies.as_raw_fd(), libc::F_DUPFD_CLOEXEC, PARKING_FD))?;
            check(libc::dup2(commands, COMMANDS_FD))?;
            check(libc::dup2(replies, REPLIES_FD))?;
        }
        Ok(())
    };
    // SAFETY: the closure only makes async-signal-safe calls and allocates nothing.
    unsafe {
        command.pre_exec(place);
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A signal for a process group; 0 only asks whether it exists.
#[derive(Debug, Clone, Copy)]
pub enum Signal {
    Probe,
    Terminate,
    Kill,
}

/// Sends `signal` to the group; false when there is no such group any more.
#[must_use]
pub fn signal_group(group: u32, signal: Signal) -> bool {
    let number = match signal {
        Signal::Probe => 0,
        Signal::Terminate => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    };
    let Ok(group) = i32::try_from(group) else { return false };
    if group <= 1 {
        return false;
    }
    // SAFETY: kill takes two integers and touches no memory of ours.
    let result = unsafe { libc::kill(-group, number) };
    result == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Makes a pipe hold more, so that bursts need fewer wake-ups; the default will do when refused.
pub fn widen_pipe(pipe: &OwnedFd) {
    const PIPE_BYTES: i32 = 1024 * 1024;
    // SAFETY: fcntl with F_SETPIPE_SZ takes a descriptor we own and an integer.
    let _ = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
}
