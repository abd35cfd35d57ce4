//! The hash chain is the same wherever it is written down: commits, segments, mark, what the writer
//! hands on; what does not continue it is not taken for history.

use std::ops::ControlFlow;
use std::path::Path;

use super::super::block::{Block, Found, put_block, read_header};
use super::super::format::{array_at, put};
use super::super::{Log, LogOptions, Reader, chain};
use super::{copy_directory, message, open, options, read_all, temporary, texts};
use crate::StorageError;

/// The chain hash after each event, the one before the first included, as the events say.
fn hashes(reader: &Reader) -> Vec<[u8; 32]> {
    let mut hashes = vec![chain::start(reader.log_id())];
    let mut visit = |event: &crate::event::EventView<'_>| {
        hashes.push(chain::next(&hashes[hashes.len() - 1], event.record));
        ControlFlow::Continue(())
    };
    reader.scan(0, &|_| true, &mut visit).expect("the log is whole");
    hashes
}

#[tokio::test]
async fn commits_segments_mark_and_progress_tell_the_same_chain() {
    let directory = temporary();
    let small = || LogOptions { segment_bytes: 3000, ..options(directory.path()) };
    let mut trail = Vec::new();
    for _ in 0..3 {
        let log = Log::open(small()).expect("the log opens");
        for n in 0..20 {
            let text = format!("{n} {}", "x".repeat(90));
            log.commit(vec![message(Some("a"), &text), message(None, "z"), message(Some("b"), &text)])
                .await
                .expect("it is recorded");
            if n % 7 == 0 {
                let progress = log.take_chain().expect("something became durable");
                assert_eq!(progress.first_seq as usize, trail.len() / 2 + 1);
                trail.extend(progress.trail.expect("little piled up"));
                assert_eq!(progress.last_seq as usize, trail.len() / 2);
                assert_eq!(progress.chain, log.reader().durable().expect("it is known").chain);
            }
        }
        log.close().await.expect("it closes");
        trail.extend(log.take_chain().and_then(|progress| progress.trail).expect("the closing was not taken yet"));
        assert_eq!(log.take_chain(), None);
    }
    let reader = Reader::open(&directory.path().join("log")).expect("there is a log");
    let hashes = hashes(&reader);
    assert_eq!(trail, hashes[1..].iter().flat_map(|hash| hash[..2].to_vec()).collect::<Vec<u8>>());
    let durable = reader.durable().expect("it is known");
    assert_eq!((durable.last_seq as usize + 1, durable.chain), (hashes.len(), hashes[hashes.len() - 1]));
    for block in reader.blocks(reader.start()).expect("it is whole") {
        let header = block.expect("it is whole").header;
        let expected = if header.end_of_commit { hashes[header.last_seq as usize] } else { [0; 32] };
        assert_eq!(header.chain, expected, "{header:?}");
    }
    let segments = reader.segments().expect("it is whole");
    assert!(segments.len() > 3, "{segments:?}");
    for facts in segments {
        let path = directory.path().join("log").join(format!("{:06}.seg", facts.number));
        let bytes = std::fs::read(path).expect("it can be read");
        assert_eq!(array_at::<32>(&bytes, 64), hashes[facts.first_seq as usize - 1], "segment {}", facts.number);
    }
}

#[tokio::test]
async fn segments_are_told_alike_inside_and_outside() {
    let directory = temporary();
    let log = Log::open(LogOptions { segment_bytes: 2000, ..options(directory.path()) }).expect("the log opens");
    let outside = Reader::open(&directory.path().join("log")).expect("there is a log");
    let changes = log.reader().watch_segments().expect("the writer tells");
    let at_first = *changes.borrow();
    assert!(outside.watch_segments().is_none());
    for n in 0..40 {
        log.commit(vec![message(Some("a"), &format!("{n} {}", "x".repeat(100)))]).await.expect("it is recorded");
        let segments = log.reader().segments().expect("they are known");
        assert_eq!(outside.segments().expect("they are known"), segments);
        let (last, sealed) = segments.split_last().expect("there is one");
        let durable = log.reader().durable().expect("it is known");
        assert_eq!((last.number, last.last_seq, last.end), (durable.end.segment, None, u64::from(durable.end.offset)));
        let mut next_seq = 1;
        for facts in sealed {
            assert_eq!((facts.first_seq, facts.generation), (next_seq, 0));
            let blocks =
                log.reader().blocks(facts.start).expect("it is whole").map(|block| block.expect("it is whole"));
            let inside: Vec<_> = blocks.take_while(|block| block.position.segment == facts.number).collect();
            let behind = inside.last().expect("no sealed segment is empty");
            assert_eq!(u64::from(behind.next.offset), facts.end);
            assert_eq!(Some(behind.header.last_seq), facts.last_seq);
            next_seq = behind.header.last_seq + 1;
        }
        assert_eq!(last.first_seq, next_seq);
        assert_eq!(*changes.borrow() - at_first, sealed.len() as u64);
    }
}

