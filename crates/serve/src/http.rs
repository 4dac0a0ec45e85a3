//! HTTP for `--metrics` and `--web`: the subset of HTTP/1.0 and 1.1 that serving pages needs.
//!
//! ```text
//! clients ──▶ Server, in its own thread ──▶ Http: request → Site ──▶ reply
//!                                       ◀── publish: events (text/event-stream) for those who follow a topic
//! ```
//!
//! Invariant: no client delays the run, the attendant thread or another client (see [`Server`]).

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use anyhow::Context;

use crate::server::{After, Limits, Listener, Next, Protocol, Refusal, Server};
use crate::tls::{Certificate, TlsListener};

/// Limits of clients. The idle time exceeds the usual scrape interval of a minute.
const LIMITS: Limits = Limits {
    connections: 256,
    followers: 64,
    requests: 4,
    request: Duration::from_secs(5),
    response: Duration::from_secs(10),
    idle: Duration::from_secs(75),
    bytes_per_second: 1 << 20,
    buffered_bytes: 32 << 20,
};

/// The longest request, in bytes.
const REQUEST: usize = 8 << 10;

/// Time for events between two turns of the server, and at the end of the run.
const PUBLISHING: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_millis(500);

/// How long the end of the run waits for the thread, which yields to all others.
const NOTICE: Duration = Duration::from_secs(2);

/// The most header fields of a request.
const HEADERS: usize = 64;

/// The type of text.
const TEXT: &str = "text/plain; charset=utf-8";

/// Fields of each response: a page shows nothing of others, and no other page shows it.
const POLICY: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; \
    style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'\r\n";

/// A request for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// Without the query.
    pub path: &'a str,
    /// What follows the question mark.
    pub query: &'a str,
    /// The name of the server, and its port, as the client knows them.
    pub host: &'a str,
    /// The credentials.
    pub authorization: &'a str,
    /// Whether a page of another site asks for it, other than by a link that is followed.
    pub is_foreign: bool,
}

impl Get<'_> {
    /// Refuses requests that pages of other sites make. On the loopback address, `is_local`, the name of the server must
    /// also be an address or `localhost`: a page of another name that leads to this address may not read this one.
    pub fn check_site(&self, is_local: bool) -> Result<(), Reply> {
        let refused = |why: &str| Err(Reply::None("403 Forbidden", format!("{why}\n")));
        if self.is_foreign {
            refused("not for pages of other sites")
        } else if is_local && !is_local_name(self.host) {
            refused("use the address, or localhost")
        } else {
            Ok(())
        }
    }
}

fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.is_empty() || name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A resource.
    Resource {
        /// Its media type.
        kind: &'static str,
        /// Its bytes.
        body: Vec<u8>,
    },
    /// A resource to be saved as a file of this name.
    File {
        /// The name of the file.
        name: &'static str,
        /// Its media type.
        kind: &'static str,
        /// Its bytes.
        body: Vec<u8>,
    },
    /// Events of this topic follow.
    Events(String),
    /// None; the status and what it means here.
    None(&'static str, String),
}

impl Reply {
    /// The resource does not exist.
    pub fn missing(hint: &str) -> Self {
        Self::None("404 Not Found", format!("{hint}\n"))
    }
}

/// What a server serves.
pub trait Site {
    /// Answers a request.
    fn get(&mut self, request: &Get<'_>) -> Reply;

    /// Time until [`Site::publishes`] is called, at the latest.
    fn pause(&self) -> Duration {
        // Any long time will do.
        Duration::from_secs(60)
    }

    /// Called between requests, and at least after each [`Site::pause`]: whether events are due for those who follow a
    /// topic, or still due for some.
    fn publishes(&mut self) -> bool {
        false
    }

    /// All followers have got the event.
    fn published(&mut self) {}

    /// The data of the next event of a topic, in one line.
    fn event(&mut self, _topic: &str) -> String {
        String::new()
    }

    /// The run has ended: events follow a last time.
    fn end(&mut self) {}
}

/// The site of metrics.
struct Metrics<F> {
    page: F,
    /// Whether the site listens on the loopback address.
    is_local: bool,
}

impl<F: FnMut() -> Reply> Site for Metrics<F> {
    fn get(&mut self, request: &Get<'_>) -> Reply {
        match request.check_site(self.is_local) {
            Ok(()) if request.path == "/metrics" => (self.page)(),
            Ok(()) => Reply::missing("the metrics are at /metrics"),
            Err(refusal) => refusal,
        }
    }
}

/// A listening socket.
pub enum Listening {
    /// Without encryption.
    Plain(TcpListener),
    /// With TLS: its address, and the socket.
    Tls(Option<SocketAddr>, TlsListener),
}

/// The serving thread; stops when dropped.
pub struct Serving {
    /// Closing it wakes the thread, which then ends.
    wake: Option<UnixStream>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

impl Listening {
    /// Listens at the `address` that the `flag` gives.
    ///
    /// # Errors
    /// If the address cannot be used; the error names the flag.
    pub fn at(flag: &str, address: SocketAddr) -> anyhow::Result<Self> {
        let context = || format!("{flag} {address}");
        let listener = TcpListener::bind(address).with_context(context)?;
        listener.set_nonblocking(true).with_context(context)?;
        Ok(Self::Plain(listener))
    }

