//! Saved logins: cookies and local storage of a session, kept in a file to start another one with.
//!
//! What must stay true: files are this user's alone, each owner sees only their own, a name never
//! leaves its directory, a file that was altered is refused, and nothing of a login reaches the log.
//!
//! A file is two lines: facts about the login with the second line's SHA-256, then the login in
//! Playwright's `storageState` shape.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use storage::audit::{digest, hex};
use storage::directory;
use storage::ids::Owner;
use storage::time::now_micros;

use crate::browser::page::origin_of;
use crate::cookies;
use crate::fault::{Code, Fault};
use crate::limits::{AUTH_STATE_BYTES_MAX, AUTH_STATES_MAX};

const FORMAT: u64 = 1;
const SUFFIX: &str = ".storage.json";
/// The longest name, in characters.
const NAME_LENGTH_MAX: usize = 64;

/// A login. Its debug form shows no content.
#[derive(Clone, PartialEq)]
pub struct AuthState {
    /// `None` when a caller gave the content itself.
    pub name: Option<String>,
    /// As callers write them, checked.
    pub cookies: Vec<Value>,
    /// Origin and its local storage.
    pub origins: Vec<(String, Map<String, Value>)>,
}

impl fmt::Debug for AuthState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthState({:?}, {} cookies, {} origins)", self.name, self.cookies.len(), self.origins.len())
    }
}

/// What a list of saved logins shows of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    format: u64,
    pub name: String,
    pub kind: String,
    /// Milliseconds since the epoch.
    pub saved_at: i64,
    session_id: String,
    owner: String,
    sha256: String,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub path: PathBuf,
    pub bytes: u64,
}

/// Whether `name` may be a saved login's: it begins with a letter or digit, goes on with those, dots,
/// dashes and underscores, and holds no two dots in a row.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && name.len() <= NAME_LENGTH_MAX && name.chars().all(plain) && !name.contains("..")
}

impl AuthState {
    /// Reads a login in Playwright's shape.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(name: Option<&str>, value: &Value) -> Result<Self, &'static str> {
        let list = |key: &str| match &value[key] {
            Value::Null => Some(Vec::new()),
            Value::Array(items) => Some(items.clone()),
            _ => None,
        };
        let cookies = list("cookies").ok_or("cookies must be an array")?;
        cookies::checked(&cookies).map_err(|_| "cookies must each be as get_cookies shows them")?;
        let mut origins = Vec::new();
        for entry in list("origins").ok_or("origins must be an array")? {
            let origin = entry["origin"].as_str().and_then(origin_of).ok_or("an origin must be http or https")?;
            let mut items = Map::new();
            for item in entry["localStorage"].as_array().ok_or("localStorage must be an array")? {
                let key = item["name"].as_str().ok_or("localStorage has entries of name and value")?;
                let text = item["value"].as_str().ok_or("localStorage has entries of name and value")?;
                items.insert(key.to_owned(), text.into());
            }
            origins.push((origin, items));
        }
        Ok(Self { name: name.map(str::to_owned), cookies, origins })
    }

    fn to_json(&self) -> Value {
        let pairs = |items: &Map<String, Value>| -> Vec<Value> {
            items.iter().map(|(key, value)| json!({"name": key, "value": value})).collect()
        };
        let origins =
            self.origins.iter().map(|(origin, items)| json!({"origin": origin, "localStorage": pairs(items)}));
        json!({"cookies": self.cookies, "origins": origins.collect::<Vec<_>>()})
    }
}

/// Where an owner's saved logins lie. Owners are told apart by letters that every file system knows.
fn directory(data_dir: &Path, owner: &Owner) -> PathBuf {
    data_dir.join("auth-states").join(hex(&digest(owner.as_str().as_bytes())[..16]))
}

