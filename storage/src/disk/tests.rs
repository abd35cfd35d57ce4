//! Levels follow the room without flapping; the ballast comes and goes with them and is never in the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::{BallastState, DiskLevel, DiskPolicy, DiskWatch, Space, Watermarks};
use crate::limits::DISK_RECKONED_BYTES_MAX;

const MIB: u64 = 1024 * 1024;
const TOTAL_BYTES: u64 = 100 * MIB;
const MARKS: Watermarks = Watermarks { warn_percent: 15, refuse_percent: 10, read_only_percent: 5 };

/// A disk whose room is what the test says, less what the ballast takes.
struct FakeDisk {
    directory: TempDir,
    used_bytes: Arc<AtomicU64>,
}

impl FakeDisk {
    fn new(free_bytes: u64) -> Self {
        let disk = Self { directory: tempfile::tempdir().expect("a directory"), used_bytes: Arc::default() };
        disk.set_free(free_bytes);
        disk
    }

    /// Bytes free while no ballast is held.
    fn set_free(&self, bytes: u64) {
        self.used_bytes.store(TOTAL_BYTES - bytes, Ordering::SeqCst);
    }

    fn ballast_bytes(&self) -> u64 {
        std::fs::metadata(self.directory.path().join("ballast")).map_or(0, |facts| facts.len())
    }

    fn watch(&self, ballast_bytes: u64) -> DiskWatch {
        let path = self.directory.path().join("ballast");
        let used = self.used_bytes.clone();
        let probe = move || {
            let held = std::fs::metadata(&path).map_or(0, |facts| facts.len());
            let free_bytes = TOTAL_BYTES.saturating_sub(used.load(Ordering::SeqCst) + held);
            Ok(Space { free_bytes, total_bytes: TOTAL_BYTES })
        };
        let policy = DiskPolicy { watermarks: MARKS, ballast_bytes };
        DiskWatch::probing(self.directory.path(), policy, Box::new(probe)).expect("the disk answers")
    }
}

#[test]
fn levels_follow_the_room_and_are_left_only_with_a_margin() {
    let disk = FakeDisk::new(50 * MIB);
    let watch = disk.watch(0);
    for (free, level) in [
        (50, DiskLevel::Ok),
        (15, DiskLevel::Ok),
        (14, DiskLevel::Warn),
        (15, DiskLevel::Warn),
        (16, DiskLevel::Ok),
        (9, DiskLevel::RefuseSessions),
        (10, DiskLevel::RefuseSessions),
        (11, DiskLevel::Warn),
        (4, DiskLevel::ReadOnly),
        (5, DiskLevel::ReadOnly),
        (6, DiskLevel::RefuseSessions),
        (0, DiskLevel::ReadOnly),
        (50, DiskLevel::Ok),
    ] {
        disk.set_free(free * MIB);
        let state = watch.look();
        assert_eq!(state.level, level, "{free} MiB free");
        assert_eq!((state.space.free_bytes, state.ballast), (free * MIB, BallastState::Off));
    }
}

#[test]
fn more_room_never_gives_a_worse_level_and_rest_changes_nothing() {
    for total_bytes in [MIB, TOTAL_BYTES, 3 * DISK_RECKONED_BYTES_MAX] {
        for before in DiskLevel::ALL {
            let mut worst = DiskLevel::ReadOnly;
            for step in 0..=1000 {
                let space = Space { free_bytes: total_bytes / 1000 * step, total_bytes };
                let level = MARKS.level(before, &space);
                assert!(level <= worst, "{space:?} after {before:?}");
                assert_eq!(MARKS.level(level, &space), level, "{space:?} after {before:?}");
                worst = level;
            }
            assert_eq!(worst, DiskLevel::Ok);
        }
    }
    let none = Watermarks { warn_percent: 0, refuse_percent: 0, read_only_percent: 0 };
    assert_eq!(none.level(DiskLevel::Ok, &Space { free_bytes: 0, total_bytes: MIB }), DiskLevel::Ok);
}

#[test]
fn of_a_large_disk_only_so_much_is_reckoned_with() {
    let level = |free_bytes| MARKS.level(DiskLevel::Ok, &Space { free_bytes, total_bytes: 1 << 44 });
    assert_eq!(level(DISK_RECKONED_BYTES_MAX / 100 * 15), DiskLevel::Ok);
    assert_eq!(level(DISK_RECKONED_BYTES_MAX / 100 * 15 - 1), DiskLevel::Warn);
    assert_eq!(level(DISK_RECKONED_BYTES_MAX / 100 * 5 - 1), DiskLevel::ReadOnly);
}

