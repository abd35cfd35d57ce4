//! How people name a place: a path, `file:///path` or `s3://bucket/key`.
//!
//! What must stay true: an address has one spelling, so that "lies below" is a comparison of parts: no
//! empty part, no `.` or `..`, nothing that a URL would take for a query, a fragment or an escape.

use std::fmt;
use std::path::{Path, PathBuf};

/// The longest address, in bytes.
const ADDRESS_BYTES_MAX: usize = 2_048;
const BUCKET_BYTES: std::ops::RangeInclusive<usize> = 3..=63;

/// A place that was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    File(PathBuf),
    Object { bucket: String, key: String },
}

/// Why an address is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(&'static str);

impl Address {
    /// A path, or a URL.
    ///
    /// # Errors
    /// Says what is wrong with a URL; paths are taken as they are.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if Self::is_url(text) { Self::url(text) } else { Ok(Self::File(text.into())) }
    }

    /// Whether it names its scheme.
    #[must_use]
    pub fn is_url(text: &str) -> bool {
        text.contains("://")
    }

    /// # Errors
    /// Says what is wrong with it.
    pub fn url(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(AddressError("is no URL"))?;
        let (host, path) = rest.split_once('/').ok_or(AddressError("names nothing behind its host"))?;
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError("is too long"));
        }
        if path.chars().any(|c| c.is_control() || "?#%\\*[]{}^`\"<>|~".contains(c)) {
            return Err(AddressError("holds characters that a name of ours does not need"));
        }
        // An end in a slash is for prefixes, which name a directory.
        let mut parts = path.strip_suffix('/').unwrap_or(path).split('/');
        if parts.any(|part| matches!(part, "" | "." | "..")) && !path.is_empty() {
            return Err(AddressError("has an empty part or one of dots"));
        }
        match scheme {
            "file" if host.is_empty() => Ok(Self::File(Path::new("/").join(path))),
            "file" => Err(AddressError("names a host; write file:///path")),
            "s3" if is_bucket(host) => Ok(Self::Object { bucket: host.to_owned(), key: path.to_owned() }),
            "s3" => Err(AddressError("names no bucket")),
            _ => Err(AddressError("is neither s3:// nor file://")),
        }
    }

    /// Whether this lies below `prefix`, part by part.
    #[must_use]
    pub fn is_below(&self, prefix: &Address) -> bool {
        match (self, prefix) {
            (Self::File(path), Self::File(prefix)) => path != prefix && path.starts_with(prefix),
            (Self::Object { bucket, key }, Self::Object { bucket: of, key: prefix }) => {
                let prefix = prefix.trim_end_matches('/');
                let rest = if prefix.is_empty() { Some(key.as_str()) } else { key.strip_prefix(prefix) };
                let below = |rest: &str| prefix.is_empty() || rest.starts_with('/');
                bucket == of && rest.is_some_and(|rest| below(rest) && !rest.trim_matches('/').is_empty())
            }
            _ => false,
        }
    }

    /// Whether it can be written: a directory cannot.
    #[must_use]
    pub fn names_a_file(&self) -> bool {
        match self {
            Self::File(path) => path.file_name().is_some() && !path.as_os_str().to_string_lossy().ends_with('/'),
            Self::Object { key, .. } => !key.is_empty() && !key.ends_with('/'),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Object { bucket, key } => write!(f, "s3://{bucket}/{key}"),
        }
    }
}

fn is_bucket(host: &str) -> bool {
    BUCKET_BYTES.contains(&host.len())
        && host.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_spelling() {
        let object = |key: &str| Ok(Address::Object { bucket: "audit".into(), key: key.into() });
        assert_eq!(Address::parse("s3://audit/a/b.parquet"), object("a/b.parquet"));
        assert_eq!(Address::parse("s3://audit/"), object(""));
        assert_eq!(Address::parse("file:///var/x.har"), Ok(Address::File("/var/x.har".into())));
        assert_eq!(Address::parse("../x.har"), Ok(Address::File("../x.har".into())), "a path is taken as it is");
        for wrong in [
            "s3://audit",
            "s3://audit/a//b",
            "s3://audit/../b",
            "s3://audit/a/./b",
            "s3://audit/a?x=1",
            "s3://audit/a%2fb",
            "s3://user:password@audit/a",
            "s3://AUDIT/a",
            "s3://x/a",
            "file://host/a",
            "file:///a/../b",
            "https://audit/a",
            "gs://audit/a",
            "s3://audit/a\nb",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Address::parse(&format!("s3://audit/{}", "a".repeat(3_000))).is_err());
    }

    #[test]
    fn below_is_by_whole_parts() {
        let at = |text: &str| Address::parse(text).expect(text);
        for prefix in ["s3://audit/kept", "s3://audit/kept/"] {
            assert!(at("s3://audit/kept/a").is_below(&at(prefix)));
            for other in ["s3://audit/kept", "s3://audit/kept/", "s3://audit/keptother/a", "s3://other/kept/a"] {
                assert!(!at(other).is_below(&at(prefix)), "{other} below {prefix}");
            }
        }
        assert!(at("s3://audit/a").is_below(&at("s3://audit/")));
        assert!(at("file:///srv/audit/a").is_below(&at("file:///srv/audit/")));
        assert!(!at("file:///srv/auditor/a").is_below(&at("file:///srv/audit/")));
        assert!(!at("file:///srv/audit/").names_a_file() && !at("s3://audit/a/").names_a_file());
    }
}
