//! What is appended comes back: every event, in order, numbered without a hole, also across segments
//! and restarts; headers say what is inside; a full queue refuses and says so.

use std::ops::ControlFlow;
use std::time::Duration;

use super::super::{Appended, Log, LogOptions, Position, page_bit};
use super::{assert_gap_free, message, open, options, read_all, read_from, temporary, texts};
use crate::StorageError;
use crate::event::catalog::{Gap, LogOpened, LogSealed};
use crate::event::{Draft, Kind, Level, Payload};
use crate::limits::EVENT_BYTES_MAX;

#[tokio::test]
async fn events_of_many_sessions_come_back_in_order_over_segments_and_restarts() {
    let directory = temporary();
    let small = || LogOptions { segment_bytes: 4096, ..options(directory.path()) };
    let mut expected = Vec::new();
    for restart in 0..3 {
        let log = Log::open(small()).expect("the log opens");
        expected.push("log.opened".to_owned());
        for batch in 0..10 {
            let names: Vec<String> = (0..12).map(|n| format!("{restart}/{batch}/{n} {}", "x".repeat(40))).collect();
            let session = |n: usize| ["one", "two", "three"].get(n % 4).copied();
            let drafts = names.iter().enumerate().map(|(n, text)| message(session(n), text)).collect();
            let appended = log.commit(drafts).await.expect("it is recorded");
            let first_seq = expected.len() as u64 + 1;
            assert_eq!(appended, Appended { first_seq, last_seq: first_seq + 11 });
            expected.extend(names);
        }
        assert_eq!(texts(&read_all(&log.reader())), expected);
        log.close().await.expect("it closes");
        expected.push("log.sealed".into());
        let events = read_all(&log.reader());
        assert_gap_free(&events);
        assert_eq!(texts(&events), expected);
    }
    assert!(directory.path().join("log/000005.seg").exists(), "several segments were needed");
}

#[tokio::test]
async fn reading_begins_anywhere() {
    let directory = temporary();
    let log = Log::open(LogOptions { segment_bytes: 2048, ..options(directory.path()) }).expect("the log opens");
    for n in 0..60 {
        log.commit(vec![message(Some("a"), &format!("a{n}")), message(None, "b")]).await.expect("it is recorded");
    }
    let reader = log.reader();
    let all = read_all(&reader);
    let durable = reader.durable().expect("it is known");
    assert_eq!(durable.last_seq, all.len() as u64);
    for from in 0..=durable.last_seq + 2 {
        let expected: Vec<_> = all.iter().filter(|(seq, _)| *seq >= from).cloned().collect();
        assert_eq!(read_from(&reader, from).expect("it is whole"), expected, "from {from}");
        let position = reader.position_before(from).expect("it is whole");
        let first = reader.blocks(position).expect("it is whole").next().transpose().expect("it is whole");
        assert!(first.is_none_or(|block| block.header.first_seq <= from.max(1)), "from {from}");
    }
    assert_eq!(reader.position_before(durable.last_seq + 1).expect("it is whole"), durable.end);
    assert_eq!(reader.blocks(durable.end).expect("it is whole").count(), 0);
}

