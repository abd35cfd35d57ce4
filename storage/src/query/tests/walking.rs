//! A filtered walk neither skips nor repeats, whatever is appended between its pages.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::world::{World, console, context, entered, gap, launching, of_session, request, seqs};
use crate::event::codec::ContextField;
use crate::event::{Draft, Kind, Level};
use crate::query::{EventFilter, List, Order, PageRequest};

/// One thing that happens in the course of a walk.
#[derive(Debug, Clone)]
enum Deed {
    Append(Vec<(bool, u8)>),
    Page(usize),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let append = prop::collection::vec((any::<bool>(), 0u8..7), 1..12).prop_map(Deed::Append);
    prop::collection::vec(prop_oneof![2 => append, 1 => (1usize..6).prop_map(Deed::Page)], 4..24)
}

fn draft((mine, what): (bool, u8)) -> Draft {
    let (owner, session) = if mine { ("ann", "s-ann") } else { ("bob", "s-bob") };
    match what {
        0 => console(owner, session, Level::Error, "it broke"),
        1 => console(owner, session, Level::Warning, "it bends"),
        2 => console(owner, session, Level::Info, "it broke quietly"),
        3 => request(&context(owner, session), "http://a.test/x", "GET", "fetch", 0),
        4 => gap(session, "console.message", 3),
        5 => Draft::new(
            &Default::default(),
            &crate::event::catalog::Gap { what: "x".into(), count: 1, reason: "queue_full".into() },
        ),
        _ => entered(owner, session),
    }
}

fn filters() -> [EventFilter; 5] {
    let console = Some(vec![Kind::ConsoleMessage, Kind::ConsoleException]);
    [
        EventFilter::default(),
        of_session("s-ann"),
        EventFilter { kinds: console.clone(), level: Some(Level::Warning), ..of_session("s-ann") },
        EventFilter { kinds: console, text: Some("^it broke".into()), ..EventFilter::default() },
        EventFilter { url: Some("a\\.test".into()), ..of_session("s-ann") },
    ]
}

/// All that `filter` matches and ann may see, read from the log from end to end.
fn model(world: &World, filter: &EventFilter) -> Vec<u64> {
    let compiled = filter.compile().expect("the filter is valid");
    let mut all = Vec::new();
    let mut visit = |view: &crate::event::EventView<'_>| {
        let own = match (view.context(ContextField::Owner), view.context(ContextField::SessionId)) {
            (Some(owner), _) => owner == "ann",
            (None, Some(session)) => session == "s-ann",
            (None, None) => true,
        };
        if own && compiled.matches(view) {
            all.push(view.seq);
        }
        ControlFlow::Continue(())
    };
    world.log.reader().scan(1, &|_| true, &mut visit).expect("the log is read");
    all
}

