//! The list of metrics: a new one is a row here, and in the table of docs/LIVE.md.

use std::time::UNIX_EPOCH;

use ringtap_engine::LinkChange;
use ringtap_export::Status;
use ringtap_extract::Unread;
use ringtap_serve::label_value;

use super::numbers::{Metric, Numbers, Sample, one};

pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "build_info",
        kind: "gauge",
        help: "Version of the program.",
        samples: |_| vec![(format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), "1".into())],
    },
    Metric {
        name: "run_seconds",
        kind: "gauge",
        help: "Seconds since the start of the run.",
        samples: |own| vec![(String::new(), format!("{:.3}", own.stats.elapsed.as_secs_f64()))],
    },
    Metric {
        name: "packets_total",
        kind: "counter",
        help: "Packets read.",
        samples: |own| own.packets(),
    },
    Metric {
        name: "bytes_total",
        kind: "counter",
        help: "Bytes read: of files as stored, of frames as captured.",
        samples: |own| {
            own.of_sources(|place| own.watch.interfaces.bytes(place), own.watch.bytes.get())
        },
    },
    Metric {
        name: "dropped_packets_total",
        kind: "counter",
        help: "Packets lost before they could be read.",
        samples: |own| {
            own.of_sources(|place| own.watch.interfaces.dropped(place), own.watch.dropped.get())
        },
    },
    Metric {
        name: "interface_gone",
        kind: "gauge",
        help: "1 if the interface was deleted or moved to another network namespace.",
        samples: |own| own.of_interfaces(|place| own.watch.interfaces.is_gone(place).into()),
    },
    Metric {
        name: "interface_up",
        kind: "gauge",
        help: "1 if the interface is up and has a carrier.",
        samples: |own| own.of_interfaces(|place| own.watch.interfaces.is_up(place).into()),
    },
    Metric {
        name: "interface_changes_total",
        kind: "counter",
        help: "Changes of an interface: it went down or lost its carrier, or got another MTU or name.",
        samples: interface_changes,
    },
    Metric {
        name: "shed_packets_total",
        kind: "counter",
        help: "Packets dropped by shedding under overload.",
        samples: |own| one(own.watch.shed.get()),
    },
    Metric {
        name: "split_packets_total",
        kind: "counter",
        help: "Packets in another queue than earlier ones of the same address pair.",
        samples: |own| one(own.watch.split.get()),
    },
    Metric {
        name: "forgotten_fragments_total",
        kind: "counter",
        help: "First fragments evicted for lack of memory; their later fragments may lack ports.",
        samples: |own| one(own.watch.fragments_forgotten.get()),
    },
    Metric {
        name: "duplicate_packets_total",
        kind: "counter",
        help: "Packets left out because they were seen before.",
        samples: |own| one(own.watch.duplicates.get()),
    },
    Metric {
        name: "evicted_packets_total",
        kind: "counter",
        help: "Packets whose duplicates may count, for lack of memory.",
        samples: |own| one(own.watch.duplicates_evicted.get()),
    },
    Metric {
        name: "payload_messages_total",
        kind: "counter",
        help: "Messages read from payloads.",
        samples: |own| one(own.watch.messages.get()),
    },
    Metric {
        name: "unread_payloads_total",
        kind: "counter",
        help: "Payloads and messages that could not be read.",
        samples: unread_payloads,
    },
    Metric {
        name: "tcp_handshakes_total",
        kind: "counter",
        help: "Complete TCP handshakes.",
        samples: |own| own.of_tcp(|tcp| tcp.handshakes),
    },
    Metric {
        name: "tcp_handshake_microseconds_total",
        kind: "counter",
        help: "Sum of the round-trip times of TCP handshakes.",
        samples: |own| own.of_tcp(|tcp| tcp.handshake_rtt_sum_us),
    },
    Metric {
        name: "tcp_rtt_samples_total",
        kind: "counter",
        help: "Samples of TCP round-trip times.",
        samples: |own| own.of_tcp(|tcp| tcp.rtt_samples),
    },
    Metric {
        name: "tcp_rtt_microseconds_total",
        kind: "counter",
        help: "Sum of TCP round-trip times.",
        samples: |own| own.of_tcp(|tcp| tcp.rtt_sum_us),
    },
    Metric {
        name: "tcp_retransmissions_total",
        kind: "counter",
        help: "TCP segments sent again.",
        samples: |own| own.of_tcp(|tcp| tcp.retransmissions),
    },
    Metric {
        name: "tcp_out_of_order_total",
        kind: "counter",
        help: "TCP segments out of order.",
        samples: |own| own.of_tcp(|tcp| tcp.out_of_order),
    },
    Metric {
        name: "tcp_duplicate_acks_total",
        kind: "counter",
        help: "Duplicate TCP acknowledgments.",
        samples: |own| own.of_tcp(|tcp| tcp.duplicate_acks),
    },
    Metric {
        name: "tcp_zero_windows_total",
        kind: "counter",
        help: "TCP segments with a window of zero.",
        samples: |own| own.of_tcp(|tcp| tcp.zero_windows),
    },
    Metric {
        name: "flows_ended_early_total",
        kind: "counter",
        help: "Flows that were ended because the flow table was full.",
        samples: |own| one(own.stats.totals.shortage.flows_ended_early),
    },
    Metric {
        name: "scan_attempts_ignored_total",
        kind: "counter",
        help: "Connection attempts that the scan analysis ignored for lack of memory.",
        samples: |own| one(own.stats.totals.shortage.attempts_ignored),
    },
    Metric {
        name: "conversations_estimated",
        kind: "gauge",
        help: "1 if the numbers of conversations are estimates, for lack of memory.",
        samples: |own| one(own.stats.totals.shortage.conversations_estimated.into()),
    },
    Metric {
        name: "further_interval_packets_total",
        kind: "counter",
        help: "Packets of intervals for which the report has no room.",
        samples: |own| one(own.stats.totals.shortage.packets_in_further_intervals),
    },
    Metric {
        name: "alerts_total",
        kind: "counter",
        help: "Alerts of scans, limits and watched entries, each counted once.",
        samples: |own| one(own.stats.alerts),
    },
    Metric {
        name: "alerts_without_room_total",
        kind: "counter",
        help: "Alerts that were not reported for lack of room.",
        samples: |own| one(own.stats.totals.shortage.alerts_without_room),
    },
    Metric {
        name: "flows",
        kind: "gauge",
        help: "Live flows at the end of the last interval.",
        samples: |own| own.stats.flows.map_or_else(Vec::new, one),
    },
    Metric {
        name: "output_records_made_total",
        kind: "counter",
        help: "Flow records, events, states or alerts for an output, encoded or lost before encoding.",
        samples: |own| own.of_outputs(|output| output.made.to_string()),
    },
    Metric {
        name: "output_records_written_total",
        kind: "counter",
        help: "Those that an output accepted.",
        samples: |own| own.of_outputs(|output| output.sent.to_string()),
    },
    Metric {
        name: "output_records_lost_total",
        kind: "counter",
        help: "Those that an output lost.",
        samples: records_lost,
    },
    Metric {
        name: "output_queued_bytes",
        kind: "gauge",
        help: "Encoded bytes that are not written yet.",
        samples: |own| own.of_outputs(|output| output.queued_bytes.to_string()),
    },
    Metric {
        name: "output_failing",
        kind: "gauge",
        help: "1 if the last attempt to write failed.",
        samples: |own| own.of_outputs(|output| u8::from(output.failing).to_string()),
    },
    Metric {
        name: "output_last_error_timestamp_seconds",
        kind: "gauge",
        help: "Time of the last failure of an output, seconds since 1970; 0: never.",
        samples: |own| own.of_outputs(last_error),
    },
];

