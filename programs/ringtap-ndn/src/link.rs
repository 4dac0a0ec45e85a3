//! A connection to a forwarder, a producer or consumers: NDN packets over UDP or a Unix stream.
//!
//! ```text
//!  UDP:   one link packet per datagram              connected, or answering the sender
//!  Unix:  bytes ─▶ | element | element | elem…      the length of each element gives its end
//!                      └─▶ LpPacket ─▶ (reassembly) ─▶ Packet ─▶ callback
//! ```
//!
//! Invariant: bytes that are not a packet are counted. Memory is bounded: an element that is too
//! long is an error that ends a stream, because the start of the next one is unknown.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_ndn::packets::{
    Element, Error, Headers, LpPacket, PACKET_MAX, Packet, Reassembler, Reassembly, write_lp,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use ringtap_ndn::faces::{receive_drops, widen_receive_queue};

use crate::args::Url;

/// The longest packet with all its link headers, in bytes.
const LONGEST: usize = PACKET_MAX + 1024;

/// Bytes read from a stream at a time.
const READ: usize = 1 << 16;

/// Most datagrams received per call.
const DATAGRAMS: usize = 64;

/// Most packets in reassembly at a time, and their time limit.
const REASSEMBLIES: usize = 16;
const REASSEMBLY_NS: u64 = 500_000_000;

/// Longest wait for room to send; a stream that stays full is broken.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Requested size of the receive queue in bytes. With the default, bursts of answers are lost here.
const QUEUE: u32 = 8 << 20;

/// A connection; sends and receives packets.
pub(crate) struct Link {
    transport: Transport,
    /// The size of the receive queue, as the kernel counts it; 0 for a stream.
    pub(crate) queue_bytes: u32,
    reassembler: Reassembler,
    out: Vec<u8>,
    /// Received bytes that are not a packet.
    pub(crate) malformed: u64,
    /// Datagrams refused by the forwarder.
    pub(crate) refused: u64,
}

enum Transport {
    Connected(UdpSocket),
    /// Answers go to the sender of the current packet.
    Listening(UdpSocket, Option<SocketAddr>),
    Stream(UnixStream, Vec<u8>),
}

impl Link {
    fn new(transport: Transport) -> Self {
        let reassembler = Reassembler::new(REASSEMBLIES, REASSEMBLY_NS);
        let mut link = Self {
            transport,
            queue_bytes: 0,
            reassembler,
            out: Vec::with_capacity(LONGEST),
            malformed: 0,
            refused: 0,
        };
        if !link.is_stream() {
            // A queue that stays small is not an error: its drops are counted.
            link.queue_bytes = widen_receive_queue(link.descriptor(), QUEUE).unwrap_or(0);
        }
        link
    }

    /// Received datagrams that the kernel dropped at this program's socket. They are not losses of
    /// the other side.
    pub(crate) fn dropped_here(&self) -> u64 {
        if self.is_stream() { 0 } else { receive_drops(self.descriptor()) }
    }

    /// Connects to a forwarder or a producer.
    pub(crate) fn connect(url: &Url) -> anyhow::Result<Self> {
        let transport = match url {
            Url::Udp(host, port) => {
                let to = resolve(host, *port)?;
                let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(to).with_context(|| format!("connecting to {url}"))?;
                socket.set_nonblocking(true)?;
                Transport::Connected(socket)
            }
            Url::Unix(path) => {
                let stream = UnixStream::connect(path).with_context(|| {
                    let shown = path.display();
                    format!("no forwarder listens at {shown}: see [unix] in its configuration")
                })?;
                stream.set_write_timeout(Some(SEND_TIMEOUT))?;
                Transport::Stream(stream, Vec::with_capacity(READ + LONGEST))
            }
        };
        Ok(Self::new(transport))
    }

    /// Listens for consumers.
    pub(crate) fn listen(url: &Url) -> anyhow::Result<Self> {
        let Url::Udp(host, port) = url else {
            bail!(
                "cannot listen on the Unix socket {url}: use udp://ADDRESS, or --to for a forwarder's socket"
            )
        };
        let socket = UdpSocket::bind(resolve(host, *port)?).with_context(|| {
            format!("listening at {url} (if a forwarder listens there, use --to {url})")
        })?;
        socket.set_nonblocking(true)?;
        Ok(Self::new(Transport::Listening(socket, None)))
    }

    /// Sends a packet; waits while the socket is full. UDP's errors about earlier datagrams are
    /// only counted.
    pub(crate) fn send(&mut self, headers: &Headers, packet: &[u8]) -> anyhow::Result<()> {
        self.out.clear();
        write_lp(headers, packet, &mut self.out);
        loop {
            let sent = match &mut self.transport {
                Transport::Connected(socket) => socket.send(&self.out).map(|_| ()),
                Transport::Listening(socket, Some(to)) => {
                    socket.send_to(&self.out, *to).map(|_| ())
                }
                Transport::Listening(_, None) => Ok(()),
                Transport::Stream(stream, _) => stream.write_all(&self.out),
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if self.is_refusal(&error) => self.refused += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.is_stream() => {
                    wait(self.descriptor(), PollFlags::OUT, SEND_TIMEOUT);
                }
                Err(error) => return Err(error).context("sending"),
            }
        }
    }