    /// Encrypts the connections with this certificate.
    pub fn with_tls(self, certificate: Certificate) -> Self {
        let address = self.address();
        match self {
            Self::Plain(listener) => Self::Tls(address, TlsListener::new(listener, certificate)),
            tls @ Self::Tls(..) => tls,
        }
    }

    /// The local address of the socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Plain(listener) => listener.local_addr().ok(),
            Self::Tls(address, _) => *address,
        }
    }

    /// The URL of its root.
    pub fn url(&self) -> Option<String> {
        let scheme = if matches!(self, Self::Tls(..)) { "https" } else { "http" };
        self.address().map(|address| format!("{scheme}://{address}/"))
    }

    /// Serves the page of metrics at /metrics. All who reach the address may read it, but not pages of other sites.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn serve_metrics(
        self,
        page: impl FnMut() -> Reply + Send + 'static,
    ) -> anyhow::Result<Serving> {
        let is_local = self.address().is_none_or(|address| address.ip().is_loopback());
        self.serve("metrics", Metrics { page, is_local })
    }

    /// Serves the site, in a thread of this name, which yields to all others.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn serve(self, name: &str, site: impl Site + Send + 'static) -> anyhow::Result<Serving> {
        let (wake, woken) = UnixStream::pair()?;
        let (ending, ended) = sync_channel::<()>(0);
        let serve = move || {
            let _ending = ending;
            // Of the priorities for this thread alone, the lowest. Without it, serving still works.
            let _ = rustix::process::setpriority_process(None, 19);
            match self {
                Self::Plain(listener) => serve(Server::new(listener, LIMITS), site, &woken),
                Self::Tls(_, listener) => serve(Server::new(listener, LIMITS), site, &woken),
            }
        };
        std::thread::Builder::new().name(name.into()).spawn(serve)?;
        Ok(Serving { wake: Some(wake), ended })
    }
}

/// Serves until `woken` is closed.
fn serve<L: Listener>(mut server: Server<L>, site: impl Site, woken: &UnixStream) {
    let mut http = Http(site);
    while !server.turn(http.0.pause(), Some(woken.as_fd()), &mut http) {
        if http.0.publishes() && server.publish(PUBLISHING, &mut http) {
            http.0.published();
        }
    }
    http.0.end();
    // The first call may end an event that is under way.
    if server.publish(LAST, &mut http) {
        server.publish(LAST, &mut http);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.wake.take());
        // A thread that gets no time until then ends with the process.
        let _ = self.ended.recv_timeout(NOTICE);
    }
}

/// The protocol.
struct Http<S>(S);

impl<S: Site> Protocol for Http<S> {
    fn read(&mut self, received: &mut Vec<u8>, _: bool) -> Next {
        let mut fields = [httparse::EMPTY_HEADER; HEADERS];
        let Some(request) = request(received, &mut fields) else { return Next::More };
        let after = if request.keep_open { After::KeepOpen } else { After::Close };
        let reply = request.get.map_or_else(
            |status| Reply::None(status, format!("{status}\n")),
            |get| self.0.get(&get),
        );
        let (head, length) = (request.head, request.length);
        received.drain(..length);
        match reply {
            Reply::Events(topic) if !head => Next::Follow(begin_events(), topic),
            reply => Next::Answer(response(reply, head, after), after),
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> Vec<u8> {
        let status = match refusal {
            Refusal::Late => "408 Request Timeout",
            Refusal::Full => "503 Service Unavailable",
        };
        response(Reply::None(status, format!("{status}\n")), false, After::Close)
    }

    fn event(&mut self, topic: &str) -> Vec<u8> {
        format!("data: {}\n\n", self.0.event(topic)).into_bytes()
    }
}

fn begin_events() -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{POLICY}Connection: close\r\n\r\n"
    )
    .into_bytes()
}

