//! Keeping bytes beside the log on behalf of a call: the file is durable before the event that names
//! it, and the event before the reply that does.

use storage::artifact::Kept;
use storage::event::catalog::ArtifactKept;
use storage::event::{Context, Draft, Symbol};
use storage::ids::ArtifactHandle;

use crate::envelope::{Keep, Keeping};
use crate::fault::{Code, Fault};
use crate::gateway::Gateway;

/// Keeps oversized parts of one call's result.
pub struct KeepForCall<'a> {
    pub gateway: &'a Gateway,
    pub context: Context,
}

impl Keep for KeepForCall<'_> {
    fn keep<'a>(&'a self, _field: &'a str, media_type: &'static str, bytes: Vec<u8>) -> Keeping<'a> {
        Box::pin(async move { Ok(keep(self.gateway, &self.context, "result", media_type, bytes).await?.handle) })
    }
}

/// Keeps `bytes` and records `artifact.kept`.
///
/// # Errors
/// `LIMIT_EXCEEDED` when the quota has no room, `LOG_UNAVAILABLE` when it cannot be recorded.
pub async fn keep(
    gateway: &Gateway,
    context: &Context,
    purpose: &'static str,
    media_type: &str,
    bytes: Vec<u8>,
) -> Result<Kept, Fault> {
    let artifacts = gateway.artifacts.clone();
    let kept = blocking(move || artifacts.put(&bytes)).await?;
    record(gateway, context, purpose, media_type, &kept).await?;
    Ok(kept)
}

/// Moves the file at `path` into the store and records `artifact.kept`.
///
/// # Errors
/// As [`keep`].
pub async fn keep_file(
    gateway: &Gateway,
    context: &Context,
    purpose: &'static str,
    media_type: &str,
    path: std::path::PathBuf,
) -> Result<Kept, Fault> {
    let artifacts = gateway.artifacts.clone();
    let kept = blocking(move || artifacts.put_file(&path)).await?;
    record(gateway, context, purpose, media_type, &kept).await?;
    Ok(kept)
}

async fn record(
    gateway: &Gateway,
    context: &Context,
    purpose: &'static str,
    media_type: &str,
    kept: &Kept,
) -> Result<(), Fault> {
    let event = ArtifactKept {
        artifact: kept.handle.clone(),
        purpose: Symbol::fold(purpose),
        media_type: gateway.redactor.text(media_type),
        bytes: kept.bytes,
        sha256: gateway.redactor.text(&kept.sha256),
    };
    gateway.journal.commit(vec![Draft::new(context, &event)]).await?;
    Ok(())
}

/// Runs file work off the async threads.
///
/// # Errors
/// The work's own, or `INTERNAL_ERROR` when it panicked.
pub async fn blocking<T: Send + 'static, E: Into<Fault> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Fault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Into::into),
        Err(panic) => Err(Fault::new(Code::InternalError).because(panic)),
    }
}

/// A handle as an envelope's reference.
#[must_use]
pub fn reference(handle: &ArtifactHandle) -> crate::envelope::Reference {
    crate::envelope::Reference::Artifact(handle.clone())
}
