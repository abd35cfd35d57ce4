//! Which addresses the operator's rules refuse.
//!
//! What must stay true: an address is judged as a browser reads it, so that no other spelling of a
//! refused one passes; and what Chromium is asked to hold back is never less than what a rule means.

use std::iter;
use std::net::Ipv4Addr;
use std::sync::Arc;

use url::Url;

use crate::limits::{BLOCK_RULES_BYTES_MAX, BLOCK_RULES_MAX};

/// Rules in the order in which they were given. Cheap to clone; empty when there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blocklist(Arc<[Rule]>);

/// `ads.example`, `*.example.com`, `ads.example:8080`, `https://x.example/admin/*`.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// As the operator wrote it.
    text: String,
    /// `None`: both.
    secure: Option<bool>,
    /// Of the host itself, or of every host below it.
    host: String,
    is_below: bool,
    /// Not an address of numbers.
    is_name: bool,
    port: Option<u16>,
    /// What path and query must be; `None`: anything.
    path: Option<String>,
}

impl Blocklist {
    /// Reads rules separated by commas, semicolons or white space.
    ///
    /// # Errors
    /// Which of them is no rule, in words that fit after the option's name.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > BLOCK_RULES_BYTES_MAX {
            return Err(format!("must be at most {BLOCK_RULES_BYTES_MAX} bytes of rules"));
        }
        let parts = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).filter(|part| !part.is_empty());
        let mut rules: Vec<Rule> = Vec::new();
        for part in parts {
            let rule = Rule::read(part).ok_or_else(|| {
                format!(
                    "must be hosts and addresses such as ads.example, *.example.com or https://x.example/admin/*, \
                     and {part:?} is none"
                )
            })?;
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        match rules.len() {
            0 => Err("must name at least one host or address".to_owned()),
            1..=BLOCK_RULES_MAX => Ok(Self(rules.into())),
            _ => Err(format!("must be at most {BLOCK_RULES_MAX} rules")),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The rules as they are written.
    #[must_use]
    pub fn show(&self) -> String {
        self.0.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>().join(",")
    }

    /// The first rule that refuses `address`; what is no address of a network is refused by none.
    #[must_use]
    pub fn refuses(&self, address: &str) -> Option<&str> {
        if self.is_empty() {
            return None;
        }
        let url = Url::parse(address).ok()?;
        let secure = match url.scheme() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return None,
        };
        let host = host_of(&url)?;
        let path = path_of(&url);
        let refusing = self.0.iter().find(|rule| {
            rule.secure.is_none_or(|wanted| wanted == secure)
                && rule.port.is_none_or(|port| url.port_or_known_default() == Some(port))
                && rule.names(&host)
                && rule.path.as_deref().is_none_or(|wanted| covers(wanted, &path))
        });
        refusing.map(|rule| rule.text.as_str())
    }

    /// Wildcards that at least all refused addresses match: what the browser asks about.
    #[must_use]
    pub fn suspects(&self) -> Vec<String> {
        self.0.iter().flat_map(Rule::spellings).map(|host| format!("*{host}*")).collect()
    }

    /// Rules for Chromium's own look-up of hosts, which holds where it asks nobody: WebSockets and
    /// speculative loads. A rule with a path has none, because a look-up knows no paths.
    #[must_use]
    pub fn lookup_rules(&self) -> Option<String> {
        let whole = self.0.iter().filter(|rule| rule.path.is_none());
        let rule = |rule: &Rule| {
            let below = if rule.is_below { "*." } else { "" };
            let port = rule.port.map(|port| format!(":{port}")).unwrap_or_default();
            let mut names = rule.spellings();
            // The look-up takes a name with a last dot for another.
            names.extend(rule.is_name.then(|| format!("{}.", rule.host)));
            names.into_iter().map(|name| format!("MAP {below}{name}{port} ~NOTFOUND")).collect::<Vec<_>>().join(",")
        };
        let rules: Vec<String> = whole.map(rule).collect();
        (!rules.is_empty()).then(|| rules.join(","))
    }
}

