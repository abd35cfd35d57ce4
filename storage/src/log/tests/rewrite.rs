//! A segment written anew holds what it held, less what was to go, and says what that was; the chain
//! leads through it as before.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::block::{Found, put_block, read_header};
use super::super::commit::{Item, in_order};
use super::super::format::put;
use super::super::{Block, BlockRef, Fate, Log, LogOptions, Reader, chain};
use super::{Dice, copy_directory, message, options, read_from, temporary};
use crate::StorageError;
use crate::event::codec::ContextField;
use crate::event::{Draft, EventView};

pub fn small(directory: &Path) -> LogOptions {
    LogOptions { segment_bytes: 4096, ..options(directory) }
}

/// A log of several segments with three sessions, errors among the messages.
pub async fn sample(directory: &Path, commits: usize) -> Log {
    let log = Log::open(small(directory)).expect("the log opens");
    append(&log, commits).await;
    log
}

pub async fn append(log: &Log, commits: usize) {
    for n in 0..commits {
        let session = |m: usize| [Some("a"), Some("b"), None][m % 3];
        let text = |m: usize| format!("{n}/{m} {} {}", if m == 2 { "bad" } else { "good" }, "xyz ".repeat(n % 40));
        let drafts: Vec<Draft> = (0..7).map(|m| message(session(m), &text(m))).collect();
        log.commit(drafts).await.expect("it is recorded");
    }
}

/// All that a log tells: the records that are kept, by number, and the hash after each number or run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub kept: Vec<(u64, Vec<u8>)>,
    pub removed: BTreeSet<u64>,
    pub chain: [u8; 32],
}

/// Reads everything commit by commit, and holds the chain against what the commits say of it.
pub fn tell(reader: &Reader) -> Result<Told, StorageError> {
    let mut told = Told::default();
    let (mut commit, mut next_seq) = (Vec::<Block>::new(), reader.first_seq());
    let mut at = None;
    for block in reader.blocks(reader.start())? {
        let BlockRef { position, header, .. } = block?;
        let block = reader.load(position)?;
        assert_eq!(block.header, header);
        commit.push(block);
        if !header.end_of_commit {
            continue;
        }
        for item in in_order(&commit).expect("a commit has no hole") {
            // The first hash known is the one behind the first commit.
            at = at.or((next_seq == 1).then(|| chain::start(reader.log_id())));
            at = at.map(|before| item.chain(&before));
            match item {
                Item::Event(session_id, event) => {
                    assert_eq!(event.seq, next_seq);
                    assert_eq!(event.context(ContextField::SessionId), session_id.map(|id| id.as_str()));
                    told.kept.push((event.seq, event.record.to_vec()));
                    next_seq += 1;
                }
                Item::Removed(run) => {
                    assert_eq!(run.first_seq, next_seq);
                    told.removed.extend(run.first_seq..run.first_seq + run.count);
                    next_seq += run.count;
                }
            }
        }
        assert!(at.is_none_or(|at| at == header.chain), "the chain breaks before {next_seq}");
        at = Some(header.chain);
        commit.clear();
    }
    assert!(commit.is_empty(), "the log ends with a commit");
    told.chain = at.unwrap_or_default();
    let durable = reader.durable()?;
    assert_eq!((next_seq, told.chain), (durable.last_seq + 1, durable.chain));
    Ok(told)
}

fn sealed(log: &Log) -> Vec<u32> {
    let segments = log.reader().segments().expect("they are known");
    segments.iter().filter(|facts| facts.last_seq.is_some()).map(|facts| facts.number).collect()
}

pub fn files(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory.join("log")).expect("it can be read");
    entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect()
}

pub fn keep(_: &EventView<'_>) -> Fate {
    Fate::Keep
}

