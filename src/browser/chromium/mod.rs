//! Chromium itself: finding it, starting it, talking to it, ending it.
//!
//! Read in this order: [`connection`] (commands and replies), [`queue`] (events on their way to the
//! collector), [`envelope`] (what a message is), [`os`] (pipes and signals), [`process`] (the process
//! group), [`flags`] (how it is started). Nothing here knows what an event means.

pub mod connection;
pub mod envelope;
pub mod flags;
pub mod os;
pub mod process;
pub mod queue;
pub mod reader;

pub use connection::{CdpError, Connection, SessionKey};
