//! Metrics: a fold over the events, and a few values that only the running program knows.
//!
//! [`catalog`] lists every metric once; [`labels`] holds the closed sets that labels are taken from;
//! [`fold`] says which event moves which metric; [`expose`] registers and renders. The names of the
//! metrics library appear nowhere else. No recorder is installed for the process, so several may
//! exist side by side. The number of series is bounded by the catalogue and the closed sets,
//! whatever pages, agents and browsers are called.

pub mod catalog;
mod expose;
mod fold;
pub mod labels;
mod series;
#[cfg(test)]
mod tests;

pub use catalog::{Gauge, MetricFacts, Shape, Total, catalog};
pub use expose::{CONTENT_TYPE, Metrics};
pub use labels::Labels;
