//! Requests, downloads, sessions and artifacts are put together from events spread in time.

use super::world::{World, context, failed, finished, launching, of_request, of_session, redirect, request, response};
use crate::event::catalog::{
    ArtifactKept, DownloadFailed, DownloadFinished, DownloadProgress, DownloadStarted, NetworkBody, SessionClosed,
    SessionOpened, WebSocketClosed, WebSocketFrame, WebSocketOpened,
};
use crate::event::{Clean, Draft, Kind};
use crate::query::{DownloadRow, EventFilter, Order, Page, PageRequest, RequestRow, RequestState, StatusFilter};

async fn requests(world: &World, filter: &EventFilter, after: Option<&str>, limit: usize) -> Page<RequestRow> {
    let (filter, owner) = (filter.compile().expect("valid"), "ann".into());
    let request = PageRequest { filter: &filter, order: Order::Oldest, after, limit, owner: &owner };
    world.ledger.requests_page(&request).await.expect("the page is read")
}

fn ids(page: &Page<RequestRow>) -> Vec<String> {
    page.items.iter().map(|row| row.request_id.to_string()).collect()
}

fn frame(context: &crate::event::Context, payload: &str) -> Draft {
    let frame = WebSocketFrame {
        direction: "sent".into(),
        opcode: 1,
        payload: Clean::redacted(payload),
        bytes: payload.len() as u64,
        truncated_fields: None,
        artifact: None,
    };
    Draft::new(context, &frame)
}

/// r-1 redirected and well, r-2 a failed image, r-3 a good script, r-4 a pending post answered 404,
/// r-5 a WebSocket.
async fn traffic(world: &World) {
    let of = |id: &str| of_request("ann", "s-ann", id);
    world.put(vec![launching("ann", "s-ann"), request(&of("r-1"), "http://a.test/old", "GET", "document", 0)]).await;
    world
        .put(vec![
            request(&of("r-2"), "http://a.test/i.png", "GET", "image", 0),
            request(&of("r-3"), "http://a.test/s.js", "GET", "script", 0),
        ])
        .await;
    world
        .put(vec![
            redirect(&of("r-1"), "http://a.test/old", "http://a.test/new"),
            request(&of("r-1"), "http://a.test/new", "GET", "document", 1),
            request(&of("r-4"), "http://a.test/form", "POST", "fetch", 0),
            Draft::new(&of("r-5"), &WebSocketOpened { url: Clean::redacted("ws://a.test/w") }),
        ])
        .await;
    world
        .put(vec![
            response(&of("r-3"), "http://a.test/s.js", 200),
            failed(&of("r-2"), "net::ERR_ABORTED"),
            frame(&of("r-5"), "one"),
        ])
        .await;
    let body = NetworkBody {
        direction: "response".into(),
        bytes: 5,
        text: Some(Clean::redacted("hello")),
        artifact: None,
        omitted: None,
        truncated_fields: None,
    };
    world
        .put(vec![response(&of("r-1"), "http://a.test/new", 200), finished(&of("r-1")), Draft::new(&of("r-1"), &body)])
        .await;
    world
        .put(vec![finished(&of("r-3")), response(&of("r-4"), "http://a.test/form", 404), frame(&of("r-5"), "two")])
        .await;
    world.put(vec![Draft::new(&of("r-5"), &WebSocketClosed { error: None })]).await;
}

