//! Promises of the artifact store, through its public face.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{ArtifactStore, Kept, Removal};
use crate::StorageError;
use crate::ids::ArtifactHandle;

const QUOTA_BYTES: u64 = 1_000_000;

fn store() -> (tempfile::TempDir, ArtifactStore) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let store = ArtifactStore::open(&directory.path().join("artifacts"), QUOTA_BYTES).expect("it opens");
    (directory, store)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn unfinished(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("artifacts/tmp")).expect("it is there").count()
}

#[test]
fn what_was_put_reads_back_by_range() {
    let (_directory, store) = store();
    let kept = store.put(b"0123456789").expect("it is kept");
    let sha256 = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
    let handle = ArtifactHandle::from(format!("art-{}", &sha256[..32]));
    assert_eq!(kept, Kept { handle: handle.clone(), bytes: 10, sha256: sha256.into() });
    assert_eq!(store.length(&handle).expect("it is there"), 10);
    for (offset, length, expected) in [(0, 4, "0123"), (8, 100, "89"), (10, 5, ""), (u64::MAX, 1, "")] {
        assert_eq!(store.read(&handle, offset, length).expect("it is there"), expected.as_bytes());
    }
}

#[test]
fn only_the_owner_can_read_what_is_kept() {
    let (_directory, store) = store();
    let kept = store.put(b"secret").expect("it is kept");
    let path = store.path(&kept.handle).expect("it is there");
    assert_eq!(mode(&path), 0o600);
    let shard = path.parent().expect("it lies in a directory");
    assert_eq!(mode(shard), 0o700);
    assert_eq!(mode(shard.parent().expect("and that in the store")), 0o700);
}

#[test]
fn content_kept_twice_counts_once() {
    let (directory, store) = store();
    let bytes = vec![7; 600_000];
    let first = store.put(&bytes).expect("it fits");
    assert_eq!(store.put(&bytes).expect("it is there already"), first);
    let file = directory.path().join("download");
    std::fs::write(&file, &bytes).expect("it is written");
    // There is no room for it twice, so it is refused before its content is known; room for all
    // content that is new must not depend on luck.
    assert!(matches!(store.put_file(&file), Err(StorageError::Limit { .. })));
    assert!(file.exists());
    assert_eq!(unfinished(directory.path()), 0);
}

#[test]
fn the_quota_refuses_and_counts_what_an_earlier_process_kept() {
    let (directory, first) = store();
    first.put(&vec![1; 700_000]).expect("it fits");
    let store = ArtifactStore::open(&directory.path().join("artifacts"), QUOTA_BYTES).expect("it opens");
    let refused = store.put(&vec![2; 300_001]);
    assert!(matches!(refused, Err(StorageError::Limit { limit: QUOTA_BYTES, .. })), "{refused:?}");
    store.put(&vec![2; 300_000]).expect("it fits exactly");
    assert!(matches!(store.put(b"x"), Err(StorageError::Limit { .. })));
}

#[test]
fn a_file_is_moved_in_and_protected() {
    let (directory, store) = store();
    let file = directory.path().join("download");
    std::fs::write(&file, b"0123456789").expect("it is written");
    let kept = store.put_file(&file).expect("it is kept");
    assert!(!file.exists());
    assert_eq!(store.read(&kept.handle, 0, 10).expect("it is there"), b"0123456789");
    assert_eq!(mode(&store.path(&kept.handle).expect("it is there")), 0o600);
    assert_eq!(unfinished(directory.path()), 0);
}

#[test]
fn a_file_with_two_names_is_copied_so_that_nobody_can_change_it() {
    let (directory, store) = store();
    let (file, other) = (directory.path().join("download"), directory.path().join("other"));
    std::fs::write(&file, b"before").expect("it is written");
    std::fs::hard_link(&file, &other).expect("it is linked");
    let kept = store.put_file(&file).expect("it is kept");
    std::fs::write(&other, b"after!").expect("it is written");
    assert_eq!(store.read(&kept.handle, 0, 10).expect("it is there"), b"before");
}

#[test]
fn links_are_not_followed() {
    let (directory, store) = store();
    let (secret, link) = (directory.path().join("secret"), directory.path().join("link"));
    std::fs::write(&secret, b"elsewhere").expect("it is written");
    symlink(&secret, &link).expect("it is linked");
    assert!(store.put_file(&link).is_err());
    assert!(secret.exists());
    let kept = store.put(b"content").expect("it is kept");
    let path = store.path(&kept.handle).expect("it is there");
    std::fs::remove_file(&path).expect("it is removed");
    symlink(&secret, &path).expect("it is linked");
    assert!(matches!(store.read(&kept.handle, 0, 10), Err(StorageError::UnknownHandle)));
    store.put(b"content").expect("it takes the link's place");
    assert_eq!(store.read(&kept.handle, 0, 10).expect("it is there"), b"content");
    assert_eq!(std::fs::read(&secret).expect("it is there"), b"elsewhere");
}

#[test]
fn a_shard_that_is_a_link_is_no_shard() {
    let (directory, store) = store();
    let kept = store.put(b"content").expect("it is kept");
    let path = store.path(&kept.handle).expect("it is there");
    let shard = path.parent().expect("it lies in a directory");
    let elsewhere = directory.path().join("elsewhere");
    std::fs::rename(shard, &elsewhere).expect("it is moved");
    symlink(&elsewhere, shard).expect("it is linked");
    assert!(matches!(store.read(&kept.handle, 0, 10), Err(StorageError::UnknownHandle)));
    assert!(store.put(b"content").is_err());
}

