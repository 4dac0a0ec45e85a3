//! A socket for datagrams, over UDP or on an Ethernet: many neighbours share it.
//!
//! ```text
//!  bytes    | frame | frame | frame | frame |      written one after the other
//!  leaving  | to a  | to a  | to b  | to b  |      sent in one call; neighbours of one size and one receiver as one
//! ```

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::faces::remote::{Mac, udp_scheme};
use crate::faces::sys::{Address, BURST, DATAGRAM_MAX, Interface, Leaving};
use crate::faces::{counters::Lost, sys};

/// The Ethertype of NDN.
const ETHERTYPE: u16 = 0x8624;

/// Datagrams that the kernel cuts a message into, at the most.
const SEGMENTS_MAX: usize = 64;

/// Bytes that are written before they are sent.
const BYTES_MAX: usize = 256 << 10;

pub(crate) struct Channel {
    pub(crate) socket: OwnedFd,
    pub(crate) kind: Kind,
    /// Whether those not known yet get faces of their own.
    pub(crate) strangers: bool,
    pub(crate) mtu: Option<usize>,
    /// The face of all neighbours together, on an Ethernet.
    pub(crate) group: Option<u32>,
    peers: HashMap<Address, u32>,
    latest: Option<(Address, u32)>,
    bytes: Vec<u8>,
    leaving: Vec<Frame>,
    /// The kernel cuts messages for us.
    cuts: bool,
    kernel_drops: u64,
}

pub(crate) enum Kind {
    Udp(SocketAddr),
    Ethernet { name: String, interface: Interface },
}

/// A frame on its way out.
#[derive(Clone, Copy)]
struct Frame {
    face: u32,
    to: Address,
    start: usize,
    end: usize,
}

impl Channel {
    pub(crate) fn udp(at: SocketAddr, offload: bool) -> io::Result<Self> {
        let socket = sys::udp_socket(&at, offload)?;
        let bound = rustix::net::getsockname(&socket)?;
        let bound = SocketAddr::try_from(bound).unwrap_or(at);
        Ok(Self { cuts: offload, ..Self::new(socket, Kind::Udp(bound)) })
    }

    pub(crate) fn ethernet(name: &str) -> io::Result<Self> {
        let (socket, interface) = sys::packet_socket(name, ETHERTYPE, Mac::NDN_GROUP)?;
        Ok(Self::new(socket, Kind::Ethernet { name: name.into(), interface }))
    }

    fn new(socket: OwnedFd, kind: Kind) -> Self {
        Self {
            socket,
            kind,
            strangers: false,
            mtu: None,
            group: None,
            peers: HashMap::new(),
            latest: None,
            bytes: Vec::with_capacity(BYTES_MAX + DATAGRAM_MAX),
            leaving: Vec::with_capacity(BURST),
            cuts: false,
            kernel_drops: 0,
        }
    }

    /// Our end, as NFD writes it.
    pub(crate) fn local(&self) -> String {
        match &self.kind {
            Kind::Udp(at) => format!("{}://{at}", udp_scheme(at)),
            Kind::Ethernet { name, .. } => format!("dev://{name}"),
        }
    }

    /// The address of a neighbour on this Ethernet.
    pub(crate) fn neighbour(&self, to: Option<Mac>) -> Option<Address> {
        let Kind::Ethernet { interface, .. } = &self.kind else { return None };
        Some(Address::link(interface.index, ETHERTYPE, to.unwrap_or(Mac::NDN_GROUP)))
    }

    /// The face of a neighbour.
    #[inline]
    pub(crate) fn face_of(&mut self, from: &Address) -> Option<u32> {
        if let Some((address, face)) = &self.latest
            && address == from
        {
            return Some(*face);
        }
        let face = *self.peers.get(from)?;
        self.latest = Some((*from, face));
        Some(face)
    }

    pub(crate) fn connect(&mut self, peer: Address, face: u32) {
        self.peers.insert(peer, face);
    }

    pub(crate) fn disconnect(&mut self, peer: &Address) {
        self.peers.remove(peer);
        self.latest = None;
    }

    /// What the kernel had no room for.
    pub(crate) fn kernel_drops(&mut self) -> u64 {
        match self.kind {
            Kind::Udp(_) => self.kernel_drops = sys::receive_drops(self.socket.as_fd()),
            // These are told once.
            Kind::Ethernet { .. } => {
                self.kernel_drops += sys::kernel_drops_packet(self.socket.as_fd());
            }
        }
        self.kernel_drops
    }

    /// Where the next frame is written to; [`Channel::written`] ends it.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// A frame was written from `start` on. Whether it is time to flush.
    #[inline]
    pub(crate) fn written(&mut self, face: u32, to: Address, start: usize) -> bool {
        let end = self.bytes.len();
        self.leaving.push(Frame { face, to, start, end });
        end > BYTES_MAX || self.leaving.len() >= BURST
    }

    pub(crate) fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Sends what was written; `lost` hears of the frames that did not leave.
    pub(crate) fn flush(&mut self, mut lost: impl FnMut(u32, Lost)) {
        let mut at = 0;
        while at < self.leaving.len() {
            let nothing = Leaving { to: &self.leaving[at].to, bytes: &[], segment: None };
            let (mut messages, mut ends) = ([nothing; BURST], [at; BURST]);
            let (mut count, mut next) = (0, at);
            while next < self.leaving.len() && count < BURST {
                (messages[count], next) = self.message(next);
                ends[count] = next;
                count += 1;
            }
            let first_cut = messages[0].segment.is_some();
            match sys::send(self.socket.as_fd(), &messages[..count]) {
                Ok(sent) => at = if sent == 0 { ends[0] } else { ends[sent - 1] },
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It cuts for none, or not on the way to this neighbour: then we do, from now on.
                Err(error) if first_cut && cannot_cut(&error) => self.cuts = false,
                Err(error) => {
                    let full =
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory)
                            || error.raw_os_error() == Some(libc::ENOBUFS);
                    // A full socket takes none of the others either.
                    let end = if full { self.leaving.len() } else { ends[0] };
                    let reason = if full { Lost::Congested } else { Lost::Refused };
                    self.leaving[at..end].iter().for_each(|frame| lost(frame.face, reason));
                    at = end;
                }
            }
        }
        self.leaving.clear();
        self.bytes.clear();
    }

    /// The message that begins with this frame, and the first frame behind it.
    fn message(&self, at: usize) -> (Leaving<'_>, usize) {
        let first = &self.leaving[at];
        let size = first.end - first.start;
        let mut end = at + 1;
        if self.cuts {
            while let Some(frame) = self.leaving.get(end)
                && end - at < SEGMENTS_MAX
                && frame.end - first.start <= DATAGRAM_MAX - 100
                && frame.end - frame.start <= size
                && frame.to == first.to
            {
                end += 1;
                if frame.end - frame.start < size {
                    break;
                }
            }
        }
        let bytes = &self.bytes[first.start..self.leaving[end - 1].end];
        let segment = if end > at + 1 { u16::try_from(size).ok() } else { None };
        (Leaving { to: &first.to, bytes, segment }, end)
    }
}

fn cannot_cut(error: &io::Error) -> bool {
    [Errno::INVAL, Errno::IO, Errno::MSGSIZE, Errno::OPNOTSUPP, Errno::NOPROTOOPT]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
