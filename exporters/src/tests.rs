//! Promises about exported files, held through the public face: written, read back, compared.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{TimestampMicrosecondType, UInt64Type};
use arrow_array::{Array as _, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::columns::schema;
use crate::sample::{LOG_ID, START_MICROS, Samples, context, gap, hostile, request};
use crate::{Destination, Export, ExportError, ExportOptions, Format, Surroundings, Written, export};

/// The formats that have a row for every event.
const TABLES: [Format; 3] = [Format::Parquet, Format::Ndjson, Format::Csv];

fn options() -> ExportOptions {
    ExportOptions::new(LOG_ID, "0.1.0")
}

fn write(format: Format, target: &Path, samples: &Samples) -> Written {
    export(format, target, &options(), &mut |visit| samples.scan(visit)).expect("the export succeeds")
}

fn read(path: &Path) -> RecordBatch {
    let file = File::open(path).expect("the file exists");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("the file is Parquet");
    let mut batches = builder.with_batch_size(1_000_000).build().expect("the file is readable");
    let batch = batches.next().expect("there are rows").expect("rows decode");
    assert!(batches.next().is_none(), "the samples fit one batch");
    batch
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory exists");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn path(place: &Destination) -> &Path {
    place.file().expect("a file")
}

fn manifest(written: &Written) -> Value {
    serde_json::from_slice(&fs::read(path(&written.manifest)).expect("a manifest")).expect("JSON")
}

#[test]
fn parquet_read_back_holds_every_event_and_type() {
    let directory = tempfile::tempdir().expect("a directory");
    let samples = hostile();
    let written = write(Format::Parquet, &directory.path().join("all.parquet"), &samples);
    let batch = read(path(&written.target));
    assert_eq!(batch.schema().fields(), schema().fields());

    let views = samples.views();
    assert_eq!(batch.num_rows(), views.len());
    let column = |name: &str| batch.column_by_name(name).unwrap_or_else(|| panic!("column {name}")).clone();
    let payloads = column("payload");
    let kinds = column("kind");
    for (row, view) in views.iter().enumerate() {
        assert_eq!(column("seq").as_primitive::<UInt64Type>().value(row), view.seq);
        assert_eq!(column("event_id").as_string::<i32>().value(row), view.event_id(LOG_ID));
        let recorded = column("recorded_at").as_primitive::<TimestampMicrosecondType>().value(row);
        assert_eq!(recorded, view.recorded_at_micros);
        assert_eq!(kinds.as_string::<i32>().value(row), storage::event::json::kind_name(view));
        let payload: Value = serde_json::from_str(payloads.as_string::<i32>().value(row)).expect("JSON");
        assert_eq!(payload, storage::event::json::payload(view));
    }
    let console = 1;
    assert_eq!(column("level").as_string::<i32>().value(console), "warning");
    assert_eq!(column("browser_time").as_primitive::<TimestampMicrosecondType>().value(console), START_MICROS - 5);
    assert!(column("column").is_null(console));
    assert!(column("status").is_null(console));
    assert_eq!(column("status").as_primitive::<UInt64Type>().value(3), 404);
    assert_eq!(column("page_crashed_status").as_string::<i32>().value(5), "oom");
    assert_eq!(column("status").null_count(), views.len() - 1);
    assert!(column("session_id").is_null(0));
    assert!(column("class").is_null(7), "an unknown kind has no class");
}

#[test]
fn ndjson_lines_are_those_of_list_events() {
    let directory = tempfile::tempdir().expect("a directory");
    let samples = hostile();
    let written = write(Format::Ndjson, &directory.path().join("all.ndjson"), &samples);
    let text = fs::read_to_string(path(&written.target)).expect("UTF-8");
    assert!(text.ends_with('\n'));
    let lines: Vec<&str> = text.lines().collect();
    let views = samples.views();
    assert_eq!(lines.len(), views.len());
    for (line, view) in lines.iter().zip(&views) {
        let value: Value = serde_json::from_str(line).expect("each line is JSON");
        assert_eq!(value, storage::event::json::event(view, LOG_ID));
    }
}

#[test]
fn manifest_and_footer_account_for_everything() {
    for format in TABLES {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("part");
        let samples = hostile();
        let mut export = Export::create(format, &target, &options()).expect("a new file");
        for view in &samples.views() {
            if view.seq % 2 == 0 { export.push(view).expect("pushed") } else { export.exclude(view).expect("counted") }
        }
        let written = export.finish(Surroundings::default()).expect("finished");
        assert_eq!((written.events, written.excluded, written.first_seq, written.last_seq), (6, 7, 2, 12));
        assert_eq!((written.gap_events, written.lost_events), (1, 12), "a gap left out is declared all the same");
        let bytes = fs::read(&target).expect("the file");
        let hash = storage::audit::hex(&Sha256::digest(&bytes));
        let manifest = manifest(&written);
        assert_eq!(manifest["bytes"], bytes.len());
        assert_eq!(manifest["sha256"], hash.as_str());
        let events = serde_json::json!({"read": 13, "written": 6, "excluded": 7, "without_place_in_format": 0});
        assert_eq!(manifest["events"], events);
        assert_eq!(manifest["sequence"], serde_json::json!({"first": 2, "last": 12}));
        assert_eq!(manifest["gaps"]["listed"][0]["reason"], "queue_full");
    }
}

#[test]
fn footer_says_what_the_file_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = write(Format::Parquet, &directory.path().join("a.parquet"), &hostile());
    let file = File::open(path(&written.target)).expect("the file");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let facts = builder.metadata().file_metadata().key_value_metadata().expect("facts").clone();
    let fact = |name: &str| facts.iter().find(|f| f.key == name).and_then(|f| f.value.clone());
    assert_eq!(fact("pageledger.log_id").as_deref(), Some(LOG_ID));
    assert_eq!(fact("pageledger.events").as_deref(), Some("13"));
    assert_eq!(fact("pageledger.lost_events").as_deref(), Some("12"));
    assert_eq!(fact("pageledger.filter").as_deref(), Some("{}"));
}

