//! Walks over a log whose segments are sealed, written anew and dropped: each page is exactly what a
//! plain reading of the log at that moment gives, counts are exact, and what was removed is told.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;

use super::world::{World, console, context, entered, failed, gap, launching, of_request, request, response, seqs};
use crate::event::catalog::{Gap, LogRemoved, PageClosed};
use crate::event::codec::ContextField;
use crate::event::removed::{Portion, WHOLE_SEGMENT, to_json};
use crate::event::{Context, Draft, EventView, Kind, Level, ValueRef};
use crate::ids::{Owner, SessionId};
use crate::log::Fate;
use crate::query::{CompiledFilter, EventFilter, List, Order, PageRequest};

/// One thing that happens in the course of a walk.
#[derive(Debug, Clone)]
enum Deed {
    Append(Vec<(bool, u8)>),
    Roll,
    /// Which segment, what goes, whether its table is made first, whether it comes to pass.
    Rewrite(u8, u8, bool, bool),
    DropOldest,
    Page(usize, bool, usize),
    Reopen,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let append = prop::collection::vec((any::<bool>(), 0u8..12), 1..20).prop_map(Deed::Append);
    let rewrite = (any::<u8>(), any::<u8>(), any::<bool>(), prop::bool::weighted(0.8));
    let page = (0..FILTERS, any::<bool>(), 1usize..9);
    let deed = prop_oneof![
        4 => append,
        2 => Just(Deed::Roll),
        2 => rewrite.prop_map(|(which, rule, build, install)| Deed::Rewrite(which, rule, build, install)),
        1 => Just(Deed::DropOldest),
        6 => page.prop_map(|(filter, newest, limit)| Deed::Page(filter, newest, limit)),
        1 => Just(Deed::Reopen),
    ];
    prop::collection::vec(deed, 10..60)
}

fn draft((mine, what): (bool, u8), number: u64) -> Draft {
    let (owner, session) = if mine { ("ann", "s-ann") } else { ("bob", "s-bob") };
    let chain = of_request(owner, session, &format!("r-{}", number % 5));
    let on_page = |page: &str| {
        let (page_id, operation_id) = (Some(page.into()), Some(format!("op-{}", number / 9).into()));
        let context = Context { page_id, operation_id, ..context(owner, session) };
        Draft::new(&context, &PageClosed { reason: "closed".into() })
    };
    match what {
        0 => console(owner, session, Level::Error, "it broke"),
        1 => console(owner, session, Level::Warning, "it bends"),
        2 => console(owner, session, Level::Info, "it broke quietly"),
        3 => request(&chain, "http://a.test/x", "GET", "fetch", number % 3),
        4 => response(&chain, "http://a.test/x", if number.is_multiple_of(2) { 404 } else { 200 }),
        5 => failed(&chain, "net::ERR_FAILED"),
        6 => gap(session, "console.message", 3),
        7 => Draft::new(&Context::default(), &Gap { what: "x".into(), count: 1, reason: "queue_full".into() }),
        8 => launching(owner, session),
        9 => on_page("t-1"),
        10 => on_page("t-2"),
        _ => entered(owner, session),
    }
}

const FILTERS: usize = 14;

/// The last ones ask for more than is said of what was removed.
fn filter(which: usize, clock_micros: i64) -> EventFilter {
    let ann = EventFilter { session_id: Some("s-ann".into()), ..EventFilter::default() };
    let kinds = |kinds: &[Kind]| Some(kinds.to_vec());
    match which {
        0 => EventFilter::default(),
        1 => ann,
        2 => EventFilter { session_id: Some("s-bob".into()), ..ann },
        3 => EventFilter { kinds: kinds(&[Kind::ConsoleMessage]), level: Some(Level::Warning), ..ann },
        4 => EventFilter { level: Some(Level::Error), ..EventFilter::default() },
        5 => EventFilter { kinds: kinds(&[Kind::CallEntered, Kind::Gap]), ..EventFilter::default() },
        6 => EventFilter { kinds: kinds(&[Kind::NetworkFailed]), ..ann },
        7 => EventFilter { text: Some("^it broke".into()), ..EventFilter::default() },
        8 => EventFilter { page_id: Some("t-2".into()), ..ann },
        9 => EventFilter { operation_id: Some("op-2".into()), ..EventFilter::default() },
        10 => EventFilter { operation_id: Some("op-1".into()), page_id: Some("t-1".into()), ..ann },
        11 => EventFilter { request_id: Some("r-1".into()), ..ann },
        12 => EventFilter { since_micros: Some(clock_micros / 2), ..EventFilter::default() },
        _ => EventFilter { until_micros: Some(clock_micros / 2), url: Some("a".into()), ..ann },
    }
}

