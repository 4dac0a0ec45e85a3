//! Alerts as requests to an HTTP server: POST of the JSON object (RFC 9110, RFC 9112), a connection for each.
//!
//! | answer | then |
//! |---|---|
//! | 2xx | the alert is delivered |
//! | 408, 425, 429, none | it is sent again, after pauses that double |
//! | 5xx | the same, up to [`FAILING_MAX`]; then it is lost, because it may be the reason |
//! | any other | it is lost: the same request would get the same answer |
//!
//! Only the head of an answer is read, behind interim ones (1xx).
//!
//! A server that took a request and broke the connection before its answer gets that alert twice.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ringtap_base::text::shown;

use super::url::Url;
use super::{Notice, Target, count_lost, count_sent};
use crate::Reason;
use crate::settings::Tls;
use crate::shared::{Shared, now};
use crate::transports::{Channel, Pauses, TlsClient, connect, is_slice_over, resolve};

/// Time limit of a request and its answer, once connected.
const EXCHANGE: Duration = Duration::from_secs(10);

/// How long an alert is sent again while the server answers 5xx.
const FAILING_MAX: Duration = Duration::from_secs(120);

/// Most octets that are read of an answer.
const ANSWER: usize = 64 << 10;

/// Longest part of an answer's first line in an error.
const SHOWN: usize = 80;

pub(crate) struct Webhook {
    url: Url,
    tls: Option<TlsClient>,
    addresses: Vec<SocketAddr>,
    pauses: Pauses,
    failing_max: Duration,
}

/// What to do after an answer.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Taken,
    Again(String),
    /// The server failed, perhaps because of this alert.
    Failed(String),
    Never(String),
}

impl Webhook {
    pub(crate) fn new(url: &Url, tls: &Tls) -> io::Result<Self> {
        let client = url.is_encrypted.then(|| TlsClient::new(&url.host, tls)).transpose()?;
        let addresses = resolve(&url.host, url.port)?;
        let (url, pauses, failing_max) = (url.clone(), Pauses::new(), FAILING_MAX);
        Ok(Self { url, tls: client, addresses, pauses, failing_max })
    }

    fn request(&self, body: &str) -> Vec<u8> {
        let Url { target, .. } = &self.url;
        let (host, length) = (self.url.authority(), body.len());
        format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ringtap\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .into()
    }