#[test]
fn handles_of_another_form_are_unknown() {
    let (_directory, store) = store();
    let long = "a".repeat(33);
    for digits in
        ["", "../../etc/passwd", "ABCDEF00112233445566778899aabbcc", &long, "0123456789abcdef0123456789abcdef"]
    {
        let handle = ArtifactHandle::from(format!("art-{digits}"));
        assert!(matches!(store.path(&handle), Err(StorageError::UnknownHandle)), "{digits}");
    }
    assert!(matches!(store.path(&ArtifactHandle::from("x")), Err(StorageError::UnknownHandle)));
}

#[test]
fn content_altered_where_it_lies_is_put_anew() {
    let (_directory, store) = store();
    let kept = store.put(b"content").expect("it is kept");
    let path = store.path(&kept.handle).expect("it is there");
    std::fs::write(&path, b"altered").expect("it is written");
    store.put(b"content").expect("it is kept");
    assert_eq!(store.read(&kept.handle, 0, 10).expect("it is there"), b"content");
}

#[test]
fn opening_removes_what_was_left_unfinished_and_reading_beside_does_not() {
    let (directory, _store) = store();
    let root = directory.path().join("artifacts");
    std::fs::write(root.join("tmp/0-abcdefgh"), b"half").expect("it is written");
    let reader = ArtifactStore::open_read_only(&root);
    assert_eq!(unfinished(directory.path()), 1);
    assert!(matches!(reader.put(b"x"), Err(StorageError::Limit { .. })));
    ArtifactStore::open(&root, QUOTA_BYTES).expect("it opens");
    assert_eq!(unfinished(directory.path()), 0);
}

fn hour_ago() -> SystemTime {
    SystemTime::now() - Duration::from_secs(3_600)
}

/// As if the content had last been put two hours ago.
fn age(store: &ArtifactStore, handle: &ArtifactHandle) {
    let file = std::fs::File::open(store.path(handle).expect("it is there")).expect("it opens");
    file.set_modified(hour_ago() - Duration::from_secs(3_600)).expect("its time is set");
}

#[test]
fn removal_makes_room_and_takes_only_what_nobody_put_since() {
    let (_directory, store) = store();
    let kept = store.put(&vec![3; 700_000]).expect("it fits");
    let remove = || store.remove(&kept.handle, hour_ago()).expect("it can be asked");
    assert_eq!(remove(), Removal::Wanted, "just put");
    age(&store, &kept.handle);
    store.put(&vec![3; 700_000]).expect("it is there already");
    assert_eq!(remove(), Removal::Wanted, "put again");
    assert!(store.put(&vec![4; 700_000]).is_err(), "there is no room");
    age(&store, &kept.handle);
    assert_eq!(remove(), Removal::Removed { bytes: 700_000 });
    assert_eq!(store.stored_bytes().expect("it is counted"), 0);
    assert_eq!(remove(), Removal::Absent);
    assert!(matches!(store.read(&kept.handle, 0, 1), Err(StorageError::UnknownHandle)));
    store.put(&vec![4; 700_000]).expect("there is room");
}

#[test]
fn a_file_that_was_written_long_before_it_was_put_counts_from_its_putting() {
    let (directory, store) = store();
    let path = directory.path().join("download");
    std::fs::write(&path, b"slow").expect("it is written");
    let file = std::fs::File::open(&path).expect("it opens");
    file.set_modified(hour_ago() - Duration::from_secs(60)).expect("its time is set");
    let kept = store.put_file(&path).expect("it is kept");
    assert_eq!(store.remove(&kept.handle, hour_ago()).expect("it can be asked"), Removal::Wanted);
}

#[test]
fn removal_overwrites_the_bytes_themselves() {
    let (directory, store) = store();
    let kept = store.put(b"content").expect("it is kept");
    let open = std::fs::File::open(store.path(&kept.handle).expect("it is there")).expect("it opens");
    let soon = SystemTime::now() + Duration::from_secs(60);
    assert_eq!(store.remove(&kept.handle, soon).expect("it goes"), Removal::Removed { bytes: 7 });
    let mut bytes = [1; 7];
    std::os::unix::fs::FileExt::read_exact_at(&open, &mut bytes, 0).expect("its length is as before");
    assert_eq!((bytes, unfinished(directory.path())), ([0; 7], 0));
}

#[test]
fn what_lies_in_the_store_is_listed_and_nothing_else() {
    let (directory, store) = store();
    let mut handles: Vec<_> = (0..40u8).map(|byte| store.put(&[byte]).expect("it is kept").handle).collect();
    let root = directory.path().join("artifacts");
    std::fs::write(root.join("tmp/0-abcdefgh"), b"half").expect("it is written");
    let shard = &handles[0].as_str()["art-".len()..][..2];
    std::fs::write(root.join(shard).join("README"), b"not ours").expect("it is written");
    let mut found = Vec::new();
    for shard in store.shards().expect("the store is read") {
        found.extend(store.lying(&shard).expect("it is read").into_iter().map(|lying| lying.handle));
    }
    handles.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, handles);
}

#[test]
fn what_was_altered_on_disk_is_never_given_out() {
    let (_directory, store) = store();
    let kept = store.put(b"as it was put").expect("it is kept");
    let path = store.path(&kept.handle).expect("it is there");
    assert_eq!(store.read(&kept.handle, 0, 5).expect("it is there"), b"as it");
    for altered in [&b"as it was pat"[..], b"as it was", b""] {
        std::fs::write(&path, altered).expect("it is altered");
        for outcome in [store.read(&kept.handle, 0, 5).map(|_| ()), store.path(&kept.handle).map(|_| ())] {
            assert!(matches!(outcome, Err(StorageError::Altered { .. })), "{outcome:?}");
        }
    }
    assert_eq!(store.put(b"as it was put").expect("it is put anew"), kept);
    assert_eq!(store.read(&kept.handle, 3, 100).expect("it is there"), b"it was put");
}
