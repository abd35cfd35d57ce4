//! Artifacts that no event names: finding what may be one, and removing what is.

use std::collections::HashSet;
use std::time::SystemTime;

use crate::StorageError;
use crate::artifact::{ArtifactStore, Removal};
use crate::upkeep::contents::{Handle, handle, handle_text};

/// Handles looked at together: 16 bytes each, and one look through the log for all of them.
const BATCH_HANDLES: usize = 100_000;

/// What was removed.
#[derive(Default)]
pub struct Gone {
    pub count: u64,
    pub bytes: u64,
}

/// Everything in the store that was put before that moment.
pub fn batches(artifacts: &ArtifactStore, put_before: SystemTime) -> Result<Vec<HashSet<Handle>>, StorageError> {
    let mut batches = vec![HashSet::new()];
    for shard in artifacts.shards()? {
        let old = artifacts.lying(&shard)?.into_iter().filter(|lying| lying.put_at < put_before);
        let handles: Vec<Handle> = old.filter_map(|lying| handle(lying.handle.as_str())).collect();
        if batches.last().is_some_and(|batch| batch.len() + handles.len() > BATCH_HANDLES) {
            batches.push(HashSet::new());
        }
        if let Some(batch) = batches.last_mut() {
            batch.extend(handles);
        }
    }
    Ok(batches)
}

/// Removes each of `unnamed` that was not put since.
pub fn remove(
    artifacts: &ArtifactStore,
    unnamed: &HashSet<Handle>,
    put_before: SystemTime,
) -> Result<Gone, StorageError> {
    let mut gone = Gone::default();
    for handle in unnamed {
        let removal = artifacts.remove(&handle_text(*handle).into(), put_before)?;
        if let Removal::Removed { bytes } = removal {
            gone.count += 1;
            gone.bytes += bytes;
        }
    }
    Ok(gone)
}
