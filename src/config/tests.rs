//! What options promise: one rule of names, one order of precedence, every problem named.

use std::ffi::OsString;
use std::path::Path;

use super::options::{Kind, Reach};
use super::*;

fn surroundings(variables: &[(&str, &str)]) -> Environment {
    Environment {
        variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        config_directory: None,
        data_directory: Some(PathBuf::from("/data")),
        memory_bytes: 8 << 30,
        ..Environment::default()
    }
}

fn asked(words: &str, environment: &Environment) -> Result<Command, ConfigError> {
    let arguments = std::iter::once("pageledger").chain(words.split_whitespace()).map(OsString::from).collect();
    parse(arguments, environment)
}

fn served(words: &str, environment: &Environment) -> Config {
    match asked(words, environment) {
        Ok(Command::Serve(config)) => config,
        other => panic!("{words}: {other:?}"),
    }
}

fn problems(words: &str, environment: &Environment) -> Vec<String> {
    asked(words, environment).expect_err("the options are wrong").problems
}

#[test]
fn names_follow_one_rule_and_defaults_hold() {
    for row in OPTIONS {
        assert_eq!(row.flag, row.key.replace('_', "-"));
        assert_eq!(row.variable, format!("BROWSER_MCP_{}", row.key.to_ascii_uppercase()));
        assert!(!row.text.is_empty() && row.text.is_ascii() && !row.text.contains('|'), "{}", row.key);
    }
    let config = served("", &surroundings(&[]));
    assert_eq!(config.data_dir, Path::new("/data/pageledger"));
    assert_eq!((config.max_instances, config.max_result_bytes), (5, 1024 * 1024));
    assert_eq!((config.http, config.idle_ttl, config.chromium_sandbox), (None, None, true));
    assert!(config.shown.iter().map(|shown| shown.key).eq(OPTIONS.iter().map(|row| row.key)));
    assert!(config.shown.iter().all(|shown| shown.source == "default"));
}

/// Each option, set from each source to a value that is not its default, must arrive in `config show`.
#[test]
fn flag_goes_before_environment_before_file_before_default() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("pageledger.toml");
    for row in OPTIONS {
        let [low, middle, high] = match row.kind {
            // Watermarks have an order among them.
            Kind::Count { .. } if row.key == "disk_warn_percent" => ["17", "18", "19"],
            Kind::Count { .. } if row.key == "disk_read_only_percent" => ["1", "2", "3"],
            Kind::Address => ["127.0.0.1:1", "127.0.0.1:2", "[::1]:3"],
            Kind::Path => ["/a", "/b", "/c"],
            Kind::Prefix => ["s3://audit/a/", "file:///b", "s3://audit/"],
            Kind::Count { .. } => ["7", "8", "9"],
            Kind::Bytes { .. } => ["20000000", "20000001", "20000002"],
            Kind::Seconds { .. } => ["1.5", "2", "3"],
            // Within what the defaults of the other classes allow.
            Kind::Days { .. } if row.key == "retention_audit_days" => ["90.5", "91", "92"],
            Kind::Days { .. } => ["30.5", "31", "32"],
            Kind::Switch => ["true", "false", "true"],
            Kind::Word(words) => [words[0], words[1], words[0]],
            Kind::Words(_) => ["tabs", "tabs,waits", "waits"],
            Kind::Blocklist => ["a.example", "*.a.example,b.example:81", "https://a.example/x/*"],
            Kind::Durability { .. } => ["interval=1", "interval=60000", "commit"],
        };
        std::fs::write(&path, format!("{} = \"{low}\"\n", row.key)).expect("the file is written");
        let file = path.display();
        let with = |words: &str, variables: &[(&str, &str)]| {
            let config = served(words, &surroundings(variables));
            config.shown.into_iter().find(|shown| shown.key == row.key).expect("every option is shown")
        };
        let said = |value: &str, source: String| Shown { key: row.key, value: Some(value.to_owned()), source };
        let named = format!("--config {file}");
        assert_eq!(with(&named, &[]), said(low, format!("file {file}")));
        assert_eq!(with(&named, &[(row.variable, middle)]), said(middle, format!("environment {}", row.variable)));
        let flag = format!("{named} --{}={high}", row.flag);
        assert_eq!(with(&flag, &[(row.variable, middle)]), said(high, format!("flag --{}", row.flag)));
    }
}

