//! `--metrics`: the counters of a run in Prometheus' text format.

use std::fmt::Write as _;
use std::time::Duration;

use ringtap_engine::{LinkChange, Watch};
use ringtap_export::Status;
use ringtap_extract::Unread;
use ringtap_monitor::{Shortage, Totals};

use ringtap_serve::{Get, Reply, Site, label_value};

/// The type of the format.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the numbers come from.
pub(crate) struct Metrics {
    watch: &'static Watch,
    queues: usize,
    interfaces: Vec<String>,
    stats: Box<dyn Fn() -> RunStats + Send>,
}

/// Values from the console.
pub(crate) struct RunStats {
    pub(crate) elapsed: Duration,
    pub(crate) alerts: u64,
    /// `None` before the first interval has ended.
    pub(crate) flows: Option<u64>,
    pub(crate) outputs: Vec<Status>,
    /// Numbers of the last mark.
    pub(crate) totals: Totals,
}

impl Metrics {
    /// The metrics of a run with this number of queues. `interfaces` is empty for files. `stats` returns the values that
    /// `watch` does not hold.
    pub(crate) fn new(
        watch: &'static Watch,
        queues: usize,
        interfaces: &[String],
        stats: impl Fn() -> RunStats + Send + 'static,
    ) -> Self {
        let interfaces = interfaces.iter().map(|name| label_value(name)).collect();
        Self { watch, queues, interfaces, stats: Box::new(stats) }
    }

    /// The values that the watch does not hold.
    pub(crate) fn stats(&self) -> RunStats {
        (self.stats)()
    }

    /// The current values.
    pub(crate) fn reply(&self) -> Reply {
        let text = text(self.watch, self.queues, &self.interfaces, &self.stats());
        Reply::Resource { kind: KIND, body: text.into_bytes() }
    }
}

impl Site for Metrics {
    fn get(&mut self, request: &Get<'_>) -> Reply {
        if request.path == "/metrics" {
            self.reply()
        } else {
            Reply::missing("the metrics are at /metrics")
        }
    }
}

