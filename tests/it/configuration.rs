//! Options come from one table; what does not hold stops the start, with every problem named.

use pageledger::config::OPTIONS;

use crate::support::{DataDir, program};

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_value_is_named_at_once() {
    let line = ["serve", "--max-result-bytes", "12", "--log-level", "loud", "--http", "nowhere"].map(str::to_owned);
    let environment = [("BROWSER_MCP_MAX_INSTANCES", "0"), ("BROWSER_MCP_NO_CHROMIUM_SANDBOX", "perhaps")];
    let refused = program::run_with(&line, &environment).await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(64), "{said}");
    for name in
        ["max-result-bytes", "log-level", "http", "BROWSER_MCP_MAX_INSTANCES", "BROWSER_MCP_NO_CHROMIUM_SANDBOX"]
    {
        assert!(said.contains(name), "{name} is not named: {said}");
    }
    let unknown = program::run(&["serve", "--nonsense"]).await;
    assert_eq!(unknown.status.code(), Some(64));
    assert!(unknown.stdout.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_is_shown_with_its_source() {
    let data = DataDir::fresh();
    let directory = data.path().display().to_string();
    let line = ["config", "show", "--data-dir", &directory, "--lane-depth", "7"].map(str::to_owned);
    let shown = program::run_with(&line, &[("BROWSER_MCP_LANE_DEPTH", "9"), ("BROWSER_MCP_MAX_INSTANCES", "3")]).await;
    let text = String::from_utf8(shown.stdout).expect("UTF-8");
    assert!(shown.status.success(), "{text}");
    let line_of = |key: &str| {
        text.lines().find(|line| line.contains(key)).unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
    };
    assert!(line_of("lane_depth").contains('7') && line_of("lane_depth").contains("flag"), "{}", line_of("lane_depth"));
    assert!(
        line_of("max_instances").contains('3') && line_of("max_instances").contains("env"),
        "{}",
        line_of("max_instances")
    );
    assert!(line_of("log_format").contains("default"), "{}", line_of("log_format"));
    assert_eq!(std::fs::read_dir(data.path()).expect("the directory").count(), 0, "showing writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn help_knows_every_option() {
    let help = program::run(&["serve", "--help"]).await;
    let text = String::from_utf8(help.stdout).expect("UTF-8");
    assert!(help.status.success());
    assert!(!OPTIONS.is_empty());
    for option in OPTIONS {
        assert!(text.contains(&format!("--{}", option.flag)), "--{} is not in the help", option.flag);
    }
    let version = program::run(&["--version"]).await;
    assert!(String::from_utf8_lossy(&version.stdout).contains(env!("CARGO_PKG_VERSION")));
}