#[test]
fn every_problem_is_named_with_its_source() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("config.toml");
    std::fs::write(&path, "lane_depth = 0\nno_such_key = 1\nheadless = [1]\n").expect("the file is written");
    let environment = surroundings(&[
        ("BROWSER_MCP_CONFIG", &path.display().to_string()),
        ("BROWSER_MCP_MAX_RESULT_BYTES", "4095"),
        ("BROWSER_MCP_PORT", "8931"),
    ]);
    let problems = problems("--http nowhere --log-level loud", &environment).join("\n");
    for named in [
        "lane_depth must be",
        "no_such_key",
        "headless must be one value",
        "BROWSER_MCP_MAX_RESULT_BYTES: max_result_bytes must be",
        "BROWSER_MCP_PORT: there is no such option: use BROWSER_MCP_HTTP",
        "--http: http must be",
        "--log-level: log_level must be one of",
    ] {
        assert!(problems.contains(named), "{named} is missing from:\n{problems}");
    }
    assert_eq!(problems.lines().count(), 7, "{problems}");
}

#[test]
fn options_that_contradict_each_other_or_open_the_door_are_refused() {
    let nothing = surroundings(&[]);
    assert!(problems("--http 0.0.0.0:8931", &nothing)[0].contains("loopback"));
    assert!(problems("--http 127.0.0.1:1 --metrics 127.0.0.1:1", &nothing)[0].contains("metrics"));
    assert!(problems("--body-bytes-max 100MiB --artifact-quota-bytes 16MiB", &nothing)[0].contains("body_bytes_max"));
    let inverted = problems("--retention-telemetry-days 0 --retention-audit-days 1", &nothing);
    assert_eq!(inverted.len(), 2, "{inverted:?}");
    assert!(inverted[0].contains("retention_telemetry_days must not be longer than retention_evidence_days"));
    assert!(inverted[1].contains("retention_evidence_days must not be longer than retention_audit_days"));
    assert!(problems("--disk-refuse-percent 20", &nothing)[0].contains("disk_warn_percent"));
    assert!(problems("--disk-read-only-percent 11", &nothing)[0].contains("disk_refuse_percent"));
    served("--disk-warn-percent 0 --disk-refuse-percent 20", &nothing);
    assert!(problems("--no-such-flag", &nothing)[0].contains("--no-such-flag"));
    assert!(problems("--config /no/such/file", &nothing)[0].contains("/no/such/file"));
}

#[test]
fn values_are_read_in_the_forms_people_write() {
    let environment = surroundings(&[("BROWSER_MCP_LOG_LEVEL", "DEBUG"), ("BROWSER_MCP_HEADLESS", "off")]);
    let config = served("--no-chromium-sandbox --max-result-bytes 2MiB --idle-ttl-seconds 90", &environment);
    assert_eq!((config.log_level, config.headless, config.chromium_sandbox), (LogLevel::Debug, false, false));
    assert_eq!((config.max_result_bytes, config.idle_ttl), (2 << 20, Some(Duration::from_secs(90))));
    let kept = served("--retention-telemetry-days 0.5 --retention-audit-days 0", &environment).retention;
    assert_eq!((kept.telemetry, kept.audit), (Some(Duration::from_secs(43_200)), None));
    assert_eq!(served("--log-quota-bytes 0", &environment).retention.log_bytes_max, None);
    for wrong in ["-1", "36501", "NaN", "inf", "1e300"] {
        assert!(problems(&format!("--retention-audit-days={wrong}"), &environment)[0].contains("days"), "{wrong}");
    }
    assert!(problems("--operation-timeout-seconds NaN", &environment)[0].contains("above 0"));
    assert!(problems("--operation-timeout-seconds 0", &environment)[0].contains("above 0"));
    assert_eq!(served("--durability Interval=250", &environment).durability, Durability::Interval { millis: 250 });
    for wrong in ["interval=0", "interval=60001", "interval=", "interval=1s", "never"] {
        assert!(problems(&format!("--durability {wrong}"), &environment)[0].contains("milliseconds"), "{wrong}");
    }
    assert!(problems("--max-result-bytes 99999999999GiB", &environment)[0].contains("bytes"));
}

