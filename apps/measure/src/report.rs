//! The report: heavy keys with their bounds, and how they were found.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ringtap_base::{Latency, Rfc3339};
use ringtap_engine::display;
use ringtap_sketch::{DistinctEstimate, Estimate, Exact, Heavy, Sketch, heaviest};
use serde::Serialize;

use crate::accuracy::{Accuracy, Compared};
use crate::counts::Side;
use crate::findings::Findings;
use crate::keys::{Keys, PacketKey};
use crate::settings::Settings;

/// The report of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The total weight of the measured packets.
    pub total: u64,
    /// Share of the total from which keys are listed, if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Most keys listed, if they are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<usize>,
    /// The weight from which keys are listed: that of the threshold, or the estimate of the last of
    /// `top` keys.
    pub heavy_from: u64,
    /// Heaviest first, by estimate; equal ones by key, IPv4 first.
    pub heavy: Vec<Row>,
    /// The source of the keys in `heavy`.
    pub keys: KeysFrom,
    /// Why keys may be missing in `heavy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Weight of keys that found no room in a table; one that is not stored has at most this. Absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
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
    /// Packets of another interval that were counted in this one; absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub strays: u64,
    /// Time to make the keys of a packet and count them; absent if not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing_ns_mean: Option<f64>,
    /// Time from a packet's stamp until it was counted; absent if not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Delay>,
    /// Memory of the structures of all workers.
    pub memory_bytes: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A finished interval.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// Its first time: a multiple of its length since 1970.
    #[serde(serialize_with = "display")]
    pub start: Rfc3339,
    /// Its end, which is not in it.
    #[serde(serialize_with = "display")]
    pub end: Rfc3339,
    /// The keys and numbers of its packets.
    #[serde(flatten)]
    pub report: Report,
}

impl Interval {
    pub(crate) fn new(number: u64, length_ns: u64, report: Report) -> Self {
        let start_ns = number.saturating_mul(length_ns);
        let end = Rfc3339(start_ns.saturating_add(length_ns));
        Self { start: Rfc3339(start_ns), end, report }
    }
}

/// Receives an interval once all workers have passed it. Intervals without packets are left out.
pub type OnInterval = Box<dyn FnMut(&Interval) + Send>;

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
        let List { mut rows, search, lost, compared, least, .. } = list;
        // Stable: both lists are in order.
        rows.sort_by_key(|(row, _)| Reverse(row.estimate));
        rows.truncate(settings.most());
        let last = rows.last().filter(|_| rows.len() == settings.most());
        let heavy_from = last.map_or(least, |(row, _)| row.estimate.max(least));
        let (rows, counts): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let reasons = [("no_address", packets.no_address), ("ipv6", packets.no_such_keys)];
        let timed = packets.delay.as_ref().filter(|_| packets.measured > 0);
        Report {
            total,
            threshold: settings.threshold,
            top: settings.top,
            heavy_from,
            keys: match settings {
                Settings { structure, .. } if structure.keeps_keys() => KeysFrom::Structure,
                Settings { check: true, .. } => KeysFrom::Check,
                _ => KeysFrom::Nowhere,
            },
            heavy: rows,
            search,
            lost,
            distinct: self.distinct().map(|DistinctEstimate { lower, value, upper }| {
                let whole = |x: f64| x.round() as u64;
                Count { value: whole(value), lower: whole(lower), upper: whole(upper) }
            }),
            accuracy: settings.check.then(|| compared.accuracy(&counts, least, settings.most())),
            measured: packets.measured,
            not_measured: reasons.into_iter().filter(|(_, packets)| *packets > 0).collect(),
            strays: packets.strays,
            processing_ns_mean: timed
                .map(|_| packets.processing_ns as f64 / packets.measured as f64),
            delay_ns: packets.delay.as_ref().and_then(Delay::of),
            memory_bytes: self.memory_bytes as u64,
        }
    }
}

/// Heavy keys of both IP versions, for the report.
struct List<'a> {
    settings: &'a Settings,
    /// The weight of the threshold.
    least: u64,
    /// With the exact counts, 0 without a check.
    rows: Vec<(Row, u64)>,
    search: Option<String>,
    lost: u64,
    compared: Compared,
}

impl<'a> List<'a> {
    fn new(settings: &'a Settings, total: u64) -> Self {
        let (rows, compared) = (Vec::new(), Compared::default());
        Self {
            settings,
            least: settings.least_weight(total),
            rows,
            search: None,
            lost: 0,
            compared,
        }
    }

    fn add<K: PacketKey>(&mut self, side: &Side<K>) {
        let Some(structure) = &side.structure else { return };
        let (least, most) = (self.least, self.settings.most());
        let heavy = if self.settings.structure.keeps_keys() {
            let (heavy, missing) = structure.heaviest(least, most);
            self.search = missing.map(|error| error.to_string()).or(self.search.take());
            heavy
        } else {
            let known = side.exact.iter().flat_map(Exact::iter);
            let all = known.map(|(key, _)| Heavy { key, estimate: structure.estimate(&key) });
            heaviest(all, least, most)
        };
        self.lost = self.lost.saturating_add(structure.lost());
        if let Some(exact) = &side.exact {
            self.compared.add(structure, exact, least, most);
        }
        self.rows.extend(heavy.iter().map(|Heavy { key, estimate }| {
            let &Estimate { lower, value, upper, .. } = estimate;
            let count = side.exact.as_ref().map_or(0, |exact| exact.estimate(key).value);
            (Row { key: key.text(self.settings.by), estimate: value, lower, upper }, count)
        }));
    }
}
