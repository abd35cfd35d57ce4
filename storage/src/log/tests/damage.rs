//! History that is missing or altered is named or refused; nothing altered is ever returned, and a
//! damaged log never opens as an empty one.

use std::ops::ControlFlow;
use std::path::Path;

use super::super::{BlockRef, Log, LogOptions, Reader};
use super::{Dice, copy_directory, message, open, options, read_all, temporary};
use crate::StorageError;
use crate::event::Payload;
use crate::event::catalog::ConsoleMessage;

/// Several segments of compressed and plain blocks; returns the events.
async fn sample(directory: &Path) -> Vec<(u64, String)> {
    let log = Log::open(LogOptions { segment_bytes: 1500, ..options(directory) }).expect("the log opens");
    for n in 0..8 {
        let long = format!("{n} {}", "abcdefgh".repeat(120));
        log.commit(vec![message(Some("a"), &long), message(Some("b"), "short")]).await.expect("it is recorded");
    }
    let events = read_all(&log.reader());
    drop(log);
    events
}

fn segments(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory.join("log")).expect("it can be read");
    let names = entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".seg")).collect();
    names.sort();
    names
}

/// Reads everything block by block; only events that were written may appear.
fn read_damaged(directory: &Path, original: &[(u64, String)]) -> Result<usize, StorageError> {
    let reader = Reader::open(&directory.join("log"))?;
    let mut seen = 0;
    for block in reader.blocks(reader.start())? {
        for event in reader.load(block?.position)?.events() {
            let event = event.expect("what passes its checksum decodes");
            let (seq, text) = &original[event.seq as usize - 1];
            assert_eq!(*seq, event.seq);
            if let Ok(message) = ConsoleMessage::take(&event) {
                assert_eq!(message.text.as_str(), text);
            }
            seen += 1;
        }
    }
    Ok(seen)
}

#[tokio::test]
async fn a_flipped_bit_anywhere_is_noticed_or_harmless() {
    let directory = temporary();
    let original = sample(directory.path()).await;
    let names = segments(directory.path());
    assert!(names.len() >= 3, "{names:?}");
    let mut noticed = 0;
    for name in &names {
        let path = directory.path().join("log").join(name);
        let bytes = std::fs::read(&path).expect("it can be read");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it can be opened");
        for at in 0..used {
            let flipped = [bytes[at] ^ 1 << (at % 8)];
            std::os::unix::fs::FileExt::write_all_at(&file, &flipped, at as u64).expect("it can be written");
            match read_damaged(directory.path(), &original) {
                Ok(seen) => panic!("{name}, byte {at}: {seen} events and no word"),
                Err(StorageError::Damaged { first_seq, last_seq, .. }) => {
                    assert!(first_seq <= last_seq && last_seq <= original.len() as u64, "{first_seq} to {last_seq}");
                    noticed += 1;
                }
                Err(StorageError::Format { .. }) => noticed += 1,
                Err(error) => panic!("{name}, byte {at}: {error}"),
            }
            std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).expect("it can be written");
        }
    }
    assert!(noticed > 1000);
    assert_eq!(read_damaged(directory.path(), &original).expect("it is whole again"), original.len());
}

#[tokio::test]
async fn opening_a_log_with_a_flipped_bit_refuses_or_loses_nothing() {
    let directory = temporary();
    let original = sample(directory.path()).await;
    let mut dice = Dice(99);
    let mut names = segments(directory.path());
    names.push("mark".into());
    for _ in 0..60 {
        let copy = temporary();
        copy_directory(&directory.path().join("log"), &copy.path().join("log"));
        let name = &names[dice.below(names.len() as u64) as usize];
        let path = copy.path().join("log").join(name);
        let mut bytes = std::fs::read(&path).expect("it can be read");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let at = dice.below(used as u64) as usize;
        bytes[at] ^= 1 << dice.below(8);
        std::fs::write(&path, &bytes).expect("it can be written");
        match Log::open(options(copy.path())) {
            // In an older segment it is found when that is read.
            Ok(log) if name.ends_with(".seg") => {
                drop(log);
                let outcome = read_damaged(copy.path(), &[original.clone(), vec![(0, String::new())]].concat());
                assert!(matches!(outcome, Err(StorageError::Damaged { .. })), "{name}, byte {at}");
            }
            Ok(log) => assert_eq!(read_all(&log.reader())[..original.len()], original[..], "{name}, byte {at}"),
            Err(StorageError::Damaged { .. } | StorageError::Format { .. }) => {}
            Err(error) => panic!("{name}, byte {at}: {error}"),
        }
    }
}

