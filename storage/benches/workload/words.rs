//! What the imagined pages say and load.

use super::random::Random;

pub const HOSTS: [&str; 12] = [
    "shop.example",
    "www.shop.example",
    "accounts.bank.example",
    "news.example",
    "mail.example",
    "docs.tools.example",
    "tickets.example",
    "maps.example",
    "intranet.corp.example",
    "video.example",
    "forum.example",
    "status.cloud.example",
];

pub const SECTIONS: [&str; 10] =
    ["catalog", "orders", "cart", "search", "account", "articles", "inbox", "reports", "settings", "help"];

const MODULES: [&str; 12] =
    ["router", "store", "api", "auth", "cart", "player", "search", "sync", "i18n", "metrics", "layout", "worker"];

const NOUNS: [&str; 24] = [
    "order",
    "product",
    "session",
    "basket",
    "invoice",
    "message",
    "thread",
    "customer",
    "address",
    "payment",
    "image",
    "filter",
    "result",
    "page",
    "component",
    "token",
    "profile",
    "comment",
    "article",
    "shipment",
    "variant",
    "price",
    "review",
    "report",
];

const VERBS: [&str; 16] = [
    "loaded",
    "rendered",
    "updated",
    "fetched",
    "cached",
    "skipped",
    "queued",
    "restored",
    "validated",
    "merged",
    "removed",
    "created",
    "hydrated",
    "measured",
    "dispatched",
    "resolved",
];

const FUNCTIONS: [&str; 12] = [
    "render",
    "dispatch",
    "onClick",
    "fetchJson",
    "commitWork",
    "performUnitOfWork",
    "handleResponse",
    "resolveRoute",
    "applyPatch",
    "flushQueue",
    "hydrateRoot",
    "retry",
];

const MISTAKES: [&str; 6] = [
    "TypeError: Cannot read properties of undefined (reading 'items')",
    "TypeError: fetch failed",
    "RangeError: Invalid time value",
    "Error: Request failed with status code 500",
    "ReferenceError: dataLayer is not defined",
    "Error: Minified React error #418",
];

pub const TOOLS: [&str; 8] = ["navigate", "click", "fill", "snapshot", "screenshot", "evaluate", "press_key", "hover"];

/// What a developer has a page say while all is well.
pub fn line(random: &mut Random) -> String {
    let (module, noun, verb) = (random.pick(&MODULES), random.pick(&NOUNS), random.pick(&VERBS));
    match random.within(0, 5) {
        0 => format!("[{module}] {noun} {} {verb} in {:.1} ms", random.hexadecimal(12), random.milliseconds(0, 400)),
        1 => format!(
            "{module}: {verb} {} {noun}s {{id: \"{}\", total: {}, cursor: \"{}\", stale: false}}",
            random.within(1, 500),
            random.uuid(),
            random.within(10, 100_000),
            random.suffix(22)
        ),
        2 => format!("%c{module} %c{noun}/{} {verb}", random.within(1, 1_000_000)),
        3 => format!("{noun} {verb}: {}", sentence(random)),
        _ => format!("[HMR] {verb} module ./src/{module}/{noun}.tsx ({} ms)", random.within(1, 90)),
    }
}

pub fn mistake(random: &mut Random) -> String {
    format!("{} ({} {})", random.pick(&MISTAKES), random.pick(&NOUNS), random.hexadecimal(8))
}

pub fn function(random: &mut Random) -> &'static str {
    random.pick(&FUNCTIONS)
}

pub fn sentence(random: &mut Random) -> String {
    let words = random.within(5, 18);
    let mut said = String::new();
    for _ in 0..words {
        let word = if random.chance(400) { random.pick(&VERBS) } else { random.pick(&NOUNS) };
        said.push_str(word);
        said.push(' ');
    }
    said.push_str(&random.within(1, 10_000).to_string());
    said
}

/// A short answer of an interface.
pub fn answer(random: &mut Random) -> String {
    let mut items = Vec::new();
    for _ in 0..random.within(1, 5) {
        items.push(format!(
            "{{\"id\":\"{}\",\"{}\":{},\"name\":\"{}\",\"updated\":\"2026-11-{:02}T{:02}:{:02}:{:02}Z\"}}",
            random.suffix(12),
            random.pick(&NOUNS),
            random.within(1, 100_000),
            random.pick(&NOUNS),
            random.within(1, 31),
            random.within(0, 24),
            random.within(0, 60),
            random.within(0, 60)
        ));
    }
    format!("{{\"items\":[{}],\"next\":\"{}\"}}", items.join(","), random.suffix(16))
}
