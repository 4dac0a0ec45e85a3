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
use crate::faces::remote::{Mac, ip_version};
use crate::faces::sys::{self, Address, Interface};
use crate::faces::xdp::{XdpInput, XdpPort};

/// The EtherType of NDN.
const ETHERTYPE: u16 = 0x8624;

pub(crate) struct Channel {
    pub(crate) queue: Queue,
    /// The frames that this thread sends.
    pub(crate) outgoing: Outgoing,
    pub(crate) kind: Kind,
    /// Whether it was opened for a face. It is closed with its last face.
    pub(crate) is_temporary: bool,
    /// Whether unknown senders get faces on demand.
    pub(crate) accepts_unknown: bool,
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

    pub(crate) fn connect(&mut self, peer: Address, face: u32) {
        self.peers.insert(peer, face);
    }

    pub(crate) fn disconnect(&mut self, peer: &Address) {
        self.peers.remove(peer);
        self.latest = None;
    }

    pub(crate) fn has_faces(&self) -> bool {
        !self.peers.is_empty()
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