/// Goes on to the end and back to where the walk rests.
async fn walk_on(world: &World, filter: &EventFilter, order: Order, cursor: &mut Option<String>, seen: &mut Vec<u64>) {
    loop {
        let page = world.try_page(filter, order, cursor.as_deref(), 3, "ann").await.expect("the page is read");
        seen.extend(seqs(&page));
        *cursor = Some(page.next_cursor);
        if !page.has_more {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn neither_skips_nor_repeats(deeds in deeds(), which in 0usize..5) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let directory = tempfile::tempdir().expect("a directory");
            let world = World::open(directory.path());
            let filter = &filters()[which];
            world.put(vec![launching("ann", "s-ann"), launching("bob", "s-bob")]).await;
            let (mut cursor, mut seen) = (None::<String>, Vec::new());
            for deed in deeds {
                match deed {
                    Deed::Append(events) => {
                        world.put(events.into_iter().map(draft).collect()).await;
                    }
                    Deed::Page(limit) => {
                        let page = world.page(filter, cursor.as_deref(), limit).await;
                        seen.extend(seqs(&page));
                        cursor = Some(page.next_cursor);
                    }
                }
            }
            walk_on(&world, filter, Order::Oldest, &mut cursor, &mut seen).await;
            let expected = model(&world, filter);
            prop_assert_eq!(&seen, &expected);
            let (mut backwards, mut newest_first) = (None, Vec::new());
            walk_on(&world, filter, Order::Newest, &mut backwards, &mut newest_first).await;
            newest_first.reverse();
            prop_assert_eq!(&newest_first, &expected);
            world.close().await;
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_walk_at_rest_stays_where_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = World::open(directory.path());
    let filter = EventFilter { kinds: Some(vec![Kind::ConsoleMessage]), ..of_session("s-ann") };
    world.put(vec![launching("ann", "s-ann"), launching("bob", "s-bob")]).await;
    let empty = world.page(&filter, None, 10).await;
    world.put(vec![entered("ann", "s-ann"), console("bob", "s-bob", Level::Info, "elsewhere")]).await;
    let still_empty = world.page(&filter, Some(&empty.next_cursor), 10).await;
    assert_eq!(still_empty.next_cursor, empty.next_cursor);

    world.put(vec![console("ann", "s-ann", Level::Info, "one"), console("ann", "s-ann", Level::Info, "two")]).await;
    let read = world.page(&filter, Some(&empty.next_cursor), 2).await;
    assert_eq!((read.items.len(), read.has_more), (2, false));
    // The poll itself leaves call events behind in the session; they are of no interest to it.
    world.put(vec![entered("ann", "s-ann")]).await;
    for _ in 0..2 {
        let rest = world.page(&filter, Some(&read.next_cursor), 100).await;
        assert_eq!((rest.items.len(), rest.has_more, &rest.next_cursor), (0, false, &read.next_cursor));
    }
    let cursor = read.next_cursor.clone();
    world.close().await;
    let world = World::open(directory.path());
    assert_eq!(world.page(&filter, Some(&cursor), 100).await.next_cursor, cursor, "also after a restart");
    world.close().await;
}

#[tokio::test]
async fn the_cursor_of_an_item_goes_on_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = World::open(directory.path());
    world.put(vec![launching("ann", "s-ann")]).await;
    let last = world.put((0..6).map(|n| console("ann", "s-ann", Level::Info, &n.to_string())).collect()).await;
    let filter = EventFilter { kinds: Some(vec![Kind::ConsoleMessage]), ..of_session("s-ann") };
    let page = world.page(&filter, None, 4).await;
    assert!(page.has_more);
    let (compiled, owner) = (filter.compile().expect("valid"), "ann".into());
    let request = PageRequest { filter: &compiled, order: Order::Oldest, after: None, limit: 4, owner: &owner };
    let cut = world.ledger.cursor_at(&request, List::Events, page.items[1].seq());
    let rest = world.page(&filter, Some(&cut), 100).await;
    assert_eq!(seqs(&rest), (last - 3..=last).collect::<Vec<_>>());
    world.close().await;
}

#[tokio::test]
async fn a_page_counts_its_stream() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = World::open(directory.path());
    world
        .put(vec![launching("ann", "s-ann"), gap("s-ann", "console.message", 5), gap("s-ann", "network.request", 7)])
        .await;
    world.put((0..9).map(|_| console("ann", "s-ann", Level::Info, "x")).collect()).await;
    world.put(vec![gap("s-ann", "Some.method", 1)]).await;
    let console =
        EventFilter { kinds: Some(vec![Kind::ConsoleMessage]), level: Some(Level::Error), ..of_session("s-ann") };
    let page = world.page(&console, None, 2).await;
    assert_eq!((page.items.len(), page.retained_count, page.dropped_count), (0, Some(9), 6));
    let all = world.page(&of_session("s-ann"), None, 2).await;
    assert_eq!((all.retained_count, all.dropped_count, all.has_more), (Some(13), 13, true));
    world.close().await;
}