#[test]
fn the_ballast_is_made_when_there_is_plenty_and_given_back_at_the_lowest_level() {
    let disk = FakeDisk::new(50 * MIB);
    let watch = disk.watch(2 * MIB);
    assert_eq!((watch.state().ballast, disk.ballast_bytes()), (BallastState::Released, 0), "opening takes no time");
    let state = watch.look();
    assert_eq!((state.level, state.ballast, disk.ballast_bytes()), (DiskLevel::Ok, BallastState::Held, 2 * MIB));
    assert_eq!(state.space.free_bytes, 48 * MIB, "what it takes is gone");

    disk.set_free(6 * MIB);
    let state = watch.look();
    assert_eq!((state.level, state.ballast), (DiskLevel::ReadOnly, BallastState::Released), "4 MiB are left with it");
    assert_eq!((state.space.free_bytes, disk.ballast_bytes()), (6 * MIB, 0));
    assert_eq!(watch.look().level, DiskLevel::ReadOnly, "giving it back is no way out");

    disk.set_free(8 * MIB);
    let state = watch.look();
    assert_eq!((state.level, state.ballast), (DiskLevel::RefuseSessions, BallastState::Held), "there is plenty again");
    assert_eq!(watch.look().level, DiskLevel::RefuseSessions, "making it is no way back");

    drop(watch);
    let again = disk.watch(2 * MIB);
    assert_eq!(again.state().ballast, BallastState::Held, "it stays from one run to the next");
    disk.set_free(3 * MIB);
    assert_eq!(disk.watch(2 * MIB).state().ballast, BallastState::Released, "a start on a full disk gives it back");
}

#[test]
fn the_ballast_takes_a_share_of_a_small_disk_at_most() {
    let disk = FakeDisk::new(90 * MIB);
    let state = disk.watch(64 * MIB).look();
    assert_eq!((state.ballast, state.ballast_bytes, disk.ballast_bytes()), (BallastState::Held, 5 * MIB, 5 * MIB));
    let state = disk.watch(MIB).look();
    assert_eq!((state.ballast_bytes, disk.ballast_bytes()), (MIB, MIB), "another size is made anew");
    let state = disk.watch(0).look();
    assert_eq!((state.ballast, disk.ballast_bytes()), (BallastState::Off, 0), "none is wanted");
}

#[test]
fn a_refused_write_is_known_at_once_and_until_one_goes_through() {
    let disk = FakeDisk::new(50 * MIB);
    let watch = disk.watch(2 * MIB);
    watch.look();
    let mut news = watch.watch();
    news.mark_unchanged();
    assert!(watch.refused(), "there was room to give back");
    assert!(news.has_changed().expect("it is watched"));
    assert_eq!((watch.level(), disk.ballast_bytes()), (DiskLevel::ReadOnly, 0));
    assert!(!watch.refused(), "and there is no more");
    let state = watch.look();
    assert_eq!((state.level, state.ballast), (DiskLevel::ReadOnly, BallastState::Released), "free room proves nothing");
    news.mark_unchanged();
    watch.accepted();
    assert!(news.has_changed().expect("it is watched"), "whoever follows looks again");
    let state = watch.look();
    assert_eq!((state.level, state.ballast, state.refusing), (DiskLevel::Ok, BallastState::Held, false));
    news.mark_unchanged();
    watch.accepted();
    assert!(!news.has_changed().expect("it is watched"), "nothing was refused");
}

#[test]
fn a_disk_of_this_machine_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = DiskPolicy { watermarks: MARKS, ballast_bytes: MIB };
    let watch = DiskWatch::open(directory.path(), policy).expect("it answers");
    let state = watch.look();
    assert!(state.space.total_bytes > 0 && state.space.free_bytes <= state.space.total_bytes);
    assert!(DiskWatch::open(&directory.path().join("nowhere"), policy).is_err());
    if state.ballast == BallastState::Held {
        let bytes = std::fs::read(directory.path().join("ballast")).expect("it is there");
        assert!(bytes.len() as u64 == state.ballast_bytes && bytes.iter().any(|byte| *byte != 0));
    }
}
