//! What must not come through, and what must.

use serde_json::{Value, json};

use super::Redactor;

mod common_names;

#[test]
fn addresses_lose_credentials_and_sensitive_values_only() {
    let redactor = Redactor::new();
    let url = |raw: &str| redactor.url(raw).as_str().to_owned();
    assert_eq!(url("https://example.test/a?b=1&c=2#top"), "https://example.test/a?b=1&c=2#top");
    assert_eq!(url("https://ann:pw@example.test/?q=a@b"), "https://[redacted:url_credentials]@example.test/?q=a@b");
    assert_eq!(
        url("https://e.test/?Token=abc&x=1&sig=zz"),
        "https://e.test/?Token=[redacted:query]&x=1&sig=[redacted:query]"
    );
    assert_eq!(
        url("https://e.test/cb#access_token=abc&state=1"),
        "https://e.test/cb#access_token=[redacted:query]&state=1"
    );
    assert_eq!(url("data:image/png;base64,AAAA"), "data:image/png;base64,[26 bytes]");
    assert_eq!(url("https://e.test/?jwt=abc&a=1"), "https://e.test/?jwt=[redacted:query]&a=1");
    assert_eq!(redactor.counts().into_iter().map(|(_, count)| count).sum::<u64>(), 5);
}

#[test]
fn text_is_searched_for_addresses_tokens_and_declared_secrets() {
    let redactor = Redactor::new();
    assert!(!redactor.declare("abc"), "too short to be told from ordinary text");
    assert!(redactor.declare("s3cr&t value"));
    let text = |raw: &str| redactor.text(raw).as_str().to_owned();
    assert_eq!(text("plain, 100%, a=b&password=x"), "plain, 100%, a=b&password=[redacted:query]");
    assert_eq!(
        text("GET (http://u:p@h.test/?key=1), then"),
        "GET (http://[redacted:url_credentials]@h.test/?key=[redacted:query]), then"
    );
    assert_eq!(
        text("a://b c://d?token=1 \u{fc}://e?token=2"),
        "a://b c://d?token=[redacted:query] \u{fc}://e?token=[redacted:query]"
    );
    assert_eq!(text("Authorization: Bearer abcdefgh.ijk, ok"), "Authorization: Bearer [redacted:authorization], ok");
    assert_eq!(text("Bearer of news"), "Bearer of news");
    assert_eq!(text("it is s3cr&t value, or s3cr%26t%20value"), "it is [redacted:secret], or [redacted:secret]");
}

#[test]
fn a_cut_never_leaves_half_a_secret() {
    let redactor = Redactor::new();
    assert!(redactor.declare("0123456789"));
    let bounded = redactor.bounded("ab 0123456789 cd \u{1f600}", 8);
    assert_eq!(bounded.clean.as_str(), "ab [reda");
    assert_eq!(bounded.whole.as_deref(), Some("ab [redacted:secret] cd \u{1f600}"));
    assert_eq!(redactor.bounded("\u{1f600}\u{1f600}", 5).clean.as_str(), "\u{1f600}");
}

#[test]
fn headers_keep_names_and_lose_values() {
    let redactor = Redactor::new();
    let raw = json!({
        "Authorization": "Bearer abc", "Cookie": "a=1; b=2", "set-cookie": "s=1; Path=/\nt=2",
        "X-Auth-Token": "abc", "Referer": "http://h.test/?code=1", "Accept": "*/*"
    });
    let (headers, cut) = redactor.headers(raw.as_object().expect("it is an object"));
    let shown: Value = serde_json::from_str(headers.as_str()).expect("it is JSON");
    let expected = json!({
        "Authorization": "Bearer [redacted:authorization]", "Cookie": "a=[redacted:cookie]; b=[redacted:cookie]",
        "set-cookie": "s=[redacted:cookie]; Path=/\nt=[redacted:cookie]", "X-Auth-Token": "[redacted:header]",
        "Referer": "http://h.test/?code=[redacted:query]", "Accept": "*/*"
    });
    assert_eq!((shown, cut), (expected, false));
    let many: serde_json::Map<_, _> = (0..100).map(|i| (format!("x-{i}"), "y".repeat(5000).into())).collect();
    let (headers, cut) = redactor.headers(&many);
    assert!(cut && headers.as_str().len() < 20_000);
}

