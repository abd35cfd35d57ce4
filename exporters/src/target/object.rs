//! An object of a store that speaks S3, whole or not at all; the only home of `object_store`.
//!
//! What must stay true: an object appears by one request, a put or the completion of an upload in
//! parts; what is given up is aborted, and parts that even that could not remove are never listed as
//! an object. Memory is two parts at most. Access comes from whoever read the environment, and no
//! message of the store's is passed on: it may quote what was signed.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::path::Path as ObjectPath;
use object_store::{
    BackoffConfig, ClientOptions, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    RetryConfig,
};
use tokio::runtime::Runtime;

use crate::export::ExportError;

/// Bytes sent at once; ten thousand of them, as many as a store takes, hold the longest export.
const PART_BYTES: usize = 8 * 1024 * 1024;
/// How long one request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How often a request is made again, and for how long in all.
const RETRIES_MAX: usize = 3;
const RETRY_LIMIT: Duration = Duration::from_secs(30);

/// What the environment says of a store that speaks S3.
#[derive(Clone, Default)]
pub struct StoreAccess {
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    pub session_token: Option<String>,
    pub region: Option<String>,
    /// Another store than Amazon's.
    pub endpoint: Option<String>,
    /// Whether the endpoint may be spoken to without encryption.
    pub allow_http: bool,
}

impl fmt::Debug for StoreAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreAccess").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// An object by store and name.
#[derive(Clone)]
pub struct ObjectPlace {
    store: Arc<dyn ObjectStore>,
    path: ObjectPath,
    bucket: String,
}

impl ObjectPlace {
    /// # Errors
    /// When access is missing or makes no sense.
    pub fn s3(bucket: &str, key: &str, access: &StoreAccess) -> Result<Self, ExportError> {
        let shown = format!("s3://{bucket}/{key}");
        let wrong =
            |reason: &str| ExportError::Store { action: "use", place: shown.clone(), reason: reason.to_owned() };
        let (Some(id), Some(secret)) = (&access.access_key_id, &access.secret_access_key) else {
            return Err(wrong("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both in the environment"));
        };
        let client = ClientOptions::new().with_timeout(REQUEST_LIMIT).with_connect_timeout(CONNECT_LIMIT);
        let retry =
            RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_LIMIT, backoff: BackoffConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_client_options(client)
            .with_bucket_name(bucket)
            .with_access_key_id(id)
            .with_secret_access_key(secret)
            .with_region(access.region.as_deref().unwrap_or("us-east-1"))
            .with_allow_http(access.allow_http)
            .with_retry(retry);
        if let Some(token) = &access.session_token {
            builder = builder.with_token(token);
        }
        if let Some(endpoint) = &access.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let store = builder.build().map_err(|_| wrong("AWS_REGION or AWS_ENDPOINT_URL cannot be used"))?;
        Self::new(Arc::new(store), bucket, key)
    }

    fn new(store: Arc<dyn ObjectStore>, bucket: &str, key: &str) -> Result<Self, ExportError> {
        let path = ObjectPath::parse(key).map_err(|_| ExportError::Target { path: key.into() })?;
        Ok(Self { store, path, bucket: bucket.to_owned() })
    }

    /// A store that is this process's memory.
    #[cfg(test)]
    pub(crate) fn in_memory(store: &Arc<object_store::memory::InMemory>, key: &str) -> Self {
        Self::new(store.clone(), "memory", key).expect("tests name their objects well")
    }

    pub(super) fn name(&self) -> String {
        self.path.filename().unwrap_or_default().to_owned()
    }

    pub(super) fn with_suffix(&self, suffix: &str) -> Self {
        Self { path: ObjectPath::from(format!("{}{suffix}", self.path)), ..self.clone() }
    }

    pub(super) fn remove(&self) {
        if let Ok(runtime) = runtime() {
            let _ = runtime.block_on(self.store.delete(&self.path));
        }
    }

    fn failed(&self, action: &'static str, error: &object_store::Error) -> ExportError {
        if let object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } = error {
            return ExportError::Exists { path: self.to_string().into() };
        }
        ExportError::Store { action, place: self.to_string(), reason: reason(error) }
    }
}