    /// Calls `each` with received packets, if some arrive within `timeout`, and sends the answers
    /// that it adds. Returns whether the other side is still connected.
    pub(crate) fn receive(
        &mut self,
        now_ns: u64,
        timeout: Duration,
        mut each: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
    ) -> anyhow::Result<bool> {
        if !wait(self.descriptor(), PollFlags::IN, timeout) {
            return Ok(true);
        }
        let mut answers = Answers::default();
        let mut buffer = [0; LONGEST];
        for _ in 0..DATAGRAMS {
            let (result, from) = match &mut self.transport {
                Transport::Connected(socket) => (socket.recv(&mut buffer), None),
                Transport::Listening(socket, _) => match socket.recv_from(&mut buffer) {
                    Ok((len, from)) => (Ok(len), Some(from)),
                    Err(error) => (Err(error), None),
                },
                Transport::Stream(..) => return self.read(now_ns, each),
            };
            let bytes = match result {
                Ok(len) => &buffer[..len],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if self.is_refusal(&error) => {
                    self.refused += 1;
                    continue;
                }
                Err(error) => return Err(error).context("receiving"),
            };
            if let Transport::Listening(_, to) = &mut self.transport {
                *to = from;
            }
            let is_valid = take(&mut self.reassembler, now_ns, bytes, |headers, packet| {
                each(headers, packet, &mut answers);
            });
            self.malformed += u64::from(!is_valid);
            self.answer(&mut answers)?;
        }
        Ok(true)
    }

    /// Reads the available bytes of a stream; results as of [`receive`](Self::receive).
    fn read(
        &mut self,
        now_ns: u64,
        mut each: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
    ) -> anyhow::Result<bool> {
        let Transport::Stream(stream, bytes) = &mut self.transport else { return Ok(true) };
        let mut unread = std::mem::take(bytes);
        let before = unread.len();
        unread.resize(before + READ, 0);
        let read = stream.read(&mut unread[before..]);
        unread.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Ok(false),
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                return Err(error).context("receiving");
            }
            _ => {}
        }
        let (mut answers, mut done) = (Answers::default(), 0);
        loop {
            let rest = &unread[done..];
            let len = match Element::first(rest) {
                Ok((_, after)) => rest.len() - after.len(),
                Err(Error::Truncated) if rest.len() <= LONGEST => break,
                Err(_) => bail!("the stream does not carry NDN packets"),
            };
            let is_valid = take(&mut self.reassembler, now_ns, &rest[..len], |headers, packet| {
                each(headers, packet, &mut answers);
            });
            self.malformed += u64::from(!is_valid);
            done += len;
        }
        unread.drain(..done);
        if let Transport::Stream(_, bytes) = &mut self.transport {
            *bytes = unread;
        }
        self.answer(&mut answers)?;
        Ok(true)
    }

    /// Sends the answers.
    fn answer(&mut self, answers: &mut Answers) -> anyhow::Result<()> {
        let mut start = 0;
        for (headers, end) in answers.packets.drain(..) {
            self.send(&headers, &answers.bytes[start..end])?;
            start = end;
        }
        answers.bytes.clear();
        Ok(())
    }

    fn is_stream(&self) -> bool {
        matches!(self.transport, Transport::Stream(..))
    }

    /// Whether the error reports a closed port, which over UDP counts as a loss.
    fn is_refusal(&self, error: &io::Error) -> bool {
        !self.is_stream()
            && matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.transport {
            Transport::Connected(socket) | Transport::Listening(socket, _) => socket.as_fd(),
            Transport::Stream(stream, _) => stream.as_fd(),
        }
    }
}

/// Answers to the received packets.
#[derive(Default)]
pub(crate) struct Answers {
    bytes: Vec<u8>,
    packets: Vec<(Headers, usize)>,
}

impl Answers {
    /// Adds a packet, which `write` appends.
    pub(crate) fn add(&mut self, headers: Headers, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.packets.push((headers, self.bytes.len()));
    }
}

/// Reads a link packet and calls `each` with a complete network packet; false if it is malformed.
fn take(
    reassembler: &mut Reassembler,
    now_ns: u64,
    bytes: &[u8],
    each: impl FnOnce(&Headers, &Packet<'_>),
) -> bool {
    let Ok(read) = LpPacket::read(bytes) else { return false };
    match reassembler.take(now_ns, 0, &read) {
        Reassembly::Complete(headers, packet) => match Packet::read(packet) {
            Ok(packet) => {
                each(&headers, &packet);
                true
            }
            Err(_) => false,
        },
        Reassembly::Waiting | Reassembly::Idle => true,
        Reassembly::Malformed => false,
    }
}

/// The first address of a host, IPv4 if it has one.
fn resolve(host: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().with_context(|| format!("looking up {host}"))?;
    let mut found: Vec<_> = found.collect();
    // IPv4 first: a forwarder with one listening address usually uses IPv4.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().with_context(|| format!("{host} has no address"))
}

/// Waits until a socket is ready or `timeout` is over; returns whether it is ready.
fn wait(socket: BorrowedFd<'_>, flags: PollFlags, timeout: Duration) -> bool {
    let timeout =
        Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    matches!(poll(&mut [PollFd::new(&socket, flags)], Some(&timeout)), Ok(1..))
}
