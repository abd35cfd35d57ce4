//! The last segment cut at every byte of its last three commits: what was acknowledged is there or the
//! log refuses by range; what is cut off is kept aside, and one event says so.

use std::path::Path;

use super::super::{Durable, Log, Reader};
use super::simulated_disk::SimulatedDisk;
use super::{assert_gap_free, message, options, read_all, recoveries, texts};
use crate::StorageError;

/// A log as it was at one moment.
struct Moment {
    durable: Durable,
    mark: Vec<u8>,
}

/// A log, and the moments after its opening and after each of three more commits.
fn sample(directory: &Path) -> (Vec<u8>, Vec<Moment>) {
    let disk = SimulatedDisk::new(0);
    let (log, mut writer) = Log::prepare(options(directory), disk.process()).expect("the log opens");
    let file = |name: &str| disk.files().into_iter().find(|(other, _)| other == name).expect("it is there").1;
    let mut moments = vec![Moment { durable: *log.watch().borrow(), mark: file("mark") }];
    for text in ["one", "two", "three"] {
        let drafts = [message(Some("a"), text), message(None, "another")];
        writer.append(&mut drafts.iter()).expect("it is recorded");
        moments.push(Moment { durable: *log.watch().borrow(), mark: file("mark") });
    }
    (file("000001.seg"), moments)
}

/// The segment as it is when nothing from `cut` on was written, or when nothing from there on is left.
fn cut_at(segment: &[u8], cut: usize, shortened: bool) -> Vec<u8> {
    let mut bytes = segment[..cut].to_vec();
    if !shortened {
        bytes.resize(segment.len(), 0);
    }
    bytes
}

#[test]
fn a_last_segment_cut_anywhere_loses_nothing_acknowledged_or_is_refused() {
    let scratch = super::temporary();
    let directory = options(scratch.path()).directory;
    let (segment, moments) = sample(scratch.path());
    let (first, end) = (moments[0].durable.end.offset, moments[3].durable.end.offset);
    let (mut refused, mut mended, mut whole) = (0, 0, 0);
    for marked in &moments {
        for cut in first..=end {
            let disk = SimulatedDisk::new(1);
            // By turns: the rest of it never got written, or the file ends there.
            let bytes = cut_at(&segment, cut as usize, (cut + marked.durable.last_seq as u32 / 2).is_multiple_of(2));
            disk.plant(&directory.join("mark"), &marked.mark);
            disk.plant(&directory.join("000001.seg"), &bytes);
            let reached = moments.iter().rev().find(|moment| moment.durable.end.offset <= cut).expect("the first");
            let what = format!("cut at {cut}, marked at {}", marked.durable.end.offset);
            if reached.durable.last_seq < marked.durable.last_seq {
                check_refused(scratch.path(), &disk, &reached.durable, &marked.durable, &what);
                refused += 1;
            } else if check_mended(scratch.path(), &disk, &bytes, &reached.durable, &what) {
                mended += 1;
            } else {
                whole += 1;
            }
        }
    }
    assert!(refused > 500 && mended > 500 && whole >= 10, "{refused} refused, {mended} mended, {whole} whole");
}

fn check_refused(directory: &Path, disk: &SimulatedDisk, reached: &Durable, marked: &Durable, what: &str) {
    let before = disk.files();
    match Log::prepare(options(directory), disk.process()) {
        Err(StorageError::Damaged { first_seq, last_seq, .. }) => {
            assert_eq!((first_seq, last_seq), (reached.last_seq + 1, marked.last_seq), "{what}");
        }
        Err(error) => panic!("{what}: another refusal: {error}"),
        Ok(_) => panic!("{what}: it opens with less than was acknowledged"),
    }
    assert!(disk.files() == before, "{what}: a refusal changes nothing");
}

/// Whether something had to be cut off.
fn check_mended(directory: &Path, disk: &SimulatedDisk, bytes: &[u8], reached: &Durable, what: &str) -> bool {
    let (log, _writer) = Log::prepare(options(directory), disk.process()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let events = read_all(&log.reader());
    assert_gap_free(&events);
    assert_eq!(texts(&events)[reached.last_seq as usize], "log.opened", "{what}");
    let end = reached.end.offset as usize;
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let recovered = recoveries(&log.reader());
    if used <= end {
        assert!(recovered.is_empty(), "{what}: {recovered:?}");
        return false;
    }
    let [recovered] = &recovered[..] else { panic!("{what}: {recovered:?}") };
    assert_eq!((recovered.what.as_str(), recovered.bytes_cut), ("torn_tail", Some((used - end) as u64)), "{what}");
    let name = recovered.kept_as.as_ref().expect("it was kept").as_str();
    let aside = disk.files().into_iter().find(|(other, _)| other == name).expect("it is there").1;
    assert_eq!(aside, bytes[end..used], "{what}");
    let outside = Reader::open_with(&options(directory).directory, disk.process()).expect("there is a log");
    assert_eq!(read_all(&outside), events, "{what}");
    true
}
