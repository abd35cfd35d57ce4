//! The evidence tools: everything that happened, read from the log. They run beside the lanes and
//! never wait for a browser; closed and crashed sessions read like live ones.

mod artifact;
mod console;
mod downloads;
mod events;
mod export;
mod network;
mod paging;
mod request;

pub use artifact::READ_ARTIFACT;
pub use console::LIST_CONSOLE_MESSAGES;
pub use downloads::{LIST_DOWNLOADS, SAVE_DOWNLOAD};
pub use events::LIST_EVENTS;
pub use export::EXPORT_EVENTS;
pub use network::LIST_NETWORK_REQUESTS;
pub use request::GET_NETWORK_REQUEST;
