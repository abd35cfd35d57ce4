//! Whatever happens to the tables of the index, or to the log beneath them: the same answers, or the
//! damage by name.

use std::path::{Path, PathBuf};

use super::index::{Answers, answers, fill};
use super::world::{LIMIT, World, console, launching, of_session, seqs, temporary};
use crate::StorageError;
use crate::event::Level;
use crate::index::IndexState;
use crate::log::Fate;
use crate::query::{EventFilter, Order};

/// Several sealed segments with their tables, and one that is being written.
async fn filled(directory: &Path) -> Answers {
    let world = World::open(directory);
    for _ in 0..3 {
        fill(&world).await;
        world.log.roll().await.expect("the segment is sealed");
    }
    fill(&world).await;
    let expected = answers(&world).await;
    rebuilt(&world, 0).await;
    world.close().await;
    expected
}

/// Waits until everything is in tables that belong there.
async fn rebuilt(world: &World, rebuilds: u64) {
    world.settled().await;
    let mut watch = world.index.watch_rebuilds();
    let done = tokio::time::timeout(LIMIT, watch.wait_for(|count| *count >= rebuilds)).await;
    assert!(done.is_ok(), "{:?}", world.index.health());
}

fn tables(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.join("index")).expect("read");
    let mut tables: Vec<PathBuf> = entries.map(|entry| entry.expect("read").path()).collect();
    tables.retain(|path| path.extension().is_some_and(|ending| ending == "idx"));
    tables.sort();
    tables
}

#[tokio::test]
async fn sealed_segments_have_one_table_each_and_nothing_else_is_left() {
    let directory = temporary();
    filled(directory.path()).await;
    let names: Vec<String> = tables(directory.path())
        .iter()
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    for name in ["000001-0.idx", "000002-0.idx", "000003-0.idx"] {
        assert!(names.iter().any(|other| other == name), "{name} in {names:?}");
    }
    assert!(names[3..].iter().all(|name| name.starts_with("000004-0-128-")), "{names:?}");
    let world = World::open(directory.path());
    assert_eq!((world.settled().await.rebuilds, world.index.health().state), (0, IndexState::Following));
    world.close().await;
}

#[tokio::test]
async fn damaged_tables_change_no_answer() {
    let directory = temporary();
    let expected = filled(directory.path()).await;
    let paths = tables(directory.path());
    let whole: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).expect("read")).collect();
    for round in 0..40usize {
        for (number, (path, bytes)) in paths.iter().zip(&whole).enumerate() {
            let mut bytes = bytes.clone();
            let at = (round * 7919 + number * 104_729) % bytes.len();
            match round % 4 {
                0 | 1 => bytes[at] ^= 1 << (round % 8),
                2 => bytes.truncate(at),
                _ => bytes.clone_from(&whole[(number + round) % whole.len()]),
            }
            std::fs::write(path, bytes).expect("written");
        }
        let world = World::open(directory.path());
        assert_eq!(answers(&world).await, expected, "round {round}");
        world.close().await;
    }
}

#[tokio::test]
async fn damaged_tables_are_made_again() {
    let directory = temporary();
    let expected = filled(directory.path()).await;
    for path in tables(directory.path()) {
        let mut bytes = std::fs::read(&path).expect("read");
        let leaves = bytes.len() / 2;
        bytes[..leaves].iter_mut().step_by(100).for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, bytes).expect("written");
    }
    let world = World::open(directory.path());
    assert_eq!(answers(&world).await, expected);
    rebuilt(&world, 1).await;
    assert!(world.index.health().reason.is_some_and(|reason| reason.contains("checksum")));
    assert_eq!(answers(&world).await, expected);
    world.close().await;
    let world = World::open(directory.path());
    assert_eq!((world.settled().await.rebuilds, answers(&world).await), (0, expected), "and stays so");
    world.close().await;
}