#[test]
fn bodies_go_by_their_media_type() {
    let redactor = Redactor::new();
    let body = |raw: &str, media_type: &str| redactor.body(raw, media_type).into_owned();
    let form = "application/x-www-form-urlencoded";
    assert_eq!(body("user=ann&password=x", form), "user=ann&password=[redacted:query]");
    let json = r#"{"a":[{"password":"x","passwords":1}],"token":null}"#;
    assert_eq!(
        body(json, "application/json"),
        r#"{"a":[{"password":"[redacted:member]","passwords":1}],"token":null}"#
    );
    assert_eq!(body("{ \"a\" : 1 }", "application/json"), "{ \"a\" : 1 }");
    assert_eq!(body("password=x", "text/plain"), "password=[redacted:member]");
}

#[test]
fn json_is_known_by_its_looks() {
    let redactor = Redactor::new();
    let body = |raw: &str, media_type: &str| redactor.body(raw, media_type).into_owned();
    for media_type in ["text/plain;charset=UTF-8", "", "application/x-www-form-urlencoded", "image/png"] {
        assert_eq!(body(" {\"password\":\"x\"}", media_type), r#"{"password":"[redacted:member]"}"#, "{media_type}");
        assert_eq!(body("\u{feff}\n[{\"apiKey\":7}]", media_type), r#"[{"apiKey":"[redacted:member]"}]"#);
    }
    assert_eq!(body(r#"{"pass\u0077ord":"x"}"#, "text/plain"), r#"{"password":"[redacted:member]"}"#);
    assert_eq!(body("{password: not JSON", "text/plain"), "{password: not JSON");
}

#[test]
fn sensitive_members_lose_all_they_hold() {
    let redactor = Redactor::new();
    let shown = |raw: Value| serde_json::from_str::<Value>(redactor.json(&raw).as_str()).expect("it is JSON");
    let hidden = "[redacted:member]";
    assert_eq!(shown(json!({"password": {"value": "x"}})), json!({ "password": hidden }));
    assert_eq!(shown(json!({"secret": ["x", {"y": 1}]})), json!({ "secret": hidden }));
    assert_eq!(
        shown(json!({"tokens": ["x", "y"], "api_keys": {"a": "x"}})),
        json!({"tokens": hidden, "api_keys": hidden})
    );
    let harmless = json!({"tokens": 150, "token": null, "secret": false, "passwordless": ["x"], "a": {"b": [1]}});
    assert_eq!(shown(harmless.clone()), harmless);
}

#[test]
fn parts_of_a_form_go_by_their_names() {
    let redactor = Redactor::new();
    let form = |password: &str, nested: &str, file: &str, json: &str| {
        [
            "--XyZ\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nann\r\n",
            "--XyZ\r\ncontent-disposition: form-data; name=\"password\"\r\n\r\n",
            password,
            "\r\n--XyZ\r\nContent-Disposition: form-data; name=\"user[Access-Token]\"\r\n\r\n",
            nested,
            "\r\n--XyZ\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n",
            file,
            "\r\n--XyZ\r\nContent-Disposition: form-data; name=\"more\"\r\n\r\n",
            json,
            "\r\n--XyZ--\r\n",
        ]
        .concat()
    };
    let raw = form("two\r\nlines --XyZ", "n", "\u{fffd}PNG\r\n\r\nbytes", r#"{"pwd":"x"}"#);
    let hidden = "[redacted:member]";
    let expected = form(hidden, hidden, "[15 bytes]", r#"{"pwd":"[redacted:member]"}"#);
    for media_type in ["multipart/form-data; boundary=XyZ", "Multipart/Form-Data; boundary=\"XyZ\"", "text/plain"] {
        assert_eq!(redactor.body(&raw, media_type), expected, "{media_type}");
    }
    for unreadable in ["password=x", "--", "--a--x", "--a\r\nno head"] {
        let shown = redactor.body(unreadable, "multipart/form-data").into_owned();
        assert!(shown.ends_with("bytes]"), "{unreadable:?}: {shown:?}");
    }
}