#[tokio::test]
async fn a_request_is_one_row_with_its_current_state() {
    for open in World::WAYS {
        let directory = tempfile::tempdir().expect("a directory");
        let world = open(directory.path());
        traffic(&world).await;
        let page = requests(&world, &of_session("s-ann"), None, 100).await;
        assert_eq!(ids(&page), ["r-1", "r-2", "r-3", "r-4", "r-5"]);
        assert_eq!((page.retained_count, page.has_more), (Some(5), false));
        let row = &page.items[0];
        assert_eq!(
            (row.url.as_str(), row.redirects, row.status, row.state),
            ("http://a.test/new", 1, Some(200), RequestState::Finished)
        );
        assert_eq!((row.encoded_bytes, row.decoded_bytes, row.duration_ms), (Some(7), Some(9), Some(1.5)));
        assert!(row.response_body.as_ref().is_some_and(|body| body.bytes == 5 && body.inline));
        assert_eq!((page.items[1].error.as_deref(), page.items[1].canceled), (Some("net::ERR_ABORTED"), true));
        assert_eq!((page.items[3].state, page.items[3].status), (RequestState::Pending, Some(404)));
        assert_eq!(
            (page.items[4].is_websocket, page.items[4].frames, page.items[4].state),
            (true, 2, RequestState::Finished)
        );

        let first = requests(&world, &of_session("s-ann"), None, 2).await;
        assert_eq!((ids(&first), first.has_more), (vec!["r-1".to_owned(), "r-2".into()], true));
        let second = requests(&world, &of_session("s-ann"), Some(&first.next_cursor), 100).await;
        assert_eq!((ids(&second), second.has_more), (vec!["r-3".to_owned(), "r-4".into(), "r-5".into()], false));
        world.close().await;
    }
}

#[tokio::test]
async fn request_filters_look_at_the_joined_state() {
    for open in World::WAYS {
        let directory = tempfile::tempdir().expect("a directory");
        let world = open(directory.path());
        traffic(&world).await;
        let base = of_session("s-ann");
        let status = |text: &str| Some(StatusFilter::parse(text).expect("valid"));
        let cases: Vec<(EventFilter, &[&str])> = vec![
            (EventFilter { status: status("2xx"), ..base.clone() }, &["r-1", "r-3"]),
            (EventFilter { status: status("404"), ..base.clone() }, &["r-4"]),
            (EventFilter { failed: Some(true), ..base.clone() }, &["r-2"]),
            (EventFilter { failed: Some(false), method: Some("post".into()), ..base.clone() }, &["r-4"]),
            (EventFilter { url: Some("/new$".into()), ..base.clone() }, &["r-1"]),
            (EventFilter { url: Some("/old$".into()), ..base.clone() }, &["r-1"]),
            (EventFilter { resource_types: vec!["websocket".into(), "image".into()], ..base.clone() }, &["r-2", "r-5"]),
            (EventFilter { request_id: Some("r-3".into()), ..base.clone() }, &["r-3"]),
            (EventFilter { text: Some("x".into()), ..base.clone() }, &[]),
        ];
        for (filter, expected) in cases {
            assert_eq!(ids(&requests(&world, &filter, None, 100).await), expected, "{filter:?}");
        }
        let shown = requests(&world, &EventFilter { hide_static: true, ..base }, None, 100).await;
        assert_eq!((ids(&shown), shown.hidden_count), (["r-1", "r-2", "r-4", "r-5"].map(str::to_owned).to_vec(), 1));
        world.close().await;
    }
}

