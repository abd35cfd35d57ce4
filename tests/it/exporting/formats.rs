//! Every format, read back by other people's programs: rows, types, archives.

use serde_json::{Value, json};

use super::readers::{fixture, read};
use crate::site::Site;
use crate::support::{Options, Server, walk};

/// A session with requests of every sort and a socket, at rest.
async fn browsed(site: &Site) -> (Server, String) {
    let server = Server::start(Options::stdio().argument("--capture-bodies", "all")).await;
    let id = server.launch_at(&site.url("/network.html")).await;
    walk::console_with(&server, &id, "network done").await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/socket.html")})).await;
    walk::console_with(&server, &id, "socket closed").await;
    let formula = "console.log('=HYPERLINK(1)'); console.log('\\u0000 two\\nlines, \"quoted\" \\ud83d\\ude00')";
    server.ok("evaluate", json!({"session_id": id, "expression": formula})).await;
    server.ok("close_session", json!({"session_id": id})).await;
    (server, id)
}

async fn exported(server: &Server, id: &str, format: &str, last_seq: Option<u64>) -> Value {
    let mut asked = json!({"session_id": id, "format": format, "path": format!("a.{format}")});
    if let Some(last_seq) = last_seq {
        asked["last_seq"] = last_seq.into();
    }
    server.ok("export_events", asked).await
}

fn manifest(reply: &Value) -> Value {
    let text = std::fs::read_to_string(reply["manifest_path"].as_str().expect("a path")).expect("the manifest");
    serde_json::from_str(&text).expect("JSON")
}

