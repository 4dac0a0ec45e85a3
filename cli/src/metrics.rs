//! `--metrics`: how a run stands, for whoever asks by HTTP, in the text format of Prometheus.
//!
//! ```text
//! attendant ── every 50 ms ──▶ has somebody asked? ──▶ Watch ──▶ text
//! ```
//!
//! Invariant: it never waits. Who connects and is slow, or says too much, is left behind; the run and the signals are not.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Context;
use ringtap_plan::Watch;

/// Who is connected at a time; others wait in the kernel's queue.
const GUESTS: usize = 16;
/// The longest question that is heard.
const QUESTION: usize = 8 << 10;
/// The most lines that a question has.
const HEADERS: usize = 64;
/// Who has asked nothing by then is hung up on.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub(crate) struct Metrics {
    listener: TcpListener,
    queues: usize,
    guests: Vec<Guest>,
}

/// Somebody who is connected.
struct Guest {
    stream: TcpStream,
    /// What was said so far.
    said: Vec<u8>,
    since: Duration,
}

/// What became of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    NotYet,
    /// For the metrics.
    Metrics,
    /// For something else; the answer's status.
    Other(&'static str),
    /// It hung up.
    Gone,
}

/// What the console knows besides.
pub(crate) struct Standing {
    pub(crate) elapsed: Duration,
    pub(crate) alerts: u64,
    /// None until an interval has ended.
    pub(crate) flows: Option<u64>,
}

impl Metrics {
    /// Listens, for a run with so many queues.
    pub(crate) fn listen(address: SocketAddr, queues: usize) -> anyhow::Result<Self> {
        let given = || format!("--metrics {address}");
        let listener = TcpListener::bind(address).with_context(given)?;
        listener.set_nonblocking(true).with_context(given)?;
        Ok(Self { listener, queues, guests: Vec::new() })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers whoever has asked since the last call.
    pub(crate) fn answer(&mut self, watch: &Watch, standing: &Standing) {
        while self.guests.len() < GUESTS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_ok() {
                self.guests.push(Guest { stream, said: Vec::new(), since: standing.elapsed });
            }
        }
        let queues = self.queues;
        self.guests.retain_mut(|guest| match guest.hear() {
            Asked::NotYet => standing.elapsed.saturating_sub(guest.since) < PATIENCE,
            Asked::Gone => false,
            Asked::Metrics => {
                guest.say("200 OK", &text(watch, queues, standing));
                false
            }
            Asked::Other(status) => {
                guest.say(status, "the metrics are at /metrics\n");
                false
            }
        });
    }
}

impl Guest {
    fn hear(&mut self) -> Asked {
        let mut bytes = [0; 1024];
        loop {
            match self.stream.read(&mut bytes) {
                // It says no more, but may have asked.
                Ok(0) => {
                    return match asked(&self.said) {
                        Asked::NotYet => Asked::Gone,
                        whole => whole,
                    };
                }
                Ok(read) => self.said.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return asked(&self.said),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Asked::Gone,
            }
            if self.said.len() > QUESTION {
                return Asked::Other("431 Request Header Fields Too Large");
            }
        }
    }

    /// An answer is smaller than any buffer of the kernel; who takes none of it gets none.
    fn say(&mut self, status: &str, body: &str) {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let body = if self.said.starts_with(b"HEAD ") { "" } else { body };
        let _ = self.stream.write_all((head + body).as_bytes());
    }
}

/// What a question is for.
fn asked(said: &[u8]) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(said) {
        Ok(httparse::Status::Partial) => Asked::NotYet,
        Err(_) => Asked::Other("400 Bad Request"),
        Ok(httparse::Status::Complete(_)) => {
            let path = request.path.unwrap_or_default();
            match (request.method, path.split('?').next()) {
                (Some("GET" | "HEAD"), Some("/metrics")) => Asked::Metrics,
                (Some("GET" | "HEAD"), _) => Asked::Other("404 Not Found"),
                _ => Asked::Other("405 Method Not Allowed"),
            }
        }
    }
}

/// All of them, as Prometheus reads it.
fn text(watch: &Watch, queues: usize, standing: &Standing) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        // Writing to a String cannot fail.
        let _ = write!(text, "# HELP ringtap_{name} {help}\n# TYPE ringtap_{name} {kind}\n");
        for (labels, value) in samples {
            let _ = writeln!(text, "ringtap_{name}{labels} {value}");
        }
    };
    let one = |value: u64| [(String::new(), value.to_string())];
    let by_queue: Vec<_> = (0..)
        .zip(watch.packets.parts(queues))
        .map(|(queue, packets): (usize, u64)| {
            (format!("{{queue=\"{queue}\"}}"), packets.to_string())
        })
        .collect();
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let seconds = format!("{:.3}", standing.elapsed.as_secs_f64());
    metric("build_info", "gauge", "The program.", &[(version, "1".into())]);
    metric("run_seconds", "gauge", "Since the run began.", &[(String::new(), seconds)]);
    metric("packets_total", "counter", "Packets read.", &by_queue);
    let bytes = "Bytes read: of files as they lie on disk, of frames as they were captured.";
    metric("bytes_total", "counter", bytes, &one(watch.bytes.get()));
    let dropped = "Packets lost before they could be read.";
    metric("dropped_packets_total", "counter", dropped, &one(watch.dropped.get()));
    let shed = "Packets left out because more came than could be metered.";
    metric("shed_packets_total", "counter", shed, &one(watch.shed.get()));
    let split = "Packets that came by another queue than others between the same addresses.";
    metric("split_packets_total", "counter", split, &one(watch.split.get()));
    metric("alerts_total", "counter", "Scans and limits that were told of.", &one(standing.alerts));
    if let Some(flows) = standing.flows {
        metric("flows", "gauge", "Flows that lived when the last interval ended.", &one(flows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_heard_when_it_is_whole() {
        for (said, meant) in [
            ("", Asked::NotYet),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n", Asked::NotYet),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Asked::Metrics),
            ("HEAD /metrics?x=1 HTTP/1.0\r\n\r\n", Asked::Metrics),
            ("GET / HTTP/1.1\r\n\r\n", Asked::Other("404 Not Found")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Asked::Other("405 Method Not Allowed")),
            ("\0\x01\x02 nonsense\r\n\r\n", Asked::Other("400 Bad Request")),
        ] {
            assert_eq!(asked(said.as_bytes()), meant, "{said:?}");
        }
    }

    #[test]
    fn each_metric_says_what_it_is() {
        let watch = Watch::new();
        watch.packets.add(1, 7);
        let standing = Standing { elapsed: Duration::from_millis(1500), alerts: 2, flows: None };
        let text = text(&watch, 2, &standing);
        for wanted in [
            "# TYPE ringtap_packets_total counter\nringtap_packets_total{queue=\"0\"} 0\n",
            "ringtap_packets_total{queue=\"1\"} 7\n",
            "ringtap_run_seconds 1.500\n",
            "ringtap_alerts_total 2\n",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in {text}");
        }
        assert!(!text.contains("ringtap_flows"), "nothing is told before it is known");
    }
}
