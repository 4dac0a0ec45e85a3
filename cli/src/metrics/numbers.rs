//! The numbers that metrics are made of.

use std::fmt::Display;
use std::time::Duration;

use ringtap_engine::Watch;
use ringtap_export::{Space, Status};
use ringtap_flow::Exchange;
use ringtap_monitor::{Responses, Totals};
use ringtap_serve::{Sample, label_value, one, sample};

/// Values from the console.
#[derive(Default)]
pub(crate) struct RunStats {
    pub(crate) elapsed: Duration,
    pub(crate) alerts: u64,
    /// `None` before the first interval has ended.
    pub(crate) flows: Option<u64>,
    pub(crate) outputs: Vec<Status>,
    /// Numbers of the last mark.
    pub(crate) totals: Totals,
}

/// The samples of a metric now; none if the run does not have it.
pub(super) type Samples = fn(&Numbers<'_>) -> Vec<Sample>;

/// The numbers of a run. `interfaces` is empty for files.
pub(super) struct Numbers<'a> {
    pub(super) watch: &'a Watch,
    pub(super) queues: usize,
    pub(super) interfaces: &'a [String],
    pub(super) stats: &'a RunStats,
}

impl Numbers<'_> {
    /// A sample of each interface.
    pub(super) fn of_interfaces(&self, value: impl Fn(usize) -> u64) -> Vec<Sample> {
        let of_one = |(place, name)| sample(format!("interface=\"{name}\""), value(place));
        self.interfaces.iter().enumerate().map(of_one).collect()
    }

    /// A sample of each interface, or one of all files.
    pub(super) fn of_sources(&self, value: impl Fn(usize) -> u64, whole: u64) -> Vec<Sample> {
        if self.interfaces.is_empty() { one(whole) } else { self.of_interfaces(value) }
    }

    /// The packets of each queue, by interface if there are any.
    pub(super) fn packets(&self) -> Vec<Sample> {
        let queued = |label: &str, parts: Vec<u64>| -> Vec<Sample> {
            let of_queue = |(queue, packets)| sample(format!("{label}queue=\"{queue}\""), packets);
            parts.into_iter().enumerate().map(of_queue).collect()
        };
        let Self { watch, queues, .. } = *self;
        if self.interfaces.is_empty() {
            return queued("", watch.packets.parts(queues));
        }
        let of_interface = |(place, name): (usize, &String)| {
            let parts = watch.interfaces.queue_packets(place, queues);
            queued(&format!("interface=\"{name}\","), parts)
        };
        self.interfaces.iter().enumerate().flat_map(of_interface).collect()
    }

    /// A sample of each output.
    pub(super) fn of_outputs<V: Display>(&self, value: impl Fn(&Status) -> V) -> Vec<Sample> {
        let labels = |one: &Status| format!("output=\"{}\"", label_value(&one.name));
        self.stats.outputs.iter().map(|one| sample(labels(one), value(one))).collect()
    }

    /// A sample of each output that is a file.
    pub(super) fn of_spaces<V: Display>(&self, value: impl Fn(&Space) -> V) -> Vec<Sample> {
        let of_output = |one: &Status| {
            let labels = format!("output=\"{}\"", label_value(&one.name));
            one.space.as_ref().map(|space| sample(labels, value(space)))
        };
        self.stats.outputs.iter().filter_map(of_output).collect()
    }

    /// A sample of the TCP connections, if they are measured.
    pub(super) fn of_tcp(
        &self,
        value: impl Fn(&ringtap_monitor::report::TcpTotals) -> u64,
    ) -> Vec<Sample> {
        self.stats.totals.tcp.as_ref().map_or_else(Vec::new, |tcp| one(value(tcp)))
    }

    /// A sample of each exchange, if response times are measured.
    pub(super) fn of_exchanges(&self, value: impl Fn(&Responses) -> u64) -> Vec<Sample> {
        let of_one = |(exchange, responses): (Exchange, &Responses)| {
            sample(format!("exchange=\"{}\"", exchange.name()), value(responses))
        };
        Exchange::ALL
            .into_iter()
            .zip(self.stats.totals.responses.iter().flatten())
            .map(of_one)
            .collect()
    }
}
