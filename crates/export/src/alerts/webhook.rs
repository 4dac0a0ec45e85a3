//! Alerts as requests to an HTTP server: POST of the JSON object (RFC 9110, RFC 9112), a connection for each.
//!
//! | answer | then |
//! |---|---|
//! | 2xx | the alert is delivered |
//! | 408, 425, 429, 5xx, none | it is sent again, after pauses that double |
//! | any other | it is lost: the same request would get the same answer |
//!
//! A server that took a request and broke the connection before its answer gets that alert twice.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::output::Url;
use super::{Notice, Target, count_lost, count_sent};
use crate::Reason;
use crate::shared::{Shared, now};
use crate::transports::{self, Channel, Pauses, Tls, TlsClient, connect, is_slice_over};

/// Time limit of a request and its answer, once connected.
const EXCHANGE: Duration = Duration::from_secs(10);

/// Most octets that are read of an answer.
const ANSWER: usize = 64 << 10;

/// Longest part of an answer's first line in an error.
const SHOWN: usize = 80;

pub(crate) struct Webhook {
    url: Url,
    tls: Option<TlsClient>,
    addresses: Vec<SocketAddr>,
    pauses: Pauses,
}

/// What to do after an answer.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Taken,
    Again(String),
    Never(String),
}

impl Webhook {
    pub(crate) fn new(url: &Url, tls: &Tls) -> io::Result<Self> {
        let client = url.is_encrypted.then(|| TlsClient::new(&url.host, tls)).transpose()?;
        let addresses = transports::resolve(&url.host, url.port)?;
        Ok(Self { url: url.clone(), tls: client, addresses, pauses: Pauses::new() })
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
                Ok(Answer::Again(why)) => shared.fails(&why),
                Err(error) => {
                    shared.fails(&error);
                    // The server may have moved.
                    if let Ok(addresses) = transports::resolve(&self.url.host, self.url.port) {
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

/// Reads the answer to its end, or as much as fits. An end without a close is one, too, once there is a status line.
fn read(channel: &mut dyn Channel, end: Instant, shared: &Shared) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    let result = until(end, shared, || {
        let octets = channel.read(&mut piece)?;
        answer.extend_from_slice(&piece[..octets]);
        Ok((octets == 0 || answer.len() >= ANSWER || is_complete(&answer)).then_some(()))
    });
    match result {
        Err(error) if !answer.contains(&b'\n') => Err(error),
        _ if answer.is_empty() => {
            Err(io::Error::other("it closes the connection without an answer"))
        }
        _ => Ok(answer),
    }
}

/// Whether an answer has all octets that its `Content-Length` announces.
fn is_complete(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&answer[..head]);
    let mut fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() - head - 4 >= length)
}

fn judge(answer: &[u8]) -> Answer {
    let line = answer.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split_once(' '));
    let code = status.and_then(|(_, status)| status.get(..3)?.parse::<u16>().ok());
    let shown: String = match status {
        Some((_, status)) => {
            status.trim().chars().filter(|c| !c.is_control()).take(SHOWN).collect()
        }
        None => String::new(),
    };
    match code {
        None => Answer::Again("its answer is not HTTP".into()),
        Some(200..=299) => Answer::Taken,
        Some(408 | 425 | 429 | 500..=599) => Answer::Again(format!("it answers {shown}")),
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
            if is_complete(&bytes) {
                break;
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().into(), body.into())
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
                    _ => "204 No Content\r\n\r\n",
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
    fn answers_are_judged_by_their_code() {
        assert_eq!(judge(b"HTTP/1.0 200\r\n\r\n"), Answer::Taken);
        let again = |text: &str| Answer::Again(format!("it answers {text}"));
        assert_eq!(judge(b"HTTP/1.1 429 Slow\x07 down\r\n"), again("429 Slow down"));
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
