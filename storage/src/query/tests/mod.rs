//! Promises of paging, each proved through the ledger on a real log.

mod index;
mod joins;
mod measure;
mod refusals;
mod walking;
mod world;