impl fmt::Display for ObjectPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.path)
    }
}

impl fmt::Debug for ObjectPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// In words of ours; of what lies below only what the operating system said.
fn reason(error: &object_store::Error) -> String {
    let words = match error {
        object_store::Error::NotFound { .. } => "there is no such bucket",
        object_store::Error::PermissionDenied { .. } => "the store does not permit it",
        object_store::Error::Unauthenticated { .. } => "the store does not accept the credentials",
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            "the store cannot do that"
        }
        _ => "the store did not do it",
    };
    let mut cause = error.source();
    while let Some(below) = cause {
        if let Some(system) = below.downcast_ref::<io::Error>() {
            return format!("{words}: {}", system.kind());
        }
        cause = below.source();
    }
    words.to_owned()
}

/// Exports run on threads that may block; each upload waits on a small runtime of its own.
fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// An upload under way.
pub(super) struct ObjectUpload {
    place: ObjectPlace,
    runtime: Runtime,
    overwrite: bool,
    buffer: Vec<u8>,
    /// From the second part on.
    parts: Option<Box<dyn MultipartUpload>>,
    failed: Option<object_store::Error>,
}

impl ObjectUpload {
    pub(super) fn create(place: &ObjectPlace, overwrite: bool) -> Result<Self, ExportError> {
        let runtime = runtime().map_err(|error| ExportError::Store {
            action: "use",
            place: place.to_string(),
            reason: error.to_string(),
        })?;
        match runtime.block_on(place.store.head(&place.path)) {
            Ok(_) if !overwrite => return Err(ExportError::Exists { path: place.to_string().into() }),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(place.failed("look at", &error)),
        }
        Ok(Self { place: place.clone(), runtime, overwrite, buffer: Vec::new(), parts: None, failed: None })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == PART_BYTES
            && let Err(error) = self.send_part()
        {
            self.failed = Some(error);
            return Err(io::Error::other("a part was not taken"));
        }
        Ok(count)
    }

    fn send_part(&mut self) -> Result<(), object_store::Error> {
        let part = PutPayload::from(std::mem::take(&mut self.buffer));
        let (store, path) = (&self.place.store, &self.place.path);
        let mut parts = match self.parts.take() {
            Some(parts) => parts,
            None => self.runtime.block_on(store.put_multipart(path))?,
        };
        let sending = parts.put_part(part);
        self.parts = Some(parts);
        self.runtime.block_on(sending)
    }

    pub(super) fn publish(&mut self) -> Result<(), ExportError> {
        let done = if self.parts.is_some() { self.complete() } else { self.put() };
        done.map_err(|error| self.place.failed("write", &error))
    }

    fn complete(&mut self) -> Result<(), object_store::Error> {
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        if !self.overwrite && self.runtime.block_on(self.place.store.head(&self.place.path)).is_ok() {
            return Err(object_store::Error::AlreadyExists {
                path: self.place.path.to_string(),
                source: "it came meanwhile".into(),
            });
        }
        if let Some(parts) = &mut self.parts {
            self.runtime.block_on(parts.complete())?;
        }
        self.parts = None;
        Ok(())
    }

    fn put(&mut self) -> Result<(), object_store::Error> {
        let bytes = PutPayload::from(std::mem::take(&mut self.buffer));
        let mode = if self.overwrite { PutMode::Overwrite } else { PutMode::Create };
        let put = self.place.store.put_opts(&self.place.path, bytes, PutOptions::from(mode));
        self.runtime.block_on(put).map(drop)
    }

    pub(super) fn error(&self, action: &'static str, reason: &str) -> ExportError {
        ExportError::Store { action, place: self.place.to_string(), reason: reason.to_owned() }
    }

