//! Promises of paging, each proved through the ledger on a real log.

mod filters;
mod index;
mod joins;
mod refusals;
mod retention;
mod tables;
mod walking;
pub(crate) mod world;
