//! An artifact lives for as long as an event that is left names it.

use std::time::{Duration, SystemTime};

use super::world::{World, of, plain, policy};
use crate::event::catalog::{ArtifactKept, NetworkBody, ScreenshotTaken};
use crate::event::{Clean, Draft};
use crate::ids::ArtifactHandle;
use crate::upkeep::Policy;

impl World {
    /// Bytes in the store that were put a day ago.
    fn kept(&self, bytes: &[u8]) -> ArtifactHandle {
        let handle = self.artifacts.put(bytes).expect("it is kept").handle;
        self.age(&handle);
        handle
    }

    fn age(&self, handle: &ArtifactHandle) {
        let file = std::fs::File::open(self.artifacts.path(handle).expect("it is there")).expect("it opens");
        file.set_modified(SystemTime::now() - Duration::from_secs(86_400)).expect("its time is set");
    }

    fn lies(&self, handle: &ArtifactHandle) -> bool {
        self.artifacts.length(handle).is_ok()
    }
}

/// Noise that names an artifact.
fn body(owner: &str, session: &str, handle: &ArtifactHandle) -> Draft {
    let artifact = Some(handle.clone());
    let payload = NetworkBody {
        direction: "response".into(),
        bytes: 1,
        text: None,
        artifact,
        omitted: None,
        truncated_fields: None,
    };
    Draft::new(&of(owner, session), &payload)
}

/// Evidence that does.
fn screenshot(owner: &str, session: &str, handle: &ArtifactHandle) -> Draft {
    let payload = ScreenshotTaken { width: 1, height: 1, bytes: 1, artifact: handle.clone() };
    Draft::new(&of(owner, session), &payload)
}

fn kept(owner: &str, session: &str, handle: &ArtifactHandle) -> Draft {
    let (media_type, sha256) = (Clean::fixed("text/plain"), Clean::fixed(""));
    let payload = ArtifactKept { artifact: handle.clone(), purpose: "body".into(), media_type, bytes: 1, sha256 };
    Draft::new(&of(owner, session), &payload)
}

#[test]
fn it_goes_with_the_last_event_that_names_it() {
    let world = World::new();
    let [noise, both, elsewhere, fresh] = [b"1", b"2", b"3", b"4"].map(|bytes| world.kept(bytes));
    let all = [&noise, &both, &elsewhere, &fresh];
    world.put(all.iter().map(|handle| body("ann", "s-1", handle)).collect());
    world.put(vec![screenshot("ann", "s-1", &both)]);
    world.roll();
    world.days_pass(20);
    world.put(vec![body("bob", "s-2", &elsewhere)]);
    world.roll();
    world.pass(policy());
    world.days_pass(11);
    world.put(vec![body("ann", "s-3", &fresh)]);
    let stored = world.artifacts.stored_bytes().expect("it is counted");
    let counts = world.pass(policy());
    assert_eq!(all.map(|handle| world.lies(handle)), [false, true, true, true]);
    assert_eq!((counts.artifacts_removed, counts.artifact_bytes_removed), (1, 1));
    assert_eq!(world.artifacts.stored_bytes().expect("it is counted"), stored - 1);
    // The same content again is the same file, whoever had it before.
    assert_eq!(world.kept(b"1"), noise);
    world.days_pass(20);
    world.pass(policy());
    assert_eq!(all.map(|handle| world.lies(handle)), [true, true, false, true], "nobody released the first");
    world.days_pass(60);
    world.pass(policy());
    assert_eq!(all.map(|handle| world.lies(handle)), [true, false, false, false]);
}

#[test]
fn what_was_put_a_moment_ago_stays_until_its_event_is_there() {
    let world = World::new();
    let handle = world.kept(b"content");
    world.put(vec![body("ann", "s-1", &handle)]);
    world.roll();
    world.days_pass(31);
    world.artifacts.put(b"content").expect("it is there already");
    world.pass(policy());
    assert!(world.lies(&handle), "somebody needs it");
    world.put(vec![kept("bob", "s-2", &handle)]);
    world.age(&handle);
    world.keeper(Policy::KEEP_ALL).sweep_orphans().expect("it goes through");
    assert!(world.lies(&handle));
}

#[test]
fn orphans_of_a_crash_are_swept_and_only_they() {
    let world = World::new();
    let [orphan, young, active, sealed, compressed] = [b"1", b"2", b"3", b"4", b"5"].map(|bytes| world.kept(bytes));
    world.put(vec![screenshot("ann", "s-1", &compressed)]);
    world.roll();
    world.pass(Policy::KEEP_ALL);
    world.put(vec![screenshot("ann", "s-1", &sealed)]);
    world.roll();
    world.put(vec![screenshot("ann", "s-1", &active), plain("ann", "s-1", "more")]);
    let file = std::fs::File::open(world.artifacts.path(&young).expect("it is there")).expect("it opens");
    file.set_modified(SystemTime::now() - Duration::from_secs(3_500)).expect("its time is set");
    let mut keeper = world.keeper(Policy::KEEP_ALL);
    keeper.sweep_orphans().expect("it goes through");
    let lie = [&orphan, &young, &active, &sealed, &compressed].map(|handle| world.lies(handle));
    assert_eq!(lie, [false, true, true, true, true]);
    assert_eq!(keeper.counts().artifacts_removed, 1);
}