#[tokio::test]
async fn what_is_missing_is_made_again() {
    let directory = temporary();
    let expected = filled(directory.path()).await;
    std::fs::remove_file(directory.path().join("index/000002-0.idx")).expect("removed");
    std::fs::write(directory.path().join("index/000003-0.idx"), b"").expect("written");
    std::fs::write(directory.path().join("index/000001-0.idx.new"), b"half").expect("written");
    let world = World::open(directory.path());
    rebuilt(&world, 1).await;
    assert_eq!(answers(&world).await, expected);
    world.close().await;
    assert!(directory.path().join("index/000002-0.idx").exists());
    assert!(!directory.path().join("index/000001-0.idx.new").exists());
}

#[tokio::test]
async fn sealed_segments_are_not_read_again_at_the_start() {
    let directory = temporary();
    let (first, expected) =
        (EventFilter { level: Some(Level::Error), ..of_session("s-2") }, filled(directory.path()).await);
    // Not a byte of the second segment's blocks can be read any more.
    let segment = directory.path().join("log/000002.seg");
    let mut bytes = std::fs::read(&segment).expect("read");
    bytes[128..].fill(0xa5);
    std::fs::write(&segment, bytes).expect("written");
    let world = World::open(directory.path());
    let rows = world.ledger.sessions(&"ann".into()).await.expect("read");
    let counts = |rows: &[crate::index::SessionRow]| rows.iter().map(|row| row.count(None)).collect::<Vec<_>>();
    assert_eq!(counts(&rows), counts(&expected.2), "what the index knows it still knows");
    assert_eq!(world.settled().await.rebuilds, 0);
    let newest = world.try_page(&first, Order::Newest, None, 3, "ann").await.expect("the page is read");
    assert_eq!(newest.items.len(), 3);
    match world.try_page(&of_session("s-2"), Order::Oldest, None, 500, "ann").await {
        Err(StorageError::Damaged { first_seq, last_seq, .. }) => {
            let second = world.log.reader().segments().expect("read")[1].clone();
            assert!(first_seq >= second.first_seq && Some(last_seq) <= second.last_seq, "{first_seq} {last_seq}");
        }
        other => panic!("the damage is told: {other:?}"),
    }
    world.close().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_the_rest_stays_readable() {
    let directory = temporary();
    filled(directory.path()).await;
    std::fs::remove_dir_all(directory.path().join("index")).expect("removed");
    let segment = directory.path().join("log/000002.seg");
    let mut bytes = std::fs::read(&segment).expect("read");
    bytes[128..].fill(0xa5);
    std::fs::write(&segment, bytes).expect("written");
    let world = World::open(directory.path());
    rebuilt(&world, 1).await;
    let segments = world.log.reader().segments().expect("read");
    let (first_bad, last_bad) = (segments[1].first_seq, segments[1].last_seq.expect("sealed"));
    let filter = of_session("s-1");
    for (order, limit) in [(Order::Oldest, 50), (Order::Newest, 50)] {
        let (mut after, mut seen) = (None::<String>, Vec::new());
        let error = loop {
            match world.try_page(&filter, order, after.as_deref(), limit, "ann").await {
                Ok(page) => {
                    assert!(page.has_more, "the walk does not end as if nothing was missing");
                    seen.extend(seqs(&page));
                    after = Some(page.next_cursor);
                }
                Err(error) => break error,
            }
        };
        let StorageError::Damaged { first_seq, last_seq, .. } = error else { panic!("{error:?}") };
        assert_eq!((first_seq, last_seq), (first_bad, last_bad), "{order:?}");
        assert!(!seen.is_empty() && seen.iter().all(|seq| !(first_bad..=last_bad).contains(seq)));
    }
    // How a request went on that had not ended by then may be what cannot be read.
    let pending = world.ledger.request(&"ann".into(), &"s-1".into(), &"r-1-1".into()).await;
    assert!(matches!(pending, Err(StorageError::Damaged { .. })), "{pending:?}");
    world.close().await;
}

#[tokio::test]
async fn an_index_that_is_ahead_of_its_log_is_not_believed() {
    let (directory, aside) = (temporary(), temporary());
    let world = World::open(directory.path());
    fill(&world).await;
    world.close().await;
    super::world::copy(&directory.path().join("log"), &aside.path().join("log"));
    let world = World::open(directory.path());
    world.put((0..40).map(|n| console("ann", "s-1", Level::Error, &n.to_string())).collect()).await;
    world.settled().await;
    world.close().await;
    // The log as it was before, which goes on otherwise: as after a power cut that took what was not
    // synced yet.
    std::fs::remove_dir_all(directory.path().join("log")).expect("removed");
    super::world::copy(&aside.path().join("log"), &directory.path().join("log"));
    let world = World::open(directory.path());
    world.put((0..60).map(|n| console("ann", "s-2", Level::Error, &n.to_string())).collect()).await;
    let errors = EventFilter { level: Some(Level::Error), ..EventFilter::default() };
    let page = world.page(&errors, None, 500).await;
    let reader = world.log.reader();
    let mut expected = Vec::new();
    let compiled = errors.compile().expect("valid");
    let mut visit = |view: &crate::event::EventView<'_>| {
        expected.extend(compiled.matches(view).then_some(view.seq));
        std::ops::ControlFlow::Continue(())
    };
    reader.scan(1, &|_| true, &mut visit).expect("read");
    assert_eq!(seqs(&page), expected);
    rebuilt(&world, 1).await;
    world.close().await;
}

