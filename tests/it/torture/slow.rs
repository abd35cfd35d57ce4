//! R05: somebody who reads slowly costs the writers nothing: what was not yet read waits in the log, not
//! in memory, and is all there, without a hole, whenever it is read.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use storage::log::{Log, LogOptions};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::load::draft;
use crate::support::check::{Check, is_long, short_or_long};
use crate::support::{LIMIT, processes, program, wait_within};

/// A slow reader takes this much, and then waits for the next tick.
const SIP_BYTES: usize = 100;
const SIP: Duration = Duration::from_millis(100);
const COMMIT_EVENTS: u64 = 20;
const ROUNDS: usize = 4;
const RESIDENT_BYTES_MAX: u64 = 64 << 20;

/// A process that prints the log to whoever reads slowly.
struct Slow {
    child: Child,
    sipping: JoinHandle<(ChildStdout, Vec<u8>)>,
    done: tokio::sync::watch::Sender<bool>,
}

impl Slow {
    fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program::path());
        command.args(["tail", "--json", "--data-dir"]).arg(data).args(arguments);
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("it starts");
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let (done, mut stop) = tokio::sync::watch::channel(false);
        let sipping = tokio::spawn(async move {
            let (mut taken, mut pace) = (Vec::new(), tokio::time::interval(SIP));
            while !*stop.borrow_and_update() {
                pace.tick().await;
                let mut sip = vec![0; SIP_BYTES];
                let count = stdout.read(&mut sip).await.expect("it can be read");
                taken.extend(&sip[..count]);
            }
            (stdout, taken)
        });
        Self { child, sipping, done }
    }

    fn resident_bytes(&self) -> u64 {
        self.child.id().map_or(0, processes::resident_bytes)
    }

    /// Reads on without waiting until the event of that number, and gives the numbers of all.
    async fn drain(mut self, last_seq: u64) -> Vec<u64> {
        self.done.send_replace(true);
        let (stdout, taken) = self.sipping.await.expect("it reads");
        let mut lines = BufReader::new(std::io::Cursor::new(taken).chain(stdout)).lines();
        let mut numbers = Vec::new();
        while numbers.last() != Some(&last_seq) {
            let line = tokio::time::timeout(LIMIT, lines.next_line()).await.expect("there is more in time");
            let Some(line) = line.expect("it can be read") else { break };
            let event: Value = serde_json::from_str(&line).expect("a line is JSON");
            numbers.push(event["seq"].as_u64().expect("a number"));
        }
        self.child.kill().await.expect("it can be killed");
        numbers
    }
}

/// Events a second that a writer gets through, in a time that is long enough to tell.
async fn rate(log: &Log, number: &mut u64) -> f64 {
    let (began, first) = (Instant::now(), *number);
    let time = short_or_long(Duration::from_millis(700), Duration::from_secs(2));
    while began.elapsed() < time {
        let drafts = (*number..*number + COMMIT_EVENTS).map(|number| draft(0, number)).collect();
        log.commit(drafts).await.expect("the log records");
        *number += COMMIT_EVENTS;
    }
    (*number - first) as f64 / began.elapsed().as_secs_f64()
}

/// What was reached when nothing else was in the way.
fn best(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_costs_the_writers_nothing_and_misses_nothing() {
    let mut check = Check::begin("R05", "readers at 1 KB/s, one following and one dumping");
    let data = tempfile::tempdir().expect("a temporary directory");
    let log = Log::open(LogOptions::new(data.path().join("log"))).expect("the log opens");
    let mut number = 0;
    rate(&log, &mut number).await;
    let dumped_seq = log.watch().borrow().last_seq;
    let dumping = Slow::start(data.path(), &[]);
    wait_within(LIMIT, "the dump waits for its reader", || async { (dumping.resident_bytes() > 0).then_some(()) })
        .await;
    let (mut alone, mut beside, mut resident) = (Vec::new(), Vec::new(), 0);
    let mut slow = Some(Slow::start(data.path(), &["--follow"]));
    for _ in 0..ROUNDS {
        // Frozen, it is as if it were not there.
        let following = slow.as_ref().and_then(|slow| slow.child.id()).expect("it runs");
        processes::signal(following, "STOP").await;
        alone.push(rate(&log, &mut number).await);
        processes::signal(following, "CONT").await;
        beside.push(rate(&log, &mut number).await);
        resident = resident.max(slow.as_ref().map_or(0, Slow::resident_bytes)).max(dumping.resident_bytes());
    }
    let ratio = best(&beside) / best(&alone);
    assert!(ratio > if is_long() { 0.8 } else { 0.3 }, "writers get through {ratio:.2} of what they did alone");
    assert!(resident < RESIDENT_BYTES_MAX, "{resident} bytes are held for slow readers");
    let last_seq = log.watch().borrow().last_seq;
    let followed = slow.take().expect("it is there").drain(last_seq).await;
    assert_eq!(followed, (1..=last_seq).collect::<Vec<_>>(), "a slow follower misses nothing");
    let dumped = dumping.drain(u64::MAX).await;
    assert_eq!(dumped[..dumped_seq as usize], (1..=dumped_seq).collect::<Vec<_>>(), "nor does a slow dump");
    assert!(dumped.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    log.close().await.expect("the log closes");
    check.tried(2 * ROUNDS);
    check.figure("rate beside/alone", format!("{ratio:.2}"));
    check.figure("resident MB", resident >> 20);
    check.figure("missed", 0);
}
