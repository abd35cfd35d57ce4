//! Everything that leaves the program: files an auditor takes away and metrics a monitor scrapes.
//!
//! Read in this order: [`columns`] (the table made from the event catalogue), [`selection`] (which
//! events, and the walk over them), [`export`] (one way to write a file, whatever its format),
//! [`parquet`], [`ndjson`], [`csv`] and [`har`] (the formats), [`target`] (files and objects of a
//! store), [`manifest`] (what lies beside each file), [`metrics`] (a fold over the same events). This
//! crate knows `storage` and nothing else of the workspace. Who may have what is not decided here:
//! callers name a scope that is theirs.

mod cells;
pub mod columns;
pub mod csv;
mod event_text;
pub mod export;
pub mod har;
pub mod manifest;
pub mod metrics;
pub mod ndjson;
pub mod parquet;
mod removals;
#[cfg(test)]
mod sample;
pub mod selection;
mod tally;
pub mod target;
#[cfg(test)]
mod tests;

pub use export::{Export, ExportError, ExportOptions, Format, Surroundings, Written, export};
pub use removals::Removed;
pub use selection::{Progress, Scope, Selection};
pub use tally::{DeclaredGap, GAPS_LISTED_MAX};
pub use target::{Address, AddressError, Destination, StoreAccess};
