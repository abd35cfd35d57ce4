//! The tool contract is frozen and additive: names, order, titles, annotations, parameters, defaults,
//! enums and bounds are those of `tests/fixtures/contract/tools.json`; ours may only come on top.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Options, Server, reply};

/// Tools of the contract that must be there by now.
const CONTRACT_TOOLS_MIN: usize = 43;

fn contract() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/contract/tools.json");
    let text = std::fs::read_to_string(path).expect("the fixture");
    let mut whole: Value = serde_json::from_str(&text).expect("it is JSON");
    serde_json::from_value(whole["tools"].take()).expect("a list of tools")
}

/// The types a schema admits.
fn types(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for key in ["anyOf", "oneOf"] {
        for alternative in schema[key].as_array().into_iter().flatten() {
            found.extend(types(alternative));
        }
    }
    if schema["const"].is_boolean() {
        found.insert("boolean".to_owned());
    }
    match &schema["type"] {
        Value::String(name) => drop(found.insert(name.clone())),
        Value::Array(names) => found.extend(names.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => {}
    }
    found
}

/// The first value of `key` in a schema or its alternatives.
fn flat<'a>(schema: &'a Value, key: &str) -> &'a Value {
    if !schema[key].is_null() {
        return &schema[key];
    }
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    alternatives.map(|alternative| flat(alternative, key)).find(|value| !value.is_null()).unwrap_or(&Value::Null)
}

fn wanted_types(text: &str) -> BTreeSet<String> {
    if text.starts_with("array of") || text.ends_with("[]") {
        return BTreeSet::from(["array".to_owned()]);
    }
    if text.starts_with("one of") {
        return BTreeSet::from(["string".to_owned()]);
    }
    text.split(" or ").map(|word| word.trim().to_owned()).filter(|word| word != "null").collect()
}

fn check_parameter(wanted: &Value, schema: &Value, problems: &mut Vec<String>) {
    let text = wanted["type"].as_str().unwrap_or_default();
    let (have, want) = (types(schema), wanted_types(text));
    let whole_for_number = want.contains("number") && have.iter().all(|have| have == "integer");
    if !want.contains("any") && have != want && !whole_for_number {
        problems.push(format!("types {have:?} instead of {want:?}"));
    }
    if let Some((_, choices)) = text.split_once("one of ") {
        let choices: Vec<&str> = choices.split(',').map(str::trim).collect();
        let holder = if text.starts_with("array") { flat(schema, "items") } else { schema };
        if *flat(holder, "enum") != json!(choices) {
            problems.push(format!("choices {} instead of {choices:?}", flat(holder, "enum")));
        }
    }
    for rule in wanted["notes"].as_str().unwrap_or_default().split("; ") {
        let number = |rule: &str| rule[3..].trim().parse::<u64>().ok();
        let (key, value) = match rule {
            rule if rule.starts_with('\u{2265}') => ("minimum", json!(number(rule))),
            rule if rule.starts_with('\u{2264}') => ("maximum", json!(number(rule))),
            "min length 1" => ("minLength", json!(1)),
            "at least 1 item" => ("minItems", json!(1)),
            rule if rule.starts_with("pattern ") => ("pattern", json!(rule[8..])),
            _ => continue,
        };
        if *flat(schema, key) != value {
            problems.push(format!("{key} {} instead of {value}", flat(schema, key)));
        }
    }
}

