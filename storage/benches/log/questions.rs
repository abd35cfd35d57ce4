//! The questions that readers ask, one filter each, at a place in the log.

use storage::event::{Kind, Level};
use storage::ids::Owner;
use storage::query::{EventFilter, Ledger, List, Order, PageRequest, StatusFilter};

use crate::grown::Place;
use crate::workload::OWNER;

const LIMIT: usize = 100;

/// Where in its stream a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    First,
    /// Behind the place asked about.
    Middle,
    Newest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Events,
    Requests,
    Detail,
}

pub struct Question {
    pub name: &'static str,
    pub start: Start,
    pub ask: Ask,
    filter: fn(&Place) -> EventFilter,
}

pub fn all() -> Vec<Question> {
    use Start::{First, Middle, Newest};
    let mut questions = Vec::new();
    let mut add = |name, starts: &[Start], ask, filter: fn(&Place) -> EventFilter| {
        questions.extend(starts.iter().map(|&start| Question { name, start, ask, filter }));
    };
    // Over everything of an owner.
    add("no filter", &[First, Middle, Newest], Ask::Events, |_| EventFilter::default());
    add("kind, common", &[First, Middle, Newest], Ask::Events, |_| of_kind(Kind::ConsoleMessage));
    add("kind, rare", &[First, Middle, Newest], Ask::Events, |_| of_kind(Kind::DownloadStarted));
    add("kind, absent", &[First, Newest], Ask::Events, |_| of_kind(Kind::PageCrashed));
    add("level error", &[First, Middle, Newest], Ask::Events, |_| of_errors(EventFilter::default()));
    add("page", &[First, Newest], Ask::Events, |place| EventFilter {
        page_id: Some(place.page.as_str().into()),
        ..EventFilter::default()
    });
    add("operation", &[First, Newest], Ask::Events, |place| EventFilter {
        operation_id: Some(place.operation.as_str().into()),
        ..EventFilter::default()
    });
    add("since", &[First, Newest], Ask::Events, |place| EventFilter {
        since_micros: Some(place.micros),
        ..EventFilter::default()
    });
    add("until", &[First, Newest], Ask::Events, |place| EventFilter {
        until_micros: Some(place.micros),
        ..EventFilter::default()
    });
    // Within a session, as every tool asks.
    add("session", &[First, Middle, Newest], Ask::Events, of_session);
    add("session, level error", &[First, Newest], Ask::Events, |place| of_errors(of_session(place)));
    add("session, kind rare", &[First, Newest], Ask::Events, |place| EventFilter {
        kinds: Some(vec![Kind::DownloadStarted]),
        ..of_session(place)
    });
    add("session, text", &[First, Newest], Ask::Events, |place| EventFilter {
        text: Some("total: 7[0-9]+,".into()),
        ..of_session(place)
    });
    add("session, request", &[First], Ask::Events, |place| EventFilter {
        request_id: Some(place.request.as_str().into()),
        ..of_session(place)
    });
    add("session, operation", &[First], Ask::Events, |place| EventFilter {
        operation_id: Some(place.operation.as_str().into()),
        ..of_session(place)
    });
    add("session, since", &[First], Ask::Events, |place| EventFilter {
        since_micros: Some(place.micros),
        ..of_session(place)
    });
    add("requests of a session", &[First, Middle, Newest], Ask::Requests, of_session);
    add("requests of a session, 4xx", &[First], Ask::Requests, |place| EventFilter {
        status: Some(StatusFilter { low: 400, high: 499 }),
        ..of_session(place)
    });
    add("one request's detail", &[First], Ask::Detail, of_session);
    questions
}

fn of_session(place: &Place) -> EventFilter {
    EventFilter { session_id: Some(place.session.as_str().into()), ..EventFilter::default() }
}

fn of_errors(filter: EventFilter) -> EventFilter {
    EventFilter { level: Some(Level::Error), ..filter }
}

fn of_kind(kind: Kind) -> EventFilter {
    EventFilter { kinds: Some(vec![kind]), ..EventFilter::default() }
}

/// What an answer was, besides the time it took.
pub struct Answer {
    pub items: usize,
    /// Whether it ended early, with less than asked for and more perhaps behind.
    pub early: bool,
}

impl Question {
    pub fn label(&self) -> String {
        match (self.ask, self.start) {
            (Ask::Detail, _) => self.name.to_owned(),
            (_, Start::First) => format!("{}, first page", self.name),
            (_, Start::Middle) => format!("{}, middle", self.name),
            (_, Start::Newest) => format!("{}, newest", self.name),
        }
    }

    pub async fn ask(&self, ledger: &Ledger, place: &Place) -> Answer {
        let owner = Owner::from(OWNER);
        if self.ask == Ask::Detail {
            let (session, request) = (place.session.as_str().into(), place.request.as_str().into());
            let detail = ledger.request(&owner, &session, &request).await.unwrap();
            return Answer { items: usize::from(detail.is_some()), early: false };
        }
        let filter = (self.filter)(place).compile().unwrap();
        let order = if self.start == Start::Newest { Order::Newest } else { Order::Oldest };
        let mut request = PageRequest { filter: &filter, order, after: None, limit: LIMIT, owner: &owner };
        let list = if self.ask == Ask::Requests { List::Requests } else { List::Events };
        let cursor = ledger.cursor_at(&request, list, place.seq);
        if self.start == Start::Middle {
            request.after = Some(&cursor);
        }
        match self.ask {
            Ask::Requests => Answer::of(ledger.requests_page(&request).await.unwrap()),
            _ => Answer::of(ledger.page(&request).await.unwrap()),
        }
    }
}

impl Answer {
    fn of<T>(page: storage::query::Page<T>) -> Self {
        Self { items: page.items.len(), early: page.has_more && page.items.len() < LIMIT }
    }
}
