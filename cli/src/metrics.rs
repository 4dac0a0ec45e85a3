//! `--metrics`: how a run stands, for whoever asks by HTTP, in the text format of Prometheus.
//!
//! ```text
//! clients ──▶ Server, in a thread of its own ──▶ Http: request → answer ──▶ Watch, Console ──▶ text
//! ```
//!
//! Invariant: neither the run nor the attendant waits for a client, and no client for another (see [`crate::server`]).

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::Watch;
use ringtap_export::Status;
use ringtap_monitor::Shortage;

use crate::server::{After, Limits, Next, Protocol, Refusal, Server};

/// What clients may use. The idle time is longer than the usual minute between two scrapes.
const LIMITS: Limits = Limits {
    connections: 256,
    request: Duration::from_secs(5),
    response: Duration::from_secs(10),
    idle: Duration::from_secs(75),
    bytes_per_second: 1 << 20,
    held_bytes: 16 << 20,
};

/// The longest request, in bytes.
const REQUEST: usize = 8 << 10;

/// The most header fields of a request.
const HEADERS: usize = 64;

/// The server wakes up at least so often.
const WAIT: Duration = Duration::from_secs(60);

/// The listening socket of `--metrics`.
pub(crate) struct Metrics {
    listener: TcpListener,
}

/// Answers requests until it is dropped.
pub(crate) struct Serving {
    /// Closing it wakes the thread for the last time.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// What the console knows besides.
pub(crate) struct Standing {
    pub(crate) elapsed: Duration,
    pub(crate) alerts: u64,
    /// None until an interval has ended.
    pub(crate) flows: Option<u64>,
    pub(crate) outputs: Vec<Status>,
    /// What there was no room for, at the latest mark.
    pub(crate) shortage: Shortage,
}

impl Metrics {
    /// Listens at `address`.
    pub(crate) fn listen(address: SocketAddr) -> anyhow::Result<Self> {
        let given = || format!("--metrics {address}");
        let listener = TcpListener::bind(address).with_context(given)?;
        listener.set_nonblocking(true).with_context(given)?;
        Ok(Self { listener })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Starts a thread that answers each request with the current values of a run. `queues` is how many the run has;
    /// `interfaces` is empty for files.
    pub(crate) fn serve(
        self,
        watch: &'static Watch,
        queues: usize,
        interfaces: &[String],
        standing: impl Fn() -> Standing + Send + 'static,
    ) -> anyhow::Result<Serving> {
        let (wake, woken) = UnixStream::pair()?;
        let interfaces: Vec<_> = interfaces.iter().map(|name| label_value(name)).collect();
        let serve = move || {
            let mut server = Server::new(self.listener, LIMITS);
            let mut http = Http(|| text(watch, queues, &interfaces, &standing()));
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
            // If it panicked, the panic was printed and the metrics have ended sooner than the run.
            let _ = thread.join();
        }
    }
}

/// HTTP/1.0 and 1.1, as far as reading one page needs it. It makes the page by this function.
struct Http<F>(F);

impl<F: Fn() -> String> Protocol for Http<F> {
    fn read(&mut self, received: &mut Vec<u8>, _: bool) -> Next {
        let Some(request) = request(received) else { return Next::More };
        let after = if request.keep_open { After::KeepOpen } else { After::Close };
        let body = match request.about {
            About::Metrics => self.0(),
            About::Other("404 Not Found") => "the metrics are at /metrics\n".into(),
            About::Other(status) => format!("{status}\n"),
        };
        let status = match request.about {
            About::Metrics => "200 OK",
            About::Other(status) => status,
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

/// A request that is complete, or can be none.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    about: About,
    /// Only the head of the response is wanted.
    head: bool,
    /// Another request may follow.
    keep_open: bool,
    /// Its bytes.
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Metrics,
    /// Something else; the status of the response.
    Other(&'static str),
}

/// The first request of these bytes; `None` if it is not complete.
fn request(received: &[u8]) -> Option<Request> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let wrong = |status| {
        let about = About::Other(status);
        Some(Request { about, head: false, keep_open: false, length: received.len() })
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
    let about = match (request.method, path.split('?').next()) {
        (Some("GET" | "HEAD"), Some("/metrics")) => About::Metrics,
        (Some("GET" | "HEAD"), _) => About::Other("404 Not Found"),
        _ => About::Other("405 Method Not Allowed"),
    };
    let has = |name: &str, what: &dyn Fn(&str) -> bool| {
        let named = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| String::from_utf8_lossy(field.value)).any(|value| what(value.trim()))
    };
    // A body is not read, so nothing that follows it could be either.
    let has_body =
        has("content-length", &|value| value != "0") || has("transfer-encoding", &|_| true);
    let is_last = has("connection", &|value| {
        value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"))
    });
    let keep_open = request.version == Some(1) && !has_body && !is_last;
    Some(Request { about, head: request.method == Some("HEAD"), keep_open, length })
}

/// A label's value: backslash, quote and line end are escaped.
fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All of them, as Prometheus reads it; those of packets and bytes for each interface, if there are any.
fn text(watch: &Watch, queues: usize, interfaces: &[String], standing: &Standing) -> String {
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
    let seconds = format!("{:.3}", standing.elapsed.as_secs_f64());
    metric("build_info", "gauge", "The program.", &[(version, "1".into())]);
    metric("run_seconds", "gauge", "Since the run began.", &[(String::new(), seconds)]);
    metric("packets_total", "counter", "Packets read.", &by_queue);
    let bytes = "Bytes read: of files as they lie on disk, of frames as they were captured.";
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
        let gone = "1 if the interface was deleted, or moved to another network namespace.";
        let samples = by_interface(&|place| of.is_gone(place).into(), 0);
        metric("interface_gone", "gauge", gone, &samples);
    }
    let shed = "Packets left out because more came than could be metered.";
    metric("shed_packets_total", "counter", shed, &one(watch.shed.get()));
    let split = "Packets that came by another queue than others between the same addresses.";
    metric("split_packets_total", "counter", split, &one(watch.split.get()));
    let forgotten =
        "First fragments forgotten for lack of memory, so that later ones may lack their ports.";
    metric(
        "forgotten_fragments_total",
        "counter",
        forgotten,
        &one(watch.fragments_forgotten.get()),
    );
    let Shortage {
        flows_ended_early,
        attempts_ignored,
        conversations_estimated,
        packets_in_further_intervals,
    } = standing.shortage;
    let early = "Flows that were ended because the flow table was full.";
    metric("flows_ended_early_total", "counter", early, &one(flows_ended_early));
    let ignored = "Connection attempts that the scan analysis ignored for lack of memory.";
    metric("scan_attempts_ignored_total", "counter", ignored, &one(attempts_ignored));
    let estimated = "Whether the numbers of conversations are estimates for lack of memory.";
    metric("conversations_estimated", "gauge", estimated, &one(conversations_estimated.into()));
    let further = "Packets of intervals that the report has no room for.";
    metric(
        "further_interval_packets_total",
        "counter",
        further,
        &one(packets_in_further_intervals),
    );
    metric("alerts_total", "counter", "Scans and limits that were told of.", &one(standing.alerts));
    if let Some(flows) = standing.flows {
        metric("flows", "gauge", "Flows that lived when the last interval ended.", &one(flows));
    }
    if standing.outputs.is_empty() {
        return text;
    }
    let each = |value: &dyn Fn(&Status) -> String| -> Vec<(String, String)> {
        let labels = |one: &Status| format!("{{output=\"{}\"}}", label_value(&one.name));
        standing.outputs.iter().map(|one| (labels(one), value(one))).collect()
    };
    let made = "Flow records encoded for an output or lost before that.";
    metric("output_records_made_total", "counter", made, &each(&|one| one.made.to_string()));
    let sent = "Flow records that an output took.";
    metric("output_records_written_total", "counter", sent, &each(&|one| one.sent.to_string()));
    let lost: Vec<_> = standing
        .outputs
        .iter()
        .flat_map(|one| one.lost.iter().map(move |&(reason, lost)| (one, reason, lost)))
        .map(|(one, reason, lost)| {
            let (name, reason) = (label_value(&one.name), reason.name());
            (format!("{{output=\"{name}\",reason=\"{reason}\"}}"), lost.to_string())
        })
        .collect();
    metric("output_records_lost_total", "counter", "Flow records that an output lost.", &lost);
    let queued = "Encoded bytes that wait to be written.";
    metric("output_queued_bytes", "gauge", queued, &each(&|one| one.queued_bytes.to_string()));
    let failing = "1 if the last attempt to write failed.";
    metric("output_failing", "gauge", failing, &each(&|one| u8::from(one.failing).to_string()));
    let when = "When an output failed last, seconds since 1970; 0: never.";
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
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_when_it_is_complete() {
        let about = |bytes: &str| request(bytes.as_bytes()).map(|request| request.about);
        for partial in ["", "GET /metrics HTTP/1.1\r\nHost: a\r\n"] {
            assert_eq!(about(partial), None, "{partial:?}");
        }
        for (bytes, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", About::Metrics),
            ("HEAD /metrics?x=1 HTTP/1.0\r\n\r\n", About::Metrics),
            ("GET / HTTP/1.1\r\n\r\n", About::Other("404 Not Found")),
            ("POST /metrics HTTP/1.1\r\n\r\n", About::Other("405 Method Not Allowed")),
            ("\0\x01\x02 nonsense\r\n\r\n", About::Other("400 Bad Request")),
        ] {
            assert_eq!(about(bytes), Some(expected), "{bytes:?}");
        }
        let large = About::Other("431 Request Header Fields Too Large");
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(REQUEST));
        assert_eq!(about(&long), Some(large));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS + 1));
        assert_eq!(about(&many), Some(large));
    }

