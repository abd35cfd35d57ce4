//! The writing program as a process: started, watched by its notes, frozen, killed.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::child::{Engine, ORDERS, Orders};
use super::notes::Notes;
use crate::support::processes;
use crate::support::{LIMIT, wait_for, wait_within};

impl Orders {
    /// Eight writers and two subscribers until killed, in segments small enough to be left often.
    #[must_use]
    pub fn new(store: &Path, notes: &Path) -> Self {
        Self {
            store: store.to_owned(),
            notes: notes.to_owned(),
            run: 0,
            writers: 8,
            requests: None,
            pause_micros: 1_000,
            segment_bytes: 1 << 20,
            subscribers: true,
            clock_behind_micros: 0,
            engine: Engine::Log,
            housekeeping: false,
            sync_interval_millis: None,
        }
    }
}

/// A running writer; killed with the value.
pub struct Program {
    child: Child,
    traced: bool,
    orders: Orders,
}

impl Program {
    #[must_use]
    pub fn start(orders: &Orders) -> Self {
        Self::behind(&[], orders)
    }

    /// As the last argument of another command, such as a tracer.
    #[must_use]
    pub fn behind(tracer: &[&str], orders: &Orders) -> Self {
        let own = std::env::current_exe().expect("this program has a path");
        let own = own.to_str().expect("paths of tests are text");
        let line = [tracer, &[own, "--ignored", "--exact", "torture::child::writer", "--nocapture"]].concat();
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null());
        command.env(ORDERS, serde_json::to_string(orders).expect("orders are JSON"));
        let child = command.spawn().expect("the program starts");
        Self { child, traced: !tracer.is_empty(), orders: orders.clone() }
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it was not waited for yet")
    }

    /// What it has noted so far.
    #[must_use]
    pub fn notes(&self) -> Notes {
        Notes::read(&self.orders.notes, self.orders.run)
    }

    /// Returns once it has noted that the log is open.
    pub async fn opened(&mut self) {
        self.noted("the log is open", |notes| notes.opened.is_some()).await;
    }

    /// Returns once that many events were acknowledged.
    pub async fn acknowledged(&mut self, events: u64) {
        self.noted("events are acknowledged", |notes| notes.acked_events() >= events).await;
    }

    /// Returns once something was acknowledged that late after its start.
    pub async fn has_run_for(&mut self, time: Duration) {
        self.noted("the time has come", |notes| notes.elapsed() >= time).await;
    }

    async fn noted(&mut self, what: &str, fact: impl Fn(&Notes) -> bool) {
        let began = Instant::now();
        loop {
            let noted =
                wait_for_or(&mut self.child, || fact(&Notes::of_writers(&self.orders.notes, self.orders.run))).await;
            match noted {
                Some(true) => return,
                Some(false) => assert!(began.elapsed() < 3 * LIMIT, "not in time: {what}"),
                None => panic!("the program ended before {what}"),
            }
        }
    }

    /// Stops every thread of it where it is.
    pub async fn freeze(&self) {
        let traced = processes::descendants(self.pid());
        let pid = traced.first().map_or(self.pid(), |process| process.pid);
        processes::signal(pid, "STOP").await;
        wait_for("every thread is stopped", || async { processes::is_stopped(pid).then_some(()) }).await;
    }

    /// Kills it at this very moment and returns once it is gone.
    pub async fn kill(mut self) {
        let mut family = Vec::new();
        if self.traced {
            // A program outlives its tracer.
            family = processes::descendants(self.pid());
            for process in &family {
                processes::signal(process.pid, "KILL").await;
            }
        }
        self.child.kill().await.expect("it can be killed");
        wait_within(LIMIT, "it is gone", || async { processes::alive(&family).is_empty().then_some(()) }).await;
    }

    /// Kills it that long after its start, wherever it is then.
    pub async fn kill_after(mut self, time: Duration) {
        if let Ok(ended) = tokio::time::timeout(time, self.child.wait()).await {
            panic!("it ended by itself: {ended:?}");
        }
        self.kill().await;
    }

    /// Waits for its own end.
    pub async fn ended(mut self) -> ExitStatus {
        let ended = tokio::time::timeout(3 * LIMIT, self.child.wait()).await;
        ended.expect("it ends in time").expect("it can be waited for")
    }
}

/// Looks at the fact once more after a moment; `None` when the child has ended and it does not hold.
async fn wait_for_or(child: &mut Child, fact: impl Fn() -> bool) -> Option<bool> {
    if fact() {
        return Some(true);
    }
    match tokio::time::timeout(Duration::from_millis(5), child.wait()).await {
        Err(_) => Some(false),
        Ok(_) => fact().then_some(true),
    }
}