#[tokio::test]
async fn headers_say_what_is_inside_and_lead_to_it() {
    let directory = temporary();
    let log = open(directory.path());
    let drafts = vec![message(Some("a"), "fine"), message(None, "bad"), message(Some("a"), "bad")];
    log.commit(drafts).await.expect("it is recorded");
    let reader = log.reader();
    let blocks: Vec<_> = reader.blocks(reader.start()).expect("it is whole").map(|b| b.expect("it is whole")).collect();
    let [opened, a, none] = &blocks[..] else { panic!("three blocks, not {}", blocks.len()) };
    assert_eq!(opened.position, reader.start());
    assert_eq!((opened.next, a.next), (a.position, none.position));
    assert_eq!(none.next, reader.durable().expect("it is known").end);
    assert_eq!(a.header.session_id.as_ref().map(|id| id.as_str()), Some("a"));
    assert_eq!((a.header.first_seq, a.header.last_seq, a.header.count), (2, 4, 2));
    assert_eq!(a.header.kinds, 1 << Kind::ConsoleMessage.number());
    assert_eq!(a.header.levels, 1 << Level::Info as u8 | 1 << Level::Error as u8);
    assert_eq!(none.header.levels, 1 << Level::Error as u8);
    assert_eq!((a.header.pages, none.header.pages), (page_bit("t-a"), 0));
    assert_eq!((opened.header.end_of_commit, a.header.end_of_commit, none.header.end_of_commit), (true, false, true));
    let loaded = reader.load(a.position).expect("it is whole");
    assert_eq!(loaded.events().map(|event| event.expect("it decodes").seq).collect::<Vec<_>>(), [2, 4]);
    assert!(matches!(reader.load(none.next), Err(StorageError::Cursor { .. })));
    assert_eq!(Position::from_u64(a.position.to_u64()), a.position);
}

#[tokio::test]
async fn unwanted_blocks_are_passed_over() {
    let directory = temporary();
    let log = open(directory.path());
    let drafts = (0..6).map(|n| message(["a", "b"].get(n % 3).copied(), &n.to_string())).collect();
    log.commit(drafts).await.expect("it is recorded");
    let mut seen = Vec::new();
    let wants = |header: &super::super::BlockHeader| header.session_id.is_some();
    let mut visit = |event: &crate::event::EventView<'_>| {
        seen.push(event.seq);
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    log.reader().scan(0, &wants, &mut visit).expect("it is whole");
    assert_eq!(seen, [2, 3, 5]);
}

#[tokio::test]
async fn unawaited_events_become_durable_by_themselves_and_keep_their_place() {
    let directory = temporary();
    let log = open(directory.path());
    log.offer(vec![message(Some("a"), "first")]).expect("there is room");
    let mut durable = log.watch();
    let reached = durable.wait_for(|durable| durable.last_seq == 2);
    tokio::time::timeout(Duration::from_secs(10), reached).await.expect("in time").expect("the writer lives");
    log.offer(vec![message(Some("a"), "second")]).expect("there is room");
    log.commit(vec![message(Some("b"), "third")]).await.expect("it is recorded");
    assert_eq!(texts(&read_all(&log.reader()))[1..], ["first", "second", "third"]);
}

#[tokio::test]
async fn an_empty_commit_waits_for_what_was_offered_before() {
    let directory = temporary();
    let log = open(directory.path());
    log.offer(vec![message(None, "offered")]).expect("there is room");
    let appended = log.commit(Vec::new()).await.expect("it is recorded");
    assert_eq!(appended, Appended { first_seq: 3, last_seq: 2 });
    assert_eq!(log.health().last_seq, 2);
    let idle = log.commit(Vec::new()).await.expect("nothing is to do");
    assert_eq!(idle, appended);
    assert_eq!(log.health().commits, 2, "nothing was written for nothing");
}

#[tokio::test]
async fn an_event_that_is_too_large_becomes_a_gap_in_its_place() {
    let directory = temporary();
    let log = open(directory.path());
    let mut large = message(Some("a"), "x");
    large.body.resize(EVENT_BYTES_MAX + 1, 0);
    let long_id = "s".repeat(5000);
    let drafts = vec![message(Some("a"), "before"), large, message(Some(&long_id), "x"), message(Some("a"), "after")];
    log.commit(drafts).await.expect("it is recorded");
    let mut gaps = Vec::new();
    let mut visit = |event: &crate::event::EventView<'_>| {
        if let Ok(gap) = Gap::take(event) {
            let session = event.context(crate::event::codec::ContextField::SessionId).map(str::to_owned);
            gaps.push((event.seq, session, gap.what.as_str().to_owned(), gap.reason.as_str().to_owned(), gap.count));
        }
        ControlFlow::Continue(())
    };
    log.reader().scan(0, &|_| true, &mut visit).expect("it is whole");
    let gap =
        |seq, session: Option<&str>| (seq, session.map(Into::into), "console.message".into(), "too_large".into(), 1);
    assert_eq!(gaps, [gap(3, Some("a")), gap(4, None)]);
    assert_eq!(texts(&read_all(&log.reader()))[1..], ["before", "gap", "gap", "after"]);
}

