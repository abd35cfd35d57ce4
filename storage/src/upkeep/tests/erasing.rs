//! What is erased is nowhere any more; everything else is as it was, and accounted for.

use std::collections::BTreeMap;
use std::path::Path;

use super::world::{World, of, ownerless, plain, policy, portions};
use crate::event::catalog::{CallAccepted, LogRemoved, NetworkBody};
use crate::event::{Clean, Context, Draft, Json};
use crate::log::tests::rewrite::Told;
use crate::query::tests::world::{entered, launching};
use crate::upkeep::{Erased, Erasure, Policy, Subject, erase};

const MARKER: &str = "plaintext-marker-7d1f";

impl World {
    fn erase(&self, subject: Subject) -> Erased {
        let (by, note) = (Clean::fixed("root"), Clean::fixed("asked for by letter"));
        erase(self.directory.path(), &self.log, &Erasure { subject, by, note }).expect("it goes through")
    }

    /// The files below the data directory that hold `text`.
    pub fn files_with(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        collect(self.directory.path(), text.as_bytes(), &mut found);
        found
    }
}

fn collect(directory: &Path, text: &[u8], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            collect(&path, text, found);
            continue;
        }
        let bytes = std::fs::read(&path).expect("it can be read");
        if bytes.windows(text.len()).any(|window| window == text) {
            found.push(path.display().to_string());
        }
    }
}

fn session(name: &str) -> Subject {
    Subject::Session(name.into())
}

fn owner(name: &str) -> Subject {
    Subject::Owner(name.into())
}

/// A call that belongs to no session, with these arguments.
fn call(by: &str, operation: &str, arguments: serde_json::Value) -> Draft {
    let context = Context { owner: Some(by.into()), operation_id: Some(operation.into()), ..Context::default() };
    let arguments = Json::redacted(&arguments);
    Draft::new(&context, &CallAccepted { tool: "list_events".into(), arguments, deadline_ms: None })
}

#[test]
fn a_word_that_calls_used_is_nobody_to_be_erased() {
    let world = World::new();
    world.session("ann", "shop-1");
    world.put(vec![call("ann", "o-1", serde_json::json!({"slug": "shop"}))]);
    let before = world.told();
    assert_eq!(world.erase(session("shop")), Erased::default());
    assert_eq!(world.told().kept[..before.kept.len()], before.kept);
}

#[test]
fn profiles_and_exports_are_named_and_left_alone() {
    let world = World::new();
    world.session("ann", "s-1");
    let profile = world.directory.path().join("profiles/shop");
    std::fs::create_dir_all(&profile).expect("it is made");
    let erased = world.erase(session("s-1"));
    assert!(erased.events > 0 && profile.exists());
    assert_eq!(erased.beside, [profile.display().to_string()]);
}

fn under(operation: &str, context: Context) -> Context {
    Context { operation_id: Some(operation.into()), ..context }
}

fn assert_gone(world: &World, before: &Told, gone: &[u64]) {
    let after = world.told();
    for (seq, record) in &before.kept {
        let kept = after.kept.iter().find(|(other, _)| other == seq).map(|(_, record)| record);
        assert_eq!(kept, Some(record).filter(|_| !gone.contains(seq)), "event {seq}");
    }
    assert_eq!(gone.iter().filter(|seq| !after.removed.contains(seq)).count(), 0);
}

