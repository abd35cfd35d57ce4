//! Which tools a server offers: the operator chooses packs, clients see nothing of the rest.
//!
//! What must stay true: a tool that is not offered answers as one that does not exist, the order is
//! that of the table, and the list does not change while the process runs.

use std::sync::Arc;

use super::TOOLS;
use super::tool::Tool;
use crate::config::Config;
use crate::contract::Pack;
use crate::contract::facts::{CORE, EVERYTHING};

/// What a client with little room for tools gets: launch, navigate, act, look, console and network.
/// A test holds that their list stays below 24,000 bytes.
pub const CORE_TOOLS: &[&str] = &[
    "launch_session",
    "close_session",
    "navigate",
    "new_tab",
    "switch_tab",
    "list_tabs",
    "click",
    "type_text",
    "fill",
    "press_key",
    "select_option",
    "scroll",
    "screenshot",
    "snapshot",
    "evaluate",
    "wait_for_selector",
    "accept_next_dialog",
    "list_console_messages",
    "list_network_requests",
    "get_network_request",
    "read_artifact",
];

/// The tools that this server offers. Cheap to clone.
#[derive(Clone)]
pub struct Offer {
    tools: Arc<[&'static Tool]>,
}

impl Offer {
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self::choose(&config.packs, &config.no_packs)
    }

    /// Tools of `packs`, which may name the core set or everything, without those of `no_packs`.
    #[must_use]
    pub fn choose(packs: &[&str], no_packs: &[&str]) -> Self {
        let wanted = |tool: &&Tool| {
            let pack = tool.facts.pack.as_str();
            let core = packs.contains(&CORE) && CORE_TOOLS.contains(&tool.facts.name);
            let named = core || packs.contains(&EVERYTHING) || packs.contains(&pack);
            named && !no_packs.contains(&pack)
        };
        Self { tools: TOOLS.iter().copied().filter(wanted).collect() }
    }

    #[must_use]
    pub fn tools(&self) -> &[&'static Tool] {
        &self.tools
    }

    /// The offered tool called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Tool> {
        self.tools.iter().copied().find(|tool| tool.facts.name == name)
    }

    /// Packs of which at least one tool is offered, in the table's order.
    #[must_use]
    pub fn packs(&self) -> Vec<&'static str> {
        let offered = |pack: &&Pack| self.tools.iter().any(|tool| tool.facts.pack == **pack);
        Pack::ALL.iter().filter(offered).map(|pack| pack.as_str()).collect()
    }
}
