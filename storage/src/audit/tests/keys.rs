//! The key stays private, a stranger's is refused, and a change of key is vouched for by the old one.

use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::super::key::{AuditKey, KeyFiles};
use super::super::verify::{VerifyOptions, verify};
use super::super::{KEY_FILE, PUBLIC_KEY_FILE, Statement, read_public_key};
use super::{World, append, close, until};
use crate::event::Payload as _;
use crate::event::catalog::LogRecovered;
use crate::log::Log;

#[tokio::test]
async fn the_key_is_private_and_its_public_half_is_published() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    let path = world.audit().join(KEY_FILE);
    let facts = std::fs::metadata(&path).expect("it is there");
    assert_eq!((facts.permissions().mode() & 0o7777, facts.len()), (0o600, 32));
    let published = read_public_key(&world.audit().join(PUBLIC_KEY_FILE)).expect("it is there");
    assert_eq!(auditor.health().key, Some(published));
    close(&log, &auditor).await;
    let secret = std::fs::read(&path).expect("it is there");
    // What is lost of the public half is written again.
    std::fs::remove_file(world.audit().join(PUBLIC_KEY_FILE)).expect("it goes");
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    assert_eq!(read_public_key(&world.audit().join(PUBLIC_KEY_FILE)).ok(), Some(published));
    close(&log, &auditor).await;
    assert_eq!(std::fs::read(&path).ok(), Some(secret));
}

#[tokio::test]
async fn a_key_that_is_open_to_others_or_not_the_one_in_force_signs_nothing() {
    let world = World::new();
    let log = world.open();
    close(&log, &world.start(&log).expect("it starts")).await;
    let path = world.audit().join(KEY_FILE);
    let secret = std::fs::read(&path).expect("it is there");
    let private = std::fs::Permissions::from_mode(0o600);
    let aside = world.path().join("aside");
    let spoil: [(&str, &dyn Fn()); 6] = [
        ("others can read it", &|| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("it is set");
        }),
        ("it is a link", &|| {
            std::fs::rename(&path, &aside).expect("it moves");
            symlink(&aside, &path).expect("it is made");
        }),
        ("it is too short", &|| std::fs::write(&path, &secret[..31]).expect("it is written")),
        ("it is another key", &|| std::fs::write(&path, [9; 32]).expect("it is written")),
        ("it was destroyed", &|| std::fs::write(&path, [0; 32]).expect("it is written")),
        ("it is missing", &|| std::fs::remove_file(&path).expect("it goes")),
    ];
    for (what, spoil) in spoil {
        spoil();
        let lines = world.lines().len();
        let log = world.open();
        let auditor = world.start(&log).expect("the log goes on");
        assert!(auditor.health().failing.is_some(), "{what}");
        assert!(auditor.cover(append(&log, 1).await).await.is_err(), "{what}");
        assert_eq!(world.lines().len(), lines, "{what}");
        drop((auditor, log));
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, &secret).expect("it is written");
        std::fs::set_permissions(&path, private.clone()).expect("it is set");
    }
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    assert_eq!(auditor.health().failing, None);
    close(&log, &auditor).await;
}

#[tokio::test]
async fn the_old_key_names_the_new_one_and_is_destroyed() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    let old = auditor.health().key.expect("a key");
    let secret = std::fs::read(world.audit().join(KEY_FILE)).expect("it is there");
    append(&log, 3).await;
    let next = auditor.change_key().await.expect("the key is changed");
    assert_ne!(next, old);
    assert_eq!(auditor.health().key, Some(next));
    let last = append(&log, 3).await;
    auditor.cover(last).await.expect("it is covered");
    close(&log, &auditor).await;
    let lines = world.lines();
    let change = lines.iter().position(|line| matches!(line.statement, Statement::KeyChange(_))).expect("a statement");
    assert!(
        lines[..=change].iter().all(|line| line.key == old) && lines[change + 1..].iter().all(|line| line.key == next)
    );
    assert!(matches!(&lines[change].statement, Statement::KeyChange(it) if it.next_key == next));
    assert!(lines.windows(2).all(|pair| pair[1].statement.previous() == Some(pair[0].digest)));
    assert_eq!(read_public_key(&world.audit().join(PUBLIC_KEY_FILE)).ok(), Some(next));
    for entry in std::fs::read_dir(world.audit()).expect("it is read") {
        let bytes = std::fs::read(entry.expect("it is read").path()).expect("it is read");
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "the old key is gone");
    }
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    assert_eq!((auditor.health().key, auditor.health().failing), (Some(next), None));
}