fn response(reply: Reply, head: bool, after: After) -> Vec<u8> {
    let more = match &reply {
        Reply::File { name, .. } => {
            format!("Content-Disposition: attachment; filename=\"{name}\"\r\n")
        }
        Reply::None(status, _) if status.starts_with("405") => "Allow: GET, HEAD\r\n".into(),
        // The browser asks for the token.
        Reply::None(status, _) if status.starts_with("401") => {
            "WWW-Authenticate: Basic realm=\"ringtap: any name, and the token as password\"\r\n"
                .into()
        }
        Reply::None(status, _) if status.starts_with("503") => "Retry-After: 5\r\n".into(),
        _ => String::new(),
    };
    let (status, kind, mut body) = match reply {
        Reply::Resource { kind, body } | Reply::File { kind, body, .. } => ("200 OK", kind, body),
        Reply::Events(_) => ("200 OK", "text/event-stream", Vec::new()),
        Reply::None(status, text) => (status, TEXT, text.into_bytes()),
    };
    let connection = if after == After::KeepOpen { "keep-alive" } else { "close" };
    let first = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}{POLICY}Connection: {connection}\r\n\r\n",
        body.len()
    );
    if head {
        return first.into_bytes();
    }
    body.splice(0..0, first.into_bytes());
    body
}

/// A complete or invalid request.
#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    /// What is requested, or the status of the refusal.
    get: Result<Get<'a>, &'static str>,
    /// A HEAD request.
    head: bool,
    /// The connection stays open.
    keep_open: bool,
    /// Length of the request in bytes.
    length: usize,
}