const EXACT: std::ops::Range<usize> = 0..7;

/// An event as far as filters, owners and counts look at it.
#[derive(Debug, Clone)]
struct Seen {
    seq: u64,
    matches: bool,
    of_stream: bool,
    dropped: u64,
}

/// What was removed.
#[derive(Debug, Clone)]
struct Gone {
    owner: Option<String>,
    session: Option<String>,
    portion: Portion,
}

struct Rig {
    world: World,
    gone: Vec<Gone>,
    /// Announcements went themselves, so what they told of is not known any more.
    forgotten: bool,
    number: u64,
    micros: i64,
    /// Where each walk stands.
    cursors: BTreeMap<(usize, bool), String>,
    /// Time conditions stay what they were when their walk began.
    times: BTreeMap<(usize, bool), i64>,
}

/// `known`: whose ann's session is.
fn visible(owner: Option<&str>, session: Option<&str>, known: bool) -> bool {
    match (owner, session) {
        (Some(owner), _) => owner == "ann",
        (None, Some(session)) => session == "s-ann" && known,
        (None, None) => true,
    }
}

fn in_stream(filter: &EventFilter, kind: u16, session: Option<&str>) -> bool {
    let kinds = filter.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|wanted| wanted.number() == kind));
    kinds && filter.session_id.as_ref().is_none_or(|wanted| Some(wanted.as_str()) == session)
}

impl Rig {
    async fn do_it(&mut self, deed: Deed, directory: &Path) -> Result<(), TestCaseError> {
        match deed {
            Deed::Append(events) => {
                let drafts = events.into_iter().map(|event| {
                    self.number += 1;
                    draft(event, self.number)
                });
                let drafts: Vec<Draft> = drafts.collect();
                // Now and then the clock is set back.
                self.micros += if self.number.is_multiple_of(7) { -1_500 } else { 1_000 };
                self.world.clock.set_micros(self.micros);
                self.world.put(drafts).await;
            }
            Deed::Roll => self.world.log.roll().await.expect("the segment is sealed"),
            Deed::Rewrite(which, rule, build, install) => self.rewrite(which, rule, build, install).await,
            Deed::DropOldest => self.drop_oldest().await,
            Deed::Page(which, newest, limit) => return self.page(which, newest, limit).await,
            Deed::Reopen => self.reopen(directory).await,
        }
        Ok(())
    }

    async fn reopen(&mut self, directory: &Path) {
        self.world.index.close();
        self.world.log.close().await.expect("the log closes");
        self.world = World::open(directory);
        self.world.clock.set_micros(self.micros);
    }

    async fn rewrite(&mut self, which: u8, rule: u8, build: bool, install: bool) {
        let segments = self.world.log.reader().segments().expect("read");
        let sealed: Vec<_> = segments.iter().filter(|facts| facts.last_seq.is_some()).collect();
        let Some(facts) = sealed.get(usize::from(which) % sealed.len().max(1)) else { return };
        let mut gone = Vec::new();
        let rewritten = self.world.log.rewrite(facts.number, &mut |view| {
            let kept = Kind::from_number(view.kind_number).is_some_and(|kind| kind.name().starts_with("log."));
            let keep = kept || (view.seq ^ u64::from(rule)).is_multiple_of(3) || rule > 220;
            if keep {
                return Fate::Keep;
            }
            gone.push(Gone::of(view));
            Fate::Remove
        });
        let rewritten = rewritten.expect("the segment is whole");
        let generation = rewritten.facts().generation;
        self.announce(facts.number, u64::from(generation), &gone).await;
        if build {
            self.world.index.build(&rewritten.reader()).expect("its table is made");
        }
        if install {
            rewritten.install(false).expect("it is installed");
            self.gone.extend(gone);
        } else {
            drop(rewritten);
            // Taken back: whoever is named hears that it did not come to pass.
            gone.iter_mut().for_each(|gone| gone.portion.count = 0);
            self.announce(facts.number, u64::from(generation), &gone).await;
        }
    }

