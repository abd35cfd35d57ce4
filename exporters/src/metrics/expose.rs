//! Registers every metric of the catalogue and renders them as text.
//!
//! Totals that are counted elsewhere may have fractions, which the library's counters cannot hold;
//! they are kept and rendered here.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::metrics::catalog::{Counter, Gauge, Histogram, Total};
use crate::metrics::labels::{LabelName, Labels};
use crate::metrics::series::Family;

/// Media type of what [`Metrics::render`] returns.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";
/// Upper bounds of the buckets of every `_seconds` histogram.
const BUCKETS_SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// Every metric of this process. Clones share the same values.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    labels: Labels,
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    counters: Vec<Family<metrics::Counter>>,
    histograms: Vec<Family<metrics::Histogram>>,
    gauges: Vec<Family<metrics::Gauge>>,
    /// Bits of an `f64` each, in the order of [`Total`].
    totals: Vec<AtomicU64>,
}

impl Metrics {
    #[must_use]
    pub fn new(labels: Labels) -> Self {
        let recorder = builder().build_recorder();
        let handle = recorder.handle();
        let inner = Inner {
            counters: Counter::ALL.iter().map(|id| Family::new(&recorder, &labels, id.facts())).collect(),
            histograms: Histogram::ALL.iter().map(|id| Family::new(&recorder, &labels, id.facts())).collect(),
            gauges: Gauge::ALL.iter().map(|id| Family::new(&recorder, &labels, id.facts())).collect(),
            totals: Total::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            labels,
            recorder,
            handle,
        };
        let metrics = Self { inner: Arc::new(inner) };
        metrics.set(Gauge::BuildInfo, 1.0);
        metrics
    }

    /// Sets a gauge to its value now.
    pub fn set(&self, gauge: Gauge, value: f64) {
        let inner = &*self.inner;
        inner.gauges[gauge as usize].at(&inner.recorder, &inner.labels, &[0]).set(value);
    }

    /// Sets a total to its value now. A smaller value than before is ignored: totals only rise.
    pub fn set_total(&self, total: Total, value: f64) {
        let cell = &self.inner.totals[total as usize];
        let rises = |bits: u64| (value > f64::from_bits(bits)).then_some(value.to_bits());
        // Err means that the value did not rise.
        let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rises);
    }

    /// The whole exposition.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.inner.handle.render();
        for total in Total::ALL {
            let facts = total.facts();
            let value = f64::from_bits(self.inner.totals[*total as usize].load(Ordering::Relaxed));
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n\n",
                name = facts.name,
                help = facts.help,
            );
        }
        text
    }

    /// Moves gathered observations into their buckets; call it every few seconds, so that memory
    /// stays flat when nobody scrapes.
    pub fn run_upkeep(&self) {
        self.inner.handle.run_upkeep();
    }

    pub(super) fn position(&self, label: LabelName, text: &str) -> usize {
        self.inner.labels.set(label).position(text)
    }

    pub(super) fn add(&self, counter: Counter, positions: &[usize], count: u64) {
        let inner = &*self.inner;
        inner.counters[counter as usize].at(&inner.recorder, &inner.labels, positions).increment(count);
    }

    pub(super) fn record(&self, histogram: Histogram, positions: &[usize], seconds: f64) {
        let inner = &*self.inner;
        inner.histograms[histogram as usize].at(&inner.recorder, &inner.labels, positions).record(seconds);
    }
}

fn builder() -> PrometheusBuilder {
    let bucketed = |builder: PrometheusBuilder| -> Result<PrometheusBuilder, BuildError> {
        builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS_SECONDS)
    };
    // The only error there is means an empty list, which the constant is not.
    bucketed(PrometheusBuilder::new()).unwrap_or_else(|_| PrometheusBuilder::new())
}