#[tokio::test]
async fn damage_is_named_from_where_it_begins_and_known_blocks_behind_it_are_read() {
    let directory = temporary();
    let original = sample(directory.path()).await;
    let whole = Reader::open(&directory.path().join("log")).expect("there is a log");
    let blocks: Vec<BlockRef> =
        whole.blocks(whole.start()).expect("it begins").map(|block| block.expect("it is whole")).collect();
    for (harmed, block) in blocks.iter().enumerate() {
        let path = directory.path().join("log").join(format!("{:06}.seg", block.position.segment));
        let bytes = std::fs::read(&path).expect("it can be read");
        let mut flipped = bytes.clone();
        flipped[block.position.offset as usize + 90] ^= 4;
        std::fs::write(&path, flipped).expect("it can be written");
        let reader = Reader::open(&directory.path().join("log")).expect("there is a log");
        let mut walk = reader.blocks(reader.start()).expect("it begins");
        let before: Vec<BlockRef> = walk.by_ref().map_while(Result::ok).collect();
        assert_eq!(before, blocks[..harmed]);
        let first_seq = blocks[..harmed]
            .iter()
            .rfind(|block| block.header.end_of_commit)
            .map_or(1, |block| block.header.last_seq + 1);
        match reader.block_at(block.position) {
            Err(StorageError::Damaged { .. }) => {}
            other => panic!("block {harmed}: {other:?}"),
        }
        let mut again = reader.blocks(reader.start()).expect("it begins");
        match again.find_map(Result::err) {
            Some(StorageError::Damaged { first_seq: first, last_seq, .. }) => {
                assert!(
                    first == first_seq && last_seq >= block.header.last_seq,
                    "block {harmed}: {first} to {last_seq}"
                );
            }
            other => panic!("block {harmed}: {other:?}"),
        }
        for known in &blocks[harmed + 1..] {
            assert_eq!(reader.block_at(known.position).expect("it is whole"), *known);
            for event in reader.load(known.position).expect("it is whole").events() {
                assert!(original.iter().any(|(seq, _)| *seq == event.as_ref().map_or(0, |event| event.seq)));
            }
        }
        std::fs::write(&path, bytes).expect("it can be written");
    }
}

/// The refusal to open, as range and reason.
fn refusal(directory: &Path) -> (u64, u64, String) {
    match Log::open(options(directory)) {
        Err(StorageError::Damaged { first_seq, last_seq, what, .. }) => (first_seq, last_seq, what),
        Err(error) => panic!("another refusal: {error}"),
        Ok(log) => panic!("it opened with {} events", log.health().last_seq),
    }
}

#[tokio::test]
async fn a_log_cut_before_its_mark_is_refused_by_range() {
    let directory = temporary();
    let log = Log::open(options(directory.path())).expect("the log opens");
    let mut ends = vec![(128, 0)];
    for _ in 0..3 {
        let durable = *log.watch().borrow();
        ends.push((u64::from(durable.end.offset), durable.last_seq));
        log.commit(vec![message(Some("a"), "x"), message(None, "y")]).await.expect("it is recorded");
    }
    let durable = *log.watch().borrow();
    drop(log);
    let path = directory.path().join("log/000001.seg");
    let whole = std::fs::read(&path).expect("it can be read");
    for cut in (0..u64::from(durable.end.offset)).rev() {
        let mut bytes = whole.clone();
        if cut % 2 == 0 {
            bytes.truncate(cut as usize);
        } else {
            // Zeros from here on: noticed wherever the byte before was not zero already.
            bytes[cut as usize..].fill(0);
        }
        std::fs::write(&path, &bytes).expect("it can be written");
        if bytes[..] == whole[..] {
            continue;
        }
        let kept = ends.iter().rev().find(|(end, _)| *end <= cut).map_or(0, |(_, last_seq)| *last_seq);
        let (first_seq, last_seq, what) = refusal(directory.path());
        assert_eq!((first_seq, last_seq), (kept + 1, durable.last_seq), "cut at {cut}: {what}");
    }
}

