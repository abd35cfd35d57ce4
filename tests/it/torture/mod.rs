//! The log's promises under everything that one machine can do to it.
//!
//! Each module keeps one promise of the table in the README: short in `make test`, long in `make
//! torture`. Real processes, real files, real disks; what was acknowledged and shown is noted outside
//! of what is tortured, and held against what is there afterwards.

mod child;
mod flips;
mod gateway;
mod housekeeping;
mod interrupted;
mod kills;
mod leftovers;
mod load;
mod notes;
mod paging;
pub mod payload;
mod power;
mod program;
mod restarts;
mod sample;
mod served;
mod slow;
mod swaps;
mod syncs;
