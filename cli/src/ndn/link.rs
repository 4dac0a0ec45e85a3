//! The way to a forwarder, a producer or consumers: packets over UDP or a Unix stream.
//!
//! ```text
//!  UDP:   a datagram is a packet of the link           connected, or listening and answering who asked
//!  Unix:  bytes ─▶ | element | element | elem…          the type and length of each say where it ends
//!                      └─▶ LpPacket ─▶ (pieces) ─▶ Packet ─▶ whoever receives
//! ```
//!
//! Invariant: what is no packet is counted. Memory is bounded: an element that is too long ends a stream, for nobody
//! knows where the next one begins.

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

/// A packet with all that may be said about it.
const LONGEST: usize = PACKET_MAX + 1024;

/// What one look reads of a stream.
const READ: usize = 1 << 16;

/// Packets taken in one look.
const LOOK: usize = 64;

/// Pieces of so many packets may be on their way, for so long.
const PIECES: usize = 16;
const PIECES_NS: u64 = 500_000_000;

/// How long a stream may be full before it counts as broken.
const STUCK: Duration = Duration::from_secs(5);

/// Bytes that may wait in our own receive queue: without it, bursts of answers are lost here.
const QUEUE: u32 = 8 << 20;

pub(crate) struct Link {
    way: Way,
    /// The size of the receive queue, as the kernel counts it; 0 of a stream.
    pub(crate) queue_bytes: u32,
    pieces: Reassembler,
    out: Vec<u8>,
    /// What came that is no packet.
    pub(crate) malformed: u64,
    /// Datagrams that nobody was there to take.
    pub(crate) refused: u64,
}

enum Way {
    Connected(UdpSocket),
    /// Answers go to who sent the packet that is being looked at.
    Listening(UdpSocket, Option<SocketAddr>),
    Stream(UnixStream, Vec<u8>),
}

impl Link {
    fn new(way: Way) -> Self {
        let pieces = Reassembler::new(PIECES, PIECES_NS);
        let mut link = Self {
            way,
            queue_bytes: 0,
            pieces,
            out: Vec::with_capacity(LONGEST),
            malformed: 0,
            refused: 0,
        };
        if !link.is_stream() {
            // A queue that stays small is no error: what it has no room for is counted.
            link.queue_bytes = widen_receive_queue(link.descriptor(), QUEUE).unwrap_or(0);
        }
        link
    }

    /// Datagrams for us that the kernel dropped at our own socket. They are no losses of the other side.
    pub(crate) fn dropped_here(&self) -> u64 {
        if self.is_stream() { 0 } else { receive_drops(self.descriptor()) }
    }

    /// To a forwarder or a producer.
    pub(crate) fn connect(url: &Url) -> anyhow::Result<Self> {
        let way = match url {
            Url::Udp(host, port) => {
                let to = resolve(host, *port)?;
                let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(to).with_context(|| format!("connecting to {url}"))?;
                socket.set_nonblocking(true)?;
                Way::Connected(socket)
            }
            Url::Unix(path) => {
                let stream = UnixStream::connect(path).with_context(|| {
                    let shown = path.display();
                    format!("no forwarder listens at {shown} ([unix] in its configuration)")
                })?;
                stream.set_write_timeout(Some(STUCK))?;
                Way::Stream(stream, Vec::with_capacity(READ + LONGEST))
            }
        };
        Ok(Self::new(way))
    }

    /// For consumers.
    pub(crate) fn listen(url: &Url) -> anyhow::Result<Self> {
        let Url::Udp(host, port) = url else {
            bail!("{url}: consumers are awaited by UDP; a forwarder's socket is named by --to")
        };
        let socket = UdpSocket::bind(resolve(host, *port)?)
            .with_context(|| format!("listening at {url} (if a forwarder is there: --to {url})"))?;
        socket.set_nonblocking(true)?;
        Ok(Self::new(Way::Listening(socket, None)))
    }

    /// Sends a packet. While the other side takes none, it waits. What UDP says of earlier datagrams is only counted.
    pub(crate) fn send(&mut self, headers: &Headers, packet: &[u8]) -> anyhow::Result<()> {
        self.out.clear();
        write_lp(headers, packet, &mut self.out);
        loop {
            let sent = match &mut self.way {
                Way::Connected(socket) => socket.send(&self.out).map(|_| ()),
                Way::Listening(socket, Some(to)) => socket.send_to(&self.out, *to).map(|_| ()),
                Way::Listening(_, None) => Ok(()),
                Way::Stream(stream, _) => stream.write_all(&self.out),
            };
            match sent {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if self.is_refusal(&error) => self.refused += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.is_stream() => {
                    wait(self.descriptor(), PollFlags::OUT, STUCK);
                }
                Err(error) => return Err(error).context("sending"),
            }
        }
    }

