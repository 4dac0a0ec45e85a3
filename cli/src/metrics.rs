//! `--metrics`: serves the counters of a run over HTTP, in Prometheus' text format.
//!
//! ```text
//! clients ──▶ Server, in its own thread ──▶ Http: request → answer ──▶ Watch, Console ──▶ text
//! ```
//!
//! Invariant: no client delays the run, the attendant thread or another client (see
//! [`crate::server`]).

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::Watch;
use ringtap_export::Status;
use ringtap_extract::Unread;
use ringtap_monitor::{Shortage, Totals};

use crate::server::{After, Limits, Next, Protocol, Refusal, Server};

/// Limits of clients. The idle time exceeds the usual scrape interval of a minute.
const LIMITS: Limits = Limits {
    connections: 256,
    request: Duration::from_secs(5),
    response: Duration::from_secs(10),
    idle: Duration::from_secs(75),
    bytes_per_second: 1 << 20,
    buffered_bytes: 16 << 20,
};

/// The longest request, in bytes.
const REQUEST: usize = 8 << 10;

/// The most header fields of a request.
const HEADERS: usize = 64;

/// Longest time between two wake-ups of the server.
const WAIT: Duration = Duration::from_secs(60);

/// The listening socket of `--metrics`.
pub(crate) struct Metrics {
    listener: TcpListener,
}

/// The serving thread; stops when dropped.
pub(crate) struct Serving {
    /// Closing it wakes the thread, which then ends.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
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
    /// Listens at `address`.
    pub(crate) fn listen(address: SocketAddr) -> anyhow::Result<Self> {
        let context = || format!("--metrics {address}");
        let listener = TcpListener::bind(address).with_context(context)?;
        listener.set_nonblocking(true).with_context(context)?;
        Ok(Self { listener })
    }

    /// The local address of the socket.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Starts a thread that answers each request with the current values of a run. `queues` is the
    /// run's number of queues. `interfaces` is empty for files. `stats` returns the values that
    /// `watch` does not hold.
    pub(crate) fn serve(
        self,
        watch: &'static Watch,
        queues: usize,
        interfaces: &[String],
        stats: impl Fn() -> RunStats + Send + 'static,
    ) -> anyhow::Result<Serving> {
        let (wake, woken) = UnixStream::pair()?;
        let interfaces: Vec<_> = interfaces.iter().map(|name| label_value(name)).collect();
        let serve = move || {
            let mut server = Server::new(self.listener, LIMITS);
            let mut http = Http(|| text(watch, queues, &interfaces, &stats()));
            while !server.turn(WAIT, Some(woken.as_fd()), &mut http) {}
        };
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(serve)?;
        Ok(Serving { wake: Some(wake), thread: Some(thread) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed; only the metrics ended early.
            let _ = thread.join();
        }
    }
}

/// The subset of HTTP/1.0 and 1.1 that serving one page needs. The function returns the page.
struct Http<F>(F);

impl<F: Fn() -> String> Protocol for Http<F> {
    fn read(&mut self, received: &mut Vec<u8>, _: bool) -> Next {
        let Some(request) = request(received) else { return Next::More };
        let after = if request.keep_open { After::KeepOpen } else { After::Close };
        let body = match request.resource {
            Resource::Metrics => self.0(),
            Resource::Other("404 Not Found") => "the metrics are at /metrics\n".into(),
            Resource::Other(status) => format!("{status}\n"),
        };
        let status = match request.resource {
            Resource::Metrics => "200 OK",
            Resource::Other(status) => status,
        };
        received.drain(..request.length);
        Next::Answer(response(status, &body, request.head, after), after)
    }