/// Writes a login under `name`, in place of one of that name. Blocking.
///
/// # Errors
/// `LIMIT_EXCEEDED`, and when the disk refuses; what stood there before then still does.
pub fn save(data_dir: &Path, owner: &Owner, session_id: &str, name: &str, state: &AuthState) -> Result<Saved, Fault> {
    let body = state.to_json().to_string();
    let facts = Facts {
        format: FORMAT,
        name: name.to_owned(),
        kind: "storage".to_owned(),
        saved_at: now_micros() / 1000,
        session_id: session_id.to_owned(),
        owner: owner.as_str().to_owned(),
        sha256: hex(&digest(body.as_bytes())),
    };
    let head = serde_json::to_string(&facts).map_err(|error| Fault::new(Code::InternalError).because(error))?;
    let text = format!("{head}\n{body}\n");
    let bytes = text.len() as u64;
    if bytes > AUTH_STATE_BYTES_MAX {
        return Err(Fault::new(Code::LimitExceeded)
            .with("limit", AUTH_STATE_BYTES_MAX)
            .with("name", "auth_state_bytes"));
    }
    let directory = directory(data_dir, owner);
    directory::make_private(&directory)?;
    let path = directory.join(format!("{name}{SUFFIX}"));
    if !path.exists() && files(&directory).len() >= AUTH_STATES_MAX {
        return Err(Fault::new(Code::LimitExceeded).with("limit", AUTH_STATES_MAX).with("name", "auth_states"));
    }
    crate::paths::write(&path, text.as_bytes())?;
    Ok(Saved { path, bytes })
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let ours =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(SUFFIX));
    entries.map(|entry| entry.path()).filter(ours).collect()
}

/// The saved logins of an owner, newest first, each with its size. Blocking.
#[must_use]
pub fn list(data_dir: &Path, owner: &Owner) -> Vec<(Facts, u64)> {
    let mut found: Vec<(Facts, u64)> = Vec::new();
    for path in files(&directory(data_dir, owner)) {
        match head(&path) {
            Some(facts) => found.push(facts),
            None => tracing::warn!("a file among the saved logins is none and is not listed"),
        }
    }
    found.sort_by(|(one, _), (other, _)| other.saved_at.cmp(&one.saved_at).then_with(|| one.name.cmp(&other.name)));
    found
}

fn head(path: &Path) -> Option<(Facts, u64)> {
    use std::io::{BufRead, BufReader, Read};
    /// The first line of a file, in bytes.
    const HEAD_BYTES_MAX: u64 = 4096;
    let file = std::fs::File::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let mut line = String::new();
    BufReader::new(file.take(HEAD_BYTES_MAX)).read_line(&mut line).ok()?;
    Some((serde_json::from_str(&line).ok()?, bytes))
}

/// Reads the login that an owner saved under `name`. Blocking.
///
/// # Errors
/// `AUTH_STATE_NOT_FOUND`, `AUTH_STATE_DAMAGED`.
pub fn load(data_dir: &Path, owner: &Owner, name: &str) -> Result<AuthState, Fault> {
    let missing = || Fault::new(Code::AuthStateNotFound).with("name", name).with("kind", "storage");
    let damaged = |why: &str| Fault::new(Code::AuthStateDamaged).with("name", name).because(why);
    if !is_name(name) {
        return Err(missing());
    }
    let path = directory(data_dir, owner).join(format!("{name}{SUFFIX}"));
    let length = std::fs::symlink_metadata(&path).map_err(|_| missing())?;
    if !length.is_file() || length.len() > AUTH_STATE_BYTES_MAX {
        return Err(damaged("it is no file of ours"));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| damaged(&error.to_string()))?;
    let (head, body) = text.split_once('\n').ok_or_else(|| damaged("it has one line"))?;
    let facts: Facts = serde_json::from_str(head).map_err(|_| damaged("its first line does not parse"))?;
    let body = body.strip_suffix('\n').unwrap_or(body);
    if facts.format != FORMAT || facts.owner != owner.as_str() || facts.sha256 != hex(&digest(body.as_bytes())) {
        return Err(damaged("its first line does not fit the second"));
    }
    let value: Value = serde_json::from_str(body).map_err(|_| damaged("its second line does not parse"))?;
    AuthState::read(Some(name), &value).map_err(damaged)
}
