//! Secrets under the names they commonly have, wherever those may stand; and what only looks alike.

use serde_json::{Value, json};

use super::Redactor;

const SENSITIVE: [&str; 38] = [
    "user%5Bpassword%5D",
    "user[password]",
    "user%255Bpassword%255D",
    "pass%77ord",
    "accessToken",
    "access-token",
    "auth_token",
    "clientSecret",
    "new_password",
    "newpassword",
    "current_password",
    "currentPassword",
    "password2",
    "PassWord",
    "password_confirmation",
    "X-Amz-Security-Token",
    "sessionToken",
    "oauth_token_secret",
    "secret_key",
    "SecretAccessKey",
    "aws_secret_access_key",
    "APIKey",
    "x-api-key",
    "private.key",
    "passphrase",
    "passcode",
    "db_pwd",
    "otp",
    "otpCode",
    "credential",
    "proxy_authorization",
    "X-Goog-Signature",
    "session_cookie",
    "sessionId",
    "PHPSESSID",
    "_csrf",
    "csrfmiddlewaretoken",
    "JWT",
];

const PLAIN: [&str; 26] = [
    "tokens_used",
    "max_tokens",
    "token_count",
    "token_type",
    "tokenizer",
    "keyboard",
    "keywords",
    "passive",
    "passenger",
    "bypass_list",
    "secretary",
    "author",
    "authority",
    "authenticated",
    "has_password",
    "password_length",
    "password_policy",
    "cookie_consent",
    "cookieName",
    "signed",
    "sessions_open",
    "country_code",
    "monkey",
    "desktop",
    "passwordless",
    "token_endpoint",
];

#[test]
fn one_judgement_holds_in_addresses_forms_members_headers_and_text() {
    let redactor = Redactor::new();
    for (name, hidden) in SENSITIVE.map(|name| (name, true)).into_iter().chain(PLAIN.map(|name| (name, false))) {
        let part = format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\ncanary\r\n--B--\r\n");
        let member = json!({ name: "canary" });
        let headers = redactor.headers(member.as_object().expect("it is an object")).0;
        for (shape, shown) in [
            ("query", redactor.url(&format!("https://h.test/?a=1&{name}=canary&b=2")).as_str().to_owned()),
            ("relative", redactor.text(&format!("GET /x?{name}=canary done")).as_str().to_owned()),
            ("form", redactor.body(&format!("a=1&{name}=canary"), "application/x-www-form-urlencoded").into_owned()),
            ("multipart", redactor.body(&part, "multipart/form-data; boundary=B").into_owned()),
            ("member", redactor.body(&member.to_string(), "application/json").into_owned()),
            ("text", redactor.text(&format!("in '{name}': 'canary'")).as_str().to_owned()),
            ("header", headers.as_str().to_owned()),
        ] {
            assert_eq!(!shown.contains("canary"), hidden, "{shape} {name}: {shown}");
            assert_eq!(shown.contains("[redacted:"), hidden, "{shape} {name}: {shown}");
        }
    }
}