    #[test]
    fn a_connection_stays_open_where_both_sides_know_where_the_next_request_begins() {
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
    fn each_metric_says_what_it_is() {
        let watch = Watch::new();
        watch.packets.add(1, 7);
        watch.fragments_forgotten.set(1, 5);
        let shortage = Shortage { flows_ended_early: 3, ..Shortage::default() };
        let standing = Standing {
            elapsed: Duration::from_millis(1500),
            alerts: 2,
            flows: None,
            shortage,
            outputs: Vec::new(),
        };
        let text = text(&watch, 2, &[], &standing);
        for wanted in [
            "# TYPE ringtap_packets_total counter\nringtap_packets_total{queue=\"0\"} 0\n",
            "ringtap_packets_total{queue=\"1\"} 7\n",
            "ringtap_run_seconds 1.500\n",
            "ringtap_alerts_total 2\n",
            "ringtap_forgotten_fragments_total 5\n",
            "ringtap_flows_ended_early_total 3\n",
            "ringtap_conversations_estimated 0\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("\nringtap_flows "), "flows are left out until they are counted");
        assert!(!text.contains("interface"), "files have none: {text}");
    }

    #[test]
    fn packets_of_interfaces_have_their_name() {
        let watch = Watch::new();
        let standing = Standing {
            elapsed: Duration::ZERO,
            alerts: 0,
            flows: None,
            shortage: Shortage::default(),
            outputs: Vec::new(),
        };
        let names = ["eth0", "a\"b\\"].map(label_value);
        let text = text(&watch, 2, &names, &standing);
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