#[test]
fn no_plaintext_is_left_in_any_file() {
    let world = World::new();
    let root = world.directory.path();
    let id = "s-secret-name";
    world.put(vec![launching("ann", id), plain("ann", id, MARKER)]);
    world.roll();
    world.pass(Policy::KEEP_ALL);
    world.put(vec![plain("ann", id, &format!("{MARKER} again")), plain("ann", "s-other", "other")]);
    let kept = world.artifacts.put(MARKER.as_bytes()).expect("it is kept").handle;
    let named = NetworkBody {
        direction: "response".into(),
        bytes: 1,
        text: None,
        artifact: Some(kept.clone()),
        omitted: None,
        truncated_fields: None,
    };
    world.put(vec![Draft::new(&of("ann", id), &named)]);
    world.artifacts.put(format!("{MARKER}, of a crash").as_bytes()).expect("it is kept");
    for copy in
        ["log/torn-3-4096.bin", "index/sled/db", "index/000001-1.idx", "run/i-1/Default/Cache", "artifacts/tmp/1-a"]
    {
        let path = root.join(copy);
        std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("it is made");
        std::fs::write(path, format!("{id} {MARKER}")).expect("it is written");
    }
    assert!(world.files_with(MARKER).len() >= 9, "it can be found: {:?}", world.files_with(MARKER));

    let erased = world.erase(session(id));
    assert_eq!((erased.events, erased.segments, erased.artifacts), (4, 2, 2));
    for text in [MARKER, id] {
        assert_eq!(world.files_with(text), Vec::<String>::new());
    }
    let log = world.reopened();
    assert!(log.kinds().into_values().any(|kind| kind == "console.message"), "the other session's");
}

#[test]
fn everybody_elses_events_are_as_they_were() {
    let world = World::new();
    let ann = world.session("ann", "s-1");
    let first = world.put(vec![ownerless("s-1"), call("ann", "op-1", serde_json::json!({"session_id": "s-1"}))]);
    let of_session = [ann.concat(), vec![first, first + 1]].concat();
    world.session("ann", "s-2");
    // Under an operation of the session's, but of no session; and one of another that only sounds alike.
    let theirs = world.put(vec![
        Draft::new(
            &under("op-2", of("ann", "s-1")),
            &crate::event::catalog::CallEntered { tool: "click".into(), queue_ms: 0.0 },
        ),
        call("ann", "op-2", serde_json::json!({})),
        call("ann", "op-3", serde_json::json!({"session_id": "s-10", "text": "about s-1"})),
    ]);
    world.roll();
    world.pass(Policy::KEEP_ALL);
    world.session("bob", "s-3");
    let before = world.told();
    let gone = [of_session, vec![theirs, theirs + 1]].concat();
    let erased = world.erase(session("s-1"));
    assert_eq!(erased.events, gone.len() as u64);
    assert_gone(&world, &before, &gone);
    let removals = world.removals();
    assert_eq!(removals.iter().map(|(whose, _)| whose.as_str()).collect::<Vec<_>>(), ["-/-"]);
    let (_, removed) = &removals[0];
    assert_eq!((removed.reason.as_str(), removed.segment, removed.generation), ("erased", 1, 2));
    assert_eq!(removed.count, gone.len() as u64);
    assert_eq!(removed.by.as_ref().map(Clean::as_str), Some("root"));
    assert_eq!(removed.note.as_ref().map(Clean::as_str), Some("asked for by letter"));
    let again = world.erase(session("s-1"));
    assert_eq!((again.events, again.earlier.len(), again.earlier[0].1), (0, 1, gone.len() as u64), "it is known");
    assert_eq!(world.erase(session("s-9")).earlier, Vec::new());
}

#[test]
fn an_owner_goes_with_all_sessions_and_calls_and_nobody_elses() {
    let world = World::new();
    let first = world.session("ann", "main").concat();
    let more = world.put(vec![ownerless("main"), call("ann", "op-1", serde_json::json!({})), entered("ann", "s-2")]);
    // The same name, launched by somebody else later: what says no owner is his from here on.
    world.session("bob", "main");
    world.put(vec![ownerless("main"), call("bob", "op-2", serde_json::json!({"session_id": "main"}))]);
    let before = world.told();
    let gone = [first, vec![more, more + 1, more + 2]].concat();
    assert_eq!(world.erase(owner("ann")).events, gone.len() as u64);
    assert_gone(&world, &before, &gone);
    assert_eq!(world.files_with("ann"), Vec::<String>::new());
}

