//! Everything that leaves the program: files an auditor takes away and metrics a monitor scrapes.
//!
//! Read in this order: [`columns`] (the table made from the event catalogue), [`export`] (one way to
//! write a file, whatever its format), [`parquet`] and [`ndjson`] (the formats), [`manifest`] (what
//! lies beside each file), [`metrics`] (a fold over the same events). This crate knows `storage` and
//! nothing else of the workspace. Nothing here chooses events: callers push what they may export.

pub mod columns;
mod event_text;
pub mod export;
pub mod manifest;
pub mod metrics;
pub mod ndjson;
pub mod parquet;
#[cfg(test)]
mod sample;
mod target;
#[cfg(test)]
mod tests;

pub use export::{Export, ExportError, ExportOptions, Format, Written, export};
