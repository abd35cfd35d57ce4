//! The tools, in listing order. Adding one: its entry in a file here, its line in `TOOLS`, a test.

mod acting;
mod auth;
mod checking;
mod dialogs;
mod evidence;
mod faults;
mod files;
mod finding;
mod forms;
mod frozen;
mod inspection;
mod instances;
mod interaction;
mod introspection;
mod launch_arguments;
mod lifecycle;
mod navigation;
pub mod offer;
mod people;
mod pictures;
mod pointing;
mod refusals;
mod snapshot;
mod state;
mod tabs;
pub mod tool;
mod waits;
mod web_storage;

use exporters::metrics::Labels;
use tool::Tool;

use crate::fault::FAULTS;

/// Every tool. The catalogue's come first and in the catalogue's order; clients cache the list.
pub static TOOLS: &[&Tool] = &[
    &lifecycle::LAUNCH_SESSION,
    &lifecycle::CLOSE_SESSION,
    &lifecycle::LIST_SESSIONS,
    &introspection::SERVER_STATUS,
    &introspection::SESSION_INFO,
    &navigation::NAVIGATE,
    &navigation::GO_BACK,
    &navigation::GO_FORWARD,
    &navigation::RELOAD,
    &navigation::WAIT_FOR_URL,
    &tabs::NEW_TAB,
    &tabs::CLOSE_TAB,
    &tabs::SWITCH_TAB,
    &tabs::LIST_TABS,
    &interaction::CLICK,
    &interaction::TYPE_TEXT,
    &interaction::FILL,
    &interaction::PRESS_KEY,
    &interaction::HOVER,
    &forms::SELECT_OPTION,
    &interaction::SCROLL,
    &pointing::DRAG_AND_DROP,
    &pictures::SCREENSHOT,
    &snapshot::SNAPSHOT,
    &inspection::GET_CONTENT,
    &inspection::EVALUATE,
    &waits::WAIT_FOR_SELECTOR,
    &waits::WAIT_FOR_LOAD_STATE,
    &dialogs::ACCEPT_NEXT_DIALOG,
    &dialogs::DISMISS_NEXT_DIALOG,
    &state::GET_COOKIES,
    &state::SET_COOKIES,
    &state::SET_VIEWPORT,
    &state::SET_EXTRA_HTTP_HEADERS,
    &files::UPLOAD_FILE,
    &files::DOWNLOAD_FILE,
    &auth::SAVE_STORAGE_STATE,
    &auth::SAVE_FULL_PROFILE,
    &auth::LIST_SAVED_AUTHS,
    &people::REQUEST_ATTENTION,
    &people::GET_ATTENTION_RESULT,
    &people::VAULT_LIST_AVAILABLE,
    &people::VAULT_FILL,
    &finding::FIND_IN_PAGE,
    &finding::WAIT_FOR_TEXT,
    &finding::LIST_FRAMES,
    &checking::VERIFY,
    &instances::BROWSER_CREATE_INSTANCE,
    &instances::BROWSER_DESTROY_INSTANCE,
    &instances::BROWSER_LIST_INSTANCES,
    &instances::BROWSER_HEALTH,
    &web_storage::GET_STORAGE,
    &web_storage::SET_STORAGE,
    &web_storage::CLEAR_STORAGE,
    &forms::FILL_FORM,
    &dialogs::HANDLE_DIALOG,
    &pointing::MOUSE_MOVE,
    &pointing::MOUSE_CLICK,
    &pointing::MOUSE_DRAG,
    &pointing::MOUSE_WHEEL,
    &evidence::LIST_CONSOLE_MESSAGES,
    &evidence::LIST_NETWORK_REQUESTS,
    &evidence::GET_NETWORK_REQUEST,
    &evidence::LIST_EVENTS,
    &evidence::LIST_DOWNLOADS,
    &evidence::SAVE_DOWNLOAD,
    &evidence::READ_ARTIFACT,
    &evidence::EXPORT_EVENTS,
    &pictures::SAVE_PDF,
];

/// The closed sets that metrics may use as labels.
#[must_use]
pub fn metric_labels() -> Labels {
    let tools: Vec<&str> = TOOLS.iter().map(|tool| tool.facts.name).collect();
    let codes: Vec<&str> = FAULTS.iter().map(|fault| fault.code.as_str()).collect();
    Labels::new(&tools, &codes)
}
