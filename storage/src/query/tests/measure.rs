use super::world::*;
use crate::event::{Kind, Level};
use crate::query::{EventFilter, Order, PageRequest};
use std::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measure() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::open(directory.path());
    world.put(vec![launching("ann", "s-ann")]).await;
    let begin = Instant::now();
    let mut n = 0u64;
    while n < 200_000 {
        let mut batch = Vec::new();
        for _ in 0..256 {
            n += 1;
            if n % 20 == 0 {
                let context = of_request("ann", "s-ann", &format!("r-{n}"));
                batch.push(request(&context, "http://a.test/some/path", "GET", "fetch", 0));
                batch.push(response(&context, "http://a.test/some/path", if n % 2000 == 0 { 404 } else { 200 }));
                batch.push(finished(&context));
                n += 2;
            } else {
                batch.push(console("ann", "s-ann", if n % 5000 == 1 { Level::Error } else { Level::Info }, &format!("message number {n} of a long row of messages about nothing in particular")));
            }
        }
        while let Err(refused) = world.log.offer(std::mem::take(&mut batch)) { batch = refused.drafts; world.log.room().await; }
    }
    world.put(vec![entered("ann", "s-ann")]).await;
    eprintln!("appended {n} in {:?}", begin.elapsed());
    world.settled().await;
    eprintln!("indexed after {:?}; health {:?}", begin.elapsed(), world.index.health());
    let du: u64 = walk(directory.path().join("index"));
    eprintln!("index bytes {du} log bytes {}", walk(directory.path().join("log")));
    let console_kinds = Some(vec![Kind::ConsoleMessage]);
    let cases = [
        ("all", of_session("s-ann")),
        ("console", EventFilter { kinds: console_kinds.clone(), ..of_session("s-ann") }),
        ("errors", EventFilter { level: Some(Level::Error), ..of_session("s-ann") }),
        ("text rare", EventFilter { kinds: console_kinds, text: Some("number 1999\\d\\d ".into()), ..of_session("s-ann") }),
        ("calls", EventFilter { kinds: Some(vec![Kind::CallEntered]), ..of_session("s-ann") }),
        ("all sessions", EventFilter::default()),
    ];
    for (name, filter) in &cases {
        for order in [Order::Oldest, Order::Newest] {
            let mut times = Vec::new();
            let mut cursor = None;
            let mut items = 0;
            for _ in 0..20 {
                let t = Instant::now();
                let page = world.try_page(filter, order, cursor.as_deref(), 100, "ann").await.unwrap();
                times.push(t.elapsed());
                items += page.items.len();
                if page.has_more { cursor = Some(page.next_cursor); } else { cursor = None }
            }
            times.sort();
            eprintln!("{name} {order:?}: median {:?} max {:?} items {items}", times[10], times[19]);
        }
    }
    let owner = "ann".into();
    for (name, filter) in [("requests", of_session("s-ann")), ("404s", EventFilter { status: Some(crate::query::StatusFilter::parse("404").unwrap()), ..of_session("s-ann") })] {
        let filter = filter.compile().unwrap();
        for order in [Order::Oldest, Order::Newest] {
            let mut times = Vec::new();
            for _ in 0..10 {
                let t = Instant::now();
                let page = world.ledger.requests_page(&PageRequest { filter: &filter, order, after: None, limit: 100, owner: &owner }).await.unwrap();
                times.push(t.elapsed());
                assert!(!page.items.is_empty());
            }
            times.sort();
            eprintln!("{name} {order:?}: median {:?} max {:?}", times[5], times[9]);
        }
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        let t = Instant::now();
        let detail = world.ledger.request(&owner, &"s-ann".into(), &"r-100000".into()).await.unwrap();
        times.push(t.elapsed());
        assert!(detail.is_some());
    }
    times.sort();
    eprintln!("detail median {:?}", times[10]);
    let t = Instant::now();
    world.put(vec![entered("ann", "s-ann")]).await;
    let c = t.elapsed();
    world.page(&of_session("s-ann"), None, 1).await;
    eprintln!("commit {c:?} then page {:?}", t.elapsed() - c);
    world.close().await;
    let t = Instant::now();
    let world = World::open(directory.path());
    eprintln!("open {:?}", t.elapsed());
    world.settled().await;
    eprintln!("index ready {:?}", t.elapsed());
    world.close().await;
    std::fs::remove_dir_all(directory.path().join("index")).unwrap();
    let t = Instant::now();
    let world = World::open(directory.path());
    world.settled().await;
    eprintln!("rebuilt {:?}", t.elapsed());
    world.close().await;
}
fn walk(p: std::path::PathBuf) -> u64 { std::fs::read_dir(p).unwrap().map(|e| { let p = e.unwrap().path(); if p.is_dir() { walk(p) } else { std::fs::metadata(&p).unwrap().len() } }).sum() }