fn interface_changes(own: &Numbers<'_>) -> Vec<Sample> {
    let of_interface = |(place, name): (usize, &String)| {
        LinkChange::ALL.map(|change| {
            let labels = format!("{{interface=\"{name}\",change=\"{}\"}}", change.name());
            (labels, own.watch.interfaces.changes(place, change).to_string())
        })
    };
    own.interfaces.iter().enumerate().flat_map(of_interface).collect()
}

fn unread_payloads(own: &Numbers<'_>) -> Vec<Sample> {
    let reasons = Unread::ALL.iter().zip(&own.watch.unread_payloads);
    reasons
        .map(|(why, gauge)| (format!("{{reason=\"{}\"}}", why.name()), gauge.get().to_string()))
        .collect()
}

fn records_lost(own: &Numbers<'_>) -> Vec<Sample> {
    let of_output = |output: &Status| {
        let name = label_value(&output.name);
        output.lost.map(|(reason, lost)| {
            (format!("{{output=\"{name}\",reason=\"{}\"}}", reason.name()), lost.to_string())
        })
    };
    own.stats.outputs.iter().flat_map(of_output).collect()
}

fn last_error(output: &Status) -> String {
    let since = output.last_error.as_ref().and_then(|(_, at)| at.duration_since(UNIX_EPOCH).ok());
    format!("{:.3}", since.unwrap_or_default().as_secs_f64())
}
