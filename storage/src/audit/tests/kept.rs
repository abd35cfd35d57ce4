//! What events name as kept beside the log is evidence too: it is there, and it is what was kept.

use super::super::verify::{Problem, Report, VerifyOptions, verify};
use super::{World, close};
use crate::artifact::ArtifactStore;
use crate::event::catalog::ScreenshotTaken;
use crate::event::{Context, Draft};
use crate::ids::ArtifactHandle;
use crate::log::Log;

fn report(world: &World) -> Report {
    verify(&VerifyOptions::new(world.path()), &mut |_| {}).expect("it can be read")
}

async fn taken(log: &Log, handle: &ArtifactHandle) -> u64 {
    let taken = ScreenshotTaken { width: 1, height: 1, bytes: 1, artifact: handle.clone() };
    log.commit(vec![Draft::new(&Context::default(), &taken)]).await.expect("it is recorded").last_seq
}

#[tokio::test]
async fn what_events_name_is_there_and_is_what_was_kept() {
    let world = World::new();
    let directory = world.path().join("artifacts");
    let store = ArtifactStore::open(&directory, 1 << 20).expect("it opens");
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    let mut named = Vec::new();
    for content in ["one", "two", "three"] {
        let kept = store.put(content.as_bytes()).expect("it is kept");
        named.push((taken(&log, &kept.handle).await, kept.handle));
    }
    // Named twice, and what no event names.
    let again = taken(&log, &named[0].1).await;
    let unnamed = store.put(b"four").expect("it is kept").handle;
    close(&log, &auditor).await;
    let sound = report(&world);
    assert_eq!((sound.findings.as_slice(), sound.artifacts, sound.artifacts_named), ([].as_slice(), Some((4, 15)), 4));

    let path = |handle: &ArtifactHandle| store.path(handle).expect("it is there");
    std::fs::remove_file(path(&named[0].1)).expect("it goes");
    for handle in [&named[1].1, &unnamed] {
        std::fs::write(path(handle), b"other").expect("it is written");
    }
    let found = report(&world);
    let told: Vec<_> = found.findings.iter().map(|it| (it.problem, it.first_seq, it.place.as_str())).collect();
    let expected = [(0, &unnamed), (named[0].0, &named[0].1), (named[1].0, &named[1].1), (again, &named[0].1)];
    assert_eq!(told, expected.map(|(seq, handle)| (Problem::Artifact, seq, handle.as_str())));
    assert_eq!(found.first_bad().map(|first| (first.first_seq, first.exact)), Some((named[0].0, true)));
    assert_eq!(found.artifacts, Some((1, 5)));

    std::fs::remove_dir_all(&directory).expect("it goes");
    let found = report(&world);
    assert_eq!(found.findings.len(), 1, "{:?}", found.findings);
    assert_eq!((found.findings[0].first_seq, found.findings[0].last_seq), (named[0].0, again));
    let left_out = VerifyOptions { artifacts: false, ..VerifyOptions::new(world.path()) };
    let left_out = verify(&left_out, &mut |_| {}).expect("it can be read");
    assert_eq!((left_out.findings.as_slice(), left_out.artifacts), ([].as_slice(), None));
}
