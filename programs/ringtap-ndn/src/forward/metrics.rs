//! `ringtap-ndn forward --metrics`: the counters of a forwarder in the OpenMetrics text format.
//!
//! The forwarding thread publishes a report once a second; requests are answered from the latest.
//!
//! Invariant: at most [`FACES_MAX`] faces have own samples. The rest is in those of `face="other"`:
//! further faces, closed ones, and frames without a face. So the samples of a counter by face add up
//! to the total.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};

use ringtap_ndn::faces::{Counters, Lost};
use ringtap_ndn::forwarder::{Drop, FaceUse};
use ringtap_ndn::packets::NackReason;
use ringtap_ndn::relay::{FaceReport, ForwardReport, RefusedCommand};

use ringtap_serve::{Exposition, Format, Metric, Reply, Sample, label_value, metric, one, sample};

/// Maximum number of faces with own samples: those with the most bytes.
const FACES_MAX: usize = 256;

/// The latest report, if there is one.
#[derive(Clone, Default)]
pub(super) struct Latest(Arc<Mutex<Option<ForwardReport>>>);

impl Latest {
    /// Publishes a report.
    pub(super) fn set(&self, report: ForwardReport) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    /// The metrics of the latest report.
    pub(super) fn reply(&self) -> Reply {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(report) => page(report).reply(),
            None => {
                Reply::None("503 Service Unavailable", "no report in the first second\n".into())
            }
        }
    }
}

/// The metrics of a report.
fn page(report: &ForwardReport) -> Exposition {
    let faces = rows(report);
    let mut page = Exposition::new(Format::OpenMetrics, "ringtap_forward_");
    for Metric { name, help, samples } in METRICS {
        page.add(name, help, &samples(report, &faces));
    }
    page
}

/// The samples of a report, and of its faces.
type Samples = fn(&ForwardReport, &[Row]) -> Vec<Sample>;

