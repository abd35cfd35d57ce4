//! Bodies, fetched beside the stream of events.
//!
//! Every body ends as one `network.body` event: with its text, with an artifact, or with the reason
//! why it was not kept. A few are fetched at a time; the queue is bounded and refuses out loud.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use storage::artifact::ArtifactStore;
use storage::event::catalog::NetworkBody;
use storage::event::{Context, Draft, Symbol};
use storage::limits::TEXT_FIELD_BYTES_MAX;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use super::super::chromium::{CdpError, Connection, SessionKey, envelope};
use super::super::state::IN_FLIGHT_MAX;
use super::outgoing::{artifact_kept, truncated};
use super::stream::{self, Piece, Source};
use super::{BodyPolicy, BodyRules, Setting};
use crate::deadline::Deadline;
use crate::journal::Journal;
use crate::redact::{Redactor, looks_like_json};

/// Bodies fetched at one time.
const FETCHES_MAX: usize = 8;
/// Bodies that may wait to be fetched.
const WAITING_MAX: usize = IN_FLIGHT_MAX;
/// How long Chromium may take to hand over one.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

impl Direction {
    pub(super) fn word(self) -> &'static str {
        match self {
            Direction::Request => "request",
            Direction::Response => "response",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Direction::Request => "Network.getRequestPostData",
            Direction::Response => "Network.getResponseBody",
        }
    }
}

/// One body to fetch.
pub(super) struct Job {
    pub context: Context,
    pub session: SessionKey,
    pub browser_id: String,
    pub direction: Direction,
    pub media_type: String,
    /// As far as the events told.
    pub decoded_bytes: u64,
    /// There is none by the rules of HTTP.
    pub bodiless: bool,
    /// The response ended before its body did.
    pub broken_off: bool,
    /// A service worker hands answers on without reading them, and Chromium then has nothing.
    pub by_service_worker: bool,
}

impl Job {
    pub(super) fn of_request(context: Context, session: SessionKey, browser_id: String, media_type: String) -> Self {
        let direction = Direction::Request;
        Self {
            context,
            session,
            browser_id,
            direction,
            media_type,
            decoded_bytes: 0,
            bodiless: false,
            broken_off: false,
            by_service_worker: false,
        }
    }
}

/// What may still be kept, by the rules and by what was kept before.
pub(super) struct Quota {
    rules: BodyRules,
    left: AtomicU64,
}