    /// Hands out packets that come, if some come within `patience`; whether the other side is still there.
    pub(crate) fn receive(
        &mut self,
        now_ns: u64,
        patience: Duration,
        mut each: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
    ) -> anyhow::Result<bool> {
        if !wait(self.descriptor(), PollFlags::IN, patience) {
            return Ok(true);
        }
        let mut answers = Answers::default();
        let mut buffer = [0; LONGEST];
        for _ in 0..LOOK {
            let (came, from) = match &mut self.way {
                Way::Connected(socket) => (socket.recv(&mut buffer), None),
                Way::Listening(socket, _) => match socket.recv_from(&mut buffer) {
                    Ok((len, from)) => (Ok(len), Some(from)),
                    Err(error) => (Err(error), None),
                },
                Way::Stream(..) => return self.read(now_ns, each),
            };
            let came = match came {
                Ok(len) => &buffer[..len],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if self.is_refusal(&error) => {
                    self.refused += 1;
                    continue;
                }
                Err(error) => return Err(error).context("receiving"),
            };
            if let Way::Listening(_, to) = &mut self.way {
                *to = from;
            }
            let good = take(&mut self.pieces, now_ns, came, |headers, packet| {
                each(headers, packet, &mut answers);
            });
            self.malformed += u64::from(!good);
            self.answer(&mut answers)?;
        }
        Ok(true)
    }

    /// Reads what there is of a stream.
    fn read(
        &mut self,
        now_ns: u64,
        mut each: impl FnMut(&Headers, &Packet<'_>, &mut Answers),
    ) -> anyhow::Result<bool> {
        let Way::Stream(stream, bytes) = &mut self.way else { return Ok(true) };
        let mut waiting = std::mem::take(bytes);
        let before = waiting.len();
        waiting.resize(before + READ, 0);
        let read = stream.read(&mut waiting[before..]);
        waiting.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Ok(false),
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                return Err(error).context("receiving");
            }
            _ => {}
        }
        let (mut answers, mut done) = (Answers::default(), 0);
        loop {
            let rest = &waiting[done..];
            let len = match Element::first(rest) {
                Ok((_, after)) => rest.len() - after.len(),
                Err(Error::Truncated) if rest.len() <= LONGEST => break,
                Err(_) => bail!("what comes by the stream is no NDN"),
            };
            let good = take(&mut self.pieces, now_ns, &rest[..len], |headers, packet| {
                each(headers, packet, &mut answers);
            });
            self.malformed += u64::from(!good);
            done += len;
        }
        waiting.drain(..done);
        if let Way::Stream(_, bytes) = &mut self.way {
            *bytes = waiting;
        }
        self.answer(&mut answers)?;
        Ok(true)
    }

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
        matches!(self.way, Way::Stream(..))
    }

    /// Nobody listens there, or no longer: with UDP that is a loss like others.
    fn is_refusal(&self, error: &io::Error) -> bool {
        !self.is_stream()
            && matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Connected(socket) | Way::Listening(socket, _) => socket.as_fd(),
            Way::Stream(stream, _) => stream.as_fd(),
        }
    }
}

/// Packets that answer those that came.
#[derive(Default)]
pub(crate) struct Answers {
    bytes: Vec<u8>,
    packets: Vec<(Headers, usize)>,
}

impl Answers {
    /// One more, which `write` appends.
    pub(crate) fn add(&mut self, headers: Headers, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.packets.push((headers, self.bytes.len()));
    }
}

/// Reads a packet of the link; false if it is none.
fn take(
    pieces: &mut Reassembler,
    now_ns: u64,
    bytes: &[u8],
    each: impl FnOnce(&Headers, &Packet<'_>),
) -> bool {
    let Ok(read) = LpPacket::read(bytes) else { return false };
    match pieces.take(now_ns, 0, &read) {
        Reassembly::Whole(headers, packet) => match Packet::read(packet) {
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

fn resolve(host: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().with_context(|| format!("looking up {host}"))?;
    let mut found: Vec<_> = found.collect();
    // IPv4 first: that is where forwarders of a machine listen, if at one only.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().with_context(|| format!("{host} has no address"))
}

/// Waits until a socket is ready; whether it is.
fn wait(socket: BorrowedFd<'_>, flags: PollFlags, patience: Duration) -> bool {
    let patience =
        Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    matches!(poll(&mut [PollFd::new(&socket, flags)], Some(&patience)), Ok(1..))
}
