//! Events on their way to the log, some of which first need bytes kept beside it.
//!
//! The order of arrival stays: a batch waits for its artifacts, which are written side by side. In a
//! flood of long texts only the first of each batch are kept whole; the others are cut and say so.

use storage::artifact::Kept;
use storage::event::catalog::ArtifactKept;
use storage::event::{Clean, Context, Draft, Symbol};
use storage::ids::ArtifactHandle;

use super::Setting;
use crate::redact::Redactor;

/// Artifacts kept per batch.
const KEPT_MAX: usize = 32;
/// Bytes kept per batch.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Makes the event once it is known whether its bytes were kept.
pub(super) type Finish = Box<dyn FnOnce(Option<ArtifactHandle>) -> Draft + Send>;

pub(super) enum Outgoing {
    Ready(Draft),
    Keep(Keep),
}

/// Bytes to keep, and the event that refers to them.
pub(super) struct Keep {
    pub bytes: Vec<u8>,
    pub purpose: &'static str,
    pub media_type: String,
    pub context: Context,
    pub finish: Finish,
}

/// Keeps what is to be kept and gives all drafts in order, `artifact.kept` before what refers to it.
pub(super) async fn settle(setting: &Setting, outgoing: Vec<Outgoing>) -> Vec<Draft> {
    let mut writes = Vec::new();
    let mut bytes = 0;
    let mut steps = Vec::with_capacity(outgoing.len());
    for step in outgoing {
        let Outgoing::Keep(mut keep) = step else {
            steps.push((step, None));
            continue;
        };
        bytes += keep.bytes.len();
        // The first is kept however long it is: a message has a bound of its own.
        let write = (writes.is_empty() || writes.len() < KEPT_MAX && bytes <= KEPT_BYTES_MAX).then(|| {
            let (artifacts, content) = (setting.artifacts.clone(), std::mem::take(&mut keep.bytes));
            writes.push(());
            tokio::task::spawn_blocking(move || artifacts.put(&content).ok())
        });
        steps.push((Outgoing::Keep(keep), write));
    }
    let mut drafts = Vec::with_capacity(steps.len() + writes.len());
    for (step, write) in steps {
        match step {
            Outgoing::Ready(draft) => drafts.push(draft),
            Outgoing::Keep(keep) => {
                let kept = match write {
                    Some(write) => write.await.ok().flatten(),
                    None => None,
                };
                if let Some(kept) = &kept {
                    drafts.push(artifact_kept(&keep.context, kept, keep.purpose, &keep.media_type, &setting.redactor));
                }
                drafts.push((keep.finish)(kept.map(|kept| kept.handle)));
            }
        }
    }
    drafts
}

pub(super) fn artifact_kept(
    context: &Context,
    kept: &Kept,
    purpose: &'static str,
    media_type: &str,
    redactor: &Redactor,
) -> Draft {
    let payload = ArtifactKept {
        artifact: kept.handle.clone(),
        purpose: Symbol::fold(purpose),
        media_type: redactor.text(media_type),
        bytes: kept.bytes,
        sha256: redactor.text(&kept.sha256),
    };
    Draft::new(context, &payload)
}

/// Names of fields that were cut, as events carry them.
pub(super) fn truncated(redactor: &Redactor, fields: &[(&'static str, bool)]) -> Option<Clean> {
    let names: Vec<_> = fields.iter().filter(|(_, cut)| *cut).map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| redactor.text(&names.join(",")))
}