    /// Why a part was not taken.
    pub(super) fn failure(&mut self) -> Option<ExportError> {
        self.failed.take().map(|error| self.place.failed("write", &error))
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            // Best effort: parts that stay are no object, and stores remove them by rules of their own.
            let _ = self.runtime.block_on(parts.abort());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use object_store::memory::InMemory;

    use super::*;
    use crate::sample::{LOG_ID, Samples, context, hostile, request};
    use crate::target::{Destination, Target};
    use crate::{ExportOptions, Format, export};

    fn names(store: &InMemory) -> Vec<String> {
        let listed = runtime().expect("a runtime").block_on(store.list_with_delimiter(None)).expect("a list");
        listed.objects.into_iter().map(|object| object.location.to_string()).collect()
    }

    fn place(store: &Arc<InMemory>, key: &str) -> Destination {
        Destination::Object(ObjectPlace::in_memory(store, key))
    }

    #[test]
    fn objects_hold_the_bytes_that_files_hold() {
        let (store, samples) = (Arc::new(InMemory::new()), hostile());
        let options = ExportOptions::new(LOG_ID, "0.1.0");
        let written = export(Format::Ndjson, place(&store, "a.ndjson"), &options, &mut |visit| samples.scan(visit))
            .expect("the export succeeds");
        assert_eq!(names(&store), ["a.ndjson", "a.ndjson.manifest.json"]);
        let runtime = runtime().expect("a runtime");
        let got = runtime.block_on(async { store.get(&"a.ndjson".into()).await?.bytes().await }).expect("the object");
        assert_eq!((got.len() as u64, storage::audit::digest(&got)), (written.bytes, hash(&written.sha256)));
        let again = export(Format::Ndjson, place(&store, "a.ndjson"), &options, &mut |visit| samples.scan(visit));
        assert!(matches!(again, Err(ExportError::Exists { .. })), "{again:?}");
    }

    fn hash(hexadecimal: &str) -> [u8; 32] {
        let digit = |at: usize| u8::from_str_radix(&hexadecimal[2 * at..2 * at + 2], 16).expect("hexadecimal");
        std::array::from_fn(digit)
    }

    fn published(target: &mut Target) -> u64 {
        let (bytes, _) = target.prepare().expect("all of it is there");
        target.publish().expect("it is whole");
        bytes
    }

    #[test]
    fn parts_become_an_object_only_together() {
        let store = Arc::new(InMemory::new());
        let mut target = Target::create(&place(&store, "big"), u64::MAX, false).expect("the name is free");
        let bytes = vec![7; 2 * PART_BYTES + 5];
        target.write_all(&bytes).expect("parts are taken");
        assert_eq!(names(&store), Vec::<String>::new(), "under way, nothing is listed");
        assert_eq!(published(&mut target), bytes.len() as u64);
        assert_eq!(names(&store), ["big"]);
        let mut late = Target::create(&place(&store, "late"), u64::MAX, false).expect("the name is free");
        late.write_all(&bytes).expect("parts are taken");
        let mut first = Target::create(&place(&store, "late"), u64::MAX, false).expect("the name is still free");
        first.write_all(b"mine").expect("taken");
        first.publish().expect("the first one takes the name");
        assert!(matches!(late.publish(), Err(ExportError::Exists { .. })));
        drop(late);
        let given_up = Target::create(&place(&store, "none"), u64::MAX, false);
        given_up.expect("the name is free").write_all(&bytes).expect("parts are taken");
        assert_eq!(names(&store), ["big", "late"]);
    }

    #[test]
    fn a_bound_holds_for_objects_too() {
        let (store, mut samples) = (Arc::new(InMemory::new()), Samples::default());
        for number in 0..2_000 {
            samples.push(&context(number), &request(number));
        }
        for format in Format::ALL {
            let options = ExportOptions { bytes_max: 4_096, ..ExportOptions::new(LOG_ID, "0.1.0") };
            let result = export(format, place(&store, "a"), &options, &mut |visit| samples.scan(visit));
            assert!(matches!(result, Err(ExportError::Limit { bytes_max: 4_096 })), "{result:?}");
        }
        assert_eq!(names(&store), Vec::<String>::new());
    }

    #[test]
    fn access_is_never_shown() {
        let access = StoreAccess { secret_access_key: Some("hush-1234".into()), ..StoreAccess::default() };
        assert!(!format!("{access:?}").contains("hush"));
        let refused = ObjectPlace::s3("audit", "a", &access).expect_err("half an access is none").to_string();
        assert!(refused.contains("AWS_ACCESS_KEY_ID") && !refused.contains("hush"), "{refused}");
    }
}
