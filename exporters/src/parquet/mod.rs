//! Events as Parquet: one wide table that any engine can query.
//!
//! [`batch`] gathers rows column by column; [`writer`] encodes them in row groups with flat memory.

mod batch;
mod writer;

pub(crate) use writer::ParquetWriter;