#[test]
fn an_empty_selection_is_a_valid_file() {
    for format in Format::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let written = write(format, &directory.path().join("none"), &Samples::default());
        assert_eq!((written.events, written.first_seq, written.last_seq), (0, 0, 0));
    }
}

#[test]
fn nothing_is_left_behind_by_an_export_given_up() {
    for format in Format::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("a");
        let mut export = Export::create(format, &target, &options()).expect("a new file");
        export.push(&hostile().views()[0]).expect("pushed");
        assert_eq!(names_in(directory.path()).len(), 1, "under way, only the temporary name exists");
        drop(export);
        assert_eq!(names_in(directory.path()), Vec::<String>::new());
    }
}

#[test]
fn a_reader_that_fails_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let samples = hostile();
    let result = export(Format::Parquet, directory.path().join("a"), &options(), &mut |visit| {
        samples.scan(visit)?;
        Err(storage::StorageError::UnknownHandle)
    });
    assert!(matches!(result, Err(ExportError::Storage(_))));
    assert_eq!(names_in(directory.path()), Vec::<String>::new());
}

#[test]
fn an_export_beyond_its_bound_is_refused_whole() {
    for format in Format::ALL {
        let directory = tempfile::tempdir().expect("a directory");
        let mut samples = Samples::default();
        for number in 0..2_000 {
            samples.push(&context(number), &request(number));
        }
        let options = ExportOptions { bytes_max: 4_096, ..options() };
        let result = export(format, directory.path().join("a"), &options, &mut |visit| samples.scan(visit));
        assert!(matches!(result, Err(ExportError::Limit { bytes_max: 4_096 })), "{result:?}");
        assert_eq!(names_in(directory.path()), Vec::<String>::new());
    }
}

