//! `ringtap-ndn forward --metrics`: the counters of a forwarder in the OpenMetrics text format.
//!
//! The forwarding thread publishes a report once a second; requests are answered from the latest.
//!
//! Invariant: at most [`FACES_MAX`] faces have own samples. The rest is in those of `face="other"`:
//! further faces, closed ones, and frames without a face. So the samples of a counter by face add up
//! to the total.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use ringtap_ndn::faces::{Counters, Lost};
use ringtap_ndn::forwarder::{Drop, FaceUse};
use ringtap_ndn::packets::NackReason;
use ringtap_ndn::relay::{FaceReport, ForwardReport, RefusedCommand};

use ringtap_serve::{Get, Reply, Site, label_value};

/// The type of the format.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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

    fn get(&self) -> Option<ForwardReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The site of the metrics.
pub(super) struct Metrics(Latest);

impl Metrics {
    pub(super) fn new(latest: Latest) -> Self {
        Self(latest)
    }
}

impl Site for Metrics {
    fn get(&mut self, request: &Get<'_>) -> Reply {
        if request.path != "/metrics" {
            return Reply::missing("the metrics are at /metrics");
        }
        match self.0.get() {
            Some(report) => Reply::Resource { kind: KIND, body: text(&report).into_bytes() },
            None => {
                Reply::None("503 Service Unavailable", "no report in the first second\n".into())
            }
        }
    }
}

/// All metrics.
fn text(report: &ForwardReport) -> String {
    let mut page = Page(String::new());
    let (links, forwarder) = (&report.links, &report.forwarder);
    page.gauge("run_seconds", "Seconds since the start.", report.seconds);
    page.family("packets", "counter", "Packets received and to be sent.");
    by_packet(&mut page, "packets_total", "", links);
    page.family("frames", "counter", "Frames received and to be sent.");
    page.pair("frames_total", "", [links.frames_in, links.frames_out]);
    page.family("bytes", "counter", "Bytes of frames received and to be sent.");
    page.pair("bytes_total", "", [links.octets_in, links.octets_out]);
    page.family("nacks", "counter", "Nacks by reason.");
    by_nack(&mut page, "nacks_total", "", links, true);
    page.family("dropped_packets", "counter", "Packets that the forwarder dropped.");
    for reason in Drop::ALL {
        let label = format!("reason=\"{}\"", reason.name());
        page.sample("dropped_packets_total", &label, forwarder.dropped(reason));
    }
    page.sample("dropped_packets_total", "reason=\"worker-full\"", report.worker_full);
    page.family("lost_frames", "counter", "Frames lost on faces.");
    by_loss(&mut page, "lost_frames_total", "", links, true);
    let lost = "Datagrams that the kernel dropped before they could be read.";
    page.counter("kernel_dropped_datagrams", lost, report.kernel_drops);
    let incomplete = "Packets dropped because fragments were missing.";
    page.counter("incomplete_packets", incomplete, report.incomplete);
    page.counter(
        "interests_satisfied",
        "Pending Interests that were satisfied.",
        forwarder.satisfied,
    );
    let unsatisfied = "Pending Interests that expired or were refused.";
    page.counter("interests_unsatisfied", unsatisfied, forwarder.unsatisfied);
    page.gauge("pit_entries", "Pending Interests.", report.pending);
    page.gauge("pit_capacity", "Maximum number of pending Interests.", report.pending_max[0]);
    let most = "Maximum number of pending Interests of one face.";
    page.gauge("pit_capacity_per_face", most, report.pending_max[1]);
    page.gauge("content_store_entries", "Stored Data.", report.kept);
    let bytes = "Bytes of stored Data and what they need in the tables.";
    page.gauge("content_store_bytes", bytes, report.kept_bytes);
    let most = "Size of the content store in bytes.";
    page.gauge("content_store_capacity_bytes", most, report.kept_bytes_max);
    let hits = "Interests answered from the content store.";
    page.counter("content_store_hits", hits, forwarder.cs_hits);
    let misses = "Interests without a match in the content store.";
    page.counter("content_store_misses", misses, forwarder.cs_misses);
    let evicted = "Data evicted from the content store.";
    page.counter("content_store_evicted", evicted, forwarder.cs_evicted);
    let evicted = "Nonces evicted before their time.";
    page.counter("dead_nonces_evicted", evicted, forwarder.nonces_evicted);
    page.family("refused_commands", "counter", "Refused management commands by reason.");
    for reason in RefusedCommand::ALL {
        let label = format!("reason=\"{}\"", reason.name());
        page.sample("refused_commands_total", &label, report.refused_for(reason));
    }
    page.gauge("routes", "Routes.", report.routes);
    page.gauge("faces", "Faces.", report.faces.len());
    page.gauge("faces_on_demand", "Faces created on demand.", report.on_demand[0]);
    let most = "Maximum number of faces created on demand.";
    page.gauge("faces_on_demand_capacity", most, report.on_demand[1]);
    page.counter("faces_evicted", "Faces evicted to make room.", report.evicted);
    by_face(&mut page, &rows(report));
    page.0 += "# EOF\n";
    page.0
}