#[tokio::test]
async fn requests_that_went_wrong_are_walked_by_themselves() {
    for open in World::WAYS {
        let directory = tempfile::tempdir().expect("a directory");
        let world = open(directory.path());
        world.put(vec![launching("ann", "s-ann")]).await;
        let of = |number: u64| of_request("ann", "s-ann", &format!("r-{number}"));
        let begin = |range: std::ops::Range<u64>| {
            range.map(|n| request(&of(n), "http://a.test/", "GET", "fetch", 0)).collect::<Vec<_>>()
        };
        let end = |range: std::ops::Range<u64>| {
            range.map(|n| response(&of(n), "http://a.test/", if n % 3 == 0 { 500 } else { 200 })).collect::<Vec<_>>()
        };
        world.put(begin(0..10)).await;
        world.put(end(0..10)).await;
        let filter = EventFilter { status: Some(StatusFilter::parse("5xx").expect("valid")), ..of_session("s-ann") };
        let first = requests(&world, &filter, None, 3).await;
        assert_eq!((ids(&first), first.has_more), (["r-0", "r-3", "r-6"].map(str::to_owned).to_vec(), true));
        world.put(begin(10..14)).await;
        world.put(end(10..14)).await;
        let second = requests(&world, &filter, Some(&first.next_cursor), 3).await;
        assert_eq!((ids(&second), second.has_more), (["r-9", "r-12"].map(str::to_owned).to_vec(), false));
        let rest = requests(&world, &filter, Some(&second.next_cursor), 3).await;
        assert_eq!((rest.items.len(), rest.next_cursor), (0, second.next_cursor));
        let (compiled, owner) = (filter.compile().expect("valid"), "ann".into());
        let (mut after, mut newest_first) = (None, Vec::new());
        loop {
            let request = PageRequest {
                filter: &compiled,
                order: Order::Newest,
                after: after.as_deref(),
                limit: 2,
                owner: &owner,
            };
            let page = world.ledger.requests_page(&request).await.expect("read");
            newest_first.extend(ids(&page));
            after = Some(page.next_cursor);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(newest_first, ["r-12", "r-9", "r-6", "r-3", "r-0"]);
        world.close().await;
    }
}

#[tokio::test]
async fn the_first_end_counts() {
    for open in World::WAYS {
        let directory = tempfile::tempdir().expect("a directory");
        let world = open(directory.path());
        let of = |number: u64| of_request("ann", "s-ann", &format!("r-{number}"));
        let (bad, good) = (of(1), of(2));
        let url = "http://a.test/";
        world
            .put(vec![launching("ann", "s-ann"), request(&bad, url, "GET", "document", 0), failed(&bad, "no way")])
            .await;
        world.put(vec![response(&bad, url, 200), finished(&bad)]).await;
        world.put(vec![request(&good, url, "GET", "image", 0), response(&good, url, 200), finished(&good)]).await;
        world.put(vec![failed(&good, "late"), response(&good, url, 404)]).await;
        let page = requests(&world, &of_session("s-ann"), None, 10).await;
        let shown: Vec<_> = page.items.iter().map(|row| (row.state, row.status, row.error.as_deref())).collect();
        assert_eq!(shown, [(RequestState::Failed, None, Some("no way")), (RequestState::Finished, Some(200), None)]);
        let encoded: Vec<_> = page.items.iter().map(|row| row.encoded_bytes).collect();
        assert_eq!(encoded, [None, Some(7)]);
        let filter = EventFilter { failed: Some(true), ..of_session("s-ann") };
        assert_eq!(ids(&requests(&world, &filter, None, 10).await), ["r-1"]);
    }
}

#[tokio::test]
async fn a_requests_detail_outlives_the_session_and_the_index() {
    for open in World::WAYS {
        let directory = tempfile::tempdir().expect("a directory");
        let world = open(directory.path());
        traffic(&world).await;
        let before =
            world.ledger.request(&"ann".into(), &"s-ann".into(), &"r-1".into()).await.expect("read").expect("there");
        let kinds: Vec<_> = before.events.iter().filter_map(|event| event.view().kind()).collect();
        let expected = [
            Kind::NetworkRequest,
            Kind::NetworkRedirect,
            Kind::NetworkRequest,
            Kind::NetworkResponse,
            Kind::NetworkFinished,
            Kind::NetworkBody,
        ];
        assert_eq!(kinds, expected);
        for (owner, id) in [("bob", "r-1"), ("ann", "r-9")] {
            let other = world.ledger.request(&owner.into(), &"s-ann".into(), &id.into()).await.expect("read");
            assert!(other.is_none(), "{owner} {id}");
        }
        let frames = EventFilter {
            request_id: Some("r-5".into()),
            kinds: Some(vec![Kind::WebSocketFrame]),
            ..of_session("s-ann")
        };
        let first = world.page(&frames, None, 1).await;
        let second = world.page(&frames, Some(&first.next_cursor), 1).await;
        let payload = |page: &Page<crate::query::OwnedEvent>| {
            page.items[0].view().get("payload").and_then(|v| v.as_str()).map(str::to_owned)
        };
        assert_eq!((payload(&first).as_deref(), payload(&second).as_deref()), (Some("one"), Some("two")));
        assert!(first.has_more && !second.has_more);
        world.close().await;
        std::fs::remove_dir_all(directory.path().join("index")).expect("the index is removed");
        let world = open(directory.path());
        let after =
            world.ledger.request(&"ann".into(), &"s-ann".into(), &"r-1".into()).await.expect("read").expect("there");
        assert_eq!((after.row, after.events), (before.row, before.events));
        world.close().await;
    }
}

async fn each_is_found_by_its_id(world: &World, rows: &[DownloadRow]) {
    let one = |owner: &str, id: &str| {
        let (owner, id) = (owner.into(), id.into());
        let ledger = &world.ledger;
        async move { ledger.download(&owner, &"s-ann".into(), &id).await.expect("read") }
    };
    for (id, row) in ["d-3", "d-2", "d-1"].into_iter().zip(rows) {
        assert_eq!(one("ann", id).await.as_ref(), Some(row));
        assert_eq!(one("bob", id).await, None, "another owner's is as one that does not exist");
    }
    assert_eq!(one("ann", "d-4").await, None);
}

#[tokio::test]
async fn downloads_sessions_and_artifacts_are_joined() {
    for open in World::WAYS {
        let directory = tempfile::tempdir().expect("a directory");
        let world = open(directory.path());
        let here = context("ann", "s-ann");
        let begin = |id: &str| DownloadStarted {
            download_id: id.into(),
            url: Clean::redacted("http://a.test/f"),
            suggested_name: Clean::redacted("f.zip"),
        };
        let progress =
            |bytes| DownloadProgress { download_id: "d-2".into(), received_bytes: bytes, total_bytes: Some(9) };
        let kept = ArtifactKept {
            artifact: "art-1".into(),
            purpose: "download".into(),
            media_type: Clean::fixed("application/zip"),
            bytes: 4,
            sha256: Clean::fixed("abcd"),
        };
        world
            .put(vec![launching("ann", "s-ann"), Draft::new(&here, &begin("d-1")), Draft::new(&here, &begin("d-2"))])
            .await;
        world
            .put(vec![Draft::new(
                &here,
                &SessionOpened { browser: Clean::fixed("b"), process_id: 1, sandbox: true, launch_ms: 1.0 },
            )])
            .await;
        world.put(vec![Draft::new(&here, &progress(3)), Draft::new(&here, &kept)]).await;
        let done = DownloadFinished {
            download_id: "d-1".into(),
            bytes: 4,
            sha256: Clean::fixed("abcd"),
            artifact: "art-1".into(),
        };
        let lost = DownloadFailed { download_id: "d-3".into(), reason: "canceled".into(), received_bytes: 1 };
        world
            .put(vec![
                Draft::new(&here, &done),
                Draft::new(&here, &begin("d-3")),
                Draft::new(&here, &progress(6)),
                Draft::new(&here, &lost),
            ])
            .await;
        world.put(vec![Draft::new(&here, &SessionClosed { reason: "requested".into(), duration_ms: 2.0 })]).await;

        let (filter, owner) = (of_session("s-ann").compile().expect("valid"), "ann".into());
        let page = PageRequest { filter: &filter, order: Order::Newest, after: None, limit: 10, owner: &owner };
        let page = world.ledger.downloads_page(&page).await.expect("read");
        let facts = |row: &DownloadRow| (row.download_id.to_string(), row.state, row.received_bytes);
        let expected = [("d-3".into(), "failed", 1), ("d-2".into(), "in_progress", 6), ("d-1".into(), "finished", 4)];
        assert_eq!(page.items.iter().map(facts).collect::<Vec<_>>(), expected);
        assert_eq!(page.items[2].artifact.as_ref().map(ToString::to_string).as_deref(), Some("art-1"));

        each_is_found_by_its_id(&world, &page.items).await;

        let artifact = world.ledger.artifact(&owner, &"art-1".into()).await.expect("read").expect("there");
        assert_eq!(
            (artifact.media_type.as_str(), artifact.bytes, artifact.purpose.as_str()),
            ("application/zip", 4, "download")
        );
        assert!(world.ledger.artifact(&"bob".into(), &"art-1".into()).await.expect("read").is_none());

        let row = world.ledger.session(&owner, &"s-ann".into()).await.expect("read").expect("there");
        assert!(row.opened_micros >= row.launching_micros && row.closed_micros >= row.opened_micros);
        assert_eq!((row.name.as_str(), row.reason.as_deref(), row.count(None)), ("s-ann", Some("requested"), 11));
        world.close().await;
    }
}
