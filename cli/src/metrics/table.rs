//! The list of metrics: a new one is a row here, or of the table of losses, and in the table of docs/LIVE.md.

use std::time::UNIX_EPOCH;

use ringtap_engine::LinkChange;
use ringtap_export::Status;
use ringtap_extract::Unread;
use ringtap_monitor::{LOSSES, Loss, SoFar};
use ringtap_serve::{Metric, Sample, label_value, metric, one, sample};

use super::numbers::{Numbers, Samples};

pub(super) const METRICS: &[Metric<Samples>] = &[
    metric("build_info", "Version of the program.", |_| {
        vec![sample(concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""), 1)]
    }),
    metric("run_seconds", "Seconds since the start of the run.", |own| {
        one(format!("{:.3}", own.stats.elapsed.as_secs_f64()))
    }),
    metric("packets_total", "Packets read.", |own| own.packets()),
    metric("bytes_total", "Bytes read: of files as stored, of frames as captured.", |own| {
        own.of_sources(|place| own.watch.interfaces.bytes(place), own.watch.bytes.get())
    }),
    metric("dropped_packets_total", "Packets lost before they could be read.", |own| {
        own.of_sources(|place| own.watch.interfaces.dropped(place), own.watch.dropped.get())
    }),
    metric(
        "interface_gone",
        "1 if the interface was deleted or moved to another network namespace.",
        |own| own.of_interfaces(|place| own.watch.interfaces.is_gone(place).into()),
    ),
    metric("interface_up", "1 if the interface is up and has a carrier.", |own| {
        own.of_interfaces(|place| own.watch.interfaces.is_up(place).into())
    }),
    metric(
        "interface_changes_total",
        "Changes of an interface: it went down or lost its carrier, or got another MTU or name.",
        interface_changes,
    ),
    metric("shed_packets_total", "Packets dropped by shedding under overload.", |own| {
        one(own.watch.shed.get())
    }),
    metric("duplicate_packets_total", "Packets left out because they were seen before.", |own| {
        one(own.watch.duplicates.get())
    }),
    metric("payload_messages_total", "Messages read from payloads.", |own| {
        one(own.watch.messages.get())
    }),
    metric(
        "unread_payloads_total",
        "Payloads and messages that could not be read.",
        unread_payloads,
    ),
    metric("tcp_handshakes_total", "Complete TCP handshakes.", |own| {
        own.of_tcp(|tcp| tcp.handshakes)
    }),
    metric(
        "tcp_handshake_microseconds_total",
        "Sum of the round-trip times of TCP handshakes.",
        |own| own.of_tcp(|tcp| tcp.handshake_rtt_sum_us),
    ),
    metric("tcp_rtt_samples_total", "Samples of TCP round-trip times.", |own| {
        own.of_tcp(|tcp| tcp.rtt_samples)
    }),
    metric("tcp_rtt_microseconds_total", "Sum of TCP round-trip times.", |own| {
        own.of_tcp(|tcp| tcp.rtt_sum_us)
    }),
    metric("tcp_retransmissions_total", "TCP segments sent again.", |own| {
        own.of_tcp(|tcp| tcp.retransmissions)
    }),
    metric("tcp_out_of_order_total", "TCP segments out of order.", |own| {
        own.of_tcp(|tcp| tcp.out_of_order)
    }),
    metric("tcp_duplicate_acks_total", "Duplicate TCP acknowledgments.", |own| {
        own.of_tcp(|tcp| tcp.duplicate_acks)
    }),
    metric("tcp_zero_windows_total", "TCP segments with a window of zero.", |own| {
        own.of_tcp(|tcp| tcp.zero_windows)
    }),
    metric("responses_total", "Responses with a time, of each exchange.", |own| {
        own.of_exchanges(|responses| responses.count)
    }),
    metric("response_microseconds_total", "Sum of response times, microseconds.", |own| {
        own.of_exchanges(|responses| responses.sum_us)
    }),
    metric("alerts_total", "Alerts of all kinds, each counted once.", |own| one(own.stats.alerts)),
    metric("alerts_suppressed_total", "Alerts that rules of --allow suppressed.", |own| {
        one(own.stats.totals.alerts_suppressed)
    }),
    metric("flows", "Live flows at the end of the last interval.", |own| {
        own.stats.flows.map_or_else(Vec::new, one)
    }),
    metric(
        "output_records_made_total",
        "Flow records, events, states or alerts for an output, encoded or lost before encoding.",
        |own| own.of_outputs(|output| output.made),
    ),
    metric("output_records_written_total", "Those that an output accepted.", |own| {
        own.of_outputs(|output| output.sent)
    }),
    metric("output_records_lost_total", "Those that an output lost.", records_lost),
    metric("output_queued_bytes", "Encoded bytes that are not written yet.", |own| {
        own.of_outputs(|output| output.queued_bytes)
    }),
    metric("output_files_removed_total", "Old files that an output removed.", |own| {
        own.of_outputs(|output| output.files_removed)
    }),
    metric("output_free_bytes", "Free bytes of the file system of an output.", |own| {
        own.of_spaces(|space| space.free)
    }),
    metric("output_free_ratio", "Share of that file system that is free.", |own| {
        own.of_spaces(|space| format!("{:.4}", space.free as f64 / space.total.max(1) as f64))
    }),
    metric(
        "output_space_low",
        "1 if less than --keep-free is free there and no old file is left to remove; without the flag: less than 5 % and 10 GB.",
        |own| own.of_spaces(|space| u8::from(space.is_low)),
    ),
    metric("output_failing", "1 if the last attempt to write failed.", |own| {
        own.of_outputs(|output| u8::from(output.failing))
    }),
    metric(
        "output_last_error_timestamp_seconds",
        "Time of the last failure of an output, seconds since 1970; 0: never.",
        |own| own.of_outputs(last_error),
    ),
];

/// The losses with a metric that is not above, and their numbers during the run.
pub(super) fn losses() -> impl Iterator<Item = (&'static Loss, SoFar)> {
    let is_new = |loss: &&Loss| METRICS.iter().all(|metric| metric.name != loss.metric);
    LOSSES.iter().filter(is_new).filter_map(|loss| Some((loss, loss.so_far?)))
}

fn interface_changes(own: &Numbers<'_>) -> Vec<Sample> {
    let of_interface = |(place, name): (usize, &String)| {
        LinkChange::ALL.map(|change| {
            let labels = format!("interface=\"{name}\",change=\"{}\"", change.name());
            sample(labels, own.watch.interfaces.changes(place, change))
        })
    };
    own.interfaces.iter().enumerate().flat_map(of_interface).collect()
}

fn unread_payloads(own: &Numbers<'_>) -> Vec<Sample> {
    let reasons = Unread::ALL.iter().zip(&own.watch.unread_payloads);
    reasons.map(|(why, gauge)| sample(format!("reason=\"{}\"", why.name()), gauge.get())).collect()
}

fn records_lost(own: &Numbers<'_>) -> Vec<Sample> {
    let of_output = |output: &Status| {
        let name = label_value(&output.name);
        output.lost.map(|(reason, lost)| {
            sample(format!("output=\"{name}\",reason=\"{}\"", reason.name()), lost)
        })
    };
    own.stats.outputs.iter().flat_map(of_output).collect()
}

fn last_error(output: &Status) -> String {
    let since = output.last_error.as_ref().and_then(|(_, at)| at.duration_since(UNIX_EPOCH).ok());
    format!("{:.3}", since.unwrap_or_default().as_secs_f64())
}
