//! What the writing program noted before it was killed, held against the log that it left.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use storage::log::Reader;

use super::child::digest;
use super::payload::Origin;

/// One acknowledged request.
#[derive(Debug, Clone, Copy)]
pub struct Acked {
    pub first_seq: u64,
    pub last_seq: u64,
    /// Of the request's first event; the others follow it.
    pub origin: Origin,
    pub elapsed: Duration,
}

#[derive(Debug, Default)]
pub struct Notes {
    /// Epoch and last number when the log had been opened.
    pub opened: Option<(u64, u64)>,
    pub closed: bool,
    pub acked: Vec<Acked>,
    /// Numbers and digests of events as subscribers were shown them.
    pub seen: Vec<(u64, u64)>,
}

impl Notes {
    /// The notes of one run.
    #[must_use]
    pub fn read(directory: &Path, run: u64) -> Self {
        let mut notes = Self::of_writers(directory, run);
        for who in ["inside", "outside"] {
            notes.take_all(&directory.join(format!("seen-{who}-{run}")), run);
        }
        notes
    }

    /// As [`Notes::read`], without what subscribers saw.
    #[must_use]
    pub fn of_writers(directory: &Path, run: u64) -> Self {
        let mut notes = Self::default();
        notes.take_all(&directory.join(format!("acked-{run}")), run);
        notes
    }

    /// A last line that was not finished is left out.
    fn take_all(&mut self, file: &Path, run: u64) {
        let text = fs::read_to_string(file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().for_each(|line| self.take(line, run));
    }

    fn take(&mut self, line: &str, run: u64) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap_or_else(|_| panic!("no line of notes: {line}"));
        match words[0] {
            "o" => self.opened = Some((number(1), number(2))),
            "c" => self.closed = true,
            "s" => self.seen.push((number(1), number(2))),
            "a" => self.acked.push(Acked {
                first_seq: number(1),
                last_seq: number(2),
                origin: Origin { run, writer: number(3), number: number(4) },
                elapsed: Duration::from_micros(number(5)),
            }),
            _ => panic!("no line of notes: {line}"),
        }
    }

    #[must_use]
    pub fn acked_events(&self) -> u64 {
        self.acked.iter().map(|acked| acked.last_seq - acked.first_seq + 1).sum()
    }

    /// When the newest acknowledgement came, after the program's start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.acked.iter().map(|acked| acked.elapsed).max().unwrap_or_default()
    }
}

/// A log as it was found, event by event.
#[derive(Debug, Default)]
pub struct Held {
    /// What is known of each number: its digest, and which event it is when a writer made it.
    pub events: BTreeMap<u64, (u64, Option<Origin>)>,
}

/// How a log stands against the notes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Acknowledged events that are not there.
    pub lost: u64,
    /// Acknowledged numbers that hold something else.
    pub altered: u64,
    /// Numbers that hold something else than a subscriber was shown, or nothing.
    pub replaced: u64,
}

impl Held {
    /// Reads the whole log, and proves of what it holds that numbers have no holes, that each event is
    /// as its writer made it, and that of each writer there is everything up to some request.
    #[must_use]
    pub fn read(reader: &Reader) -> Self {
        let mut held = Self::default();
        let mut next_of: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut next_seq = reader.first_seq();
        let scanned = reader.scan(next_seq, &|_| true, &mut |event| {
            assert_eq!(event.seq, next_seq, "numbers have no holes");
            next_seq += 1;
            let origin = Origin::of(event);
            if let Some(origin) = origin {
                assert_eq!(event.body, origin.draft().body, "event {} is as its writer made it", event.seq);
                let next = next_of.entry((origin.run, origin.writer)).or_default();
                assert_eq!(origin.number, *next, "event {}: a writer's events are in order, none missing", event.seq);
                *next += 1;
            }
            held.events.insert(event.seq, (digest(event), origin));
            ControlFlow::Continue(())
        });
        scanned.expect("the log can be read");
        assert_eq!(next_seq, reader.durable().expect("the end is known").last_seq + 1, "the log is read to its end");
        held
    }

    #[must_use]
    pub fn against(&self, notes: &Notes) -> Verdict {
        let mut verdict = Verdict::default();
        for acked in &notes.acked {
            for seq in acked.first_seq..=acked.last_seq {
                let origin = Origin { number: acked.origin.number + seq - acked.first_seq, ..acked.origin };
                match self.events.get(&seq) {
                    None => verdict.lost += 1,
                    Some((_, found)) if *found != Some(origin) => verdict.altered += 1,
                    Some(_) => {}
                }
            }
        }
        let replaced = |(seq, digest): &&(u64, u64)| self.events.get(seq).is_none_or(|(found, _)| found != digest);
        verdict.replaced = notes.seen.iter().filter(replaced).count() as u64;
        verdict
    }
}
