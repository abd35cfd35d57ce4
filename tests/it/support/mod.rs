//! What every test of this binary stands on: the real program, a real MCP client, a site on loopback.
//!
//! Nothing here waits by the clock: a wait is for a fact, with a limit. Processes are known by their
//! ancestry, never by their names.

// Not every user of this needs all of it.
#![allow(dead_code, unused_imports)]

pub mod check;
pub mod client;
pub mod data;
pub mod dice;
pub mod http;
pub mod loop_disk;
pub mod options;
pub mod processes;
pub mod program;
pub mod reply;
pub mod schema;
pub mod server;
pub mod small_disk;
pub mod walk;
pub mod wire;

use std::time::{Duration, Instant};

pub use data::DataDir;
pub use options::Options;
pub use reply::Reply;
pub use server::{Ended, Server};
pub use small_disk::SmallDisk;

/// How long a fact may take to become true before a test gives up on it.
pub const LIMIT: Duration = Duration::from_secs(20);
/// How often a fact is looked at that nobody announces.
const LOOK: Duration = Duration::from_millis(10);

/// Looks until `fact` gives something, at most for [`LIMIT`].
///
/// # Panics
/// When it does not, with `what` was waited for.
pub async fn wait_for<T, F: Future<Output = Option<T>>>(what: &str, fact: impl FnMut() -> F) -> T {
    wait_within(LIMIT, what, fact).await
}

/// As [`wait_for`], with a limit of its own.
pub async fn wait_within<T, F: Future<Output = Option<T>>>(
    limit: Duration,
    what: &str,
    mut fact: impl FnMut() -> F,
) -> T {
    let began = Instant::now();
    let mut look = tokio::time::interval(LOOK);
    loop {
        look.tick().await;
        if let Some(found) = fact().await {
            return found;
        }
        assert!(began.elapsed() < limit, "not within {limit:?}: {what}");
    }
}
