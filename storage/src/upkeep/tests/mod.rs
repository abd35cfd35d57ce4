//! Promises of upkeep, one module each.

mod artifacts;
mod classes;
mod dying;
mod erasing;
mod keeping;
mod planning;
mod world;