#[tokio::test]
async fn missing_and_swapped_files_are_refused_by_range() {
    let directory = temporary();
    let original = sample(directory.path()).await;
    let last_seq = original.len() as u64;
    let first_of = |name: &str| {
        let bytes = std::fs::read(directory.path().join("log").join(name)).expect("it can be read");
        super::super::format::u64_at(&bytes, 40)
    };
    let names = segments(directory.path());
    for (index, name) in names.iter().enumerate() {
        let copy = temporary();
        copy_directory(&directory.path().join("log"), &copy.path().join("log"));
        let path = copy.path().join("log").join(name);
        let expected = (first_of(name), names.get(index + 1).map_or(last_seq, |next| first_of(next) - 1));
        std::fs::remove_file(&path).expect("it can be removed");
        let (first, last, what) = refusal(copy.path());
        assert_eq!((first, last), expected, "{name}: {what}");
        std::fs::write(&path, b"").expect("it can be written");
        let (first, last, what) = refusal(copy.path());
        assert_eq!((first, last), expected, "{name}: {what}");
        let other = temporary();
        sample(other.path()).await;
        std::fs::copy(other.path().join("log").join(name), &path).expect("it can be copied");
        assert_eq!(refusal(copy.path()).2, format!("{name} belongs to another log"));
    }
    for name in &names {
        std::fs::remove_file(directory.path().join("log").join(name)).expect("it can be removed");
    }
    assert_eq!(refusal(directory.path()).0, 1);
}

#[tokio::test]
async fn a_sealed_segment_that_was_shortened_is_refused() {
    let directory = temporary();
    sample(directory.path()).await;
    let path = directory.path().join("log").join(&segments(directory.path())[1]);
    let bytes = std::fs::read(&path).expect("it can be read");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("it can be written");
    let (first_seq, last_seq, what) = refusal(directory.path());
    assert!(first_seq <= last_seq && what.starts_with("000002.seg is"), "{first_seq} to {last_seq}: {what}");
}

#[tokio::test]
async fn a_log_without_its_mark_is_refused() {
    let directory = temporary();
    let events = sample(directory.path()).await.len() as u64;
    let mark = directory.path().join("log/mark");
    let whole = std::fs::read(&mark).expect("it can be read");
    for bytes in [&b""[..], &vec![0; whole.len()], &vec![0xff; whole.len()]] {
        std::fs::write(&mark, bytes).expect("it can be written");
        assert_eq!(refusal(directory.path()), (1, events, "the high-water mark is unreadable".into()));
    }
    std::fs::remove_file(&mark).expect("it can be removed");
    assert_eq!(refusal(directory.path()), (1, events, "the high-water mark is missing".into()));
    std::fs::write(directory.path().join("log/mark.new"), b"").expect("it can be written");
    std::fs::write(&mark, whole).expect("it can be written");
    Log::open(options(directory.path())).expect("with its mark it opens");
}

#[tokio::test]
async fn a_log_older_than_its_mark_is_refused() {
    let directory = temporary();
    let log = Log::open(options(directory.path())).expect("the log opens");
    log.commit(vec![message(None, "x")]).await.expect("it is recorded");
    let path = directory.path().join("log/000001.seg");
    let older = std::fs::read(&path).expect("it can be read");
    log.commit(vec![message(None, "y")]).await.expect("it is recorded");
    drop(log);
    std::fs::write(&path, older).expect("it can be written");
    assert_eq!(refusal(directory.path()), (3, 3, "the log ends before its high-water mark".into()));
}

#[tokio::test]
async fn a_scan_that_goes_on_behind_what_was_named_has_missed_nothing_else() {
    let directory = temporary();
    let log = open(directory.path());
    let sessions = ["a", "b", "c"];
    for n in 0..3 {
        let texts = (0..6).map(|m| message(Some(sessions[m % 3]), &format!("{n} {m}")));
        log.commit(texts.collect()).await.expect("it is recorded");
    }
    let reader = log.reader();
    let original: Vec<u64> = read_all(&reader).into_iter().map(|(seq, _)| seq).collect();
    let blocks: Vec<_> = reader.blocks(reader.start()).expect("it can be walked").collect();
    let path = directory.path().join("log/000001.seg");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it can be opened");
    for block in blocks {
        let block = block.expect("it is whole");
        let (first, last) = (block.header.first_seq, block.header.last_seq);
        let at = u64::from(block.next.offset) - 1;
        let was = std::fs::read(&path).expect("it can be read")[at as usize];
        std::os::unix::fs::FileExt::write_all_at(&file, &[!was], at).expect("it can be written");
        let (mut visited, mut next) = (Vec::new(), 1);
        while let Err(error) = reader.scan(next, &|_| true, &mut |event| {
            visited.push(event.seq);
            ControlFlow::Continue(())
        }) {
            let StorageError::Damaged { first_seq, last_seq, .. } = error else { panic!("{error}") };
            assert_eq!((first_seq, last_seq), (first, last));
            next = last_seq + 1;
        }
        let missed: Vec<u64> = original.iter().copied().filter(|seq| !visited.contains(seq)).collect();
        assert!(!missed.is_empty() && missed.iter().all(|seq| (first..=last).contains(seq)), "{missed:?}");
        assert!(visited.is_sorted());
        std::os::unix::fs::FileExt::write_all_at(&file, &[was], at).expect("it can be written");
    }
}