#[tokio::test]
async fn everything_kept_reads_as_before_and_takes_less_room() {
    let directory = temporary();
    let log = sample(directory.path(), 60).await;
    let outside = Reader::open(&directory.path().join("log")).expect("there is a log");
    let (before, texts) =
        (tell(&log.reader()).expect("it is whole"), read_from(&log.reader(), 0).expect("it is whole"));
    let old_start = log.reader().start();
    let numbers = sealed(&log);
    assert!(numbers.len() > 4, "{numbers:?}");
    for number in &numbers {
        let old = log.reader().segments().expect("they are known")[*number as usize - 1].clone();
        let rewritten = log.rewrite(*number, &mut keep).expect("it is whole");
        let facts = rewritten.facts();
        assert_eq!((facts.generation, facts.first_seq, facts.last_seq), (1, old.first_seq, old.last_seq));
        assert!(rewritten.stored_bytes() < old.end && facts.end == rewritten.stored_bytes());
        assert_eq!(rewritten.removed_count(), 0);
        let alone = rewritten.reader();
        let held = tell(&alone).expect("it is whole").kept;
        let (first, last) = (facts.first_seq as usize - 1, facts.last_seq.expect("it is sealed") as usize);
        assert_eq!(held, before.kept[first..last]);
        assert_eq!((alone.segments().expect("they are known"), alone.start()), (vec![facts.clone()], facts.start));
        rewritten.install(*number % 2 == 0).expect("it takes its place");
        assert_eq!(alone.load(facts.start).expect("it is whole").header.first_seq, facts.first_seq);
        let names = files(directory.path());
        assert!(names.contains(&format!("{number:06}-1.seg")) && !names.contains(&format!("{number:06}.seg")));
        for reader in [&log.reader(), &outside] {
            assert_eq!(reader.segments().expect("they are known")[*number as usize - 1], facts);
            assert_eq!(tell(reader).expect("it is whole"), before);
        }
    }
    assert!(matches!(log.reader().load(old_start), Err(StorageError::Moved)));
    assert!(matches!(log.reader().block_at(old_start), Err(StorageError::Moved)));
    let walk = log.reader().blocks(old_start).expect("it begins").next();
    assert!(matches!(walk, Some(Err(StorageError::Moved))));
    for from in 0..=texts.len() as u64 + 1 {
        let expected: Vec<_> = texts.iter().filter(|(seq, _)| *seq >= from).cloned().collect();
        assert_eq!(read_from(&log.reader(), from).expect("it is whole"), expected, "from {from}");
    }
    log.close().await.expect("it closes");
    let again = Log::open(small(directory.path())).expect("the log opens");
    assert_eq!(tell(&again.reader()).expect("it is whole").kept[..before.kept.len()], before.kept[..]);
}

#[tokio::test]
async fn what_is_removed_is_told_of_and_the_chain_leads_over_it() {
    let directory = temporary();
    let mut log = sample(directory.path(), 50).await;
    let mut dice = Dice(11);
    let before = tell(&log.reader()).expect("it is whole");
    let mut expected = BTreeSet::new();
    for round in 0..4u64 {
        for number in sealed(&log) {
            let mut gone = 0;
            let mut fate = |event: &EventView<'_>| {
                // In the end one whole segment is empty, and others hold little.
                let goes = dice.below(4) < round || round == 3 && number == 2;
                expected.extend(goes.then_some(event.seq));
                gone += u64::from(goes);
                if goes { Fate::Remove } else { Fate::Keep }
            };
            let rewritten = log.rewrite(number, &mut fate).expect("it is whole");
            assert_eq!(rewritten.removed_count(), gone);
            rewritten.install(round % 2 == 0).expect("it takes its place");
        }
        let told = tell(&log.reader()).expect("it is whole");
        assert_eq!(told.removed, expected);
        let kept = before.kept.iter().filter(|(seq, _)| !expected.contains(seq));
        assert!(told.kept.iter().take(before.kept.len() - expected.len()).eq(kept), "round {round}");
        let scanned = read_from(&log.reader(), 0).expect("it is whole");
        assert_eq!(scanned.len(), told.kept.len());
        drop(log);
        log = Log::open(small(directory.path())).expect("the log opens");
        assert_eq!(log.reader().segments().expect("they are known")[0].generation as u64, round + 1);
    }
    assert!(!expected.is_empty());
}

#[tokio::test]
async fn what_is_not_installed_leaves_nothing() {
    let directory = temporary();
    let log = sample(directory.path(), 20).await;
    let before = files(directory.path());
    let rewritten = log.rewrite(1, &mut |_| Fate::Remove).expect("it is whole");
    assert!(files(directory.path()).contains("000001-1.seg.new"));
    assert!(matches!(log.rewrite(1, &mut keep), Err(StorageError::Unavailable { .. })), "one at a time");
    drop(rewritten);
    assert_eq!(files(directory.path()), before);
    let newest = log.watch().borrow().end.segment;
    for number in [0, newest, newest + 1, u32::MAX - 1] {
        assert!(matches!(log.rewrite(number, &mut keep), Err(StorageError::Moved)), "segment {number}");
    }
    log.close().await.expect("it closes");
    assert!(matches!(log.rewrite(1, &mut keep), Err(StorageError::Unavailable { .. })));
    assert_eq!(files(directory.path()), before);
}

/// Closing gives up the lock only when nobody is left who could change the files.
#[tokio::test]
async fn a_rewritten_segment_keeps_the_log_locked() {
    let directory = temporary();
    let log = sample(directory.path(), 20).await;
    let rewritten = log.rewrite(1, &mut keep).expect("it is whole");
    log.close().await.expect("it closes");
    assert!(matches!(Log::open(small(directory.path())), Err(StorageError::Locked { .. })));
    rewritten.install(false).expect("it takes its place");
    let again = Log::open(small(directory.path())).expect("the log opens");
    assert_eq!(again.reader().start().generation, 1);
}