    async fn drop_oldest(&mut self) {
        let reader = self.world.log.reader();
        let segments = reader.segments().expect("read");
        let [oldest, next, ..] = &segments[..] else { return };
        let mut gone = Vec::new();
        let within = |view: &EventView<'_>| view.seq < next.first_seq;
        let mut visit = |view: &EventView<'_>| {
            if !within(view) {
                return ControlFlow::Break(());
            }
            gone.push(Gone::of(view));
            ControlFlow::Continue(())
        };
        reader.scan(oldest.first_seq, &|_| true, &mut visit).expect("the log is read");
        self.announce(oldest.number, WHOLE_SEGMENT, &gone).await;
        self.world.log.drop_before(next.number).await.expect("it is dropped");
        self.forgotten |= gone.iter().any(|gone| gone.portion.kind == Kind::LogRemoved.number());
        self.gone.extend(gone);
    }

    /// As whoever removes events announces it, one event for each owner and session.
    async fn announce(&self, segment: u32, generation: u64, gone: &[Gone]) {
        let mut whose: BTreeMap<(Option<&str>, Option<&str>), Vec<Portion>> = BTreeMap::new();
        for gone in gone {
            let portions = whose.entry((gone.owner.as_deref(), gone.session.as_deref())).or_default();
            let (kind, level) = (gone.portion.kind, gone.portion.level);
            match portions.iter_mut().find(|portion| (portion.kind, portion.level) == (kind, level)) {
                Some(portion) => portion.add(&gone.portion),
                None => portions.push(gone.portion),
            }
        }
        let draft = |((owner, session), mut portions): ((Option<&str>, Option<&str>), Vec<Portion>)| {
            portions.retain(|portion| portion.count > 0);
            let (owner, session_id) = (owner.map(Owner::from), session.map(SessionId::from));
            let announcement = LogRemoved {
                reason: "age".into(),
                segment: u64::from(segment),
                generation,
                first_seq: 0,
                last_seq: 0,
                count: portions.iter().map(|portion| portion.count).sum(),
                kinds: to_json(&portions),
                by: None,
                note: None,
                subject: None,
            };
            Draft::new(&Context { owner, session_id, ..Context::default() }, &announcement)
        };
        self.world.put(whose.into_iter().map(draft).collect()).await;
    }

    /// All that ann may see, read from the log from end to end.
    fn read(&self, filter: &EventFilter, compiled: &CompiledFilter) -> Vec<Seen> {
        let (mut all, known) = (Vec::new(), self.anns_session_is_known());
        let mut visit = |view: &EventView<'_>| {
            let session = view.context(ContextField::SessionId);
            if visible(view.context(ContextField::Owner), session, known) {
                let gap = view.kind() == Some(Kind::Gap);
                let concerns = filter.session_id.as_ref().is_none_or(|wanted| Some(wanted.as_str()) == session);
                let what = view.get("what").and_then(ValueRef::as_str).and_then(Kind::from_name);
                let named = what.is_none_or(|kind| filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind)));
                let count = view.get("count").and_then(ValueRef::as_u64).unwrap_or(0);
                all.push(Seen {
                    seq: view.seq,
                    matches: compiled.matches(view),
                    of_stream: in_stream(filter, view.kind_number, session),
                    dropped: if gap && concerns && named { count } else { 0 },
                });
            }
            ControlFlow::Continue(())
        };
        self.world.log.reader().scan(1, &|_| true, &mut visit).expect("the log is read");
        all
    }

    async fn page(&mut self, which: usize, newest: bool, limit: usize) -> Result<(), TestCaseError> {
        let walk = (which, newest);
        let filter = filter(which, *self.times.entry(walk).or_insert(self.micros));
        let (compiled, owner) = (filter.compile().expect("valid"), Owner::from("ann"));
        let order = if newest { Order::Newest } else { Order::Oldest };
        let after = self.cursors.get(&walk).cloned();
        let asked = PageRequest { filter: &compiled, order, after: after.as_deref(), limit, owner: &owner };
        let place = after.as_deref().map(|after| self.world.ledger.place_of(&asked, List::Events, after));
        let page = self.world.ledger.page(&asked).await.expect("the page is read");
        let seen = self.read(&filter, &compiled);
        let beyond = |seq: u64| place.is_none_or(|place| if newest { seq < place } else { seq > place });
        let mut expected: Vec<u64> = seen.iter().filter(|e| e.matches && beyond(e.seq)).map(|e| e.seq).collect();
        if newest {
            expected.reverse();
        }
        prop_assert_eq!(page.has_more, expected.len() > limit, "{:?}", filter);
        expected.truncate(limit);
        prop_assert_eq!(seqs(&page), expected, "{:?} after {:?}", filter, place);
        let retained = seen.iter().filter(|event| event.of_stream).count() as u64;
        prop_assert_eq!(page.retained_count, Some(retained), "{:?}", filter);
        prop_assert_eq!(page.dropped_count, seen.iter().map(|event| event.dropped).sum::<u64>(), "{:?}", filter);
        let (told, lost) = (page.removed_count, page.retention_lost);
        self.check_removed(which, &filter, &beyond, (told, lost))?;
        self.cursors.insert(walk, page.next_cursor);
        Ok(())
    }

    fn check_removed(
        &self,
        which: usize,
        filter: &EventFilter,
        beyond: &dyn Fn(u64) -> bool,
        (told, lost): (u64, bool),
    ) -> Result<(), TestCaseError> {
        let known = self.anns_session_is_known();
        let of_stream = |gone: &&Gone| {
            visible(gone.owner.as_deref(), gone.session.as_deref(), known)
                && in_stream(filter, gone.portion.kind, gone.session.as_deref())
        };
        let stream: Vec<&Gone> = self.gone.iter().filter(of_stream).collect();
        let matches = |gone: &&&Gone| {
            let level = filter.level.is_none_or(|wanted| gone.portion.level.is_some_and(|level| level >= wanted));
            level && beyond(gone.portion.first_seq)
        };
        let expected = stream.iter().any(|gone| matches(&gone));
        if EXACT.contains(&which) && !self.forgotten {
            prop_assert_eq!((told, lost), (stream.len() as u64, expected), "{:?}", filter);
        }
        // What cannot be told apart may be said to be lost, never the other way round.
        prop_assert!(lost || !expected || !EXACT.contains(&which), "{:?}", filter);
        Ok(())
    }

    /// Whether any event left tells whose ann's session is.
    fn anns_session_is_known(&self) -> bool {
        let mut known = false;
        let mut visit = |view: &EventView<'_>| {
            known |= view.context(ContextField::Owner) == Some("ann")
                && view.context(ContextField::SessionId) == Some("s-ann");
            if known { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.world.log.reader().scan(1, &|_| true, &mut visit).expect("the log is read");
        known
    }
}

impl Gone {
    fn of(view: &EventView<'_>) -> Self {
        let text = |field: ContextField| view.context(field).map(str::to_owned);
        Self { owner: text(ContextField::Owner), session: text(ContextField::SessionId), portion: Portion::of(view) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_are_what_the_log_holds(deeds in deeds()) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let directory = super::world::temporary();
            let world = World::open(directory.path());
            let (cursors, times) = (BTreeMap::new(), BTreeMap::new());
            let mut rig = Rig { world, gone: Vec::new(), forgotten: false, number: 0, micros: 0, cursors, times };
            rig.world.put(vec![launching("ann", "s-ann"), launching("bob", "s-bob")]).await;
            for deed in deeds {
                rig.do_it(deed, directory.path()).await?;
            }
            for which in 0..FILTERS {
                for newest in [false, true] {
                    rig.page(which, newest, 500).await?;
                    rig.cursors.remove(&(which, newest));
                    rig.page(which, newest, 500).await?;
                }
            }
            rig.world.close().await;
            Ok::<(), TestCaseError>(())
        })?;
    }
}
