//! Which processes descend from which, by proc(5). A process is its number and its start time, so
//! that a number used again is not taken for it.

use std::collections::HashMap;

/// One process, as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    started: u64,
}

impl Process {
    /// Whether it still runs. A dead one that nobody collected yet does not.
    #[must_use]
    pub fn alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started && stat.state != 'Z')
    }
}

/// Everything that descends from `pid`, itself left out.
#[must_use]
pub fn descendants(pid: u32) -> Vec<Process> {
    let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(stat) = stat(pid).filter(|stat| stat.state != 'Z') {
            children.entry(stat.parent).or_default().push(Process { pid, started: stat.started });
        }
    }
    let mut found = Vec::new();
    let mut left = vec![pid];
    while let Some(parent) = left.pop() {
        let own = children.remove(&parent).unwrap_or_default();
        left.extend(own.iter().map(|process| process.pid));
        found.extend(own);
    }
    found
}

/// The children of `pid`: for a server, the main processes of its browsers.
#[must_use]
pub fn children(pid: u32) -> Vec<Process> {
    let is_child = |process: &Process| stat(process.pid).is_some_and(|stat| stat.parent == pid);
    descendants(pid).into_iter().filter(is_child).collect()
}

/// Chromium's main process among the one browser of `pid` that is not in `before`: Debian starts it
/// through a shell.
///
/// # Panics
/// When there is no such browser.
#[must_use]
pub fn browser(pid: u32, before: &[Process]) -> Process {
    let own = children(pid).into_iter().find(|process| !before.contains(process));
    let mut main = own.expect("a browser of this server");
    while let [only] = children(main.pid)[..] {
        main = only;
    }
    main
}

/// Those of `processes` that still run.
#[must_use]
pub fn alive(processes: &[Process]) -> Vec<Process> {
    processes.iter().copied().filter(Process::alive).collect()
}

/// Returns once none of `processes` runs.
pub async fn gone(processes: &[Process]) {
    let mut look = tokio::time::interval(super::LOOK);
    while !alive(processes).is_empty() {
        look.tick().await;
    }
}

/// Sends a signal by its name, as kill(1) does.
pub async fn signal(pid: u32, name: &str) {
    let sent = tokio::process::Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().await;
    assert!(sent.is_ok_and(|status| status.success()), "signal {name} to {pid}");
}

/// Whether every thread of `pid` is stopped, by a signal or by a tracer.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stopped = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        text.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
    };
    let states: Vec<bool> = threads.map(stopped).collect();
    !states.is_empty() && states.into_iter().all(|stopped| stopped)
}

/// Whether the tests run as root, for whom Chromium's sandbox does not work.
#[must_use]
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Uid:").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0")))
}

/// Resident memory of a process in bytes.
#[must_use]
pub fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kibibytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.unwrap_or(0u64) * 1024
}

struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; fields are counted from its end.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}
