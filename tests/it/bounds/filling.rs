//! In each form a page uses the room there is, measured on the wire, and a walk misses nothing.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::site::Site;
use crate::support::client::Client;
use crate::support::{Options, Server};

/// What is hard to write as JSON, as lines, or both: controls, quotes, backslashes, halves of pairs.
const HARD: &str = r#"'\u0001\n"\\\u{1f600}\u00e9\u202e\ud800 '"#;
const FILLED_PERCENT_MIN: usize = 60;
/// The most items that a page may have.
const LIMIT: usize = 500;
/// What a reply keeps free for longer request ids and the frames of HTTP.
const SPARE_BYTES: usize = 400;

/// One reply in either form.
struct Page {
    text: String,
    data: Value,
}

impl Page {
    fn new(result: CallToolResult) -> Self {
        assert_ne!(result.is_error, Some(true), "{:?}", result.content);
        let text = result.content.iter().find_map(ContentBlock::as_text).map(|text| text.text.clone());
        let data = result.structured_content.map_or(Value::Null, |mut envelope| envelope["data"].take());
        Self { text: text.expect("a text"), data }
    }

    /// A member that is one word or number.
    fn fact(&self, key: &str) -> String {
        match &self.data[key] {
            Value::Null => {
                let begins = format!("{key}: ");
                let line = self.text.lines().find_map(|line| line.strip_prefix(&begins));
                line.unwrap_or_else(|| panic!("no {key}: {}", self.text)).to_owned()
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The one long text.
    fn long(&self, key: &str) -> String {
        if let Some(text) = self.data[key].as_str() {
            return text.to_owned();
        }
        if let Some((head, text)) = self.text.split_once(" bytes to the end:\n") {
            assert!(head.ends_with(&format!("\n{key}, {}", text.len())), "{head}");
            return text.to_owned();
        }
        let line = self.fact(key);
        let unescaped = serde_json::from_str(&format!("\"{}\"", line.replace('"', "\\\"")));
        serde_json::from_str(&line).or(unescaped).expect("a text on one line")
    }

    /// The numbers of a list's items.
    fn numbers(&self, key: &str) -> Vec<u64> {
        let digits = |word: &str| {
            let last = word.rsplit('-').next().unwrap_or_default();
            last.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
        };
        if let Some(items) = self.data[key].as_array() {
            let number = |item: &Value| match key {
                "requests" => item["request_id"].as_str().and_then(digits),
                _ => item["seq"].as_u64(),
            };
            return items.iter().map(|item| number(item).expect("a number")).collect();
        }
        let begins = format!(" {key}");
        let lines = self.text.lines().skip_while(|line| {
            !line.split_once(&begins).is_some_and(|(count, _)| count.bytes().all(|byte| byte.is_ascii_digit()))
        });
        let items = lines.skip(1).filter(|line| !line.starts_with("--"));
        items.map(|line| digits(line.split(' ').next().unwrap_or_default()).expect("a number")).collect()
    }
}

/// A client whose replies have a bound.
struct Bounded<'a> {
    clients: Vec<&'a Client>,
    bytes_max: usize,
    asked: usize,
}

impl Bounded<'_> {
    /// The next page, by the clients in turn. One that has more to give is well filled, or the next item is
    /// one that had no place in it and has one in a page of its own.
    async fn page(&mut self, tool: &str, arguments: &Value) -> Page {
        let client = self.clients[self.asked % self.clients.len()];
        self.asked += 1;
        let (result, wire_bytes) = client.ask(tool, arguments.clone()).await;
        let page = Page::new(result);
        assert!(wire_bytes <= self.bytes_max, "{tool}: {wire_bytes} bytes of {}", self.bytes_max);
        let has_more = tool != "evaluate" && page.fact("has_more") == "true";
        let filled = wire_bytes * 100 >= self.bytes_max * FILLED_PERCENT_MIN;
        // HTTP is not measured.
        let key = [("messages", "console"), ("requests", "requests"), ("events", "events")];
        let key = key.iter().find(|(_, name)| tool.starts_with("list_") && tool.contains(name)).map(|(key, _)| *key);
        let is_at_limit = key.is_some_and(|key| page.numbers(key).len() == self.limit(key));
        if has_more && !filled && !is_at_limit && wire_bytes > 0 {
            assert!(tool.starts_with("list_"), "{tool}: {wire_bytes} of {}", self.bytes_max);
            let mut next = arguments.clone();
            (next["after"], next["limit"]) = (page.fact("next_cursor").into(), 1.into());
            let (single, single_bytes) = client.ask(tool, next.clone()).await;
            next["operation_id"] = "none".into();
            next["after"] = "".into();
            let empty_bytes = client.ask(tool, next).await.1;
            let needed = wire_bytes + single_bytes - empty_bytes;
            assert!(needed + SPARE_BYTES > self.bytes_max, "{tool}: {needed} of {}", self.bytes_max);
            let text = Page::new(single).text;
            let cut = text.contains("\"truncated\":true") || text.contains(" truncated=true");
            assert!(!cut, "{tool}: {wire_bytes} bytes, and cut all the same: {text}");
        }
        page
    }

    /// Events are long: hundreds of them are read in vain where only few have room.
    fn limit(&self, key: &str) -> usize {
        if key == "events" && self.bytes_max < 10_000 { 30 } else { LIMIT }
    }

    async fn list(&mut self, tool: &str, key: &str, session_id: &str, kinds: Value) -> Vec<u64> {
        let mut arguments = json!({"session_id": session_id, "limit": self.limit(key)});
        if !kinds.is_null() {
            arguments["kinds"] = kinds;
        }
        let mut numbers = Vec::new();
        loop {
            let page = self.page(tool, &arguments).await;
            numbers.extend(page.numbers(key));
            arguments["after"] = page.fact("next_cursor").into();
            if page.fact("has_more") != "true" {
                return numbers;
            }
        }
    }

    async fn bytes(&mut self, tool: &str, mut arguments: Value) -> Vec<u8> {
        use base64::Engine;
        arguments["length"] = (1 << 24).into();
        let mut bytes = Vec::new();
        loop {
            arguments["offset"] = bytes.len().into();
            let page = self.page(tool, &arguments).await;
            let content = page.long("content");
            match page.fact("encoding").as_str() {
                "text" => bytes.extend(content.as_bytes()),
                _ => bytes.extend(base64::engine::general_purpose::STANDARD.decode(content).expect("base64")),
            }
            assert_eq!(page.fact("next_offset"), bytes.len().to_string());
            if page.fact("has_more") != "true" {
                return bytes;
            }
        }
    }
}

/// Walks through everything; gives what was found, which must not depend on form and bound.
async fn walk(mut bounded: Bounded<'_>, site: &Site) -> (usize, usize, Vec<u8>) {
    let launched = bounded.clients[0].ask("launch_session", json!({"slug": "full"})).await.0;
    let id = Page::new(launched).fact("session_id");
    let client = bounded.clients[0];
    client.ask("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    let acts = format!(
        "(async () => {{ const hard = {HARD};
            for (let n = 0; n < 120; n++) console.log(n, hard.repeat(n % 40 == 7 ? 900 : n % 7));
            for (let n = 0; n < 60; n++) await (await fetch('/status/404?' + n)).text();
            await (await fetch('/text?bytes=20000')).text();
            document.body.innerHTML = '<button>needle</button>'.repeat(400); }})()"
    );
    client.ask("evaluate", json!({"session_id": id, "expression": acts})).await;
    // Beyond any of the bounds, and at the small ones no longer than it takes.
    let large = format!("{HARD}.repeat({})", if bounded.bytes_max > 10_000 { 60_000 } else { 2_500 });
    let large = Page::new(client.ask("evaluate", json!({"session_id": id, "expression": large})).await.0);
    let (handle, total) = (large.fact("result_artifact"), large.fact("result_bytes"));
    let snapshot = json!({"session_id": id});
    let mut tree = String::new();
    let mut asked = snapshot.clone();
    loop {
        let page = bounded.page("snapshot", &asked).await;
        tree.push_str(&page.long("tree"));
        if page.fact("has_more") != "true" {
            break;
        }
        asked["cursor"] = page.fact("next_cursor").into();
    }
    assert_eq!(tree.matches("needle").count(), 400, "{tree:.300}");
    // Then nothing comes between two pages.
    client.ask("close_session", json!({"session_id": id})).await;

    let messages = bounded.list("list_console_messages", "messages", &id, Value::Null).await;
    let requests = bounded.list("list_network_requests", "requests", &id, Value::Null).await;
    let kinds = json!(["console.message", "log.entry", "network.*"]);
    let events = bounded.list("list_events", "events", &id, kinds).await;
    for numbers in [&messages, &requests, &events] {
        assert!(numbers.is_sorted_by(|one, next| one < next), "no item twice: {numbers:?}");
    }
    assert!(messages.iter().all(|seq| events.contains(seq)), "each message is an event");
    let last = requests.last().expect("a request");
    let row =
        Page::new(client.ask("list_network_requests", json!({"session_id": id, "url_filter": "bytes=20000"})).await.0);
    assert_eq!(row.numbers("requests"), [*last]);
    let request_id = if row.data.is_null() {
        let line = row.text.lines().last().expect("a line");
        line.split(' ').next().expect("an id").to_owned()
    } else {
        row.data["requests"][0]["request_id"].as_str().expect("an id").to_owned()
    };
    let asked = json!({"session_id": id, "request_id": request_id, "part": "response_body"});
    let body = bounded.bytes("get_network_request", asked).await;
    let text = if bounded.bytes_max > 10_000 {
        Vec::new()
    } else {
        bounded.bytes("read_artifact", json!({"handle": handle, "encoding": "text"})).await
    };
    let whole = bounded.bytes("read_artifact", json!({"handle": handle, "encoding": "base64"})).await;
    assert!(text.is_empty() || text == whole, "both encodings give the same bytes");
    assert_eq!(whole.len().to_string(), total);
    (messages.len(), requests.len(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_uses_its_room_in_each_form() {
    let site = Site::start().await;
    let mut found = Vec::new();
    for bytes_max in [4_096, 8_192, 1 << 20] {
        for form in ["json", "compact"] {
            let options = Options::stdio().argument("--max-result-bytes", bytes_max).argument("--text", form);
            let server = Server::start(options).await;
            let bounded = Bounded { clients: vec![server.client()], bytes_max, asked: 0 };
            found.push(walk(bounded, &site).await);
        }
    }
    assert_eq!((found[0].0, found[0].2.len()), (180, 20_000));
    assert!(found.iter().all(|other| *other == found[0]), "what is found depends on form and bound");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_goes_on_in_the_other_form() {
    let site = Site::start().await;
    let server = Server::start(Options::http().argument("--max-result-bytes", 4_096)).await;
    let compact = server.client_that_asks("?text=compact").await;
    let bounded = Bounded { clients: vec![server.client(), &compact], bytes_max: 4_096, asked: 0 };
    let found = walk(bounded, &site).await;
    assert_eq!((found.0, found.2.len()), (180, 20_000));
    compact.close().await;
}