/// Puts another text of the same length into the block at `at`, with right checksums.
fn forge(bytes: &mut [u8], at: usize, text: &[u8], other: &[u8], header: &dyn Fn(&mut Block)) {
    let Found::Header(stored) = read_header(&bytes[at..]) else { panic!("a block is there") };
    let (from, until) = (at + stored.content_at, at + stored.stored_bytes);
    let mut raw = bytes[from..until].to_vec();
    let mut block = stored.unpack(&raw).expect("it is whole");
    header(&mut block);
    if let Some(found) = raw.windows(text.len()).position(|window| window == text) {
        raw[found..found + other.len()].copy_from_slice(other);
    }
    let mut forged = Vec::new();
    put_block(&mut forged, &block.header, &raw, None);
    put(bytes, at, &forged);
}

/// A log whose mark lies one commit behind its end; where that commit lies.
async fn one_behind_the_mark(directory: &Path) -> usize {
    let log = open(directory);
    log.commit(vec![message(Some("a"), "marked")]).await.expect("it is recorded");
    let mark = std::fs::read(directory.join("log/mark")).expect("it can be read");
    let at = log.watch().borrow().end.offset as usize;
    log.commit(vec![message(Some("a"), "behind")]).await.expect("it is recorded");
    drop(log);
    std::fs::write(directory.join("log/mark"), mark).expect("it can be written");
    at
}

#[tokio::test]
async fn a_commit_behind_the_mark_that_breaks_the_chain_is_not_kept() {
    let base = temporary();
    let at = one_behind_the_mark(base.path()).await;
    let segment = std::fs::read(base.path().join("log/000001.seg")).expect("it can be read");
    type Case<'a> = (&'a str, &'a dyn Fn(&mut Block));
    let kinds: [Case<'_>; 3] =
        [("behind", &|_| {}), ("forged", &|_| {}), ("behind", &|block| block.header.chain[31] ^= 1)];
    for (case, (text, header)) in kinds.iter().enumerate() {
        let copy = temporary();
        copy_directory(&base.path().join("log"), &copy.path().join("log"));
        let mut bytes = segment.clone();
        forge(&mut bytes, at, b"behind", text.as_bytes(), header);
        std::fs::write(copy.path().join("log/000001.seg"), &bytes).expect("it can be written");
        let log = open(copy.path());
        let events = read_all(&log.reader());
        let expected: &[&str] = match case {
            0 => &["log.opened", "marked", "behind", "log.opened"],
            _ => &["log.opened", "marked", "log.opened", "log.recovered"],
        };
        assert_eq!(texts(&events), expected, "case {case}");
        assert_eq!(hashes(&log.reader()).last(), Some(&log.reader().durable().expect("it is known").chain));
    }
}

#[tokio::test]
async fn a_commit_that_ends_at_the_mark_with_another_chain_is_refused() {
    let directory = temporary();
    let log = open(directory.path());
    let at = log.watch().borrow().end.offset as usize;
    log.commit(vec![message(Some("a"), "marked")]).await.expect("it is recorded");
    drop(log);
    let path = directory.path().join("log/000001.seg");
    let mut bytes = std::fs::read(&path).expect("it can be read");
    forge(&mut bytes, at, b"marked", b"marked", &|block| block.header.chain[0] ^= 1);
    std::fs::write(&path, &bytes).expect("it can be written");
    match Log::open(options(directory.path())) {
        Err(StorageError::Damaged { first_seq: 1, last_seq: 2, what, .. }) => assert!(what.contains("chain"), "{what}"),
        Err(error) => panic!("another refusal: {error}"),
        Ok(_) => panic!("it opened"),
    }
}

#[test]
fn a_log_of_the_format_before_is_refused_as_such() {
    for name in ["mark", "000001.seg"] {
        let directory = temporary();
        drop(open(directory.path()));
        let path = directory.path().join("log").join(name);
        let mut bytes = std::fs::read(&path).expect("it can be read");
        let slots: &[usize] = if name == "mark" { &[0, 4096] } else { &[0] };
        for slot in slots {
            put(&mut bytes, slot + 8, &1u32.to_le_bytes());
            let checksum = crc32c::crc32c(&bytes[*slot..slot + 124]);
            put(&mut bytes, slot + 124, &checksum.to_le_bytes());
        }
        std::fs::write(&path, bytes).expect("it can be written");
        let refused = |outcome: Option<StorageError>| match outcome {
            Some(StorageError::Format { found, known, path: at }) => {
                assert_eq!((found, known, at), (1, 2, path.clone()))
            }
            other => panic!("{name}: {other:?}"),
        };
        refused(Log::open(options(directory.path())).err());
        refused(Reader::open(&directory.path().join("log")).err());
    }
}