/// All metrics; README.md has them.
const METRICS: &[Metric<Samples>] = &[
    metric("run_seconds", "Seconds since the start.", |own, _| one(own.seconds)),
    metric("packets_total", "Packets received and to be sent.", |own, _| by_packet("", &own.links)),
    metric("frames_total", "Frames received and to be sent.", |own, _| {
        pair("", [own.links.frames_in, own.links.frames_out])
    }),
    metric("bytes_total", "Bytes of frames received and to be sent.", |own, _| {
        pair("", [own.links.octets_in, own.links.octets_out])
    }),
    metric("nacks_total", "Nacks by reason.", |own, _| by_nack("", &own.links, true)),
    metric("dropped_packets_total", "Packets that the forwarder dropped.", |own, _| {
        let dropped = |reason: Drop| (reason.name(), own.forwarder.dropped(reason));
        let all = Drop::ALL.map(dropped).into_iter();
        by_reason("", all.chain([("worker-full", own.worker_full)]))
    }),
    metric("lost_frames_total", "Frames lost on faces.", |own, _| by_loss("", &own.links, true)),
    metric(
        "kernel_dropped_datagrams_total",
        "Datagrams that the kernel dropped before they could be read.",
        |own, _| one(own.kernel_drops),
    ),
    metric(
        "incomplete_packets_total",
        "Packets dropped because fragments were missing.",
        |own, _| one(own.incomplete),
    ),
    metric("interests_satisfied_total", "Pending Interests that were satisfied.", |own, _| {
        one(own.forwarder.satisfied)
    }),
    metric(
        "interests_unsatisfied_total",
        "Pending Interests that expired or were refused.",
        |own, _| one(own.forwarder.unsatisfied),
    ),
    metric("pit_entries", "Pending Interests.", |own, _| one(own.pending)),
    metric(
        "pit_capacity",
        "Maximum number of pending Interests.",
        |own, _| one(own.pending_max[0]),
    ),
    metric(
        "pit_capacity_per_face",
        "Maximum number of pending Interests of one face.",
        |own, _| one(own.pending_max[1]),
    ),
    metric("content_store_entries", "Stored Data.", |own, _| one(own.kept)),
    metric(
        "content_store_bytes",
        "Bytes of stored Data and what they need in the tables.",
        |own, _| one(own.kept_bytes),
    ),
    metric("content_store_capacity_bytes", "Size of the content store in bytes.", |own, _| {
        one(own.kept_bytes_max)
    }),
    metric("content_store_hits_total", "Interests answered from the content store.", |own, _| {
        one(own.forwarder.cs_hits)
    }),
    metric(
        "content_store_misses_total",
        "Interests without a match in the content store.",
        |own, _| one(own.forwarder.cs_misses),
    ),
    metric("content_store_evicted_total", "Data evicted from the content store.", |own, _| {
        one(own.forwarder.cs_evicted)
    }),
    metric("dead_nonces_evicted_total", "Nonces evicted before their time.", |own, _| {
        one(own.forwarder.nonces_evicted)
    }),
    metric("refused_commands_total", "Refused management commands by reason.", |own, _| {
        let refused = |reason: RefusedCommand| (reason.name(), own.refused_for(reason));
        by_reason("", RefusedCommand::ALL.into_iter().map(refused))
    }),
    metric("routes", "Routes.", |own, _| one(own.routes)),
    metric("faces", "Faces.", |own, _| one(own.faces.len())),
    metric("faces_on_demand", "Faces created on demand.", |own, _| one(own.on_demand[0])),
    metric("faces_on_demand_capacity", "Maximum number of faces created on demand.", |own, _| {
        one(own.on_demand[1])
    }),
    metric("faces_evicted_total", "Faces evicted to make room.", |own, _| one(own.evicted)),
    metric("face_packets_total", "Packets received and to be sent, by face.", |_, faces| {
        by_face(faces, |row| by_packet(&row.labels, &row.counters))
    }),
    metric("face_frames_total", "Frames received and to be sent, by face.", |_, faces| {
        by_face(faces, |row| pair(&row.labels, [row.counters.frames_in, row.counters.frames_out]))
    }),
    metric("face_bytes_total", "Bytes of frames received and to be sent, by face.", |_, faces| {
        by_face(faces, |row| pair(&row.labels, [row.counters.octets_in, row.counters.octets_out]))
    }),
    metric(
        "face_nacks_total",
        "Nacks by face and reason; reasons without one are left out.",
        |_, faces| by_face(faces, |row| by_nack(&row.labels, &row.counters, false)),
    ),
    metric(
        "face_lost_frames_total",
        "Frames lost, by face and reason; reasons without one are left out.",
        |_, faces| by_face(faces, |row| by_loss(&row.labels, &row.counters, false)),
    ),
    metric(
        "face_exchanges_total",
        "Interests of a face that a received Data satisfied.",
        |_, faces| by_face(faces, |row| [sample(&row.labels, row.usage.exchanges)]),
    ),
    metric(
        "face_content_store_hits_total",
        "Interests of a face that the content store answered.",
        |_, faces| by_face(faces, |row| [sample(&row.labels, row.usage.cs_hits)]),
    ),
    metric("face_pending_interests", "Pending Interests of a face.", |_, faces| {
        by_face(faces, |row| [sample(&row.labels, row.usage.pending)])
    }),
    metric(
        "face_pit_share_ratio",
        "Pending Interests of a face as a part of its limit; for others, that of the busiest.",
        |_, faces| by_face(faces, |row| [sample(&row.labels, row.share)]),
    ),
];

/// The samples of a face, or of all others.
struct Row {
    labels: String,
    counters: Counters,
    usage: FaceUse,
    share: f64,
}