#[test]
fn a_change_of_key_that_was_interrupted_is_ended_by_what_is_on_record() {
    let world = World::new();
    std::fs::create_dir(world.audit()).expect("it is made");
    let files = KeyFiles::new(&world.audit());
    let old = files.load(None).expect("a key is made").public();
    // Before the statement was durable: the old key stays.
    let next = AuditKey::generate().expect("a key");
    files.prepare(&next).expect("it is laid beside");
    assert_eq!(files.load(Some(old)).expect("it loads").public(), old);
    assert_eq!(std::fs::read_dir(world.audit()).expect("it is read").count(), 2, "nothing is left over");
    // After it: the next one is in force, even when the old one was destroyed already.
    for destroyed in [false, true] {
        let (old, next) = (std::fs::read(files.path()).expect("it is there"), AuditKey::generate().expect("a key"));
        files.prepare(&next).expect("it is laid beside");
        if destroyed {
            std::fs::write(files.path(), [0; 32]).expect("it is written");
        }
        assert_eq!(files.load(Some(next.public())).expect("it loads").public(), next.public());
        assert_ne!(std::fs::read(files.path()).expect("it is there"), old);
        assert_eq!(std::fs::read_dir(world.audit()).expect("it is read").count(), 2, "nothing is left over");
    }
}

#[tokio::test]
async fn an_audit_directory_that_is_lost_between_two_runs_is_told_and_put_on_record() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    let old = auditor.health().key.expect("a key");
    append(&log, 3).await;
    close(&log, &auditor).await;
    std::fs::remove_dir_all(world.audit()).expect("it goes");
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    assert_ne!(auditor.health().key, Some(old));
    let lost = auditor.health().lost.expect("it is told");
    assert!(lost.contains(&old.to_string()), "{lost}");
    let recovered = recovered(&log, "checkpoints_lost");
    assert_eq!(recovered, [lost]);
    close(&log, &auditor).await;
    let found = verify(&VerifyOptions::new(world.path()), &mut |_| {}).expect("it can be read");
    let [finding] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert!(finding.detail.contains("lost or replaced") && finding.detail.contains(&old.to_string()), "{finding:?}");
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    assert_eq!(auditor.health().lost, None, "what is signed since continues");
}

#[tokio::test]
async fn an_audit_directory_that_is_removed_while_running_is_noticed_before_anything_is_said_to_be_signed() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    append(&log, 3).await;
    auditor.cover(log.health().last_seq).await.expect("it is covered");
    std::fs::remove_dir_all(world.audit()).expect("it goes");
    let last = append(&log, 3).await;
    // Refused or made good, but never signed where nobody can read it.
    let covered = auditor.cover(last).await;
    assert!(covered.is_err() || world.lines().iter().any(|line| line.statement.seq() >= last), "{covered:?}");
    until("it is signed anew", || auditor.health().failing.is_none() && auditor.health().signed_seq >= last).await;
    assert!(world.lines().iter().any(|line| line.statement.seq() >= last));
    assert!(auditor.health().lost.is_some());
    assert_eq!(recovered(&log, "checkpoints_lost").len(), 1);
}

/// Details of what was put on record as mended under that name.
fn recovered(log: &Log, what: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut visit = |event: &crate::event::EventView<'_>| {
        let it = LogRecovered::take(event).ok().filter(|it| it.what.as_str() == what);
        found.extend(it.and_then(|it| it.detail).map(|detail| detail.as_str().to_owned()));
        ControlFlow::Continue(())
    };
    log.reader().scan(0, &|_| true, &mut visit).expect("the log is whole");
    found
}