fn check_tool(wanted: &Value, have: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if have["title"] != wanted["title"] {
        problems.push(format!("title {}", have["title"]));
    }
    if have["description"].as_str().is_none_or(str::is_empty) {
        problems.push("no description".to_owned());
    }
    for (hint, value) in wanted["annotations"].as_object().expect("annotations") {
        if have["annotations"][hint] != *value {
            problems.push(format!("{hint} {}", have["annotations"][hint]));
        }
    }
    let schema = &have["inputSchema"];
    let required = |name: &Value| schema["required"].as_array().is_some_and(|names| names.contains(name));
    let known = wanted["parameters"].as_array().expect("parameters");
    for parameter in known {
        let name = &parameter["name"];
        let property = &schema["properties"][name.as_str().unwrap_or_default()];
        let mut own = Vec::new();
        if property.is_null() {
            own.push("missing".to_owned());
        } else {
            check_parameter(parameter, property, &mut own);
            if json!(required(name)) != parameter["required"] {
                own.push("required".to_owned());
            }
            // What launching defaults to is the operator's, not the contract's.
            if parameter.get("default").is_some_and(|default| property["default"] != *default)
                && wanted["name"] != "launch_session"
            {
                own.push(format!("default {}", property["default"]));
            }
        }
        problems.extend(own.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if known.iter().all(|parameter| parameter["name"] != *name) {
            problems.push(format!("{name} is an addition and required"));
        }
    }
    problems.extend(check_result(wanted, &have["outputSchema"]["properties"]["data"]));
    problems
}

/// The contract's result fields stand in the published schema, each of its type.
fn check_result(wanted: &Value, data: &Value) -> Vec<String> {
    let object = if wanted["result_is_array"] == true { &data["items"] } else { data };
    let mut problems = Vec::new();
    let is = if wanted["result_is_array"] == true { "array" } else { "object" };
    if data["type"] != is || object["type"] != "object" {
        problems.push(format!("the result is no {is}: {data}"));
    }
    for field in wanted["result"].as_array().expect("a result") {
        let name = field["name"].as_str().expect("a name");
        let schema = &object["properties"][name];
        let text = field["type"].as_str().expect("a type");
        let mut want = if text == "true" { BTreeSet::from(["boolean".to_owned()]) } else { wanted_types(text) };
        if text.ends_with("or null") {
            want.insert("null".to_owned());
        }
        let have = types(schema);
        // A whole number is a number, and more exact.
        let same = |have: &String| want.contains(have) || (have == "integer" && want.contains("number"));
        let fits = want.contains("any") || (have.iter().all(same) && have.len() == want.len());
        if schema.is_null() || !fits {
            problems.push(format!("result {name}: {have:?} instead of {want:?}"));
        }
        let tool = reply::tool(wanted["name"].as_str().expect("a name"));
        let own = tool.facts.returns.fields().iter().find(|own| own.name == name);
        if own.is_some_and(|own| own.always != (field["always"] == true)) {
            problems.push(format!("result {name}: always {}", field["always"]));
        }
    }
    problems
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_keeps_the_contract() {
    let server = Server::start(Options::stdio()).await;
    let tools: Vec<Value> =
        server.client().tools().await.iter().map(|tool| serde_json::to_value(tool).expect("JSON")).collect();
    let contract = contract();
    let find = |name: &Value| tools.iter().find(|tool| tool["name"] == *name);
    let present: Vec<&Value> = contract.iter().filter(|wanted| find(&wanted["name"]).is_some()).collect();
    assert!(present.len() >= CONTRACT_TOOLS_MIN, "only {} of the contract's tools are there", present.len());
    for wanted in &present {
        let have = find(&wanted["name"]).expect("it is present");
        assert_eq!(check_tool(wanted, have), Vec::<String>::new(), "{}", wanted["name"]);
    }
    let names: Vec<&Value> = present.iter().map(|wanted| &wanted["name"]).collect();
    let listed: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).filter(|name| names.contains(name)).collect();
    assert_eq!(listed, names, "the order is the contract's");
    assert_eq!(
        tools[..names.len()].iter().map(|tool| &tool["name"]).collect::<Vec<_>>(),
        names,
        "and stands at the beginning"
    );
    for name in ["browser_create_instance", "browser_destroy_instance", "browser_list_instances", "browser_health"] {
        assert!(find(&json!(name)).is_some(), "{name}");
    }
    for tool in &tools {
        for key in ["anyOf", "oneOf", "allOf", "$ref"] {
            assert!(tool["inputSchema"].get(key).is_none(), "{}: {key} at the root of its schema", tool["name"]);
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{}", tool["name"]);
        // Replies of all tests are checked against this very schema.
        let facts = &reply::tool(tool["name"].as_str().expect("a name")).facts;
        assert_eq!(tool["outputSchema"], Value::Object(facts.returns.schema()), "{}", tool["name"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_all_named() {
    let server = Server::start(Options::stdio()).await;
    let wrong = json!({"selektor": "#a", "button": "middel", "click_count": 9, "position": {"x": 1, "z": 2}, "timeout": "soon"});
    let reply = server.fault("click", wrong, "INVALID_ARGUMENTS").await;
    let problems = reply["details"]["problems"].as_array().expect("problems");
    let fields: BTreeSet<&str> = problems.iter().filter_map(|problem| problem["field"].as_str()).collect();
    let wanted = ["button", "click_count", "position.y", "position.z", "selector", "selektor", "session_id", "timeout"];
    assert_eq!(fields, BTreeSet::from(wanted));
    let unknown = problems.iter().find(|problem| problem["field"] == "selektor").expect("the unknown argument");
    assert!(unknown["problem"].as_str().is_some_and(|text| text.contains("session_id, selector")), "{unknown}");
    assert_eq!(reply["operation"]["outcome"], "not_started");
    // An explicit null is as good as nothing, and whole numbers may come as floats.
    server
        .fault(
            "click",
            json!({"session_id": "none-such", "selector": "#a", "tab_id": null, "click_count": 2.0}),
            "SESSION_NOT_FOUND",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    let server = Server::start(Options::stdio()).await;
    let error = server.begin("clik", json!({})).await.result().await.expect_err("there is no such tool");
    assert!(error.to_string().contains("tools/list"), "{error}");
    // The connection serves on.
    server.ok("server_status", json!({})).await;
}

/// Something that fits a parameter.
fn example(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([example(&schema["items"])]),
        Some("object") => {
            let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            names
                .map(|name| (name.to_owned(), example(&schema["properties"][name])))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        _ => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("x")),
    }
}

/// Every tool that takes a session says the same of one that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_session_is_the_same_everywhere() {
    let server = Server::start(Options::stdio()).await;
    let mut checked = 0;
    for tool in server.client().tools().await {
        let properties = tool.input_schema["properties"].as_object().cloned().unwrap_or_default();
        if !properties.contains_key("session_id") || tool.name == "close_session" {
            continue;
        }
        let required = tool.input_schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut arguments = serde_json::Map::new();
        for name in required.iter().filter_map(Value::as_str) {
            arguments.insert(name.to_owned(), example(&properties[name]));
        }
        arguments.insert("session_id".into(), example(&properties["session_id"]));
        // These have nobody at their other end here, which comes first.
        let other_end = [
            ("request_attention", "ATTENTION_REQUIRES_HTTP"),
            ("vault_list_available", "VAULT_NOT_CONFIGURED"),
            ("vault_fill", "VAULT_NOT_CONFIGURED"),
        ];
        if let Some((_, code)) = other_end.iter().find(|(name, _)| tool.name == *name) {
            server.fault(&tool.name, Value::Object(arguments), code).await;
            continue;
        }
        let reply = server.fault(&tool.name, Value::Object(arguments), "SESSION_NOT_FOUND").await;
        assert_eq!(reply["details"]["session_id"], "x", "{}", tool.name);
        checked += 1;
    }
    assert!(checked >= 25, "{checked} tools take a session");
    let closed = server.ok("close_session", json!({"session_id": "x"})).await;
    assert_eq!(closed, json!({"session_id": "x", "closed": false}));
}