/// The faces with the most bytes by number, then the others.
fn rows(report: &ForwardReport) -> Vec<Row> {
    let mut faces: Vec<&FaceReport> = report.faces.iter().collect();
    if faces.len() > FACES_MAX {
        faces.sort_by_key(|face| Reverse(face.counters.octets_in + face.counters.octets_out));
    }
    let (shown, others) = faces.split_at(faces.len().min(FACES_MAX));
    let mut counters = report.links;
    let forwarder = &report.forwarder;
    let mut usage = FaceUse {
        exchanges: forwarder.exchanges,
        cs_hits: forwarder.cs_hits,
        pending: others.iter().map(|face| face.usage.pending).sum(),
    };
    let row = |face: &&FaceReport| {
        counters.subtract(&face.counters);
        usage.exchanges = usage.exchanges.saturating_sub(face.usage.exchanges);
        usage.cs_hits = usage.cs_hits.saturating_sub(face.usage.cs_hits);
        let remote = label_value(&face.remote);
        Row {
            labels: format!(
                "face=\"{}\",remote=\"{remote}\",kind=\"{}\"",
                face.face,
                label_value(face.kind())
            ),
            counters: face.counters,
            usage: face.usage,
            share: report.share(face),
        }
    };
    let mut rows: Vec<Row> = shown.iter().map(row).collect();
    let share = others.iter().map(|face| report.share(face)).fold(0.0, f64::max);
    let labels = "face=\"other\",remote=\"\",kind=\"other\"".into();
    rows.push(Row { labels, counters, usage, share });
    rows
}

/// The samples of all rows.
fn by_face<S: IntoIterator<Item = Sample>>(rows: &[Row], of: impl Fn(&Row) -> S) -> Vec<Sample> {
    rows.iter().flat_map(of).collect()
}

/// The labels with one more.
fn with(labels: &str, name: &str, value: &str) -> String {
    let comma = if labels.is_empty() { "" } else { "," };
    format!("{labels}{comma}{name}=\"{value}\"")
}

/// The samples of received and sent ones.
fn pair(labels: &str, [received, sent]: [u64; 2]) -> Vec<Sample> {
    let of = |direction, number| sample(with(labels, "direction", direction), number);
    vec![of("in", received), of("out", sent)]
}

fn by_packet(labels: &str, counters: &Counters) -> Vec<Sample> {
    let packets = [
        ("interest", [counters.interests_in, counters.interests_out]),
        ("data", [counters.data_in, counters.data_out]),
        ("nack", [counters.nacks_in, counters.nacks_out]),
    ];
    packets.iter().flat_map(|(name, both)| pair(&with(labels, "packet", name), *both)).collect()
}

fn by_nack(labels: &str, counters: &Counters, with_zeros: bool) -> Vec<Sample> {
    let of = |reason: NackReason| {
        (reason.name(), [counters.nacks_in_for(reason), counters.nacks_out_for(reason)])
    };
    let all = NackReason::ALL.into_iter().map(of);
    let shown = all.filter(|(_, both)| with_zeros || *both != [0; 2]);
    shown.flat_map(|(name, both)| pair(&with(labels, "reason", name), both)).collect()
}

fn by_loss(labels: &str, counters: &Counters, with_zeros: bool) -> Vec<Sample> {
    let all = Lost::ALL.into_iter().map(|reason| (reason.name(), counters.lost(reason)));
    by_reason(labels, all.filter(|(_, lost)| with_zeros || *lost > 0))
}

fn by_reason(labels: &str, numbers: impl Iterator<Item = (&'static str, u64)>) -> Vec<Sample> {
    numbers.map(|(name, number)| sample(with(labels, "reason", name), number)).collect()
}

#[cfg(test)]
mod tests {
    use ringtap_ndn::relay::{ForwardPlan, Relay};

    use super::*;

    #[test]
    fn losses_and_refusals_have_a_sample_for_each_reason() {
        let relay = Relay::open(ForwardPlan::default(), None, "test").unwrap();
        let mut report = relay.run(|| true, |_| ()).unwrap();
        report.worker_full = 7;
        let page = page(&report).text();
        for sample in [
            "dropped_packets_total{reason=\"worker-full\"} 7",
            "dropped_packets_total{reason=\"pit-full\"} 0",
            "refused_commands_total{reason=\"unsigned\"} 0",
            "refused_commands_total{reason=\"origin\"} 0",
        ] {
            assert!(page.contains(&format!("\nringtap_forward_{sample}\n")), "{sample}: {page}");
        }
    }
}