#[tokio::test]
async fn a_commit_larger_than_a_block_is_one_commit_of_several() {
    let directory = temporary();
    let log = open(directory.path());
    let drafts: Vec<Draft> = (0..9).map(|n| message(Some("a"), &n.to_string().repeat(1_000_000))).collect();
    log.commit(drafts).await.expect("it is recorded");
    let reader = log.reader();
    let ends: Vec<bool> = reader
        .blocks(reader.start())
        .expect("it is whole")
        .map(|b| b.expect("it is whole").header.end_of_commit)
        .collect();
    // The opening, then one block for each of these events, the last of which ends the commit.
    let mut expected = vec![false; 10];
    expected[0] = true;
    expected[9] = true;
    assert_eq!(ends, expected);
    assert_gap_free(&read_all(&reader));
}

#[tokio::test]
async fn a_full_queue_gives_the_drafts_back_and_room_comes() {
    let directory = temporary();
    let log = Log::open(LogOptions { queue_bytes_max: 40_000, ..options(directory.path()) }).expect("the log opens");
    let mut accepted = 0;
    let refused = loop {
        match log.offer(vec![message(Some("a"), &"y".repeat(9_000))]) {
            Ok(()) => accepted += 1,
            Err(refused) => break refused.drafts,
        }
        assert!(accepted < 10_000, "a writer that syncs is slower than this");
    };
    assert_eq!(refused.len(), 1);
    tokio::time::timeout(Duration::from_secs(10), log.room()).await.expect("room comes");
    let large = || (0..5).map(|_| message(None, &"z".repeat(9_000))).collect::<Vec<_>>();
    assert_eq!(log.offer(large()).expect_err("it could never fit").drafts.len(), 5);
    assert!(matches!(log.commit(large()).await, Err(StorageError::Limit { .. })));
    log.commit(refused).await.expect("there is room");
    assert_eq!(log.health().last_seq, accepted + 2);
    assert_eq!(log.health().queue_bytes, 0);
}

#[tokio::test]
async fn opening_and_closing_are_on_record() {
    let directory = temporary();
    for (clean, close) in [(true, true), (true, false), (false, true)] {
        let log = open(directory.path());
        let mut last = None;
        let mut visit = |event: &crate::event::EventView<'_>| {
            last = LogOpened::take(event).ok().or(last.take());
            ControlFlow::Continue(())
        };
        log.reader().scan(0, &|_| true, &mut visit).expect("it is whole");
        let opened = last.expect("it was opened");
        assert_eq!((opened.clean, opened.epoch), (clean, log.health().epoch));
        assert_eq!(opened.last_seq + 1, log.health().last_seq);
        log.commit(vec![message(None, "x")]).await.expect("it is recorded");
        if close {
            log.close().await.expect("it closes");
            log.close().await.expect("twice is fine");
            let mut sealed = None;
            let mut visit = |event: &crate::event::EventView<'_>| {
                sealed = LogSealed::take(event).ok();
                ControlFlow::Continue(())
            };
            log.reader().scan(0, &|_| true, &mut visit).expect("it is whole");
            assert_eq!(sealed.expect("the last event").events, 3);
            assert!(matches!(log.commit(vec![message(None, "y")]).await, Err(StorageError::Unavailable { .. })));
            assert_eq!(log.offer(vec![message(None, "y")]).expect_err("it is closed").drafts.len(), 1);
        }
    }
}