/// The samples of a face, or of all others.
struct Row {
    /// The labels, with a comma at the end.
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
                "face=\"{}\",remote=\"{remote}\",kind=\"{}\",",
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
    let labels = "face=\"other\",remote=\"\",kind=\"other\",".into();
    rows.push(Row { labels, counters, usage, share });
    rows
}

fn by_face(page: &mut Page, rows: &[Row]) {
    page.family("face_packets", "counter", "Packets received and to be sent, by face.");
    for row in rows {
        by_packet(page, "face_packets_total", &row.labels, &row.counters);
    }
    page.family("face_frames", "counter", "Frames received and to be sent, by face.");
    for Row { labels, counters, .. } in rows {
        page.pair("face_frames_total", labels, [counters.frames_in, counters.frames_out]);
    }
    page.family("face_bytes", "counter", "Bytes of frames received and to be sent, by face.");
    for Row { labels, counters, .. } in rows {
        page.pair("face_bytes_total", labels, [counters.octets_in, counters.octets_out]);
    }
    page.family(
        "face_nacks",
        "counter",
        "Nacks by face and reason; reasons without one are left out.",
    );
    for row in rows {
        by_nack(page, "face_nacks_total", &row.labels, &row.counters, false);
    }
    page.family(
        "face_lost_frames",
        "counter",
        "Frames lost, by face and reason; reasons without one are left out.",
    );
    for row in rows {
        by_loss(page, "face_lost_frames_total", &row.labels, &row.counters, false);
    }
    page.family("face_exchanges", "counter", "Interests of a face that a received Data satisfied.");
    for Row { labels, usage, .. } in rows {
        page.sample("face_exchanges_total", labels, usage.exchanges);
    }
    let hits = "Interests of a face that the content store answered.";
    page.family("face_content_store_hits", "counter", hits);
    for Row { labels, usage, .. } in rows {
        page.sample("face_content_store_hits_total", labels, usage.cs_hits);
    }
    page.family("face_pending_interests", "gauge", "Pending Interests of a face.");
    for Row { labels, usage, .. } in rows {
        page.sample("face_pending_interests", labels, usage.pending);
    }
    let share =
        "Pending Interests of a face as a part of its limit; for others, that of the busiest.";
    page.family("face_pit_share_ratio", "gauge", share);
    for Row { labels, share, .. } in rows {
        page.sample("face_pit_share_ratio", labels, share);
    }
}

fn by_packet(page: &mut Page, name: &str, labels: &str, counters: &Counters) {
    for (packet, both) in [
        ("interest", [counters.interests_in, counters.interests_out]),
        ("data", [counters.data_in, counters.data_out]),
        ("nack", [counters.nacks_in, counters.nacks_out]),
    ] {
        page.pair(name, &format!("{labels}packet=\"{packet}\","), both);
    }
}

fn by_nack(page: &mut Page, name: &str, labels: &str, counters: &Counters, with_zeros: bool) {
    for reason in NackReason::ALL {
        let both = [counters.nacks_in_for(reason), counters.nacks_out_for(reason)];
        if with_zeros || both != [0; 2] {
            page.pair(name, &format!("{labels}reason=\"{}\",", reason.name()), both);
        }
    }
}

fn by_loss(page: &mut Page, name: &str, labels: &str, counters: &Counters, with_zeros: bool) {
    for reason in Lost::ALL {
        let lost = counters.lost(reason);
        if with_zeros || lost > 0 {
            page.sample(name, &format!("{labels}reason=\"{}\"", reason.name()), lost);
        }
    }
}

/// A text in the OpenMetrics format. Writing to a String cannot fail.
struct Page(String);

impl Page {
    /// Begins a family of samples.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = format!("ringtap_forward_{name}");
        let _ = write!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}\n");
    }

    /// Writes a sample. A comma at the end of the labels is left out.
    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let labels = labels.trim_end_matches(',');
        let _ = match labels {
            "" => writeln!(self.0, "ringtap_forward_{name} {value}"),
            labels => writeln!(self.0, "ringtap_forward_{name}{{{labels}}} {value}"),
        };
    }

    /// Writes the samples of received and sent ones.
    fn pair(&mut self, name: &str, labels: &str, [received, sent]: [u64; 2]) {
        self.sample(name, &format!("{labels}direction=\"in\""), received);
        self.sample(name, &format!("{labels}direction=\"out\""), sent);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(&format!("{name}_total"), "", value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, "gauge", help);
        self.sample(name, "", value);
    }
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
        let page = text(&report);
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
