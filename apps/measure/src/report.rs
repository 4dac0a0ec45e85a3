//! The answer: heavy keys with their bounds, and what there is to say of how they were found.

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
    /// The weight of all packets measured.
    pub total: u64,
    /// From so much on a key is heavy.
    pub heavy_from: u64,
    /// Heaviest first, equal ones by key; in the order of estimates.
    pub heavy: Vec<Row>,
    /// Where the keys of `heavy` are from.
    pub keys: KeysFrom,
    /// Why keys may be missing in `heavy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Different keys, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<Count>,
    /// Against the exact answer, if that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Packets measured.
    pub measured: u64,
    /// Packets that were not, by reason.
    pub not_measured: BTreeMap<&'static str, u64>,
    /// To make the keys of a packet and count them; absent if that was not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing_ns_mean: Option<f64>,
    /// From a packet's stamp until it was counted; absent if that was not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Delay>,
    /// Of all structures, those of all workers.
    pub memory_bytes: u64,
}

/// A heavy key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub key: String,
    pub estimate: u64,
    pub lower: u64,
    pub upper: u64,
}

/// Where keys are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeysFrom {
    /// The structure keeps them, or finds them again.
    Structure,
    /// The structure keeps none and was asked for those of the exact answer.
    Check,
    /// The structure keeps none, and nobody knew any.
    Nowhere,
}

/// A number that lies between its bounds with 99.7 % of probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Count {
    pub value: u64,
    pub lower: u64,
    pub upper: u64,
}

/// A distribution of delays, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Delay {
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
}

impl Delay {
    fn of(latency: &Latency) -> Option<Self> {
        let of = |thousandths| latency.quantile(thousandths);
        Some(Self { p50: of(500)?, p99: of(990)?, p999: of(999)? })
    }
}

impl<V: Keys> Findings<V> {
    /// The answer.
    pub fn report(&self) -> Report {
        let Self { settings, v4, v6, tally, .. } = self;
        let total = self.total();
        let mut list = List::new(settings, total);
        list.add(v4);
        list.add(v6);
        list.rows.sort_by(|a, b| b.estimate.cmp(&a.estimate).then_with(|| a.key.cmp(&b.key)));
        let reasons = [("no_address", tally.no_address), ("ipv6", tally.no_such_keys)];
        let timed = tally.measured > 0 && tally.delay.count() > 0;
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
            measured: tally.measured,
            not_measured: reasons.into_iter().filter(|(_, packets)| *packets > 0).collect(),
            processing_ns_mean: timed.then(|| tally.processing_ns as f64 / tally.measured as f64),
            delay_ns: Delay::of(&tally.delay),
            memory_bytes: self.memory_bytes as u64,
        }
    }
}

/// Heavy keys of both IP versions, on their way into the report.
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
            structure.heavy(self.heavy_from).unwrap_or_else(|dear| {
                self.search = Some(dear.to_string());
                Vec::new()
            })
        } else {
            let known = side.exact.iter().flat_map(Exact::iter);
            let asked = known.map(|(key, _)| Heavy { key, estimate: structure.estimate(&key) });
            asked.filter(|heavy| heavy.estimate.value >= self.heavy_from).collect()
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
