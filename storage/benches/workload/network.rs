//! Requests as Chromium tells them: announced, sent, answered, finished; a few fail.

use serde_json::{Value, json};
use storage::event::catalog::{
    NetworkBody, NetworkFailed, NetworkFinished, NetworkHeaders, NetworkRequest, NetworkResponse,
};
use storage::event::{Clean, Context, Json};

use super::random::Random;
use super::{Script, words};

const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                     HeadlessChrome/156.0.8078.114 Safari/537.36";
const BRANDS: &str = "\"Not:A-Brand\";v=\"8\", \"Chromium\";v=\"156\", \"HeadlessChrome\";v=\"156\"";
/// Different assets of one site.
const ASSETS: usize = 24;

/// Where a session browses.
pub(super) struct Site {
    pub host: &'static str,
    address: String,
    assets: Vec<(String, &'static str)>,
}

impl Site {
    pub fn pick(random: &mut Random) -> Self {
        let place = random.within(0, words::HOSTS.len() as u64);
        // The same site has the same files for everybody.
        let mut of_site = Random::new(place);
        let host = words::HOSTS[place as usize];
        let mut assets = Vec::new();
        for _ in 0..ASSETS {
            let (extension, resource_type) =
                of_site.pick(&[("js", "script"), ("css", "stylesheet"), ("webp", "image"), ("woff2", "font")]);
            assets.push((format!("/_assets/chunk-{}.{extension}", of_site.hexadecimal(8)), resource_type));
        }
        let address = format!("203.0.113.{}:443", of_site.within(1, 255));
        Self { host, address, assets }
    }

    pub fn path(&self, random: &mut Random) -> String {
        let section = random.pick(&words::SECTIONS);
        format!("/{section}/{}?page={}&ref={}", random.within(1, 90_000), random.within(1, 30), random.suffix(6))
    }

    pub fn asset(&self, random: &mut Random) -> (String, &'static str) {
        let (path, resource_type) = &self.assets[random.within(0, ASSETS as u64) as usize];
        (path.clone(), resource_type)
    }

    pub fn script(&self, random: &mut Random) -> String {
        format!("https://{}{}", self.host, self.assets[random.within(0, ASSETS as u64) as usize].0)
    }

