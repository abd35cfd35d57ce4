//! A table gives back what was put in, whole or not at all.

use std::path::Path;
use std::sync::Arc;

use super::{Cache, Origin, Table, TableWriter, Tip};
use crate::index::wire::{Space, end_of, identity, key};

type Pair = (Vec<u8>, Vec<u8>);

fn origin() -> Origin {
    Origin {
        log_id: "abcdefghijkl".into(),
        segment: 7,
        generation: 2,
        created_micros: -5,
        start: 128,
        end: 4_000_000,
        first_seq: 10,
        last_seq: 99,
        tip: Tip { block: 3_999_000, chain: [9; 32] },
    }
}

/// Enough for many leaves, some entries larger than a leaf, texts that begin alike.
fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for session in 0..9 {
        for number in 0..400u64 {
            let key = key(Space::Request, &[&format!("s-{session}"), &format!("r-{}", number / 2)], Some(number * 7));
            pairs.push((key, number.to_le_bytes().repeat(if number == 77 { 1000 } else { 1 })));
        }
    }
    pairs.push((key(Space::Timeline, &[], Some(3)), Vec::new()));
    pairs.sort();
    pairs
}

fn written(path: &Path, pairs: &[Pair]) -> Table {
    let mut writer = TableWriter::create(path).expect("created");
    for (key, value) in pairs {
        writer.push(key, value).expect("written");
    }
    writer.finish(&origin()).expect("finished");
    Table::open(path, &Arc::new(Cache::default())).expect("opens")
}

fn read(table: &Table, from: &[u8], to: &[u8], backwards: bool) -> Result<Vec<Pair>, String> {
    let entries = table.range(from, to, backwards, true);
    entries.map(|entry| entry.map(|entry| (entry.key().to_vec(), entry.value().to_vec()))).collect()
}

#[test]
fn what_was_put_in_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, pairs) = (directory.path().join("t.idx"), pairs());
    let table = written(&path, &pairs);
    assert_eq!(table.origin, origin());
    assert_eq!(std::fs::read_dir(directory.path()).expect("read").count(), 1, "no draft is left");
    assert_eq!(read(&table, &[0], &[255], false).as_ref(), Ok(&pairs));
    for (key, value) in pairs.iter().step_by(13) {
        assert_eq!(table.get(key).expect("read").map(|entry| entry.value().to_vec()).as_ref(), Some(value));
        assert!(identity(key).is_none_or(|id| table.may_hold(id)));
        let mut other = key.clone();
        other.push(0);
        assert!(table.get(&other).expect("read").is_none());
    }
    assert!(!table.may_hold(&key(Space::Request, &["s-1", "r-9999"], None)));
    for prefix in [key(Space::Request, &["s-3"], None), key(Space::Request, &["s-3", "r-38"], None)] {
        let mut expected: Vec<_> = pairs.iter().filter(|(key, _)| key.starts_with(&prefix)).cloned().collect();
        assert!(!expected.is_empty());
        assert_eq!(read(&table, &prefix, &end_of(&prefix), false).as_ref(), Ok(&expected));
        expected.reverse();
        assert_eq!(read(&table, &prefix, &end_of(&prefix), true).as_ref(), Ok(&expected));
    }
    assert_eq!(read(&table, &[255], &[0], false), Ok(Vec::new()));
}

#[test]
fn a_table_of_nothing_is_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = written(&directory.path().join("t.idx"), &[]);
    assert_eq!(read(&table, &[0], &[255], true), Ok(Vec::new()));
    assert!(table.get(b"x").expect("read").is_none() && !table.may_hold(b"x"));
}

/// Whatever happened to the file: it is refused, or what it gives is right.
#[test]
fn damage_is_noticed_and_never_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, pairs) = (directory.path().join("t.idx"), pairs());
    drop(written(&path, &pairs));
    let whole = std::fs::read(&path).expect("read");
    let mut noticed = 0;
    let mut check = |bytes: &[u8], what: &str| {
        std::fs::write(&path, bytes).expect("written");
        let Ok(table) = Table::open(&path, &Arc::new(Cache::default())) else {
            noticed += 1;
            return;
        };
        match read(&table, &[0], &[255], false) {
            Ok(found) => assert_eq!(found, pairs, "{what}"),
            Err(_) => noticed += 1,
        }
        for (key, value) in pairs.iter().step_by(97) {
            let found = table.get(key).map(|entry| entry.map(|entry| entry.value().to_vec()));
            assert!(found.is_err() || found.as_ref() == Ok(&Some(value.clone())), "{what}");
            assert!(identity(key).is_none_or(|id| table.may_hold(id)), "{what}");
        }
    };
    for at in (0..whole.len()).step_by(whole.len() / 300) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        check(&bytes, &format!("byte {at}"));
    }
    for length in [0, 1, 127, 128, whole.len() / 2, whole.len() - 1] {
        check(&whole[..length], &format!("cut to {length}"));
    }
    check(&[&whole[..], &[0; 9]].concat(), "longer");
    check(&[&whole[..4096], &whole[..]].concat(), "shifted");
    assert!(noticed > 250, "{noticed}");
}
