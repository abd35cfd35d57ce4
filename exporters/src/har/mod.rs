//! Requests as an HTTP Archive 1.2, with the additions that Chromium's own tools write and read.
//!
//! What must stay true: memory is bounded, whatever the export's length. An entry is written when its
//! request has ended and its headers and body are told of; a redirect is an entry of its own. Those in between are
//! held, at most so many and so many bytes: then the oldest is written as it is and says so. Nothing
//! redacted comes back: the archive holds what events and artifacts hold.
//!
//! Read in this order: [`flight`] (a request as its events come), [`entry`] (how it is written),
//! [`message`] (headers, cookies, queries), [`phases`], [`body`], [`pages`].

mod body;
mod entry;
mod flight;
mod message;
mod pages;
mod phases;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;

use serde_json::{Value, json};
use storage::event::catalog::SessionOpened;
use storage::event::codec::ContextField;
use storage::event::{EventView, Kind, Payload as _};

use crate::export::{ExportError, ExportOptions, FormatWriter, Sealed};
use crate::tally::Tally;
use crate::target::{Destination, Target};
use body::Bodies;
use flight::{Ahead, Flight, State};
use pages::Pages;

/// Requests held at one time.
const HELD_MAX: usize = 4_096;
/// Bytes of all requests held.
const HELD_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes gathered before they go to the target.
const GATHERED_BYTES: usize = 256 * 1024;

/// Session and request.
type Name = (String, String);

/// Writes entries; see [`crate::export::Export`] for what holds for every format.
pub(crate) struct HarWriter {
    out: Target,
    gathered: Vec<u8>,
    /// By the number of the first event, so that the oldest is found.
    flights: BTreeMap<u64, Flight>,
    names: HashMap<Name, u64>,
    /// Headers of requests that are not known yet, and how many events these are.
    ahead: HashMap<Name, (Ahead, u64)>,
    held_bytes: usize,
    pages: Pages,
    bodies: Bodies,
    browser: Option<String>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    entries: u64,
    /// Written before their end, because too many were held.
    early: u64,
    /// Not ended when the export was.
    pending: u64,
    messages_left_out: u64,
    /// Events of headers whose request the archive does not know.
    headers_alone: u64,
}

impl HarWriter {
    pub(crate) fn create(target: &Destination, options: &ExportOptions) -> Result<Self, ExportError> {
        let mut made = Self {
            out: Target::create(target, options.bytes_max, options.overwrite)?,
            gathered: Vec::new(),
            flights: BTreeMap::new(),
            names: HashMap::new(),
            ahead: HashMap::new(),
            held_bytes: 0,
            pages: Pages::default(),
            bodies: Bodies::new(options.bodies.clone()),
            browser: None,
            counts: Counts::default(),
        };
        let creator = json!({"name": "pageledger", "version": options.gateway_version});
        // Entries first: the pages are known only at the end, and members of an object have no order.
        made.gathered = format!("{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"entries\":[").into_bytes();
        Ok(made)
    }

    fn name(event: &EventView<'_>) -> Option<Name> {
        let request = event.context(ContextField::RequestId)?;
        Some((event.context(ContextField::SessionId).unwrap_or_default().to_owned(), request.to_owned()))
    }

    /// Makes room, then holds a new flight.
    fn hold(&mut self, name: Name, flight: Flight) -> Result<(), ExportError> {
        while self.flights.len() >= HELD_MAX {
            self.write_oldest()?;
        }
        let seq = flight.seq;
        self.held_bytes += flight.bytes();
        self.names.insert(name, seq);
        self.flights.insert(seq, flight);
        Ok(())
    }

    fn write_oldest(&mut self) -> Result<(), ExportError> {
        let Some(seq) = self.flights.keys().next().copied() else { return Ok(()) };
        self.let_go(seq, true)
    }

    /// Writes a flight and holds it no longer.
    fn let_go(&mut self, seq: u64, early: bool) -> Result<(), ExportError> {
        let Some(flight) = self.flights.remove(&seq) else { return Ok(()) };
        self.held_bytes -= flight.bytes();
        self.names.remove(&flight.name);
        let unfinished = flight.state() == State::Pending;
        self.counts.early += u64::from(unfinished && early);
        self.counts.pending += u64::from(unfinished && !early);
        self.counts.messages_left_out += flight.messages_left_out;
        for leg in &flight.legs {
            self.write(leg, early)?;
        }
        self.write(&flight, early)
    }

