//! Cursors that do not belong are refused by name; what is another owner's does not exist.

use super::world::{World, console, launching, of_session, seqs};
use crate::StorageError;
use crate::event::{Kind, Level};
use crate::query::{CursorKey, EventFilter, List, Order, PageRequest};

async fn refusal(world: &World, filter: &EventFilter, order: Order, after: &str, owner: &str) -> &'static str {
    match world.try_page(filter, order, Some(after), 10, owner).await {
        Err(StorageError::Cursor { what }) => what,
        other => panic!("expected a refused cursor, got {other:?}"),
    }
}

#[tokio::test]
async fn a_cursor_is_bound_to_all_that_made_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = World::open(directory.path());
    world.put(vec![launching("ann", "s-ann"), console("ann", "s-ann", Level::Info, "x")]).await;
    let filter = of_session("s-ann");
    let cursor = world.page(&filter, None, 1).await.next_cursor;
    let other = EventFilter { level: Some(Level::Error), ..filter.clone() };
    assert_eq!(refusal(&world, &other, Order::Oldest, &cursor, "ann").await, "filter");
    assert_eq!(refusal(&world, &filter, Order::Newest, &cursor, "ann").await, "order");
    assert_eq!(refusal(&world, &filter, Order::Oldest, &cursor, "bob").await, "owner");

    let (compiled, owner) = (filter.compile().expect("valid"), "ann".into());
    let request =
        PageRequest { filter: &compiled, order: Order::Oldest, after: Some(&cursor), limit: 1, owner: &owner };
    let wrong_list = world.ledger.requests_page(&request).await.err();
    assert!(matches!(wrong_list, Some(StorageError::Cursor { what: "list" })), "{wrong_list:?}");
    let ahead = world.ledger.cursor_at(&request, List::Events, 1_000_000);
    assert_eq!(refusal(&world, &filter, Order::Oldest, &ahead, "ann").await, "log");

    for place in 0..cursor.len() {
        for other in [b'A', b'B', b'_', b'=', b' ', 0xc3] {
            let mut bytes = cursor.clone().into_bytes();
            if bytes[place] == other {
                continue;
            }
            bytes[place] = other;
            let forged = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(refusal(&world, &filter, Order::Oldest, &forged, "ann").await, "server", "{forged}");
        }
    }
    for nonsense in ["", "x", "nonsense", &cursor[1..], &format!("{cursor}A")] {
        assert_eq!(refusal(&world, &filter, Order::Oldest, nonsense, "ann").await, "server");
    }
    world.close().await;
}

#[tokio::test]
async fn a_cursor_of_another_log_is_refused() {
    let (one, two) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let filter = of_session("s-ann");
    let world = World::open(one.path());
    world.put(vec![launching("ann", "s-ann")]).await;
    let cursor = world.page(&filter, None, 1).await.next_cursor;
    world.close().await;
    let world = World::open(two.path());
    assert_eq!(refusal(&world, &filter, Order::Oldest, &cursor, "ann").await, "server", "another key");
    world.close().await;
    std::fs::copy(one.path().join("cursor.key"), two.path().join("cursor.key")).expect("the key is copied");
    let world = World::open(two.path());
    assert_eq!(refusal(&world, &filter, Order::Oldest, &cursor, "ann").await, "log", "the same key");
    world.close().await;
}

#[tokio::test]
async fn anothers_history_is_like_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = World::open(directory.path());
    // Bob takes the name that ann had before.
    world.put(vec![launching("ann", "main"), console("ann", "main", Level::Info, "hers")]).await;
    world.put(vec![launching("bob", "main"), console("bob", "main", Level::Info, "his")]).await;
    world.put(vec![launching("bob", "other"), console("bob", "other", Level::Info, "his too")]).await;
    let messages = |session: Option<&str>| EventFilter {
        session_id: session.map(Into::into),
        kinds: Some(vec![Kind::ConsoleMessage]),
        ..EventFilter::default()
    };
    assert_eq!(seqs(&world.page(&messages(Some("main")), None, 10).await), [3]);
    assert_eq!(seqs(&world.page(&messages(None), None, 10).await), [3]);
    let (theirs, nobodys) =
        (world.page(&messages(Some("other")), None, 10).await, world.page(&messages(Some("never")), None, 10).await);
    for page in [theirs, nobodys] {
        let facts = (page.items.len(), page.has_more, page.retained_count, page.dropped_count);
        assert_eq!(facts, (0, false, Some(0), 0));
    }
    let bobs = world.try_page(&messages(None), Order::Newest, None, 10, "bob").await.expect("the page is read");
    assert_eq!(seqs(&bobs), [7, 5]);
    let names =
        |rows: Vec<crate::index::SessionRow>| rows.iter().map(|row| row.session_id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(world.ledger.sessions(&"ann".into()).await.expect("read")), ["main"]);
    assert_eq!(names(world.ledger.sessions(&"bob".into()).await.expect("read")), ["main", "other"]);
    assert!(world.ledger.session(&"ann".into(), &"other".into()).await.expect("read").is_none());
    world.close().await;
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cursor.key");
    CursorKey::load_or_create(&path).expect("made");
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(directory.path()).expect("read").count(), 1, "no draft is left");
    CursorKey::load_or_create(&path).expect("read back");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
    assert!(CursorKey::load_or_create(&path).is_err());
    std::fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
    assert!(CursorKey::load_or_create(&path).is_err(), "no link is followed");
}
