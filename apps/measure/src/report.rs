//! The report: heavy keys with their bounds, and how they were found.

use std::collections::BTreeMap;

use ringtap_base::Latency;
use ringtap_sketch::{DistinctEstimate, Estimate, Exact, Heavy};
use serde::Serialize;

use crate::accuracy::{Accuracy, Compared};
use crate::findings::Findings;
use crate::keys::{Keys, PacketKey};
use crate::settings::Settings;
use crate::worker::Side;

/// The report of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The total weight of the measured packets.
    pub total: u64,
    /// The weight from which a key is heavy.
    pub heavy_from: u64,
    /// Heaviest first, by estimate; equal ones by key.
    pub heavy: Vec<Row>,
    /// The source of the keys in `heavy`.
    pub keys: KeysFrom,
    /// Why keys may be missing in `heavy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Number of distinct keys, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<Count>,
    /// Comparison with the exact answer, if it was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Packets measured.
    pub measured: u64,
    /// Packets not measured, by reason.
    pub not_measured: BTreeMap<&'static str, u64>,
    /// Time to make the keys of a packet and count them; absent if not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing_ns_mean: Option<f64>,
    /// Time from a packet's stamp until it was counted; absent if not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Delay>,
    /// Memory of the structures of all workers.
    pub memory_bytes: u64,
}

/// A heavy key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The key as text.
    pub key: String,
    /// The estimate of its weight.
    pub estimate: u64,
    /// Lower bound of its weight.
    pub lower: u64,
    /// Upper bound of its weight.
    pub upper: u64,
}

/// The source of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeysFrom {
    /// The structure stores or recovers them.
    Structure,
    /// The structure stores none; they are those of the exact answer.
    Check,
    /// The structure stores no keys, and none were given.
    Nowhere,
}

/// An estimate whose bounds hold with a probability of 99.7 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Count {
    /// The estimate.
    pub value: u64,
    /// Lower bound.
    pub lower: u64,
    /// Upper bound.
    pub upper: u64,
}

/// A distribution of delays, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Delay {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
}

impl Delay {
    fn of(latency: &Latency) -> Option<Self> {
        let of = |thousandths| latency.quantile(thousandths);
        Some(Self { p50: of(500)?, p99: of(990)?, p999: of(999)? })
    }
}

impl<V: Keys> Findings<V> {
    /// Makes the report.
    pub fn report(&self) -> Report {
        let Self { settings, v4, v6, packets, .. } = self;
        let total = self.total();
        let mut list = List::new(settings, total);
        list.add(v4);
        list.add(v6);
        list.rows.sort_by(|a, b| b.estimate.cmp(&a.estimate).then_with(|| a.key.cmp(&b.key)));
        let reasons = [("no_address", packets.no_address), ("ipv6", packets.no_such_keys)];
        let timed = packets.measured > 0 && packets.delay.count() > 0;
        Report {
            total,
            heavy_from: list.heavy_from,
            keys: match settings {
                Settings { structure, .. } if structure.keeps_keys() => KeysFrom::Structure,
                Settings { check: true, .. } => KeysFrom::Check,
                _ => KeysFrom::Nowhere,
            },
            heavy: list.rows,
            search: list.search,
            distinct: self.distinct().map(|DistinctEstimate { lower, value, upper }| {
                let whole = |x: f64| x.round() as u64;
                Count { value: whole(value), lower: whole(lower), upper: whole(upper) }
            }),
            accuracy: settings.check.then(|| list.compared.accuracy()),
            measured: packets.measured,
            not_measured: reasons.into_iter().filter(|(_, packets)| *packets > 0).collect(),
            processing_ns_mean: timed
                .then(|| packets.processing_ns as f64 / packets.measured as f64),
            delay_ns: Delay::of(&packets.delay),
            memory_bytes: self.memory_bytes as u64,
        }
    }
}

/// Heavy keys of both IP versions, for the report.
struct List<'a> {
    settings: &'a Settings,
    heavy_from: u64,
    rows: Vec<Row>,
    search: Option<String>,
    compared: Compared,
}

impl<'a> List<'a> {
    fn new(settings: &'a Settings, total: u64) -> Self {
        let heavy_from = settings.heavy_from(total);
        Self { settings, heavy_from, rows: Vec::new(), search: None, compared: Compared::default() }
    }

    fn add<K: PacketKey>(&mut self, side: &Side<K>) {
        let Some(structure) = &side.structure else { return };
        let heavy = if self.settings.structure.keeps_keys() {
            structure.heavy(self.heavy_from).unwrap_or_else(|error| {
                self.search = Some(error.to_string());
                Vec::new()
            })
        } else {
            let known = side.exact.iter().flat_map(Exact::iter);
            let estimates = known.map(|(key, _)| Heavy { key, estimate: structure.estimate(&key) });
            estimates.filter(|heavy| heavy.estimate.value >= self.heavy_from).collect()
        };
        if let Some(exact) = &side.exact {
            self.compared.add(structure, exact, &heavy, self.heavy_from);
        }
        self.rows.extend(heavy.iter().map(|Heavy { key, estimate }| {
            let &Estimate { lower, value, upper, .. } = estimate;
            Row { key: key.text(self.settings.by), estimate: value, lower, upper }
        }));
    }
}