    fn write(&mut self, flight: &Flight, early: bool) -> Result<(), ExportError> {
        let page = self.pages.of(flight);
        let entry = entry::entry(flight, page.as_deref(), early, &mut self.bodies);
        if self.counts.entries > 0 {
            self.gathered.push(b',');
        }
        self.gathered.push(b'\n');
        self.counts.entries += 1;
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.gathered, &entry);
        if self.gathered.len() >= GATHERED_BYTES { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), ExportError> {
        let written = self.out.write_all(&self.gathered);
        self.gathered.clear();
        written.map_err(|error| self.out.error("write", error))
    }

    /// Gives the event to its flight; false when there is none.
    fn follow(&mut self, name: &Name, event: &EventView<'_>) -> Result<bool, ExportError> {
        let Some(seq) = self.names.get(name).copied() else { return Ok(false) };
        let Some(flight) = self.flights.get_mut(&seq) else { return Ok(false) };
        let before = flight.bytes();
        let leg = flight.take(event);
        let (after, complete) = (flight.bytes(), flight.state() == State::Complete);
        self.held_bytes = self.held_bytes + after - before;
        if let Some(leg) = leg {
            self.write(&leg, false)?;
        }
        if complete {
            self.let_go(seq, false)?;
        }
        while self.held_bytes > HELD_BYTES_MAX {
            self.write_oldest()?;
        }
        Ok(true)
    }
}

impl FormatWriter for HarWriter {
    fn note(&mut self, event: &EventView<'_>) {
        match event.kind() {
            Some(Kind::SessionOpened) => {
                self.browser = SessionOpened::take(event).ok().map(|opened| opened.browser.as_str().to_owned());
            }
            Some(_) => self.pages.note(event),
            None => {}
        }
    }

    fn continues(&self, event: &EventView<'_>) -> bool {
        Self::name(event).is_some_and(|name| self.names.contains_key(&name))
    }

    fn push(&mut self, event: &EventView<'_>) -> Result<bool, ExportError> {
        let Some(name) = Self::name(event) else { return Ok(false) };
        if self.follow(&name, event)? {
            return Ok(true);
        }
        if event.kind() == Some(Kind::NetworkHeaders) && self.ahead.len() < HELD_MAX {
            let (ahead, count) = self.ahead.entry(name).or_default();
            ahead.take(event);
            *count += 1;
            return Ok(true);
        }
        let ahead = self.ahead.remove(&name);
        let (ahead, count) = ahead.unwrap_or_default();
        let Some(flight) = Flight::begun(name.clone(), event, ahead) else {
            self.counts.headers_alone += count;
            return Ok(false);
        };
        self.pages.begin(&flight);
        self.hold(name, flight)?;
        Ok(true)
    }

    fn seal(&mut self, options: &ExportOptions, _tally: &Tally) -> Result<Sealed, ExportError> {
        while let Some(seq) = self.flights.keys().next().copied() {
            self.let_go(seq, false)?;
        }
        self.counts.headers_alone += self.ahead.values().map(|(_, count)| count).sum::<u64>();
        let browser = self.browser.as_deref().map(|product| {
            let (name, version) = product.split_once('/').unwrap_or((product, ""));
            json!({"name": name, "version": version})
        });
        let browser = browser.map_or_else(String::new, |browser| format!(",\"browser\":{browser}"));
        let pages = Value::Array(self.pages.list());
        let comment = json!(format!("log {}; {}", options.log_id, options.redaction));
        self.gathered
            .extend_from_slice(format!("\n],\"pages\":{pages}{browser},\"comment\":{comment}}}}}\n").as_bytes());
        self.hand_over()?;
        let (bytes, sha256) = self.out.prepare()?;
        let details = json!({
            "entries": self.counts.entries,
            "pages": self.pages.listed(),
            "pages_left_out": self.pages.left_out(),
            "pending": self.counts.pending,
            "written_before_their_end": self.counts.early,
            "bodies": self.bodies.counts(),
            "messages_left_out": self.counts.messages_left_out,
        });
        let unplaced = self.counts.headers_alone;
        Ok(Sealed { bytes, sha256, row_groups: 0, unplaced, details: Some(details) })
    }

    fn target(&mut self) -> &mut Target {
        &mut self.out
    }
}