    pub fn interface(&self, random: &mut Random) -> String {
        let section = random.pick(&words::SECTIONS);
        format!("/api/v2/{section}/{}?since={}&limit=50", random.suffix(10), random.within(1, 4_000_000_000))
    }
}

/// Everything about one request; returns the status, 0 when it failed.
pub(super) fn chain(
    script: &mut Script,
    context: &Context,
    site: &Site,
    path: &str,
    resource_type: &'static str,
) -> u64 {
    let now = script.now(context);
    let request = request(&mut script.random, site, path, resource_type);
    script.record(&now, &request);
    if script.random.chance(15) {
        let failed = NetworkFailed {
            error: Clean::fixed(script.random.pick(&["net::ERR_ABORTED", "net::ERR_CONNECTION_RESET"])),
            canceled: script.random.chance(500),
            blocked_reason: None,
            cors_error: None,
            duration_ms: Some(script.random.milliseconds(1, 9_000)),
        };
        let now = script.now(context);
        script.record(&now, &failed);
        return 0;
    }
    let sent = NetworkHeaders {
        direction: "request".into(),
        status: None,
        headers: sent_headers(site, resource_type),
        truncated_fields: None,
    };
    script.record(context, &sent);
    let status = match script.random.within(0, 1000) {
        0..18 => 404,
        18..24 => 500,
        24..70 => 304,
        _ => 200,
    };
    let bytes = script.random.within(200, 90_000);
    let headers = answer_headers(&mut script.random, resource_type, bytes);
    let now = script.now(context);
    let response = response(&mut script.random, site, path, resource_type, status, &headers);
    script.record(&now, &response);
    let headers = Json::redacted(&headers);
    script.record(
        context,
        &NetworkHeaders { direction: "response".into(), status: Some(status), headers, truncated_fields: None },
    );
    let now = script.now(context);
    let finished = NetworkFinished {
        encoded_bytes: bytes / 3,
        decoded_bytes: Some(bytes),
        duration_ms: Some(script.random.milliseconds(2, 700)),
    };
    script.record(&now, &finished);
    let short = matches!(resource_type, "fetch" | "document").then(|| words::answer(&mut script.random));
    let body = NetworkBody {
        direction: "response".into(),
        bytes: short.as_ref().map_or(bytes, |text| text.len() as u64),
        omitted: short.is_none().then(|| "policy".into()),
        text: short.map(Clean::redacted),
        artifact: None,
        truncated_fields: None,
    };
    script.record(&now, &body);
    status
}

fn request(random: &mut Random, site: &Site, path: &str, resource_type: &'static str) -> NetworkRequest {
    let headers = json!({
        "sec-ch-ua-platform": "\"Linux\"", "Referer": format!("https://{}/", site.host), "User-Agent": AGENT,
        "sec-ch-ua": BRANDS, "sec-ch-ua-mobile": "?0",
    });
    let initiator = json!({"type": "script", "url": site.script(random), "line": random.within(1, 4_000)});
    NetworkRequest {
        url: Clean::redacted(format!("https://{}{path}", site.host)),
        method: Clean::fixed(if resource_type == "fetch" && random.chance(150) { "POST" } else { "GET" }),
        resource_type: resource_type.into(),
        headers: Json::redacted(&headers),
        initiator: Some(Json::redacted(&initiator)),
        priority: Some(random.pick(&["high", "medium", "low"]).into()),
        body_bytes: None,
        body: None,
        body_artifact: None,
        redirects: None,
        truncated_fields: None,
    }
}

fn sent_headers(site: &Site, resource_type: &'static str) -> Json {
    Json::redacted(&json!({
        "Accept": "*/*", "Accept-Encoding": "gzip, deflate, br, zstd", "Accept-Language": "en-US,en;q=0.9",
        "Connection": "keep-alive", "Cookie": "[redacted]", "Host": site.host,
        "Referer": format!("https://{}/", site.host), "Sec-Fetch-Dest": resource_type, "Sec-Fetch-Mode": "cors",
        "Sec-Fetch-Site": "same-origin", "User-Agent": AGENT, "sec-ch-ua": BRANDS, "sec-ch-ua-mobile": "?0",
        "sec-ch-ua-platform": "\"Linux\"",
    }))
}

fn answer_headers(random: &mut Random, resource_type: &'static str, bytes: u64) -> Value {
    let (hour, minute, second) = (random.within(0, 24), random.within(0, 60), random.within(0, 60));
    json!({
        "Cache-Control": "public, max-age=600", "Content-Encoding": "br", "Content-Length": bytes.to_string(),
        "Content-Type": media_type(resource_type),
        "Date": format!("Sun, 01 Nov 2026 {hour:02}:{minute:02}:{second:02} GMT"),
        "ETag": format!("\"{}\"", random.hexadecimal(20)), "Server": "edge", "Vary": "Accept-Encoding",
        "X-Request-Id": random.uuid(),
    })
}

fn response(
    random: &mut Random,
    site: &Site,
    path: &str,
    resource_type: &'static str,
    status: u64,
    headers: &Value,
) -> NetworkResponse {
    let start = random.milliseconds(0, 9);
    let timing = json!({
        "send_start": start, "send_end": start + 0.4, "headers_start": start + random.milliseconds(3, 90),
        "headers_end": start + random.milliseconds(90, 200),
    });
    NetworkResponse {
        url: Clean::redacted(format!("https://{}{path}", site.host)),
        status,
        status_text: Clean::fixed(""),
        mime_type: Clean::fixed(media_type(resource_type)),
        protocol: Some("h2".into()),
        headers: Json::redacted(headers),
        remote_address: Some(Clean::redacted(site.address.as_str())),
        served_from: random.chance(100).then(|| "disk".into()),
        timing: Some(Json::redacted(&timing)),
        truncated_fields: None,
    }
}

fn media_type(resource_type: &str) -> &'static str {
    match resource_type {
        "document" => "text/html; charset=utf-8",
        "script" => "text/javascript",
        "stylesheet" => "text/css",
        "image" => "image/webp",
        "font" => "font/woff2",
        _ => "application/json",
    }
}