#[tokio::test]
async fn a_copy_taken_at_any_moment_opens() {
    let directory = temporary();
    let world = World::open(directory.path());
    for round in 0..6 {
        fill(&world).await;
        if round % 2 == 1 {
            world.log.roll().await.expect("the segment is sealed");
        }
        let expected = answers(&world).await;
        let aside = temporary();
        super::world::copy(&directory.path().join("index"), &aside.path().join("index"));
        super::world::copy(&directory.path().join("log"), &aside.path().join("log"));
        std::fs::copy(directory.path().join("cursor.key"), aside.path().join("cursor.key")).expect("copied");
        let copy = World::open(aside.path());
        assert_eq!(answers(&copy).await, expected, "round {round}");
        copy.close().await;
    }
    world.close().await;
}

#[tokio::test]
async fn the_table_made_ahead_is_taken_up() {
    let directory = temporary();
    filled(directory.path()).await;
    let world = World::open(directory.path());
    rebuilt(&world, 0).await;
    // One that is given up, then one that holds: they differ in what they keep, not in their number.
    for (keeps, installs) in [(2, false), (3, true)] {
        let mut fate =
            |view: &crate::event::EventView<'_>| if view.seq.is_multiple_of(keeps) { Fate::Keep } else { Fate::Remove };
        let rewritten = world.log.rewrite(2, &mut fate).expect("written anew");
        world.index.build(&rewritten.reader()).expect("its table is made");
        if installs {
            // The file of the one before goes when the new one holds: from here on only the table ahead knows it.
            rewritten.install(false).expect("installed");
        }
    }
    let all = world.page(&of_session("s-1"), None, 500).await;
    let segments = world.log.reader().segments().expect("read");
    let range = segments[1].first_seq..=segments[1].last_seq.expect("sealed");
    assert!(seqs(&all).iter().filter(|seq| range.contains(seq)).all(|seq| seq.is_multiple_of(3)));
    assert!(directory.path().join("index/000002-1.idx").exists());
    assert!(!directory.path().join("index/ahead/000002-1.idx").exists());
    assert_eq!(world.index.health().rebuilds, 0);
    world.close().await;
}

#[tokio::test]
async fn a_directory_that_comes_back_is_used_again() {
    let directory = temporary();
    let expected = filled(directory.path()).await;
    let index = directory.path().join("index");
    std::fs::remove_dir_all(&index).expect("removed");
    std::fs::write(&index, b"in the way").expect("written");
    let world = World::open(directory.path());
    assert_eq!(answers(&world).await, expected);
    assert_eq!(world.index.health().state, IndexState::Broken);
    assert!(!world.index.set_checkpoint("archive", 7));
    std::fs::remove_file(&index).expect("removed");
    rebuilt(&world, 1).await;
    assert_eq!((answers(&world).await, world.index.health().state), (expected, IndexState::Following));
    assert!(world.index.set_checkpoint("archive", 7));
    world.put(vec![launching("ann", "s-1")]).await;
    world.close().await;
    assert!(index.join("000001-0.idx").exists());
}