#[test]
fn text_that_is_no_single_document_loses_its_secrets() {
    let redactor = Redactor::new();
    for raw in [
        "{\"a\":1}\n{\"token\":\"canary\",\"b\":2}",
        ")]}'\n{\"password\" : \"canary\",\"b\":2}",
        "{\"b\":2,\"password\":\"canary and mo",
        "{\"b\":2,\"tokens\":[\"canary\", {\"x\":\"canary",
        "{\"password\":\"canary\",\"b\":2,}",
        "{\"password\":\"a\\\"canary\",\"b\":2,}",
        "{\"password\":{\"a\":[\"]canary\"]},\"b\":2,}",
        "{\"otp\": 1canary, \"b\":2,}",
        "{\"pass\\u0077ord\":\"canary\",\"b\":2,}",
        "42[\"login\",{\"token\":\"canary\",\"b\":2}]",
        r#"{"body":"{\"token\":\"canary\",\"b\":2}"}"#,
        r#"{"body":"{\"token\":\"a\\\"canary\",\"b\":2}"}"#,
        r#"{"a":"{\"b\":2,\"body\":\"{\\\"token\\\":\\\"canary\\\"}\"}"}"#,
        "login {user: 'b', password: 'canary'}",
        "login {user: b, password: canary}",
        "password=canary\nb",
        "b\n  api_key = canary",
        "user: b\r\ntoken: canary\r\n",
        "b Authorization: Basic canary",
        "b authorization: token canary",
        "b Authorization: Digest username=\"b\", response=\"canary\"",
        "Cookie: a=canary; c=canary",
        "b > Set-Cookie: s=canary; Path=/",
        "b bearer canary.0123456789",
        "b BEARER canary0123456789",
        "b bEaReR   canary0123456789",
        "b /x?token=canary and",
        "b <a href='/x?a=1&code=canary'>",
        "b login failed, password=canary",
        "\"secret\"=>\"canary\" b",
    ] {
        for shown in [redactor.text(raw).as_str().to_owned(), redactor.body(raw, "text/plain").into_owned()] {
            assert!(!shown.contains("canary") && shown.contains("[redacted:"), "{raw}: {shown}");
            assert!(!raw.contains('b') || shown.contains('b'), "{raw}: {shown}");
        }
    }
}

#[test]
fn prose_and_source_keep_their_words() {
    let redactor = Redactor::new();
    for raw in [
        "Invalid password: too short",
        "Password: at least 8 characters",
        "SyntaxError: Unexpected token: }",
        "textbox \"Password\": filled",
        "fetch('/x', {credentials: 'include'})",
        "const token = await read(); if (token == other) run(token=next())",
        "bearer instruments are negotiable",
        "{\"max_tokens\": 100, \"tokens\": 5, \"token\": null, \"pass\": true,}",
        "key=value code: 7 session: closed",
    ] {
        assert_eq!(redactor.text(raw).as_str(), raw);
    }
    let script = "var a={password:e.password,token:t},b=(token=c,1);\ntoken=d;";
    assert_eq!(redactor.body(script, "text/javascript"), script);
}

#[test]
fn headers_that_carry_secrets_by_other_names_lose_them() {
    let redactor = Redactor::new();
    let raw = json!({
        "X-Auth": "canary", "Auth": "canary", "X-Auth-Key": "canary", "X-Access-Key": "canary",
        "X-Session-Id": "canary", "X-CSRFToken": "canary", "X-CSRF-Anything": "canary",
        "Link": "</x?token=canary>; rel=preload", "Refresh": "0; url=/x?token=canary",
        "Content-Location": "/x?code=canary", "Location": "/x?a=1&access_token=canary",
        "Sec-WebSocket-Protocol": "graphql-transport-ws, access_token, canary, v10.stomp, auth.token.canary",
        "sec-websocket-protocol": "base64url.bearer.canary, bearer, canary",
    });
    let (headers, _) = redactor.headers(raw.as_object().expect("it is an object"));
    assert!(!headers.as_str().contains("canary"), "{}", headers.as_str());
    let shown: Value = serde_json::from_str(headers.as_str()).expect("it is JSON");
    assert_eq!(shown["Link"], "</x?token=[redacted:query]>; rel=preload");
    let hidden = "[redacted:header]";
    let protocols = format!("graphql-transport-ws, access_token, {hidden}, v10.stomp, {hidden}");
    assert_eq!(shown["Sec-WebSocket-Protocol"], protocols);
}

#[test]
fn hostile_text_is_read_in_one_pass() {
    let redactor = Redactor::new();
    for unit in ["\"token\":[", "token:'", "\\", "\"", ":", "=", "token=", "\"token\":\\\"", "\u{fc}:", "{'token':{\""]
    {
        for tail in ["", "\"token\":", "token=\u{1f600}", "\\u"] {
            let raw = unit.repeat(20_000) + tail;
            let began = std::time::Instant::now();
            assert!(redactor.body(&raw, "text/plain").len() > 10, "{unit}");
            assert!(began.elapsed().as_secs() < 5, "{unit} {tail}");
        }
    }
}
