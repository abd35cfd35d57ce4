//! The index may be deleted, damaged, foreign, late or unusable: the answers stay the same.

use std::path::Path;

use super::world::{LIMIT, World, console, gap, launching, of_request, of_session, request, response, seqs};
use crate::event::Level;
use crate::index::{IndexState, SessionRow};
use crate::query::EventFilter;

/// Three commits with several sessions in each.
pub async fn fill(world: &World) {
    for round in 0..3 {
        let mut drafts = vec![launching("ann", "s-1"), launching("ann", "s-2"), gap("s-1", "console.message", 2)];
        for number in 0..40 {
            let session = if number % 3 == 0 { "s-2" } else { "s-1" };
            let context = of_request("ann", session, &format!("r-{round}-{number}"));
            drafts.push(console("ann", session, Level::ALL[number % 4], &format!("{round} {number}")));
            drafts.push(request(&context, "http://a.test/", "GET", "fetch", 0));
            drafts.push(response(&context, "http://a.test/", 200));
        }
        world.put(drafts).await;
    }
}

pub type Answers = (Vec<u64>, Vec<u64>, Vec<SessionRow>, usize);

pub async fn answers(world: &World) -> Answers {
    let errors = EventFilter { level: Some(Level::Error), ..of_session("s-1") };
    let (mut everything, mut after) = (Vec::new(), None::<String>);
    // A page may end early on a busy machine.
    while everything.last().is_none_or(|seq| *seq < 370) {
        let page = world.page(&EventFilter::default(), after.as_deref(), 500).await;
        everything.extend(seqs(&page));
        after = Some(page.next_cursor);
    }
    let detail =
        world.ledger.request(&"ann".into(), &"s-2".into(), &"r-2-3".into()).await.expect("read").expect("there");
    let of_own = everything.into_iter().filter(|seq| *seq > 1 && *seq <= 370).collect();
    let rows = world.ledger.sessions(&"ann".into()).await.expect("read");
    (seqs(&world.page(&errors, None, 500).await), of_own, rows, detail.events.len())
}

async fn filled(directory: &Path) -> Answers {
    let world = World::open(directory);
    fill(&world).await;
    let expected = answers(&world).await;
    assert_eq!((expected.0.len(), expected.1.len(), expected.3), (6 * 3, 369, 2));
    world.close().await;
    expected
}

/// Opens a directory whose index was tampered with; gives why it was made again.
async fn mended(directory: &Path, expected: &Answers) -> Option<String> {
    let world = World::open(directory);
    assert_eq!(&answers(&world).await, expected);
    let health = world.settled().await;
    let mut rebuilds = world.index.watch_rebuilds();
    let rebuilt = tokio::time::timeout(LIMIT, rebuilds.wait_for(|rebuilds| *rebuilds > 0)).await;
    assert!(rebuilt.is_ok(), "{health:?}");
    assert_eq!(world.index.health().state, IndexState::Following);
    assert_eq!(&answers(&world).await, expected);
    let reason = world.index.health().reason;
    world.close().await;
    let world = World::open(directory);
    assert_eq!((world.settled().await.rebuilds, &answers(&world).await), (0, expected), "and stays so");
    world.close().await;
    reason
}

fn files_of(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("read") {
        let path = entry.expect("read").path();
        if path.is_dir() { files.extend(files_of(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[tokio::test]
async fn a_deleted_index_is_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let expected = filled(directory.path()).await;
    std::fs::remove_dir_all(directory.path().join("index")).expect("removed");
    mended(directory.path(), &expected).await;
}

#[tokio::test]
async fn an_index_of_garbage_is_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let expected = filled(directory.path()).await;
    for file in files_of(&directory.path().join("index")) {
        let length = std::fs::metadata(&file).expect("there").len() as usize;
        std::fs::write(&file, vec![0xa5u8; length.max(64)]).expect("written");
    }
    mended(directory.path(), &expected).await;
}

#[tokio::test]
async fn flipped_bits_in_the_index_change_no_answer() {
    let directory = tempfile::tempdir().expect("a directory");
    let expected = filled(directory.path()).await;
    let file = directory.path().join("index/sled/db");
    let whole = std::fs::read(&file).expect("read");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("not empty");
    for part in 1..8 {
        let mut bytes = whole.clone();
        bytes[used * part / 8] ^= 0x10;
        std::fs::write(&file, &bytes).expect("written");
        let world = World::open(directory.path());
        assert_eq!(answers(&world).await, expected, "byte {}", used * part / 8);
        world.close().await;
    }
}

#[tokio::test]
async fn the_index_of_another_log_is_made_again() {
    let (one, two) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let expected = filled(one.path()).await;
    let world = World::open(two.path());
    world.put(vec![launching("bob", "s-1"); 50]).await;
    world.settled().await;
    world.close().await;
    std::fs::remove_dir_all(one.path().join("index")).expect("removed");
    std::fs::rename(two.path().join("index"), one.path().join("index")).expect("moved");
    assert_eq!(mended(one.path(), &expected).await.as_deref(), Some("it belongs to another log"));
}

#[tokio::test]
async fn an_index_that_killed_its_process_is_not_opened_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let expected = filled(directory.path()).await;
    std::fs::write(directory.path().join("index/opening"), b"").expect("written");
    mended(directory.path(), &expected).await;
}

#[tokio::test]
async fn without_an_index_the_log_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let expected = filled(directory.path()).await;
    std::fs::remove_dir_all(directory.path().join("index")).expect("removed");
    std::fs::write(directory.path().join("index"), b"in the way").expect("written");
    let world = World::open(directory.path());
    assert_eq!(world.settled().await.state, IndexState::Broken);
    assert_eq!(answers(&world).await, expected);
    world.close().await;
}

#[tokio::test]
async fn checkpoints_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let world = World::open(directory.path());
    world.settled().await;
    assert_eq!(world.index.checkpoint("archive"), None);
    assert!(world.index.set_checkpoint("archive", 7));
    world.close().await;
    let world = World::open(directory.path());
    assert_eq!((world.settled().await.rebuilds, world.index.checkpoint("archive")), (0, Some(7)));
    world.close().await;
}
