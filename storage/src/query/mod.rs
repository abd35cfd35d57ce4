//! Reading the log: filters, cursors, pages.
//!
//! A page is read from durable events only and never waits for a browser or a writer; at most, and
//! within [`CATCH_UP_MILLIS`], for the index to see what was durable when the page was asked for.
//! Walking a filter from page to page neither skips nor repeats an event, whatever is appended
//! meanwhile, and a walk that found nothing new returns the cursor it was given.

mod cursor;
mod downloads;
mod events;
mod filter;
mod ledger;
mod matching;
mod owned;
mod removed;
mod request_row;
mod requests;
#[cfg(test)]
pub(crate) mod tests;
mod walk;

pub use cursor::{CursorKey, List, Order};
pub use downloads::DownloadRow;
pub use filter::{
    EventFilter, FILTER_WORDS_MAX, FilterError, PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX, StatusFilter,
};
pub use ledger::{Ledger, Page, PageRequest};
pub(crate) use matching::BlockFacts;
pub use matching::CompiledFilter;
pub use owned::OwnedEvent;
pub use request_row::{BodyFacts, RequestRow, RequestState};
pub use requests::RequestDetail;

/// A read waits at most this long for the index; then it reads what is not indexed from the log itself.
pub const CATCH_UP_MILLIS: u64 = 2_000;
/// A page stops looking for matches after this long and says that there may be more.
pub const PAGE_SCAN_MILLIS: u64 = 2_000;
/// Events of one request that its detail holds; WebSocket frames are read as a page of their own.
pub const REQUEST_EVENTS_MAX: usize = 1_000;