impl Rule {
    fn read(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let (secure, rest) = match lower.split_once("://") {
            Some(("http" | "ws", rest)) => (Some(false), rest),
            Some(("https" | "wss", rest)) => (Some(true), rest),
            Some(("*", rest)) => (None, rest),
            Some(_) => return None,
            None => (None, lower.as_str()),
        };
        let (is_below, rest) = rest.strip_prefix("*.").map_or((false, rest), |rest| (true, rest));
        let (authority, path) = rest.find('/').map_or((rest, None), |at| (&rest[..at], Some(&rest[at..])));
        if authority.is_empty() || authority.contains(['*', '@', '?', '#', '\\', '%']) || rest.contains('#') {
            return None;
        }
        let scheme = if secure == Some(true) { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{authority}{}", path.unwrap_or_default())).ok()?;
        let is_name = matches!(url.host(), Some(url::Host::Domain(_)));
        if is_below && !is_name {
            return None;
        }
        // A port that is the scheme's own is not kept by the parser, and is meant all the same.
        let told = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let default = secure.and_then(|_| url.port_or_known_default());
        let path = path.filter(|path| !matches!(*path, "/" | "/*")).map(|_| path_of(&url));
        let port = url.port().or(told.filter(|_| !authority.ends_with(']'))).or(default);
        Some(Self { text: text.to_owned(), secure, host: host_of(&url)?, is_below, is_name, port, path })
    }

    /// The host as a browser may write it: an IPv4 address has a form of IPv6 that reaches the same.
    fn spellings(&self) -> Vec<String> {
        let mapped = self.host.parse::<Ipv4Addr>().ok().map(|address| {
            let [a, b, c, d] = address.octets().map(u16::from);
            format!("[::ffff:{:x}:{:x}]", a << 8 | b, c << 8 | d)
        });
        iter::once(self.host.clone()).chain(mapped).collect()
    }

    fn names(&self, host: &str) -> bool {
        match host.strip_suffix(self.host.as_str()) {
            Some("") => !self.is_below,
            Some(before) => self.is_below && before.ends_with('.'),
            None => false,
        }
    }
}

/// The host without the dot that may end it; IPv4 inside IPv6 is IPv4.
fn host_of(url: &Url) -> Option<String> {
    if let Some(address) = url.host().and_then(|host| match host {
        url::Host::Ipv6(address) => address.to_ipv4_mapped(),
        _ => None,
    }) {
        return Some(address.to_string());
    }
    let host = url.host_str()?.trim_end_matches('.');
    (!host.is_empty()).then(|| host.to_owned())
}

/// Path and query with everything decoded and in small letters: servers do not agree on the difference.
fn path_of(url: &Url) -> String {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let raw = format!("{}{query}", url.path());
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let decoded = if first == b'%' { digit(0).zip(digit(1)) } else { None };
        match decoded {
            // Two digits are less than 256.
            Some((high, low)) => {
                out.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).to_lowercase()
}

/// Whether `path` is `wanted`, in which `*` is anything, or lies below it. The time is in proportion to
/// the length of `path`, whatever a page makes of it.
fn covers(wanted: &str, path: &str) -> bool {
    let (before, last) = wanted.rsplit_once('*').unwrap_or(("", wanted));
    let lies_below = |rest: &str| {
        let is_end = rest.is_empty() || rest.starts_with(['/', '?', '&', ';']);
        is_end || wanted.ends_with(['*', '/'])
    };
    if before.is_empty() && !wanted.starts_with('*') {
        return path.strip_prefix(wanted).is_some_and(lies_below);
    }
    let mut rest = path;
    for (position, part) in before.split('*').enumerate() {
        let at = if position == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        let Some(at) = at else { return false };
        rest = &rest[at + part.len()..];
    }
    last.is_empty() || rest.match_indices(last).any(|(at, found)| lies_below(&rest[at + found.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rules: &str, address: &str) -> bool {
        Blocklist::read(rules).expect(rules).refuses(address).is_some()
    }

    #[test]
    fn a_rule_means_a_host_hosts_below_it_a_port_a_scheme_or_a_path() {
        let cases = [
            ("ads.example", "https://ads.example/x?y", true),
            ("ads.example", "wss://ads.example:8443/socket", true),
            ("ads.example", "https://www.ads.example/", false),
            ("ads.example", "https://bads.example/", false),
            ("ads.example", "https://x.example/?u=http://ads.example/", false),
            ("*.example.com", "http://a.b.example.com/", true),
            ("*.example.com", "http://example.com/", false),
            ("*.example.com", "http://badexample.com/", false),
            ("ads.example:8080", "http://ads.example:8080/", true),
            ("ads.example:8080", "http://ads.example/", false),
            ("ads.example:80", "http://ads.example/", true),
            ("https://x.example", "https://x.example/any", true),
            ("https://x.example", "http://x.example/any", false),
            ("https://x.example/admin/*", "https://x.example/admin/users", true),
            ("https://x.example/admin/*", "https://x.example/public", false),
            ("x.example/admin", "https://x.example/admin", true),
            ("x.example/admin", "https://x.example/admin/users", true),
            ("x.example/admin", "https://x.example/administer", false),
            ("x.example/a/*/c", "https://x.example/a/b/b/c?d", true),
            ("x.example/a/*/c", "https://x.example/a/b/cc", false),
            ("x.example/*.exe", "https://x.example/a/b.exe", true),
            ("[::1]", "http://[::1]:99/", true),
            ("127.0.0.1", "http://127.0.0.1:99/", true),
        ];
        for (rules, address, wanted) in cases {
            assert_eq!(refused(rules, address), wanted, "{rules} {address}");
        }
    }

    #[test]
    fn another_spelling_of_an_address_is_the_same_address() {
        let host = "ads.example, 127.0.0.1, b\u{fc}cher.example";
        for address in [
            "HTTP://ADS.EXAMPLE./",
            "http://user:pass@ads.example/",
            "http:ads.example",
            "http:\\\\ads.example\\x",
            "http://ads%2Eexample/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://[::ffff:127.0.0.1]/",
            "ws://[0:0:0:0:0:FFFF:7f00:1]:99/",
            "http://xn--bcher-kva.example/",
        ] {
            assert!(refused(host, address), "{address}");
        }
        assert!(refused("[::ffff:10.0.0.1]", "http://10.0.0.1/") && !refused("[::1]", "http://127.0.0.1/"));
        for path in ["/%61dmin", "/ADMIN/x", "/x/../admin", "/%2e/admin/", "/admin%2Fx"] {
            assert!(refused("x.example/admin", &format!("http://x.example{path}")), "{path}");
        }
    }

    #[test]
    fn what_is_no_rule_or_refuses_everything_is_no_option() {
        for text in
            ["*", "*.", "http://*", "a.*.example", "ftp://x.example", "x@y", "*.127.0.0.1", " , ", "x.example#a"]
        {
            assert!(Blocklist::read(text).is_err(), "{text}");
        }
        assert!(Blocklist::read(&"a.example,".repeat(BLOCK_RULES_BYTES_MAX)).is_err());
        let twice = Blocklist::read("a.example; a.example b.example").expect("rules");
        assert_eq!((twice.len(), twice.show().as_str()), (2, "a.example,b.example"));
    }

    #[test]
    fn chromium_is_asked_to_look_up_no_host_that_is_refused_as_a_whole() {
        let rules = Blocklist::read("*.a.example b.example:81 https://c.example d.example/x").expect("rules");
        let lookup = rules.lookup_rules().expect("rules");
        let wanted =
            ["*.a.example", "*.a.example.", "b.example:81", "b.example.:81", "c.example:443", "c.example.:443"];
        assert_eq!(lookup, wanted.map(|host| format!("MAP {host} ~NOTFOUND")).join(","));
        assert_eq!(rules.suspects(), ["*a.example*", "*b.example*", "*c.example*", "*d.example*"]);
        let numbers = Blocklist::read("[::ffff:127.0.0.1]:80").expect("rules");
        assert_eq!(numbers.suspects(), ["*127.0.0.1*", "*[::ffff:7f00:1]*"]);
        let lookup = "MAP 127.0.0.1:80 ~NOTFOUND,MAP [::ffff:7f00:1]:80 ~NOTFOUND";
        assert_eq!(numbers.lookup_rules().as_deref(), Some(lookup));
    }
}
