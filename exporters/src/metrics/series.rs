//! The handles of one metric: one for each combination of label values, held, never looked up by name.
//!
//! What must stay true: a combination is reached by arithmetic on positions within closed sets, so no
//! text can make a new one. Metrics of moderate size have all their series from the start, because a
//! monitor cannot see the rise of a series that was not there before; the few large ones grow
//! towards their bound as combinations occur.

use std::sync::OnceLock;

use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::PrometheusRecorder;

use crate::metrics::catalog::{MetricFacts, Unit};
use crate::metrics::labels::{Labels, NAMES_MAX};

/// A metric with at most this many series has all of them from the start.
const SERIES_FROM_START_MAX: usize = NAMES_MAX + 2;

static METADATA: Metadata<'static> = Metadata::new("pageledger", Level::INFO, None);

/// A handle of the metrics library that can be registered.
pub(super) trait Handle: Sized {
    fn describe(recorder: &PrometheusRecorder, facts: &MetricFacts);
    fn register(recorder: &PrometheusRecorder, key: &Key) -> Self;
}

macro_rules! handles {
    ($($ty:ident $describe:ident $register:ident;)*) => {$(
        impl Handle for metrics::$ty {
            fn describe(recorder: &PrometheusRecorder, facts: &MetricFacts) {
                recorder.$describe(facts.name.into(), Some(unit(facts.unit)), facts.help.into());
            }
            fn register(recorder: &PrometheusRecorder, key: &Key) -> Self {
                recorder.$register(key, &METADATA)
            }
        }
    )*};
}

handles! {
    Counter describe_counter register_counter;
    Gauge describe_gauge register_gauge;
    Histogram describe_histogram register_histogram;
}

fn unit(unit: Unit) -> metrics::Unit {
    match unit {
        Unit::Count | Unit::Flag => metrics::Unit::Count,
        Unit::Seconds => metrics::Unit::Seconds,
        Unit::Bytes => metrics::Unit::Bytes,
    }
}

/// All series of one metric.
pub(super) struct Family<H> {
    facts: &'static MetricFacts,
    /// How many values each label has.
    sizes: Vec<usize>,
    cells: Vec<OnceLock<H>>,
}

impl<H: Handle> Family<H> {
    pub(super) fn new(recorder: &PrometheusRecorder, labels: &Labels, facts: &'static MetricFacts) -> Self {
        H::describe(recorder, facts);
        let sizes: Vec<usize> = facts.labels.iter().map(|label| labels.set(*label).len()).collect();
        let mut cells = Vec::new();
        cells.resize_with(sizes.iter().product(), OnceLock::new);
        let family = Self { facts, sizes, cells };
        if family.cells.len() <= SERIES_FROM_START_MAX {
            for index in 0..family.cells.len() {
                family.at(recorder, labels, &family.positions(index));
            }
        }
        family
    }

    /// The reverse of what `at` does with positions.
    fn positions(&self, index: usize) -> Vec<usize> {
        let mut rest = index;
        let mut positions: Vec<usize> = self
            .sizes
            .iter()
            .rev()
            .map(|size| {
                let position = rest % size;
                rest /= size;
                position
            })
            .collect();
        positions.reverse();
        positions
    }

    /// The handle at these positions within the label's sets; positions of a metric without labels
    /// are ignored.
    pub(super) fn at(&self, recorder: &PrometheusRecorder, labels: &Labels, positions: &[usize]) -> &H {
        let index = self.sizes.iter().zip(positions).fold(0, |index, (size, position)| index * size + position);
        // Positions come from the same sets as the sizes, so the index lies within the cells.
        let cell = &self.cells[index.min(self.cells.len() - 1)];
        cell.get_or_init(|| {
            let named =
                self.facts.labels.iter().zip(positions).map(|(label, position)| {
                    Label::new(label.as_str(), labels.set(*label).value(*position).to_owned())
                });
            H::register(recorder, &Key::from_parts(self.facts.name, named.collect::<Vec<_>>()))
        })
    }
}
