//! Promises about metrics: what an event moves, that series stay bounded, that dashboards and alerts
//! speak only of what exists.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::Value;
use storage::event::Symbol;

use crate::metrics::labels::LabelName;
use crate::metrics::{Gauge, Labels, MetricFacts, Metrics, Shape, Total, catalog};
use crate::sample::{Samples, console, context, gap, hostile, request, response, settled};

const TOOLS: [&str; 2] = ["click", "navigate"];
const CODES: [&str; 2] = ["ELEMENT_NOT_FOUND", "WAIT_TIMEOUT"];

fn metrics() -> Metrics {
    Metrics::new(Labels::new(&TOOLS, &CODES))
}

fn observed(samples: &Samples) -> String {
    let metrics = metrics();
    samples.views().iter().for_each(|view| metrics.observe(view));
    metrics.render()
}

/// Lines that carry a value.
fn series(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
}

#[test]
fn events_move_their_metrics() {
    let text = observed(&hostile());
    assert_line(&text, r#"pageledger_events_total{kind="console.message"} 2"#);
    assert_line(&text, r#"pageledger_events_total{kind="other"} 1"#);
    assert_line(&text, r#"pageledger_console_messages_total{level="warning"} 1"#);
    assert_line(&text, r#"pageledger_console_messages_total{level="other"} 1"#);
    assert_line(&text, r#"pageledger_network_requests_total{resource_type="fetch"} 1"#);
    assert_line(&text, r#"pageledger_network_responses_total{status_class="4xx"} 1"#);
    assert_line(&text, "pageledger_network_bytes_total 7");
    assert_line(&text, "pageledger_pages_crashed_total 1");
    assert_line(&text, r#"pageledger_gaps_total{reason="queue_full"} 1"#);
    assert_line(&text, r#"pageledger_lost_events_total{reason="queue_full"} 12"#);
    assert_line(&text, r#"pageledger_calls_total{tool="click",outcome="not_started",code="element_not_found"} 1"#);
    assert_line(&text, r#"pageledger_call_duration_seconds_sum{tool="click"} 0.0125"#);
    assert_line(&text, r#"pageledger_call_duration_seconds_bucket{tool="click",le="0.01"} 0"#);
    assert_line(&text, r#"pageledger_call_duration_seconds_bucket{tool="click",le="0.025"} 1"#);
    // Not-a-number is no observation.
    assert_line(&text, "pageledger_network_request_duration_seconds_count 0");
}

#[test]
fn values_set_by_the_program_are_shown_and_totals_only_rise() {
    let metrics = metrics();
    metrics.set(Gauge::SessionsLive, 3.0);
    metrics.set(Gauge::SessionsLive, 2.0);
    metrics.set_total(Total::LogFsync, 1.5);
    metrics.set_total(Total::LogFsync, 0.25);
    metrics.set_total(Total::LogFsync, f64::NAN);
    let text = metrics.render();
    assert_line(&text, "pageledger_sessions_live 2");
    assert_line(&text, "pageledger_log_fsync_seconds_total 1.5");
    assert_line(&text, "# TYPE pageledger_log_fsync_seconds_total counter");
    assert_line(&text, &format!("pageledger_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")));
}

#[test]
fn two_sets_of_metrics_do_not_mix() {
    let (one, other) = (metrics(), metrics());
    one.set(Gauge::SessionsLive, 3.0);
    assert_line(&other.render(), "pageledger_sessions_live 0");
}

#[test]
fn every_metric_of_the_catalogue_is_there_before_the_first_event() {
    let text = metrics().render();
    for facts in catalog() {
        let shape = match facts.shape {
            Shape::Counter | Shape::Total => "counter",
            Shape::Gauge => "gauge",
            Shape::Histogram => "histogram",
        };
        assert_line(&text, &format!("# TYPE {} {shape}", facts.name));
        assert_line(&text, &format!("# HELP {} {}", facts.name, facts.help));
    }
    assert_line(&text, r#"pageledger_gaps_total{reason="queue_full"} 0"#);
    assert_line(&text, r#"pageledger_exports_total{format="parquet",result="failed"} 0"#);
}

#[test]
fn hostile_names_cannot_add_series() {
    let metrics = metrics();
    let mut samples = Samples::default();
    let mut observe = |number: u64| {
        let name = format!("tool_{number}");
        samples = Samples::default();
        samples.push(&context(number), &settled(&name, Some(&name), 1.0));
        samples.push(&context(number), &gap(1, &name));
        let mut sent = request(number);
        sent.resource_type = Symbol::fold(&name);
        let mut answered = response(number);
        answered.status = number * 37;
        samples.push(&context(number), &sent).push(&context(number), &answered);
        samples.push(&context(number), &console(&name));
        // A kind that no build knows.
        let kind = 100 + (number % 28) as u8;
        samples.push_body(&[kind, 1]);
        samples.views().iter().for_each(|view| metrics.observe(view));
    };
    (0..50).for_each(&mut observe);
    let before = series(&metrics.render()).len();
    (50..1_000).for_each(&mut observe);
    let text = metrics.render();
    assert_eq!(series(&text).len(), before, "new names made new series");
    assert!(!text.contains("tool_"), "a hostile name is shown");
    assert_line(&text, r#"pageledger_calls_total{tool="other",outcome="not_started",code="other"} 1000"#);
    assert_line(&text, r#"pageledger_events_total{kind="other"} 1000"#);
}

#[test]
fn catalogue_follows_its_own_rules() {
    let mut names = HashSet::new();
    for facts in catalog() {
        assert!(names.insert(facts.name), "{} appears twice", facts.name);
        let known = ["process_start_time_seconds", "process_resident_memory_bytes"];
        assert!(facts.name.starts_with("pageledger_") || known.contains(&facts.name), "{}", facts.name);
        let rises = matches!(facts.shape, Shape::Counter | Shape::Total);
        assert_eq!(facts.name.ends_with("_total"), rises, "{}", facts.name);
        let unit = facts.name.trim_end_matches("_total");
        match facts.unit {
            super::catalog::Unit::Seconds => assert!(unit.ends_with("_seconds"), "{}", facts.name),
            super::catalog::Unit::Bytes => assert!(unit.ends_with("_bytes"), "{}", facts.name),
            _ => assert!(!unit.ends_with("_seconds") && !unit.ends_with("_bytes"), "{}", facts.name),
        }
        assert!(facts.help.ends_with('.') && !facts.help.contains('\n'), "{}", facts.name);
        let labels: HashSet<_> = facts.labels.iter().map(|label| label.as_str()).collect();
        assert_eq!(labels.len(), facts.labels.len(), "{} repeats a label", facts.name);
    }
}

/// Metric and label names that an expression uses.
#[derive(Default, Debug)]
struct Used {
    metrics: Vec<String>,
    /// Label, comparison, value.
    matchers: Vec<(String, String, String)>,
    grouped: Vec<String>,
}

/// Reads the little of PromQL that our expressions use: names, `{label="value"}`, `by (label)`.
fn used(expression: &str) -> Used {
    let mut used = Used::default();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| word(c) || c == '{') {
        rest = &rest[start..];
        if let Some(inside) = rest.strip_prefix('{') {
            let (matchers, after) = inside.split_once('}').expect("a closing brace");
            for matcher in matchers.split(", ").filter(|matcher| !matcher.is_empty()) {
                let (label, value) = matcher.split_once('"').expect("a quoted value");
                let name = label.trim_end_matches(['=', '!', '~']);
                let value = value.trim_end_matches('"');
                used.matchers.push((name.to_owned(), label[name.len()..].to_owned(), value.to_owned()));
            }
            rest = after;
            continue;
        }
        let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        rest = after;
        if name == "by" {
            let inside = after.trim_start().strip_prefix('(').expect("a list after by");
            let (labels, after) = inside.split_once(')').expect("a closing parenthesis");
            used.grouped.extend(labels.split(',').map(|label| label.trim().to_owned()));
            rest = after;
        } else if name.starts_with("pageledger_") || name.starts_with("process_") {
            used.metrics.push(name.to_owned());
        }
    }
    used
}

fn facts_of(name: &str) -> Option<&'static MetricFacts> {
    catalog().find(|facts| match facts.shape {
        Shape::Histogram => ["_bucket", "_sum", "_count"].iter().any(|end| name.strip_suffix(end) == Some(facts.name)),
        _ => facts.name == name,
    })
}

#[track_caller]
fn assert_known(expression: &str) {
    const OF_THE_SCRAPE: [&str; 3] = ["job", "instance", "le"];
    let used = used(expression);
    assert!(!used.metrics.is_empty(), "{expression} uses no metric");
    let mut labels: HashMap<&str, LabelName> = HashMap::new();
    for name in &used.metrics {
        let facts = facts_of(name).unwrap_or_else(|| panic!("{name} of {expression} is in no catalogue"));
        labels.extend(facts.labels.iter().map(|label| (label.as_str(), *label)));
    }
    for label in used.grouped.iter().chain(used.matchers.iter().map(|(label, _, _)| label)) {
        let known = OF_THE_SCRAPE.contains(&label.as_str()) || labels.contains_key(label.as_str());
        assert!(known, "{label} of {expression} is no label of its metrics");
    }
    let sets = Labels::new(&TOOLS, &CODES);
    for (label, compared, value) in &used.matchers {
        if let (Some(name), "=" | "!=") = (labels.get(label.as_str()), compared.as_str()) {
            let set = sets.set(*name);
            assert_eq!(set.value(set.position(value)), value, "{label} of {expression} never has that value");
        }
    }
}

fn dashboard_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards").join(name);
    std::fs::read_to_string(path).expect("the file is in the repository")
}

#[test]
fn dashboards_show_only_what_exists() {
    let dashboard: Value = serde_json::from_str(&dashboard_file("operations.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = HashSet::new();
    let mut expressions = 0;
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{} repeats an id", panel["title"]);
        assert!(!panel["title"].as_str().unwrap_or_default().is_empty(), "a panel without a title");
        if panel["type"] == "row" {
            continue;
        }
        let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or_default();
        assert!(!unit.is_empty(), "{} has no unit", panel["title"]);
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{} shows nothing", panel["title"]);
        for target in targets {
            assert_known(target["expr"].as_str().expect("an expression"));
            expressions += 1;
        }
    }
    assert!(expressions > 20, "only {expressions} expressions were found");
}

#[test]
fn alerts_watch_only_what_exists() {
    let text = dashboard_file("alerts.yml");
    let mut names = HashSet::new();
    // Each rule is a list item that begins with its name.
    for rule in text.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap_or_default();
        assert!(names.insert(name), "{name} appears twice");
        for part in ["severity: ", "summary: ", "description: "] {
            assert!(rule.contains(part), "{name} has no {part}");
        }
        let (_, rest) = rule.split_once("expr: ").expect("an expression");
        let end = rest.find("\n        for:").or_else(|| rest.find("\n        labels:")).expect("labels");
        let expression = rest[..end].trim_start_matches(">-").trim();
        if name != "PageledgerDown" {
            assert_known(expression);
        }
    }
    assert!(names.len() >= 8, "only {} rules were found", names.len());
}
