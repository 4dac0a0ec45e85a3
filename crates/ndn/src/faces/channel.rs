//! A channel: a datagram socket, UDP or Ethernet, that many faces share.
//!
//! ```text
//!  bytes     | frame | frame | frame | frame |   consecutive frames
//!  outgoing  | to a  | to a  | to b  | to b  |   sent in one call; equal size and receiver: one message
//! ```

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::faces::remote::{Mac, ip_version};
use crate::faces::sys::{Address, BURST, DATAGRAM_MAX, Interface, OutgoingMessage};
use crate::faces::{counters::Lost, sys};

/// The EtherType of NDN.
const ETHERTYPE: u16 = 0x8624;

/// Maximum number of datagrams in a message that the kernel segments.
const SEGMENTS_MAX: usize = 64;

/// Number of buffered bytes above which frames are sent.
const BYTES_MAX: usize = 256 << 10;

pub(crate) struct Channel {
    pub(crate) socket: OwnedFd,
    pub(crate) kind: Kind,
    /// Whether unknown senders get faces on demand.
    pub(crate) accepts_unknown: bool,
    pub(crate) mtu: Option<usize>,
    /// The group face of an Ethernet interface.
    pub(crate) group: Option<u32>,
    /// Faces by remote address.
    peers: HashMap<Address, u32>,
    /// The latest result of a look-up in `peers`.
    latest: Option<(Address, u32)>,
    bytes: Vec<u8>,
    outgoing: Vec<Frame>,
    /// Whether the kernel segments messages (UDP_SEGMENT).
    segmentation: bool,
    kernel_drops: u64,
}

pub(crate) enum Kind {
    Udp(SocketAddr),
    Ethernet { name: String, interface: Interface },
}

/// An outgoing frame.
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
        Ok(Self { segmentation: offload, ..Self::new(socket, Kind::Udp(bound)) })
    }

    pub(crate) fn ethernet(name: &str) -> io::Result<Self> {
        let (socket, interface) = sys::packet_socket(name, ETHERTYPE, Mac::NDN_GROUP)?;
        Ok(Self::new(socket, Kind::Ethernet { name: name.into(), interface }))
    }

    fn new(socket: OwnedFd, kind: Kind) -> Self {
        Self {
            socket,
            kind,
            accepts_unknown: false,
            mtu: None,
            group: None,
            peers: HashMap::new(),
            latest: None,
            bytes: Vec::with_capacity(BYTES_MAX + DATAGRAM_MAX),
            outgoing: Vec::with_capacity(BURST),
            segmentation: false,
            kernel_drops: 0,
        }
    }

    /// The local end in NFD's syntax.
    pub(crate) fn local(&self) -> String {
        match &self.kind {
            Kind::Udp(at) => format!("udp{}://{at}", ip_version(at)),
            Kind::Ethernet { name, .. } => format!("dev://{name}"),
        }
    }

    /// The address of a neighbour on this Ethernet interface; `to` is `None` for the group.
    pub(crate) fn neighbour(&self, to: Option<Mac>) -> Option<Address> {
        let Kind::Ethernet { interface, .. } = &self.kind else { return None };
        Some(Address::link(interface.index, ETHERTYPE, to.unwrap_or(Mac::NDN_GROUP)))
    }

    /// The face of a remote address.
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

    /// Datagrams that the kernel dropped for lack of room, since the socket was opened.
    pub(crate) fn kernel_drops(&mut self) -> u64 {
        match self.kind {
            Kind::Udp(_) => self.kernel_drops = sys::receive_drops(self.socket.as_fd()),
            // The kernel resets this counter on each read.
            Kind::Ethernet { .. } => {
                self.kernel_drops += sys::kernel_drops_packet(self.socket.as_fd());
            }
        }
        self.kernel_drops
    }

    /// The buffer for the next frame; [`Channel::end_frame`] ends it.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the frame that begins at `start` in the buffer. Returns whether the caller must flush.
    #[inline]
    pub(crate) fn end_frame(&mut self, face: u32, to: Address, start: usize) -> bool {
        let end = self.bytes.len();
        self.outgoing.push(Frame { face, to, start, end });
        end > BYTES_MAX || self.outgoing.len() >= BURST
    }

    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Sends the buffered frames; calls `lost` for each frame that was not sent.
    pub(crate) fn flush(&mut self, mut lost: impl FnMut(u32, Lost)) {
        let mut at = 0;
        while at < self.outgoing.len() {
            let nothing = OutgoingMessage { to: &self.outgoing[at].to, bytes: &[], segment: None };
            let (mut messages, mut ends) = ([nothing; BURST], [at; BURST]);
            let (mut count, mut next) = (0, at);
            while next < self.outgoing.len() && count < BURST {
                (messages[count], next) = self.message(next);
                ends[count] = next;
                count += 1;
            }
            let first_is_segmented = messages[0].segment.is_some();
            match sys::send(self.socket.as_fd(), &messages[..count]) {
                Ok(sent) => at = if sent == 0 { ends[0] } else { ends[sent - 1] },
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The kernel, or the interface to this neighbour, does not support segmentation:
                // from now on each frame is sent as its own message.
                Err(error) if first_is_segmented && segmentation_unsupported(&error) => {
                    self.segmentation = false
                }
                Err(error) => {
                    let full =
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory)
                            || error.raw_os_error() == Some(libc::ENOBUFS);
                    // A full socket does not accept the remaining frames either.
                    let end = if full { self.outgoing.len() } else { ends[0] };
                    let reason = if full { Lost::Congested } else { Lost::Refused };
                    self.outgoing[at..end].iter().for_each(|frame| lost(frame.face, reason));
                    at = end;
                }
            }
        }
        self.outgoing.clear();
        self.bytes.clear();
    }

    /// The message that begins with the frame `at`, and the index of the first frame after it.
    fn message(&self, at: usize) -> (OutgoingMessage<'_>, usize) {
        let first = &self.outgoing[at];
        let size = first.end - first.start;
        let mut end = at + 1;
        if self.segmentation {
            while let Some(frame) = self.outgoing.get(end)
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
        let bytes = &self.bytes[first.start..self.outgoing[end - 1].end];
        let segment = if end > at + 1 { u16::try_from(size).ok() } else { None };
        (OutgoingMessage { to: &first.to, bytes, segment }, end)
    }
}

/// Whether an error means that the socket does not support segmentation.
fn segmentation_unsupported(error: &io::Error) -> bool {
    [Errno::INVAL, Errno::IO, Errno::MSGSIZE, Errno::OPNOTSUPP, Errno::NOPROTOOPT]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
