//! D03: every acknowledgement comes after a completed sync of what it acknowledges, and a new segment's
//! name is durable before anything in it is acknowledged. Seen from outside, call by call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::child::Orders;
use super::program::Program;
use crate::support::check::Check;

/// Of each writer's requests every fifth is not waited for, so this many are 200 acknowledgements.
const REQUESTS: u64 = 250;
const ACKNOWLEDGED: usize = 200;
const SEGMENT_BYTES: u64 = 32 * 1024;
const CALLS: &str = "-etrace=openat,creat,rename,renameat,renameat2,pwrite64,pwritev,write,writev,ftruncate,fallocate,\
                     fsync,fdatasync,sync_file_range,msync";

/// What the system calls so far have left undone.
#[derive(Default)]
struct Ledger {
    /// Changes of each file that no sync has covered.
    unsynced: BTreeMap<String, BTreeSet<usize>>,
    /// Directories with names that no sync has covered.
    unnamed: BTreeSet<String>,
    /// Calls that have begun and not ended, by thread, with what was unsynced when they began.
    pending: BTreeMap<String, (String, BTreeSet<usize>)>,
    acknowledged: usize,
    named: usize,
    ranged: usize,
    changes: usize,
}

impl Ledger {
    /// One line of the trace: `thread call(arguments) = result`, or its first or second half.
    fn take(&mut self, line: &str, log: &Path) {
        let (thread, call) = line.split_once(' ').expect("a line begins with its thread");
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            let covered = self.begin(begun, log);
            self.pending.insert(thread.to_owned(), (begun.to_owned(), covered));
        } else if call.starts_with("<... ") {
            let (begun, covered) = self.pending.remove(thread).expect("what goes on has begun");
            self.end(&begun, call, &covered, log);
        } else {
            let covered = self.begin(call, log);
            self.end(call, call, &covered, log);
        }
    }

    /// A change counts from its beginning; a sync covers what had changed before it began.
    fn begin(&mut self, call: &str, log: &Path) -> BTreeSet<usize> {
        let file = file_of(call);
        match name_of(call) {
            "pwrite64" | "pwritev" | "ftruncate" | "fallocate" if is_segment(file, log) => {
                self.changes += 1;
                self.unsynced.entry(file.to_owned()).or_default().insert(self.changes);
            }
            "write" | "writev" if call.contains(", \"a ") => self.acknowledge(call),
            "sync_file_range" | "msync" => self.ranged += 1,
            "fsync" | "fdatasync" => return self.unsynced.get(file).cloned().unwrap_or_default(),
            _ => {}
        }
        BTreeSet::new()
    }

    fn end(&mut self, begun: &str, ended: &str, covered: &BTreeSet<usize>, log: &Path) {
        let file = file_of(begun);
        match name_of(begun) {
            "fsync" | "fdatasync" if ended.trim_end().ends_with("= 0") => {
                if let Some(unsynced) = self.unsynced.get_mut(file) {
                    unsynced.retain(|change| !covered.contains(change));
                }
                self.unnamed.remove(file);
            }
            "rename" | "renameat" | "renameat2" => {
                // What was written under the old name is now to be synced under the new one.
                let names: Vec<&str> = begun.split('"').skip(1).step_by(2).collect();
                let unsynced = self.unsynced.remove(names[0]).unwrap_or_default();
                self.unsynced.entry(names[1].to_owned()).or_default().extend(unsynced);
                self.named += usize::from(is_segment(names[1], log));
                self.unnamed.insert(log.display().to_string());
            }
            _ => {}
        }
    }

    fn acknowledge(&mut self, call: &str) {
        self.acknowledged += 1;
        let open: Vec<_> = self.unsynced.iter().filter(|(_, changes)| !changes.is_empty()).collect();
        assert!(open.is_empty(), "acknowledged before it was synced: {call} with {open:?}");
        assert!(self.unnamed.is_empty(), "acknowledged before its name was synced: {call} in {:?}", self.unnamed);
    }
}

fn name_of(call: &str) -> &str {
    call.split('(').next().unwrap_or_default()
}

/// The path of the descriptor that a call is about.
fn file_of(call: &str) -> &str {
    call.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(path, _)| path)
}

fn is_segment(file: &str, log: &Path) -> bool {
    Path::new(file).parent() == Some(log) && (file.ends_with(".seg") || file.ends_with(".seg.new"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledgement_comes_after_a_sync_of_what_it_acknowledges() {
    let mut check = Check::begin("D03", "system calls of 200 acknowledged appends over rotations");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().canonicalize().expect("it is there");
    let trace = path.join("trace");
    let orders = Orders {
        requests: Some(REQUESTS),
        writers: 1,
        segment_bytes: SEGMENT_BYTES,
        subscribers: false,
        ..Orders::new(&path.join("log"), &path)
    };
    let output = format!("-o{}", trace.display());
    let tracer = ["strace", "-f", "-y", "-qq", "--seccomp-bpf", "-s16", &output, CALLS, "--"];
    let ended = Program::behind(&tracer, &orders).ended().await;
    assert!(ended.success(), "{ended}");
    let mut ledger = Ledger::default();
    for line in std::fs::read_to_string(&trace).expect("there is a trace").lines() {
        ledger.take(line, &orders.store);
    }
    assert_eq!(ledger.acknowledged, ACKNOWLEDGED);
    assert!(ledger.changes >= ACKNOWLEDGED, "the trace shows what is written: {}", ledger.changes);
    assert!(ledger.named > 3, "there were rotations: {}", ledger.named);
    assert_eq!(ledger.ranged, 0, "nothing is left to ranged writeback");
    check.tried(ledger.acknowledged);
    check.figure("segments", ledger.named);
    check.figure("unsynced", 0);
}