impl Quota {
    /// Why a body of this size is not kept, when it is not.
    fn refuses(&self, bytes: u64) -> Option<&'static str> {
        if bytes > self.rules.bytes_max {
            return Some("too_large");
        }
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.is_err().then_some("quota")
    }

    /// As [`Quota::refuses`], for `bytes` more of a body that then has `whole` of them.
    pub(super) fn refuses_more(&self, whole: u64, bytes: u64) -> bool {
        whole > self.rules.bytes_max || self.refuses(bytes).is_some()
    }

    fn used_up(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

/// Takes jobs and works them off.
pub(super) struct Fetcher {
    jobs: mpsc::Sender<Job>,
    pending: Arc<watch::Sender<u64>>,
    means: Arc<Means>,
    task: JoinHandle<()>,
}

/// What work on bodies needs.
pub(super) struct Means {
    pub connection: Connection,
    pub journal: Journal,
    pub artifacts: ArtifactStore,
    pub redactor: Arc<Redactor>,
    pub quota: Quota,
    pub pending: Arc<watch::Sender<u64>>,
}

impl Fetcher {
    pub(super) fn start(setting: &Setting) -> Self {
        let (jobs, queue) = mpsc::channel(WAITING_MAX);
        let pending = Arc::new(watch::channel(0).0);
        let left = AtomicU64::new(setting.bodies.session_bytes_max);
        let quota = Quota { rules: setting.bodies, left };
        let means = Arc::new(Means {
            connection: setting.connection.clone(),
            journal: setting.journal.clone(),
            artifacts: setting.artifacts.clone(),
            redactor: setting.redactor.clone(),
            quota,
            pending: pending.clone(),
        });
        let task = tokio::spawn(work(means.clone(), queue, pending.clone()));
        Self { jobs, pending, means, task }
    }

    pub(super) fn pending(&self) -> watch::Receiver<u64> {
        self.pending.subscribe()
    }

    /// Queues a job; gives back the event to record when it will not be fetched.
    pub(super) fn submit(&self, job: Job) -> Option<(Context, NetworkBody)> {
        let rules = &self.means.quota.rules;
        let omitted = match job.direction {
            _ if job.bodiless => Some("no_content"),
            direction if is_against(rules, direction, &job.media_type) => Some("policy"),
            _ if job.decoded_bytes > rules.bytes_max => Some("too_large"),
            _ if self.means.quota.used_up() => Some("quota"),
            _ => None,
        };
        if let Some(reason) = omitted {
            return Some((job.context, omit(job.direction, job.decoded_bytes, reason)));
        }
        self.pending.send_modify(|pending| *pending += 1);
        match self.jobs.try_send(job) {
            Ok(()) => None,
            Err(mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job)) => {
                self.pending.send_modify(|pending| *pending -= 1);
                Some((job.context, omit(job.direction, job.decoded_bytes, "unavailable")))
            }
        }
    }

    /// Why a body that is at hand is not kept, when it is not; else its size counts as kept.
    pub(super) fn refuses(&self, direction: Direction, media_type: &str, bytes: u64) -> Option<&'static str> {
        if is_against(&self.means.quota.rules, direction, media_type) {
            return Some("policy");
        }
        self.means.quota.refuses(bytes)
    }

    /// Reads a response while it runs, when its kind is kept at all.
    pub(super) fn stream(&self, source: Source) -> Option<mpsc::Sender<Piece>> {
        let kept = !is_against(&self.means.quota.rules, Direction::Response, &source.media_type);
        (kept && is_text(&source.media_type)).then(|| stream::start(self.means.clone(), source))
    }

    /// The body that is being read is over; it counts as pending until it is recorded. False when none
    /// is being read.
    pub(super) fn ends(&self, pieces: Option<&mpsc::Sender<Piece>>) -> bool {
        let Some(pieces) = pieces else { return false };
        self.pending.send_modify(|pending| *pending += 1);
        let told = pieces.try_send(Piece::End).is_ok();
        if !told {
            self.pending.send_modify(|pending| *pending -= 1);
        }
        told
    }

    /// Runs other slow work beside the stream of events; it counts as pending like a body.
    pub(super) fn beside(&self, work: impl FnOnce() + Send + 'static) {
        let pending = self.pending.clone();
        pending.send_modify(|pending| *pending += 1);
        tokio::task::spawn_blocking(move || {
            work();
            pending.send_modify(|pending| *pending -= 1);
        });
    }

    /// Takes no more jobs and waits until everything pending is done.
    pub(super) async fn finish(self) {
        let mut pending = self.pending.subscribe();
        drop(self.jobs);
        // Errors mean that the work has ended otherwise; there is nothing to wait for then.
        let _ = self.task.await;
        let _ = pending.wait_for(|pending| *pending == 0).await;
    }
}