/// What announcements add up to, by segment.
pub fn totals(world: &World) -> BTreeMap<u64, u64> {
    let mut latest: BTreeMap<_, LogRemoved> = BTreeMap::new();
    for (whose, removed) in world.removals() {
        let subject = removed.subject.as_ref().map(|subject| subject.as_str().to_owned());
        latest.insert((whose, subject, removed.segment, removed.generation), removed);
    }
    let mut totals = BTreeMap::new();
    for removed in latest.values() {
        assert_eq!(portions(removed).iter().map(|portion| portion.count).sum::<u64>(), removed.count);
        *totals.entry(removed.segment).or_default() += removed.count;
    }
    totals
}

#[test]
fn what_was_removed_before_is_still_accounted_for_without_names() {
    let world = World::new();
    world.session("ann", "s-secret-name");
    world.session("ann", "s-2");
    world.roll();
    world.days_pass(31);
    world.pass(policy());
    world.session("ann", "s-secret-name");
    assert!(!world.files_with("s-secret-name").is_empty());
    let before = totals(&world)[&1];
    world.erase(session("s-secret-name"));
    assert_eq!(world.files_with("s-secret-name"), Vec::<String>::new());
    let removed = world.told().removed;
    let told = totals(&world);
    let segments = world.log.reader().segments().expect("they are known");
    for facts in segments.iter().filter_map(|facts| Some((facts, facts.last_seq?))) {
        let (facts, last_seq) = facts;
        let gone = removed.range(facts.first_seq..=last_seq).count() as u64;
        assert_eq!(told.get(&u64::from(facts.number)).copied().unwrap_or(0), gone, "segment {}", facts.number);
    }
    assert!(told[&1] > before);
    let whose = world.removals().into_iter().filter(|(whose, _)| whose == "ann/s-2").count();
    assert_eq!(whose, 1, "the other session's losses are told as before");
}

#[test]
fn files_that_were_written_elsewhere_are_listed() {
    let world = World::new();
    let arguments = Json::redacted(&serde_json::json!({"session_id": "s-1", "path": "books/2026.parquet"}));
    let accepted = CallAccepted { tool: "export_events".into(), arguments, deadline_ms: None };
    world.put(vec![Draft::new(&of("ann", "s-1"), &accepted)]);
    assert_eq!(world.erase(session("s-1")).paths, ["books/2026.parquet"]);
}

#[test]
fn files_of_theirs_in_the_data_directory_go_and_those_of_others_stay() {
    let world = World::new();
    let put = |path: &str| {
        let path = world.directory.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it is made");
        std::fs::write(&path, MARKER).expect("it is written");
        path
    };
    let theirs = ["exports/a/one.ndjson", "exports/a/one.ndjson.manifest.json", "files/i-1/shot.png"].map(put);
    let others = ["exports/two.ndjson", "files/i-2/shot.png"].map(put);
    let accepted = |tool: &str, arguments| {
        let context = Context { instance_id: Some("i-1".into()), ..of("ann", "s-1") };
        let arguments = Json::redacted(&arguments);
        Draft::new(&context, &CallAccepted { tool: tool.into(), arguments, deadline_ms: None })
    };
    world.put(vec![
        accepted("export_events", serde_json::json!({"session_id": "s-1", "path": "a/one.ndjson"})),
        accepted("export_events", serde_json::json!({"session_id": "s-1", "path": "../files/i-2/shot.png"})),
        accepted("screenshot", serde_json::json!({"session_id": "s-1", "save_path": "shot.png"})),
    ]);
    let erased = world.erase(session("s-1"));
    assert!(theirs.iter().all(|path| !path.exists()) && others.iter().all(|path| path.exists()), "{erased:?}");
    assert_eq!((erased.files, erased.paths), (2, vec!["../files/i-2/shot.png".to_owned()]));
}
