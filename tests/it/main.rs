//! Promises of the whole, each in a module of its own, kept by the real program and real Chromium.
//!
//! Cargo builds one program from all of them: linking is what costs. A file beside this one that is
//! not declared here fails `every_file_is_declared`.

#[path = "../site/mod.rs"]
mod site;
mod support;

mod acting;
mod auditing;
mod auth;
mod blocking;
mod bounds;
mod bursts;
mod capture;
mod channel;
mod compact;
mod configuration;
mod conformance;
mod console;
mod contract;
mod crash;
mod damage;
mod disk;
mod downloads;
mod durability;
mod every_tool;
mod evidence;
mod exporting;
mod failed_sync;
mod finding;
mod framing;
mod full_disk;
mod hostile;
mod inspection;
mod interaction;
mod issues;
mod lifetime;
mod metrics;
mod navigation;
mod network;
mod packs;
mod pictures;
mod popups;
mod redaction;
mod retention;
mod selectors;
mod serving;
mod sessions;
mod snapshots;
mod spine;
mod state;
mod tidy;
mod torture;
mod uploads;
mod values;
mod verifying;

#[test]
fn every_file_is_declared() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let declared = std::fs::read_to_string(directory.join("main.rs")).expect("this file");
    let mut found = 0;
    for entry in std::fs::read_dir(&directory).expect("the directory of this file").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let module = name.trim_end_matches(".rs");
        if module != "main" {
            assert!(declared.contains(&format!("\nmod {module};\n")), "{name} is not declared in main.rs");
            found += 1;
        }
    }
    assert!(found > 1, "no modules found");
}