/// All metrics in Prometheus' text format; packets and bytes for each interface, if any.
fn text(watch: &Watch, queues: usize, interfaces: &[String], stats: &RunStats) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        // Writing to a String cannot fail.
        let _ = write!(text, "# HELP ringtap_{name} {help}\n# TYPE ringtap_{name} {kind}\n");
        for (labels, value) in samples {
            let _ = writeln!(text, "ringtap_{name}{labels} {value}");
        }
    };
    let one = |value: u64| [(String::new(), value.to_string())];
    let by_interface = |value: &dyn Fn(usize) -> u64, whole: u64| -> Vec<(String, String)> {
        if interfaces.is_empty() {
            return one(whole).to_vec();
        }
        let sample =
            |(place, name)| (format!("{{interface=\"{name}\"}}"), value(place).to_string());
        interfaces.iter().enumerate().map(sample).collect()
    };
    let queued = |label: &str, parts: Vec<u64>| -> Vec<(String, String)> {
        let sample = |(queue, packets): (usize, u64)| {
            (format!("{{{label}queue=\"{queue}\"}}"), packets.to_string())
        };
        parts.into_iter().enumerate().map(sample).collect()
    };
    let mut by_queue = Vec::new();
    for (place, name) in interfaces.iter().enumerate() {
        let parts = watch.interfaces.queue_packets(place, queues);
        by_queue.extend(queued(&format!("interface=\"{name}\","), parts));
    }
    if interfaces.is_empty() {
        by_queue = queued("", watch.packets.parts(queues));
    }
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let seconds = format!("{:.3}", stats.elapsed.as_secs_f64());
    metric("build_info", "gauge", "Version of the program.", &[(version, "1".into())]);
    metric(
        "run_seconds",
        "gauge",
        "Seconds since the start of the run.",
        &[(String::new(), seconds)],
    );
    metric("packets_total", "counter", "Packets read.", &by_queue);
    let bytes = "Bytes read: of files as stored, of frames as captured.";
    let of = &watch.interfaces;
    metric(
        "bytes_total",
        "counter",
        bytes,
        &by_interface(&|place| of.bytes(place), watch.bytes.get()),
    );
    let dropped = "Packets lost before they could be read.";
    let samples = by_interface(&|place| of.dropped(place), watch.dropped.get());
    metric("dropped_packets_total", "counter", dropped, &samples);
    if !interfaces.is_empty() {
        let gone = "1 if the interface was deleted or moved to another network namespace.";
        let samples = by_interface(&|place| of.is_gone(place).into(), 0);
        metric("interface_gone", "gauge", gone, &samples);
        let up = "1 if the interface is up and has a carrier.";
        metric("interface_up", "gauge", up, &by_interface(&|place| of.is_up(place).into(), 1));
        let changes = "Changes of an interface: it went down or lost its carrier, or got another MTU or name.";
        let samples: Vec<_> = interfaces
            .iter()
            .enumerate()
            .flat_map(|(place, name)| {
                LinkChange::ALL.map(|change| {
                    let labels = format!("{{interface=\"{name}\",change=\"{}\"}}", change.name());
                    (labels, of.changes(place, change).to_string())
                })
            })
            .collect();
        metric("interface_changes_total", "counter", changes, &samples);
    }
    let shed = "Packets dropped by shedding under overload.";
    metric("shed_packets_total", "counter", shed, &one(watch.shed.get()));
    let split = "Packets in another queue than earlier ones of the same address pair.";
    metric("split_packets_total", "counter", split, &one(watch.split.get()));
    let fragments =
        "First fragments evicted for lack of memory; their later fragments may lack ports.";
    metric(
        "forgotten_fragments_total",
        "counter",
        fragments,
        &one(watch.fragments_forgotten.get()),
    );
    let duplicates = "Packets left out because they were seen before.";
    metric("duplicate_packets_total", "counter", duplicates, &one(watch.duplicates.get()));
    let evicted = "Packets whose duplicates may count, for lack of memory.";
    metric("evicted_packets_total", "counter", evicted, &one(watch.duplicates_evicted.get()));
    let messages = "Messages read from payloads.";
    metric("payload_messages_total", "counter", messages, &one(watch.messages.get()));
    let unread: Vec<_> = Unread::ALL
        .iter()
        .zip(&watch.unread_payloads)
        .map(|(why, gauge)| (format!("{{reason=\"{}\"}}", why.name()), gauge.get().to_string()))
        .collect();
    let help = "Payloads and messages that could not be read.";
    metric("unread_payloads_total", "counter", help, &unread);
    if let Some(tcp) = stats.totals.tcp {
        for (name, help, value) in [
            ("tcp_handshakes_total", "Complete TCP handshakes.", tcp.handshakes),
            (
                "tcp_handshake_microseconds_total",
                "Sum of the round-trip times of TCP handshakes.",
                tcp.handshake_rtt_sum_us,
            ),
            ("tcp_rtt_samples_total", "Samples of TCP round-trip times.", tcp.rtt_samples),
            ("tcp_rtt_microseconds_total", "Sum of TCP round-trip times.", tcp.rtt_sum_us),
            ("tcp_retransmissions_total", "TCP segments sent again.", tcp.retransmissions),
            ("tcp_out_of_order_total", "TCP segments out of order.", tcp.out_of_order),
            ("tcp_duplicate_acks_total", "Duplicate TCP acknowledgments.", tcp.duplicate_acks),
            ("tcp_zero_windows_total", "TCP segments with a window of zero.", tcp.zero_windows),
        ] {
            metric(name, "counter", help, &one(value));
        }
    }
    let Shortage {
        flows_ended_early,
        attempts_ignored,
        conversations_estimated,
        packets_in_further_intervals,
        alerts_without_room,
    } = stats.totals.shortage;
    let early = "Flows that were ended because the flow table was full.";
    metric("flows_ended_early_total", "counter", early, &one(flows_ended_early));
    let ignored = "Connection attempts that the scan analysis ignored for lack of memory.";
    metric("scan_attempts_ignored_total", "counter", ignored, &one(attempts_ignored));
    let estimated = "1 if the numbers of conversations are estimates, for lack of memory.";
    metric("conversations_estimated", "gauge", estimated, &one(conversations_estimated.into()));
    let further = "Packets of intervals for which the report has no room.";
    metric(
        "further_interval_packets_total",
        "counter",
        further,
        &one(packets_in_further_intervals),
    );
    let alerts = "Alerts of scans, limits and watched entries, each counted once.";
    metric("alerts_total", "counter", alerts, &one(stats.alerts));
    let without_room = "Alerts that were not reported for lack of room.";
    metric("alerts_without_room_total", "counter", without_room, &one(alerts_without_room));
    if let Some(flows) = stats.flows {
        metric("flows", "gauge", "Live flows at the end of the last interval.", &one(flows));
    }
    if stats.outputs.is_empty() {
        return text;
    }
    let each = |value: &dyn Fn(&Status) -> String| -> Vec<(String, String)> {
        let labels = |one: &Status| format!("{{output=\"{}\"}}", label_value(&one.name));
        stats.outputs.iter().map(|one| (labels(one), value(one))).collect()
    };
    let made =
        "Flow records, events, states or alerts for an output, encoded or lost before encoding.";
    metric("output_records_made_total", "counter", made, &each(&|one| one.made.to_string()));
    let sent = "Those that an output accepted.";
    metric("output_records_written_total", "counter", sent, &each(&|one| one.sent.to_string()));
    let lost: Vec<_> = stats
        .outputs
        .iter()
        .flat_map(|one| one.lost.iter().map(move |&(reason, lost)| (one, reason, lost)))
        .map(|(one, reason, lost)| {
            let (name, reason) = (label_value(&one.name), reason.name());
            (format!("{{output=\"{name}\",reason=\"{reason}\"}}"), lost.to_string())
        })
        .collect();
    metric("output_records_lost_total", "counter", "Those that an output lost.", &lost);
    let queued = "Encoded bytes that are not written yet.";
    metric("output_queued_bytes", "gauge", queued, &each(&|one| one.queued_bytes.to_string()));
    let failing = "1 if the last attempt to write failed.";
    metric("output_failing", "gauge", failing, &each(&|one| u8::from(one.failing).to_string()));
    let when = "Time of the last failure of an output, seconds since 1970; 0: never.";
    metric(
        "output_last_error_timestamp_seconds",
        "gauge",
        when,
        &each(&|one| {
            let since = |at: &std::time::SystemTime| at.duration_since(std::time::UNIX_EPOCH).ok();
            let error = one.last_error.as_ref().and_then(|(_, at)| since(at));
            format!("{:.3}", error.unwrap_or_default().as_secs_f64())
        }),
    );
    text
}

