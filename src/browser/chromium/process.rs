//! The process group of one Chromium: started together, watched, and gone together.
//!
//! Chromium ends by itself when its pipe closes, so a killed gateway leaves nothing behind; whatever
//! else happens, the group is killed when its leader has ended.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;

use super::os::{Signal, signal_group};
use crate::deadline::Deadline;

/// Bytes of stderr kept, the last ones.
const STDERR_BYTES_MAX: usize = 8 * 1024;
/// How long the group may take to follow its leader before it is killed.
const FOLLOW_WAIT: Duration = Duration::from_millis(500);
/// How long processes may take to end after SIGTERM.
const TERMINATE_WAIT: Duration = Duration::from_secs(1);
/// Pause between looks at a group whose members are nobody's children of ours: there is no
/// notification to wait for.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// How Chromium's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// `exited` or `killed`.
    pub reason: &'static str,
}

/// A started Chromium.
pub struct Process {
    process_id: u32,
    exit: watch::Receiver<Option<Exit>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

impl Process {
    /// Starts `command` as the leader of its own process group.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn start(mut command: Command) -> std::io::Result<Self> {
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let process_id = child.id().unwrap_or_default();
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(pipe) = child.stderr.take() {
            tokio::spawn(drain(pipe, stderr.clone()));
        }
        let (sender, exit) = watch::channel(None);
        tokio::spawn(watch_over(child, Group(process_id), sender));
        Ok(Self { process_id, exit, stderr })
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.process_id
    }

    #[must_use]
    pub fn exit(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// Waits until the leader has ended.
    pub async fn ended(&self) {
        // An error means that the watch is gone, and the child with it.
        let _ = self.exit.clone().wait_for(Option::is_some).await;
    }

    /// The last lines Chromium wrote to stderr.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Ends what is left of the group, by SIGTERM and then SIGKILL; true once all of it is gone.
    pub async fn end_group(&self, deadline: Deadline) -> bool {
        let group = self.process_id;
        if self.exit.borrow().is_some() && deadline.within(FOLLOW_WAIT).bound(group_gone(group)).await.is_ok() {
            return true;
        }
        let _ = signal_group(group, Signal::Terminate);
        if deadline.within(TERMINATE_WAIT).bound(group_gone(group)).await.is_ok() {
            return true;
        }
        let _ = signal_group(group, Signal::Kill);
        // A killed process needs no permission to end: this wait outlives a spent deadline a little.
        Deadline::after(TERMINATE_WAIT).bound(group_gone(group)).await.is_ok()
    }
}

/// Kills the group when dropped, so that a runtime that shuts down leaves nothing.
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = signal_group(self.0, Signal::Kill);
    }
}

async fn watch_over(mut child: Child, group: Group, exit: watch::Sender<Option<Exit>>) {
    let status = child.wait().await;
    exit.send_replace(Some(describe(status.ok())));
    // The others notice by themselves within moments; whoever does not is killed with the guard.
    let _ = Deadline::after(FOLLOW_WAIT).bound(group_gone(group.0)).await;
    drop(group);
}

fn describe(status: Option<ExitStatus>) -> Exit {
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    Exit { code, signal, reason: if signal.is_some() { "killed" } else { "exited" } }
}

async fn drain(mut pipe: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = [0u8; 4096];
    while let Ok(count) = pipe.read(&mut chunk).await {
        if count == 0 {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..count]);
        let excess = tail.len().saturating_sub(STDERR_BYTES_MAX);
        tail.drain(..excess);
    }
}

/// Waits until nothing of the group runs.
pub async fn group_gone(group: u32) {
    while runs(group) {
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

/// Whether anything of the group still runs.
#[must_use]
pub fn runs(group: u32) -> bool {
    signal_group(group, Signal::Probe) && has_members(group)
}

/// Whether a process of the group still runs. Dead ones that nobody has collected do not count:
/// where process 1 does not collect them, they stay for ever.
fn has_members(group: u32) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    processes.filter_map(Result::ok).any(|entry| {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { return false };
        // pid (name, which may hold anything) state parent group ...
        let Some((_, rest)) = stat.rsplit_once(')') else { return false };
        let mut fields = rest.split_ascii_whitespace();
        let alive = !matches!(fields.next(), Some("Z" | "X") | None);
        alive && fields.nth(1).and_then(|field| field.parse().ok()) == Some(group)
    })
}