#[test]
fn paths_in_a_file_start_where_the_file_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("config.toml");
    std::fs::write(&path, "data_dir = \"books\"\n").expect("the file is written");
    let config = served(&format!("--config {}", path.display()), &surroundings(&[]));
    assert_eq!(config.data_dir, directory.path().join("books"));
}

#[test]
fn commands_are_told_apart() {
    let nothing = surroundings(&[]);
    assert!(matches!(asked("serve --headless=false", &nothing), Ok(Command::Serve(config)) if !config.headless));
    assert!(matches!(asked("config", &nothing), Ok(Command::ShowConfig { json: false, .. })));
    assert!(matches!(asked("config show --json", &nothing), Ok(Command::ShowConfig { json: true, .. })));
    assert!(matches!(asked("doctor", &nothing), Ok(Command::Doctor(_))));
    assert!(matches!(asked("--version", &nothing), Ok(Command::Print(text)) if text.starts_with("pageledger ")));
    match asked("export --data-dir /d --session s1 --format ndjson --out /f", &nothing) {
        Ok(Command::Export(order)) => {
            assert_eq!(
                (order.config.data_dir.as_path(), order.scope),
                (Path::new("/d"), ExportScope::Session("s1".into()))
            );
            assert_eq!((order.format, order.json), (exporters::Format::Ndjson, false));
            assert_eq!(order.out, exporters::Address::File("/f".into()));
        }
        other => panic!("{other:?}"),
    }
    match asked("tail --kind console.message --kind gap --follow", &nothing) {
        Ok(Command::Tail(order)) => {
            let kinds = order.filter.filter().kinds.as_deref();
            assert_eq!(kinds, Some(&[storage::event::Kind::ConsoleMessage, storage::event::Kind::Gap][..]));
            assert!(order.follow && order.session.is_none());
        }
        other => panic!("{other:?}"),
    }
    match asked("erase /d --owner ann --reason asked", &nothing) {
        Ok(Command::Erase(order)) => {
            assert_eq!((order.config.data_dir.as_path(), order.reason.as_str()), (Path::new("/d"), "asked"));
            assert_eq!(order.subject, storage::upkeep::Subject::Owner("ann".into()));
        }
        other => panic!("{other:?}"),
    }
    assert!(problems("erase --owner ann", &nothing)[0].contains("--reason"));
    assert!(problems("erase --reason x", &nothing)[0].contains("--session"));
    assert!(problems("erase --owner ann --session s --reason x", &nothing)[0].contains("cannot be used with"));
    assert!(problems("erase /d --data-dir /e --owner ann --reason x", &nothing)[0].contains("cannot be used with"));
    assert!(problems("tail --kind no.such", &nothing)[0].contains("no.such"));
    assert!(problems("export --session s1", &nothing)[0].contains("--out"));
    assert!(problems("export --session s1 --owner ann --out /f", &nothing)[0].contains("cannot be used with"));
    let wrong = "export --kind no.such --since noon --url-filter ( --first-seq 9 --last-seq 8 --out s3://Bucket/x";
    for named in ["no.such", "--since", "--url-filter", "--first-seq", "--out"] {
        assert!(problems(wrong, &nothing).iter().any(|problem| problem.contains(named)), "{named}");
    }
    assert!(problems("tail --http 127.0.0.1:1", &nothing)[0].contains("--http"));
}

#[test]
fn help_and_readme_name_every_option() {
    let Ok(Command::Print(help)) = asked("--help", &surroundings(&[])) else { panic!("help is printed") };
    let markdown = options_markdown();
    for row in OPTIONS {
        assert!(help.contains(&format!("--{}", row.flag)), "{}", row.flag);
        assert!(markdown.contains(row.variable), "{}", row.variable);
    }
    let Ok(Command::Print(help)) = asked("tail --help", &surroundings(&[])) else { panic!("help is printed") };
    assert!(OPTIONS.iter().all(|row| help.contains(&format!("--{} ", row.flag)) == (row.reach == Reach::Every)));
}
