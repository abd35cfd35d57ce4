//! Requests that went wrong, in order of their beginning, however late they did.

use crate::index::Failure;
use crate::index::layer::Found;
use crate::index::view::View;
use crate::index::wire::{Space, end_of, key, number_of, texts_of};

/// First numbers of requests, each once, nearest first.
pub(crate) struct Troubles<'a> {
    sources: Vec<Source<'a>>,
    backwards: bool,
}

struct Source<'a> {
    next: Option<u64>,
    rest: Box<dyn Iterator<Item = Result<u64, Failure>> + 'a>,
}

impl View {
    /// First events of requests that went wrong, beyond `after`, nearest first.
    pub fn troubles(&self, session: &str, after: Option<u64>, backwards: bool) -> Result<Troubles<'_>, Failure> {
        let prefix = key(Space::Trouble, &[session], None);
        let place = |seq| key(Space::Trouble, &[session], Some(seq));
        let (from, to) = match (after, backwards) {
            (None, _) => (prefix.clone(), end_of(&prefix)),
            (Some(after), true) => (prefix.clone(), place(after)),
            (Some(after), false) => (place(after.saturating_add(1)), end_of(&prefix)),
        };
        let mut all = Troubles { sources: Vec::new(), backwards };
        for layer in self.layers.iter().filter(|layer| layer.may_hold(&prefix)) {
            let entries: Found<'_> = layer.range(&from, &to, backwards);
            all.add(Box::new(entries.map(|entry| number_of(entry?.key()).map_err(layer.meaningless()))))?;
        }
        let mut begun = self.unresolved(session)?;
        begun.retain(|seq| after.is_none_or(|after| if backwards { *seq < after } else { *seq > after }));
        begun.sort_unstable();
        if backwards {
            begun.reverse();
        }
        all.add(Box::new(begun.into_iter().map(Ok)))?;
        Ok(all)
    }

    /// Beginnings that were not known when their requests went wrong; normally none.
    fn unresolved(&self, session: &str) -> Result<Vec<u64>, Failure> {
        let prefix = key(Space::Unresolved, &[session], None);
        let mut begun = Vec::new();
        for layer in self.layers.iter().filter(|layer| layer.may_hold(&prefix)) {
            for entry in layer.range(&prefix, &end_of(&prefix), false) {
                let entry = entry?;
                let id = texts_of(entry.key()).nth(1).unwrap_or_default();
                begun.extend(self.chain(Space::Request, session, id)?.start().map(|link| link.seq));
            }
        }
        Ok(begun)
    }
}

impl<'a> Troubles<'a> {
    fn add(&mut self, mut rest: Box<dyn Iterator<Item = Result<u64, Failure>> + 'a>) -> Result<(), Failure> {
        let next = rest.next().transpose()?;
        self.sources.push(Source { next, rest });
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<u64>, Failure> {
        let heads = self.sources.iter().filter_map(|source| source.next);
        let Some(nearest) = (if self.backwards { heads.max() } else { heads.min() }) else { return Ok(None) };
        for source in self.sources.iter_mut().filter(|source| source.next == Some(nearest)) {
            source.next = source.rest.next().transpose()?;
        }
        Ok(Some(nearest))
    }
}

impl Iterator for Troubles<'_> {
    type Item = Result<u64, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}
