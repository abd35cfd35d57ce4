//! The durable core: what an event is, how events reach the disk, and how they are read back.
//!
//! Read in this order: [`event`] (the catalogue every other product is made from), [`log`] (the
//! append-only truth), [`index`] (derived and disposable), [`query`] (filters, cursors, pages),
//! [`artifact`] (bytes too heavy for the log), [`disk`] (the room there is), [`upkeep`] (what goes,
//! and when). This crate knows no other crate of the workspace.

pub mod artifact;
pub mod audit;
pub mod directory;
pub mod disk;
pub mod error;
pub mod event;
pub mod ids;
pub mod index;
pub mod limits;
pub mod log;
pub mod query;
mod regular;
mod shred;
pub mod time;
pub mod upkeep;

pub use error::StorageError;