#[test]
fn an_existing_file_is_kept_unless_told_otherwise() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("a.ndjson");
    fs::write(&target, "mine").expect("written");
    let refused = Export::create(Format::Ndjson, &target, &options());
    assert!(matches!(refused.err(), Some(ExportError::Exists { .. })));

    fs::remove_file(&target).expect("removed");
    let late = Export::create(Format::Ndjson, &target, &options()).expect("the name is free");
    fs::write(&target, "mine").expect("somebody took the name meanwhile");
    assert!(matches!(late.finish(Surroundings::default()), Err(ExportError::Exists { .. })));
    assert_eq!(fs::read_to_string(&target).expect("still there"), "mine");

    let options = ExportOptions { overwrite: true, ..options() };
    let samples = hostile();
    export(Format::Ndjson, &target, &options, &mut |visit| samples.scan(visit)).expect("replaced");
    assert_eq!(names_in(directory.path()), ["a.ndjson", "a.ndjson.manifest.json"]);
}

#[test]
fn leftovers_of_the_dead_go_and_work_of_the_living_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("a.ndjson");
    let dead = directory.path().join(".a.ndjson.0123456789ab.part");
    fs::write(&dead, "half").expect("a leftover");
    let living = Export::create(Format::Ndjson, &target, &options()).expect("first");
    assert!(!dead.exists());
    let second = Export::create(Format::Ndjson, &target, &options()).expect("second");
    assert_eq!(names_in(directory.path()).len(), 2);
    living.finish(Surroundings::default()).expect("the first one takes the name");
    assert!(matches!(second.finish(Surroundings::default()), Err(ExportError::Exists { .. })));
}

#[test]
fn events_out_of_order_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut samples = Samples::default();
    samples.push(&context(0), &gap(1, "queue_full")).push(&context(0), &gap(1, "queue_full"));
    let views = samples.views();
    let mut export = Export::create(Format::Parquet, directory.path().join("a"), &options()).expect("new");
    export.push(&views[1]).expect("the first one may be any");
    for view in &views {
        assert!(matches!(export.push(view), Err(ExportError::Order { previous: 2, .. })));
    }
    assert!(
        matches!(export.finish(Surroundings::default()), Err(ExportError::Spoiled)),
        "an event offered would be missing"
    );
    assert_eq!(names_in(directory.path()), Vec::<String>::new());
}

#[test]
fn rows_beyond_one_group_make_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let target: PathBuf = directory.path().join("a.parquet");
    let mut samples = Samples::default();
    for _ in 0..100_001 {
        samples.push(&storage::event::Context::default(), &gap(1, "queue_full"));
    }
    let written = write(Format::Parquet, &target, &samples);
    assert_eq!((written.row_groups, written.events), (2, 100_001));
    assert_eq!(written.gaps.len(), crate::GAPS_LISTED_MAX);
    assert_eq!(written.lost_events, 100_001);
}

#[test]
fn of_exports_to_one_name_the_file_and_the_manifest_are_of_the_same_one() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 10;
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("same.csv");
    let options = ExportOptions { overwrite: true, ..options() };
    let samples = hostile();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (target, options, samples) = (&target, &options, &samples);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let mut left = writer;
                    let some = &mut |visit: crate::export::Visit<'_>| {
                        samples.scan(&mut |event| {
                            // Each writes another number of events.
                            left += 1;
                            if left > WRITERS { visit(event) } else { std::ops::ControlFlow::Continue(()) }
                        })
                    };
                    export(Format::Csv, target, options, some).expect("the export succeeds");
                }
            });
        }
    });
    let manifest: Value =
        serde_json::from_slice(&fs::read(directory.path().join("same.csv.manifest.json")).expect("it is there"))
            .expect("JSON");
    let bytes = fs::read(&target).expect("the file is there");
    assert_eq!(manifest["sha256"], storage::audit::hex(&Sha256::digest(&bytes)), "the manifest is the file's own");
    assert_eq!(names_in(directory.path()), ["same.csv", "same.csv.manifest.json"]);
}