async fn work(means: Arc<Means>, mut queue: mpsc::Receiver<Job>, pending: Arc<watch::Sender<u64>>) {
    let places = Arc::new(Semaphore::new(FETCHES_MAX));
    while let Some(job) = queue.recv().await {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (means, pending) = (means.clone(), pending.clone());
        tokio::spawn(async move {
            let drafts = means.body(job).await;
            means.journal.record(drafts);
            pending.send_modify(|pending| *pending -= 1);
            drop(place);
        });
    }
    // Whoever has all places has waited for everybody.
    let _ = places.acquire_many(FETCHES_MAX as u32).await;
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fetched {
    body: String,
    post_data: String,
    base64_encoded: bool,
}

impl Means {
    async fn body(&self, job: Job) -> Vec<Draft> {
        let omitted = |bytes, reason| vec![Draft::new(&job.context, &omit(job.direction, bytes, reason))];
        let fetched = match self.fetch(&job).await {
            Ok(fetched) => fetched,
            Err(CdpError::Protocol { .. }) if job.broken_off => return omitted(job.decoded_bytes, "request_failed"),
            Err(error) => return omitted(job.decoded_bytes, why(&error)),
        };
        let text = if job.direction == Direction::Request { fetched.post_data } else { fetched.body };
        let content =
            if fetched.base64_encoded { STANDARD.decode(&text).unwrap_or_default() } else { text.into_bytes() };
        let bytes = content.len() as u64;
        if bytes == 0 && job.by_service_worker {
            return omitted(0, "passed_on");
        }
        if let Some(reason) = self.quota.refuses(bytes) {
            return omitted(bytes, reason);
        }
        let truncated_fields = truncated(&self.redactor, &[("body", job.broken_off)]);
        let text = job.direction == Direction::Request || is_text(&job.media_type);
        let content = if text || is_multipart_form(&job.media_type) || looks_like_json_bytes(&content) {
            redacted(&self.redactor, content, &job.media_type)
        } else {
            content
        };
        let short = std::str::from_utf8(&content).ok().filter(|_| text || looks_like_json_bytes(&content));
        let short = short.and_then(|text| self.redactor.short_body(text, TEXT_FIELD_BYTES_MAX));
        let direction = Symbol::fold(job.direction.word());
        if short.is_some() {
            let payload =
                NetworkBody { direction, bytes, text: short, artifact: None, omitted: None, truncated_fields };
            return vec![Draft::new(&job.context, &payload)];
        }
        let artifacts = self.artifacts.clone();
        let Ok(Ok(kept)) = tokio::task::spawn_blocking(move || artifacts.put(&content)).await else {
            return omitted(bytes, "unavailable");
        };
        let artifact = Some(kept.handle.clone());
        let payload = NetworkBody { direction, bytes, text: None, artifact, omitted: None, truncated_fields };
        let kept = artifact_kept(&job.context, &kept, "body", &job.media_type, &self.redactor);
        vec![kept, Draft::new(&job.context, &payload)]
    }

    async fn fetch(&self, job: &Job) -> Result<Fetched, CdpError> {
        let params = json!({ "requestId": job.browser_id });
        let limit = Deadline::after(FETCH_LIMIT);
        let text = self.connection.raw_text(Some(&job.session), job.direction.method(), params, limit).await?;
        envelope::parse(&text).ok_or(CdpError::Undecodable)
    }
}

/// Why Chromium did not hand over a body.
fn why(error: &CdpError) -> &'static str {
    match error {
        CdpError::TooLarge => "too_large",
        // It keeps so much of bodies and no more, and none of a document that has gone.
        CdpError::Protocol { message, .. } if message.contains("evicted") || message.contains("No resource") => {
            "evicted"
        }
        CdpError::Closed => "page_closed",
        _ => "unavailable",
    }
}

/// Whether the policy keeps no such bodies. What was sent is kept whatever it is called.
fn is_against(rules: &BodyRules, direction: Direction, media_type: &str) -> bool {
    match rules.policy {
        BodyPolicy::None => true,
        BodyPolicy::Text => direction == Direction::Response && !is_text(media_type),
        BodyPolicy::All => false,
    }
}

/// A body that may hold secrets, without them. One that is no text stays as it is, unless it is a form,
/// whose files are left out, or holds a declared secret.
pub(super) fn redacted(redactor: &Redactor, content: Vec<u8>, media_type: &str) -> Vec<u8> {
    let error = match String::from_utf8(content) {
        Ok(text) => return redactor.body(&text, media_type).into_owned().into_bytes(),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(error.as_bytes());
    let shown = redactor.body(&text, media_type);
    if is_multipart_form(media_type) || shown != text {
        return shown.into_owned().into_bytes();
    }
    drop(shown);
    error.into_bytes()
}

pub(super) fn omit(direction: Direction, bytes: u64, reason: &'static str) -> NetworkBody {
    NetworkBody {
        direction: Symbol::fold(direction.word()),
        bytes,
        text: None,
        artifact: None,
        omitted: Some(Symbol::fold(reason)),
        truncated_fields: None,
    }
}

fn is_multipart_form(media_type: &str) -> bool {
    media_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
}

fn looks_like_json_bytes(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(looks_like_json)
}

/// Whether a media type promises text.
fn is_text(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    let words = ["json", "javascript", "ecmascript", "xml", "x-www-form-urlencoded", "graphql", "yaml"];
    media_type.starts_with("text/") || words.iter().any(|word| media_type.contains(word))
}