    /// Sends a request and reads the answer.
    fn exchange(&self, request: &[u8], shared: &Shared) -> io::Result<Answer> {
        let mut result = Err(ErrorKind::AddrNotAvailable.into());
        for &address in &self.addresses {
            match connect(address, self.tls.as_ref(), shared) {
                Ok(mut channel) => {
                    let end = now() + EXCHANGE;
                    write(&mut *channel, request, end, shared)?;
                    return read(&mut *channel, end, shared).map(|answer| judge(&answer));
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }
}

impl Target for Webhook {
    fn deliver(&mut self, notice: &Notice, shared: &Shared) {
        let request = self.request(&notice.object());
        // Since when each answer was a failure of the server.
        let mut failed_since = None;
        loop {
            shared.pause(self.pauses.left());
            if shared.over() {
                return count_lost(Reason::TooLate, shared);
            }
            match self.exchange(&request, shared) {
                Ok(Answer::Taken) => {
                    self.pauses = Pauses::new();
                    shared.works();
                    return count_sent(request.len(), shared);
                }
                Ok(Answer::Never(why)) => {
                    shared.fails(&why);
                    return count_lost(Reason::Failed, shared);
                }
                Ok(Answer::Failed(why)) => {
                    shared.fails(&why);
                    if failed_since.get_or_insert_with(now).elapsed() >= self.failing_max {
                        self.pauses.failed();
                        return count_lost(Reason::Failed, shared);
                    }
                }
                Ok(Answer::Again(why)) => {
                    failed_since = None;
                    shared.fails(&why);
                }
                Err(error) => {
                    failed_since = None;
                    shared.fails(&error);
                    // The server may have moved.
                    if let Ok(addresses) = resolve(&self.url.host, self.url.port) {
                        self.addresses = addresses;
                    }
                }
            }
            self.pauses.failed();
        }
    }
}

/// Calls `step` until it returns something, or the time is over.
fn until<T>(
    end: Instant,
    shared: &Shared,
    mut step: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<T> {
    loop {
        match step() {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {}
            Err(error) if is_slice_over(&error) => {}
            Err(error) => return Err(error),
        }
        if now() >= end || shared.over() {
            return Err(io::Error::other("it does not answer"));
        }
    }
}

fn write(
    channel: &mut dyn Channel,
    mut request: &[u8],
    end: Instant,
    shared: &Shared,
) -> io::Result<()> {
    until(end, shared, || {
        if request.is_empty() {
            return channel.flush().map(Some);
        }
        let written = channel.write(request)?;
        request = &request[written..];
        Ok(None)
    })
}

/// Reads the head of the answer, or as much as fits. A connection that ends earlier is an answer, too, once there is a
/// status line.
fn read(channel: &mut dyn Channel, end: Instant, shared: &Shared) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    let result = until(end, shared, || {
        let octets = channel.read(&mut piece)?;
        answer.extend_from_slice(&piece[..octets]);
        Ok((octets == 0 || answer.len() >= ANSWER || is_complete(&answer)).then_some(()))
    });
    let answer = without_interim(&answer);
    match result {
        Err(error) if !answer.contains(&b'\n') => Err(error),
        _ if answer.is_empty() => {
            Err(io::Error::other("it closes the connection without an answer"))
        }
        _ => Ok(answer.to_vec()),
    }
}

/// Whether the head of the answer is there.
fn is_complete(answer: &[u8]) -> bool {
    head(without_interim(answer)).is_some()
}

/// The length of the first head.
fn head(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|four| four == b"\r\n\r\n").map(|end| end + 4)
}

/// Without the complete interim answers at the beginning (RFC 9110, section 15.2). After 101 there is no other.
fn without_interim(mut answer: &[u8]) -> &[u8] {
    while let Some(end) = head(answer)
        && matches!(code(answer), Some(100 | 102..=199))
    {
        answer = &answer[end..];
    }
    answer
}

/// The status code and what follows it.
fn status(answer: &[u8]) -> Option<String> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.strip_prefix("HTTP/1.")?.split_once(' ').map(|(_, status)| status.trim().to_owned())
}

fn code(answer: &[u8]) -> Option<u16> {
    status(answer)?.get(..3)?.parse().ok()
}

fn judge(answer: &[u8]) -> Answer {
    let status = status(answer).unwrap_or_default();
    let shown: String = shown(&status).chars().take(SHOWN).collect();
    match code(answer) {
        None => Answer::Again("its answer is not HTTP".into()),
        Some(200..=299) => Answer::Taken,
        Some(500..=599) => Answer::Failed(format!("it answers {shown}")),
        // An interim answer, and then nothing more.
        Some(100 | 102..=199 | 408 | 425 | 429) => Answer::Again(format!("it answers {shown}")),
        Some(_) => Answer::Never(format!("it answers {shown}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::alerts::tests::{notice, shared};

    /// Reads a request; returns its first line and its body.
    fn request(stream: &mut TcpStream) -> (String, String) {
        let (mut bytes, mut piece) = (Vec::new(), [0; 1024]);
        loop {
            let octets = stream.read(&mut piece).unwrap();
            assert!(octets > 0, "the request is incomplete");
            bytes.extend_from_slice(&piece[..octets]);
            let text = String::from_utf8(bytes.clone()).unwrap();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.split("Content-Length: ").nth(1).unwrap();
            if body.len().to_string() == length.lines().next().unwrap() {
                return (head.lines().next().unwrap().into(), body.into());
            }
        }
    }

    #[test]
    fn each_alert_arrives_once_in_order_after_failures() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::Builder::new().spawn(move || {
            let mut bodies = Vec::new();
            for round in 0.. {
                let (mut stream, _) = listener.accept().unwrap();
                if round < 2 {
                    // Closed without an answer, before the request is read.
                    continue;
                }
                let (line, body) = request(&mut stream);
                assert_eq!(line, "POST /hook?x=1 HTTP/1.1");
                let answer = match round {
                    2 => "503 Busy\r\nContent-Length: 3\r\n\r\nno\n",
                    4 => "404 Not Found\r\n\r\n",
                    _ => "100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
                };
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
                bodies.push(body);
                if round == 5 {
                    return bodies;
                }
            }
            bodies
        });
        let target = "/hook?x=1".into();
        let url = Url { host: "127.0.0.1".into(), port, is_encrypted: false, target };
        let mut webhook = Webhook::new(&url, &Tls::default()).unwrap();
        let shared = shared();
        ["one", "two", "three"].iter().for_each(|text| webhook.deliver(&notice(text), &shared));
        let expected = ["one", "one", "two", "three"].map(|text| notice(text).json);
        assert_eq!(server.unwrap().join().unwrap(), expected);
        let status = shared.status();
        assert_eq!((status.sent, status.lost(Reason::Failed), status.failing), (2, 1, false));
        assert_eq!(status.last_error.unwrap().0, "it answers 404 Not Found");
    }

    #[test]
    fn the_body_of_an_answer_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::Builder::new().spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            request(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").unwrap();
            // The client closes it.
            while stream.read(&mut [0; 64]).is_ok_and(|octets| octets > 0) {}
        });
        let url = Url { host: "127.0.0.1".into(), port, is_encrypted: false, target: "/".into() };
        let mut webhook = Webhook::new(&url, &Tls::default()).unwrap();
        let shared = shared();
        webhook.deliver(&notice("one"), &shared);
        server.unwrap().join().unwrap();
        assert_eq!((shared.status().sent, shared.status().last_error), (1, None));
    }

    #[test]
    fn an_alert_is_given_up_if_the_server_fails_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::Builder::new().spawn(move || {
            for answer in ["500 No", "200 OK"] {
                let (mut stream, _) = listener.accept().unwrap();
                request(&mut stream);
                stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).unwrap();
            }
        });
        let url = Url { host: "127.0.0.1".into(), port, is_encrypted: false, target: "/".into() };
        let mut webhook = Webhook::new(&url, &Tls::default()).unwrap();
        webhook.failing_max = Duration::ZERO;
        let shared = shared();
        ["one", "two"].iter().for_each(|text| webhook.deliver(&notice(text), &shared));
        server.unwrap().join().unwrap();
        let status = shared.status();
        assert_eq!((status.sent, status.lost(Reason::Failed)), (1, 1));
    }

    #[test]
    fn interim_answers_are_skipped() {
        let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n";
        assert!(!is_complete(answer));
        let all = [&answer[..], b"HTTP/1.1 404 No\r\n\r\n"].concat();
        assert!(is_complete(&all) && !is_complete(&all[..all.len() - 1]));
        assert_eq!(judge(without_interim(&all)), Answer::Never("it answers 404 No".into()));
        let switching = b"HTTP/1.1 101 Switching\r\n\r\n";
        assert_eq!(
            judge(without_interim(switching)),
            Answer::Never("it answers 101 Switching".into())
        );
    }

    #[test]
    fn answers_are_judged_by_their_code() {
        assert_eq!(judge(b"HTTP/1.0 200\r\n\r\n"), Answer::Taken);
        let again = |text: &str| Answer::Again(format!("it answers {text}"));
        assert_eq!(judge(b"HTTP/1.1 429 Slow\x07 down\r\n"), again("429 Slow\\u{7} down"));
        let busy = Answer::Failed("it answers 503 Busy".into());
        assert_eq!(judge(b"HTTP/1.1 503 Busy\r\n"), busy);
        let moved = Answer::Never("it answers 301 Moved".into());
        assert_eq!(judge(b"HTTP/1.1 301 Moved\r\n"), moved);
        for other in [&b""[..], b"SSH-2.0-x\r\n", b"HTTP/1.1 ", b"HTTP/2 200", b"HTTP/1.1 2\xff0 x"]
        {
            assert_eq!(judge(other), Answer::Again("its answer is not HTTP".into()), "{other:?}");
        }
    }

    #[test]
    fn a_server_that_is_down_at_the_end_is_a_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let url = Url { host: "127.0.0.1".into(), port, is_encrypted: false, target: "/".into() };
        let mut webhook = Webhook::new(&url, &Tls::default()).unwrap();
        let shared = shared();
        shared.interrupt();
        webhook.deliver(&notice("lost"), &shared);
        shared.judge();
        let summary = shared.summary();
        assert_eq!(summary.not_sent["too_late"].records, 1);
        assert!(summary.failure.unwrap().contains("refused"));
    }
}