#[cfg(test)]
mod packaging;

#[cfg(test)]
mod tests {
    use ringtap_monitor::report::TcpTotals;

    use super::*;

    #[test]
    fn each_metric_has_a_description() {
        let watch = Watch::new();
        watch.packets.add(1, 7);
        watch.fragments_forgotten.set(1, 5);
        watch.messages.set(0, 6);
        watch.unread_payloads[Unread::Truncated as usize].set(0, 4);
        let shortage = Shortage { flows_ended_early: 3, ..Shortage::default() };
        let stats = RunStats {
            elapsed: Duration::from_millis(1500),
            alerts: 2,
            flows: None,
            totals: Totals {
                shortage,
                tcp: Some(TcpTotals { zero_windows: 9, ..Default::default() }),
                live_flows: 0,
            },
            outputs: Vec::new(),
        };
        let text = text(&watch, 2, &[], &stats);
        for wanted in [
            "# TYPE ringtap_packets_total counter\nringtap_packets_total{queue=\"0\"} 0\n",
            "ringtap_packets_total{queue=\"1\"} 7\n",
            "ringtap_run_seconds 1.500\n",
            "ringtap_alerts_total 2\n",
            "ringtap_forgotten_fragments_total 5\n",
            "ringtap_flows_ended_early_total 3\n",
            "ringtap_conversations_estimated 0\n",
            "ringtap_payload_messages_total 6\n",
            "ringtap_unread_payloads_total{reason=\"truncated\"} 4\n",
            "ringtap_tcp_zero_windows_total 9\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("\nringtap_flows "), "no flows before the first interval ends");
        assert!(!text.contains("interface"), "files have no interfaces: {text}");
    }

    #[test]
    fn metrics_of_interfaces_have_an_interface_label() {
        let watch = Watch::new();
        let stats = RunStats {
            elapsed: Duration::ZERO,
            alerts: 0,
            flows: None,
            totals: Totals::default(),
            outputs: Vec::new(),
        };
        let names = ["eth0", "a\"b\\"].map(label_value);
        let text = text(&watch, 2, &names, &stats);
        for wanted in [
            "ringtap_packets_total{interface=\"eth0\",queue=\"1\"} 0\n",
            "ringtap_packets_total{interface=\"a\\\"b\\\\\",queue=\"0\"} 0\n",
            "ringtap_bytes_total{interface=\"eth0\"} 0\n",
            "ringtap_dropped_packets_total{interface=\"eth0\"} 0\n",
            "ringtap_interface_gone{interface=\"eth0\"} 0\n",
            "ringtap_interface_up{interface=\"eth0\"} 1\n",
            "ringtap_interface_changes_total{interface=\"eth0\",change=\"mtu\"} 0\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("ringtap_packets_total{queue"), "{text}");
    }
}
