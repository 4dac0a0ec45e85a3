//! Settings of the faces: sockets, initial faces and limits.

use std::net::SocketAddr;
use std::time::Duration;

use crate::packets::PACKET_MAX;

/// The smallest MTU in bytes with which 64 fragments can hold a packet.
pub const MTU_MIN: usize = 240;

const _: () = assert!((MTU_MIN - 100) * 64 >= PACKET_MAX);

/// Limits and addresses of the faces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// UDP listen addresses for neighbours. Each sender of a packet gets a face.
    pub udp: Vec<SocketAddr>,
    /// Maximum size of a datagram in bytes; `None`: 1,420, and whole packets to loopback addresses.
    pub udp_mtu: Option<usize>,
    /// Whether the kernel may split messages into datagrams and merge received ones (UDP_SEGMENT,
    /// UDP_GRO).
    pub udp_offload: bool,
    /// TCP listen addresses for neighbours. Each connection gets a face.
    pub tcp: Vec<SocketAddr>,
    /// Listen addresses for neighbours that use WebSocket, such as programs in a browser. Each
    /// connection gets a face. Needs the feature `websocket`.
    pub websocket: Vec<SocketAddr>,
    /// Ethernet interfaces with neighbours.
    pub ethernet: Vec<EthernetSettings>,
    /// Groups of neighbours by UDP multicast.
    pub multicast: Vec<MulticastSettings>,
    /// Idle time after which a face on demand is closed.
    pub idle: Duration,
    /// Maximum number of faces.
    pub faces_max: usize,
    /// Maximum number of faces on demand; `None`: three quarters of all faces. The rest is reserved
    /// for programs and for faces that were configured or created by command.
    pub on_demand_max: Option<usize>,
}

impl Settings {
    /// Maximum number of faces on demand. By default a quarter of all faces, and at least one, is
    /// reserved for others.
    pub fn on_demand_max(&self) -> usize {
        let reserved = (self.faces_max / 4).max(1);
        self.on_demand_max.unwrap_or(self.faces_max.saturating_sub(reserved)).min(self.faces_max)
    }
}

/// An Ethernet interface with neighbours.
#[derive(Clone, Debug)]
pub struct EthernetSettings {
    /// The name of the interface.
    pub interface: String,
    /// How its frames are received and sent.
    pub method: EthernetMethod,
    /// Whether each unknown sender of a packet in a unicast frame gets a face.
    pub strangers: bool,
    /// Maximum size of a frame in bytes; `None`: the interface's MTU.
    pub mtu: Option<usize>,
}

/// How the frames of an Ethernet interface are received and sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EthernetMethod {
    /// AF_PACKET: through the kernel's network stack.
    #[default]
    Packet,
    /// AF_XDP: before the network stack, which gets all other frames.
    Xdp,
}

impl EthernetMethod {
    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packet => "af-packet",
            Self::Xdp => "af-xdp",
        }
    }
}

/// A group of neighbours by UDP multicast, on one interface.
#[derive(Clone, Debug)]
pub struct MulticastSettings {
    /// The interface: its name or, for an IPv4 group, its address.
    pub interface: String,
    /// The address and port of the group.
    pub group: SocketAddr,
    /// Maximum size of a datagram in bytes; `None`: as [`Settings::udp_mtu`].
    pub mtu: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            udp: Vec::new(),
            udp_mtu: None,
            udp_offload: true,
            tcp: Vec::new(),
            websocket: Vec::new(),
            ethernet: Vec::new(),
            multicast: Vec::new(),
            idle: Duration::from_secs(600),
            faces_max: 4096,
            on_demand_max: None,
        }
    }
}
