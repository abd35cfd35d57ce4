//! Identifiers: one newtype per thing that has an identity, all cheap to clone.
//!
//! They are opaque text to storage; whoever mints them decides the grammar. Minting lives here too,
//! so that randomness enters the system through one door.

use std::fmt;
use std::sync::Arc;

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// One isolated browser, `<slug>-<8 of 0-9a-z>` or a name the client chose.
    SessionId;
    /// One launch of a session's browser, a UUID.
    InstanceId;
    /// One tab, `t-<6 of 0-9a-z>`, never reused.
    PageId;
    /// One frame, as Chromium names it.
    FrameId;
    /// One tool call, a UUID.
    OperationId;
    /// One network request or WebSocket, `r-<4 of 0-9a-z of its launch>-<number>`.
    RequestId;
    /// Whoever a call is made for; `local` over stdio.
    Owner;
    /// One download, Chromium's GUID.
    DownloadId;
    /// Kept bytes, `art-<32 hex of SHA-256>`.
    ArtifactHandle;
}

/// `length` characters of `0-9a-z`, uniformly random.
///
/// # Panics
/// When the operating system has no randomness to give, which no caller could mend.
#[must_use]
pub fn random_suffix(length: usize) -> String {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut out = String::with_capacity(length);
    while out.len() < length {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives randomness");
        // 252 is the largest multiple of 36 in a byte: above it the modulus would favour low letters.
        let fair = bytes.iter().filter(|b| **b < 252);
        out.extend(fair.map(|b| char::from(ALPHABET[usize::from(*b) % 36])).take(length - out.len()));
    }
    out
}

/// A fresh random UUID (version 4) in its usual text form.
#[must_use]
pub fn random_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