/// The first request of these bytes; `None` if it is not complete.
fn request<'a>(received: &'a [u8], fields: &mut [httparse::Header<'a>]) -> Option<Request<'a>> {
    let mut request = httparse::Request::new(fields);
    let wrong = |status| {
        Some(Request { get: Err(status), head: false, keep_open: false, length: received.len() })
    };
    let length = match request.parse(received) {
        Ok(httparse::Status::Complete(length)) if length <= REQUEST => length,
        Ok(httparse::Status::Partial) if received.len() <= REQUEST => return None,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return wrong("431 Request Header Fields Too Large");
        }
        Err(_) => return wrong("400 Bad Request"),
    };
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let all = |name: &'static str| {
        let named =
            request.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| std::str::from_utf8(field.value).unwrap_or_default().trim())
    };
    let first = |name| all(name).next().unwrap_or_default();
    // A body is not read, so the start of the next request is unknown.
    let has_body = all("content-length").any(|value| value != "0")
        || all("transfer-encoding").next().is_some();
    let is_last = all("connection")
        .any(|value| value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close")));
    let get = match request.method {
        // Programs would differ in which of them they believe (RFC 9112, section 3.2).
        _ if all("host").count() > 1 => return wrong("400 Bad Request"),
        Some("GET" | "HEAD") => {
            let is_foreign = first("sec-fetch-site").eq_ignore_ascii_case("cross-site")
                && !first("sec-fetch-mode").eq_ignore_ascii_case("navigate");
            let (host, authorization) = (first("host"), first("authorization"));
            Ok(Get { path, query, host, authorization, is_foreign })
        }
        _ => Err("405 Method Not Allowed"),
    };
    Some(Request {
        get,
        head: request.method == Some("HEAD"),
        keep_open: request.version == Some(1) && !has_body && !is_last,
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(bytes: &str, read: impl FnOnce(Option<Request<'_>>) -> T) -> T {
        read(request(bytes.as_bytes(), &mut [httparse::EMPTY_HEADER; HEADERS]))
    }

    #[test]
    fn a_request_is_read_when_it_is_complete() {
        for partial in ["", "GET /metrics HTTP/1.1\r\nHost: a\r\n"] {
            with(partial, |request| assert_eq!(request, None, "{partial:?}"));
        }
        let get = |bytes: &str, path: &str, query: &str| {
            with(bytes, |request| {
                let get = request.unwrap().get.unwrap();
                assert_eq!((get.path, get.query), (path, query), "{bytes:?}");
            });
        };
        get("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "/metrics", "");
        get("HEAD /metrics?x=1 HTTP/1.0\r\n\r\n", "/metrics", "x=1");
        get("GET / HTTP/1.1\r\n\r\n", "/", "");
        let refused = |bytes: &str, status: &str| {
            with(bytes, |request| assert_eq!(request.unwrap().get, Err(status), "{bytes:?}"));
        };
        refused("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed");
        refused("\0\x01\x02 nonsense\r\n\r\n", "400 Bad Request");
        for twice in
            ["Host: a\r\nHost: a", "Host: localhost\r\nX: y\r\nhOST: a.example", "Host:\r\nHost: a"]
        {
            let bytes = format!("GET / HTTP/1.1\r\n{twice}\r\n\r\nGET / HTTP/1.1\r\n\r\n");
            refused(&bytes, "400 Bad Request");
            with(&bytes, |request| assert!(!request.unwrap().keep_open));
        }
        let large = "431 Request Header Fields Too Large";
        refused(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(REQUEST)), large);
        refused(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS + 1)), large);
        with("GET / HTTP/1.1\r\nhost: a:1\r\nAuthorization:  Bearer b \r\n\r\n", |request| {
            let get = request.unwrap().get.unwrap();
            assert_eq!((get.host, get.authorization, get.is_foreign), ("a:1", "Bearer b", false));
        });
        for (mode, expected) in [("no-cors", true), ("navigate", false)] {
            let fields = format!("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: {mode}\r\n");
            with(&format!("GET / HTTP/1.1\r\n{fields}\r\n"), |request| {
                assert_eq!(request.unwrap().get.unwrap().is_foreign, expected);
            });
        }
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
            with(&format!("{bytes}GET /"), |request| {
                let request = request.unwrap();
                assert_eq!(
                    (request.keep_open, request.length),
                    (expected, bytes.len()),
                    "{bytes:?}"
                );
            });
        }
    }

    #[test]
    fn on_the_loopback_address_other_names_are_refused() {
        let named = |host| Get { path: "/", query: "", host, authorization: "", is_foreign: false };
        for right in ["", "localhost", "LocalHost:80", "127.0.0.1:80", "[::1]:80", "[::1]"] {
            assert_eq!(named(right).check_site(true), Ok(()), "{right}");
        }
        for wrong in ["a.example", "a.example:80", "localhost.a.example", "1.2.3.4.a.example:80"] {
            assert!(named(wrong).check_site(true).is_err(), "{wrong}");
            assert_eq!(named(wrong).check_site(false), Ok(()), "{wrong}");
            let page = || Reply::missing("not this one");
            let mut site = Metrics { page, is_local: true };
            assert!(matches!(site.get(&named(wrong)), Reply::None("403 Forbidden", _)));
        }
        let foreign = Get { is_foreign: true, ..named("localhost") };
        assert!(foreign.check_site(true).is_err() && foreign.check_site(false).is_err());
    }

    /// A site that returns what it is asked for.
    struct Echo;

    impl Site for Echo {
        fn get(&mut self, request: &Get<'_>) -> Reply {
            match request.path {
                "/events" => Reply::Events(request.query.to_owned()),
                _ => Reply::Resource { kind: TEXT, body: format!("{request:?}").into_bytes() },
            }
        }
    }

    /// Requests made of parts of right ones, and of other bytes: each is answered once, or more of it is wanted.
    #[test]
    fn any_bytes_are_answered_or_incomplete() {
        let parts: [&[u8]; 16] = [
            b"GET ",
            b"HEAD ",
            b"POST ",
            b"/",
            b"/events",
            b"?a=%00",
            b" HTTP/1.1",
            b" HTTP/1.0",
            b"\r\n",
            b"\n",
            b"Host: a",
            b"Content-Length: 5",
            b"Connection: close, x",
            b"\0\xff",
            b": ",
            b"x",
        ];
        let mut random = 7_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        let (mut answered, mut wanted) = (0, 0);
        for _ in 0..100_000 {
            let mut bytes: Vec<u8> =
                (0..next(12)).flat_map(|_| parts[next(parts.len())]).copied().collect();
            if next(2) == 0 {
                bytes.splice(0..0, *b"GET / HTTP/1.1\r\n");
                bytes.extend(b"\r\n\r\n");
            }
            let before = bytes.len();
            match Http(Echo).read(&mut bytes, false) {
                Next::More => {
                    assert!(bytes.len() == before && before <= REQUEST);
                    wanted += 1;
                }
                Next::Answer(answer, _) => {
                    assert!(answer.starts_with(b"HTTP/1.1 ") && bytes.len() < before);
                    answered += 1;
                }
                Next::Follow(head, _) => assert!(head.ends_with(b"\r\n\r\n")),
            }
        }
        assert!(answered > 10_000 && wanted > 1_000, "{answered} {wanted}");
    }
}
