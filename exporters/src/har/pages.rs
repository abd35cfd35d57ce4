//! The pages of an archive: one for each document that a tab's main frame asked for.
//!
//! What must stay true: a page is listed when an entry is of it; their number is bounded, and what is
//! beyond is counted. The log has no moments of loading, so both are -1: not available.

use std::collections::HashMap;

use serde_json::{Value, json};
use storage::event::catalog::PageNavigated;
use storage::event::codec::ContextField;
use storage::event::{EventView, Kind, Payload as _};
use storage::time::rfc3339;

use super::flight::Flight;

/// Pages listed.
const PAGES_MAX: usize = 10_000;
/// Tabs remembered at one time.
const TABS_MAX: usize = 10_000;

#[derive(Default)]
struct Tab {
    main_frame: Option<String>,
    page: Option<usize>,
}

struct Page {
    started_micros: i64,
    title: String,
}

/// Gathers pages.
#[derive(Default)]
pub(super) struct Pages {
    tabs: HashMap<(String, String), Tab>,
    pages: Vec<Page>,
    /// Pages of flights under way, by the flight's first number.
    flights: HashMap<u64, usize>,
    left_out: u64,
}

impl Pages {
    /// What tabs do, whether or not the filter chose it.
    pub fn note(&mut self, event: &EventView<'_>) {
        let context = |field: ContextField| event.context(field).unwrap_or_default().to_owned();
        let name = (context(ContextField::SessionId), context(ContextField::PageId));
        match event.kind() {
            Some(Kind::PageNavigated) => {
                let Ok(navigated) = PageNavigated::take(event) else { return };
                let Some(tab) = self.tab(name) else { return };
                tab.main_frame = event.context(ContextField::FrameId).map(str::to_owned).or(tab.main_frame.take());
                if let (Some(page), false) = (tab.page, navigated.same_document)
                    && let Some(page) = self.pages.get_mut(page)
                {
                    navigated.url.as_str().clone_into(&mut page.title);
                }
            }
            Some(Kind::PageClosed) => {
                self.tabs.remove(&name);
            }
            _ => {}
        }
    }

    fn tab(&mut self, name: (String, String)) -> Option<&mut Tab> {
        if self.tabs.len() >= TABS_MAX && !self.tabs.contains_key(&name) {
            return None;
        }
        Some(self.tabs.entry(name).or_default())
    }

    /// A request begins: it is of its tab's page, or the first of a new one.
    pub fn begin(&mut self, flight: &Flight) {
        let Some(page_id) = &flight.page_id else { return };
        let (room, next) = (self.pages.len() < PAGES_MAX, self.pages.len());
        let Some(tab) = self.tab((flight.name.0.clone(), page_id.clone())) else {
            self.left_out += 1;
            return;
        };
        let of_main_frame = tab.main_frame.is_none() || tab.main_frame == flight.frame_id;
        let new = tab.page.is_none() || (flight.is_document() && of_main_frame);
        if new && room {
            tab.page = Some(next);
        } else if new {
            tab.page = None;
        }
        let page = tab.page;
        if new && room {
            self.pages.push(Page { started_micros: flight.started_micros, title: flight.url().to_owned() });
        }
        self.left_out += u64::from(new && !room);
        if let Some(page) = page {
            self.flights.insert(flight.seq, page);
        }
    }

    /// The name of the page that a flight is of. Legs of one request share it.
    pub fn of(&mut self, flight: &Flight) -> Option<String> {
        let last = !matches!(flight.end, Some(super::flight::End::Redirected(_)));
        let page = if last { self.flights.remove(&flight.seq) } else { self.flights.get(&flight.seq).copied() };
        page.map(name)
    }

    pub fn list(&self) -> Vec<Value> {
        let page = |(position, page): (usize, &Page)| {
            json!({
                "startedDateTime": rfc3339(page.started_micros),
                "id": name(position),
                "title": page.title,
                "pageTimings": {"onContentLoad": -1, "onLoad": -1},
            })
        };
        self.pages.iter().enumerate().map(page).collect()
    }

    pub fn listed(&self) -> usize {
        self.pages.len()
    }

    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn name(position: usize) -> String {
    format!("page_{}", position + 1)
}