fn path(reply: &Value) -> &str {
    reply["path"].as_str().expect("a path")
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_mean_the_same_to_every_reader() {
    let site = Site::start().await;
    let (server, id) = browsed(&site).await;
    let parquet = exported(&server, &id, "parquet", None).await;
    let last_seq = parquet["last_seq"].as_u64();
    let csv = exported(&server, &id, "csv", last_seq).await;
    let ndjson = exported(&server, &id, "ndjson", last_seq).await;
    let table = async |reply: &Value| read(&["table", path(reply)], "").await;
    let (of_parquet, of_csv, of_ndjson) = tokio::join!(table(&parquet), table(&csv), table(&ndjson));
    let kinds = &of_parquet["pyarrow"]["kinds"];
    let rows: u64 = kinds.as_object().expect("kinds").values().filter_map(|kind| kind[0].as_u64()).sum();
    assert_eq!(parquet["events"], rows);
    assert!(kinds["console.message"][0].as_u64() > Some(3), "{kinds}");
    for (reader, found) in [
        ("DuckDB, Parquet", &of_parquet["duckdb"]["kinds"]),
        ("DuckDB, CSV", &of_csv["duckdb"]["kinds"]),
        ("Python, CSV", &of_csv["csv"]["kinds"]),
        ("DuckDB, NDJSON", &of_ndjson["duckdb"]["kinds"]),
    ] {
        assert_eq!(found, kinds, "{reader}");
    }
    types_are_those_on_file(&of_parquet);
    let text = std::fs::read_to_string(path(&csv)).expect("UTF-8");
    assert!(text.contains(",'=HYPERLINK(1),"), "a formula is none");
}

/// The golden schema in the words of two readers.
fn types_are_those_on_file(found: &Value) {
    let golden = std::fs::read_to_string(fixture("schema.txt")).expect("the fixture");
    let mut columns = 0;
    for line in golden.lines().skip(1) {
        let mut words = line.split(' ');
        let (name, holds, null) = (words.next(), words.next().expect("a type"), words.next());
        let name = name.expect("a name");
        let (arrow, duckdb) = match holds {
            "U64" => ("uint64", "UBIGINT"),
            "I64" => ("int64", "BIGINT"),
            "F64" => ("double", "DOUBLE"),
            "Bool" => ("bool", "BOOLEAN"),
            "Text" => ("string", "VARCHAR"),
            "Time" => ("timestamp[us, tz=UTC]", "TIMESTAMP WITH TIME ZONE"),
            other => panic!("{other} is no type"),
        };
        assert_eq!(found["pyarrow"]["types"][name], arrow, "{name}");
        assert_eq!(found["duckdb"]["types"][name], duckdb, "{name}");
        let never_null = found["pyarrow"]["never_null"].as_array().expect("names").iter().any(|column| column == name);
        assert_eq!(never_null, null == Some("never"), "{name}");
        columns += 1;
    }
    assert_eq!(found["pyarrow"]["types"].as_object().map(serde_json::Map::len), Some(columns));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_one_by_its_schema_and_to_a_library() {
    let site = Site::start().await;
    let (server, id) = browsed(&site).await;
    let reply = exported(&server, &id, "har", None).await;
    let schema = fixture("har-1.2.schema.json").display().to_string();
    let found = read(&["har", path(&reply), &schema], "").await;
    assert_eq!(found["problems"], json!([]));
    let titles: Vec<&str> =
        found["pages"].as_array().expect("pages").iter().filter_map(|p| p["title"].as_str()).collect();
    assert!(titles.iter().any(|title| title.ends_with("/network.html")), "{titles:?}");
    assert!(titles.iter().any(|title| title.ends_with("/socket.html")), "{titles:?}");
    let archive: Value = serde_json::from_slice(&std::fs::read(path(&reply)).expect("the file")).expect("JSON");
    let entries = archive["log"]["entries"].as_array().expect("entries");
    assert_eq!(found["entries"].as_array().map(Vec::len), Some(entries.len()), "each entry is of a page");
    requests_are_all_there(&server, &id, entries).await;
    for entry in entries {
        let timings = &entry["timings"];
        let phase = |name: &str| timings[name].as_f64().filter(|value| *value >= 0.0).unwrap_or(0.0);
        let sum: f64 = ["blocked", "dns", "connect", "send", "wait", "receive"].iter().map(|name| phase(name)).sum();
        assert!((sum - entry["time"].as_f64().expect("a time")).abs() < 0.01, "{entry:#}");
    }
    what_entries_hold(entries);
    let manifest = manifest(&reply);
    assert_eq!(manifest["har"]["entries"], entries.len());
    assert!(manifest["redactions"]["by_rule"]["cookie"].as_u64() > Some(0), "{manifest:#}");
    assert_eq!(manifest["checkpoint"]["covers_all"], true, "{manifest:#}");
}

/// As many entries as the list of requests has legs.
async fn requests_are_all_there(server: &Server, id: &str, entries: &[Value]) {
    let requests = walk::requests(server, id).await;
    let legs: u64 = requests.iter().map(|request| 1 + request["redirects"].as_u64().unwrap_or(0)).sum();
    assert_eq!(entries.len() as u64, legs);
}

fn what_entries_hold(entries: &[Value]) {
    let of = |end: &str| {
        let fits = |entry: &&Value| entry["request"]["url"].as_str().is_some_and(|url| url.ends_with(end));
        entries.iter().find(fits).unwrap_or_else(|| panic!("an entry for {end}"))
    };
    assert_eq!(of("/status/404")["response"]["status"], 404);
    let echo = of("/echo");
    assert_eq!(echo["request"]["postData"]["text"], r#"{"posted":"body text"}"#);
    assert_eq!(echo["request"]["postData"]["mimeType"], "application/json");
    let redirect = of("/redirect/3");
    assert_eq!(redirect["response"]["status"], 302);
    assert!(redirect["response"]["redirectURL"].as_str().is_some_and(|to| to.ends_with("/redirect/2")));
    let binary = &of("/binary?bytes=2000")["response"]["content"];
    assert_eq!((binary["encoding"].as_str(), binary["size"].as_u64()), (Some("base64"), Some(2000)));
    let text = &of("/text?bytes=20000")["response"]["content"];
    assert_eq!(text["text"].as_str().map(str::len), Some(20_000), "a body that is kept beside the log is whole");
    assert!(of("/abort")["response"]["_error"].as_str().is_some_and(|error| error.starts_with("net::ERR_")));
    let cookie = &of("/cookie")["response"]["cookies"][0];
    assert_eq!((cookie["name"].as_str(), cookie["value"].as_str()), (Some("session"), Some("[redacted:cookie]")));
    let socket = of("/ws");
    let messages = socket["_webSocketMessages"].as_array().expect("messages");
    let directions: Vec<&str> = messages.iter().filter_map(|message| message["type"].as_str()).collect();
    assert!(directions.contains(&"send") && directions.contains(&"receive"), "{socket:#}");
    assert_eq!(messages[0]["data"], "hello socket");
    let all = serde_json::to_string(entries).expect("JSON");
    assert!(!all.contains("canary-"), "what is redacted stays so");
    assert!(all.contains("[redacted:authorization]"));
}
