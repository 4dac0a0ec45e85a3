//! A channel: a datagram socket, UDP or Ethernet, or an AF_XDP port, that many faces share.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::faces::error::OpenError;
use crate::faces::multicast;
use crate::faces::outgoing::Outgoing;
use crate::faces::queue::Queue;
use crate::faces::remote::{Mac, Remote, ip_version};
use crate::faces::sys::{self, Address, Interface};
use crate::faces::xdp::{XdpInput, XdpPort};
use crate::packets::FRAME_MAX;

/// The EtherType of NDN.
const ETHERTYPE: u16 = 0x8624;

/// Default MTU over UDP in bytes: fits into an Ethernet frame with tunnel headers.
const UDP_MTU: usize = 1420;

pub(crate) struct Channel {
    pub(crate) queue: Queue,
    /// The frames that this thread sends.
    pub(crate) outgoing: Outgoing,
    pub(crate) kind: Kind,
    /// Whether it was opened for a face. It is closed with its last face.
    pub(crate) is_temporary: bool,
    /// Whether unknown senders get faces on demand.
    pub(crate) accepts_unknown: bool,
    /// Maximum size of a frame in bytes; `None`: that of the interface, or [`UDP_MTU`].
    pub(crate) mtu: Option<usize>,
    /// The face of the group, of an Ethernet interface or of UDP multicast.
    pub(crate) group: Option<u32>,
    /// Faces by remote address.
    peers: HashMap<Address, u32>,
    /// The latest result of a look-up in `peers`.
    latest: Option<(Address, u32)>,
    kernel_drops: u64,
}

pub(crate) enum Kind {
    Udp(SocketAddr),
    Multicast { group: SocketAddr, interface: String },
    Ethernet { name: String, interface: Interface },
}

impl Channel {
    pub(crate) fn udp(at: SocketAddr, offload: bool) -> io::Result<Self> {
        let socket = sys::udp_socket(&at, offload)?;
        let bound = rustix::net::getsockname(&socket)?;
        let bound = SocketAddr::try_from(bound).unwrap_or(at);
        Ok(Self::new(socket, Kind::Udp(bound), offload))
    }

    pub(crate) fn multicast(interface: &str, group: SocketAddr) -> io::Result<Self> {
        let (socket, group) = multicast::open(interface, group)?;
        Ok(Self::new(socket, Kind::Multicast { group, interface: interface.into() }, false))
    }

    pub(crate) fn ethernet(name: &str) -> io::Result<Self> {
        let (socket, interface) = sys::packet_socket(name, ETHERTYPE, Mac::NDN_GROUP)?;
        Ok(Self::new(socket, Kind::Ethernet { name: name.into(), interface }, false))
    }

    /// As [`Channel::ethernet`], by AF_XDP.
    pub(crate) fn ethernet_xdp(name: &str) -> Result<Self, OpenError> {
        let XdpPort { membership, interface, input, output } = XdpPort::open(name, ETHERTYPE)?;
        let kind = Kind::Ethernet { name: name.into(), interface };
        let mut channel = Self::new(membership, kind, false);
        channel.queue.xdp = Some(input);
        channel.outgoing = Outgoing::xdp(output);
        Ok(channel)
    }

    /// `segmentation`: whether the kernel segments messages (UDP_SEGMENT).
    fn new(socket: OwnedFd, kind: Kind, segmentation: bool) -> Self {
        let socket = Arc::new(socket);
        Self {
            outgoing: Outgoing::new(Arc::clone(&socket), segmentation),
            queue: Queue::new(socket),
            kind,
            is_temporary: true,
            accepts_unknown: false,
            mtu: None,
            group: None,
            peers: HashMap::new(),
            latest: None,
            kernel_drops: 0,
        }
    }

    /// The local end in NFD's syntax.
    pub(crate) fn local(&self) -> String {
        match &self.kind {
            Kind::Udp(at) => format!("udp{}://{at}", ip_version(at)),
            Kind::Multicast { group, interface } => match interface.parse::<Ipv4Addr>() {
                Ok(address) => format!("udp4://{address}:{}", group.port()),
                Err(_) => format!("dev://{interface}"),
            },
            Kind::Ethernet { name, .. } => format!("dev://{name}"),
        }
    }

    /// The address of a neighbour on this Ethernet interface; `to` is `None` for the group.
    pub(crate) fn neighbour(&self, to: Option<Mac>) -> Option<Address> {
        let Kind::Ethernet { interface, .. } = &self.kind else { return None };
        Some(Address::link(interface.index, ETHERTYPE, to.unwrap_or(Mac::NDN_GROUP)))
    }

    /// The remote end of an unknown sender of a frame, if such senders get faces.
    pub(crate) fn unknown_remote(&self, from: &Address) -> Option<Remote> {
        match &self.kind {
            _ if !self.accepts_unknown => None,
            Kind::Udp(_) => from.udp().map(Remote::Udp),
            // All its neighbours have one face.
            Kind::Multicast { .. } => None,
            Kind::Ethernet { name, .. } => {
                Some(Remote::Ethernet { interface: name.clone(), to: Some(from.ethernet()?.from) })
            }
        }
    }

    /// Maximum size of a frame to a neighbour, in bytes.
    pub(crate) fn mtu_to(&self, remote: &Remote) -> usize {
        let default = match (&self.kind, remote) {
            (Kind::Ethernet { interface, .. }, _) => interface.mtu,
            (Kind::Udp(_), Remote::Udp(peer)) if peer.ip().is_loopback() => FRAME_MAX,
            (Kind::Udp(_) | Kind::Multicast { .. }, _) => UDP_MTU,
        };
        self.mtu.unwrap_or(default)
    }

    /// The local end, and with AF_XDP its mode.
    pub(crate) fn describe(&self) -> String {
        match &self.queue.xdp {
            Some(xdp) => format!("{} by {}", self.local(), xdp.describe()),
            None => self.local(),
        }
    }

    /// Removes and returns warnings from opening the channel.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        self.queue.xdp.as_mut().map(XdpInput::take_warnings).unwrap_or_default()
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

    /// Adds the face of a neighbour, or that of the group.
    pub(crate) fn connect(&mut self, peer: Address, face: u32, is_group: bool) {
        self.peers.insert(peer, face);
        if is_group {
            self.group = Some(face);
        }
    }

    pub(crate) fn disconnect(&mut self, peer: &Address, face: u32) {
        self.peers.remove(peer);
        self.latest = None;
        self.group.take_if(|group| *group == face);
    }

    /// Whether it was opened for a face and has none.
    pub(crate) fn is_unused(&self) -> bool {
        self.is_temporary && self.peers.is_empty()
    }

    /// Datagrams that the kernel dropped for lack of room, since the socket was opened.
    pub(crate) fn kernel_drops(&mut self) -> u64 {
        if let Some(xdp) = &mut self.queue.xdp {
            return xdp.drops();
        }
        match self.kind {
            Kind::Udp(_) | Kind::Multicast { .. } => self.kernel_drops = self.queue.drops(),
            // The kernel resets this counter on each read.
            Kind::Ethernet { .. } => {
                self.kernel_drops += sys::kernel_drops_packet(self.queue.socket.as_fd());
            }
        }
        self.kernel_drops
    }
}
