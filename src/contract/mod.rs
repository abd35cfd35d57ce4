//! What a tool is, as data: names, parameters, bounds, hints, lane. Pure: no async, no browser.
//!
//! [`facts`] holds the vocabulary, [`schema`] turns it into the flat JSON Schemas clients accept,
//! [`result`] says what a tool answers with, [`validate`] turns raw arguments into checked ones or one
//! correction that lists every problem. Schema and validation read the same table, so what is
//! advertised is what is enforced.

pub mod facts;
pub mod result;
pub mod schema;
pub mod validate;

pub use facts::{Effect, Lane, Pack, Parameter, Shape, ToolFacts};
pub use result::{Field, Returns};
pub use validate::Arguments;