    fn refuse(&mut self, refusal: Refusal) -> Vec<u8> {
        let status = match refusal {
            Refusal::Late => "408 Request Timeout",
            Refusal::Full => "503 Service Unavailable",
        };
        response(status, &format!("{status}\n"), false, After::Close)
    }
}

fn response(status: &str, body: &str, head: bool, after: After) -> Vec<u8> {
    let connection = match after {
        After::KeepOpen => "keep-alive",
        After::Close => "close",
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\n{allow}Connection: {connection}\r\n\r\n",
        body.len()
    );
    if !head {
        response.push_str(body);
    }
    response.into_bytes()
}

/// A complete or invalid request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    resource: Resource,
    /// A HEAD request.
    head: bool,
    /// The connection stays open.
    keep_open: bool,
    /// Length of the request in bytes.
    length: usize,
}

/// The requested resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    Metrics,
    /// Any other request; the status of the response.
    Other(&'static str),
}

/// The first request of these bytes; `None` if it is not complete.
fn request(received: &[u8]) -> Option<Request> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let wrong = |status| {
        let resource = Resource::Other(status);
        Some(Request { resource, head: false, keep_open: false, length: received.len() })
    };
    let length = match request.parse(received) {
        Ok(httparse::Status::Complete(length)) if length <= REQUEST => length,
        Ok(httparse::Status::Partial) if received.len() <= REQUEST => return None,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return wrong("431 Request Header Fields Too Large");
        }
        Err(_) => return wrong("400 Bad Request"),
    };
    let path = request.path.unwrap_or_default();
    let resource = match (request.method, path.split('?').next()) {
        (Some("GET" | "HEAD"), Some("/metrics")) => Resource::Metrics,
        (Some("GET" | "HEAD"), _) => Resource::Other("404 Not Found"),
        _ => Resource::Other("405 Method Not Allowed"),
    };
    let has = |name: &str, what: &dyn Fn(&str) -> bool| {
        let named = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| String::from_utf8_lossy(field.value)).any(|value| what(value.trim()))
    };
    // A body is not read, so the start of the next request is unknown.
    let has_body =
        has("content-length", &|value| value != "0") || has("transfer-encoding", &|_| true);
    let is_last = has("connection", &|value| {
        value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"))
    });
    let keep_open = request.version == Some(1) && !has_body && !is_last;
    Some(Request { resource, head: request.method == Some("HEAD"), keep_open, length })
}

/// Escapes backslash, quote and line feed in a label's value.
fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
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
    fn a_request_is_read_when_it_is_complete() {
        let resource = |bytes: &str| request(bytes.as_bytes()).map(|request| request.resource);
        for partial in ["", "GET /metrics HTTP/1.1\r\nHost: a\r\n"] {
            assert_eq!(resource(partial), None, "{partial:?}");
        }
        for (bytes, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Resource::Metrics),
            ("HEAD /metrics?x=1 HTTP/1.0\r\n\r\n", Resource::Metrics),
            ("GET / HTTP/1.1\r\n\r\n", Resource::Other("404 Not Found")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Resource::Other("405 Method Not Allowed")),
            ("\0\x01\x02 nonsense\r\n\r\n", Resource::Other("400 Bad Request")),
        ] {
            assert_eq!(resource(bytes), Some(expected), "{bytes:?}");
        }
        let large = Resource::Other("431 Request Header Fields Too Large");
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(REQUEST));
        assert_eq!(resource(&long), Some(large));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS + 1));
        assert_eq!(resource(&many), Some(large));
    }

    #[test]
    fn keep_alive_depends_on_version_connection_header_and_body() {
        for (fields, version, expected) in [
            ("", 1, true),
            ("", 0, false),
            ("Connection: close\r\n", 1, false),
            ("connection: TE, Close\r\n", 1, false),
            ("Connection: keep-alive\r\n", 1, true),
            ("Content-Length: 0\r\n", 1, true),
            ("Content-Length: 7\r\n", 1, false),
            ("Transfer-Encoding: chunked\r\n", 1, false),
        ] {
            let bytes = format!("GET /metrics HTTP/1.{version}\r\n{fields}\r\n");
            let next = format!("{bytes}GET /");
            let request = request(next.as_bytes()).unwrap();
            assert_eq!((request.keep_open, request.length), (expected, bytes.len()), "{bytes:?}");
        }
    }

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
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("ringtap_packets_total{queue"), "{text}");
    }
}