#[tokio::test]
async fn a_segment_that_does_not_verify_is_not_written_anew() {
    let directory = temporary();
    let log = sample(directory.path(), 20).await;
    let facts = log.reader().segments().expect("they are known")[1].clone();
    drop(log);
    let whole = std::fs::read(directory.path().join("log/000002.seg")).expect("it can be read");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    // Another text under right checksums: only the chain tells.
    let mut forged = whole.clone();
    let mut at = facts.start.offset as usize;
    loop {
        let Found::Header(stored) = read_header(&forged[at..]) else { panic!("a block is there") };
        let content = forged[at + stored.content_at..at + stored.stored_bytes].to_vec();
        let next = at + stored.stored_bytes;
        let block = stored.unpack(&content).expect("it is whole");
        if let Some(found) = content.windows(4).position(|window| window == b"good") {
            let mut changed = content;
            changed[found..found + 4].copy_from_slice(b"mood");
            let mut bytes = Vec::new();
            put_block(&mut bytes, &block.header, &changed, None);
            put(&mut forged, at, &bytes);
            break;
        }
        at = next;
    }
    for (case, bytes) in [flipped, forged].into_iter().enumerate() {
        let copy = temporary();
        copy_directory(&directory.path().join("log"), &copy.path().join("log"));
        std::fs::write(copy.path().join("log/000002.seg"), &bytes).expect("it can be written");
        let log = Log::open(small(copy.path())).expect("it is found when it is read");
        let before = files(copy.path());
        match log.rewrite(2, &mut |_| Fate::Remove).err() {
            Some(StorageError::Damaged { first_seq, last_seq, .. }) => {
                assert!(facts.first_seq <= first_seq && Some(last_seq) <= facts.last_seq, "case {case}");
            }
            other => panic!("case {case}: {other:?}"),
        }
        assert_eq!(files(copy.path()), before);
        assert_eq!(std::fs::read(copy.path().join("log/000002.seg")).expect("it is there"), bytes);
    }
}

#[tokio::test]
async fn generations_left_by_a_crash_are_settled_when_the_log_is_opened() {
    let directory = temporary();
    let log = sample(directory.path(), 20).await;
    let before = tell(&log.reader()).expect("it is whole");
    let old = std::fs::read(directory.path().join("log/000002.seg")).expect("it can be read");
    log.rewrite(2, &mut |_| Fate::Remove).expect("it is whole").install(false).expect("it takes its place");
    let after = tell(&log.reader()).expect("it is whole");
    drop(log);
    let new = std::fs::read(directory.path().join("log/000002-1.seg")).expect("it can be read");
    let half = &new[..new.len() - 1];
    // What lies there, which generation holds, what is removed.
    type State<'a> = (&'a [(&'a str, &'a [u8])], u16, &'a [&'a str]);
    let states: [State<'_>; 5] = [
        (&[("000002.seg", &old), ("000002-1.seg.new", half)], 0, &["000002-1.seg.new"]),
        (&[("000002.seg", &old), ("000002-1.seg", &new)], 1, &["000002.seg"]),
        (&[("000002.seg", &[0; 700]), ("000002-1.seg", &new)], 1, &["000002.seg"]),
        (&[("000002.seg", &old), ("000002-1.seg", half)], 0, &["000002-1.seg"]),
        (&[("000002-1.seg", &new)], 1, &[]),
    ];
    for (case, (present, generation, removed)) in states.iter().enumerate() {
        let copy = temporary();
        let log_directory = copy.path().join("log");
        copy_directory(&directory.path().join("log"), &log_directory);
        std::fs::remove_file(log_directory.join("000002-1.seg")).expect("it can be removed");
        for (name, bytes) in *present {
            std::fs::write(log_directory.join(name), bytes).expect("it can be written");
        }
        let log = Log::open(small(copy.path())).unwrap_or_else(|error| panic!("case {case}: {error}"));
        assert_eq!(log.reader().segments().expect("they are known")[1].generation, *generation, "case {case}");
        let told = tell(&log.reader()).expect("it is whole");
        let expected = if *generation == 0 { &before } else { &after };
        assert_eq!(told.kept[..expected.kept.len()], expected.kept[..], "case {case}");
        assert_eq!(told.removed, expected.removed, "case {case}");
        let gone: Vec<String> = super::recoveries(&log.reader())
            .iter()
            .filter_map(|recovered| recovered.detail.as_ref().map(|detail| detail.as_str().to_owned()))
            .collect();
        assert_eq!(gone, *removed, "case {case}");
        assert!(removed.iter().all(|name| !log_directory.join(name).exists()), "case {case}");
    }
    std::fs::write(directory.path().join("log/000002-1.seg"), half).expect("it can be written");
    let refusal = Log::open(small(directory.path())).err();
    assert!(matches!(refusal, Some(StorageError::Damaged { .. })), "{refusal:?}");
}
