//! JSON Web Signatures in compact form (RFC 7515) by Ed25519 (RFC 8037), as narrow as they can be.
//!
//! What must stay true: one algorithm, one header, one spelling. What is read is accepted only when
//! writing it again would give the same bytes, so no two texts mean the same and nothing that was not
//! understood is ever trusted. The key is named by its public half, so a text alone can be checked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::key::{AuditKey, PublicKey};

/// No text of ours is longer.
pub const JWS_BYTES_MAX: usize = 2048;

/// A text whose signature holds.
pub(super) struct Signed {
    pub kind: String,
    pub key: PublicKey,
    pub payload: Vec<u8>,
}

/// Signs `payload` as a text of `kind`.
pub(super) fn sign(key: &AuditKey, kind: &str, payload: &[u8]) -> String {
    compact(key, header(kind, key.public()).as_bytes(), payload)
}

fn header(kind: &str, key: PublicKey) -> String {
    format!(r#"{{"alg":"EdDSA","typ":"{kind}","kid":"{key}"}}"#)
}

fn compact(key: &AuditKey, header: &[u8], payload: &[u8]) -> String {
    let mut text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = key.sign(text.as_bytes());
    text.push('.');
    text.push_str(&URL_SAFE_NO_PAD.encode(signature));
    text
}

/// Reads a text and checks its signature by the key it names; whether that key is to be trusted is
/// for the caller to say.
pub(super) fn read(text: &str) -> Result<Signed, &'static str> {
    if text.len() > JWS_BYTES_MAX {
        return Err("it is too long");
    }
    let mut parts = text.split('.');
    let (Some(head), Some(body), Some(seal), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err("it does not have three parts");
    };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "a part is not base64url");
    let (head_bytes, payload, seal) = (decode(head)?, decode(body)?, decode(seal)?);
    let parsed: Value = serde_json::from_slice(&head_bytes).map_err(|_| "its header is not JSON")?;
    let kind = parsed["typ"].as_str().ok_or("its header names no type")?;
    let key = parsed["kid"].as_str().and_then(PublicKey::parse).ok_or("its header names no key")?;
    if header(kind, key).as_bytes() != head_bytes {
        return Err("its header is not of the one accepted form");
    }
    let seal: [u8; 64] = seal.try_into().map_err(|_| "its signature has a wrong length")?;
    if !key.verifies(&text.as_bytes()[..head.len() + 1 + body.len()], &seal) {
        return Err("its signature does not hold");
    }
    Ok(Signed { kind: kind.to_owned(), key, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, message and signature of RFC 8037, appendix A.
    const SECRET: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    const PUBLIC: &str = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const TEXT: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn key() -> AuditKey {
        AuditKey::from_secret(URL_SAFE_NO_PAD.decode(SECRET).expect("base64url").try_into().expect("32 bytes"))
    }

    #[test]
    fn the_signature_is_that_of_rfc_8037() {
        assert_eq!(key().public().to_string(), PUBLIC);
        assert_eq!(compact(&key(), br#"{"alg":"EdDSA"}"#, b"Example of Ed25519 signing"), TEXT);
        let (message, seal) = TEXT.rsplit_once('.').expect("three parts");
        let seal = URL_SAFE_NO_PAD.decode(seal).expect("base64url").try_into().expect("64 bytes");
        assert!(key().public().verifies(message.as_bytes(), &seal));
        assert!(!key().public().verifies(&message.as_bytes()[1..], &seal));
        // Sound by the standard, and still not a text of ours: it names neither type nor key.
        assert!(read(TEXT).is_err());
    }

    #[test]
    fn what_is_signed_is_read_and_nothing_near_it() {
        let text = sign(&key(), "test", b"payload");
        let signed = read(&text).expect("it is sound");
        assert_eq!(
            (signed.kind.as_str(), signed.key, signed.payload.as_slice()),
            ("test", key().public(), &b"payload"[..])
        );
        for at in 0..text.len() {
            for other in [b'A', b'B', b'.', b'=', b'_', b' ', 0xc3] {
                let mut bytes = text.clone().into_bytes();
                if std::mem::replace(&mut bytes[at], other) == other {
                    continue;
                }
                let changed = String::from_utf8_lossy(&bytes);
                assert!(read(&changed).is_err(), "byte {at} as {other}");
            }
        }
        for end in 0..text.len() {
            assert!(read(&text[..end]).is_err(), "cut at {end}");
        }
        assert!(read(&format!("{text}.")).is_err());
        assert!(read(&format!("{text} ")).is_err());
        assert!(read(&"a".repeat(JWS_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn no_other_algorithm_and_no_other_spelling_is_accepted() {
        let id = key().public();
        let refused = [
            format!(r#"{{"alg":"none","typ":"test","kid":"{id}"}}"#),
            format!(r#"{{"alg":"HS256","typ":"test","kid":"{id}"}}"#),
            format!(r#"{{"alg":"EdDSA","kid":"{id}","typ":"test"}}"#),
            format!(r#"{{"alg":"EdDSA", "typ":"test","kid":"{id}"}}"#),
            format!(r#"{{"alg":"EdDSA","typ":"test","kid":"{id}","crit":["b64"]}}"#),
            format!(r#"{{"alg":"EdDSA","alg":"none","typ":"test","kid":"{id}"}}"#),
            format!(r#"{{"alg":"EdDSA","typ":"test","kid":" {id}"}}"#),
            r#"{"alg":"EdDSA"}"#.to_owned(),
        ];
        for header in refused {
            assert!(read(&compact(&key(), header.as_bytes(), b"payload")).is_err(), "{header}");
        }
        let unsigned = format!("{}.{}.", URL_SAFE_NO_PAD.encode(header("test", id)), URL_SAFE_NO_PAD.encode("payload"));
        assert!(read(&unsigned).is_err());
    }

    #[test]
    fn weak_keys_are_no_keys() {
        let weak = format!("ed25519:{}", URL_SAFE_NO_PAD.encode([0; 32]));
        assert_eq!(PublicKey::parse(&weak), None);
        assert_eq!(PublicKey::parse(&format!(" {PUBLIC}\n")), Some(key().public()));
        assert_eq!(PublicKey::parse(&PUBLIC.replace("ed25519:", "")), None);
    }
}
